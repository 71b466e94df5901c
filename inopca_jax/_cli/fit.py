"""`inopca fit`."""

import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from tqdm import tqdm
from tyro.conf import Positional

import inopca_jax as ino

from .._check import require, require_whole
from .._files import whole_file
from .._interrupt import deferred_interrupt
from . import output

_ROWS = 4096


@dataclass(frozen=True)
class Fit:
    """The principal components of the rows of a .npy file, in one pass over them."""

    data: Positional[Path]
    """A .npy of shape (samples, features). It is mapped, not read, into memory."""
    components: int = 2
    """How many components."""
    rule: Literal["ino-pca", "ccipca", "oja", "ada-oja", "krasulina", "cubic"] = "ino-pca"
    """ccipca is the most accurate if the data do not change; ino-pca follows them."""
    tau: float | Literal["auto"] = "auto"
    """The rate, of which tau / features is the weight of a sample; auto: from the first."""
    amnesic: float | None = None
    """ccipca: how much more a late sample counts than an early one; by default 2."""
    center: bool = True
    """Subtract the running mean."""
    seed: int = 0
    """Of directions that stand for components which no sample shows."""
    out: Path | None = None
    """Where to write the components, their variances and the mean: .npz."""
    plot: Path | None = None
    """Where to draw the scree plot: .png, .pdf or .svg."""
    progress: bool | None = None
    """Show a progress bar; by default if the output is a terminal."""

    def run(self) -> None:
        require("seed", self.seed, lambda n: (n >= 0) & (n < 2**32), "pass 0 to 2^32 - 1")
        output.require_writable("out", self.out, (".npz",))
        output.require_writable("plot", self.plot, (".png", ".pdf", ".svg"))
        model, bar = self._model(), self.progress
        bar = sys.stderr.isatty() if bar is None else bar
        samples = _mapped(self.data)
        require_whole(
            "components", self.components, 1, "pass a whole number of components, from 1"
        )
        if self.components > samples.shape[1]:
            raise ValueError(
                f"components = {self.components} is not allowed: {self.data} has "
                f"{samples.shape[1]} features."
            )
        total = _total_variance(self.data, samples, self.center, bar)
        # Another model, so that all is compiled.
        self._model().fit(samples[: max(64, 4 * self.components)]).components_  # noqa: B018
        began = time.perf_counter()
        with deferred_interrupt() as interrupted:
            for rows in _pieces(samples, "fit", bar):
                model.partial_fit(rows)
                if interrupted.is_set():
                    break
            self._finish(model, samples, total, time.perf_counter() - began)
            if interrupted.is_set():
                raise KeyboardInterrupt("this is what came before")

    def _model(self) -> Any:
        rules: dict[str, Callable[[], Any]] = {
            "ino-pca": lambda: ino.InoPCA,
            "ccipca": lambda: ino.CCIPCA(2.0 if self.amnesic is None else self.amnesic),
            "oja": lambda: ino.Oja,
            "ada-oja": ino.AdaOja,
            "krasulina": lambda: ino.Krasulina,
            "cubic": lambda: ino.Cubic,
        }
        if self.tau != "auto" and self.rule in ("ccipca", "ada-oja"):
            raise ValueError(
                f"tau = {self.tau} is not allowed: {self.rule} has its own; leave it out, "
                "or pass another rule."
            )
        if self.amnesic is not None and self.rule != "ccipca":
            raise ValueError(
                f"amnesic = {self.amnesic} is not allowed: {self.rule} does not read it; "
                "leave it out, or pass --rule ccipca."
            )
        if self.tau != "auto":
            require("tau", self.tau, lambda x: np.isfinite(x) & (x > 0), "pass a rate > 0")
        return ino.StreamingPCA(
            self.components,
            rule=rules[self.rule](),
            tau=self.tau,
            center=self.center,
            random_state=self.seed,
        )

    def _finish(self, model: Any, samples: np.ndarray, total: float, took: float) -> None:
        n, variance = model.n_samples_seen_, model.explained_variance_
        rate = model.tau_ if isinstance(model.tau_, float) else type(model.tau_).__name__
        rate = f"tau = {rate:.4g}" if isinstance(rate, float) else rate
        print(
            f"{n:,} samples of {samples.shape[1]:,} features ({samples.dtype}), "
            f"{n / took:,.0f} a second; {rate}"
        )
        print(f"{'component':<12}{'variance':>14}{'share':>10}{'all':>10}")
        for i, (one, upto) in enumerate(zip(variance, np.cumsum(variance), strict=True)):
            print(f"{i + 1:<12}{one:>14.6g}{one / total:>10.4f}{upto / total:>10.4f}")
        if self.out is not None:
            with whole_file(self.out) as path:
                np.savez_compressed(
                    path,
                    components=model.components_,
                    explained_variance=variance,
                    mean=model.mean_,
                    total_variance=total,
                    samples=n,
                )
            print(f"components: {self.out}")
        if self.plot is not None:
            from .. import plot

            plot.save(plot.scree(variance, total), self.plot)
            print(f"figure: {self.plot}")


