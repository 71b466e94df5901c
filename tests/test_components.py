"""Several spikes and several components: the chain, the stream, the limit."""

import itertools

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from scipy import stats

import inopca_jax as ino
from inopca_jax._engine import stream
from inopca_jax._engine.draws import SampleNoise, start_from_samples
from inopca_jax._order_parameters.component_field import component_mean_field

from .cases import sparing, z_scores

OMEGAS = [2.0, 4.0, 1.0, 3.0]  # in no order

RULES = {
    "InoPCA": lambda: ino.InoPCA(0.5),
    "Oja": lambda: ino.Oja(0.5),
    "CCIPCA": ino.CCIPCA,
    "AdaOja": ino.AdaOja,
    "Oracle": lambda: ino.Oja(ino.Oracle()),
    "Krasulina": lambda: ino.Krasulina(0.3),
}


def several(spikes, components, rule=None, *, p=40, start=None, ts=(0.5, 2.0, 6.0)):
    return ino.Config(
        ino.InoPCA(0.5) if rule is None else rule,
        ino.SpikedModel(p=p, omega=OMEGAS[:spikes]),
        ino.ColdStart() if start is None else start,
        np.asarray(ts, dtype=float),
        components=components,
    )


def statistics(run):
    """Numbers of a run, of shape (trials, ...), that do not depend on signs."""
    trials, times = run.norms.shape[:2]
    rows = [np.abs(run.overlaps).reshape(trials, times, -1)]
    above = np.triu_indices(run.norms.shape[-1], 1)
    rows.append(np.abs(run.cosines)[..., *above])
    rows.append(np.asarray(run.grassmann_distance())[..., None])
    rows.append(np.asarray(run.captured_share())[..., None])
    rows.append(np.asarray(run.norms))
    return np.concatenate(rows, axis=-1).astype(float).reshape(trials, -1)


def same_law(a, b):
    """The z-scores of all statistics, and the p-values of Kolmogorov and Smirnov's test."""
    assert bool(a.finite.all())
    assert bool(b.finite.all())
    one, two = statistics(a), statistics(b)
    # Norms after a projection, and products of vectors that are orthogonal.
    fixed = np.maximum(np.ptp(one, axis=0), np.ptp(two, axis=0)) < 1e-4
    assert np.allclose(one[0, fixed], two[0, fixed], atol=1e-4)
    one, two = one[:, ~fixed], two[:, ~fixed]
    zs = z_scores(one, two)
    pvalues = [stats.ks_2samp(x, y).pvalue for x, y in zip(one.T, two.T, strict=True)]
    # Shown if a test fails, or with pytest -s.
    print(
        f"{zs.size} statistics: |z| <= {np.abs(zs).max():.2f}, KS p >= {min(pvalues):.4f}"
    )
    assert np.max(np.abs(zs)) < 5
    return zs, np.array(pvalues)


def assert_same_law(a, b):
    assert np.min(same_law(a, b)[1]) > 1e-3


