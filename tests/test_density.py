"""Densities: against the closed form, the mean field, and themselves on finer grids."""

import itertools
import warnings

import numpy as np
import pytest
from scipy.stats import norm

import inopca_jax as ino

from .cases import EXAMPLES, config, distance, example, sparing

pytestmark = pytest.mark.usefixtures("x64")

REGULAR = {
    "Cubic": lambda: ino.Cubic(0.5),
    "Oja": lambda: ino.Oja(0.5),
    "Krasulina": lambda: ino.Krasulina(0.3),
    "AdaptiveInoPCA": ino.AdaptiveInoPCA,
    "AdaOja": lambda: ino.AdaOja(200.0),
    "CCIPCA": lambda: ino.CCIPCA(t0=2.0),
}


def orders(errors):
    errors = np.array(errors)
    return np.log2(errors[:-1] / errors[1:])


@pytest.mark.parametrize("name", sparing(EXAMPLES))
def test_the_density_is_the_closed_form_to_2e_4_at_cells_of_a_twentieth(name):
    study, domain = example(name), (-9.0, 31.0)
    pdf = ino.density(study, solver=ino.FokkerPlanck(cells=800, domain=domain))
    exact = ino.density(study, solver=ino.ClosedForm(cells=800, domain=domain))
    assert np.isclose(pdf.width, 0.05)
    assert np.all(distance(pdf, exact) < 1.5e-4)
    assert np.abs(pdf.moments(0) - 1).max() < 1e-12
    assert float(pdf.pdf.min()) >= 0


@pytest.mark.slow
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


@pytest.mark.slow
def test_second_order_in_the_step():
    study, found = example("exponential", ts=[1.0, 5.0, 10.0]), []
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


@pytest.mark.slow
def test_the_steady_density_is_on_the_starts_side():
    study = config(spike=ino.ShiftedExponential(), start=ino.WarmStart(-0.3), ts=[200.0])
    late = ino.density(study, solver=ino.ClosedForm(nodes=8))
    steady = ino.steady_density(study, nodes=8)
    assert np.isclose(steady.moment(1)[0], late.moment(1)[0], atol=1e-6)
    assert steady.q[0] < 0


@pytest.mark.slow
@pytest.mark.parametrize("name", sparing(REGULAR))
def test_the_overlap_and_the_norm_are_the_mean_fields(name):
    study = config(REGULAR[name](), start=ino.WarmStart(-0.1), ts=[0.5, 2, 5, 10, 20])
    pdf, ode = ino.density(study, solver=ino.FokkerPlanck(nodes=4)), ino.mean_field(study)
    close = {"Krasulina": 6e-4, "CCIPCA": 2e-4}.get(name, 1e-4)  # as the docstring says
    assert np.abs(pdf.q - ode.q).max() < close
    assert np.abs(pdf.lam / ode.lam - 1).max() < close
    assert np.abs(pdf.moments(0) - 1).max() < 1e-12
    assert float(pdf.pdf.min()) >= 0


@pytest.mark.slow
@pytest.mark.smoke
def test_a_rule_of_the_users_own_has_a_density():
    class Saturating(ino.AbstractRule):
        tau: ino.AbstractSchedule
        projects = False

        def rates(self, observables, tau):
            return ino.Rates(
                gain=tau / (1 + observables.s2 / 9), decay=tau * observables.lam
            )

    study = config(Saturating(ino.Harmonic(2.0, t0=3.0)), ts=[1, 5])
    kind = dict(cells=200, nodes=8)
    pdf = ino.density(study, solver=ino.FokkerPlanck(dt=0.05, **kind))
    exact = ino.density(study, solver=ino.ClosedForm(**kind))
    assert np.all(distance(pdf, exact) < 5e-4)


@pytest.mark.slow
def test_small_rates_converge_too():
    study = config(ino.InoPCA(0.003), start=ino.WarmStart(0.3, lam0=3.0), ts=[50.0, 200.0])
    ode, gaps = ino.mean_field(study), []
    for cells in (200, 400):
        solver = ino.FokkerPlanck(cells=cells, nodes=4, dt=0.5)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            gaps.append(np.abs(ino.density(study, solver=solver).q - ode.q).max())
    assert gaps[1] < 0.7 * gaps[0] < 0.01


@pytest.mark.slow
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


@pytest.mark.slow
def test_a_density_that_is_blurred_by_long_steps_is_told_by_a_warning():
    """Its moments are right to 0.007, its L1 distance from the exact one is 0.05."""
    blurred = ino.Config(
        ino.Oja(0.0123),
        ino.SpikedModel(10_000, omega=266.0),
        ino.Box(0.1, 0.145),
        np.array([0.54]),
    )
    with pytest.warns(UserWarning, match=r"At t = 0.54 the density is 0.05 off .*dt"):
        pdf = ino.density(blurred)
    exact = ino.density(blurred, solver=ino.ClosedForm())
    assert 0.04 < float(distance(pdf, exact)[0]) < 0.06
    finer = ino.FokkerPlanck(dt=0.0125)
    assert float(distance(ino.density(blurred, solver=finer), exact)[0]) < 0.02
