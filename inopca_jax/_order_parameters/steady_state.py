"""The steady state of the mean field, and the transition to where nothing is learnt."""

from collections.abc import Callable

import diffrax
import equinox as eqx
import jax.numpy as jnp
import numpy as np
import optimistix as optx
from jax import lax
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, ArrayLike, Float

from .._check import Checked, is_known, number, require, require_instance
from .._config import Config, require_plain_schedule, require_single
from .._numerics import cast, root
from .._rule import (
    GHA,
    PAST,
    PETRELS,
    AbstractAlgorithm,
    AbstractRule,
    Cubic,
    InoPCA,
    Krasulina,
    Oja,
    OjaSubspace,
    as_rule,
    initial_state,
    require_rates,
)
from .._schedule import AbstractSchedule, AdaGrad, Constant, Harmonic, Interpolated, Oracle
from .._types import Real, ScheduleState, real
from .limit import limit_coefficients, velocity

# A time at which schedules have reached their limit, in single precision too; and a
# dimension for schedules that count samples, none of which depends on it at that time, and
# for a `Ridge`, of which it leaves the limit.
_LATE, _ANY_P = 1e30, 1e12


class _ClosedForm(eqx.Module):
    """The steady state of a rule at constant `tau`, above and below the transition."""

    critical_snr: Real
    q2_learned: Real
    lam_learned: Real
    lam_unlearned: Real


def steady_state(
    config: Checked[Config],
) -> tuple[Float[Array, "*components"], Float[Array, "*components"]]:
    """Returns `(q_s, lam_s)`, the long-time limit of the mean field.

    For the package's own rules by closed forms, for a user's rule or schedule by the root
    of its mean field; both are differentiable. A schedule that falls to zero has the limit
    of ever smaller constants: `q_s = 1` for any signal. Krasulina's norm has no limit: it
    is infinite at a constant rate, and NaN where the rate falls, as it then depends on the
    path.

    Of several spikes the components find the strongest, in the order of `omega`, and each
    has the overlap with its own, and the norm, that it would have alone: components do not
    feel each other at rest. A component for which there is no spike has the overlap 0. The
    spans of spikes of equal `omega` are found, but not the single spikes. `PAST` and
    `PETRELS` find the span of all components alone: see `steady_distance`.

    A spike that turns at the rate `delta` is followed at a distance. At the steady gain
    `nu`, which is `(tau + delta)/(1 + omega)` for INO-PCA and `tau` for the package's other
    rules, `q_s^2 = (2 omega - nu - 2 delta/nu)/(omega (2 + nu))`. A rate that falls to zero
    loses it, and the oracle's gain does not fall to zero (`best_rate`).

    **Arguments:**

    - `config`: what to run; of a `Switching` the last model counts.

    **Returns:**

    The steady overlap `q_s >= 0` and the steady norm `lam_s`, two scalar arrays; of shape
    (components,) if there are several spikes or components.

    **Example:**

    ```pycon
    >>> import inopca_jax as ino
    >>> config = ino.Config(rule=ino.InoPCA(tau=0.5), model=ino.SpikedModel(omega=1.0))
    >>> q, lam = ino.steady_state(config)
    >>> round(float(q), 3), round(float(lam), 3)
    (0.882, 2.0)
    ```
    """
    require_instance("config", config, Config)
    require_plain_schedule(config.rule, "steady_state")
    if config.components > 1 and type(config.rule) in _SPAN_ALONE:
        raise ValueError(
            f"rule = {type(config.rule).__name__} with components = {config.components} is "
            "not allowed with steady_state: its components settle on any basis of their "
            "span. Use steady_distance."
        )
    return _steady_state(config)


def _steady_state(
    config: Config,
) -> tuple[Float[Array, "*components"], Float[Array, "*components"]]:
    """Returns the steady overlaps and norms; of a rule whose components settle on any basis
    of their span, those on the basis in which they do not mix."""
    require_rates(config.rule, "steady_state")
    config = cast(config, jnp.result_type(float))
    model = config.model.phases()[-1]
    if config.is_single:
        return _steady_state_of_one(config.rule, model.effective_omega, model.turning)
    omegas = model.target_omegas(config.components)
    found = [_steady_state_of_one(config.rule, omega, model.turning) for omega in omegas]
    q, lam = (jnp.stack(values) for values in zip(*found, strict=True))
    return q, lam


