"""What theory and simulation both return."""

import warnings
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from ._check import require_array
from ._pickling import Pickled
from ._types import Times


class Trajectory(Pickled):
    """The overlap and the norm at the times `ts`.

    Simulations have arrays (trials, times), theory (times,). `x` and `xi`, of one more
    axis, are there if the engine was asked for snapshots; `fluctuations` adds how runs
    scatter, by the standard deviations of `q` and `lam` and their correlation (0 if one
    of them has none), and by how much their means at this p differ from `q` and `lam`.
    """

    ts: Times
    q: Float[Array, "*trials times"]
    lam: Float[Array, "*trials times"]
    x: Float[Array, "*trials times p"] | None = None
    xi: Float[Array, "*trials times p"] | None = None
    q_std: Float[Array, "*trials times"] | None = None
    lam_std: Float[Array, "*trials times"] | None = None
    correlation: Float[Array, "*trials times"] | None = None
    q_shift: Float[Array, "*trials times"] | None = None
    lam_shift: Float[Array, "*trials times"] | None = None

    def __check_init__(self):
        require_array("ts", self.ts, "(times,)", ndim=1)
        times, vectors = len(self.ts), ("x", "xi")
        there = lambda name, value: name in ("q", "lam") or value is not None
        arrays: dict[str, Any] = {n: a for n, a in vars(self).items() if there(n, a)}
        for name, value in arrays.items():
            if name == "ts":
                continue
            axes = "(..., times, p)" if name in vectors else "(..., times)"
            require_array(name, value, axes)
            if value.shape[-2 if name in vectors else -1 :][:1] != (times,):
                raise ValueError(
                    f"{name} of shape {value.shape} is not allowed: ts has {times} times, "
                    f"so pass an array of shape {axes}."
                )

    @property
    def finite(self) -> Bool[Array, "*trials"]:
        """Which trials stayed finite; a diverged one is kept, and flagged by this."""
        return jnp.all(jnp.isfinite(self.q) & jnp.isfinite(self.lam), axis=-1)

    def abs(self) -> "Trajectory":
        """The same with `|q|`, for algorithms that may settle on either sign."""
        turned = jnp.where(self.q < 0, -1, 1).astype(self.q.dtype)
        with_sign = lambda run: [run.q, run.correlation, run.q_shift]
        fields = [None if a is None else a * turned for a in with_sign(self)]
        none = lambda a: a is None
        return eqx.tree_at(with_sign, self, fields, is_leaf=none)

    def mean(self) -> "Trajectory":
        """The mean over the finite trials; warns if it leaves any out."""
        return self._over_trials(lambda a: np.mean(a, axis=0), least=1)

    def std(self) -> "Trajectory":
        """The standard deviation over the finite trials (divisor trials - 1)."""
        return self._over_trials(lambda a: np.std(a, axis=0, ddof=1), least=2)

    def _over_trials(self, statistic, least: int) -> "Trajectory":
        if self.q.ndim != 2:
            raise ValueError(
                f"q has shape {self.q.shape}: a mean or standard deviation over trials "
                "needs arrays (trials, times)."
            )
        finite = np.asarray(self.finite)
        if not finite.all():
            warnings.warn(
                f"{(~finite).sum()} of {finite.size} trials are not finite and left out.",
                stacklevel=3,
            )

        def reduce(a: Array) -> Array:
            # On the host, in double precision and in the order of the trials, so that
            # the result does not depend on the device.
            kept = np.asarray(a, dtype=float)[finite]
            if len(kept) < least:
                return jnp.full(a.shape[1:], jnp.nan, a.dtype)
            return jnp.asarray(statistic(kept), a.dtype)

        return Trajectory(self.ts, reduce(self.q), reduce(self.lam))
