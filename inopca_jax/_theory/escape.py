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
from jaxtyping import Array, Float

from .._check import is_known, require
from .._config import Config, cast
from .._expansion import Cloud, Slow, root, start
from .._model import SpikedModel
from .._rule import AbstractRule
from .._trajectory import Trajectory
from .._types import Real, Times
from .flow import Flow, accurate, in_double
from .fluctuations import across, bars, carry, chosen
from .mean_field import require_solved, warn_if_forgotten
from .path import Window, windows

# Below the edge the overlap obeys a linear equation, up to terms of relative order q^2;
# above it noise no longer brings it back. At large p there is room for both.
_EDGE, _LEAST_STDS, _MOST = 0.1, 4.5, 0.4
# How the runs that leave are shared out to lanes, in the order in which they do: finely
# at both ends, where few leave over a long time.
_GRID, _LANES = 193, 40
_SHARES = 1 - (1 - np.linspace(0, 1, _LANES + 1) ** 1.5) ** 2.5
_TOLERANCES = (1e-5, 1e-7)


class OverlapLaw(eqx.Module):
    """The law of the overlap over runs, at each time.

    Within `|q| < edge` it is that of `near`: normal, with the mean `q + q_shift` and the
    standard deviation `q_std`. Beyond, it is a mixture of `paths` (lanes, times) with
    `weights`, each normal likewise: runs that left across the edge, at a time of their own.
    """

    ts: Times
    near: Trajectory
    edge: Float[Array, " times"]
    paths: Trajectory
    weights: Float[Array, "lanes times"]

    def abs(self) -> Trajectory:
        """The means of `|q|` and `lam`, with `q_std` and `lam_std` about them."""
        mass, first, second = _within(*_centre(self.near, "q"), self.edge)
        mean, std = _centre(self.paths, "q")
        _, far, _ = _within(mean, std, jnp.inf)
        # The variance of |q|, without its cancellation where q keeps its sign.
        far_variance = std**2 + (jnp.abs(mean) - far) * (jnp.abs(mean) + far)
        q = first + jnp.sum(self.weights * far, 0)
        q_variance = second - 2 * q * first + q**2 * mass
        q_variance += jnp.sum(self.weights * (far_variance + (far - q[None, :]) ** 2), 0)

        near, near_std = _centre(self.near, "lam")
        near = self.near.lam + self.part() * (near - self.near.lam)
        far, far_std = _centre(self.paths, "lam")
        lam = mass * near + jnp.sum(self.weights * far, 0)
        lam_variance = mass * ((near - lam) ** 2 + near_std**2)
        lam_variance += jnp.sum(self.weights * ((far - lam[None, :]) ** 2 + far_std**2), 0)
        return Trajectory(
            self.ts, q, lam, q_std=root(q_variance), lam_std=root(lam_variance)
        )

    def part(self) -> Float[Array, " times"]:
        """How large `q^2` is in the mean of those within the edge, over that of the normal
        law without one. By this the norm's shift, which it owes to `q^2`, is too large."""
        mean, std = _centre(self.near, "q")
        mass, _, square = _within(mean, std, self.edge)
        return jnp.where(mass > 0, square / jnp.where(mass > 0, mass, 1), 0) / (
            mean**2 + std**2
        )

    def exceeds(self, level: Any) -> Float[Array, " times"]:
        """`P(|q_t| >= level)`."""
        level = jnp.asarray(level, self.edge.dtype)
        near, far = (
            norm.sf(level, *_centre(side, "q")) + norm.cdf(-level, *_centre(side, "q"))
            for side in (self.near, self.paths)
        )
        return jnp.where(level < self.edge, near, jnp.sum(self.weights * far, 0))


class EscapeTime(eqx.Module):
    """The law of the time at which `|q|` first passes a level: its `cdf` at `ts`."""

    ts: Float[Array, " times"]
    cdf: Float[Array, " times"]

    def quantile(self, probability: Any) -> Array:
        """By when this part of the runs has passed; infinite if not within `ts`."""
        probability = jnp.asarray(probability, self.cdf.dtype)
        found = jnp.interp(probability, self.cdf, self.ts)
        return jnp.where(probability > self.cdf[-1], jnp.inf, found)

    def pdf(self) -> Float[Array, " times"]:
        """The density at `ts`, by differences."""
        slope = jnp.diff(self.cdf) / jnp.diff(self.ts)
        return jnp.concatenate([slope[:1], (slope[1:] + slope[:-1]) / 2, slope[-1:]])


