"""The scikit-learn estimator."""

import copy
import pickle
from io import BytesIO

import jax
import joblib
import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.decomposition import PCA, IncrementalPCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import inopca_jax as ino
from inopca_jax import data

from .cases import sparing

DIGITS = data.digits()


def distance(a, b):
    return float(ino.grassmann_distance(np.asarray(a, float), np.asarray(b, float)))


@parametrize_with_checks([ino.StreamingPCA()])
def test_scikit_learns_own_checks(estimator, check):
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks(
    [
        ino.StreamingPCA(memory=100),
        ino.StreamingPCA(rule=ino.InoPCA),
        ino.StreamingPCA(rule=ino.CCIPCA),
        ino.StreamingPCA(1, rule=ino.Oja, tau=0.1, center=False),
    ]
)
def test_scikit_learns_own_checks_of_other_rules(estimator, check):
    check(estimator)


@pytest.mark.parametrize(
    "rule", sparing([ino.Sketch, ino.InoPCA, ino.CCIPCA(), ino.AdaOja()], 2)
)
def test_the_bits_do_not_depend_on_how_a_stream_is_cut(rule):
    whole = ino.StreamingPCA(5, rule=rule).fit(DIGITS[:500])
    for cuts in ([1], [10, 11, 63], [64, 65, 128, 400], list(range(1, 500, 37))):
        pieces = ino.StreamingPCA(5, rule=rule)
        for piece in np.split(DIGITS[:500], cuts):
            pieces.partial_fit(piece)
            _ = pieces.components_  # to look is not to touch
        assert pieces.n_samples_seen_ == 500
        assert pieces.tau_ == whole.tau_ if isinstance(whole.tau_, float) else True
        for name in ("components_", "explained_variance_", "mean_"):
            assert np.array_equal(getattr(pieces, name), getattr(whole, name)), cuts


def test_fit_forgets():
    used = ino.StreamingPCA(3).fit(DIGITS[:300, :20])
    fresh = ino.StreamingPCA(3).fit(DIGITS)
    assert np.array_equal(used.fit(DIGITS).components_, fresh.components_)
    assert used.n_samples_seen_ == len(DIGITS)


@pytest.mark.parametrize(
    "rule", sparing([ino.Sketch, ino.InoPCA, ino.Oja, ino.Krasulina, ino.Cubic], 2)
)
def test_the_unit_of_the_data_does_not_matter(rule):
    one, other = (
        ino.StreamingPCA(4, rule=rule).fit(unit * DIGITS.astype(float))
        for unit in (1, 1000)
    )
    assert rule is ino.Sketch or one.tau_ == pytest.approx(other.tau_, rel=1e-6)
    assert np.allclose(one.components_, other.components_, atol=1e-6)
    assert np.allclose(1e6 * one.explained_variance_, other.explained_variance_, rtol=1e-6)
    assert np.allclose(1000 * one.mean_, other.mean_, rtol=1e-6, atol=1e-6)


@pytest.mark.smoke
def test_it_finds_the_components_of_the_digits():
    """To the accuracy that its rate has; with a rate that falls, better; best with none."""
    truth = PCA(4).fit(DIGITS)
    shuffled = np.random.default_rng(0).permutation(np.tile(DIGITS, (3, 1)))
    sketch = ino.StreamingPCA(4).fit(shuffled)
    constant = ino.StreamingPCA(4, rule=ino.InoPCA).fit(shuffled)
    falling = ino.StreamingPCA(4, rule=ino.CCIPCA).fit(shuffled)
    assert distance(sketch.components_, truth.components_) < 0.05
    assert distance(falling.components_, truth.components_) < 0.2
    assert distance(constant.components_, truth.components_) < 0.7
    for found in (sketch, constant, falling):
        assert np.allclose(found.components_ @ found.components_.T, np.eye(4), atol=1e-5)
        assert np.all(np.diff(found.explained_variance_) <= 0)
        assert np.allclose(found.explained_variance_, truth.explained_variance_, rtol=0.35)
        # The mean of a constant rate is that of the samples in its memory.
        tolerance = 0.1 if found is constant else 1e-5
        assert np.allclose(found.mean_, truth.mean_, atol=tolerance)
        back = found.inverse_transform(found.transform(DIGITS))
        lost = np.mean(np.sum((back - DIGITS) ** 2, axis=1))
        total = np.sum(np.var(DIGITS, axis=0))
        captured = float(ino.captured_variance(found.components_, DIGITS))
        tolerance = 0.02 if found is constant else 1e-4
        assert 1 - lost / total == pytest.approx(captured, abs=tolerance)


