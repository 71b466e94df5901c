"""The function `tune`: the best numbers of a config, by gradients of its mean field."""

import warnings
from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Float
from tqdm import tqdm

from .._check import (
    Checked,
    positive,
    refuse,
    require,
    require_instance,
    require_list,
    require_whole,
)
from .._config import Config, require_plain_schedule
from .._interrupt import deferred_interrupt
from .._leaves import full_name, leaves, replaced
from .._module import PublicModule
from .._numerics import cast
from .._order_parameters.components_start import strongest_overlaps
from .._rule import AbstractRule
from .._types import Real
from .objective import AbstractObjective, FinalDistance, FinalOverlap, TimeToReach
from .robust import AbstractRobust, with_omega
from .search import Descent, Problem, Search, bfgs, optax_descent


class Tuned(PublicModule):
    """The result of `tune`: the best config that was evaluated, and how it was reached.

    **Arguments:**

    - `config`: the best config.
    - `value`: its objective.
    - `bound`: the best value that any gain could have.
    - `gap`: the difference of `value` and `bound`, positive if `bound` is better.
    - `values`: the objective at the start and after every step, of shape (steps + 1,).
    - `stopped`: the reason why the search ended.

    **Example:**

    ```pycon
    >>> import inopca_jax as ino
    >>> config = ino.Config(ts=[0.0, 50.0])
    >>> result = ino.tune(config, steps=3)
    >>> result.values.shape, bool(result.value >= result.values[0])
    ((4,), True)
    ```
    """

    config: Config
    value: float
    bound: float
    gap: float
    values: Float[np.ndarray, " steps"]
    stopped: str


def tune(
    config: Checked[Config],
    *,
    objective: Checked[AbstractObjective | None] = None,
    over: Checked[str | Sequence[str]] = "rule.tau",
    steps: Checked[int] = 500,
    optimiser: Checked[optax.GradientTransformation | None] = None,
    progress: Any = False,
) -> Tuned:
    """Returns the config in which the numbers that `over` names optimise `objective`.

    The default search is BFGS, with every step halved until the objective gets better. It
    ends when no step does. Derivatives are taken through the solver of the mean field: in
    forward mode for up to 256 numbers, in reverse mode for more. The search runs in double
    precision, whatever JAX's mode. If it diverges (with a warning), or is ended by Ctrl-C,
    the best config so far is returned.

    **Arguments:**

    - `config`: the problem, and the numbers to begin from.
    - `objective`: what to optimise, by default `FinalOverlap()`, and `FinalDistance()` if
      there are several spikes or components, or if the rule acts on all components at
      once.
    - `over`: the names of positive numbers of the rule or the start, which move on a
      logarithmic scale: `"rule.tau"`, `("rule.tau", "start.lam0")`, `"rule.tau.taus"` for
      all knots of an `Interpolated` schedule.
    - `steps`: the most steps.
    - `optimiser`: an optimiser of optax, to use instead of BFGS. It gets the gradients with
      respect to the logarithms, and takes all of its `steps`.
    - `progress`: whether to show a progress bar.

    **Returns:**

    A `Tuned`.

    **Example:**

    ```pycon
    >>> import inopca_jax as ino
    >>> config = ino.Config(ts=[0.0, 50.0])
    >>> result = ino.tune(config, over="rule.tau", steps=3)
    >>> float(result.config.rule.tau.value) != 0.5, bool(result.gap > 0)
    (True, True)
    ```
    """
    require_instance("config", config, Config)
    require_plain_schedule(config.rule, "tune")
    chosen = objective
    if chosen is None:
        has_gain = config.is_single and isinstance(config.rule, AbstractRule)
        chosen = FinalOverlap() if has_gain else FinalDistance()
    require_instance("objective", chosen, AbstractObjective)
    steps = require_whole("steps", steps, 1, "pass a whole number of steps, at least 1")
    if optimiser is not None:
        require_instance("optimiser", optimiser, optax.GradientTransformation)
    names = _names(config, over)
    _require_tunable(config, names)
    precision = jnp.result_type(float)
    descent = bfgs if optimiser is None else optax_descent(optimiser)
    bar = tqdm(total=steps, desc="tune", disable=not progress, postfix="compiling")
    with bar, jax.enable_x64(True):
        with deferred_interrupt():
            wide, chosen = cast(config, np.float64), cast(chosen, np.float64)
            bound, q0 = map(float, _bound_and_overlap(chosen, wide))
            _require_overlap(q0)
            _require_reachable(chosen, wide)
            search = Search(Problem(wide, chosen, names))
            if not np.isfinite(search.loss):
                raise ValueError(
                    "The objective cannot be computed at the start of the search, "
                    f"{over} = {[leaves(config)[name].tolist() for name in names]}: pass a "
                    "config whose mean field can be integrated."
                )
        stopped = _until_interrupted(descent, search, steps, bar)
        best = leaves(search.problem.config_at(search.best))
    if stopped.startswith("diverged"):
        warnings.warn(
            f"The search {stopped}; the best config before is returned. Pass an optimiser "
            "with a smaller learning rate.",
            stacklevel=2,
        )
    sign = -1 if chosen.larger_is_better else 1
    values = sign * np.asarray(search.losses)
    value = float(sign * np.min(search.losses))
    return Tuned(
        config=replaced(config, {name: best[name].astype(precision) for name in names}),
        value=value,
        bound=bound,
        gap=sign * (value - bound),
        values=values,
        stopped=stopped,
    )


