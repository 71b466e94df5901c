"""Derivatives of the mean field with respect to numbers of the config."""

import diffrax
import jax
from jaxtyping import Array

from .._check import Checked, require_instance
from .._config import Config, require_single
from .._leaves import full_name, leaves, replaced
from .._trajectory import Trajectory
from .mean_field import mean_field


def sensitivity(config: Checked[Config], name: Checked[str]) -> Trajectory:
    """Returns the derivatives of the mean field with respect to one number of the config.

    **Arguments:**

    - `config`: what to run.
    - `name`: the path to the number, such as `"rule.tau"` or `"start.lam0"`.

    **Returns:**

    A `Trajectory` whose `q` and `lam` are the derivatives, of shape (times,).

    **Example:**

    ```pycon
    >>> import inopca_jax as ino
    >>> config = ino.Config(start=ino.WarmStart(q0=0.3), ts=[0.0, 10.0, 50.0])
    >>> slope = ino.sensitivity(config, "rule.tau")
    >>> bool(slope.q[-1] < 0)  # a larger rate ends lower
    True
    ```
    """
    require_instance("config", config, Config)
    require_single(config, "sensitivity")
    name = full_name(config, name, "name")
    at = leaves(config)[name]
    if at.ndim:
        raise ValueError(
            f"name = {name!r} of shape {at.shape} is not allowed: pass the name of one "
            "number, or take jax.jacfwd of mean_field(..., adjoint=diffrax.ForwardMode())."
        )

    def path(x: Array) -> tuple[Array, Array]:
        there = replaced(config, {name: x})
        run = mean_field(there, adjoint=diffrax.ForwardMode())
        return run.q, run.lam

    return Trajectory(config.ts, *jax.jacfwd(path)(at))
