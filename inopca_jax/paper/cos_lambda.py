"""The overlap Q_t and the norm lam_t of INO-PCA, Example 1.

Lines are the ODEs eq:Q_t and eq:lambda_t, points the mean of 20 trials of the exact chain
at p = 10,000 with one standard deviation, the band the deviation that theory predicts for
this p, and open markers trials of the p-dimensional algorithm itself.
"""

import numpy as np
from matplotlib.figure import Figure

from .. import plot
from .._config import Config
from .._rule import InoPCA
from .._trajectory import Trajectory
from .claim import Claim, verdict
from .curves import OMEGA, TAU, TRIALS, Arrays, curves, learned, setting, trajectory

# As many points as in the figure error_bars: one program predicts the bars of both.
T_MAX, POINTS = 30.0, 41
# By how many standard errors the trials' mean may miss, and how near to its limit the ODE
# has to come by T_MAX.
SURE, NEAR = 4.0, 1e-3


def configs(quick: bool = False) -> dict[str, Config]:
    """The paper's defaults."""
    return {"INO-PCA": setting(InoPCA(TAU), t_max=T_MAX, points=POINTS)}


def compute(quick: bool = False) -> Arrays:
    """Theory with its bars at this p, trials and witness."""
    until = None if quick else {"INO-PCA": 4.5}
    return learned(configs(quick), trials=TRIALS, seed=3, witness=until, bands=True)


def draw(found: Arrays) -> Figure:
    """The overlap and the norm."""
    figure = plot.learning_curves(curves(found))
    norm = figure.axes[1]
    # One legend serves both panels.
    legend = norm.get_legend()
    assert legend is not None
    legend.remove()
    with plot.style():
        norm.axhline(OMEGA + 1, color="0.45", linestyle=":", zorder=1)
        norm.text(0, OMEGA + 1, r"$\omega + 1$", va="bottom", color="0.3")
    return figure


def claims(found: Arrays) -> list[Claim]:
    """What the paper says of the figure."""
    theory, runs = (trajectory(found, f"INO-PCA/{x}") for x in ("theory", "runs"))
    return [
        _predicted(theory, runs, "q", "eq:Q_t"),
        _predicted(theory, runs, "lam", "eq:lambda_t"),
        _grows(theory, runs),
    ]


def _predicted(theory: Trajectory, runs: Trajectory, name: str, where: str) -> Claim:
    """How far the trials' mean is from the ODE, in standard errors, at any time.

    The errors are from the deviations that theory predicts: of the trials' own, which are
    known to a sixth, the least of a hundred would say more than they know.
    """
    values, line = (np.asarray(getattr(run, name), float) for run in (runs, theory))
    shift, std = (
        np.asarray(getattr(theory, f"{name}_{x}"), float) for x in ("shift", "std")
    )
    moves = std > 1e-6  # the start's norm does not
    gap, error = values.mean(axis=0) - line, std / len(values) ** 0.5
    sure = np.abs(gap[moves] / error[moves])
    at, ts = int(np.argmax(sure)), np.asarray(theory.ts)
    ratio = values.std(axis=0, ddof=1)[moves] / std[moves]
    widest = int(np.argmax(np.abs(shift)))
    return Claim(
        where,
        f"the ODE accurately predicts {dict(q='Q_t', lam='lambda_t')[name]}",
        float(gap[moves][at]),
        float(error[moves][at]),
        f"the mean of {len(values)} trials is at most {np.abs(gap).max():.4f} off, and at "
        f"most {sure.max():.1f} standard errors (at t = {ts[moves][at]:.3g}); at this p "
        f"theory predicts a gap of the mean of up to {shift[widest]:+.4f}, at t = "
        f"{ts[widest]:.3g}. The trials' deviations are {ratio.min():.2f} to "
        f"{ratio.max():.2f} times the predicted",
        verdict(bool(sure.max() < SURE)),
        "holds",
        "The ODE is the limit of large p: runs scatter about it by O(1/sqrt(p)), and "
        f"their mean is O(1/p) away. Within {SURE:g} standard errors at all times counts.",
    )


def _grows(theory: Trajectory, runs: Trajectory) -> Claim:
    lam, last = np.asarray(theory.lam, float), np.asarray(runs.lam, float)[:, -1]
    error = last.std(ddof=1) / len(last) ** 0.5
    gap, left = last.mean() - (OMEGA + 1), lam[-1] - (OMEGA + 1)
    rises = bool(np.all(np.diff(lam) > -1e-6))
    return Claim(
        "fig:cos_lambda",
        "lambda_t increases as the learning proceeds and converges to omega + 1",
        float(last.mean()),
        float(error),
        f"the ODE's norm {'never' if rises else 'also'} falls and is {left:+.1e} from "
        f"omega + 1 at t = {T_MAX:g}; the trials' mean there is {last.mean():.4f} +- "
        f"{error:.4f}, one trial scatters by {last.std(ddof=1):.3f}",
        verdict(rises and bool(abs(left) < NEAR and abs(gap) < SURE * error)),
        "holds",
        "For this start, q0 = 0.1 and lam0 = 1, and in the mean: at finite p the norm of "
        "one run goes on to fluctuate by O(1/sqrt(p)).",
    )
