"""Where the estimate begins."""

import abc

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jax import lax
from jax.scipy.stats import norm
from jaxtyping import Array, Float

from ._check import Checked, as_number, require, require_instance
from ._model import AbstractSpike
from ._pickling import Pickled
from ._types import Real, TrialKey, Vector

# Beyond this many standard deviations a normal law has 6e-14 of its mass.
REACH = 7.5


class AbstractStart(Pickled):
    """The law of the entries of `x_0`, each given its entry of `xi`."""

    @abc.abstractmethod
    def moments(self, spike: AbstractSpike) -> tuple[Real, Real]:
        """`(q0, lam0)`, as p grows."""

    @abc.abstractmethod
    def mean(self, spike: AbstractSpike) -> Real:
        """`E[x_0]`, which a later spike may resemble."""

    @abc.abstractmethod
    def sample(self, key: TrialKey, xi: Vector) -> Vector:
        """`x_0` up to its length, which is then made `sqrt(p) lam0` exactly."""

    @abc.abstractmethod
    def pdf(self, x: Real, xi: Real) -> Real:
        """The density of one entry at the number `x`, where the spike's entry is `xi`."""

    @abc.abstractmethod
    def reach(self, xi: Real) -> tuple[Real, Real]:
        """The interval outside of which the density is zero, or too small to matter."""

    def given(self, nodes: Float[Array, " n"], power: int) -> Float[Array, " n"]:
        """`E[x^power | xi]` at each of the `nodes`."""

        def one(xi: Real) -> Real:
            x, w = panels(*ends_of(self, xi))
            return jnp.sum(w * x**power * jax.vmap(self.pdf, (0, None))(x, xi))

        return jax.vmap(one)(nodes)


class AbstractGaussianStart(AbstractStart):
    """`x_0` proportional to `c xi + s z`, `z ~ N(0, I)`, of length `sqrt(p) lam0`."""

    lam0: eqx.AbstractVar[Real]

    @abc.abstractmethod
    def mixture(self) -> tuple[Real, Real]:
        """`(c, s)` with `c^2 + s^2 = 1`; `c` is the overlap as `p` grows."""

    def moments(self, spike: Checked[AbstractSpike]) -> tuple[Real, Real]:
        require_instance("spike", spike, AbstractSpike)
        return self.mixture()[0], self.lam0

    def mean(self, spike: Checked[AbstractSpike]) -> Real:
        require_instance("spike", spike, AbstractSpike)
        return self.mixture()[0] * self.lam0 * spike.mean().astype(self.lam0.dtype)

    def given(self, nodes: Float[Array, " n"], power: int) -> Float[Array, " n"]:
        along, across = self.mixture()
        centre, variance = self.lam0 * along * nodes, (self.lam0 * across) ** 2
        moment, before = jnp.ones_like(centre), jnp.zeros_like(centre)
        for k in range(power):  # Stein's recursion
            moment, before = centre * moment + k * variance * before, moment
        return moment

    def sample(self, key: TrialKey, xi: Vector) -> Vector:
        along, across = self.mixture()
        return along * xi + across * jr.normal(key, xi.shape).astype(xi.dtype)

    def pdf(self, x: Real, xi: Real) -> Real:
        along, across = self.mixture()
        return norm.pdf(x, self.lam0 * along * xi, self.lam0 * across)

    def reach(self, xi: Real) -> tuple[Real, Real]:
        along, across = self.mixture()
        centre, radius = self.lam0 * along * xi, REACH * self.lam0 * across
        return centre - radius, centre + radius


class ColdStart(AbstractGaussianStart):
    """A start that knows nothing: the overlap is of order `1/sqrt(p)`, of either sign."""

    lam0: Real = eqx.field(converter=as_number("lam0"), default=1.0)

    def __check_init__(self):
        require_norm(self.lam0)

    def mixture(self) -> tuple[Real, Real]:
        return jnp.zeros_like(self.lam0), jnp.ones_like(self.lam0)


class WarmStart(AbstractGaussianStart):
    """A start of overlap `q0`, up to a fluctuation of order `1/sqrt(p)`."""

    q0: Real = eqx.field(converter=as_number("q0"), default=0.1)
    lam0: Real = eqx.field(converter=as_number("lam0"), default=1.0)

    def __check_init__(self):
        require("q0", self.q0, lambda x: np.abs(x) <= 1, "an overlap lies in [-1, 1]")
        require_norm(self.lam0)

    def mixture(self) -> tuple[Real, Real]:
        # The derivative of sqrt at 0 is infinite, and 0 * inf is not a number: hold
        # it off there, so that a gradient in q0 stays finite at |q0| = 1 too.
        left = 1 - self.q0**2
        inside = left > 0
        return self.q0, jnp.where(inside, jnp.sqrt(jnp.where(inside, left, 1)), 0)


