"""Densities: against the closed form, the mean field, and themselves on finer grids."""

import itertools
import warnings

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import norm

import inopca_jax as ino

from .cases import config

pytestmark = pytest.mark.usefixtures("x64")

EXAMPLES = {
    "uniform": (ino.Uniform, ino.WarmStart),
    "exponential": (ino.ShiftedExponential, ino.WarmStart),
    "sparse": (ino.Sparse, ino.WarmStart),
    "two bumps": (ino.Uniform, ino.TwoBumps),
}
REGULAR = {
    "InoPCA": lambda: ino.InoPCA(0.5),
    "Cubic": lambda: ino.Cubic(0.5),
    "Oja": lambda: ino.Oja(0.5),
    "Krasulina": lambda: ino.Krasulina(0.3),
    "AdaptiveInoPCA": ino.AdaptiveInoPCA,
    "AdaOja": lambda: ino.AdaOja(200.0),
    "CCIPCA": lambda: ino.CCIPCA(t0=2.0),
}


def example(name, ts=(1.0, 5.0, 20.0), q0=0.1):
    spike, start = EXAMPLES[name]
    return config(spike=spike(), start=start(q0=q0), ts=ts)


def distance(a: ino.Density, b: ino.Density):
    """The L1 distance of the joint densities of (x, xi), at each time."""
    return np.asarray(jnp.einsum("k,tkx->t", a.weights, jnp.abs(a.pdf - b.pdf)) * a.width)


def orders(errors):
    errors = np.array(errors)
    return np.log2(errors[:-1] / errors[1:])


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_density_is_the_closed_form_to_2e_4_at_cells_of_a_twentieth(name):
    study, domain = example(name), (-9.0, 31.0)
    pdf = ino.density(study, solver=ino.FokkerPlanck(cells=800, domain=domain))
    exact = ino.density(study, solver=ino.ClosedForm(cells=800, domain=domain))
    assert np.isclose(pdf.width, 0.05)
    assert np.all(distance(pdf, exact) < 1.5e-4)
    assert np.abs(pdf.moments(0) - 1).max() < 1e-12
    assert float(pdf.pdf.min()) >= 0


def test_second_order_in_the_width_of_the_cells():
    study = example("two bumps")
    domain, ode = (-12.0, 12.0), ino.mean_field(study)
    errors, q, lam = [], [], []
    for cells in (240, 480, 960):
        kind = dict(cells=cells, nodes=8, domain=domain)
        pdf = ino.density(study, solver=ino.FokkerPlanck(dt=0.02, **kind))
        errors.append(distance(pdf, ino.density(study, solver=ino.ClosedForm(**kind))))
        q.append(np.abs(pdf.q - ode.q))
        lam.append(np.abs(pdf.lam - ode.lam))
    assert np.all(np.abs(orders(errors) - 2) < 0.1)
    # The overlap's and the norm's at t = 5, where they are largest.
    assert np.all(np.abs(orders(q)[:, 1] - 2) < 0.1)
    assert np.all(np.abs(orders(lam)[:, 1] - 2) < 0.1)


@pytest.mark.parametrize("name", ["exponential", "two bumps"])
def test_second_order_in_the_step(name):
    study, found = example(name, ts=[1.0, 5.0, 10.0]), []
    for dt in (0.1, 0.05, 0.025, 0.0125):
        solver = ino.FokkerPlanck(cells=300, nodes=8, dt=dt, domain=(-12.0, 24.0))
        found.append(ino.density(study, solver=solver))
    errors = [distance(*pair) for pair in itertools.pairwise(found)]
    assert np.all(np.abs(orders(errors) - 2) < 0.1)


def test_the_discrete_steady_state_is_the_sampled_exact_one():
    for omega in (0.1, 1.0, 3.0):
        study = config(omega=omega, ts=[600.0])
        pdf = ino.density(study, solver=ino.FokkerPlanck(nodes=8, dt=1.5))
        q, lam = ino.steady_state(study)
        exact = norm.pdf(pdf.x, q * lam * pdf.nodes[:, None], lam * np.sqrt(1 - q**2))
        assert np.abs(pdf.pdf[0] - exact).max() < 1e-10
        steady = ino.steady_density(study, nodes=8)
        assert np.isclose(steady.q[0], q, atol=1e-10)
        assert np.isclose(steady.lam[0], lam, rtol=1e-10)
        assert (q == 0) == (omega == 0.1)


