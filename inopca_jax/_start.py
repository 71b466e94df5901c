"""The law of the initial estimate `x_0`."""

import abc
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jax import lax
from jax.scipy.stats import norm
from jaxtyping import Array, Float

from ._check import Checked, as_number, reals, require, require_instance
from ._model import AbstractSpike
from ._module import PublicModule
from ._numerics import gauss_legendre
from ._types import Real, TrialKey, Vector

# A normal law has 6e-14 of its mass outside this many standard deviations.
NORMAL_SUPPORT = 7.5


def _as_numbers(name: str, axes: int) -> Callable[[Any], Any]:
    """Returns the converter of a field that is one number for all components, or an array
    with at most `axes` axes. An array of one number is the number."""
    remedy = f"pass one number, or an array with at most {axes} axes, of components"

    def convert(value: Any) -> Any:
        array = reals(name, value, remedy)
        if array.ndim > axes or not array.size:
            raise ValueError(
                f"{name} of shape {array.shape} is not allowed: {remedy}; batch configs "
                "with vmap."
            )
        return array.reshape(()) if array.size == 1 else array

    return convert


class AbstractStart(PublicModule):
    """The law of one entry of the initial estimate `x_0`, given that of the spike `xi`.

    The entries are independent given the spike. Derive a start of your own from
    `AbstractDensityStart`, which needs `pdf` and `support` alone.

    **Example:**

    ```pycon
    >>> import inopca_jax as ino
    >>> start = ino.WarmStart(q0=0.3)
    >>> isinstance(start, ino.AbstractStart)
    True
    ```
    """

    @abc.abstractmethod
    def moments(self, spike: AbstractSpike) -> tuple[Array, Array]:
        """Returns the overlap and the norm `(q0, lam0)` in the limit of large p.

        **Arguments:**

        - `spike`: the law of the spike's entries.
        """

    @abc.abstractmethod
    def mean(self, spike: AbstractSpike) -> Real:
        """Returns `E[x_0]`, the mean of an entry.

        The overlap with a later spike, whose entries are independent of `x_0`, is
        proportional to it.
        """

    @abc.abstractmethod
    def sample(self, key: TrialKey, xi: Vector) -> Vector:
        """Returns a draw of `x_0`, up to its length.

        The caller rescales it so that its length is `sqrt(p) lam0` exactly.

        **Arguments:**

        - `key`: a JAX key.
        - `xi`: the spike, of shape (p,).

        **Returns:**

        An array of shape (p,).
        """

    @abc.abstractmethod
    def pdf(self, x: Real, xi: Real) -> Real:
        """Returns the density of an entry at the number `x`, given the spike's entry."""

    @abc.abstractmethod
    def support(self, xi: Real) -> tuple[Real, Real]:
        """Returns `(low, high)`, an interval outside of which the density is negligible.

        Given the spike's entry `xi`, a mass of about 1e-13 may lie outside.
        """

    @abc.abstractmethod
    def conditional_moment(self, xi: Float[Array, " n"], power: int) -> Float[Array, " n"]:
        """Returns `E[x_0^power | xi]`.

        **Arguments:**

        - `xi`: entries of the spike, of shape (n,).
        - `power`: a whole number, at least 0.

        **Returns:**

        An array of shape (n,).
        """


