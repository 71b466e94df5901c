"""Tuning against grids, closed forms and the chain."""

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import optax
import pytest

import inopca_jax as ino

from .cases import RULES, config, sparing

pytestmark = pytest.mark.usefixtures("x64")


def study(rule, omega=1.0, q0=0.1, lam0=1.0, end=20.0, p=10_000):
    return config(rule, p=p, omega=omega, start=ino.WarmStart(q0, lam0), ts=[0.0, end])


@pytest.mark.parametrize("name", sparing(RULES))
def test_derivatives_are_central_differences_on_both_sides_of_the_transition(name):
    tau, h = 0.6, 2e-3
    edge = float(ino.critical_snr(RULES[name](tau)))

    def ends(leaves):
        tau, omega, q0, lam0 = leaves
        path = ino.mean_field(
            study(RULES[name](tau), omega, q0, lam0, end=6.0),
            rtol=1e-13,
            atol=1e-14,
            adjoint=diffrax.ForwardMode(),
        )
        return jnp.stack([path.q[-1], path.lam[-1]])

    points = jnp.array([[tau, edge * s, 0.3, 0.8] for s in (0.5, 1.0, 3.0)])
    slopes = jax.vmap(jax.jacfwd(ends))(points)
    # Of fourth order, for what is left of a difference to be rounding.
    moves = h * np.array([-2.0, -1.0, 1.0, 2.0])[:, None, None, None] * np.eye(4)
    shifted = np.asarray(points)[None, :, None] * (1 + moves)
    shifted = jax.vmap(ends)(jnp.asarray(shifted.reshape(-1, 4)))
    shifted = np.asarray(shifted).reshape(4, 3, 4, 2)
    weights = np.array([1, -8, 8, -1]) / (12 * h)
    numeric = np.einsum("s,spij->pji", weights, shifted) / np.asarray(points)[:, None, :]
    assert np.allclose(slopes, numeric, rtol=1e-6, atol=1e-9)
    assert np.all(np.abs(slopes[:, 0, :3]) > 1e-3)


def test_a_derivative_backwards_survives_a_long_interval():
    # Whose first step, were it the whole of it, would overflow.
    def last(tau, **options):
        return ino.mean_field(study(ino.InoPCA(tau), omega=0.5, end=100.0), **options).q[-1]

    ahead, behind = last(0.5 + 1e-4), last(0.5 - 1e-4)
    assert np.isclose(jax.grad(last)(0.5), (ahead - behind) / 2e-4, rtol=1e-6)


@pytest.mark.smoke
def test_a_constant_rate_is_the_best_of_a_dense_grid():
    tuned = ino.tune(study(ino.InoPCA(0.5)))
    taus = jnp.arange(0.2, 0.5, 2e-4)
    overlaps = jax.vmap(lambda tau: ino.mean_field(study(ino.InoPCA(tau))).q[-1])(taus)
    assert abs(tuned.config.rule.tau.value - taus[np.argmax(overlaps)]) < 1e-3
    assert np.isclose(tuned.value, overlaps.max(), atol=1e-7)
    assert np.isclose(tuned.values[0], ino.mean_field(study(ino.InoPCA(0.5))).q[-1])
    assert np.isclose(tuned.bound, ino.oracle_overlap(1.0, 0.1, 20.0))
    assert np.isclose(tuned.gap, tuned.bound - tuned.value)
    assert tuned.stopped.startswith("converged")


CASES = [(20.0, 1.0), (5.0, 0.5), (100.0, 3.0), (5.0, 1.0), (5.0, 3.0), (20.0, 0.5)]
CASES += [(20.0, 3.0), (100.0, 0.5), (100.0, 1.0)]


