"""Predicted fluctuations and the diffusion against the chain, at finite p."""

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from scipy import stats

import inopca_jax as ino
from inopca_jax._engine import diffusion
from inopca_jax._order_parameters.increments import OrderParameters, drift
from inopca_jax._order_parameters.initial import start_law
from inopca_jax._order_parameters.limit import velocity

from .cases import SEVEN, assert_same_law, config, sparing

REGULAR = SEVEN | {
    "AdaOja": lambda: ino.AdaOja(2000.0),
    "CCIPCA": lambda: ino.CCIPCA(t0=2.0),
}
TS = (1.0, 3.0, 6.0, 12.0)


@pytest.fixture
def uncut(monkeypatch):
    """Steps of the diffusion as long as they are asked for."""
    monkeypatch.setattr(diffusion, "_LONGEST_STEP", 1e9)


def assert_predicts(theory: ino.Trajectory, runs: ino.Trajectory, tolerance=0.05):
    """Standard deviations to a relative tolerance and three standard errors, means to
    five standard errors, correlations to the same."""
    trials = len(runs.q)
    error = 3 / np.sqrt(2 * trials)
    for name in ("q", "lam"):
        mean, std = getattr(runs.mean(), name), getattr(runs.std(), name)
        predicted = getattr(theory, f"{name}_std")
        moves = std > 1e-6
        ratio = np.asarray(predicted)[moves] / np.asarray(std)[moves]
        assert np.all(np.abs(ratio - 1) < tolerance + error), (name, ratio)
        assert np.all(np.asarray(predicted)[~moves] < 1e-6)
        expected = getattr(theory, name) + getattr(theory, f"{name}_shift")
        assert np.all(np.abs(mean - expected) < 5 * std / np.sqrt(trials) + 1e-5)
    for i, together in enumerate(theory.correlation):
        if np.std(runs.lam[:, i]) > 1e-6:
            seen = np.corrcoef(runs.q[:, i], runs.lam[:, i])[0, 1]
            assert abs(seen - together) < 0.05 + 5 * (1 - seen**2) / np.sqrt(trials)


@pytest.mark.parametrize("name", sparing(REGULAR))
def test_the_chains_scatter_is_predicted_and_the_diffusion_has_its_law(name):
    p, trials = 2000, 4000
    study = config(REGULAR[name](), p=p, start=ino.WarmStart(0.3), ts=TS)
    chain = ino.simulate(study, key=jr.key(1), trials=trials)
    assert_predicts(ino.fluctuations(study), chain)
    walk = ino.simulate(study, key=jr.key(2), trials=trials, engine=ino.Diffusion())
    assert_same_law(chain, walk)


@pytest.mark.slow
@pytest.mark.parametrize("name", REGULAR)
def test_the_diffusion_has_the_chains_law_from_other_starts(name):
    # From no overlap, and from a norm so small that the steps of the walk have to be, too.
    p, trials = 2000, 4000
    # (CCIPCA's first rates are too large for that.)
    starts = [ino.ColdStart(), ino.WarmStart(0.3, 0.05)][: 1 if name == "CCIPCA" else 2]
    for begin in starts:
        study = config(REGULAR[name](), p=p, start=begin, ts=TS)
        chain = ino.simulate(study, key=jr.key(3), trials=trials)
        walk = ino.simulate(study, key=jr.key(4), trials=trials, engine=ino.Diffusion())
        assert_same_law(chain, walk)


@pytest.mark.slow
def test_at_larger_p_the_linear_theory_is_closer():
    """Of the algorithm that it is the least close for; benchmarks.finite_p has them all."""
    study = config(REGULAR["CCIPCA"](), p=20_000, ts=[0.5, 1.0, 2.0, 3.0])
    chain = ino.simulate(study, key=jr.key(1), trials=4000)
    assert_predicts(ino.fluctuations(study), chain, tolerance=0.02)


def test_a_cold_start_is_beyond_the_linear_theory_and_it_says_so():
    study = config(p=2000, start=ino.ColdStart(), ts=TS)
    with pytest.warns(
        UserWarning, match=r"more than an overlap can have: .* Use overlap_law"
    ):
        assert ino.fluctuations(study).q_std[-1] > 0.3


