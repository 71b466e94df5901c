"""The explorer in a real browser, against the package's own theory."""

import csv
import re

import numpy as np
import pytest
from playwright.sync_api import Page

import inopca_jax as ino
from inopca_jax._report import explorer

from .cases import sparing

pytest_plugins = ["tests.browser"]

P = 10_000
# Each algorithm's name on the page, and the package's, from the values of the sliders.
ALGORITHMS = {
    "INO-PCA": lambda s: ino.InoPCA(s["tau"]),
    "Oja": lambda s: ino.Oja(s["tau"]),
    "Cubic": lambda s: ino.Cubic(s["tau"]),
    "Krasulina": lambda s: ino.Krasulina(s["tau"]),
    "adaptive INO-PCA": lambda s: ino.AdaptiveInoPCA(),
    "AdaOja": lambda s: ino.AdaOja(P / s["tau"]),
    "CCIPCA": lambda s: ino.CCIPCA(s["amnesic"], t0=(1 + s["amnesic"]) / s["tau"]),
}

SLIDERS = {
    "tau": "learning rate",
    "omega": "signal to noise",
    "turning": "turning of the spike",
    "lam0": "initial norm",
    "q0": "initial overlap",
    "amnesic": "amnesic number",
    "t_max": "last time",
    "t": "chosen time",
}

# On both sides of the transition, from small and large norms, early and late.
DEFAULT = dict(tau=0.5, omega=1, turning=0, lam0=1, q0=0.1, amnesic=4, t_max=50, t=10)
SETTINGS = [
    dict(tau=1.4, omega=0.35, lam0=3.2, q0=0.6, amnesic=1.5, t_max=100, t=63.4, turning=0),
    dict(tau=2, omega=4, lam0=0.1, q0=0.01, amnesic=0, t_max=20, t=1.3, turning=0.2),
    dict(tau=0.1, omega=2.5, lam0=0.4, q0=0.9, amnesic=8, t_max=200, t=150, turning=0),
]


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    path = tmp_path_factory.mktemp("explorer") / "explorer.html"
    path.write_text(explorer.page(), encoding="utf-8")
    return path.as_uri()


@pytest.fixture
def page(visit, address):
    return visit(address)


def move(page: Page, setting: dict) -> None:
    """Sets what can be set, by the sliders; the end of the time before the time."""
    for name, value in setting.items():
        slider = page.get_by_role("slider", name=SLIDERS[name])
        if slider.count() and slider.is_enabled():
            slider.fill(str(value))


def choose(page: Page, algorithm: str) -> None:
    page.locator("#rules").get_by_text(algorithm, exact=True).click()


def shown(page: Page) -> dict[str, float]:
    """The numbers that the page writes."""
    read = "all => all.map(e => [e.id, e.textContent])"
    texts = page.locator("output").evaluate_all(read)
    value = lambda text: float(text.replace("∞", "inf").replace("none", "nan"))
    return {name.removeprefix("number-"): value(text) for name, text in texts}


def study(algorithm: str, setting: dict) -> ino.Config:
    """At four times, always, so that an algorithm is compiled once."""
    ts = sorted([0.0, 0.37, setting["t"], setting["t_max"]])
    return ino.Config(
        rule=ALGORITHMS[algorithm](setting),
        model=ino.SpikedModel(P, setting["omega"], turning=setting.get("turning") or None),
        start=ino.WarmStart(setting["q0"], setting["lam0"]),
        ts=np.asarray(ts),
    )


def agrees(page: Page, algorithm: str, setting: dict) -> None:
    config = study(algorithm, setting)
    theory = ino.mean_field(config)
    path = page.evaluate("ts => explorer.path(ts)", config.ts.tolist())
    np.testing.assert_allclose(path["q"], theory.q, atol=1e-7)
    np.testing.assert_allclose(path["lam"], theory.lam, rtol=1e-6)

    now = config.ts.tolist().index(setting["t"])
    q_s, lam_s = ino.steady_state(config)
    omega, t, turning = setting["omega"], setting["t"], config.model.turning
    expected = {
        "q_t": theory.q[now],
        "lam_t": theory.lam[now],
        "q_s": q_s,
        "lam_s": lam_s,
        "omega_c": ino.critical_snr(config.rule, turning),
    }
    if turning is None:
        expected["oracle"] = ino.oracle_overlap(omega, setting["q0"], t)
        expected["offline"] = ino.offline_overlap(omega, t)
    else:
        expected["oracle"] = ino.best_overlap(config, [t])[0]
        if isinstance(config.rule.tau, ino.Constant):
            expected["best_rate"] = ino.best_rate(config)
    written = shown(page)
    assert np.isnan(written["offline"]) == (turning is not None)
    for name, value in expected.items():
        np.testing.assert_allclose(written[name], value, rtol=1e-4, atol=1e-5)


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("algorithm", sparing(ALGORITHMS))
def test_the_sliders_lead_to_the_mean_field_and_its_steady_state(page, algorithm):
    choose(page, algorithm)
    agrees(page, algorithm, DEFAULT)
    by_hand, *others = SETTINGS
    move(page, by_hand)
    agrees(page, algorithm, by_hand)
    for setting in others:
        page.evaluate("setting => explorer.set(setting)", setting)
        agrees(page, algorithm, setting)


