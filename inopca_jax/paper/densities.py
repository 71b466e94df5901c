"""The density of the estimate's entries over time: what Examples 1 and 2 have in common.

The figures show the density of `x/lam`. The claims also use the entries of each bin summed
with the weight `xi`: the equation is about the joint law of `(x, xi)`, and the weighted sum
depends on the overlap even where the density itself hardly changes.
"""

import dataclasses
from typing import Any, NamedTuple

import jax.random as jr
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import inopca_jax as ino
from inopca_jax.plot import COLOURS, MARKERS, style

from .claim import Arrays, Claims, Finding
from .learning_curves import TAU, TRIALS, paper_config, shortened
from .statistics import SIGNIFICANT, listed

# The start, then the times of the panels, where q is 0.14, 0.70 and 0.88.
TIMES = (0.0, 1.0, 8.0, 20.0)
REFERENCE_UNTIL, REFERENCE_TRIALS = 1.0, 4
BINS = 48
# How far the moments of the PDE's solution may be from the ODE's solution. The error of the
# PDE's solver is of second order in the widths of cells and steps.
SOLVER_TOLERANCE = 5e-4


def example_configs(spike: ino.AbstractSpike) -> dict[str, ino.Config]:
    """Returns the paper's defaults with this spike, at the times of the panels."""
    config = paper_config(ino.InoPCA(TAU), t_max=TIMES[-1], spike=spike)
    return {"INO-PCA": dataclasses.replace(config, ts=np.asarray(TIMES))}


def compute_densities(config: ino.Config, quick: bool, seed: int) -> Arrays:
    """Returns the PDE's density and histograms of the trials' entries.

    Unless the run is quick, there is also a histogram of reference trials, by the
    p-dimensional algorithm.
    """
    key, reference_key = jr.split(jr.key(seed))
    runs = ino.simulate(config, key=key, trials=TRIALS, engine=ino.Chain(snapshots=True))
    assert isinstance(runs, ino.Snapshots)
    # The ODE does not depend on the spike's law, and its program for these times is
    # compiled for other figures, too.
    ode = ino.mean_field(paper_config(ino.InoPCA(TAU), t_max=TIMES[-1]))
    at = np.searchsorted(np.asarray(ode.ts), np.asarray(TIMES) - 1e-9)
    density = ino.density(config)
    rescaled = density.rescaled()
    edges = _bin_edges(rescaled)
    histogram = ino.empirical_density(runs, bins=edges, rescaled=True)
    arrays = dict(
        ts=config.ts,
        x=rescaled.x,
        pdf=rescaled.marginal(),
        edges=edges,
        histogram=histogram.marginal,
        histogram_error=histogram.marginal_error,
        masses=_bin_masses(rescaled, edges),
        trial_masses=_trial_bin_masses(runs, edges),
        mean=rescaled.moment(1),
        trial_means=np.mean(np.asarray(runs.x, float), axis=-1)
        / np.asarray(runs.lam, float),
        q=np.stack([density.q, ode.q[at]]),
        lam=np.stack([density.lam, ode.lam[at]]),
    )
    if not quick:
        reference = ino.simulate(
            shortened(config, REFERENCE_UNTIL),
            key=reference_key,
            trials=REFERENCE_TRIALS,
            engine=ino.Stream(snapshots=True),
        )
        histogram = ino.empirical_density(reference, bins=edges, rescaled=True)
        arrays["reference"] = histogram.marginal[-1]
        arrays["reference_entries"] = histogram.counts[-1].sum()
    return {name: np.asarray(value) for name, value in arrays.items()}


def _bin_edges(rescaled: ino.Density) -> np.ndarray:
    """Returns edges of bins that contain all but 2 in 10,000 of the entries at all
    times."""
    cdf, x = np.asarray(rescaled.cdf()), np.asarray(rescaled.x)
    inside = x[(cdf > 1e-4) & (cdf < 1 - 1e-4)]
    return np.linspace(inside.min(), inside.max(), BINS + 1)


