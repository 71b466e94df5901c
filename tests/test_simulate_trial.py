"""`simulate_trial`: a pure function that JAX transforms."""

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

import inopca_jax as ino

from .cases import config, sparing
from .test_same_law import switching

TS = np.array([0.0, 0.31, 1.2, 2.0])
ENGINES = [ino.Chain(), ino.Diffusion(), ino.Stream(), ino.Chain(snapshots=True)]


def trial_keys(key, count):
    return jax.vmap(lambda i: jr.fold_in(key, i))(jnp.arange(count, dtype=jnp.int32))


@pytest.mark.smoke
@pytest.mark.parametrize("engine", ENGINES)
def test_it_is_a_trial_of_simulate(engine):
    """Up to rounding: a program for one trial is compiled differently."""
    study = config(p=120, ts=TS)
    runs = ino.simulate(study, key=jr.key(7), trials=3, engine=engine)
    path = ino.simulate_trial(study, key=jr.fold_in(jr.key(7), 2), engine=engine)
    assert type(path) is type(runs)
    assert path.q.dtype == jnp.float32
    np.testing.assert_allclose(path.q, runs.q[2], atol=1e-5)
    np.testing.assert_allclose(path.lam, runs.lam[2], atol=1e-5)


@pytest.mark.parametrize("engine", sparing([ino.Chain(), ino.Stream(), ino.Diffusion()]))
def test_it_follows_switches_of_the_spike(engine):
    study = ino.Config(model=switching(120), ts=np.array([0.0, 0.7, 1.0, 1.5, 3.0]))
    runs = ino.simulate(study, key=jr.key(3), trials=2, engine=engine)
    path = ino.simulate_trial(study, key=jr.fold_in(jr.key(3), 1), engine=engine)
    np.testing.assert_allclose(path.q, runs.q[1], atol=1e-5)


def test_where_shapes_agree_a_vmap_has_the_bits_of_simulate():
    study, trials = config(p=120, ts=TS), 32  # a tile
    runs = ino.simulate(study, key=jr.key(0), trials=trials)
    one = lambda key: ino.simulate_trial(study, key=key)
    paths = jax.jit(jax.vmap(one))(trial_keys(jr.key(0), trials))
    assert np.array_equal(paths.q, runs.q)
    assert np.array_equal(paths.lam, runs.lam)


def batched(studies):
    """Configs as one, whose leaves have an axis of configs in front."""
    return jax.tree.map(lambda *leaves: np.stack(leaves), *studies)


def test_a_vmap_over_64_configs_has_the_law_of_simulate():
    """Configs that differ in all of their numbers, p included, 40 trials of each. The mean
    and the spread of the overlaps agree with `simulate` within five standard errors."""
    rng, trials = np.random.default_rng(0), 40
    studies = [
        ino.Config(
            ino.InoPCA(rng.uniform(0.2, 0.8)),
            ino.SpikedModel(p=int(rng.integers(50, 200)), omega=rng.uniform(1.0, 3.0)),
            ino.WarmStart(rng.uniform(0.3, 0.6), rng.uniform(0.5, 2.0)),
            ts=np.array([1.0, 4.0]),
        )
        for _ in range(64)
    ]
    over_keys = jax.vmap(lambda c, k: ino.simulate_trial(c, key=k), in_axes=(None, 0))
    paths = jax.jit(jax.vmap(over_keys, in_axes=(0, None)))(
        batched(studies), jr.split(jr.key(1), trials)
    )
    assert paths.q.shape == (64, trials, 2)
    zs = []
    for i, study in enumerate(studies):
        runs = ino.simulate(study, key=jr.fold_in(jr.key(2), i), trials=trials)
        for mine, others in ((paths.q[i], runs.q), (paths.lam[i], runs.lam)):
            a, b = np.asarray(mine, float), np.asarray(others, float)
            error = np.sqrt((a.var(0, ddof=1) + b.var(0, ddof=1)) / trials)
            zs.append((a.mean(0) - b.mean(0)) / error)
    zs = np.concatenate(zs)
    assert np.max(np.abs(zs)) < 5
    assert abs(np.mean(zs**2) - 1) < 0.5  # the spread: about 256 squares of normals


def test_configs_of_other_dimensions_share_a_program():
    traces = []

    @jax.jit
    def final(p, key):
        traces.append(p)
        return ino.simulate_trial(config(p=p, ts=TS), key=key).q[-1]

    ps = [40.0, 60.0, 1000.0]
    values = [final(jnp.asarray(p), jr.key(0)) for p in ps]
    assert len(traces) == 1
    for p, value in zip(ps, values, strict=True):
        expected = ino.simulate_trial(config(p=int(p), ts=TS), key=jr.key(0)).q[-1]
        assert np.isclose(value, expected, atol=1e-5)


def test_it_can_be_scanned_over():
    """A chain of trials, each of which begins at the overlap where the last one ended."""
    keys = jr.split(jr.key(0), 3)

    def next_trial(q0, key):
        study = config(p=100, start=ino.WarmStart(q0), ts=np.array([0.5]))
        q = ino.simulate_trial(study, key=key).q[-1]
        return q, q

    _, qs = jax.jit(lambda q0: jax.lax.scan(next_trial, q0, keys))(jnp.asarray(0.3))
    q0 = 0.3
    for key, q in zip(keys, qs, strict=True):
        q0 = next_trial(q0, key)[0]
        assert np.isclose(q, q0, atol=1e-5)


@pytest.mark.parametrize("engine", sparing([ino.Chain(), ino.Diffusion(), ino.Stream()]))
def test_its_derivative_is_that_of_the_path_with_its_noise_held_fixed(engine):
    def final(tau):
        study = config(ino.InoPCA(tau), p=150, start=ino.WarmStart(0.4), ts=TS)
        return ino.simulate_trial(study, key=jr.key(5), engine=engine).q[-1]

    with jax.enable_x64(True):
        tau, h = jnp.asarray(0.5), 1e-5
        slope = float(jax.jvp(final, (tau,), (jnp.ones_like(tau),))[1])
        difference = float((final(tau + h) - final(tau - h)) / (2 * h))
    assert np.isclose(slope, difference, rtol=1e-4)
    assert abs(slope) > 1e-3


def test_what_needs_vectors_refuses_a_traced_dimension():
    study = config(p=100, ts=TS)
    for engine in (ino.Stream(), ino.Chain(snapshots=True)):
        with pytest.raises(ValueError, match=r"p is traced.* plain number p"):
            jax.jit(lambda c, e=engine: ino.simulate_trial(c, key=jr.key(0), engine=e))(
                study
            )


def test_too_many_steps_are_refused_or_not_a_number():
    study = config(p=10**10, ts=np.array([1.0]))
    with pytest.raises(ValueError, match="step counters end at"):
        ino.simulate_trial(study, key=jr.key(0))
