"""What simulations and theory return of several spikes or components."""

from typing import Any, TypeAlias

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from ._check import require_array
from ._config import Config
from ._numerics import root
from ._result import AbstractResult, Variables
from ._timeline import segments
from ._trajectory import Snapshots, Trajectory, over_finite_trials
from ._types import Times


class AbstractComponentTrajectory(AbstractResult):
    """The estimates of several components among several spikes, at some times.

    Simulations have arrays with an axis of trials in front, theory has none.

    **Example:**

    ```pycon
    >>> import inopca_jax as ino
    >>> issubclass(ino.ComponentSnapshots, ino.AbstractComponentTrajectory)
    True
    ```
    """

    ts: eqx.AbstractVar[Times]
    overlaps: eqx.AbstractVar[Float[Array, "*trials times spikes components"]]
    norms: eqx.AbstractVar[Float[Array, "*trials times components"]]
    cosines: eqx.AbstractVar[Float[Array, "*trials times components components"]]
    omega: eqx.AbstractVar[Float[Array, "times spikes"]]

    def __check_init__(self):
        require_array("ts", self.ts, "(times,)", ndim=1)
        axes = dict(
            overlaps="(..., times, spikes, components)",
            norms="(..., times, components)",
            cosines="(..., times, components, components)",
            omega="(times, spikes)",
        )
        for name, shape in axes.items():
            require_array(name, getattr(self, name), shape)
        times, spikes, components = len(self.ts), *self.overlaps.shape[-2:]
        expected = dict(
            overlaps=(times, spikes, components),
            norms=(times, components),
            cosines=(times, components, components),
            omega=(times, spikes),
        )
        for name, shape in expected.items():
            found = getattr(self, name).shape
            if found[-len(shape) :] != shape:
                raise ValueError(
                    f"{name} of shape {found} is not allowed: pass an array of shape "
                    f"{axes[name]}, here (..., {', '.join(map(str, shape))})."
                )

    @property
    def finite(self) -> Bool[Array, "*trials"]:
        """Whether each trial stayed finite: False for one that diverged, which is kept."""
        fine = jnp.isfinite(self.overlaps).all((-1, -2)) & jnp.isfinite(self.norms).all(-1)
        return fine.all(-1)

    def abs(self) -> "ComponentTrajectory":
        """Returns the same with signs that make the overlap of each component with its own
        spike non-negative. The i-th component's own spike is the i-th strongest."""
        own = self.matched_overlaps()
        sign = jnp.ones(self.norms.shape, own.dtype)
        sign = sign.at[..., : own.shape[-1]].set(jnp.where(own < 0, -1, 1))
        rows, columns = jnp.expand_dims(sign, -2), jnp.expand_dims(sign, -1)
        cosines = self.cosines * rows * columns
        return ComponentTrajectory(
            self.ts, self.overlaps * rows, self.norms, cosines, self.omega
        )

    def matched_overlaps(self) -> Float[Array, "*trials times matched"]:
        """Returns the overlap of every component with its own spike: of the i-th component
        with the i-th strongest.

        **Returns:**

        An array of shape (trials, times, min(d, r)) for d spikes and r components.
        """
        overlaps = self._strongest_first()
        matched = min(overlaps.shape[-2:])
        return jnp.diagonal(overlaps[..., :matched, :matched], axis1=-2, axis2=-1)

    def angles(self) -> Float[Array, "*trials times matched"]:
        """Returns the principal angles between the span of the estimates and that of the
        strongest spikes.

        Their cosines are the singular values of the overlaps after the estimates are made
        orthonormal. Of d spikes the min(d, r) strongest are used, if there are r
        components.

        **Returns:**

        An array of shape (trials, times, min(d, r)): the angles in [0, pi/2], the smallest
        first.
        """
        overlaps = self._strongest_first()
        matched = min(overlaps.shape[-2:])
        return _angles(overlaps[..., :matched, :], self.cosines)

    def grassmann_distance(self) -> Float[Array, "*trials times"]:
        """Returns the distance of the span of the estimates from that of the strongest
        spikes: the root of the sum of the squared principal angles.

        **Returns:**

        An array of shape (trials, times).
        """
        return root(jnp.sum(self.angles() ** 2, axis=-1))

    def captured_share(self) -> Float[Array, "*trials times"]:
        """Returns the share of the spikes' variance that lies in the span of the estimates.

        That is the squared length of the projection of a spike's direction on the span,
        averaged over the spikes with the weights `omega`.

        **Returns:**

        An array of shape (trials, times), with numbers in [0, 1].
        """
        coordinates = _orthonormal(self.overlaps, self.cosines)
        inside = jnp.sum(coordinates**2, axis=-1)
        omega = jnp.broadcast_to(self.omega, inside.shape)
        return jnp.sum(omega * inside, -1) / jnp.sum(omega, -1)

    def mean(self) -> "ComponentTrajectory":
        """Returns the mean over the finite trials; warns if any is left out."""
        return self._over_trials(lambda a: np.mean(a, axis=0), least=1)

    def std(self) -> "ComponentTrajectory":
        """Returns the standard deviation over the finite trials (divisor trials - 1)."""
        return self._over_trials(lambda a: np.std(a, axis=0, ddof=1), least=2)

    def _variables(self) -> tuple[Variables, Variables, str]:
        dims = dict(
            overlaps=("time", "spike", "component"),
            norms=("time", "component"),
            cosines=("time", "component", "other_component"),
            x=("time", "component", "entry"),
            xi=("time", "spike", "entry"),
        )
        trials = self.norms.shape[:-2]
        if len(trials) > 1:
            raise ValueError(
                f"norms has shape {self.norms.shape}: a table needs arrays (trials, times, "
                "components) or (times, components). Index the axes before these."
            )
        leading = ("trial",) if trials else ()
        variables: Variables = {
            name: ((*leading, *dims[name]), value)
            for name, value in vars(self).items()
            if name in dims
        }
        coords: Variables = {
            "time": (("time",), self.ts),
            "omega": (("time", "spike"), self.omega),
        }
        if trials:
            variables["finite"] = ((), np.sum(np.asarray(self.finite)))
            coords["trial"] = (("trial",), np.arange(*trials))
        return variables, coords, "trials" if trials else "theory"

    def _strongest_first(self) -> Array:
        """Returns the overlaps in the order of `omega`."""
        order = jnp.argsort(-self.omega, axis=-1, stable=True)
        index = jnp.broadcast_to(order, self.overlaps.shape[:-1])[..., None]
        return jnp.take_along_axis(self.overlaps, index, axis=-2)

    def _over_trials(self, statistic: Any, least: int) -> "ComponentTrajectory":
        if self.norms.ndim != 3:
            raise ValueError(
                f"norms has shape {self.norms.shape}: a mean or standard deviation over "
                "trials needs arrays (trials, times, components)."
            )
        arrays = [self.overlaps, self.norms, self.cosines]
        overlaps, norms, cosines = over_finite_trials(arrays, self.finite, statistic, least)
        return ComponentTrajectory(self.ts, overlaps, norms, cosines, self.omega)


