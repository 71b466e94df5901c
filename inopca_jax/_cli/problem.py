"""The flags of a `Config`, which most commands share."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import numpy as np

import inopca_jax as ino

from .._check import require, require_whole
from .._engine.trial import require_countable
from .flags import Reads


@dataclass(frozen=True)
class Algorithm:
    """The algorithm: a rule, the schedule of its learning rate, and how many components."""

    rule: Literal[
        "ino-pca", "cubic", "oja", "krasulina", "adaptive-ino-pca", "ada-oja", "ccipca"
    ] = "ino-pca"
    """The rule. The last three have their own schedules."""
    schedule: Literal["constant", "harmonic", "adagrad", "oracle", "interpolated"] = (
        "constant"
    )
    """The schedule of the learning rate, for the first four rules."""
    tau: float = 0.5
    """constant: the learning rate."""
    degree: float = 3.0
    """cubic: the power of the norm in the penalty."""
    c: float = 5.0
    """harmonic: tau = c / (t + t0 + k0/p)."""
    t0: float | None = None
    """harmonic: the time before the start, by default 1.
    ccipca: the count of samples starts at p t0, by default at 2 + amnesic."""
    k0: float = 0.0
    """harmonic: the number of samples before the start."""
    b0: float = 1e-5
    """adagrad, ada-oja: the initial b. With b0 of order p the large-p limit is regular."""
    amnesic: float = 4.0
    """ccipca: the amnesic parameter."""
    knots: tuple[float, ...] = (0.0,)
    """interpolated: the times of the knots."""
    taus: tuple[float, ...] = (0.5,)
    """interpolated: the learning rates at the knots."""
    components: int = 1
    """How many components are estimated."""

    READS: ClassVar[Reads] = {
        "schedule": [{"rule": ("ino-pca", "cubic", "oja", "krasulina")}],
        "tau": [{"schedule": "constant"}],
        "degree": [{"rule": "cubic"}],
        "c": [{"schedule": "harmonic"}],
        "k0": [{"schedule": "harmonic"}],
        "t0": [{"schedule": "harmonic"}, {"rule": "ccipca"}],
        "b0": [{"schedule": "adagrad"}, {"rule": "ada-oja"}],
        "amnesic": [{"rule": "ccipca"}],
        "knots": [{"schedule": "interpolated"}],
        "taus": [{"schedule": "interpolated"}],
    }

    @property
    def label(self) -> str:
        return LABELS[self.rule]

    def build(self) -> ino.AbstractRule:
        named: dict[str, Callable[[], ino.AbstractRule]] = {
            "ino-pca": lambda: ino.InoPCA(self._schedule()),
            "cubic": lambda: ino.Cubic(self._schedule(), self.degree),
            "oja": lambda: ino.Oja(self._schedule()),
            "krasulina": lambda: ino.Krasulina(self._schedule()),
            "adaptive-ino-pca": ino.AdaptiveInoPCA,
            "ada-oja": lambda: ino.AdaOja(self.b0),
            "ccipca": lambda: ino.CCIPCA(self.amnesic, self.t0),
        }
        return named[self.rule]()

    def _schedule(self) -> ino.AbstractSchedule:
        t0 = 1.0 if self.t0 is None else self.t0
        if self.schedule == "interpolated":
            self._require_knots()
        schedules: dict[str, Callable[[], ino.AbstractSchedule]] = {
            "constant": lambda: ino.Constant(self.tau),
            "harmonic": lambda: ino.Harmonic(self.c, t0, self.k0),
            "adagrad": lambda: ino.AdaGrad(self.b0),
            "oracle": ino.Oracle,
            "interpolated": lambda: ino.Interpolated(self.knots, self.taus),
        }
        return schedules[self.schedule]()

    def _require_knots(self) -> None:
        """Raises the errors that `Interpolated` would, with the names of the flags."""
        if not 0 < len(self.knots) == len(self.taus):
            raise ValueError(
                f"knots = {self.knots} is not allowed with taus = {self.taus}: give one "
                "learning rate for each knot, at least one."
            )
        require("knots", self.knots, _increase, "times must be finite and increase")


def _increase(ts: np.ndarray) -> bool:
    return bool(np.all(np.isfinite(ts)) and np.all(np.diff(ts) > 0))


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
    """The model of the samples."""

    p: int | float = 10_000
    """The dimension."""
    omega: tuple[float, ...] = (1.0,)
    """The signal-to-noise ratio; several numbers are those of as many spikes."""
    spike: SpikeName = "uniform"
    """The distribution of the spike's entries (Examples 1, 2, 3 of the paper; normal)."""
    rate: float = 1.0
    """shifted-exponential: the rate."""
    shift: float = 0.9
    """shifted-exponential: the shift."""
    rho: float = 0.05
    """sparse: the fraction of entries that are not zero."""
    turning: float | None = None
    """The rate at which the spikes turn; by default they stand still."""
    observed: float | None = None
    """The fraction of the entries of a sample that are seen; by default all."""
    switch_times: tuple[float, ...] = ()
    """The times at which the spike changes."""
    switch_spikes: tuple[SpikeName, ...] = ()
    """The distributions of the new spikes, one for each switch time."""
    switch_omegas: tuple[float, ...] = ()
    """The signal-to-noise ratios of the new spikes; by default omega."""

    READS: ClassVar[Reads] = {
        flag: [{"spike": spike}, {"switch_spikes": spike}]
        for flag, spike in dict(
            rate="shifted-exponential", shift="shifted-exponential", rho="sparse"
        ).items()
    }

    def build(self) -> ino.AbstractModel:
        first = self._model(self.spike, list(self.omega))
        if not (self.switch_times or self.switch_spikes or self.switch_omegas):
            return first
        omegas = self.switch_omegas or (list(self.omega),) * len(self.switch_spikes)
        if not len(self.switch_times) == len(self.switch_spikes) == len(omegas):
            raise ValueError(
                f"switch_times = {self.switch_times} is not allowed with switch_spikes = "
                f"{self.switch_spikes}, switch_omegas = {self.switch_omegas}: give one "
                "spike, and one omega or none at all, for each time."
            )
        increase = lambda ts: _increase(np.append(0.0, ts))
        remedy = "they must be finite, positive and increase"
        require("switch_times", self.switch_times, increase, remedy)
        allowed = lambda x: np.isfinite(x) & (x >= 0)
        remedy = "they must be finite and not negative"
        require("switch_omegas", self.switch_omegas, allowed, remedy)
        pairs = zip(self.switch_spikes, omegas, strict=True)
        later = [self._model(spike, omega) for spike, omega in pairs]
        return ino.Switching(models=[first, *later], times=self.switch_times)  # pyright: ignore

    def _model(self, name: SpikeName, omega: float | list[float]) -> ino.SpikedModel:
        spikes: dict[str, Callable[[], ino.AbstractSpike]] = {
            "uniform": ino.Uniform,
            "shifted-exponential": lambda: ino.ShiftedExponential(self.rate, self.shift),
            "sparse": lambda: ino.Sparse(self.rho),
            "gaussian": ino.Gaussian,
        }
        extra: dict[str, Any] = dict(turning=self.turning, observed=self.observed)
        return ino.SpikedModel(self.p, omega, spikes[name](), **extra)  # pyright: ignore


