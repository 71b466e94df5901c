"""The law of the overlap over runs, and of the time at which it passes a level."""

import equinox as eqx
import jax.numpy as jnp
from jax.scipy.special import erfc
from jax.scipy.stats import norm
from jaxtyping import Array, ArrayLike, Float

from .._check import Checked, number, require
from .._numerics import cast, root
from .._result import AbstractResult, Variables
from .._trajectory import Prediction
from .._types import Real, Times
from .integrate import in_double


class OverlapLaw(AbstractResult):
    """The law of the overlap over runs, at each time.

    Runs with `|q|` below an edge are described by one normal law. Runs that have left
    across the edge follow the mean field, each from the time at which it left: their law is
    a mixture of normal laws.

    **Arguments:**

    - `ts`: the times.
    - `near`: the normal law within `|q| < edge`, of shape (times,).
    - `edge`: the edge at each time, infinite where the normal law holds everywhere.
    - `paths`: the components of the mixture beyond the edge, of shape (paths, times).
    - `weights`: the probabilities of the components, of shape (paths, times).

    **Example:**

    ```pycon
    >>> import inopca_jax as ino
    >>> config = ino.Config(start=ino.ColdStart(), ts=[0.0, 10.0, 50.0])
    >>> law = ino.overlap_law(config)
    >>> [round(float(mass), 2) for mass in law.exceeds(0.5)]
    [0.0, 0.07, 1.0]
    ```
    """

    ts: Times
    near: Prediction
    edge: Float[Array, " times"]
    paths: Prediction
    weights: Float[Array, "paths times"]

    def _variables(self) -> tuple[Variables, Variables, str]:
        variables: Variables = {"edge": (("time",), self.edge)}
        variables["weights"] = (("path", "time"), self.weights)
        for name, value in vars(self.near).items():
            if name != "ts":
                variables[f"near_{name}"] = (("time",), value)
                variables[f"paths_{name}"] = (("path", "time"), getattr(self.paths, name))
        return variables, {"time": (("time",), self.ts)}, ""

    def abs(self) -> Prediction:
        """Returns the means of `|q|` and `lam` over runs, with their standard deviations.

        **Returns:**

        A `Prediction` whose `q` and `lam` are the means themselves, so that `q_shift` and
        `lam_shift` are 0; the correlation is not computed and NaN.
        """
        # A small variance is the difference of large numbers.
        return eqx.tree_at(lambda t: t.ts, in_double(_absolute, self), self.ts)

    @eqx.filter_jit
    def _absolute(self) -> Prediction:
        mass, first, second = _moments_within(*mean_and_std(self.near, "q"), self.edge)
        mean, std = mean_and_std(self.paths, "q")
        _, far, _ = _moments_within(mean, std, jnp.inf)
        # The variance of |q|, without its cancellation where q keeps its sign.
        far_variance = std**2 + (jnp.abs(mean) - far) * (jnp.abs(mean) + far)
        q = first + jnp.sum(self.weights * far, 0)
        q_variance = second - 2 * q * first + q**2 * mass
        q_variance += jnp.sum(self.weights * (far_variance + (far - q[None, :]) ** 2), 0)

        near, near_std = mean_and_std(self.near, "lam")
        near = self.near.lam + self.truncation() * (near - self.near.lam)
        far, far_std = mean_and_std(self.paths, "lam")
        lam = mass * near + jnp.sum(self.weights * far, 0)
        lam_variance = mass * ((near - lam) ** 2 + near_std**2)
        lam_variance += jnp.sum(self.weights * ((far - lam[None, :]) ** 2 + far_std**2), 0)
        zero, unknown = jnp.zeros_like(q), jnp.full_like(q, jnp.nan)
        return Prediction(
            ts=self.ts,
            q=q,
            lam=lam,
            q_std=root(q_variance),
            lam_std=root(lam_variance),
            correlation=unknown,
            q_shift=zero,
            lam_shift=zero,
        )

    @eqx.filter_jit
    def truncation(self) -> Float[Array, " times"]:
        """Returns the mean of `q^2` within the edge, over that of the normal law without an
        edge. The shift of the norm, which is proportional to `q^2`, has to be reduced by
        this factor."""
        mean, std = mean_and_std(self.near, "q")
        mass, _, square = _moments_within(mean, std, self.edge)
        return jnp.where(mass > 0, square / jnp.where(mass > 0, mass, 1), 0) / (
            mean**2 + std**2
        )

    def exceeds(self, level: Checked[ArrayLike]) -> Float[Array, " times"]:
        """Returns `P(|q_t| >= level)` at each time.

        **Arguments:**

        - `level`: one number.

        **Returns:**

        The probabilities, of shape (times,).
        """
        number("level", level)
        return self._exceeds(jnp.asarray(level, self.edge.dtype))

    @eqx.filter_jit
    def _exceeds(self, level: Real) -> Float[Array, " times"]:
        near, far = (
            probability_beyond(side, 1, level) + probability_beyond(side, -1, level)
            for side in (self.near, self.paths)
        )
        return jnp.where(level < self.edge, near, jnp.sum(self.weights * far, 0))


