"""The ODE against the paper's, against the chain, and in its own derivatives."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from scipy.integrate import solve_ivp

import inopca_jax as ino

from .cases import RULES, SCHEDULES, config, sparing
from .test_same_law import switching

TS = np.linspace(0.0, 30.0, 61)


def integrate(field, y0, ts=TS):
    return solve_ivp(
        field, (0, ts[-1]), y0, t_eval=ts, method="DOP853", rtol=1e-12, atol=1e-13
    ).y


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize(
    ("tau", "omega", "q0", "lam0"),
    [
        (0.5, 1.0, 0.1, 1.0),
        (0.5, 0.1, 0.3, 2.0),
        (2.0, 3.0, -0.2, 0.3),
        (0.1, 1.0, 0.9, 3.0),
    ],
)
def test_ino_pca_follows_the_papers_equations(tau, omega, q0, lam0):
    def paper(t, state):  # eq:Q_t and eq:lambda_t
        q, lam = state
        dq = tau * q / lam * (omega - omega * q**2 - tau * (omega * q**2 + 1) / (2 * lam))
        s2 = omega * q**2 + 1
        return dq, tau * (s2 - lam + tau * s2 / (2 * lam))

    study = config(ino.InoPCA(tau), omega=omega, start=ino.WarmStart(q0, lam0), ts=TS)
    ode = ino.mean_field(study)
    q, lam = integrate(paper, (q0, lam0))
    assert np.max(np.abs(ode.q - q)) < 1e-9
    assert np.max(np.abs(ode.lam - lam)) < 1e-9


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("rule", ["Oja", "Cubic", "Krasulina"])
def test_the_other_rules_overlap_follows_ojas_equation(rule):
    tau, omega = 0.5, 1.0
    study = config(RULES[rule](tau), omega=omega, start=ino.WarmStart(0.1), ts=TS)
    ode = ino.mean_field(study)

    def oja(t, q):
        return tau * q * (omega - omega * q**2 - tau * (omega * q**2 + 1) / 2)

    assert np.max(np.abs(ode.q - integrate(oja, (0.1,))[0])) < 1e-9


@pytest.mark.usefixtures("x64")
def test_cubic_and_krasulina_norms_follow_their_own():
    tau, omega, degree = 0.4, 1.5, 4.0

    def cubic(t, state):
        q, lam = state
        s2 = omega * q**2 + 1
        dq = tau * q * (omega * (1 - q**2) - tau * s2 / 2)
        return dq, lam * (tau * s2 + tau**2 * s2 / 2 - tau * lam ** (degree - 2))

    study = config(
        ino.Cubic(tau, degree), omega=omega, start=ino.WarmStart(0.2, 0.5), ts=TS
    )
    assert (
        np.max(np.abs(ino.mean_field(study).lam - integrate(cubic, (0.2, 0.5))[1])) < 1e-9
    )

    study = config(ino.Krasulina(tau), omega=omega, start=ino.WarmStart(0.2), ts=TS)
    ode = ino.mean_field(study)

    def krasulina(t, state):
        q, _ = state
        s2 = omega * q**2 + 1
        # What is orthogonal to x adds to its length, at second order.
        return tau * q * (omega * (1 - q**2) - tau * s2 / 2), tau**2 * s2 / 2

    assert np.max(np.abs(np.log(ode.lam) - integrate(krasulina, (0.2, 0.0))[1])) < 1e-9


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("rule", ["InoPCA", "Oja", "Krasulina"])
def test_adagrads_memory_is_integrated_with_the_rest(rule):
    p, b0, omega = 1000, 800.0, 1.0
    study = config(RULES[rule](ino.AdaGrad(b0)), p=p, omega=omega, ts=TS)

    def field(t, state):
        q, lam, beta = state
        s2, tau = omega * q**2 + 1, 1 / np.sqrt(beta)
        nu = tau / lam if rule == "InoPCA" else tau
        decay = {"InoPCA": tau, "Cubic": tau * lam, "Oja": 0.0, "Krasulina": tau * s2}[rule]
        dlam = 0.0 if rule == "Oja" else lam * (nu * s2 + nu**2 * s2 / 2 - decay)
        return nu * q * (omega * (1 - q**2) - nu * s2 / 2), dlam, s2

    ode = ino.mean_field(study)
    q, lam, _ = integrate(field, (0.3, 1.0, (b0 / p) ** 2))
    assert np.max(np.abs(ode.q - q)) < 1e-9
    assert np.max(np.abs(ode.lam / lam - 1)) < 1e-9


class Saturating(ino.AbstractRule):
    """A rule that looks at S in earnest: large pulls are damped."""

    tau: ino.AbstractSchedule
    projects = False

    def rates(self, observables, tau):
        return ino.Rates(gain=tau / (observables.lam * (1 + observables.s2)), decay=tau)


PAIRINGS = [
    ("InoPCA", "Oracle"),
    ("Cubic", "AdaGrad"),
    ("Oja", "Interpolated"),
    ("Krasulina", "Harmonic"),
    ("Saturating", "Constant"),
]


@pytest.mark.parametrize(("rule", "schedule"), sparing(PAIRINGS))
def test_every_kind_of_pairing_is_the_limit_of_the_chain(rule, schedule):
    """The gap is of order 1/p; at p = 20,000 it is far inside the Monte Carlo error."""
    p, trials = 20_000, 64
    chosen = RULES.get(rule, Saturating)(SCHEDULES[schedule](p))
    study = config(chosen, p=p, ts=[0.5, 2.0], start=ino.WarmStart(0.4))
    ode, runs = ino.mean_field(study), ino.simulate(study, key=jr.key(5), trials=trials)
    for name in ("q", "lam"):
        mean, sd = getattr(runs.mean(), name), getattr(runs.std(), name)
        error = np.abs(mean - getattr(ode, name))
        assert np.all(error < 5 * sd / np.sqrt(trials) + 2 / p + 1e-5)


def test_the_gap_to_the_chain_shrinks_like_one_over_p():
    ps, t, gaps, errors = (40, 80, 160, 320), 4.0, [], []
    for p in ps:
        study = config(p=p, start=ino.WarmStart(0.3), ts=[t])
        q = np.asarray(
            ino.simulate(study, key=jr.key(p), trials=12_000).q[:, 0], dtype=float
        )
        gaps.append(q.mean() - float(ino.mean_field(study).q[0]))
        errors.append(q.std() / np.sqrt(q.size))
    gaps, errors = np.abs(gaps), np.asarray(errors)
    assert np.all(gaps > 4 * errors)  # all of them resolved
    order, covariance = np.polyfit(
        np.log(ps), np.log(gaps), 1, w=gaps / errors, cov="unscaled"
    )
    assert abs(order[0] + 1) < 0.1 + 3 * np.sqrt(covariance[0, 0])
    assert np.sqrt(covariance[0, 0]) < 0.1
    # And what is missed is known, up to the next order.
    shift = float(ino.fluctuations(study).q_shift[0])
    assert abs(gaps[-1] + shift) < 0.1 * gaps[-1] + 4 * errors[-1]


STEPS = (-2, -1, 1, 2)  # of a difference quotient of fourth order


@pytest.mark.usefixtures("x64")
def test_it_is_differentiable_in_every_leaf():
    study = config(ino.InoPCA(0.5), start=ino.WarmStart(0.2, 1.3), ts=[1.0, 5.0])

    def final(study):
        ode = ino.mean_field(study)
        return ode.q[-1] + 0.3 * ode.lam[-1]

    gradient = eqx.filter_grad(final)(study)
    leaves = {
        "tau": lambda c: c.rule.tau.value,
        "omega": lambda c: c.model.omega,
        "q0": lambda c: c.start.q0,
        "lam0": lambda c: c.start.lam0,
    }
    for leaf in leaves.values():
        at = [final(eqx.tree_at(leaf, study, leaf(study) + s * 2e-3)) for s in STEPS]
        numeric = np.dot([1, -8, 8, -1], at) / (12 * 2e-3)
        assert numeric != 0
        assert np.isclose(leaf(gradient), numeric, rtol=1e-6, atol=1e-9)


@pytest.mark.slow
@pytest.mark.usefixtures("x64")
def test_it_is_differentiable_in_the_times_and_in_a_schedule():
    taus = jnp.array([0.6, 0.3])

    def overlaps(ts, at, taus):
        model = switching(1000)
        model = ino.Switching(model.models, [at])
        rule = ino.InoPCA(ino.Interpolated([0.0, 3.0], taus))
        study = ino.Config(rule, model, ino.WarmStart(0.4), ts)
        return ino.mean_field(study).q

    # A time at zero, two alike, and one at the change.
    ts, at = jnp.array([0.0, 1.0, 1.0, 1.5, 4.0]), jnp.asarray(1.5)
    by_ts, by_at, by_taus = jax.jacrev(overlaps, (0, 1, 2))(ts, at, taus)
    assert np.allclose(by_ts, np.diag(np.diag(by_ts)), atol=1e-6)
    h = 1e-4
    later = overlaps(jnp.array([h, 1 + h, 1 + h, 1.5 + h, 4 + h]), at, taus)
    assert np.allclose(np.diag(by_ts), (later - overlaps(ts, at, taus)) / h, rtol=1e-3)
    # A change later than an observation would be another story: look beyond it.
    # By a longer difference: what the solver's tolerance leaves is divided by it.
    d = 1e-3
    numeric = (overlaps(ts, at + d, taus) - overlaps(ts, at - d, taus))[-1] / (2 * d)
    assert np.isclose(by_at[-1], numeric, rtol=1e-5)
    for k in range(2):
        up, down = (overlaps(ts, at, taus.at[k].add(s * h)) for s in (1, -1))
        assert np.allclose(by_taus[:, k], (up - down) / (2 * h), atol=1e-7)


@pytest.mark.usefixtures("x64")
@pytest.mark.smoke
def test_the_derivative_can_be_taken_forwards_and_under_vmap():
    import diffrax

    def final(tau, **options):
        return ino.mean_field(config(ino.InoPCA(tau), ts=[3.0]), **options).q[0]

    taus, h = jnp.array([0.2, 0.5, 0.9]), 1e-3
    forward = jax.vmap(jax.jacfwd(lambda t: final(t, adjoint=diffrax.ForwardMode())))(taus)
    up, down = (jax.vmap(final)(taus + s * h) for s in (1, -1))
    assert np.allclose(forward, (up - down) / (2 * h), rtol=1e-4)


@pytest.mark.usefixtures("x64")
def test_a_change_of_the_spike_restarts_it_with_the_overlap_of_the_two():
    model = switching(1000, at=3.0)
    ts = np.array([0.0, 2.999999, 3.0, 3.5, 8.0])
    study = ino.Config(ino.InoPCA(0.5), model, ino.WarmStart(0.2), ts)
    ode = ino.mean_field(study)
    first = ino.mean_field(config(omega=2.0, start=ino.WarmStart(0.2), ts=[3.0]))
    # Means over root mean squares: (1 + 0.9)/sqrt(2 + 1.8 + 0.81), and sqrt(rho).
    rho = 1.9 / np.sqrt(4.61) * np.sqrt(0.3)
    assert np.isclose(ode.q[1], first.q[0], atol=1e-5)
    assert np.isclose(ode.q[2], first.q[0] * rho, rtol=1e-9)
    assert np.isclose(ode.lam[2], first.lam[0], rtol=1e-9)
    start = ino.WarmStart(float(ode.q[2]), float(ode.lam[2]))
    second = ino.mean_field(config(omega=1.0, start=start, ts=[0.5, 5.0]))
    assert np.allclose(ode.q[3:], second.q, rtol=1e-8)
    assert np.allclose(ode.lam[3:], second.lam, rtol=1e-8)


@pytest.mark.parametrize("rule", [ino.AdaOja(), ino.CCIPCA()])
def test_a_start_that_is_forgotten_at_once_is_warned_of(rule):
    with pytest.warns(UserWarning, match="singular at t = 0"):
        ode = ino.mean_field(config(rule, p=1000, ts=[0.0, 1.0, 5.0]))
    assert bool(ode.finite)
    # And it is. CCIPCA's memory of it fades as t^(-9/2) from the first sample on, to
    # nothing; AdaOja's as t^(-1/2), and at the level of the noise something is left.
    study = config(rule, p=1000, start=ino.WarmStart(0.9), ts=[0.1])
    q = np.asarray(ino.simulate(study, key=jr.key(1), trials=4000).q[:, 0])
    if isinstance(rule, ino.Oja):
        assert 0 < q.mean() < 4 * q.std() < 0.4
    else:
        assert abs(q.mean()) < 5 * q.std() / np.sqrt(q.size)


@pytest.mark.parametrize("rule", [ino.AdaOja(1000.0), ino.CCIPCA(t0=2.0)])
def test_a_regular_start_is_not_warned_of_and_is_the_chains_limit(rule):
    study = config(rule, p=1000, start=ino.WarmStart(0.4), ts=[1.0, 5.0])
    ode, runs = ino.mean_field(study), ino.simulate(study, key=jr.key(3), trials=400)
    assert np.all(np.abs(runs.mean().q - ode.q) < 5 * runs.std().q / 20 + 5 / 1000)


@pytest.mark.smoke
def test_times_may_repeat_and_begin_late():
    ode = ino.mean_field(config(ts=[2.0, 2.0, 4.0]))
    once = ino.mean_field(config(ts=[0.0, 2.0, 4.0]))
    assert np.allclose(ode.q, once.q[jnp.array([1, 1, 2])], atol=1e-6)


def test_a_solution_that_fails_raises_alone_and_is_flagged_in_a_batch():
    def at(tau):
        return ino.mean_field(
            config(ino.InoPCA(tau), p=10**9, ts=[0.0, 50.0]), max_steps=64
        )

    with pytest.raises(RuntimeError, match=r"t = 50.* Pass solver=diffrax.Kvaerno5"):
        at(5000.0)
    batch = jax.vmap(at)(jnp.array([0.5, 5000.0]))
    assert batch.finite.tolist() == [True, False]
