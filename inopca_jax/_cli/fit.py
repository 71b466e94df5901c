"""`inopca fit`."""

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
from .._streaming.scaled import Parameters, ScaledStream
from . import output

_ROWS = 4096


@dataclass(frozen=True)
class Fit:
    """Estimate the principal components of the rows of a .npy file, in one pass."""

    data: Positional[Path]
    """A .npy file of shape (samples, features), which may be larger than memory."""
    components: int = 2
    """The number of components."""
    rule: Literal["ino-pca", "ccipca", "oja", "ada-oja", "krasulina", "cubic"] = "ino-pca"
    """ccipca is most accurate if the data do not change; ino-pca follows changes."""
    tau: float | Literal["auto"] = "auto"
    """The rate; tau / features is the weight of a sample. auto: from the first samples."""
    amnesic: float | None = None
    """ccipca: the amnesic parameter, a larger weight of late samples; by default 2."""
    center: bool = True
    """Subtract the running mean."""
    seed: int = 0
    """The seed of random directions that replace components with no data."""
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
        parameters, bar = self._parameters(), output.shows_progress(self.progress)
        samples = _open_samples(self.data)
        require_whole(
            "components", self.components, 1, "pass a whole number of components, from 1"
        )
        if self.components > samples.shape[1]:
            raise ValueError(
                f"components = {self.components} is not allowed: {self.data} has "
                f"{samples.shape[1]} features."
            )
        total = _total_variance(self.data, samples, self.center, bar)
        stream = ScaledStream.empty(parameters, samples.shape[1], samples.dtype)
        # Another stream compiles all programs, so that the time below is the fit's.
        stream.updated(samples[: parameters.first_samples]).results(self.seed)
        began = time.perf_counter()
        with deferred_interrupt() as interrupted:
            for piece in _pieces(samples, "fit", bar):
                stream = stream.updated(piece)
                if interrupted.is_set():
                    break
            self._report(stream, samples, total, time.perf_counter() - began)
            if interrupted.is_set():
                raise KeyboardInterrupt("the results are those of the samples before")

    def _parameters(self) -> Parameters:
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
                f"tau = {self.tau} is not allowed: {self.rule} has its own rate. Leave it "
                "out, or pass another rule."
            )
        if self.amnesic is not None and self.rule != "ccipca":
            raise ValueError(
                f"amnesic = {self.amnesic} is not allowed: {self.rule} does not read it. "
                "Leave it out, or pass --rule ccipca."
            )
        if self.tau != "auto":
            require("tau", self.tau, lambda x: np.isfinite(x) & (x > 0), "pass a rate > 0")
        return Parameters(self.components, rules[self.rule](), self.tau, self.center)

    def _report(
        self, stream: ScaledStream, samples: np.ndarray, total: float, seconds: float
    ) -> None:
        n, (components, variance, mean, tau) = (
            stream.samples_seen,
            stream.results(self.seed),
        )
        rate = f"tau = {tau:.4g}" if isinstance(tau, float) else type(tau).__name__
        print(
            f"{n:,} samples of {samples.shape[1]:,} features ({samples.dtype}), "
            f"{n / seconds:,.0f} per second; {rate}"
        )
        print(f"{'component':<12}{'variance':>14}{'share':>10}{'cumulative':>12}")
        share, cumulative = variance / total, np.cumsum(variance) / total
        for i in range(len(variance)):
            print(f"{i + 1:<12}{variance[i]:>14.6g}{share[i]:>10.4f}{cumulative[i]:>12.4f}")
        if self.out is not None:
            with whole_file(self.out) as path:
                np.savez_compressed(
                    path,
                    components=components,
                    explained_variance=variance,
                    mean=mean,
                    total_variance=total,
                    samples=n,
                )
            print(f"components: {self.out}")
        if self.plot is not None:
            from .. import plot

            plot.save(plot.scree(variance, total), self.plot)
            print(f"figure: {self.plot}")


def _open_samples(path: Path) -> np.ndarray:
    """Returns the array in a .npy file as a memory map, checked."""
    if path.suffix != ".npy" or not path.is_file():
        raise ValueError(f"data = {path} is not allowed: pass a .npy file that exists.")
    try:
        # Unlike `np.load` it reads no other format, and never unpickles.
        samples = np.lib.format.open_memmap(path, mode="r")
    # A damaged file raises errors of many types, some with messages of several lines.
    except Exception as error:
        why = (str(error).splitlines() or [type(error).__name__])[0].rstrip(".")
        raise ValueError(
            f"data = {path} cannot be read ({why}): pass a file that np.save wrote."
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
    """Yields the rows a few thousand at a time, with a progress bar."""
    rows = max(1, min(_ROWS, 2**24 // samples.shape[1]))
    with tqdm(total=len(samples), unit=" samples", desc=name, disable=not bar) as progress:
        for begin in range(0, len(samples), rows):
            piece = samples[begin : begin + rows]
            yield piece
            progress.update(len(piece))


def _total_variance(path: Path, samples: np.ndarray, center: bool, bar: bool) -> float:
    """Returns the sum of the variances of all features; raises an error if a sample is not
    finite, before the fit begins."""
    count, mean, squares, power = 0, np.zeros(samples.shape[1]), 0.0, 0
    for piece in _pieces(samples, "check", bar):
        with np.errstate(over="ignore"):  # numbers wider than float64
            piece = piece.astype(float)
        finite = np.isfinite(piece)
        if not finite.all():
            row = count + int(np.argmin(finite.all(axis=1)))
            raise ValueError(
                f"data = {path} contains NaN or infinity, first in row {row}: remove or "
                "impute it."
            )
        if not count:  # scaled by a power of two, so that squares do not overflow
            _, power = np.frexp(np.max(np.abs(piece)))
        count += len(piece)
        with np.errstate(over="ignore", invalid="ignore"):
            piece = np.ldexp(piece, -power)
            if center:  # adds the squares about the two means, and moves to the new mean
                count_before = count - len(piece)
                piece_mean = piece.mean(axis=0)
                shift = np.sum((piece_mean - mean) ** 2)
                squares += np.sum((piece - piece_mean) ** 2)
                squares += shift * count_before * len(piece) / count
                mean += (piece_mean - mean) * len(piece) / count
            else:
                squares += np.sum(piece**2)
    with np.errstate(over="ignore"):
        total = float(np.ldexp(squares / max(count - int(center), 1), 2 * power))
    if not np.isfinite(total):
        raise ValueError(
            f"data = {path} has a variance above {np.finfo(float).max:.3g}, the largest "
            "number in float64: rescale the data."
        )
    return total or 1.0
