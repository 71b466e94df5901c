"""Missing entries: the masked stream, and the limit with `alpha omega`."""

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

import inopca_jax as ino
from inopca_jax._engine.draws import sample_of
from inopca_jax._engine.sample import draw_pairs

from .cases import z_scores

SPIKED = ino.SpikedModel


def of(model, rule=None, ts=(1.0, 3.0)):
    return ino.Config(rule or ino.InoPCA(0.5), model, ino.WarmStart(0.5), ts)


@pytest.mark.usefixtures("x64")
def test_samples_are_masked_and_scaled():
    p, n, alpha = 4, 20_000, 0.3
    xi = ino.Gaussian().sample(jr.key(0), p)
    model = SPIKED(p, 3.0, observed=alpha)
    halves = draw_pairs(jr.key(1), jnp.arange(n // 2), p, 1, model.observed)
    sample = jax.vmap(lambda noise: sample_of(model, (xi,), noise))
    y = np.concatenate([sample(half) for half in halves])
    complete = np.concatenate([half.a for half in halves])
    signal = np.concatenate([half.cs[0] for half in halves])
    complete = complete + np.sqrt(3.0 / p) * signal[:, None] * np.asarray(xi)
    seen = y != 0
    assert np.allclose(y[seen], complete[seen] / np.sqrt(alpha), rtol=1e-6)
    masks = np.concatenate([np.asarray(half.seen) for half in halves]).astype(float)
    # Every entry with the probability alpha, independently.
    sd = np.sqrt(alpha * (1 - alpha) / n)
    assert np.max(np.abs(masks.mean(0) - alpha)) < 5 * sd
    correlations = np.corrcoef(np.hstack([masks[1:], masks[:-1]]).T) - np.eye(2 * p)
    assert np.max(np.abs(correlations)) < 5 / np.sqrt(n)


def compare(rule, alpha, p, trials, ts):
    """The masked stream against the chain at `alpha omega`, whose law is its limit."""
    missing = of(SPIKED(p, 2.0, observed=alpha), rule, ts)
    stream = ino.simulate(missing, key=jr.key(1), trials=trials, engine=ino.Stream())
    chain = ino.simulate(of(SPIKED(p, 2.0 * alpha), rule, ts), key=jr.key(2), trials=2000)
    assert np.max(np.abs(z_scores(stream.q, chain.q))) < 5
    # Krasulina's norm never rests, and adds up what finite p changes.
    if not isinstance(rule, (ino.Krasulina, ino.Oja)):
        assert np.max(np.abs(z_scores(stream.lam, chain.lam))) < 5


def test_the_masked_stream_has_the_limits_law():
    compare(ino.InoPCA(0.5), 0.5, p=200, trials=100, ts=(1.0, 3.0))


@pytest.mark.slow
@pytest.mark.parametrize("alpha", [0.3, 0.5, 0.8])
@pytest.mark.parametrize(
    "rule", [ino.InoPCA(0.5), ino.Oja(0.4), ino.Krasulina(0.4), ino.CCIPCA(2.0)]
)
def test_the_masked_stream_has_the_limits_law_for_every_rule(rule, alpha):
    compare(rule, alpha, p=2000, trials=200, ts=(1.0, 3.0))


def test_theory_and_chain_are_those_of_complete_samples_at_alpha_omega():
    """With the same bits where `alpha omega` is exact."""
    missing, complete = of(SPIKED(200, 2.0, observed=0.5)), of(SPIKED(200, 1.0))
    runs = [ino.simulate(c, key=jr.key(0), trials=5) for c in (missing, complete)]
    assert np.array_equal(runs[0].q, runs[1].q)
    for number in (ino.steady_state, lambda c: ino.best_overlap(c, [3.0])):
        assert np.array_equal(number(missing), number(complete))
    both = [
        of(SPIKED(200, w, turning=0.02, observed=a)) for w, a in ((2.0, 0.5), (1.0, None))
    ]
    assert ino.best_rate(both[0]) == ino.best_rate(both[1])


@pytest.mark.slow
def test_all_theory_is_that_of_complete_samples_at_alpha_omega():
    missing, complete = of(SPIKED(200, 2.0, observed=0.5)), of(SPIKED(200, 1.0))
    for theory in (ino.mean_field, ino.fluctuations, ino.density):
        assert np.array_equal(theory(missing).q, theory(complete).q)
    speeds = [ino.velocity(c, 0.3, 1.0)[0] for c in (missing, complete)]
    assert speeds[0] == speeds[1]
    cold = [ino.Config(c.rule, c.model, ino.ColdStart(), c.ts) for c in (missing, complete)]
    laws = [ino.cold_start_law(c).law for c in cold]
    assert np.array_equal(laws[0].q, laws[1].q)


@pytest.mark.slow
def test_missing_entries_and_several_spikes_go_together():
    ts, trials, p = (1.0, 4.0), 300, 500
    kinds = dict(start=ino.ColdStart(), ts=ts, components=2)
    missing = ino.Config(model=SPIKED(p, [6.0, 3.0], observed=0.5, turning=0.05), **kinds)
    complete = ino.Config(model=SPIKED(p, [3.0, 1.5], turning=0.05), **kinds)
    stream = ino.simulate(missing, key=jr.key(1), trials=trials, engine=ino.Stream())
    chain = ino.simulate(complete, key=jr.key(2), trials=2000)
    z = z_scores(np.abs(stream.overlaps), np.abs(chain.overlaps))
    assert np.max(np.abs(z)) < 5


@pytest.mark.parametrize("alpha", [0.0, 1.1, -0.5, np.nan])
def test_a_fraction_of_entries_is_a_probability(alpha):
    with pytest.raises(ValueError, match=r"observed = .* probability in \(0, 1\]"):
        SPIKED(observed=alpha)


def test_a_first_sample_with_missing_entries_is_no_start():
    with pytest.raises(ValueError, match=r"FirstSamples\(\) with .* ColdStart"):
        ino.Config(model=SPIKED(observed=0.5), start=ino.FirstSamples())
