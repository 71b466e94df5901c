"""The statements of the derivation and of the appendix, checked."""

import numpy as np

from ..claim import Arrays, Claims, Finding
from ..learning_curves import OMEGA, TAU
from ..statistics import Mean, mean_of, power_of
from .compute import LAM0S, ROUNDING, norms_by_name

# The largest of many differences is significant from this many standard errors on.
_LARGEST = 5.0

claims = Claims()


@claims.add("eq:exchangeability")
def exchangeable(arrays: Arrays) -> Finding:
    """The update is invariant under permutations of the coordinates.

    The update consists of inner products and sums of vectors, and the noise is
    exchangeable.
    """
    gap = float(arrays["exchangeable"])
    return Finding(
        gap,
        ROUNDING,
        "permuting x, xi and the sample permutes the result, up to a difference of "
        f"{gap:.0e} of |x|",
        gap < ROUNDING,
    )


@claims.add("eq:drift")
def drift(arrays: Arrays) -> Finding:
    """E[Delta_k] = tau/p (omega Q xi + x/lambda - x).

    Exactly, at every p. Checked at p = 50, from a fixed x.
    """
    z = arrays["drift/z"]
    return Finding(
        np.mean(z**2),
        np.sqrt(2 / z.size),
        f"in {z.size} coordinates the mean step differs from the formula by at most "
        f"{np.abs(z).max():.1f} standard errors; the mean square of these differences is "
        f"{np.mean(z**2):.2f}",
        np.abs(z).max() < _LARGEST,
    )


@claims.add("eq:diffusion")
def diffusion(arrays: Arrays) -> Finding:
    """E[Delta Delta^T] = tau^2/p (omega Q^2 + 1) I + O(1/p^2).

    In the root mean square over the entries, from p = 50 to p = 800.
    """
    z = np.triu(arrays["diffusion/z"])
    order = power_of(arrays["diffusion/p"], arrays["diffusion/remainder"])
    return Finding(
        order,
        0.05,
        "the exact moment, by Isserlis' theorem, differs from the measured one by at most "
        f"{np.abs(z).max():.1f} standard errors in {(z != 0).sum()} entries at p = 50; the "
        f"exact moment less the formula falls as p to the power {order:.2f}",
        abs(order + 2) < 0.05 and np.abs(z).max() < _LARGEST,
    )


@claims.add("appendix:our_moments, E[T_1]", "does not hold")
def fourth_moment(arrays: Arrays) -> Finding:
    """The first term of E[T_1] is tau^2/(p lambda)^2 omega^2/p^2 (xi.x)^2 xi xi^T.

    The fourth moment of c is 3, not 1. The term is of order 1/p^2 in each entry and
    vanishes in the limit, so no later result is affected.
    """
    _, q, _ = arrays["state"]
    measured = Mean(*arrays["fourth"])
    correct = TAU**2 * ((1 + OMEGA * q**2) * (1 + OMEGA) + 2 * q**2 * (1 + OMEGA) ** 2)
    written = correct - 2 * TAU**2 * OMEGA**2 * q**2
    return Finding(
        (measured - written).standard_errors,
        1,
        f"along xi, E[T_1] is {measured:.3f}; with the factor E[c^4] = 3 in this term it "
        f"is {correct:.3f}, as written {written:.3f}",
        not (measured - written).is_significant,
    )


@claims.add("appendix:our_moments", "does not hold")
def cosine(arrays: Arrays) -> Finding:
    """Q_k = xi^T x_k/lambda_k is the cosine similarity.

    A factor of 1/p is missing, as |xi| |x| = p lambda. With it, the drift that follows is
    correct.
    """
    p, q, _ = arrays["state"]
    written = float(arrays["written/Q"])
    return Finding(
        written,
        0,
        f"for an x whose cosine with xi is {q:g}, at p = {p:g}, this is {written:g}",
        abs(written) <= 1,
    )