def _orthonormal(overlaps: Array, cosines: Array) -> Array:
    """Returns the overlaps with the estimates made orthonormal in their order."""
    triangle = jnp.linalg.cholesky(cosines)
    solved = jnp.linalg.solve(triangle, jnp.swapaxes(overlaps, -1, -2))
    return jnp.swapaxes(solved, -1, -2)


def _angles(overlaps: Array, cosines: Array) -> Array:
    coordinates = _orthonormal(overlaps, cosines)
    values = jnp.linalg.svd(coordinates, compute_uv=False)
    return jnp.arccos(jnp.clip(values, 0, 1))


class ComponentTrajectory(AbstractComponentTrajectory):
    """The estimates of several components among several spikes, at some times.

    **Arguments:**

    - `ts`: the macroscopic times, of shape (times,).
    - `overlaps`: of all spikes, in the order of `omega`, with all components, of shape
      (trials, times, spikes, components) or (times, spikes, components).
    - `norms`: the norms of the components, of shape (trials, times, components).
    - `cosines`: of the angles between the estimates of two components, of shape
      (trials, times, components, components).
    - `omega`: the signal-to-noise ratios in force, of shape (times, spikes).

    **Example:**

    ```pycon
    >>> import inopca_jax as ino
    >>> import jax
    >>> model = ino.SpikedModel(p=200, omega=[4.0, 2.0, 1.0])
    >>> config = ino.Config(ino.InoPCA(0.5), model, ino.ColdStart(), [10.0], components=2)
    >>> runs = ino.simulate(config, key=jax.random.key(0), trials=8)
    >>> runs.overlaps.shape, runs.norms.shape
    ((8, 1, 3, 2), (8, 1, 2))
    >>> bool((runs.grassmann_distance() < 1.5).all())
    True
    ```
    """

    ts: Times
    overlaps: Float[Array, "*trials times spikes components"]
    norms: Float[Array, "*trials times components"]
    cosines: Float[Array, "*trials times components components"]
    omega: Float[Array, "times spikes"]


