"""The paper's figures of algorithms: the theory of cold starts that they are drawn with,
and what is said of them."""

import importlib

import jax.random as jr
import numpy as np
import pytest

import inopca_jax as ino
from inopca_jax import plot
from inopca_jax.paper import comparison_claims as comparison, lambda0, lambda0_claims
from inopca_jax.paper.cold_start import cold_law, time_to

CHANGE = 8.0


def _linear(tau: float, omega: float, p: int, t: np.ndarray) -> np.ndarray:
    """The mean of |q| while it is small, of Oja's method: its variance obeys
    `v' = 2 g v + tau^2 (1 + omega)/p` with `g = tau omega - tau^2/2`, from 1/p."""
    grown = np.exp((2 * tau * omega - tau**2) * t)
    noise = tau**2 * (1 + omega) / (2 * tau * omega - tau**2)
    return np.sqrt(2 / np.pi / p * (grown * (1 + noise) - noise))


def test_a_cold_start_is_linear_at_first_and_again_after_a_change():
    p, tau, omega, after = 10**8, 0.5, 1.0, np.array([0.0, 1.0, 4.0, 7.9])
    models = [
        ino.SpikedModel(p=p, omega=omega, spike=s()) for s in (ino.Uniform, ino.Sparse)
    ]
    config = ino.Config(
        ino.Oja(tau),
        ino.Switching(models=models, times=[CHANGE]),
        ino.ColdStart(),
        np.append(after, after + CHANGE),
    )
    found = cold_law(config)
    expected = np.tile(_linear(tau, omega, p, after), 2)
    np.testing.assert_allclose(found.law.q, expected, rtol=1e-4)
    np.testing.assert_allclose(found.gain, tau, rtol=1e-6)


def test_the_time_to_a_level_is_that_of_the_first_crossing():
    ts = np.array([0.0, 1.0, 2.0, 3.0])
    q = np.array([[0.0, 0.4, 0.2, 0.8], [0.0, 0.1, 0.2, 0.3], [0.5, 0.6, 0.7, 0.8]])
    np.testing.assert_allclose(time_to(ts, q, 0.3), [0.75, 3.0, 0.0])
    np.testing.assert_allclose(time_to(ts, q, 0.5), [2.5, np.inf, 0.0])


@pytest.fixture
def compared():
    """Arrays of the comparison in which INO-PCA is ahead from every norm up to 10."""
    ts, theirs, found = comparison.HORIZON, 0.02 * comparison.HORIZON, {}
    noise = 0.01 * np.random.default_rng(0).normal(size=(20, len(ts)))
    for name, speed in ((comparison.INO, 2), (comparison.HALF, 1)):
        found |= {f"{name}/{kind}/ts": ts for kind in ("theory", "runs")}
        found[f"{name}/theory/q"] = speed * theirs
        found[f"{name}/runs/q"] = speed * theirs + noise
    found["steady/INO"] = np.full(len(comparison.OMEGAS), 0.8)
    found["steady/oja"] = np.where(comparison.OJA_TAUS < 0.3, 0.8, 0.5)
    found["oja/q"] = np.tile(theirs, (len(comparison.OJA_TAUS), 1))
    found["ino/q"] = np.where(comparison.LAM0S < 10, 2, 0.5)[:, None] * theirs
    count = len(comparison.TAUS) * len(comparison.TUNED_LAM0S)
    found["tuned/q"] = np.tile(2 * theirs, (count, 1))
    return found


def test_the_claims_of_the_comparison_hold_or_do_not_and_never_raise(compared):
    made = comparison._faster, comparison._no_step_of_oja, comparison._consistently
    ahead = [claim(compared) for claim in made]
    assert [c.verdict for c in ahead] == ["holds"] * 3
    assert "every lam0 up to 8.9" in ahead[0].found
    slow = compared | {"ino/q": 0.1 * compared["ino/q"], "tuned/q": 0 * compared["tuned/q"]}
    behind = [claim(slow) for claim in made]
    assert [c.verdict for c in behind] == ["does not hold"] * 3
    assert "not every small lam0" in behind[0].found
    # Up to a norm means from all of those below it.
    gap = compared["ino/q"] * np.where(np.isclose(comparison.LAM0S, 0.05), 0.1, 1)[:, None]
    assert "not every small lam0" in comparison._faster(compared | {"ino/q": gap}).found
    none = compared | {"steady/oja": 0 * comparison.OJA_TAUS}
    assert comparison._no_step_of_oja(none).verdict == "holds"
    unlearnt = compared | {"oja/q": 0 * compared["oja/q"], "tuned/q": 0 * slow["tuned/q"]}
    assert comparison._consistently(unlearnt).verdict == "does not hold"


