"""`inopca tune`."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import equinox as eqx
import jax.random as jr
import numpy as np

import inopca_jax as ino

from .._check import require, require_whole
from .._leaves import full_name, leaves
from .flags import Reads
from .output import Failed, Files, print_table
from .problem import Problem, Times, require_runnable, require_seed

_TIMES = Times(t_max=20.0)
_MOST_KNOTS = 10_000


@dataclass(frozen=True)
class Tune:
    """Tune the learning rate, the start or the schedule by gradients through the mean
    field, and compare the result with the bounds."""

    problem: Problem = field(default_factory=lambda: Problem(times=_TIMES))
    objective: Literal[
        "final-overlap", "area", "time-to-reach", "steady-overlap", "cautious-overlap"
    ] = "final-overlap"
    """final-overlap: at the last time. area: the area under 1 - q^2 over time.
    time-to-reach: the time at which the overlap reaches --level.
    steady-overlap: the steady overlap, --fraction of which is reached at time --within.
    cautious-overlap: the final overlap minus --deviations standard deviations at this p."""
    level: float = 0.8
    """time-to-reach: the overlap to reach."""
    within: float = 10.0
    """steady-overlap: the time at which --fraction of it has to be reached."""
    fraction: float = 0.95
    """steady-overlap: the fraction to reach in time."""
    deviations: float = 2.0
    """cautious-overlap: how many standard deviations to subtract."""
    omegas: tuple[float, ...] = ()
    """Possible signal-to-noise ratios: tune for the worst of them."""
    average: bool = False
    """With --omegas: tune for the average over them instead."""
    over: tuple[str, ...] = ()
    """What to tune, such as rule.tau, start.lam0, rule.tau.c; by default the rate."""
    schedule_knots: int = 0
    """Tune a schedule with this many knots, starting from the constant rate."""
    steps: int = 500
    """The largest number of steps of the search."""
    check: bool = False
    """Also simulate before and after tuning, by the exact chain."""
    trials: int = 100
    """With --check: the number of trials."""
    seed: int = 0
    """With --check: the same seed gives the same bits."""
    files: Files = field(default_factory=Files)

    READS: ClassVar[Reads] = {
        "level": [{"objective": "time-to-reach"}],
        "within": [{"objective": "steady-overlap"}],
        "fraction": [{"objective": "steady-overlap"}],
        "deviations": [{"objective": "cautious-overlap"}],
        "average": [{"omegas": True}],
        "trials": [{"check": True}],
        "seed": [{"check": True}],
    }

    def run(self) -> None:
        require_whole("trials", self.trials, 2, "pass at least 2 trials")
        require_whole("steps", self.steps, 1, "pass at least 1 step")
        require_seed(self.seed)
        self._require_overlap()
        config, objective = self._config(), self._objective()
        if self.check:
            require_runnable(config, ino.Chain())
        over = self.over or (("rule.tau.taus",) if self.schedule_knots else ("rule.tau",))
        names = [full_name(config, name, "over") for name in over]
        self.files.require_writable()
        bar = self.files.shows_progress
        tuned = ino.tune(
            config, objective=objective, over=over, steps=self.steps, progress=bar
        )
        if not np.isfinite(tuned.value):
            raise Failed(
                f"the objective is {tuned.value} at every step of the search: start from a "
                "smaller learning rate."
            )
        self._show(config, tuned, names)
        if tuned.stopped.startswith("interrupted"):
            raise KeyboardInterrupt("the best result so far is printed above")
        runs = self._check(config, tuned.config) if self.check else None
        numbers: dict[str, Any] = leaves(tuned.config)
        search = dict(value=tuned.value, bound=tuned.bound, values=tuned.values)
        self.files.write(numbers | search)
        self.files.draw(lambda plot: plot.tuning(config, tuned.config, runs=runs))

    def _require_overlap(self) -> None:
        start = self.problem.start
        if start.start == "cold":
            raise ValueError(
                "start = cold is not allowed: its mean field stays at q = 0 for any rate. "
                "Pass --start warm with a --q0 of about p^-0.5, the overlap of a random "
                "start."
            )
        remedy = "the mean field stays at q = 0 for any rate; pass another overlap"
        require("q0", start.q0, lambda q: q != 0, remedy)

    def _config(self) -> ino.Config:
        remedy = f"pass 2 to {_MOST_KNOTS:,} knots, or 0 for none"
        if self.schedule_knots:
            require_whole("schedule_knots", self.schedule_knots, 2, remedy, _MOST_KNOTS)
        config = self.problem.build()
        if not self.schedule_knots:
            return config
        rate = config.rule.tau
        if not isinstance(rate, ino.Constant):
            raise ValueError(
                f"schedule_knots = {self.schedule_knots} is not allowed with the schedule "
                f"{type(rate).__name__}: pass --schedule constant, which the knots replace."
            )
        flat = ino.Interpolated.flat(
            float(rate.value), float(config.ts[-1]), self.schedule_knots
        )
        return eqx.tree_at(lambda c: c.rule.tau, config, flat)

    def _objective(self) -> ino.AbstractObjective:
        kinds: dict[str, Callable[[], ino.AbstractObjective]] = {
            "final-overlap": ino.FinalOverlap,
            "area": ino.Area,
            "time-to-reach": lambda: ino.TimeToReach(self.level),
            "steady-overlap": lambda: ino.SteadyOverlap(self.within, self.fraction),
            "cautious-overlap": lambda: ino.CautiousOverlap(self.deviations),
        }
        objective = kinds[self.objective]()
        if not self.omegas:
            return objective
        return (ino.Average if self.average else ino.WorstCase)(objective, self.omegas)

    def _show(self, config: ino.Config, tuned: ino.Tuned, names: list[str]) -> None:
        print(f"{self.problem.algorithm.label}, {self.objective}")
        print(f"the search {tuned.stopped}")
        rows = [["", "before", "after"]]
        for name in names:
            both = (leaves(c)[name] for c in (config, tuned.config))
            rows.append([name, *map(_range_text, both)])
        gaps = abs(tuned.values[0] - tuned.bound), tuned.gap
        rows.append(["objective", f"{tuned.values[0]:.6f}", f"{tuned.value:.6f}"])
        rows.append(["distance to the best", *(f"{gap:.6f}" for gap in gaps)])
        print_table(rows)
        last, t = config.model.phases()[-1], float(config.ts[-1])
        if not self.omegas:
            print(f"best objective of any gain: {tuned.bound:.6f}")
        if last.turning is None:
            offline = float(ino.offline_overlap(last.effective_omega, t))
            print(f"overlap of offline PCA at t = {t:g}: {offline:.6f}")

    def _check(self, config: ino.Config, tuned: ino.Config) -> Any:
        """Simulates both configs, prints their final overlaps, and returns the trials of
        the tuned one."""
        runs, columns = None, []
        for simulated in (config, tuned):
            key = jr.key(self.seed)
            runs = self.files.simulate(simulated, key, self.trials, ino.Chain()).abs()
            q = np.asarray(runs.q[:, -1])[np.asarray(runs.finite)]
            error = q.std(ddof=1) / len(q) ** 0.5
            columns.append([f"{len(q)}", f"{q.mean():.6f}", f"{error:.6f}"])
        print(f"simulated with p = {int(config.model.p)}:")
        names = ["trials", "mean overlap", "its standard error"]
        print_table([("", "before", "after"), *zip(names, *columns, strict=True)])
        return runs


def _range_text(numbers: Any) -> str:
    """Returns a number, or the range of several, as text."""
    if numbers.size == 1:
        return f"{numbers.item():.6g}"
    return f"{numbers.min():.4g} to {numbers.max():.4g}"