def test_the_rate_that_is_chosen_is_sensible_in_high_dimensions():
    """There the first samples say nothing of the directions: of the noise's variance all
    see 1, so a rate of about .1 is chosen, far below the one at which nothing is learnt."""
    stream = data.Drift([3.0], p=2_000)
    first = np.concatenate(list(stream.samples(64)))
    assert 0.05 < ino.StreamingPCA(1, rule=ino.InoPCA).fit(first).tau_ < 0.25


CHANGES = {"a jump": dict(jumps=[3_000]), "a steady turn": dict(turn=np.pi / 12_000)}


@pytest.mark.parametrize("options", [dict(memory=400), dict(rule=ino.InoPCA)])
@pytest.mark.parametrize("what", CHANGES)
def test_it_follows_a_change_that_incremental_pca_averages_over(what, options):
    stream = data.Drift([12.0, 10.0, 8.0], p=50, **CHANGES[what])
    ours, theirs = ino.StreamingPCA(3, **options), IncrementalPCA(3)
    for samples in stream.samples(6_000, chunk=250):
        ours.partial_fit(samples)
        theirs.partial_fit(samples)
    truth = stream.basis(5_999)
    assert distance(ours.components_, truth) < 0.45
    assert distance(theirs.components_, truth) > 0.9


def test_it_is_a_transformer_like_others():
    model = make_pipeline(StandardScaler(), ino.StreamingPCA(3)).set_output(
        transform="pandas"
    )
    shown = model.fit_transform(DIGITS)
    assert list(shown.columns) == ["streamingpca0", "streamingpca1", "streamingpca2"]
    again = pickle.loads(pickle.dumps(model))
    assert again.transform(DIGITS).equals(shown)
    half = ino.StreamingPCA(3).partial_fit(DIGITS[:777])
    restored = pickle.loads(pickle.dumps(half)).partial_fit(DIGITS[777:])
    whole = ino.StreamingPCA(3).fit(DIGITS)
    assert np.array_equal(restored.components_, whole.components_)


def through_joblib(model):
    file = BytesIO()
    joblib.dump(model, file)
    file.seek(0)
    return joblib.load(file)


COPIES = {
    "pickle": lambda model: pickle.loads(pickle.dumps(model)),
    "deepcopy": copy.deepcopy,
    "joblib": through_joblib,
}


def same_bits(one, other):
    names = ("components_", "explained_variance_", "mean_")
    return one.n_samples_seen_ == other.n_samples_seen_ and all(
        np.array_equal(getattr(one, name), getattr(other, name))
        and getattr(one, name).dtype == getattr(other, name).dtype
        for name in names
    )


@pytest.mark.parametrize("seen", [40, 777])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("how", sparing(COPIES, 3))
def test_a_copy_has_the_bits_of_the_original_and_goes_on_with_them(how, dtype, seen):
    """Also of numbers in float64, which JAX's own arrays lose on the way while its mode is
    float32; before and after the samples that are held back have been taken."""
    samples = DIGITS.astype(dtype)
    model = ino.StreamingPCA(3).partial_fit(samples[:seen])
    copied = COPIES[how](model)
    assert same_bits(copied, model)
    after_a_look = COPIES[how](model)
    assert same_bits(after_a_look, model)
    model.partial_fit(samples[seen:1_000])
    for other in (copied, after_a_look):
        assert same_bits(other.partial_fit(samples[seen:1_000]), model)
        assert other.tau_ == model.tau_