def _bin_masses(rescaled: ino.Density, edges: np.ndarray) -> np.ndarray:
    """Returns the density's mass in each bin, and this mass times the mean of `xi` there,
    of shape (times, 2, bins)."""
    weights, nodes, pdf = map(np.asarray, (rescaled.weights, rescaled.nodes, rescaled.pdf))
    x, width = np.asarray(rescaled.x), np.asarray(rescaled.width)[:, None]
    weighted = np.einsum("wk,tkx->twx", np.stack([weights, weights * nodes]), pdf)
    cumulative = np.cumsum(weighted * width[:, None], axis=-1)
    at_edges = [
        [np.interp(edges, cell_ends, row) for row in rows]
        for cell_ends, rows in zip(x + width / 2, cumulative, strict=True)
    ]
    return np.diff(np.array(at_edges), axis=-1)


def _trial_bin_masses(runs: Any, edges: np.ndarray) -> np.ndarray:
    """Returns the same of each trial's entries, of shape (trials, times, 2, bins)."""
    x, xi, lam = (np.asarray(a, dtype=float) for a in (runs.x, runs.xi, runs.lam))

    def masses(x: np.ndarray, xi: np.ndarray) -> list[np.ndarray]:
        return [np.histogram(x, edges, weights=w)[0] / x.size for w in (None, xi)]

    trials = zip(x / lam[:, :, None], xi, strict=True)
    return np.array(
        [[masses(*vectors) for vectors in zip(*trial, strict=True)] for trial in trials]
    )


def draw_densities(arrays: Arrays) -> Figure:
    """Draws theory over the histogram of the trials, a panel a time."""
    ts = arrays["ts"]
    with style():
        figure, axes = plt.subplots(
            1, len(ts) - 1, figsize=(2.6 * (len(ts) - 1), 2.7), sharex=True, sharey=True
        )
        for i, ax in enumerate(axes, start=1):
            _draw_panel(ax, arrays, i)
            ax.set(title=f"$t = {ts[i]:g}$", xlabel=r"$x/\lambda_t$")
        axes[0].set_ylabel(r"density $P_t$")
        axes[0].set_xlim(arrays["edges"][[0, -1]])
        axes[0].set_ylim(bottom=0)
        handles, labels = axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper center", ncols=len(labels))
    return figure


def _draw_panel(ax: Axes, arrays: Arrays, i: int) -> None:
    edges, trials = arrays["edges"], len(arrays["trial_masses"])
    heights, errors = arrays["histogram"][i], arrays["histogram_error"][i]
    centres = (edges[1:] + edges[:-1]) / 2
    filled: dict[str, Any] = dict(fill=True, color=COLOURS[1], alpha=0.3)
    ax.stairs(heights, edges, label=f"exact chain, {trials} trials", **filled)
    bars: dict[str, Any] = dict(fmt="none", color=COLOURS[1], elinewidth=0.8)
    ax.errorbar(centres, heights, yerr=errors, **bars)
    if arrays["ts"][i] == REFERENCE_UNTIL and "reference" in arrays:
        hollow: dict[str, Any] = dict(color=COLOURS[2], mfc="none", markersize=3.5, mew=0.8)
        label = "p-dimensional algorithm"
        ax.plot(centres, arrays["reference"], MARKERS[0], label=label, **hollow)
    grey: dict[str, Any] = dict(color="0.45", linestyle="--", linewidth=1.1)
    ax.plot(arrays["x"][0], arrays["pdf"][0], label="start, theory", **grey)
    ax.plot(arrays["x"][i], arrays["pdf"][i], color=COLOURS[0], label="theory, PDE")


class Distance(NamedTuple):
    """An L1 distance from theory, and the distance that arises by chance alone, by its mean
    and its standard deviation."""

    value: float
    chance: float
    chance_std: float

    @property
    def standard_errors(self) -> float:
        """The excess over chance, in standard deviations."""
        return (self.value - self.chance) / self.chance_std


