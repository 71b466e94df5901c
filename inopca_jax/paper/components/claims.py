"""What the theory of several components says, checked."""

import numpy as np

from ..claim import Arrays, Claims, Finding
from ..statistics import SIGNIFICANT, listed, mean_of, time_to_reach
from .compute import CHAIN, LARGE, LARGE_P, LATE, OMEGAS, STREAM, P

# How near to the ODE the means at the large p are: an error of order 1/p, where the curves
# are steep; and the precision of the ODE in single precision.
_ACCURATE, _PRECISION = 0.02, 1e-3
# The overlap whose time is compared.
_HALF = 0.5

claims = Claims()


@claims.add("beyond the paper, alg:INO-PCA_multiple_pc")
def exact_chain(arrays: Arrays) -> Finding:
    """The chain has the law of the p-dimensional algorithm, at any p.

    It holds if the means of the overlaps, the norms and the distance agree at all times
    within four standard errors.
    """
    zs = []
    for quantity in ("q", "lam", "distance"):
        one, two = (
            mean_of(arrays[f"{name}/{quantity}"][:, 1:]) for name in (CHAIN, STREAM)
        )
        zs.append(np.ravel((one - two).standard_errors))
    largest = float(np.max(np.abs(np.concatenate(zs))))
    return Finding(
        largest,
        0,
        f"at p = {P} the means of both differ by at most {largest:.1f} standard errors, "
        f"over {sum(z.size for z in zs)} means of overlaps, norms and distances",
        largest < SIGNIFICANT,
    )


@claims.add("beyond the paper, alg:INO-PCA_multiple_pc")
def follows_the_ode(arrays: Arrays) -> Finding:
    """As p grows the components follow a matrix ODE.

    It holds if the means of overlaps at the larger p are within 0.02 of it at all times.
    """
    gaps = mean_of(arrays[f"{LARGE}/q"]) - arrays["theory/q"]
    distance = np.abs(gaps.value)
    at = np.unravel_index(np.argmax(distance), distance.shape)
    gap = gaps[at]
    small = np.max(np.abs(mean_of(arrays[f"{CHAIN}/q"]).value - arrays["theory/q"]))
    return Finding(
        gap.value,
        gap.error,
        f"the mean overlap of a component with its spike differs from the ODE by at most "
        f"{abs(gap.value):.4f} +- {gap.error:.4f} at p = {LARGE_P:,}, and by {small:.3f} "
        f"at p = {P}",
        np.all(distance < _ACCURATE + SIGNIFICANT * gaps.error),
    )


@claims.add("beyond the paper, alg:INO-PCA_multiple_pc")
def as_if_alone(arrays: Arrays) -> Finding:
    """At rest each component has the overlap and the norm that it would have with its own
    spike alone.

    It holds if the ODE ends there within 0.001, both from overlaps with the own spikes and
    from overlaps with all of them.
    """
    errors = [
        np.max(np.abs(arrays[f"late {start}/{name}"] - arrays[f"steady/{name}"]))
        for start in ("theory", "mixed")
        for name in ("q", "lam", "distance")
    ]
    return Finding(
        max(errors),
        _PRECISION,
        f"at t = {LATE:g} the overlaps of the ODE are "
        f"{listed(arrays['late mixed/q'], '.4f')} and the norms "
        f"{listed(arrays['late mixed/lam'], '.4f')}; the closed forms for one spike differ"
        f" by at most {max(errors):.1e}, also in the distance",
        max(errors) < _PRECISION,
    )


@claims.add("beyond the paper, alg:INO-PCA_multiple_pc", "holds with a condition")
def as_if_alone_on_the_way(arrays: Arrays) -> Finding:
    """On the way there the components do not feel each other either.

    If each begins with an overlap with its own spike alone: then products of components
    with each other, and with the spikes of others, stay 0. From overlaps with all spikes,
    what the components before it leave of their spikes draws a weaker one away from its
    own. The times are compared at which overlaps reach one half.
    """
    times = {
        name: time_to_reach(arrays["ts"], arrays[f"{name}/q"].T, _HALF)
        for name in ("theory", "mixed", "alone")
    }
    own, mixed = (np.abs(times[name] - times["alone"]) for name in ("theory", "mixed"))
    return Finding(
        np.max(mixed),
        _PRECISION,
        f"the components for omega = {listed(OMEGAS)} reach an overlap of {_HALF:g} at t = "
        f"{listed(times['alone'], '.2f')} alone, at {listed(times['theory'], '.2f')} from "
        f"overlaps with their own spikes, and at {listed(times['mixed'], '.2f')} from "
        "overlaps with all spikes",
        np.all(own < _PRECISION) and np.all(mixed < _PRECISION),
        np.all(own < _PRECISION),
    )


@claims.add("beyond the paper, alg:INO-PCA_multiple_pc")
def offline_is_a_bound(arrays: Arrays) -> Finding:
    """No distance is below that of offline PCA on the same samples.

    It holds if no mean of the p-dimensional algorithm is below the limit of offline PCA by
    more than four standard errors.
    """
    known = arrays["ts"] > 1 / min(OMEGAS) ** 2
    distance = mean_of(arrays[f"{STREAM}/distance"][:, known])
    margin = distance - arrays["offline/distance"][known]
    at = int(np.argmin(margin.value))
    return Finding(
        margin.value[at],
        margin.error[at],
        f"the mean distance of the p-dimensional algorithm exceeds that of offline PCA by "
        f"{margin.value.min():.2f} to {margin.value.max():.2f} from t = "
        f"{arrays['ts'][known][0]:g} on",
        np.all(margin.value > -SIGNIFICANT * margin.error),
    )