@pytest.mark.usefixtures("x64")
def test_the_gains_and_the_best_initial_norm_are_the_packages(page):
    for setting in SETTINGS:
        page.evaluate("setting => explorer.set(setting)", setting)
        written = shown(page)
        tau, omega, q0 = (setting[name] for name in ("tau", "omega", "q0"))
        lam0 = ino.best_lam0(tau, omega, q0)
        assert np.isclose(written["best_lam0"], lam0, rtol=1e-4)
        # The best norm is the one that makes the gain tau/lam the best gain.
        gain = tau / ino.best_lam0(tau, omega, written["q_t"])
        assert np.isclose(written["best_gain"], gain, rtol=1e-3)
        assert np.isclose(written["gain"], tau / written["lam_t"], rtol=1e-4)


def on_axes(page: Page, panel: str):
    """From pixels to numbers, by the ticks of a figure with plain numbers."""
    ticks = page.locator(f"#{panel}-figure .grid text").evaluate_all(
        "all => all.map(e => [e.getAttribute('class'), e.textContent, +e.getAttribute('x'),"
        " +e.getAttribute('y') - 4])"
    )
    value = lambda text: float(text.replace("\u2212", "-"))  # a minus, not a hyphen
    x = [(t[2], value(t[1])) for t in ticks if t[0] == "middle"]
    y = [(t[3], value(t[1])) for t in ticks if t[0] == "end"]
    (by_x, x0), (by_y, y0) = (np.polyfit(*np.transpose(pairs), 1) for pairs in (x, y))
    return lambda places: np.asarray(places) * [by_x, by_y] + [x0, y0]


def drawn(page: Page, panel: str, kind: str) -> np.ndarray:
    """The points of a line in a figure."""
    d = page.locator(f"#{panel}-figure path.line.{kind}").get_attribute("d")
    pixels = [tuple(map(float, pair.split(","))) for pair in re.split("[ML]", d or "")[1:]]
    return on_axes(page, panel)(pixels)


@pytest.mark.usefixtures("x64")
def test_the_lines_are_drawn_where_the_numbers_are(page):
    setting = dict(DEFAULT, t_max=20)
    move(page, dict(t_max=20))
    theory = ino.mean_field(study("INO-PCA", setting))
    for panel, values in (("overlap", theory.q), ("norm", theory.lam)):
        seen = np.interp(theory.ts, *drawn(page, panel, "main").T)
        np.testing.assert_allclose(seen, values, atol=0.01)
    for kind, limit in (
        ("oracle", lambda t: ino.oracle_overlap(1.0, 0.1, t)),
        ("offline", lambda t: ino.offline_overlap(1.0, t)),
    ):
        ts = np.array([0.5, 2.0, 7.0, 20.0])
        seen = np.interp(ts, *drawn(page, "overlap", kind).T)
        np.testing.assert_allclose(seen, limit(ts), atol=0.01)
    for omega in (0.15, 0.4, 1.0, 3.5):
        seen = np.interp(omega, *drawn(page, "steady", "main").T)
        q_s, _ = ino.steady_state(study("INO-PCA", dict(setting, omega=omega)))
        assert abs(seen - q_s) < 0.01
    assert page.locator("#steady-figure .edge-label").text_content() == "ωc = 0.207"


