"""One step of all components, with deflation: `alg:INO-PCA_multiple_pc`.

The rule updates the first component by the sample y. From y its projection on the updated
component is subtracted, and the residual updates the second component, and so on. All that
happens is linear in y and in the components V before the step, with coefficients that
follow from inner products alone: a residual is `e y + V a`, and

    V' = V (I + mix) + y coef^T

with an upper triangular `mix`. Numbers are kept one by one, and loops over components are
unrolled: on a CPU XLA vectorises them over trials, but does not vectorise small matrices.
"""

from collections.abc import Sequence

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array

from .._model import SpikedModel
from .._observables import VectorProducts
from .._rule import AbstractRule
from .._types import Real, Scalar, ScheduleState
from .update import RankOneUpdate, Step, rank_one_update


class LinearUpdate(eqx.Module):
    """The update `V' = V (I + mix) + y coef^T` of the components.

    **Arguments:**

    - `mix`: its columns. Column i of an upper triangle has only the first i + 1 numbers. It
      is the difference from the identity, of order 1/p: see `RankOneUpdate.change`.
    - `coef`: one number for each component.
    """

    mix: tuple[tuple[Real, ...], ...]
    coef: tuple[Real, ...]

    def change(self, values: Sequence[Array], y: Array, first: int = 0) -> list[Array]:
        """Returns by how much a linear function of the components changes.

        **Arguments:**

        - `values`: the function at the components: coordinates, inner products or the
          vectors themselves.
        - `y`: the same function at the sample.
        - `first`: the number of components in front at which the function is zero, which
          `values` leaves out.
        """
        changes = []
        for column, coef in zip(self.mix, self.coef, strict=True):
            change = coef * y
            # The largest coefficient first: a component's own.
            for mix, value in reversed(list(zip(column[first:], values, strict=False))):
                change = change + mix * value
            changes.append(change)
        return changes

    def apply(self, values: Sequence[Array], y: Array, first: int = 0) -> list[Array]:
        """Returns the new values of such a linear function at all components."""
        changes = self.change(values, y, first)
        return [
            *changes[:first],
            *(v + c for v, c in zip(values, changes[first:], strict=True)),
        ]

    def gram(
        self, gram: Sequence[Sequence[Array]], products: Sequence[Array], yy: Array
    ) -> list[list[Array]]:
        """Returns the new inner products of the components with each other.

        **Arguments:**

        - `gram`: those before the step, a symmetric matrix.
        - `products`: the inner products of the components with the sample.
        - `yy`: that of the sample with itself.
        """
        new_products = self.apply(products, yy)
        halves = [self.apply(row, y) for row, y in zip(gram, products, strict=True)]
        columns = zip(*halves, strict=True)
        return [self.apply(c, y) for c, y in zip(columns, new_products, strict=True)]


class ComponentStep(eqx.Module):
    """What a sample, or what is left of one, does to one component, and it to the sample.

    **Arguments:**

    - `update`: the update of the component.
    - `product`: the inner product of the updated component with the sample, `y.x'`.
    - `share`: how many times the updated component is then subtracted from the sample,
      `y.x'/|x'|^2`.
    """

    update: RankOneUpdate
    product: Real
    share: Real


def component_step(
    rule: AbstractRule,
    p: Scalar,
    omega: Real,
    index: Step,
    lam2: Real,
    yx: Real,
    yy: Real,
    u: Real,
    state: ScheduleState,
    vector: VectorProducts | None = None,
) -> tuple[ComponentStep, ScheduleState]:
    """Returns the step of one component, from inner products with what the components
    before it left of the sample, and its schedule's next state.

    It is the step of everything that deflates: the chain, the stream, and `stream_pca`.

    **Arguments:** as of `rank_one_update`.
    """
    update, state = rank_one_update(rule, p, omega, index, lam2, yx, yy, u, state, vector)
    after = update.squared_norm(lam2, yx, yy)
    product = update.apply(yx, yy)
    # From a component that vanished there is nothing to subtract.
    share = product / jnp.where(after > 0, after, 1)
    return ComponentStep(update, product, share), state


class Targets(eqx.Module):
    """The spikes that the components are to find: the i-th component the i-th strongest.

    Only an oracle reads them. A component for which there is no spike has the
    signal-to-noise ratio 0.
    """

    omegas: tuple[Real, ...]
    order: Array | None

    @staticmethod
    def of(model: SpikedModel, components: int) -> "Targets":
        order = model.strongest_first() if model.spikes > 1 else None
        return Targets(tuple(model.target_omegas(components)), order)

    def products(self, along: Sequence[Sequence[Real]]) -> list[Real]:
        """Returns the product of each component with its spike.

        **Arguments:**

        - `along`: for every spike, the products of all components with it.
        """
        products = []
        for i, column in enumerate(zip(*along, strict=True)):
            if i >= len(along):
                products.append(jnp.zeros_like(column[0]))
            elif self.order is None:
                products.append(column[0])
            else:
                products.append(jnp.stack(column)[self.order[i]])
        return products


def deflated_update(
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
    """Returns the update of all components at one sample, and their schedules' next states.

    For one component it is `rank_one_update`.

    **Arguments:**

    - `rule`: the rule, which every component follows.
    - `p`: the dimension.
    - `omegas`: the signal-to-noise ratio of the spike of each component.
    - `index`: the number of samples before this one.
    - `gram`: the inner products `V_i.V_j` of the components `V = x/sqrt(p)`.
    - `products`: `V_i.y`, the inner products with the sample.
    - `yy`: `|y|^2`.
    - `us`: the product of each component with its spike.
    - `states`: the state of the schedule of each component.
    """
    components = len(gram)
    e, a = jnp.ones_like(yy), []  # the residual is e y + sum_j a_j V_j
    z = list(products)  # its inner products with the components
    mix, coefs, new_states = [], [], []
    for i in range(components):
        step, state = component_step(
            rule, p, omegas[i], index, gram[i][i], z[i], yy, us[i], states[i]
        )
        update, share = step.update, step.share
        growth = (update.rescale - 1) + update.rescale * update.keep_minus_1
        pull = update.rescale * update.coef
        mix.append((*(pull * a_j for a_j in a), growth))
        coefs.append(pull * e if i > 0 else pull)
        new_states.append(state)
        if i == components - 1:
            break
        # The residual is deflated by the component as it is after its update.
        for j in range(i + 1, components):
            z[j] = z[j] - share * update.apply(gram[i][j], z[j])
        # Not negative: rounding may make it so where nothing is left.
        yy = jnp.maximum(yy - share * step.product, 0)
        a = [a_j - share * m for a_j, m in zip(a, mix[i], strict=False)]
        a.append(-share * (1 + growth))
        e = e - share * coefs[i]
    return LinearUpdate(tuple(mix), tuple(coefs)), tuple(new_states)