class AbstractDensityStart(AbstractStart):
    """Entries of any law: write `pdf` and `reach`, and the rest follows.

    The overlap, the norm and the samples come from the density by quadrature and by the
    inverse of a tabulated distribution function: smooth inside `reach`, please.
    """

    def moments(self, spike: Checked[AbstractSpike]) -> tuple[Real, Real]:
        require_instance("spike", spike, AbstractSpike)
        nodes, weights = spike.quadrature(32)
        first, second = (self.given(nodes, power) for power in (1, 2))
        lam0 = jnp.sqrt(jnp.sum(weights * second))
        return jnp.sum(weights * nodes * first) / lam0, lam0

    def mean(self, spike: Checked[AbstractSpike]) -> Real:
        require_instance("spike", spike, AbstractSpike)
        nodes, weights = spike.quadrature(32)
        return jnp.sum(weights * self.given(nodes, 1))

    def sample(self, key: TrialKey, xi: Vector) -> Vector:
        def one(pair: tuple[Real, Real]) -> Real:
            uniform, xi = pair
            low, high = ends_of(self, xi)
            x = low + (high - low) * jnp.linspace(0, 1, 513, dtype=xi.dtype)
            pdf = jax.vmap(self.pdf, (0, None))(x, xi)
            cdf = jnp.concatenate([jnp.zeros_like(pdf[:1]), jnp.cumsum(pdf[1:] + pdf[:-1])])
            return jnp.interp(uniform, cdf / cdf[-1], x)

        # Some entries at a time, because each has a table of its own.
        uniform = jr.uniform(key, xi.shape, xi.dtype)
        return lax.map(one, (uniform, xi), batch_size=4096)

    def require_law(self, spike: AbstractSpike) -> None:
        """Refuses a density that is negative or does not integrate to one."""
        nodes, _ = spike.quadrature(8)
        name = f"the integral of {type(self).__name__}.pdf over its reach"
        mass = self.given(nodes, 0)
        require(
            name,
            mass,
            lambda m: np.abs(m - 1) < 1e-4,
            "it must be one for every xi; check pdf's factor and that reach holds it all",
        )

        def least(xi: Real) -> Real:
            x, _ = panels(*ends_of(self, xi))
            return jnp.min(jax.vmap(self.pdf, (0, None))(x, xi))

        name = f"the least value of {type(self).__name__}.pdf"
        require(name, jax.vmap(least)(nodes), lambda x: x >= 0, "no density is negative")


class TwoBumps(AbstractDensityStart):
    """`x = lam0 (q0 xi + sqrt(1 - q0^2) z)` with `z` of two normal bumps, at plus and minus
    `separation`, of unit variance together."""

    q0: Real = eqx.field(converter=as_number("q0"), default=0.1)
    lam0: Real = eqx.field(converter=as_number("lam0"), default=1.0)
    separation: Real = eqx.field(converter=as_number("separation"), default=0.8)

    def __check_init__(self):
        _require_inside(self.q0)
        require_norm(self.lam0)
        require(
            "separation",
            self.separation,
            lambda x: (x >= 0) & (x < 1),
            "pass 0 <= separation < 1, in units of the standard deviation",
        )

    def pdf(self, x: Real, xi: Real) -> Real:
        scale = self.lam0 * jnp.sqrt(1 - self.q0**2)
        z, width = (x - self.lam0 * self.q0 * xi) / scale, self._width()
        left, right = (norm.pdf(z, s * self.separation, width) for s in (-1, 1))
        return (left + right) / (2 * scale)

    def reach(self, xi: Real) -> tuple[Real, Real]:
        centre = self.lam0 * self.q0 * xi
        radius = self.separation + REACH * self._width()
        radius = self.lam0 * jnp.sqrt(1 - self.q0**2) * radius
        return centre - radius, centre + radius

    def _width(self) -> Real:
        return jnp.sqrt(1 - self.separation**2)


class Box(AbstractDensityStart):
    """`x = lam0 (q0 xi + sqrt(1 - q0^2) z)` with `z` uniform, of unit variance."""

    q0: Real = eqx.field(converter=as_number("q0"), default=0.1)
    lam0: Real = eqx.field(converter=as_number("lam0"), default=1.0)

    def __check_init__(self):
        _require_inside(self.q0)
        require_norm(self.lam0)

    def pdf(self, x: Real, xi: Real) -> Real:
        low, high = self.reach(xi)
        # With a margin, so that rounding does not put the edge outside of itself.
        margin = 1e-5 * (high - low)
        inside = (x >= low - margin) & (x <= high + margin)
        return jnp.where(inside, 1 / (high - low), 0)

    def reach(self, xi: Real) -> tuple[Real, Real]:
        centre = self.lam0 * self.q0 * xi
        radius = self.lam0 * jnp.sqrt(3 * (1 - self.q0**2))
        return centre - radius, centre + radius


def _require_inside(q0: Real) -> None:
    require("q0", q0, lambda x: np.abs(x) < 1, "at an overlap of one there is no density")


def ends_of(start: AbstractStart, xi: Real) -> tuple[Real, Real]:
    """The start's `reach`, which users may give as plain numbers."""
    low, high = start.reach(xi)
    return jnp.asarray(low, xi.dtype), jnp.asarray(high, xi.dtype)


_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(8)


def panels(low: Real, high: Real, count: int = 64) -> tuple[Array, Array]:
    """Nodes and weights of Gauss's rule on `count` panels of an interval."""
    edge = np.arange(count)[:, None]
    unit = ((edge + (_NODES + 1) / 2) / count).ravel()
    x = low + (high - low) * jnp.asarray(unit, low.dtype)
    weights = jnp.asarray(np.tile(_WEIGHTS, count) / (2 * count), low.dtype)
    return x, (high - low) * weights


def require_norm(lam0: Real) -> None:
    """Refuses a `lam0` that the precision which it is held in cannot square."""
    # |x|^2 and its reciprocal have to be numbers of the precision in use.
    edge = 1e15 if lam0.dtype == np.float32 else 1e150
    require(
        "lam0",
        lam0,
        lambda x: (x >= 1 / edge) & (x <= edge),
        f"the norm must be positive and, in {lam0.dtype}, within "
        f"[{1 / edge:.0e}, {edge:.0e}]",
    )
