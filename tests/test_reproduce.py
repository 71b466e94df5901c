"""The report is complete, computes nothing twice, and makes every failure known."""

import json
import os
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import matplotlib.pyplot as plt
import numpy as np
import pytest

from inopca_jax._cli.main import main
from inopca_jax._report import reproduce as command
from inopca_jax.data import NotAvailable
from inopca_jax.paper import FIGURES
from inopca_jax.paper.claim import Claim
from inopca_jax.paper.figure import PaperFigure

from .cases import arrays_in

pytest_plugins = ["tests.browser"]

CLAIM = Claim("sec", "q < 1 & so on", 0.5, 0.01, "it is", "holds", "holds", "so it is")


def cheap_figure(name, compute, claims=lambda arrays: [CLAIM]):
    """A figure that costs nothing but what `compute` does."""

    def draw(arrays):
        figure, ax = plt.subplots(figsize=(3, 2))
        ax.plot(arrays["q"])
        return figure

    return PaperFigure(
        name=name,
        section="paper",
        description="A line.\n\nThat rises.",
        configs=lambda quick: {},
        compute=compute,
        drawings={name: draw},
        claims=claims,
        work_order=next(figure.work_order for figure in FIGURES if figure.name == name),
    )


@pytest.fixture
def one_figure(monkeypatch):
    """In place of cos_lambda, a figure that costs nothing, made in this process as on a
    GPU. Returns the number of its calls, its claim and the error that it is to raise."""
    control = SimpleNamespace(calls=0, claim=CLAIM, error=None)

    def compute(quick):
        control.calls += 1
        if control.error is not None:
            raise control.error
        return dict(q=np.linspace(0, 1, 5))

    figure = cheap_figure("cos_lambda", compute, lambda arrays: [control.claim])
    monkeypatch.setattr(command, "FIGURES", (figure,))
    monkeypatch.setattr(command.defaults, "on_cpu", lambda: False)
    return control


# A worker's process imports the package anew. It is asked to call `make_with` instead of
# `make_figure`, which puts figures that cost nothing in the place of the paper's.
def make_with(behaviour, name, out, quick):
    """Makes a figure that does what `behaviour` says for its name, and writes the id of the
    process that it was computed in to a file."""

    def compute(quick):
        with (out / f"{name}.computed").open("a") as file:
            file.write(f"{os.getpid()}\n")
        behaviour.get(name, return_at_once)()
        flags = os.environ.get("XLA_FLAGS", "")
        return dict(q=np.linspace(0, 1, 5), flags=np.array(flags))

    command.FIGURES = (cheap_figure(name, compute),)
    command.fingerprint = lambda *_: {}  # so that files may be edited while tests run
    return command.make_figure(name, out, quick)


def return_at_once():
    pass


def fail():
    raise ZeroDivisionError("by nought")


def fail_at_no_data():
    raise NotAvailable("no network")


def fail_at_a_file():
    raise OSError("not a file")


def die():
    os.kill(os.getpid(), signal.SIGKILL)


def wait_for_ever():
    while True:
        time.sleep(1)


MOMENTS = ["wait_for_ever", "wait_while_writing"]


def wait_while_writing():
    """Waits for ever once half of the arrays are written."""

    def half(path, **_):
        Path(path).write_bytes(b"half")
        wait_for_ever()

    np.savez_compressed = half


def reproduce_with(monkeypatch, out, names, **behaviour):
    monkeypatch.setattr(command, "make_figure", partial(make_with, behaviour))
    return main(["reproduce", "--quick", "--out", str(out), "--figure", *names])


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


def test_the_page_opens_in_a_browser_and_asks_for_nothing(one_figure, tmp_path, visit):
    one_figure.claim = CLAIM._replace(verdict="does not hold", recorded="does not hold")
    run(tmp_path)
    address = (tmp_path / "index.html").as_uri()
    page = visit(address)
    assert page.evaluate("document.images[0].naturalWidth") > 100
    row = page.get_by_role("row", name=CLAIM.statement)
    page.get_by_label("holds with a condition").check()
    assert not row.is_visible()
    page.get_by_label("does not hold").check()
    assert row.is_visible()
    row.get_by_role("link").click()
    assert page.url == f"{address}#cos_lambda-0"
    page.locator(":target summary").click()
    assert page.get_by_text(CLAIM.explanation).is_visible()
    page.get_by_role("link", name="explorer").click()
    assert page.title().startswith("Explorer")
    page.get_by_role("link", name="report").click()
    assert page.url == address