@pytest.mark.parametrize("how", [*COPIES, "clone"])
def test_a_copy_keeps_the_digits_of_a_rule_in_double_precision(how):
    with jax.enable_x64(True):
        falling, constant = ino.CCIPCA(0.1), ino.Constant(0.1)
    for options in (dict(rule=falling), dict(rule=ino.InoPCA, tau=constant)):
        model = ino.StreamingPCA(3, **options)
        copied = {**COPIES, "clone": clone}[how](model)
        samples = DIGITS[:300].astype(float)
        assert same_bits(copied.fit(samples), model.fit(samples))
        number = lambda tau: tau if isinstance(tau, float) else tau.c
        assert number(COPIES.get(how, copy.copy)(model).tau_) == number(model.tau_)


def test_directions_that_no_sample_shows_are_drawn_by_the_seed():
    flat = np.random.default_rng(0).standard_normal((100, 2)) @ np.eye(2, 6)
    models = [ino.StreamingPCA(4, random_state=seed).fit(flat) for seed in (0, 0, 1)]
    one, same, other = (model.components_ for model in models)
    assert np.allclose(one @ one.T, np.eye(4), atol=1e-12)
    assert np.array_equal(one, same)
    assert np.allclose(one[:2], other[:2])
    assert not np.allclose(one[2:], other[2:])
    assert np.all(models[0].explained_variance_[2:] == 0)


def test_data_in_double_precision_are_computed_with_in_it():
    found = ino.StreamingPCA(2, rule=ino.CCIPCA(2.0)).fit(DIGITS.astype(float))
    assert found.components_.dtype == np.float64
    assert np.allclose(found.components_ @ found.components_.T, np.eye(2), atol=1e-14)
    assert ino.StreamingPCA(2).fit(DIGITS).transform(DIGITS).dtype == np.float32


GOOD = DIGITS[:100]
BAD = {
    "NaN": np.where(np.arange(64) == 3, np.nan, GOOD),
    "infinity": np.where(np.arange(64) == 3, np.inf, GOOD),
    "1D array": GOOD[0],
    "Complex": GOOD + 1j,
    "0 sample": GOOD[:0],
    "63 features": GOOD[:, 1:],
    "masked": np.ma.masked_less(GOOD, 0.1),
}


@pytest.mark.parametrize("what", BAD)
def test_bad_samples_change_nothing(what):
    model = ino.StreamingPCA(3).fit(GOOD)
    with pytest.raises(ValueError, match=what):
        model.partial_fit(BAD[what])
    assert model.n_samples_seen_ == 100
    after = model.partial_fit(GOOD).components_
    clean = ino.StreamingPCA(3).fit(np.concatenate([GOOD, GOOD])).components_
    assert np.array_equal(after, clean)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (dict(n_components=65), "n_features = 64"),
        (dict(n_components=0), "n_components = 0"),
        (dict(n_components="all"), "n_components = 'all'"),
        (dict(tau=-1.0), "tau = -1.0"),
        (dict(tau="best"), "tau = 'best'"),
        (dict(n_components=1.5), "n_components = 1.5"),
        (dict(n_components=0.5, rule=ino.InoPCA), "n_components = 0.5.*Sketch"),
        (dict(tau=0.1), "tau = 0.1.*memory"),
        (dict(tau=0.1, rule=ino.CCIPCA()), "which has its own"),
        (dict(tau=0.1, rule=ino.CCIPCA), "which has its own"),
        (dict(memory=0.5), "memory = 0.5"),
        (dict(memory="long"), "memory = 'long'"),
        (dict(memory=100, rule=ino.InoPCA), "memory = 100.*tau"),
        (dict(memory=100, rule=ino.Sketch(50)), "memory = 100.*Sketch"),
        (dict(batch_size=0), "batch_size = 0"),
        (dict(center="no"), "center = 'no'"),
        (dict(rule="ino"), "rule = 'ino'"),
        (dict(rule=ino.AdaptiveInoPCA()), "Oracle"),
        (dict(rule=np.float32), "rule"),
    ],
)
def test_bad_parameters_are_named_and_the_model_can_be_mended(options, message):
    model = ino.StreamingPCA(**options)
    with pytest.raises(ValueError, match=message):
        model.fit(DIGITS)
    assert not hasattr(model, "n_samples_seen_")
    mended = model.set_params(**ino.StreamingPCA(2).get_params()).fit(DIGITS)
    assert mended.components_.shape == (2, 64)


