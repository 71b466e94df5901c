"""The law of the estimate's entries over time, theory and trials: what Examples 1 and 2
have in common.

Beside the law of `x/lam` that the figures show, each trial's bins are also summed with the
weight `xi`: two figures of the joint law of `(x, xi)`, which the equation is about, and
the second moves with the overlap even where the first hardly does.
"""

from typing import Any, NamedTuple

import equinox as eqx
import jax.random as jr
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from .._batch import simulate
from .._cli import output
from .._config import Config
from .._densities import density
from .._densities.density import Density
from .._densities.histogram import empirical_density
from .._engine import Chain, Stream
from .._model import AbstractSpike
from .._order_parameters import mean_field
from .._rule import InoPCA
from .._trajectory import Trajectory
from ..plot import COLOURS, MARKERS, style
from .claim import Claim, verdict
from .curves import TAU, TRIALS, Arrays, setting

# The start, then a panel each: q is 0.14, 0.70 and 0.88.
TIMES = (0.0, 1.0, 8.0, 20.0)
WITNESS_UNTIL = 1.0
BINS = 48
# By how many standard errors a match may miss, and how far the solver's own moments may
# be from the ODE's: its error is of second order in cells and steps.
SURE, SOLVED = 4.0, 5e-4


def example(spike: AbstractSpike) -> Config:
    """The paper's defaults with this spike, at the times of the panels."""
    whole = setting(InoPCA(TAU), t_max=TIMES[-1], spike=spike)
    return eqx.tree_at(lambda config: config.ts, whole, np.asarray(TIMES))


def followed(config: Config, quick: bool, seed: int) -> Arrays:
    """The density of the PDE, the snapshots of the chain and, unless it has to be quick, of
    its witness, in bins."""
    key, other = jr.split(jr.key(seed))
    runs = simulate(config, key=key, trials=TRIALS, engine=Chain(snapshots=True))
    # The ODE does not know of the spike's law, and at these times the program for it
    # serves other figures, too.
    ode = mean_field(setting(InoPCA(TAU), t_max=TIMES[-1]))
    at = np.searchsorted(np.asarray(ode.ts), np.asarray(TIMES) - 1e-9)
    now = density(config)
    scaled = now.rescaled()
    edges = _edges(scaled)
    seen = empirical_density(runs, bins=edges, rescaled=True)
    found = dict(
        ts=config.ts,
        x=scaled.x,
        pdf=scaled.marginal(),
        edges=edges,
        seen=seen.marginal,
        seen_error=seen.marginal_error,
        masses=_masses(scaled, edges),
        counted=_counted(runs, edges),
        mean=scaled.moment(1),
        means=np.mean(np.asarray(runs.x, float), axis=-1) / np.asarray(runs.lam, float),
        q=np.stack([now.q, ode.q[at]]),
        lam=np.stack([now.lam, ode.lam[at]]),
    )
    if not quick:
        short, stream = output.until(config, WITNESS_UNTIL), Stream(snapshots=True)
        witness = simulate(short, key=other, trials=4, engine=stream)
        direct = empirical_density(witness, bins=edges, rescaled=True)
        found["witness"] = direct.marginal[-1]
        found["witness_entries"] = direct.counts[-1].sum()
    return {name: np.asarray(value) for name, value in found.items()}


def _edges(scaled: Density) -> np.ndarray:
    """Bins that hold all but a few in ten thousand of the entries at every time."""
    cdf, x = np.asarray(scaled.cdf()), np.asarray(scaled.x)
    held = x[(cdf > 1e-4) & (cdf < 1 - 1e-4)]
    return np.linspace(held.min(), held.max(), BINS + 1)


def _masses(scaled: Density, edges: np.ndarray) -> np.ndarray:
    """The mass in each bin, and its mass times the mean of `xi` there, (times, 2, bins)."""
    weights, nodes, pdf = map(np.asarray, (scaled.weights, scaled.nodes, scaled.pdf))
    x, width = np.asarray(scaled.x), np.asarray(scaled.width)[:, None]
    weighted = np.einsum("wk,tkx->twx", np.stack([weights, weights * nodes]), pdf)
    upto = np.cumsum(weighted * width[:, None], axis=-1)
    rows = zip(x + width / 2, upto, strict=True)
    at_edges = [[np.interp(edges, ends, one) for one in both] for ends, both in rows]
    return np.diff(np.array(at_edges), axis=-1)


def _counted(runs: Trajectory, edges: np.ndarray) -> np.ndarray:
    """The same of each trial, (trials, times, 2, bins)."""
    x, xi, lam = (np.asarray(a, dtype=float) for a in (runs.x, runs.xi, runs.lam))

    def both(x: np.ndarray, xi: np.ndarray) -> list[np.ndarray]:
        return [np.histogram(x, edges, weights=w)[0] / x.size for w in (None, xi)]

    trials = zip(x / lam[:, :, None], xi, strict=True)
    return np.array([[both(*now) for now in zip(*one, strict=True)] for one in trials])


class Distance(NamedTuple):
    """The L1 distance of the trials' mean from theory, and what chance makes of it."""

    value: float
    chance: float
    spread: float

    @property
    def sure(self) -> float:
        return (self.value - self.chance) / self.spread


