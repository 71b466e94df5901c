"""The steady densities of a penalised rule: a self-consistent formula.

At rest the density of an entry, given the spike's entry `xi`, is

    P(x | xi) ~ exp{ [along xi x + back x^2/2 - Phi(x)]/diffusivity }

with the coefficients of the Fokker-Planck equation, which depend on its own `q` and `lam`.
At a given `q` one number is left, which the second moment determines: the norm, or, for a
rule that projects, `back`. Then `q` is a root of a function of one variable.
"""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float

from .._check import Checked, is_known, require_instance
from .._config import Config, require_single, rule_of_one
from .._module import PublicModule
from .._numerics import cast, gauss_legendre
from .._order_parameters.limit import limit_coefficients
from .._order_parameters.steady_state import at_terminal_rate, terminal_tau
from .._rule import (
    AbstractPenalty,
    AbstractRule,
    initial_state,
    split_penalty,
)
from .._schedule import AdaGrad, Harmonic, Oracle
from .._types import Real
from .fluxes import Coefficients
from .grid import SpikeNodes, spike_nodes
from .solver import require_standing

# Entries at which the density is looked for, in units of the norm.
_SIZES = np.geomspace(1e-5, 1e5, 700)
_PLACES = np.concatenate([-_SIZES[::-1], [0.0], _SIZES])
# The density is integrated where it is above exp(-_DEPTH) of its maximum.
_DEPTH, _PANELS = 40.0, 24
_HALVINGS = 64
# Overlaps between which a change of sign is looked for; more of them near 0 and 1, where
# branches begin and end.
_OVERLAPS = np.sin(np.linspace(0, np.pi / 2, 130)[1:-1])
# A schedule has reached its limit at this time.
_LATE, _ANY_P = 1e30, 1e12


class SteadyBranches(PublicModule):
    """The steady states of a penalised rule, by increasing overlap.

    A stable branch is where runs end; an unstable one lies between the overlaps from which
    a run goes down and those from which it goes up. That is so for a density of the
    branch's own shape: from another start the border may be somewhat lower or higher, and
    `steady_density` follows the density to find on which side a start is.

    **Arguments:**

    - `q`, `lam`: the overlaps, at least 0, and the norms, of shape (branches,).
    - `stable`: whether runs stay there, of shape (branches,).

    **Example:**

    ```pycon
    >>> import inopca_jax as ino
    >>> rule = ino.Penalised(ino.Oja(tau=0.5), ino.SoftThreshold(beta=0.15))
    >>> model = ino.SpikedModel(omega=0.24, spike=ino.Sparse(rho=0.05))
    >>> branches = ino.steady_branches(ino.Config(rule, model))
    >>> branches.stable.tolist()  # below omega_c = 1/4 the signal can be lost or kept
    [True, False, True]
    ```
    """

    q: Float[Array, " branches"]
    lam: Float[Array, " branches"]
    stable: Bool[Array, " branches"]


class _Problem(eqx.Module):
    """A rule at its terminal rate, its penalty, and the law of the spike's entry."""

    rule: AbstractRule
    penalty: AbstractPenalty
    omega: Real
    nodes: SpikeNodes


class SteadyDensity(NamedTuple):
    """One steady state: its coefficients, and where its density is not negligible."""

    coefficients: Coefficients
    low: Float[Array, " nodes"]
    high: Float[Array, " nodes"]
    log_height: Float[Array, " nodes"]
    log_mass: Float[Array, " nodes"]


class _Moments(NamedTuple):
    x_xi: Real
    x_squared: Real


