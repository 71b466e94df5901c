"""Densities when the spike changes, and at any times."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest

import inopca_jax as ino

from .cases import config

pytestmark = pytest.mark.usefixtures("x64")


def switching(times=(3.0, 6.0), ts=(1.0, 3.0, 5.0, 6.0, 6.01, 12.0), start=None):
    spikes = [ino.ShiftedExponential(), ino.Sparse(0.3), ino.Uniform()]
    models = [ino.SpikedModel(p=200, omega=o, spike=s) for o, s in zip((3, 2, 1), spikes)]  # noqa: B905
    return ino.Config(
        model=ino.Switching(models[: len(times) + 1], times),
        start=start or ino.WarmStart(0.3),
        ts=np.asarray(ts),
    )


@pytest.mark.slow
def test_a_new_spike_meets_the_marginal():
    study = switching(start=ino.TwoBumps(0.3))
    kind = dict(cells=800, nodes=8)
    pdf = ino.density(study, solver=ino.FokkerPlanck(dt=0.02, **kind))
    exact = ino.density(study, solver=ino.ClosedForm(**kind))
    ode = ino.mean_field(study)
    for found, close in ((pdf, 4e-4), (exact, 1e-8)):
        assert np.abs(found.q - ode.q).max() < close
        assert np.abs(found.lam - ode.lam).max() < close
        assert np.abs(found.moment(0) - 1).max() < 1e-9
    assert np.abs(pdf.marginal() - exact.marginal()).sum(1).max() * pdf.width < 1e-3
    assert pdf.atoms.tolist() == [False, True, True, False, False, False]
    # Right-continuous: at the change the new spike counts, and x does not depend on it.
    assert np.abs(pdf.pdf[3] - pdf.marginal()[3][None, :]).max() < 1e-12


def test_nodes_that_only_fill_up_are_not_conditioned_on():
    x = jnp.linspace(-8.0, 8.0, 161)
    real = jnp.stack([jnp.exp(-((x - xi) ** 2) / 2) / np.sqrt(2 * np.pi) for xi in (0, 1)])
    pdf = ino.Density(
        ts=np.array([0.0, 1.0]),
        x=x,
        nodes=jnp.array([[0.0, 1.0, 2.0], [0.0, 1.0, 2.0]]),
        weights=jnp.array([[0.5, 0.5, 0.0], [0.5, 0.5, 0.0]]),
        pdf=jnp.stack([jnp.concatenate([real, jnp.zeros((1, 161))])] * 2),
        atoms=jnp.array([False, False]),
    )
    beyond = pdf.conditional(1.5)
    assert np.allclose(pdf.width * beyond.sum(axis=1), 1, atol=1e-6)
    assert np.allclose(pdf.width * beyond @ x, 1.5, atol=1e-6)


@pytest.mark.slow
def test_times_may_repeat_and_end_before_a_change():
    solver = ino.FokkerPlanck(cells=128, nodes=4)
    full = ino.density(config(ts=[0, 0, 2, 2, 3]), solver=solver)
    assert np.array_equal(full.pdf[0], full.pdf[1])
    assert np.array_equal(full.pdf[2], full.pdf[3])
    short = ino.density(switching(ts=(0.5, 1.0)), solver=solver)
    assert short.nodes.ndim == 1
    # What never comes does not widen the domain.
    alone = config(start=ino.WarmStart(0.3), omega=3.0, spike=ino.ShiftedExponential())
    alone = eqx.tree_at(lambda c: c.ts, alone, np.array([0.5, 1.0]))
    assert np.allclose(short.x, ino.density(alone, solver=solver).x)


@pytest.mark.slow
def test_changes_soon_after_another_are_held_by_the_domain():
    study = switching(times=(5.0, 5.3), ts=(4.0, 20.0))
    pdf = ino.density(study, solver=ino.FokkerPlanck(nodes=8))
    assert np.abs(pdf.q - ino.mean_field(study).q).max() < 5e-3
    soon = switching(times=(1e-4,), ts=(1.0,), start=ino.TwoBumps())
    with pytest.raises(ValueError, match="changes so soon"):
        ino.density(soon, solver=ino.ClosedForm(nodes=4))


class Offset(ino.AbstractDensityStart):
    """A start with a mean of its own."""

    def pdf(self, x, xi):
        return jnp.exp(-((x - 1 - 0.25 * xi) ** 2) / 0.5) / (0.5 * np.sqrt(2 * np.pi))

    def support(self, xi):
        return 0.25 * xi - 3, 0.25 * xi + 5


@pytest.mark.slow
def test_a_start_with_a_mean_is_remembered_across_a_change():
    spikes = [ino.ShiftedExponential(), ino.ShiftedExponential()]
    models = [ino.SpikedModel(p=200, omega=2.0, spike=spike) for spike in spikes]
    study = ino.Config(
        model=ino.Switching(models, [1.0]), start=Offset(), ts=np.array([0.5, 1.0, 3.0])
    )
    pdf = ino.density(study, solver=ino.FokkerPlanck(cells=800, nodes=8))
    ode = ino.mean_field(study)
    assert np.abs(pdf.q - ode.q).max() < 1e-3
    assert np.isclose(ode.q[1], 0.7722, atol=3e-3)  # the chain's, 50 trials at p = 4,000
