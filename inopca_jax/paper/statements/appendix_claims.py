"""The statements of the derivation and of the appendix, checked."""

import numpy as np

from ..claim import Claim, verdict
from ..learning_curves import OMEGA, TAU, Arrays

# Two sides of an identity differ by less than `ROUNDING` in double precision. A difference
# is significant from `SIGNIFICANT` standard errors on, the largest of many from `_LARGEST`.
ROUNDING, SIGNIFICANT, _LARGEST = 1e-10, 4.0, 5.0


def claims(arrays: Arrays) -> list[Claim]:
    """Returns the claims, in the order of the paper."""
    return [
        _exchangeable(arrays),
        _drift(arrays),
        _diffusion(arrays),
        _fourth_moment(arrays),
        _cosine(arrays),
        _corollaries(arrays),
        _factor_two(arrays),
        _eigenvalue(arrays),
        _norm_is_bounded(arrays),
    ]


def _exchangeable(arrays: Arrays) -> Claim:
    gap = float(arrays["exchangeable"])
    return Claim(
        source="eq:exchangeability",
        statement="the update is invariant under permutations of the coordinates",
        number=gap,
        error=ROUNDING,
        evidence="permuting x, xi and the sample permutes the result, up to a difference "
        f"of {gap:.0e} of |x|",
        verdict=verdict(gap < ROUNDING),
        recorded="holds",
        explanation="The update consists of inner products and sums of vectors, and the "
        "noise is exchangeable.",
    )


def _drift(arrays: Arrays) -> Claim:
    z = arrays["drift/z"]
    return Claim(
        source="eq:drift",
        statement="E[Delta_k] = tau/p (omega Q xi + x/lambda - x)",
        number=float(np.mean(z**2)),
        error=float(np.sqrt(2 / z.size)),
        evidence=f"in {z.size} coordinates the mean step differs from the formula by at "
        f"most {np.abs(z).max():.1f} standard errors; the mean square of these differences "
        f"is {np.mean(z**2):.2f}",
        verdict=verdict(bool(np.abs(z).max() < _LARGEST)),
        recorded="holds",
        explanation="Exactly, at every p. Checked at p = 50, from a fixed x.",
    )


def _diffusion(arrays: Arrays) -> Claim:
    z, sizes = np.triu(arrays["diffusion/z"]), arrays["diffusion/p"]
    remainder = arrays["diffusion/remainder"]
    order = float(np.polyfit(np.log(sizes), np.log(remainder), 1)[0])
    return Claim(
        source="eq:diffusion",
        statement="E[Delta Delta^T] = tau^2/p (omega Q^2 + 1) I + O(1/p^2)",
        number=order,
        error=0.05,
        evidence="the exact moment, by Isserlis' theorem, differs from the measured one by "
        f"at most {np.abs(z).max():.1f} standard errors in {(z != 0).sum()} entries at p = "
        f"50; the exact moment less the formula falls as p to the power {order:.2f}",
        verdict=verdict(bool(abs(order + 2) < 0.05 and np.abs(z).max() < _LARGEST)),
        recorded="holds",
        explanation="In the root mean square over the entries, from p = 50 to p = 800.",
    )


def _fourth_moment(arrays: Arrays) -> Claim:
    _, q, _ = arrays["state"]
    measured, error = arrays["fourth"]
    correct = TAU**2 * ((1 + OMEGA * q**2) * (1 + OMEGA) + 2 * q**2 * (1 + OMEGA) ** 2)
    written = correct - 2 * TAU**2 * OMEGA**2 * q**2
    return Claim(
        source="appendix: second moment, E[T_1]",
        statement="the first term of E[T_1] is tau^2/(p lambda)^2 omega^2/p^2 (xi.x)^2 xi "
        "xi^T",
        number=float((measured - written) / error),
        error=1.0,
        evidence=f"along xi, E[T_1] is {measured:.3f} +- {error:.3f}; with the factor "
        f"E[c^4] = 3 in this term it is {correct:.3f}, as written {written:.3f}",
        verdict=verdict(bool(abs(measured - written) < SIGNIFICANT * error)),
        recorded="does not hold",
        explanation="The fourth moment of c is 3, not 1. The term is of order 1/p^2 in "
        "each entry and vanishes in the limit, so no later result is affected.",
    )


def _cosine(arrays: Arrays) -> Claim:
    p, q, _ = arrays["state"]
    written = float(arrays["written/Q"])
    return Claim(
        source="appendix: first and second moments",
        statement="Q_k = xi^T x_k/lambda_k is the cosine similarity",
        number=written,
        error=0.0,
        evidence=f"for an x whose cosine with xi is {q:g}, at p = {p:g}, this is "
        f"{written:g}",
        verdict=verdict(abs(written) <= 1),
        recorded="does not hold",
        explanation="A factor of 1/p is missing, as |xi| |x| = p lambda. With it, the "
        "drift that follows is correct.",
    )


