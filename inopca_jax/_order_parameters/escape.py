"""The escape from q = 0, where the mean field stays and runs leave at random times."""

from typing import Any

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Bool, Float

from .._check import Checked, is_known, number, require, require_instance
from .._config import Config, require_single, rule_of_one
from .._model import SpikedModel
from .._numerics import cast
from .._timeline import Segment, segments, select, through_stops, without_spike
from .._trajectory import Prediction
from .._types import Real, Times
from .._xla import quick_jit
from .fluctuations import Fluctuations, as_prediction
from .increments import OrderParameters
from .initial import GaussianApproximation
from .integrate import in_double, make_integrator, require_steps
from .law import EscapeTime, OverlapLaw, probability_beyond
from .mean_field import require_solved, warn_if_forgotten

# Below the edge the overlap obeys a linear equation, up to terms of relative order q^2;
# above it noise no longer brings it back. At large p there is room for both.
_EDGE, _LEAST_STDS, _LARGEST_EDGE = 0.1, 4.5, 0.4
# The runs that leave on one side are divided into paths by the order in which they leave:
# finely at both ends, where few leave over a long time.
_PATHS, _TIMES = 40, 121
_UNIT_GRID = np.linspace(0, 1, 193)
_SHARES = 1 - (1 - np.linspace(0, 1, _PATHS + 1) ** 1.5) ** 2.5
_TOLERANCES = (1e-5, 1e-7)


class UndefinedLawError(ValueError):
    """The law of the overlap is not defined at this p."""


def overlap_law(config: Checked[Config], *, max_steps: Checked[int] = 4096) -> OverlapLaw:
    """Returns the law of `q` over runs at this `p`, where `fluctuations` are not linear.

    That is from a cold start, or after a switch to a spike whose overlap with the estimate
    is zero in the limit. As long as `|q|` is below an edge (0.1, or 4.5 standard deviations
    of the start if that is more), `q` is normal: the amplified overlap of the start, plus
    the noise since then. A run that leaves through the edge then follows the mean field
    from the time at which it left, with linear fluctuations. From a start beyond the edge
    all fluctuations are linear. After a switch `x` and `-x` are not distinguished, because
    they have the same `|q|`. If runs were still leaving at the switch, and the new spike
    overlaps with the old one, the law after it is a single normal law and its spread is too
    small.

    Against the chain, at p = 10,000 from a cold start, omega = 1, the mean of `|q|` is
    within the error of 4,000 trials, and so is its standard deviation, up to 3 %, until
    fewer than 1 % of the runs have not left. At p = 2,000 the mean of `|q|` is within 2 %
    (CCIPCA, whose first rates are the largest, within 6 %).

    **Arguments:**

    - `config`: what to run.
    - `max_steps`: the most steps of the integrator between two times.

    **Returns:**

    An `OverlapLaw`.

    **Example:**

    ```pycon
    >>> import inopca_jax as ino
    >>> config = ino.Config(start=ino.ColdStart(), ts=[0.0, 10.0, 50.0])
    >>> law = ino.overlap_law(config)
    >>> [round(float(q), 2) for q in law.abs().q]
    [0.01, 0.25, 0.88]
    ```
    """
    require_instance("config", config, Config)
    require_single(config, "overlap_law")
    max_steps = require_steps(max_steps)
    warn_if_forgotten(config)
    law = in_double(_law, config, config.ts, max_steps)
    _require_solved(law, config.model.p, max_steps)
    return eqx.tree_at(lambda law: law.ts, law, config.ts)


