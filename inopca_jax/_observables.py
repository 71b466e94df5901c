"""The numbers that a rule may read, and those that only an oracle may."""

from ._module import PublicModule
from ._types import Real


class VectorProducts(PublicModule):
    """What an `AbstractVectorSchedule` may read of its vector `g` at one step.

    Both are the same for `x` and for `-x`, if `g` follows the sign of `x`.

    **Arguments:**

    - `along`: the component of the vector along the estimate, `g.x/|x|`.
    - `with_sample`: the product of the sample's components along the estimate and along the
      vector, `(y.x) (y.g)/|x|`.

    **Example:**

    ```pycon
    >>> import inopca_jax as ino
    >>> import jax.numpy as jnp
    >>> along, with_sample = jnp.array([0.1, 0.3])
    >>> float(ino.VectorProducts(along=along, with_sample=with_sample).along) > 0
    True
    ```
    """

    along: Real
    with_sample: Real


class Observables(PublicModule):
    """The scalars of one step that a rule and its schedule may read.

    An algorithm that computes with these alone can be run on data, and its overlap and norm
    form a Markov chain (see `Chain`).

    **Arguments:**

    - `lam`: the norm of the estimate, `|x|/sqrt(p)`.
    - `s2`: the squared component of the sample along the estimate, `(y.x)^2/|x|^2`.
    - `r`: the sample's squared length, `|y|^2/p`.
    - `t`: the macroscopic time at the end of the step, `(k + 1)/p` at step `k`.
    - `p`: the dimension.
    - `vector`: the products of the schedule's own vector, if it keeps one.

    **Example:**

    ```pycon
    >>> import inopca_jax as ino
    >>> import jax.numpy as jnp
    >>> lam, s2, r, t, p = jnp.array([2.0, 1.0, 1.0, 0.1, 1000.0])
    >>> observables = ino.Observables(lam=lam, s2=s2, r=r, t=t, p=p)
    >>> rates = ino.InoPCA(tau=0.5).rates(observables, jnp.array(0.5))
    >>> float(rates.gain), float(rates.decay)
    (0.25, 0.5)
    ```
    """

    lam: Real
    s2: Real
    r: Real
    t: Real
    p: Real
    vector: VectorProducts | None = None


class Hidden(PublicModule):
    """The quantities that only an oracle may read.

    An algorithm on data does not know them; only `Oracle` reads them.

    **Arguments:**

    - `q`: the overlap with the spike.
    - `omega`: the signal-to-noise ratio.
    - `unit_gain`: the gain of the rule at `tau = 1`. An algorithm may know it; it is
      here because only an oracle chooses a gain rather than a learning rate.

    **Example:**

    ```pycon
    >>> import inopca_jax as ino
    >>> import jax.numpy as jnp
    >>> observables = ino.Observables(*jnp.array([2.0, 1.0, 1.0, 0.1, 1000.0]))
    >>> q, omega, unit_gain = jnp.array([0.5, 1.0, 0.5])
    >>> hidden = ino.Hidden(q=q, omega=omega, unit_gain=unit_gain)
    >>> round(float(ino.Oracle().tau(observables, (), hidden)), 3)
    1.2
    ```
    """

    q: Real
    omega: Real
    unit_gain: Real