@pytest.mark.slow
def test_a_changing_spike_is_followed_by_both():
    """Three spikes that resemble each other, so that chance at a change, what was learnt
    before and the estimate's mean entry all count."""
    p, trials = 1000, 3000
    spikes = (ino.ShiftedExponential(), ino.Sparse(0.3), ino.ShiftedExponential())
    models = [ino.SpikedModel(p=p, spike=spike) for spike in spikes]
    model = ino.Switching(models, [2.0, 4.0])
    ts = np.array([1.5, 2.0, 3.0, 4.0, 6.0])
    study = ino.Config(ino.InoPCA(0.5), model, ino.WarmStart(0.5), ts)
    chain = ino.simulate(study, key=jr.key(1), trials=trials)
    assert_predicts(ino.fluctuations(study), chain)
    walk = ino.simulate(study, key=jr.key(2), trials=trials, engine=ino.Diffusion())
    assert_same_law(chain, walk)


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("q0", [0.0, 0.3, -0.8, 1.0])
def test_a_gaussian_starts_scatter_has_a_closed_form(q0):
    study = config(start=ino.WarmStart(q0, 1.7))
    law = start_law(study.rule, study.model, study.start)
    left = 1 - q0**2
    assert np.isclose(law.covariance[0, 0], 1.7**2 * left**2 * (1 - q0**2 / 2))
    assert np.isclose(law.shift[0], 1.7 * q0 * left * (3 * q0**2 - 1) / 4)
    assert np.allclose(law.covariance[2], 0)  # the norm has none


class Tilted(ino.AbstractDensityStart):
    """A start whose law bends with the spike's entry: not a mixture of it and noise."""

    def pdf(self, x, xi):
        return (1 + jnp.tanh(xi) * x) / 2

    def support(self, xi):
        return -jnp.ones_like(xi), jnp.ones_like(xi)


@pytest.mark.slow
def test_the_scatter_of_any_start_is_that_of_its_samples():
    p, trials, begin = 400, 3000, Tilted()
    study = config(p=p, start=begin, spike=ino.ShiftedExponential())
    law = start_law(study.rule, study.model, begin)

    def sample(key):
        one, two = jr.split(key)
        xi = study.model.spike.sample(one, p)
        x = begin.sample(two, xi)
        x = x * law.mean.lam() / jnp.sqrt(jnp.mean(x**2))
        return jnp.stack([jnp.mean(x * xi), jnp.mean(x), jnp.mean(xi)])

    draws = np.asarray(jax.lax.map(sample, jr.split(jr.key(1), trials), batch_size=64))
    index = np.array([0, 1, -1])
    limit = law.mean
    mean = np.array([limit.m, limit.mean_entry, limit.spike_mean])
    expected = mean + np.asarray(law.shift)[index] / p
    error = draws.std(0) / np.sqrt(trials)
    assert np.all(np.abs(draws.mean(0) - expected) < 4.5 * error + 20 / p**2)
    covariance = np.asarray(law.covariance)[np.ix_(index, index)]
    seen = np.cov(draws.T) * p
    scale = np.sqrt(np.outer(np.diag(seen), np.diag(seen)))
    assert np.max(np.abs(seen - covariance) / scale) < 5 / np.sqrt(trials) + 4 / p


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("name", REGULAR)
def test_the_expansion_begins_with_the_mean_field(name):
    rule, model = REGULAR[name](), ino.SpikedModel(p=2000, omega=1.5)
    q, lam, t = jnp.asarray(0.4), jnp.asarray(1.0), jnp.asarray(0.7)
    state = rule.tau.init(2000)
    now = OrderParameters(q * lam, jnp.asarray(0.1), lam**2, state, jnp.asarray(0.2))
    moved = drift(rule, model, t, now)
    dq, dlam, dstate = velocity(rule, model.omega, 2000, t, q, lam, state)
    assert np.isclose(moved.m, dq * lam + q * dlam, rtol=1e-12)
    assert np.isclose(moved.n, 2 * lam * dlam, rtol=1e-12, atol=1e-14)
    assert jax.tree.all(jax.tree.map(np.allclose, moved.schedule, dstate))


