"""Objectives for a signal-to-noise ratio that is not known."""

import abc
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from .._check import Checked, as_instance, as_reals, positive, require, require_instance
from .._config import Config, require_single
from .._model import SpikedModel
from .._types import Real
from .objective import AbstractObjective


class AbstractRobust(AbstractObjective):
    """An objective that summarises the shortfalls of another one at several `omegas`.

    The shortfall at a signal-to-noise ratio is how much of the best possible value is
    missing there, `|value/bound - 1|`.
    """

    objective: eqx.AbstractVar[AbstractObjective]
    omegas: eqx.AbstractVar[Float[Array, " omegas"]]

    def __check_init__(self):
        shape = self.omegas.shape
        if len(shape) != 1 or not self.omegas.size:
            raise ValueError(
                f"omegas of shape {shape} is not allowed: pass at least one of them, in "
                "one axis."
            )
        remedy = "without a signal there is nothing to tune; pass positive numbers"
        require("omegas", self.omegas, positive, remedy)

    @abc.abstractmethod
    def summary(self, shortfalls: Float[Array, " omegas"]) -> Real:
        """Returns one number for the shortfalls at all `omegas`."""

    def value(self, config: Checked[Config], **options) -> Real:
        return self.summary(self.shortfalls(config, **options))

    def bound(self, config: Checked[Config]) -> Real:
        require_instance("config", config, Config)
        require_single(config, type(self).__name__)
        return jnp.zeros(())

    def shortfalls(self, config: Checked[Config], **options) -> Float[Array, " omegas"]:
        """Returns `|value/bound - 1|` at each of the `omegas`, of shape (omegas,).

        **Arguments:**

        - `config`: with a `SpikedModel`, whose `omega` is replaced.
        - `options`: passed on to `mean_field`.
        """
        require_instance("config", config, Config)
        require_single(config, type(self).__name__)

        def shortfall(omega: Real) -> Real:
            at_omega = with_omega(config, omega)
            value = self.objective.value(at_omega, **options)
            return jnp.abs(value / self.objective.bound(at_omega) - 1)

        return jax.vmap(shortfall)(self.omegas)


def with_omega(config: Config, omega: Real) -> Config:
    """Returns the config with another signal-to-noise ratio."""
    require_instance("model", config.model, SpikedModel)
    return eqx.tree_at(lambda c: c.model.omega, config, omega)


class WorstCase(AbstractRobust):
    """The largest shortfall over several signal-to-noise ratios, to be minimised.

    **Arguments:**

    - `objective`: the objective at a known signal-to-noise ratio.
    - `omegas`: the signal-to-noise ratios, positive, of shape (omegas,).

    **Example:**

    ```pycon
    >>> import inopca_jax as ino
    >>> config = ino.Config(ts=[0.0, 50.0])
    >>> robust = ino.WorstCase(ino.FinalOverlap(), omegas=[0.5, 1.0])
    >>> robust.shortfalls(config).shape
    (2,)
    ```
    """

    objective: AbstractObjective = eqx.field(
        converter=as_instance("objective", AbstractObjective)
    )
    omegas: Float[Array, " omegas"] = eqx.field(converter=as_reals("omegas"))
    larger_is_better: ClassVar[bool] = False

    def summary(self, shortfalls: Float[Array, " omegas"]) -> Real:
        # A norm of a high power instead of the maximum. The maximum has a kink where two
        # shortfalls are equal, which is often just where it is smallest.
        largest = lax.stop_gradient(jnp.max(shortfalls))
        scaled = shortfalls / jnp.where(largest > 0, largest, 1)
        return largest * jnp.mean(scaled**64) ** (1 / 64)


class Average(AbstractRobust):
    """The mean shortfall over several signal-to-noise ratios, to be minimised.

    **Arguments:**

    - `objective`: the objective at a known signal-to-noise ratio.
    - `omegas`: the signal-to-noise ratios, positive, of shape (omegas,).

    **Example:**

    ```pycon
    >>> import inopca_jax as ino
    >>> config = ino.Config(ts=[0.0, 50.0])
    >>> robust = ino.Average(ino.FinalOverlap(), omegas=[0.5, 1.0])
    >>> bool(robust.value(config) > 0)
    True
    ```
    """

    objective: AbstractObjective = eqx.field(
        converter=as_instance("objective", AbstractObjective)
    )
    omegas: Float[Array, " omegas"] = eqx.field(converter=as_reals("omegas"))
    larger_is_better: ClassVar[bool] = False

    def summary(self, shortfalls: Float[Array, " omegas"]) -> Real:
        return jnp.mean(shortfalls)
