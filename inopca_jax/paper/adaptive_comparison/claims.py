"""What the paper says about the three algorithms and the change, checked."""

import numpy as np

from ..claim import Claim, verdict
from ..first_passage import time_to_reach
from ..learning_curves import TAU, TRIALS, Arrays
from .compute import ADAOJA, ADAPTIVE, CCIPCA, CHANGE, CONSTANT, T_MAX

# Means of |q| that differ by less are comparable, a larger lead is noticeable, and a time
# that is longer by a larger factor is much longer.
_COMPARABLE, _NOTICEABLE, _MUCH_LONGER = 0.05, 0.05, 3.0
# The error of the theory's mean of |q|, and the number of standard errors from which on a
# difference is significant.
_THEORY_ERROR, _SIGNIFICANT = 0.002, 4.0


class _Phase:
    """The overlaps before the change (phase 0) or after it (phase 1), at times that count
    from the beginning of the phase."""

    def __init__(self, arrays: Arrays, phase: int):
        ts = arrays[f"{ADAPTIVE}/theory/ts"]
        self.is_in_phase = (ts >= CHANGE) if phase else (ts < CHANGE)
        self.ts, self.arrays = ts[self.is_in_phase] - phase * CHANGE, arrays

    def theory(self, name: str) -> np.ndarray:
        return self.arrays[f"{name}/theory/q"][self.is_in_phase]

    def trials(self, name: str) -> np.ndarray:
        return self.arrays[f"{name}/runs/q"][:, self.is_in_phase]

    def time_of_mean(self, name: str, level: float) -> float:
        """When the theory's mean of |q| reaches the level."""
        return float(time_to_reach(self.ts, self.theory(name)[None], level)[0])

    def times_of_trials(self, name: str, level: float) -> tuple[float, float, int]:
        """When trials reach the level, counting the end of the phase for those that do
        not: the mean and its standard error, and the number of trials that do."""
        times = time_to_reach(self.ts, self.trials(name), level)
        capped = np.minimum(times, self.ts[-1])
        error = capped.std(ddof=1) / len(capped) ** 0.5
        return capped.mean(), error, int(np.isfinite(times).sum())


def claims(arrays: Arrays) -> list[Claim]:
    """Returns the claims about the figure."""
    before, after = (_Phase(arrays, phase) for phase in range(2))
    return [
        _comparable_before_the_change(before),
        _faster_in_the_middle(before),
        _regains_overlap(before, after),
        _others_adapt_slowly(after),
        _others_reduce_influence(arrays),
        _remains_responsive(arrays, after),
    ]


def _comparable_before_the_change(before: _Phase) -> Claim:
    names = (ADAPTIVE, ADAOJA, CCIPCA)
    last = [before.trials(name)[:, -1] for name in names]
    means = [values.mean() for values in last]
    error = max(values.std(ddof=1) / len(values) ** 0.5 for values in last)
    early = [before.theory(name)[5] for name in names]
    remaining = [1 - before.theory(name)[-1] ** 2 for name in names]
    spread = max(means) - min(means)
    comparable = spread + _SIGNIFICANT * error < _COMPARABLE and np.ptp(early) < _COMPARABLE
    return Claim(
        source="fig:adaptive_comparison",
        statement="in the first phase all achieve comparable initial and steady-state "
        "similarity",
        number=float(spread),
        error=float(error),
        evidence=f"the mean of |q| is {_listed(early)} at t = {before.ts[5]:g} by theory, "
        f"and {_listed(means)} (+- {error:.4f}) at t = {before.ts[-1]:g} in the trials "
        "(adaptive, AdaOja, CCIPCA)",
        verdict=verdict(bool(comparable)),
        recorded="holds",
        explanation=f"Means that differ by less than {_COMPARABLE:g} count as comparable. "
        "It is not yet a steady state: all three overlaps tend to 1, and 1 - q^2 is "
        f"{_listed(remaining)} at that time.",
    )


def _faster_in_the_middle(before: _Phase) -> Claim:
    ours, others = before.theory(ADAPTIVE), [before.theory(x) for x in (ADAOJA, CCIPCA)]
    lead = ours - np.max(others, axis=0)
    at = int(lead.argmax())
    predicted = [(ours - other)[at] for other in others]
    differences = [
        before.trials(ADAPTIVE)[:, at] - before.trials(x)[:, at] for x in (ADAOJA, CCIPCA)
    ]
    measured = [(x.mean(), x.std(ddof=1) / len(x) ** 0.5) for x in differences]
    agree = all(
        abs(mean - theory) < _SIGNIFICANT * error
        for (mean, error), theory in zip(measured, predicted, strict=True)
    )
    times = [before.time_of_mean(name, 0.8) for name in (ADAPTIVE, ADAOJA, CCIPCA)]
    behind_until = before.ts[np.flatnonzero(lead < 0)[-1]] if np.any(lead < 0) else 0
    return Claim(
        source="fig:adaptive_comparison",
        statement="Adaptive INO-PCA improves noticeably faster in the middle of the "
        "interval",
        number=float(lead[at]),
        error=_THEORY_ERROR,
        evidence=f"at t = {before.ts[at]:g} theory has it ahead of AdaOja by "
        f"{predicted[0]:.3f} and of CCIPCA by {predicted[1]:.3f} (the trials, on the same "
        f"samples, by {' and '.join(f'{m:.3f} +- {e:.3f}' for m, e in measured)}); the "
        f"means of |q| reach 0.8 at t = {', '.join(f'{t:.1f}' for t in times)}",
        verdict=verdict(bool(lead[at] > _NOTICEABLE and agree)),
        recorded="holds",
        explanation=f"A lead of more than {_NOTICEABLE:g} counts as noticeable. Until t = "
        f"{behind_until:g} AdaOja is ahead: its first gains are large, and noise, too, "
        "leads away from q = 0.",
    )


