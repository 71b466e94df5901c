"""What the text says without a figure, from the arrays of `statements`."""

import numpy as np

from .appendix_claims import ROUNDING, SURE, appendix_claims
from .claim import Claim, verdict
from .curves import OMEGA, TAU, Arrays


def claims(found: Arrays) -> list[Claim]:
    """What the text says, then the appendix."""
    return [
        _gradient(found),
        _equivalent(found),
        _krasulina_second_order(found),
        _krasulina_norm(found),
        _operations(found),
        _norm_tells(found),
        _several(found),
        _ccipca(found),
        *appendix_claims(found),
    ]


def _gradient(found: Arrays) -> Claim:
    gaps = [float(found[f"gradient/{degree}"]) for degree in (3, 4)]
    return Claim(
        "eq:formulation, eq:regularized_update",
        "with l = 3 and eta = 1/sqrt(p) the objective gives the update with -lambda_k x_k",
        max(gaps),
        ROUNDING,
        "the update less a gradient step tau/p on the sample's objective, by automatic "
        f"differentiation, is {gaps[0]:.0e} of |x|; {gaps[1]:.0e} for l = 4, eta = 1/p",
        verdict(max(gaps) < ROUNDING),
        "holds",
        "The gradient of eta |x|^l/l is eta |x|^(l-2) x, and eta |x|^(l-2) = lam^(l-2).",
    )


def _equivalent(found: Arrays) -> Claim:
    gap = float(np.abs(found["equivalent"]).max())
    return Claim(
        "appendix: equivalence to Oja's algorithm",
        "the ODE of the cosine similarity of eq:regularized_update is identical to Oja's",
        gap,
        ROUNDING,
        f"dq/dt of both differs by {gap:.0e} at most, over {found['equivalent'].size} "
        "states (q, lam)",
        verdict(gap < ROUNDING),
        "holds",
        "Both have the gain tau. It is the limit of q alone: the cubic rule's norm moves.",
    )


def _krasulina_second_order(found: Arrays) -> Claim:
    rates, apart = found["krasulina/rates"], found["krasulina/apart"]
    order = float(np.polyfit(np.log(rates), np.log(apart), 1)[0])
    cosine = float(found["krasulina/cosine"])
    return Claim(
        "Remark on Krasulina's method",
        "its gradient is orthogonal to the iterate, and Oja's algorithm and it are "
        "identical to within second-order terms",
        order,
        0.05,
        f"the cosine of a step with x is {cosine:.0e} at most; one step of both differs by "
        f"{apart[-1]:.1e} of |x| at tau = {rates[-1]:g}, p = 50, and as tau to the "
        f"{order:.3f}",
        verdict(abs(order - 2) < 0.05 and cosine < 1e-8),
        "holds",
        "At tau/p small. The terms add up to the same ODE of q, as gain and noise agree.",
    )


def _krasulina_norm(found: Arrays) -> Claim:
    _, q, _ = found["state"]
    (low, el), (high, eh) = found["krasulina/0"], found[f"krasulina/{q:g}"]
    ratio = high / low
    error = ratio * np.hypot(el / low, eh / high)
    return Claim(
        "Remark on Krasulina's method",
        "the norm drift is incidental and carries no statistical information",
        float(ratio),
        float(error),
        f"the mean growth of log lam a unit of time is {low:.4f} +- {el:.4f} at q = 0 and "
        f"{high:.4f} +- {eh:.4f} at q = {q:g}, a ratio of {ratio:.2f} +- {error:.2f}; "
        f"theory, omega q^2 + 1, has {OMEGA * q**2 + 1:.2f}",
        verdict(bool(abs(ratio - 1) < SURE * error), "holds with a condition"),
        "holds with a condition",
        "Of the norm itself, which has no limit. Its rate of growth is tau^2 (omega q^2 + "
        "1)/2, which does tell omega q^2; but the method makes no use of it.",
    )


