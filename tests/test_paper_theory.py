"""The statistics that the claims about the paper's theory figures use."""

import numpy as np

from inopca_jax.paper.densities import distance
from inopca_jax.paper.statistics import SIGNIFICANT
from inopca_jax.paper.steady_state_dist.claims import (
    critical_omega,
    extrapolated_transition,
)


def multinomial(masses, entries=10_000, trials=20):
    return np.random.default_rng(1).multinomial(entries, masses, trials) / entries


def test_the_distance_by_chance_is_that_of_trials_from_their_own_law():
    masses = np.random.default_rng(0).dirichlet(np.full(48, 3.0))
    measured = distance(multinomial(masses), masses)
    # The mean modulus of a normal variable is sqrt(2/pi) standard deviations.
    expected = np.sum(np.sqrt(2 / np.pi * masses * (1 - masses) / 200_000))
    np.testing.assert_allclose(measured.chance, expected, rtol=0.1)
    assert abs(measured.standard_errors) < SIGNIFICANT


def test_a_law_that_is_slightly_wrong_is_detected():
    masses = np.random.default_rng(0).dirichlet(np.full(48, 3.0))
    # Two per cent of the mass, from one half of the bins to the other.
    wrong = masses * np.where(np.arange(48) < 24, 1.02, 0.98)
    measured = distance(multinomial(masses), wrong / wrong.sum())
    assert measured.standard_errors > SIGNIFICANT


def test_deviations_that_the_bins_of_a_trial_share_widen_the_distance_by_chance():
    masses = np.full(48, 1 / 48)
    tilt = np.random.default_rng(2).normal(0, 0.3, (20, 1)) * np.linspace(-1, 1, 48) / 48
    independent, shared = multinomial(masses), multinomial(masses) + tilt
    chance = distance(shared, masses).chance
    assert chance > 1.5 * distance(independent, masses).chance
    assert distance(shared, masses).standard_errors < SIGNIFICANT


def test_squared_overlaps_extrapolate_to_the_transition():
    omega, error = np.array([0.3, 0.4, 0.5, 0.7, 1.0]), np.ones(5)
    # Oja's is a straight line in 1/omega; INO-PCA's is slightly curved.
    oja = (2 - 0.5 / omega) / 2.5
    ino = (omega**2 + omega - 0.25) / (omega**2 + omega + 0.25 * omega)
    for name, q2, tolerance in (("Oja", oja, 1e-9), ("INO-PCA", ino, 2e-3)):
        estimate = extrapolated_transition(omega, q2, error)
        assert abs(estimate - critical_omega(name)) < tolerance
    never_zero = 0.9 + 0.01 / omega**2
    assert np.isnan(extrapolated_transition(omega, never_zero, error))
