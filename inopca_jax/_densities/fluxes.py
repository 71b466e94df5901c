"""The Fokker-Planck operator on cells: fluxes, their resolvent, one step in time.

The line of cells is **folded** in the middle: arrays are (rows, sides, nodes), where row
k is the k-th cell from the edge, on the left and on the right, for each node of the
spike's law. A tridiagonal system is then eliminated from both edges at once, and what
has to go one after the other is half as long and as wide as the nodes allow.
"""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float

from .._types import Real

Folded = Float[Array, "rows 2 nodes"]


class Line(eqx.Module):
    """Cells of equal width; of an odd number, a cell outside makes them even."""

    width: Real
    x: Float[Array, "rows 2"]
    odd: bool = eqx.field(static=True)

    @staticmethod
    def of(x: Float[Array, " cells"], width: Real) -> "Line":
        odd = x.size % 2 == 1
        x = jnp.append(x, x[-1] + width) if odd else x
        return Line(width, _fold(x), odd)

    def fold(self, cells: Float[Array, "cells nodes"]) -> Folded:
        return _fold(jnp.pad(cells, ((0, 1), (0, 0))) if self.odd else cells)

    def unfold(self, folded: Folded) -> Float[Array, "cells nodes"]:
        cells = jnp.concatenate([folded[:, 0], folded[::-1, 1]])
        return cells[:-1] if self.odd else cells


def _fold(cells: Array) -> Array:
    half = len(cells) // 2
    return jnp.stack([cells[:half], cells[half:][::-1]], axis=1)


class Coefficients(eqx.Module):
    """`dx = (along xi + back x) dt + sqrt(2 spread) dB`, the same for every entry."""

    along: Real
    back: Real
    spread: Real


class Hops(eqx.Module):
    """The semi-discrete equation: mass hops from a cell to its neighbours, at rates that
    depend on the cell it leaves. Row k has the cell's inner face: `inward` from the cell
    through it, `outward` through it into the cell. The last face is both sides'.

    Scharfetter and Gummel's (Chang and Cooper's) fluxes: `inward/outward` is the ratio
    that the exact steady density has across the face, so that this density, sampled at
    the centres, is the discrete steady state; and rates being positive, so are densities.
    """

    inward: Folded
    outward: Folded

    def change(self, pdf: Folded) -> Folded:
        """`d pdf/dt`: what leaves a cell enters another, and nothing passes the edges."""
        beyond = jnp.concatenate([pdf[1:], pdf[-1:, ::-1]])
        flux = self.inward * pdf - self.outward * beyond
        return _from_outside(flux) - flux

    def leaving(self) -> Folded:
        """The rate at which a cell is left."""
        return self.inward + _from_outside(self.outward)


def _from_outside(faces: Folded) -> Folded:
    """What each cell's outer face has; the edges have nothing."""
    return jnp.concatenate([jnp.zeros_like(faces[:1]), faces[:-1]])


def hops(a: Coefficients, line: Line, nodes: Float[Array, " nodes"]) -> Hops:
    """The rates of the equation with the coefficients `a`.

    To leading order the scheme's `d pdf/dt` is the true one after the operator
    `1 + width^2/12 (d^2/dx^2 - (drift/spread) d/dx)`, which slows or hastens the mean by
    the factor `1 + ratio`, `ratio = width^2 back/(6 spread)`. A common factor on all
    rates leaves mass, signs and the steady state as they are: the one that puts the mean
    right takes the error of the mean, which the instability at small q would amplify,
    from second to fourth order. At large cell Peclet numbers the mean's error is no such
    factor: `ratio` is then let go, as the derivative of the scheme's spreading goes.
    """
    sign = np.array([1.0, -1.0])
    inner = line.x + line.width / 2 * jnp.asarray(sign, line.x.dtype)[None, :]
    drift = a.back * inner[:, :, None] + a.along * nodes[None, None, :]
    # Where nothing spreads, or nothing moves at all, there is still something to
    # divide by; it is too little to be seen beside the upwind flux's own spreading.
    fastest = jnp.abs(a.back) * jnp.max(jnp.abs(inner))
    fastest = fastest + jnp.abs(a.along) * jnp.max(jnp.abs(nodes))
    least = 1e-6 * line.width * fastest + jnp.finfo(inner.dtype).tiny ** 0.5
    spread = jnp.maximum(a.spread, least)
    ratio = line.width**2 * a.back / (6 * spread)
    ratio = ratio / jnp.sqrt(1 + (line.width * fastest / spread / 12) ** 2)
    scale = spread / line.width**2 * (1 - ratio)

    peclet = drift * (line.width / spread * jnp.asarray(sign, inner.dtype))[None, :, None]
    # Past 40 the flux is the upwind one to rounding.
    growth = jnp.exp(jnp.clip(peclet, -40, 40))
    # The rates' ratio is `growth` whatever the rounding of their common factor, the
    # Bernoulli function, for which a quotient that cancels near zero is good enough.
    flat = jnp.abs(peclet) < float(jnp.finfo(inner.dtype).eps) ** 0.2
    steep = peclet / jnp.where(flat, 1, growth - 1)
    outward = scale * jnp.where(flat, 1 - peclet / 2 + peclet**2 / 12, steep)
    if line.odd:
        outward = outward.at[0, 1].set(0)  # the cell outside is not to be entered
    # Kept, because to compute it again for each of its uses costs more.
    outward, growth = lax.optimization_barrier((outward, growth))
    return Hops(outward * growth, outward)


