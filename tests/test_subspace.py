"""Several components of a stream: the published algorithms, bits, centring, rates."""

import copy
import itertools
import pickle

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from jax import export

import inopca_jax as ino
from inopca_jax import data
from inopca_jax._engine.deflation import Targets
from inopca_jax._engine.sample import StreamState, one_sample
from inopca_jax._streaming.block import compiled_update, initial_estimates, update

from .cases import sparing

ON_DATA = {
    "InoPCA": lambda: ino.InoPCA(0.5),
    "Oja": lambda: ino.Oja(0.3),
    "AdaOja": ino.AdaOja,
    "CCIPCA": ino.CCIPCA,
    "Krasulina": lambda: ino.Krasulina(0.3),
    "Cubic": lambda: ino.Cubic(0.1),
}


def some_data(n=200, p=30, seed=0, dtype=float):
    random = np.random.default_rng(seed)
    return (random.standard_normal((n, p)) * np.linspace(3, 0.3, p)).astype(dtype)


def close(a, b, tolerance=1e-10):
    return np.max(np.abs(np.asarray(a) - b)) < tolerance * np.max(np.abs(b))


def literally(samples, components, update):
    """`alg:INO-PCA_multiple_pc`, line by line, with any update of one vector."""
    v = []
    for k, y in enumerate(samples, start=1):
        y = np.array(y)
        for i in range(min(components, k)):
            if i == k - 1:
                v.append(y.copy())
            else:
                v[i] = update(v[i], y, k)
            y = y - (y @ v[i]) * v[i] / (v[i] @ v[i])
    return np.array(v)


@pytest.mark.usefixtures("x64")
def test_ino_pca_is_the_papers_algorithm():
    y, tau = some_data(), 2.0
    p = y.shape[1]

    def update(v, y, k):
        return v + tau / p * (y * (y @ v) / (np.linalg.norm(v) / p**0.5) - v)

    found = ino.stream_pca(ino.InoPCA(tau), y, 4).now().vectors
    assert close(p**0.5 * found, literally(y, 4, update))


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("amnesic", [0.0, 2.0, 4.0])
def test_ccipca_is_the_published_one(amnesic):
    """With `n` counted from 2 + l on, so that no weight is negative. Lengths are
    eigenvalues there, and begin as those of samples: in the unit 1/sqrt(p), as here."""
    y = some_data(seed=1)
    p = y.shape[1]

    def update(v, y, k):
        n = k + amnesic
        pull = y * (y @ v) / np.linalg.norm(v)
        return (n - 1 - amnesic) / n * v + (1 + amnesic) / n * pull

    found = ino.stream_pca(ino.CCIPCA(amnesic), y, 4).now().vectors
    assert close(p * found, literally(p**0.5 * y, 4, update))


@pytest.mark.usefixtures("x64")
def test_oja_is_the_gradient_step_and_the_projection():
    y, tau = some_data(), 0.3
    p = y.shape[1]

    def update(v, y, k):
        v = v / np.linalg.norm(v)
        v = v + tau / p * y * (y @ v)
        return v / np.linalg.norm(v)

    found = ino.stream_pca(ino.Oja(tau), y, 4).now().vectors
    expected = literally(y, 4, update)
    assert close(found, expected / np.linalg.norm(expected, axis=1, keepdims=True))


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("name", ON_DATA)
def test_one_component_takes_the_steps_of_the_stream(name):
    rule, y = ON_DATA[name](), jnp.asarray(some_data(150))
    model = ino.SpikedModel(p=y.shape[1])
    x = y[0] * (model.p**0.5 / jnp.linalg.norm(y[0]) if rule.projects else 1)
    state = StreamState.begin((x,), (jnp.ones_like(x),), (rule.tau.init(model.p),))
    targets = Targets.of(model, components=1)
    step = jax.jit(lambda state, k, y: one_sample(rule, model, targets, state, k, y))
    for k in range(len(y) - 1):
        state = step(state, jnp.asarray(k, jnp.int32), y[k + 1])
    assert close(model.p**0.5 * ino.stream_pca(rule, y, 1).now().vectors[0], state.xs[0])