def steady_distance(config: Checked[Config]) -> Real:
    """Returns the long-time limit of the Grassmann distance of the components' span from
    the strongest spikes' span.

    It is `sqrt(sum_i arccos(q_i)^2)` over the components that have a spike, with the steady
    overlaps `q_i` of `steady_state`.

    **Arguments:**

    - `config`: what to run; of a `Switching` the last model counts.

    **Returns:**

    A scalar array.

    **Example:**

    ```pycon
    >>> import inopca_jax as ino
    >>> model = ino.SpikedModel(p=1000, omega=[4.0, 2.0, 1.0])
    >>> config = ino.Config(ino.InoPCA(0.5), model, ino.ColdStart(), components=2)
    >>> round(float(ino.steady_distance(config)), 3)
    0.425
    ```
    """
    require_instance("config", config, Config)
    require_plain_schedule(config.rule, "steady_distance")
    q = jnp.reshape(_steady_state(config)[0], -1)
    spikes = config.model.phases()[-1].spikes
    return root(jnp.sum(jnp.arccos(q[:spikes]) ** 2))


def _steady_state_of_one(
    rule: AbstractAlgorithm, omega: Real, turning: Real | None
) -> tuple[Real, Real]:
    closed = _closed_form(rule, omega, turning)
    if closed is None:
        rule = _with_scalar_field(rule)
        q, lam, _ = _root(at_terminal_rate(rule, omega, turning), omega, turning)
        _require_found(rule, lam)
        return jnp.abs(q), lam
    learns = omega > closed.critical_snr
    q2 = jnp.where(learns, closed.q2_learned, 1)
    q = jnp.where(learns, jnp.sqrt(jnp.where(q2 > 0, q2, 1)), 0)
    return q, jnp.where(learns, closed.lam_learned, closed.lam_unlearned)


def critical_snr(
    rule: Checked[AbstractAlgorithm], turning: Checked[ArrayLike | None] = None
) -> Real:
    """Returns `omega_c`, the signal-to-noise ratio below which nothing is learnt.

    At `q = 0` and the norm's steady value there, the overlap grows at the rate
    `a1 omega - a2/2 - delta`. For any rule the transition is where this changes its sign.
    Of samples with missing entries it is the least `alpha omega`.

    **Arguments:**

    - `rule`: the rule, with its schedule.
    - `turning`: the rate `delta` at which the spike turns, one number; `None` for a spike
      that stands still.

    **Returns:**

    A scalar array.

    **Example:**

    ```pycon
    >>> import inopca_jax as ino
    >>> round(float(ino.critical_snr(ino.Oja(tau=0.5))), 3)
    0.25
    ```
    """
    rule = cast(as_rule(rule), jnp.result_type(float))
    require_rates(rule, "critical_snr")
    require_instance("rule.tau", rule.tau, AbstractSchedule)
    require_plain_schedule(rule, "critical_snr")
    delta = None if turning is None else number("turning", turning)
    if delta is not None:
        remedy = "the rate at which a spike turns must be finite and not negative"
        require("turning", delta, lambda x: np.isfinite(x) & (x >= 0), remedy)
        if type(rule.tau) is Oracle:
            return root(2 * delta)
    closed = _closed_form(rule, real(1), delta)
    if closed is not None:
        return closed.critical_snr
    zero = real(0)
    rule = at_terminal_rate(_with_scalar_field(rule), zero, delta)
    _, lam, state = _root(rule, zero, delta)
    _require_found(rule, lam)
    limit = limit_coefficients(rule, zero, _ANY_P, real(_LATE), zero, lam, state)
    if delta is not None:
        return (limit.a2 / 2 + delta) / limit.a1
    return limit.a2 / (2 * limit.a1)


def _with_scalar_field(rule: AbstractAlgorithm) -> AbstractRule:
    """Returns a rule whose mean field of one component is given by its rates."""
    if not isinstance(rule, AbstractRule):
        raise ValueError(
            f"rule = {type(rule).__name__} with the schedule {type(rule.tau).__name__} is "
            "not allowed: there is no closed form of its steady state. Use mean_field over "
            "a long time."
        )
    return rule


