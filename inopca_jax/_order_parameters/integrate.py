"""One way to solve an initial value problem, for every theory that has one."""

from collections.abc import Callable
from typing import Any

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import optimistix as optx
from jax import lax
from jax.flatten_util import ravel_pytree
from jaxtyping import PyTree

from .._check import is_known, plain_number, positive, require_instance, require_whole
from .._config import cast
from .._types import Real


class _Careful(diffrax.AbstractAdaptiveStepSizeController):
    """diffrax's controller, without steps so bold that numbers in them overflow.

    They would be rejected, and do no harm but to a derivative taken backwards, which meets
    them again and has zero times infinity. So the first step moves the state by half of
    itself at most, and a later one is three times the last at most: of an error that was
    within the tolerance, an eighth-order method makes 3^12 times as much, and not 10^12.
    """

    rtol: Any
    atol: Any
    norm: Callable[[PyTree], Any] = optx.rms_norm

    def wrap(self, direction):
        return self

    def init(self, terms, t0, t1, y0, dt0, args, func, error_order):
        speed = self.norm(func(terms, t0, y0, args))
        careful = 0.5 * self.norm(y0) / jnp.where(speed > 0, speed, 1)
        careful = jnp.where((speed > 0) & (careful < dt0), careful, dt0)
        dt0 = lax.stop_gradient(careful)
        return self._pid().init(terms, t0, t1, y0, dt0, args, func, error_order)

    def adapt_step_size(self, *now, **more):
        return self._pid().adapt_step_size(*now, **more)

    def _pid(self) -> diffrax.PIDController:
        return diffrax.PIDController(self.rtol, self.atol, factormax=3.0)


class Flow(eqx.Module):
    """How to solve an initial value problem."""

    solver: diffrax.AbstractSolver
    adjoint: diffrax.AbstractAdjoint
    rtol: float = eqx.field(static=True)
    atol: float = eqx.field(static=True)
    max_steps: int = eqx.field(static=True)

    def between(self, field, state: PyTree, t0: Real, t1: Real) -> PyTree:
        """The state at `t1`, not a number if the solver fails.

        An interval at a time, so that each value is the end of a step: interpolating
        inside a high-order step would cost more accuracy than the steps themselves. It
        also keeps host callbacks out of the program, which exports for any backend.
        """
        # One vector, because diffrax's loops trip over a memory that has no leaves; and
        # on [0, 1], so that an interval of no length is an interval like any other.
        vector, unravel = ravel_pytree(state)
        length = t1 - t0

        def scaled(s, vector, _):
            return length * ravel_pytree(field(t0 + s * length, unravel(vector)))[0]

        solution = diffrax.diffeqsolve(
            diffrax.ODETerm(scaled),  # pyright: ignore
            self.solver,
            0.0,
            1.0,
            1.0,  # the controller cuts it down where that is too bold
            vector,
            saveat=diffrax.SaveAt(t1=True),
            stepsize_controller=_Careful(self.rtol, self.atol),
            max_steps=self.max_steps,
            throw=False,
            adjoint=self.adjoint,
        )
        # A failed solve returns plausible numbers: they must not pass for the solution.
        good = solution.result == diffrax.RESULTS.successful
        assert solution.ys is not None
        return unravel(jnp.where(good, solution.ys[0], jnp.nan))


def in_double(solve, problem: PyTree, *args) -> PyTree:
    """`solve(problem, *args)` in double precision, if nothing of the problem is traced, and
    the result in the precision in use.

    Of a covariance some entries cancel while others grow by orders of magnitude: in single
    precision what is left of those is noise, which a step size controller takes for the
    solution's.
    """
    if not is_known(*jax.tree.leaves(problem)):
        return solve(problem, *args)
    with jax.enable_x64(True):
        result = solve(problem, *args)
    return cast(result, jnp.result_type(float))


def accurate(
    solver: diffrax.AbstractSolver | None = None,
    adjoint: diffrax.AbstractAdjoint | None = None,
    rtol: float | None = None,
    atol: float | None = None,
    max_steps: int = 4096,
) -> Flow:
    """What `mean_field` does by default: as accurate as the precision in use allows."""
    wide = jnp.result_type(float) == jnp.float64
    return Flow(
        diffrax.Dopri8() if solver is None else solver,
        diffrax.RecursiveCheckpointAdjoint() if adjoint is None else adjoint,
        (1e-10 if wide else 1e-6) if rtol is None else float(rtol),
        (1e-12 if wide else 1e-7) if atol is None else float(atol),
        int(max_steps),
    )


def require_options(solver: Any, adjoint: Any, rtol: Any, atol: Any, steps: Any) -> None:
    """Refuses options of which `accurate` makes no flow."""
    if solver is not None:
        require_instance("solver", solver, diffrax.AbstractSolver)
    if adjoint is not None:
        require_instance("adjoint", adjoint, diffrax.AbstractAdjoint)
    for name, tolerance in (("rtol", rtol), ("atol", atol)):
        if tolerance is not None:
            plain_number(name, tolerance, positive, "pass a positive tolerance")
    require_steps(steps)


def require_steps(steps: Any) -> int:
    return require_whole("max_steps", steps, 1, "pass a whole number of at least 1")
