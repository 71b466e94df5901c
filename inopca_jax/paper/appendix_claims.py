"""What the derivation and the appendix say, from the arrays of `statements`."""

import numpy as np

from .claim import Claim, verdict
from .curves import OMEGA, TAU, Arrays

# Standard errors that are sure; of the largest of many, some more. What rounding leaves of
# an identity in double precision.
SURE, LARGEST, ROUNDING = 4.0, 5.0, 1e-10


def appendix_claims(found: Arrays) -> list[Claim]:
    """In the order of the paper."""
    return [
        _exchangeable(found),
        _drift(found),
        _diffusion(found),
        _fourth_moment(found),
        _cosine(found),
        _corollaries(found),
        _factor_two(found),
        _eigenvalue(found),
        _bounded(found),
    ]


def _exchangeable(found: Arrays) -> Claim:
    gap = float(found["exchangeable"])
    return Claim(
        "eq:exchangeability",
        "the update is invariant under permutations of the coordinates",
        gap,
        ROUNDING,
        f"permuting x, xi and the sample permutes the result, up to {gap:.0e} of |x|",
        verdict(gap < ROUNDING),
        "holds",
        "The update has inner products and sums of vectors in it, and the noise is "
        "exchangeable.",
    )


def _drift(found: Arrays) -> Claim:
    z = found["drift/z"]
    return Claim(
        "eq:drift",
        "E[Delta_k] = tau/p (omega Q xi + x/lambda - x)",
        float(np.mean(z**2)),
        float(np.sqrt(2 / z.size)),
        f"over {z.size} coordinates the mean step is at most {np.abs(z).max():.1f} "
        f"standard errors off, with a mean square of {np.mean(z**2):.2f}",
        verdict(bool(np.abs(z).max() < LARGEST)),
        "holds",
        "Exactly, at every p. At p = 50, from a fixed x.",
    )


def _diffusion(found: Arrays) -> Claim:
    z, left = np.triu(found["diffusion/z"]), found["diffusion/left"]
    order = float(np.polyfit(np.log([50, 200, 800]), np.log(left), 1)[0])
    return Claim(
        "eq:diffusion",
        "E[Delta Delta^T] = tau^2/p (omega Q^2 + 1) I + O(1/p^2)",
        order,
        0.05,
        "the exact moment, by Isserlis' theorem, is at most "
        f"{np.abs(z).max():.1f} standard errors from the measured in {(z != 0).sum()} "
        f"entries at p = 50; what the formula leaves out goes as p to the {order:.2f}",
        verdict(bool(abs(order + 2) < 0.05 and np.abs(z).max() < LARGEST)),
        "holds",
        "In the root mean square over the entries, p = 50 to 800.",
    )


def _fourth_moment(found: Arrays) -> Claim:
    _, q, _ = found["state"]
    measured, error = found["fourth"]
    right = TAU**2 * ((1 + OMEGA * q**2) * (1 + OMEGA) + 2 * q**2 * (1 + OMEGA) ** 2)
    written = right - 2 * TAU**2 * OMEGA**2 * q**2
    return Claim(
        "appendix: second moment, E[T_1]",
        "the first term of E[T_1] is tau^2/(p lambda)^2 omega^2/p^2 (xi.x)^2 xi xi^T",
        float((measured - written) / error),
        1.0,
        f"along xi, E[T_1] is {measured:.3f} +- {error:.3f}; with the factor E[c^4] = 3 in "
        f"this term it would be {right:.3f}, as written {written:.3f}",
        verdict(bool(abs(measured - written) < SURE * error)),
        "does not hold",
        "The fourth moment of c is 3, not 1. The term is of order 1/p^2 in each entry and "
        "falls out of the limit: nothing that follows is affected.",
    )


def _cosine(found: Arrays) -> Claim:
    p, q, _ = found["state"]
    written = float(found["written/Q"])
    return Claim(
        "appendix: first and second moments",
        "Q_k = xi^T x_k/lambda_k is the cosine similarity",
        written,
        0.0,
        f"of an x whose cosine with xi is {q:g} at p = {p:g} this is {written:g}",
        verdict(abs(written) <= 1),
        "does not hold",
        "It lacks 1/p, as |xi| |x| = p lambda. With it the drift that follows is right.",
    )


