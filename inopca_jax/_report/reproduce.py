"""Makes the figures of the report, computing only those whose numbers may have changed."""

import contextlib
import hashlib
import importlib.metadata
import json
import os
import time
import traceback
from collections import deque
from collections.abc import Generator, Iterator, Sequence
from multiprocessing.connection import Connection, wait
from pathlib import Path
from threading import Event
from typing import Any

import numpy as np
from tqdm import tqdm

from .._engine import defaults
from .._files import remove_unfinished, whole_file
from .._interrupt import deferred_interrupt
from .._xla import QUICK_TO_COMPILE, as_flags, supported
from ..data import NotAvailable
from ..paper import FIGURES
from ..paper.figure import Arrays, PaperFigure
from ..plot import save
from . import explorer
from .report import report_page
from .result import FigureResult
from .worker import Worker, WorkerDied

_COMPILED = ".compiled"
"""The folder, inside that of the report, of the programs that JAX has compiled for it."""


def reproduce(
    out: str | Path,
    figures: Sequence[str] = (),
    quick: bool = False,
    progress: bool = False,
) -> list[FigureResult]:
    """Computes, draws and checks figures, and writes the report to the folder `out`.

    A figure whose numbers are stored there, from the same code and versions, is not
    computed again. A figure whose data are not available is left out, and a figure that
    fails does not stop the others. After Ctrl-C the same call continues with the remaining
    figures.

    On a CPU the figures are made in other processes, so a script has to call this below
    `if __name__ == "__main__":`.

    **Arguments:**

    - `out`: the folder of the report.
    - `figures`: the names of the figures; by default all, or those of a quick run.
    - `quick`: whether to simulate fewer trials.
    - `progress`: whether to show a progress bar.

    **Returns:**

    The results, in the order of the report.
    """
    chosen = [figure for figure in FIGURES if figure.quick or not quick]
    if figures:
        chosen = list({name: _figure(name) for name in figures}.values())
    out = Path(out)
    try:
        return _reproduce(out, chosen, quick, progress)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(
            f"finished figures are in {out}; the same command goes on from there"
        ) from None


def _figure(name: str) -> PaperFigure:
    by_name = {figure.name: figure for figure in FIGURES}
    if name not in by_name:
        raise ValueError(
            f"figure = {name!r} does not exist: pass one or several of "
            f"{', '.join(by_name)}."
        )
    return by_name[name]


def _reproduce(
    out: Path, figures: list[PaperFigure], quick: bool, progress: bool
) -> list[FigureResult]:
    for folder in (out / "figures", out / "arrays"):
        folder.mkdir(parents=True, exist_ok=True)
    names = [figure.name for figure in sorted(figures, key=lambda f: f.work_order)]
    by_name: dict[str, FigureResult] = {}
    with (
        tqdm(total=len(names), desc="figures", disable=not progress) as bar,
        deferred_interrupt() as interrupted,
        contextlib.closing(_make_all(names, out, quick, interrupted)) as finished,
    ):
        for result in finished:
            by_name[result.name] = result
            bar.set_postfix_str(result.name)
            bar.update()
    pairs = [(figure, by_name[figure.name]) for figure in FIGURES if figure.name in by_name]
    results = [result for _, result in pairs]
    claims = [
        dict(figure=result.name, **claim._asdict())
        for result in results
        for claim in result.claims
    ]
    pages = {
        "explorer.html": explorer.page(),
        "claims.json": json.dumps(claims, indent=1) + "\n",
        "index.html": report_page(out, pairs, quick),
    }
    for name, text in pages.items():
        with whole_file(out / name) as path:
            path.write_text(text, encoding="utf-8")
    return results


def disagreements(results: Sequence[FigureResult]) -> list[str]:
    """Returns a line for each figure that failed, and for each claim whose verdict is not
    the recorded one."""
    failed = [result for result in results if result.failure]
    lines = [f"{result.name} failed: {result.failure}" for result in failed]
    for result in results:
        lines += [
            f"{result.name}: {claim.statement!r} {claim.verdict}, on record: "
            f"{claim.recorded} ({claim.evidence})"
            for claim in result.claims
            if claim.verdict != claim.recorded
        ]
    return lines


