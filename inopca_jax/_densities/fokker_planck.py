"""The Fokker-Planck equation `eq:strong_pde`, coupled to its own moments."""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float

from .._check import Checked, is_known, plain_number, positive
from .._config import Config, rule_of_one
from .._model import SpikedModel
from .._model.spike import node_count
from .._numerics import cast, off_host
from .._order_parameters.limit import limit_coefficients
from .._rule import AbstractRule, initial_state, split_penalty
from .._timeline import Segment
from .._types import Real, ScheduleState
from .accuracy import warn_if_inaccurate
from .density import Density
from .fluxes import (
    Coefficients,
    Folded,
    FoldedCells,
    PenaltyOnCells,
    scharfetter_gummel,
    step,
)
from .grid import (
    Grid,
    SpikeNodes,
    as_domain,
    build_grid,
    cell_count,
    sampled_start,
    without_gradient,
)
from .penalised import (
    build_centred_grid,
    build_wide_grid,
    domain_of,
    warn_if_coarse,
    warn_if_tails_run_away,
    with_times_between,
)
from .solver import AbstractDensitySolver, join_segments, known_segments, require_standing

# More mass than this in the cells at the edge means that the domain is too narrow.
_EDGE_MASS_TOLERANCE = 1e-8


def _step_length(dt: Any) -> float:
    return plain_number("dt", dt, positive, "pass a positive, finite step")


class FokkerPlanck(AbstractDensitySolver):
    """A solver that steps the Fokker-Planck equation on cells, with conservative fluxes.

    The steps are implicit. The scheme is of second order in the width of the cells and in
    `dt`. Mass is conserved to rounding (in float32 this adds up to some 1e-5), no density
    is negative, and the steady state is exact. The coefficients of the equation depend on
    `q` and `lam`, which are those of the density itself at the beginning of every step
    (`eq:tracked_par`).

    At the defaults `q` and `lam` are the mean field's to 1e-4 where the learning rate is of
    order one. Use smaller steps for a rate that begins above 1 (CCIPCA with t0 = 2: 2e-4),
    and more cells for a norm that grows, as the domain grows with it (Krasulina: 6e-4).

    Mass at the edge of the domain is an error. Where none can be raised, as under a `vmap`,
    the density is NaN.

    **Arguments:**

    - `cells`: the number of cells, all of equal width, at least 16.
    - `nodes`: the number of nodes of the quadrature over the spike's entry; a law of point
      masses has its own. The density is computed given each of them.
    - `dt`: the longest step in time. Steps are shortened to end at the config's times.
    - `domain`: the interval `(low, high)` that the cells cover. If `None`, it is chosen
      from the mean field so that all but about 1e-12 of the mass stays inside.

    **Example:**

    ```pycon
    >>> import inopca_jax as ino
    >>> config = ino.Config(start=ino.WarmStart(q0=0.3), ts=[0.0, 10.0])
    >>> pdf = ino.density(config, solver=ino.FokkerPlanck(cells=400))
    >>> pdf.x.shape
    (400,)
    ```
    """

    cells: int = eqx.field(static=True, converter=cell_count, default=400)
    nodes: int = eqx.field(static=True, converter=node_count, default=32)
    dt: float = eqx.field(static=True, converter=_step_length, default=0.05)
    domain: tuple[float, float] | None = eqx.field(
        static=True, converter=as_domain, default=None
    )

    def solve(self, config: Checked[Config]) -> Density:
        segments = known_segments(config)
        require_standing(config, type(self).__name__)
        plan = [_time_steps(segment, self.dt) for segment in segments]
        if split_penalty(config.rule)[1] is not None:
            return _solve_penalised(self, config, plan)
        grid, path = build_grid(config, self.cells, self.nodes, self.domain)
        density, edge_mass, _ = _integrate(off_host(config), grid, plan)
        require_no_mass_lost(grid, edge_mass)
        warn_if_inaccurate(config, grid, path, density)
        return density


def require_no_mass_lost(grid: Grid, edge_mass: Real, reason: str = "") -> None:
    """Raises an error if mass reached the edge, or if the density is NaN.

    **Arguments:**

    - `grid`, `edge_mass`: the grid, and the largest mass at its edge at any time.
    - `reason`: what else is known of the reason, a sentence.
    """
    if is_known(edge_mass) and not jnp.isfinite(edge_mass):
        raise RuntimeError(
            "The density could not be computed: its coefficients change too fast for the "
            "steps. Pass a smaller dt (or rtol), or make the limit regular at t = 0 (a "
            "larger b0, of order p; t0 > 0; see mean_field)."
        )
    low, high = grid.x[0] - grid.width / 2, grid.x[-1] + grid.width / 2
    if is_known(edge_mass, low) and not edge_mass <= _EDGE_MASS_TOLERANCE:
        raise ValueError(
            f"domain = ({float(low):.4g}, {float(high):.4g}) is not allowed: cells at its "
            f"edge came to hold {float(edge_mass):.1e} of the mass. Pass a wider one."
            f"{reason}"
        )


