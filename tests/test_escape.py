"""The law of the overlap from a cold start, and when it leaves q = 0."""

import jax.random as jr
import numpy as np
import pytest

import inopca_jax as ino

from .cases import config, sparing

pytestmark = pytest.mark.xdist_group("escape")  # one of them compiles for all


@pytest.fixture(scope="module")
def cold():
    """INO-PCA from a cold start at p = 10,000, looked at often, and the theory of it."""
    study = config(p=10_000, start=ino.ColdStart(), ts=np.linspace(0, 24, 401))
    return study, ino.simulate(study, key=jr.key(1), trials=1200).abs()


@pytest.mark.slow
def test_the_mean_and_the_spread_of_the_overlap_from_a_cold_start(cold):
    study, runs = cold
    theory, trials = ino.overlap_law(study).abs(), len(runs.q)
    mean, std = runs.mean(), runs.std()
    for i in (0, 50, 100, 150, 200, 250, 300):
        for name in ("q", "lam"):
            spread = float(getattr(std, name)[i])
            if spread > 1e-6:
                missed = getattr(mean, name)[i] - getattr(theory, name)[i]
                assert abs(missed) < 4 * spread / np.sqrt(trials), (i, name)
                # Of laws with longer tails than the normal one: its error twice.
                ratio = getattr(theory, f"{name}_std")[i] / spread
                assert abs(ratio - 1) < 0.02 + 6 / np.sqrt(2 * trials), (i, name)


@pytest.mark.parametrize("level", sparing([0.3, 0.1, 0.6]))
def test_the_time_of_escape_has_the_chains_quantiles(cold, level):
    study, runs = cold
    passed = np.asarray(runs.q) >= level
    when = np.where(passed.any(1), study.ts[np.argmax(passed, 1)], np.inf)
    escape = ino.escape_time(study, level)
    for probability in (0.1, 0.5, 0.9):
        # The order statistics that the quantile lies between but once in 10,000 times.
        n = len(when)
        margin = 4 * np.sqrt(n * probability * (1 - probability))
        low, high = np.sort(when)[
            [int(n * probability - margin), min(int(n * probability + margin), n - 1)]
        ]
        found = float(escape.quantile(probability))
        assert 0.97 * low < found < 1.03 * high
    pdf = np.asarray(escape.pdf())
    assert np.all(pdf >= 0)
    area = np.sum((pdf[1:] + pdf[:-1]) / 2 * np.diff(escape.ts))
    assert np.isclose(area, escape.cdf[-1] - escape.cdf[0], atol=0.01)


@pytest.mark.slow
def test_a_warm_start_has_the_linear_law():
    study = config(p=10_000, start=ino.WarmStart(0.3), ts=np.linspace(0, 24, 201))
    law, linear = ino.overlap_law(study), ino.fluctuations(study)
    assert np.all(np.isinf(law.edge))
    assert np.all(np.asarray(law.weights) == 0)
    assert np.allclose(law.abs().q, linear.q + linear.q_shift, atol=1e-5)
    assert np.allclose(law.abs().q_std, linear.q_std, atol=1e-5)


@pytest.mark.slow
def test_it_does_not_leave_where_there_is_nothing_to_learn():
    """Below the transition the overlap stays a normal variable of order 1/sqrt(p)."""
    study = config(p=10_000, omega=0.05, start=ino.ColdStart(), ts=np.linspace(0, 24, 201))
    law = ino.overlap_law(study).abs()
    assert np.all(np.asarray(law.q) < 0.03)
    assert np.allclose(law.q_std / law.q, np.sqrt(np.pi / 2 - 1), rtol=1e-3)
    assert np.isinf(ino.escape_time(study, 0.3).quantile(0.5))


@pytest.mark.slow
def test_the_law_does_not_depend_on_how_long_one_waits(cold):
    study, _ = cold
    late = config(p=10_000, start=ino.ColdStart(), ts=np.linspace(0, 1000, 401))
    quantiles = np.array([0.0, 0.1, 0.5, 0.9])
    soon, later = (ino.escape_time(c, 0.3).quantile(quantiles) for c in (study, late))
    assert np.allclose(soon, later, rtol=2e-3)


@pytest.mark.slow
def test_a_change_after_the_last_time_or_at_it_is_no_trouble():
    study = config(p=10_000, start=ino.ColdStart(), ts=np.linspace(0, 24, 201))
    plain = ino.overlap_law(study).abs()
    for at, before in ((24.0, 200), (100.0, 201)):
        model = ino.Switching([study.model] * 2, [at])
        law = ino.overlap_law(ino.Config(study.rule, model, study.start, study.ts)).abs()
        assert np.allclose(law.q[:before], plain.q[:before], rtol=1e-5)
        assert np.allclose(law.q[before:], plain.q[0], rtol=1e-2)  # chance again


def test_what_has_no_escape_time_is_refused(cold):
    study, _ = cold
    with pytest.raises(ValueError, match=r"level = 0\.02 .* at least 0\.045"):
        ino.escape_time(study, 0.02)
    for level in (0.0, 1.0, float("nan")):
        with pytest.raises(ValueError, match=r"level = .* pass 0 < level < 1"):
            ino.escape_time(study, level)
    model = ino.Switching([study.model] * 2, [1.0])
    with pytest.raises(ValueError, match="pass a SpikedModel"):
        ino.escape_time(ino.Config(study.rule, model, study.start, study.ts), 0.3)


@pytest.mark.slow
def test_a_dimension_too_small_for_the_law_of_those_that_leave_is_refused():
    model, ts = ino.SpikedModel(p=100), np.linspace(0, 24, 201)
    study = ino.Config(model=model, start=ino.WarmStart(0.1), ts=ts)
    with pytest.raises(ValueError, match=r"p = 100 is not allowed: .* pass a larger p"):
        ino.overlap_law(study)
    with pytest.warns(UserWarning, match="At p = 100 runs may change their sign"):
        theory = ino.predict(study)
    assert np.array_equal(theory.q, ino.mean_field(study).abs().q)
