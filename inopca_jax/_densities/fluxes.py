"""The Fokker-Planck operator on cells: transition rates, implicit steps in time.

The row of cells is **folded** in the middle: arrays are (rows, 2, nodes), where row k has
the k-th cell from the left edge and the k-th from the right edge, for each node of the
spike's law. A tridiagonal system is then eliminated from both edges at once. The
sequential loop is half as long, and each of its steps handles both sides and all nodes.

**Inner** is the direction towards the middle, **outer** the one towards the edge.
"""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float

from .._rule import AbstractPenalty
from .._types import Real

Folded = Float[Array, "rows 2 nodes"]

# The direction of inwards along x, from the left and from the right edge.
_INWARDS = np.array([1.0, -1.0])


class FoldedCells(eqx.Module):
    """Cells of equal width, folded in the middle.

    If their number is odd, a cell beyond the right edge, which always stays empty, makes
    it even.
    """

    width: Real
    x: Float[Array, "rows 2"]
    odd: bool = eqx.field(static=True)

    def __init__(self, x: Float[Array, " cells"], width: Real):
        """Folds cells of equal width.

        **Arguments:**

        - `x`: the centres of the cells, increasing.
        - `width`: their width.
        """
        self.odd = x.size % 2 == 1
        self.width = width
        self.x = _fold(jnp.append(x, x[-1] + width) if self.odd else x)

    def fold(self, cells: Float[Array, "cells nodes"]) -> Folded:
        return _fold(jnp.pad(cells, ((0, 1), (0, 0))) if self.odd else cells)

    def unfold(self, folded: Folded) -> Float[Array, "cells nodes"]:
        cells = jnp.concatenate([folded[:, 0], folded[::-1, 1]])
        return cells[:-1] if self.odd else cells


def _fold(cells: Array) -> Array:
    half = len(cells) // 2
    return jnp.stack([cells[:half], cells[half:][::-1]], axis=1)


class Coefficients(eqx.Module):
    """The coefficients of `dx = (along xi + back x) dt + sqrt(2 diffusivity) dB`."""

    along: Real
    back: Real
    diffusivity: Real


class PenaltyOnCells(eqx.Module):
    """The derivative `phi` of a penalty `Phi`, on folded cells.

    **Arguments:**

    - `at_faces`: the mean of `phi` between the centres of a cell and its inner neighbour.
      It is a difference of `Phi`, so that the discrete steady state is the exact one also
      where `phi` jumps.
    - `at_centres`: `phi` at the centres.
    - `per_entry`: `phi(x)/x` at an `x` far outside of the cells.
    """

    at_faces: Float[Array, "rows 2"]
    at_centres: Float[Array, "rows 2"]
    per_entry: Real

    def __init__(self, penalty: AbstractPenalty, cells: FoldedCells):
        inwards = jnp.asarray(_INWARDS, cells.x.dtype)[None, :]
        neighbours = cells.x + cells.width * inwards
        difference = penalty.primitive(neighbours) - penalty.primitive(cells.x)
        self.at_faces = difference * inwards / cells.width
        self.at_centres = penalty.phi(cells.x)
        far = 1e3 * jnp.max(jnp.abs(cells.x))
        self.per_entry = penalty.phi(far) / far


class TransitionRates(eqx.Module):
    """The rates at which mass moves between neighbouring cells.

    Row k has the inner face of cell k: `inward` is the rate out of the cell through this
    face, `outward` the rate through it into the cell. In the last row both sides have the
    same face, in the middle of all cells.
    """

    inward: Folded
    outward: Folded

    def time_derivative(self, pdf: Folded) -> Folded:
        """Returns `d pdf/dt`. It conserves mass: no mass passes the edges."""
        flux = self.inward * pdf - self.outward * _inner_neighbour(pdf)
        return _outer_face(flux) - flux

    def total_outflow(self) -> Folded:
        """Returns the rate at which mass leaves each cell, through both faces."""
        return self.inward + _outer_face(self.outward)


def _inner_neighbour(cells: Folded) -> Folded:
    """Returns the inner neighbours' values; in the last row, those of the other side."""
    return jnp.concatenate([cells[1:], cells[-1:, ::-1]])


def _outer_face(faces: Folded) -> Folded:
    """Returns the value at each cell's outer face, which is zero at the edges."""
    return jnp.concatenate([jnp.zeros_like(faces[:1]), faces[:-1]])


