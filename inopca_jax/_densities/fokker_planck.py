"""The Fokker-Planck equation `eq:strong_pde`, coupled to its own moments."""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float

from .._check import Checked, is_known, plain_number, positive
from .._config import Config, cast
from .._model import SpikedModel
from .._order_parameters.limit import limit
from .._rule import AbstractRule
from .._types import Memory, Real
from .accuracy import warn_if_inaccurate
from .density import Density
from .fluxes import Coefficients, Folded, Line, hops, step
from .grid import Grid, Nodes, as_domain, lay, start_values, whole_cells, whole_nodes
from .solver import AbstractDensitySolver, Stretch, collected, stretches

# Cells at the edge that ever hold more than this have turned some of the mass back.
_SPILT = 1e-8


def _step(dt: Any) -> float:
    return plain_number("dt", dt, positive, "pass a positive, finite step")


class FokkerPlanck(AbstractDensitySolver):
    """A method of lines: conservative fluxes on cells, implicit steps in time.

    `cells` of equal width on `domain`, for all `nodes` of the spike's law at once; steps
    of at most `dt`, cut so that the times of the config are met. Second order in the
    width of the cells and in `dt`; mass is kept to rounding (in float32 this adds up to
    some 1e-5), no density is negative and the steady state is exact. `q` and `lam`, on
    which the equation's coefficients depend, are the density's own at the beginning of
    every step (`eq:tracked_par`).

    At the defaults `q` and `lam` are the mean field's to 1e-4 where the rate is of order
    one. Take smaller steps for one that begins above 1 (CCIPCA's from t0 = 2: 2e-4), and
    more cells for a norm that grows, with which the domain does (Krasulina's: 6e-4).

    Without a `domain` one is chosen from the mean field, so that all but some 1e-12 of
    the mass stays inside. Mass at the edge is an error; where that cannot be raised, as
    under a `vmap`, the density is not a number.
    """

    cells: int = eqx.field(static=True, converter=whole_cells, default=400)
    nodes: int = eqx.field(static=True, converter=whole_nodes, default=32)
    dt: float = eqx.field(static=True, converter=_step, default=0.05)
    domain: tuple[float, float] | None = eqx.field(
        static=True, converter=as_domain, default=None
    )

    def solve(self, config: Checked[Config]) -> Density:
        plan = [_cut(stretch, self.dt) for stretch in stretches(config)]
        grid, path = lay(config, self.cells, self.nodes, self.domain)
        density, spilt = _march(config, grid, plan)
        require_unspilt(grid, spilt)
        warn_if_inaccurate(config, grid, path, density)
        return density


def require_unspilt(grid: Grid, spilt: Real) -> None:
    """Refuses a result that is not one: mass at the edge, or no numbers at all."""
    if is_known(spilt) and not jnp.isfinite(spilt):
        raise RuntimeError(
            "The density could not be followed: its coefficients change too fast for the "
            "steps. Pass a smaller dt (or rtol), or make the limit regular at t = 0 (a "
            "larger b0, of order p; t0 > 0; see mean_field)."
        )
    low, high = grid.x[0] - grid.width / 2, grid.x[-1] + grid.width / 2
    if is_known(spilt, low) and not spilt <= _SPILT:
        raise ValueError(
            f"domain = ({float(low):.4g}, {float(high):.4g}) is not allowed: cells at its "
            f"edge came to hold {float(spilt):.1e} of the mass. Pass a wider one."
        )


class _Steps(NamedTuple):
    """The steps of one phase: when each begins, how long it is, and which row of the
    stops it ends at (one more than there are if at none)."""

    begins: np.ndarray
    lengths: np.ndarray
    rows: np.ndarray
    picked: np.ndarray
    stops: np.ndarray


def _cut(stretch: Stretch, dt: float) -> _Steps:
    stops = stretch.stops
    gaps = np.diff(stops, prepend=stretch.begin)
    # Forgiving of rounding, so that ten steps of 0.1 make 1.
    counts = np.ceil(gaps / dt * (1 - 1e-12)).astype(int)
    lengths = np.repeat(gaps / np.maximum(counts, 1), counts)
    begins = stretch.begin + np.cumsum(lengths) - lengths
    rows = np.full(lengths.size, stops.size, np.int32)
    rows[np.cumsum(counts)[counts > 0] - 1] = np.flatnonzero(counts)
    return _Steps(begins, lengths, rows, stretch.picked, stops)


