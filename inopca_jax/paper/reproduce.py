"""The whole paper at once, computing only what has changed."""

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

import equinox as eqx
import numpy as np
from tqdm import tqdm

from .._engine import defaults
from .._files import remove_unfinished, whole_file
from .._interrupt import deferred_interrupt
from .._xla import QUICK_TO_COMPILE, as_flags, supported
from ..data import NotAvailable
from ..plot import save
from . import explorer
from .claim import Made
from .figures import FIGURES, QUICK, drawings_of, figure
from .report import report_page
from .worker import Worker, WorkerDied

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

_COMPILED = ".compiled"
"""The folder, in that of the report, of the programs that JAX has compiled for it."""


def reproduce(
    out: str | Path,
    figures: Sequence[str] = (),
    quick: bool = False,
    progress: bool = False,
) -> list[Made]:
    """Computes, draws and judges the figures, and writes the report to the folder `out`.

    By default all; in a quick run, of fewer trials, one of each kind.
    Figures whose numbers are there, of the same code and versions, are not computed again.
    One whose data are not available is left out, and one that fails costs no other. After
    Ctrl-C the same call goes on with what is left.

    On a CPU the figures are made in other processes, so a script has to call this below
    `if __name__ == "__main__":`.
    """
    figures = figures or (QUICK if quick else FIGURES)
    for name in figures:
        if name not in FIGURES:
            raise ValueError(
                f"figure = {name!r} is not there: pass some of {', '.join(FIGURES)}."
            )
    out = Path(out)
    try:
        return _reproduce(out, sorted(set(figures), key=_ORDER.index), quick, progress)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(
            f"finished figures are in {out}; the same command goes on from there"
        ) from None


def _reproduce(out: Path, names: list[str], quick: bool, progress: bool) -> list[Made]:
    for folder in (out / "figures", out / "arrays"):
        folder.mkdir(parents=True, exist_ok=True)
    made: dict[str, Made] = {}
    with (
        tqdm(total=len(names), desc="figures", disable=not progress) as bar,
        deferred_interrupt() as interrupted,
        contextlib.closing(_all(names, out, quick, interrupted)) as finished,
    ):
        for result in finished:
            made[result.name] = result
            bar.set_postfix_str(result.name)
            bar.update()
    results = [made[name] for name in FIGURES if name in made]
    pages = {
        "explorer.html": explorer.page(),
        "claims.json": json.dumps(_listed(results), indent=1) + "\n",
        "index.html": report_page(out, results, quick),
    }
    for name, text in pages.items():
        with whole_file(out / name) as path:
            path.write_text(text, encoding="utf-8")
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


def _all(
    names: Sequence[str], out: Path, quick: bool, interrupted: Event
) -> Generator[Made, None, None]:
    """The figures as they are finished; on CPUs by a process a core, for what they do for
    the most part, to compile, keeps one core busy.

    There a single figure has a process too: its numbers then have the same bits as in a
    run of all figures, whose processes compile with other options than this one.
    """
    if not defaults.on_cpu():
        yield from (make(name, out, quick) for name in names)
        return
    left = deque(names)
    workers = [Worker() for _ in range(min(os.cpu_count() or 1, len(names)))]
    busy: dict[Connection, tuple[int, str]] = {}

    def give_next_to(i: int) -> None:
        name = left.pop() if i % 2 else left.popleft()
        busy[workers[i].submit(make, name, out, quick)] = i, name

    with _environment(out):
        try:
            for i in range(len(workers)):
                give_next_to(i)
            while busy:
                if interrupted.is_set():
                    raise KeyboardInterrupt
                for ready in wait(list(busy), timeout=0.2):
                    i, name = busy.pop(ready)  # pyright: ignore
                    try:
                        made = workers[i].result()
                    except WorkerDied as error:
                        made = Made(name, failed=str(error))
                    if left:
                        give_next_to(i)
                    yield made
        finally:
            for worker in workers:
                worker.stop()
            # What a process that died, or was ended here, did not get to finish.
            remove_unfinished(out / "figures")
            remove_unfinished(out / "arrays")
            if busy:
                _remove_newest_programs(out)


def _remove_newest_programs(out: Path) -> None:
    """Removes the compiled programs that JAX may have been writing when its process was
    ended: it writes them in place, and the last one may not be whole."""
    for path in out.glob(f"{_COMPILED}/*"):
        if path.is_file() and path.stat().st_mtime > time.time() - 10:
            path.unlink()


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


def make(name: str, out: Path, quick: bool) -> Made:
    """One figure: its arrays, the figure as PNG and PDF, its claims."""
    about = ""
    try:
        module = figure(name)
        about = module.__doc__ or ""
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
    except NotAvailable as error:
        return Made(name, about, missing=str(error))
    except Exception as error:
        line, *_ = f"{type(error).__name__}: {error}".splitlines()
        text = "".join(traceback.format_exception(error))
        return Made(name, about, failed=line, traceback=text)
    return Made(name, about, claims, configs, tuple(drawings))


def _arrays(name: str, out: Path, quick: bool) -> dict[str, np.ndarray]:
    """The numbers behind a figure, computed if they are not there."""
    path, note = (out / "arrays" / f"{name}.{x}" for x in ("npz", "json"))
    mark = fingerprint(name, quick)
    found = _stored(path, note, mark)
    if found is None:
        found = figure(name).compute(quick)
        # The note is there only while the arrays that it tells of are.
        note.unlink(missing_ok=True)
        with whole_file(path) as unfinished:
            np.savez_compressed(unfinished, **found)
        with whole_file(note) as unfinished:
            unfinished.write_text(json.dumps(mark, indent=1))
    return found


def _stored(path: Path, note: Path, mark: dict[str, Any]) -> dict[str, np.ndarray] | None:
    """The arrays in a file whose note has this mark, if they can be read."""
    try:
        if json.loads(note.read_text()) != mark:
            return None
        with np.load(path) as file:
            return dict(file)
    # A damaged file raises almost anything; what was in it can be computed again.
    except Exception:
        return None


_WITHOUT_NUMBERS = ("reproduce.py", "worker.py", "figures.py", "page.py")
"""Files that no number depends on."""


def fingerprint(name: str, quick: bool) -> dict[str, Any]:
    """What the numbers of a figure depend on: the package, but for what draws, the
    commands and the other figures; the versions; the mode."""
    package = Path(__file__).parents[1]
    beside = {"_cli", "plot", "explorer", "report", "__pycache__", *FIGURES}
    digest = hashlib.sha256()
    for path in sorted(package.rglob("*.py")):
        parts = path.relative_to(package).with_suffix("").parts
        others = {part for part in parts if part in beside} - {name}
        if not others and path.name not in _WITHOUT_NUMBERS:
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
