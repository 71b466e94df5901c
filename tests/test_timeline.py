"""One time axis for simulations and theory: segments, and one rule for rounding."""

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

import inopca_jax as ino
from inopca_jax._timeline import segments, steps_at

from .cases import sparing


def switching(times, p=100):
    return ino.Switching([ino.SpikedModel(p)] * (len(times) + 1), times)


def owners(run):
    """The number of the segment that each observation belongs to."""
    return np.argmax(np.stack([segment.observed for segment in run]), axis=0).tolist()


def test_each_observation_belongs_to_the_segment_of_its_time():
    study = ino.Config(model=switching([1.0, 2.5]), ts=np.array([0.0, 0.9, 1.0, 2.0, 3.0]))
    run = segments(study)
    assert owners(run) == [0, 0, 1, 1, 2]
    assert [(float(s.begin), float(s.end)) for s in run] == [(0, 1), (1, 2.5), (2.5, 3)]
    for segment in run:
        assert np.all((segment.ts >= segment.begin) & (segment.ts <= segment.end))
        assert np.array_equal(segment.ts[segment.observed], study.ts[segment.observed])


def test_a_time_that_is_a_switch_up_to_rounding_is_after_it():
    """0.1 + 0.2 is not 0.3, and a third of a unit in single precision is less than one in
    double precision."""
    for switch, t in ((0.1 + 0.2, 0.3), (0.3, 0.1 + 0.2), (1 / 3, np.float32(1 / 3))):
        study = ino.Config(
            model=switching([switch]), ts=np.array([0.0, t], np.asarray(t).dtype)
        )
        assert owners(segments(study)) == [0, 1]
    study = ino.Config(model=switching([0.3]), ts=np.array([0.0, 0.3 - 1e-9]))
    assert len(segments(study)) == 1


def test_traced_times_have_the_segments_of_known_ones():
    study = ino.Config(model=switching([1.0, 2.5]), ts=np.array([0.0, 0.9, 1.0, 2.0, 3.0]))
    known = segments(study)
    traced = jax.jit(lambda ts: segments(study, ts))(jnp.asarray(study.ts))
    for a, b in zip(known, traced, strict=True):
        assert np.array_equal(a.observed, b.observed)
        assert np.allclose(a.ts, b.ts)
        assert np.allclose([a.begin, a.end], [b.begin, b.end])


def test_segments_after_the_last_time_are_left_out_if_that_is_known():
    study = ino.Config(model=switching([1.0, 2.5]), ts=np.array([0.0, 0.9]))
    assert len(segments(study)) == 1
    traced = jax.jit(lambda ts: segments(study, ts))(jnp.asarray(study.ts))
    assert [bool(s.observed.any()) for s in traced] == [True, False, False]


def test_steps_are_counted_the_same_on_the_host_and_in_compiled_code():
    rng = np.random.default_rng(0)
    with jax.enable_x64(True):
        for p in (7, 100, 12_345):
            ts = np.concatenate([rng.uniform(0, 20, 200), np.arange(40) / p, [0.29]])
            inside = jax.jit(lambda ts, p: steps_at(ts, p, np.float64))
            assert np.array_equal(steps_at(ts, p), inside(jnp.asarray(ts), float(p)))


def test_a_look_before_a_switch_within_the_same_step_sees_the_old_spike():
    """The switch at t = 0.505 and the look at t = 0.501 are both after 50 samples."""
    p, ts = 100, np.array([0.501, 0.505])
    study = ino.Config(model=switching([0.505], p), start=ino.WarmStart(0.9), ts=ts)
    for engine in (ino.Chain(), ino.Stream()):
        runs = ino.simulate(study, key=jr.key(0), trials=4, engine=engine)
        assert np.all(np.asarray(runs.q[:, 0]) > 0.5)
        assert np.all(np.abs(np.asarray(runs.q[:, 1])) < 0.5)
    assert ino.mean_field(study).q[0] > 0.5
    assert abs(ino.mean_field(study).q[1]) < 1e-6


THEORIES = [ino.mean_field, ino.fluctuations, ino.density]


@pytest.mark.parametrize("theory", sparing(THEORIES, 2))
def test_every_theory_switches_at_the_same_observation(theory):
    ts = np.array([0.0, 0.99, 1.0, 1.5])
    study = ino.Config(model=switching([1.0], 500), start=ino.WarmStart(0.6), ts=ts)
    q = np.asarray(theory(study).q)
    assert np.all(q[:2] > 0.5)
    assert np.all(np.abs(q[2:]) < 1e-3)
