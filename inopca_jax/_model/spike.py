"""The law of one entry of the spike `xi`, of unit second moment."""

import abc
import functools
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float

from .._check import Checked, as_number, positive, require, require_key, require_whole
from .._module import PublicModule
from .._types import Real, TrialKey, Vector, real


class AbstractSpike(PublicModule):
    """The law of the entries of the spike `xi`, which are independent of one another.

    A spike of your own defines `entries` and `quadrature`.

    **Example:**

    ```pycon
    >>> import jax.random as jr
    >>> import inopca_jax as ino
    >>> import jax.numpy as jnp
    >>> class Signs(ino.AbstractSpike):
    ...     def entries(self, key, p):
    ...         return jr.rademacher(key, (p,), float)
    ...     def quadrature(self, nodes):
    ...         return jnp.array([-1.0, 1.0]), jnp.array([0.5, 0.5])
    ...
    >>> ino.SpikedModel(p=1000, spike=Signs()).spike.sample(jr.key(0), 4).shape
    (4,)
    ```
    """

    @abc.abstractmethod
    def entries(self, key: TrialKey, p: int) -> Vector:
        """Returns `p` independent entries, not all zero, up to a common factor.

        **Arguments:**

        - `key`: a JAX key.
        - `p`: the dimension.

        **Returns:**

        An array of shape (p,).
        """

    @abc.abstractmethod
    def quadrature(
        self, nodes: Checked[int]
    ) -> tuple[Float[Array, " n"], Float[Array, " n"]]:
        """Returns the nodes and weights of a quadrature, `sum w f(x) = E f(xi)`.

        **Arguments:**

        - `nodes`: the number of nodes for a continuous law, which has a Gauss rule, exact
          for polynomials of degree `2 nodes - 1`. A law of point masses ignores it and
          returns all of its point masses.

        **Returns:**

        Nodes and weights, each of shape (n,). The weights sum to one, and the second moment
        of the nodes is one.
        """

    def sample(self, key: Checked[TrialKey], p: Checked[int]) -> Vector:
        """Returns a spike: independent entries, rescaled so that `|xi| = sqrt(p)` exactly.

        **Arguments:**

        - `key`: a JAX key.
        - `p`: the dimension.

        **Returns:**

        An array of shape (p,).
        """
        require_key(key)
        p = require_whole("p", p, 1, "pass a whole number of entries, at least 1")
        entries = self.entries(key, p)
        return entries * jnp.sqrt(p / jnp.sum(entries**2))

    def mean(self) -> Real:
        """Returns `E[xi]`. The overlap of two spikes is `E[xi1] E[xi2]` as `p` grows."""
        x, w = self.quadrature(2)
        return jnp.sum(w * x)


def node_count(nodes: Any) -> int:
    """The converter of a field that holds a number of nodes."""
    return require_whole("nodes", nodes, 1, "pass a whole number of at least 1")


@functools.cache
def _numpy_rule(rule: Any, nodes: int) -> tuple[np.ndarray, np.ndarray]:
    return rule(nodes)


def _gauss(rule: Any, nodes: Any) -> tuple[Array, Array]:
    """Returns nodes and weights of a NumPy Gauss rule, with weights that sum to one."""
    x, w = _numpy_rule(rule, node_count(nodes))
    return real(x), real(w / np.sum(w))


class Uniform(AbstractSpike):
    """Entries that are uniform on [-sqrt 3, sqrt 3]: the paper's Example 1.

    **Example:**

    ```pycon
    >>> import jax.random as jr
    >>> import inopca_jax as ino
    >>> spike = ino.Uniform()
    >>> abs(round(float(spike.mean()), 3))
    0.0
    >>> spike.sample(jr.key(0), 1000).shape
    (1000,)
    ```
    """

    def entries(self, key: TrialKey, p: int) -> Vector:
        return jr.uniform(key, (p,), minval=-1.0, maxval=1.0)

    def quadrature(self, nodes: Checked[int]) -> tuple[Array, Array]:
        x, w = _gauss(np.polynomial.legendre.leggauss, nodes)
        return x * np.sqrt(3).item(), w