def test_an_overlap_that_falls_from_no_norm_is_a_claim_that_does_not_hold(monkeypatch):
    monkeypatch.setattr(lambda0, "learned", lambda *_, **__: {})
    monkeypatch.setattr(lambda0, "_flows", lambda q, lam: (np.ones(q.shape),) * 2)
    found = lambda0.compute(quick=True)
    assert found["falls/0.1"] == 0
    name = lambda0_claims.name_of(lambda0_claims.LAM0S[0])
    path = np.linspace(0.1, 0.9, 5)
    found |= {f"{name}/theory/ts": path, f"{name}/theory/q": path}
    found[f"{name}/runs/q"] = path + 0.01 * np.random.default_rng(0).normal(size=(20, 5))
    assert lambda0_claims._drop(found).verdict == "does not hold"


@pytest.mark.slow
def test_the_law_of_cold_starts_is_the_overlap_law():
    config = ino.Config(ino.InoPCA(0.5), start=ino.ColdStart(), ts=np.linspace(0, 40, 41))
    ours, law = cold_law(config).law, ino.overlap_law(config).abs()
    np.testing.assert_allclose(ours.q, law.q, atol=3e-3)
    np.testing.assert_allclose(ours.q_std, law.q_std, atol=4e-3)
    np.testing.assert_allclose(ours.lam, law.lam, atol=5e-3)


@pytest.mark.slow
@pytest.mark.parametrize("rule", [ino.AdaOja, ino.CCIPCA, ino.AdaptiveInoPCA])
def test_the_law_of_cold_starts_is_the_chains(rule):
    """Also of algorithms that forget their start at once, and after a change."""
    models = [ino.SpikedModel(spike=spike()) for spike in (ino.Uniform, ino.Sparse)]
    config = ino.Config(
        rule(),
        ino.Switching(models=models, times=[CHANGE]),
        ino.ColdStart(),
        np.array([1.0, 4.0, 7.0, 10.0, 14.0]),
    )
    runs = np.asarray(ino.simulate(config, key=jr.key(5), trials=640).q)
    law = cold_law(config).law
    sure = (np.abs(runs).mean(axis=0) - np.asarray(law.q)) / (law.q_std / 640**0.5)
    assert np.max(np.abs(sure)) < 4


@pytest.mark.slow
def test_from_a_cold_start_the_adaptive_rate_is_not_the_fastest_at_first():
    """Noise leads away from q = 0 as well, and a larger gain has more of it."""
    sizes = []
    for rule in (ino.InoPCA(2.0), ino.AdaptiveInoPCA()):
        config = ino.Config(rule, start=ino.ColdStart(), ts=np.array([1.0]))
        sizes.append(np.abs(ino.simulate(config, key=jr.key(6), trials=1024).q[:, 0]))
    lead = sizes[0] - sizes[1]
    assert lead.mean() > 4 * lead.std() / len(lead) ** 0.5


@pytest.mark.slow
@pytest.mark.parametrize("name", ["tau", "lambda0", "comparison", "adaptive_comparison"])
def test_what_comes_out_is_what_is_on_record(name, tmp_path):
    module = importlib.import_module(f"inopca_jax.paper.{name}")
    np.savez(tmp_path / "found.npz", **module.compute(quick=True))
    with np.load(tmp_path / "found.npz") as file:
        found = dict(file)
    plot.save(module.draw(found), tmp_path / f"{name}.png")
    for claim in module.claims(found):
        assert claim.verdict == claim.recorded, claim
