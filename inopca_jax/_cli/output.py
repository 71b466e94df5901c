"""What the commands print, write and draw."""

import csv
import itertools
import os
import tempfile
import warnings
from pathlib import Path
from typing import Any

import equinox as eqx
import numpy as np

from .._config import Config
from .._files import whole_file
from .._order_parameters import (
    best_lam0,
    critical_snr,
    fluctuations,
    mean_field,
    offline_overlap,
    oracle_overlap,
    overlap_law,
    steady_state,
)
from .._order_parameters.initial import first_kick
from .._trajectory import Trajectory


class Failed(Exception):
    """What ran, and has no result that is worth anything."""


def require_finite(runs: Trajectory) -> None:
    """Raises `Failed` if all trials diverged."""
    if not np.any(runs.finite):
        raise Failed(
            f"all {len(runs.finite)} trials diverged, so there is nothing to show: pass a "
            "smaller learning rate or a larger p."
        )


def require_writable(name: str, path: Path | None, endings: tuple[str, ...]) -> None:
    """Refuses, before anything runs, a file that could not be written after it."""
    if path is None:
        return
    if path.suffix not in endings:
        raise ValueError(
            f"{name} = {path} is not allowed: it must end in {' or '.join(endings)}."
        )
    if path.exists() and not (path.is_file() and os.access(path, os.W_OK)):
        raise ValueError(f"{name} = {path} cannot be written to: something else is there.")
    require_folder(name, path, path.parent)


def require_folder(name: str, path: Path, folder: Path) -> None:
    """Refuses, before anything runs, a path for which the folder could not be made or
    written to. It is not made: the request may still be refused for another reason."""
    there = next(f for f in (folder, *folder.absolute().parents) if f.exists())
    try:
        with tempfile.TemporaryFile(dir=there):
            pass
    except OSError as error:
        raise ValueError(f"{name} = {path} cannot be written to: {error}.") from None


def keeps_sign(config: Config) -> bool:
    """Whether all trials can be expected on the start's side of q = 0.

    A cold start has no side, nor has a new spike that does not resemble the old one,
    and an algorithm that forgets its start at once may settle on either: a mean of q
    over both would say nothing, so |q| is reported.
    """
    q0, _ = config.start.moments(config.model.phases()[0].spike)
    means = [float(model.spike.mean()) for model in config.model.phases()]
    resemble = all(abs(a * b) > 0.05 for a, b in itertools.pairwise(means))
    return abs(float(q0)) > 1e-6 and is_regular(config) and resemble


def is_regular(config: Config) -> bool:
    """Whether one sample moves the estimate by less than its length, so that a start is not
    forgotten at once."""
    return float(first_kick(config)) < 1


def theory_of(config: Config, bands: bool) -> Trajectory:
    """The theory to set beside runs, of `|q|` where they may be on either side; with
    `bands`, and where the limit is regular, as they are at this p and scatter."""
    if keeps_sign(config):
        return fluctuations(config) if bands else mean_field(config)
    if is_regular(config):
        law = overlap_law(config).abs()
        return law if bands else Trajectory(law.ts, law.q, law.lam)
    theory = mean_field(config).abs()
    if np.any(np.asarray(theory.q) < _STUCK):
        warnings.warn(
            "The theory is the mean field, which stays at q = 0 where runs leave it by "
            "chance: it says nothing of their |q|. Pass t0 > 0 or a b0 of order p, and it "
            "is the law of |q| at this p.",
            stacklevel=2,
        )
    return theory


_STUCK = 1e-6
"""An overlap of the mean field below this is zero, up to rounding."""


def until(config: Config, t: float) -> Config:
    """The config with its times up to `t`."""
    kept = np.asarray(config.ts)[np.asarray(config.ts) <= t]
    if not kept.size:
        raise ValueError(f"reference_until = {t} is before the first time, {config.ts[0]}.")
    return eqx.tree_at(lambda c: c.ts, config, kept)


