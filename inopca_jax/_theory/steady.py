"""Where the mean field comes to rest, and the transition between its two ends."""

from collections.abc import Callable

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optimistix as optx

from .._check import is_known
from .._config import Config, cast
from .._rule import AbstractRule, Cubic, InoPCA, Krasulina, Oja
from .._sample import Hidden, Sample
from .._schedule import Constant
from .._types import Real, real
from .limit import limit, velocity

# Late enough for every schedule to have arrived, in single precision too; and a
# dimension for schedules that count samples, which by then matters to none of them.
_LATE, _ANY_P = 1e30, 1_000_000


class _Rest(eqx.Module):
    """The closed form of a rule at constant `tau`."""

    critical_snr: Real
    q2_learned: Real
    lam_learned: Real
    lam_unlearned: Real


def steady_state(config: Config) -> tuple[Real, Real]:
    """`(q_s, lam_s)`, the long-time limit of the mean field; `q_s >= 0`.

    A schedule that falls to zero has the limit of ever smaller constants: `q_s = 1`
    for any signal at all. Of a `Switching` the last model counts. Krasulina's norm
    has no limit and is given as infinite. A rule without a closed form has its mean
    field's root, differentiable as the closed forms are.
    """
    config = cast(config, jnp.result_type(float))
    omega = config.model.phases()[-1].omega
    tau = terminal_tau(config.rule, omega)
    closed = _closed_form(config.rule, tau, omega)
    if closed is None:
        q, lam = _root(config.rule, omega, tau)
        _require_found(config.rule, lam)
        return jnp.abs(q), lam
    learns = omega > closed.critical_snr
    q2 = jnp.where(learns, closed.q2_learned, 1)
    q = jnp.where(learns, jnp.sqrt(jnp.where(q2 > 0, q2, 1)), 0)
    return q, jnp.where(learns, closed.lam_learned, closed.lam_unlearned)


def critical_snr(rule: AbstractRule) -> Real:
    """`omega_c`, below which the estimate learns nothing.

    At `q = 0` the norm comes to rest and the overlap grows at the rate
    `a1 omega - a2/2`: for any rule the transition is where this changes sign.
    """
    rule = cast(rule, jnp.result_type(float))
    tau = terminal_tau(rule, real(1))
    closed = _closed_form(rule, tau, jnp.ones_like(tau))
    if closed is not None:
        return closed.critical_snr
    zero = jnp.zeros_like(tau)
    _, lam = _root(rule, zero, tau)
    _require_found(rule, lam)
    fixed = eqx.tree_at(lambda r: r.tau, rule, Constant(tau))
    a = limit(fixed, zero, _ANY_P, zero, zero, lam, ())
    return a.a2 / (2 * a.a1)


def terminal_tau(rule: AbstractRule, omega: Real) -> Real:
    """The learning rate at the end of all learning: the schedule's at a very late
    time, its memory drifted that far, the overlap complete."""
    one, late = jnp.ones_like(omega), jnp.full_like(omega, _LATE)
    sample = Sample(lam=omega + 1, s2=omega + 1, r=one, t=late, p=_ANY_P * one)
    hidden = Hidden(q=one, omega=omega, unit_gain=rule.rates(sample, one).gain)
    memory = rule.tau.init(_ANY_P)
    drift = rule.tau.drift(sample, memory)
    memory = jax.tree.map(lambda m, d: m + late * d, memory, drift)
    return rule.tau.tau(sample, memory, hidden)


def _closed_form(rule: AbstractRule, tau: Real, omega: Real) -> _Rest | None:
    # By exact type: a subclass may do something else.
    form = _CLOSED_FORMS.get(type(rule))
    return None if form is None else form(rule, tau, omega)


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
    endless = jnp.full_like(tau, jnp.inf)
    return _gain_tau(tau, omega, endless, endless)


_CLOSED_FORMS: dict[type, Callable[[AbstractRule, Real, Real], _Rest]] = {
    InoPCA: _ino,
    Cubic: _cubic,
    Oja: _oja,
    Krasulina: _krasulina,
}


@eqx.filter_jit
def _root(rule: AbstractRule, omega: Real, tau: Real) -> tuple[Real, Real]:
    """The root of the mean field at constant `tau` that the flow leads to.

    Following the flow picks the stable root; Newton's method then finishes, and gives
    the derivative of the root by the implicit function theorem.
    """
    # Time in units of 1/tau, and tau held off zero: the limit of small constants.
    eps = float(np.finfo(tau.dtype).eps)
    tau = jnp.maximum(tau, eps**0.5)
    rule = eqx.tree_at(lambda r: r.tau, rule, Constant(tau))

    def field(t, state, args):
        rule, omega, tau = args
        q, log_lam = state
        lam = jnp.exp(log_lam)
        dq, dlam, _ = velocity(rule, omega, _ANY_P, t, q, lam, ())
        # A projected rule's norm is pinned to 1; its equation only has to say so.
        dlog = -log_lam if rule.projects else dlam / (lam * tau)
        return dq / tau, dlog

    args = (rule, omega, tau)
    begin = (jnp.full_like(tau, 0.5), jnp.zeros_like(tau))
    flow = diffrax.diffeqsolve(
        diffrax.ODETerm(field),  # pyright: ignore
        diffrax.Kvaerno5(),
        0.0,
        1e4,
        None,
        jax.lax.stop_gradient(begin),
        args=jax.lax.stop_gradient(args),
        stepsize_controller=diffrax.PIDController(rtol=eps**0.5, atol=eps**0.5),
        max_steps=4096,
        throw=False,
    )
    near = jax.lax.stop_gradient(jax.tree.map(lambda y: y[-1], flow.ys))
    found = optx.root_find(
        lambda state, args: field(jnp.zeros_like(tau), state, args),
        optx.Newton(rtol=16 * eps, atol=16 * eps),
        near,
        args=args,
        throw=False,
        max_steps=64,
    )
    good = (flow.result == diffrax.RESULTS.successful) & (
        found.result == optx.RESULTS.successful
    )
    q, log_lam = found.value
    return jnp.where(good, q, jnp.nan), jnp.where(good, jnp.exp(log_lam), jnp.nan)


def _require_found(rule: AbstractRule, lam: Real) -> None:
    if is_known(lam) and not np.all(np.isfinite(lam)):
        raise RuntimeError(
            f"The mean field of {type(rule).__name__} has no steady state that the flow "
            "from q = 0.5, lam = 1 leads to: its norm may grow without bound. Look at "
            "mean_field over a long time."
        )
