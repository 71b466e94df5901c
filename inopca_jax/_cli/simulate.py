"""`inopca simulate` and `inopca limits`."""

from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import equinox as eqx
import jax.random as jr
import numpy as np

import inopca_jax as ino

from .._check import require, require_whole
from .._order_parameters.predict import is_regular
from .._trajectory import AbstractTrajectory
from . import components
from .flags import Reads
from .output import Files, print_columns, print_table
from .problem import Problem, require_runnable, require_seed


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
    """chain, stream: for how many steps to draw noise at once. Changes
    results by rounding alone."""
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
    bars: float = 1.0
    """With --plot: the error bars, in standard deviations."""
    bands: bool | None = None
    """Also predict the standard deviations over trials; by default with --plot."""
    files: Files = field(default_factory=Files)

    READS: ClassVar[Reads] = {
        "chunk": [{"engine": ("chain", "stream")}],
        "dt": [{"engine": "diffusion"}],
        "reference_until": [{"reference": True}],
        "bars": [{"plot": True}],
    }

    def run(self) -> None:
        config, engine = self.problem.build(), self._engine()
        require("bars", self.bars, lambda x: np.isfinite(x) & (x >= 0), "pass bars >= 0")
        require_seed(self.seed)
        require_whole("trials", self.trials, 1, "pass at least 1 trial")
        require_whole("reference", self.reference, 0, "pass a number of trials, or 0")
        if self.bands and not config.is_single:
            raise ValueError(
                "--bands is not allowed with several spikes or components: no theory "
                "predicts their standard deviations. Leave it out."
            )
        if self.bands and not is_regular(config):
            raise ValueError(
                "--bands is not allowed: the first sample moves the estimate by more than "
                "its length, and then no theory predicts the standard deviations. Leave it "
                "out, or pass --t0 > 0 or a --b0 of order p."
            )
        require_runnable(config, engine)
        short = self._until(config)
        if self.reference:
            require_runnable(short, ino.Stream())
        self.files.require_writable(".csv")
        keys = jr.split(jr.key(self.seed))
        runs = self.files.simulate(config, keys[0], self.trials, engine)
        reference = None
        if self.reference:
            reference = ino.simulate(
                short,
                key=keys[1],
                trials=self.reference,
                engine=ino.Stream(),
                progress=self.files.shows_progress,
            )
        if not config.is_single:
            label, theory = self.problem.algorithm.label, ino.mean_field(config)
            shown = (label, config, theory, runs, reference)
            return components.report(*shown, self.files, self.bars)
        bands = self.files.plot is not None if self.bands is None else self.bands
        theory = ino.predict(config, error_bars=bands)
        if not ino.keeps_sign(config):
            print("note: a trial may converge to either sign, so q is the modulus |q|")
            runs = runs.abs()
            reference = None if reference is None else reference.abs()
        self._report(config, theory, runs, reference)

    def _engine(self) -> ino.AbstractEngine:
        if self.engine == "diffusion":
            return ino.Diffusion(self.dt, self.dtype)
        engines = {"chain": ino.Chain, "stream": ino.Stream}
        return engines[self.engine](chunk=self.chunk, dtype=self.dtype)

    def _until(self, config: ino.Config) -> ino.Config:
        """Returns the config with the times of the reference."""
        if not self.reference:
            return config
        ts = np.asarray(config.ts)
        kept = ts[ts <= self.reference_until]
        if not kept.size:
            raise ValueError(
                f"reference_until = {self.reference_until} is before the first time, "
                f"{ts[0]}: pass a later time."
            )
        return eqx.tree_at(lambda c: c.ts, config, kept)

    def _report(
        self, config: ino.Config, theory: Any, runs: Any, reference: Any | None
    ) -> None:
        """Prints, writes and draws the results."""
        label, columns = self.problem.algorithm.label, _columns(theory, runs)
        arrays = dict(ts=runs.ts, q=runs.q, lam=runs.lam, finite=runs.finite)
        arrays |= dict(theory_q=theory.q, theory_lam=theory.lam)
        if isinstance(theory, ino.Prediction):
            arrays |= dict(theory_q_std=theory.q_std, theory_lam_std=theory.lam_std)
        printed = columns
        if reference is not None:
            missing = np.full(len(runs.ts) - len(reference.ts), np.nan)
            printed = columns | {"q reference": np.append(reference.mean().q, missing)}
            arrays |= dict(reference_ts=reference.ts, reference_q=reference.q)
            arrays |= dict(reference_lam=reference.lam)
        print(f"{label}, p = {int(config.model.p)}, {len(runs.q)} trials")
        rows = np.unique(np.linspace(0, len(runs.ts) - 1, 11).round().astype(int))
        print_columns({name: np.asarray(c)[rows] for name, c in printed.items()})
        q_s, lam_s = ino.steady_state(config)
        print(f"steady state: q = {float(q_s):.5f}, lam = {float(lam_s):.5f}")
        self.files.write(arrays, columns)
        # The formula of offline PCA's limit is for one spike that does not change.
        first, *later = config.model.phases()
        stands = not later and first.turning is None
        omega = float(first.effective_omega) if stands else None
        self.files.draw(
            lambda plot: plot.learning_curves(
                [plot.Curve(label, theory, runs, reference)], bars=self.bars, omega=omega
            )
        )


def _columns(theory: AbstractTrajectory, runs: AbstractTrajectory) -> dict[str, Any]:
    """Returns the columns of the table, by their headings."""
    mean, std = runs.mean(), runs.std()
    columns: dict[str, Any] = {"t": runs.ts}
    for name in ("q", "lam"):
        columns[f"{name} theory"] = getattr(theory, name)
        columns[f"{name} mean"] = getattr(mean, name)
        if (predicted := getattr(theory, f"{name}_std", None)) is not None:
            columns[f"{name} sd pred"] = predicted
        columns[f"{name} sd"] = getattr(std, name)
    return columns


@dataclass(frozen=True)
class Limits:
    """Print the steady state, the transition and the bounds of any algorithm."""

    problem: Problem = field(default_factory=Problem)

    def run(self) -> None:
        """Prints them for the config's last model and last time."""
        config = self.problem.build()
        if not config.is_single:
            return components.print_limits(self.problem.algorithm.label, config)
        phases, t = config.model.phases(), float(config.ts[-1])
        last, (q0, _) = phases[-1], config.start.moments(phases[0].spike)
        omega, turning = last.effective_omega, last.turning
        q_s, lam_s = ino.steady_state(config)
        rows = {
            "critical signal-to-noise ratio": ino.critical_snr(config.rule, turning),
            "steady overlap": q_s,
            "steady norm": lam_s,
        }
        if turning is None:
            rows["best overlap of any gain"] = ino.oracle_overlap(omega, q0, t)
            rows["overlap of offline PCA"] = ino.offline_overlap(omega, t)
        else:
            rows["best overlap of any gain"] = ino.best_overlap(config, np.array([t]))[0]
            constant = isinstance(config.rule.tau, ino.Constant)
            if constant and omega**2 > 2 * turning > 0:
                rows["best constant rate"] = ino.best_rate(config)
        if omega > 0 and abs(q0) < 1:
            rows["best lam0 / tau of INO-PCA"] = ino.best_lam0(1.0, omega, q0)
        print(f"{self.problem.algorithm.label}, omega = {float(omega):g}, t = {t:g}")
        print_table([[name, f"{float(value):.6f}"] for name, value in rows.items()])