class AbstractGaussianStart(AbstractStart):
    """A start with `x_0` proportional to `c xi + s z`, `z ~ N(0, I)`, of norm `lam0`.

    **Example:**

    ```pycon
    >>> import inopca_jax as ino
    >>> import jax.numpy as jnp
    >>> class HalfSpike(ino.AbstractGaussianStart):
    ...     lam0: float = 1.0
    ...     def mixture(self):
    ...         return jnp.array(0.5), jnp.array(0.75**0.5)
    ...
    >>> float(ino.Config(start=HalfSpike()).start.moments(ino.Uniform())[0])
    0.5
    ```
    """

    lam0: eqx.AbstractVar[Float[Array, "*components"]]

    @abc.abstractmethod
    def mixture(self) -> tuple[Array, Array]:
        """Returns `(c, s)` with `c^2 + s^2 = 1`; `c` is the overlap in the limit, with as
        many axes as `WarmStart.q0` may have."""

    def moments(self, spike: Checked[AbstractSpike]) -> tuple[Array, Array]:
        require_instance("spike", spike, AbstractSpike)
        return self.mixture()[0], self.lam0

    def mean(self, spike: Checked[AbstractSpike]) -> Real:
        require_instance("spike", spike, AbstractSpike)
        return self.mixture()[0] * self.lam0 * spike.mean().astype(self.lam0.dtype)

    def sample(self, key: TrialKey, xi: Vector) -> Vector:
        along, across = self.mixture()
        return along * xi + across * jr.normal(key, xi.shape).astype(xi.dtype)

    def pdf(self, x: Real, xi: Real) -> Real:
        along, across = self.mixture()
        return norm.pdf(x, self.lam0 * along * xi, self.lam0 * across)

    def support(self, xi: Real) -> tuple[Real, Real]:
        along, across = self.mixture()
        centre, radius = self.lam0 * along * xi, NORMAL_SUPPORT * self.lam0 * across
        return centre - radius, centre + radius

    def conditional_moment(self, xi: Float[Array, " n"], power: int) -> Float[Array, " n"]:
        along, across = self.mixture()
        mean, variance = self.lam0 * along * xi, (self.lam0 * across) ** 2
        # Stein's recursion: E[x^(k+1)] = mean E[x^k] + k variance E[x^(k-1)].
        moment, previous = jnp.ones_like(mean), jnp.zeros_like(mean)
        for k in range(power):
            moment, previous = mean * moment + k * variance * previous, moment
        return moment


class ColdStart(AbstractGaussianStart):
    """A random start: `x_0` is uniformly directed, with an overlap of order `1/sqrt(p)`.

    **Arguments:**

    - `lam0`: the norm `|x_0|/sqrt(p)`, a positive number, or one for each component.

    **Example:**

    ```pycon
    >>> import inopca_jax as ino
    >>> q0, lam0 = ino.ColdStart(lam0=2.0).moments(ino.Uniform())
    >>> float(q0), float(lam0)
    (0.0, 2.0)
    ```
    """

    lam0: Float[Array, "*components"] = eqx.field(
        converter=_as_numbers("lam0", 1), default=1.0
    )

    def __check_init__(self):
        require_norm(self.lam0)

    def mixture(self) -> tuple[Real, Real]:
        one_norm = self.lam0.reshape(-1)[0]
        return jnp.zeros_like(one_norm), jnp.ones_like(one_norm)


class FirstSamples(AbstractGaussianStart):
    """The algorithm's own start (`alg:INO-PCA_multiple_pc`): the i-th component begins as
    the i-th sample without its projections on the components before it.

    These samples come before time 0. Components that have begun learn from the next ones
    meanwhile, at the rate that their schedule has at time 0; with a rule that acts on all
    of them at once they wait. The lengths are those of the samples, about `sqrt(p)`, or
    exactly that for a rule that projects.

    A sample is as random as a `ColdStart`, apart from its overlap with a spike, which has
    the variance `(1 + omega)/p` instead of `1/p`. In the limit of large p the two are the
    same.

    **Example:**

    ```pycon
    >>> import inopca_jax as ino
    >>> import jax
    >>> model, start = ino.SpikedModel(p=1000, omega=3.0), ino.FirstSamples()
    >>> config = ino.Config(model=model, start=start, ts=[0.0])
    >>> runs = ino.simulate(config, key=jax.random.key(0), trials=1000)
    >>> bool(3.5 < 1000 * (runs.q**2).mean() < 4.5)
    True
    ```
    """

    @property
    def lam0(self) -> Real:  # pyright: ignore[reportIncompatibleVariableOverride]
        return jnp.ones(())

    def mixture(self) -> tuple[Real, Real]:
        return jnp.zeros(()), jnp.ones(())


