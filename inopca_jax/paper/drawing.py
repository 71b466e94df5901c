"""What several drawings have in common."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from inopca_jax import plot

from .claim import Arrays
from .labels import in_words
from .learning_curves import MANY_TRIALS, REFERENCE_P
from .statistics import Mean, mean_of, std_of

# The error bars of the paper where cold starts spread widely, in standard deviations.
THIRD = 1 / 3


def time_axis(*axes: Axes) -> None:
    """Labels the axes of time."""
    for ax in axes:
        ax.set_xlabel(r"time $t = k/p$")
        ax.margins(x=0.02)


def points(ax: Axes, x: np.ndarray, mean: Mean, index: int, **options: Any) -> None:
    """Draws means as points with their errors, in the colour of this index."""
    style: dict[str, Any] = dict(fmt=plot.MARKERS[index], color=plot.COLOURS[index])
    style |= dict(capsize=2, elinewidth=1) | options
    ax.errorbar(x, mean.value, yerr=mean.error, **style)


def limit_line(
    ax: Axes, ts: np.ndarray, q: np.ndarray, label: str, linestyle: str
) -> Line2D:
    """Draws a line in grey, such as a limit, and returns its handle for a legend."""
    (line,) = ax.plot(
        ts, q, color="0.45", linestyle=linestyle, linewidth=1.2, zorder=1, label=label
    )
    return line


def legend_of_lines(ax: Axes, **options: Any) -> None:
    """Adds a legend without the points, which have the colours of the lines."""
    lines = {
        label.removesuffix(", theory"): handle
        for handle, label in zip(*ax.get_legend_handles_labels(), strict=True)
        if "trials" not in label
    }
    ax.legend(list(lines.values()), list(map(in_words, lines)), **options)


def overlap_panel(ax: Axes, arrays: Arrays, names: Sequence[str]) -> list[Line2D]:
    """Draws `|q|` of several algorithms and returns the legend's handles.

    Theory is drawn as a line, the mean of many trials as points, the paper's 20 trials as
    light bars of a third of their standard deviation, and the p-dimensional algorithm, at a
    smaller p, as black points with standard errors, with its own theory.
    """
    handles = []
    for i, name in enumerate(names):
        ts, q = arrays[f"{name}/theory/ts"], np.abs(arrays[f"{name}/runs/q"])
        # Those of different curves are at different times, so that they do not overlap.
        at = slice(2 * i % 6, None, 6)
        few = Mean(q.mean(axis=0)[at], THIRD * std_of(q).value[at])
        points(ax, ts[at], few, i, fmt="none", capsize=0, elinewidth=3, alpha=0.3)
        style: dict[str, Any] = dict(color=plot.COLOURS[i], marker=plot.MARKERS[i])
        ax.plot(ts, arrays[f"{name}/theory/q"], color=plot.COLOURS[i])
        ax.plot(ts[at], arrays[f"{name}/mean/q"][at], linestyle="none", **style)
        handles.append(Line2D([], [], label=in_words(name), **style))
    many: dict[str, Any] = dict(color="0.3", linestyle="none", marker="o")
    handles.append(Line2D([], [], label=f"mean of {MANY_TRIALS} trials", **many))
    few_label = r"20 trials, mean $\pm$ sd/3"
    handles.append(Line2D([], [], label=few_label, color="0.3", alpha=0.3, linewidth=3))
    if "reference/runs/q" in arrays:
        q = arrays["reference/theory/q"]
        handles.append(draw_reference(ax, arrays, "q", q, REFERENCE_P))
    time_axis(ax)
    ax.set_ylabel(r"overlap $|q_t|$")
    return handles


def draw_reference(ax: Axes, arrays: Arrays, field: str, theory: np.ndarray, p: int) -> Any:
    """Draws the mean of the p-dimensional algorithm at a dimension p, with standard errors,
    and what theory predicts for it. Returns the legend's handle."""
    ts = arrays["reference/theory/ts"]
    ax.plot(ts, theory, color="black", linewidth=0.9)
    black: dict[str, Any] = dict(
        fmt="o", mfc="none", color="black", capsize=2, elinewidth=1
    )
    at = slice(3, None, 6)
    runs = arrays[f"reference/runs/{field}"]
    mean = mean_of(runs)[at]
    label = f"p-dimensional, $p$ = {p:,}, {len(runs)} trials"
    return ax.errorbar(ts[at], mean.value, yerr=mean.error, label=label, zorder=4, **black)
