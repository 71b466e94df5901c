"""What the paper says about the steady state and the transition."""

import numpy as np

import inopca_jax as ino

from ..claim import Arrays, Claims, Finding
from ..learning_curves import TAU, UNLEARNED_NORM
from ..statistics import Mean, listed, mean_of
from .compute import INO, MATCHED, OJA, XI

# The largest difference of the mean of ten trials from theory, in standard errors, that
# counts as agreement. It is large because ten trials hardly tell their standard error.
MAX_STANDARD_ERRORS = 5.0
# The largest distance of the ODE from its limit at which it counts as converged, above the
# transition, and below it, where trials scatter more.
CLOSE_ABOVE, CLOSE_BELOW = 1e-3, 1e-2
# The largest velocity of the ODE at a fixed point.
AT_REST = 1e-5

claims = Claims()


def critical_omega(name: str) -> float:
    """Returns `omega_c` at tau = 0.5."""
    return float(ino.critical_snr(ino.InoPCA(TAU) if name == INO else ino.Oja(TAU)))


def has_converged(arrays: Arrays, name: str) -> np.ndarray:
    """Returns at which omegas the ODE has reached its limit by the time of the trials:
    below the transition, to less than a third of the trials' standard deviation."""
    gap = np.abs(arrays[f"{name}/q_ode"] - arrays[f"{name}/q_s"])
    below = arrays[f"{name}/q_s"] == 0
    tolerance_below = np.minimum(_std_below(arrays, name) / 3, CLOSE_BELOW)
    return gap < np.where(below, tolerance_below, CLOSE_ABOVE)


def _converged_above(arrays: Arrays, *names: str) -> np.ndarray:
    """Returns which omegas are above the transition of all these, where all have
    converged."""
    return np.all(
        [has_converged(arrays, x) & (arrays[f"{x}/q_s"] > 0) for x in names], axis=0
    )


def _converged_below(arrays: Arrays) -> np.ndarray:
    return has_converged(arrays, INO) & (arrays[f"{INO}/q_s"] == 0)


def _std_below(arrays: Arrays, name: str) -> np.ndarray:
    """Returns the standard deviation of q in the steady state below the transition.

    To leading order in 1/p, at the gain nu, noise of variance nu^2 (1 + omega)/p per unit
    of time is balanced by the restoring rate nu (nu/2 - omega).
    """
    omega = arrays["omega"]
    gain = {INO: 2 * critical_omega(INO), OJA: TAU, MATCHED: TAU / (1 + omega)}[name]
    return np.sqrt(gain * (1 + omega) / (np.maximum(gain - 2 * omega, 1e-9) * arrays["p"]))


def _mean_overlap(arrays: Arrays, name: str, at: np.ndarray) -> Mean:
    return mean_of(np.abs(arrays[f"{name}/q"][at]), axis=1)


@claims.add("eq:learning_capacity")
def learning_capacity(arrays: Arrays) -> Finding:
    """Q_s^2 = (omega^2 + omega - tau/2)/(omega^2 + omega + tau omega/2) and lambda_s =
    omega + 1 above the transition.

    At those omega where the ODE has converged by the time of the trials. It holds if means
    of ten trials differ by less than 5 standard errors.
    """
    above = _converged_above(arrays, INO)
    omega = arrays["omega"][above]
    gap = _mean_overlap(arrays, INO, above) - arrays[f"{INO}/q_s"][above]
    lam_gap = mean_of(arrays[f"{INO}/lam"][above], axis=1) - arrays[f"{INO}/lam_s"][above]
    q_errors, lam_errors = (np.abs(x.standard_errors) for x in (gap, lam_gap))
    worst = gap[int(np.argmax(q_errors))]
    speed = arrays["learned/speed"][arrays["learned"]].max()
    growth = arrays["learned/growth"][arrays["learned"]].max()
    agrees = max(q_errors.max(), lam_errors.max()) < MAX_STANDARD_ERRORS
    return Finding(
        worst.value,
        worst.error,
        f"at omega from {omega.min():g} to {omega.max():g} and t = {arrays['t']:g} the "
        f"trials' means differ by at most {q_errors.max():.1f} standard errors in q and "
        f"{lam_errors.max():.1f} in lam; the ODE's velocity there is at most {speed:.0e}, "
        f"and its eigenvalues are at most {growth:.3f}, so the point is stable",
        agrees and speed < AT_REST and growth < 0,
    )


