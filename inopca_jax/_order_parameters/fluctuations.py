"""Predicted error bars: the linear theory of the fluctuations at finite p."""

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float

from .._check import Checked, is_known, require_instance
from .._config import Config, require_single, rule_of_one
from .._model import SpikedModel
from .._numerics import cast, derivatives, root
from .._rule import AbstractRule
from .._start import AbstractStart
from .._timeline import AbstractProcess, evolve, segments
from .._trajectory import Prediction
from .._types import Count, Real
from .increments import OrderParameters, drift, sample_noise
from .initial import GaussianApproximation, start_law, switch_law
from .integrate import Integrator, in_double, make_integrator, require_options
from .limit import COARSE, FINE, Quadrature
from .mean_field import require_solved, warn_if_forgotten


def fluctuations(
    config: Checked[Config],
    *,
    solver: Checked[diffrax.AbstractSolver | None] = None,
    rtol: Checked[float | None] = None,
    atol: Checked[float | None] = None,
    max_steps: Checked[int] = 4096,
    adjoint: Checked[diffrax.AbstractAdjoint | None] = None,
) -> Prediction:
    """Returns the mean field with the predicted scatter of runs at this `p`.

    One sample changes the order parameters by 1/p times something of mean `F` and
    covariance `D`, both of which follow from the rule. So over runs they have the
    covariance `C/p` with `dC/dt = A C + C A^T + D`, where `A` is the derivative of `F`,
    from the covariance of the start. A switch adds the scatter of the overlap with the new
    spike.

    It is a linear theory. From `q0 = 0.3`, omega = 1, it is within 3 % of 8,000 chains at
    p = 2,000; for CCIPCA(t0 = 2), whose rate begins at 2.5, it is 8 % too small there while
    the overlap grows, and 2 % at p = 20,000. It is too small where a small overlap grows:
    from `q0 = 0.1`, INO-PCA's `q_std` is 4 % too small at t = 8 at p = 10,000; at p = 1,000
    it is 4 % too small at t = 5 and a third at t = 8, where some runs started on the other
    side of 0. For a cold start, and where this function warns, use `overlap_law`. Runs are
    observed after whole samples: where `p t` is not whole, up to 1/p earlier.

    **Arguments:**

    - `config`: what to run.
    - `solver`, `rtol`, `atol`, `max_steps`, `adjoint`: as of `mean_field`.

    **Returns:**

    A `Prediction` with arrays of shape (times,).

    **Example:**

    ```pycon
    >>> import inopca_jax as ino
    >>> config = ino.Config(start=ino.WarmStart(q0=0.3), ts=[0.0, 10.0, 50.0])
    >>> path = ino.fluctuations(config)
    >>> [round(float(std), 4) for std in path.q_std]
    [0.0089, 0.0028, 0.0019]
    ```
    """
    require_instance("config", config, Config)
    require_single(config, "fluctuations")
    require_options(solver, adjoint, rtol, atol, max_steps)
    warn_if_forgotten(config)
    integrator = lambda: make_integrator(solver, adjoint, rtol, atol, max_steps)
    result = in_double(_predict, config, integrator)
    result = eqx.tree_at(lambda r: r.ts, result, config.ts)
    require_solved(result, max_steps, "solver=diffrax.Kvaerno5(), a larger max_steps")
    _warn_if_wide(result)
    return result


def _warn_if_wide(result: Prediction) -> None:
    is_wide = is_known(result.q_std) and np.asarray(result.q_std) > _WIDE
    if np.any(is_wide):
        i = int(np.argmax(is_wide))
        warnings.warn(
            "The linear theory predicts a standard deviation of q of "
            f"{result.q_std[i]:.2g} at t = {result.ts[i]:.4g}, more than an overlap can "
            "have: runs leave q = 0 at different times. Use overlap_law, or simulate.",
            stacklevel=3,
        )


_WIDE = 0.3


def _predict(config: Config, integrator: Callable[[], Integrator]) -> Prediction:
    config = cast(config, jnp.result_type(float))
    ts = jnp.asarray(config.ts, jnp.result_type(float))
    process = Fluctuations(rule_of_one(config), integrator(), is_fine=True)
    run = evolve(process, config, segments(config, ts))
    return as_prediction(ts, run.observations, config.model.p)