def _absolute(law: OverlapLaw) -> Prediction:
    return cast(law, jnp.result_type(float))._absolute()


class EscapeTime(AbstractResult):
    """The law of the time at which `|q|` first passes a level.

    **Arguments:**

    - `ts`: times, increasing.
    - `cdf`: the probability that the level is passed by each of them.

    **Example:**

    ```pycon
    >>> import inopca_jax as ino
    >>> import jax.numpy as jnp
    >>> ts, cdf = jnp.array([0.0, 1.0, 2.0]), jnp.array([0.0, 0.5, 0.9])
    >>> escape = ino.EscapeTime(ts, cdf)
    >>> escape.quantile([0.25, 0.95]).tolist()
    [0.5, inf]
    ```
    """

    ts: Float[Array, " times"]
    cdf: Float[Array, " times"]

    def _variables(self) -> tuple[Variables, Variables, str]:
        return {"cdf": (("time",), self.cdf)}, {"time": (("time",), self.ts)}, ""

    def quantile(self, probability: Checked[ArrayLike]) -> Array:
        """Returns the time by which this fraction of the runs has passed the level.

        It is infinite if that is after the last of `ts`.

        **Arguments:**

        - `probability`: numbers from 0 to 1, of any shape.

        **Returns:**

        The times, of the same shape.
        """
        remedy = "pass numbers from 0 to 1"
        require("probability", probability, lambda x: (x >= 0) & (x <= 1), remedy)
        probability = jnp.asarray(probability, self.cdf.dtype)
        times = jnp.interp(probability, self.cdf, self.ts)
        times = jnp.where(probability > self.cdf[0], times, self.ts[0])
        return jnp.where(probability > self.cdf[-1], jnp.inf, times)

    def pdf(self) -> Float[Array, " times"]:
        """Returns the density at `ts`, by finite differences."""
        width = jnp.diff(self.ts)
        slope = jnp.where(width > 0, jnp.diff(self.cdf) / jnp.where(width > 0, width, 1), 0)
        return jnp.concatenate([slope[:1], (slope[1:] + slope[:-1]) / 2, slope[-1:]])


def mean_and_std(law: Prediction, name: str) -> tuple[Array, Array]:
    """Returns the mean and the standard deviation of `q` or `lam` over runs. The latter is
    positive, because it is divided by."""
    mean, shift, std = (getattr(law, name + suffix) for suffix in ("", "_shift", "_std"))
    return mean + shift, jnp.maximum(std, jnp.finfo(std.dtype).tiny)


def probability_beyond(law: Prediction, sign: Real | int, edge: Real) -> Array:
    """Returns the probability that `sign * q >= edge`, of normal laws."""
    mean, std = mean_and_std(law, "q")
    return erfc((edge - sign * mean) / (2**0.5 * std)) / 2


def _moments_within(
    mean: Array, std: Array, edge: Array | float
) -> tuple[Array, Array, Array]:
    """Returns the expectations of 1, `|q|` and `q^2` over `|q| < edge`, of normal laws."""
    total, first, second = (jnp.zeros_like(mean) for _ in range(3))
    for centre in (mean, -mean):  # of q in [0, edge), then of -q
        low, high = -centre / std, (edge - centre) / std
        mass = norm.cdf(high) - norm.cdf(low)
        top = jnp.where(jnp.isfinite(high), (centre + edge) * norm.pdf(high), 0)
        total += mass
        first += centre * mass + std * (norm.pdf(low) - norm.pdf(high))
        second += (centre**2 + std**2) * mass + std * (centre * norm.pdf(low) - top)
    # For a law so wide that it is flat within the edge, without the cancellation.
    is_flat = std > 30 * edge
    first = jnp.where(is_flat, total * edge / 2, first)
    second = jnp.where(is_flat, total * edge**2 / 3, second)
    return total, first, second