def _mapped(path: Path) -> np.ndarray:
    if path.suffix != ".npy" or not path.is_file():
        raise ValueError(f"data = {path} is not allowed: pass a .npy file that exists.")
    try:
        # Unlike `np.load` it takes no other format, and never unpickles.
        samples = np.lib.format.open_memmap(path, mode="r")
    # A damaged file raises almost anything, in several lines.
    except Exception as error:
        why = (str(error).splitlines() or [type(error).__name__])[0].rstrip(".")
        raise ValueError(
            f"data = {path} cannot be read ({why}): pass a file that np.save has written."
        ) from None
    if samples.ndim != 2 or not samples.size:
        raise ValueError(
            f"data = {path} has shape {samples.shape}: pass (samples, features), at least "
            "one of each."
        )
    if samples.dtype.kind not in "iuf":
        raise ValueError(f"data = {path} has type {samples.dtype}: pass real numbers.")
    return samples


def _pieces(samples: np.ndarray, name: str, bar: bool) -> Iterator[np.ndarray]:
    """The rows, some at a time; a bar counts them."""
    rows = max(1, min(_ROWS, 2**24 // samples.shape[1]))
    with tqdm(total=len(samples), unit=" samples", desc=name, disable=not bar) as shown:
        for begin in range(0, len(samples), rows):
            piece = samples[begin : begin + rows]
            yield piece
            shown.update(len(piece))


def _total_variance(path: Path, samples: np.ndarray, center: bool, bar: bool) -> float:
    """Of all features; and every sample is looked at before any is learned from."""
    count, mean, squares, power = 0, np.zeros(samples.shape[1]), 0.0, 0
    for piece in _pieces(samples, "check", bar):
        with np.errstate(over="ignore"):  # of numbers wider than float64
            piece = piece.astype(float)
        finite = np.isfinite(piece)
        if not finite.all():
            row = count + int(np.argmin(finite.all(axis=1)))
            raise ValueError(
                f"data = {path} contains NaN or infinity, first in row {row}: remove or "
                "impute it."
            )
        if not count:  # as in `suitable_unit`, so that squares are numbers
            _, power = np.frexp(np.max(np.abs(piece)))
        count += len(piece)
        with np.errstate(over="ignore", invalid="ignore"):
            piece = np.ldexp(piece, -power)
            if center:  # the squares about the mean until now, moved to the new one
                before = count - len(piece)
                own = piece.mean(axis=0)
                away = np.sum((own - mean) ** 2)
                squares += np.sum((piece - own) ** 2) + away * before * len(piece) / count
                mean += (own - mean) * len(piece) / count
            else:
                squares += np.sum(piece**2)
    with np.errstate(over="ignore"):
        total = float(np.ldexp(squares / max(count - int(center), 1), 2 * power))
    if not np.isfinite(total):
        raise ValueError(
            f"data = {path} has a variance beyond float64, the largest number of which is "
            f"{np.finfo(float).max:.3g}. Rescale the data."
        )
    return total or 1.0