def overlap_law(config: Config, *, max_steps: int = 512) -> OverlapLaw:
    """The law of `q` over runs at this `p`, where the linear `fluctuations` do not hold:
    from a cold start, or after a change to a spike that resembles nothing before.

    As long as `|q|` is small, it is normal: chance at the start, grown, and the noise on
    the way. From the edge of that (0.1, or 4.5 of the start's standard deviations) the
    runs that leave follow the mean field, each from the time at which it left, with linear
    fluctuations of their own. From a start beyond the edge all of it is linear.

    Against the chain, at p = 10,000 from a cold start, omega = 1, the mean of `|q|` is
    within the error of 4,000 trials, and so is its standard deviation, up to 3 %, until
    fewer than 1 % of the runs are left behind. At p = 2,000 the mean of `|q|` is within 2 %
    (CCIPCA, whose first rates are the largest, within 6 %).
    """
    warn_if_forgotten(config)
    law = in_double(_law, config, config.ts, max_steps)
    law = eqx.tree_at(lambda law: law.ts, law, config.ts)
    require_solved(config, law.near, max_steps)
    return law


def escape_time(config: Config, level: float, *, max_steps: int = 512) -> EscapeTime:
    """When `|q|` first passes `level`, over runs at this `p`, up to the last of the
    config's times.

    By `overlap_law`, of which a run counts as passed if it is beyond: right for a level
    that is out of reach of the noise at the start, and not so near to the steady overlap
    that runs come to pass it by chance alone. At p = 10,000 the quantiles 10, 50 and 90 %
    are within 2 % of the chain's, or its error; at p = 2,000 within 2 % (CCIPCA 5 %).
    """
    if len(config.model.phases()) > 1:
        raise ValueError(
            "escape_time is of one spike, and the model's changes: pass a SpikedModel, or "
            "read overlap_law(config).exceeds(level) at the times since a change."
        )
    require("level", level, lambda x: (x > 0) & (x < 1), "pass 0 < level < 1")
    warn_if_forgotten(config)
    ts = jnp.linspace(0.0, config.ts[-1], 401)
    law = in_double(_law, config, ts, max_steps)
    require_solved(eqx.tree_at(lambda c: c.ts, config, ts), law.near, max_steps)
    assert law.near.q_std is not None
    if is_known(law.edge):
        least = _LEAST_STDS * float(law.near.q_std[0])
        cold = abs(float(law.near.q[0])) < level
        require(
            "level",
            level,
            lambda x: (x >= least) | (not cold),
            f"at p = {config.model.p} the noise of the start reaches it; pass a level of "
            f"at least {least:.2g}, or look at a simulation",
        )
    return EscapeTime(jnp.asarray(law.ts), lax.cummax(law.exceeds(level)))


def _centre(side: Trajectory, name: str) -> tuple[Array, Array]:
    """The mean and the standard deviation, held off zero, which they are divided by."""
    mean, shift, std = (getattr(side, name + end) for end in ("", "_shift", "_std"))
    return mean + shift, jnp.maximum(std, jnp.finfo(std.dtype).tiny)


def _within(mean: Array, std: Array, edge: Array | float) -> tuple[Array, Array, Array]:
    """The expectations of 1, `|q|` and `q^2` over `|q| < edge`, of normal laws."""
    total, first, second = (jnp.zeros_like(mean) for _ in range(3))
    for centre in (mean, -mean):  # of q in [0, edge), then of -q
        low, high = -centre / std, (edge - centre) / std
        mass = norm.cdf(high) - norm.cdf(low)
        top = jnp.where(jnp.isfinite(high), (centre + edge) * norm.pdf(high), 0)
        total += mass
        first += centre * mass + std * (norm.pdf(low) - norm.pdf(high))
        second += (centre**2 + std**2) * mass + std * (centre * norm.pdf(low) - top)
    # Of a law so wide that it is flat within the edge, without the cancellation.
    flat = std > 30 * edge
    first = jnp.where(flat, total * edge / 2, first)
    second = jnp.where(flat, total * edge**2 / 3, second)
    return total, first, second


def _law(config: Config, ts: Times, max_steps: int) -> OverlapLaw:
    config = cast(config, jnp.result_type(float))
    flow = accurate(diffrax.Tsit5(), None, *_TOLERANCES, max_steps)
    rule, models = config.rule, config.model.phases()
    cloud, seen = start(rule, models[0], config.start), None
    ts = jnp.asarray(ts, cloud.shift.dtype)
    for i, window in enumerate(windows(config, ts)):
        cloud = cloud if i == 0 else across(models[i], cloud)
        law, cloud = _phase(rule, models[i], cloud, window, flow)
        if seen is not None:
            rows = jax.vmap(chosen, in_axes=(0, -1, -1), out_axes=-1)
            law = rows(window.mine, law, seen)
        seen = law
    assert seen is not None
    return eqx.tree_at(lambda law: law.ts, seen, ts)