@eqx.filter_jit
def _march(config: Config, grid: Grid, plan: list[_Steps]) -> tuple[Density, Real]:
    config = cast(config, jnp.result_type(float))
    rule, dtype = config.rule, grid.x.dtype
    line = Line.of(grid.x, grid.width)
    pdf, memory = start_density(config, grid, line), rule.tau.init(config.model.float_p)
    kept, spilt = [], jnp.zeros((), dtype)
    # A step so short says nothing about rates but how moments are rounded.
    tiny = float(jnp.finfo(dtype).eps) ** (1 / 3)
    for i, steps in enumerate(plan):
        model, nodes = config.model.phases()[i], grid.phases[i]
        if i:
            pdf = renewed(pdf, grid.phases[i - 1], nodes)

        def advance(carry, now, model=model, nodes=nodes):
            pdf, mean, extra, memory, spilt, rows = carry
            begin, dt, row = now
            average, guess, memory = averaged(rule, model, begin, dt, mean, extra, memory)
            pdf = step(hops(average, line, nodes.xi), pdf, dt)
            mean = Moments.of(pdf, line, nodes)
            seen = jax.tree.map(lambda e, m, g: e + (m - g) / dt, extra, mean, guess)
            extra = jax.tree.map(lambda e, s: jnp.where(dt > tiny, s, e), extra, seen)
            spilt = jnp.maximum(spilt, at_the_edge(pdf, line, nodes))
            rows = lax.dynamic_update_index_in_dim(rows, pdf, row, 0)
            return (pdf, mean, extra, memory, spilt, rows), None

        # Rows of a stop at the phase's begin are not stepped to: they are what it is.
        rows = jnp.broadcast_to(pdf, (steps.stops.size + 1, *pdf.shape))
        times = (jnp.asarray(steps.begins, dtype), jnp.asarray(steps.lengths, dtype))
        mean = Moments.of(pdf, line, nodes)
        extra = jax.tree.map(jnp.zeros_like, mean)
        carry = (pdf, mean, extra, memory, spilt, rows)
        carry, _ = lax.scan(advance, carry, (*times, jnp.asarray(steps.rows)))
        pdf, _, _, memory, spilt, rows = carry
        kept.append(jax.vmap(line.unfold)(rows[steps.picked]))
    return honest(collected(config, grid, kept), spilt), spilt


def honest(density: Density, spilt: Real) -> Density:
    """Not a number where mass has come to the edge, lest it pass for a solution."""
    pdf = jnp.where(spilt <= _SPILT, density.pdf, jnp.nan)
    return eqx.tree_at(lambda d: d.pdf, density, pdf)


def start_density(config: Config, grid: Grid, line: Line) -> Folded:
    """The start's on the cells, of mass one: samples miss that by a quadrature's error."""
    pdf = start_values(config, grid)
    return line.fold(pdf / (grid.width * jnp.sum(pdf, axis=0, keepdims=True)))


def renewed(pdf: Folded, old: Nodes, new: Nodes) -> Array:
    """Given the entry of a new spike, which is independent of all before: the marginal."""
    marginal = pdf @ old.weight
    return jnp.broadcast_to(marginal[:, :, None], (*marginal.shape, new.xi.size))


def at_the_edge(pdf: Folded, line: Line, nodes: Nodes) -> Real:
    """The mass in the outermost two cells of either side (one may be outside)."""
    return line.width * jnp.sum(pdf[:2] @ nodes.weight)


class Moments(eqx.Module):
    """`E[x xi]` and `E[x^2]`."""

    along: Real
    square: Real

    @staticmethod
    def of(pdf: Folded, line: Line, nodes: Nodes) -> "Moments":
        def mean(of_x: Float[Array, "rows 2"]) -> Float[Array, " nodes"]:
            return line.width * jnp.einsum("rs,rsk->k", of_x, pdf)

        along = jnp.sum(nodes.weight * nodes.xi * mean(line.x))
        return Moments(along, jnp.sum(nodes.weight * mean(line.x**2)))


def coefficients(
    rule: AbstractRule, model: SpikedModel, t: Real, mean: Moments, memory: Memory
) -> tuple[Coefficients, Memory]:
    """Of `eq:strong_pde`, from the same limit as the mean field's; and the memory's."""
    lam = jnp.sqrt(mean.square)
    q = mean.along / lam
    # A projection holds the norm, whatever the cells make of it.
    lam = jnp.ones_like(lam) if rule.projects else lam
    a = limit(rule, model.omega, model.float_p, t, q, lam, memory)
    pull, decay = a.a1 / a.s2, a.a1 + a.a2 / 2 if rule.projects else a.a3
    spread = lam**2 * a.a2 / 2
    return Coefficients(pull * model.omega * q * lam, pull - decay, spread), a.drift


def averaged(
    rule: AbstractRule,
    model: SpikedModel,
    t: Real,
    dt: Real,
    mean: Moments,
    extra: Moments,
    memory: Memory,
) -> tuple[Coefficients, Moments, Memory]:
    """The coefficients' average over a step, and the moments and the memory after it.

    The drift is affine, so the moments have a closed equation for every density. A step
    of Runge and Kutta's for it, from the density's own moments, gives the average to
    fourth order: what is left of the coupling's error is that operators at different
    times do not commute, which is of second order and small. On cells the moments move a
    little differently, by `extra`, as the steps before have shown: to leave it out would
    cost an error of first order in `dt`, if one that vanishes with the cells' width.
    """

    def velocity(s: Real, state: tuple[Moments, Memory]):
        mean, memory = state
        a, drift = coefficients(rule, model, t + s, mean, memory)
        along = a.along + a.back * mean.along
        square = 2 * (a.along * mean.along + a.back * mean.square + a.spread)
        rate = Moments(along + extra.along, square + extra.square)
        return a, (rate, drift)

    def moved(state, rate, s: Real):
        return jax.tree.map(lambda x, v: x + s * v, state, rate)

    first, half = (mean, memory), dt / 2
    a1, v1 = velocity(jnp.zeros_like(dt), first)
    a2, v2 = velocity(half, moved(first, v1, half))
    a3, v3 = velocity(half, moved(first, v2, half))
    a4, v4 = velocity(dt, moved(first, v3, dt))

    def blend(k1, k2, k3, k4):
        return jax.tree.map(lambda a, b, c, d: (a + 2 * (b + c) + d) / 6, k1, k2, k3, k4)

    guess, memory = moved(first, blend(v1, v2, v3, v4), dt)
    return blend(a1, a2, a3, a4), guess, memory