@pytest.mark.parametrize("center", [False, True])
@pytest.mark.parametrize("name", sparing(ON_DATA, 3))
def test_the_bits_do_not_depend_on_where_a_stream_is_cut(name, center, tmp_path):
    rule, y = ON_DATA[name](), some_data(300, dtype=np.float32)
    whole = ino.stream_pca(rule, y, 3, center=center)
    np.save(tmp_path / "y.npy", y)
    mapped = np.load(tmp_path / "y.npy", mmap_mode="r")
    cuts = [0, 1, 2, 64, 65, 200, 256, 256, 300]
    pieces = [y[a:b] for a, b in itertools.pairwise(cuts)]
    state = None
    for piece in pieces[:-2]:
        state = ino.stream_pca(rule, piece, 3, state=state, center=center)
        _ = state.components  # to look is not to touch
    state = ino.stream_pca(rule, pieces[-1], 3, state=state, center=center)
    others = [ino.stream_pca(rule, x, 3, center=center) for x in (mapped, iter(y), pieces)]
    for other in (state, *others):
        assert other.count == whole.count == 300
        same = jax.tree.map(np.array_equal, other.now(), whole.now())
        assert all(jax.tree.leaves(same))


def test_centred_samples_have_the_scatter_of_the_data(x64):
    """At every n, and whatever the offset: CCIPCA without amnesia and with one feature is
    then the variance, `sum y^2 / (n - 1)`."""
    random = np.random.default_rng(0)
    for offset in (0.0, 1e6):
        x = random.standard_normal((130, 1)) + offset
        for n in (3, 64, 65, 130):
            state = ino.stream_pca(ino.CCIPCA(0.0), x[:n], 1, center=True)
            assert state.mean == pytest.approx(x[:n].mean(), rel=1e-14)
            assert state.eigenvalues[0] * (n - 1) == pytest.approx(
                x[:n].var() * n + state_start(x), rel=1e-6
            )


def state_start(x):
    """What the first difference d counts for as the start, |d|, over its square."""
    d = (x[1, 0] - x[0, 0]) / 2**0.5
    return abs(d) - d**2


def test_a_large_offset_does_not_reach_the_components():
    y = some_data(300, dtype=np.float32)
    near, far = (
        ino.stream_pca(ino.InoPCA(0.5), x, 3, center=True).components for x in (y, y + 300)
    )
    assert ino.grassmann_distance(near, far) < 1e-2


def in_both_precisions(rule, samples, components, **options):
    """The states in float32 and in float64, of samples that both have."""
    samples = [y.astype(np.float32) for y in samples]
    single = ino.stream_pca(rule(), samples, components, **options)
    with jax.enable_x64(True):
        samples = [y.astype(float) for y in samples]
        return single, ino.stream_pca(rule(), samples, components, **options)


@pytest.mark.parametrize("name", sparing(["InoPCA", "Cubic", "Krasulina", "Oja"]))
@pytest.mark.parametrize("weight", [1e-8, 1e-6, 1e-4])
def test_single_precision_keeps_the_decay_of_a_small_rate(weight, name):
    """Of a step it is `tau/p`, which beside 1 is rounded away, or to the next of its
    digits, and always the same way: after n samples that would be up to `n tau/p`."""
    p, n = 50, 20_000
    stream = data.Drift([8.0, 4.0], p=p)
    rule = lambda: getattr(ino, name)(p * weight)
    states = in_both_precisions(rule, stream.samples(n), 2)
    one, other = (np.asarray(state.estimates.vectors, float) for state in states)
    # A rounding a sample in the first block, and one a block after it, of either sign.
    lengths = np.linalg.norm(other, axis=1)
    assert np.all(np.linalg.norm(one - other, axis=1) < 1e-5 * lengths)