def scharfetter_gummel(
    coefficients: Coefficients,
    cells: FoldedCells,
    xi: Float[Array, " nodes"],
    penalty: PenaltyOnCells | None = None,
) -> TransitionRates:
    """Returns the transition rates of Scharfetter and Gummel (Chang and Cooper).

    `inward/outward` is the ratio of the exact steady density across a face, so that this
    density, sampled at the centres, is the discrete steady state. The rates are positive,
    so densities stay positive.

    To leading order the scheme's `d pdf/dt` is the true one after the operator
    `1 + width^2/12 (d^2/dx^2 - (drift/diffusivity) d/dx)`, which multiplies the speed of
    the mean by `1 + ratio`, `ratio = width^2 back/(6 diffusivity)`. A common factor on all
    rates changes neither mass nor signs nor the steady state. The factor `1 - ratio`
    corrects the mean, whose error the instability at small q would amplify, from second to
    fourth order. At large cell Peclet numbers the error of the mean is no such factor:
    `ratio` is damped there. With a penalty, which is subtracted from the drift, the mean is
    of second order.
    """
    faces = cells.x + cells.width / 2 * jnp.asarray(_INWARDS, cells.x.dtype)[None, :]
    drift = coefficients.back * faces[:, :, None] + coefficients.along * xi[None, None, :]
    # A lower bound avoids a division by zero without diffusion or without any motion. It
    # is negligible beside the numerical diffusion of the upwind flux.
    fastest = jnp.abs(coefficients.back) * jnp.max(jnp.abs(faces))
    fastest = fastest + jnp.abs(coefficients.along) * jnp.max(jnp.abs(xi))
    if penalty is not None:
        drift = drift - penalty.at_faces[:, :, None]
        fastest = fastest + jnp.max(jnp.abs(penalty.at_faces))
    least = 1e-6 * cells.width * fastest + jnp.finfo(faces.dtype).tiny ** 0.5
    diffusivity = jnp.maximum(coefficients.diffusivity, least)
    ratio = cells.width**2 * coefficients.back / (6 * diffusivity)
    ratio = ratio / jnp.sqrt(1 + (cells.width * fastest / diffusivity / 12) ** 2)
    scale = diffusivity / cells.width**2 * (1 - ratio)

    inwards = jnp.asarray(_INWARDS, faces.dtype)
    peclet = drift * (cells.width / diffusivity * inwards)[None, :, None]
    # Beyond 40 the flux is the upwind flux to rounding.
    growth = jnp.exp(jnp.clip(peclet, -40, 40))
    # The Bernoulli function `peclet/(growth - 1)` is the common factor of both rates. Their
    # ratio is `growth` however it is rounded, so its cancellation near zero does no harm.
    flat = jnp.abs(peclet) < float(jnp.finfo(faces.dtype).eps) ** 0.2
    steep = peclet / jnp.where(flat, 1, growth - 1)
    outward = scale * jnp.where(flat, 1 - peclet / 2 + peclet**2 / 12, steep)
    if cells.odd:
        outward = outward.at[0, 1].set(0)  # no mass enters the additional cell
    # Without the barrier XLA computes both again in every place that uses them, which
    # costs more than to store them.
    outward, growth = lax.optimization_barrier((outward, growth))
    return TransitionRates(outward * growth, outward)


def step(rates: TransitionRates, pdf: Folded, dt: Real) -> Folded:
    """Returns the density after `dt` at constant rates: second order, never negative.

    `(1 + sqrt 2) S^2 - sqrt 2 S` with `S = (1 - c dt L)^-1`, `c = 1 - 1/sqrt 2`, is the
    L-stable SDIRK scheme of order two, made of two implicit Euler steps. No linear scheme
    of that order is positive at every `dt` (Bolley and Crouzeix), and this one may
    undershoot where the density is narrower than the distance that a step moves or spreads
    it. Nodes at which it does take a Patankar step instead, which is positive.
    """
    fraction = (1 - 0.5**0.5) * dt
    once = resolvent(rates, fraction, pdf)
    twice = resolvent(rates, fraction, once)
    linear = (1 + 2**0.5) * twice - 2**0.5 * once
    # Negative values in the far tails may be smaller than the rounding of the total mass.
    # These are set to zero, and a factor on the others keeps the mass.
    positive_part = jnp.maximum(linear, 0)
    mass = jnp.sum(linear, axis=(0, 1))
    positive_mass = jnp.sum(positive_part, axis=(0, 1))
    rounding = 8 * jnp.finfo(pdf.dtype).eps * positive_mass
    undershoots = positive_mass - mass > rounding
    linear = positive_part * (mass / positive_mass)[None, None, :]

    def replace_undershoots() -> Folded:
        return jnp.where(undershoots[None, None, :], _patankar(rates, pdf, dt), linear)

    return lax.cond(jnp.any(undershoots), replace_undershoots, lambda: linear)