def distance(counted: np.ndarray, masses: np.ndarray) -> Distance:
    """Of trials (trials, bins). Chance is what trials whose deviations from their own mean
    have random signs come to: bins of a trial share its overlap, and are not independent,
    but trials are."""
    count = len(counted)
    gap = counted - masses
    rest = (gap - gap.mean(axis=0)) * (count / (count - 1)) ** 0.5
    signs = np.random.default_rng(0).choice([-1.0, 1.0], (1000, count))
    by_chance = np.abs(signs @ rest / count).sum(axis=1)
    value = np.abs(gap.mean(axis=0)).sum()
    return Distance(float(value), float(by_chance.mean()), float(by_chance.std(ddof=1)))


def _witnessed(found: Arrays) -> Distance:
    """The witness's, at its time; of so few trials, chance is the binomial law's."""
    at = int(np.searchsorted(found["ts"], WITNESS_UNTIL))
    mass, entries = found["masses"][at, 0], float(found["witness_entries"])
    gap = found["witness"] * np.diff(found["edges"]) - mass
    deviation = np.sqrt(mass * (1 - mass) / entries)
    chance = np.sqrt(2 / np.pi) * deviation.sum()
    spread = np.sqrt((1 - 2 / np.pi) * np.sum(deviation**2))
    return Distance(float(np.abs(gap).sum()), float(chance), float(spread))


def match(found: Arrays, where: str, says: str) -> Claim:
    """Whether the densities are the trials', also as `xi` weights them."""
    at = range(1, len(found["ts"]))
    plain, weighted = (
        [distance(found["counted"][:, i, w], found["masses"][i, w]) for i in at]
        for w in (0, 1)
    )
    witness = [_witnessed(found)] if "witness" in found else []
    worst = max([*plain, *weighted, *witness], key=lambda d: d.sure)
    direct = f"; the p-dimensional witness at t = {WITNESS_UNTIL:g}: {_values(witness)} "
    direct += f"(by chance {_chances(witness)})"
    moved = [np.abs(np.subtract(*found["masses"][[i, 0], 1])).sum() for i in at]
    return Claim(
        where,
        says,
        worst.value,
        worst.chance + SURE * worst.spread,
        f"L1 distance at t = {_listed(found['ts'][1:], 'g')}: {_values(plain)} (by chance "
        f"{_chances(plain)}); weighted with xi {_values(weighted)} (by chance "
        f"{_chances(weighted)}), where the start's is {_listed(moved, '.2f')} away"
        f"{direct if witness else ''}; at most {worst.sure:.1f} standard deviations above "
        "chance",
        verdict(bool(worst.sure < SURE)),
        "holds",
        f"{len(found['counted'])} trials in {BINS} bins; chance from their deviations with "
        f"random signs, within {SURE:g} standard deviations of it counts.",
    )


def moments(found: Arrays) -> Claim:
    """Whether the density's own overlap and norm are the ODE's."""
    q, lam = (float(np.abs(np.subtract(*found[name])).max()) for name in ("q", "lam"))
    return Claim(
        "cor:Qt, cor:lambdat",
        "Q_t and lambda_t of the PDE satisfy the ODEs eq:Q_t and eq:lambda_t",
        max(q, lam),
        SOLVED,
        f"the density's own q is within {q:.1e} of the ODE's up to t = "
        f"{found['ts'][-1]:g}, its lam within {lam:.1e}",
        verdict(max(q, lam) < SOLVED),
        "holds",
        "The solver takes q and lam from the density (eq:tracked_par) and never from the "
        "ODE; what is left is its error in cells and steps.",
    )


def _listed(values, form: str) -> str:
    return ", ".join(format(float(v), form) for v in values)


def _values(distances: list[Distance]) -> str:
    return _listed([d.value for d in distances], ".4f")


def _chances(distances: list[Distance]) -> str:
    return _listed([d.chance for d in distances], ".4f")


def panels(found: Arrays) -> Figure:
    """Theory over the histogram of the trials, a panel a time."""
    ts = found["ts"]
    with style():
        figure, axes = plt.subplots(
            1, len(ts) - 1, figsize=(2.6 * (len(ts) - 1), 2.7), sharex=True, sharey=True
        )
        for i, ax in enumerate(axes, start=1):
            _panel(ax, found, i)
            ax.set(title=f"$t = {ts[i]:g}$", xlabel=r"$x/\lambda_t$")
        axes[0].set_ylabel(r"density $P_t$")
        axes[0].set_xlim(found["edges"][[0, -1]])
        axes[0].set_ylim(bottom=0)
        handles, labels = axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper center", ncols=len(labels))
    return figure


def _panel(ax: Axes, found: Arrays, i: int) -> None:
    edges, trials = found["edges"], len(found["counted"])
    centres = (edges[1:] + edges[:-1]) / 2
    filled: dict[str, Any] = dict(fill=True, color=COLOURS[1], alpha=0.3)
    ax.stairs(found["seen"][i], edges, label=f"exact chain, {trials} trials", **filled)
    bars: dict[str, Any] = dict(fmt="none", color=COLOURS[1], elinewidth=0.8)
    ax.errorbar(centres, found["seen"][i], yerr=found["seen_error"][i], **bars)
    if found["ts"][i] == WITNESS_UNTIL and "witness" in found:
        look: dict[str, Any] = dict(color=COLOURS[2], mfc="none", markersize=3.5, mew=0.8)
        label = "p-dimensional algorithm"
        ax.plot(centres, found["witness"], MARKERS[0], label=label, **look)
    grey: dict[str, Any] = dict(color="0.45", linestyle="--", linewidth=1.1)
    ax.plot(found["x"][0], found["pdf"][0], label="start, theory", **grey)
    ax.plot(found["x"][i], found["pdf"][i], color=COLOURS[0], label="theory, PDE")