def terminal_tau(rule: AbstractAlgorithm, omega: Real) -> Real | None:
    """Returns the limit of the rate at late times, if the spike stands still; `None` for a
    user's own schedule."""
    schedule = rule.tau
    if type(schedule) is Constant:
        return schedule.value.astype(omega.dtype)
    if type(schedule) is Interpolated:
        return schedule.taus[-1].astype(omega.dtype)
    # The oracle's gain is zero once the overlap is complete; the others fall with time.
    falls = type(schedule) in (Harmonic, AdaGrad, Oracle)
    return jnp.zeros_like(omega) if falls else None


def at_terminal_rate(rule: AbstractRule, omega: Real, turning: Real | None) -> AbstractRule:
    """Returns the rule at the constant rate that its schedule converges to.

    A rate of zero is replaced by a small positive one. A user's own schedule stays, and an
    oracle that follows a spike which turns.
    """
    tau = terminal_tau(rule, omega)
    if turning is not None and type(rule.tau) is Oracle:
        return rule
    if tau is None:
        return rule
    tau = jnp.maximum(tau, float(np.finfo(tau.dtype).eps) ** 0.5)
    return eqx.tree_at(lambda r: r.tau, rule, Constant(tau))


def _closed_form(
    rule: AbstractAlgorithm, omega: Real, turning: Real | None
) -> _ClosedForm | None:
    # By exact type: a subclass may do something else.
    form, tau = _CLOSED_FORMS.get(type(rule)), terminal_tau(rule, omega)
    if form is None or tau is None:
        return None
    # Without a signal nothing is learnt, and what would be divided by it is not used.
    omega = jnp.where(omega > 0, omega, 1)
    if turning is not None and type(rule) not in _STANDARD:
        raise ValueError(
            f"rule = {type(rule).__name__} with a spike that turns is not allowed: there "
            "is no closed form of its steady state. Use mean_field over a long time."
        )
    if turning is not None:
        return _turning_form(rule, tau, omega, turning.astype(omega.dtype))
    return form(rule, tau, omega)


def _turning_form(
    rule: AbstractAlgorithm, tau: Real, omega: Real, turning: Real
) -> _ClosedForm:
    """Returns the steady state if the spike turns: at the gain `nu`, `dq/dt = 0` reads
    `nu (omega (1 - q^2) - nu s2/2) = turning`."""
    if type(rule.tau) is Oracle:
        gain, gain_at_zero = best_gain(omega, turning), omega
        critical = root(2 * turning)
    else:
        gain = gain_at_zero = tau
        if type(rule) is InoPCA:
            gain, gain_at_zero = (
                (tau + turning) / (1 + omega),
                2 * tau / (1 + jnp.sqrt(1 + 2 * tau)),
            )
        critical = gain_at_zero / 2 + _share(turning, gain_at_zero)
    lag = _share(turning, gain)
    q2 = (2 * omega - gain - 2 * lag) / (omega * (2 + gain))
    # The growth of the norm over its gain, s2 (1 + nu/2), which the decay balances.
    learned, unlearned = 1 + omega - lag, 1 + gain_at_zero / 2
    if isinstance(rule, Cubic):
        power = 1 / (rule.degree - 2)
        positive = jnp.where(learned > 0, learned, 1)
        learned, unlearned = positive**power, unlearned**power
    if isinstance(rule, Oja):
        learned = unlearned = jnp.ones_like(unlearned)
    if isinstance(rule, Krasulina):
        learned = unlearned = jnp.where(gain_at_zero > 0, jnp.inf, jnp.nan)
    return _ClosedForm(critical, q2, learned, unlearned)


def _share(turning: Real, gain: Real) -> Real:
    """Returns `turning/gain`; without a gain a spike that turns is lost at once."""
    moves = gain > 0
    without_gain = jnp.where(turning > 0, jnp.inf, 0)
    return jnp.where(moves, turning / jnp.where(moves, gain, 1), without_gain)


def best_gain(omega: Real, turning: Real) -> Real:
    """Returns the gain with the largest steady overlap: where the derivative of `q_s^2` is
    zero, `(1 + omega) nu^2 = 2 turning (1 + nu)`."""
    return (turning + _best_tau(omega, turning)) / (1 + omega)


def _best_tau(omega: Real, turning: Real) -> Real:
    """Returns the rate of INO-PCA at which its steady gain is the best one."""
    return root(turning * (turning + 2 * (1 + omega)))


