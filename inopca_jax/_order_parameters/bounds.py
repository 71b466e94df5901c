"""How good any algorithm can be."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float

from .._check import Checked, positive, reals, require
from .._types import Real


def oracle_overlap(
    omega: Checked[ArrayLike], q0: Checked[ArrayLike], t: Checked[ArrayLike]
) -> Float[Array, "*n"]:
    """Returns the best overlap that any gain can reach at time `t` from `q0`.

    `eq:optimal_nu_t` makes `z = q^2` obey `z' = omega^2 z (1-z)^2 / (omega z + 1)`,
    whose solution is `log(z/(1-z)) + (omega+1)/(1-z) = omega^2 t + const`. Of several
    components that begin along their own spikes, each has the bound of its spike's `omega`.
    It is for spikes that stand still; see `best_overlap` for others. Of samples with
    missing entries, pass `model.effective_omega`.

    **Arguments:**

    - `omega`: the signal-to-noise ratio, at least 0.
    - `q0`: the overlap at time 0, in [-1, 1].
    - `t`: the time, at least 0.

    **Returns:**

    The overlap, of the shape to which the arguments broadcast.

    **Example:**

    ```pycon
    >>> import inopca_jax as ino
    >>> round(float(ino.oracle_overlap(omega=1.0, q0=0.1, t=50.0)), 3)
    0.977
    ```
    """
    _require_omega(omega)
    require("q0", q0, lambda x: np.abs(x) <= 1, "an overlap lies in [-1, 1]")
    _require_time(t)
    return _oracle_overlaps(*broadcastable(omega=omega, q0=q0, t=t))


def _oracle_overlap(omega: Real, q0: Real, t: Real) -> Real:
    # In the logit s of z, and f = log((omega+1) e^s), it reads f + e^f = const: convex
    # and increasing, so Newton's iterates from the right come down to the root. From where
    # they begin the error is below 1, and squared by each: six leave nothing but rounding,
    # and are compiled at once, where a root finder's loop takes half a second.
    moves = (jnp.abs(q0) > 0) & (jnp.abs(q0) < 1)
    z0 = jnp.where(moves, q0, 0.5) ** 2
    shift = jnp.log1p(omega)
    f0 = jnp.log(z0) - jnp.log1p(-z0) + shift
    level = f0 + jnp.exp(f0) + omega**2 * t
    right = jnp.where(level > 1, jnp.log(jnp.maximum(level, 1)), level)
    f = right
    for _ in range(6):
        f = f - (f + jnp.exp(f) - level) / (1 + jnp.exp(f))
    # z = e^s/(1 + e^s), and q = sqrt(z), without cancelling at either end.
    q = jnp.sqrt(1 / (1 + jnp.exp(shift - f)))
    return jnp.where(moves, jnp.sign(q0) * q, q0)


_oracle_overlaps = jax.jit(jnp.vectorize(_oracle_overlap))


def offline_overlap(omega: Checked[ArrayLike], t: Checked[ArrayLike]) -> Float[Array, "*n"]:
    """Returns the overlap of offline PCA after `n = p t` samples.

    It is that of the top eigenvector of the sample covariance. No algorithm that sees the
    same samples does better in the limit. It is zero up to `t = 1/omega^2` (Baik, Ben Arous
    and Péché; Johnstone). Each of several spikes has this overlap with its eigenvector. A
    spike that turns is lost by offline PCA, which weighs old and new samples alike.

    **Arguments:**

    - `omega`: the signal-to-noise ratio, at least 0.
    - `t`: the time, at least 0.

    **Returns:**

    The overlap, of the shape to which the arguments broadcast.

    **Example:**

    ```pycon
    >>> import inopca_jax as ino
    >>> [round(float(q), 3) for q in ino.offline_overlap(omega=1.0, t=[1.0, 50.0])]
    [0.0, 0.98]
    ```
    """
    _require_omega(omega)
    _require_time(t)
    omega, t = jnp.broadcast_arrays(*broadcastable(omega=omega, t=t))
    information = omega**2 * t
    learns = information > 1
    # Held off zero where nothing is learnt: the root's derivative is infinite there.
    q2 = jnp.where(learns, information - 1, 1) / jnp.where(learns, information + omega, 1)
    return jnp.where(learns, jnp.sqrt(q2), 0)


def best_lam0(
    tau: Checked[ArrayLike], omega: Checked[ArrayLike], q0: Checked[ArrayLike] = 0.0
) -> Float[Array, "*n"]:
    """Returns the norm of the start from which INO-PCA's overlap first rises fastest.

    Its gain `tau/lam0` is then that of `eq:optimal_nu_t`; near `q0 = 0` this norm is the
    paper's `tau/omega`.

    **Arguments:**

    - `tau`: the learning rate, positive.
    - `omega`: the signal-to-noise ratio, positive.
    - `q0`: the overlap of the start, in (-1, 1).

    **Returns:**

    The norm `lam0`, of the shape to which the arguments broadcast.

    **Example:**

    ```pycon
    >>> import inopca_jax as ino
    >>> float(ino.best_lam0(tau=0.5, omega=1.0))
    0.5
    ```
    """
    require("tau", tau, positive, "it must be a positive, finite number")
    require("omega", omega, positive, "without a signal no norm is better than another")
    require("q0", q0, lambda x: np.abs(x) < 1, "the overlap must be inside (-1, 1)")
    tau, omega, q0 = broadcastable(tau=tau, omega=omega, q0=q0)
    q2 = q0**2
    return tau * (omega * q2 + 1) / (omega * (1 - q2))


def broadcastable(**arguments: Any) -> list[Array]:
    """Returns the arguments as arrays, and refuses shapes that do not broadcast."""
    leaves = {name: reals(name, value) for name, value in arguments.items()}
    shapes = [leaf.shape for leaf in leaves.values()]
    try:
        np.broadcast_shapes(*shapes)
    except ValueError:
        raise ValueError(
            f"{', '.join(leaves)} of shapes {', '.join(map(str, shapes))} are not allowed: "
            "pass numbers, or arrays of shapes that NumPy broadcasts."
        ) from None
    return list(leaves.values())


def _require_omega(omega) -> None:
    require("omega", omega, lambda x: np.isfinite(x) & (x >= 0), "pass omega >= 0")


def _require_time(t) -> None:
    require("t", t, lambda x: np.isfinite(x) & (x >= 0), "times start at 0")
