"""Steady states, the transition and the bounds."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import inopca_jax as ino
from inopca_jax._order_parameters.steady_state import _root

from .cases import config, sparing

pytestmark = pytest.mark.usefixtures("x64")

# Cubic's degree 5 has no closed form in the paper.
WITH_NORM = {
    "InoPCA": ino.InoPCA,
    "Cubic": ino.Cubic,
    "Quintic": lambda tau: ino.Cubic(tau, degree=5),
    "Oja": ino.Oja,
}


@pytest.mark.parametrize("omega", [0.05, 0.15, 0.4, 1.0, 3.0])
@pytest.mark.parametrize("tau", [0.5, 1.2])
@pytest.mark.parametrize("name", WITH_NORM)
def test_the_closed_form_is_the_long_time_limit(name, tau, omega):
    study = config(
        WITH_NORM[name](tau), omega=omega, start=ino.WarmStart(0.5), ts=[0, 3000]
    )
    ode = ino.mean_field(study, max_steps=100_000)
    q_s, lam_s = ino.steady_state(study)
    assert np.isclose(ode.q[-1], q_s, atol=1e-8)
    assert np.isclose(ode.lam[-1], lam_s, atol=1e-8)


@pytest.mark.parametrize("omega", [0.1, 1.0])
def test_krasulinas_overlap_settles_and_its_norm_does_not(omega):
    study = config(ino.Krasulina(0.5), omega=omega, start=ino.WarmStart(0.5), ts=[0, 500])
    ode, (q_s, lam_s) = ino.mean_field(study), ino.steady_state(study)
    assert np.isclose(ode.q[-1], q_s, atol=1e-8)
    assert lam_s == np.inf


def test_the_numbers_of_the_paper():
    assert np.isclose(ino.critical_snr(ino.InoPCA(0.5)), 0.20711, atol=5e-6)
    for rule in (ino.Oja(0.5), ino.Cubic(0.5), ino.Krasulina(0.5)):
        assert np.isclose(ino.critical_snr(rule), 0.25, rtol=1e-12)
    for rule, q_s in ((ino.InoPCA(0.5), 0.88192), (ino.Oja(0.5), 0.77460)):
        assert np.isclose(ino.steady_state(config(rule))[0], q_s, atol=5e-6)
    # INO-PCA ends where Oja's method with tau/(1 + omega) does.
    assert np.isclose(ino.steady_state(config(ino.Oja(0.25)))[0], 0.88192, atol=5e-6)


@pytest.mark.parametrize("rule", [ino.InoPCA(0.5), ino.Oja(0.5)])
def test_learning_begins_at_the_critical_snr(rule):
    edge = float(ino.critical_snr(rule))
    below, above = (
        ino.steady_state(config(rule, omega=edge * (1 + s)))[0] for s in (-1e-3, 1e-3)
    )
    assert below == 0
    assert 0 < above < 0.1


class Damped(ino.AbstractRule):
    """A rule without a closed form: gain tau/(1 + lam), decay tau lam^2."""

    tau: ino.AbstractSchedule
    projects = False

    def rates(self, observables, tau):
        return ino.Rates(gain=tau / (1 + observables.lam), decay=tau * observables.lam**2)


@pytest.mark.parametrize("omega", [0.05, 2.0])
def test_a_rule_without_a_closed_form_has_its_mean_fields_root(omega):
    study = config(
        Damped(ino.Constant(0.5)), omega=omega, start=ino.WarmStart(0.5), ts=[0, 4000]
    )
    ode, (q_s, lam_s) = ino.mean_field(study, max_steps=100_000), ino.steady_state(study)
    assert np.isclose(ode.q[-1], q_s, atol=1e-8)
    assert np.isclose(ode.lam[-1], lam_s, atol=1e-8)
    edge = float(ino.critical_snr(study.rule))
    assert (omega > edge) == (q_s > 1e-12)
    # lam^2 (1 + lam) = 1 + nu/2 at rest with q = 0, and omega_c = nu/2.
    nu = 2 * edge
    lam = 0.5 / nu - 1
    assert np.isclose(lam**2 * (1 + lam), 1 + nu / 2, rtol=1e-9)


@pytest.mark.parametrize("kind", sparing([ino.InoPCA, ino.Cubic, ino.Oja]))
def test_the_root_finder_agrees_with_the_closed_forms_and_their_derivatives(kind):
    for omega in (0.1, 1.0):
        value = jnp.asarray(omega)

        def by_root(tau, value=value):
            return jnp.stack(_root(kind(tau), value, None)[:2])

        def by_form(tau, value=value):
            return jnp.stack(ino.steady_state(config(kind(tau), omega=value)))

        tau = jnp.asarray(0.5)
        assert np.allclose(by_root(tau), by_form(tau), atol=1e-9)
        assert np.allclose(jax.jacrev(by_root)(tau), jax.jacrev(by_form)(tau), atol=1e-7)


class Relaxing(ino.AbstractSchedule):
    """A state that comes to rest by itself, at `s2 r`."""

    def init(self, p):
        return jnp.asarray(1.0)

    def drift(self, observables, state):
        return observables.s2 * observables.r - state

    def tau(self, observables, state, hidden):
        return 0.8 / state


class Wary(ino.AbstractSchedule):
    """A rate that looks at the sample, and at the time until it has settled."""

    def init(self, p):
        return ()

    def drift(self, observables, state):
        return ()

    def tau(self, observables, state, hidden):
        return 0.4 * (1 + jnp.exp(-observables.t)) / (1 + observables.s2)


@pytest.mark.parametrize(
    ("kind", "schedule"), sparing([(ino.InoPCA, Relaxing), (ino.Oja, Wary)])
)
def test_a_schedule_of_the_users_own_has_its_mean_fields_root(kind, schedule):
    study = config(kind(schedule()), start=ino.WarmStart(0.5), ts=[0, 500])
    ode, (q_s, lam_s) = ino.mean_field(study, max_steps=100_000), ino.steady_state(study)
    assert np.isclose(ode.q[-1], q_s, atol=1e-8)
    assert np.isclose(ode.lam[-1], lam_s, atol=1e-8)
    edge = float(ino.critical_snr(study.rule))
    above, below = (
        ino.steady_state(config(kind(schedule()), omega=edge * s))[0] for s in (1.01, 0.99)
    )
    assert above > 0.01
    assert below < 1e-6


def test_without_a_signal_the_gradient_is_still_a_number():
    for kind in (ino.InoPCA, ino.Oja):
        slope = jax.grad(
            lambda w, kind=kind: ino.steady_state(config(kind(0.5), omega=w))[0]
        )
        assert slope(0.0) == 0


def test_krasulinas_norm_depends_on_the_path_where_the_rate_falls():
    study = config(ino.Krasulina(ino.Harmonic(2, t0=1)))
    assert np.isnan(ino.steady_state(study)[1])


def test_a_norm_that_grows_without_bound_is_said_to():
    class Endless(ino.AbstractRule):
        tau: ino.AbstractSchedule
        projects = False

        def rates(self, observables, tau):
            return ino.Rates(gain=tau / (1 + observables.lam), decay=0 * tau)

    with pytest.raises(RuntimeError, match="Endless has no steady state"):
        ino.steady_state(config(Endless(ino.Constant(0.5))))


@pytest.mark.parametrize("schedule", [ino.Harmonic(3, t0=1), ino.AdaGrad(), ino.Oracle()])
@pytest.mark.parametrize("kind", [ino.InoPCA, ino.Oja])
def test_a_schedule_that_falls_to_zero_recovers_the_spike(kind, schedule):
    q_s, lam_s = ino.steady_state(config(kind(schedule), omega=0.3))
    assert np.isclose(q_s, 1, atol=1e-9)
    assert np.isclose(lam_s, 1.3 if kind is ino.InoPCA else 1, atol=1e-9)
    assert np.isclose(ino.critical_snr(kind(schedule)), 0, atol=1e-9)


def test_an_interpolated_schedule_ends_as_its_last_knot():
    rule = ino.InoPCA(ino.Interpolated([0.0, 5.0], [2.0, 0.5]))
    assert np.allclose(
        ino.steady_state(config(rule)), ino.steady_state(config()), rtol=1e-12
    )


@pytest.mark.parametrize("rule", [ino.AdaptiveInoPCA(), ino.Oja(ino.Oracle())])
@pytest.mark.parametrize(("omega", "q0"), [(0.5, 0.1), (1.0, 0.01), (3.0, -0.6)])
def test_the_oracles_path_is_its_closed_form(rule, omega, q0):
    ts = np.array([0.0, 0.5, 5.0, 50.0, 400.0])
    study = config(rule, omega=omega, start=ino.WarmStart(q0), ts=ts)
    exact = ino.oracle_overlap(omega, q0, ts)
    assert np.max(np.abs(ino.mean_field(study).q - exact)) < 1e-8


def test_the_oracles_bound_holds_at_the_ends_of_its_range():
    assert ino.oracle_overlap(1.0, 0.0, 10.0) == 0
    assert ino.oracle_overlap(1.0, 1.0, 10.0) == 1
    assert ino.oracle_overlap(0.0, 0.3, 10.0) == pytest.approx(0.3, abs=1e-12)
    late = ino.oracle_overlap(2.0, 0.1, jnp.array([1e6, 1e9]))
    # 1 - q^2 ~ (1 + omega)/(omega^2 t), as offline PCA.
    assert np.allclose((1 - late**2) * 4 * np.array([1e6, 1e9]) / 3, 1, rtol=1e-4)
    slope = jax.grad(lambda q0: ino.oracle_overlap(1.0, q0, 3.0))(0.2)
    h = 1e-5
    up, down = ino.oracle_overlap(1.0, jnp.array([0.2 + h, 0.2 - h]), 3.0)
    assert np.isclose(slope, (up - down) / (2 * h), rtol=1e-7)


def test_no_constant_rate_beats_the_oracle_nor_the_oracle_offline_pca():
    ts = np.linspace(0.0, 60.0, 31)
    best = ino.oracle_overlap(1.0, 0.1, ts)
    for tau in (0.05, 0.2, 0.5, 1.0):
        for kind in (ino.InoPCA, ino.Oja):
            study = config(kind(tau), start=ino.WarmStart(0.1), ts=ts)
            assert np.all(ino.mean_field(study).q <= best + 1e-9)
    offline = ino.offline_overlap(1.0, ts)
    assert np.all(best[ts > 5] < offline[ts > 5])


@pytest.mark.slow
def test_offline_pca_against_the_sample_covariance():
    p, omega, ts = 600, 1.5, (0.2, 1.0, 4.0)
    rng = np.random.default_rng(0)
    for t in ts:
        squares = []
        for _ in range(8):
            n = int(p * t)
            y = rng.standard_normal((n, p))
            y[:, 0] *= np.sqrt(1 + omega)
            _, _, rows = np.linalg.svd(y, full_matrices=False)
            squares.append(rows[0, 0] ** 2)
        error = np.std(squares, ddof=1) / np.sqrt(8)
        exact = float(ino.offline_overlap(omega, t)) ** 2
        assert abs(np.mean(squares) - exact) < 4 * error + 4 / p
    assert ino.offline_overlap(1.5, 1 / 1.5**2) == 0


def test_the_best_norm_to_start_with_rises_fastest():
    tau, omega, q0, h = 0.5, 1.3, 0.2, 1e-3
    best = float(ino.best_lam0(tau, omega, q0))
    assert np.isclose(ino.best_lam0(tau, omega), tau / omega)

    def early(lam0):
        study = config(ino.InoPCA(tau), omega=omega, start=ino.WarmStart(q0, lam0), ts=[h])
        return float(ino.mean_field(study).q[0])

    assert early(best) > max(early(0.98 * best), early(1.02 * best))