@pytest.mark.parametrize(("end", "omega"), sparing(CASES, 1))
def test_a_schedule_of_32_knots_has_the_oracles_overlap_and_gain(end, omega):
    flat = ino.Interpolated.flat(0.5, end)
    tuned = ino.tune(study(ino.InoPCA(flat), omega, end=end), over="rule.tau.taus")
    assert tuned.value >= 0.999 * ino.oracle_overlap(omega, 0.1, end)
    assert -1e-8 < tuned.gap < 1e-5
    # On the best path a gain that is off by a fraction e(t) loses the integral of e^2
    # times the last speed: the objective is as sensitive to it at one time as at another.
    ts = jnp.linspace(0, end, 2001)
    found = eqx.tree_at(lambda c: c.ts, tuned.config, ts)
    path = ino.mean_field(found)
    best = omega * (1 - path.q**2) / (omega * path.q**2 + 1)
    off = ino.effective_gain(found, path) / best - 1
    assert np.sqrt(np.mean(off**2)) < 0.01
    assert np.mean(np.abs(off) < 0.02) > 0.98
    speed = path.q[-1] * (omega * path.q[-1] ** 2 + 1) * best[-1] ** 2 / 2
    assert np.isclose(tuned.gap, speed * jnp.trapezoid(off**2, ts), rtol=0.2, atol=1e-7)


def test_the_norm_to_start_from_is_tau_over_omega_if_there_is_little_overlap_and_time():
    tau, omega = 0.5, 2.0
    begin = study(ino.InoPCA(tau), omega, q0=1e-4, end=1e-3)
    tuned = ino.tune(begin, over="start.lam0")
    assert np.isclose(tuned.config.start.lam0, tau / omega, rtol=0.01)
    assert np.isclose(tuned.config.start.lam0, ino.best_lam0(tau, omega), rtol=0.01)


@pytest.mark.slow
def test_an_unknown_signal_is_tuned_for_by_its_worst_case_also_for_the_chain():
    omegas = np.array([0.5, 1.0, 2.0, 3.0])
    robust = ino.WorstCase(ino.FinalOverlap(), omegas)
    begin = study(ino.InoPCA(0.5), q0=0.3)
    found = {"robust": ino.tune(begin, objective=robust)}
    for omega in omegas:
        there = eqx.tree_at(lambda c: c.model.omega, begin, jnp.asarray(omega))
        found[omega] = ino.tune(there)
    worst = {name: max(robust.shortfalls(tuned.config)) for name, tuned in found.items()}
    assert all(worst["robust"] < worst[omega] - 1e-3 for omega in omegas)
    # The norm that stands for the maximum is close to it.
    assert np.isclose(found["robust"].value, worst["robust"], rtol=0.03)

    def by_the_chain(tuned):
        falls = []
        for omega in omegas:
            there = eqx.tree_at(lambda c: c.model.omega, tuned.config, jnp.asarray(omega))
            q = ino.simulate(there, key=jr.key(3), trials=128).abs().q[:, -1]
            best = ino.oracle_overlap(omega, 0.3, 20.0)
            falls.append((1 - q.mean() / best, q.std() / 128**0.5 / best))
        return max(falls)

    least, error = by_the_chain(found["robust"])
    for omega in omegas[:2]:  # those that come closest
        fall, other = by_the_chain(found[omega])
        assert least < fall - 3 * np.hypot(error, other)


@pytest.mark.slow
def test_the_other_objectives_are_at_their_best():
    begin = study(ino.InoPCA(0.5), end=30.0)
    for objective in (ino.Area(), ino.TimeToReach(0.8), ino.SteadyOverlap(12.0)):
        tuned = ino.tune(begin, objective=objective)
        value = jax.jit(
            lambda tau, objective=objective: objective.value(
                study(ino.InoPCA(tau), end=30.0)
            )
        )
        best = float(tuned.config.rule.tau.value)
        assert np.isclose(value(best), tuned.value)
        sign = -1 if objective.larger_is_better else 1
        for nearby in (0.97 * best, 1.03 * best):
            assert sign * value(nearby) > sign * tuned.value
        assert tuned.gap > 0


