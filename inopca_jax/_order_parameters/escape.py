"""Away from q = 0, where the mean field is stuck and chance decides when to leave."""

from typing import Any

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.flatten_util import ravel_pytree
from jax.scipy.stats import norm
from jaxtyping import Array, Bool, Float

from .._check import Checked, is_known, number, require, require_instance
from .._config import Config, cast
from .._model import SpikedModel
from .._rule import AbstractRule
from .._trajectory import Trajectory
from .._types import Real, Times
from .fluctuations import across, bars, carry, chosen
from .increments import Slow
from .initial import Cloud, start
from .integrate import Flow, accurate, in_double, require_steps
from .law import EscapeTime, OverlapLaw, centre
from .mean_field import require_solved, warn_if_forgotten
from .path import Window, windows

# Below the edge the overlap obeys a linear equation, up to terms of relative order q^2;
# above it noise no longer brings it back. At large p there is room for both.
_EDGE, _LEAST_STDS, _MOST = 0.1, 4.5, 0.4
# How the runs that leave are shared out to lanes, in the order in which they do: finely
# at both ends, where few leave over a long time.
_GRID, _LANES, _LOOKS = 193, 40, 201
_SHARES = 1 - (1 - np.linspace(0, 1, _LANES + 1) ** 1.5) ** 2.5
_TOLERANCES = (1e-5, 1e-7)


def overlap_law(config: Checked[Config], *, max_steps: Checked[int] = 4096) -> OverlapLaw:
    """The law of `q` over runs at this `p`, where the linear `fluctuations` do not hold:
    from a cold start, or after a change to a spike that resembles nothing before.

    As long as `|q|` is small, it is normal: chance at the start, grown, and the noise on
    the way. From the edge of that (0.1, or 4.5 of the start's standard deviations) the
    runs that leave follow the mean field, each from the time at which it left, with linear
    fluctuations of their own. From a start beyond the edge all of it is linear. After a
    change of the spike, sides are told up to the mirror image of a whole run; if runs were
    still leaving at the change, and the new spike resembles the old one, the spread that
    follows is that of one cloud and too small.

    Against the chain, at p = 10,000 from a cold start, omega = 1, the mean of `|q|` is
    within the error of 4,000 trials, and so is its standard deviation, up to 3 %, until
    fewer than 1 % of the runs are left behind. At p = 2,000 the mean of `|q|` is within 2 %
    (CCIPCA, whose first rates are the largest, within 6 %).
    """
    require_instance("config", config, Config)
    max_steps = require_steps(max_steps)
    warn_if_forgotten(config)
    law = in_double(_law, config, config.ts, max_steps)
    law = eqx.tree_at(lambda law: law.ts, law, config.ts)
    _require_solved(law, max_steps)
    return law


def escape_time(
    config: Checked[Config], level: Checked[float], *, max_steps: Checked[int] = 4096
) -> EscapeTime:
    """When `|q|` first passes `level`, over runs at this `p`, up to the last of the
    config's times.

    By `overlap_law`, of which a run counts as passed if it is beyond: right for a level
    that is out of reach of the noise at the start, and not so near to the steady overlap
    that runs come to pass it by chance alone. At p = 10,000 the quantiles 10, 50 and 90 %
    are within 2 % of the chain's, or its error; at p = 2,000 within 2 % (CCIPCA 5 %).
    """
    require_instance("config", config, Config)
    max_steps = require_steps(max_steps)
    if len(config.model.phases()) > 1:
        raise ValueError(
            "escape_time is of one spike, and the model's changes: pass a SpikedModel, or "
            "read overlap_law(config).exceeds(level) at the times since a change."
        )
    number("level", level)
    require("level", level, lambda x: (x > 0) & (x < 1), "pass 0 < level < 1")
    require("ts", config.ts, lambda x: x[-1] > 0, "an escape takes time; pass a later one")
    warn_if_forgotten(config)
    # Once to see when it happens, in however long a time, and once to look closely.
    end = jnp.asarray(config.ts[-1], jnp.result_type(float))
    seen = in_double(_law, config, jnp.linspace(0.0, end, _LOOKS), max_steps)
    cdf = lax.cummax(seen.exceeds(level))
    begun, done = (jnp.searchsorted(cdf, part * cdf[-1]) for part in (1e-4, 1 - 1e-4))
    first, last = seen.ts[jnp.maximum(begun - 1, 0)], seen.ts[done]
    ts = jnp.concatenate([jnp.zeros(1), jnp.linspace(first, last, _LOOKS - 2), end[None]])
    law = in_double(_law, config, ts, max_steps)
    _require_solved(law, max_steps)
    _require_beyond_noise(law, level, config.model.p)
    return EscapeTime(jnp.asarray(law.ts), lax.cummax(law.exceeds(level)))


