"""The gain that a config comes down to, and the path of the best one."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._check import Checked, as_times, require, require_instance
from .._config import Config, cast
from .._rule import AdaptiveInoPCA
from .._trajectory import Trajectory
from .._types import Times, real
from .bounds import oracle_overlap
from .limit import limit
from .mean_field import mean_field


def effective_gain(
    config: Checked[Config], path: Checked[Trajectory]
) -> Float[Array, " times"]:
    """`nu_t`, the gain along a path of the mean field: INO-PCA's is `tau/lam`.

    All that an algorithm does to the overlap it does through this number, which
    `eq:optimal_nu_t` says the best value of. (Where the gain depends on the sample, its
    mean by `S^2`.) A schedule with a memory is refused: the path does not hold it.
    """
    require_instance("config", config, Config)
    require_instance("path", path, Trajectory)
    if path.q.ndim != 1:
        raise ValueError(
            f"path with q of shape {path.q.shape} is not allowed: pass one path, of shape "
            "(times,)."
        )
    memory = config.rule.tau.init(config.model.float_p)
    if jax.tree.leaves(memory):
        raise ValueError(
            f"tau = {type(config.rule.tau).__name__} is not allowed: its rate follows from "
            "a memory that a Trajectory does not hold."
        )
    config = cast(config, path.q.dtype)
    changes = jnp.asarray(config.model.changes(), path.q.dtype)
    omegas = jnp.stack([model.omega for model in config.model.phases()])

    def one(t: Array, q: Array, lam: Array) -> Array:
        omega = omegas[jnp.sum(changes <= t)]
        a = limit(config.rule, omega, config.model.float_p, t, q, lam, memory)
        return a.a1 / a.s2

    return jax.vmap(one)(jnp.asarray(path.ts, path.q.dtype), path.q, path.lam)


def best_overlap(config: Checked[Config], ts: Checked[Times]) -> Float[Array, " times"]:
    """The overlap's size from the config's start under the gain that raises it fastest.

    No gain does better at any time (`oracle_overlap`), unless the spike changes: what is
    best before is not what the next spike profits from most.
    """
    require_instance("config", config, Config)
    times = as_times("ts")(ts)
    require("ts", times, lambda x: np.isfinite(x) & (x >= 0), "times start at 0")
    model, *later = config.model.phases()
    if later:
        best = eqx.tree_at(lambda c: (c.rule, c.ts), config, (AdaptiveInoPCA(), times))
        return jnp.abs(mean_field(best).q)
    q0, _ = config.start.moments(model.spike)
    return jnp.abs(oracle_overlap(model.omega, q0, real(times)))
