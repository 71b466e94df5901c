"""The stream's law: spikes in isotropic Gaussian noise, possibly changing ones."""

import abc
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from .._check import (
    as_number,
    as_times,
    is_known,
    reals,
    require,
    require_instance,
    require_list,
    require_whole,
)
from .._module import PublicModule
from .._types import Dimension, Real, part
from . import AbstractSpike, Sparse, Uniform


class AbstractModel(PublicModule):
    """The law of a stream of samples, made of one or more phases with one spike each.

    **Example:**

    ```pycon
    >>> import inopca_jax as ino
    >>> model = ino.SpikedModel(p=1000)
    >>> isinstance(model, ino.AbstractModel), len(model.phases())
    (True, 1)
    ```
    """

    p: eqx.AbstractVar[Dimension]

    @abc.abstractmethod
    def phases(self) -> "tuple[SpikedModel, ...]":
        """Returns the models, one for each phase, in their order in time."""

    @abc.abstractmethod
    def changes(self) -> Float[Array | np.ndarray, " changes"]:
        """Returns the macroscopic times of the switches, one fewer than phases."""


# A sample moves the estimate by about 1/p of its length. In double precision, which has
# 2^-52 = 2.2e-16 as its unit, that is still a few units.
_LARGEST_P = 10**15

# The least expected number of entries of a `Sparse` spike that are not zero, and of those
# that are, for each of several spikes.
_ENTRIES_PER_SPIKE = 10


def _dimension(p: Any) -> Any:
    if not is_known(p):
        return p
    remedy = "the dimension must be a whole number of at least 3 and at most 10^15"
    # In double precision on the host, because float32 holds no whole number above 2^24.
    return np.asarray(float(require_whole("p", p, 3, remedy, _LARGEST_P)))


def _omegas(omega: Any) -> Any:
    """The converter of `omega`. One number in an axis is one number."""
    array = reals("omega", omega, "pass one number, or an array with one axis, of spikes")
    if array.ndim > 1 or not array.size:
        raise ValueError(
            f"omega of shape {array.shape} is not allowed: pass one number, or one for "
            "each spike in an array of shape (spikes,)."
        )
    return array.reshape(()) if array.size == 1 else array


def _optional_number(name: str) -> Callable[[Any], Any]:
    convert = as_number(name)
    return lambda value: None if value is None else convert(value)


