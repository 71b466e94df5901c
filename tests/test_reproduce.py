"""The report: everything in it, nothing computed twice, and what is off is heard of."""

import json
from types import SimpleNamespace

import matplotlib.pyplot as plt
import numpy as np
import pytest

from inopca_jax.cli import main
from inopca_jax.paper import figures, reproduce as command
from inopca_jax.paper.claim import Claim

pytest_plugins = ["tests.browser"]

CLAIM = Claim("sec", "q < 1 & so on", 0.5, 0.01, "it is", "holds", "holds", "so it is")


@pytest.fixture
def one_figure(monkeypatch):
    """In place of cos_lambda, one that costs nothing; its calls and its claim."""
    told = SimpleNamespace(calls=0, claim=CLAIM, error=None)

    def compute(quick):
        told.calls += 1
        if told.error is not None:
            raise told.error
        return dict(q=np.linspace(0, 1, 5))

    def draw(found):
        figure, ax = plt.subplots(figsize=(3, 2))
        ax.plot(found["q"])
        return figure

    module = SimpleNamespace(
        __doc__="A line.\n\nThat rises.",
        compute=compute,
        draw=draw,
        claims=lambda found: [told.claim],
        configs=lambda quick: {},
    )
    for place in (command, figures):
        monkeypatch.setattr(place, "figure", lambda name: module)
    monkeypatch.setattr("inopca_jax.paper.report.figure", lambda name: module)
    return told


def run(out):
    return main(["reproduce", "--figure", "cos_lambda", "--quick", "--out", str(out)])


def test_a_report_has_all_that_it_should(one_figure, tmp_path, capsys):
    assert run(tmp_path) == 0
    assert "1 of 1 claims: holds" in capsys.readouterr().out
    names = ("figures/cos_lambda.png", "figures/cos_lambda.pdf", "arrays/cos_lambda.npz")
    for name in (*names, "claims.json", "index.html", "explorer.html"):
        assert (tmp_path / name).stat().st_size > 100
    (claim,) = json.loads((tmp_path / "claims.json").read_text())
    assert claim.pop("figure") == "cos_lambda"
    assert Claim(**claim) == CLAIM
    page = (tmp_path / "index.html").read_text()
    assert "q &lt; 1 &amp; so on" in page
    assert "That rises." in page


@pytest.mark.parametrize("width", [1200, 420])
def test_the_page_opens_in_a_browser_and_asks_for_nothing(
    one_figure, tmp_path, browser, width
):
    one_figure.claim = CLAIM._replace(verdict="does not hold", recorded="does not hold")
    run(tmp_path)
    page = browser.new_page(viewport=dict(width=width, height=900))
    asked, complaints = set(), []
    page.on("request", lambda request: asked.add(request.url.split(":")[0]))
    page.on("console", lambda message: complaints.append(message.text))
    address = (tmp_path / "index.html").as_uri()
    page.goto(address)
    assert page.evaluate("document.images[0].naturalWidth") > 100
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    row = page.locator(".glance tr").first
    page.get_by_label("holds with a condition").check()
    assert not row.is_visible()
    page.get_by_label("does not hold").check()
    assert row.is_visible()
    row.get_by_role("link").click()
    assert page.url == f"{address}#cos_lambda-0"
    page.get_by_role("link", name="explorer").click()
    assert page.title().startswith("Explorer")
    page.close()
    # The images are in the page: the files themselves are all that is ever read.
    assert asked <= {"file", "data"}
    assert complaints == []


def test_only_what_changed_is_computed(one_figure, tmp_path, monkeypatch):
    run(tmp_path)
    run(tmp_path)
    assert one_figure.calls == 1
    monkeypatch.setattr(command, "fingerprint", lambda *_: "another version")
    run(tmp_path)
    assert one_figure.calls == 2
    (tmp_path / "arrays" / "cos_lambda.npz").unlink()
    run(tmp_path)
    assert one_figure.calls == 3


def test_a_figure_depends_on_the_package_and_on_no_other_figure(tmp_path):
    marks = {name: command.fingerprint(name, False)["source"] for name in figures.FIGURES}
    assert len(set(marks.values())) == len(marks)
    assert command.fingerprint("tau", True) != command.fingerprint("tau", False)


def test_a_verdict_that_is_not_on_record_is_exit_code_1(one_figure, tmp_path, capsys):
    one_figure.claim = CLAIM._replace(verdict="does not hold")
    with pytest.raises(SystemExit, match="1"):
        run(tmp_path)
    assert "does not hold, on record: holds" in capsys.readouterr().err
    assert "on record: holds" in (tmp_path / "index.html").read_text()


def test_a_figure_that_fails_costs_no_other_and_is_heard_of(one_figure, tmp_path, capsys):
    one_figure.error = ZeroDivisionError("by nought")
    with pytest.raises(SystemExit, match="1"):
        run(tmp_path)
    assert "cos_lambda failed: ZeroDivisionError: by nought" in capsys.readouterr().err
    one_figure.error = OSError("no data to be had")
    assert run(tmp_path) == 0
    assert "left out: no data to be had" in capsys.readouterr().err
    assert "no data to be had" in (tmp_path / "index.html").read_text()


def test_a_disk_that_is_full_is_not_taken_for_data_that_cannot_be_had(
    one_figure, tmp_path, monkeypatch, capsys
):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "savez_compressed", full)
    with pytest.raises(SystemExit, match="1"):
        run(tmp_path)
    assert "cos_lambda failed: OSError: [Errno 28] No space" in capsys.readouterr().err


def test_an_unknown_figure_is_one_line(tmp_path, capsys):
    assert main(["reproduce", "--figure", "tau", "taw", "--out", str(tmp_path)]) == 2
    assert "figure = 'taw' is not there" in capsys.readouterr().err
    assert not any(tmp_path.iterdir())