def test_single_precision_keeps_what_late_samples_add_to_a_mean():
    """Each block adds less than the last digit of a large offset. In the second half the
    mean is another, by one standard deviation."""
    random = np.random.default_rng(0)
    late = lambda i: 1.0 * (i >= 50)
    pieces = [1e4 + late(i) + random.standard_normal((2_000, 3)) for i in range(100)]
    one, other = in_both_precisions(lambda: ino.CCIPCA(0.0), pieces, 2, center=True)
    assert np.allclose(one.mean, other.mean, rtol=0, atol=2e-3)
    assert np.allclose(one.eigenvalues, other.eigenvalues, rtol=1e-3)


@pytest.mark.parametrize("center", [False, True])
@pytest.mark.parametrize("name", ["CCIPCA", "Krasulina"])
def test_a_stream_may_be_longer_than_32_bits_count(name, center):
    """Its clock then stands still, where a sample has next to no weight in a mean."""
    rule, y = ON_DATA[name](), some_data(640, dtype=np.float32)
    begun = ino.stream_pca(rule, y, 2, center=center)
    long = eqx.tree_at(lambda s: s.estimates.count, begun, jnp.int32(2**31 - 300))
    on = ino.stream_pca(rule, y, 2, state=long, center=center)
    assert 2**31 - 300 < on.count < 2**31
    assert np.allclose(on.eigenvalues, begun.eigenvalues, rtol=1e-3)
    if name == "CCIPCA":
        # A mean with a constant rate forgets, whatever the clock says.
        assert np.allclose(on.mean, begun.mean, rtol=1e-3)
        assert np.allclose(on.estimates.vectors, begun.estimates.vectors, rtol=1e-3)


@pytest.mark.parametrize("center", [False, True])
@pytest.mark.parametrize("name", ON_DATA)
def test_samples_that_tell_nothing_make_no_nan(name, center):
    y = some_data(3, dtype=np.float32)
    streams = dict(
        zeros=np.zeros((70, 30), np.float32),
        one=np.repeat(y[:1], 70, axis=0),
        three=np.tile(y, (30, 1)),
        constant=np.ones((70, 30), np.float32),
        few=y[:2],
    )
    for what, samples in streams.items():
        state = ino.stream_pca(ON_DATA[name](), samples, 5, center=center)
        for leaf in jax.tree.leaves(state.now()):
            assert np.all(np.isfinite(leaf)), what
        shown = np.linalg.matrix_rank(samples - center * samples.mean(0), tol=1e-3)
        lengths = np.linalg.norm(state.components, axis=1)
        assert np.sum(lengths > 0.5) <= shown, what
        assert np.allclose(lengths, lengths > 0.5, atol=1e-5), what


def test_components_of_a_stationary_stream_converge_at_the_rate_of_the_root():
    """CCIPCA to the offline PCA of the law; a sixteenth of the error's square with sixteen
    times the samples. A constant rate comes to rest, twice as close at a quarter of it."""
    stream = data.Drift([8.0, 6.0, 4.0], p=40)
    truth = stream.basis(0)
    y = np.concatenate(list(stream.samples(40_000)))

    def error(rule, n):
        parts = np.array_split(y, 8)
        found = [ino.stream_pca(rule, part[:n], 3).components for part in parts]
        return np.mean([ino.grassmann_distance(x, truth) ** 2 for x in found]) ** 0.5

    fewer, more = (error(ino.CCIPCA(2.0), n) for n in (300, 4_800))
    assert 3 < fewer / more < 5.5
    coarse, fine = (error(ino.InoPCA(tau), 5_000) for tau in (0.8, 0.2))
    assert 1.6 < coarse / fine < 2.5


def test_a_stream_that_diverges_says_so():
    with pytest.raises(ValueError, match="diverged within the first 300 samples"):
        ino.stream_pca(ino.Cubic(20.0), some_data(300), 2)


