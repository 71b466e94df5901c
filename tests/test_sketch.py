"""The sketch: PCA with weights, its memory, its bits, and what it cannot take."""

import itertools
import pickle

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export

import inopca_jax as ino
from inopca_jax import data
from inopca_jax._streaming.method import compiled_next_state
from inopca_jax._streaming.sketch import initial_sketch, update_sketch

from .cases import sparing


def some_data(n=203, p=10, seed=0, dtype=float):
    random = np.random.default_rng(seed)
    return (random.standard_normal((n, p)) * np.linspace(1, 2, p) + 5).astype(dtype)


def distance(a, b):
    return float(ino.grassmann_distance(np.asarray(a, np.float32), b.astype(np.float32)))


def weighted(samples, memory, center):
    """The mean, the covariance and the share of it that is expected, one sample at a time.

    The differences are from a mean that forgets faster. The share is found by following,
    for each mean, how much of every sample is in it."""
    n, p = samples.shape
    weight = lambda k, memory: max(1 / k, 1 - np.exp(-1 / memory))
    mean, local, total, share = np.zeros(n), np.zeros(n), np.zeros((p, p)), 0.0
    for k in range(1, n + 1):
        w, v = weight(k, memory), weight(k, max(memory / 32, 2))
        own = np.eye(n)[k - 1]
        difference = (own - local) * (1 - v) ** 0.5 if center else own
        d = difference @ samples
        total = (1 - w) * total + w * np.outer(d, d)
        share = (1 - w) * share + w * difference @ difference
        mean, local = (1 - w) * mean + w * own, (1 - v) * local + v * own
    return mean @ samples * center, total, share


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("memory", [np.inf, 50.0, 3.0])
@pytest.mark.parametrize("p", sparing([10, 150], 1))
def test_if_all_directions_are_kept_it_is_weighted_pca(p, memory, center):
    """With more and with fewer features than rows that are merged."""
    y = some_data(p=p)
    sketch, components = ino.Sketch(memory), p // 2
    state = ino.stream_pca(sketch, y, components, center=center)
    mean, covariance, share = weighted(y, memory, center)
    if memory == np.inf:
        assert np.allclose(covariance, np.cov(y.T, ddof=0) if center else y.T @ y / len(y))
    found = state.now()
    vectors = np.asarray(found.vectors)
    assert np.allclose(vectors.T @ vectors, covariance, rtol=0, atol=1e-11)
    assert np.allclose(found.variance, np.diag(covariance), rtol=1e-11)
    assert np.allclose(state.mean, mean, atol=1e-12)
    values, basis = np.linalg.eigh(covariance)
    assert np.allclose(state.eigenvalues, values[::-1][:components] / share)
    signs = np.sum(state.components * basis.T[::-1][:components], axis=1)
    assert np.allclose(np.abs(signs), 1, atol=1e-6)


@pytest.mark.usefixtures("x64")
def test_its_variance_is_not_biased_by_the_mean():
    random = np.random.default_rng(0)
    for memory, n in ((np.inf, 5), (4.0, 64)):
        found = [
            ino.stream_pca(
                ino.Sketch(memory), random.standard_normal((n, 1)), 1, center=True
            ).eigenvalues[0]
            for _ in range(150)
        ]
        standard_error = np.std(found) / 150**0.5
        assert abs(np.mean(found) - 1) < 4 * standard_error


@pytest.mark.parametrize("center", [True, False])
def test_the_bits_do_not_depend_on_where_a_stream_is_cut(center):
    sketch, y = ino.Sketch(100), some_data(300, 30, dtype=np.float32)
    whole = ino.stream_pca(sketch, y, 3, center=center)
    cuts = [0, 1, 2, 64, 65, 200, 256, 256, 300]
    state = None
    for a, b in itertools.pairwise(cuts):
        state = ino.stream_pca(sketch, y[a:b], 3, state=state, center=center) if b else None
        _ = state.components  # to look is not to touch
        state = pickle.loads(pickle.dumps(state))
    assert state.count == whole.count == 300
    same = jax.tree.map(np.array_equal, state.now(), whole.now())
    assert all(jax.tree.leaves(same))


def test_kept_directions_cost_little_against_offline_pca():
    """Where as many as are asked for are kept, as in IncrementalPCA, they cost much."""
    y = np.random.default_rng(0).permutation(data.digits())
    truth = np.linalg.svd(y - y.mean(axis=0), full_matrices=False)[2][:5]
    sketches = (ino.Sketch(directions=d) for d in (1, 2))
    found = [ino.stream_pca(sketch, y, 5, center=True).components for sketch in sketches]
    one, two = (distance(components, truth) for components in found)
    assert two < 0.05
    assert one > 2 * two