@eqx.filter_jit
def _phase(
    rule: AbstractRule, model: SpikedModel, cloud: Cloud, window: Window, flow: Flow
) -> tuple[OverlapLaw, Cloud]:
    """The law at the times of one phase, and the cloud at its end."""
    p, ts = model.p, window.inside
    steps = jnp.linspace(0, 1, _GRID, dtype=ts.dtype)
    grid = window.begin + (ts[-1] - window.begin) * steps
    both = jnp.concatenate([ts, grid])
    order = jnp.argsort(both)
    clouds = carry(rule, model, cloud, window.begin, both[order], flow)
    clouds = jax.tree.map(lambda a: a[jnp.argsort(order)], clouds)
    at_ts, on_grid = (
        jax.tree.map(lambda a, part=part: a[part], clouds)
        for part in (slice(None, ts.size), slice(ts.size, None))
    )
    near, before = bars(ts, at_ts, p), bars(grid, on_grid, p)

    assert before.q_std is not None
    edge = jnp.clip(_LEAST_STDS * before.q_std[0], _EDGE, _MOST)
    stuck = jnp.abs(before.q[0]) < edge
    shares = jnp.asarray(_SHARES, ts.dtype)

    def leavers(sign: Real) -> tuple[Array, Array]:
        """When each lane leaves on this side, and how much of it has left by each time."""
        beyond = lambda side: jnp.where(stuck, lax.cummax(_beyond(side, sign, edge)), 0)
        left = beyond(before)
        cuts = left[-1] * shares
        exits = jnp.interp((cuts[1:] + cuts[:-1]) / 2, left, grid)
        low, high = cuts[:-1, None], cuts[1:, None]
        return exits, jnp.clip(beyond(near)[None, :], low, high) - low

    def lane(sign: Real, exit: Real) -> Cloud:
        cloud = _at(on_grid, grid, exit)
        # If nobody leaves the lanes have no weight; they must not have no number, either.
        begin = chosen(stuck, _leaving(cloud, sign * edge, p), cloud)
        return carry(rule, model, begin, exit, jnp.maximum(ts, exit), flow)

    signs = jnp.array([1, -1], ts.dtype)
    exits, weights = jax.vmap(leavers)(signs)
    weights = weights.reshape(-1, ts.size)
    far = jax.vmap(lane)(jnp.repeat(signs, _LANES), exits.reshape(-1))
    paths = jax.vmap(lambda clouds: bars(ts, clouds, p))(far)
    edges = jnp.broadcast_to(jnp.where(stuck, edge, jnp.inf), ts.shape)
    law = OverlapLaw(ts, near, edges, paths, weights)
    last = jax.tree.map(lambda a: a[-1], at_ts)
    last = eqx.tree_at(lambda cloud: cloud.shift, last, law.part()[-1] * last.shift)
    end = _merged(last, jax.tree.map(lambda a: a[:, -1], far), weights[:, -1], p)
    return jax.tree.map(lambda a: a[..., :-1], law), end


def _beyond(side: Trajectory, sign: Real, edge: Real) -> Array:
    """The probability that `sign * q > edge`."""
    mean, std = _centre(side, "q")
    return norm.cdf((sign * mean - edge) / std)


def _at(clouds: Cloud, grid: Array, t: Real) -> Cloud:
    """The cloud at a time between those of the grid."""
    at = jnp.clip(jnp.searchsorted(grid, t), 1, grid.size - 1)
    part = (t - grid[at - 1]) / (grid[at] - grid[at - 1])
    return jax.tree.map(lambda a: (1 - part) * a[at - 1] + part * a[at], clouds)


def _leaving(cloud: Cloud, q: Real, p: int) -> Cloud:
    """The cloud, given that the overlap is `q`.

    What the others owe to the scatter of the overlap goes as its square: by as much as
    `q^2` is more than the variance, their shift is more, too.
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


def _merged(near: Cloud, far: Cloud, weights: Float[Array, " lanes"], p: int) -> Cloud:
    """One cloud of the mixture's mean and covariance."""
    _, unravel = ravel_pytree(near.centre)
    clouds = jax.tree.map(lambda a, b: jnp.concatenate([a[None], b]), near, far)
    weights = jnp.concatenate([1 - jnp.sum(weights, keepdims=True), weights])
    states = jax.vmap(lambda centre: ravel_pytree(centre)[0])(clouds.centre)
    mean = weights @ states
    off = states - mean[None, :]
    between = jnp.einsum("l,li,lj->ij", weights, off, off)
    within = jnp.einsum("l,lij->ij", weights, clouds.covariance)
    return Cloud(unravel(mean), within + p * between, weights @ clouds.shift)
