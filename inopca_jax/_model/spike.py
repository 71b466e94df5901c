"""The laws of one entry of the spike `xi`, all of unit second moment."""

import abc
import functools
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float

from .._check import Checked, as_number, positive, require, require_key, require_whole
from .._pickling import Pickled
from .._types import Real, TrialKey, Vector, real


class AbstractSpike(Pickled):
    """A law of the entries of `xi`."""

    @abc.abstractmethod
    def entries(self, key: TrialKey, p: int) -> Vector:
        """`p` independent entries, not all zero, up to a common factor."""

    @abc.abstractmethod
    def quadrature(
        self, nodes: Checked[int]
    ) -> tuple[Float[Array, " n"], Float[Array, " n"]]:
        """Nodes and weights with `sum w f(x) = E f(xi)` for the law of one entry.

        A continuous law gets `nodes` of Gauss's, exact for polynomials of degree
        `2 nodes - 1`; a law of point masses returns these, however many.
        """

    def sample(self, key: Checked[TrialKey], p: Checked[int]) -> Vector:
        """A spike: independent entries, rescaled so that `|xi| = sqrt(p)` exactly."""
        require_key(key)
        p = require_whole("p", p, 1, "pass a whole number of entries, at least 1")
        entries = self.entries(key, p)
        return entries * jnp.sqrt(p / jnp.sum(entries**2))

    def mean(self) -> Real:
        """`E xi`; two spikes have the overlap `E xi1 E xi2` as `p` grows."""
        x, w = self.quadrature(2)
        return jnp.sum(w * x)


_rule = functools.cache(lambda rule, nodes: rule(nodes))


def _whole_nodes(nodes: Any) -> int:
    return require_whole("nodes", nodes, 1, "pass a whole number of at least 1")


def _gauss(rule, nodes: Any) -> tuple[Array, Array]:
    x, w = _rule(rule, _whole_nodes(nodes))
    return real(x), real(w / np.sum(w))


class Uniform(AbstractSpike):
    """Uniform on [-sqrt 3, sqrt 3]: the paper's Example 1."""

    def entries(self, key: TrialKey, p: int) -> Vector:
        return jr.uniform(key, (p,), minval=-1.0, maxval=1.0)

    def quadrature(self, nodes: Checked[int]) -> tuple[Array, Array]:
        x, w = _gauss(np.polynomial.legendre.leggauss, nodes)
        return x * np.sqrt(3).item(), w


class ShiftedExponential(AbstractSpike):
    """An exponential variable plus a shift: the paper's Example 2.

    The paper gives a shift of 0.9 and neither rate nor normalisation: we take rate 1
    and rescale to unit second moment.
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
    """`(1-rho) delta_0 + rho delta_{1/sqrt rho}`: the paper's Example 3.

    Were all entries of a sample zero, the one nearest to it is taken instead: `xi`
    has to have a direction. That matters only where `rho p` is small.
    """

    rho: Real = eqx.field(converter=as_number("rho"), default=0.05)

    def __check_init__(self):
        require("rho", self.rho, lambda x: (x > 0) & (x <= 1), "pass 0 < rho <= 1")

    def entries(self, key: TrialKey, p: int) -> Vector:
        u = jr.uniform(key, (p,), self.rho.dtype)
        return ((u < self.rho) | (u == jnp.min(u))).astype(u.dtype)

    def quadrature(self, nodes: Checked[int]) -> tuple[Array, Array]:
        _whole_nodes(nodes)
        zero = jnp.zeros_like(self.rho)
        x = jnp.stack([zero, 1 / jnp.sqrt(self.rho)])
        return x, jnp.stack([1 - self.rho, self.rho])


class Gaussian(AbstractSpike):
    """Standard normal entries: a direction that is uniform on the sphere."""

    def entries(self, key: TrialKey, p: int) -> Vector:
        return jr.normal(key, (p,))

    def quadrature(self, nodes: Checked[int]) -> tuple[Array, Array]:
        return _gauss(np.polynomial.hermite_e.hermegauss, nodes)