def test_the_area_and_the_time_are_those_of_the_path():
    begin = study(ino.InoPCA(0.5), end=30.0)
    ts = jnp.linspace(0, 30, 6001)
    q = ino.mean_field(eqx.tree_at(lambda c: c.ts, begin, ts)).q
    assert np.isclose(ino.Area().value(begin), jnp.trapezoid(1 - q**2, ts), rtol=1e-6)
    when = jnp.interp(0.8, q, ts)
    reach = ino.TimeToReach(0.8)
    assert np.isclose(reach.value(begin), when, rtol=1e-6)
    # Of the best gain the time is known in closed form.
    z = np.array([0.1, 0.8]) ** 2
    known = np.diff(np.log(z / (1 - z)) + 2 / (1 - z))[0]
    assert np.isclose(reach.bound(begin), known, rtol=1e-6)
    # A path that falls short counts as late, the later the further away it ends.
    late = [reach.value(study(ino.InoPCA(tau), end=30.0)) for tau in (0.02, 0.01)]
    assert 30 < late[0] < late[1]


@pytest.mark.slow
def test_caution_pays_for_scatter_with_overlap():
    begin = study(ino.InoPCA(0.5), q0=0.3, end=10.0, p=200)
    bold, cautious = ino.tune(begin), ino.tune(begin, objective=ino.CautiousOverlap(2.0))
    spread = [ino.fluctuations(tuned.config).q_std[-1] for tuned in (bold, cautious)]
    assert spread[1] < spread[0]
    assert cautious.value < bold.value


@pytest.mark.slow
def test_an_optimiser_of_the_users_own_takes_all_of_its_steps():
    begin = study(ino.Oja(ino.Harmonic(2.0, t0=2.0)))
    ours = ino.tune(begin, over=("rule.tau.c", "rule.tau.t0"))
    # optax promotes types where it corrects a bias, which strict promotion forbids.
    with jax.numpy_dtype_promotion("standard"):
        theirs = ino.tune(
            begin, over=("rule.tau.c", "rule.tau.t0"), optimiser=optax.adam(0.1), steps=60
        )
        searching = ino.tune(begin, over="rule.tau.c", optimiser=optax.lbfgs(), steps=5)
    assert len(theirs.values) == 61
    assert theirs.stopped == "took all of its 60 steps"
    assert ours.value >= theirs.value > begin_value(begin) + 1e-3
    assert searching.value > begin_value(begin) + 1e-3


def begin_value(begin):
    return float(ino.mean_field(begin).q[-1])


def test_a_search_that_diverges_returns_the_best_and_says_so():
    begin = study(ino.InoPCA(0.5))
    with pytest.warns(UserWarning, match="diverged at step .* best config before"):
        tuned = ino.tune(begin, optimiser=optax.sgd(-300.0), steps=20)
    assert tuned.value >= begin_value(begin) - 1e-12
    assert np.isfinite(tuned.value)
    assert "diverged" in tuned.stopped


class NotANumberBeyond(ino.AbstractObjective):
    """tau itself, which cannot be computed above `most`, with a slope that can."""

    most: float
    larger_is_better = True

    def value(self, config, **_):
        tau = config.rule.tau.value
        return jnp.where(tau < self.most, tau, jnp.nan)

    def bound(self, config):
        return jnp.asarray(self.most)


@pytest.mark.parametrize("optimiser", [None, optax.sgd(0.1)])
def test_a_loss_that_is_not_a_number_never_wins(optimiser):
    settings = dict(objective=NotANumberBeyond(0.6), optimiser=optimiser)
    if optimiser is None:
        tuned = ino.tune(study(ino.InoPCA(0.5)), **settings)
    else:
        with pytest.warns(UserWarning, match="diverged"):
            tuned = ino.tune(study(ino.InoPCA(0.5)), **settings)
    assert 0.5 < tuned.value < 0.6
    assert tuned.value == pytest.approx(tuned.config.rule.tau.value)
    assert tuned.gap == pytest.approx(0.6 - tuned.value)


