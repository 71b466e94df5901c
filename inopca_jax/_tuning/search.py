"""Descent on the logarithms of some of a config's numbers."""

import functools
from collections.abc import Callable
from typing import Any, TypeAlias

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float

from .._config import Config
from .._leaves import leaves, replaced
from .._types import Real
from .._xla import QUICK_TO_COMPILE, supported
from .objective import AbstractObjective

Logs: TypeAlias = Float[Array | np.ndarray, " numbers"]
"""The logarithms of the numbers: on this scale they stay positive, and a step is the same
fraction of a small one as of a large one."""

# Up to so many numbers a derivative forwards is cheaper than one backwards: its cost is
# that of a few more states for each, to a solver whose own work is far more.
_FEW = 256


class Problem(eqx.Module):
    """What is to be made small, as a function of the logarithms."""

    config: Config
    objective: AbstractObjective
    names: tuple[str, ...] = eqx.field(static=True)

    def start(self) -> Logs:
        known = leaves(self.config)
        return np.log(np.concatenate([np.ravel(known[name]) for name in self.names]))

    def at(self, logs: Logs) -> Config:
        known, values, used = leaves(self.config), {}, 0
        numbers = jnp.exp(logs) if isinstance(logs, jax.Array) else np.exp(logs)
        for name in self.names:
            some = numbers[used : used + known[name].size]
            values[name] = jnp.asarray(some.reshape(known[name].shape))
            used += some.size
        return replaced(self.config, values)

    def loss(self, logs: Logs, adjoint: diffrax.AbstractAdjoint) -> Real:
        value = self.objective.value(self.at(logs), adjoint=adjoint)
        return -value if self.objective.larger_is_better else value

    def differentiable(self, numbers: int) -> Callable[[Logs], Real]:
        """The loss, of which any `grad` takes the cheaper way through the solver."""
        if numbers > _FEW:
            return lambda logs: self.loss(logs, diffrax.RecursiveCheckpointAdjoint())

        @jax.custom_vjp
        def loss(logs: Logs) -> Real:
            return self.loss(logs, diffrax.ForwardMode())

        def forwards(logs: Logs) -> tuple[Real, Array]:
            forward = lambda logs: self.loss(logs, diffrax.ForwardMode())
            if numbers == 1:  # which is not worth a batch's compilation
                value, slope = jax.jvp(forward, (logs,), (jnp.ones_like(logs),))
                return value, slope[None]
            slope, value = jax.jacfwd(lambda logs: (forward(logs),) * 2, has_aux=True)(logs)
            return value, slope

        loss.defvjp(forwards, lambda slope, weight: (weight * slope,))
        return loss


class Search:
    """Where a descent is, and where it has been."""

    def __init__(self, problem: Problem):
        self.problem = problem
        self.losses: list[float] = []
        logs = problem.start()
        self.move(logs, *self.look(logs))

    def look(self, logs: Logs) -> tuple[float, np.ndarray]:
        """The loss and its slope. A point that the config's own parts refuse, or where they
        cannot be computed, is infinitely bad."""
        if not _allowed(self.problem.at(logs)):
            return np.inf, np.zeros_like(logs)
        compiled = _compiled(jax.default_backend())
        loss, slope = map(np.asarray, compiled(self.problem, jnp.asarray(logs)))
        known = np.isfinite(loss) and np.all(np.isfinite(slope))
        return (float(loss) if known else np.inf), slope

    def move(self, logs: Logs, loss: float, slope: np.ndarray) -> None:
        """Goes there."""
        if not self.losses or loss < min(self.losses):
            self.best = logs
        self.logs, self.loss, self.slope = logs, loss, slope
        self.losses.append(loss)


def _loss_and_slope(problem: Problem, logs: Logs) -> tuple[Real, Array]:
    return jax.value_and_grad(problem.differentiable(logs.size))(logs)


@functools.cache
def _compiled(backend: str) -> Any:
    # Most of a search is the wait for its compilation, and of loops over a few numbers
    # there is little to optimise.
    options = supported(QUICK_TO_COMPILE) if backend == "cpu" else None
    return eqx.filter_jit(_loss_and_slope, compiler_options=options)  # pyright: ignore


def _allowed(config: Config) -> bool:
    try:
        for part in (config.rule.tau, config.rule, config.start, config):
            getattr(part, "__check_init__", lambda: None)()
    except ValueError:
        return False
    return True


# The first step is by a tenth, and none by more than a factor e: a slope knows no further.
_FIRST, _FARTHEST, _HALVINGS = 0.1, 1.0, 12


def newton_like(search: Search, steps: int, tick: Callable[[], Any]) -> str:
    """BFGS, each step halved until the loss is less; says why it ended.

    On the host, where it costs nothing: compiled, a line search would take the solver and
    its derivative into the program once more for every place that it looks from.
    """
    inverse = None  # of the second derivative, as far as it is known
    for taken in range(steps):
        if not np.any(search.slope):
            return f"converged after {taken} steps: the slope is zero"
        fresh = inverse is None
        if inverse is None:
            inverse = np.eye(search.logs.size) * _FIRST / np.max(np.abs(search.slope))
        found = _downhill(search, -inverse @ search.slope)
        if found is None and fresh:
            return f"converged after {taken} steps: none makes it better"
        if found is None:
            inverse = None
            continue
        step, loss, slope = found
        change = slope - search.slope
        turned = step @ change
        if turned > 0:
            if fresh:
                inverse = np.eye(len(step)) * turned / (change @ change)
            rest = np.eye(len(step)) - np.outer(step, change) / turned
            inverse = rest @ inverse @ rest.T + np.outer(step, step) / turned
        else:  # Bent the other way: there is no minimum to aim at, so go further.
            inverse = 3 * inverse
        search.move(search.logs + step, loss, slope)
        tick()
    return f"took all of its {steps} steps"


def _downhill(search: Search, step: np.ndarray) -> tuple[np.ndarray, float, Any] | None:
    """The step, halved until the loss is less by a part of what the slope promises."""
    step = step * min(1.0, _FARTHEST / np.max(np.abs(step)))
    for _ in range(_HALVINGS):
        loss, slope = search.look(search.logs + step)
        if loss < search.loss + 1e-4 * (search.slope @ step):
            return step, loss, slope
        step = step / 2
    return None


def by(optimiser: optax.GradientTransformation):
    """The descent that an optimiser of optax's makes, with all of its steps."""
    optimiser = optax.with_extra_args_support(optimiser)

    @eqx.filter_jit
    def update(problem: Problem, loss: Array, slope: Array, memory: Any, logs: Array):
        # Those that search along a line take more than the slope.
        more = dict(value=loss, grad=slope, value_fn=problem.differentiable(logs.size))
        step, memory = optimiser.update(slope, memory, logs, **more)
        return optax.apply_updates(logs, step), memory

    def descent(search: Search, steps: int, tick: Callable[[], Any]) -> str:
        memory = optimiser.init(jnp.asarray(search.logs))
        for taken in range(1, steps + 1):
            loss, slope, logs = map(jnp.asarray, (search.loss, search.slope, search.logs))
            logs, memory = update(search.problem, loss, slope, memory, logs)
            search.move(np.asarray(logs), *search.look(np.asarray(logs)))
            if not np.isfinite(search.loss):
                return f"diverged at step {taken}"
            tick()
        return f"took all of its {steps} steps"

    return descent