@pytest.mark.usefixtures("x64")
def test_beside_it_oja_with_the_papers_fair_rate_ends_where_ino_pca_does(page):
    page.get_by_label("compare with").select_option("oja-slow")
    q_s, _ = ino.steady_state(study("INO-PCA", DEFAULT))
    overlaps = drawn(page, "overlap", "other")[:, 1]
    assert abs(overlaps[0] - DEFAULT["q0"]) < 0.01
    assert abs(overlaps[-1] - q_s) < 0.01


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("algorithm", ["INO-PCA", "Cubic"])
def test_the_portrait_marks_where_the_flow_rests(page, algorithm):
    choose(page, algorithm)
    for omega, saddles in ((0.1, 0), (1.0, 1)):
        setting = dict(DEFAULT, omega=omega)
        move(page, dict(omega=omega))
        places = page.locator("#portrait-figure .mark.target").evaluate_all(
            "all => all.map(e => e.getAttribute('transform').match(/[\\d.]+/g).map(Number))"
        )
        rest = ino.steady_state(study(algorithm, setting))
        np.testing.assert_allclose(on_axes(page, "portrait")(places), [rest], atol=0.01)
        assert page.locator("#portrait-figure .mark.ring").count() == saddles


def test_every_portrait_says_what_it_is(page):
    for algorithm in ALGORITHMS:
        choose(page, algorithm)
        note = page.locator("#portrait-note").inner_text()
        assert ("drawn instead" in note) == (algorithm in ("Oja", "AdaOja"))
        assert ("chosen time t" in note) == (algorithm == "CCIPCA")
        for mark in ("dot", "square", "diamond"):  # the start, the end, the chosen time
            assert page.locator(f"#portrait-figure .mark.{mark}").count() == 1
        assert page.locator("#portrait-figure .arrow").count() > 10


def test_keys_and_typed_numbers_move_a_slider(page):
    slider = page.get_by_role("slider", name="learning rate")
    slider.focus()
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    assert page.evaluate("explorer.state.tau") == 0.53
    box = page.get_by_label("signal to noise, as a number")
    box.fill("0.3")
    box.press("Enter")
    assert shown(page)["lam_s"] == 1.3
    box.fill("17")  # out of range
    box.press("Enter")
    assert box.input_value() == "4"


def test_a_slider_that_does_nothing_says_so(page):
    idle = {"adaptive INO-PCA": "tau", "Oja": "lam0", "AdaOja": "lam0"}
    for algorithm in ALGORITHMS:
        choose(page, algorithm)
        for name in ("tau", "lam0"):
            row = page.locator(f"#slider-{name}")
            assert row.is_disabled() == (idle.get(algorithm) == name)
        assert page.locator("#slider-amnesic").is_visible() == (algorithm == "CCIPCA")


def test_the_rate_of_a_falling_schedule_is_said_to_be_the_initial_one(page):
    rate = page.locator(".slider").first
    page.evaluate("explorer.set({ tau: 0.8, amnesic: 3 })")
    read = lambda after: float(re.search(rf"{after} = ([\d.]+\d)", rate.inner_text())[1])
    assert "initial" not in rate.inner_text()
    choose(page, "CCIPCA")
    assert "initial learning rate" in rate.inner_text()
    assert (1 + 3) / read(r"\)/τ") == 0.8  # the rate (1 + l)/(t + t0) at t = 0
    choose(page, "AdaOja")
    assert "initial learning rate" in rate.inner_text()
    assert 1 / read("p/τ") == 0.8  # the rate p/b0, with b0 in units of p
    # The rate of Oja's method is constant.
    page.get_by_label("compare with").select_option("oja")
    assert "initial" not in rate.locator("label").inner_text()
    assert "rate is τ at t = 0" in rate.inner_text()


def downloaded(page: Page, title: str) -> tuple[dict[str, str], dict[str, np.ndarray]]:
    """The file that a button saves, pressed by a key."""
    button = page.get_by_role("button", name=f"Download the data of “{title}” as CSV")
    button.focus()
    with page.expect_download() as download:
        page.keyboard.press("Enter")
    assert download.value.suggested_filename.endswith(".csv")
    return parsed(download.value.path().read_text(encoding="utf-8"))


def parsed(text: str) -> tuple[dict[str, str], dict[str, np.ndarray]]:
    """What is above the table, and the curves."""
    lines = text.splitlines()
    notes = dict(x[2:].split(" = ") for x in lines if x.startswith("#"))
    _, *rows = csv.reader(x for x in lines if not x.startswith("#"))
    curves: dict[str, list] = {}
    for name, x, y in rows:
        curves.setdefault(name, []).append((float(x), float(y)))
    return notes, {name: np.transpose(points) for name, points in curves.items()}


