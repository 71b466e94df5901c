"""Rules and schedules: what they see, and what they are in the literature's words."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

import inopca_jax as ino
from inopca_jax._rule import rates_at

from .cases import RULES, SCHEDULES


def some_observables(**changes):
    fields = dict(lam=1.3, s2=0.7, r=1.1, t=2.5, p=500.0) | changes
    return ino.Observables(**{name: jnp.asarray(value) for name, value in fields.items()})


def rates(rule, q=0.4, omega=2.0):
    state = rule.tau.init(500)
    return rates_at(rule, some_observables(), jnp.asarray(q), jnp.asarray(omega), state)


def _both(rates):
    return jnp.stack([rates.gain, rates.decay])


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("rule", RULES)
def test_only_the_oracle_reads_the_overlap_and_the_snr(rule, schedule):
    chosen = RULES[rule](SCHEDULES[schedule](500))
    for argument in ("q", "omega"):
        _, change = jax.jvp(
            lambda value, name=argument: _both(rates(chosen, **{name: value})),
            (jnp.asarray(0.4),),
            (jnp.asarray(1.0),),
        )
        assert bool(jnp.any(change != 0)) == (schedule == "Oracle")


@pytest.mark.parametrize("rule", RULES)
def test_the_oracle_gives_every_rule_the_gain_of_the_paper(rule):
    q, omega = 0.4, 2.0
    gain = rates(RULES[rule](ino.Oracle()), q, omega).gain
    assert np.isclose(gain, omega * (1 - q**2) / (omega * q**2 + 1), rtol=1e-6)


def test_ccipca_weighs_the_first_sample_by_its_published_weight():
    amnesic, p = 4.0, 1000
    schedule = ino.CCIPCA(amnesic).tau
    hidden = ino.Hidden(*map(jnp.asarray, (0.0, 1.0, 1.0)))
    for n in (2 + amnesic, 3 + amnesic, 50 + amnesic):
        sample = some_observables(t=(n - 1 - amnesic) / p, p=float(p))
        assert np.isclose(schedule.tau(sample, (), hidden) / p, (1 + amnesic) / n)


def test_interpolation_is_linear_between_knots_and_constant_beyond():
    schedule = ino.Interpolated([1.0, 3.0], [0.2, 0.6])
    hidden = ino.Hidden(*map(jnp.asarray, (0.0, 1.0, 1.0)))
    for t, tau in ((0.0, 0.2), (1.0, 0.2), (2.0, 0.4), (3.0, 0.6), (9.0, 0.6)):
        assert np.isclose(schedule.tau(some_observables(t=t), (), hidden), tau)


@pytest.mark.parametrize("rule", RULES)
def test_every_number_of_a_rule_is_a_strongly_typed_array_leaf(rule):
    for schedule in SCHEDULES.values():
        for leaf in jax.tree.leaves(RULES[rule](schedule(500))):
            assert eqx.is_inexact_array(leaf)
            assert not leaf.weak_type


def test_an_incomplete_rule_cannot_be_made():
    class NoRates(ino.AbstractRule):
        tau: ino.AbstractSchedule
        projects = False

    with pytest.raises(TypeError, match="abstract"):
        NoRates(ino.Constant(0.5))


class Counting(ino.AbstractSchedule):
    """A schedule whose state begins as a number of Python's, as a user may write it."""

    def init(self, p):
        return 1.0

    def drift(self, observables, state):
        return observables.s2

    def tau(self, observables, state, hidden):
        return 0.5 / state


class Plain(ino.AbstractRule):
    """INO-PCA with a plain declaration of tau."""

    tau: ino.AbstractSchedule
    projects = False

    def rates(self, observables, tau):
        return ino.Rates(gain=tau / observables.lam, decay=tau)


def test_a_users_rule_takes_a_number_and_a_users_state_may_be_one():
    assert repr(Plain(0.5)) == "Plain(tau=0.5)"
    made = lambda rule: ino.Config(rule, ino.SpikedModel(p=50), ts=np.array([0.0, 0.5]))
    run = lambda rule, **kw: ino.simulate(made(rule), key=jr.key(0), trials=2, **kw)
    for engine in (ino.Chain(), ino.Stream()):
        assert bool(run(Plain(Counting()), engine=engine).finite.all())
    assert bool(ino.mean_field(made(Plain(Counting()))).finite)
    samples = np.random.default_rng(0).standard_normal((70, 50))
    assert np.all(np.isfinite(ino.stream_pca(Plain(Counting()), samples, 2).components))
    assert np.array_equal(run(Plain(0.5)).q, run(ino.InoPCA(0.5)).q)