LAWS = [
    *itertools.product(
        [(2, 2), (3, 2), (2, 3), (4, 4)], ["InoPCA", "Oja", "CCIPCA", "AdaOja"]
    ),
    ((2, 3), "Oracle"),
    ((2, 2), "Krasulina"),
    ((1, 2), "InoPCA"),
    ((2, 1), "Oja"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("shape", "name"), LAWS)
def test_chain_and_stream_agree_in_law_three_times(shape, name):
    """Of the many p-values some are below 0.001 by chance, but not twice for the same
    statistic: that has a probability of 3e-6."""
    study, pvalues = several(*shape, RULES[name]()), []
    for key in jr.split(jr.key(0), 3):
        chain = ino.simulate(study, key=jr.fold_in(key, 1), trials=4000)
        keys = dict(key=jr.fold_in(key, 2), trials=1200)
        stream = ino.simulate(study, **keys, engine=ino.Stream())
        pvalues.append(same_law(chain, stream)[1])
    first, second, _ = np.sort(pvalues, axis=0)
    assert np.min(second) > 1e-3
    assert np.min(first) > 1e-3 / first.size


def test_chain_and_stream_agree_in_law():
    study = several(2, 2)
    chain = ino.simulate(study, key=jr.key(1), trials=4000)
    stream = ino.simulate(study, key=jr.key(2), trials=1200, engine=ino.Stream())
    assert_same_law(chain, stream)


def test_one_spike_and_one_component_are_what_they_were():
    model, ts = ino.SpikedModel(p=40, omega=2.0), np.array([0.5, 2.0])
    plain = ino.Config(model=model, ts=ts)
    same = ino.Config(
        model=ino.SpikedModel(p=40, omega=[2.0]),
        start=ino.WarmStart(q0=[0.1], lam0=[1.0]),
        ts=ts,
        components=1,
    )
    assert jax.tree.structure(plain) == jax.tree.structure(same)
    for a, b in zip(jax.tree.leaves(plain), jax.tree.leaves(same), strict=True):
        assert np.array_equal(a, b)
    assert isinstance(ino.simulate(same, key=jr.key(0), trials=2), ino.Trajectory)


@pytest.mark.slow
def test_the_order_of_omega_does_not_matter():
    """Component i is compared with the i-th strongest spike, and an oracle reads it."""
    start = ino.WarmStart([0.6, 0.3, 0.0][:2])
    runs = []
    for omega in ([4.0, 2.0, 1.0], [1.0, 4.0, 2.0]):
        model = ino.SpikedModel(p=60, omega=omega)
        study = ino.Config(
            ino.Oja(ino.Oracle()), model, start, np.array([0.0, 3.0]), components=2
        )
        runs.append(ino.simulate(study, key=jr.key(3), trials=2000))
    sorted_run, other = runs
    for run, order in ((sorted_run, [0, 1, 2]), (other, [1, 2, 0])):
        assert np.allclose(run.omega[:, order], [4, 2, 1])
    rows = [run.overlaps[:, -1][:, order] for run, order in
            ((sorted_run, [0, 1, 2]), (other, [1, 2, 0]))]  # fmt: skip
    assert np.max(np.abs(z_scores(*map(np.abs, rows)))) < 5
    at_start = np.asarray(other.overlaps[:, 0]).mean(0)
    expected = np.array([[0, 0], [0.6, 0], [0, 0.3]])
    assert np.max(np.abs(at_start - expected)) < 5 / np.sqrt(60 * 2000) + 0.01
    angles = np.asarray(other.angles())
    for trial in range(3):
        q = np.asarray(other.overlaps[trial, 1], float)[[1, 2]]
        w, v = np.linalg.eigh(np.asarray(other.cosines[trial, 1], float))
        values = np.linalg.svd(q @ v @ np.diag(w**-0.5) @ v.T, compute_uv=False)
        assert np.allclose(np.cos(angles[trial, 1]), values, atol=1e-5)


@pytest.mark.slow
def test_snapshots_have_the_streams_law():
    p = 30
    study = several(2, 2, ino.InoPCA(0.5), p=p, ts=(0.5, 1.0, 3.0))
    features = []
    for seed, engine in ((1, ino.Chain(snapshots=True)), (2, ino.Stream(snapshots=True))):
        run = ino.simulate(study, key=jr.key(seed), trials=2000, engine=engine)
        x, xi = (np.asarray(a, dtype=float) for a in (run.x, run.xi))
        norms = np.sqrt(np.mean(x**2, -1))
        assert np.allclose(norms, run.norms, rtol=1e-4)
        overlaps = np.einsum("ntdp,ntrp->ntdr", xi, x) / p / norms[:, :, None]
        assert np.allclose(overlaps, run.overlaps, atol=1e-4)
        spike_products = np.einsum("ntdp,ntep->ntde", xi, xi) / p
        assert np.allclose(spike_products, np.eye(2), atol=1e-5)
        features.append(
            [x[:, t, i, 3] for t in range(3) for i in range(2)]
            + [x[:, 0, i, 3] * x[:, 1, j, 3] for i in range(2) for j in range(2)]
            + [np.sum(x[:, s, i] * x[:, t, j], -1)
               for s, t in ((0, 1), (1, 2)) for i in range(2) for j in range(2)]
            + [np.sum(x[:, 0, i] * x[:, 1, i] * xi[:, 0, j], -1)
               for i in range(2) for j in range(2)]
        )  # fmt: skip
    for one, two in zip(*features, strict=True):
        assert stats.ks_2samp(one, two).pvalue > 1e-3
        assert abs(one.mean() - two.mean()) < 5 * np.sqrt((one.var() + two.var()) / 2000)


@pytest.mark.usefixtures("x64")
def test_the_first_samples_start_the_components_as_published():
    p, tau = 7, 0.5
    ys = np.random.default_rng(0).normal(size=(3, p))
    vs = []
    for y in ys:  # alg:INO-PCA_multiple_pc
        for i, v in enumerate(vs):
            norm = np.linalg.norm(v)
            vs[i] = v + tau / p * (y * (y @ v) / (norm / np.sqrt(p)) - v)
            y = y - (y @ vs[i]) / (vs[i] @ vs[i]) * vs[i]
        vs.append(y)
    model = ino.SpikedModel(p=p, omega=[2.0, 1.0])
    units = list(jnp.eye(2, p))
    found, _ = start_from_samples(ino.InoPCA(tau), model, units, list(jnp.asarray(ys)))
    assert np.allclose(found, np.array(vs) / np.sqrt(p), rtol=1e-13, atol=1e-13)


@pytest.mark.slow
@pytest.mark.parametrize("name", sparing(["InoPCA", "AdaOja", "Oja"]))
def test_chain_and_stream_agree_in_law_from_the_first_samples(name):
    study = several(2, 3, RULES[name](), start=ino.FirstSamples(), ts=(0.0, 0.5, 2.0))
    chain = ino.simulate(study, key=jr.key(1), trials=4000)
    stream = ino.simulate(study, key=jr.key(2), trials=1200, engine=ino.Stream())
    assert_same_law(chain, stream)


@pytest.mark.slow
def test_the_spikes_of_pca_have_the_offline_overlaps_of_one():
    p, t, omega = 1500, 3.0, np.array([4.0, 2.0, 1.0])
    samples = np.random.default_rng(0).normal(size=(int(p * t), p))
    samples[:, :3] *= np.sqrt(1 + omega)
    vectors = np.linalg.eigh(samples.T @ samples)[1][:, ::-1][:, :3]
    # The scatter of an overlap is of the order 1/sqrt(p).
    expected = ino.offline_overlap(omega, t)
    assert np.allclose(np.abs(np.diagonal(vectors[:3])), expected, atol=2 / np.sqrt(p))


@pytest.mark.usefixtures("x64")
def test_no_constant_rate_ends_nearer_than_the_tuned_one():
    def distance(tau, **options):
        model = ino.SpikedModel(p=2000, omega=[4.0, 2.0])
        start, ts = ino.WarmStart([0.1, 0.2]), np.array([0.0, 20.0])
        study = ino.Config(ino.InoPCA(tau), model, start, ts, components=2)
        return study, ino.FinalDistance().value(study, **options)

    study, _ = distance(0.5)
    tuned = ino.tune(study)
    rates = np.geomspace(0.05, 2, 100)
    grid = jax.vmap(lambda tau: distance(tau)[1])(rates)
    assert tuned.value <= np.min(grid)
    assert np.isclose(tuned.config.rule.tau.value, rates[np.argmin(grid)], rtol=0.04)
    assert 0 < tuned.bound < tuned.value
    assert np.isclose(tuned.value, distance(tuned.config.rule.tau.value)[1], rtol=1e-6)


@pytest.mark.slow
@pytest.mark.usefixtures("x64")
def test_no_rate_beats_the_bound_of_the_distance():
    """Of components that begin on their own spikes, the best is that of an oracle each."""
    model, ts = ino.SpikedModel(p=2000, omega=[1.0, 4.0, 2.0]), np.array([0.0, 8.0])
    start = ino.WarmStart([0.1, 0.2, 0.1])
    study = ino.Config(ino.Oja(ino.Oracle()), model, start, ts, components=3)
    value, bound = ino.FinalDistance().value(study), ino.FinalDistance().bound(study)
    assert np.isclose(value, bound, rtol=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize("snapshots", [False, True])
def test_chain_and_stream_agree_in_law_across_a_change_of_the_spikes(snapshots):
    def phase(spike, omega):
        return ino.SpikedModel(p=90, omega=omega, spike=spike)

    model = ino.Switching(
        [phase(ino.ShiftedExponential(), [1.0, 3.0]), phase(ino.Sparse(0.4), [2.0, 1.0])],
        times=[1.5],
    )
    ts = np.array([1.4, 1.5, 2.0, 5.0])
    study = ino.Config(ino.InoPCA(0.7), model, ino.WarmStart(0.5), ts, components=2)
    engine = ino.Chain(snapshots=snapshots)
    chain = ino.simulate(study, key=jr.key(1), trials=2000, engine=engine)
    stream = ino.simulate(study, key=jr.key(2), trials=1000, engine=ino.Stream())
    assert np.array_equal(chain.omega, [[1, 3], [2, 1], [2, 1], [2, 1]])
    assert_same_law(chain, stream)


@pytest.mark.slow
def test_the_chain_is_exact_in_the_smallest_dimension():
    study = several(2, 2, p=5, ts=(1.0, 3.0, 10.0))
    chain = ino.simulate(study, key=jr.key(1), trials=6000)
    stream = ino.simulate(study, key=jr.key(2), trials=3000, engine=ino.Stream())
    assert_same_law(chain, stream)


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("name", sparing(["Oja", "Oracle", "AdaOja"]))
def test_a_block_of_samples_takes_the_steps_one_by_one(name):
    study = several(3, 2, RULES[name](), ts=(0.1, 1.0))
    one, block = (
        ino.simulate(study, key=jr.key(1), trials=2, engine=ino.Stream(block=size))
        for size in (1, 8)
    )
    for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(block), strict=True):
        assert np.allclose(a, b, rtol=1e-9, atol=1e-9)


FULL = [[0.5, 0.1], [0.2, 0.4], [-0.1, 0.2]]  # overlaps that couple the components


@pytest.mark.slow
@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("name", sparing(["InoPCA", "Oja", "Krasulina"]))
def test_the_chain_approaches_the_mean_field_as_one_over_p(name):
    gaps = []
    for p, trials in ((100, 16000), (400, 16000)):
        start = ino.WarmStart(FULL, [1.0, 1.0] if name == "Oja" else [1.0, 1.5])
        rule, ts = RULES[name](), (1.0, 3.0)
        study = several(3, 2, rule, p=p, start=start, ts=ts)
        run, ode = ino.simulate(study, key=jr.key(1), trials=trials), ino.mean_field(study)
        difference = np.asarray(run.mean().overlaps) - np.asarray(ode.overlaps)
        error = np.asarray(run.std().overlaps) / np.sqrt(trials)
        assert np.max(np.abs(difference) - 5 * error) < 12 / p
        gaps.append((np.abs(difference).max(), 3 * error.max()))
    (far, _), (near, noise) = gaps
    assert near < far / 4 * 1.5 + noise


def fitted_power(ps, gaps, errors):
    """The s of gaps `c p^-s`, of shape (p, entries), with a c for each entry, and the error
    of s as if the entries were independent: by least squares, along a line of s."""
    powers = np.linspace(0, 2, 4001)
    shapes = ps[:, None] ** -powers[None, :]
    weights = 1 / errors**2
    projections = np.einsum("pe,pe,ps->es", weights, gaps, shapes)
    explained = projections**2 / np.einsum("pe,ps->es", weights, shapes**2)
    misfit = -np.sum(explained, axis=0)
    best = np.argmin(misfit)
    inside = powers[misfit < misfit[best] + 1]
    return powers[best], np.ptp(inside) / 2


def test_a_fitted_power_is_the_power_and_its_error_is_how_far_off_it_is():
    random, ps = np.random.default_rng(0), np.array([50.0, 100.0, 200.0, 400.0])
    truth = np.array([2.0, -1.0, 0.3]) * ps[:, None] ** -1.2
    errors = np.full((4, 3), 5e-4)
    fits = [
        fitted_power(ps, truth + errors * random.normal(size=(4, 3)), errors)
        for _ in range(200)
    ]
    found, predicted = np.array(fits).T
    assert abs(found.mean() - 1.2) < 5 * found.std() / np.sqrt(200)
    assert abs(predicted.mean() / found.std() - 1) < 0.2


@pytest.mark.slow
@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("name", ["InoPCA", "Oja"])
def test_the_gap_to_the_mean_field_falls_as_one_over_p(name):
    ps, gaps, errors = np.array([50.0, 100.0, 200.0, 400.0]), [], []
    for p in ps:
        start = ino.WarmStart(FULL, [1.0, 1.0] if name == "Oja" else [1.0, 1.5])
        study = several(3, 2, RULES[name](), p=int(p), start=start, ts=(1.0, 2.0))
        trials = 160 * int(p)  # so that the relative error is the same at all p
        run, ode = ino.simulate(study, key=jr.key(4), trials=trials), ino.mean_field(study)
        values = np.asarray(run.overlaps)
        gaps.append(np.ravel(values.mean(0) - np.asarray(ode.overlaps)))
        errors.append(np.ravel(values.std(0, ddof=1)) / np.sqrt(trials))
    power, error = fitted_power(ps, np.array(gaps), np.array(errors))
    print(f"{name}: the gap falls as p^-({power:.3f} +- {error:.3f})")
    # The entries of one run are correlated, and the next order is 1/p of this one.
    assert error < 0.05
    assert abs(power - 1) < 5 * error + 0.05


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize(("spikes", "components"), sparing([(3, 2), (2, 3), (1, 2)]))
@pytest.mark.parametrize("name", sparing(["InoPCA", "Oja"]))
def test_the_mean_field_ends_at_the_closed_forms(spikes, components, name):
    overlaps = np.asarray(FULL)[:spikes]
    overlaps = np.pad(overlaps, [(0, 0), (0, components - 2)])
    start = ino.WarmStart(overlaps)
    study = several(spikes, components, RULES[name](), start=start, ts=[0.0, 400.0])
    ode = ino.mean_field(study).abs()
    q, lam = ino.steady_state(study)
    order = np.argsort(-np.asarray(study.model.omega).reshape(-1))
    expected = np.zeros((spikes, components))
    for i in range(min(spikes, components)):
        expected[order[i], i] = q[i]
    assert np.allclose(np.abs(ode.overlaps[-1]), expected, atol=1e-8)
    assert np.allclose(ode.norms[-1], lam, atol=1e-8)
    assert np.allclose(ode.cosines[-1], np.eye(components), atol=1e-8)
    distance = ode.grassmann_distance()[-1]
    assert np.isclose(distance, ino.steady_distance(study), atol=1e-6)
    for i in range(min(spikes, components)):
        alone = ino.Config(study.rule, ino.SpikedModel(p=40, omega=study.model.omega.max()))
        if i == 0:
            assert np.isclose(q[0], ino.steady_state(alone)[0], rtol=1e-12)


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("name", sparing(["InoPCA", "Oja", "Oracle", "Krasulina"]))
def test_the_matrix_equations_of_one_component_are_the_scalar_ones(name):
    study = several(1, 1, RULES[name](), start=ino.WarmStart(0.2), ts=(0.0, 2.0, 10.0))
    found, expected = component_mean_field(study), ino.mean_field(study)
    assert np.allclose(found.overlaps[:, 0, 0], expected.q, atol=1e-9)
    assert np.allclose(found.norms[:, 0], expected.lam, atol=1e-9)


@pytest.mark.slow
def test_the_mean_field_of_components_can_be_batched_and_differentiated():
    def final(omega):
        model = ino.SpikedModel(p=40, omega=omega)
        start = ino.WarmStart(FULL)
        study = ino.Config(ino.InoPCA(0.5), model, start, np.array([2.0]), components=2)
        return ino.mean_field(study).overlaps[-1, 0, 0]

    omegas = jnp.array([[3.0, 2.0, 1.0], [2.0, 1.5, 1.0]])
    values = jax.vmap(final)(omegas)
    assert np.allclose(values, [final(omega) for omega in omegas], atol=1e-5)
    slope = jax.grad(final)(omegas[0])[0]
    step = jnp.array([0.05, 0.0, 0.0])
    difference = (final(omegas[0] + step) - final(omegas[0] - step)) / 0.1
    assert np.isclose(slope, difference, rtol=0.02)


class Saturating(ino.AbstractRule):
    """A rule whose gain reads the sample's component along the estimate."""

    tau: ino.AbstractSchedule
    projects = True

    def rates(self, observables, tau):
        gain = tau / (1 + observables.s2)
        return ino.Rates(gain=gain, decay=jnp.zeros_like(gain))


SEVERAL = several(3, 2, ts=(0.0, 1.0))
SWITCH = ino.Switching(
    [ino.SpikedModel(p=40, omega=[2.0, 1.0], spike=ino.ShiftedExponential())] * 2, [0.5]
)
BAD = {
    "gain": (
        lambda: ino.mean_field(several(3, 2, Saturating(ino.Constant(0.5)))),
        "rule = Saturating.*Chain",
    ),
    "switch": (
        lambda: ino.mean_field(ino.Config(model=SWITCH, components=2)),
        "model = Switching.*Chain",
    ),
    "many": (
        lambda: ino.simulate(several(3, 7, p=10), key=jr.key(0)),
        "components = 7.*p - spikes - 1",
    ),
    "snapshots": (
        lambda: ino.simulate(
            several(3, 3, p=9), key=jr.key(0), engine=ino.Chain(snapshots=True)
        ),
        "p = 9.*p >= 10",
    ),
    "p": (lambda: ino.Config(model=ino.SpikedModel(p=5), components=5), "components = 5"),
    "whole": (lambda: ino.Config(components=1.5), "components = 1.5"),
    "none": (lambda: ino.Config(components=0), "components = 0"),
    "empty": (lambda: ino.SpikedModel(omega=[]), r"omega of shape \(0,\)"),
    "axes": (lambda: ino.SpikedModel(omega=[[1.0, 2.0]]), r"omega of shape \(1, 2\)"),
    "negative": (lambda: ino.SpikedModel(omega=[1.0, -2.0]), r"omega = \[1.0, -2.0\]"),
    "infinite": (lambda: ino.SpikedModel(omega=[1.0, np.inf]), r"omega = \[1.0, inf\]"),
    "spikes": (lambda: ino.SpikedModel(p=3, omega=[1.0] * 3), r"omega of shape \(3,\)"),
    "sparse": (
        lambda: ino.SpikedModel(p=100, omega=[1.0, 2.0], spike=ino.Sparse(0.05)),
        "spike.rho = 0.0.*larger p",
    ),
    "equal": (
        lambda: ino.SpikedModel(p=100, omega=[1.0, 2.0], spike=ino.Sparse(1.0)),
        "spike.rho = 1.0",
    ),
    "q0": (
        lambda: several(3, 2, start=ino.WarmStart([0.1, 0.2, 0.3])),
        r"q0 of shape \(3,\).*\(2,\) or \(3, 2\)",
    ),
    "lam0": (
        lambda: several(3, 2, start=ino.ColdStart([1.0, 1.0, 1.0])),
        r"lam0 of shape \(3,\)",
    ),
    "column": (lambda: ino.WarmStart([[0.9, 0.0], [0.9, 0.1]]), "squared overlaps"),
    "start": (lambda: several(1, 2, start=ino.Box()), "start = Box.*WarmStart"),
    "phases": (
        lambda: ino.Switching(
            [ino.SpikedModel(omega=[1.0, 2.0]), ino.SpikedModel(omega=1.0)], [1.0]
        ),
        r"models have \[2, 1\] spikes",
    ),
}  # fmt: skip

ONLY_SINGLE = {
    "Diffusion": lambda c: ino.simulate(c, key=jr.key(0), engine=ino.Diffusion()),
    "fluctuations": ino.fluctuations,
    "predict": ino.predict,
    "keeps_sign": ino.keeps_sign,
    "overlap_law": ino.overlap_law,
    "escape_time": lambda c: ino.escape_time(c, 0.5),
    "cold_start_law": ino.cold_start_law,
    "density": ino.density,
    "steady_density": ino.steady_density,
    "sensitivity": lambda c: ino.sensitivity(c, "rule.tau"),
    "effective_gain": lambda c: ino.effective_gain(c, ino.mean_field(ino.Config())),
    "best_overlap": lambda c: ino.best_overlap(c, [1.0]),
    "velocity": lambda c: ino.velocity(c, 0.5, 1.0),
    "tune's FinalOverlap": lambda c: ino.tune(c, objective=ino.FinalOverlap()),
    "FinalOverlap": lambda c: ino.FinalOverlap().value(c),
    "SteadyOverlap": lambda c: ino.SteadyOverlap(0.1).value(c),
    "a density": lambda c: ino.ClosedForm().solve(c),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_numbers_of_spikes_and_components_are_refused(name):
    call, message = BAD[name]
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize("name", ONLY_SINGLE)
def test_what_is_for_one_spike_and_one_component_says_so(name):
    one_of_two = ino.Config(model=ino.SpikedModel(p=200, omega=[1.0, 2.0]))
    two_of_one = ino.Config(model=ino.SpikedModel(p=200), components=2)
    for study in (SEVERAL, one_of_two, two_of_one):
        with pytest.raises(
            ValueError, match=rf"components = \d.*{name.split()[-1]}.*Chain"
        ):
            ONLY_SINGLE[name](study)


@pytest.mark.parametrize("engine", sparing([ino.Chain(), ino.Stream(block=8)]))
def test_the_bits_do_not_depend_on_the_number_of_trials(engine):
    study = several(2, 2, ts=(0.1, 0.5))
    tile = engine.prepare(study).tile
    many = ino.simulate(study, key=jr.key(7), trials=33 * tile + 3, engine=engine)
    few = ino.simulate(study, key=jr.key(7), trials=tile + 1, engine=engine)
    for name in ("overlaps", "norms", "cosines"):
        assert np.array_equal(getattr(many, name)[: tile + 1], getattr(few, name))
    alone = ino.simulate_trial(study, key=jr.fold_in(jr.key(7), 1), engine=engine)
    assert np.allclose(alone.overlaps, many.overlaps[1], atol=1e-5)


def test_one_trace_serves_all_numbers():
    traces = []

    class Counting(ino.AbstractRule):
        tau: ino.AbstractSchedule
        projects = False

        def rates(self, observables, tau):
            traces.append(1)
            return ino.Rates(gain=tau / observables.lam, decay=tau)

    for i, omega in enumerate(([2.0, 1.0], [1.0, 3.0])):
        model = ino.SpikedModel(p=40 + i, omega=omega)
        start = ino.WarmStart([0.2 + i / 10, 0.1])
        rule = Counting(ino.Constant(0.5 + i))
        study = ino.Config(rule, model, start, np.array([0.0, 0.5]), components=2)
        if i == 1:
            traces.clear()
        ino.simulate(study, key=jr.key(i), trials=3)
        ino.mean_field(study)
    assert not traces


def test_spikes_that_are_not_independent_are_flagged():
    class Ones(ino.AbstractSpike):
        def entries(self, key, p):
            return jnp.ones(p)

        def quadrature(self, nodes):
            return jnp.ones(1), jnp.ones(1)

    model = ino.SpikedModel(p=40, omega=[1.0, 2.0], spike=Ones())
    study = ino.Config(model=model, ts=np.array([0.5]))
    run = ino.simulate(study, key=jr.key(0), trials=3, engine=ino.Stream())
    assert not np.any(run.finite)


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("block", sparing([1, 8]))
@pytest.mark.parametrize("name", sparing(["InoPCA", "Oja"]))
def test_the_stream_of_components_is_the_published_algorithm(name, block, monkeypatch):
    p, steps, tau, omegas = 11, 40, 0.4, np.array([2.0, 4.0])
    c = jr.normal(jr.key(5), (steps, 2))
    a = jr.normal(jr.key(6), (steps, p))

    def tabled(key, pairs, *_):
        rows = [2 * pairs + i for i in range(2)]
        return tuple(SampleNoise((c[row, 0], c[row, 1]), a[row]) for row in rows)

    monkeypatch.setattr(stream, "draw_pairs", tabled)
    rule = ino.InoPCA(tau) if name == "InoPCA" else ino.Oja(tau)
    model = ino.SpikedModel(p=p, omega=omegas)
    ts = np.arange(steps + 1) / p
    study = ino.Config(rule, model, ino.ColdStart(), ts, components=3)
    engine = ino.Stream(snapshots=True, block=block)
    run = ino.simulate(study, key=jr.key(8), trials=1, engine=engine)
    xs, xi = np.asarray(run.x[0]), np.asarray(run.xi[0, 0])
    vs = xs[0].copy()
    for k in range(steps):  # alg:INO-PCA_multiple_pc
        y = np.sqrt(omegas / p) * np.asarray(c[k]) @ xi + np.asarray(a[k])
        for i, x in enumerate(vs):
            if name == "InoPCA":
                lam = np.linalg.norm(x) / np.sqrt(p)
                vs[i] = x + tau / p * (y * (y @ x) / lam - x)
            else:
                x = x + tau / p * y * (y @ x)
                vs[i] = np.sqrt(p) * x / np.linalg.norm(x)
            y = y - (y @ vs[i]) / (vs[i] @ vs[i]) * vs[i]
        assert np.linalg.norm(vs - xs[k + 1]) < 1e-9 * np.linalg.norm(vs)
