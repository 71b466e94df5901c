"""The stream's law: one spike in isotropic Gaussian noise, possibly a changing one."""

import abc
from typing import Any

import equinox as eqx
import numpy as np
from jaxtyping import Array, Float

from .._check import (
    as_number,
    as_times,
    require,
    require_instance,
    require_list,
    require_whole,
)
from .._pickling import Pickled
from .._types import Real, part
from . import AbstractSpike, Uniform


class AbstractModel(Pickled):
    """A law of the stream, made of phases with one spike each."""

    p: eqx.AbstractVar[int]

    @property
    def float_p(self) -> float:
        """`p` as compiled code takes it wherever it is not the length of a vector: an
        integer of 2^31 or more is too large for JAX while its x64 mode is off."""
        return float(self.p)

    @abc.abstractmethod
    def phases(self) -> "tuple[SpikedModel, ...]":
        """The models in their order."""

    @abc.abstractmethod
    def changes(self) -> Float[Array | np.ndarray, " changes"]:
        """The macroscopic times at which the next phase takes over, one fewer."""


# A sample moves the estimate by about 1/p of its length. In double precision, which has
# 2^-52 = 2.2e-16 as its unit, that is still a few units.
_LARGEST_P = 10**15


def _dimension(p: Any) -> int:
    remedy = "the dimension must be a whole number of at least 3 and at most 10^15"
    return require_whole("p", p, 3, remedy, _LARGEST_P)


class SpikedModel(AbstractModel):
    """`y = sqrt(omega/p) c xi + a`, `c ~ N(0,1)`, `a ~ N(0, I)`: `eq:data_model`.

    `p` is at most 10^15: beyond, the change at one sample, of relative order 1/p, would be
    lost in the rounding of double precision.
    """

    p: int = eqx.field(static=True, converter=_dimension, default=10_000)
    omega: Real = eqx.field(converter=as_number("omega"), default=1.0)
    spike: AbstractSpike = eqx.field(
        converter=part("spike", AbstractSpike), default_factory=Uniform
    )

    def __check_init__(self):
        require(
            "omega",
            self.omega,
            lambda x: np.isfinite(x) & (x >= 0),
            "the signal-to-noise ratio must be finite and not negative",
        )

    def phases(self) -> "tuple[SpikedModel, ...]":
        return (self,)

    def changes(self) -> Float[Array | np.ndarray, " changes"]:
        return np.zeros(0)


def _models(models: Any) -> tuple[Any, ...]:
    return tuple(require_list("models", models, "pass a list of SpikedModel"))


class Switching(AbstractModel):
    """A stream whose spike changes: `models[i+1]` takes over at `times[i]`.

    Overlaps are measured against the spike in force, and at `times[i]` the new one is:
    a trajectory is right-continuous, as in `eq:continous_embedding`.
    """

    models: tuple[SpikedModel, ...] = eqx.field(converter=_models)
    times: Float[Array | np.ndarray, " changes"] = eqx.field(converter=as_times("times"))

    def __check_init__(self):
        for model in self.models:
            require_instance("models", model, SpikedModel)
        if self.times.ndim != 1:
            raise ValueError(
                f"times of shape {self.times.shape} is not allowed: pass them in one axis."
            )
        if len(self.models) != len(self.times) + 1:
            raise ValueError(
                f"times = {self.times} does not fit {len(self.models)} models: "
                "give one time for each change, that is, one fewer than models."
            )
        require(
            "times",
            self.times,
            lambda x: np.all(np.isfinite(x)) and np.all(np.diff(x, prepend=0.0) > 0),
            "the times of the changes must be finite, positive and increase",
        )
        dimensions = {model.p for model in self.models}
        if len(dimensions) > 1:
            raise ValueError(
                f"models have p = {sorted(dimensions)}: the estimate keeps its dimension, "
                "so give all of them the same p."
            )

    @property
    def p(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.models[0].p

    def phases(self) -> tuple[SpikedModel, ...]:
        return self.models

    def changes(self) -> Float[Array | np.ndarray, " changes"]:
        return self.times