def test_a_path_without_an_end_is_no_time_to_reach_a_level():
    """Whether it passed the level before it could no longer be computed, or never did."""
    objective = ino.TimeToReach(0.5)
    for slope in (0.01, 0.1):
        path = lambda ts, slope=slope: jnp.where(ts < 9, slope * ts, jnp.nan)
        assert np.isnan(objective.judge(path, jnp.asarray(10.0)))
    assert objective.judge(lambda ts: 0.1 * ts, jnp.asarray(10.0)) == pytest.approx(5)


def test_what_cannot_be_tuned_is_said_before_the_search():
    begin = study(ino.InoPCA(0.5))
    with pytest.raises(ValueError, match=r"level = 0.99 cannot be .* above 0.9333"):
        ino.tune(begin, objective=ino.TimeToReach(0.99))
    with pytest.raises(ValueError, match=r"level = 0.05 .* is reached at t = 0"):
        ino.tune(begin, objective=ino.TimeToReach(0.05))
    with pytest.raises(ValueError, match=r"'start.lam' is not .* mean 'start.lam0'"):
        ino.tune(begin, over="start.lam")
    with pytest.raises(
        ValueError, match=r"'rule.tau' stands for more than one .*rule.tau.taus"
    ):
        ino.tune(study(ino.Oja(ino.Interpolated.flat(0.5, 20.0))))
    with pytest.raises(ValueError, match=r"'model.omega' is not allowed: .* the problem"):
        ino.tune(begin, over="model.omega")
    with pytest.raises(ValueError, match=r"rule.tau.k0 = 0.0 is not allowed: .* positive"):
        ino.tune(study(ino.Oja(ino.Harmonic(2.0))), over="rule.tau.k0")
    with pytest.raises(ValueError, match=r"overlap = 0.0 is not allowed: .* WarmStart"):
        ino.tune(config(ino.InoPCA(0.5), start=ino.ColdStart()))
    with pytest.raises(ValueError, match=r"omegas = .* without a signal"):
        ino.WorstCase(ino.FinalOverlap(), [0.0, 1.0])


def test_a_step_never_leaves_what_the_config_allows():
    # The best degree of the penalty is where it ends to be one, at 2.
    begin = study(ino.Cubic(0.5, 3.0), end=5.0)
    tuned = ino.tune(begin, over="rule.degree", steps=30)
    assert tuned.config.rule.degree > 2
    ino.mean_field(tuned.config)


def test_no_search_compiles_again_when_a_number_changes():
    from inopca_jax._tuning import search
    from inopca_jax._xla import _quick

    ino.tune(study(ino.InoPCA(0.5)), steps=2)
    compiled = _quick(search._loss_and_gradient.__wrapped__, "cpu")
    before = compiled._cached._cache_size()
    ino.tune(study(ino.InoPCA(0.7), omega=2.0, q0=0.2, lam0=2.0), steps=2)
    assert compiled._cached._cache_size() == before > 0


def test_sensitivities_are_derivatives_of_the_path():
    begin = config(ino.InoPCA(0.5), start=ino.WarmStart(0.1), ts=np.linspace(0, 20, 5))
    slope = ino.sensitivity(begin, "rule.tau")
    h = 1e-4
    ahead, behind = (
        ino.mean_field(eqx.tree_at(lambda c: c.rule.tau.value, begin, jnp.asarray(0.5 + s)))
        for s in (h, -h)
    )
    assert np.allclose(slope.q, (ahead.q - behind.q) / (2 * h), rtol=1e-5, atol=1e-7)
    assert np.allclose(slope.lam, (ahead.lam - behind.lam) / (2 * h), rtol=1e-5, atol=1e-7)
    with pytest.raises(ValueError, match="'ts' of shape"):
        ino.sensitivity(begin, "ts")
