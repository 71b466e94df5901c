"""Exponentially weighted PCA: its closed form against simulations and limits."""

import jax
import numpy as np
import pytest
from scipy.linalg import eigh
from scipy.optimize import minimize_scalar

import inopca_jax as ino


def weighted_pca(omega, memory, p, seed):
    """The squared overlap and the eigenvalue of one run, of all directions."""
    random = np.random.default_rng([seed, p])
    n = int(9 * memory * p)  # of the weight, exp(-9) is left out
    weights = np.exp(-np.arange(n)[::-1] / (memory * p))
    weights /= np.sum(weights)
    samples = random.standard_normal((n, p), dtype=np.float32)
    # By symmetry the spike may be a unit vector.
    samples[:, 0] *= (1 + omega) ** 0.5
    rows = samples * np.sqrt(weights)[:, None].astype(np.float32)
    value, vector = eigh(rows.T @ rows, subset_by_index=[p - 1, p - 1])
    return vector[0, 0] ** 2, value[0]


def check(omega, memory, p, trials):
    runs = np.array([weighted_pca(omega, memory, p, seed) for seed in range(trials)])
    q, value = (
        ino.forgetting_overlap(omega, memory),
        ino.forgetting_eigenvalue(omega, memory),
    )
    z = (np.mean(runs, axis=0) - [q**2, value]) / (
        np.std(runs, axis=0, ddof=1) / trials**0.5
    )
    return z, runs


@pytest.mark.parametrize(("omega", "memory"), [(1.5, 2.0), (3.0, 0.4)])
def test_weighted_pca_has_the_overlap_and_the_eigenvalue(omega, memory):
    z, _ = check(omega, memory, p=400, trials=8)
    assert np.all(np.abs(z) < 5)


@pytest.mark.slow
@pytest.mark.parametrize(("omega", "memory"), [(1.5, 1.0), (1.0, 1.0), (3.0, 0.4)])
def test_weighted_pca_has_them_in_2000_dimensions(omega, memory):
    z, _ = check(omega, memory, p=2_000, trials=8)
    assert np.all(np.abs(z) < 5)


@pytest.mark.slow
def test_a_sketch_of_few_directions_is_ino_pca_of_the_same_memory():
    """To first order in 1/memory. What is dropped does not compete with the direction, so
    that the error, of a variance w^2/(1 + omega) a sample, decays by w omega/(1 + omega):
    1 - q^2 is omega/(1 + omega) of that of PCA with the weights. A constant gain of the
    same pace as that has its error."""
    omega, p, memory, runs = 1.5, 400, 8.0, []
    for seed in range(6):
        random = np.random.default_rng([seed, int(memory)])
        rows = random.standard_normal((int(7 * memory * p), p), dtype=np.float32)
        rows[:, 0] *= (1 + omega) ** 0.5
        found = ino.stream_pca(ino.Sketch(memory * p), rows, 1)
        runs.append(1 - float(found.components[0, 0]) ** 2)

    def lost(rule):
        return (
            1 - float(ino.steady_state(ino.Config(rule, ino.SpikedModel(p, omega)))[0]) ** 2
        )

    weighted = 1 - float(ino.forgetting_overlap(omega, memory)) ** 2
    error = np.std(runs, ddof=1) / len(runs) ** 0.5
    assert abs(np.mean(runs) - omega / (1 + omega) * weighted) < 5 * error + 0.05 * weighted
    assert abs(np.mean(runs) - lost(ino.InoPCA(1 / memory))) < 5 * error + 0.05 * weighted
    assert lost(ino.Oja(1 / (memory * omega))) == pytest.approx(weighted, rel=0.05)


def test_below_the_threshold_there_is_the_edge_of_the_noise():
    """The spike is lost in it; the edge is the least eigenvalue that a spike has."""
    omega, memory, p = 0.3, 1.0, 600
    _, runs = check(omega, memory, p, trials=3)
    assert ino.forgetting_overlap(omega, memory) == 0
    assert np.all(runs[:, 0] < 0.05)
    edge = float(ino.forgetting_eigenvalue(omega, memory))
    assert np.allclose(runs[:, 1], edge, rtol=6 * p ** (-2 / 3))
    found = lambda x: (1 + x) / (memory * x * -np.expm1(-1 / (memory * x)))
    least = minimize_scalar(found, bounds=(0.1, 10), method="bounded")
    assert edge == pytest.approx(least.fun, rel=1e-6)
    for omega in (0.9999 * least.x, 1.0001 * least.x):
        assert ino.forgetting_eigenvalue(omega, memory) == pytest.approx(edge, rel=1e-5)
    assert ino.forgetting_overlap(0.999 * least.x, memory) == 0
    assert 0 < ino.forgetting_overlap(1.001 * least.x, memory) < 0.1


@pytest.mark.usefixtures("x64")
def test_a_long_memory_is_offline_pca_of_twice_as_many_samples():
    for omega in (0.3, 1.0, 5.0):
        memory = np.array([1e2, 1e4]) / omega**2
        ours = 1 - ino.forgetting_overlap(omega, memory) ** 2
        offline = 1 - ino.offline_overlap(omega, 2 * memory) ** 2
        first = (1 + omega) / (2 * memory * omega**2)
        apart = np.abs(np.asarray(ours / first - 1))
        assert np.all(apart < [0.1, 1e-3])
        assert np.allclose(ours, offline, rtol=0.1)
    assert ino.forgetting_overlap(1.0, np.inf) == 1
    assert ino.forgetting_eigenvalue(1.0, np.inf) == 2
    assert ino.forgetting_overlap(0.0, 5.0) == 0


def test_single_precision_is_enough_for_any_memory():
    memory = np.logspace(-6, 12, 37)
    for function in (ino.forgetting_overlap, ino.forgetting_eigenvalue):
        single = function(2.0, memory.astype(np.float32))
        with jax.enable_x64(True):
            double = function(2.0, memory)
            slope = jax.vmap(jax.grad(function, 1), (None, 0))(2.0, memory)
        assert np.allclose(single, double, rtol=1e-4, atol=1e-3)
        assert np.all(np.isfinite(slope))


@pytest.mark.parametrize("function", [ino.forgetting_overlap, ino.forgetting_eigenvalue])
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((-1.0, 1.0), "omega = -1.0"),
        ((np.inf, 1.0), "omega = inf"),
        ((1.0, 0.0), "memory = 0.0"),
        ((1.0, np.nan), "memory = nan"),
        (([1.0, 2.0], [1.0, 2.0, 3.0]), "shapes"),
    ],
)
def test_what_they_cannot_take_is_refused(function, arguments, message):
    with pytest.raises(ValueError, match=message):
        function(*arguments)