@pytest.mark.parametrize("n", [1, 30, 70])
def test_a_constant_offset_may_be_as_large_as_a_number(n):
    """Also while a block is not full."""
    far = np.full((n, 5), 1e30, np.float32)
    state = ino.stream_pca(ino.InoPCA(0.1), far, 2, center=True)
    assert np.all(state.components == 0)
    assert np.allclose(state.mean, far[0])


@pytest.mark.parametrize("center", [False, True])
@pytest.mark.parametrize("n", [30, 64, 200])
def test_samples_whose_squares_float32_lacks_are_refused(n, center):
    """Also before a block of them is full, when somebody looks."""
    y = some_data(n, dtype=np.float32)
    for scale, message in ((1e25, "larger unit"), (1e-25, "smaller unit")):
        with pytest.raises(ValueError, match=message):
            _ = ino.stream_pca(ino.Oja(0.1), scale * y, 2, center=center).components
    with pytest.raises(ValueError, match=r"float32.*larger unit.*enable_x64"):
        ino.stream_pca(ino.Oja(0.1), 1e60 * y.astype(float), 2, center=center)
    begun = ino.stream_pca(ino.Oja(0.1), y, 2, center=center)
    more = [1e-25 * y, y, 0 * y]
    on = ino.stream_pca(ino.Oja(0.1), more, 2, state=begun, center=center)
    assert np.allclose(np.linalg.norm(on.components, axis=1), 1)


@pytest.mark.parametrize("name", ["InoPCA", "Krasulina", "CCIPCA"])
def test_eigenvalues_are_those_of_the_covariance(name):
    """By the norm or by what is captured, to a few standard errors of their windows."""
    rule = dict(InoPCA=ino.InoPCA(0.1), Krasulina=ino.Krasulina(0.05), CCIPCA=ino.CCIPCA())
    stream = data.Drift([9.0, 5.0], p=30, seed=3)
    state = ino.stream_pca(rule[name], stream.samples(20_000), 2)
    assert np.allclose(state.eigenvalues, [9, 5], rtol=0.15)


def test_one_program_serves_streams_of_any_length_and_any_rate():
    before = compiled_update(True)._cached._cache_size()
    for n, tau in ((3, 0.1), (64, 0.2), (300, 0.3), (5_000, 0.4)):
        ino.stream_pca(ino.InoPCA(tau), some_data(n, 23, dtype=np.float32), 3).now()
    assert compiled_update(True)._cached._cache_size() == before + 1


@pytest.mark.parametrize("center", [False, True])
def test_the_pure_update_is_that_of_a_stream(center):
    """In calls of any length, also with rows that pad the last one."""
    y, rule = some_data(200, 23, dtype=np.float32), ino.CCIPCA()
    stream = ino.stream_pca(rule, y, 3, center=center).now()
    state = ino.init_components(rule, 3, 23)
    for samples in (y[:64], y[64:128]):
        state = ino.update_components(rule, state, samples, center=center)
    cut = ino.update_components(rule, state, y[128:], center=center)
    padded = np.pad(y[128:], ((0, 56), (0, 0)), constant_values=1e6)
    state = ino.update_components(rule, state, padded, 72, center=center)
    for pure in (cut, state):
        assert int(pure.count) == 200
        assert close(pure.vectors, stream.vectors, 1e-5)
        assert close(pure.mean, stream.mean, 1e-5) or not center


