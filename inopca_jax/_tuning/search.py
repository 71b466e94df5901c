"""Gradient descent on the logarithms of some numbers of a config."""

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
from .._xla import quick_jit
from .objective import AbstractObjective

Logs: TypeAlias = Float[Array | np.ndarray, " numbers"]
"""The logarithms of the tuned numbers. On this scale the numbers stay positive, and a step
changes a small one by the same factor as a large one."""

# Up to this many numbers, forward-mode differentiation is cheaper than reverse mode: each
# number adds a few more states to a solver whose own work is far more.
_MOST_FORWARD = 256


class Problem(eqx.Module):
    """The loss to be minimised, as a function of the logarithms of the tuned numbers."""

    config: Config
    objective: AbstractObjective
    names: tuple[str, ...] = eqx.field(static=True)

    def initial_logs(self) -> Logs:
        arrays = leaves(self.config)
        return np.log(np.concatenate([np.ravel(arrays[name]) for name in self.names]))

    def config_at(self, logs: Logs) -> Config:
        """Returns the config with the numbers of these logarithms."""
        arrays, values, first = leaves(self.config), {}, 0
        numbers = jnp.exp(logs) if isinstance(logs, jax.Array) else np.exp(logs)
        for name in self.names:
            shape, size = arrays[name].shape, arrays[name].size
            values[name] = jnp.asarray(numbers[first : first + size].reshape(shape))
            first += size
        return replaced(self.config, values)

    def loss(self, logs: Logs, adjoint: diffrax.AbstractAdjoint) -> Real:
        value = self.objective.value(self.config_at(logs), adjoint=adjoint)
        return -value if self.objective.larger_is_better else value

    def differentiable_loss(self, size: int) -> Callable[[Logs], Real]:
        """Returns the loss of `size` logarithms, with the cheaper mode of differentiation.

        `jax.grad` of it runs in forward mode for a small `size`.
        """
        if size > _MOST_FORWARD:
            return lambda logs: self.loss(logs, diffrax.RecursiveCheckpointAdjoint())

        @jax.custom_vjp
        def loss(logs: Logs) -> Real:
            return self.loss(logs, diffrax.ForwardMode())

        def loss_and_gradient(logs: Logs) -> tuple[Real, Array]:
            forward = lambda logs: self.loss(logs, diffrax.ForwardMode())
            if size == 1:  # without a batch axis, which takes longer to compile
                value, slope = jax.jvp(forward, (logs,), (jnp.ones_like(logs),))
                return value, slope[None]
            gradient, value = jax.jacfwd(lambda logs: (forward(logs),) * 2, has_aux=True)(
                logs
            )
            return value, gradient

        loss.defvjp(loss_and_gradient, lambda gradient, weight: (weight * gradient,))
        return loss


class Search:
    """The current point of a descent, the best one, and the losses at all points so far."""

    def __init__(self, problem: Problem):
        self.problem = problem
        self.losses: list[float] = []
        logs = problem.initial_logs()
        self.move_to(logs, *self.evaluate(logs))

    def evaluate(self, logs: Logs) -> tuple[float, np.ndarray]:
        """Returns the loss and its gradient.

        The loss is infinite if the parts of the config refuse their numbers, or if it
        cannot be computed.
        """
        if not _is_allowed(self.problem.config_at(logs)):
            return np.inf, np.zeros_like(logs)
        loss_and_gradient = _loss_and_gradient(self.problem, jnp.asarray(logs))
        loss, gradient = map(np.asarray, loss_and_gradient)
        finite = np.isfinite(loss) and np.all(np.isfinite(gradient))
        return (float(loss) if finite else np.inf), gradient

    def move_to(self, logs: Logs, loss: float, gradient: np.ndarray) -> None:
        """Makes this the current point."""
        if not self.losses or loss < min(self.losses):
            self.best = logs
        self.logs, self.loss, self.gradient = logs, loss, gradient
        self.losses.append(loss)


Descent: TypeAlias = Callable[[Search, int, Callable[[], Any]], str]
"""Takes at most so many steps of a search, calls a function after each of them, and returns
the reason why it ended."""


