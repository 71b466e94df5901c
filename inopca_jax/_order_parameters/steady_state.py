"""Where the mean field comes to rest, and the transition between its two ends."""

from collections.abc import Callable

import diffrax
import equinox as eqx
import jax.numpy as jnp
import numpy as np
import optimistix as optx
from jax import lax
from jax.flatten_util import ravel_pytree

from .._check import Checked, is_known, require_instance
from .._config import Config, cast
from .._rule import AbstractRule, Cubic, InoPCA, Krasulina, Oja
from .._schedule import AbstractSchedule, AdaGrad, Constant, Harmonic, Interpolated, Oracle
from .._types import Memory, Real, real
from .limit import limit, velocity

# Late enough for a schedule to have arrived, in single precision too; and a dimension
# for schedules that count samples, which by then matters to none of them.
_LATE, _ANY_P = 1e30, 1e6


class _Rest(eqx.Module):
    """The closed form of a rule at constant `tau`."""

    critical_snr: Real
    q2_learned: Real
    lam_learned: Real
    lam_unlearned: Real


def steady_state(config: Checked[Config]) -> tuple[Real, Real]:
    """`(q_s, lam_s)`, the long-time limit of the mean field; `q_s >= 0`.

    A schedule that falls to zero has the limit of ever smaller constants: `q_s = 1`
    for any signal at all. Of a `Switching` the last model counts. Krasulina's norm has
    no limit: it is infinite at a constant rate, and not a number where the rate falls,
    as it then depends on the path. A rule or a schedule of the user's own has its mean
    field's root, differentiable as the closed forms are.
    """
    require_instance("config", config, Config)
    config = cast(config, jnp.result_type(float))
    omega = config.model.phases()[-1].omega
    closed = _closed_form(config.rule, omega)
    if closed is None:
        q, lam = _root(_settled(config.rule, omega), omega)
        _require_found(config.rule, lam)
        return jnp.abs(q), lam
    learns = omega > closed.critical_snr
    q2 = jnp.where(learns, closed.q2_learned, 1)
    q = jnp.where(learns, jnp.sqrt(jnp.where(q2 > 0, q2, 1)), 0)
    return q, jnp.where(learns, closed.lam_learned, closed.lam_unlearned)


def critical_snr(rule: Checked[AbstractRule]) -> Real:
    """`omega_c`, below which the estimate learns nothing.

    At `q = 0` the norm comes to rest and the overlap grows at the rate
    `a1 omega - a2/2`: for any rule the transition is where this changes sign.
    """
    require_instance("rule", rule, AbstractRule)
    rule = cast(rule, jnp.result_type(float))
    require_instance("rule.tau", rule.tau, AbstractSchedule)
    closed = _closed_form(rule, real(1))
    if closed is not None:
        return closed.critical_snr
    zero = real(0)
    rule = _settled(rule, zero)
    _, lam, memory = _rest(rule, zero)
    _require_found(rule, lam)
    a = limit(rule, zero, _ANY_P, real(_LATE), zero, lam, memory)
    return a.a2 / (2 * a.a1)


def _terminal_tau(rule: AbstractRule, omega: Real) -> Real | None:
    """What the schedule's rate comes to, if the schedule is one of ours."""
    schedule = rule.tau
    if type(schedule) is Constant:
        return schedule.value.astype(omega.dtype)
    if type(schedule) is Interpolated:
        return schedule.taus[-1].astype(omega.dtype)
    # The oracle's gain is zero once the overlap is complete; the others fall with time.
    falls = type(schedule) in (Harmonic, AdaGrad, Oracle)
    return jnp.zeros_like(omega) if falls else None


def _settled(rule: AbstractRule, omega: Real) -> AbstractRule:
    """The rule at the constant rate that its schedule comes to. A zero is held off, for
    the limit of small constants; a schedule of the user's own is left as it is."""
    tau = _terminal_tau(rule, omega)
    if tau is None:
        return rule
    tau = jnp.maximum(tau, float(np.finfo(tau.dtype).eps) ** 0.5)
    return eqx.tree_at(lambda r: r.tau, rule, Constant(tau))