def escape_time(
    config: Checked[Config], level: Checked[float], *, max_steps: Checked[int] = 4096
) -> EscapeTime:
    """Returns the law of the time at which `|q|` first passes a level, at this `p`.

    Computed from `overlap_law`: a run has passed the level at a time if its `|q|` is above
    it then. This holds for a level that the noise does not reach at the start, and that is
    not so close to the steady overlap that noise alone carries runs past it. At p = 10,000
    the quantiles 10, 50 and 90 % are within 2 % of the chain's, or its error; at p = 2,000
    within 2 % (CCIPCA 5 %).

    **Arguments:**

    - `config`: what to run, up to the last of its times; with one spike.
    - `level`: between 0 and 1.
    - `max_steps`: the most steps of the integrator between two times.

    **Returns:**

    An `EscapeTime`.

    **Example:**

    ```pycon
    >>> import inopca_jax as ino
    >>> config = ino.Config(start=ino.ColdStart(), ts=[0.0, 10.0, 50.0])
    >>> escape = ino.escape_time(config, level=0.5)
    >>> round(float(escape.quantile(0.5)), 1)
    13.0
    ```
    """
    require_instance("config", config, Config)
    require_single(config, "escape_time")
    max_steps = require_steps(max_steps)
    if len(config.model.phases()) > 1:
        raise ValueError(
            "model = Switching is not allowed with escape_time, which is for a spike that "
            "does not change: pass a SpikedModel, or read "
            "overlap_law(config).exceeds(level) at the times after a switch."
        )
    number("level", level)
    require("level", level, lambda x: (x > 0) & (x < 1), "pass 0 < level < 1")
    require("ts", config.ts, lambda x: x[-1] > 0, "an escape takes time; pass a later one")
    warn_if_forgotten(config)
    # A coarse pass locates the escapes, a second one resolves them.
    ts = config.ts[-1] * np.linspace(0, 1, _TIMES)
    _, ts = _cdf_and_times(in_double(_law, config, ts, max_steps), level)
    law = in_double(_law, config, np.asarray(ts) if is_known(ts) else ts, max_steps)
    _require_solved(law, config.model.p, max_steps)
    _require_beyond_noise(law, level, config.model.p)
    return EscapeTime(ts, _cdf_and_times(law, level)[0])


@quick_jit
def _cdf_and_times(law: OverlapLaw, level: Any) -> tuple[Array, Array]:
    """Returns the probability of having escaped, and times from 0 to the last one, most of
    them between the first and the last escapes."""
    ts, cdf = jnp.asarray(law.ts), jnp.maximum.accumulate(law.exceeds(level))
    first, last = (jnp.searchsorted(cdf, part * cdf[-1]) for part in (1e-4, 1 - 1e-4))
    first, last = ts[jnp.maximum(first - 1, 0)], ts[last]
    return cdf, jnp.concatenate([ts[:1], jnp.linspace(first, last, _TIMES - 2), ts[-1:]])


def _require_beyond_noise(law: OverlapLaw, level: Any, p: Any) -> None:
    if not is_known(law.edge):
        return
    q0, reach = abs(float(law.near.q[0])), _LEAST_STDS * float(law.near.q_std[0])
    require(
        "level",
        level,
        lambda x: (q0 >= x + reach) | (x >= q0 + reach),
        f"at p = {int(p)} the noise reaches it from the start, q0 = {q0:.3g}; pass a level "
        f"of at least {q0 + reach:.2g}"
        if q0 + reach < 1
        else f"at p = {int(p)} the noise reaches everywhere; simulate instead",
    )


def _require_solved(law: OverlapLaw, p: Any, max_steps: int) -> None:
    require_solved(law.near, max_steps, "a larger max_steps")
    if is_known(law.paths.lam) and not np.all(np.isfinite(law.paths.lam)):
        raise UndefinedLawError(
            f"p = {int(p)} is not allowed: the scatter of the norm of runs that leave "
            "q = 0 is as large as the norm itself; pass a larger p, or simulate."
        )


def _law(config: Config, ts: Times, max_steps: int) -> OverlapLaw:
    config = cast(config, jnp.result_type(float))
    integrator = make_integrator(
        diffrax.Tsit5(), diffrax.ForwardMode(), *_TOLERANCES, max_steps
    )
    process = Fluctuations(rule_of_one(config), integrator, is_fine=False)
    models, law = config.model.phases(), None
    start = _init(process, models[0], config.start)
    for i, segment in enumerate(segments(config, ts)):
        segment = cast(segment, start.shift.dtype)
        if i > 0:
            phase = jnp.int32(i)
            start = _switch(process, models[i - 1], models[i], start, segment.begin, phase)
        model, unit = without_spike(models[i]), jnp.asarray(_UNIT_GRID, segment.end.dtype)
        # A first pass locates the times at which runs leave; the second has a fine grid
        # there.
        grid = _linear(process, model, start, segment, unit).finer_grid
        linear = _linear(process, model, start, segment, grid)
        in_segment, at_stops, far = _paths(process, model, linear)
        if i + 1 < len(models):
            start = _merge(at_stops, linear.laws_at_stops, far, model.p)
        if law is not None:
            rows = jax.vmap(select, in_axes=(0, -1, -1), out_axes=-1)
            in_segment = rows(jnp.asarray(segment.observed), in_segment, law)
        law = in_segment
    assert law is not None
    return eqx.tree_at(lambda law: law.ts, law, jnp.asarray(ts, start.shift.dtype))