class WarmStart(AbstractGaussianStart):
    """A start of overlap `q0`, up to a fluctuation of order `1/sqrt(p)`.

    Of several spikes, the i-th component has the overlap `q0` with the i-th strongest, and
    none with the others. A component for which there is no spike has none at all.

    **Arguments:**

    - `q0`: the overlap with the spike in the limit of large p, in [-1, 1]. With several
      spikes or components: one number for all, an array of shape (min(spikes, components),)
      with one for each component that has a spike, or the overlaps of all components with
      all spikes, the strongest spike first, of shape (spikes, components); the squares of a
      column sum to 1 at most.
    - `lam0`: the norm `|x_0|/sqrt(p)`, a positive number, or one for each component.

    **Example:**

    ```pycon
    >>> import inopca_jax as ino
    >>> start = ino.WarmStart(q0=0.3, lam0=2.0)
    >>> q0, lam0 = start.moments(ino.Uniform())
    >>> round(float(q0), 3), float(lam0)
    (0.3, 2.0)
    ```
    """

    q0: Float[Array, "..."] = eqx.field(converter=_as_numbers("q0", 2), default=0.1)
    lam0: Float[Array, "*components"] = eqx.field(
        converter=_as_numbers("lam0", 1), default=1.0
    )

    def __check_init__(self):
        require("q0", self.q0, lambda x: np.abs(x) <= 1, "an overlap lies in [-1, 1]")
        if self.q0.ndim == 2:
            remedy = "the squared overlaps of a component sum to 1 at most"
            require("q0", self.q0, lambda x: np.sum(x**2, 0) <= 1 + 1e-6, remedy)
        require_norm(self.lam0)

    def mixture(self) -> tuple[Array, Array]:
        # The derivative of sqrt at 0 is infinite. The argument is replaced there, so that
        # a gradient with respect to q0 is finite at |q0| = 1 too.
        square = 1 - (jnp.sum(self.q0**2, 0) if self.q0.ndim == 2 else self.q0**2)
        inside = square > 0
        return self.q0, jnp.where(inside, jnp.sqrt(jnp.where(inside, square, 1)), 0)


class AbstractDensityStart(AbstractStart):
    """A start of any law: a subclass defines `pdf` and `support`, and the rest follows.

    The overlap and the norm come from the density by quadrature, the samples by inverting
    a tabulated distribution function. Both need a density that is smooth inside `support`.

    **Example:**

    ```pycon
    >>> import inopca_jax as ino
    >>> import jax.numpy as jnp
    >>> class Triangle(ino.AbstractDensityStart):
    ...     def pdf(self, x, xi):
    ...         return jnp.maximum(1 - jnp.abs(x - 0.1 * xi), 0)
    ...     def support(self, xi):
    ...         return 0.1 * xi - 1, 0.1 * xi + 1
    ...
    >>> q0, lam0 = Triangle().moments(ino.Uniform())
    >>> round(float(q0), 2)
    0.24
    ```
    """

    def moments(self, spike: Checked[AbstractSpike]) -> tuple[Real, Real]:
        require_instance("spike", spike, AbstractSpike)
        nodes, weights = spike.quadrature(32)
        first, second = (self.conditional_moment(nodes, power) for power in (1, 2))
        lam0 = jnp.sqrt(jnp.sum(weights * second))
        return jnp.sum(weights * nodes * first) / lam0, lam0

    def mean(self, spike: Checked[AbstractSpike]) -> Real:
        require_instance("spike", spike, AbstractSpike)
        nodes, weights = spike.quadrature(32)
        return jnp.sum(weights * self.conditional_moment(nodes, 1))

    def sample(self, key: TrialKey, xi: Vector) -> Vector:
        def draw(uniform_and_xi: tuple[Real, Real]) -> Real:
            uniform, xi = uniform_and_xi
            low, high = support_arrays(self, xi)
            x = low + (high - low) * jnp.linspace(0, 1, 513, dtype=xi.dtype)
            pdf = jax.vmap(self.pdf, (0, None))(x, xi)
            cdf = jnp.concatenate([jnp.zeros_like(pdf[:1]), jnp.cumsum(pdf[1:] + pdf[:-1])])
            return jnp.interp(uniform, cdf / cdf[-1], x)

        # In batches, because every entry needs a table of 513 numbers.
        uniform = jr.uniform(key, xi.shape, xi.dtype)
        return lax.map(draw, (uniform, xi), batch_size=4096)

    def conditional_moment(self, xi: Float[Array, " n"], power: int) -> Float[Array, " n"]:
        def integral(xi: Real) -> Real:
            x, weights = gauss_legendre(*support_arrays(self, xi))
            return jnp.sum(weights * x**power * jax.vmap(self.pdf, (0, None))(x, xi))

        return jax.vmap(integral)(xi)

    def require_law(self, spike: AbstractSpike) -> None:
        """Raises `ValueError` if the density is negative or its integral is not one."""
        nodes, _ = spike.quadrature(8)
        require(
            f"the integral of {type(self).__name__}.pdf over its support",
            self.conditional_moment(nodes, 0),
            lambda mass: np.abs(mass - 1) < 1e-4,
            "it must be one for every xi; check the factor in pdf, and that support "
            "contains the whole law",
        )

        def minimum(xi: Real) -> Real:
            x, _ = gauss_legendre(*support_arrays(self, xi))
            return jnp.min(jax.vmap(self.pdf, (0, None))(x, xi))

        name = f"the least value of {type(self).__name__}.pdf"
        remedy = "a density must not be negative"
        require(name, jax.vmap(minimum)(nodes), lambda x: x >= 0, remedy)