def _closed_form(rule: AbstractRule, omega: Real) -> _Rest | None:
    # By exact type: a subclass may do something else.
    form, tau = _CLOSED_FORMS.get(type(rule)), _terminal_tau(rule, omega)
    if form is None or tau is None:
        return None
    # Without a signal nothing is learnt, and what would be divided by it is not used.
    return form(rule, tau, jnp.where(omega > 0, omega, 1))


def _ino(rule: AbstractRule, tau: Real, omega: Real) -> _Rest:
    root = jnp.sqrt(1 + 2 * tau)
    a, b = omega**2 + omega, tau / 2
    return _Rest(
        critical_snr=tau / (root + 1),  # (root - 1)/2 without its cancellation
        q2_learned=(a - b) / (a + b * omega),
        lam_learned=omega + 1,
        lam_unlearned=(1 + root) / 2,
    )


def _gain_tau(tau: Real, omega: Real, lam_learned: Real, lam_unlearned: Real) -> _Rest:
    q2 = (2 * omega - tau) / (omega * (2 + tau))
    return _Rest(tau / 2, q2, lam_learned, lam_unlearned)


def _cubic(rule: AbstractRule, tau: Real, omega: Real) -> _Rest:
    assert isinstance(rule, Cubic)
    power = 1 / (rule.degree - 2)
    return _gain_tau(tau, omega, (omega + 1) ** power, (1 + tau / 2) ** power)


def _oja(rule: AbstractRule, tau: Real, omega: Real) -> _Rest:
    return _gain_tau(tau, omega, jnp.ones_like(tau), jnp.ones_like(tau))


def _krasulina(rule: AbstractRule, tau: Real, omega: Real) -> _Rest:
    endless = jnp.where(tau > 0, jnp.inf, jnp.nan)
    return _gain_tau(tau, omega, endless, endless)


_CLOSED_FORMS: dict[type, Callable[[AbstractRule, Real, Real], _Rest]] = {
    InoPCA: _ino,
    Cubic: _cubic,
    Oja: _oja,
    Krasulina: _krasulina,
}


def _root(rule: AbstractRule, omega: Real) -> tuple[Real, Real]:
    q, lam, _ = _rest(rule, omega)
    return q, lam


@eqx.filter_jit
def _rest(rule: AbstractRule, omega: Real) -> tuple[Real, Real, Memory]:
    """The root of the mean field, at a late time, that the flow leads to.

    Following the flow picks the stable root; Newton's method then finishes, and gives
    the derivative of the root by the implicit function theorem.
    """
    eps = float(np.finfo(omega.dtype).eps)
    begin = (jnp.full_like(omega, 0.5), jnp.zeros_like(omega), rule.tau.init(_ANY_P))
    vector, unravel = ravel_pytree(begin)

    def field(_, vector, args):
        rule, omega = args
        q, log_lam, memory = unravel(vector)
        lam, late = jnp.exp(log_lam), jnp.full_like(q, _LATE)
        dq, dlam, drift = velocity(rule, omega, _ANY_P, late, q, lam, memory)
        # A projected rule's norm is pinned to 1; its equation only has to say so.
        dlog = -log_lam if rule.projects else dlam / lam
        # Time runs in units of the rate, so that slow rules are not followed for long.
        a = limit(rule, omega, _ANY_P, late, q, lam, memory)
        return ravel_pytree((dq, dlog, drift))[0] / lax.stop_gradient(a.a1)

    args = (rule, omega)
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
    good = (flow.result == diffrax.RESULTS.successful) & (
        found.result == optx.RESULTS.successful
    )
    q, log_lam, memory = unravel(jnp.where(good, found.value, jnp.nan))
    return q, jnp.exp(log_lam), memory


def _require_found(rule: AbstractRule, lam: Real) -> None:
    if is_known(lam) and not np.all(np.isfinite(lam)):
        raise RuntimeError(
            f"The mean field of {type(rule).__name__} has no steady state that the flow "
            "from q = 0.5, lam = 1 leads to: its norm may grow without bound. Look at "
            "mean_field over a long time."
        )
