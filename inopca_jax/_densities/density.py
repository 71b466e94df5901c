"""The law of the estimate's entries, as theory gives it."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Bool, Float

from .._check import (
    Checked,
    is_known,
    number,
    plain_number,
    require,
    require_array,
    require_whole,
)
from .._pickling import Pickled
from .._types import Real, Times


class Density(Pickled):
    """`pdf[i, k]` is the density of an entry of the estimate at time `ts[i]` on the grid
    `x`, given that the spike's entry is `nodes[k]`, which has the probability `weights[k]`.

    `nodes` are those of a quadrature, or the spike's point masses where `atoms`. Where the
    spike changes they are (times, nodes), with weights of zero to fill up; `x` is (times,
    cells) after `rescaled`.
    """

    ts: Times
    x: Float[Array, "*rescaled cells"]
    nodes: Float[Array, "*changing nodes"]
    weights: Float[Array, "*changing nodes"]
    pdf: Float[Array, "times nodes cells"]
    atoms: Bool[Array, "*changing"]

    def __check_init__(self):
        require_array("ts", self.ts, "(times,)", ndim=1)
        for name in ("x", "nodes", "weights", "atoms"):
            axes = {"x": "(cells,)", "atoms": "()"}.get(name, "(nodes,)")
            require_array(name, getattr(self, name), f"{axes}, or with times before")
        require_array("pdf", self.pdf, "(times, nodes, cells)", ndim=3)
        shape = (len(self.ts), *self.nodes.shape[-1:], *self.x.shape[-1:])
        if self.pdf.shape != shape or self.weights.shape != self.nodes.shape:
            raise ValueError(
                f"pdf of shape {self.pdf.shape} is not allowed with {len(self.ts)} times, "
                f"nodes of shape {self.nodes.shape}, weights of shape {self.weights.shape} "
                f"and x of shape {self.x.shape}: pass (times, nodes, cells)."
            )

    @property
    def width(self) -> Float[Array, "*rescaled"]:
        """The width of a cell."""
        return (self.x[..., -1] - self.x[..., 0]) / (self.x.shape[-1] - 1)

    def marginal(self) -> Float[Array, "times cells"]:
        """The density of an entry whatever the spike's: `P_t(x)`."""
        return jnp.einsum("tk,tkx->tx", self._rows(self.weights, 1), self.pdf)

    def conditional(self, xi: Checked[ArrayLike]) -> Float[Array, "times cells"]:
        """The density of an entry given the spike's, `P_t(x | xi)`.

        Between two nodes, both of their densities are moved to the mean in between and
        averaged: exact for a Gaussian start, whose densities differ in their means alone.
        A law of point masses has only these to condition on.
        """
        given_xi = number("xi", xi)
        require("xi", xi, np.isfinite, "pass one finite number")
        nodes, weights = self._rows(self.nodes, 1), self._rows(self.weights, 1)
        atoms, width = self._rows(self.atoms, 0), self._rows(self.width, 0)
        require_possible(nodes, weights, atoms, xi)
        given = jax.vmap(_given, in_axes=(0, 0, 0, 0, 0, 0, None))
        return given(nodes, weights, self.moments(1), self.pdf, atoms, width, given_xi)

    def moments(self, order: Checked[int]) -> Float[Array, "times nodes"]:
        """`E[x^order | xi]` at each node; of order 0 it is the mass."""
        order = require_whole("order", order, 0, "pass a whole number, at least 0")
        x, width = self._rows(self.x, 1), self._rows(self.width, 0)
        return jnp.einsum("t,tx,tkx->tk", width, x**order, self.pdf)

    def moment(self, order: Checked[int]) -> Float[Array, " times"]:
        """`E[x^order]`."""
        return jnp.sum(self._rows(self.weights, 1) * self.moments(order), axis=1)

    @property
    def lam(self) -> Float[Array, " times"]:
        """`lam^2 = E[x^2]`: `eq:tracked_par`."""
        return jnp.sqrt(self.moment(2))

    @property
    def q(self) -> Float[Array, " times"]:
        """`q = E[x xi]/lam`: `eq:tracked_par`."""
        both = self._rows(self.weights, 1) * self._rows(self.nodes, 1)
        return jnp.sum(both * self.moments(1), axis=1) / self.lam

    def cdf(self) -> Float[Array, "times cells"]:
        """The marginal's distribution function at the right edges, `x + width/2`."""
        return self._rows(self.width, 0)[:, None] * jnp.cumsum(self.marginal(), axis=1)

    def rescaled(self) -> "Density":
        """The density of `x/lam`, as the paper plots it."""
        lam = self.lam
        x = self._rows(self.x, 1) / lam[:, None]
        pdf = self.pdf * lam[:, None, None]
        return Density(self.ts, x, self.nodes, self.weights, pdf, self.atoms)

    def at(self, t: Checked[float]) -> "Density":
        """The density at the one of `ts` that is nearest to `t`."""
        t = plain_number("t", t, lambda x: ~np.isnan(x), "pass one time")
        i = nearest(self.ts, t)

        def row(array: Array, axes: int) -> Array:
            return array[i : i + 1] if array.ndim > axes else array

        return Density(
            ts=self.ts[i : i + 1],
            x=row(self.x, 1),
            nodes=row(self.nodes, 1),
            weights=row(self.weights, 1),
            pdf=self.pdf[i : i + 1],
            atoms=row(self.atoms, 0),
        )

    def _rows(self, array: Array, axes: int) -> Array:
        """The array with a row for each time, of its last `axes` axes."""
        shape = array.shape[array.ndim - axes :]
        return jnp.broadcast_to(array, (len(self.ts), *shape))


