"""The numbers of a config that are best, by gradients through its mean field."""

import warnings
from collections.abc import Callable, Sequence
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
from .._config import Config, cast
from .._interrupt import deferred_interrupt
from .._leaves import full_name, leaves, replaced
from .._pickling import Pickled
from .._types import Real
from .objective import AbstractObjective, FinalOverlap
from .search import Problem, Search, by, newton_like


class Tuned(Pickled):
    """The best config that was met, and how it was found.

    `value` is its objective, `bound` the best that any gain could have and `gap` how far
    from it `value` is; `values` are those at the start and after each step, and `stopped`
    says why there are no more.
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
    """`config` with those of its numbers that `over` names made best for `objective`.

    `over` names positive numbers of the rule or the start: `"rule.tau"`, `("rule.tau",
    "start.lam0")`, `"rule.tau.taus"` for all knots of an `Interpolated` schedule. They
    move on a logarithmic scale. The objective is `FinalOverlap()` unless told otherwise.

    By default the steps are those of BFGS, each halved until it makes the objective
    better, and it stops when none does. An `optimiser` of optax's sees the gradients with
    respect to the logarithms, and takes all of its `steps`. Derivatives are taken through
    the solver of the mean field: forwards for up to 256 numbers, backwards for more, which
    is where the second becomes cheaper. It is done in double precision, whatever JAX's
    mode. A search that diverges (a warning), or that Ctrl-C ends, returns the best config
    that it met.
    """
    aim: AbstractObjective = FinalOverlap() if objective is None else objective
    require_instance("config", config, Config)
    require_instance("objective", aim, AbstractObjective)
    steps = require_whole("steps", steps, 1, "pass a whole number of steps, at least 1")
    if optimiser is not None:
        require_instance("optimiser", optimiser, optax.GradientTransformation)
    names = _names(config, over)
    _require_tunable(config, names)
    precision = jnp.result_type(float)
    with jax.enable_x64(True), deferred_interrupt():
        wide, aim = cast(config, np.float64), cast(aim, np.float64)
        bound, q0 = map(float, _bound_and_overlap(aim, wide))
        _require_overlap(q0)
        aim.require_reachable(wide)
        search = Search(Problem(wide, aim, names))
        if not np.isfinite(search.loss):
            raise ValueError(
                f"The objective cannot be computed at the start of the search, {over} = "
                f"{[leaves(config)[name].tolist() for name in names]}: pass a config whose "
                "mean field can be integrated."
            )
    descend = newton_like if optimiser is None else by(optimiser)
    with jax.enable_x64(True):
        stopped = _until_interrupted(descend, search, steps, progress)
        best = leaves(search.problem.at(search.best))
    if stopped.startswith("diverged"):
        warnings.warn(
            f"The search {stopped}; the best config before is returned, and a "
            "smaller learning rate of the optimiser may help.",
            stacklevel=2,
        )
    sign = -1 if aim.larger_is_better else 1
    values = sign * np.asarray(search.losses)
    value = float(sign * np.min(search.losses))
    return Tuned(
        replaced(config, {name: best[name].astype(precision) for name in names}),
        value,
        bound,
        sign * (value - bound),
        values,
        stopped,
    )


def _until_interrupted(
    descend: Callable[[Search, int, Callable[[], Any]], str],
    search: Search,
    steps: int,
    progress: Any,
) -> str:
    """Takes the steps of the descent; says why there are no more."""
    with tqdm(total=steps, desc="tune", disable=not progress) as bar:
        try:
            with deferred_interrupt() as interrupted:

                def tick() -> None:
                    bar.update()
                    if interrupted.is_set():
                        raise KeyboardInterrupt

                return descend(search, steps, tick)
        except KeyboardInterrupt:
            return f"interrupted after {len(search.losses) - 1} steps"


@eqx.filter_jit
def _bound_and_overlap(objective: AbstractObjective, config: Config) -> tuple[Real, Real]:
    q0, _ = config.start.moments(config.model.phases()[0].spike)
    return objective.bound(config), q0


def _names(config: Config, over: Any) -> tuple[str, ...]:
    """The full names of the numbers that `over` names, each once."""
    remedy = "pass names of numbers, such as 'rule.tau' or ['rule.tau', 'start.lam0']"
    asked = [over] if isinstance(over, str) else require_list("over", over, remedy)
    if not all(isinstance(name, str) for name in asked):
        refuse("over", over, remedy)
    names = tuple(full_name(config, name, "over") for name in asked)
    for name in names:
        if names.count(name) > 1:
            same = [
                repr(one) for one, full in zip(asked, names, strict=True) if full == name
            ]
            refuse("over", over, f"{' and '.join(same)} are the same number; name it once")
    return names


def _require_tunable(config: Config, names: tuple[str, ...]) -> None:
    if not names:
        raise ValueError("over = () is not allowed: name at least one number to tune.")
    for name in names:
        if not name.startswith(("rule.", "start.")):
            raise ValueError(
                f"over = {name!r} is not allowed: it belongs to the problem, not to the "
                "algorithm. Tune numbers of the rule or of the start."
            )
        remedy = "it moves on a logarithmic scale, so start it from a positive number"
        require(name, leaves(config)[name], positive, remedy)


def _require_overlap(q0: float) -> None:
    remedy = (
        "in the mean field an overlap of zero stays zero, whatever the rate; from a cold "
        "start, tune from the size of its chance overlap, WarmStart(q0=p**-0.5)"
    )
    require("the start's overlap", q0, lambda q: q != 0, remedy)
