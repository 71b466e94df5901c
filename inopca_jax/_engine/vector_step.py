"""One step of all components and of the vectors that their schedules keep.

The vectors g are columns beside the components V = x/sqrt(p). Their step is linear in the
residual y of the sample, in V and in g, so that the whole step is again

    (V, g)' = (V, g) (I + mix) + y coef^T

with an upper triangular `mix`: see `deflation.py`.
"""

from collections.abc import Sequence

import jax.numpy as jnp

from .._config import Config
from .._observables import VectorProducts
from .._rule import AbstractAlgorithm, AbstractRule
from .._schedule import AbstractVectorSchedule
from .._start import FirstSamples
from .._types import Real, Scalar, ScheduleState
from .deflation import ComponentStep, LinearUpdate, component_step
from .update import Step, observables_of


def vectors_of(rule: AbstractAlgorithm, components: int) -> int:
    """Returns how many vectors the schedules of a rule keep."""
    return components if isinstance(rule.tau, AbstractVectorSchedule) else 0


def require_start_of_vectors(config: Config) -> None:
    """Refuses a start whose samples would move some of the vectors."""
    if (
        isinstance(config.start, FirstSamples)
        and config.components > 1
        and vectors_of(config.rule, 1)
    ):
        raise ValueError(
            f"start = FirstSamples() with components = {config.components} is not allowed "
            f"with the schedule {type(config.rule.tau).__name__}, which keeps vectors of "
            "its own. Use a ColdStart."
        )


def step_with_vector(
    rule: AbstractRule,
    p: Scalar,
    omega: Real,
    index: Step,
    lam2: Real,
    yx: Real,
    yy: Real,
    u: Real,
    gx: Real,
    gy: Real,
    state: ScheduleState,
) -> tuple[ComponentStep, tuple[Real, Real, Real], ScheduleState]:
    """Returns the step of a component, that of its vector, and the schedule's next state.

    The step of the vector is three numbers, the factors of `g`, `x/sqrt(p)` and `y` in
    its change.

    **Arguments:**

    - `gx`, `gy`: the inner products `g.x/sqrt(p)` and `g.y`.

    The others are those of `component_step`.
    """
    assert isinstance(rule.tau, AbstractVectorSchedule)
    inverse = 1 / jnp.sqrt(lam2)
    products = VectorProducts(along=inverse * gx, with_sample=inverse * yx * gy)
    taken, state = component_step(rule, p, omega, index, lam2, yx, yy, u, state, products)
    observables = observables_of(p, index, lam2, yx, yy, products)
    step = rule.tau.vector_step(observables, state)
    share = 1 / observables.p
    inverse = share * inverse
    factors = (-share * step.decay, inverse * step.along, inverse * step.pull * yx)
    return taken, factors, state


def deflated_update_with_vectors(
    rule: AbstractRule,
    p: Scalar,
    omegas: Sequence[Real],
    index: Step,
    gram: Sequence[Sequence[Real]],
    products: Sequence[Real],
    yy: Real,
    us: Sequence[Real],
    states: Sequence[ScheduleState],
) -> tuple[LinearUpdate, tuple[ScheduleState, ...]]:
    """Returns the update of all components, and after them of their vectors, at one sample,
    and the schedules' next states.

    **Arguments:**

    - `gram`: the inner products of the components `V = x/sqrt(p)` and the vectors.
    - `products`: their inner products with the sample.

    The others are those of `deflated_update`.
    """
    components = len(states)
    e, a = jnp.ones_like(yy), []  # the residual is e y + sum_j a_j V_j
    z = list(products)  # its inner products with all columns
    mix, coefs, vector_mix, vector_coefs, new_states = [], [], [], [], []
    zero = jnp.zeros_like(yy)
    for i in range(components):
        own = components + i
        taken, (keep, along, pull), state = step_with_vector(
            rule,
            p,
            omegas[i],
            index,
            gram[i][i],
            z[i],
            yy,
            us[i],
            gram[i][own],
            z[own],
            states[i],
        )
        update, share = taken.update, taken.share
        growth = (update.rescale - 1) + update.rescale * update.keep_minus_1
        coef = update.rescale * update.coef
        mix.append((*(coef * a_j for a_j in a), growth))
        coefs.append(coef * e)
        others = [zero] * (components - 1)
        vector_mix.append((*(pull * a_j for a_j in a), along, *others, keep))
        vector_coefs.append(pull * e)
        new_states.append(state)
        # The residual is deflated by the component as it is after its update.
        for j in (*range(i + 1, components), *range(own + 1, 2 * components)):
            z[j] = z[j] - share * update.apply(gram[i][j], z[j])
        # Not negative: rounding may make it so where nothing is left.
        yy = jnp.maximum(yy - share * taken.product, 0)
        a = [a_j - share * m for a_j, m in zip(a, mix[i], strict=False)]
        a.append(-share * (1 + growth))
        e = e - share * coefs[i]
    both = LinearUpdate((*mix, *vector_mix), (*coefs, *vector_coefs))
    return both, tuple(new_states)