@pytest.mark.parametrize("what", ["mean", "subspace"])
def test_it_follows_a_jump_within_its_memory(what):
    """The distances that a user was promised: in the steady state, and after the jump."""
    jumps = [3_000] if what == "subspace" else []
    stream = data.Drift([40.0, 30.0, 20.0, 15.0], p=256, jumps=jumps, seed=1)
    state, distances = None, {}
    for n, rows in enumerate(stream.samples(5_000, chunk=100)):
        offset = np.float32(3 if what == "mean" and n >= 30 else 0)
        state = ino.stream_pca(ino.Sketch(300), rows + offset, 4, state=state, center=True)
        truth = stream.basis(100 * n + 99)
        distances[100 * (n + 1)] = distance(state.components, truth)
    assert distances[3_000] < 0.45
    after = [d for n, d in distances.items() if n >= (3_600 if jumps else 3_400)]
    assert max(after) < 0.45


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_samples_that_tell_nothing_make_no_nan(dtype):
    y = some_data(3, 30, dtype=dtype)
    streams = dict(
        zeros=np.zeros((70, 30), dtype),
        one=np.repeat(y[:1], 70, axis=0),
        three=np.tile(y, (30, 1)),
        few=y[:2],
        single=y[:1],
    )
    for (what, samples), center in itertools.product(streams.items(), (True, False)):
        with jax.enable_x64(dtype == np.float64):
            state = ino.stream_pca(ino.Sketch(), samples, 5, center=center)
            leaves = [*jax.tree.leaves(state.now()), state.components, state.eigenvalues]
        assert all(np.all(np.isfinite(leaf)) for leaf in leaves), what
        shown = np.linalg.matrix_rank(samples - center * samples.mean(0), tol=1e-3)
        lengths = np.linalg.norm(state.components, axis=1)
        assert np.array_equal(lengths > 0.5, np.arange(5) < shown), what
        assert np.allclose(lengths, lengths > 0.5, atol=1e-5), what


def test_single_precision_is_enough_for_long_streams():
    """In the first 10^6 samples, and far later, where a block adds less than a digit."""
    stream = data.Drift([8.0, 4.0], p=6)
    y = np.concatenate(list(stream.samples(20_000, chunk=10_000)))
    begun = ino.stream_pca(ino.Sketch(), y, 2, center=True)
    for count in (10**7, 2**30, 2**31 - 300):
        late = eqx.tree_at(lambda s: s.estimates.count, begun, jnp.int32(count))
        late = ino.stream_pca(ino.Sketch(), y, 2, state=late, center=True)
        assert 0 < int(late.estimates.count) < 2**31
        assert np.allclose(late.eigenvalues, begun.eigenvalues, rtol=5e-3)
        assert distance(late.components, np.asarray(begun.components)) < 5e-3


def test_the_pure_update_is_that_of_a_stream_and_can_be_vmapped():
    streams = np.stack([some_data(200, 20, seed, np.float32) for seed in range(3)])
    memories = np.array([np.inf, 100.0, 30.0], np.float32)

    def vectors(memory, samples):
        sketch = ino.Sketch(memory)
        state = ino.init_components(sketch, 2, 20)
        for block in (samples[:128], samples[128:]):
            state = ino.update_components(sketch, state, block, center=True)
        return state.components

    together = jax.jit(jax.vmap(vectors))(memories, streams)
    for found, memory, samples in zip(together, memories, streams, strict=True):
        driver = ino.stream_pca(ino.Sketch(memory), samples, 2, center=True)
        assert distance(found, np.asarray(driver.components)) < 1e-3


def test_one_program_serves_streams_of_any_length_and_any_memory():
    run = compiled_next_state(ino.Sketch())
    before = run._cached._cache_size()
    for n, memory in ((3, np.inf), (128, 10.0), (300, 20), (5_000, 30.0)):
        ino.stream_pca(ino.Sketch(memory), some_data(n, 23, dtype=np.float32), 3).now()
    assert run._cached._cache_size() == before + 1


def test_the_program_lowers_for_every_platform():
    sketch = ino.Sketch()
    state = initial_sketch(sketch, 3, 20, jnp.float32)
    run = jax.jit(lambda *args: update_sketch(sketch, *args, True))
    args = (state, jnp.zeros((128, 20)), jnp.asarray(100, jnp.int32))
    exported = export.export(run, platforms=("cpu", "cuda", "tpu"))(*args)
    assert set(exported.platforms) == {"cpu", "cuda", "tpu"}


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ino.Sketch(0.5), "memory = 0.5"),
        (lambda: ino.Sketch(np.nan), "memory = nan"),
        (lambda: ino.Sketch("long"), "memory = 'long'"),
        (lambda: ino.Sketch(directions=0), "directions = 0"),
        (lambda: ino.Sketch(directions=1.5), "directions = 1.5"),
        (lambda: ino.stream_pca(ino.Sketch(), some_data(), 11), "components = 11"),
        (
            lambda: ino.stream_pca(
                ino.Sketch(),
                some_data(),
                2,
                state=ino.stream_pca(ino.Sketch(5), some_data(), 2),
            ),
            "rule = Sketch",
        ),
        (
            lambda: ino.update_components(
                ino.Sketch(), ino.init_components(ino.InoPCA(), 2, 10), some_data()
            ),
            "SketchState",
        ),
    ],
)
def test_what_it_cannot_take_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