def _patankar(rates: TransitionRates, pdf: Folded, dt: Real) -> Folded:
    """Returns the density after `dt`: second order, positive for any `dt`, nonlinear.

    An implicit Euler step in which the rates out of a cell are multiplied by
    `pdf/midpoint`, where `midpoint` is the result of an implicit Euler step of half the
    length. The flux is then that at the midpoint to second order, and all rates stay
    positive.
    """
    midpoint = resolvent(rates, dt / 2, pdf)
    # Cells with next to no mass keep their rates: the derivative of 0/0 is NaN.
    nonzero = midpoint > jnp.finfo(pdf.dtype).tiny ** 0.5
    weight = jnp.where(nonzero, pdf / jnp.where(nonzero, midpoint, 1), 1)
    weighted = TransitionRates(
        rates.inward * weight, rates.outward * _inner_neighbour(weight)
    )
    return resolvent(weighted, dt, pdf)


def resolvent(rates: TransitionRates, dt: Real, pdf: Folded) -> Folded:
    """Returns `(1 - dt L)^-1 pdf`, an implicit Euler step: positive and of the same mass.

    Its derivative is by the implicit function theorem, a solve with the transpose.
    """
    diagonal = 1 + dt * rates.total_outflow()

    def bands(inward: Folded, outward: Folded) -> tuple[Folded, Folded, Folded]:
        return -dt * _outer_face(inward), diagonal, -dt * outward

    return lax.custom_linear_solve(
        lambda pdf: pdf - dt * rates.time_derivative(pdf),
        pdf,
        solve=lambda _, b: _solve(*bands(rates.inward, rates.outward), b),
        # The transpose exchanges the two rates of every face.
        transpose_solve=lambda _, b: _solve(*bands(rates.outward, rates.inward), b),
    )


def _solve(outer: Folded, diagonal: Folded, inner: Folded, b: Folded) -> Folded:
    """Returns the solution `y` of the tridiagonal system `M y = b`.

    `outer` and `inner` are the elements of `M` that multiply the outer and the inner
    neighbour, which in the last row is the last cell of the other side.
    """
    return lax.platform_dependent(
        outer, diagonal, inner, b, cpu=_by_elimination, default=_by_library
    )


def _by_elimination(outer: Folded, diagonal: Folded, inner: Folded, b: Folded) -> Folded:
    """The solver for CPUs, where LAPACK's, column by column, takes four times as long.

    It needs no pivoting, because the diagonal dominates its column. It takes no difference
    of positive numbers, so that a positive right-hand side has a positive solution.
    """

    def eliminate(carry, row):
        ratio, value = carry
        outer, diagonal, inner, b = row
        inverse = 1 / (diagonal - outer * ratio)
        carry = (inner * inverse, (b - outer * value) * inverse)
        return carry, carry

    def substitute(y, row):
        ratio, value = row
        y = value - ratio * y
        return y, y

    zero = jnp.zeros_like(b[0])
    (ratio, value), rows = lax.scan(eliminate, (zero, zero), (outer, diagonal, inner, b))
    # In the middle, y of one side and z of the other satisfy y + ratio z = value, and the
    # same with the sides exchanged.
    middle = (value - ratio * value[::-1]) / (1 - ratio * ratio[::-1])
    return lax.scan(substitute, middle[::-1], rows, reverse=True)[1]


def _by_library(outer: Folded, diagonal: Folded, inner: Folded, b: Folded) -> Folded:
    """The solver for other backends: JAX's batched one, on unfolded bands."""

    def unfolded(left: Folded, right: Folded) -> Float[Array, "nodes cells"]:
        return jnp.concatenate([left[:, 0], right[::-1, 1]]).T

    bands = unfolded(outer, inner), unfolded(diagonal, diagonal), unfolded(inner, outer)
    columns = unfolded(b, b)[..., None]
    return _fold(lax.linalg.tridiagonal_solve(*bands, columns)[..., 0].T)
