"""`inopca density`."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import ClassVar, Literal

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np

import inopca_jax as ino

from .._check import refuse, require_whole
from .._densities.density import require_in_support
from .._densities.grid import spike_nodes
from .flags import Reads
from .output import Failed, Files, print_columns
from .problem import Problem, Times, require_runnable, require_seed

_TIMES = Times(t_max=30.0, points=4)

# More than these cost memory and time and improve no result: Gauss's rules for laws with
# tails lose accuracy already at fewer nodes.
_MOST = dict(cells=100_000, nodes=1_000, bins=100_000, groups=100_000)

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
    files: Files = field(default_factory=Files)

    READS: ClassVar[Reads] = {
        "dt": [{"solver": "fokker-planck"}],
        "rescaled": [{"out": True}, {"plot": True}],
        "trials": [{"out": True}, {"plot": True}],
        "bins": [{"trials": True}],
        "seed": [{"trials": True}],
        "progress": [{"trials": True}],
        "given": [{"plot": True}, {"trials": True}],
        "groups": [
            {
                "given": True,
                "trials": True,
                "spike": ("uniform", "shifted-exponential", "gaussian"),
            }
        ],
    }

    def run(self) -> None:
        require_whole("trials", self.trials, 0, "pass a number of trials, or 0")
        require_seed(self.seed)
        for name, most in _MOST.items():
            require_whole(name, getattr(self, name), 1, f"pass 1 to {most:,}", most)
        if self.given and self.problem.model.switch_times:
            remedy = "the spike changes at --switch-times; leave it out, or use Python"
            refuse("given", self.given, remedy)
        self.files.require_writable()
        with jax.enable_x64(True):
            config, solver = self.problem.build(), self._solver()
            self._require_possible(config)
            needs_trials = self.trials > 0 and (self.files.out or self.files.plot)
            if needs_trials:
                require_runnable(config, _ENGINE)
            theory = ino.density(config, solver=solver)
            if not np.all(np.isfinite(theory.pdf)):
                raise Failed(
                    "the density is not finite: pass more cells, a smaller dt or a smaller "
                    "learning rate."
                )
            histogram = self._histogram(config, theory) if needs_trials else None
            self._report(config, theory, histogram)

    def _require_possible(self, config: ino.Config) -> None:
        """Raises an error, before anything is solved, if the spike has no such entries."""
        if not self.given:
            return
        law = spike_nodes(config.model.phases()[0].spike, self.nodes)
        laws = law.xi[None], law.weights[None], jnp.asarray([law.atoms])
        for xi in self.given:
            try:
                require_in_support(*laws, xi)
            except ValueError as error:
                raise ValueError(f"given = {xi} cannot be drawn: {error}") from None

    def _solver(self) -> ino.AbstractDensitySolver:
        solvers: dict[str, Callable[..., ino.AbstractDensitySolver]] = {
            "fokker-planck": partial(ino.FokkerPlanck, dt=self.dt),
            "closed-form": ino.ClosedForm,
            "method-of-lines": ino.MethodOfLines,
        }
        return solvers[self.solver](cells=self.cells, nodes=self.nodes, domain=self.domain)

    def _histogram(self, config: ino.Config, theory: ino.Density) -> ino.Histogram:
        runs = self.files.simulate(config, jr.key(self.seed), self.trials, _ENGINE)
        has_atoms = bool(theory.atoms)
        return ino.empirical_density(
            runs,
            bins=self.bins,
            groups=self.groups if self.given and not has_atoms else None,
            atoms=theory.nodes if self.given and has_atoms else None,
            rescaled=self.rescaled,
        )

    def _report(
        self, config: ino.Config, theory: ino.Density, histogram: ino.Histogram | None
    ) -> None:
        ode = ino.mean_field(config)
        columns = {
            "t": theory.ts,
            "q": theory.q,
            "q of ODE": ode.q,
            "lam": theory.lam,
            "lam of ODE": ode.lam,
            "mass - 1": theory.moment(0) - 1,
            "minimum": theory.pdf.min(axis=(1, 2)),
        }
        formats = {"t": ".4g", "mass - 1": ".1e", "minimum": ".1e"}
        print(f"{self.problem.algorithm.label}, {theory.x.size} cells")
        print_columns(columns, **dict.fromkeys(columns, ".5f") | formats)
        if self.files.out is not None:
            density = theory.rescaled() if self.rescaled else theory
            arrays = dict(ts=density.ts, x=density.x, nodes=density.nodes, pdf=density.pdf)
            arrays |= dict(weights=density.weights, atoms=density.atoms, lam=theory.lam)
            arrays |= dict(marginal=density.marginal(), rescaled=self.rescaled)
            if histogram is not None:
                arrays |= dict(edges=histogram.edges, groups=histogram.groups)
                arrays |= dict(histogram=histogram.pdf, error=histogram.error)
            self.files.write(arrays)
        shown = dict(given=self.given or None, rescaled=self.rescaled)
        self.files.draw(lambda plot: plot.density(theory, histogram, **shown))