def steady_branches(config: Checked[Config], *, nodes: Checked[int] = 32) -> SteadyBranches:
    """Returns all steady states of a penalised rule: overlaps, norms and stability.

    They are the roots of the self-consistent formula of the density at rest. Without a
    signal that is strong enough to leave `q = 0`, a penalty may hold a good start:
    then there are three, and the one in the middle is not stable.

    **Arguments:**

    - `config`: with a `Penalised` rule at a constant rate; of a `Switching` model the last
      one counts. The start and the times are ignored.
    - `nodes`: the number of nodes of the quadrature over the spike's entry.

    **Returns:**

    A `SteadyBranches`, of which a state in which the tails run away is no part; there may
    be none.

    **Example:**

    ```pycon
    >>> import inopca_jax as ino
    >>> rule = ino.Penalised(ino.Oja(tau=0.5), ino.SoftThreshold(beta=0.3))
    >>> model = ino.SpikedModel(omega=1.0, spike=ino.Sparse(rho=0.05))
    >>> branches = ino.steady_branches(ino.Config(rule, model))
    >>> round(float(branches.q[-1]), 3), bool(branches.stable[-1])
    (0.86, True)
    ```
    """
    require_instance("config", config, Config)
    require_single(config, "steady_branches", takes_penalty=True)
    with jax.enable_x64(True):
        problem = as_problem(config, nodes)
        q, stable = _roots(problem)
        lam = [float(_norm_and_back(problem, jnp.asarray(root))[0]) for root in q]
    dtype = jnp.result_type(float)
    return SteadyBranches(
        jnp.asarray(q, dtype), jnp.asarray(lam, dtype), jnp.asarray(stable, bool)
    )


def as_problem(config: Config, nodes: int) -> _Problem:
    """Returns the problem of the steady state in double precision, or refuses it."""
    require_standing(config, "the steady state of a Penalised rule")
    rule, penalty = split_penalty(rule_of_one(config))
    if penalty is None:
        raise ValueError(
            f"rule = {type(config.rule).__name__} is not allowed with steady_branches: "
            "its step follows from a gain and a decay. Use steady_state."
        )
    if not is_known(*jax.tree.leaves((config.rule, config.model))):
        raise ValueError(
            "config is traced, but the number of steady states of a Penalised rule is not "
            "known before they are found: call this outside of jit, vmap and grad, or use "
            "overlap_path over a long time."
        )
    if isinstance(rule.tau, (AdaGrad, Harmonic, Oracle)):
        raise ValueError(
            f"tau = {type(rule.tau).__name__} is not allowed for the steady state of a "
            "Penalised rule: its rate falls to zero, and nothing holds against the "
            "penalty. Pass a constant rate."
        )
    model = config.model.phases()[-1]
    rule, penalty, omega = cast((rule, penalty, model.effective_omega), jnp.float64)
    if terminal_tau(rule, omega) is not None:
        rule = at_terminal_rate(rule, omega, None)
    law = cast(spike_nodes(model.spike, nodes), jnp.float64)
    return _Problem(rule, penalty, omega, law)


def _coefficients(problem: _Problem, q: Real, lam: Real) -> Coefficients:
    """Those at rest; `back` is that of a rule that does not project."""
    rule, state = problem.rule, initial_state(problem.rule, _ANY_P)
    late = jnp.full_like(q, _LATE)
    a = limit_coefficients(rule, problem.omega, _ANY_P, late, q, lam, state)
    gain = a.a1 / a.s2
    return Coefficients(gain * problem.omega * q * lam, gain - a.a3, lam**2 * a.a2 / 2)


def _log_density(problem: _Problem, c: Coefficients, xi: Real, x: Array) -> Array:
    exponent = c.along * xi * x + c.back * x**2 / 2 - problem.penalty.primitive(x)
    return exponent / c.diffusivity


def _state(problem: _Problem, c: Coefficients, lam: Real) -> tuple[SteadyDensity, _Moments]:
    """Returns the density with given coefficients, and its moments: infinite if the tails
    are not bounded."""
    places = lam * jnp.asarray(_PLACES)

    def given_xi(xi: Real):
        logs = _log_density(problem, c, xi, places)
        height = jnp.max(logs)
        inside = logs > height - _DEPTH
        first, last = jnp.argmax(inside), places.size - 1 - jnp.argmax(inside[::-1])
        low, high = places[first - 1], places[jnp.minimum(last + 1, places.size - 1)]
        is_bounded = ~inside[0] & ~inside[-1]
        middle = jnp.clip(0.0, low, high)  # phi may jump at 0
        sides = [gauss_legendre(*ends, _PANELS) for ends in ((low, middle), (middle, high))]
        x = jnp.concatenate([side[0] for side in sides])
        weights = jnp.concatenate([side[1] for side in sides])
        pdf = weights * jnp.exp(_log_density(problem, c, xi, x) - height)
        mass = jnp.sum(pdf)
        first, second = jnp.sum(pdf * x) / mass, jnp.sum(pdf * x**2) / mass
        second = jnp.where(is_bounded, second, jnp.inf)
        return first, second, (low, high, height, jnp.log(mass))

    first, second, ends = jax.vmap(given_xi)(problem.nodes.xi)
    weights = problem.nodes.weights
    x_xi = jnp.sum(weights * problem.nodes.xi * first)
    return SteadyDensity(c, *ends), _Moments(x_xi, jnp.sum(weights * second))


