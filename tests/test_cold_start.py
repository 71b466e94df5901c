"""The law of cold starts against closed forms, `overlap_law` and the chain."""

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

import inopca_jax as ino

CHANGE = 8.0


def _linear(tau: float, omega: float, p: int, t: np.ndarray) -> np.ndarray:
    """The mean of |q| while it is small, of Oja's method: its variance obeys
    `v' = 2 g v + tau^2 (1 + omega)/p` with `g = tau omega - tau^2/2`, from 1/p."""
    grown = np.exp((2 * tau * omega - tau**2) * t)
    noise = tau**2 * (1 + omega) / (2 * tau * omega - tau**2)
    return np.sqrt(2 / np.pi / p * (grown * (1 + noise) - noise))


def test_a_cold_start_is_linear_at_first_and_again_after_a_change():
    p, tau, omega, after = 10**8, 0.5, 1.0, np.array([0.0, 1.0, 4.0, 7.9])
    models = [
        ino.SpikedModel(p=p, omega=omega, spike=s()) for s in (ino.Uniform, ino.Sparse)
    ]
    config = ino.Config(
        ino.Oja(tau),
        ino.Switching(models=models, times=[CHANGE]),
        ino.ColdStart(),
        np.append(after, after + CHANGE),
    )
    law, gain = ino.cold_start_law(config)
    expected = np.tile(_linear(tau, omega, p, after), 2)
    np.testing.assert_allclose(law.q, expected, rtol=1e-4)
    np.testing.assert_allclose(gain, tau, rtol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("spike", [ino.ShiftedExponential, ino.Uniform])
@pytest.mark.parametrize("rule", [ino.InoPCA, ino.Oja])
def test_theory_from_the_first_sample_is_the_law_of_the_chain(rule, spike):
    """Its overlap has the variance (1 + omega)/p, where a random direction has 1/p."""
    model = ino.SpikedModel(p=4000, omega=3.0, spike=spike())
    ts = np.array([0.0, 0.5, 1.0, 2.0])
    config = ino.Config(rule(0.5), model, ino.FirstSamples(), ts)
    trials = 4000
    run = ino.simulate(config, key=jr.key(0), trials=trials).abs()
    for law in (ino.overlap_law(config).abs(), ino.cold_start_law(config).law):
        z = (run.mean().q - law.q) / (run.std().q / trials**0.5)
        assert np.max(np.abs(z)) < 5
    early = ino.Config(rule(0.5), model, ino.FirstSamples(), ts[:2])
    linear = ino.fluctuations(early)
    # The error of a standard deviation is a share 1/sqrt(2 trials) of it: 1 %.
    assert np.allclose(run.std().lam[:2], linear.lam_std[:2], rtol=0.06)


@pytest.mark.slow
def test_the_law_can_be_differentiated_and_vmapped():
    def last(omega):
        model = ino.SpikedModel(omega=omega)
        config = ino.Config(ino.InoPCA(0.5), model, ino.ColdStart(), np.array([1.0, 15.0]))
        return ino.cold_start_law(config).law.q[-1]

    omegas = np.array([0.98, 1.0, 1.02], np.float32)
    q = np.array([last(omega) for omega in omegas])
    np.testing.assert_allclose(jax.vmap(last)(jnp.asarray(omegas)), q, rtol=1e-4)
    np.testing.assert_allclose(jax.grad(last)(1.0), (q[2] - q[0]) / 0.04, rtol=1e-2)


def test_a_start_that_is_remembered_is_refused():
    with pytest.raises(ValueError, match=r"q0 = 0\.1 is not allowed.*mean_field"):
        ino.cold_start_law(ino.Config(ino.InoPCA(0.5), start=ino.WarmStart(0.1)))
    models = [ino.SpikedModel(spike=ino.ShiftedExponential())] * 2
    model = ino.Switching(models=models, times=[CHANGE])
    with pytest.raises(ValueError, match=r"spikes of nonzero means.*overlap_law"):
        ino.cold_start_law(ino.Config(ino.InoPCA(0.5), model, ino.ColdStart()))


@pytest.mark.slow
def test_the_law_of_cold_starts_is_the_overlap_law():
    config = ino.Config(ino.InoPCA(0.5), start=ino.ColdStart(), ts=np.linspace(0, 40, 41))
    ours, law = ino.cold_start_law(config).law, ino.overlap_law(config).abs()
    np.testing.assert_allclose(ours.q, law.q, atol=3e-3)
    np.testing.assert_allclose(ours.q_std, law.q_std, atol=4e-3)
    np.testing.assert_allclose(ours.lam, law.lam, atol=5e-3)


@pytest.mark.slow
@pytest.mark.parametrize("rule", [ino.AdaOja, ino.CCIPCA, ino.AdaptiveInoPCA])
def test_the_law_of_cold_starts_is_the_chains(rule):
    """Also of algorithms that forget their start at once, and after a change."""
    models = [ino.SpikedModel(spike=spike()) for spike in (ino.Uniform, ino.Sparse)]
    config = ino.Config(
        rule(),
        ino.Switching(models=models, times=[CHANGE]),
        ino.ColdStart(),
        np.array([1.0, 4.0, 7.0, 10.0, 14.0]),
    )
    runs = np.asarray(ino.simulate(config, key=jr.key(5), trials=640).q)
    law = ino.cold_start_law(config).law
    sure = (np.abs(runs).mean(axis=0) - np.asarray(law.q)) / (law.q_std / 640**0.5)
    assert np.max(np.abs(sure)) < 4