@pytest.mark.usefixtures("x64")
def test_the_data_of_a_figure_are_downloaded_as_they_are_drawn(page):
    setting = dict(DEFAULT, t_max=20)
    move(page, dict(t_max=20))
    page.get_by_label("compare with").select_option("oja")
    path = page.evaluate("explorer.path()")
    numbers = page.evaluate("explorer.numbers()")

    notes, overlap = downloaded(page, "Overlap over time")
    assert {name: float(notes[name]) for name in setting} == setting
    assert (notes["rule"], notes["beside"]) == ("ino-pca", "oja")
    # A number that there is not, such as a best rate without a turn, is left out.
    present = {name: value for name, value in numbers.items() if value is not None}
    assert {name: float(notes[name]) for name in present} == present
    assert not set(notes) & (set(numbers) - set(present))
    assert np.array_equal(overlap["INO-PCA"], [path["ts"], path["q"]])
    assert np.array_equal(overlap["steady state q_s"], [[0, 20], [numbers["q_s"]] * 2])
    ts, q = overlap["oracle: the best gain"]
    np.testing.assert_allclose(q, [ino.oracle_overlap(1.0, 0.1, t) for t in ts], atol=1e-7)
    ts, q = overlap["offline PCA, samples alone"]
    np.testing.assert_allclose(q, [ino.offline_overlap(1.0, t) for t in ts], atol=1e-7)
    assert overlap["Oja"].shape[1] > 100

    _, norm = downloaded(page, "Norm over time")
    assert np.array_equal(norm["INO-PCA"], [path["ts"], path["lam"]])
    _, portrait = downloaded(page, "Phase portrait")
    assert np.array_equal(portrait["INO-PCA"], [path["q"], path["lam"]])
    _, steady = downloaded(page, "Steady state and transition")
    # Points of the page's own lie closer where the curve is steep.
    for omega in steady["INO-PCA"][0][::40]:
        q_s, _ = ino.steady_state(study("INO-PCA", dict(setting, omega=omega)))
        i = list(steady["INO-PCA"][0]).index(omega)
        assert abs(steady["INO-PCA"][1][i] - q_s) < 1e-6


def test_every_figure_of_every_algorithm_has_data(page):
    for algorithm in ALGORITHMS:
        choose(page, algorithm)
        for figure in ("overlap", "norm", "portrait", "steady"):
            _, curves = parsed(page.evaluate("name => explorer.csv(name)", figure))
            assert algorithm in curves
            assert all(np.isfinite(points).all() for points in curves.values())


def test_a_view_is_in_its_address(page, address):
    choose(page, "CCIPCA")
    move(page, SETTINGS[0])
    page.get_by_label("compare with").select_option("Oja")
    page.wait_for_url(re.compile("beside=oja.*t=63.4"))
    shared, state = page.url, page.evaluate("explorer.state")
    assert state == dict(SETTINGS[0], rule="ccipca", beside="oja")
    page.goto("about:blank")
    page.goto(shared)
    assert page.evaluate("explorer.state") == state
    # What makes no sense is left out, what is too large is brought back.
    page.goto(f"{address}#rule=toString&tau=abc&omega=99&q0=-1&t=30&t_max=10")
    state = page.evaluate("explorer.state")
    kept = ("rule", "tau", "omega", "q0", "t", "t_max")
    assert [state[name] for name in kept] == ["ino-pca", 0.5, 4, 0, 10, 10]


def test_pointing_at_the_figures_sets_what_they_show(page):
    at = on_axes(page, "portrait")
    page.locator("#portrait-figure").click(position=dict(x=200, y=100))
    (start,) = at([(200, 100)])
    state = page.evaluate("explorer.state")
    np.testing.assert_allclose([state["q0"], state["lam0"]], start, atol=0.01)
    page.locator("#steady-figure").click(position=dict(x=300, y=100))
    ((omega, _),) = on_axes(page, "steady")([(300, 100)])
    assert abs(page.evaluate("explorer.state.omega") - omega) < 0.02


@pytest.mark.parametrize("width", [400, 1200])
def test_nothing_is_wider_than_the_screen(page, width):
    page.set_viewport_size(dict(width=width, height=800))
    for algorithm in ALGORITHMS:
        choose(page, algorithm)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        widths = page.locator(".figure").evaluate_all(
            "all => all.map(e => [e.clientWidth, e.firstChild.clientWidth])"
        )
        assert all(holder == figure for holder, figure in widths)


def test_the_page_refers_to_nothing_outside_of_it():
    text = explorer.page()
    links = re.findall(r"(?:src|href)=[\"']?([^\"'\s>]*)", text)
    assert "index.html" in links  # the report beside it
    assert all(link.startswith(("#", "data:", "index.html")) for link in links)
    assert "{{" not in text
