"""Small steps add up: what a run changes does not depend on the precision of its state."""

import jax.random as jr
import numpy as np
import pytest

import inopca_jax as ino

from .cases import config, sparing, z_scores

RULES = [ino.InoPCA, ino.Oja]
# One unit in the last place of a float32 at 1: what is observed is rounded to it.
ROUNDED = 1.2e-7


def changes(rule, p, tau, until, trials, engine, seed=0):
    """By how much the overlap and the norm of each trial change."""
    study = config(rule(tau), p=p, start=ino.WarmStart(0.5), ts=[0.0, until])
    runs = ino.simulate(study, key=jr.key(seed), trials=trials, engine=engine)
    return [np.diff(np.asarray(a, float))[:, 0] for a in (runs.q, runs.lam)]


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize(
    ("p", "tau"), sparing([(99_999, 1e-3), (99_999, 1e-4), (10_000, 1e-4)])
)
@pytest.mark.parametrize("engine", [ino.Chain(), ino.Diffusion(0.05)], ids=str)
def test_a_small_rate_moves_a_run_by_what_the_mean_field_says(engine, rule, p, tau):
    """A state whose steps are lost in rounding is off by 10 to 100 % here."""
    study = config(rule(tau), p=p, start=ino.WarmStart(0.5), ts=[0.0, 2.0])
    ode = ino.mean_field(study)
    found = changes(rule, p, tau, 2.0, 64, engine)
    for change, path in zip(found, (ode.q, ode.lam), strict=True):
        expected = float(path[1]) - float(path[0])
        error = change.std(ddof=1) / len(change) ** 0.5
        assert abs(change.mean() - expected) < 4 * error + 5e-3 * abs(expected) + ROUNDED


# Engines in float32 mode and in float64, until when, how many trials, and how well what is
# observed is rounded: a sum over 1e5 entries in float32 is good to some 1e-7.
ENGINES = {
    "chain": (ino.Chain(), ino.Chain(dtype="float64"), 2e5, 64, ROUNDED),
    "diffusion": (ino.Diffusion(), ino.Diffusion(dtype="float64"), 1e7, 256, ROUNDED),
    "stream": (ino.Stream(), ino.Stream(dtype="float64"), 2e3, 8, 4 * ROUNDED),
    "blocks": (
        ino.Stream(block=64),
        ino.Stream(block=64, dtype="float64"),
        2e3,
        8,
        4 * ROUNDED,
    ),
}
GRID = [(1000, 1e-4), (100_000, 1e-4), (10_000, 1e-4)]
GRID += [(p, tau) for p in (1000, 10_000, 100_000) for tau in (1e-3, 1e-2, 0.1, 1.0)]


@pytest.mark.parametrize(("p", "tau"), sparing(GRID))
@pytest.mark.parametrize("rule", sparing([*RULES, ino.Krasulina]))
@pytest.mark.parametrize("name", ENGINES)
def test_no_engine_is_biased_in_float32_mode(name, rule, p, tau):
    single, double, samples, trials, rounded = ENGINES[name]
    until = min(5.0, samples / p)
    one = changes(rule, p, tau, until, trials, single)
    other = changes(rule, p, tau, until, trials, double, seed=1)
    for a, b in zip(one, other, strict=True):
        with np.errstate(invalid="ignore", divide="ignore"):
            z = z_scores(a, b)
        assert abs(a.mean() - b.mean()) < rounded or abs(z) < 4


def test_a_chain_in_float32_refuses_steps_that_it_would_lose():
    chain = ino.Chain(dtype="float32")
    for tau in (1e-3, ino.Interpolated([0, 1], [0.5, 1e-3]), ino.Harmonic(2e-3)):
        with pytest.raises(ValueError, match=r"tau = .* dtype = float32; leave dtype out"):
            changes(ino.InoPCA, 10_000, tau, 1.0, 2, chain)
    assert np.all(np.isfinite(changes(ino.InoPCA, 1000, 1e-3, 1.0, 2, chain)))