def _operations(found: Arrays) -> Claim:
    p, (ours, oja) = found["operations/p"], found["operations"]
    slope = float(np.polyfit(np.log(p), np.log(ours), 1)[0])
    ratio = float(ours[-1] / oja[-1])
    return Claim(
        "Introduction",
        "all without increasing computational complexity",
        ratio,
        0.05,
        f"a step as the paper writes it takes {ours[-1] / p[-1]:.3g} p floating-point "
        f"operations by XLA's count, Oja's {oja[-1] / p[-1]:.3g} p; p to the {slope:.3f}",
        verdict(abs(slope - 1) < 0.01 and ratio < 1.05),
        "holds",
        "Both need the norm of one vector and one inner product; the norm is divided by "
        "before the step instead of after it.",
    )


def _norm_tells(found: Arrays) -> Claim:
    late = found["ts"] >= 30
    names = [k.split("/")[0] for k in found if k.startswith("omega = ") and "/lam" in k]
    critical = ((1 + 2 * TAU) ** 0.5 - 1) / 2
    above, below, told = [], [], []
    for name in names:
        omega = float(name.removeprefix("omega = "))
        each = found[f"{name}/lam"][:, late].astype(float).mean(axis=1)
        error = each.std(ddof=1) / len(each) ** 0.5
        off = float((each.mean() - omega - 1) / error)
        (above if omega > critical else below).append(off)
        told.append(f"{each.mean():.3f} +- {error:.3f} ({name})")
    above_fits = max(map(abs, above)) < SURE
    return Claim(
        "Introduction, eq:learning_capacity",
        "the norm converges to the leading eigenvalue omega + 1",
        float(max(above, key=abs)),
        1.0,
        f"lam at t = 30 to 40, p = 2,000: {', '.join(told)}; above omega_c = "
        f"{critical:.3f} at most {max(map(abs, above)):.1f} standard errors from omega "
        f"+ 1, below {max(map(abs, below)):.0f}",
        verdict(
            above_fits and max(map(abs, below)) < SURE,
            "holds with a condition" if above_fits else "does not hold",
        ),
        "holds with a condition",
        "For omega > omega_c. Below, where nothing is learnt, the norm settles at (1 + "
        "sqrt(1 + 2 tau))/2, which says nothing of omega.",
    )


def _several(found: Arrays) -> Claim:
    gap, distance = (float(found[f"several/ours/{k}"]) for k in ("gap", "distance"))
    spikes, seen = found["spikes"] + 1, found["several/ours/eigenvalues"]
    apart = np.pi / 2 * len(spikes) ** 0.5
    told = ", ".join(f"{a:.1f} ({b:g})" for a, b in zip(seen, spikes, strict=True))
    return Claim(
        "alg:INO-PCA_multiple_pc",
        "INO-PCA naturally generalizes to multiple components via orthogonalization",
        distance,
        apart / 4,
        "of a stream with three spikes in 40 dimensions it finds the span up to "
        f"{distance:.2f} (orthogonal ones are {apart:.2f} apart) and the eigenvalues "
        f"{told}; the package's stream is the algorithm line by line up to {gap:.0e}",
        verdict(gap < ROUNDING and distance < apart / 4),
        "holds",
        "Up to the scatter of a constant rate, a weight of 1/p a sample.",
    )


def _ccipca(found: Arrays) -> Claim:
    gap, distance = (float(found[f"several/ccipca/{k}"]) for k in ("gap", "distance"))
    return Claim(
        "Comparison of algorithms",
        "CCIPCA has structural similarity to our approach",
        gap,
        ROUNDING,
        "INO-PCA for several components with tau/p = (1 + l)/n is CCIPCA, line by line, up "
        f"to {gap:.0e} (l = 2); it finds the same span up to {distance:.2f}",
        verdict(gap < ROUNDING),
        "holds",
        "More than similar: they differ in the schedule of tau alone, and in the unit of "
        "lengths, which is sqrt(p).",
    )