def _require_beyond_noise(law: OverlapLaw, level: Any, p: int) -> None:
    assert law.near.q_std is not None
    if not is_known(law.edge):
        return
    q0, reach = abs(float(law.near.q[0])), _LEAST_STDS * float(law.near.q_std[0])
    require(
        "level",
        level,
        lambda x: (q0 >= x + reach) | (x >= q0 + reach),
        f"at p = {p} the noise reaches it from the start, q0 = {q0:.3g}; pass a level of "
        f"at least {q0 + reach:.2g}"
        if q0 + reach < 1
        else f"at p = {p} the noise reaches everywhere; simulate instead",
    )


def _require_solved(law: OverlapLaw, max_steps: int) -> None:
    for side in (law.near, jax.tree.map(lambda a: jnp.sum(a, 0), law.paths)):
        result = Trajectory(law.ts, side.q, side.lam)
        require_solved(result, max_steps, "a larger max_steps")


def _law(config: Config, ts: Times, max_steps: int) -> OverlapLaw:
    config = cast(config, jnp.result_type(float))
    flow = accurate(diffrax.Tsit5(), None, *_TOLERANCES, max_steps)
    rule, models = config.rule, config.model.phases()
    cloud, seen = start(rule, models[0], config.start), None
    ts = jnp.asarray(ts, cloud.shift.dtype)
    for i, window in enumerate(windows(config, ts)):
        cloud = cloud if i == 0 else across(models[i], cloud)
        law, at_ts, far = _phase(rule, models[i], cloud, window, flow)
        if i + 1 < len(models):
            cloud = _merged(law, at_ts, far, config.model.float_p)
        law = jax.tree.map(lambda a: a[..., :-1], law)
        if seen is not None:
            rows = jax.vmap(chosen, in_axes=(0, -1, -1), out_axes=-1)
            law = rows(window.mine, law, seen)
        seen = law
    assert seen is not None
    return eqx.tree_at(lambda law: law.ts, seen, ts)


def _phase(
    rule: AbstractRule, model: SpikedModel, cloud: Cloud, window: Window, flow: Flow
) -> tuple[OverlapLaw, Cloud, Cloud]:
    """The law at the times of one phase and at its end, and the clouds that it is of."""
    grid = window.begin + (window.inside[-1] - window.begin) * np.linspace(0, 1, _GRID)
    # Once for when runs leave, and once more where they do.
    seen = _look(rule, model, cloud, window, grid, flow)
    seen = _look(rule, model, cloud, window, _refined(grid, seen.std(), seen.edge), flow)
    far, weights, paths = _lanes(rule, model, seen, flow)
    edges = jnp.where(seen.stuck, seen.edge, jnp.inf)
    edges = jnp.broadcast_to(edges, window.inside.shape)
    law = OverlapLaw(window.inside, seen.near, edges, paths, weights)
    return law, seen.at_ts, far


class _Seen(eqx.Module):
    """The linear theory at the times that are asked for and on a grid: as clouds, and what
    they say of the overlap; the edge, and whether the phase begins within it."""

    at_ts: Cloud
    on_grid: Cloud
    near: Trajectory
    before: Trajectory
    edge: Real
    stuck: Bool[Array, ""]

    def std(self) -> Array:
        assert self.before.q_std is not None
        return self.before.q_std


@eqx.filter_jit
def _look(
    rule: AbstractRule,
    model: SpikedModel,
    cloud: Cloud,
    window: Window,
    grid: Array,
    flow: Flow,
) -> _Seen:
    ts = window.inside
    both = jnp.concatenate([ts, grid])
    order = jnp.argsort(both)
    clouds = carry(rule, model, cloud, window.begin, both[order], flow)
    back = jnp.argsort(order)
    parts = (back[: ts.size], back[ts.size :])
    at_ts, on_grid = (jax.tree.map(lambda a, part=part: a[part], clouds) for part in parts)
    near = bars(ts, at_ts, model.float_p)
    before = bars(grid, on_grid, model.float_p)
    assert before.q_std is not None
    edge = jnp.clip(_LEAST_STDS * before.q_std[0], _EDGE, _MOST)
    stuck = jnp.abs(cloud.centre.q()) < edge
    return _Seen(at_ts, on_grid, near, before, edge, stuck)


@jax.jit
def _refined(grid: Array, std: Array, edge: Real) -> Array:
    """The grid, laid so that the spread grows by as much from each time to the next while
    runs leave across the edge: in a long time that may be a moment."""
    level = jnp.log(jnp.clip(std, edge / 6, edge * 1e6))
    level = lax.cummax(level) + jnp.linspace(0, 0.01, grid.size, dtype=grid.dtype)
    return jnp.interp(jnp.linspace(level[0], level[-1], grid.size), level, grid)