class SpikedModel(AbstractModel):
    """One spike, or several, in isotropic Gaussian noise, `eq:data_model`.

    A sample is `y = sqrt(omega/p) c xi + a` with `c ~ N(0, 1)` and `a ~ N(0, I)`; with
    several spikes it is `y = sum_j sqrt(omega_j/p) c_j xi_j + a`. They are drawn
    independently, made orthogonal in their order by the method of Gram and Schmidt, and
    given the length `sqrt(p)` each.

    **A spike that turns** (`turning = delta`): after each sample
    `xi' = sqrt(1 - 2 delta/p) xi + sqrt(2 delta/p) eta`, where `eta` is a random vector of
    the length `sqrt(p)`, orthogonal to the spike. So the overlap of the spikes at two times
    is `exp(-delta t)` in the limit. Several spikes turn at the same rate and stay
    orthogonal: each turns into a direction of its own, orthogonal to all of them.

    **Missing entries** (`observed = alpha`): each entry of a sample is seen with the
    probability alpha, independently. The algorithm is fed `y/sqrt(alpha)` with zeros for
    the entries that are missing. In the limit of large p these samples act like complete
    ones with the signal-to-noise ratio `alpha omega`, for every rule, if the spike is
    spread over many entries. `Stream` simulates them as they are. `Chain`, `Diffusion` and
    the theory are those of complete samples at `alpha omega`: of the limit, and no longer
    exact at finite p.

    **Arguments:**

    - `p`: the dimension, from 3 to 10^15. Beyond that, one sample would change the estimate
      by less than the rounding of double precision. It is kept as a floating-point array,
      `int(model.p)` is the whole number.
    - `omega`: the signal-to-noise ratio, not negative: one number, or an array of shape
      (spikes,), in any order. An array of shape (1,) is one number.
    - `spike`: the law of the entries of `xi`; of a spike that turns, at the beginning.
    - `turning`: the rate `delta` at which the spike turns, not negative and below p/2;
      `None` for a spike that stands still.
    - `observed`: the probability `alpha` that an entry is seen, in (0, 1]; `None` for
      complete samples.

    **Example:**

    ```pycon
    >>> import inopca_jax as ino
    >>> ino.SpikedModel(p=1000, omega=1.0, spike=ino.Sparse(rho=0.1))
    SpikedModel(p=1000, omega=1.0, spike=Sparse(rho=0.1))
    >>> model = ino.SpikedModel(p=1000, omega=2.0, turning=0.02, observed=0.5)
    >>> round(float(ino.best_rate(ino.Config(model=model))), 3)
    0.284
    ```
    """

    p: Dimension = eqx.field(
        converter=_dimension, default=10_000, metadata=dict(is_whole=True)
    )
    omega: Float[Array, "*spikes"] = eqx.field(converter=_omegas, default=1.0)
    spike: AbstractSpike = eqx.field(
        converter=part("spike", AbstractSpike), default_factory=Uniform
    )
    turning: Real | None = eqx.field(
        converter=_optional_number("turning"),
        default=None,
        metadata=dict(is_optional=True),
    )
    observed: Real | None = eqx.field(
        converter=_optional_number("observed"),
        default=None,
        metadata=dict(is_optional=True),
    )

    def __check_init__(self):
        require(
            "omega",
            self.omega,
            lambda x: np.isfinite(x) & (x >= 0),
            "the signal-to-noise ratio must be finite and not negative",
        )
        if self.spikes > 1:
            self._require_independent()
        if self.turning is not None:
            self._require_possible_turning(self.turning)
        if self.observed is not None:
            remedy = "pass a probability in (0, 1], or None for complete samples"
            require("observed", self.observed, lambda x: (x > 0) & (x <= 1), remedy)

    def _require_possible_turning(self, turning: Real) -> None:
        remedy = "the rate at which a spike turns must be finite and not negative"
        require("turning", turning, lambda x: np.isfinite(x) & (x >= 0), remedy)
        if not is_known(self.p):
            return
        if self.p < 2 * self.spikes:
            raise ValueError(
                f"turning with {self.spikes} spikes at p = {int(self.p)} is not allowed: "
                "every spike turns into a direction orthogonal to all of them, so pass at "
                "most p/2 spikes, or turning = None."
            )
        require(
            "turning",
            turning,
            lambda x: 2 * x < float(self.p),
            f"at p = {int(self.p)} the spike would turn by a right angle or more in one "
            "sample; pass a rate below p/2",
        )

    def _require_independent(self) -> None:
        """Refuses several spikes that may not be linearly independent."""
        if is_known(self.p) and self.spikes >= self.p:
            raise ValueError(
                f"omega of shape ({self.spikes},) at p = {int(self.p)} is not allowed: "
                "spikes are orthogonal to each other, so pass fewer of them than p."
            )
        if isinstance(self.spike, Sparse) and is_known(self.p):
            # Two spikes are equal with a probability of about exp(-2 p rho (1 - rho)).
            needed = _ENTRIES_PER_SPIKE * self.spikes
            require(
                "spike.rho",
                self.spike.rho,
                lambda rho: self.p * rho * (1 - rho) >= needed,
                f"{self.spikes} spikes are made orthogonal, for which p rho (1 - rho) has "
                f"to be at least {needed}, here at p = {int(self.p)}; pass a rho nearer to "
                "1/2, a larger p or fewer spikes",
            )

    @property
    def effective_omega(self) -> Float[Array, "*spikes"]:
        """The signal-to-noise ratio of what an algorithm is fed, `alpha omega`."""
        return self.omega if self.observed is None else self.observed * self.omega

    @property
    def spikes(self) -> int:
        """The number of spikes."""
        return self.omega.shape[0] if self.omega.ndim else 1

    def strongest_first(self) -> Int[Array, " spikes"]:
        """Returns the indices of the spikes in the order of `omega`, the largest first."""
        return jnp.argsort(-self.omega.reshape(-1), stable=True)

    def target_omegas(self, components: int) -> Float[Array, " components"]:
        """Returns the signal-to-noise ratio of the spike that each component is to find:
        the i-th component the i-th strongest, and 0 where there is none."""
        omegas = self.effective_omega.reshape(-1)
        if self.spikes > 1:
            omegas = omegas[self.strongest_first()]
        return (
            jnp.zeros(components, omegas.dtype).at[: self.spikes].set(omegas[:components])
        )

    def phases(self) -> "tuple[SpikedModel, ...]":
        return (self,)

    def changes(self) -> Float[Array | np.ndarray, " changes"]:
        return np.zeros(0)


def _models(models: Any) -> tuple[Any, ...]:
    return tuple(require_list("models", models, "pass a list of SpikedModel"))


class Switching(AbstractModel):
    """A stream whose spike switches to a new one, at given times.

    Overlaps are measured with the spike in force. At the time of a switch that is the new
    one: a trajectory is right-continuous, as in `eq:continous_embedding`.

    **Arguments:**

    - `models`: the models in their order, all with the same `p`.
    - `times`: the macroscopic times of the switches, increasing: `models[i + 1]` takes over
      at `times[i]`.

    **Example:**

    ```pycon
    >>> import inopca_jax as ino
    >>> before = ino.SpikedModel(p=1000, omega=1.0)
    >>> after = ino.SpikedModel(p=1000, omega=2.0)
    >>> model = ino.Switching([before, after], times=[10.0])
    >>> len(model.phases()), model.changes().tolist()
    (2, [10.0])
    ```
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
        counts = [model.spikes for model in self.models]
        if len(set(counts)) > 1:
            raise ValueError(
                f"models have {counts} spikes: overlaps are measured with the spikes in "
                "force, so give all models the same number, if need be with omega = 0."
            )
        dimensions = [model.p for model in self.models]
        if is_known(*dimensions) and len(set(map(float, dimensions))) > 1:
            raise ValueError(
                f"models have p = {sorted(map(int, dimensions))}: the estimate keeps its "
                "dimension, so give all of them the same p."
            )

    @property
    def p(self) -> Dimension:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.models[0].p

    def phases(self) -> tuple[SpikedModel, ...]:
        return self.models

    def changes(self) -> Float[Array | np.ndarray, " changes"]:
        return self.times