@quick_jit
def _init(process: Fluctuations, *args: Any) -> GaussianApproximation:
    return process.init(*args)


@quick_jit
def _switch(process: Fluctuations, *args: Any) -> GaussianApproximation:
    return process.switch(*args)


class _Linear(eqx.Module):
    """The linear theory of a segment, at the stops and on a grid.

    The stops are the times of observation and the segment's end. `edge` is the `|q|` beyond
    which a run counts as escaped, and `starts_inside_edge` says whether the segment begins
    below it. `finer_grid`, as parts of the segment, has its points where runs leave.
    """

    laws_at_stops: GaussianApproximation
    laws_on_grid: GaussianApproximation
    at_stops: Prediction
    on_grid: Prediction
    edge: Real
    starts_inside_edge: Bool[Array, ""]
    finer_grid: Float[Array, " grid"]


def _laws_at(
    process: Fluctuations,
    model: SpikedModel,
    law: GaussianApproximation,
    begin: Real,
    stops: Array,
) -> GaussianApproximation:
    """Returns the normal laws at the stops, given that at `begin`."""
    is_observation = jnp.ones(stops.shape, bool)
    return through_stops(process, model, law, begin, stops, is_observation)[1]


@quick_jit
def _linear(
    process: Fluctuations,
    model: SpikedModel,
    start: GaussianApproximation,
    segment: Segment,
    unit_grid: Float[Array, " grid"],
) -> _Linear:
    begin, end = segment.begin, segment.end
    stops = jnp.append(segment.ts, end)
    times = jnp.append(stops, begin + (end - begin) * unit_grid)
    order = jnp.argsort(times)
    laws = _laws_at(process, model, start, begin, times[order])
    laws = jax.tree.map(lambda a: jnp.zeros_like(a).at[order].set(a), laws)
    both = (laws, as_prediction(times, laws, model.p))
    laws_at_stops, at_stops = jax.tree.map(lambda a: a[: stops.size], both)
    laws_on_grid, on_grid = jax.tree.map(lambda a: a[stops.size :], both)
    edge = jnp.clip(_LEAST_STDS * on_grid.q_std[0], _EDGE, _LARGEST_EDGE)
    # On the finer grid the spread grows by the same factor from each time to the next while
    # runs leave across the edge. In a long run that may be a short time.
    level = jnp.log(jnp.clip(on_grid.q_std, edge / 6, edge * 1e6))
    level = jnp.maximum.accumulate(level) + 0.01 * jnp.asarray(_UNIT_GRID, edge.dtype)
    even = jnp.linspace(level[0], level[-1], level.size)
    return _Linear(
        laws_at_stops,
        laws_on_grid,
        at_stops,
        on_grid,
        edge,
        starts_inside_edge=jnp.abs(start.mean.q()) < edge,
        finer_grid=jnp.interp(even, level, unit_grid),
    )


@quick_jit
def _paths(
    process: Fluctuations, model: SpikedModel, linear: _Linear
) -> tuple[OverlapLaw, OverlapLaw, GaussianApproximation]:
    """Returns the law at the times of a segment; the law at all stops; and the normal laws
    of the runs that leave at all stops."""
    near, before, edge = linear.at_stops, linear.on_grid, linear.edge
    grid, stops = jnp.asarray(before.ts), jnp.asarray(near.ts)
    shares = jnp.asarray(_SHARES, stops.dtype)
    both = jax.tree.map(lambda *a: jnp.concatenate(a), near, before)

    def leaving_times(sign: Real) -> tuple[Array, Array]:
        beyond = probability_beyond(both, sign, edge)
        beyond = jnp.where(linear.starts_inside_edge, beyond, 0)
        escaped_fraction = jnp.maximum.accumulate(beyond[stops.size :])
        at_stops = jnp.maximum.accumulate(beyond[: stops.size])
        cuts = escaped_fraction[-1] * shares
        times = jnp.interp((cuts[1:] + cuts[:-1]) / 2, escaped_fraction, grid)
        low, high = cuts[:-1, None], cuts[1:, None]
        return times, jnp.clip(at_stops[None, :], low, high) - low

    def path(sign: Real, time: Real) -> GaussianApproximation:
        law = _interpolate(linear.laws_on_grid, grid, time)
        # If no run leaves, the paths have weight zero, and must still be numbers.
        begin = _condition(law, sign * edge)
        # With a negative norm the solver would take all of its steps, only to fail.
        failed = linear.starts_inside_edge & ~(begin.mean.n > 0)
        begin = select(linear.starts_inside_edge & ~failed, begin, law)
        laws = _laws_at(process, model, begin, time, jnp.maximum(stops, time))
        return jax.tree.map(lambda a: jnp.where(failed, jnp.nan, a), laws)

    signs = jnp.array([1, -1], stops.dtype)
    times, weights = jax.vmap(leaving_times)(signs)
    far = jax.vmap(path)(jnp.repeat(signs, _PATHS), times.reshape(-1))
    paths = jax.vmap(lambda laws: as_prediction(stops, laws, model.p))(far)
    edges = jnp.where(linear.starts_inside_edge, edge, jnp.inf)
    edges = jnp.broadcast_to(edges, stops.shape)
    law = OverlapLaw(stops, near, edges, paths, weights.reshape(-1, stops.size))
    return jax.tree.map(lambda a: a[..., :-1], law), law, far


