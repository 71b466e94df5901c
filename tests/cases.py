"""The algorithms that laws are checked over, and the statistics to check them with."""

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from scipy import stats

import inopca_jax as ino

SEVEN = {
    "InoPCA": lambda: ino.InoPCA(0.5),
    "Cubic": lambda: ino.Cubic(0.5),
    "Oja": lambda: ino.Oja(0.5),
    "Krasulina": lambda: ino.Krasulina(0.3),
    "AdaptiveInoPCA": ino.AdaptiveInoPCA,
    "AdaOja": ino.AdaOja,
    "CCIPCA": ino.CCIPCA,
}

SCHEDULES = {
    "Constant": lambda p: ino.Constant(0.4),
    "Harmonic": lambda p: ino.Harmonic(2.0, t0=4.0),
    "AdaGrad": lambda p: ino.AdaGrad(1.5 * p),
    "Oracle": lambda p: ino.Oracle(),
    "Interpolated": lambda p: ino.Interpolated([0.0, 2.0, 5.0], [0.6, 0.3, 0.2]),
}

RULES = {
    "InoPCA": ino.InoPCA,
    "Cubic": ino.Cubic,
    "Oja": ino.Oja,
    "Krasulina": ino.Krasulina,
}

EXAMPLES = {
    "uniform": (ino.Uniform, ino.WarmStart),
    "exponential": (ino.ShiftedExponential, ino.WarmStart),
    "sparse": (ino.Sparse, ino.WarmStart),
    "two bumps": (ino.Uniform, ino.TwoBumps),
}


def sparing(cases, quick=1):
    """Cases to parametrize by, of which `make test` has the first few and `make test-all`
    all."""
    first, rest = list(cases)[:quick], list(cases)[quick:]
    rest = [case if isinstance(case, tuple) else (case,) for case in rest]
    return [*first, *(pytest.param(*case, marks=pytest.mark.slow) for case in rest)]


def budgets(quick, long=2000):
    """Runs a property on a few examples, and on many if slow tests run; its first argument
    is a folder that all examples share."""

    def decorate(check):
        def run(examples, tmp_path):
            rules = settings(
                max_examples=examples,
                deadline=None,
                database=None,
                derandomize=True,
                suppress_health_check=list(HealthCheck),
            )
            rules(check)(tmp_path)

        cases = [quick, pytest.param(long, marks=pytest.mark.slow)]
        run.__name__, run.__doc__ = check.__name__, check.__doc__
        return pytest.mark.parametrize("examples", cases)(run)

    return decorate


def arrays_in(path):
    """Those of an .npz, which is closed again."""
    with np.load(path) as file:
        return dict(file)


def config(rule=None, *, p=200, omega=1.0, start=None, ts=(0.0, 1.0, 4.0), spike=None):
    return ino.Config(
        rule=ino.InoPCA(0.5) if rule is None else rule,
        model=ino.SpikedModel(p=p, omega=omega, spike=spike or ino.Uniform()),
        start=ino.WarmStart(q0=0.3) if start is None else start,
        ts=np.asarray(ts, dtype=float),
    )


def z_scores(a, b):
    """Of the difference of the means of two independent samples (trials, ...)."""
    a, b = np.asarray(a, dtype=float), np.asarray(b, dtype=float)
    variance = a.var(0, ddof=1) / len(a) + b.var(0, ddof=1) / len(b)
    return (a.mean(0) - b.mean(0)) / np.sqrt(variance)


def assert_same_law(a: ino.Trajectory, b: ino.Trajectory):
    """Means of q, q^2 and lam, and the laws of q and lam, at every time."""
    assert bool(a.finite.all())
    assert bool(b.finite.all())
    pairs = [(a.q, b.q), (a.q**2, b.q**2)]
    if np.ptp(a.lam) < 1e-5:  # a norm that is fixed, up to rounding
        assert np.allclose(a.lam, 1, atol=1e-5)
        assert np.allclose(b.lam, 1, atol=1e-5)
    else:
        pairs.append((a.lam, b.lam))
    for left, right in pairs:
        assert np.max(np.abs(z_scores(left, right))) < 5
        for i in range(left.shape[1]):
            assert stats.ks_2samp(left[:, i], right[:, i]).pvalue > 1e-3


def example(name, ts=(1.0, 5.0, 20.0), q0=0.1):
    spike, start = EXAMPLES[name]
    return config(spike=spike(), start=start(q0=q0), ts=ts)


def distance(a: ino.Density, b: ino.Density):
    """The L1 distance of the joint densities of (x, xi), at each time."""
    return np.asarray(jnp.einsum("k,tkx->t", a.weights, jnp.abs(a.pdf - b.pdf)) * a.width)
