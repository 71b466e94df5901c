"""The command line, `inopca`. It builds from plain numbers what Python users build."""

import sys
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

import jax.random as jr
import numpy as np
import tyro
from tyro.conf import OmitArgPrefixes, OmitSubcommandPrefixes, subcommand

import inopca_jax as ino

from ._check import require


@dataclass(frozen=True)
class Algorithm:
    """The rule and its schedule."""

    rule: Literal[
        "ino-pca", "cubic", "oja", "krasulina", "adaptive-ino-pca", "ada-oja", "ccipca"
    ] = "ino-pca"
    """The algorithm. The last three come with a schedule of their own."""
    schedule: Literal["constant", "harmonic", "adagrad", "oracle", "interpolated"] = (
        "constant"
    )
    """Where the learning rate of the first four comes from."""
    tau: float = 0.5
    """constant: the learning rate."""
    degree: float = 3.0
    """cubic: the power of the norm's penalty."""
    c: float = 5.0
    """harmonic: tau = c / (t + t0 + k0/p)."""
    t0: float | None = None
    """Time before the start. harmonic: 1 by default; ccipca: none, it counts samples."""
    k0: float = 0.0
    """harmonic: samples before the start."""
    b0: float = 1e-5
    """adagrad, ada-oja: the initial b; of order p it makes the limit regular."""
    amnesic: float = 4.0
    """ccipca: the amnesic parameter."""
    knots: tuple[float, ...] = (0.0,)
    """interpolated: the times of the knots."""
    taus: tuple[float, ...] = (0.5,)
    """interpolated: the learning rates at the knots."""

    def build(self) -> ino.AbstractRule:
        t0 = 1.0 if self.t0 is None else self.t0
        named: dict[str, Callable[[], ino.AbstractRule]] = {
            "adaptive-ino-pca": ino.AdaptiveInoPCA,
            "ada-oja": lambda: ino.AdaOja(self.b0),
            "ccipca": lambda: ino.CCIPCA(self.amnesic, self.t0),
        }
        schedules: dict[str, Callable[[], ino.AbstractSchedule]] = {
            "constant": lambda: ino.Constant(self.tau),
            "harmonic": lambda: ino.Harmonic(self.c, t0, self.k0),
            "adagrad": lambda: ino.AdaGrad(self.b0),
            "oracle": ino.Oracle,
            "interpolated": lambda: ino.Interpolated(self.knots, self.taus),
        }
        if self.rule in named:
            if self.schedule != "constant":
                raise ValueError(
                    f"schedule = {self.schedule} is not allowed: {self.rule} has a "
                    "schedule of its own; choose ino-pca, cubic, oja or krasulina."
                )
            return named[self.rule]()
        schedule = schedules[self.schedule]()
        if self.rule == "cubic":
            return ino.Cubic(schedule, self.degree)
        plain = {"ino-pca": ino.InoPCA, "oja": ino.Oja, "krasulina": ino.Krasulina}
        return plain[self.rule](schedule)


LABELS = {
    "ino-pca": "INO-PCA",
    "cubic": "cubic",
    "oja": "Oja",
    "krasulina": "Krasulina",
    "adaptive-ino-pca": "adaptive INO-PCA",
    "ada-oja": "AdaOja",
    "ccipca": "CCIPCA",
}

SpikeName = Literal["uniform", "shifted-exponential", "sparse", "gaussian"]


@dataclass(frozen=True)
class Model:
    """The stream."""

    p: int | float = 10_000
    """The dimension."""
    omega: float = 1.0
    """The signal-to-noise ratio."""
    spike: SpikeName = "uniform"
    """The law of the spike's entries (Examples 1, 2, 3 of the paper, and normal)."""
    rate: float = 1.0
    """shifted-exponential: the rate."""
    shift: float = 0.9
    """shifted-exponential: the shift."""
    rho: float = 0.05
    """sparse: the fraction of entries that are not zero."""
    switch_times: tuple[float, ...] = ()
    """When the spike changes, if it does."""
    switch_spikes: tuple[SpikeName, ...] = ()
    """The laws of the spikes that follow, one for each switch time."""
    switch_omegas: tuple[float, ...] = ()
    """Their signal-to-noise ratios; by default that of the first."""

    def build(self) -> ino.AbstractModel:
        first = self._one(self.spike, self.omega)
        if not (self.switch_times or self.switch_spikes or self.switch_omegas):
            return first
        omegas = self.switch_omegas or (self.omega,) * len(self.switch_spikes)
        if not len(self.switch_times) == len(self.switch_spikes) == len(omegas):
            raise ValueError(
                f"switch_times = {self.switch_times}, switch_spikes = "
                f"{self.switch_spikes}, switch_omegas = {self.switch_omegas} do not fit: "
                "give one spike, and one omega or none at all, for each time."
            )
        later = [self._one(s, o) for s, o in zip(self.switch_spikes, omegas, strict=True)]
        return ino.Switching(models=[first, *later], times=self.switch_times)  # pyright: ignore

    def _one(self, name: SpikeName, omega: float) -> ino.SpikedModel:
        spikes: dict[str, Callable[[], ino.AbstractSpike]] = {
            "uniform": ino.Uniform,
            "shifted-exponential": lambda: ino.ShiftedExponential(self.rate, self.shift),
            "sparse": lambda: ino.Sparse(self.rho),
            "gaussian": ino.Gaussian,
        }
        return ino.SpikedModel(self.p, omega, spikes[name]())  # pyright: ignore