def step(rates: Hops, pdf: Folded, dt: Real) -> Folded:
    """The density after `dt` at constant rates, second order in time, never negative.

    Two implicit Euler steps: `(1 + sqrt 2) S^2 - sqrt 2 S`, `S = (1 - c dt L)^-1`,
    `c = 1 - 1/sqrt 2`, is the L-stable SDIRK scheme of order two. No linear scheme of
    that order is positive at every `dt` (Bolley and Crouzeix), and this one may undershoot
    where the density is narrower than a step moves or spreads it: a node's step that does
    is taken again by Patankar's trick, which is.
    """
    part = (1 - 0.5**0.5) * dt
    once = resolvent(rates, part, pdf)
    twice = resolvent(rates, part, once)
    linear = (1 + 2**0.5) * twice - 2**0.5 * once
    # In the far tails, what falls below zero may weigh less than the rounding of the
    # whole: that much is rounded away, by a factor on the rest that keeps the mass.
    above = jnp.maximum(linear, 0)
    mass, kept = jnp.sum(linear, axis=(0, 1)), jnp.sum(above, axis=(0, 1))
    below = kept - mass > 8 * jnp.finfo(pdf.dtype).eps * kept
    linear = above * (mass / kept)[None, None, :]

    def again() -> Folded:
        return jnp.where(below[None, None, :], _patankar(rates, pdf, dt), linear)

    return lax.cond(jnp.any(below), again, lambda: linear)


def _patankar(rates: Hops, pdf: Folded, dt: Real) -> Folded:
    """An implicit Euler step in which what leaves a cell is weighted by `old/middle`, so
    that it is the flux at the midpoint to second order, while all rates stay positive.
    `middle` is an implicit Euler half step."""
    middle = resolvent(rates, dt / 2, pdf)
    # What is next to nothing is left alone: the derivative of 0/0 is not a number.
    there = middle > jnp.finfo(pdf.dtype).tiny ** 0.5
    weight = jnp.where(there, pdf / jnp.where(there, middle, 1), 1)
    beyond = jnp.concatenate([weight[1:], weight[-1:, ::-1]])
    weighted = Hops(rates.inward * weight, rates.outward * beyond)
    return resolvent(weighted, dt, pdf)


def resolvent(rates: Hops, dt: Real, pdf: Folded) -> Folded:
    """`(1 - dt L)^-1 pdf`: an implicit Euler step, positive and of the same mass.

    The derivative is by the implicit function theorem: a solve with the transpose.
    """
    diagonal = 1 + dt * rates.leaving()

    def bands(leaving: Folded, entering: Folded) -> tuple[Folded, Folded, Folded]:
        return -dt * _from_outside(leaving), diagonal, -dt * entering

    return lax.custom_linear_solve(
        lambda pdf: pdf - dt * rates.change(pdf),
        pdf,
        solve=lambda _, b: _solve(*bands(rates.inward, rates.outward), b),
        # In the transpose a face's two rates change places.
        transpose_solve=lambda _, b: _solve(*bands(rates.outward, rates.inward), b),
    )


def _solve(outer: Folded, diagonal: Folded, inner: Folded, b: Folded) -> Folded:
    """`M y = b`, where a row of `M` has its outer neighbour, itself and its inner
    neighbour, which in the last row is the other side's last."""
    return lax.platform_dependent(
        outer, diagonal, inner, b, cpu=_by_elimination, default=_by_library
    )


def _by_elimination(outer: Folded, diagonal: Folded, inner: Folded, b: Folded) -> Folded:
    """On a CPU: LAPACK's solver, column by column, takes four times as long.

    Without pivoting: the diagonal dominates its column, and no difference of positive
    numbers is taken on the way, so that positive densities come out positive.
    """

    def eliminate(carry, row):
        ratio, value = carry
        outer, diagonal, inner, b = row
        inverse = 1 / (diagonal - outer * ratio)
        now = (inner * inverse, (b - outer * value) * inverse)
        return now, now

    def substitute(value, row):
        ratio, partial = row
        value = partial - ratio * value
        return value, value

    nothing = jnp.zeros_like(b[0])
    (ratio, value), rows = lax.scan(
        eliminate, (nothing, nothing), (outer, diagonal, inner, b)
    )
    # Where the two sides meet: y + ratio z = value, and the same with the sides changed.
    met = (value - ratio * value[::-1]) / (1 - ratio * ratio[::-1])
    return lax.scan(substitute, met[::-1], rows, reverse=True)[1]


def _by_library(outer: Folded, diagonal: Folded, inner: Folded, b: Folded) -> Folded:
    """Where there is a batched solver, unfolded: bands of (nodes, cells)."""

    def unfolded(left: Folded, right: Folded) -> Float[Array, "nodes cells"]:
        return jnp.concatenate([left[:, 0], right[::-1, 1]]).T

    bands = unfolded(outer, inner), unfolded(diagonal, diagonal), unfolded(inner, outer)
    columns = unfolded(b, b)[..., None]
    return _fold(lax.linalg.tridiagonal_solve(*bands, columns)[..., 0].T)