class TwoBumps(AbstractDensityStart):
    """A start whose entries have a density with two peaks, given the spike's.

    `x_0 = lam0 (q0 xi + sqrt(1 - q0^2) z)`, where `z` is a mixture of two normal laws.
    Their means are plus and minus `separation`, their common variance is
    `1 - separation^2`, so that `z` has unit variance.

    **Arguments:**

    - `q0`: the overlap with the spike, in (-1, 1).
    - `lam0`: the norm `|x_0|/sqrt(p)`, a positive number.
    - `separation`: the distance of either mean from 0, in [0, 1).

    **Example:**

    ```pycon
    >>> import inopca_jax as ino
    >>> start = ino.TwoBumps(q0=0.3, separation=0.8)
    >>> q0, lam0 = start.moments(ino.Uniform())
    >>> round(float(q0), 3), round(float(lam0), 3)
    (0.3, 1.0)
    ```
    """

    q0: Real = eqx.field(converter=as_number("q0"), default=0.1)
    lam0: Real = eqx.field(converter=as_number("lam0"), default=1.0)
    separation: Real = eqx.field(converter=as_number("separation"), default=0.8)

    def __check_init__(self):
        _require_overlap_below_one(self.q0)
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

    def support(self, xi: Real) -> tuple[Real, Real]:
        centre = self.lam0 * self.q0 * xi
        radius = self.separation + NORMAL_SUPPORT * self._width()
        radius = self.lam0 * jnp.sqrt(1 - self.q0**2) * radius
        return centre - radius, centre + radius

    def _width(self) -> Real:
        """The standard deviation of each of the two normal laws."""
        return jnp.sqrt(1 - self.separation**2)


class Box(AbstractDensityStart):
    """A start whose entries are uniformly distributed, given the spike's.

    `x_0 = lam0 (q0 xi + sqrt(1 - q0^2) z)`, where `z` is uniform with unit variance.

    **Arguments:**

    - `q0`: the overlap with the spike, in (-1, 1).
    - `lam0`: the norm `|x_0|/sqrt(p)`, a positive number.

    **Example:**

    ```pycon
    >>> import inopca_jax as ino
    >>> q0, lam0 = ino.Box(q0=0.3).moments(ino.Uniform())
    >>> round(float(q0), 2), round(float(lam0), 2)
    (0.3, 1.0)
    ```
    """

    q0: Real = eqx.field(converter=as_number("q0"), default=0.1)
    lam0: Real = eqx.field(converter=as_number("lam0"), default=1.0)

    def __check_init__(self):
        _require_overlap_below_one(self.q0)
        require_norm(self.lam0)

    def pdf(self, x: Real, xi: Real) -> Real:
        low, high = self.support(xi)
        # With a margin, so that a rounded end of the interval counts as inside.
        margin = 1e-5 * (high - low)
        inside = (x >= low - margin) & (x <= high + margin)
        return jnp.where(inside, 1 / (high - low), 0)

    def support(self, xi: Real) -> tuple[Real, Real]:
        centre = self.lam0 * self.q0 * xi
        radius = self.lam0 * jnp.sqrt(3 * (1 - self.q0**2))
        return centre - radius, centre + radius


def _require_overlap_below_one(q0: Real) -> None:
    remedy = "pass |q0| < 1: at |q0| = 1 the entries have no density"
    require("q0", q0, lambda x: np.abs(x) < 1, remedy)


def support_arrays(start: AbstractStart, xi: Real) -> tuple[Real, Real]:
    """Returns the support of `start` given `xi` as arrays; users may return floats."""
    low, high = start.support(xi)
    return jnp.asarray(low, xi.dtype), jnp.asarray(high, xi.dtype)


def require_norm(lam0: Array) -> None:
    """Raises `ValueError` if `lam0^2` or its reciprocal overflows in `lam0`'s precision."""
    largest = 1e15 if lam0.dtype == np.float32 else 1e150
    require(
        "lam0",
        lam0,
        lambda x: (x >= 1 / largest) & (x <= largest),
        f"the norm must be positive and, in {lam0.dtype}, within "
        f"[{1 / largest:.0e}, {largest:.0e}]",
    )
