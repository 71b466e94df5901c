"""`inopca fit`."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
from tqdm import tqdm
from tyro.conf import Positional

import inopca_jax as ino

from .._check import positive, refuse, require, require_whole
from .._interrupt import deferred_interrupt
from .._streaming.scaled import Parameters, ScaledStream
from .flags import Reads
from .output import Files, print_columns
from .problem import LABELS, require_seed

_ROWS = 4096


@dataclass(frozen=True)
class Fit:
    """Estimate the principal components of the rows of a .npy file, in one pass."""

    data: Positional[Path]
    """A .npy file of shape (samples, features), which may be larger than memory."""
    components: int = 2
    """The number of components."""
    rule: Literal["sketch", "ino-pca", "ccipca", "oja", "ada-oja", "krasulina", "cubic"] = (
        "sketch"
    )
    """sketch is the most accurate, and follows changes within its memory."""
    memory: float = np.inf
    """sketch: after how many samples the weight of one has fallen to 1/e."""
    tau: float | Literal["auto"] = "auto"
    """The rate; tau / features is the weight of a sample. auto: from the first samples."""
    amnesic: float = 2.0
    """ccipca: the amnesic parameter, a larger weight of late samples."""
    center: bool = True
    """Subtract the running mean."""
    seed: int = 0
    """The seed of random directions that replace components with no data."""
    files: Files = field(default_factory=Files)

    READS: ClassVar[Reads] = {
        "tau": [{"rule": ("ino-pca", "oja", "krasulina", "cubic")}],
        "amnesic": [{"rule": "ccipca"}],
        "memory": [{"rule": "sketch"}],
    }

    def run(self) -> None:
        require_seed(self.seed)
        self.files.require_writable()
        if self.tau != "auto":
            require("tau", self.tau, positive, "pass a rate > 0")
        parameters, samples = self._parameters(), _open_samples(self.data)
        remedy = "pass a whole number of components, from 1"
        require_whole("components", self.components, 1, remedy)
        if self.components > samples.shape[1]:
            remedy = f"{self.data} has {samples.shape[1]} features"
            refuse("components", self.components, remedy)
        total = self._total_variance(samples)
        with deferred_interrupt() as interrupted, self._bar("fit", samples) as bar:
            # Another stream compiles all programs, so that the time below is the fit's.
            bar.set_postfix_str("compiling")
            stream = ScaledStream.empty(parameters, samples.shape[1], samples.dtype)
            stream.updated(samples[: stream.first_samples]).results(self.seed)
            bar.set_postfix_str("")
            began = time.perf_counter()
            for piece in _pieces(samples, bar):
                stream = stream.updated(piece)
                if interrupted.is_set():
                    break
            seconds = time.perf_counter() - began
            bar.close()
            self._report(stream, samples, total, seconds)
            if interrupted.is_set():
                raise KeyboardInterrupt("the results are those of the samples before")

    def _parameters(self) -> Parameters:
        rules: dict[str, Callable[[], Any]] = {
            "sketch": lambda: ino.Sketch,
            "ino-pca": lambda: ino.InoPCA,
            "ccipca": lambda: ino.CCIPCA(self.amnesic),
            "oja": lambda: ino.Oja,
            "ada-oja": ino.AdaOja,
            "krasulina": lambda: ino.Krasulina,
            "cubic": lambda: ino.Cubic,
        }
        rule = rules[self.rule]()
        return Parameters(self.components, rule, self.tau, self.center, self.memory)

    def _bar(self, name: str, samples: np.ndarray) -> tqdm:
        hidden = not self.files.shows_progress
        return tqdm(total=len(samples), unit=" samples", desc=name, disable=hidden)

    def _total_variance(self, samples: np.ndarray) -> float:
        """Returns the sum of the variances of all features; raises an error if a sample is
        not finite, before the fit begins."""
        count, mean, squares, power = 0, np.zeros(samples.shape[1]), 0.0, 0
        with (
            self._bar("check", samples) as bar,
            np.errstate(over="ignore", invalid="ignore"),
        ):
            for piece in _pieces(samples, bar):
                piece = piece.astype(float)  # of numbers wider than float64 some overflow
                finite = np.isfinite(piece).all(axis=1)
                if not finite.all():
                    raise ValueError(
                        f"data = {self.data} contains NaN or infinity, first in row "
                        f"{count + int(np.argmin(finite))}: remove or impute it."
                    )
                if not count:  # scaled by a power of two, so that squares do not overflow
                    _, power = np.frexp(np.max(np.abs(piece)))
                piece = np.ldexp(piece, -power)
                # Adds the squares about the two means, and moves to the mean of both.
                shift = piece.mean(axis=0) - mean if self.center else np.zeros_like(mean)
                squares += np.sum((piece - mean - shift) ** 2)
                squares += np.sum(shift**2) * count * len(piece) / (count + len(piece))
                count += len(piece)
                mean += shift * len(piece) / count
            degrees = max(count - int(self.center), 1)
            total = float(np.ldexp(squares / degrees, 2 * power))
        if not np.isfinite(total):
            raise ValueError(
                f"data = {self.data} has a variance above {np.finfo(float).max:.3g}, the "
                "largest number in float64: rescale the data."
            )
        return total or 1.0

    def _report(
        self, stream: ScaledStream, samples: np.ndarray, total: float, seconds: float
    ) -> None:
        n = stream.samples_seen
        found = stream.results(self.seed)
        components, variance, mean = found.components, found.variance, found.mean
        rate = type(found.tau).__name__
        if found.tau is None or isinstance(found.tau, float):
            value = found.memory if found.tau is None else found.tau
            rate = f"{'memory' if found.tau is None else 'tau'} = {value:.4g}"
        label = "Sketch" if self.rule == "sketch" else LABELS[self.rule]
        print(
            f"{label}, {rate}\n"
            f"{n:,} samples of {samples.shape[1]:,} features ({samples.dtype}), "
            f"{n / seconds:,.0f} per second"
        )
        columns = {
            "component": np.arange(len(variance)) + 1,
            "variance": variance,
            "share": variance / total,
            "cumulative": np.cumsum(variance) / total,
        }
        spec = ".5f" if 0.01 <= variance[0] < 1e6 else ".5e"
        print_columns(columns, component=".0f", variance=spec)
        arrays = dict(components=components, explained_variance=variance)
        self.files.write(arrays | dict(mean=mean, total_variance=total, samples=n))
        self.files.draw(lambda plot: plot.scree(variance, total))


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


def _pieces(samples: np.ndarray, bar: tqdm) -> Iterator[np.ndarray]:
    """Yields the rows a few thousand at a time, and moves the progress bar."""
    rows = max(1, min(_ROWS, 2**24 // samples.shape[1]))
    for begin in range(0, len(samples), rows):
        piece = samples[begin : begin + rows]
        yield piece
        bar.update(len(piece))
