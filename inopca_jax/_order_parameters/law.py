"""What is known of the overlap over runs: its law, and when it passes a level."""

import equinox as eqx
import jax.numpy as jnp
from jax.scipy.stats import norm
from jaxtyping import Array, ArrayLike, Float

from .._check import Checked, number, require
from .._config import cast
from .._pickling import Pickled
from .._trajectory import Trajectory
from .._types import Real, Times
from .increments import root
from .integrate import in_double


class OverlapLaw(Pickled):
    """The law of the overlap over runs, at each time.

    Within `|q| < edge` it is that of `near`: normal, with the mean `q + q_shift` and the
    standard deviation `q_std`. Beyond, it is a mixture of `paths` (lanes, times) with
    `weights`, each normal likewise: runs that left across the edge, at a time of their own.
    """

    ts: Times
    near: Trajectory
    edge: Float[Array, " times"]
    paths: Trajectory
    weights: Float[Array, "lanes times"]

    def abs(self) -> Trajectory:
        """The means of `|q|` and `lam`, with `q_std` and `lam_std` about them."""
        # A small variance is the difference of large numbers.
        return eqx.tree_at(lambda t: t.ts, in_double(_sizes, self), self.ts)

    @eqx.filter_jit
    def _sizes(self) -> Trajectory:
        mass, first, second = _within(*centre(self.near, "q"), self.edge)
        mean, std = centre(self.paths, "q")
        _, far, _ = _within(mean, std, jnp.inf)
        # The variance of |q|, without its cancellation where q keeps its sign.
        far_variance = std**2 + (jnp.abs(mean) - far) * (jnp.abs(mean) + far)
        q = first + jnp.sum(self.weights * far, 0)
        q_variance = second - 2 * q * first + q**2 * mass
        q_variance += jnp.sum(self.weights * (far_variance + (far - q[None, :]) ** 2), 0)

        near, near_std = centre(self.near, "lam")
        near = self.near.lam + self.part() * (near - self.near.lam)
        far, far_std = centre(self.paths, "lam")
        lam = mass * near + jnp.sum(self.weights * far, 0)
        lam_variance = mass * ((near - lam) ** 2 + near_std**2)
        lam_variance += jnp.sum(self.weights * ((far - lam[None, :]) ** 2 + far_std**2), 0)
        return Trajectory(
            self.ts, q, lam, q_std=root(q_variance), lam_std=root(lam_variance)
        )

    @eqx.filter_jit
    def part(self) -> Float[Array, " times"]:
        """How large `q^2` is in the mean of those within the edge, over that of the normal
        law without one. By this the norm's shift, which it owes to `q^2`, is too large."""
        mean, std = centre(self.near, "q")
        mass, _, square = _within(mean, std, self.edge)
        return jnp.where(mass > 0, square / jnp.where(mass > 0, mass, 1), 0) / (
            mean**2 + std**2
        )

    def exceeds(self, level: Checked[ArrayLike]) -> Float[Array, " times"]:
        """`P(|q_t| >= level)`."""
        number("level", level)
        return self._exceeds(jnp.asarray(level, self.edge.dtype))

    @eqx.filter_jit
    def _exceeds(self, level: Real) -> Float[Array, " times"]:
        near, far = (
            norm.sf(level, *centre(side, "q")) + norm.cdf(-level, *centre(side, "q"))
            for side in (self.near, self.paths)
        )
        return jnp.where(level < self.edge, near, jnp.sum(self.weights * far, 0))


def _sizes(law: OverlapLaw) -> Trajectory:
    return cast(law, jnp.result_type(float))._sizes()


class EscapeTime(Pickled):
    """The law of the time at which `|q|` first passes a level: its `cdf` at `ts`."""

    ts: Float[Array, " times"]
    cdf: Float[Array, " times"]

    def quantile(self, probability: Checked[ArrayLike]) -> Array:
        """By when this part of the runs has passed; infinite if not within `ts`."""
        remedy = "pass numbers from 0 to 1"
        require("probability", probability, lambda x: (x >= 0) & (x <= 1), remedy)
        probability = jnp.asarray(probability, self.cdf.dtype)
        found = jnp.interp(probability, self.cdf, self.ts)
        found = jnp.where(probability > self.cdf[0], found, self.ts[0])
        return jnp.where(probability > self.cdf[-1], jnp.inf, found)

    def pdf(self) -> Float[Array, " times"]:
        """The density at `ts`, by differences."""
        width = jnp.diff(self.ts)
        slope = jnp.where(width > 0, jnp.diff(self.cdf) / jnp.where(width > 0, width, 1), 0)
        return jnp.concatenate([slope[:1], (slope[1:] + slope[:-1]) / 2, slope[-1:]])


def centre(side: Trajectory, name: str) -> tuple[Array, Array]:
    """The mean and the standard deviation, held off zero, which they are divided by."""
    mean, shift, std = (getattr(side, name + end) for end in ("", "_shift", "_std"))
    return mean + shift, jnp.maximum(std, jnp.finfo(std.dtype).tiny)


def _within(mean: Array, std: Array, edge: Array | float) -> tuple[Array, Array, Array]:
    """The expectations of 1, `|q|` and `q^2` over `|q| < edge`, of normal laws."""
    total, first, second = (jnp.zeros_like(mean) for _ in range(3))
    for centre in (mean, -mean):  # of q in [0, edge), then of -q
        low, high = -centre / std, (edge - centre) / std
        mass = norm.cdf(high) - norm.cdf(low)
        top = jnp.where(jnp.isfinite(high), (centre + edge) * norm.pdf(high), 0)
        total += mass
        first += centre * mass + std * (norm.pdf(low) - norm.pdf(high))
        second += (centre**2 + std**2) * mass + std * (centre * norm.pdf(low) - top)
    # Of a law so wide that it is flat within the edge, without the cancellation.
    flat = std > 30 * edge
    first = jnp.where(flat, total * edge / 2, first)
    second = jnp.where(flat, total * edge**2 / 3, second)
    return total, first, second
