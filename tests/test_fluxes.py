"""The Fokker-Planck operator on cells: what it keeps, what it solves."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.linalg import expm
from scipy.stats import norm

from inopca_jax._densities import fluxes
from inopca_jax._densities.fluxes import (
    Coefficients,
    FoldedCells,
    resolvent,
    scharfetter_gummel,
    step,
)

from .cases import sparing

pytestmark = pytest.mark.usefixtures("x64")

NODES = np.array([-1.0, 0.3, 2.0])


def setting(cells=40, along=0.7, back=-0.4, spread=0.3):
    edges = jnp.linspace(-6.0, 8.0, cells + 1)
    x, width = (edges[1:] + edges[:-1]) / 2, edges[1] - edges[0]
    line = FoldedCells(x, width)
    a = Coefficients(*map(jnp.asarray, (along, back, spread)))
    return x, line, scharfetter_gummel(a, line, jnp.asarray(NODES))


def generator(line, rates, cells, node):
    """The matrix of `d pdf/dt`, column by column, for one node."""
    columns = []
    for j in range(cells):
        unit = jnp.zeros((cells, NODES.size)).at[j].set(1.0)
        columns.append(
            np.asarray(line.unfold(rates.time_derivative(line.fold(unit))))[:, node]
        )
    return np.stack(columns, axis=1)


@pytest.mark.parametrize("cells", [40, 41])
def test_folding_is_undone_by_unfolding(cells):
    _, line, _ = setting(cells)
    values = jnp.arange(cells * 3.0).reshape(cells, 3)
    assert np.array_equal(line.unfold(line.fold(values)), values)


@pytest.mark.parametrize("cells", [40, 41])
def test_rates_are_those_of_a_markov_chain_with_the_exact_steady_state(cells):
    x, line, rates = setting(cells)
    for node, xi in enumerate(NODES):
        matrix = generator(line, rates, cells, node)
        off = matrix - np.diag(np.diag(matrix))
        assert np.all(off >= 0)
        assert np.count_nonzero(off) == 2 * (cells - 1)
        assert np.allclose(matrix.sum(axis=0), 0, atol=1e-13 * np.abs(matrix).max())
        # dx = (.7 xi - .4 x) dt + sqrt(.6) dB rests at N(1.75 xi, .75).
        steady = norm.pdf(x, 0.7 / 0.4 * xi, np.sqrt(0.3 / 0.4))
        assert np.abs(matrix @ steady).max() < 1e-14 * np.abs(matrix).max()


@pytest.mark.parametrize(("along", "back"), sparing([(0.7, -0.4), (-1.3, 0.2)]))
def test_the_scheme_is_consistent_to_second_order(along, back):
    # Away from the edges, a polynomial's flux: -(drift f)' + spread f''.
    errors = []
    for cells in (160, 320, 640):
        x, line, rates = setting(cells, along, back)
        pdf = jnp.cos(0.7 * x)[:, None] * jnp.ones(3)[None, :]
        found = line.unfold(rates.time_derivative(line.fold(pdf)))[5:-5]
        drift = along * NODES[None, :] + back * x[:, None]
        f, df = np.cos(0.7 * x)[:, None], -0.7 * np.sin(0.7 * x)[:, None]
        exact = -back * f - drift * df - 0.3 * 0.49 * f
        errors.append(np.abs(found - exact[5:-5]).max())
    orders = np.log2(np.array(errors[:-1]) / errors[1:])
    assert np.all((orders > 1.9) & (orders < 2.1))


@pytest.mark.parametrize("cells", [40, 41])
@pytest.mark.parametrize("solver", ["_by_elimination", "_by_library"])
def test_the_resolvent_and_its_transpose_are_inverses(cells, solver, monkeypatch):
    monkeypatch.setattr(fluxes, "_solve", getattr(fluxes, solver))
    _, line, rates = setting(cells)
    rng = np.random.default_rng(0)
    pdf, weight = (jnp.asarray(rng.random((cells, 3))) for _ in range(2))

    def solved(pdf):
        return line.unfold(resolvent(rates, jnp.asarray(0.3), line.fold(pdf)))

    found, pull = jax.vjp(solved, pdf)
    for node in range(3):
        inverse = np.linalg.inv(np.eye(cells) - 0.3 * generator(line, rates, cells, node))
        assert np.allclose(found[:, node], inverse @ pdf[:, node], rtol=1e-12)
        assert np.allclose(
            pull(weight)[0][:, node], inverse.T @ weight[:, node], rtol=1e-12
        )


def test_a_step_is_the_exponential_to_second_order_and_positive_for_any_length():
    x, line, rates = setting(40)
    smooth = norm.pdf(x[:, None], NODES[None, :], 1.2)
    spike = np.zeros((40, 3))
    spike[17] = 1.0
    matrices = [generator(line, rates, 40, node) for node in range(3)]
    errors = []
    for dt in (0.2, 0.1, 0.05):
        new = line.unfold(step(rates, line.fold(jnp.asarray(smooth)), jnp.asarray(dt)))
        exact = [expm(dt * m) @ smooth[:, k] for k, m in enumerate(matrices)]
        errors.append(np.abs(new - np.stack(exact, axis=1)).max())
    orders = np.log2(np.array(errors[:-1]) / errors[1:])
    assert np.all((orders > 2.8) & (orders < 3.2))  # of one step
    for dt in (0.01, 1.0, 100.0):
        new = step(rates, line.fold(jnp.asarray(spike)), jnp.asarray(dt))
        assert float(new.min()) >= 0
        assert np.allclose(np.asarray(line.unfold(new)).sum(axis=0), 1, rtol=1e-12)


def test_patankars_step_is_of_second_order_too():
    x, line, rates = setting(40)
    smooth = norm.pdf(x[:, None], NODES[None, :], 1.2)
    errors = []
    for dt in (0.1, 0.05, 0.025):
        new = line.unfold(
            fluxes._patankar(rates, line.fold(jnp.asarray(smooth)), jnp.asarray(dt))
        )
        exact = expm(dt * generator(line, rates, 40, 1)) @ smooth[:, 1]
        errors.append(np.abs(new[:, 1] - exact).max())
    orders = np.log2(np.array(errors[:-1]) / errors[1:])
    assert np.all(orders > 2.5)


def test_no_noise_and_no_motion_are_no_trouble():
    for values in ((0.0, 0.0, 0.0), (0.7, -0.4, 0.0), (50.0, -20.0, 1e-9)):
        rates = setting(40, *values)[2]
        for rate in (rates.inward, rates.outward):
            assert np.all(np.isfinite(rate))
            assert np.all(rate >= 0)
        gradient = jax.grad(lambda s, v=values: setting(40, v[0], v[1], s)[2].inward.sum())
        assert np.isfinite(gradient(values[2]))


def test_steps_of_nearly_nothing_have_derivatives():
    x, line, _ = setting(40)
    narrow = line.fold(jnp.asarray(norm.pdf(x[:, None], NODES[None, :], 0.4)))

    def spent(spread):
        a = Coefficients(jnp.asarray(0.7), jnp.asarray(-0.4), spread)
        new = step(
            scharfetter_gummel(a, line, jnp.asarray(NODES)), narrow, jnp.asarray(2.0)
        )
        return jnp.sum(new**2)

    ahead, behind = spent(jnp.asarray(0.01 + 1e-6)), spent(jnp.asarray(0.01 - 1e-6))
    assert np.isclose(jax.grad(spent)(0.01), (ahead - behind) / 2e-6, rtol=1e-5)
