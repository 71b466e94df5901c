"""The effective gain along a path, and the path of the best gain."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._check import Checked, as_times, require, require_instance
from .._config import Config, require_single, rule_of_one
from .._numerics import cast
from .._rule import AdaptiveInoPCA, initial_state
from .._trajectory import AbstractTrajectory
from .._types import Times, real
from .bounds import oracle_overlap
from .limit import limit_coefficients
from .mean_field import mean_field
from .velocity import omegas_at


def effective_gain(
    config: Checked[Config], path: Checked[AbstractTrajectory]
) -> Float[Array, " times"]:
    """Returns the gain `nu_t` along a path of the mean field: INO-PCA's is `tau/lam`.

    An algorithm acts on the overlap only through this number, whose best value is
    `eq:optimal_nu_t`. Where the gain depends on the sample, this is its mean with the
    weight `S^2`.

    **Arguments:**

    - `config`: the config whose rule is used. A schedule with a state is refused: the path
      does not contain the state.
    - `path`: one path, with arrays of shape (times,).

    **Returns:**

    The gains at the times of the path, of shape (times,).

    **Example:**

    ```pycon
    >>> import inopca_jax as ino
    >>> config = ino.Config(ino.Oja(tau=0.5), ts=[0.0, 10.0])
    >>> ino.effective_gain(config, ino.mean_field(config)).tolist()
    [0.5, 0.5]
    ```
    """
    require_instance("config", config, Config)
    require_single(config, "effective_gain")
    require_instance("path", path, AbstractTrajectory)
    if path.q.ndim != 1:
        raise ValueError(
            f"path with q of shape {path.q.shape} is not allowed: pass one path, of shape "
            "(times,)."
        )
    config = cast(config, path.q.dtype)
    state = initial_state(config.rule, config.model.p)
    if jax.tree.leaves(state):
        raise ValueError(
            f"tau = {type(config.rule.tau).__name__} is not allowed: its rate follows from "
            "a state that a Trajectory does not hold."
        )
    ts = jnp.asarray(path.ts, path.q.dtype)
    omegas = omegas_at(config, ts)

    def gain(t: Array, omega: Array, q: Array, lam: Array) -> Array:
        p = config.model.p
        limit = limit_coefficients(rule_of_one(config), omega, p, t, q, lam, state)
        return limit.a1 / limit.s2

    return jax.vmap(gain)(ts, omegas, path.q, path.lam)


def best_overlap(config: Checked[Config], ts: Checked[Times]) -> Float[Array, " times"]:
    """Returns `|q|` from the config's start under the gain that raises it fastest.

    No gain does better at any time (`oracle_overlap`; of a spike that turns, the mean field
    of `AdaptiveInoPCA`), unless the spike switches: what is best before a switch need not
    be best after it.

    **Arguments:**

    - `config`: its model and its start are used.
    - `ts`: the times, of shape (times,).

    **Returns:**

    The overlaps, of shape (times,).

    **Example:**

    ```pycon
    >>> import inopca_jax as ino
    >>> import numpy as np
    >>> best = ino.best_overlap(ino.Config(), np.array([0.0, 50.0]))
    >>> [round(float(q), 3) for q in best]
    [0.1, 0.977]
    ```
    """
    require_instance("config", config, Config)
    require_single(config, "best_overlap")
    times = as_times("ts")(ts)
    require("ts", times, lambda x: np.isfinite(x) & (x >= 0), "times start at 0")
    model, *later = config.model.phases()
    if later or model.turning is not None:
        best = eqx.tree_at(lambda c: (c.rule, c.ts), config, (AdaptiveInoPCA(), times))
        return jnp.abs(mean_field(best).q)
    q0, _ = config.start.moments(model.spike)
    return jnp.abs(oracle_overlap(model.effective_omega, q0, real(times)))
