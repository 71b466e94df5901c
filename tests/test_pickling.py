"""What is pickled comes back to the bit, whatever JAX's mode when it is loaded."""

import copy
import pickle

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from hypothesis import given, strategies as st

import inopca_jax as ino

from .cases import budgets

numbers, seeds = st.floats(0.01, 0.99), st.integers(0, 1000)


def made(make, *parts):
    """Calls of `make` with any parts. They are not made before they are called, so that it
    happens in the mode of JAX that is then in use."""
    ready = lambda part: part() if callable(part) else part
    return st.tuples(*parts).map(lambda drawn: lambda: make(*map(ready, drawn)))


SCHEDULES = st.one_of(
    made(ino.Constant, numbers),
    made(ino.Harmonic, numbers, numbers, numbers),
    made(ino.AdaGrad, numbers),
    made(ino.Oracle),
    made(lambda tau: ino.Interpolated([0.0, 1 / 3], [tau, tau / 3]), numbers),
)
RULES = st.one_of(
    *(made(kind, SCHEDULES) for kind in (ino.InoPCA, ino.Oja, ino.Krasulina)),
    made(lambda tau, more: ino.Cubic(tau, 2 + more), SCHEDULES, numbers),
)
SPIKES = st.one_of(
    made(ino.Uniform),
    made(ino.Gaussian),
    made(ino.Sparse, numbers),
    made(ino.ShiftedExponential, numbers, numbers),
)
STARTS = st.one_of(
    made(ino.ColdStart, numbers),
    made(ino.WarmStart, numbers, numbers),
    made(ino.TwoBumps, numbers, numbers, numbers),
    made(ino.Box, numbers, numbers),
)
MODELS = made(lambda omega, spike: ino.SpikedModel(100, omega, spike), numbers, SPIKES)
SWITCHING = made(lambda *models: ino.Switching(models, [1 / 3]), MODELS, MODELS)
CONFIGS = made(ino.Config, RULES, st.one_of(MODELS, SWITCHING))
OBJECTIVES = st.one_of(
    made(ino.FinalOverlap),
    made(ino.Area),
    made(ino.TimeToReach, numbers),
    made(ino.SteadyOverlap, numbers, numbers),
    made(ino.CautiousOverlap, numbers),
    made(lambda omega: ino.WorstCase(ino.Area(), [omega, 1 / 3]), numbers),
    made(lambda omega: ino.Average(ino.TimeToReach(omega), [omega]), numbers),
)
ENGINES = st.one_of(
    made(ino.Chain, st.sampled_from([None, 8]), st.booleans()),
    made(lambda dtype: ino.Stream(dtype=dtype), st.sampled_from([None, "float32"])),
    made(ino.Diffusion, numbers),
)
SOLVERS = st.one_of(
    *(
        made(lambda end, kind=kind: kind(cells=20, domain=(-end, end)), numbers)
        for kind in (ino.FokkerPlanck, ino.ClosedForm, ino.MethodOfLines)
    )
)


def random_arrays(seed, *shapes):
    """Of JAX's default precision, with digits that float32 does not have."""
    draw = np.random.default_rng(seed).random
    return [jnp.asarray(draw(shape)) for shape in shapes]


def trajectory(seed):
    q, lam, x, xi = random_arrays(seed, (2, 3), (2, 3), (2, 3, 4), (2, 3, 4))
    return ino.Snapshots(np.arange(3) / 3, q, lam, x, xi)


def bars(seed):
    rows = random_arrays(seed, *[(3,)] * 7)
    return ino.Prediction(np.arange(3) / 3, *rows)


def density(seed):
    x, nodes, weights, pdf = random_arrays(seed, (4,), (2,), (2,), (3, 2, 4))
    return ino.Density(np.arange(3) / 3, x, nodes, weights, pdf, jnp.array(False))


def overlap_law(seed):
    edge, weights = random_arrays(seed, (3,), (2, 3))
    near = bars(seed)
    paths = jax.tree.map(lambda a: a if a is near.ts else jnp.stack([a, -a]), near)
    return ino.OverlapLaw(near.ts, near, edge, paths, weights)


def tuned(config, seed):
    values = np.random.default_rng(seed).random(4)
    return ino.Tuned(config, 1 / 3, 0.9, 0.1, values, "converged")


def scalars(seed):
    gain, decay, *others = random_arrays(seed, *[()] * 10)
    rates = ino.Rates(gain, decay)
    return rates, ino.Observables(*others[:5]), ino.Hidden(*others[5:])


def histogram(seed):
    return ino.empirical_density(trajectory(seed), bins=3)


def escape_time(seed):
    return ino.EscapeTime(*random_arrays(seed, (5,), (5,)))


RESULTS = (trajectory, bars, density, overlap_law, scalars, histogram, escape_time)
PARTS = (RULES, SPIKES, STARTS, SWITCHING, CONFIGS, OBJECTIVES, ENGINES, SOLVERS)
ANY = st.one_of(
    *PARTS, made(tuned, CONFIGS, seeds), *(made(make, seeds) for make in RESULTS)
)


def assert_same_bits(a, b):
    assert jax.tree.structure(a) == jax.tree.structure(b)
    for x, y in zip(*map(jax.tree.leaves, (a, b)), strict=True):
        assert type(x) is type(y)
        assert np.asarray(x).dtype == np.asarray(y).dtype
        assert np.array_equal(x, y)


@budgets(60, long=1000)
@given(ANY, st.booleans(), st.booleans())
def test_what_is_pickled_comes_back_to_the_bit(folder, make, wide, wide_when_loaded):
    with jax.enable_x64(wide):
        before = make()
        text = pickle.dumps(before)
    with jax.enable_x64(wide_when_loaded):
        for after in (pickle.loads(text), copy.copy(before), copy.deepcopy(before)):
            assert_same_bits(before, after)


@pytest.mark.parametrize("make", [ino.TwoBumps, ino.Box, ino.WarmStart, ino.ColdStart])
def test_a_config_of_any_start_comes_back_to_the_bit(make):
    with jax.enable_x64(True):
        before = ino.Config(start=make(lam0=1 / 3))
    assert before.start.lam0.dtype == np.float64
    assert_same_bits(before, pickle.loads(pickle.dumps(before)))


class Mine(ino.AbstractRule):
    tau: ino.AbstractSchedule
    most: float = 1 / 3
    projects = False

    def rates(self, observables, tau):
        return ino.Rates(gain=tau, decay=tau)


def test_a_rule_of_the_users_own_comes_back_to_the_bit():
    with jax.enable_x64(True):
        before = ino.Config(Mine(ino.Constant(1 / 7)))
    after = pickle.loads(pickle.dumps(before))
    assert after.rule.most.dtype == np.float64
    assert_same_bits(before, after)


def test_a_loaded_config_runs_as_the_one_that_was_saved():
    before = ino.Config(model=ino.SpikedModel(p=50), ts=np.array([0.5, 1.0]))
    after = pickle.loads(pickle.dumps(before))
    runs = [ino.simulate(study, key=jr.key(0), trials=2) for study in (before, after)]
    assert_same_bits(*runs)


def test_a_copy_may_be_made_inside_of_a_transformation():
    def value(tau):
        return (
            copy.copy(copy.deepcopy(ino.InoPCA(0.5)).tau).value
            + copy.copy(ino.InoPCA(tau)).tau.value
        )

    assert np.allclose(jax.vmap(value)(jnp.array([0.25, 0.5])), [0.75, 1.0])
    assert eqx.tree_equal(copy.copy(ino.Config()), ino.Config())