def nan_if_mass_lost(density: Density, edge_mass: Real) -> Density:
    """Returns the density, with NaN as its values if mass reached the edge."""
    pdf = jnp.where(edge_mass <= _EDGE_MASS_TOLERANCE, density.pdf, jnp.nan)
    return eqx.tree_at(lambda d: d.pdf, density, pdf)


class TailRates(eqx.Module):
    """Rates at which entries in the far tails change in units of the norm.

    **Arguments:**

    - `growing`: the part with which the penalty makes them grow. The entries that it
      shrinks are made up for by the others: by the projection, or as the rule's gain rises
      where the norm falls.
    - `shrinking`: the part with which the signal and the noise make them shrink.
    """

    growing: Array
    shrinking: Array


class _TimeSteps(NamedTuple):
    """The steps in time of one segment.

    `begins` and `lengths` are those of the steps, and `rows` the index of the stop that a
    step ends at, or the number of stops if it ends at none. `observed` is the index of the
    stop for each observation.
    """

    begins: np.ndarray
    lengths: np.ndarray
    rows: np.ndarray
    observed: np.ndarray
    stops: np.ndarray


def _time_steps(segment: Segment, dt: float) -> _TimeSteps:
    """Returns equal steps of at most `dt` from stop to stop."""
    stops, observed = segment.own_stops()
    intervals = np.diff(stops, prepend=segment.begin)
    # With a tolerance for rounding, so that an interval of 1 has ten steps of 0.1.
    counts = np.ceil(intervals / dt * (1 - 1e-12)).astype(int)
    lengths = np.repeat(intervals / np.maximum(counts, 1), counts)
    begins = segment.begin + np.cumsum(lengths) - lengths
    rows = np.full(lengths.size, stops.size, np.int32)
    rows[np.cumsum(counts)[counts > 0] - 1] = np.flatnonzero(counts)
    return _TimeSteps(begins, lengths, rows, observed, stops)


@eqx.filter_jit
def _integrate(
    config: Config, grid: Grid, plan: list[_TimeSteps]
) -> tuple[Density, Real, list[TailRates] | None]:
    """Returns the density, the largest mass at the edge at any time, and for a penalised
    rule the rates of its tails at every step of each segment."""
    config = cast(config, jnp.result_type(float))
    rule, penalty = split_penalty(rule_of_one(config))
    dtype, cells = grid.x.dtype, FoldedCells(grid.x, grid.width)
    phi = None if penalty is None else PenaltyOnCells(penalty, cells)
    pdf = start_density(config, grid, cells)
    schedule_state = initial_state(rule, config.model.p)
    pdfs, tails, edge_mass = [], [], jnp.zeros((), dtype)
    # The moments after a shorter step determine their rate of change only to rounding.
    shortest = float(jnp.finfo(dtype).eps) ** (1 / 3)
    for i, steps in enumerate(plan):
        model, nodes = config.model.phases()[i], grid.segments[i]
        if i:
            pdf = marginal_at_switch(pdf, grid.segments[i - 1], nodes)

        def advance(carry, begin_dt_row, model=model, nodes=nodes):
            pdf, moments, excess, schedule_state, edge_mass, stored = carry
            begin, dt, row = begin_dt_row
            coefficients, predicted, schedule_state = average_coefficients(
                rule, model, begin, dt, moments, excess, schedule_state
            )
            tail = tail_rates(coefficients, moments, phi)
            pdf = step(scharfetter_gummel(coefficients, cells, nodes.xi, phi), pdf, dt)
            moments = moments_of(pdf, cells, nodes, phi)
            measured = jax.tree.map(
                lambda e, m, p: e + (m - p) / dt, excess, moments, predicted
            )
            excess = jax.tree.map(
                lambda old, new: jnp.where(dt > shortest, new, old), excess, measured
            )
            edge_mass = jnp.maximum(edge_mass, mass_at_edge(pdf, cells, nodes))
            stored = lax.dynamic_update_index_in_dim(stored, pdf, row, 0)
            return (pdf, moments, excess, schedule_state, edge_mass, stored), tail

        # No step ends at a stop at the segment's begin: that row keeps the initial density.
        # The last row takes the densities that are not at a stop.
        stored = jnp.broadcast_to(pdf, (steps.stops.size + 1, *pdf.shape))
        times = (jnp.asarray(steps.begins, dtype), jnp.asarray(steps.lengths, dtype))
        moments = moments_of(pdf, cells, nodes, phi)
        excess = jax.tree.map(jnp.zeros_like, moments)
        carry = (pdf, moments, excess, schedule_state, edge_mass, stored)
        carry, tail = lax.scan(advance, carry, (*times, jnp.asarray(steps.rows)))
        pdf, _, _, schedule_state, edge_mass, stored = carry
        pdfs.append(jax.vmap(cells.unfold)(stored[steps.observed]))
        tails.append(tail)
    density = nan_if_mass_lost(join_segments(config, grid, pdfs), edge_mass)
    return density, edge_mass, None if phi is None else tails