def best_rate(config: Checked[Config]) -> Real:
    """Returns the constant rate that follows a turning spike with the largest overlap.

    With `tau* = sqrt(delta^2 + 2 delta (1 + omega))` it is `tau*` for INO-PCA, and
    `(tau* + delta)/(1 + omega)` for the rules whose gain is their rate. Both have the same
    steady overlap, the one that the oracle's gain settles at; for a small `delta`
    `1 - q_s^2 = tau*/omega`. A spike with `omega <= sqrt(2 delta)` is lost at any rate.

    **Arguments:**

    - `config`: an `InoPCA`, `Oja`, `Cubic` or `Krasulina` at a constant rate, which is not
      used, and a model that turns; of a `Switching` the last one counts.

    **Returns:**

    A scalar array.

    **Example:**

    ```pycon
    >>> import inopca_jax as ino
    >>> config = ino.Config(model=ino.SpikedModel(omega=1.0, turning=0.02))
    >>> tau = ino.best_rate(config)
    >>> best = ino.Config(rule=ino.InoPCA(tau), model=config.model)
    >>> round(float(tau), 3), round(float(ino.steady_state(best)[0]), 3)
    (0.284, 0.858)
    ```
    """
    require_instance("config", config, Config)
    require_single(config, "best_rate")
    config = cast(config, jnp.result_type(float))
    rule, model = config.rule, config.model.phases()[-1]
    if type(rule) not in _STANDARD or type(rule.tau) is not Constant:
        raise ValueError(
            f"rule = {type(rule).__name__} with the schedule {type(rule.tau).__name__} is "
            "not allowed with best_rate: it is for InoPCA, Oja, Cubic and Krasulina at a "
            "constant rate. Use tune(config, objective=SteadyOverlap(...)) or FinalOverlap."
        )
    if model.turning is None:
        raise ValueError(
            "turning = None is not allowed with best_rate: of a spike that stands still, "
            "the smaller the rate, the larger the steady overlap. Pass "
            "SpikedModel(turning=delta), or use tune, which knows the time."
        )
    omega, turning = model.effective_omega, model.turning
    remedy = "pass a positive rate at which the spike turns"
    require("turning", turning, lambda x: x > 0, remedy)
    if is_known(omega, turning) and omega**2 <= 2 * turning:
        raise ValueError(
            f"turning = {float(turning):.6g} with a signal-to-noise ratio of "
            f"{float(omega):.6g} is not allowed with best_rate: at no rate is the spike "
            f"followed. Pass a turning below {float(omega) ** 2 / 2:.6g}."
        )
    return (_best_tau if type(rule) is InoPCA else best_gain)(omega, turning)


def _ino(rule: AbstractAlgorithm, tau: Real, omega: Real) -> _ClosedForm:
    root = jnp.sqrt(1 + 2 * tau)
    a, b = omega**2 + omega, tau / 2
    return _ClosedForm(
        critical_snr=tau / (root + 1),  # (root - 1)/2 without its cancellation
        q2_learned=(a - b) / (a + b * omega),
        lam_learned=omega + 1,
        lam_unlearned=(1 + root) / 2,
    )


def _gain_tau(
    tau: Real, omega: Real, lam_learned: Real, lam_unlearned: Real
) -> _ClosedForm:
    q2 = (2 * omega - tau) / (omega * (2 + tau))
    return _ClosedForm(tau / 2, q2, lam_learned, lam_unlearned)


def _cubic(rule: AbstractAlgorithm, tau: Real, omega: Real) -> _ClosedForm:
    assert isinstance(rule, Cubic)
    power = 1 / (rule.degree - 2)
    return _gain_tau(tau, omega, (omega + 1) ** power, (1 + tau / 2) ** power)


def _oja(rule: AbstractAlgorithm, tau: Real, omega: Real) -> _ClosedForm:
    return _gain_tau(tau, omega, jnp.ones_like(tau), jnp.ones_like(tau))


def _krasulina(rule: AbstractAlgorithm, tau: Real, omega: Real) -> _ClosedForm:
    unbounded_norm = jnp.where(tau > 0, jnp.inf, jnp.nan)
    return _gain_tau(tau, omega, unbounded_norm, unbounded_norm)


def _gha(rule: AbstractAlgorithm, tau: Real, omega: Real) -> _ClosedForm:
    norm = jnp.sqrt(1 + tau / 2)
    return _gain_tau(tau, omega, norm, norm)