@claims.add("eq:our_unlearned_state", "holds with a condition")
def unlearned_state(arrays: Arrays) -> Finding:
    """Q_s = 0, lambda_s = (1 + sqrt(1 + 2 tau))/2 corresponds to an unstable state.

    It is unstable only above the transition. Below it, it is the state in which every trial
    ends, with lambda at this value and not at omega + 1.
    """
    growth, speed = arrays["unlearned/growth"], arrays["unlearned/speed"].max()
    unstable = growth > 0
    only_above = np.all(unstable == (arrays["omega"] > critical_omega(INO)))
    norms = mean_of(arrays[f"{INO}/lam"][_converged_below(arrays)], axis=1)
    standard_errors = np.abs((norms - UNLEARNED_NORM).standard_errors).max()
    fixed = speed < AT_REST and standard_errors < MAX_STANDARD_ERRORS
    signs = "negative below omega_c and positive above" if only_above else "of mixed signs"
    return Finding(
        growth.min(),
        0,
        f"the ODE's velocity there is at most {speed:.0e}; its largest eigenvalue is "
        f"{growth[0]:+.3f} at omega = {arrays['omega'][0]:g} and {growth[-1]:+.3f} at "
        f"{arrays['omega'][-1]:g}, {signs}; below omega_c the trials' norms differ from "
        f"this lambda_s by at most {standard_errors:.1f} standard errors",
        fixed and unstable.all(),
        fixed and only_above,
    )


@claims.add("sec:our_steady_state, after eq:learning_capacity")
def unable_to_learn(arrays: Arrays) -> Finding:
    """The algorithm is unable to learn (Q_s = 0) when omega is below omega_c.

    In the limit. At finite p the overlap fluctuates about 0 by sqrt(omega_c (1 +
    omega)/((omega_c - omega) p)), and at the transition by O(p^(-1/4)).
    """
    below = _converged_below(arrays)
    q, ode = arrays[f"{INO}/q"][below], arrays[f"{INO}/q_ode"][below]
    standardised = (q - ode[:, None]) / _std_below(arrays, INO)[below, None]
    variance, error = np.mean(standardised**2), (2 / standardised.size) ** 0.5
    return Finding(
        variance,
        error,
        f"at omega = {listed(arrays['omega'][below])} the overlap of the ODE has fallen "
        f"below {ode.max():.4f} by t = {arrays['t']:g}, and the root mean square of q over "
        f"trials is {listed(np.sqrt(np.mean(q**2, axis=1)), '.3f')}; this is "
        f"{variance**0.5:.2f} times the fluctuation about q = 0 that is expected at p = "
        f"{arrays['p']}",
        abs(variance - 1) < MAX_STANDARD_ERRORS * error,
    )


def extrapolated_transition(omega: np.ndarray, q2: np.ndarray, error: np.ndarray) -> float:
    """Returns the omega at which a parabola in 1/omega, fitted to squared overlaps, is
    zero; NaN if there is none."""
    roots = np.roots(np.polyfit(1 / omega, q2, 2, w=1 / error))
    positive = roots.real[np.abs(roots.imag) < 1e-12]
    positive = positive[positive > 0]
    if not positive.size:
        return np.nan
    return float(1 / positive[np.argmin(np.abs(positive - 1 / omega.min()))])


@claims.add("fig:steady_state_dist")
def transition(arrays: Arrays) -> Finding:
    """The theoretical prediction omega_c = 0.207 matches well with Monte Carlo.

    The extrapolation is a parabola in 1/omega and does not use the formula; its error is
    the jackknife's over trials. At omega closer to the transition trials have not
    converged, or finite p blurs it.
    """
    near = _converged_above(arrays, INO) & (arrays["omega"] <= 1)
    omega, q2 = arrays["omega"][near], arrays[f"{INO}/q"][near] ** 2
    count, std = q2.shape[1], q2.std(axis=1, ddof=1)
    estimate = extrapolated_transition(omega, q2.mean(axis=1), std)
    without_one = [
        extrapolated_transition(omega, np.delete(q2, i, axis=1).mean(axis=1), std)
        for i in range(count)
    ]
    error = (count - 1) / count**0.5 * np.std(without_one)
    from_theory = extrapolated_transition(omega, arrays[f"{INO}/q_s"][near] ** 2, std)
    critical = critical_omega(INO)
    close = abs(estimate - critical) < MAX_STANDARD_ERRORS * error
    precise = error < 0.1 * critical
    return Finding(
        estimate,
        error,
        f"omega_c is {critical:.4f} in theory; the trials' squared overlaps at omega from "
        f"{omega.min():g} to {omega.max():g} extrapolate to 0 at "
        f"{Mean(estimate, error):.4f} (the limits at the same omega to {from_theory:.4f})",
        close and precise and round(critical, 3) == 0.207,
    )