def _make_all(
    names: Sequence[str], out: Path, quick: bool, interrupted: Event
) -> Generator[FigureResult, None, None]:
    """Yields the results as figures are finished.

    On CPUs there is a process for each core, because most of the time goes into compiling,
    which uses one core. Even processes take figures from the begin of the list and odd ones
    from its end, so that neighbours, which share compiled programs, meet in one process.

    A single figure is made in a process too: its numbers then have the same bits as in a
    run of all figures, whose processes compile with other options than this one.
    """
    if not defaults.on_cpu():
        yield from (make_figure(name, out, quick) for name in names)
        return
    remaining = deque(names)
    workers = [Worker() for _ in range(min(os.cpu_count() or 1, len(names)))]
    busy: dict[Connection, tuple[int, str]] = {}

    def submit_next(i: int) -> None:
        name = remaining.pop() if i % 2 else remaining.popleft()
        busy[workers[i].submit(make_figure, name, out, quick)] = i, name

    with _environment(out):
        try:
            for i in range(len(workers)):
                submit_next(i)
            while busy:
                if interrupted.is_set():
                    raise KeyboardInterrupt
                for ready in wait(list(busy), timeout=0.2):
                    i, name = busy.pop(ready)  # pyright: ignore
                    try:
                        result = workers[i].result()
                    except WorkerDied as error:
                        result = FigureResult(name, failure=str(error))
                    if remaining:
                        submit_next(i)
                    yield result
        finally:
            for worker in workers:
                worker.stop()
            # Files that a process was writing when it died or was stopped here.
            remove_unfinished(out / "figures")
            remove_unfinished(out / "arrays")
            if busy:
                _remove_newest_programs(out)


def _remove_newest_programs(out: Path) -> None:
    """Removes the compiled programs that JAX may have been writing when its process was
    stopped: it writes them in place, so the last one may be incomplete."""
    for path in out.glob(f"{_COMPILED}/*"):
        if path.is_file() and path.stat().st_mtime > time.time() - 10:
            path.unlink()


@contextlib.contextmanager
def _environment(out: Path) -> Iterator[None]:
    """Sets the environment variables of the processes that are started inside.

    Most of their time goes into compiling, so they use options that compile faster, and
    share a cache of compiled programs. On some CPUs XLA takes files of this cache for
    another machine's and logs a long warning each time that it reads one, so only fatal
    errors are logged.
    """
    before = dict(os.environ)
    quick_options = as_flags(supported(QUICK_TO_COMPILE))
    flags = f"{os.environ.get('XLA_FLAGS', '')} {quick_options}"
    cache = str((out / _COMPILED).resolve())
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


def make_figure(name: str, out: Path, quick: bool) -> FigureResult:
    """Computes one figure, draws it as PNG and PDF, and checks its claims."""
    try:
        figure = _figure(name)
        arrays = _arrays(figure, out, quick)
        for title, draw in figure.drawings.items():
            paths = [out / "figures" / f"{title}.{ending}" for ending in ("png", "pdf")]
            save(draw(arrays), *paths)
        configs = {label: repr(config) for label, config in figure.configs(quick).items()}
        claims = figure.claims(arrays)
    except NotAvailable as error:
        return FigureResult(name, unavailable=str(error))
    except Exception as error:
        first_line, *_ = f"{type(error).__name__}: {error}".splitlines()
        text = "".join(traceback.format_exception(error))
        return FigureResult(name, failure=first_line, traceback=text)
    return FigureResult(name, claims, configs, tuple(figure.drawings))


def _arrays(figure: PaperFigure, out: Path, quick: bool) -> Arrays:
    """Returns the figure's numbers: the stored ones, or else new ones, which it stores."""
    path, note = (out / "arrays" / f"{figure.name}.{x}" for x in ("npz", "json"))
    current = fingerprint(figure.name, quick)
    arrays = _stored_arrays(path, note, current)
    if arrays is None:
        arrays = figure.compute(quick)
        # The note must never describe other arrays than those beside it.
        note.unlink(missing_ok=True)
        with whole_file(path) as unfinished:
            np.savez_compressed(unfinished, **arrays)  # pyright: ignore[reportArgumentType]
        with whole_file(note) as unfinished:
            unfinished.write_text(json.dumps(current, indent=1))
    return arrays


def _stored_arrays(path: Path, note: Path, current: dict[str, Any]) -> Arrays | None:
    """Returns the stored arrays if their fingerprint is the current one."""
    try:
        if json.loads(note.read_text()) != current:
            return None
        with np.load(path) as file:
            return dict(file)
    # A damaged file raises almost any error; its arrays can be computed again.
    except Exception:
        return None


_WITHOUT_NUMBERS = ("_cli", "_report", "plot")
"""Folders of the package that no number of a figure depends on."""


def fingerprint(name: str, quick: bool) -> dict[str, Any]:
    """Returns what the numbers of a figure depend on: the package's source, except for
    drawing, the command line, the report and other figures; versions; and the mode."""
    package = Path(__file__).parents[1]
    other_figures = {figure.name for figure in FIGURES} - {name}
    without_numbers = {"__init__", "figure", "claim", *other_figures}
    digest = hashlib.sha256()
    for path in sorted(package.rglob("*.py")):
        folder, *inner = path.relative_to(package).parts
        if folder in _WITHOUT_NUMBERS:
            continue
        if folder == "paper" and Path(inner[0]).stem in without_numbers:
            continue
        digest.update(path.read_bytes())
    packages = ("jax", "jaxlib", "diffrax", "numpy")
    versions = {p: importlib.metadata.version(p) for p in packages}
    return dict(source=digest.hexdigest(), versions=versions, quick=quick)
