"""The paper's theory figures: that what is on record comes out, and what it rests on."""

import importlib

import matplotlib.pyplot as plt
import numpy as np
import pytest

from inopca_jax.paper import densities, steady_claims

FIGURES = ("density_evolution", "density_evolution2", "cos_lambda", "steady_state_dist")


@pytest.mark.slow
@pytest.mark.parametrize("name", FIGURES)
def test_what_is_on_record_comes_out(name, tmp_path):
    figure = importlib.import_module(f"inopca_jax.paper.{name}")
    assert figure.configs(quick=True)
    np.savez(tmp_path / "found.npz", **figure.compute(quick=True))
    with np.load(tmp_path / "found.npz") as file:
        found = dict(file)
    for claim in figure.claims(found):
        assert claim.verdict == claim.recorded, claim
    plt.close(figure.draw(found))


def multinomial(masses, entries=10_000, trials=20):
    return np.random.default_rng(1).multinomial(entries, masses, trials) / entries


def test_chance_makes_the_distance_of_trials_from_their_own_law():
    masses = np.random.default_rng(0).dirichlet(np.full(48, 3.0))
    found = densities.distance(multinomial(masses), masses)
    # The mean of the modulus of a normal variable is sqrt(2/pi) deviations.
    expected = np.sum(np.sqrt(2 / np.pi * masses * (1 - masses) / 200_000))
    np.testing.assert_allclose(found.chance, expected, rtol=0.1)
    assert abs(found.sure) < densities.SURE


def test_a_law_that_is_a_little_off_is_seen():
    masses = np.random.default_rng(0).dirichlet(np.full(48, 3.0))
    # Two percent of the mass, from one half of the bins to the other.
    other = masses * np.where(np.arange(48) < 24, 1.02, 0.98)
    found = densities.distance(multinomial(masses), other / other.sum())
    assert found.sure > densities.SURE


def test_bins_shared_by_a_trial_widen_what_chance_makes():
    masses = np.full(48, 1 / 48)
    tilt = np.random.default_rng(2).normal(0, 0.3, (20, 1)) * np.linspace(-1, 1, 48) / 48
    alone, shared = multinomial(masses), multinomial(masses) + tilt
    chance = densities.distance(shared, masses).chance
    assert chance > 1.5 * densities.distance(alone, masses).chance
    assert densities.distance(shared, masses).sure < densities.SURE


def test_squared_overlaps_extrapolate_to_the_transition():
    omega, error = np.array([0.3, 0.4, 0.5, 0.7, 1.0]), np.ones(5)
    # Oja's is a straight line in 1/omega; INO-PCA's bends a little.
    oja = (2 - 0.5 / omega) / 2.5
    ino = (omega**2 + omega - 0.25) / (omega**2 + omega + 0.25 * omega)
    for name, q2, within in (("Oja", oja, 1e-9), ("INO-PCA", ino, 2e-3)):
        found = steady_claims._extrapolated(omega, q2, error)
        assert abs(found - steady_claims.threshold(name)) < within
    never_zero = 0.9 + 0.01 / omega**2
    assert np.isnan(steady_claims._extrapolated(omega, never_zero, error))