@claims.add("eq:steady_state_dist")
def density_formula(arrays: Arrays) -> Finding:
    """The steady-state density is exp(tau/J(Q_s) (2 omega Q_s xi x + x^2/lambda_s -
    x^2))/Z.

    It is the Gaussian density with the moments of eq:learning_capacity, on both sides of
    the transition. The distance from the PDE is the solver's error and what changes after t
    = 200.
    """
    x, formula = arrays["density/x"], arrays["density/formula"]
    width, tolerance = (x[:, 1] - x[:, 0])[:, None], 0.005
    pde, limit = (
        np.abs((arrays[f"density/{name}"] - formula) * width).sum(axis=1).max()
        for name in ("pde", "limit")
    )
    return Finding(
        pde,
        tolerance,
        f"at omega = {listed(arrays['density/omega'])}, its L1 distance is at most "
        f"{pde:.1e} from the PDE at t = 200, and {limit:.0e} from N(q_s lam_s xi, lam_s^2 "
        "(1 - q_s^2))",
        max(pde, limit) < tolerance,
    )


@claims.add("fig:steady_state_dist", "holds with a condition")
def density_shifts(arrays: Arrays) -> Finding:
    """The steady-state distribution starts to shift towards the true distribution after
    omega_c.

    It is true of x over its norm. The mean of x, which the figure shows, is (omega + 1) q_s
    xi and moves on beyond xi.
    """
    x, pdf, omega = (arrays[f"density/{name}"] for name in ("x", "pde", "omega"))
    mean = (x * pdf).sum(axis=1) / pdf.sum(axis=1)
    below = omega < critical_omega(INO)
    rescaled = mean / np.where(below, UNLEARNED_NORM, 1 + omega)
    mean_approaches, rescaled_approaches = (
        np.all(np.diff(np.abs(values - XI)) < 0) for values in (mean, rescaled)
    )
    shifts = np.all(np.abs(mean[below]) < 0.01) and rescaled_approaches
    return Finding(
        rescaled[-1],
        0,
        f"given xi = {XI:.3f}, the mean of x/lam in the PDE is {listed(rescaled, '.2f')} "
        f"at omega = {listed(omega)}; the mean of x itself is {listed(mean, '.2f')}",
        shifts and mean_approaches,
        shifts,
    )


@claims.add("fig:steady_state_dist")
def better_than_oja(arrays: Arrays) -> Finding:
    """Our method has a lower phase transition threshold and achieves a higher Q_s.

    At the same tau. INO-PCA's gain in the steady state is tau/(1 + omega), which is that of
    Oja's method at a smaller rate: see the next statement.
    """
    both = _converged_above(arrays, INO, OJA)
    leads = _mean_overlap(arrays, INO, both) - _mean_overlap(arrays, OJA, both)
    least = leads[int(np.argmin(leads.standard_errors))]
    limits = arrays[f"{INO}/line"] - arrays[f"{OJA}/line"]
    higher = least.standard_errors > MAX_STANDARD_ERRORS and limits.min() >= 0
    return Finding(
        least.value,
        least.error,
        f"omega_c = {critical_omega(INO):.4f}, and {critical_omega(OJA):.4f} for Oja's "
        f"method; at omega from {arrays['omega'][both].min():g} on, q is higher by "
        f"{leads.value.min():.3f} to {leads.value.max():.3f}, at least "
        f"{least.standard_errors:.0f} standard errors",
        higher and critical_omega(INO) < critical_omega(OJA),
    )


@claims.add("fig:steady_state_dist")
def same_as_slower_oja(arrays: Arrays) -> Finding:
    """To achieve the same Q_s with Oja's method, one should set tau = 0.5/(1 + omega).

    Exactly, because the steady overlap depends on the gain alone. Oja's method needs omega
    to be known for this, while INO-PCA's norm adapts to it.
    """
    limits = np.abs(arrays[f"{INO}/line"] - arrays[f"{MATCHED}/line"]).max()
    both = _converged_above(arrays, INO) & has_converged(arrays, MATCHED)
    gaps = _mean_overlap(arrays, INO, both) - _mean_overlap(arrays, MATCHED, both)
    worst = gaps[int(np.argmax(np.abs(gaps.standard_errors)))]
    largest = abs(worst.standard_errors)
    return Finding(
        worst.value,
        worst.error,
        f"the limits differ by at most {limits:.0e} at any omega, including the "
        f"transition; the trials' means differ by at most {largest:.1f} standard errors",
        limits < 1e-3 and largest < MAX_STANDARD_ERRORS,
    )


@claims.add("sec:our_steady_state, after eq:learning_capacity")
def vanishing_rate(arrays: Arrays) -> Finding:
    """A vanishing learning rate tau -> 0 is required to achieve Q_s = 1.

    1 - Q_s^2 = tau/2 (1 + omega)/(omega^2 + omega + tau omega/2), for any omega > 0.
    """
    taus, loss = arrays["taus"], 1 - arrays["taus/q_s"] ** 2
    return Finding(
        loss[-1],
        taus[-1],
        f"at omega = 1, 1 - Q_s^2 is {listed(loss, '.1e')} at tau = {listed(taus)}: "
        f"{loss[-2] / taus[-2]:.2f} tau for small tau",
        np.all(np.diff(loss) < 0) and np.all(loss[taus > 0.01] > 0) and loss[-1] < taus[-1],
    )
