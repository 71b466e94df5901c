"""The statements of the text, checked; those of the appendix are in `appendix_claims`."""

import numpy as np

from ..claim import Arrays, Claims, Finding
from ..learning_curves import OMEGA, TAU
from ..statistics import SIGNIFICANT, Mean, mean_of, power_of
from .compute import OMEGAS, ROUNDING, norms_by_name

claims = Claims()


@claims.add("eq:formulation, eq:regularized_update")
def gradient(arrays: Arrays) -> Finding:
    """With l = 3 and eta = 1/sqrt(p) the objective gives the update with -lambda_k x_k.

    The gradient of eta |x|^l/l is eta |x|^(l-2) x, and eta |x|^(l-2) is lam^(l-2).
    """
    gaps = [float(arrays[f"gradient/{degree}"]) for degree in (3, 4)]
    return Finding(
        max(gaps),
        ROUNDING,
        "the update and a gradient step of size tau/p on the sample's objective, by "
        f"automatic differentiation, differ by {gaps[0]:.0e} of |x|; for l = 4 and eta = "
        f"1/p by {gaps[1]:.0e}",
        max(gaps) < ROUNDING,
    )


@claims.add("appendix:equivalence_to_oja")
def equivalent_to_oja(arrays: Arrays) -> Finding:
    """The ODE of the cosine similarity of eq:regularized_update is identical to Oja's.

    Both have the gain tau. This is about the limit of q alone: the norm of the cubic rule
    is not constant.
    """
    gap = np.abs(arrays["equivalent"]).max()
    return Finding(
        gap,
        ROUNDING,
        f"dq/dt of the two differs by {gap:.0e} at most, over {arrays['equivalent'].size} "
        "states (q, lam)",
        gap < ROUNDING,
    )


@claims.add("rem:our_krasulina")
def krasulina_to_second_order(arrays: Arrays) -> Finding:
    """The gradient of Krasulina's method is orthogonal to the iterate, and Oja's algorithm
    and it are identical to within second-order terms.

    For small tau/p. Both have the same ODE of q, because their gains and their noise agree.
    """
    rates, distances = arrays["krasulina/rates"], arrays["krasulina/distances"]
    order, cosine = power_of(rates, distances), float(arrays["krasulina/cosine"])
    return Finding(
        order,
        0.05,
        f"the cosine of a step with x is {cosine:.0e} at most; at p = 50 and tau = "
        f"{rates[-1]:g} one step of the two differs by {distances[-1]:.1e} of |x|, and "
        f"this difference grows as tau to the power {order:.3f}",
        abs(order - 2) < 0.05 and cosine < 1e-8,
    )


@claims.add("rem:our_krasulina", "holds with a condition")
def krasulina_norm(arrays: Arrays) -> Finding:
    """The norm drift of Krasulina's method is incidental and carries no statistical
    information.

    It holds of the norm itself, which has no limit. Its rate of growth is tau^2 (omega q^2
    + 1)/2, which does depend on omega q^2; but the method does not use it.
    """
    _, q, _ = arrays["state"]
    low, high = (Mean(*arrays[f"krasulina/{x:g}"]) for x in (0, q))
    ratio = high / low
    return Finding(
        ratio.value,
        ratio.error,
        f"the mean growth of log lam per unit of time is {low:.4f} at q = 0 and {high:.4f} "
        f"at q = {q:g}; their ratio is {ratio:.2f}, and omega q^2 + 1 = "
        f"{OMEGA * q**2 + 1:.2f} by theory",
        not (ratio - 1).is_significant,
        True,
    )


@claims.add("sec:our_introduction")
def operations(arrays: Arrays) -> Finding:
    """All without increasing computational complexity.

    Both need the norm of one vector and one inner product: INO-PCA divides by the norm
    before the step, Oja's method after it.
    """
    p, (ours, oja) = arrays["operations/p"], arrays["operations"]
    slope, ratio = power_of(p, ours), ours[-1] / oja[-1]
    return Finding(
        ratio,
        0.05,
        f"by XLA's count a step as the paper writes it takes {ours[-1] / p[-1]:.3g} p "
        f"floating-point operations, and a step of Oja's method {oja[-1] / p[-1]:.3g} p; "
        f"the number grows as p to the power {slope:.3f}",
        abs(slope - 1) < 0.01 and ratio < 1.05,
    )


@claims.add("sec:our_introduction, eq:learning_capacity", "holds with a condition")
def norm_is_the_eigenvalue(arrays: Arrays) -> Finding:
    """The norm converges to the leading eigenvalue omega + 1.

    For omega > omega_c. Below, where nothing is learnt, the norm converges to
    (1 + sqrt(1 + 2 tau))/2, which does not depend on omega.
    """
    late, critical = arrays["ts"] >= 30, ((1 + 2 * TAU) ** 0.5 - 1) / 2
    means = {
        omega: mean_of(lam[:, late].mean(axis=1))
        for omega, lam in norms_by_name(arrays, "omega", OMEGAS).items()
    }
    z = {omega: (mean - omega - 1).standard_errors for omega, mean in means.items()}
    above = max((z[omega] for omega in z if omega > critical), key=abs)
    below = max((z[omega] for omega in z if omega <= critical), key=abs)
    norms = ", ".join(f"{mean:.3f} (omega = {omega:g})" for omega, mean in means.items())
    return Finding(
        above,
        1,
        f"at p = 2,000 the mean of lam over t = 30 to 40 is {norms}; it differs from omega "
        f"+ 1 by at most {abs(above):.1f} standard errors above omega_c = {critical:.3f}, "
        f"and by {abs(below):.0f} below",
        max(abs(above), abs(below)) < SIGNIFICANT,
        abs(above) < SIGNIFICANT,
    )


@claims.add("alg:INO-PCA_multiple_pc")
def several_components(arrays: Arrays) -> Finding:
    """INO-PCA naturally generalizes to multiple components via orthogonalization.

    Up to the fluctuations of a constant rate, with a weight of 1/p per sample.
    """
    gap, distance = (float(arrays[f"several/INO-PCA/{x}"]) for x in ("gap", "distance"))
    eigenvalues, estimates = arrays["spikes"] + 1, arrays["several/INO-PCA/eigenvalues"]
    orthogonal = np.pi / 2 * len(eigenvalues) ** 0.5
    pairs = ", ".join(
        f"{a:.1f} ({b:g})" for a, b in zip(estimates, eigenvalues, strict=True)
    )
    return Finding(
        distance,
        orthogonal / 4,
        "on a stream with three spikes in 40 dimensions, its components span a subspace at "
        f"a distance of {distance:.2f} from the truth (orthogonal subspaces: "
        f"{orthogonal:.2f}), with the eigenvalues {pairs}, true ones in brackets; the "
        f"package and the algorithm written out line by line differ by {gap:.0e}",
        gap < ROUNDING and distance < orthogonal / 4,
    )


@claims.add("sec:our_baselines")
def similar_to_ccipca(arrays: Arrays) -> Finding:
    """CCIPCA has structural similarity to our approach.

    They are more than similar: they differ only in the schedule of tau and in the unit of
    lengths, which is sqrt(p).
    """
    gap, distance = (float(arrays[f"several/CCIPCA/{x}"]) for x in ("gap", "distance"))
    return Finding(
        gap,
        ROUNDING,
        "INO-PCA for several components with tau/p = (1 + l)/n and CCIPCA written out line "
        f"by line differ by {gap:.0e} (l = 2); their span is at a distance of "
        f"{distance:.2f} from the truth",
        gap < ROUNDING,
    )