def show(
    config: Config,
    label: str,
    theory: Trajectory,
    runs: Trajectory,
    reference: Trajectory | None,
) -> None:
    """A table of theory, mean and standard deviation at about ten times."""
    columns = _columns(theory, runs)
    if reference is not None:
        padded = np.full(len(runs.ts), np.nan)
        padded[: len(reference.ts)] = reference.mean().q
        columns["q reference"] = padded
    print(f"{label}, p = {config.model.p}, {len(runs.q)} trials")
    print("".join(f"{name:>12}" for name in columns))
    shown = np.unique(np.linspace(0, len(runs.ts) - 1, 11).round().astype(int))
    for row in _table(columns)[shown]:
        print("".join(f"{'' if np.isnan(v) else format(v, '.4f'):>12}" for v in row))
    q_s, lam_s = steady_state(config)
    print(f"steady state: q = {float(q_s):.5f}, lam = {float(lam_s):.5f}")


def _columns(theory: Trajectory, runs: Trajectory) -> dict[str, Any]:
    mean, std = runs.mean(), runs.std()
    columns: dict[str, Any] = {"t": runs.ts}
    for name in ("q", "lam"):
        columns[f"{name} theory"] = getattr(theory, name)
        columns[f"{name} mean"] = getattr(mean, name)
        if (predicted := getattr(theory, f"{name}_std")) is not None:
            columns[f"{name} sd pred"] = predicted
        columns[f"{name} sd"] = getattr(std, name)
    return columns


def _table(columns: dict[str, Any]) -> np.ndarray:
    return np.stack([np.asarray(c, dtype=float) for c in columns.values()], axis=1)


def write(
    path: Path, theory: Trajectory, runs: Trajectory, reference: Trajectory | None
) -> None:
    """All trials as .npz, or the table at all times as .csv."""
    with whole_file(path) as temporary:
        _write(temporary, theory, runs, reference)
    print(f"numbers: {path}")


def _write(
    path: Path, theory: Trajectory, runs: Trajectory, reference: Trajectory | None
) -> None:
    if path.suffix == ".npz":
        arrays = dict(ts=runs.ts, q=runs.q, lam=runs.lam, finite=runs.finite)
        arrays |= dict(theory_q=theory.q, theory_lam=theory.lam)
        if theory.q_std is not None:
            arrays |= dict(theory_q_std=theory.q_std, theory_lam_std=theory.lam_std)
        if reference is not None:
            arrays |= dict(reference_ts=reference.ts, reference_q=reference.q)
            arrays |= dict(reference_lam=reference.lam)
        np.savez_compressed(path, **arrays)  # pyright: ignore[reportArgumentType]
    else:
        columns = _columns(theory, runs)
        with path.open("w", newline="") as file:
            rows = csv.writer(file)
            rows.writerow(name.replace(" ", "_") for name in columns)
            rows.writerows(_table(columns).tolist())


def figure(
    path: Path,
    config: Config,
    label: str,
    theory: Trajectory,
    runs: Trajectory,
    reference: Trajectory | None,
    bars: float,
) -> None:
    """Draws the overlap and the norm."""
    from .. import plot

    phases = config.model.phases()
    curve = plot.Curve(label, theory, runs, reference)
    # Offline PCA's limit is that of one spike; across a change it has no such form.
    omega = float(phases[0].omega) if len(phases) == 1 else None
    plot.save(plot.learning_curves([curve], bars=bars, omega=omega), path)
    print(f"figure: {path}")


def show_limits(config: Config) -> None:
    """The closed forms for the config's last model and last time."""
    omega, t = config.model.phases()[-1].omega, float(config.ts[-1])
    q0, _ = config.start.moments(config.model.phases()[0].spike)
    q_s, lam_s = steady_state(config)
    rows = {
        "critical signal-to-noise ratio": critical_snr(config.rule),
        "steady overlap": q_s,
        "steady norm": lam_s,
        f"best overlap of any gain at t = {t:g}": oracle_overlap(omega, q0, t),
        f"offline PCA's overlap at t = {t:g}": offline_overlap(omega, t),
    }
    if omega > 0 and abs(q0) < 1:
        rows["INO-PCA's best lam0 over tau"] = best_lam0(1.0, omega, q0)
    for name, value in rows.items():
        print(f"{name:<42}{float(value):>12.6f}")
