"""The literature's names for some pairs of a rule and a schedule."""

from typing import Any

from .._check import number, require
from .._schedule import AdaGrad, Harmonic, Oracle
from .ino import InoPCA
from .oja import Oja


def AdaptiveInoPCA() -> InoPCA:
    """Returns INO-PCA with the gain of `eq:optimal_nu_t`, the paper's oracle benchmark.

    **Returns:**

    `InoPCA(Oracle())`.

    **Example:**

    ```pycon
    >>> import inopca_jax as ino
    >>> ino.AdaptiveInoPCA()
    InoPCA(tau=Oracle())
    ```
    """
    return InoPCA(Oracle())


def AdaOja(b0: Any = 1e-5) -> Oja:
    """Returns Oja's method with AdaGrad's learning rate.

    **Arguments:**

    - `b0`: the initial value of AdaGrad's `b`, positive.

    **Returns:**

    `Oja(AdaGrad(b0))`.

    **Example:**

    ```pycon
    >>> import inopca_jax as ino
    >>> ino.AdaOja(b0=1000.0)
    Oja(tau=AdaGrad(b0=1000.0))
    ```
    """
    return Oja(AdaGrad(b0))


def CCIPCA(amnesic: Any = 4.0, t0: Any = None) -> InoPCA:
    """Returns candid covariance-free incremental PCA: INO-PCA with a harmonic rate.

    The published update is `v' = (n-1-l)/n v + (1+l)/n y (y.v)/|v|`, with the amnesic
    parameter `l`. Here `n` is counted from `2 + l` on, so that the weight of the old
    estimate is never negative. The first sample then has the weight `(1+l)/(2+l)`, and the
    start is soon forgotten.

    **Arguments:**

    - `amnesic`: the parameter `l`, from 0 to 10^6.
    - `t0`: if given, the count begins at `n = p t0` instead, and the start is remembered.

    **Returns:**

    `InoPCA(Harmonic(...))`.

    **Example:**

    ```pycon
    >>> import inopca_jax as ino
    >>> ino.CCIPCA(amnesic=4.0, t0=2.0)
    InoPCA(tau=Harmonic(c=5.0, t0=2.0, k0=0.0))
    ```
    """
    number("amnesic", amnesic)
    require("amnesic", amnesic, lambda x: (x >= 0) & (x < 1e6), "pass 0 <= amnesic < 1e6")
    c = 1.0 + amnesic
    return InoPCA(Harmonic(c, t0=0.0, k0=c) if t0 is None else Harmonic(c, t0=t0))