def _until_interrupted(descent: Descent, search: Search, steps: int, bar: tqdm) -> str:
    """Runs the descent until it ends or Ctrl-C is pressed, and returns the reason."""
    try:
        with deferred_interrupt() as interrupted:

            def after_step() -> None:
                bar.postfix = ""
                bar.update()
                if interrupted.is_set():
                    raise KeyboardInterrupt

            return descent(search, steps, after_step)
    except KeyboardInterrupt:
        return f"interrupted after {len(search.losses) - 1} steps"


@eqx.filter_jit
def _bound_and_overlap(objective: AbstractObjective, config: Config) -> tuple[Real, Real]:
    # Of several components, the one that overlaps least with what it is to find.
    model = config.model.phases()[0]
    overlaps = strongest_overlaps(config.rule, model, config.start, config.components)
    least = jnp.min(jnp.linalg.svd(overlaps, compute_uv=False))
    return objective.bound(config), least


def _names(config: Config, over: Any) -> tuple[str, ...]:
    """Returns the full names of the numbers that `over` names, all different."""
    remedy = "pass names of numbers, such as 'rule.tau' or ['rule.tau', 'start.lam0']"
    short_names = [over] if isinstance(over, str) else require_list("over", over, remedy)
    if not all(isinstance(name, str) for name in short_names):
        refuse("over", over, remedy)
    names = tuple(full_name(config, name, "over") for name in short_names)
    for name in names:
        if names.count(name) > 1:
            pairs = zip(short_names, names, strict=True)
            same = [repr(short) for short, full in pairs if full == name]
            refuse("over", over, f"{' and '.join(same)} are the same number; name it once")
    return names


def _require_tunable(config: Config, names: tuple[str, ...]) -> None:
    """Raises `ValueError` unless these are positive numbers of the rule or the start."""
    if not names:
        raise ValueError("over = () is not allowed: name at least one number to tune.")
    for name in names:
        if not name.startswith(("rule.", "start.")):
            raise ValueError(
                f"over = {name!r} is not allowed: it belongs to the problem, not to the "
                "algorithm. Tune numbers of the rule or of the start."
            )
        remedy = "it is tuned on a logarithmic scale; begin from a positive number"
        require(name, leaves(config)[name], positive, remedy)


def _require_overlap(q0: float) -> None:
    """Raises `ValueError` if the overlap at the start is zero."""
    remedy = (
        "in the mean field an overlap of zero stays zero, whatever the rate; for a cold "
        "start, tune from its typical overlap, WarmStart(q0=p**-0.5)"
    )
    require("the start's overlap", q0, lambda q: q > 1e-12, remedy)


def _require_reachable(objective: AbstractObjective, config: Config) -> None:
    """Raises `ValueError` if the objective asks for a level that no gain reaches."""
    if isinstance(objective, AbstractRobust):
        for omega in objective.omegas:
            _require_reachable(objective.objective, with_omega(config, omega))
    elif isinstance(objective, TimeToReach):
        objective.require_reachable(config)