@quick_jit
def _loss_and_gradient(problem: Problem, logs: Logs) -> tuple[Real, Array]:
    return jax.value_and_grad(problem.differentiable_loss(logs.size))(logs)


def _is_allowed(config: Config) -> bool:
    """Whether the parts of the config accept their numbers."""
    try:
        for part in (config.rule.tau, config.rule, config.start, config):
            getattr(part, "__check_init__", lambda: None)()
    except ValueError:
        return False
    return True


# The first step changes a number by at most a tenth. No step changes one by more than a
# factor e, as a gradient is no guide farther away.
_FIRST_STEP, _LONGEST_STEP, _HALVINGS = 0.1, 1.0, 12


def bfgs(search: Search, steps: int, after_step: Callable[[], Any]) -> str:
    """The BFGS method, with every step halved until the loss decreases. A `Descent`.

    It runs on the host, where its own work costs nothing. A compiled line search would
    contain the solver and its derivative once more for every place that calls them.
    """
    inverse = None  # the approximate inverse of the second derivative
    for taken in range(steps):
        if not np.any(search.gradient):
            return f"converged after {taken} steps: the gradient is zero"
        is_first_guess = inverse is None
        if inverse is None:
            scale = _FIRST_STEP / np.max(np.abs(search.gradient))
            inverse = np.eye(search.logs.size) * scale
        accepted = _line_search(search, -inverse @ search.gradient)
        if accepted is None and is_first_guess:
            return f"converged after {taken} steps: no step makes the objective better"
        if accepted is None:
            inverse = None
            continue
        step, loss, gradient = accepted
        change = gradient - search.gradient
        curvature = step @ change
        if curvature > 0:
            if is_first_guess:
                inverse = np.eye(len(step)) * curvature / (change @ change)
            projection = np.eye(len(step)) - np.outer(step, change) / curvature
            inverse = projection @ inverse @ projection.T + np.outer(step, step) / curvature
        else:  # The loss is not convex here and has no minimum nearby: take longer steps.
            inverse = 3 * inverse
        search.move_to(search.logs + step, loss, gradient)
        after_step()
    return f"took all of its {steps} steps"


def _line_search(
    search: Search, step: np.ndarray
) -> tuple[np.ndarray, float, np.ndarray] | None:
    """Returns the step, halved until the loss decreases enough (Armijo's condition).

    With it come the loss and its gradient at its end. The result is `None` if no step is
    short enough.
    """
    step = step * min(1.0, _LONGEST_STEP / np.max(np.abs(step)))
    for _ in range(_HALVINGS):
        loss, gradient = search.evaluate(search.logs + step)
        if loss < search.loss + 1e-4 * (search.gradient @ step):
            return step, loss, gradient
        step = step / 2
    return None


def optax_descent(optimiser: optax.GradientTransformation) -> Descent:
    """Returns the descent that takes all of its steps with an optimiser of optax."""
    optimiser = optax.with_extra_args_support(optimiser)

    @eqx.filter_jit
    def update(problem: Problem, loss: Array, gradient: Array, state: Any, logs: Array):
        # Optimisers with a line search take more arguments than the gradient.
        loss_function = problem.differentiable_loss(logs.size)
        extra = dict(value=loss, grad=gradient, value_fn=loss_function)
        step, state = optimiser.update(gradient, state, logs, **extra)
        return optax.apply_updates(logs, step), state

    def descent(search: Search, steps: int, after_step: Callable[[], Any]) -> str:
        state = optimiser.init(jnp.asarray(search.logs))
        for taken in range(1, steps + 1):
            point = map(jnp.asarray, (search.loss, search.gradient, search.logs))
            loss, gradient, logs = point
            logs, state = update(search.problem, loss, gradient, state, logs)
            search.move_to(np.asarray(logs), *search.evaluate(np.asarray(logs)))
            if not np.isfinite(search.loss):
                return f"diverged at step {taken}"
            after_step()
        return f"took all of its {steps} steps"

    return descent