CHANGED = {
    "n_components": ([2, 5, 40], "n_components = .* 3"),
    "rule": ([ino.Oja, ino.CCIPCA(), ino.Sketch], "rule = .*InoPCA"),
    "tau": ([0.5, ino.Harmonic(1.0)], "tau = .*'auto'"),
    "center": ([False], "center = False .* True"),
}


@pytest.mark.parametrize("seen", [40, 64, 300])
@pytest.mark.parametrize("name", CHANGED)
def test_a_stream_goes_on_with_the_parameters_that_it_began_with(name, seen):
    """Whether or not its first samples are held back; nothing is lost, to read it is to
    see what was learnt, and `fit` begins anew."""
    values, message = CHANGED[name]
    for value in values:
        began = dict(n_components=3, rule=ino.InoPCA)
        model = ino.StreamingPCA(**began).partial_fit(DIGITS[:seen])
        before = ino.StreamingPCA(**began).fit(DIGITS[:seen])
        model.set_params(**{name: value})
        with pytest.raises(ValueError, match=f"(?s){message}.*fit"):
            model.partial_fit(DIGITS[seen:])
        assert same_bits(model, before)
        assert model.transform(DIGITS).shape == (len(DIGITS), 3)
        anew = ino.StreamingPCA(**(began | {name: value})).fit(DIGITS)
        assert same_bits(clone(model).fit(DIGITS), anew)
        assert same_bits(copy.deepcopy(model).fit(DIGITS), anew)
        model.set_params(**ino.StreamingPCA(**began).get_params())
        model.partial_fit(DIGITS[seen:])
        assert same_bits(model, ino.StreamingPCA(**began).fit(DIGITS))


def test_a_new_memory_holds_for_the_samples_to_come():
    model = ino.StreamingPCA(3).fit(DIGITS[:640]).set_params(memory=50)
    assert model.memory_ == np.inf
    model.partial_fit(DIGITS[640:])
    assert model.memory_ == 50
    whole = ino.StreamingPCA(3).fit(DIGITS)
    short = ino.StreamingPCA(3, memory=50).fit(DIGITS)
    assert distance(model.components_, short.components_) < 1e-2
    assert distance(model.components_, whole.components_) > 0.1


@pytest.mark.parametrize("rule", [ino.Sketch, ino.InoPCA, ino.CCIPCA()])
def test_a_parameter_that_is_set_to_what_it_was_changes_nothing(rule):
    """In another spelling, or in a copy; nor does another seed."""
    model = ino.StreamingPCA(3, rule=rule).partial_fit(DIGITS[:40])
    model = pickle.loads(pickle.dumps(model))
    same = dict(n_components=np.int64(3), rule=copy.deepcopy(rule), center=np.True_)
    model.set_params(**same, random_state=7).partial_fit(DIGITS[40:])
    assert same_bits(model, ino.StreamingPCA(3, rule=rule).fit(DIGITS))
    one = ino.StreamingPCA(3, rule=ino.InoPCA, tau=1).partial_fit(DIGITS[:40])
    assert one.set_params(tau=1.0).partial_fit(DIGITS[40:]).n_samples_seen_ == len(DIGITS)


@pytest.mark.parametrize("whole", [np.int32(2), np.uint8(2), 2])
def test_numbers_of_components_are_whole_in_their_type_too(whole):
    assert ino.StreamingPCA(whole).fit(DIGITS).components_.shape == (2, 64)
    for kind in (float, np.float32, str, lambda n: n == 2, np.asarray):
        with pytest.raises(ValueError, match=r"n_components = .* whole number"):
            ino.StreamingPCA(kind(whole)).fit(DIGITS)