@claims.add("cor:Qt, cor:lambdat")
def corollaries(arrays: Arrays) -> Finding:
    """eq:Q_t and eq:lambda_t follow from the weak PDE with f = x xi and f = x^2.

    With the factor 2 of the next statement.
    """
    gap = max(np.abs(arrays[f"weak/{x}"]).max() for x in ("first", "second"))
    return Finding(
        gap,
        ROUNDING,
        f"the averages of the PDE, by quadrature, differ by at most {gap:.0e} from "
        "d(Q lambda)/dt and d(lambda^2)/dt of the corollaries, over "
        f"{arrays['weak/first'].size} states",
        gap < ROUNDING,
    )


@claims.add("eq:in_derivation_lambda_t_ode, appendix:proof_of_corollaries", "does not hold")
def factor_two(arrays: Arrays) -> Finding:
    """d(lambda^2)/dt = tau (omega Q^2 lambda + lambda - lambda^2) + tau^2 (omega Q^2 + 1).

    The factor 2 of the line before is lost. The corollaries follow from the correct
    equation, and hold.
    """
    _, q, lam = arrays["state"]
    measured, s2 = Mean(*arrays["growth"]), OMEGA * q**2 + 1
    first_term = TAU * (OMEGA * q**2 * lam + lam - lam**2)
    correct, written = 2 * first_term + TAU**2 * s2, first_term + TAU**2 * s2
    steady = OMEGA**2 + OMEGA
    overlap, overlap_written = (
        ((steady - a) / (steady + a * OMEGA)) ** 0.5 for a in (TAU / 2, TAU)
    )
    late = arrays["omega = 1/q"][:, arrays["ts"] >= 30].astype(float).mean()
    return Finding(
        (measured - written).standard_errors,
        1,
        f"at q = {q:g} and lam = {lam:g} one step gives {measured:.3f}; with twice the "
        f"first term the formula gives {correct:.3f}, as written {written:.3f}. As written "
        f"Q_s would be {overlap_written:.4f}; trials have {late:.4f}, and the paper's Q_s "
        f"is {overlap:.4f}",
        not (measured - written).is_significant,
    )


@claims.add("lem:lambda_bound", "does not hold")
def eigenvalue(arrays: Arrays) -> Finding:
    """The leading eigenvalue of y y^T has expectation omega + 1, the others 1.

    y y^T has rank one, and its eigenvalue is |y|^2. omega + 1 and 1 are the eigenvalues of
    its expectation; so the contraction in the proof begins only at lambda above p.
    """
    p, _, _ = arrays["state"]
    top, second = mean_of(arrays["top"]), np.abs(arrays["second eigenvalues"]).max()
    return Finding(
        top.value,
        top.error,
        f"at p = {p:g} its mean is {top:.2f}, where omega + p = {OMEGA + p:g}; the second "
        f"eigenvalue is at most {second:.0e}",
        not (top - OMEGA - 1).is_significant,
    )


@claims.add("lem:lambda>0, lem:lambda_bound")
def norm_is_bounded(arrays: Arrays) -> Finding:
    """lambda_k stays positive and bounded, from above or below the steady-state value.

    By the ODE: far above the steady value lam falls as exp(-tau t), and far below it lam
    grows the faster the smaller it is. At finite p it fluctuates by O(1/sqrt(p)).
    """
    norms = norms_by_name(arrays, "lam0", LAM0S)
    lowest = min(lam.min() / min(start, 1) for start, lam in norms.items())
    highest = max(lam.max() / max(start, OMEGA + 1) for start, lam in norms.items())
    ranges = ", ".join(
        f"{lam[:, -1].mean():.3f} (from {start:g}; {lam.min():.3g} to {lam.max():.3g} on "
        "the way)"
        for start, lam in norms.items()
    )
    return Finding(
        highest,
        0.15,
        f"over {sum(map(len, norms.values()))} trials up to t = {arrays['ts'][-1]:g} the "
        f"mean of lam at the end is {ranges}",
        lowest > 0.99 and highest < 1.15,
    )