@dataclass(frozen=True)
class Start:
    """The initial estimate."""

    start: Literal["warm", "cold", "two-bumps", "box", "first-samples"] = "warm"
    """Normal entries with overlap q0 (warm) or none (cold), other distributions, or the
    first samples themselves."""
    q0: float = 0.1
    """all but cold: the initial overlap."""
    separation: float = 0.8
    """two-bumps: the positions of the bumps, in standard deviations."""
    lam0: float = 1.0
    """The initial norm, |x|/sqrt(p)."""

    READS: ClassVar[Reads] = {
        "q0": [{"start": ("warm", "two-bumps", "box")}],
        "separation": [{"start": "two-bumps"}],
        "lam0": [{"start": ("warm", "cold", "two-bumps", "box")}],
    }

    def build(self) -> ino.AbstractStart:
        starts: dict[str, Callable[[], ino.AbstractStart]] = {
            "warm": lambda: ino.WarmStart(self.q0, self.lam0),
            "cold": lambda: ino.ColdStart(self.lam0),
            "two-bumps": lambda: ino.TwoBumps(self.q0, self.lam0, self.separation),
            "box": lambda: ino.Box(self.q0, self.lam0),
            "first-samples": lambda: ino.FirstSamples(),  # pyright: ignore
        }
        return starts[self.start]()


# More times than a figure or a table can show, and few enough for memory.
_MOST_POINTS = 100_000


@dataclass(frozen=True)
class Times:
    """The times of the results."""

    t_max: float = 50.0
    """The last time; t = 1 is p samples."""
    points: int = 101
    """The number of times, equally spaced from 0."""
    ts: tuple[float, ...] = ()
    """The times, instead of the two above."""

    READS: ClassVar[Reads] = {"t_max": [{"ts": False}], "points": [{"ts": False}]}

    def build(self) -> np.ndarray:
        if self.ts:
            return np.asarray(self.ts, dtype=float)
        remedy = f"pass a number of times from 1 to {_MOST_POINTS:,}"
        require_whole("points", self.points, 1, remedy, _MOST_POINTS)
        allowed = lambda t: np.isfinite(t) & (t >= 0)
        require("t_max", self.t_max, allowed, "pass a time >= 0")
        return np.linspace(0.0, self.t_max, self.points)


@dataclass(frozen=True)
class Problem:
    """The flags of a `Config`."""

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
            components=self.algorithm.components,
        )


def require_seed(seed: int, name: str = "seed") -> None:
    """Raises a `ValueError` unless the seed is in the range of `jax.random.key`."""
    require_whole(name, seed, 0, "pass a whole number from 0 to 2^32 - 1", 2**32 - 1)


def require_runnable(config: ino.Config, engine: ino.AbstractEngine) -> None:
    """Raises the errors that `simulate` would, before anything is compiled or run."""
    steps_per_time = engine.prepare(config).steps_per_time(config.model.p)
    require_countable(config, steps_per_time)