def _corollaries(arrays: Arrays) -> Claim:
    gap = max(float(np.abs(arrays[f"weak/{x}"]).max()) for x in ("first", "second"))
    return Claim(
        source="cor:Qt, cor:lambdat",
        statement="eq:Q_t and eq:lambda_t follow from the weak PDE with f = x xi and f = "
        "x^2",
        number=gap,
        error=ROUNDING,
        evidence="the averages of the PDE, by quadrature, differ by at most "
        f"{gap:.0e} from d(Q lambda)/dt and d(lambda^2)/dt of the corollaries, over "
        f"{arrays['weak/first'].size} states",
        verdict=verdict(gap < ROUNDING),
        recorded="holds",
        explanation="With the factor 2 of the next statement.",
    )


def _factor_two(arrays: Arrays) -> Claim:
    _, q, lam = arrays["state"]
    measured, error = arrays["growth"]
    s2 = OMEGA * q**2 + 1
    first_term = TAU * (OMEGA * q**2 * lam + lam - lam**2)
    correct, written = 2 * first_term + TAU**2 * s2, first_term + TAU**2 * s2
    steady = OMEGA**2 + OMEGA
    overlap, overlap_written = (
        ((steady - a) / (steady + a * OMEGA)) ** 0.5 for a in (TAU / 2, TAU)
    )
    late = arrays["omega = 1/q"][:, arrays["ts"] >= 30].astype(float).mean()
    return Claim(
        source="appendix: eq:in_derivation_lambda_t_ode",
        statement="d(lambda^2)/dt = tau (omega Q^2 lambda + lambda - lambda^2) + tau^2 "
        "(omega Q^2 + 1)",
        number=float((measured - written) / error),
        error=1.0,
        evidence=f"at q = {q:g} and lam = {lam:g} one step gives {measured:.3f} +- "
        f"{error:.3f}; with twice the first term the formula gives {correct:.3f}, as "
        f"written {written:.3f}. As written Q_s would be {overlap_written:.4f}; trials "
        f"have {late:.4f}, and the paper's Q_s is {overlap:.4f}",
        verdict=verdict(bool(abs(measured - written) < SIGNIFICANT * error)),
        recorded="does not hold",
        explanation="The factor 2 of the line before is lost. The corollaries follow from "
        "the correct equation, and hold.",
    )


def _eigenvalue(arrays: Arrays) -> Claim:
    p, _, _ = arrays["state"]
    top, second = arrays["top"], arrays["eigenvalues"][:, 0]
    error = top.std(ddof=1) / len(top) ** 0.5
    return Claim(
        source="appendix: Lemma lem:lambda_bound",
        statement="the leading eigenvalue of y y^T has expectation omega + 1, the others 1",
        number=float(top.mean()),
        error=float(error),
        evidence=f"at p = {p:g} its mean is {top.mean():.2f} +- {error:.2f}, where omega "
        f"+ p = {OMEGA + p:g}; the second eigenvalue is at most {np.abs(second).max():.0e}",
        verdict=verdict(bool(abs(top.mean() - OMEGA - 1) < SIGNIFICANT * error)),
        recorded="does not hold",
        explanation="y y^T has rank one, and its eigenvalue is |y|^2. omega + 1 and 1 are "
        "the eigenvalues of its expectation; so the contraction in the proof begins only "
        "at lambda above p.",
    )


def _norm_is_bounded(arrays: Arrays) -> Claim:
    names = [k for k in arrays if k.startswith("lam0 = ") and k.endswith("/lam")]
    norms = [arrays[name].astype(float) for name in names]
    lowest = min(float(lam.min() / min(lam[0, 0], 1)) for lam in norms)
    highest = max(float(lam.max() / max(lam[0, 0], OMEGA + 1)) for lam in norms)
    ranges = ", ".join(
        f"{lam[:, -1].mean():.3f} (from {lam[0, 0]:g}; {lam.min():.3g} to {lam.max():.3g} "
        "on the way)"
        for lam in norms
    )
    return Claim(
        source="Lemmas lem:lambda>0, lem:lambda_bound",
        statement="lambda_k stays positive and bounded, from above or below the "
        "steady-state value",
        number=highest,
        error=0.15,
        evidence=f"over {sum(map(len, norms))} trials up to t = {arrays['ts'][-1]:g} the "
        f"mean of lam at the end is {ranges}",
        verdict=verdict(lowest > 0.99 and highest < 1.15),
        recorded="holds",
        explanation="By the ODE: far above the steady value lam falls as exp(-tau t), and "
        "far below it lam grows the faster the smaller it is. At finite p it fluctuates by "
        "O(1/sqrt(p)).",
    )