def _regains_overlap(before: _Phase, after: _Phase) -> Claim:
    level = 0.8
    mean, error, count = after.times_of_trials(ADAPTIVE, level)
    first, again = (phase.time_of_mean(ADAPTIVE, level) for phase in (before, after))
    return Claim(
        source="fig:adaptive_comparison",
        statement="Adaptive INO-PCA rapidly regains high cosine similarity after the "
        "change",
        number=mean,
        error=error,
        evidence=f"{count} of {TRIALS} trials return to |q| = {level:g}, after a time of "
        f"{mean:.1f} +- {error:.1f}; by theory the mean of |q| returns after {again:.1f}, "
        f"and took {first:.1f} from the cold start",
        verdict=verdict(
            bool(count == TRIALS and abs(again / first - 1) < 0.05 and mean < 25)
        ),
        recorded="holds",
        explanation="It is as fast as from a cold start: the best gain at q = 0 does not "
        "depend on what was learnt before, and the oracle knows when the change happens.",
    )


def _others_adapt_slowly(after: _Phase) -> Claim:
    level, names = 0.5, (ADAPTIVE, ADAOJA, CCIPCA)
    ours, *others = (after.time_of_mean(name, level) for name in names)
    ratio = min(others) / ours
    counts = [after.times_of_trials(name, level)[2] for name in names]
    last = [after.theory(name)[-1] for name in names]
    return Claim(
        source="fig:adaptive_comparison",
        statement="AdaOja and CCIPCA adapt much more slowly",
        number=float(ratio),
        error=0.0,
        evidence=f"by theory the mean of |q| returns to {level:g} after a time of "
        f"{ours:.1f} (adaptive), {_duration(others[0])} (AdaOja) and "
        f"{_duration(others[1])} (CCIPCA); at t = {T_MAX:g} the means are {_listed(last)}, "
        f"and {counts[0]}, {counts[1]} and {counts[2]} of {TRIALS} trials have returned",
        verdict=verdict(bool(ratio > _MUCH_LONGER and counts[2] <= counts[1] <= counts[0])),
        recorded="holds",
        explanation=f"A time that is longer by a factor of {_MUCH_LONGER:g} or more "
        "counts. Their gains at the change are small, as they have fallen since the start.",
    )


def _others_reduce_influence(arrays: Arrays) -> Claim:
    ts = arrays[f"{ADAPTIVE}/theory/ts"]
    at = [int(np.searchsorted(ts, t)) for t in (5.0, 20.0, CHANGE - 1, T_MAX)]
    gains = {name: arrays[f"{name}/gain"][at] for name in (ADAOJA, CCIPCA)}
    all_fall = all(np.all(np.diff(gain) < 0) for gain in gains.values())
    least_factor = min(gain[0] / gain[2] for gain in gains.values())
    rise = arrays[f"{CCIPCA}/gain"][ts >= CHANGE].max() / gains[CCIPCA][2]
    return Claim(
        source="fig:adaptive_comparison",
        statement="AdaOja and CCIPCA progressively reduce the influence of new samples "
        "over time",
        number=float(least_factor),
        error=0.0,
        evidence=f"at t = {', '.join(f'{ts[i]:g}' for i in at)} the mean gains are "
        f"{_listed(gains[ADAOJA])} (AdaOja) and {_listed(gains[CCIPCA])} (CCIPCA)",
        verdict=verdict(bool(all_fall and least_factor > 2)),
        recorded="holds",
        explanation="AdaOja's gain falls as 1/sqrt(t), CCIPCA's as 1/t. After the change "
        f"CCIPCA's gain rises for a while, by {100 * (rise - 1):.0f} %, because its norm "
        "falls.",
    )


def _remains_responsive(arrays: Arrays, after: _Phase) -> Claim:
    ts = arrays[f"{ADAPTIVE}/theory/ts"]
    change = int(np.searchsorted(ts, CHANGE))
    names = (ADAPTIVE, ADAOJA, CCIPCA)
    gains_before = [arrays[f"{name}/gain"][change - 1] for name in names]
    gain_after = arrays[f"{ADAPTIVE}/gain"][change]
    times = [after.time_of_mean(name, 0.5) for name in (ADAPTIVE, CONSTANT)]
    is_smallest = gains_before[0] <= min(gains_before)
    jumps = gain_after > 5 * gains_before[0]
    return Claim(
        source="fig:adaptive_comparison",
        statement="Adaptive INO-PCA maintains a high degree of responsiveness",
        number=float(gains_before[0] / min(gains_before[1:])),
        error=0.0,
        evidence=f"just before the change the gains are {_listed(gains_before)} (adaptive, "
        f"AdaOja, CCIPCA); at the change the adaptive one jumps to {gain_after:.2f}. After "
        f"it, INO-PCA with the constant tau = {TAU:g} returns to |q| = 0.5 in "
        f"{times[1]:.1f}, the adaptive one in {times[0]:.1f}",
        verdict=verdict(
            bool(not is_smallest),
            otherwise="holds with a condition" if jumps else "does not hold",
        ),
        recorded="holds with a condition",
        explanation="Only because its rate is computed from the true q, which is not "
        "observed and falls to 0 at the change; before it, its gain is the smallest of the "
        "three. A constant rate needs no such oracle.",
    )


def _listed(values: list | np.ndarray) -> str:
    return ", ".join(f"{x:.3f}" for x in values)


def _duration(t: float) -> str:
    return f"{t:.1f}" if np.isfinite(t) else f"more than {T_MAX - CHANGE:g}"
