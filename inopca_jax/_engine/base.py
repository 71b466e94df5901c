"""The interface of engines: how one trial begins, advances, is observed and handles a
switch of the spike."""

import abc
from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, PyTree

from .._check import is_known
from .._config import Config
from .._model import SpikedModel
from .._module import PublicModule
from .._rule import AbstractAlgorithm
from .._start import AbstractStart
from .._types import Count, Real, TrialKey, Vector
from .update import Step

# What a trial's key is folded with, so that no random number is used twice.
SPIKE, START, NOISE, SIGNAL, SNAPSHOT, SWITCH, TURN, MASK = range(8)


class AbstractEngine(PublicModule):
    """A way to simulate a trial: `Chain`, `Stream` or `Diffusion`.

    An engine holds what a user asks for; `prepare` turns it into what is run.

    **Example:**

    ```pycon
    >>> import jax.random as jr
    >>> import inopca_jax as ino
    >>> config = ino.Config(model=ino.SpikedModel(p=100), ts=[0.0, 1.0, 2.0])
    >>> engines = ino.Chain(), ino.Stream(), ino.Diffusion()
    >>> all(isinstance(engine, ino.AbstractEngine) for engine in engines)
    True
    ```
    """

    @abc.abstractmethod
    def prepare(self, config: Config) -> "AbstractPreparedEngine":
        """Returns the engine as it is run for a config.

        Raises a `ValueError` if the engine cannot simulate the config.
        """


class AbstractPreparedEngine(eqx.Module):
    """An engine for configs of one structure. All methods are written for one trial."""

    dtype: eqx.AbstractVar[Any]
    """The precision of the state."""
    tile: eqx.AbstractVar[int]
    """How many trials advance side by side, whatever the number of trials."""

    @abc.abstractmethod
    def steps_per_time(self, p: Any) -> Any:
        """Returns how many steps a unit of macroscopic time has."""

    @abc.abstractmethod
    def steps_per_call(self) -> int:
        """Returns how many steps to take in one call of a compiled program."""

    @abc.abstractmethod
    def init(
        self,
        rule: AbstractAlgorithm,
        model: SpikedModel,
        start: AbstractStart,
        key: TrialKey,
    ) -> PyTree:
        """Returns the state before the first sample."""

    @abc.abstractmethod
    def advance(
        self,
        rule: AbstractAlgorithm,
        model: SpikedModel,
        key: TrialKey,
        state: PyTree,
        k: Step,
        stop: Step,
    ) -> PyTree:
        """Returns the state after `stop` steps, given that after `k`."""

    @abc.abstractmethod
    def observe(
        self, key: TrialKey, state: PyTree, k: Step
    ) -> tuple[PyTree, dict[str, Array]]:
        """Returns the state after an observation, and what `observed_components` returns.

        Drawing the whole vector of a chain changes the state: it fixes a direction that was
        left open.
        """

    @abc.abstractmethod
    def switch(
        self,
        old: SpikedModel,
        new: SpikedModel,
        key: TrialKey,
        state: PyTree,
        k: Step,
        phase: Count,
    ) -> PyTree:
        """Returns the state after the switch from the model `old` to `new`, which is number
        `phase` of the phases of the model."""


LONGEST_VECTOR = 2**31 - 1
"""The most entries of an array: JAX counts them in 32 bits, with a sign."""


def vector_length(p: Any, user: str, remedy: str) -> int:
    """Returns `p` as the length of a vector, or refuses it.

    **Arguments:**

    - `p`: the dimension.
    - `user`, `remedy`: what takes vectors of p entries, and what to do instead.
    """
    if not is_known(p):
        raise ValueError(
            f"p is traced, but {user} takes vectors of p entries, whose length has to be "
            "known: build the Config inside of the function that is jitted or mapped, from "
            "a plain number p."
        )
    if p > LONGEST_VECTOR:
        raise ValueError(
            f"p = {int(p)} is not allowed with {user}: that takes vectors of p entries, "
            f"and arrays end at {LONGEST_VECTOR}. {remedy}"
        )
    return int(p)


def observed_components(
    along: Sequence[Sequence[Real]],
    gram: Sequence[Sequence[Real]],
    xs: Sequence[Vector] | None = None,
    xis: Sequence[Vector] | None = None,
) -> dict[str, Array]:
    """Returns what is observed of a trial, by name: `q` and `lam` of one component and one
    spike; `overlaps`, `norms` and `cosines` of more; and the vectors, if they are given.

    **Arguments:**

    - `along`: for each spike, the products of all components with it.
    - `gram`: the products of the components with each other.
    - `xs`, `xis`: the estimates and the spikes.
    """
    norms = [jnp.sqrt(row[i]) for i, row in enumerate(gram)]
    if len(along) == len(gram) == 1:
        found = dict(q=along[0][0] / norms[0], lam=norms[0])
        return found if xs is None or xis is None else found | dict(x=xs[0], xi=xis[0])
    lams = jnp.stack(norms)
    overlaps = jnp.stack([jnp.stack(row) / lams for row in along])
    rows = [jnp.stack(row) / (norm * lams) for row, norm in zip(gram, norms, strict=True)]
    found = dict(overlaps=overlaps, norms=lams, cosines=jnp.stack(rows))
    if xs is None or xis is None:
        return found
    return found | dict(x=jnp.stack(xs), xi=jnp.stack(xis))