def _runaway(plan: list[_TimeSteps], tails: list[TailRates] | None) -> str:
    """Warns if tails run away, and returns what an error may say of it."""
    assert tails is not None
    return warn_if_tails_run_away(
        np.concatenate([steps.begins for steps in plan]),
        np.concatenate([steps.lengths for steps in plan]),
        jnp.concatenate([rates.growing for rates in tails]),
        jnp.concatenate([rates.shrinking for rates in tails]),
    )


def _solve_penalised(
    solver: FokkerPlanck, config: Config, plan: list[_TimeSteps]
) -> Density:
    """Returns the density of a penalised rule.

    There is no mean field to choose the domain from, nor a closed form to compare with. A
    solution on half as many cells, in steps twice as long, serves for both.
    """
    rough = with_times_between(config)
    rough_plan = [_time_steps(s, 2 * solver.dt) for s in known_segments(rough)]
    rough_cells = max(solver.cells // 2, 16)
    domain = solver.domain
    if domain is None:
        wide = build_wide_grid(rough, rough_cells, solver.nodes)
        constant = off_host(without_gradient(rough))
        found, edge_mass, tails = _integrate(constant, wide, rough_plan)
        if is_known(edge_mass) and not edge_mass <= _EDGE_MASS_TOLERANCE:
            require_no_mass_lost(wide, edge_mass, _runaway(rough_plan, tails))
        domain = domain_of(rough, wide, found)
    grid = build_centred_grid(config, solver.cells, solver.nodes, domain)
    density, edge_mass, tails = _integrate(off_host(config), grid, plan)
    require_no_mass_lost(grid, edge_mass, _runaway(plan, tails))
    if is_known(density.pdf):
        coarse = build_centred_grid(rough, rough_cells, solver.nodes, domain)
        compared, *_ = _integrate(off_host(rough), coarse, rough_plan)
        warn_if_coarse(config, density, rough, compared)
    return density


def start_density(config: Config, grid: Grid, cells: FoldedCells) -> Folded:
    """Returns the start's density on the cells, normalised to a mass of one."""
    pdf = sampled_start(config, grid)
    return cells.fold(pdf / (grid.width * jnp.sum(pdf, axis=0, keepdims=True)))


def marginal_at_switch(pdf: Folded, old: SpikeNodes, new: SpikeNodes) -> Array:
    """Returns the density given the entry of a new spike: the marginal, for each node.

    The entries of the new spike are independent of the estimate.
    """
    marginal = pdf @ old.weights
    return jnp.broadcast_to(marginal[:, :, None], (*marginal.shape, new.xi.size))


def mass_at_edge(pdf: Folded, cells: FoldedCells, nodes: SpikeNodes) -> Real:
    """Returns the mass in the two outermost cells of both sides.

    Two, because one may be the additional cell outside.
    """
    return cells.width * jnp.sum(pdf[:2] @ nodes.weights)


class Moments(eqx.Module):
    """The moments `E[x xi]` and `E[x^2]`, and with a penalty `E[phi xi]` and `E[phi x]`."""

    x_xi: Real
    x_squared: Real
    phi_xi: Real | None = None
    phi_x: Real | None = None


def moments_of(
    pdf: Folded, cells: FoldedCells, nodes: SpikeNodes, phi: PenaltyOnCells | None = None
) -> Moments:
    def conditional_mean(f: Float[Array, "rows 2"]) -> Float[Array, " nodes"]:
        return cells.width * jnp.einsum("rs,rsk->k", f, pdf)

    x_xi = jnp.sum(nodes.weights * nodes.xi * conditional_mean(cells.x))
    x_squared = jnp.sum(nodes.weights * conditional_mean(cells.x**2))
    if phi is None:
        return Moments(x_xi, x_squared)
    phi_xi = jnp.sum(nodes.weights * nodes.xi * conditional_mean(phi.at_centres))
    phi_x = jnp.sum(nodes.weights * conditional_mean(phi.at_centres * cells.x))
    return Moments(x_xi, x_squared, phi_xi, phi_x)


def tail_rates(
    c: Coefficients, moments: Moments, phi: PenaltyOnCells | None
) -> TailRates | None:
    """Returns the rates of the tails, `None` without a penalty.

    An entry far out changes at the rate `back - phi(x)/x`. The norm's rate is subtracted,
    `d log lam/dt = (along E[x xi] + diffusivity - E[phi x])/E[x^2] + back`.
    """
    if phi is None or moments.phi_x is None:
        return None
    return TailRates(
        growing=moments.phi_x / moments.x_squared - phi.per_entry,
        shrinking=(c.along * moments.x_xi + c.diffusivity) / moments.x_squared,
    )


def coefficients(
    rule: AbstractRule,
    model: SpikedModel,
    t: Real,
    moments: Moments,
    schedule_state: ScheduleState,
) -> tuple[Coefficients, ScheduleState]:
    """Returns the coefficients of `eq:strong_pde`, and `d schedule_state/dt`.

    They are made of the same limit coefficients as the mean field. A rule that projects
    makes up for the penalty: with `E[x^2]` as it is on the cells, so that small errors of
    the norm decay.

    **Arguments:**

    - `rule`: the rule, without its penalty.
    - `moments`: those of the density, which of a penalised rule include those of `phi`.
    """
    lam = jnp.sqrt(moments.x_squared)
    q = moments.x_xi / lam
    # The norm of a projected estimate is exactly one, that of the density on cells nearly.
    lam = jnp.ones_like(lam) if rule.projects else lam
    a = limit_coefficients(rule, model.effective_omega, model.p, t, q, lam, schedule_state)
    gain, decay = a.a1 / a.s2, a.a1 + a.a2 / 2 if rule.projects else a.a3
    if rule.projects and moments.phi_x is not None:
        decay = decay - moments.phi_x / moments.x_squared
    equation = Coefficients(
        along=gain * model.effective_omega * q * lam,
        back=gain - decay,
        diffusivity=lam**2 * a.a2 / 2,
    )
    return equation, a.schedule_drift


def average_coefficients(
    rule: AbstractRule,
    model: SpikedModel,
    t: Real,
    dt: Real,
    moments: Moments,
    excess: Moments,
    schedule_state: ScheduleState,
) -> tuple[Coefficients, Moments, ScheduleState]:
    """Returns the average of the coefficients over a step from `t` to `t + dt`.

    The drift is affine, so the moments obey a closed equation for every density. A step of
    the classical Runge-Kutta method for it, from the density's own moments, gives the
    average to fourth order. The remaining error of the coupling, that operators at
    different times do not commute, is of second order and small.

    On cells the moments change at a slightly different rate. `excess` is that rate minus
    the closed equation's, as measured in the steps before. To neglect it would cost an
    error of first order in `dt`, though one that vanishes with the width of the cells. The
    moments of a penalty have no closed equation: their whole rate is the one measured.

    **Returns:**

    The average coefficients, and the predicted moments and state of the schedule at the end
    of the step.
    """

    def derivative(s: Real, state: tuple[Moments, ScheduleState]):
        moments, schedule_state = state
        c, schedule_rate = coefficients(rule, model, t + s, moments, schedule_state)
        x_xi = c.along + c.back * moments.x_xi
        x_squared = 2 * (
            c.along * moments.x_xi + c.back * moments.x_squared + c.diffusivity
        )
        phi_xi, phi_x = moments.phi_xi, moments.phi_x
        if phi_xi is not None and phi_x is not None:
            x_xi, x_squared = x_xi - phi_xi, x_squared - 2 * phi_x
        rate = Moments(
            x_xi + excess.x_xi, x_squared + excess.x_squared, excess.phi_xi, excess.phi_x
        )
        return c, (rate, schedule_rate)

    def euler(state, rate, s: Real):
        return jax.tree.map(lambda x, v: x + s * v, state, rate)

    begin, half = (moments, schedule_state), dt / 2
    c1, v1 = derivative(jnp.zeros_like(dt), begin)
    c2, v2 = derivative(half, euler(begin, v1, half))
    c3, v3 = derivative(half, euler(begin, v2, half))
    c4, v4 = derivative(dt, euler(begin, v3, dt))

    def average(k1, k2, k3, k4):
        return jax.tree.map(lambda a, b, c, d: (a + 2 * (b + c) + d) / 6, k1, k2, k3, k4)

    predicted, schedule_state = euler(begin, average(v1, v2, v3, v4), dt)
    return average(c1, c2, c3, c4), predicted, schedule_state
