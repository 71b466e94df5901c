"""The figures beyond the paper: their statistics, and that verdicts follow from numbers."""

import importlib

import matplotlib.pyplot as plt
import numpy as np
import pytest

import inopca_jax as ino
from inopca_jax.paper import (
    convergence,
    error_bars,
    phase_diagram,
    rivals,
    statements,
    tuned,
)

MODULES = ("error_bars", "rivals", "convergence", "phase_diagram", "tuned", "statements")


def verdicts(claims):
    return [claim.verdict for claim in claims]


def test_a_fitted_slope_is_the_power_and_its_error_is_how_far_off_it_is():
    random = np.random.default_rng(0)
    p = np.array([50.0, 200.0, 800.0, 3200.0])
    y, error = 3 * p**-1.0, 0.1 / p
    draws = [
        convergence._slope(p, y + error * random.normal(size=4), error) for _ in range(400)
    ]
    slopes, errors = np.array(draws).T
    assert abs(slopes.mean() + 1) < 5 * slopes.std() / 20
    assert abs(errors.mean() / slopes.std() - 1) < 0.15


def test_the_error_of_a_deviation_is_its_scatter():
    random = np.random.default_rng(1)
    samples = random.standard_exponential((500, 400))  # not a normal law
    scatter = samples.std(axis=0).std()
    assert abs(error_bars._std_error(samples).mean() / scatter - 1) < 0.15


def test_horizons_are_times_that_are_computed():
    seen = np.append(tuned.configs()["constant"].ts, tuned.HORIZONS[tuned.HORIZONS > 20])
    assert np.allclose(np.min(np.abs(seen[:, None] - tuned.HORIZONS), axis=0), 0, atol=1e-6)


@pytest.fixture
def settled():
    """A phase diagram whose every cell is in the steady state, but for a trace of noise."""
    taus, omegas = np.linspace(0.2, 3, 8), np.linspace(0.05, 2, 9)
    found = {"taus": taus, "omegas": omegas, "fine/taus": taus, "fine/omegas": omegas}
    for name, rule in phase_diagram.RULES.items():
        steady = phase_diagram._steady(rule, taus, omegas)
        line = np.array([float(ino.critical_snr(rule(tau))) for tau in taus])
        for kind in ("q", "steady", "fine"):
            found[f"{name}/{kind}"] = np.maximum(steady, 0.02 if kind == "q" else 0)
        found[f"{name}/transition"] = found[f"{name}/fine/transition"] = line
    return found


def test_verdicts_on_the_phase_diagram_follow_from_its_cells(settled):
    assert verdicts(phase_diagram.claims(settled)) == ["holds"] * 4
    ours, theirs = ([k for k in settled if k.startswith(n)] for n in ("INO-PCA", "Oja"))
    turned = settled | dict(zip(ours, (settled[k] for k in theirs), strict=True))
    turned |= dict(zip(theirs, (settled[k] for k in ours), strict=True))
    assert verdicts(phase_diagram.claims(turned))[2:] == ["does not hold"] * 2
    never_forgets = settled | {"Oja/q": np.maximum(settled["Oja/q"], 0.5)}
    assert verdicts(phase_diagram.claims(never_forgets))[0] == "does not hold"


def test_where_nothing_is_learnt_the_limiting_performance_does_not_hold(settled):
    unlearnt = settled | {
        f"{name}/q": 0 * settled[f"{name}/q"] for name in ("INO-PCA", "Oja")
    }
    assert phase_diagram._capacity(unlearnt).verdict == "does not hold"


@pytest.mark.parametrize(
    ("ours", "said", "verdict"),
    [
        ([1, 1, 1, 1], "of Oja's from t = 1 on", "holds"),
        ([0, 1, 1, 1], "of Oja's from t = 2 on", "holds with a condition"),
        ([1, 0, 0, 1], "of Oja's from t = 4 on", "holds with a condition"),
        ([1, 1, 1, 0], "of Oja's not", "does not hold"),
        ([0, 0, 0, 0], "of Oja's not", "does not hold"),
    ],
)
def test_since_when_one_is_ahead_is_the_first_time_of_those(ours, said, verdict):
    found = {f"{name}/theory/q": np.full(5, 0.5) for name in rivals.configs()}
    found["INO-PCA/theory/q"] = np.array([0, *ours])
    found["INO-PCA/theory/ts"] = np.arange(5.0)
    claim = rivals._outperforms(found)
    assert claim.found.endswith(said)
    assert claim.verdict == verdict


def test_the_largest_cosine_of_a_step_is_that_of_all_overlaps(monkeypatch, x64):
    """Of Krasulina's method it is 0; here it is not at one of the two."""

    def after(rule, x, xi, ys):
        along = np.isclose(x @ xi, 0) if isinstance(rule, ino.Krasulina) else 0
        return x + 100 * along * x + np.random.default_rng(0).normal(size=ys.shape)

    monkeypatch.setattr(statements, "_after", after)
    assert statements._one_step(100)["krasulina/cosine"] > 0.9


def test_the_state_of_a_step_has_its_overlap_and_norm():
    x, xi = statements._state(40, 0.6, 1.7)
    lam = np.linalg.norm(x) / 40**0.5
    assert np.allclose([lam, xi @ xi, x @ xi / (40 * lam)], [1.7, 40, 0.6])


@pytest.mark.slow
def test_deviations_at_one_p_are_those_at_another():
    config = error_bars.configs()["INO-PCA, q0 = 0.3, p = 2,000"]
    scaled, solved = error_bars._predicted(config), ino.fluctuations(config)
    for name in ("q", "q_std", "lam_std", "q_shift", "lam_shift"):
        assert np.allclose(
            getattr(scaled, name), getattr(solved, name), rtol=1e-4, atol=1e-7
        )


@pytest.mark.slow
@pytest.mark.parametrize("name", MODULES)
def test_quick_figures_are_drawn_and_their_verdicts_are_those_on_record(name):
    module = importlib.import_module(f"inopca_jax.paper.{name}")
    found = module.compute(quick=True)
    assert all(isinstance(value, np.ndarray) for value in found.values())
    claims = module.claims(found)
    assert verdicts(claims) == [claim.recorded for claim in claims]
    if hasattr(module, "draw"):
        plt.close(module.draw(found))
