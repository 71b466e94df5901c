"""Histograms of the entries of the estimate in simulations."""

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
from .._result import AbstractResult, Variables
from .._trajectory import AbstractTrajectory, Snapshots

Numbers: TypeAlias = Sequence[float] | np.ndarray | Array


class Histogram(AbstractResult):
    """Histograms of the entries of the estimate, grouped by the spike's entry.

    `pdf[i, g]` is the histogram at time `ts[i]` of those entries whose spike's entry is in
    group `g`, normalised to a density.

    **Arguments:**

    - `ts`: the times, of shape (times,).
    - `edges`: the edges of the bins, of shape (times, bins + 1).
    - `groups`: intervals of the spike's entry, of shape (groups, 2).
    - `nodes`: the mean of the spike's entries in a group, of shape (times, groups).
    - `counts`: the number of entries in a group, of shape (times, groups).
    - `pdf`, `error`: the density and its standard error, of shape (times, groups, bins).
    - `marginal`, `marginal_error`: those of all entries, whether in a group or not, of
      shape (times, bins).
    - `rescaled`: whether the entries are those of `x/lam`.

    **Example:**

    ```pycon
    >>> import jax.random as jr
    >>> import inopca_jax as ino
    >>> config = ino.Config(model=ino.SpikedModel(p=100), ts=[0.0, 1.0, 2.0])
    >>> engine = ino.Chain(snapshots=True)
    >>> runs = ino.simulate(config, key=jr.key(0), trials=4, engine=engine)
    >>> histogram = ino.empirical_density(runs, bins=20)
    >>> histogram.centres.shape, histogram.marginal.shape
    ((3, 20), (3, 20))
    ```
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

    def _variables(self) -> tuple[Variables, Variables, str]:
        bins, groups = ("time", "bin"), ("time", "group")
        variables: Variables = {
            "pdf": ((*groups, "bin"), self.pdf),
            "error": ((*groups, "bin"), self.error),
            "marginal": (bins, self.marginal),
            "marginal_error": (bins, self.marginal_error),
            "counts": (groups, self.counts),
        }
        coords: Variables = {
            "time": (("time",), self.ts),
            "x": (bins, self.centres),
            "x_low": (bins, self.edges[:, :-1]),
            "x_high": (bins, self.edges[:, 1:]),
            "nodes": (groups, self.nodes),
            "xi_low": (("group",), self.groups[:, 0]),
            "xi_high": (("group",), self.groups[:, 1]),
        }
        return variables, coords, ""

    @property
    def centres(self) -> Float[np.ndarray, "times bins"]:
        """The centres of the bins, of shape (times, bins)."""
        return (self.edges[:, 1:] + self.edges[:, :-1]) / 2


def empirical_density(
    runs: Checked[AbstractTrajectory],
    *,
    bins: Checked[int | Numbers] = 60,
    groups: Checked[int | Numbers | None] = None,
    atoms: Checked[Numbers | None] = None,
    rescaled: Checked[bool] = False,
) -> Histogram:
    """Returns histograms of the snapshots of all finite trials.

    The standard errors are those of the mean over trials, so they include the fluctuations
    of `q` and `lam`, which the entries of a trial share. With a single trial they are
    binomial, without these fluctuations.

    **Arguments:**

    - `runs`: simulations with snapshots, with axes (trials, times).
    - `bins`: a number of bins of equal width from the smallest to the largest entry, or
      their edges, of shape (bins + 1,).
    - `groups`: how to group entries by the spike's entry: a number of equally likely
      groups, or the edges of intervals, of which the right end is excluded. By default all
      entries are one group.
    - `atoms`: for a spike of point masses, their positions, of shape (groups,): each is a
      group, with the spike's entries that are nearest to it.
    - `rescaled`: whether to count `x/lam`, as in the paper, instead of `x`.

    **Returns:**

    A `Histogram`.

    **Example:**

    ```pycon
    >>> import jax.random as jr
    >>> import numpy as np
    >>> import inopca_jax as ino
    >>> config = ino.Config(model=ino.SpikedModel(p=100), ts=[0.0, 1.0, 2.0])
    >>> engine = ino.Chain(snapshots=True)
    >>> runs = ino.simulate(config, key=jr.key(0), trials=4, engine=engine)
    >>> histogram = ino.empirical_density(runs, bins=20)
    >>> bool(np.allclose(np.sum(histogram.marginal * np.diff(histogram.edges), axis=1), 1))
    True
    ```
    """
    require_instance("runs", runs, AbstractTrajectory)
    rescaled = require_flag("rescaled", rescaled)
    if not isinstance(runs, Snapshots):
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
        raise ValueError(
            "runs has no finite trial, so that there are no entries to count. Pass "
            "simulations with a smaller learning rate."
        )
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
    at_times = [
        [_histogram(x[:, i], xi[:, i], edges[i], g) for g in (everything, *intervals)]
        for i in range(x.shape[1])
    ]
    counts, nodes, pdf, error = (
        np.array([[group[k] for group in groups] for groups in at_times]) for k in range(4)
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
    """Returns the edges of the bins for the entries `x`."""
    edges = reals_on_host("bins", bins, "pass a whole number, or the bins' edges")
    if edges.ndim == 0:
        count = require_whole("bins", bins, 1, "pass a whole number, or the bins' edges")
        return np.linspace(x.min(), x.max(), count + 1)
    require("bins", edges, _is_increasing, "edges must be finite and increase")
    return edges


def _is_increasing(edges: np.ndarray) -> bool:
    """Whether these are two or more finite, increasing numbers in one axis."""
    return (
        edges.ndim == 1
        and edges.size > 1
        and bool(np.all(np.isfinite(edges)) and np.all(np.diff(edges) > 0))
    )


def _intervals(xi: np.ndarray, groups: Any, atoms: Any) -> np.ndarray:
    """Returns the intervals of the spike's entry that are the groups, (groups, 2)."""
    if groups is not None and atoms is not None:
        raise ValueError(
            f"groups = {groups} and atoms = {atoms} cannot both be passed: pass atoms for "
            "a spike of point masses, and groups for any other."
        )
    if atoms is not None:
        # Nearest, not equal: entries are rescaled to |xi| = sqrt(p), which moves them.
        remedy = "pass the point masses of the spike's law"
        points = np.sort(reals_on_host("atoms", atoms, remedy).ravel())
        require("atoms", points, lambda x: x.size > 0 and np.all(np.isfinite(x)), remedy)
        edges = np.concatenate([[-np.inf], (points[1:] + points[:-1]) / 2, [np.inf]])
        return np.stack([edges[:-1], edges[1:]], axis=1)
    if groups is None:
        return np.array([[-np.inf, np.inf]])
    edges = reals_on_host("groups", groups, "pass a whole number, or the edges")
    if edges.ndim == 0:
        count = require_whole("groups", groups, 1, "pass a whole number, or the edges")
        edges = np.quantile(xi, np.linspace(0, 1, count + 1))
        edges[-1] = np.nextafter(edges[-1], np.inf)  # the right end is excluded
        if not _is_increasing(edges):
            raise ValueError(
                f"groups = {count} is not allowed: the spike's entries have fewer "
                "different values. Pass atoms, the point masses of its law."
            )
    require("groups", edges, _is_increasing, "edges must be finite and increase")
    return np.stack([edges[:-1], edges[1:]], axis=1)