def test_theory_with_its_scatter_can_be_turned_to_the_other_sign():
    q, std, together = jnp.array([0.3, -0.4]), jnp.array([0.1, 0.2]), jnp.array([0.5, 0.6])
    theory = ino.Prediction(
        ts=np.array([0.0, 1.0]),
        q=q,
        lam=q,
        q_std=std,
        lam_std=std,
        correlation=together,
        q_shift=q / 10,
        lam_shift=q / 10,
    ).abs()
    assert np.allclose(theory.q, [0.3, 0.4])
    assert np.allclose(theory.q_shift, [0.03, 0.04])
    assert np.allclose(theory.correlation, [0.5, -0.6])
    assert np.allclose(theory.q_std, std)
    assert np.allclose(theory.lam, q)


@pytest.mark.usefixtures("x64", "uncut")
@pytest.mark.smoke
def test_at_large_p_the_diffusion_is_the_mean_field_to_fourth_order():
    study = config(ino.InoPCA(1.0), p=10**15, start=ino.WarmStart(0.2), ts=[4.0])
    exact = float(ino.mean_field(study).q[0])

    def error(dt):
        engine = ino.Diffusion(dt)
        return ino.simulate(study, key=jr.key(1), trials=1, engine=engine).q[0, 0] - exact

    errors = np.abs([error(dt) for dt in (2.0, 1.0, 0.5)])
    orders = np.log2(errors[:-1] / errors[1:])
    assert np.all(orders > 3.5), errors
    assert errors[-1] < 1e-5


@pytest.mark.slow
@pytest.mark.usefixtures("uncut")
def test_its_scatter_converges_at_second_order_in_the_step():
    study = config(ino.Oja(1.0), p=10**6, start=ino.WarmStart(0.2), ts=[4.0])
    exact, trials = float(ino.fluctuations(study).q_std[0]), 40_000
    errors = []
    for dt in (2.0, 1.0, 0.5):
        engine = ino.Diffusion(dt, "float32")
        runs = ino.simulate(study, key=jr.key(1), trials=trials, engine=engine)
        errors.append(float(runs.std().q[0]) / exact - 1)
    error = 1 / np.sqrt(2 * trials)
    order = np.log2(errors[0] / errors[1])
    assert abs(order - 2) < 0.1 + 3 * error / abs(errors[1])
    assert abs(errors[2]) < abs(errors[1]) / 4 + 3 * error


def test_a_trial_of_the_diffusion_does_not_depend_on_how_it_is_run(monkeypatch):
    from inopca_jax._engine import defaults

    study = config(p=500, start=ino.ColdStart(), ts=[0.35, 3.0])
    engine = ino.Diffusion(0.1)
    few = ino.simulate(study, key=jr.key(7), trials=3, engine=engine)
    monkeypatch.setattr(defaults, "steps_per_call", lambda cost, least=1: 8)
    more = ino.simulate(study, key=jr.key(7), trials=40, engine=engine)
    assert np.array_equal(few.q, more.q[:3])
    assert np.array_equal(few.lam, more.lam[:3])


def test_its_clock_holds_dimensions_that_no_counter_does():
    study = config(p=10**9, start=ino.ColdStart(), ts=[0.0, 10.0, 50.0])
    runs = ino.simulate(study, key=jr.key(1), trials=200, engine=ino.Diffusion())
    assert bool(runs.finite.all())
    assert stats.kstest(runs.q[:, 0] * np.sqrt(1e9), "norm").pvalue > 1e-3
    assert np.isclose(runs.mean().lam[2], ino.steady_state(study)[1], atol=0.1)
    assert abs(np.mean(np.sign(runs.q[:, 2]))) < 5 / np.sqrt(200)
    with pytest.raises(ValueError, match=r"step counters end at .* use Diffusion"):
        ino.simulate(study, key=jr.key(1), trials=1)


def test_what_it_cannot_do_it_says():
    with pytest.raises(ValueError, match=r"dt = 0\.0 is not allowed"):
        ino.Diffusion(0.0)
    with pytest.raises(ValueError, match="p = 50 is not allowed with Diffusion"):
        ino.simulate(config(p=50), key=jr.key(0), trials=1, engine=ino.Diffusion())
    study = config(ino.AdaOja(), p=1000, ts=[1.0])
    with pytest.raises(ValueError, match=r"Diffusion is not allowed here.*Use Chain"):
        ino.simulate(study, key=jr.key(0), trials=1, engine=ino.Diffusion())
