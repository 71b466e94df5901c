"""The whole paper at once, computing only what has changed."""

import contextlib
import hashlib
import importlib.metadata
import json
import multiprocessing
import os
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from pathlib import Path
from typing import Any

import equinox as eqx
import numpy as np
from tqdm import tqdm

from .._engine import defaults
from .._xla import QUICK_TO_COMPILE, as_flags, supported
from ..plot import save
from . import explorer
from .claim import Made
from .figures import FIGURES, QUICK, drawings_of, figure
from .report import write_page

# Figures that share programs are next to each other: of two processes one begins at the
# one end and one at the other, and compiles for itself what its figures have in common.
_ORDER = (
    "adaptive_comparison",
    "rivals",
    "tau",
    "comparison",
    "tuned",
    "lambda0",
    "cos_lambda",
    "error_bars",
    "convergence",
    "statements",
    "steady_state_dist",
    "phase_diagram",
    "density_evolution2",
    "density_evolution",
    "olivetti",
)
assert set(_ORDER) == set(FIGURES)


def reproduce(
    out: str | Path,
    figures: Sequence[str] = (),
    quick: bool = False,
    progress: bool = False,
) -> list[Made]:
    """Computes, draws and judges the figures, and writes the report to the folder `out`.

    By default all; in a quick run, of fewer trials, one of each kind.
    Figures whose numbers are there, of the same code and versions, are not computed again.
    One whose data cannot be had is left out, and one that fails costs no other.
    """
    figures = figures or (QUICK if quick else FIGURES)
    for name in figures:
        if name not in FIGURES:
            raise ValueError(
                f"figure = {name!r} is not there: pass some of {', '.join(FIGURES)}."
            )
    out = Path(out)
    for folder in (out / "figures", out / "arrays"):
        folder.mkdir(parents=True, exist_ok=True)
    wanted = sorted(set(figures), key=_ORDER.index)
    made: dict[str, Made] = {}
    with tqdm(total=len(wanted), desc="figures", disable=not progress) as bar:
        for result in _all(wanted, out, quick):
            made[result.name] = result
            bar.set_postfix_str(result.name)
            bar.update()
    results = [made[name] for name in FIGURES if name in made]
    (out / "explorer.html").write_text(explorer.page())
    (out / "claims.json").write_text(json.dumps(_listed(results), indent=1) + "\n")
    write_page(out, results, quick)
    return results


def disagreements(results: Sequence[Made]) -> list[str]:
    """What a reader has to hear of: a figure that failed, a verdict that is not the one on
    record."""
    lines = [f"{made.name} failed: {made.failed}" for made in results if made.failed]
    for made in results:
        lines += [
            f"{made.name}: {c.says!r} {c.verdict}, on record: {c.recorded} ({c.found})"
            for c in made.claims
            if c.verdict != c.recorded
        ]
    return lines


def _all(names: Sequence[str], out: Path, quick: bool) -> Iterator[Made]:
    """The figures as they are finished; on CPUs by a process a core, for what they do for
    the most part, to compile, keeps one core busy."""
    if not defaults.on_cpu() or len(names) == 1:
        yield from (make(name, out, quick) for name in names)
        return
    spawn, left = multiprocessing.get_context("spawn"), deque(names)
    with _environment(out), contextlib.ExitStack() as stack:
        count = min(os.cpu_count() or 1, len(names))
        pools = [ProcessPoolExecutor(1, spawn) for _ in range(count)]
        for pool in pools:
            stack.callback(pool.shutdown, cancel_futures=True)

        def next_of(i: int) -> Future[Made]:
            name = left.pop() if i % 2 else left.popleft()
            return pools[i].submit(make, name, out, quick)

        busy = {next_of(i): i for i in range(count)}
        while busy:
            for future in wait(busy, return_when=FIRST_COMPLETED).done:
                i = busy.pop(future)
                if left:
                    busy[next_of(i)] = i
                yield future.result()


@contextlib.contextmanager
def _environment(out: Path) -> Iterator[None]:
    """The environment of the processes that are started inside.

    Most of their time goes into compiling, and they share what they have compiled. On some
    CPUs XLA takes its own files for another machine's, and says so at length each time that
    it reads one: only fatal errors are logged.
    """
    before = dict(os.environ)
    quick = as_flags(supported(QUICK_TO_COMPILE))
    flags = f"{os.environ.get('XLA_FLAGS', '')} {quick}"
    cache = str((out / ".compiled").resolve())
    os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", cache)
    os.environ.update(
        XLA_FLAGS=flags,
        TF_CPP_MIN_LOG_LEVEL="3",
        JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS="0.2",
        MPLBACKEND="Agg",
    )
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def make(name: str, out: Path, quick: bool) -> Made:
    """One figure: its arrays, the figure as PNG and PDF, its claims."""
    try:
        module = figure(name)
        found = _arrays(name, out, quick)
        drawings = drawings_of(name)
        for title, draw in drawings.items():
            paths = [out / "figures" / f"{title}.{ending}" for ending in ("png", "pdf")]
            save(draw(found), *paths)
        configs = {
            label: eqx.tree_pformat(config, short_arrays=False, width=80)
            for label, config in module.configs(quick).items()
        }
        claims = module.claims(found)
    except _NoData as error:
        return Made(name, missing=str(error))
    except Exception as error:
        return Made(name, failed=f"{type(error).__name__}: {error}")
    return Made(name, claims, configs, tuple(drawings))


class _NoData(Exception):
    """The data of a figure cannot be had: no failure, unlike a disk that is full."""


def _arrays(name: str, out: Path, quick: bool) -> dict[str, np.ndarray]:
    """The numbers behind a figure, computed if they are not there."""
    path, note = (out / "arrays" / f"{name}.{x}" for x in ("npz", "json"))
    mark = fingerprint(name, quick)
    if path.exists() and note.exists() and json.loads(note.read_text()) == mark:
        with np.load(path) as file:
            return dict(file)
    try:
        found = figure(name).compute(quick)
    except OSError as error:
        raise _NoData(str(error)) from None
    note.unlink(missing_ok=True)
    np.savez_compressed(path, **found)
    note.write_text(json.dumps(mark, indent=1))
    return found


def fingerprint(name: str, quick: bool) -> dict[str, Any]:
    """What the numbers of a figure depend on: the package, but for what draws, the
    commands and the other figures; the versions; the mode."""
    package = Path(__file__).parents[1]
    beside = {"_command", "cli", "plot", "explorer", "report", "__pycache__", *FIGURES}
    digest = hashlib.sha256()
    for path in sorted(package.rglob("*.py")):
        parts = path.relative_to(package).with_suffix("").parts
        others = {part for part in parts if part in beside} - {name}
        if not others and path.name not in ("reproduce.py", "figures.py", "page.py"):
            digest.update(path.read_bytes())
    packages = ("jax", "jaxlib", "diffrax", "numpy")
    versions = {p: importlib.metadata.version(p) for p in packages}
    return dict(source=digest.hexdigest(), versions=versions, quick=quick)


def _listed(results: Sequence[Made]) -> list[dict[str, Any]]:
    return [
        dict(figure=made.name, **claim._asdict())
        for made in results
        for claim in made.claims
    ]