def test_only_what_changed_is_computed(one_figure, tmp_path, monkeypatch):
    run(tmp_path)
    run(tmp_path)
    assert one_figure.calls == 1
    monkeypatch.setattr(command, "fingerprint", lambda *_: dict(source="another"))
    run(tmp_path)
    assert one_figure.calls == 2
    (tmp_path / "arrays" / "cos_lambda.npz").unlink()
    run(tmp_path)
    assert one_figure.calls == 3


def test_a_figure_depends_on_the_package_and_on_no_other_figure(tmp_path):
    names = [figure.name for figure in FIGURES]
    sources = {command.fingerprint(name, False)["source"] for name in names}
    assert len(sources) == len(set(names)) == len(FIGURES)
    assert command.fingerprint("tau", True) != command.fingerprint("tau", False)


def test_a_verdict_that_is_not_on_record_is_exit_code_1(one_figure, tmp_path, capsys):
    one_figure.claim = CLAIM._replace(verdict="does not hold")
    with pytest.raises(SystemExit, match="1"):
        run(tmp_path)
    assert "does not hold, on record: holds" in capsys.readouterr().err
    assert "on record: holds" in (tmp_path / "index.html").read_text()


def test_damaged_arrays_are_computed_again(one_figure, tmp_path):
    run(tmp_path)
    path, note = (tmp_path / "arrays" / f"cos_lambda.{x}" for x in ("npz", "json"))
    whole = arrays_in(path)["q"]
    calls = 1
    for file in (path, note):
        text = file.read_bytes()
        for damaged in (text[: len(text) // 2], b"", text[:-40] + bytes(40)):
            file.write_bytes(damaged)
            assert run(tmp_path) == 0
            calls += 1
            assert one_figure.calls == calls
            assert np.array_equal(arrays_in(path)["q"], whole)


def test_a_figure_that_fails_is_heard_of_with_its_traceback(one_figure, tmp_path, capsys):
    one_figure.error = ZeroDivisionError("by nought")
    with pytest.raises(SystemExit, match="1"):
        run(tmp_path)
    said = capsys.readouterr().err
    page = (tmp_path / "index.html").read_text()
    assert "inopca: cos_lambda failed: ZeroDivisionError: by nought" in said
    for text in (said, page):
        assert "in compute\n    raise control.error" in text


def test_only_data_that_are_not_available_are_left_out(one_figure, tmp_path, capsys):
    one_figure.error = NotAvailable("no network")
    assert run(tmp_path) == 0
    assert "cos_lambda is left out: no network" in capsys.readouterr().err
    assert "left out: no network" in (tmp_path / "index.html").read_text()
    one_figure.error = OSError("no such file")
    with pytest.raises(SystemExit, match="1"):
        run(tmp_path)
    assert "cos_lambda failed: OSError: no such file" in capsys.readouterr().err


def test_what_happens_to_one_figure_costs_no_other(tmp_path, monkeypatch, capfd):
    """On two cores, each worker has figures to make after one that fails."""
    behaviour = dict(
        tau=fail_at_no_data, rivals=die, comparison=fail, lambda0=fail_at_a_file
    )
    good = ["cos_lambda", "density_evolution", "adaptive_comparison"]
    with pytest.raises(SystemExit, match="1"):
        reproduce_with(monkeypatch, tmp_path, [*good, *behaviour], **behaviour)
    out, err = capfd.readouterr()
    assert "3 of 3 claims: holds" in out
    assert {path.stem for path in (tmp_path / "arrays").glob("*.npz")} == set(good)
    assert "note: tau is left out: no network" in err
    assert "inopca: comparison failed: ZeroDivisionError: by nought" in err
    assert "inopca: lambda0 failed: OSError: not a file" in err
    assert "inopca: rivals failed: its process was ended by signal 9 (Killed)" in err
    assert 'raise ZeroDivisionError("by nought")' in err
    page = (tmp_path / "index.html").read_text()
    assert "raise ZeroDivisionError(&quot;by nought&quot;)" in page
    assert "its process was ended by signal 9" in page


def test_a_single_figure_is_made_as_one_of_many(tmp_path, monkeypatch):
    """In a process of its own, with the same options of the compiler."""
    for out, names in (("one", ["tau"]), ("two", ["tau", "comparison"])):
        assert reproduce_with(monkeypatch, tmp_path / out, names) == 0
    one, two = (arrays_in(tmp_path / x / "arrays" / "tau.npz") for x in ("one", "two"))
    assert one["flags"] == two["flags"]
    assert int((tmp_path / "one" / "tau.computed").read_text()) != os.getpid()


@pytest.mark.slow
def test_a_single_figure_has_the_bits_of_many(tmp_path):
    alone, together = tmp_path / "alone", tmp_path / "together"
    new = {"XLA_FLAGS", "JAX_COMPILATION_CACHE_DIR"}  # those of the tests
    environment = {k: v for k, v in os.environ.items() if k not in new}
    for out, names in ((alone, ["cos_lambda"]), (together, ["cos_lambda", "lambda0"])):
        options = ["reproduce", "--quick", "--out", str(out), "--figure", *names]
        subprocess.run([*INOPCA, *options], env=environment, check=True)
    one, two = (arrays_in(x / "arrays" / "cos_lambda.npz") for x in (alone, together))
    assert one.keys() == two.keys()
    assert all(np.array_equal(one[name], two[name]) for name in one)


INOPCA = [
    sys.executable,
    "-c",
    "from inopca_jax._cli.main import main; raise SystemExit(main())",
]
# The same with figures that cost nothing, of which tau does what the first argument names.
WITH_FIGURES = """
from functools import partial
import sys
from inopca_jax._cli import main as cli
from inopca_jax._report import reproduce
from tests import test_reproduce
behaviour = dict(tau=getattr(test_reproduce, sys.argv.pop(1)))
reproduce.make_figure = partial(test_reproduce.make_with, behaviour)
cli.run_from_shell()
"""
# On one core or two, the others are made before tau ends.
OTHERS = ("adaptive_comparison", "rivals")


def start_with(behaviour, out):
    options = ["reproduce", "--quick", "--out", out, "--figure", *OTHERS, "tau"]
    return subprocess.Popen(
        [sys.executable, "-c", WITH_FIGURES, behaviour, *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[1],
        start_new_session=True,  # a group of processes, as in a terminal
    )


@pytest.mark.slow
@pytest.mark.parametrize("repetition", range(10))
@pytest.mark.parametrize("moment", MOMENTS)
def test_ctrl_c_ends_all_processes_and_the_next_run_goes_on(
    moment, repetition, tmp_path, monkeypatch, capfd
):
    arrays, computed = tmp_path / "arrays", tmp_path / "tau.computed"
    with start_with(moment, tmp_path) as process:
        while not (
            all((arrays / f"{name}.json").exists() for name in OTHERS)
            and computed.exists()
            and (moment == "wait_for_ever" or any(arrays.glob(".tau*")))
        ):
            assert process.poll() is None, process.communicate()
            time.sleep(0.01)
        os.killpg(process.pid, signal.SIGINT)
        said = process.communicate()
    assert process.returncode == 130
    there = f"finished figures are in {tmp_path}; the same command goes on from there"
    assert said == ("", f"inopca: stopped; {there}\n")
    with pytest.raises(ProcessLookupError):
        os.kill(int(computed.read_text()), 0)
    assert {path.stem for path in arrays.iterdir()} == set(OTHERS)
    assert not any((tmp_path / "figures").glob(".*"))

    assert reproduce_with(monkeypatch, tmp_path, [*OTHERS, "tau"]) == 0
    out, err = capfd.readouterr()
    assert "3 of 3 claims: holds" in out
    assert err == ""
    calls = {x: len((tmp_path / f"{x}.computed").read_text().split()) for x in OTHERS}
    assert calls == dict.fromkeys(OTHERS, 1)


@pytest.mark.slow
def test_workers_end_with_a_process_that_is_killed(tmp_path):
    computed = tmp_path / "tau.computed"
    with start_with("wait_for_ever", tmp_path) as process:
        while not (computed.exists() and computed.read_text()):
            assert process.poll() is None, process.communicate()
            time.sleep(0.01)
        process.kill()
        # The workers have the same pipes: these are closed when all have ended.
        process.communicate(timeout=60)


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
    assert "--figure 'taw' does not exist" in capsys.readouterr().err
    assert not any(tmp_path.iterdir())
