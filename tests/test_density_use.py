"""What one does with densities: gradients, maps, other backends, conditioning."""

import warnings

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import norm

import inopca_jax as ino

from .cases import config, example, sparing

pytestmark = pytest.mark.usefixtures("x64")


def functional(tau, solver):
    pdf = ino.density(config(ino.InoPCA(tau), ts=[2.0, 6.0]), solver=solver)
    return pdf.width * jnp.sum(pdf.marginal()[1] ** 2) + pdf.moment(4)[0]


@pytest.mark.slow
@pytest.mark.parametrize("kind", sparing([ino.FokkerPlanck, ino.ClosedForm]))
def test_gradients_in_tau_are_finite_differences(kind):
    solver, step = kind(cells=64, nodes=4), 1e-4
    value = jax.jit(lambda tau: functional(tau, solver))
    ahead, behind = value(0.5 + step), value(0.5 - step)
    gradient = jax.grad(lambda tau: functional(tau, solver))(0.5)
    assert np.isclose(gradient, (ahead - behind) / (2 * step), rtol=1e-5)
    if kind is ino.FokkerPlanck:
        tangent = jax.jvp(lambda tau: functional(tau, solver), (0.5,), (1.0,))[1]
        assert np.isclose(gradient, tangent, rtol=1e-9)


@pytest.mark.slow
def test_configs_can_be_mapped_and_compile_once():
    solver, traces = ino.FokkerPlanck(cells=64, nodes=4), []

    @eqx.filter_jit
    def overlap(tau):
        traces.append(tau)
        return functional(tau, solver)

    each = [float(overlap(jnp.asarray(tau))) for tau in (0.3, 0.5)]
    assert len(traces) == 1
    mapped = jax.vmap(lambda tau: functional(tau, solver))(jnp.array([0.3, 0.5]))
    assert np.allclose(mapped, each, rtol=1e-10)
    # Outside of a jit, a new number in the config is no new program either.
    from inopca_jax._densities import fokker_planck

    functional(0.31, solver)
    with Counted(fokker_planck) as count:
        functional(0.37, solver)
    assert not count


class Counted:
    """Counts how often the steps are traced."""

    def __init__(self, module):
        self.module = module

    def __enter__(self):
        self.calls, self.original = [], self.module.scharfetter_gummel

        def counted(*arguments):
            self.calls.append(1)
            return self.original(*arguments)

        self.module.scharfetter_gummel = counted
        return self.calls

    def __exit__(self, *_):
        self.module.scharfetter_gummel = self.original


@pytest.mark.slow
def test_the_solver_lowers_for_every_backend():
    solver = ino.FokkerPlanck(cells=64, nodes=4, domain=(-10.0, 10.0))
    lowered = jax.export.export(
        jax.jit(lambda tau: functional(tau, solver)), platforms=("cpu", "cuda", "tpu")
    )(jnp.asarray(0.5))
    assert np.isclose(lowered.call(jnp.asarray(0.5)), functional(0.5, solver), rtol=1e-10)


@pytest.mark.slow
def test_single_precision_is_good_to_its_own():
    study = example("uniform")
    solver = ino.FokkerPlanck(nodes=8, domain=(-11.0, 11.0))
    wide = ino.density(study, solver=solver)
    with jax.enable_x64(False):
        narrow = ino.density(example("uniform"), solver=solver)
        assert narrow.pdf.dtype == jnp.float32
        assert float(narrow.pdf.min()) >= 0
    assert np.abs(np.asarray(narrow.pdf) - np.asarray(wide.pdf)).max() < 1e-4


@pytest.mark.slow
def test_conditioning_between_nodes_is_exact_for_gaussian_starts():
    study = example("uniform", ts=[5.0])
    pdf, ode = ino.density(study, solver=ino.ClosedForm()), ino.mean_field(study)
    q, lam = ode.q[0], ode.lam[0]
    for xi in (-1.73, 0.0, 0.4, 1.7):
        exact = norm.pdf(pdf.x, q * lam * xi, lam * np.sqrt(1 - q**2))
        assert np.abs(pdf.conditional(xi)[0] - exact).max() < 1e-5
    node = float(pdf.nodes[7])
    assert np.abs(pdf.conditional(node)[0] - pdf.pdf[0, 7]).max() < 1e-12


@pytest.mark.slow
def test_point_masses_are_conditioned_on_as_such():
    pdf = ino.density(example("sparse", ts=[5.0]))
    assert pdf.nodes.size == 2
    assert bool(pdf.atoms)
    for k in range(2):
        assert np.array_equal(pdf.conditional(pdf.nodes[k]), pdf.pdf[:, k])
    with pytest.raises(ValueError, match=r"xi = 1.0 is not allowed: .*point masses"):
        pdf.conditional(1.0)
    with pytest.raises(ValueError, match=r"xi = 3.0 is not allowed"):
        ino.density(example("uniform", ts=[1.0])).conditional(3.0)


@pytest.mark.slow
def test_rescaled_densities_have_the_norm_one():
    study = example("exponential", ts=[1.0, 9.0])
    pdf, ode = ino.density(study), ino.mean_field(study)
    scaled = pdf.rescaled()
    assert np.allclose(scaled.lam, 1, rtol=1e-12)
    assert np.allclose(scaled.q, pdf.q, rtol=1e-12)
    assert np.allclose(scaled.moment(0), 1, atol=1e-12)
    assert np.allclose(scaled.moment(1), pdf.moment(1) / pdf.lam, rtol=1e-12)
    mean = float(study.model.spike.mean())
    assert np.allclose(pdf.moment(1), ode.q * ode.lam * mean, rtol=3e-4)
    assert np.allclose(pdf.cdf()[:, -1], 1, atol=1e-12)
    assert scaled.at(9.0).x.shape == (1, 400)
    assert np.array_equal(scaled.at(8.0).pdf, scaled.pdf[1:])


@pytest.mark.slow
def test_steps_that_are_too_long_and_cells_that_are_too_wide_are_told():
    wide = ino.FokkerPlanck(cells=60, nodes=8, domain=(-40.0, 40.0))
    with pytest.warns(UserWarning, match="off the mean field's"):
        ino.density(config(ts=[6.0]), solver=wide)
    with pytest.raises(RuntimeError, match="too fast for the steps"):
        ino.density(config(ino.CCIPCA(), ts=[1.0]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ino.density(config(ts=[6.0]), solver=ino.FokkerPlanck(nodes=8))


class FixedNodes(ino.AbstractSpike):
    """Uniform entries, with a quadrature that ignores the number of nodes."""

    def entries(self, key, p):
        return ino.Uniform().entries(key, p)

    def quadrature(self, nodes):
        return ino.Uniform().quadrature(5)


def test_a_spike_of_more_values_than_nodes_is_not_taken_for_point_masses():
    study = ino.Config(model=ino.SpikedModel(spike=FixedNodes()))
    with pytest.raises(ValueError, match=r"spike = FixedNodes\(\) .* has 5 nodes"):
        ino.steady_density(study)
