"""The statistics of a cell's trials that a sweep keeps."""

from collections.abc import Mapping, Sequence
from typing import Any

import jax
import numpy as np
from jaxtyping import Array, Float

from .._check import refuse, require_list
from .._components import ComponentTrajectory
from .._config import Config

STATISTICS = ("mean", "std", "quantiles", "trials")
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)

DIMENSIONS: dict[str, tuple[str, ...]] = {
    "q": (),
    "abs_q": (),
    "lam": (),
    "overlaps": ("spike", "component"),
    "abs_overlaps": ("spike", "component"),
    "norms": ("component",),
    "cosines": ("component", "other_component"),
    "grassmann_distance": (),
    "captured_share": (),
    "omega": ("spike",),
}
"""The dimensions, beside that of time, of the quantities that a sweep has."""

SIMULATED = ("q", "lam", "overlaps", "norms", "cosines")
"""Those that engines observe; the others follow from them."""


def require_statistics(observables: Any) -> tuple[str, ...]:
    """Returns the names of `STATISTICS` in `observables`, once each and in their order."""
    remedy = f"name some of {', '.join(STATISTICS)}"
    is_one = isinstance(observables, str)
    names = [observables] if is_one else require_list("observables", observables, remedy)
    if not names or not all(isinstance(n, str) and n in STATISTICS for n in names):
        refuse("observables", observables, remedy)
    return tuple(name for name in STATISTICS if name in names)


def quantities(
    observed: Mapping[str, np.ndarray], omega: np.ndarray
) -> dict[str, Float[np.ndarray, "paths times ..."]]:
    """Returns the quantities of trials, or of paths of theory, in double precision.

    **Arguments:**

    - `observed`: what engines observe, or theory predicts, with an axis of paths in front.
    - `omega`: the signal-to-noise ratios in force, of shape (times, spikes).
    """
    given = {name: np.asarray(a, float) for name, a in observed.items()}
    if "q" in given:
        return dict(q=given["q"], abs_q=np.abs(given["q"]), lam=given["lam"])
    # On a CPU and in double precision, so that they do not depend on the device.
    with jax.enable_x64(True), jax.default_device(jax.local_devices(backend="cpu")[0]):
        derived = jax.device_get(_of_spans(given, np.asarray(omega, float)))
    found = given | dict(abs_overlaps=np.abs(given["overlaps"])) | derived
    return {name: found[name] for name in DIMENSIONS if name in found}


@jax.jit
def _of_spans(given: dict[str, Array], omega: Array) -> dict[str, Array]:
    paths = ComponentTrajectory(np.arange(float(len(omega))), **given, omega=omega)
    return dict(
        grassmann_distance=paths.grassmann_distance(), captured_share=paths.captured_share()
    )


def shapes(config: Config) -> dict[str, tuple[int, ...]]:
    """Returns the shape at one time of each of the quantities that configs of this
    structure have."""
    if config.is_single:
        return dict(q=(), abs_q=(), lam=())
    components = config.components
    sizes = dict(spike=config.model.phases()[0].spikes)
    sizes |= dict(component=components, other_component=components)
    return {
        name: tuple(sizes[dimension] for dimension in dimensions)
        for name, dimensions in DIMENSIONS.items()
        if name not in ("q", "abs_q", "lam", "omega")
    }


def rows_of(
    name: str, values: Float[np.ndarray, "times ..."]
) -> dict[str, Float[np.ndarray, " times"]]:
    """Returns the rows of a quantity by name: one row, or of an array one for each entry,
    with its index, such as `overlaps_mean[0,1]`."""
    if values.ndim == 1:
        return {name: values}
    return {
        f"{name}[{','.join(map(str, index))}]": values[:, *index]
        for index in np.ndindex(values.shape[1:])
    }


def fields(config: Config, observables: Sequence[str], trials: int) -> list[str]:
    """Returns the names of the rows that `summary` returns."""
    nothing = {
        name: np.zeros((trials, 1, *shape)) for name, shape in shapes(config).items()
    }
    omega = np.zeros((1, config.model.phases()[0].spikes))
    return list(summary(nothing, omega, observables))


def theory_fields(config: Config, quantities: Sequence[str]) -> list[str]:
    """Returns the names of the rows of theory's quantities."""
    sizes = shapes(config)
    rows = [rows_of(f"{n}_theory", np.zeros((1, *sizes.get(n, ())))) for n in quantities]
    return [name for named in rows for name in named]


def summary(
    values: Mapping[str, Float[np.ndarray, "trials times ..."]],
    omega: Float[np.ndarray, "times spikes"],
    observables: Sequence[str],
) -> dict[str, Float[np.ndarray, " times"]]:
    """Returns the statistics of one cell by name, given what `quantities` returns.

    They are computed on the host, in double precision and in the order of the trials, so
    that they do not depend on the device. Trials that diverged are left out of the means,
    deviations and quantiles; `finite` counts the others. If there are several spikes or
    components, the signal-to-noise ratios in force are added.
    """
    simulated = {name: a for name, a in values.items() if name in SIMULATED}
    trials, times = next(iter(simulated.values())).shape[:2]
    is_finite = np.ones(trials, bool)
    for array in simulated.values():
        is_finite &= np.isfinite(array).reshape(trials, -1).all(axis=1)
    rows = {"finite": np.full(times, float(is_finite.sum()))}
    for quantity, array in values.items():
        finite = array[is_finite]
        missing = np.full(array.shape[1:], np.nan)
        if "mean" in observables:
            mean = finite.mean(axis=0) if len(finite) else missing
            rows |= rows_of(f"{quantity}_mean", mean)
        if "std" in observables:
            is_known = len(finite) > 1
            std = finite.std(axis=0, ddof=1) if is_known else missing
            rows |= rows_of(f"{quantity}_std", std)
        if "quantiles" in observables:
            for level in QUANTILES:
                row = np.quantile(finite, level, axis=0) if len(finite) else missing
                rows |= rows_of(f"{quantity}_quantile_{level}", row)
    if "trials" in observables:
        for quantity, array in simulated.items():
            for i, row in enumerate(array):
                rows |= rows_of(f"{quantity}_trial_{i}", row)
    return rows if "q" in values else rows | rows_of("omega", omega)