@pytest.mark.parametrize("name", REGULAR)
def test_the_overlap_and_the_norm_are_the_mean_fields(name):
    study = config(REGULAR[name](), start=ino.WarmStart(-0.1), ts=[0.5, 2, 5, 10, 20])
    pdf, ode = ino.density(study, solver=ino.FokkerPlanck(nodes=8)), ino.mean_field(study)
    close = {"Krasulina": 6e-4, "CCIPCA": 2e-4}.get(name, 1e-4)  # as the docstring says
    assert np.abs(pdf.q - ode.q).max() < close
    assert np.abs(pdf.lam / ode.lam - 1).max() < close
    assert np.abs(pdf.moments(0) - 1).max() < 1e-12
    assert float(pdf.pdf.min()) >= 0


def test_a_rule_of_the_users_own_has_a_density():
    class Saturating(ino.AbstractRule):
        tau: ino.AbstractSchedule
        projects = False

        def rates(self, sample, tau):
            return ino.Rates(gain=tau / (1 + sample.s2 / 9), decay=tau * sample.lam)

    study = config(Saturating(ino.Harmonic(2.0, t0=3.0)), ts=[1, 5])
    kind = dict(cells=200, nodes=8)
    pdf = ino.density(study, solver=ino.FokkerPlanck(dt=0.05, **kind))
    exact = ino.density(study, solver=ino.ClosedForm(**kind))
    assert np.all(distance(pdf, exact) < 5e-4)


def test_diffrax_on_the_same_cells_agrees():
    study = example("two bumps", ts=[0, 1, 4])
    kind = dict(cells=81, nodes=4, domain=(-10.0, 10.0))
    ours = ino.density(study, solver=ino.FokkerPlanck(dt=0.005, **kind))
    other = ino.density(study, solver=ino.MethodOfLines(rtol=1e-9, atol=1e-11, **kind))
    assert np.array_equal(ours.x, other.x)
    assert np.array_equal(ours.pdf[0], other.pdf[0])
    assert distance(ours, other).max() < 2e-6
    # And at second order: the difference is the steps', not the solvers'.
    coarse = ino.density(study, solver=ino.FokkerPlanck(dt=0.01, **kind))
    ratio = distance(coarse, other)[1:] / distance(ours, other)[1:]
    assert np.all((ratio > 3.7) & (ratio < 4.3))


def switching(times=(3.0, 6.0), ts=(1.0, 3.0, 5.0, 6.0, 6.01, 12.0), start=None):
    spikes = [ino.ShiftedExponential(), ino.Sparse(0.3), ino.Uniform()]
    models = [ino.SpikedModel(p=200, omega=o, spike=s) for o, s in zip((3, 2, 1), spikes)]  # noqa: B905
    return ino.Config(
        model=ino.Switching(models[: len(times) + 1], times),
        start=start or ino.WarmStart(0.3),
        ts=np.asarray(ts),
    )


@pytest.mark.parametrize("start", [ino.WarmStart, ino.TwoBumps])
def test_a_new_spike_meets_the_marginal(start):
    study = switching(start=start(q0=0.3))
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


def test_times_may_repeat_begin_late_and_end_before_a_change():
    full = ino.density(config(ts=[0, 0, 2, 2, 3]), solver=ino.FokkerPlanck(nodes=4))
    assert np.array_equal(full.pdf[0], full.pdf[1])
    assert np.array_equal(full.pdf[2], full.pdf[3])
    late = ino.density(config(ts=[3.0]), solver=ino.FokkerPlanck(nodes=4))
    assert distance(full.at(3.0), late).max() < 1e-5
    short = switching(ts=(0.5, 1.0))
    assert ino.density(short, solver=ino.FokkerPlanck(nodes=4)).nodes.ndim == 1


def functional(tau, solver):
    pdf = ino.density(config(ino.InoPCA(tau), ts=[2.0, 6.0]), solver=solver)
    return pdf.width * jnp.sum(pdf.marginal()[1] ** 2) + pdf.moment(4)[0]


@pytest.mark.parametrize("kind", [ino.FokkerPlanck, ino.ClosedForm])
def test_gradients_in_tau_are_finite_differences(kind):
    solver, step = kind(cells=64, nodes=4), 1e-4
    value = jax.jit(lambda tau: functional(tau, solver))
    ahead, behind = value(0.5 + step), value(0.5 - step)
    gradient = jax.grad(lambda tau: functional(tau, solver))(0.5)
    assert np.isclose(gradient, (ahead - behind) / (2 * step), rtol=1e-5)
    if kind is ino.FokkerPlanck:
        tangent = jax.jvp(lambda tau: functional(tau, solver), (0.5,), (1.0,))[1]
        assert np.isclose(gradient, tangent, rtol=1e-9)


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
    from inopca_jax._theory import fokker_planck

    functional(0.31, solver)
    with Counted(fokker_planck) as count:
        functional(0.37, solver)
    assert not count