def _past(rule: AbstractAlgorithm, tau: Real, omega: Real) -> _ClosedForm:
    """The gain at rest is that of INO-PCA, and the norm `sqrt(1 + gain/2)`."""
    ino = _ino(rule, tau, omega)
    learned, unlearned = tau / ino.lam_learned, tau / ino.lam_unlearned
    norms = jnp.sqrt(1 + learned / 2), jnp.sqrt(1 + unlearned / 2)
    return _ClosedForm(ino.critical_snr, ino.q2_learned, *norms)


def _petrels(rule: AbstractAlgorithm, tau: Real, omega: Real) -> _ClosedForm:
    """The gain nu solves `nu (1 + nu) (omega q^2 + 1) = tau`."""
    s2, norm = 2 * (omega + 1), _krasulina(rule, tau, omega).lam_learned
    b = s2 - tau
    gain = 4 * tau / (b + jnp.sqrt(b**2 + 8 * s2 * tau))
    learned = _gain_tau(gain, omega, norm, norm)
    unlearned_gain = 2 * tau / (1 + jnp.sqrt(1 + 4 * tau))
    return _ClosedForm(unlearned_gain / 2, learned.q2_learned, norm, norm)


_CLOSED_FORMS: dict[type, Callable[[AbstractAlgorithm, Real, Real], _ClosedForm]] = {
    InoPCA: _ino,
    Cubic: _cubic,
    Oja: _oja,
    Krasulina: _krasulina,
    OjaSubspace: _oja,
    GHA: _gha,
    PAST: _past,
    PETRELS: _petrels,
}

# Rules whose steady state is known in closed form if the spikes turn, too.
_STANDARD = (InoPCA, Cubic, Oja, Krasulina)

# Rules whose components settle on any basis of the span of the spikes.
_SPAN_ALONE = (PAST, PETRELS)


@eqx.filter_jit
def _root(
    rule: AbstractRule, omega: Real, turning: Real | None
) -> tuple[Real, Real, ScheduleState]:
    """Returns the root of the mean field, at a late time, to which the flow converges.

    The flow selects the stable root. Newton's method then refines it, and its derivative
    follows by the implicit function theorem.
    """
    eps = float(np.finfo(omega.dtype).eps)
    begin = (jnp.full_like(omega, 0.5), jnp.zeros_like(omega), initial_state(rule, _ANY_P))
    vector, unravel = ravel_pytree(begin)

    def field(_, vector, args):
        rule, omega, turning = args
        q, log_lam, state = unravel(vector)
        lam, late = jnp.exp(log_lam), jnp.full_like(q, _LATE)
        dq, dlam, drift = velocity(rule, omega, _ANY_P, late, q, lam, state, turning)
        # A projected rule's norm is pinned to 1; its equation only has to say so.
        dlog = -log_lam if rule.projects else dlam / lam
        # Time runs in units of the rate, so that slow rules are not followed for long.
        limit = limit_coefficients(rule, omega, _ANY_P, late, q, lam, state)
        return ravel_pytree((dq, dlog, drift))[0] / lax.stop_gradient(limit.a1)

    args = (rule, omega, turning)
    flow = diffrax.diffeqsolve(
        diffrax.ODETerm(field),  # pyright: ignore
        diffrax.Kvaerno5(),
        0.0,
        1e4,
        None,
        lax.stop_gradient(vector),
        args=lax.stop_gradient(args),
        stepsize_controller=diffrax.PIDController(rtol=eps**0.5, atol=eps**0.5),
        max_steps=4096,
        throw=False,
    )
    assert flow.ys is not None
    found = optx.root_find(
        lambda vector, args: field(None, vector, args),
        optx.Newton(rtol=16 * eps, atol=16 * eps),
        lax.stop_gradient(flow.ys[-1]),
        args=args,
        throw=False,
        max_steps=64,
    )
    is_solved = (flow.result == diffrax.RESULTS.successful) & (
        found.result == optx.RESULTS.successful
    )
    q, log_lam, state = unravel(jnp.where(is_solved, found.value, jnp.nan))
    return q, jnp.exp(log_lam), state


def _require_found(rule: AbstractRule, lam: Real) -> None:
    if is_known(lam) and not np.all(np.isfinite(lam)):
        raise RuntimeError(
            f"The mean field of {type(rule).__name__} has no steady state that the flow "
            "from q = 0.5, lam = 1 leads to: its norm may grow without bound. Look at "
            "mean_field over a long time."
        )
