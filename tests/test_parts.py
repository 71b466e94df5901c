"""Spikes, and the config as a pytree."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

import inopca_jax as ino

SPIKES = {
    "Uniform": ino.Uniform,
    "ShiftedExponential": ino.ShiftedExponential,
    "Sparse": ino.Sparse,
    "Gaussian": ino.Gaussian,
}


@pytest.mark.parametrize("name", SPIKES)
def test_a_spikes_quadrature_is_the_law_of_its_entries(name):
    p, spike = 400_000, SPIKES[name]()
    xi = np.asarray(spike.sample(jr.key(0), p), dtype=float)
    nodes, weights = map(np.asarray, spike.quadrature(12))
    assert np.isclose(weights.sum(), 1, rtol=1e-6)
    assert np.isclose(weights @ nodes**2, 1, rtol=1e-5)
    assert np.isclose(float(spike.mean()), weights @ nodes, atol=1e-6)
    for order in (1, 3, 4):
        error = 5 * np.sqrt((weights @ nodes ** (2 * order)) / p)
        # Rescaling to |xi| = sqrt(p) moves a moment by its own size over sqrt(p).
        error += 5 * order * abs(weights @ nodes**order) * np.std(xi**2) / np.sqrt(p)
        assert abs(np.mean(xi**order) - weights @ nodes**order) < error


@pytest.mark.parametrize("name", SPIKES)
@pytest.mark.parametrize("p", [3, 1000])
def test_a_spike_has_length_sqrt_p_however_small_p(name, p):
    for seed in range(20):
        xi = SPIKES[name]().sample(jr.key(seed), p)
        assert np.isclose(np.sum(np.asarray(xi, dtype=float) ** 2), p, rtol=1e-5)


def test_one_node_is_the_mean():
    for spike in (ino.Uniform(), ino.Gaussian()):
        nodes, weights = spike.quadrature(1)
        assert np.allclose(nodes, 0, atol=1e-6)
        assert np.allclose(weights, 1)


def test_the_defaults_are_the_papers():
    study = ino.Config()
    assert isinstance(study.rule, ino.InoPCA)
    assert study.rule.tau.value == 0.5
    assert (study.model.p, study.model.omega) == (10_000, 1.0)
    assert isinstance(study.model.spike, ino.Uniform)
    assert np.isclose(study.start.q0, 0.1)
    assert study.start.lam0 == 1.0
    assert study.ts[-1] == 50


def test_every_number_of_a_config_is_an_array_leaf():
    study = ino.Config(
        rule=ino.Cubic(ino.Harmonic(2, t0=1), degree=4),
        model=ino.SpikedModel(p=10, omega=2, spike=ino.Sparse(0.5)),
        start=ino.WarmStart(0, 1),
        ts=[0, 1],
    )
    *numbers, ts = jax.tree.leaves(study)
    assert len(numbers) == 9
    numbers.remove(study.model.p)
    assert isinstance(study.model.p, np.ndarray)
    assert study.model.p == 10
    assert all(isinstance(leaf, jax.Array) for leaf in numbers)
    assert all(leaf.dtype == jnp.float32 for leaf in numbers)
    # p and the times stay on the host and keep their digits: floor(p t) is decided there.
    assert isinstance(ts, np.ndarray)
    assert ts.dtype == np.float64


def test_a_sweep_is_a_vmap_over_configs():
    studies = [ino.Config(ino.InoPCA(tau), ts=np.array([1.0, 4.0])) for tau in (0.2, 0.5)]
    stacked = jax.tree.map(
        lambda *leaves: jnp.stack([jnp.asarray(x) for x in leaves]), *studies
    )
    together = eqx.filter_vmap(lambda study: ino.mean_field(study).q)(stacked)
    apart = jnp.stack([ino.mean_field(study).q for study in studies])
    assert np.allclose(together, apart, atol=1e-6)


def test_a_config_prints_what_it_holds():
    shown = " ".join(repr(ino.Config()).split())
    assert shown.startswith(
        "Config( rule=InoPCA(tau=0.5), model=SpikedModel(p=10000, omega=1.0, "
    )
    assert repr(ino.SpikedModel(p=77, omega=0.1)) == (
        "SpikedModel(p=77, omega=0.1, spike=Uniform())"
    )
    jax.jit(lambda study: shown in repr(study))(ino.Config())  # traced numbers have shapes
    with pytest.raises(ValueError, match=r"rule = SpikedModel\(p=10000, omega=1.0"):
        ino.Config(rule=ino.SpikedModel())
