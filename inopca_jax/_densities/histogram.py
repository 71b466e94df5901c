"""The law of the estimate's entries, as simulations have it."""

import warnings
from collections.abc import Sequence
from typing import Any, TypeAlias

import equinox as eqx
import numpy as np
from jaxtyping import Array, Float, Integer

from .._check import (
    Checked,
    reals_on_host,
    require,
    require_flag,
    require_instance,
    require_whole,
)
from .._pickling import Pickled
from .._trajectory import Trajectory

Numbers: TypeAlias = Sequence[float] | np.ndarray | Array


class Histogram(Pickled):
    """`pdf[i, g]` is the share of entries in each bin at time `ts[i]`, over the bin's
    width, among those whose entry of the spike belongs to group `g`; `error` is its
    standard error.

    `groups` are intervals of the spike's entry, (groups, 2); `counts` is how many entries
    there were, `nodes` the mean of their spike's. `marginal` is that of all entries, in a
    group or not, and `rescaled` says whether it is `x/lam` that was counted.
    """

    ts: Float[np.ndarray, " times"]
    edges: Float[np.ndarray, "times edges"]
    groups: Float[np.ndarray, "groups 2"]
    nodes: Float[np.ndarray, "times groups"]
    counts: Integer[np.ndarray, "times groups"]
    pdf: Float[np.ndarray, "times groups bins"]
    error: Float[np.ndarray, "times groups bins"]
    marginal: Float[np.ndarray, "times bins"]
    marginal_error: Float[np.ndarray, "times bins"]
    rescaled: bool = eqx.field(static=True)

    @property
    def centres(self) -> Float[np.ndarray, "times bins"]:
        return (self.edges[:, 1:] + self.edges[:, :-1]) / 2


def empirical_density(
    runs: Checked[Trajectory],
    *,
    bins: Checked[int | Numbers] = 60,
    groups: Checked[int | Numbers | None] = None,
    atoms: Checked[Numbers | None] = None,
    rescaled: Checked[bool] = False,
) -> Histogram:
    """Histograms of the snapshots of all finite trials.

    `bins` of equal width over what was seen, or their edges. By default one group of all
    entries; `groups` cuts the spike's entries into as many equally likely ones (or at the
    given edges, without the right one), `atoms`, for a law of point masses, puts each to
    the nearest of all of these. With `rescaled` it is `x/lam` that is counted, as in the
    paper.

    The standard error is that of the mean over trials, whose entries also share the
    fluctuation of `q` and `lam`; from a single trial it is the binomial one, which
    leaves this out.
    """
    require_instance("runs", runs, Trajectory)
    rescaled = require_flag("rescaled", rescaled)
    if runs.x is None or runs.xi is None:
        raise ValueError(
            "runs has no snapshots: simulate with engine=Chain(snapshots=True) or "
            "Stream(snapshots=True)."
        )
    if runs.q.ndim != 2:
        raise ValueError(
            f"runs with q of shape {runs.q.shape} is not allowed: pass simulations, of "
            "shape (trials, times)."
        )
    finite = np.asarray(runs.finite)
    if not finite.any():
        raise ValueError("runs has no finite trial: there is nothing to count.")
    if not finite.all():
        warnings.warn(
            f"{(~finite).sum()} of {finite.size} trials are not finite and left out.",
            stacklevel=2,
        )
    x, xi = (np.asarray(a, dtype=float)[finite] for a in (runs.x, runs.xi))
    if rescaled:
        x = x / np.asarray(runs.lam, dtype=float)[finite][:, :, None]
    intervals = _intervals(xi, groups, atoms)
    edges = np.stack([_edges(x[:, i], bins) for i in range(x.shape[1])])
    everything = np.array([-np.inf, np.inf])
    rows = [
        [_count(x[:, i], xi[:, i], edges[i], g) for g in (everything, *intervals)]
        for i in range(x.shape[1])
    ]
    counts, nodes, pdf, error = (
        np.array([[group[k] for group in row] for row in rows]) for k in range(4)
    )
    return Histogram(
        ts=np.asarray(runs.ts, dtype=float),
        edges=edges,
        groups=intervals,
        nodes=nodes[:, 1:],
        counts=counts[:, 1:],
        pdf=pdf[:, 1:],
        error=error[:, 1:],
        marginal=pdf[:, 0],
        marginal_error=error[:, 0],
        rescaled=rescaled,
    )


def _edges(x: np.ndarray, bins: Any) -> np.ndarray:
    edges = reals_on_host("bins", bins, "pass a whole number, or the bins' edges")
    if edges.ndim == 0:
        count = require_whole("bins", bins, 1, "pass a whole number, or the bins' edges")
        return np.linspace(x.min(), x.max(), count + 1)
    require("bins", edges, _increase, "edges must be finite and increase")
    return edges


def _increase(edges: np.ndarray) -> bool:
    return (
        edges.ndim == 1
        and edges.size > 1
        and bool(np.all(np.isfinite(edges)) and np.all(np.diff(edges) > 0))
    )


def _intervals(
    xi: np.ndarray,
    groups: Any,
    atoms: Any,
) -> np.ndarray:
    if groups is not None and atoms is not None:
        raise ValueError(
            f"groups = {groups} and atoms = {atoms} cannot both be: a law of point masses "
            "has atoms, any other is cut into groups."
        )
    if atoms is not None:
        # `xi` is rescaled to |xi| = sqrt(p), so a sample's atoms are near the law's.
        remedy = "pass the point masses of the spike's law"
        at = np.sort(reals_on_host("atoms", atoms, remedy).ravel())
        require("atoms", at, lambda x: x.size > 0 and np.all(np.isfinite(x)), remedy)
        edges = np.concatenate([[-np.inf], (at[1:] + at[:-1]) / 2, [np.inf]])
        return np.stack([edges[:-1], edges[1:]], axis=1)
    if groups is None:
        return np.array([[-np.inf, np.inf]])
    edges = reals_on_host("groups", groups, "pass a whole number, or the edges")
    if edges.ndim == 0:
        count = require_whole("groups", groups, 1, "pass a whole number, or the edges")
        edges = np.quantile(xi, np.linspace(0, 1, count + 1))
        edges[-1] = np.nextafter(edges[-1], np.inf)  # groups have no right end
        if not _increase(edges):
            raise ValueError(
                f"groups = {count} is not allowed: the spike's entries are not that many "
                "different numbers. Pass atoms, the point masses of its law."
            )
    require("groups", edges, _increase, "edges must be finite and increase")
    return np.stack([edges[:-1], edges[1:]], axis=1)


def _count(x: np.ndarray, xi: np.ndarray, edges: np.ndarray, interval: np.ndarray):
    """How many, the mean of `xi`, the density and its error, for entries (trials, p)."""
    mine = (xi >= interval[0]) & (xi < interval[1])
    width = np.diff(edges)
    per_trial = np.stack(
        [np.histogram(one[chosen], edges)[0] for one, chosen in zip(x, mine, strict=True)]
    )
    sizes = mine.sum(axis=1)
    total = sizes.sum()
    if not total:
        empty = np.full(width.size, np.nan)
        return 0, np.nan, empty, empty
    share = per_trial.sum(axis=0) / total
    if len(x) > 1:
        # The ratio of two sums over trials: the error of what each adds to it.
        residual = per_trial - share * sizes[:, None]
        variance = np.sum(residual**2, axis=0) / total**2 * len(x) / (len(x) - 1)
    else:
        variance = share * (1 - share) / total
    return total, xi[mine].mean(), share / width, np.sqrt(variance) / width
