"""Tables, files and figures of the commands."""

import csv
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import equinox as eqx
import numpy as np

from .._config import Config
from .._files import whole_file
from .._order_parameters import (
    best_lam0,
    critical_snr,
    offline_overlap,
    oracle_overlap,
    steady_state,
)
from .._trajectory import AbstractTrajectory, Prediction


class Failed(Exception):
    """Raised if a command ran and has no usable result."""


def shows_progress(progress: bool | None) -> bool:
    """Returns whether to show a progress bar: by default if the output is a terminal."""
    return sys.stderr.isatty() if progress is None else progress


def require_finite(runs: AbstractTrajectory) -> None:
    """Raises `Failed` if all trials diverged."""
    if not np.any(runs.finite):
        raise Failed(
            f"all {len(runs.finite)} trials diverged: pass a smaller learning rate or a "
            "larger p."
        )


def require_writable(name: str, path: Path | None, suffixes: tuple[str, ...]) -> None:
    """Raises a `ValueError`, before anything runs, if a file could not be written later."""
    if path is None:
        return
    if path.suffix not in suffixes:
        raise ValueError(
            f"{name} = {path} is not allowed: it must end in {' or '.join(suffixes)}."
        )
    if path.exists() and not (path.is_file() and os.access(path, os.W_OK)):
        raise ValueError(
            f"{name} = {path} cannot be written to: it exists and is not a writable file. "
            "Pass another path."
        )
    require_folder(name, path, path.parent)


def require_folder(name: str, path: Path, folder: Path) -> None:
    """Raises a `ValueError`, before anything runs, if the folder of a path could not be
    created or written to. It is not created yet: another argument may still be invalid."""
    existing = next(f for f in (folder, *folder.absolute().parents) if f.exists())
    try:
        with tempfile.TemporaryFile(dir=existing):
            pass
    except OSError as error:
        raise ValueError(f"{name} = {path} cannot be written to: {error}.") from None


def until(config: Config, t: float) -> Config:
    """The config with its times up to `t`."""
    kept = np.asarray(config.ts)[np.asarray(config.ts) <= t]
    if not kept.size:
        raise ValueError(f"reference_until = {t} is before the first time, {config.ts[0]}.")
    return eqx.tree_at(lambda c: c.ts, config, kept)


def show(
    config: Config,
    label: str,
    theory: AbstractTrajectory,
    runs: AbstractTrajectory,
    reference: AbstractTrajectory | None,
) -> None:
    """Prints a table of theory, mean and standard deviation at about ten times."""
    columns = _columns(theory, runs)
    if reference is not None:
        padded = np.full(len(runs.ts), np.nan)
        padded[: len(reference.ts)] = reference.mean().q
        columns["q reference"] = padded
    print(f"{label}, p = {int(config.model.p)}, {len(runs.q)} trials")
    print("".join(f"{name:>12}" for name in columns))
    rows = np.unique(np.linspace(0, len(runs.ts) - 1, 11).round().astype(int))
    for row in _table(columns)[rows]:
        print("".join(f"{'' if np.isnan(v) else format(v, '.4f'):>12}" for v in row))
    q_s, lam_s = steady_state(config)
    print(f"steady state: q = {float(q_s):.5f}, lam = {float(lam_s):.5f}")


def _columns(theory: AbstractTrajectory, runs: AbstractTrajectory) -> dict[str, Any]:
    """Returns the columns of the table, by their headings."""
    mean, std = runs.mean(), runs.std()
    columns: dict[str, Any] = {"t": runs.ts}
    for name in ("q", "lam"):
        columns[f"{name} theory"] = getattr(theory, name)
        columns[f"{name} mean"] = getattr(mean, name)
        if (predicted := getattr(theory, f"{name}_std", None)) is not None:
            columns[f"{name} sd pred"] = predicted
        columns[f"{name} sd"] = getattr(std, name)
    return columns


def _table(columns: dict[str, Any]) -> np.ndarray:
    return np.stack([np.asarray(c, dtype=float) for c in columns.values()], axis=1)


def write(
    path: Path,
    theory: AbstractTrajectory,
    runs: AbstractTrajectory,
    reference: AbstractTrajectory | None,
) -> None:
    """Writes all trials as .npz, or the table at all times as .csv."""
    with whole_file(path) as temporary:
        _write(temporary, theory, runs, reference)
    print(f"numbers: {path}")


def _write(
    path: Path,
    theory: AbstractTrajectory,
    runs: AbstractTrajectory,
    reference: AbstractTrajectory | None,
) -> None:
    if path.suffix == ".npz":
        arrays = dict(ts=runs.ts, q=runs.q, lam=runs.lam, finite=runs.finite)
        arrays |= dict(theory_q=theory.q, theory_lam=theory.lam)
        if isinstance(theory, Prediction):
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
    theory: AbstractTrajectory,
    runs: AbstractTrajectory,
    reference: AbstractTrajectory | None,
    bars: float,
) -> None:
    """Saves a figure of the overlap and the norm."""
    from .. import plot

    phases = config.model.phases()
    curve = plot.Curve(label, theory, runs, reference)
    # The formula of offline PCA's limit is for one spike that does not change.
    omega = float(phases[0].omega) if len(phases) == 1 else None
    plot.save(plot.learning_curves([curve], bars=bars, omega=omega), path)
    print(f"figure: {path}")


def show_limits(config: Config) -> None:
    """Prints the steady state, the transition and the bounds, for the config's last model
    and last time."""
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
