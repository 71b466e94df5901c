"""Rules that act on single entries: their step, and what refuses them."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

import inopca_jax as ino

from .cases import config, sparing

SPARSE = ino.Penalised(ino.Oja(0.5), ino.SoftThreshold(0.3))


class Square(ino.AbstractPenalty):
    """What `Ridge` is, without saying that it is linear: it takes the way of all others."""

    beta: float = 0.2

    def primitive(self, x):
        return self.beta * x**2 / 2


class Decaying(ino.AbstractRule):
    """The rule that a `Ridge` makes of another one, written out."""

    rule: ino.AbstractRule
    beta: float
    tau: ino.AbstractSchedule = dataclasses.field(default_factory=lambda: ino.Constant(0.5))
    projects = False

    def rates(self, observables, tau):
        rates = self.rule.rates(observables, tau)
        keep = 1 - self.beta / observables.p
        return ino.Rates(
            gain=keep * rates.gain,
            decay=rates.decay + self.beta - self.beta * rates.decay / observables.p,
        )


def numpy_steps(x, ys, tau, beta, oja):
    """The algorithm in plain NumPy: the rule, the threshold, and the norm for Oja."""
    p = len(x)
    for y in ys:
        lam = np.linalg.norm(x) / np.sqrt(p)
        if oja:
            x = x + tau / p * (y @ x) * y
        else:
            x = (1 - tau / p) * x + tau / (p * lam) * (y @ x) * y
        x = x - beta / p * np.sign(x)
        if oja:
            x = x * np.sqrt(p) / np.linalg.norm(x)
    return x


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("rule", [ino.Oja, ino.InoPCA])
def test_a_step_is_the_rule_then_the_threshold_then_the_projection(rule):
    rng = np.random.default_rng(0)
    x, ys = rng.standard_normal(40), rng.standard_normal((60, 40))
    penalised = ino.Penalised(rule(0.5), ino.SoftThreshold(0.7))
    step = jax.jit(lambda x, y: ino.sample_step(penalised, x, y)[0])
    found = jnp.asarray(x)
    for y in ys:
        found = step(found, y)
    expected = numpy_steps(x, ys, 0.5, 0.7, rule is ino.Oja)
    assert np.allclose(found, expected, rtol=1e-12, atol=1e-13)
    without = numpy_steps(x, ys, 0.5, 0.0, rule is ino.Oja)
    assert np.abs(found - without).max() > 0.1


@pytest.mark.usefixtures("x64")
def test_a_ridge_is_a_decay_in_the_stream():
    run = lambda rule, **options: ino.simulate(
        config(rule, ts=[0.0, 1.0, 3.0]),
        key=jr.key(1),
        trials=2,
        engine=ino.Stream(block=1, **options),
    )
    ridge = run(ino.Penalised(ino.InoPCA(0.5), ino.Ridge(0.2)))
    for same in (
        Decaying(ino.InoPCA(0.5), 0.2),
        ino.Penalised(ino.InoPCA(0.5), Square(0.2)),
    ):
        other = run(same)
        assert np.allclose(other.q, ridge.q, rtol=0, atol=1e-12)
        assert np.allclose(other.lam, ridge.lam, rtol=0, atol=1e-12)
    plain = run(ino.InoPCA(0.5))
    assert np.abs(plain.lam - ridge.lam).max() > 0.05


@pytest.mark.usefixtures("x64")
def test_the_norm_is_fixed_after_the_penalty():
    run = lambda penalty, **options: ino.simulate(
        config(ino.Penalised(ino.Oja(0.5), penalty), ts=[0.0, 1.0, 3.0]),
        key=jr.key(1),
        trials=2,
        engine=ino.Stream(block=1, **options),
    )
    for penalty in (ino.SoftThreshold(0.5), Square(0.5)):
        assert np.allclose(run(penalty).lam, 1, rtol=0, atol=1e-12)
    # All entries shrink alike, which the projection undoes.
    same = run(ino.Ridge(0.0))
    assert np.allclose(run(Square(0.5)).q, same.q, rtol=0, atol=1e-12)
    assert np.allclose(run(ino.Ridge(0.5)).q, same.q, rtol=0, atol=1e-12)
    assert np.abs(run(ino.SoftThreshold(0.5)).q - same.q).max() > 0.01


@pytest.mark.slow
@pytest.mark.usefixtures("x64")
def test_all_theory_holds_for_a_ridge():
    # INO-PCA with the decay tau + beta: lam_s = (omega + 1) tau/(tau + beta), and the gain
    # tau/lam_s fixes q_s (THEORY 4): omega (1 - q^2) = nu (1 + omega q^2)/2.
    tau, beta, omega = 0.5, 0.2, 1.0
    rule = ino.Penalised(ino.InoPCA(tau), ino.Ridge(beta))
    problem = config(rule, p=10**12, omega=omega, ts=[0.0, 200.0])
    lam = (omega + 1) * tau / (tau + beta)
    q2 = (omega - tau / lam / 2) / (omega * (1 + tau / lam / 2))
    for found in (ino.steady_state(problem), _last(ino.mean_field(problem))):
        assert np.allclose(found, (np.sqrt(q2), lam), rtol=1e-9)
    exact = ino.simulate(config(rule, p=100), key=jr.key(0), trials=64)
    literal = ino.simulate(
        config(ino.Penalised(ino.InoPCA(tau), Square(beta)), p=100),
        key=jr.key(1),
        trials=64,
        engine=ino.Stream(),
    )
    for name in ("q", "lam"):
        a, b = (np.asarray(getattr(runs, name))[:, -1] for runs in (exact, literal))
        z = (a.mean() - b.mean()) / np.sqrt((a.var(ddof=1) + b.var(ddof=1)) / 64)
        assert abs(z) < 5


def _last(path):
    return path.q[-1], path.lam[-1]


REFUSED = {
    "Chain": lambda c: ino.simulate(c, key=jr.key(0), trials=2),
    "Diffusion": lambda c: ino.simulate(c, key=jr.key(0), trials=2, engine=ino.Diffusion()),
    "mean_field": ino.mean_field,
    "fluctuations": ino.fluctuations,
    "overlap_law": ino.overlap_law,
    "escape_time": lambda c: ino.escape_time(c, 0.5),
    "cold_start_law": ino.cold_start_law,
    "predict": ino.predict,
    "keeps_sign": ino.keeps_sign,
    "velocity": lambda c: ino.velocity(c, 0.5, 1.0),
    "sensitivity": lambda c: ino.sensitivity(c, "start.q0"),
    "effective_gain": lambda c: ino.effective_gain(
        c, ino.Trajectory(np.zeros(1), jnp.zeros(1), jnp.ones(1))
    ),
    "steady_state": ino.steady_state,
    "critical_snr": lambda c: ino.critical_snr(c.rule),
    "FinalOverlap": lambda c: ino.tune(c, over="rule.rule.tau"),
    "stream of data": lambda c: ino.stream_pca(c.rule, np.ones((9, 5)), 1),
    "ClosedForm": lambda c: ino.density(c, solver=ino.ClosedForm()),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_needs_a_gain_and_a_decay_refuses_a_penalty_by_name(name):
    message = rf"rule = Penalised\(.*is not allowed with.*{name}.*one by one.*Stream\(\)"
    with pytest.raises(ValueError, match=message):
        REFUSED[name](config(SPARSE))


def test_a_users_function_that_reads_the_rates_gets_the_reason():
    observables = ino.Observables(*jnp.ones(5))
    with pytest.raises(ValueError, match="penalty acts on the entries"):
        SPARSE.rates(observables, jnp.array(0.5))


def test_blocks_of_samples_are_refused_with_the_remedy():
    with pytest.raises(ValueError, match=r"block = 8 is not allowed.*Stream\(block=1\)"):
        ino.simulate(config(SPARSE), key=jr.key(0), trials=2, engine=ino.Stream(block=8))
    start = ino.FirstSamples()
    several = eqx.tree_at(lambda c: c.start, config(SPARSE), start)
    several = ino.Config(SPARSE, several.model, start, several.ts, components=2)
    with pytest.raises(ValueError, match="FirstSamples and several components"):
        ino.simulate(several, key=jr.key(0), trials=2, engine=ino.Stream())


class Odd(ino.AbstractPenalty):
    def primitive(self, x):
        return jnp.maximum(x, 0) ** 2


class Pole(ino.AbstractPenalty):
    def primitive(self, x):
        return jnp.sqrt(jnp.abs(x))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ino.SoftThreshold(-0.5), "beta = -0.5 is not allowed.*at least 0"),
        (lambda: ino.SoftThreshold(np.inf), "beta = inf is not allowed"),
        (lambda: ino.Ridge(np.nan), "beta = nan is not allowed"),
        (lambda: ino.Penalised(ino.Oja(), Odd()), "penalty = Odd.*phi is odd"),
        (lambda: ino.Penalised(ino.Oja(), Pole()), "penalty = Pole.*finite"),
        (lambda: ino.Penalised(SPARSE, ino.Ridge(1.0)), "rule = Penalised.*one penalty"),
        (lambda: ino.Penalised(ino.Oja(), 0.3), "penalty = 0.3.*AbstractPenalty"),
        (lambda: ino.Penalised(0.5, ino.Ridge(1.0)), "rule = 0.5.*AbstractRule"),
    ],
)
def test_bad_penalties_are_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize("components", sparing([1, 3]))
def test_several_components_are_deflated_by_the_penalised_vectors(components):
    problem = ino.Config(
        SPARSE,
        ino.SpikedModel(p=60, omega=[3.0, 1.5]),
        ino.ColdStart(),
        np.array([0.0, 2.0]),
        components=components,
    )
    runs = ino.simulate(problem, key=jr.key(0), trials=2, engine=ino.Stream())
    assert bool(runs.finite.all())
    assert np.allclose(runs.norms, 1, atol=1e-5)
