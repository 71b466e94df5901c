"""Penalties on the entries of the estimate."""

import abc

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._check import as_number, is_known, refuse, require
from .._module import PublicModule
from .._types import Real

# Where a penalty is tested: |x| of typical entries, of small and of large ones.
_POINTS = np.array([1e-3, 0.1, 0.37, 1.0, 2.3, 11.0])


class AbstractPenalty(PublicModule):
    """A penalty `Phi(x)` on every entry `x` of the estimate, for `Penalised`.

    A subclass implements `primitive`, which is `Phi`, an even function. The step follows
    its derivative `phi = Phi'`, which `phi` returns. `phi` may jump at 0, as that of `|x|`
    does. Elsewhere it should be continuous: the solver of the density then converges at
    second order.

    **Example:**

    ```pycon
    >>> import inopca_jax as ino
    >>> import jax.numpy as jnp
    >>> class Smoothed(ino.AbstractPenalty):
    ...     beta: float = 0.3
    ...     def primitive(self, x):
    ...         return self.beta * jnp.sqrt(x**2 + 0.01)
    ...
    >>> rule = ino.Penalised(ino.Oja(0.5), Smoothed())
    >>> round(float(rule.penalty.phi(jnp.array(5.0))), 3)
    0.3
    ```
    """

    @abc.abstractmethod
    def primitive(self, x: Float[Array, "*n"]) -> Float[Array, "*n"]:
        """Returns `Phi(x)`, entry by entry.

        **Arguments:**

        - `x`: entries, of any shape.
        """

    def phi(self, x: Float[Array, "*n"]) -> Float[Array, "*n"]:
        """Returns the derivative `phi(x)` of `primitive`, entry by entry; 0 at a kink at 0.

        **Arguments:**

        - `x`: entries, of any shape.
        """
        slope = jax.grad(lambda x: jnp.sum(self.primitive(x)))(x)
        return jnp.where(x == 0, 0, slope)  # an odd function


class SoftThreshold(AbstractPenalty):
    """The penalty `beta |x|`, whose step moves every entry by `beta/p` towards 0.

    `phi(x) = beta sign(x)`, as in sparse PCA by soft thresholding (Wang and Lu, 2016).

    **Arguments:**

    - `beta`: the threshold, at least 0.

    **Example:**

    ```pycon
    >>> import inopca_jax as ino
    >>> import jax.numpy as jnp
    >>> ino.SoftThreshold(beta=0.5).phi(jnp.array([-2.0, 0.0, 0.1])).tolist()
    [-0.5, 0.0, 0.5]
    ```
    """

    beta: Real = eqx.field(converter=as_number("beta"))

    def __check_init__(self):
        _require_strength(self.beta)

    def primitive(self, x: Float[Array, "*n"]) -> Float[Array, "*n"]:
        return self.beta * jnp.abs(x)


class Ridge(AbstractPenalty):
    """The penalty `beta x^2/2`, a decay: all entries shrink by the same factor.

    `phi(x) = beta x` is linear, so that a rule with this penalty is a rule like any other,
    and all theory holds for it.

    **Arguments:**

    - `beta`: the additional decay, at least 0.

    **Example:**

    ```pycon
    >>> import inopca_jax as ino
    >>> rule = ino.Penalised(ino.InoPCA(0.5), ino.Ridge(beta=0.1))
    >>> config = ino.Config(rule, ino.SpikedModel(p=10**12, omega=1.0))
    >>> round(float(ino.steady_state(config)[1]), 3)  # 2 tau/(tau + beta)
    1.667
    ```
    """

    beta: Real = eqx.field(converter=as_number("beta"))

    def __check_init__(self):
        _require_strength(self.beta)

    def primitive(self, x: Float[Array, "*n"]) -> Float[Array, "*n"]:
        return self.beta * x**2 / 2


def _require_strength(beta: Real) -> None:
    remedy = "pass a finite number, at least 0"
    require("beta", beta, lambda b: np.isfinite(b) & (b >= 0), remedy)


def require_even(penalty: AbstractPenalty) -> None:
    """Raises `ValueError` unless `Phi` is even and `phi` finite, or the penalty is traced.

    The spike is determined up to its sign alone: so must be the estimate.
    """
    if not is_known(*jax.tree.leaves(penalty)):
        return
    with jax.ensure_compile_time_eval():
        x = jnp.asarray(_POINTS)
        right, left = penalty.primitive(x), penalty.primitive(-x)
        # At 0 too, where `phi` is 0 whatever the slope.
        places = jnp.concatenate([-x, jnp.zeros(1), x])
        slopes = jax.grad(lambda x: jnp.sum(penalty.primitive(x)))(places)
    if right.shape != x.shape or not np.allclose(right, left, rtol=1e-5, atol=1e-7):
        refuse(
            "penalty",
            penalty,
            "primitive has to be an even function of every entry, so that phi is odd",
        )
    if not np.all(np.isfinite(slopes)):
        refuse("penalty", penalty, "phi, the derivative of primitive, has to be finite")
