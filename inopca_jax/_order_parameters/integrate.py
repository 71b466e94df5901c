"""How initial value problems are solved, by every theory that has one."""

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
from .._numerics import cast, off_host
from .._types import Real


class _BoundedGrowthController(diffrax.AbstractAdaptiveStepSizeController):
    """diffrax's PID controller, without steps so long that numbers in them overflow.

    Such steps are rejected and do no harm to the solution, but reverse-mode differentiation
    passes through them and multiplies zero by infinity. So the first step changes the state
    by half of itself at most, and a later step is at most three times the one before: with
    an eighth-order method an error within the tolerance then grows by at most 3^12 = 5e5.
    """

    rtol: Any
    atol: Any
    norm: Callable[[PyTree], Any] = optx.rms_norm

    def wrap(self, direction):
        return self

    def init(self, terms, t0, t1, y0, dt0, args, func, error_order):
        speed = self.norm(func(terms, t0, y0, args))
        bounded = 0.5 * self.norm(y0) / jnp.where(speed > 0, speed, 1)
        bounded = jnp.where((speed > 0) & (bounded < dt0), bounded, dt0)
        dt0 = lax.stop_gradient(bounded)
        return self._pid().init(terms, t0, t1, y0, dt0, args, func, error_order)

    def adapt_step_size(self, *args, **kwargs):
        return self._pid().adapt_step_size(*args, **kwargs)

    def _pid(self) -> diffrax.PIDController:
        return diffrax.PIDController(self.rtol, self.atol, factormax=3.0)


class Integrator(eqx.Module):
    """A diffrax solver with its tolerances."""

    solver: diffrax.AbstractSolver
    adjoint: diffrax.AbstractAdjoint
    rtol: float = eqx.field(static=True)
    atol: float = eqx.field(static=True)
    max_steps: int = eqx.field(static=True)

    def solve(self, field, state: PyTree, t0: Real, t1: Real) -> PyTree:
        """Returns the state at `t1`, given that at `t0`; NaN if the solver fails.

        One interval at a time, so that each value is the end of a step: interpolation
        inside of a high-order step would cost more accuracy than the steps themselves. It
        also keeps host callbacks out of the program, which can then be exported.

        **Arguments:**

        - `field`: maps the time and the state to the state's velocity.
        """
        # One vector, because diffrax does not take a pytree part without leaves; on [0, 1],
        # so that an interval of length zero is no special case.
        vector, unravel = ravel_pytree(state)
        length = t1 - t0

        # Jitted, because diffrax calls it in several places: so it is traced once.
        @jax.jit
        def velocity(t, vector):
            return ravel_pytree(field(t, unravel(vector)))[0]

        def scaled(s, vector, _):
            return length * velocity(t0 + s * length, vector)

        # In forward mode rejected steps do no harm, and a first step of the whole interval
        # saves a further compiled copy of the field.
        is_forward = isinstance(self.adjoint, diffrax.ForwardMode)
        controller = diffrax.PIDController if is_forward else _BoundedGrowthController
        solution = diffrax.diffeqsolve(
            diffrax.ODETerm(scaled),  # pyright: ignore
            self.solver,
            0.0,
            1.0,
            1.0,  # the controller shortens it where needed
            vector,
            saveat=diffrax.SaveAt(t1=True),
            stepsize_controller=controller(self.rtol, self.atol),
            max_steps=self.max_steps,
            throw=False,
            adjoint=self.adjoint,
        )
        # diffrax returns plausible numbers when it fails: they must not pass for a
        # solution.
        solved = solution.result == diffrax.RESULTS.successful
        assert solution.ys is not None
        return unravel(jnp.where(solved, solution.ys[0], jnp.nan))


def in_double(solve, problem: PyTree, *args) -> PyTree:
    """Returns `solve(problem, *args)`, computed in double precision if nothing is traced.

    The result is in the precision in use. In a covariance some entries cancel while others
    grow by orders of magnitude: in single precision what remains of the former is noise,
    which a step size controller takes for the solution.
    """
    if not is_known(*jax.tree.leaves(problem)):
        return solve(problem, *args)
    with jax.enable_x64(True):
        result = solve(off_host(problem), *args)
    return _cast(result, jnp.result_type(float))


_cast = eqx.filter_jit(cast)


def make_integrator(
    solver: diffrax.AbstractSolver | None = None,
    adjoint: diffrax.AbstractAdjoint | None = None,
    rtol: float | None = None,
    atol: float | None = None,
    max_steps: int = 4096,
) -> Integrator:
    """Returns an integrator, by default as accurate as the precision in use allows."""
    is_double = jnp.result_type(float) == jnp.float64
    return Integrator(
        diffrax.Dopri8() if solver is None else solver,
        diffrax.RecursiveCheckpointAdjoint() if adjoint is None else adjoint,
        (1e-10 if is_double else 1e-6) if rtol is None else float(rtol),
        (1e-12 if is_double else 1e-7) if atol is None else float(atol),
        int(max_steps),
    )


def require_options(solver: Any, adjoint: Any, rtol: Any, atol: Any, steps: Any) -> None:
    """Refuses bad options of an integrator."""
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
