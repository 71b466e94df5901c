"""`inopca simulate` and `inopca limits`."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Literal

import jax.random as jr
import numpy as np

import inopca_jax as ino

from .._check import require, require_whole
from .._order_parameters.predict import is_regular
from . import output
from .flags import Reads
from .problem import LABELS, Problem, require_runnable, require_seed


@dataclass(frozen=True)
class Simulate:
    """Simulate trials and compare them with theory: a table, a file and a figure."""

    problem: Problem = field(default_factory=Problem)
    engine: Literal["chain", "stream", "diffusion"] = "chain"
    """chain: exact in law, O(1) per sample. stream: the p-dimensional algorithm.
    diffusion: an approximation with steps of many samples, for large p."""
    dt: float = 0.1
    """diffusion: the time step, where t = 1 is p samples."""
    chunk: int | None = None
    """chain, stream: for how many steps to draw noise at once. Does not change results."""
    dtype: Literal["float32", "float64"] | None = None
    """The precision of the state; by default the engine's."""
    trials: int = 20
    """The number of independent trials."""
    seed: int = 0
    """The same seed gives the same bits."""
    reference: int = 0
    """The number of trials of the p-dimensional algorithm to compare with."""
    reference_until: float = 5.0
    """With --reference: the last time of these trials."""
    out: Path | None = None
    """Where to write the numbers: .npz (all trials) or .csv (the table at all times)."""
    plot: Path | None = None
    """Where to draw the figure: .png, .pdf or .svg."""
    bars: float = 1.0
    """With --plot: the error bars, in standard deviations."""
    bands: bool | None = None
    """Also predict the standard deviations over trials; by default with --plot."""
    progress: bool | None = None
    """Show a progress bar; by default if the output is a terminal."""

    READS: ClassVar[Reads] = {
        "engine": {"chain": ("chunk",), "stream": ("chunk",), "diffusion": ("dt",)},
        "reference": {True: ("reference_until",)},
        "plot": {True: ("bars",)},
    }

    def run(self) -> None:
        config, engine = self.problem.build(), self._engine()
        require("bars", self.bars, lambda x: np.isfinite(x) & (x >= 0), "pass bars >= 0")
        require_seed(self.seed)
        require_whole("trials", self.trials, 1, "pass at least 1 trial")
        require_whole("reference", self.reference, 0, "pass a number of trials, or 0")
        if self.bands and not is_regular(config):
            raise ValueError(
                "bands = True is not allowed: the first sample moves the estimate by more "
                "than its length, and then no theory predicts the standard deviations. "
                "Leave it out, or pass t0 > 0 or a b0 of order p."
            )
        require_runnable(config, engine)
        short = config
        if self.reference:
            short = output.until(config, self.reference_until)
            require_runnable(short, ino.Stream())
        output.require_writable("out", self.out, (".npz", ".csv"))
        output.require_writable("plot", self.plot, (".png", ".pdf", ".svg"))
        bar = output.shows_progress(self.progress)
        key_runs, key_reference = jr.split(jr.key(self.seed))
        runs = ino.simulate(
            config, key=key_runs, trials=self.trials, engine=engine, progress=bar
        )
        output.require_finite(runs)
        reference = None
        if self.reference:
            reference = ino.simulate(
                short,
                key=key_reference,
                trials=self.reference,
                engine=ino.Stream(),
                progress=bar,
            )
        bands = self.plot is not None if self.bands is None else self.bands
        theory = ino.predict(config, error_bars=bands)
        if not ino.keeps_sign(config):
            print("note: a trial may converge to either sign, so q stands for |q|")
            runs = runs.abs()
            reference = None if reference is None else reference.abs()
        label = LABELS[self.problem.algorithm.rule]
        output.show(config, label, theory, runs, reference)
        if self.out is not None:
            output.write(self.out, theory, runs, reference)
        if self.plot is not None:
            output.figure(self.plot, config, label, theory, runs, reference, self.bars)

    def _engine(self) -> ino.AbstractEngine:
        if self.engine == "diffusion":
            return ino.Diffusion(self.dt, self.dtype)
        engines = {"chain": ino.Chain, "stream": ino.Stream}
        return engines[self.engine](chunk=self.chunk, dtype=self.dtype)


@dataclass(frozen=True)
class Limits:
    """Print the steady state, the transition and the bounds of any algorithm."""

    problem: Problem = field(default_factory=Problem)

    def run(self) -> None:
        output.show_limits(self.problem.build())
