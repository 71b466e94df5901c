"""What simulations and theory return: the overlap and the norm over time."""

import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from ._check import require_array
from ._result import AbstractResult, Variables
from ._types import Times

if TYPE_CHECKING:
    from typing import ClassVar as AbstractClassVar
else:
    from equinox import AbstractClassVar


class AbstractTrajectory(AbstractResult):
    """The overlap and the norm at some times, of one path or of many trials.

    Simulations have arrays of shape (trials, times), theory of shape (times,). It is the
    base class of `Trajectory`, `Snapshots` and `Prediction`.

    **Example:**

    ```pycon
    >>> import inopca_jax as ino
    >>> config = ino.Config(model=ino.SpikedModel(p=100), ts=[0.0, 1.0, 2.0])
    >>> isinstance(ino.mean_field(config), ino.AbstractTrajectory)
    True
    ```
    """

    ts: eqx.AbstractVar[Times]
    q: eqx.AbstractVar[Float[Array, "*trials times"]]
    lam: eqx.AbstractVar[Float[Array, "*trials times"]]
    _odd: AbstractClassVar[tuple[str, ...]]
    """The fields that change their sign with `x`."""
    _kind: AbstractClassVar[str | None]
    """The default of `to_xarray`'s `kind`; None: by the shape."""

    def __check_init__(self):
        require_array("ts", self.ts, "(times,)", ndim=1)
        times = len(self.ts)
        for name, value in vars(self).items():
            if name == "ts":
                continue
            axes = "(..., times, p)" if name in ("x", "xi") else "(..., times)"
            require_array(name, value, axes)
            if value.shape[-2 if name in ("x", "xi") else -1 :][:1] != (times,):
                raise ValueError(
                    f"{name} of shape {value.shape} is not allowed: ts has {times} times, "
                    f"so pass an array of shape {axes}."
                )

    @property
    def finite(self) -> Bool[Array, "*trials"]:
        """Whether each trial stayed finite: False for one that diverged, which is kept."""
        return jnp.all(jnp.isfinite(self.q) & jnp.isfinite(self.lam), axis=-1)

    def abs(self):
        """Returns the same with `|q|`, for algorithms that may settle on either sign.

        **Returns:**

        A trajectory of the same type and shape.
        """
        sign = jnp.where(self.q < 0, -1, 1).astype(self.q.dtype)
        odd = lambda run: [getattr(run, name) for name in self._odd]
        return eqx.tree_at(odd, self, [values * sign for values in odd(self)])

    def mean(self) -> "Trajectory":
        """Returns the mean over the finite trials; warns if any is left out.

        **Returns:**

        A `Trajectory` of shape (times,).
        """
        return self._over_trials(lambda a: np.mean(a, axis=0), least=1)

    def std(self) -> "Trajectory":
        """Returns the standard deviation over the finite trials (divisor trials - 1).

        **Returns:**

        A `Trajectory` of shape (times,).
        """
        return self._over_trials(lambda a: np.std(a, axis=0, ddof=1), least=2)

    def _variables(self) -> tuple[Variables, Variables, str]:
        dims = ("trial", "time") if self.q.ndim == 2 else ("time",)
        if self.q.ndim > 2:
            raise ValueError(
                f"q has shape {self.q.shape}: a table needs arrays (trials, times) or "
                "(times,). Index the axes before these."
            )
        variables: Variables = {
            name: ((*dims, "entry") if name in ("x", "xi") else dims, value)
            for name, value in vars(self).items()
            if name != "ts"
        }
        coords: Variables = {"time": (("time",), self.ts)}
        if self.q.ndim == 2:
            variables["finite"] = ((), np.sum(np.asarray(self.finite)))
            coords["trial"] = (("trial",), np.arange(len(self.q)))
        return variables, coords, self._kind or ("theory", "trials")[self.q.ndim - 1]

    def _over_trials(self, statistic, least: int) -> "Trajectory":
        if self.q.ndim != 2:
            raise ValueError(
                f"q has shape {self.q.shape}: a mean or standard deviation over trials "
                "needs arrays (trials, times)."
            )
        q, lam = over_finite_trials([self.q, self.lam], self.finite, statistic, least)
        return Trajectory(self.ts, q, lam)


