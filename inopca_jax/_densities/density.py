"""The density of the entries of the estimate, as theory predicts it."""

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
from .._result import AbstractResult, Variables
from .._types import Real, Times


class Density(AbstractResult):
    """The density of an entry of the estimate given the spike's entry, at several times.

    `pdf[i, k]` is the density at time `ts[i]` and at the points `x`, given that the spike's
    entry is `nodes[k]`, which has the probability `weights[k]`.

    **Arguments:**

    - `ts`: the times, of shape (times,).
    - `x`: the centres of the cells, equally spaced, of shape (cells,); of shape (times,
      cells) after `rescaled`.
    - `nodes`, `weights`: the nodes of a quadrature over the law of the spike's entry, of
      shape (nodes,). Of shape (times, nodes) if the spike switches; a law with fewer nodes
      than another then has additional ones, of weight zero.
    - `pdf`: of shape (times, nodes, cells).
    - `atoms`: whether the nodes are point masses of the law, of shape () or (times,).

    **Example:**

    ```pycon
    >>> import inopca_jax as ino
    >>> config = ino.Config(model=ino.SpikedModel(p=100), ts=[0.0, 1.0, 2.0])
    >>> pdf = ino.density(config)
    >>> pdf.marginal().shape == (3, len(pdf.x))
    True
    >>> round(float(pdf.moment(0)[-1]), 4)
    1.0
    ```
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

    def _variables(self) -> tuple[Variables, Variables, str]:
        coords: Variables = {"time": (("time",), self.ts)}
        for name, dims in dict(
            x=("cell",), nodes=("node",), weights=("node",), atoms=()
        ).items():
            array = getattr(self, name)
            coords[name] = (("time", *dims) if array.ndim > len(dims) else dims, array)
        return {"pdf": (("time", "node", "cell"), self.pdf)}, coords, ""

    @property
    def width(self) -> Float[Array, "*rescaled"]:
        """The width of a cell, of shape () or (times,)."""
        return (self.x[..., -1] - self.x[..., 0]) / (self.x.shape[-1] - 1)

    def marginal(self) -> Float[Array, "times cells"]:
        """Returns the marginal density of an entry, `P_t(x)`.

        **Returns:**

        An array of shape (times, cells).
        """
        return jnp.einsum("tk,tkx->tx", self._rows(self.weights, 1), self.pdf)

    def conditional(self, xi: Checked[ArrayLike]) -> Float[Array, "times cells"]:
        """Returns the density of an entry given the spike's entry, `P_t(x | xi)`.

        Between two nodes, the densities at both are shifted to the interpolated mean and
        averaged. This is exact for a Gaussian start, whose conditional densities differ in
        their means alone.

        **Arguments:**

        - `xi`: the spike's entry, one number. If the law has point masses, one of these.

        **Returns:**

        An array of shape (times, cells).
        """
        xi_leaf = number("xi", xi)
        require("xi", xi, np.isfinite, "pass one finite number")
        nodes, weights = self._rows(self.nodes, 1), self._rows(self.weights, 1)
        atoms, width = self._rows(self.atoms, 0), self._rows(self.width, 0)
        require_in_support(nodes, weights, atoms, xi)
        conditional = jax.vmap(_conditional, in_axes=(0, 0, 0, 0, 0, 0, None))
        means = self.moments(1)
        return conditional(nodes, weights, means, self.pdf, atoms, width, xi_leaf)

    def moments(self, order: Checked[int]) -> Float[Array, "times nodes"]:
        """Returns `E[x^order | xi]` at each node.

        **Arguments:**

        - `order`: a whole number; the moment of order 0 is the mass.

        **Returns:**

        An array of shape (times, nodes).
        """
        order = require_whole("order", order, 0, "pass a whole number, at least 0")
        x, width = self._rows(self.x, 1), self._rows(self.width, 0)
        return jnp.einsum("t,tx,tkx->tk", width, x**order, self.pdf)

    def moment(self, order: Checked[int]) -> Float[Array, " times"]:
        """Returns `E[x^order]` at each time.

        **Arguments:**

        - `order`: a whole number.

        **Returns:**

        An array of shape (times,).
        """
        return jnp.sum(self._rows(self.weights, 1) * self.moments(order), axis=1)

    @property
    def lam(self) -> Float[Array, " times"]:
        """The norm, `lam^2 = E[x^2]` (`eq:tracked_par`), of shape (times,)."""
        return jnp.sqrt(self.moment(2))

    @property
    def q(self) -> Float[Array, " times"]:
        """The overlap, `q = E[x xi]/lam` (`eq:tracked_par`), of shape (times,)."""
        weighted_nodes = self._rows(self.weights, 1) * self._rows(self.nodes, 1)
        return jnp.sum(weighted_nodes * self.moments(1), axis=1) / self.lam

    def cdf(self) -> Float[Array, "times cells"]:
        """Returns the distribution function of the marginal.

        **Returns:**

        Its values at the right edges of the cells, `x + width/2`, of shape (times, cells).
        """
        return self._rows(self.width, 0)[:, None] * jnp.cumsum(self.marginal(), axis=1)

    def rescaled(self) -> "Density":
        """Returns the density of `x/lam`, as the paper plots it.

        **Returns:**

        A `Density`, whose `x` has the shape (times, cells).
        """
        lam = self.lam
        x = self._rows(self.x, 1) / lam[:, None]
        pdf = self.pdf * lam[:, None, None]
        return Density(self.ts, x, self.nodes, self.weights, pdf, self.atoms)

    def at(self, t: Checked[float]) -> "Density":
        """Returns the density at the one of `ts` that is nearest to the time `t`.

        **Arguments:**

        - `t`: a time.

        **Returns:**

        A `Density` with this one time.
        """
        t = plain_number("t", t, lambda x: ~np.isnan(x), "pass one time")
        i = nearest_index(self.ts, t)

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
        """Returns the array with an axis of times before its last `axes` axes."""
        shape = array.shape[array.ndim - axes :]
        return jnp.broadcast_to(array, (len(self.ts), *shape))


def nearest_index(ts: Times, t: float) -> int:
    """Returns the index of the time nearest to `t`, the last one if `t` is infinite."""
    ts = np.asarray(ts)
    return len(ts) - 1 if np.isinf(t) else int(np.argmin(np.abs(ts - t)))


def _conditional(
    nodes: Float[Array, " nodes"],
    weights: Float[Array, " nodes"],
    means: Float[Array, " nodes"],
    pdf: Float[Array, "nodes cells"],
    atoms: Bool[Array, ""],
    width: Real,
    xi: Real,
) -> Float[Array, " cells"]:
    """Returns the density given `xi` at one time."""
    order = jnp.argsort(nodes)
    nodes, means, pdf = nodes[order], means[order], pdf[order]
    closest = jnp.argmin(jnp.abs(nodes - xi))
    if nodes.size == 1:
        return pdf[0]
    # Additional nodes, of weight zero, come after the others.
    last = jnp.maximum(jnp.sum(weights > 0) - 1, 1).astype(jnp.int32)
    right = jnp.clip(jnp.searchsorted(nodes, xi).astype(jnp.int32), 1, last)
    fraction = (xi - nodes[right - 1]) / (nodes[right] - nodes[right - 1])
    mean = (1 - fraction) * means[right - 1] + fraction * means[right]
    left_pdf = _shifted(pdf[right - 1], (mean - means[right - 1]) / width)
    right_pdf = _shifted(pdf[right], (mean - means[right]) / width)
    interpolated = (1 - fraction) * left_pdf + fraction * right_pdf
    return jnp.where(atoms, pdf[closest], interpolated)


def _shifted(pdf: Float[Array, " cells"], cells: Real) -> Float[Array, " cells"]:
    """Returns `pdf` shifted to the right by a number of cells, by cubic interpolation."""
    whole = jnp.floor(cells)
    f = cells - whole
    weights = jnp.stack(
        [
            -f * (1 - f) * (2 - f) / 6,
            (1 - f) * (1 + f) * (2 - f) / 2,
            f * (1 + f) * (2 - f) / 2,
            -f * (1 - f) * (1 + f) / 6,
        ]
    )
    offsets = jnp.arange(1, -3, -1)
    index = jnp.arange(pdf.size)[:, None] - whole.astype(int) + offsets[None, :]
    # The density is zero beyond the grid; a negative index would count from the end.
    inside = (index >= 0) & (index < pdf.size)
    values = jnp.where(inside, pdf[jnp.clip(index, 0, pdf.size - 1)], 0)
    return values @ weights


def require_in_support(nodes: Array, weights: Array, atoms: Array, xi: ArrayLike) -> None:
    """Raises `ValueError` if the spike's law has no entry `xi` at one of the times.

    **Arguments:**

    - `nodes`, `weights`: of shape (times, nodes).
    - `atoms`: of shape (times,).
    - `xi`: one number.
    """
    if not is_known(nodes, weights, atoms, xi):
        return
    value = float(xi)  # pyright: ignore[reportArgumentType]
    for row, weight, atom in zip(*map(np.asarray, (nodes, weights, atoms)), strict=True):
        present = np.sort(row[weight > 0])
        if atom:
            possible = np.any(np.abs(present - value) <= 1e-3 * (1 + np.abs(present)))
            remedy = f"the spike's entries are point masses, pass one of {present.tolist()}"
        else:
            # The support extends beyond the outermost nodes, by less than their distance
            # to the next ones.
            gaps = np.diff(present)[[0, -1]] if present.size > 1 else np.zeros(2)
            low, high = present[0] - gaps[0], present[-1] + gaps[1]
            possible = low <= value <= high
            remedy = f"pass a number from {low:.4g} to {high:.4g}, or more nodes"
        if not possible:
            raise ValueError(f"xi = {value} is not allowed: {remedy}.")
