"""The report and the explorer on any screen, for anybody."""

import re

import matplotlib.pyplot as plt
import pytest

from inopca_jax import plot
from inopca_jax._report import explorer
from inopca_jax._report.report import as_html, report_page
from inopca_jax._report.result import FigureResult
from inopca_jax.paper.claim import Claim
from inopca_jax.paper.figure import PaperFigure

from .cases import sparing

pytest_plugins = ["tests.browser"]

SENTENCE = "the mean of 20 trials differs from the ODE by at most 0.0057 at all times "
VERDICTS = ("holds", "holds with a condition", "does not hold")
CLAIMS = [
    Claim(
        "eq:steady, before sec:tau", 3 * SENTENCE, -5e-3, 2e-3, 4 * SENTENCE, x, x, SENTENCE
    )
    for x in VERDICTS
]
UNEXPECTED = CLAIMS[0]._replace(recorded="does not hold")
LONG_WORD = "SpikedModel(" + 30 * "omega=1.0," + ")"
RESULTS = {
    "tau": FigureResult("tau", CLAIMS, {"INO-PCA": LONG_WORD}, ("tau",)),
    "rivals": FigureResult("rivals", [*CLAIMS, UNEXPECTED], {}, ("rivals", "others")),
    "statements": FigureResult("statements", CLAIMS),
    "olivetti": FigureResult("olivetti", unavailable="no network"),
    "tuned": FigureResult("tuned", failure=LONG_WORD, traceback=LONG_WORD),
}
WIDE, NARROW = (10, 4), (5, 4)
SECTIONS = dict(rivals="beyond", statements="statements", tuned="beyond")
STATEMENTS = sum(len(result.claims) for result in RESULTS.values())


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A report of each kind of result, and the explorer."""
    out = tmp_path_factory.mktemp("report")
    for name in ("figures", "arrays"):
        (out / name).mkdir()
    for name in ("tau", "rivals", "others"):
        figure, _ = plt.subplots(figsize=NARROW if name == "others" else WIDE)
        files = [out / "figures" / f"{name}.{ending}" for ending in ("png", "pdf")]
        plot.save(figure, *files)
    for name in ("tau", "rivals", "statements"):
        (out / "arrays" / f"{name}.npz").touch()
    (out / "claims.json").touch()
    pairs = [(paper_figure(name), result) for name, result in RESULTS.items()]
    (out / "index.html").write_text(report_page(out, pairs, quick=True), encoding="utf-8")
    (out / "explorer.html").write_text(explorer.page(), encoding="utf-8")
    return out


def paper_figure(name):
    return PaperFigure(
        name=name,
        section=SECTIONS.get(name, "paper"),
        description=f"The overlap of `InoPCA` & others.\n\n{5 * SENTENCE}",
        configs=lambda quick: {},
        compute=lambda quick: {},
        drawings={},
        claims=lambda arrays: [],
        work_order=0,
    )


# The color of a text against the background that is behind it, by the formula of the Web
# Content Accessibility Guidelines; and the size of its letters.
TEXTS = """() => {
  const numbers = (color) => color.match(/[\\d.]+/g).map(Number);
  const light = (color) => {
    const [r, g, b] = numbers(color).slice(0, 3).map((x) => x / 255)
      .map((x) => (x <= 0.04045 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = (element) => {
    for (; element; element = element.parentElement) {
      const color = getComputedStyle(element).backgroundColor;
      if (numbers(color)[3] !== 0) return color;
    }
  };
  const written = (element) => element.matches("input[type=number], select") ||
    [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
  return [...document.body.querySelectorAll("*")]
    .filter((element) => written(element) && element.checkVisibility() &&
      !element.matches("script, .skip, :disabled"))
    .map((element) => {
      const style = getComputedStyle(element);
      const color = element.closest("svg") ? style.fill : style.color;
      const [low, high] = [light(color), light(behind(element))].sort((a, b) => a - b);
      const text = element.textContent.trim().slice(0, 40);
      const small = element.closest("sub, sup, .below") !== null;
      return { text, contrast: (high + 0.05) / (low + 0.05), small,
        size: parseFloat(style.fontSize) };
    });
}"""
SCREENS = [
    (name, width, scheme)
    for scheme in ("light", "dark")
    for width in (390, 768, 1440)
    for name in ("index", "explorer")
]


@pytest.mark.parametrize(("name", "width", "scheme"), sparing(SCREENS, quick=2))
def test_a_page_fits_any_screen_and_can_be_read(folder, visit, name, width, scheme):
    page = visit((folder / f"{name}.html").as_uri(), width, scheme)
    height = page.evaluate("document.documentElement.scrollHeight")
    assert height < (3500 if name == "explorer" else 700 * len(RESULTS) + 400 * STATEMENTS)
    page.evaluate("document.querySelectorAll('details').forEach(e => e.open = true)")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    texts = page.evaluate(TEXTS)
    assert len(texts) > 50
    assert [text for text in texts if text["contrast"] < 4.5] == []
    assert [text for text in texts if text["size"] < (9 if text["small"] else 12)] == []


@pytest.mark.parametrize("width", sparing([390, 768, 1440]))
def test_statements_are_beside_the_pictures_or_below_them(folder, visit, width):
    page = visit((folder / "index.html").as_uri(), width)
    # Twice each: beside the figure and in the table.
    for statement in page.get_by_text(SENTENCE).and_(page.locator("summary, th a")).all():
        assert statement.is_visible()
        assert statement.bounding_box()["width"] >= 200
    for row in page.locator("#all-statements tr[class]").all():
        cells = [cell.bounding_box() for cell in row.locator("th, td").all()]
        (statement, *others) = (cell for cell in cells if cell)
        for other in others:
            left = statement["x"] + statement["width"] <= other["x"] + 1
            above = statement["y"] + statement["height"] <= other["y"] + 1
            assert left if width == 1440 else above
    picture = page.locator("#tau img").bounding_box()
    claims = page.locator("#tau .claims").bounding_box()
    assert (claims["x"] > picture["x"] + picture["width"]) == (width == 1440)
    assert (claims["y"] > picture["y"] + picture["height"]) == (width != 1440)
    # Without a picture they take the whole width.
    last = page.locator("#statements .claims").bounding_box()
    assert last["width"] > 0.9 * page.locator("#statements").bounding_box()["width"]
    assert last["y"] < page.locator("#all-statements").bounding_box()["y"]


def test_symbols_have_subscripts_except_in_code():
    shown = as_html("Q_t < ω_c, `Q_t`, q_std and f(x_t).")
    assert shown == (
        "Q<sub>t</sub> &lt; ω<sub>c</sub>, <code>Q_t</code>, q_std and f(x<sub>t</sub>)."
    )


@pytest.mark.slow
@pytest.mark.parametrize("width", [390, 768])
def test_a_wide_picture_keeps_its_letters_on_a_phone(folder, visit, width):
    page = visit((folder / "index.html").as_uri(), width)
    picture = page.locator("#tau img").bounding_box()["width"]
    box = page.locator("#tau .picture").bounding_box()["width"]
    assert (picture >= 72 * WIDE[0]) is (width == 390)
    assert (picture > box) is (width == 390)
    assert page.locator("#rivals img").last.bounding_box()["width"] <= box
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_pages_can_be_read_by_a_machine(folder, visit):
    for name in ("index", "explorer"):
        page = visit((folder / f"{name}.html").as_uri())
        count = lambda selector: page.locator(selector).count()  # noqa: B023
        for landmark in ("main", "h1", "body > header"):
            assert count(landmark) == 1
        assert (
            count("img:not([alt]), img[alt=''], th:not([scope]), table:not(:has(caption))")
            == 0
        )
        unnamed = ":not([aria-label]):not([aria-labelledby])"
        assert count(f"nav{unnamed}, body > section{unnamed}, [role=img]{unnamed}") == 0
        ids = page.locator("[id]").evaluate_all("all => all.map(e => e.id)")
        assert len(ids) == len(set(ids))
        labels = "all => all.map(e => e.getAttribute('aria-labelledby'))"
        assert {*page.locator("[aria-labelledby]").evaluate_all(labels)} <= {*ids}
    # A verdict is told by words, not by its colour alone.
    page = visit((folder / "index.html").as_uri())
    for row, claim in zip(
        page.locator("#tau .claims .chip").all(), RESULTS["tau"].claims, strict=True
    ):
        assert row.inner_text() == claim.verdict


def test_all_links_lead_somewhere(folder, visit):
    found = set()
    for name in ("index.html", "explorer.html"):
        page = visit((folder / name).as_uri())
        for link in page.locator("a").evaluate_all(
            "all => all.map(e => e.getAttribute('href'))"
        ):
            path, _, anchor = link.partition("#")
            assert (folder / (path or name)).exists(), link
            if anchor and "=" not in anchor:  # otherwise it is a state of the explorer
                assert page.locator(f"[id='{anchor}']").count() == 1, link
            found.add(link)
    assert {"index.html", "explorer.html", "claims.json", "#main", "#tau"} <= found


@pytest.mark.parametrize("name", ["index", "explorer"])
def test_the_first_tab_offers_to_skip_to_the_main_part(folder, visit, name):
    state = "#rule=oja&tau=0.3" if name == "explorer" else ""
    page = visit((folder / f"{name}.html").as_uri() + state)
    page.keyboard.press("Tab")
    link = page.locator(":focus")
    assert re.match("Skip to", link.inner_text())
    assert link.bounding_box()["width"] > 100
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
    page.keyboard.press("Tab")
    assert page.locator("main :focus").count() == 1
    if name == "explorer":
        assert page.evaluate("explorer.state.tau") == 0.3
        page.wait_for_url(re.compile("rule=oja"))


def test_evidence_is_printed(folder, visit):
    page = visit((folder / "index.html").as_uri())
    evidence = page.locator("#tau-0 p").last
    assert not evidence.is_visible()
    page.emulate_media(media="print")
    assert evidence.evaluate("e => e.checkVisibility({ contentVisibilityAuto: true })")