def of_rank_five(n=400, p=30):
    random = np.random.default_rng(0)
    directions, _ = np.linalg.qr(random.standard_normal((p, 5)))
    return random.standard_normal((n, 5)) * [5, 4, 3, 2, 1] @ directions.T


LOW_RANK = {
    "rank 5": (of_rank_five(), 5, False),
    "rank 5, centred": (of_rank_five(), 5, True),
    "features that are 0": (of_rank_five() @ np.eye(30, 60), 5, False),
    "one-hot": (np.eye(6)[np.random.default_rng(0).integers(0, 6, 400)], 5, True),
    "on a coarse lattice": (of_rank_five()[:, :6] // 5, 6, False),
    "a single sample": (np.tile(of_rank_five(1), (400, 1)), 1, False),
}


@pytest.mark.parametrize("more", sparing([1, 20]))
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", LOW_RANK)
def test_components_that_the_data_lack_do_not_slow_the_others(name, dtype, more):
    """The rate is that of the last component which is there."""
    samples, rank, center = LOW_RANK[name]
    samples = samples.astype(dtype)
    components = min(rank + more, samples.shape[1])
    enough, many = (
        ino.StreamingPCA(r, rule=ino.InoPCA, center=center, random_state=0).fit(samples)
        for r in (rank, components)
    )
    # The first samples, that the rate comes from, are more for more components.
    same = max(64, 4 * components) == max(64, 4 * rank)
    assert many.tau_ == pytest.approx(enough.tau_, rel=1e-4 if same else 0.3)
    assert many.tau_ > 0.01 * samples.shape[1]
    assert distance(many.components_[:rank], enough.components_) < 1e-2
    truth = np.sum(np.mean((samples - center * samples.mean(0)) ** 2, axis=0))
    assert np.sum(many.explained_variance_) == pytest.approx(truth, rel=0.4)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("center", [True, False])
def test_a_stream_that_begins_with_nothing_learns_what_comes(center, dtype):
    """The first half is constant; the components are those of the second."""
    later = of_rank_five(2_000)
    for constant in (0.0, np.linspace(0.1, 0.7, 30)) if center else (0.0,):
        samples = np.concatenate([np.zeros_like(later), later]) + constant
        samples = samples.astype(dtype)
        model = ino.StreamingPCA(6, rule=ino.InoPCA, center=center).fit(samples)
        assert 0.05 < model.tau_ < 0.2
        sketch = ino.StreamingPCA(6, center=center).fit(samples)
        _, _, truth = np.linalg.svd(later, full_matrices=False)
        for found in (model, sketch):
            assert distance(found.components_[:5], truth[:5]) < 0.1
        alone = ino.StreamingPCA(3, center=center).fit(samples[: len(later)])
        assert np.all(alone.explained_variance_ == 0)


SCALES = {np.float64: [1e153, 1e-140], np.float32: [1e18, 1e-14]}


@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("dtype", SCALES)
@pytest.mark.parametrize("rule", [ino.Sketch, ino.InoPCA])
def test_no_scale_whose_square_is_a_number_is_too_large_or_too_small(rule, dtype, center):
    samples = DIGITS[:300].astype(dtype)
    one = ino.StreamingPCA(4, rule=rule, center=center).fit(samples)
    for scale in SCALES[dtype]:
        other = ino.StreamingPCA(4, rule=rule, center=center).fit(dtype(scale) * samples)
        assert rule is ino.Sketch or other.tau_ == pytest.approx(one.tau_, rel=1e-4)
        assert np.allclose(other.components_, one.components_, atol=1e-3)
        assert np.allclose(other.mean_ / scale, one.mean_, rtol=1e-4, atol=1e-6)
        assert np.allclose(
            other.explained_variance_ / scale / scale, one.explained_variance_, rtol=1e-3
        )


BEYOND = {
    np.float64: [1e154, 1e160, 1e300, 1e-150, 1e-170, 1e-310],
    np.float32: [1e19, 1e30, 1e-19, 1e-30],
}


@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("dtype", BEYOND)
@pytest.mark.parametrize("rule", [ino.Sketch, ino.InoPCA])
def test_a_scale_whose_square_is_no_number_is_refused_at_once(rule, dtype, center):
    """Before anything is learnt, or changed."""
    for scale in BEYOND[dtype]:
        model = ino.StreamingPCA(4, rule=rule, center=center)
        far = dtype(scale) * (1 + DIGITS[:300].astype(dtype))
        for samples in (far[:10], far):
            with pytest.raises(ValueError, match=r"explained_variance_.*[Rr]escale"):
                model.partial_fit(samples)
            assert not hasattr(model, "n_samples_seen_")


@pytest.mark.parametrize("held", [10, 100])
@pytest.mark.parametrize("rule", [ino.Sketch, ino.InoPCA])
def test_samples_far_beyond_the_first_are_refused_and_change_nothing(rule, held):
    model = ino.StreamingPCA(3, rule=rule).fit(DIGITS[:held])
    clean = ino.StreamingPCA(3, rule=rule).fit(DIGITS[:held])
    for far in (DIGITS[:200].astype(float) * 1e300, DIGITS[:200] * 1e38):
        with pytest.raises(ValueError, match=r"[Rr]escale|diverged"):
            model.partial_fit(far).components_  # noqa: B018
    assert same_bits(model, clean)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_it_has_the_attributes_of_pca(dtype):
    """All directions are kept, so that they are those of offline PCA."""
    X = (np.random.default_rng(0).standard_normal((150, 9)) * np.arange(1, 10)).astype(
        dtype
    )
    ours, theirs = ino.StreamingPCA(5, whiten=True).fit(X), PCA(5, whiten=True).fit(X)
    tolerance = dict(rtol=1e-4 if dtype == np.float32 else 1e-10)
    for name in (
        "explained_variance_",
        "explained_variance_ratio_",
        "singular_values_",
        "noise_variance_",
        "n_components_",
    ):
        found, expected = getattr(ours, name), getattr(theirs, name)
        assert np.allclose(found, expected, **tolerance), name
        assert np.asarray(found).dtype == dtype or np.ndim(found) == 0, name
    assert np.allclose(ours.var_, X.var(axis=0), **tolerance)
    assert ours.components_.dtype == ours.mean_.dtype == ours.var_.dtype == dtype
    loose = dict(rtol=0, atol=1e-3 if dtype == np.float32 else 1e-8)
    for name in ("get_covariance", "get_precision"):
        # Of a PCA that whitens scikit-learn has another covariance, not that of the data.
        found, expected = getattr(ours, name)(), getattr(PCA(5).fit(X), name)()
        assert np.allclose(found, expected, **loose), name
    scores = ours.transform(X)
    assert scores.dtype == dtype
    assert np.allclose(np.abs(scores), np.abs(theirs.transform(X)), **loose)
    assert np.allclose(scores.var(axis=0, ddof=1), 1, **loose)
    back = theirs.inverse_transform(theirs.transform(X))
    assert np.allclose(ours.inverse_transform(scores), back, **loose)


@pytest.mark.parametrize("rule", sparing([ino.InoPCA, ino.CCIPCA, ino.Krasulina], 1))
def test_a_rule_has_the_attributes_too(rule):
    X = np.random.default_rng(0).permutation(DIGITS)
    ours, theirs = ino.StreamingPCA(5, rule=rule).fit(X), PCA(5).fit(X)
    assert np.sum(ours.var_) == pytest.approx(np.sum(np.var(X, axis=0)), rel=0.1)
    ratios = theirs.explained_variance_ratio_
    assert np.allclose(ours.explained_variance_ratio_, ratios, atol=0.05)
    assert ours.noise_variance_ == pytest.approx(theirs.noise_variance_, rel=0.3)


@pytest.mark.parametrize("form", ["csr_array", "csc_matrix", "lil_array"])
def test_sparse_samples_give_the_bits_of_dense_ones(form, monkeypatch):
    """Without being made dense as a whole, in calls of any length."""
    X = np.where(np.random.default_rng(0).random((300, 40)) < 0.1, 1.0, 0.0)
    matrix = getattr(sparse, form)(X)
    dense = ino.StreamingPCA(3).fit(X)
    rows, whole = [], sparse.csr_array.toarray
    toarray = lambda self, *args, **kw: (
        rows.append(self.shape[0]) or whole(self, *args, **kw)
    )
    monkeypatch.setattr(type(matrix.tocsr()), "toarray", toarray)
    ours = ino.StreamingPCA(3, batch_size=50).fit(matrix)
    assert max(rows) == 50
    cut = ino.StreamingPCA(3)
    for begin in (0, 100, 177):
        end = {0: 100, 100: 177, 177: 300}[begin]
        cut.partial_fit(matrix.tocsr()[begin:end])
    rows.clear()
    assert same_bits(ours, dense)
    assert same_bits(cut, dense)
    assert np.allclose(ours.transform(matrix), dense.transform(X), atol=1e-12)
    assert not rows


@pytest.mark.parametrize("share", [0.3, 0.9, 0.999])
def test_a_share_of_the_variance_gives_the_number_of_components(share):
    X = DIGITS.astype(float)
    ours = ino.StreamingPCA(share).fit(X)
    theirs = PCA(share, svd_solver="full").fit(X)
    assert ours.n_components_ == theirs.n_components_
    assert ours.transform(X[:5]).shape == (5, theirs.n_components_)
    wide = np.random.default_rng(0).standard_normal((200, 500))
    with pytest.raises(ValueError, match=r"n_components = 0.99.*128 components"):
        _ = ino.StreamingPCA(0.99).fit(wide).components_


def test_without_a_number_of_components_there_are_as_many_as_there_can_be():
    assert ino.StreamingPCA(None).fit(DIGITS).n_components_ == 64
    few = ino.StreamingPCA(None).partial_fit(DIGITS[:7]).partial_fit(DIGITS[7:])
    assert few.n_components_ == 7


def test_a_covariance_without_an_inverse_is_said_to_have_none():
    flat = np.random.default_rng(0).standard_normal((100, 2)) @ np.eye(2, 6)
    with pytest.raises(ValueError, match="no inverse"):
        ino.StreamingPCA(3).fit(flat).get_precision()


RULES = {
    "InoPCA": ino.InoPCA,
    "Oja": ino.Oja,
    "Krasulina": ino.Krasulina,
    "Cubic": ino.Cubic,
}


@pytest.mark.parametrize("name", RULES)
def test_the_automatic_rate_serves_every_rule(name):
    """About the same weight of a sample in the last component, and so the same distance. In
    high dimensions the first samples show a half of its variance."""
    stream = data.Drift([40.0, 30.0, 20.0, 15.0], p=256, seed=2)
    X = np.concatenate(list(stream.samples(4_000)))
    model = ino.StreamingPCA(4, rule=RULES[name]).fit(X)
    assert distance(model.components_, stream.basis(0)) < 0.45
    reference = ino.StreamingPCA(4, rule=ino.InoPCA).fit(X)
    assert reference.memory_ == pytest.approx(256 / reference.tau_, rel=0.2)
    assert 0.4 < model.memory_ / reference.memory_ < 1.5


def test_a_mean_forgets_as_its_rule_does():
    """After a jump of the mean, and only with a constant rate."""
    stream = data.Drift([40.0, 30.0], p=64, seed=2)
    X = np.concatenate(list(stream.samples(9_000)))
    X[3_000:] += 2
    followed = ino.StreamingPCA(2, rule=ino.InoPCA).fit(X)
    assert np.allclose(followed.mean_, 2, atol=1)
    assert distance(followed.components_, stream.basis(0)) < 0.45
    equal = ino.StreamingPCA(2, rule=ino.CCIPCA).fit(X)
    assert equal.memory_ == np.inf
    assert np.allclose(equal.mean_, X.mean(axis=0), atol=1e-4)