class ComponentSnapshots(AbstractComponentTrajectory):
    """Trials of several components with the whole vectors at the times of observation.

    **Arguments:**

    - `ts`, `overlaps`, `norms`, `cosines`, `omega`: as of a `ComponentTrajectory`.
    - `x`: the estimates, of shape (trials, times, components, p).
    - `xi`: the spikes in force, of shape (trials, times, spikes, p).

    **Example:**

    ```pycon
    >>> import inopca_jax as ino
    >>> import jax
    >>> model = ino.SpikedModel(p=200, omega=[4.0, 2.0, 1.0])
    >>> config = ino.Config(ino.InoPCA(0.5), model, ino.ColdStart(), [10.0], components=2)
    >>> engine = ino.Chain(snapshots=True)
    >>> runs = ino.simulate(config, key=jax.random.key(0), trials=4, engine=engine)
    >>> runs.x.shape, runs.xi.shape
    ((4, 1, 2, 200), (4, 1, 3, 200))
    ```
    """

    ts: Times
    overlaps: Float[Array, "*trials times spikes components"]
    norms: Float[Array, "*trials times components"]
    cosines: Float[Array, "*trials times components components"]
    omega: Float[Array, "times spikes"]
    x: Float[Array, "*trials times components p"]
    xi: Float[Array, "*trials times spikes p"]


SeveralComponents: TypeAlias = Any
"""A `ComponentTrajectory` or `ComponentSnapshots`, for static type checkers anything: which
result a function returns follows from the numbers of the config, which they do not know."""


def omegas_in_force(config: Config) -> Float[Array, "times spikes"]:
    """Returns the signal-to-noise ratios in force at the times of a config."""
    models = config.model.phases()
    shape = (len(config.ts), models[0].spikes)
    omegas = jnp.zeros(shape, models[0].omega.dtype)
    for model, segment in zip(models, segments(config), strict=False):
        omegas = jnp.where(segment.observed[:, None], model.omega.reshape(1, -1), omegas)
    return omegas


def as_result(
    config: Config, observations: dict[str, Any]
) -> Trajectory | Snapshots | SeveralComponents:
    """Returns the result of a simulation, by the names of what was observed."""
    if "q" in observations:
        kind = Snapshots if "x" in observations else Trajectory
        return kind(config.ts, **observations)
    kind = ComponentSnapshots if "x" in observations else ComponentTrajectory
    return kind(config.ts, omega=omegas_in_force(config), **observations)
