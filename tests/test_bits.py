"""The same key gives the same bits, however the work is cut."""

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

import inopca_jax as ino
from inopca_jax._batch import batch
from inopca_jax._batch.calls import plan_calls
from inopca_jax._engine import defaults
from inopca_jax._timeline import steps_at

from .cases import config, sparing
from .test_same_law import switching

STUDY = dict(p=60, ts=np.array([0.0, 0.31, 1.2, 2.0]))


def run(engine, *, trials=5, study=None, **options):
    study = config(**STUDY) if study is None else study
    result = ino.simulate(study, key=jr.key(7), trials=trials, engine=engine, **options)
    return np.stack([result.q, result.lam])


def is_equal_up_to_rounding(a, b):
    """As two programs of different shape are, which XLA may round differently."""
    return np.allclose(a, b, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("kind", "chunks"), [(ino.Chain, (2, 7)), (ino.Stream, (4, 6))])
def test_the_chunk_changes_a_run_by_rounding_alone(kind, chunks):
    whole = run(kind())
    for chunk in chunks:
        assert is_equal_up_to_rounding(run(kind(chunk=chunk)), whole)


@pytest.mark.parametrize("engine", [ino.Chain(), ino.Stream()])
def test_a_bar_does_not_change_a_bit(engine, capsys):
    assert np.array_equal(run(engine, progress=True), run(engine))
    assert "100%" in capsys.readouterr().err


ENGINES = [ino.Chain(), ino.Stream(), ino.Stream(block=8), ino.Chain(snapshots=True)]


@pytest.mark.parametrize("engine", sparing(ENGINES, 2))
def test_a_trial_does_not_depend_on_how_many_are_run(engine):
    tile = engine.prepare(config(**STUDY)).tile
    many = run(engine, trials=33 * tile + 3)  # enough for several tiles in one call
    for trials in (1, 3, tile + 1, 5 * tile):
        assert np.array_equal(run(engine, trials=trials), many[:, :trials])


@pytest.mark.parametrize("engine", [ino.Chain(), ino.Stream()])
def test_observations_in_between_change_a_run_by_rounding_alone(engine):
    often = run(engine, study=config(p=60, ts=np.linspace(0, 2, 41)))
    seldom = run(engine, study=config(p=60, ts=np.array([0.5, 2.0])))
    assert is_equal_up_to_rounding(often[:, :, [10, 40]], seldom)


@pytest.mark.parametrize("engine", sparing(ENGINES[::-1]))
def test_the_length_of_a_call_does_not_change_a_bit(engine, monkeypatch):
    study = ino.Config(model=switching(60), ts=np.array([0.0, 0.7, 1.5, 3.0]))
    whole = run(engine, study=study)
    monkeypatch.setattr(defaults, "steps_per_call", lambda cost, least=1: 32)
    assert len(plan_calls(study, engine.prepare(study), 32)[0].stops) > 1
    assert np.array_equal(run(engine, study=study), whole)


def test_threads_do_not_change_a_bit(monkeypatch):
    trials = 3 * defaults.chain_tile()
    threaded = run(ino.Chain(), trials=trials)
    monkeypatch.setattr(defaults, "on_cpu", lambda: False)
    monkeypatch.setattr(defaults, "chain_tile", lambda: 32)
    monkeypatch.setattr(defaults, "unroll", lambda length, most: 1)
    assert np.array_equal(run(ino.Chain(), trials=trials), threaded)


@pytest.mark.slow
@pytest.mark.parametrize("engine", [ino.Chain(), ino.Diffusion()])
def test_the_straight_code_of_accelerators_differs_by_rounding_alone(engine, monkeypatch):
    study = config(p=200, ts=STUDY["ts"])
    loops = run(engine, study=study)
    assert defaults.unroll(256, 32) == 1
    unroll = lambda length, most: min(length, most)
    monkeypatch.setattr(defaults, "unroll", unroll)
    jax.clear_caches()  # programs are cached by their arguments, which are the same
    assert is_equal_up_to_rounding(run(engine, study=study), loops)
    jax.clear_caches()


def test_another_key_gives_another_run_and_any_kind_of_key_will_do():
    study = config(**STUDY)
    keys = [jr.key(7), jr.key(8), jr.PRNGKey(7), jr.key(7, impl="rbg")]
    qs = [ino.simulate(study, key=key, trials=2).q[:, -1] for key in keys]
    assert np.array_equal(qs[0], qs[2])  # the old and the new spelling of one key
    assert len({float(q[0]) for q in qs}) == 3
    assert all(float(q[0]) != float(q[1]) for q in qs)


def test_a_large_dimension_is_followed_in_double_precision_without_x64_mode():
    assert not jax.config.jax_enable_x64
    study = config(p=100_000, ts=[0.0, 0.01])
    wide = ino.simulate(study, key=jr.key(0), trials=2)
    forced = ino.simulate(study, key=jr.key(0), trials=2, engine=ino.Chain(dtype="float64"))
    narrow = ino.simulate(study, key=jr.key(0), trials=2, engine=ino.Chain(dtype="float32"))
    assert np.array_equal(wide.q, forced.q)
    assert not np.array_equal(wide.q, narrow.q)
    assert wide.q.dtype == jnp.float32  # as everything else outside of the engine
    assert not jax.config.jax_enable_x64


@pytest.mark.usefixtures("x64")
def test_x64_mode_reaches_the_worker_threads():
    q = ino.simulate(config(**STUDY), key=jr.key(7), trials=40).q
    alone = ino.simulate(config(**STUDY), key=jr.key(7), trials=1).q
    assert q.dtype == jnp.float64
    assert np.array_equal(q[:1], alone)
    assert np.any(np.asarray(q).astype(np.float32) != np.asarray(q))


def test_observations_are_after_floor_of_p_t_samples():
    assert steps_at(np.array([0.0, 0.29, 0.295, 0.57]), 100).tolist() == [0, 29, 29, 57]
    assert steps_at(np.array([0.29, 0.299], np.float32), 100).tolist() == [29, 29]
    assert steps_at(np.array([0.12345678]), 10**7).tolist() == [1234567]
    study = config(p=60, ts=np.array([0.5, 0.516, 0.517]))  # 30, 30.96 and 31.02 steps
    q = ino.simulate(study, key=jr.key(0), trials=1).q[0]
    assert q[0] == q[1]
    assert q[1] != q[2]


def test_ctrl_c_stops_between_calls_and_leaves_nothing_behind(monkeypatch):
    calls = []
    original = batch._advance

    def interrupted(*args):
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return original(*args)

    monkeypatch.setattr(defaults, "steps_per_call", lambda cost, least=1: 32)
    monkeypatch.setattr(batch, "_advance", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run(ino.Chain(), trials=200)
    assert len(calls) < 30  # the other tiles heard of it
    monkeypatch.undo()
    assert run(ino.Chain()).shape == (2, 5, 4)