def over_finite_trials(
    arrays: Sequence[Array],
    finite: Bool[Array, " trials"],
    statistic: Callable[[np.ndarray], np.ndarray],
    least: int,
) -> list[Array]:
    """Returns a statistic of arrays over their first axis, that of trials, and over the
    finite trials alone; NaN if there are fewer than `least`. Warns if any is left out."""
    is_finite = np.asarray(finite)
    if not is_finite.all():
        warnings.warn(
            f"{(~is_finite).sum()} of {is_finite.size} trials are not finite and left out.",
            stacklevel=6,  # the caller of `mean` or `std`; Equinox wraps methods
        )

    def reduce(a: Array) -> Array:
        # On the host, in double precision and in the order of the trials, so that the
        # result does not depend on the device.
        values = np.asarray(a, dtype=float)[is_finite]
        if len(values) < least:
            return jnp.full(a.shape[1:], jnp.nan, a.dtype)
        return jnp.asarray(statistic(values), a.dtype)

    return [reduce(a) for a in arrays]


class Trajectory(AbstractTrajectory):
    """The overlap and the norm at some times.

    **Arguments:**

    - `ts`: the macroscopic times, of shape (times,).
    - `q`: the overlap, of shape (trials, times) or (times,).
    - `lam`: the norm, of the same shape.

    **Example:**

    ```pycon
    >>> import jax.random as jr
    >>> import inopca_jax as ino
    >>> config = ino.Config(model=ino.SpikedModel(p=100), ts=[0.0, 1.0, 2.0])
    >>> runs = ino.simulate(config, key=jr.key(0), trials=4)
    >>> runs.q.shape, runs.mean().q.shape
    ((4, 3), (3,))
    >>> dict(runs.to_xarray().sizes)
    {'trial': 4, 'time': 3}
    ```
    """

    ts: Times
    q: Float[Array, "*trials times"]
    lam: Float[Array, "*trials times"]
    _odd: ClassVar[tuple[str, ...]] = ("q",)
    _kind: ClassVar[str | None] = None


class Snapshots(AbstractTrajectory):
    """Trials with the whole vectors at the times of observation.

    **Arguments:**

    - `ts`, `q`, `lam`: as of a `Trajectory`.
    - `x`: the estimate, of shape (trials, times, p).
    - `xi`: the spike in force, of the same shape.

    **Example:**

    ```pycon
    >>> import jax.random as jr
    >>> import inopca_jax as ino
    >>> config = ino.Config(model=ino.SpikedModel(p=100), ts=[0.0, 1.0, 2.0])
    >>> engine = ino.Chain(snapshots=True)
    >>> runs = ino.simulate(config, key=jr.key(0), trials=4, engine=engine)
    >>> runs.x.shape, runs.xi.shape
    ((4, 3, 100), (4, 3, 100))
    ```
    """

    ts: Times
    q: Float[Array, "*trials times"]
    lam: Float[Array, "*trials times"]
    x: Float[Array, "*trials times p"]
    xi: Float[Array, "*trials times p"]
    _odd: ClassVar[tuple[str, ...]] = ("q",)
    _kind: ClassVar[str | None] = "trials"


class Prediction(AbstractTrajectory):
    """A predicted path with the predicted scatter of runs about it at finite p.

    **Arguments:**

    - `ts`, `q`, `lam`: as of a `Trajectory`.
    - `q_std`, `lam_std`: the standard deviations over runs.
    - `correlation`: that of `q` and `lam`; 0 if one of them does not scatter, NaN if it is
      not computed.
    - `q_shift`, `lam_shift`: the mean over runs, less `q` and `lam`.

    **Example:**

    ```pycon
    >>> import inopca_jax as ino
    >>> config = ino.Config(model=ino.SpikedModel(p=100), ts=[0.0, 1.0, 2.0])
    >>> bars = ino.fluctuations(config)
    >>> bars.q.shape, bool(bars.q_std[-1] > 0)
    ((3,), True)
    ```
    """

    ts: Times
    q: Float[Array, "*trials times"]
    lam: Float[Array, "*trials times"]
    q_std: Float[Array, "*trials times"]
    lam_std: Float[Array, "*trials times"]
    correlation: Float[Array, "*trials times"]
    q_shift: Float[Array, "*trials times"]
    lam_shift: Float[Array, "*trials times"]
    _odd: ClassVar[tuple[str, ...]] = ("q", "correlation", "q_shift")
    _kind: ClassVar[str | None] = "theory"
