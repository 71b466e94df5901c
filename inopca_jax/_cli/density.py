"""`inopca density`."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Literal

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np

import inopca_jax as ino

from .._check import require_whole
from .._densities.density import require_in_support
from .._densities.grid import spike_nodes
from .._files import whole_file
from . import output
from .flags import Reads
from .problem import LABELS, Problem, Times, require_runnable, require_seed

_TIMES = Times(t_max=30.0, points=4)

# More than these cost memory and time and improve no result: Gauss's rules for laws with
# tails lose accuracy already at fewer nodes.
_MOST_CELLS, _MOST_NODES, _MOST_BINS = 100_000, 1_000, 100_000

_ENGINE = ino.Chain(snapshots=True)


@dataclass(frozen=True)
class DensityCommand:
    """Compare the density of the estimate's entries with histograms of trials: a table, a
    file and a figure. Computed in double precision."""

    problem: Problem = field(default_factory=lambda: Problem(times=_TIMES))
    solver: Literal["fokker-planck", "closed-form", "method-of-lines"] = "fokker-planck"
    """The Fokker-Planck equation by our solver, its closed-form solution, or diffrax."""
    cells: int = 400
    """The number of cells in x."""
    nodes: int = 32
    """The number of quadrature nodes for the law of the spike's entries."""
    dt: float = 0.05
    """fokker-planck: the largest time step."""
    domain: tuple[float, float] | None = None
    """The range of x; by default chosen from the mean field."""
    given: tuple[float, ...] = ()
    """Draw the density conditional on these entries of the spike, not the marginal."""
    rescaled: bool = True
    """With --out or --plot: use x/lam, as the paper does, instead of x."""
    trials: int = 20
    """With --out or --plot: the number of trials in the histograms; 0 for theory only."""
    bins: int = 60
    """With trials: the number of bins of a histogram."""
    groups: int = 16
    """With trials, --given and a continuous spike: the number of groups of its entries."""
    seed: int = 0
    """With trials: the same seed gives the same bits."""
    out: Path | None = None
    """Where to write the numbers: .npz."""
    plot: Path | None = None
    """Where to draw the figure: .png, .pdf or .svg."""
    progress: bool | None = None
    """With trials: show a progress bar; by default if the output is a terminal."""

    READS: ClassVar[Reads] = {
        "solver": {"fokker-planck": ("dt",)},
        "out": {True: ("rescaled", "trials")},
        "plot": {True: ("rescaled", "trials", "given")},
        "trials": {True: ("bins", "seed", "progress", "given")},
        ("given", "trials", "spike"): {
            (True, True, spike): ("groups",)
            for spike in ("uniform", "shifted-exponential", "gaussian")
        },
    }

    def run(self) -> None:
        require_whole("trials", self.trials, 0, "pass a number of trials, or 0")
        require_seed(self.seed)
        for name, most in dict(
            cells=_MOST_CELLS, nodes=_MOST_NODES, bins=_MOST_BINS, groups=_MOST_BINS
        ).items():
            require_whole(name, getattr(self, name), 1, f"pass 1 to {most:,}", most)
        if self.given and self.problem.model.switch_times:
            raise ValueError(
                f"given = {self.given} is not allowed with switch_times: the spike "
                "changes. Leave it out, or use Python."
            )
        output.require_writable("out", self.out, (".npz",))
        output.require_writable("plot", self.plot, (".png", ".pdf", ".svg"))
        with jax.enable_x64(True):
            config, solver = self.problem.build(), self._solver()
            self._require_possible(config)
            needs_trials = self.trials > 0 and (self.out or self.plot) is not None
            if needs_trials:
                require_runnable(config, _ENGINE)
            theory = ino.density(config, solver=solver)
            if not np.all(np.isfinite(theory.pdf)):
                raise output.Failed(
                    "the density is not finite: pass more cells, a smaller dt or a smaller "
                    "learning rate."
                )
            histogram = self._histogram(config, theory) if needs_trials else None
            self._report(config, theory, histogram)

    def _require_possible(self, config: ino.Config) -> None:
        """Raises an error, before anything is solved, if the spike has no such entries."""
        if self.given:
            law = spike_nodes(config.model.phases()[0].spike, self.nodes)
            laws = law.xi[None], law.weights[None], jnp.asarray([law.atoms])
            for xi in self.given:
                try:
                    require_in_support(*laws, xi)
                except ValueError as error:
                    raise ValueError(f"given = {xi} cannot be drawn: {error}") from None

    def _solver(self) -> ino.AbstractDensitySolver:
        grid = dict(cells=self.cells, nodes=self.nodes, domain=self.domain)
        if self.solver == "fokker-planck":
            return ino.FokkerPlanck(dt=self.dt, **grid)  # pyright: ignore
        kinds = {"closed-form": ino.ClosedForm, "method-of-lines": ino.MethodOfLines}
        return kinds[self.solver](**grid)

    def _histogram(self, config: ino.Config, theory: ino.Density) -> ino.Histogram:
        bar = output.shows_progress(self.progress)
        key = jr.key(self.seed)
        runs = ino.simulate(
            config, key=key, trials=self.trials, engine=_ENGINE, progress=bar
        )
        output.require_finite(runs)
        atoms, groups = None, None
        if self.given and bool(theory.atoms):
            atoms = theory.nodes
        elif self.given:
            groups = self.groups
        return ino.empirical_density(
            runs, bins=self.bins, groups=groups, atoms=atoms, rescaled=self.rescaled
        )

    def _report(
        self, config: ino.Config, theory: ino.Density, histogram: ino.Histogram | None
    ) -> None:
        ode = ino.mean_field(config)
        print(f"{LABELS[self.problem.algorithm.rule]}, {theory.x.size} cells")
        names = ("t", "q", "q of ODE", "lam", "lam of ODE", "mass - 1", "minimum")
        print("".join(f"{name:>12}" for name in names))
        mass, least = theory.moment(0) - 1, theory.pdf.min(axis=(1, 2))
        moments = (theory.q, ode.q, theory.lam, ode.lam)
        for t, *numbers, excess, low in zip(theory.ts, *moments, mass, least, strict=True):
            texts = [f"{float(t):.4g}", *(f"{float(v):.5f}" for v in numbers)]
            texts += [f"{float(excess):.1e}", f"{float(low):.1e}"]
            print("".join(f"{text:>12}" for text in texts))
        if self.out is not None:
            density = theory.rescaled() if self.rescaled else theory
            arrays = dict(ts=density.ts, x=density.x, nodes=density.nodes, pdf=density.pdf)
            arrays |= dict(weights=density.weights, atoms=density.atoms, lam=theory.lam)
            arrays |= dict(marginal=density.marginal(), rescaled=self.rescaled)
            if histogram is not None:
                arrays |= dict(edges=histogram.edges, groups=histogram.groups)
                arrays |= dict(histogram=histogram.pdf, error=histogram.error)
            with whole_file(self.out) as path:
                np.savez_compressed(path, **arrays)  # pyright: ignore
            print(f"numbers: {self.out}")
        if self.plot is not None:
            from .. import plot

            given = self.given or None
            figure = plot.density(theory, histogram, given=given, rescaled=self.rescaled)
            plot.save(figure, self.plot)
            print(f"figure: {self.plot}")