def distance(trial_masses: np.ndarray, masses: np.ndarray) -> Distance:
    """Returns the L1 distance of the mean of trials, of shape (trials, bins), from theory.

    Chance is estimated by giving the trials' deviations from their own mean random signs.
    This is valid because trials are independent; the bins of a trial are not, since all of
    them depend on its overlap.
    """
    count = len(trial_masses)
    gaps = trial_masses - masses
    deviations = (gaps - gaps.mean(axis=0)) * (count / (count - 1)) ** 0.5
    signs = np.random.default_rng(0).choice([-1.0, 1.0], (1000, count))
    by_chance = np.abs(signs @ deviations / count).sum(axis=1)
    value = np.abs(gaps.mean(axis=0)).sum()
    return Distance(float(value), float(by_chance.mean()), float(by_chance.std(ddof=1)))


def _reference_distance(arrays: Arrays) -> Distance:
    """Returns the distance of the reference trials from theory. There are too few of them
    for random signs, so chance is that of independent entries."""
    at = int(np.searchsorted(arrays["ts"], REFERENCE_UNTIL))
    mass, entries = arrays["masses"][at, 0], float(arrays["reference_entries"])
    gap = arrays["reference"] * np.diff(arrays["edges"]) - mass
    deviation = np.sqrt(mass * (1 - mass) / entries)
    chance = np.sqrt(2 / np.pi) * deviation.sum()
    chance_std = np.sqrt((1 - 2 / np.pi) * np.sum(deviation**2))
    return Distance(float(np.abs(gap).sum()), float(chance), float(chance_std))


def add_claims(claims: Claims, figure: str, match: str) -> None:
    """Adds the claims that both examples have in common: that the densities match, in the
    paper's words, and that their moments satisfy the ODEs."""
    claims.add(f"fig:{figure}", statement=match)(_densities_match)
    claims.add("cor:Qt, cor:lambdat")(_moments_satisfy_the_odes)


def _densities_match(arrays: Arrays, statement: str) -> Finding:
    """{statement}

    Chance is estimated from the trials' deviations from their mean with random signs. It
    holds if no distance exceeds chance by 4 standard deviations.
    """
    at = range(1, len(arrays["ts"]))
    plain, weighted = (
        [distance(arrays["trial_masses"][:, i, w], arrays["masses"][i, w]) for i in at]
        for w in (0, 1)
    )
    reference = [_reference_distance(arrays)] if "reference" in arrays else []
    worst = max([*plain, *weighted, *reference], key=lambda d: d.standard_errors)
    reference_text = ""
    if reference:
        reference_text = (
            f"; for the p-dimensional algorithm at t = {REFERENCE_UNTIL:g} it is "
            f"{_with_chance(reference)}"
        )
    moved = [np.abs(np.subtract(*arrays["masses"][[i, 0], 1])).sum() for i in at]
    return Finding(
        worst.value,
        worst.chance + SIGNIFICANT * worst.chance_std,
        f"the L1 distance of {len(arrays['trial_masses'])} trials, in {BINS} bins, from "
        f"theory at t = {listed(arrays['ts'][1:])} is {_with_chance(plain)}; weighted with "
        f"xi it is {_with_chance(weighted)}, while the weighted density of the start is at "
        f"a distance of {listed(moved, '.2f')}{reference_text}. The largest excess over "
        f"chance is {worst.standard_errors:.1f} standard deviations",
        worst.standard_errors < SIGNIFICANT,
    )


def _with_chance(distances: list[Distance]) -> str:
    values, chances = ([d[i] for d in distances] for i in range(2))
    return f"{listed(values, '.4f')} (by chance {listed(chances, '.4f')})"


def _moments_satisfy_the_odes(arrays: Arrays) -> Finding:
    """Q_t and lambda_t of the PDE satisfy the ODEs eq:Q_t and eq:lambda_t.

    The PDE's solver computes q and lam from the density (eq:tracked_par), not from the ODE.
    The difference is its discretisation error.
    """
    q, lam = (np.abs(np.subtract(*arrays[name])).max() for name in ("q", "lam"))
    return Finding(
        max(q, lam),
        SOLVER_TOLERANCE,
        f"up to t = {arrays['ts'][-1]:g}, the overlap of the PDE's density is within "
        f"{q:.1e} of the ODE's, and its norm within {lam:.1e}",
        max(q, lam) < SOLVER_TOLERANCE,
    )
