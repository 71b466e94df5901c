"""What `inopca simulate` and `inopca limits` print of several spikes or components."""

from typing import Any

import numpy as np

import inopca_jax as ino

from .._components import SeveralComponents
from .._order_parameters.components_start import strongest_overlaps
from .output import Files, print_columns, print_table


def report(
    label: str,
    config: ino.Config,
    theory: SeveralComponents,
    runs: SeveralComponents,
    reference: SeveralComponents | None,
    files: Files,
    bars: float,
) -> None:
    """Prints, writes and draws trials of several components."""
    print("note: the signs of the components are such that their overlaps are not negative")
    theory, runs = theory.abs(), runs.abs()
    reference = None if reference is None else reference.abs()
    columns = _columns(theory, runs)
    arrays: dict[str, Any] = dict(ts=runs.ts, finite=runs.finite, omega=runs.omega)
    given = {"": runs, "theory_": theory, "reference_": reference}
    for prefix, path in given.items():
        if path is not None:
            fields = {
                name: getattr(path, name) for name in ("overlaps", "norms", "cosines")
            }
            fields |= dict(grassmann_distance=path.grassmann_distance())
            arrays |= {f"{prefix}{name}": value for name, value in fields.items()}
    printed = {n: c for n, c in columns.items() if not n.startswith("lam")}
    if reference is not None:
        arrays |= dict(reference_ts=reference.ts)
        missing = np.full(len(runs.ts) - len(reference.ts), np.nan)
        distances = _finite(reference.grassmann_distance(), reference).mean(axis=0)
        printed["distance reference"] = np.append(distances, missing)
    spikes, components = runs.overlaps.shape[-2:]
    if not np.any(theory.overlaps):
        print("note: from this start the overlaps of the mean field stay at 0")
    print(
        f"{label}, p = {int(config.model.p)}, {_counted(spikes, 'spike')}, "
        f"{_counted(components, 'component')}, {len(runs.norms)} trials"
    )
    rows = np.unique(np.linspace(0, len(runs.ts) - 1, 11).round().astype(int))
    print_columns({name: np.asarray(c)[rows] for name, c in printed.items()})
    q, lam = ino.steady_state(config)
    print(f"steady state: q = {_listed(q)}, lam = {_listed(lam)}")
    print(f"steady Grassmann distance: {float(ino.steady_distance(config)):.5f}")
    files.write(arrays, columns)
    phases = config.model.phases()
    omega = np.asarray(phases[0].omega) if len(phases) == 1 else None
    quantities = ("q", "lam", "distance")
    files.draw(
        lambda plot: plot.learning_curves(
            [plot.Curve(label, theory, runs, reference)],
            quantities=quantities,
            bars=bars,
            omega=omega,
        )
    )


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


def _columns(theory: SeveralComponents, runs: SeveralComponents) -> dict[str, Any]:
    """Returns the columns of the table, by their headings."""
    distance = runs.grassmann_distance()
    named = {"distance": (theory.grassmann_distance(), distance)}
    for i in range(theory.matched_overlaps().shape[-1]):
        overlaps = theory.matched_overlaps(), runs.matched_overlaps()
        named[f"q {i + 1}"] = (overlaps[0][..., i], overlaps[1][..., i])
    for i in range(theory.norms.shape[-1]):
        named[f"lam {i + 1}"] = (theory.norms[..., i], runs.norms[..., i])
    columns: dict[str, Any] = {"t": runs.ts}
    for name, (path, trials) in named.items():
        finite = _finite(trials, runs)
        columns[f"{name} theory"] = path
        columns[f"{name} mean"] = finite.mean(axis=0)
        spread = finite.std(axis=0, ddof=1) if len(finite) > 1 else np.nan * finite[0]
        columns[f"{name} sd"] = spread
    return columns


def _finite(trials: Any, runs: SeveralComponents) -> np.ndarray:
    """Returns the values of the trials that did not diverge, in double precision."""
    return np.asarray(trials, dtype=float)[np.asarray(runs.finite)]


def print_limits(label: str, config: ino.Config) -> None:
    """Prints the steady state and the bounds of every component."""
    phases, t = config.model.phases(), float(config.ts[-1])
    model, count = phases[-1], config.components
    omegas = model.target_omegas(count)
    found = min(model.spikes, count)
    overlaps = strongest_overlaps(config.rule, phases[0], config.start, count)
    starts = np.diagonal(np.asarray(overlaps))[:found]
    q, lam = ino.steady_state(config)
    rows = {
        "signal-to-noise ratio": omegas,
        "critical signal-to-noise ratio": np.full(
            count, float(ino.critical_snr(config.rule))
        ),
        "steady overlap": q,
        "steady norm": lam,
        "best overlap of any gain": ino.oracle_overlap(omegas[:found], starts, t),
        "overlap of offline PCA": ino.offline_overlap(omegas[:found], t),
    }
    print(f"{label}, omega = {_listed(model.omega.reshape(-1), 'g')}, t = {t:g}")
    table = [["component", *(str(i + 1) for i in range(count))]]
    for name, values in rows.items():
        shown = [f"{float(value):.6f}" for value in values]
        table.append([name, *shown, *[""] * (count - len(shown))])
    print_table(table)
    print(f"steady Grassmann distance: {float(ino.steady_distance(config)):.6f}")


def _listed(values: Any, form: str = ".5f") -> str:
    return " ".join(f"{float(value):{form}}" for value in np.asarray(values))