def test_the_pure_update_can_be_vmapped_over_rules_and_streams():
    streams = np.stack([some_data(64, 20, seed, np.float32) for seed in range(3)])
    taus = np.array([0.1, 0.2, 0.4], np.float32)

    def vectors(tau, samples):
        rule = ino.InoPCA(tau)
        state = ino.init_components(rule, 2, 20)
        return ino.update_components(rule, state, samples).vectors

    together = jax.jit(jax.vmap(vectors))(taus, streams)
    for row, tau, samples in zip(together, taus, streams, strict=True):
        assert close(vectors(tau, samples), row, 1e-5)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda s: ino.init_components(ino.AdaptiveInoPCA(), 2, 20), "Oracle"),
        (lambda s: ino.init_components(ino.InoPCA(), 21, 20), "components = 21"),
        (lambda s: ino.update_components(ino.InoPCA(), s, np.ones(20)), r"\(20,\)"),
        (lambda s: ino.update_components(ino.InoPCA(), s, np.ones((3, 7))), r"\(3, 7\)"),
        (
            lambda s: ino.update_components(ino.InoPCA(), s, np.ones((0, 20))),
            "at least one",
        ),
        (lambda s: ino.update_components(ino.InoPCA(), None, np.ones((3, 20))), "state"),
    ],
)
def test_what_the_pure_update_cannot_take_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call(ino.init_components(ino.InoPCA(), 2, 20))


def test_the_program_lowers_for_every_platform():
    rule = ino.AdaOja()
    estimates = initial_estimates(rule, 3, 20, jnp.float32)
    run = jax.jit(lambda *args: update(rule, *args, True))
    args = (estimates, jnp.zeros((128, 20)), jnp.asarray(100, jnp.int32))
    exported = export.export(run, platforms=("cpu", "cuda", "tpu"))(*args)
    assert set(exported.platforms) == {"cpu", "cuda", "tpu"}


def test_angles_are_those_of_a_rotation(x64):
    """Also where a cosine would not resolve them."""
    angles = np.array([1e-9, 0.3, 1.5])
    a = np.eye(3, 10)
    b = np.cos(angles)[:, None] * a + np.sin(angles)[:, None] * np.eye(3, 10, k=3)
    mixed = np.random.default_rng(0).standard_normal((3, 3)) @ b
    assert np.allclose(ino.principal_angles(a, mixed), angles, rtol=1e-6)
    assert ino.grassmann_distance(a, mixed) == pytest.approx(np.linalg.norm(angles))


def test_the_distance_can_be_differentiated(x64):
    """Where angles are equal, and where there is none, too."""
    a = jnp.eye(3, 8)
    b = jnp.cos(0.5) * a + jnp.sin(0.5) * jnp.eye(3, 8, k=3)
    move = jr.normal(jr.key(0), b.shape)
    for other in (b, b + 0.1 * jr.normal(jr.key(1), b.shape)):
        along = lambda t, other=other: ino.grassmann_distance(a, other + t * move)
        slope = float(along(1e-5) - along(-1e-5)) / 2e-5
        assert jax.grad(along)(0.0) == pytest.approx(slope, rel=1e-6)
    assert np.all(np.isfinite(jax.grad(ino.grassmann_distance)(a, a)))
    captured = lambda t: ino.captured_variance(b + t * move, jr.normal(jr.key(2), (50, 8)))
    slope = float(captured(1e-5) - captured(-1e-5)) / 2e-5
    assert jax.grad(captured)(0.0) == pytest.approx(slope, rel=1e-6)


def test_all_of_the_variance_is_captured_by_all_components():
    y = some_data(100, 6, dtype=np.float32)
    assert ino.captured_variance(np.eye(6), y) == pytest.approx(1, rel=1e-5)
    shares = [ino.captured_variance(np.eye(6)[[i]], y) for i in range(6)]
    assert np.sum(shares) == pytest.approx(1, rel=1e-5)


