"""The claims about the paper's figures of algorithms follow from their numbers."""

import jax.random as jr
import numpy as np
import pytest

import inopca_jax as ino
from inopca_jax.paper.comparison import claims as comparison, compute as compared_with
from inopca_jax.paper.lambda0 import claims as lambda0_claims, compute as lambda0
from inopca_jax.paper.statistics import time_to_reach


def test_the_time_to_a_level_is_that_of_the_first_crossing():
    ts = np.array([0.0, 1.0, 2.0, 3.0])
    q = np.array([[0.0, 0.4, 0.2, 0.8], [0.0, 0.1, 0.2, 0.3], [0.5, 0.6, 0.7, 0.8]])
    np.testing.assert_allclose(time_to_reach(ts, q, 0.3), [0.75, 3.0, 0.0])
    np.testing.assert_allclose(time_to_reach(ts, q, 0.5), [2.5, np.inf, 0.0])


@pytest.fixture
def compared():
    """Arrays of the comparison in which INO-PCA is ahead from every norm up to 10."""
    ts, theirs, arrays = compared_with.TIMES, 0.02 * compared_with.TIMES, {}
    noise = 0.01 * np.random.default_rng(0).normal(size=(20, len(ts)))
    for name, speed in ((compared_with.INO, 2), (compared_with.OJA_SAME_END, 1)):
        arrays |= {f"{name}/{kind}/ts": ts for kind in ("theory", "runs")}
        arrays[f"{name}/theory/q"] = speed * theirs
        arrays[f"{name}/runs/q"] = speed * theirs + noise
    arrays["steady/INO-PCA"] = np.full(len(compared_with.OMEGAS), 0.8)
    arrays["steady/Oja by rate"] = np.where(compared_with.OJA_TAUS < 0.3, 0.8, 0.5)
    arrays[OJA] = np.tile(theirs, (len(compared_with.OJA_TAUS), 1))
    arrays[INO] = np.where(compared_with.LAM0S < 10, 2, 0.5)[:, None] * theirs
    count = len(compared_with.TAUS) * len(compared_with.TUNED_LAM0S)
    arrays[TUNED] = np.tile(2 * theirs, (count, 1))
    return arrays


OJA, INO = "mean field/Oja", "mean field/INO-PCA"
TUNED = "mean field/INO-PCA, tuned"


def test_the_claims_of_the_comparison_hold_or_do_not_and_never_raise(compared):
    claims = (
        comparison.faster_than_oja,
        comparison.no_rate_of_oja,
        comparison.outperforms_oja,
    )
    ahead = [claim(compared) for claim in claims]
    assert [c.verdict for c in ahead] == ["holds"] * 3
    assert "every λ₀ up to 8.9" in ahead[0].evidence
    slow = compared | {INO: 0.1 * compared[INO], TUNED: 0 * compared[TUNED]}
    behind = [claim(slow) for claim in claims]
    assert [c.verdict for c in behind] == ["does not hold"] * 3
    assert "not every small λ₀" in behind[0].evidence
    # "Up to a norm" means from all smaller norms.
    factor = np.where(np.isclose(compared_with.LAM0S, 0.05), 0.1, 1)[:, None]
    with_exception = compared | {INO: factor * compared[INO]}
    assert "not every small λ₀" in comparison.faster_than_oja(with_exception).evidence
    no_rate = compared | {"steady/Oja by rate": 0 * compared_with.OJA_TAUS}
    assert comparison.no_rate_of_oja(no_rate).verdict == "holds"
    unlearnt = compared | {OJA: 0 * compared[OJA], TUNED: 0 * compared[TUNED]}
    assert comparison.outperforms_oja(unlearnt).verdict == "does not hold"


def test_an_overlap_that_falls_from_no_norm_is_a_claim_that_does_not_hold(monkeypatch):
    monkeypatch.setattr(lambda0, "compute_overlaps", lambda *_, **__: {})
    monkeypatch.setattr(lambda0, "velocity", lambda q, lam: (np.ones(q.shape),) * 2)
    monkeypatch.setattr(lambda0, "_fixed_points", dict)
    arrays = lambda0.compute(quick=True)
    assert arrays["falls/0.1"] == 0
    name, path = lambda0.name_of(lambda0.LAM0S[0]), np.linspace(0.1, 0.9, 5)
    arrays |= {f"{name}/theory/ts": path, f"{name}/theory/q": path}
    arrays[f"{name}/runs/q"] = path + 0.01 * np.random.default_rng(0).normal(size=(20, 5))
    assert lambda0_claims.temporary_drop(arrays).verdict == "does not hold"


@pytest.mark.slow
def test_from_a_cold_start_the_adaptive_rate_is_not_the_fastest_at_first():
    """Noise leads away from q = 0 as well, and a larger gain has more of it."""
    sizes = []
    for rule in (ino.InoPCA(2.0), ino.AdaptiveInoPCA()):
        config = ino.Config(rule, start=ino.ColdStart(), ts=np.array([1.0]))
        sizes.append(np.abs(ino.simulate(config, key=jr.key(6), trials=1024).q[:, 0]))
    lead = sizes[0] - sizes[1]
    assert lead.mean() > 4 * lead.std() / len(lead) ** 0.5