class ShiftedExponential(AbstractSpike):
    """Entries that are an exponential variable plus a shift: the paper's Example 2.

    They are rescaled to unit second moment. The paper gives a shift of 0.9 and neither rate
    nor normalisation; we take rate 1.

    **Arguments:**

    - `rate`: the rate of the exponential variable, positive.
    - `shift`: the number that is added to it, before the rescaling.

    **Example:**

    ```pycon
    >>> import jax.random as jr
    >>> import inopca_jax as ino
    >>> spike = ino.ShiftedExponential(shift=0.9)
    >>> round(float(spike.mean()), 3)
    0.885
    >>> spike.sample(jr.key(0), 1000).shape
    (1000,)
    ```
    """

    rate: Real = eqx.field(converter=as_number("rate"), default=1.0)
    shift: Real = eqx.field(converter=as_number("shift"), default=0.9)

    def __check_init__(self):
        require("rate", self.rate, positive, "it must be a positive, finite number")
        require("shift", self.shift, np.isfinite, "it must be a finite number")

    def entries(self, key: TrialKey, p: int) -> Vector:
        return jr.exponential(key, (p,), self.rate.dtype) / self.rate + self.shift

    def quadrature(self, nodes: Checked[int]) -> tuple[Array, Array]:
        x, w = _gauss(np.polynomial.laguerre.laggauss, nodes)
        second_moment = 2 / self.rate**2 + 2 * self.shift / self.rate + self.shift**2
        return (x / self.rate + self.shift) / jnp.sqrt(second_moment), w


class Sparse(AbstractSpike):
    """Entries that are zero or `1/sqrt(rho)`: the paper's Example 3.

    The law is `(1-rho) delta_0 + rho delta_{1/sqrt rho}`. At least one entry of a sample is
    not zero, because a spike needs a direction. That changes the law only where `rho p` is
    small.

    **Arguments:**

    - `rho`: the probability of an entry that is not zero, in (0, 1].

    **Example:**

    ```pycon
    >>> import jax.random as jr
    >>> import inopca_jax as ino
    >>> spike = ino.Sparse(rho=0.1)
    >>> round(float(spike.mean()), 3)
    0.316
    >>> spike.sample(jr.key(0), 1000).shape
    (1000,)
    ```
    """

    rho: Real = eqx.field(converter=as_number("rho"), default=0.05)

    def __check_init__(self):
        require("rho", self.rho, lambda x: (x > 0) & (x <= 1), "pass 0 < rho <= 1")

    def entries(self, key: TrialKey, p: int) -> Vector:
        u = jr.uniform(key, (p,), self.rho.dtype)
        # The smallest counts as below rho, so that there is always one.
        return ((u < self.rho) | (u == jnp.min(u))).astype(u.dtype)

    def quadrature(self, nodes: Checked[int]) -> tuple[Array, Array]:
        node_count(nodes)
        zero = jnp.zeros_like(self.rho)
        x = jnp.stack([zero, 1 / jnp.sqrt(self.rho)])
        return x, jnp.stack([1 - self.rho, self.rho])


class Gaussian(AbstractSpike):
    """Standard normal entries: the direction of the spike is uniform on the sphere.

    **Example:**

    ```pycon
    >>> import jax.random as jr
    >>> import inopca_jax as ino
    >>> spike = ino.Gaussian()
    >>> abs(round(float(spike.mean()), 3))
    0.0
    >>> spike.sample(jr.key(0), 1000).shape
    (1000,)
    ```
    """

    def entries(self, key: TrialKey, p: int) -> Vector:
        return jr.normal(key, (p,))

    def quadrature(self, nodes: Checked[int]) -> tuple[Array, Array]:
        return _gauss(np.polynomial.hermite_e.hermegauss, nodes)