@dataclass(frozen=True)
class Start:
    """Where the estimate begins."""

    start: Literal["warm", "cold"] = "warm"
    """With an overlap of about q0, or with none."""
    q0: float = 0.1
    """warm: the overlap."""
    lam0: float = 1.0
    """The norm, |x|/sqrt(p)."""

    def build(self) -> ino.AbstractStart:
        if self.start == "cold":
            return ino.ColdStart(self.lam0)
        return ino.WarmStart(self.q0, self.lam0)


@dataclass(frozen=True)
class Times:
    """When to look."""

    t_max: float = 50.0
    """The last time; t = 1 is p samples."""
    points: int = 101
    """How many times, equally spaced from 0."""
    ts: tuple[float, ...] = ()
    """The times themselves, instead of the two above."""

    def build(self) -> np.ndarray:
        if self.ts:
            return np.asarray(self.ts, dtype=float)
        if self.points < 1:
            raise ValueError(f"points = {self.points} is not allowed: pass at least 1.")
        if not (np.isfinite(self.t_max) and self.t_max >= 0):
            raise ValueError(f"t_max = {self.t_max} is not allowed: pass a time >= 0.")
        return np.linspace(0.0, self.t_max, self.points)


@dataclass(frozen=True)
class Problem:
    """What every command starts from: the flags of a `Config`."""

    algorithm: Algorithm = field(default_factory=Algorithm)
    model: Model = field(default_factory=Model)
    start: Start = field(default_factory=Start)
    times: Times = field(default_factory=Times)

    def build(self) -> ino.Config:
        return ino.Config(
            rule=self.algorithm.build(),
            model=self.model.build(),
            start=self.start.build(),
            ts=self.times.build(),
        )


@dataclass(frozen=True)
class Simulate:
    """Monte Carlo trials beside the theory, as a table, a file and a figure."""

    problem: Problem = field(default_factory=Problem)
    engine: Literal["chain", "stream"] = "chain"
    """The exact chain, O(1) a step, or the p-dimensional algorithm itself."""
    chunk: int | None = None
    """How many steps' noise to draw at once; changes no bit of the result."""
    dtype: Literal["float32", "float64"] | None = None
    """The precision of the state; by default as the engine sees fit."""
    trials: int = 20
    """How many independent trials."""
    seed: int = 0
    """The same seed gives the same bits."""
    witness: int = 0
    """How many trials of the p-dimensional algorithm to lay over the chain's."""
    witness_until: float = 5.0
    """Up to which time the witnesses run."""
    out: Path | None = None
    """Where to write the numbers: .npz (all trials) or .csv (the table at all times)."""
    plot: Path | None = None
    """Where to draw the figure: .png, .pdf or .svg."""
    bars: float = 1.0
    """The figure's error bars, in standard deviations."""
    progress: bool | None = None
    """Show a progress bar; by default if the output is a terminal."""

    def run(self) -> None:
        from . import _report

        config = self.problem.build()
        require("bars", self.bars, lambda x: np.isfinite(x) & (x >= 0), "pass bars >= 0")
        require("witness", self.witness, lambda n: n >= 0, "pass a number of trials")
        require("seed", self.seed, lambda n: (n >= 0) & (n < 2**32), "pass 0 to 2^32 - 1")
        short = _report.until(config, self.witness_until) if self.witness else config
        _report.require_writable("out", self.out, (".npz", ".csv"))
        _report.require_writable("plot", self.plot, (".png", ".pdf", ".svg"))
        engines = {"chain": ino.Chain, "stream": ino.Stream}
        engine = engines[self.engine](chunk=self.chunk, dtype=self.dtype)
        bar = sys.stderr.isatty() if self.progress is None else self.progress
        key_runs, key_witness = jr.split(jr.key(self.seed))
        theory = ino.mean_field(config)
        runs = ino.simulate(
            config, key=key_runs, trials=self.trials, engine=engine, progress=bar
        )
        witness = None
        if self.witness:
            witness = ino.simulate(
                short,
                key=key_witness,
                trials=self.witness,
                engine=ino.Stream(),
                progress=bar,
            )
        if not _report.keeps_sign(config):
            print("note: a trial may settle on either sign, so q stands for |q|")
            theory, runs = theory.abs(), runs.abs()
            witness = None if witness is None else witness.abs()
        label = LABELS[self.problem.algorithm.rule]
        _report.show(config, label, theory, runs, witness)
        if self.out is not None:
            _report.write(self.out, theory, runs, witness)
        if self.plot is not None:
            _report.figure(self.plot, config, label, theory, runs, witness, self.bars)


@dataclass(frozen=True)
class Limits:
    """Where it ends and what is possible: steady state, transition and bounds."""

    problem: Problem = field(default_factory=Problem)

    def run(self) -> None:
        from . import _report

        _report.show_limits(self.problem.build())


Command = OmitSubcommandPrefixes[
    OmitArgPrefixes[
        Annotated[Simulate, subcommand(name="simulate")]
        | Annotated[Limits, subcommand(name="limits")]
    ]
]


def main(argv: Sequence[str] | None = None) -> int:
    """Returns the exit code: 0, 2 for a request that cannot be met, 130 for Ctrl-C."""
    command = tyro.cli(Command, prog="inopca", args=argv, description=__doc__)  # pyright: ignore
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("default")
            warnings.showwarning = _note
            command.run()
    except (ValueError, OSError, RuntimeError) as error:
        print(f"inopca: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("inopca: stopped; nothing was written", file=sys.stderr)
        return 130
    return 0


def _note(message, *_) -> None:
    print(f"note: {message}", file=sys.stderr)
