"""The chain has the stream's law at every p: the claim that the package rests on."""

import jax.random as jr
import numpy as np
import pytest
from scipy import stats

import inopca_jax as ino

from .cases import RULES, SCHEDULES, SEVEN, assert_same_law, config, sparing


@pytest.mark.parametrize("name", sparing(SEVEN))
def test_chain_and_stream_agree_in_law(name):
    # Both signs of q: a start at 0.15 leaves a cloud of trials around zero.
    start = ino.WarmStart(0.15)
    for omega in (0.5, 1.0, 3.0):
        study = config(SEVEN[name](), omega=omega, start=start, ts=[0.5, 2.0, 6.0])
        chain = ino.simulate(study, key=jr.key(1), trials=2000)
        stream = ino.simulate(study, key=jr.key(2), trials=400, engine=ino.Stream())
        assert_same_law(chain, stream)


@pytest.mark.parametrize(
    ("rule", "schedule"),
    sparing([("Krasulina", "AdaGrad"), ("Cubic", "Interpolated")], 0),
)
def test_pairings_without_a_name_agree_in_law_too(rule, schedule):
    chosen = RULES[rule](SCHEDULES[schedule](200))
    study = config(chosen, start=ino.ColdStart(), ts=[1.0, 4.0])
    chain = ino.simulate(study, key=jr.key(1), trials=5000)
    stream = ino.simulate(study, key=jr.key(2), trials=1000, engine=ino.Stream())
    assert_same_law(chain, stream)


@pytest.mark.parametrize("p", sparing([4, 3]))
def test_the_chain_is_exact_in_the_smallest_dimensions(p):
    study = config(ino.InoPCA(0.5), p=p, ts=[1.0, 3.0, 10.0])
    chain = ino.simulate(study, key=jr.key(1), trials=8000)
    stream = ino.simulate(study, key=jr.key(2), trials=4000, engine=ino.Stream())
    assert_same_law(chain, stream)


@pytest.mark.smoke
def test_the_law_of_q_is_symmetric_from_a_cold_start():
    study = config(p=200, start=ino.ColdStart(), ts=[3.0])
    q = np.asarray(ino.simulate(study, key=jr.key(4), trials=8000).q[:, 0])
    assert abs(q.mean()) < 5 * q.std() / np.sqrt(q.size)
    assert stats.ks_2samp(q[::2], -q[1::2]).pvalue > 1e-3


def switching(p, first=None, second=None, at=1.5):
    return ino.Switching(
        models=[
            ino.SpikedModel(p=p, omega=2.0, spike=first or ino.ShiftedExponential()),
            ino.SpikedModel(p=p, omega=1.0, spike=second or ino.Sparse(0.3)),
        ],
        times=[at],
    )


@pytest.mark.parametrize("snapshots", sparing([False, True]))
def test_chain_and_stream_agree_in_law_across_a_change_of_the_spike(snapshots):
    study = ino.Config(
        ino.InoPCA(0.7),
        switching(60),
        ino.WarmStart(0.4),
        ts=np.array([1.4, 1.5, 2.0, 5.0]),
    )
    chain = ino.simulate(
        study, key=jr.key(1), trials=3000, engine=ino.Chain(snapshots=snapshots)
    )
    stream = ino.simulate(study, key=jr.key(2), trials=1500, engine=ino.Stream())
    assert_same_law(chain, stream)


@pytest.mark.slow
def test_the_estimate_remembers_all_spikes_before():
    """Three spikes that resemble each other: at the second change the part of x that is
    orthogonal to the second still points towards the first, and so to the third."""
    p = 60
    spiked = ino.SpikedModel(p=p, spike=ino.ShiftedExponential())
    model = ino.Switching([spiked] * 3, [0.1, 0.2])
    study = ino.Config(ino.InoPCA(0.5), model, ino.WarmStart(0.9), np.array([0.2, 1.0]))
    chain = ino.simulate(study, key=jr.key(1), trials=3000)
    stream = ino.simulate(study, key=jr.key(2), trials=1500, engine=ino.Stream())
    assert_same_law(chain, stream)
    ode = ino.mean_field(study)
    assert np.all(
        np.abs(chain.mean().q - ode.q) < 5 * chain.std().q / np.sqrt(3000) + 4 / p
    )


def test_the_overlap_is_measured_against_the_new_spike_from_its_step_on():
    study = ino.Config(
        ino.InoPCA(0.5), switching(400, ino.Uniform(), ino.Uniform()), ino.WarmStart(0.9),
        ts=np.array([1.4975, 1.5]),
    )  # fmt: skip
    for engine in (ino.Chain(), ino.Stream()):
        q = ino.simulate(study, key=jr.key(1), trials=50, engine=engine).q
        assert np.min(q[:, 0]) > 0.5
        assert np.max(np.abs(q[:, 1])) < 5 / np.sqrt(400)


@pytest.mark.slow
def test_chain_snapshots_have_the_streams_law_at_one_time_and_across_two():
    """Coordinates, products and overlaps of successive snapshots, conditional on xi."""
    p, spike = 40, ino.Sparse(0.3)
    study = config(p=p, omega=2.0, ts=[1.0, 1.5, 3.0], spike=spike)
    features = []
    for seed, engine in ((1, ino.Chain(snapshots=True)), (2, ino.Stream(snapshots=True))):
        run = ino.simulate(study, key=jr.key(seed), trials=3000, engine=engine)
        x, xi = np.asarray(run.x, dtype=float), np.asarray(run.xi, dtype=float)
        lam = np.sqrt(np.mean(x**2, -1))
        assert np.allclose(lam, run.lam, rtol=1e-5)
        assert np.allclose(np.mean(x * xi, -1) / lam, run.q, atol=1e-5)
        assert np.allclose(np.sum(xi**2, -1), p, rtol=1e-5)
        on = np.argmax(xi[:, 0], axis=1)  # one entry of the spike that is not zero
        off = np.argmin(xi[:, 0], axis=1)
        rows = np.arange(len(x))
        features.append(
            [x[rows, t, off] for t in range(3)]
            + [x[rows, t, on] for t in range(3)]
            + [x[rows, 0, off] * x[rows, 1, off], x[rows, 1, on] * x[rows, 2, on]]
            + [np.sum(x[:, i] * x[:, j], -1) for i, j in ((0, 1), (1, 2), (0, 2))]
            + [np.sum(x[:, 0] * x[:, 1] * xi[:, 0], -1)]
        )
    for one, two in zip(*features, strict=True):
        assert stats.ks_2samp(one, two).pvalue > 1e-3
        assert abs(one.mean() - two.mean()) < 5 * np.sqrt((one.var() + two.var()) / 3000)


@pytest.mark.parametrize("q0", sparing([1.0, -1.0]))
def test_snapshots_survive_a_start_along_the_spike(q0):
    study = config(p=50, start=ino.WarmStart(q0), ts=[0.0, 0.0, 0.5])
    run = ino.simulate(study, key=jr.key(0), trials=5, engine=ino.Chain(snapshots=True))
    assert bool(run.finite.all())
    assert np.allclose(run.x[:, 0], q0 * run.xi[:, 0], atol=1e-4)
    assert np.array_equal(run.x[:, 0], run.x[:, 1])
    assert np.all(np.abs(run.q[:, 2]) < 1)