@eqx.filter_jit
def _norm_and_back(problem: _Problem, q: Real) -> tuple[Real, Real, Real, SteadyDensity]:
    """Returns the norm, `back`, and by how much the density's overlap exceeds `q`, which is
    NaN if no density has this overlap at rest; and the density."""

    def at(number: Real):
        """For a rule that projects the number is `back`, else the norm's logarithm."""
        lam = jnp.ones_like(q) if problem.rule.projects else jnp.exp(number)
        c = _coefficients(problem, q, lam)
        if problem.rule.projects:
            c = Coefficients(c.along, number, c.diffusivity)
        density, moments = _state(problem, c, lam)
        return lam, c, density, moments

    def too_wide(number: Real) -> Array:
        lam, _, _, moments = at(number)
        return moments.x_squared > lam**2

    def halve(_, ends):
        low, high = ends
        middle = (low + high) / 2
        # The density is the wider the larger `back`, and relative to the norm the narrower
        # the larger the norm.
        is_low = too_wide(middle) != problem.rule.projects
        return jnp.where(is_low, middle, low), jnp.where(is_low, high, middle)

    if problem.rule.projects:
        c = _coefficients(problem, q, jnp.ones_like(q))
        # Unit variance at least, without a penalty, has `back = -diffusivity` at q = 0.
        bound = 1e3 * (jnp.abs(c.along) + c.diffusivity + 1)
        ends = (-bound, bound)
    else:
        ends = (jnp.full_like(q, -7.0), jnp.full_like(q, 7.0))
    low, high = lax.fori_loop(0, _HALVINGS, halve, ends)
    lam, c, density, moments = at(low if problem.rule.projects else high)
    is_consistent = jnp.abs(moments.x_squared / lam**2 - 1) < 1e-6
    excess = jnp.where(is_consistent, moments.x_xi / lam - q, jnp.nan)
    return lam, c.back, excess, density


@eqx.filter_jit
def _excesses(problem: _Problem, qs: Float[Array, " qs"]) -> Float[Array, " qs"]:
    return lax.map(lambda q: _norm_and_back(problem, q)[2], qs, batch_size=16)


def _roots(problem: _Problem) -> tuple[list[float], list[bool]]:
    """Returns the overlaps at which the formula is consistent, and which are stable."""
    excess = np.asarray(_excesses(problem, jnp.asarray(_OVERLAPS)))
    qs, stable = [], []
    # At q = 0 the density is even, and its overlap is 0.
    if np.isfinite(_norm_and_back(problem, jnp.zeros(()))[2]) and np.isfinite(excess[0]):
        qs.append(0.0)
        stable.append(bool(excess[0] < 0))
    for i in range(len(excess) - 1):
        left, right = excess[i], excess[i + 1]
        if not (np.isfinite(left) and np.isfinite(right)) or (left < 0) == (right < 0):
            continue
        low, high = _OVERLAPS[i], _OVERLAPS[i + 1]
        for _ in range(48):
            middle = (low + high) / 2
            value = float(_norm_and_back(problem, jnp.asarray(middle))[2])
            low, high = (middle, high) if (value < 0) == (left < 0) else (low, middle)
        qs.append((low + high) / 2)
        stable.append(bool(left > 0))
    return qs, stable


def density_at(
    problem: _Problem, q: float, x: Float[Array, " cells"] | None = None
) -> tuple[SteadyDensity, Float[Array, "nodes cells"] | None]:
    """Returns the steady state of an overlap, and its density at the points `x`."""
    _, _, _, density = _norm_and_back(problem, jnp.asarray(q))
    if x is None:
        return density, None

    def given_xi(xi: Real, height: Real, log_mass: Real) -> Array:
        logs = _log_density(problem, density.coefficients, xi, x)
        return jnp.exp(logs - height - log_mass)

    pdf = jax.vmap(given_xi)(problem.nodes.xi, density.log_height, density.log_mass)
    return density, pdf
