"""The mean field of several components among several spikes: a matrix ODE.

With `V = x/sqrt(p)`, the state is `Q`, the products of the spikes' directions with the
components, of shape (d, r), and the Gram matrix `N = V^T V`. Let `Omega` be the diagonal
matrix of the signal-to-noise ratios, `nu_i` and `h_i` the gain and the mean decay of
component i, and

    k_j = (1 + nu_j)/N_jj,  L = I + strictly_lower(N) diag(k),
    A = Q^T Omega Q + N,    C = L^-1 A L^-T

`C` is the covariance of the products of the components with their residuals: a residual is
deflated by a component after its update, which removes `1 + nu_j` times the projection. In
the limit of large p

    dQ_i/dt  = -h_i Q_i + nu_i { [(Omega + I) Q L^-T]_i - sum_{j<i} k_j C_ji Q_j }
    M_.i     = [A L^-T]_i - sum_{j<i} k_j C_ji N_.j
    dN_ik/dt = -(h_i + h_k) N_ik + nu_i M_ki + nu_k M_ik + nu_i nu_k C_ik

where a rule that projects has the `h_i` that keeps `N_ii` constant. Spikes that turn at the
rate `delta` add `-delta Q` to `dQ/dt`. The equations do not
close if a gain reads the product `S` of its component with the residual, as the residuals
of several components are correlated. A decay may read it, and so may a schedule's drift.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import solve_triangular
from jaxtyping import Array, Float

from .._check import is_known
from .._components import ComponentTrajectory, omegas_in_force
from .._config import Config
from .._model import SpikedModel
from .._numerics import cast, off_host
from .._observables import Observables
from .._rule import (
    AbstractAlgorithm,
    AbstractRule,
    AbstractSubspaceRule,
    initial_states,
    rates_at,
)
from .._rule.small_matrices import inverse_factor
from .._start import AbstractGaussianStart, AbstractStart
from .._timeline import AbstractProcess, evolve, segments
from .._types import Count, Real, ScheduleState
from .components_start import start_mixture
from .initial import start_moments
from .integrate import Integrator, in_double, make_integrator
from .limit import FINE
from .subspace_field import subspace_velocity


class ComponentState(eqx.Module):
    """The state of the matrix ODE.

    **Arguments:**

    - `products`: `Q`, the products of the spikes' directions with the components.
    - `gram`: `N`, the products of the components with each other.
    - `schedules`: the states of the schedules, with an axis of components in front; of a
      rule that acts on all components at once its `SubspaceState`.
    """

    products: Float[Array, "spikes components"]
    gram: Float[Array, "components components"]
    schedules: ScheduleState


class ComponentField(AbstractProcess):
    """The matrix ODE as a process."""

    rule: AbstractAlgorithm
    integrator: Integrator
    components: int = eqx.field(static=True)

    def init(self, model: SpikedModel, start: AbstractStart) -> ComponentState:
        if isinstance(start, AbstractGaussianStart):
            overlaps, scales, lams = start_mixture(self.rule, model, start, self.components)
            gram = jnp.matmul(overlaps.T, overlaps) + jnp.diag(scales**2)
        else:  # of one component and one spike
            q0, lam0 = start_moments(self.rule, model, start)
            overlaps, lams, gram = (
                q0[None, None],
                lam0[None],
                jnp.ones_like(lam0)[None, None],
            )
        gram = gram * lams[:, None] * lams[None, :]
        products = overlaps * lams[None, :]
        p = jnp.asarray(model.p, lams.dtype)
        states = initial_states(self.rule, p, self.components)
        if isinstance(self.rule, AbstractSubspaceRule):
            if self.rule.projects:
                products = jnp.matmul(products, inverse_factor(gram))
                gram = jnp.eye(self.components, dtype=gram.dtype)
            return ComponentState(products, gram, states[0])
        schedules = jax.tree.map(lambda *leaves: jnp.stack(leaves), *states)
        return ComponentState(products, gram, schedules)

    def advance(
        self, model: SpikedModel, state: ComponentState, begin: Real, end: Real
    ) -> ComponentState:
        def field(t: Real, state: ComponentState) -> ComponentState:
            if isinstance(self.rule, AbstractSubspaceRule):
                now = (state.products, state.gram, state.schedules)
                return ComponentState(*subspace_velocity(self.rule, model, t, *now))
            assert isinstance(self.rule, AbstractRule)
            return component_velocity(self.rule, model, t, state)

        return self.integrator.solve(field, state, begin, end)

    def observe(
        self, state: ComponentState, time: Real
    ) -> tuple[ComponentState, dict[str, Array]]:
        norms = jnp.sqrt(jnp.diagonal(state.gram))
        return state, dict(
            overlaps=state.products / norms[None, :],
            norms=norms,
            cosines=state.gram / (norms[:, None] * norms[None, :]),
        )

    def switch(
        self,
        old: SpikedModel,
        new: SpikedModel,
        state: ComponentState,
        time: Real,
        phase: Count,
    ) -> ComponentState:
        # The entries of the new spikes have mean zero (see `component_mean_field`).
        return ComponentState(jnp.zeros_like(state.products), state.gram, state.schedules)


def component_velocity(
    rule: AbstractRule, model: SpikedModel, t: Real, state: ComponentState
) -> ComponentState:
    """Returns the derivative of the state with respect to time; see the top of this
    file."""
    products, gram = state.products, state.gram
    components = len(gram)
    own = jnp.diagonal(gram)
    lams = jnp.sqrt(own)
    omegas = model.effective_omega.reshape(-1)
    order, matched = model.strongest_first(), min(products.shape)
    found = products[order[:matched], np.arange(matched)]
    qs = jnp.zeros(components, own.dtype).at[:matched].set(found) / lams
    targets = model.target_omegas(components)
    p = jnp.asarray(model.p, own.dtype)
    nodes = jnp.asarray(FINE.values, own.dtype)

    def observables(lam: Real, s2: Real) -> Observables:
        return Observables(lam=lam, s2=s2, r=jnp.ones_like(lam), t=t, p=p)

    def gain(lam: Real, q: Real, omega: Real, schedule: ScheduleState) -> Real:
        """Returns the gain, which has to be the same at all nodes."""
        at_node = lambda s2: rates_at(rule, observables(lam, s2), q, omega, schedule).gain
        return jax.vmap(at_node, out_axes=None)(nodes)

    def means(
        lam: Real, q: Real, omega: Real, schedule: ScheduleState, variance: Real
    ) -> tuple[Real, ScheduleState]:
        """Returns the mean decay and the mean drift of the schedule."""

        def at_node(node: Real) -> tuple[Real, ScheduleState]:
            seen = observables(lam, variance * node**2)
            decay = rates_at(rule, seen, q, omega, schedule).decay
            return decay, rule.tau.drift(seen, schedule)

        return FINE.mean(jax.vmap(at_node)(nodes))

    try:
        nu = jax.vmap(gain)(lams, qs, targets, state.schedules)
    except ValueError as error:
        raise ValueError(
            f"rule = {type(rule).__name__} with the schedule {type(rule.tau).__name__} is "
            "not allowed with several components: its gain reads the sample's component "
            "along the estimate, and then the mean field has no closed equations. Use "
            "simulate(config, engine=Chain(), ...), which is exact."
        ) from error
    k = (1 + nu) / own
    lower = jnp.tril(gram, -1) * k[None, :] + jnp.eye(components, dtype=own.dtype)
    identity = jnp.eye(components, dtype=own.dtype)
    inverse = solve_triangular(lower, identity, lower=True, unit_diagonal=True)
    matmul = lambda a, b: jnp.matmul(a, b, precision="highest")
    signal = omegas[:, None] * products
    a = matmul(products.T, signal) + gram
    half = matmul(a, inverse.T)
    c = matmul(inverse, half)
    earlier = jnp.triu(k[:, None] * c, 1)
    pull = matmul(signal + products, inverse.T) - matmul(products, earlier)
    m = half - matmul(gram, earlier)
    c_own, m_own = jnp.diagonal(c), jnp.diagonal(m)
    moments = (lams, qs, targets, state.schedules, c_own / own)
    h, drifts = jax.vmap(means)(*moments)
    if rule.projects:
        h = (nu * m_own + nu**2 * c_own / 2) / own
    attraction = m * nu[None, :]
    toward_spikes = nu[None, :] * pull - h[None, :] * products
    if model.turning is not None:
        toward_spikes = toward_spikes - model.turning * products
    return ComponentState(
        toward_spikes,
        attraction
        + attraction.T
        + nu[:, None] * nu[None, :] * c
        - (h[:, None] + h[None, :]) * gram,
        drifts,
    )


@eqx.filter_jit
def component_path(config: Config, integrator: Integrator) -> dict[str, Array]:
    """Returns the overlaps, the norms and the cosines at the times of a config."""
    config = cast(config, jnp.result_type(float))
    process = ComponentField(config.rule, integrator, config.components)
    return evolve(process, config, segments(config)).observations


def component_mean_field(
    config: Config, options: tuple[Any, ...] = (), *, in_float64: bool = False
) -> ComponentTrajectory:
    """Returns the limit of the overlaps and the norms of several components.

    **Arguments:**

    - `config`: what to run.
    - `options`: the arguments of `make_integrator`.
    - `in_float64`: whether to compute in double precision, if nothing is traced.
    """
    _require_unrelated(config)

    def solve(config: Config) -> dict[str, Array]:
        return component_path(off_host(config), make_integrator(*options))

    path = in_double(solve, config) if in_float64 else solve(config)
    result = ComponentTrajectory(config.ts, omega=omegas_in_force(config), **path)
    if is_known(result.norms) and not np.all(result.finite):
        failed = int(np.argmin(np.isfinite(result.norms).all(-1)))
        raise RuntimeError(
            "The mean field of several components could not be integrated up to t = "
            f"{result.ts[failed]}: the equations are stiff, or the norms are too large for "
            "the precision. Pass solver=diffrax.Kvaerno5(), a larger max_steps, a smaller "
            "tau or shorter ts; where a warning says that the limit is singular at t = 0, "
            "t0 > 0 or a b0 of order p."
        )
    return result


# Spikes whose entries have a smaller mean have no overlap, up to rounding.
_ZERO_MEAN = 1e-6


def _require_unrelated(config: Config) -> None:
    """Refuses switches between spikes that have an overlap."""
    models = config.model.phases()
    if len(models) == 1:
        return
    spikes = [model.spike for model in models]
    if is_known(*jax.tree.leaves(spikes)):
        # The means are constants of the spikes, known also under `jit`.
        with jax.ensure_compile_time_eval():
            means = [abs(float(spike.mean())) for spike in spikes]
        if max(means) < _ZERO_MEAN:
            return
    raise ValueError(
        "model = Switching between several spikes whose entries do not have mean zero is "
        "not allowed with mean_field: the spikes after a switch overlap with those before "
        "it, by amounts that the theory does not follow. Use simulate(config, "
        "engine=Chain(), ...), or spikes whose entries have mean zero, such as Uniform()."
    )