class eqxi_count:
    """Counts how often the march is traced."""

    def __init__(self, module):
        self.module = module

    def __enter__(self):
        self.seen, self.hops = [], self.module.hops
        self.module.hops = lambda *a: (self.seen.append(1), self.hops(*a))[1]
        return self.seen

    def __exit__(self, *_):
        self.module.hops = self.hops


def test_the_solver_lowers_for_every_backend():
    solver = ino.FokkerPlanck(cells=64, nodes=4, domain=(-10.0, 10.0))
    lowered = jax.export.export(
        jax.jit(lambda tau: functional(tau, solver)), platforms=("cpu", "cuda", "tpu")
    )(jnp.asarray(0.5))
    assert np.isclose(lowered.call(jnp.asarray(0.5)), functional(0.5, solver), rtol=1e-10)


def test_single_precision_is_good_to_its_own():
    study = example("uniform")
    solver = ino.FokkerPlanck(nodes=8, domain=(-11.0, 11.0))
    wide = ino.density(study, solver=solver)
    with jax.enable_x64(False):
        narrow = ino.density(example("uniform"), solver=solver)
        assert narrow.pdf.dtype == jnp.float32
        assert float(narrow.pdf.min()) >= 0
    assert np.abs(np.asarray(narrow.pdf) - np.asarray(wide.pdf)).max() < 1e-4


def test_conditioning_between_nodes_is_exact_for_gaussian_starts():
    study = example("uniform", ts=[5.0])
    pdf, ode = ino.density(study, solver=ino.ClosedForm()), ino.mean_field(study)
    q, lam = ode.q[0], ode.lam[0]
    for xi in (-1.73, 0.0, 0.4, 1.7):
        exact = norm.pdf(pdf.x, q * lam * xi, lam * np.sqrt(1 - q**2))
        assert np.abs(pdf.conditional(xi)[0] - exact).max() < 1e-5
    node = float(pdf.nodes[7])
    assert np.abs(pdf.conditional(node)[0] - pdf.pdf[0, 7]).max() < 1e-12


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


def test_steps_that_are_too_long_and_cells_that_are_too_wide_are_told():
    wide = ino.FokkerPlanck(cells=60, nodes=8, domain=(-40.0, 40.0))
    with pytest.warns(UserWarning, match="off the mean field's"):
        ino.density(config(ts=[6.0]), solver=wide)
    with pytest.raises(RuntimeError, match="too fast for the steps"):
        ino.density(config(ino.CCIPCA(), ts=[1.0]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ino.density(config(ts=[6.0]), solver=ino.FokkerPlanck(nodes=8))


def test_changes_soon_after_another_are_held_by_the_domain():
    study = switching(times=(5.0, 5.3), ts=(4.0, 20.0))
    pdf = ino.density(study, solver=ino.FokkerPlanck(nodes=8))
    assert np.abs(pdf.q - ino.mean_field(study).q).max() < 5e-3
    # Between the last real node and a filler there is nothing to interpolate.
    assert np.allclose(pdf.width * jnp.sum(pdf.conditional(0.9), axis=1), 1, atol=1e-3)
    soon = switching(times=(1e-4,), ts=(1.0,), start=ino.TwoBumps())
    with pytest.raises(ValueError, match="changes so soon"):
        ino.density(soon, solver=ino.ClosedForm(nodes=4))


class Offset(ino.AbstractDensityStart):
    """A start with a mean of its own."""

    def pdf(self, x, xi):
        return jnp.exp(-((x - 1 - 0.25 * xi) ** 2) / 0.5) / (0.5 * np.sqrt(2 * np.pi))

    def reach(self, xi):
        return 0.25 * xi - 3, 0.25 * xi + 5


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


def test_small_rates_converge_too():
    study = config(ino.InoPCA(0.003), start=ino.WarmStart(0.3, lam0=3.0), ts=[50.0, 200.0])
    ode, gaps = ino.mean_field(study), []
    for cells in (200, 400):
        solver = ino.FokkerPlanck(cells=cells, nodes=4, dt=0.5)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            gaps.append(np.abs(ino.density(study, solver=solver).q - ode.q).max())
    assert gaps[1] < 0.7 * gaps[0] < 0.01


def test_the_steady_density_is_on_the_starts_side():
    study = config(spike=ino.ShiftedExponential(), start=ino.WarmStart(-0.3), ts=[200.0])
    late = ino.density(study, solver=ino.ClosedForm(nodes=8))
    steady = ino.steady_density(study, nodes=8)
    assert np.isclose(steady.moment(1)[0], late.moment(1)[0], atol=1e-6)
    assert steady.q[0] < 0
