"""Tuning where the signal-to-noise ratio is not known."""

import abc
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from .._check import Checked, as_instance, as_reals, positive, require, require_instance
from .._config import Config
from .._model import SpikedModel
from .._types import Real
from .objective import AbstractObjective


class AbstractRobust(AbstractObjective):
    """An objective for a signal-to-noise ratio that is not known: by how much of the best
    possible value the config falls short, at several of them."""

    objective: eqx.AbstractVar[AbstractObjective]
    omegas: eqx.AbstractVar[Float[Array, " omegas"]]

    def __check_init__(self):
        shape = self.omegas.shape
        if len(shape) != 1 or not self.omegas.size:
            raise ValueError(
                f"omegas of shape {shape} is not allowed: pass one axis of them."
            )
        remedy = "without a signal there is nothing to tune"
        require("omegas", self.omegas, positive, remedy)

    @abc.abstractmethod
    def over(self, shortfalls: Float[Array, " omegas"]) -> Real:
        """One number for all of them."""

    def value(self, config: Checked[Config], **options) -> Real:
        return self.over(self.shortfalls(config, **options))

    def shortfalls(self, config: Checked[Config], **options) -> Float[Array, " omegas"]:
        """`|value/bound - 1|` at each of `omegas`."""
        require_instance("config", config, Config)
        require_instance("model", config.model, SpikedModel)

        def one(omega: Real) -> Real:
            there = eqx.tree_at(lambda c: c.model.omega, config, omega)
            value = self.objective.value(there, **options)
            return jnp.abs(value / self.objective.bound(there) - 1)

        return jax.vmap(one)(self.omegas)

    def bound(self, config: Checked[Config]) -> Real:
        require_instance("config", config, Config)
        return jnp.zeros(())

    def require_reachable(self, config: Config) -> None:
        require_instance("model", config.model, SpikedModel)
        for omega in self.omegas:
            there = eqx.tree_at(lambda c: c.model.omega, config, omega)
            self.objective.require_reachable(there)


class WorstCase(AbstractRobust):
    """The largest shortfall over the signal-to-noise ratios `omegas`."""

    objective: AbstractObjective = eqx.field(
        converter=as_instance("objective", AbstractObjective)
    )
    omegas: Float[Array, " omegas"] = eqx.field(converter=as_reals("omegas"))
    larger_is_better: ClassVar[bool] = False

    def over(self, shortfalls: Float[Array, " omegas"]) -> Real:
        # A norm of a high power instead of the maximum, which has a kink where two
        # shortfalls are the same: just where it is smallest.
        most = lax.stop_gradient(jnp.max(shortfalls))
        scaled = shortfalls / jnp.where(most > 0, most, 1)
        return most * jnp.mean(scaled**64) ** (1 / 64)


class Average(AbstractRobust):
    """The mean shortfall over the signal-to-noise ratios `omegas`."""

    objective: AbstractObjective = eqx.field(
        converter=as_instance("objective", AbstractObjective)
    )
    omegas: Float[Array, " omegas"] = eqx.field(converter=as_reals("omegas"))
    larger_is_better: ClassVar[bool] = False

    def over(self, shortfalls: Float[Array, " omegas"]) -> Real:
        return jnp.mean(shortfalls)