def nearest(ts: Times, t: float) -> int:
    """Which of the times is nearest; a steady state's is infinity, the last."""
    ts = np.asarray(ts)
    return len(ts) - 1 if np.isinf(t) else int(np.argmin(np.abs(ts - t)))


def _given(
    nodes: Float[Array, " nodes"],
    weights: Float[Array, " nodes"],
    means: Float[Array, " nodes"],
    pdf: Float[Array, "nodes cells"],
    atom: Bool[Array, ""],
    width: Real,
    xi: Real,
) -> Float[Array, " cells"]:
    order = jnp.argsort(nodes)
    nodes, means, pdf = nodes[order], means[order], pdf[order]
    closest = jnp.argmin(jnp.abs(nodes - xi))
    if nodes.size == 1:
        return pdf[0]
    # Nodes that only fill up come after those that are there.
    last = jnp.maximum(jnp.sum(weights > 0) - 1, 1).astype(jnp.int32)
    right = jnp.clip(jnp.searchsorted(nodes, xi).astype(jnp.int32), 1, last)
    share = (xi - nodes[right - 1]) / (nodes[right] - nodes[right - 1])
    mean = (1 - share) * means[right - 1] + share * means[right]
    left_pdf = _moved(pdf[right - 1], (mean - means[right - 1]) / width)
    right_pdf = _moved(pdf[right], (mean - means[right]) / width)
    between = (1 - share) * left_pdf + share * right_pdf
    return jnp.where(atom, pdf[closest], between)


def _moved(pdf: Float[Array, " cells"], cells: Real) -> Float[Array, " cells"]:
    """`pdf` moved to the right by a number of cells, by cubic interpolation."""
    whole = jnp.floor(cells)
    f = cells - whole
    taps = jnp.stack(
        [
            -f * (1 - f) * (2 - f) / 6,
            (1 - f) * (1 + f) * (2 - f) / 2,
            f * (1 + f) * (2 - f) / 2,
            -f * (1 - f) * (1 + f) / 6,
        ]
    )
    offsets = jnp.arange(1, -3, -1)
    index = jnp.arange(pdf.size)[:, None] - whole.astype(int) + offsets[None, :]
    # Beyond the grid there is nothing; a negative index would count from the end.
    inside = (index >= 0) & (index < pdf.size)
    values = jnp.where(inside, pdf[jnp.clip(index, 0, pdf.size - 1)], 0)
    return values @ taps


def require_possible(nodes: Array, weights: Array, atoms: Array, xi: ArrayLike) -> None:
    if not is_known(nodes, weights, atoms, xi):
        return
    value = float(xi)  # pyright: ignore[reportArgumentType]
    for row, weight, atom in zip(*map(np.asarray, (nodes, weights, atoms)), strict=True):
        present = np.sort(row[weight > 0])
        if atom:
            possible = np.any(np.abs(present - value) <= 1e-3 * (1 + np.abs(present)))
            remedy = f"the spike's entries are point masses, pass one of {present.tolist()}"
        else:
            # The outermost nodes lie inside of the law's support, by less than a gap.
            gaps = np.diff(present)[[0, -1]] if present.size > 1 else np.zeros(2)
            low, high = present[0] - gaps[0], present[-1] + gaps[1]
            possible = low <= value <= high
            remedy = f"pass a number from {low:.4g} to {high:.4g}, or more nodes"
        if not possible:
            raise ValueError(f"xi = {value} is not allowed: {remedy}.")