def _histogram(
    x: np.ndarray, xi: np.ndarray, edges: np.ndarray, interval: np.ndarray
) -> tuple[int, float, np.ndarray, np.ndarray]:
    """Returns the histogram of those entries whose `xi` is in the interval.

    `x` and `xi` are of shape (trials, p). The result is the number of entries, the mean of
    their `xi`, the density in the bins and its standard error.
    """
    in_group = (xi >= interval[0]) & (xi < interval[1])
    width = np.diff(edges)
    per_trial = np.stack(
        [
            np.histogram(entries[mask], edges)[0]
            for entries, mask in zip(x, in_group, strict=True)
        ]
    )
    sizes = in_group.sum(axis=1)
    total = int(sizes.sum())
    if not total:
        empty = np.full(width.size, np.nan)
        return 0, np.nan, empty, empty
    fraction = per_trial.sum(axis=0) / total
    trials = len(x)
    if trials > 1:
        # The fraction is a ratio of two sums over trials. To first order its error is the
        # mean of these residuals.
        residual = per_trial - fraction * sizes[:, None]
        variance = np.sum(residual**2, axis=0) / total**2 * trials / (trials - 1)
    else:
        variance = fraction * (1 - fraction) / total
    mean = float(xi[in_group].mean())
    return total, mean, fraction / width, np.sqrt(variance) / width