def _interpolate(
    laws: GaussianApproximation, grid: Array, t: Real
) -> GaussianApproximation:
    """Returns the law at a time between those of the grid."""
    at = jnp.clip(jnp.searchsorted(grid, t), 1, grid.size - 1)
    width = grid[at] - grid[at - 1]
    part = jnp.where(width > 0, (t - grid[at - 1]) / jnp.where(width > 0, width, 1), 0)
    return jax.tree.map(lambda a: (1 - part) * a[at - 1] + part * a[at], laws)


def _condition(law: GaussianApproximation, q: Real) -> GaussianApproximation:
    """Returns the law, given that the overlap is `q`.

    The shift of the other order parameters is mostly due to the scatter of the overlap, and
    proportional to its square: it is scaled by `q^2` over the variance. (When runs
    leave, the rest of the shift is of order 1/p.)
    """
    mean, unravel = ravel_pytree(law.mean)
    overlap, slope = jax.value_and_grad(lambda mean: unravel(mean).q())(mean)
    covariance_with_q = law.covariance @ slope
    variance = slope @ covariance_with_q
    mean = mean + covariance_with_q / variance * (q - overlap)
    shifted_mean = mean + law.shift * q**2 / variance
    conditional_mean: OrderParameters = unravel(shifted_mean)
    m = q * conditional_mean.lam()
    conditional_mean = eqx.tree_at(lambda params: params.m, conditional_mean, m)
    covariance = law.covariance - jnp.outer(covariance_with_q, covariance_with_q) / variance
    return GaussianApproximation(conditional_mean, covariance, jnp.zeros_like(law.shift))


@quick_jit
def _merge(
    law: OverlapLaw, near: GaussianApproximation, far: GaussianApproximation, p: Any
) -> GaussianApproximation:
    """Returns one normal law with the mixture's mean and covariance at the last time.

    A run and its mirror image, `x` and `-x`, have the same `|q|` at all times: runs that
    left on the other side are counted with their mirror images, or there would be two
    peaks.
    """
    near = jax.tree.map(lambda a: a[-1], near)
    far = jax.tree.map(lambda a: a[:, -1], far)
    mean, unravel = ravel_pytree(near.mean)
    # For runs within the edge the scatter along q, and what follows from it, is truncated.
    slope = jax.grad(lambda mean: unravel(mean).q())(mean)
    covariance_with_q = near.covariance @ slope
    truncation = law.truncation()[-1]
    cut = (1 - truncation) / jnp.maximum(
        slope @ covariance_with_q, jnp.finfo(mean.dtype).tiny
    )
    near_covariance = near.covariance - cut * jnp.outer(
        covariance_with_q, covariance_with_q
    )
    # The first two, m and the mean entry, change their sign with x; others do not.
    is_odd = jnp.arange(mean.size) < 2
    sign = jnp.where(is_odd[None, :] & (far.mean.m < 0)[:, None], -1, 1)
    sign = sign.astype(mean.dtype)
    means = sign * jax.vmap(lambda mean: ravel_pytree(mean)[0])(far.mean)
    covariances = sign[:, :, None] * far.covariance * sign[:, None, :]

    weights = law.weights[:, -1]
    weights = jnp.append(weights, 1 - jnp.sum(weights))
    with_near = lambda paths, near: jnp.concatenate([paths, near[None]])
    means = with_near(means, mean)
    total = weights @ means
    off = means - total[None, :]
    between = jnp.einsum("l,li,lj->ij", weights, off, off)
    within = jnp.tensordot(weights, with_near(covariances, near_covariance), 1)
    shift = weights @ with_near(sign * far.shift, truncation * near.shift)
    return GaussianApproximation(unravel(total), within + p * between, shift)