def _corollaries(found: Arrays) -> Claim:
    gap = max(float(np.abs(found[f"weak/{k}"]).max()) for k in ("first", "second"))
    return Claim(
        "cor:Qt, cor:lambdat",
        "eq:Q_t and eq:lambda_t follow from the weak PDE with f = x xi and f = x^2",
        gap,
        ROUNDING,
        f"the PDE's averages, by quadrature, differ by {gap:.0e} at most from what the "
        f"corollaries say of d(Q lambda)/dt and d(lambda^2)/dt, over "
        f"{found['weak/first'].size} states",
        verdict(gap < ROUNDING),
        "holds",
        "With the factor 2 of the next statement.",
    )


def _factor_two(found: Arrays) -> Claim:
    _, q, lam = found["state"]
    measured, error = found["growth"]
    s2 = OMEGA * q**2 + 1
    pull = TAU * (OMEGA * q**2 * lam + lam - lam**2)
    right, written = 2 * pull + TAU**2 * s2, pull + TAU**2 * s2
    steady = OMEGA**2 + OMEGA
    learnt = [((steady - a) / (steady + a * OMEGA)) ** 0.5 for a in (TAU / 2, TAU)]
    late = found["omega = 1/q"][:, found["ts"] >= 30].astype(float).mean()
    return Claim(
        "appendix: eq:in_derivation_lambda_t_ode",
        "d(lambda^2)/dt = tau (omega Q^2 lambda + lambda - lambda^2) + tau^2 (omega Q^2 + "
        "1)",
        float((measured - written) / error),
        1.0,
        f"at q = {q:g}, lam = {lam:g} one step gives {measured:.3f} +- {error:.3f}; with "
        f"twice the first term it is {right:.3f}, as written {written:.3f}. As written "
        f"Q_s would be {learnt[1]:.4f}; runs have {late:.4f}, the paper {learnt[0]:.4f}",
        verdict(bool(abs(measured - written) < SURE * error)),
        "does not hold",
        "The 2 of the line before is lost. The corollaries are those of the right "
        "equation, and stand.",
    )


def _eigenvalue(found: Arrays) -> Claim:
    p, _, _ = found["state"]
    top, second = found["top"], found["eigenvalues"][:, 0]
    error = top.std(ddof=1) / len(top) ** 0.5
    return Claim(
        "appendix: Lemma lem:lambda_bound",
        "the leading eigenvalue of y y^T has expectation omega + 1, the others 1",
        float(top.mean()),
        float(error),
        f"at p = {p:g} it has a mean of {top.mean():.2f} +- {error:.2f}, omega + p being "
        f"{OMEGA + p:g}; the second is {np.abs(second).max():.0e} at most",
        verdict(bool(abs(top.mean() - OMEGA - 1) < SURE * error)),
        "does not hold",
        "y y^T has rank one, and |y|^2 for its eigenvalue. omega + 1 and 1 are those of "
        "its expectation; so the contraction that is argued begins at lambda above p only.",
    )


def _bounded(found: Arrays) -> Claim:
    names = [k for k in found if k.startswith("lam0 = ") and k.endswith("/lam")]
    norms = {k: found[k].astype(float) for k in names}
    least = min(float(x.min() / min(x[0, 0], 1)) for x in norms.values())
    most = max(float(x.max() / max(x[0, 0], OMEGA + 1)) for x in norms.values())
    ends = ", ".join(
        f"{x[:, -1].mean():.3f} (from {x[0, 0]:g}, {x.min():.3g} to {x.max():.3g})"
        for x in norms.values()
    )
    return Claim(
        "Lemmas lem:lambda>0, lem:lambda_bound",
        "lambda_k stays positive and bounded, from above or below the steady-state value",
        most,
        0.15,
        f"over {sum(len(x) for x in norms.values())} trials up to t = {found['ts'][-1]:g} "
        f"lam ends at {ends}",
        verdict(least > 0.99 and most < 1.15),
        "holds",
        "By the ODE: far above, lam falls as exp(-tau t); far below, the pull is as strong "
        "as lam is small. At finite p it goes on to scatter by O(1/sqrt(p)).",
    )