@eqx.filter_jit
def _lanes(
    rule: AbstractRule,
    model: SpikedModel,
    seen: _Seen,
    flow: Flow,
) -> tuple[Cloud, Float[Array, "lanes times"], Trajectory]:
    """The clouds of those that leave, at all times; how much of each lane has left; and
    what the clouds say of the overlap."""
    near, before, edge, stuck = seen.near, seen.before, seen.edge, seen.stuck
    grid, ts = jnp.asarray(before.ts), jnp.asarray(near.ts)
    shares = jnp.asarray(_SHARES, ts.dtype)

    def leavers(sign: Real) -> tuple[Array, Array]:
        beyond = lambda side: jnp.where(stuck, lax.cummax(_beyond(side, sign, edge)), 0)
        left = beyond(before)
        cuts = left[-1] * shares
        exits = jnp.interp((cuts[1:] + cuts[:-1]) / 2, left, grid)
        low, high = cuts[:-1, None], cuts[1:, None]
        return exits, jnp.clip(beyond(near)[None, :], low, high) - low

    def lane(sign: Real, exit: Real) -> Cloud:
        cloud = _at(seen.on_grid, grid, exit)
        # If nobody leaves the lanes have no weight; they must not have no number, either.
        begin = chosen(stuck, _leaving(cloud, sign * edge, model.float_p), cloud)
        return carry(rule, model, begin, exit, jnp.maximum(ts, exit), flow)

    signs = jnp.array([1, -1], ts.dtype)
    exits, weights = jax.vmap(leavers)(signs)
    far = jax.vmap(lane)(jnp.repeat(signs, _LANES), exits.reshape(-1))
    paths = jax.vmap(lambda clouds: bars(ts, clouds, model.float_p))(far)
    return far, weights.reshape(-1, ts.size), paths


def _beyond(side: Trajectory, sign: Real, edge: Real) -> Array:
    """The probability that `sign * q > edge`."""
    mean, std = centre(side, "q")
    return norm.cdf((sign * mean - edge) / std)


def _at(clouds: Cloud, grid: Array, t: Real) -> Cloud:
    """The cloud at a time between those of the grid."""
    at = jnp.clip(jnp.searchsorted(grid, t), 1, grid.size - 1)
    width = grid[at] - grid[at - 1]
    part = jnp.where(width > 0, (t - grid[at - 1]) / jnp.where(width > 0, width, 1), 0)
    return jax.tree.map(lambda a: (1 - part) * a[at - 1] + part * a[at], clouds)


def _leaving(cloud: Cloud, q: Real, p: float) -> Cloud:
    """The cloud, given that the overlap is `q`.

    What the others owe to the scatter of the overlap goes as its square: by as much as
    `q^2` is more than the variance, their shift is taken to be more, too. (That is all of
    it by the time that runs leave, but for terms of order 1/p.)
    """
    state, unravel = ravel_pytree(cloud.centre)
    overlap = lambda state: unravel(state).q()
    slope = jax.grad(overlap)(state)
    towards = cloud.covariance @ slope
    variance = slope @ towards
    state = state + towards / variance * (q - overlap(state))
    slow: Slow = unravel(state + cloud.shift / p * (q**2 * p / variance))
    slow = eqx.tree_at(lambda slow: slow.m, slow, q * slow.lam())
    left = cloud.covariance - jnp.outer(towards, towards) / variance
    return Cloud(slow, left, jnp.zeros_like(cloud.shift))


@eqx.filter_jit
def _merged(law: OverlapLaw, at_ts: Cloud, far: Cloud, p: float) -> Cloud:
    """One cloud of the mixture's mean and covariance at the last time.

    A run and its mirror image, `x` and `-x`, have the same `|q|` for ever: those that left
    on the other side are counted with their mirror images, or there would be two clouds.
    """
    near, clouds = (
        jax.tree.map(lambda a: a[-1], at_ts),
        jax.tree.map(lambda a: a[:, -1], far),
    )
    state, unravel = ravel_pytree(near.centre)
    # Of those within the edge the scatter along q, and what is owed to it, is cut by it.
    slope = jax.grad(lambda state: unravel(state).q())(state)
    towards = near.covariance @ slope
    cut = (1 - law.part()[-1]) / jnp.maximum(slope @ towards, jnp.finfo(state.dtype).tiny)
    near_covariance = near.covariance - cut * jnp.outer(towards, towards)
    # The first two, m and c, change their sign with x; others do not.
    odd = jnp.arange(state.size) < 2
    side = jnp.where(odd[None, :] & (clouds.centre.m < 0)[:, None], -1, 1)
    side = side.astype(state.dtype)
    states = side * jax.vmap(lambda centre: ravel_pytree(centre)[0])(clouds.centre)
    covariances = side[:, :, None] * clouds.covariance * side[:, None, :]

    weights = law.weights[:, -1]
    weights = jnp.append(weights, 1 - jnp.sum(weights))
    with_near = lambda lanes, one: jnp.concatenate([lanes, one[None]])
    states = with_near(states, state)
    mean = weights @ states
    off = states - mean[None, :]
    between = jnp.einsum("l,li,lj->ij", weights, off, off)
    within = jnp.tensordot(weights, with_near(covariances, near_covariance), 1)
    shift = weights @ with_near(side * clouds.shift, law.part()[-1] * near.shift)
    return Cloud(unravel(mean), within + p * between, shift)