class Fluctuations(AbstractProcess):
    """The Gaussian approximation of the order parameters as a process."""

    rule: AbstractRule
    integrator: Integrator
    is_fine: bool = eqx.field(static=True)
    """Whether the noise of a sample is integrated finely (`FINE`), or faster (`COARSE`)."""

    def init(self, model: SpikedModel, start: AbstractStart) -> GaussianApproximation:
        return start_law(self.rule, model, start)

    def advance(
        self, model: SpikedModel, state: GaussianApproximation, begin: Real, end: Real
    ) -> GaussianApproximation:
        nodes = FINE if self.is_fine else COARSE
        field = partial(_velocity, self.rule, model, nodes)
        return self.integrator.solve(field, state, begin, end)

    def observe(
        self, state: GaussianApproximation, time: Real
    ) -> tuple[GaussianApproximation, GaussianApproximation]:
        return state, state

    def switch(
        self,
        old: SpikedModel,
        new: SpikedModel,
        state: GaussianApproximation,
        time: Real,
        phase: Count,
    ) -> GaussianApproximation:
        before, unravel = ravel_pytree(state.mean)
        after = switch_law(new.spike, state.mean)
        mean_after = lambda v: ravel_pytree(switch_law(new.spike, unravel(v)).mean)[0]
        slope = jax.jacfwd(mean_after)(before)
        covariance = slope @ state.covariance @ slope.T + after.covariance
        shift = slope @ state.shift + after.shift
        return GaussianApproximation(after.mean, covariance, shift)


_LARGEST_VARIANCE = 1e16


def _velocity(
    rule: AbstractRule,
    model: SpikedModel,
    nodes: Quadrature,
    t: Real,
    state: GaussianApproximation,
) -> GaussianApproximation:
    """Returns the velocity of the mean, the covariance and the shift."""
    mean, unravel = ravel_pytree(state.mean)

    def velocity(t_and_mean: Array) -> Array:
        t, mean = t_and_mean[0], t_and_mean[1:]
        return ravel_pytree(drift(rule, model, t, unravel(mean)))[0]

    # The derivatives by the time are in front.
    speed, slope, curvature = derivatives(velocity, jnp.append(t, mean))
    acceleration = slope[:, 0] + slope[:, 1:] @ speed
    slope, curvature = slope[:, 1:], curvature[:, 1:, 1:]
    noise = sample_noise(rule, model, t, state.mean, nodes)
    # The shift grows by the curvature of the drift over the scatter, by the next order of a
    # sample's mean change, and because steps of length 1/p lag behind the flow that they
    # follow by half of its acceleration.
    shift = slope @ state.shift + noise.next_drift - acceleration / 2
    shift = shift + jnp.einsum("aij,ij->a", curvature, state.covariance) / 2
    product = slope @ state.covariance
    growth = product + product.T + noise.covariance()
    # From a cold start the variance grows without bound. Far beyond any meaning its growth
    # is slowed down, so that it does not overflow.
    variance = state.covariance[0, 0] / (state.mean.n * model.p)
    factor = 1 / (1 + (variance / _LARGEST_VARIANCE) ** 2)
    return GaussianApproximation(unravel(speed), factor * growth, factor * shift)


@eqx.filter_jit
def as_prediction(
    ts: Float[Array, " times"], states: GaussianApproximation, p: Any
) -> Prediction:
    """Returns the prediction of overlap and norm, given the laws at the times `ts`."""

    def one(state: GaussianApproximation) -> dict[str, Array]:
        mean, unravel = ravel_pytree(state.mean)

        def observed(mean: Array) -> Array:
            now: OrderParameters = unravel(mean)
            return jnp.stack([now.q(), now.lam()])

        (q, lam), slope, curvature = derivatives(observed, mean)
        covariance = slope @ state.covariance @ slope.T / p
        q_std, lam_std = root(jnp.diag(covariance))
        product = q_std * lam_std
        both = product > 0
        correlation = jnp.where(both, covariance[0, 1] / jnp.where(both, product, 1), 0)
        bend = jnp.einsum("aij,ij->a", curvature, state.covariance) / 2
        q_shift, lam_shift = (slope @ state.shift + bend) / p
        return dict(
            q=q,
            lam=lam,
            q_std=q_std,
            lam_std=lam_std,
            correlation=correlation,
            q_shift=q_shift,
            lam_shift=lam_shift,
        )

    return Prediction(ts, **jax.vmap(one)(states))