Y = some_data(10)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ino.stream_pca(ino.InoPCA(), Y, 31), "components = 31"),
        (lambda: ino.stream_pca(ino.InoPCA(), Y, 0), "components = 0"),
        (lambda: ino.stream_pca(ino.InoPCA(), Y, 1.5), "components = 1.5"),
        (lambda: ino.stream_pca(ino.InoPCA(), [], 1), "empty"),
        (lambda: ino.stream_pca(ino.InoPCA(), 3, 1), "samples = 3"),
        (lambda: ino.stream_pca(ino.InoPCA(), np.zeros((2, 2, 2)), 1), "shape"),
        (lambda: ino.stream_pca(ino.InoPCA(), 1j * Y, 1), "complex"),
        (lambda: ino.stream_pca(ino.InoPCA(), np.array([["a"]]), 1), "real numbers"),
        (lambda: ino.stream_pca(ino.InoPCA(), np.ones((9, 3), "m8[s]"), 1), "timedelta"),
        (lambda: ino.stream_pca(ino.InoPCA(), [Y, Y[:, :3]], 1), "3 features"),
        (lambda: ino.stream_pca(ino.InoPCA(), np.ma.masked_less(Y, 0), 1), "masked"),
        (lambda: ino.stream_pca(ino.InoPCA(60.0), Y, 1), "tau = 60"),
        (lambda: ino.stream_pca(ino.AdaptiveInoPCA(), Y, 1), "Oracle"),
        (lambda: ino.stream_pca("ino", Y, 1), "rule = 'ino'"),
        (lambda: ino.grassmann_distance(Y[:2], Y[:3]), "shapes"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_bad_sample_is_named_and_loses_nothing(bad):
    good = some_data(100, dtype=np.float32)
    state = ino.stream_pca(ino.InoPCA(), good, 2)
    worse = good.copy()
    worse[70, 3] = bad
    with pytest.raises(ValueError, match="in sample 170, counted from 0"):
        ino.stream_pca(ino.InoPCA(), worse, 2, state=state)
    once = ino.stream_pca(ino.InoPCA(), good, 2, state=state)
    again = ino.stream_pca(ino.InoPCA(), [good, good], 2)
    assert np.array_equal(once.components, again.components)


def test_a_stream_goes_on_as_it_began():
    data = some_data(100, dtype=np.float32)
    state = ino.stream_pca(ino.InoPCA(0.5), data, 2)
    for rule, change in (
        (ino.InoPCA(0.5), dict(components=3)),
        (ino.InoPCA(0.5), dict(components=2, center=True)),
        (ino.InoPCA(0.25), dict(components=2)),
        (ino.Oja(0.5), dict(components=2)),
    ):
        with pytest.raises(ValueError, match=r"the state has .* start a new stream"):
            ino.stream_pca(rule, data, state=state, **change)
    with pytest.raises(ValueError, match=r"rule = Oja.*0\.5.*the state has InoPCA.*0\.5"):
        ino.stream_pca(ino.Oja(0.5), data, 2, state=state)
    with jax.enable_x64(True):
        wide = ino.stream_pca(ino.InoPCA(0.1), some_data(100), 2)
        wide = ino.stream_pca(ino.InoPCA(0.1), some_data(100), 2, state=wide)
        ino.stream_pca(ino.InoPCA(0.5), data, 2, state=state)
    with pytest.raises(ValueError, match="state in float64"):
        ino.stream_pca(ino.InoPCA(0.1), some_data(100), 2, state=wide)


@pytest.mark.parametrize("how", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
@pytest.mark.parametrize("n", [100, 128])
def test_a_state_in_double_precision_is_copied_and_read_without_loss_in_any_mode(how, n):
    """It goes on in float64 only, as before."""
    y = some_data(200)
    with jax.enable_x64(True):
        rule = ino.CCIPCA(0.1)
        state = ino.stream_pca(rule, y[:n], 3, center=True)
        expected = [state.components, state.eigenvalues, state.mean, state.rule.tau.c]
        after = ino.stream_pca(rule, y[n:], 3, state=state, center=True).components
    copied = how(state)
    for one in (state, copied):
        found = [one.components, one.eigenvalues, one.mean, one.rule.tau.c]
        for a, b in zip(found, expected, strict=True):
            assert a.dtype == np.float64
            assert np.array_equal(a, b)
        with pytest.raises(ValueError, match="state in float64"):
            ino.stream_pca(rule, y[n:], 3, state=one, center=True)
        with jax.enable_x64(True):
            more = ino.stream_pca(rule, y[n:], 3, state=one, center=True)
        assert np.array_equal(more.components, after)
