"""`velocity`, `sample_step`, `predict` and `keeps_sign` against what they are made of."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import inopca_jax as ino

from .cases import RULES, SCHEDULES, config

P = 50


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("tau", ["Constant", "Harmonic", "AdaGrad", "Oracle"])
def test_the_velocity_is_the_slope_of_the_mean_field(tau):
    rule = ino.InoPCA(SCHEDULES[tau](200))
    h = 1e-5
    path = ino.mean_field(config(rule, ts=[0.0, h, 2 * h]))
    # The slope at 0 of a parabola through three points.
    slopes = [(-3 * a[0] + 4 * a[1] - a[2]) / (2 * h) for a in (path.q, path.lam)]
    np.testing.assert_allclose(ino.velocity(config(rule), 0.3, 1.0), slopes, rtol=1e-5)


@pytest.mark.usefixtures("x64")
def test_inopcas_velocity_is_the_papers():
    tau, omega = 0.5, 2.0
    q, lam = np.linspace(-0.9, 0.9, 7), np.geomspace(0.3, 3, 5)[:, None]
    s2 = omega * q**2 + 1
    dq = tau * q / lam * (omega - omega * q**2 - tau * s2 / (2 * lam))
    dlam = tau * (s2 - lam + tau * s2 / (2 * lam))
    velocities = ino.velocity(config(ino.InoPCA(tau), omega=omega), q, lam)
    np.testing.assert_allclose(velocities, (dq, dlam), rtol=1e-12, atol=1e-14)


def test_the_velocity_is_that_of_the_spike_and_the_rate_in_force():
    models = [ino.SpikedModel(omega=omega) for omega in (1.0, 3.0)]
    study = ino.Config(ino.Oja(0.5), ino.Switching(models, times=[2.0]))
    dq, dlam = ino.velocity(study, 0.5, 1.0, [1.9, 2.0])
    alone = [ino.velocity(ino.Config(ino.Oja(0.5), m), 0.5, 1.0)[0] for m in models]
    np.testing.assert_array_equal(dq, alone)
    np.testing.assert_array_equal(dlam, 0)  # projected
    harmonic, constant = ino.Oja(ino.Harmonic(2.0, t0=1.0)), ino.Oja(0.5)
    late, fixed = (ino.velocity(config(r), 0.5, 1.0, 3.0) for r in (harmonic, constant))
    np.testing.assert_allclose(late, fixed, rtol=1e-6)


def test_the_velocity_can_be_batched_and_differentiated():
    def dq(tau, q):
        return ino.velocity(config(ino.InoPCA(tau)), q, 1.0)[0]

    taus = jnp.array([0.2, 0.5])
    batch = jax.jit(jax.vmap(dq, (0, None)))(taus, 0.4)
    assert np.allclose(batch, [dq(tau, 0.4) for tau in taus])
    slope = jax.grad(dq, argnums=1)(0.5, 0.4)
    assert np.isclose(slope, (dq(0.5, 0.41) - dq(0.5, 0.39)) / 0.02, rtol=1e-2)


def vectors(count=1):
    random = np.random.default_rng(0)
    return random.normal(size=P), random.normal(size=(count, P))


@pytest.mark.usefixtures("x64")
def test_one_step_of_inopca_is_the_papers_update():
    x, (y,) = vectors()
    lam = np.linalg.norm(x) / P**0.5
    expected = x + 0.5 / P * (y * (y @ x) / lam - x)
    moved, state = ino.sample_step(ino.InoPCA(0.5), x, y)
    np.testing.assert_allclose(moved, expected, rtol=1e-12)
    assert state == ()


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("tau", ["Harmonic", "AdaGrad", "Interpolated"])
def test_steps_one_by_one_are_the_stream_of_samples(rule, tau):
    """`stream_pca` begins with the first sample as its component."""
    rule = RULES[rule](SCHEDULES[tau](P))
    _, ys = vectors(30)
    components = ino.stream_pca(rule, ys, 1).components
    x, state = ys[0], None
    if rule.projects:
        x = x * P**0.5 / np.linalg.norm(x)
    for step, y in enumerate(ys[1:]):
        x, state = ino.sample_step(rule, x, y, step, state)
    unit = np.asarray(x) / np.linalg.norm(x)
    np.testing.assert_allclose(unit, components[0], atol=1e-10)


def test_a_step_can_be_scanned_and_batched():
    rule, (x, ys) = ino.AdaOja(10.0), vectors(5)

    def update(carry, sample):
        step, x, state = carry
        return (step + 1, *ino.sample_step(rule, x, sample, step, state)), None

    start = (jnp.int32(0), jnp.asarray(x), rule.tau.init(P))
    (_, last, _), _ = jax.lax.scan(update, start, jnp.asarray(ys))
    state = None
    for step, y in enumerate(ys):
        x, state = ino.sample_step(rule, x, y, step, state)
    np.testing.assert_allclose(last, x, rtol=1e-5)
    batch = jax.vmap(lambda y: ino.sample_step(rule, x, y)[0])(jnp.asarray(ys))
    assert batch.shape == ys.shape


def test_a_step_that_cannot_be_taken_is_refused():
    x, (y,) = vectors()
    with pytest.raises(ValueError, match=r"rule.tau = Oracle\(\) .* Pass a number"):
        ino.sample_step(ino.AdaptiveInoPCA(), x, y)
    with pytest.raises(ValueError, match=r"x of shape \(50,\) and y of shape \(49,\)"):
        ino.sample_step(ino.Oja(), x, y[1:])


TURNED = ino.Switching(
    [ino.SpikedModel(p=2000, spike=spike()) for spike in (ino.Uniform, ino.Sparse)], [1.0]
)
TS = np.array([0.0, 0.5, 2.0])


@pytest.mark.parametrize(
    ("study", "keeps"),
    [
        (ino.Config(start=ino.WarmStart(0.3)), True),
        (ino.Config(start=ino.WarmStart(-0.3)), True),
        (ino.Config(start=ino.ColdStart()), False),
        (ino.Config(ino.AdaOja(), start=ino.WarmStart(0.3)), False),
        (ino.Config(ino.AdaOja(10_000.0), start=ino.WarmStart(0.3)), True),
        (ino.Config(model=TURNED), False),
        # Of the chain's runs a fifth ends on the other side.
        (ino.Config(model=ino.SpikedModel(p=100), start=ino.WarmStart(0.1)), False),
        (ino.Config(model=ino.SpikedModel(p=100), start=ino.WarmStart(-0.1)), False),
    ],
)
def test_trials_keep_their_sign_unless_their_start_is_forgotten(study, keeps):
    assert ino.keeps_sign(study) is keeps


def same(a, b):
    """Whether two trajectories have the same fields with the same bits."""
    a, b = ({k: v for k, v in vars(x).items() if v is not None} for x in (a, b))
    return a.keys() == b.keys() and all(np.array_equal(a[name], b[name]) for name in a)


def test_the_prediction_is_the_theory_that_fits():
    warm = config(p=2000, ts=TS)
    assert same(ino.predict(warm), ino.fluctuations(warm))
    assert same(ino.predict(warm, error_bars=False), ino.mean_field(warm))
    forgotten = config(ino.CCIPCA(), p=2000, ts=TS)
    with (
        pytest.warns(UserWarning, match="singular at t = 0"),
        pytest.warns(UserWarning, match=r"it does not predict their \|q\|"),
    ):
        predicted = ino.predict(forgotten)
    with pytest.warns(UserWarning, match="singular at t = 0"):
        assert same(predicted, ino.mean_field(forgotten).abs())


@pytest.mark.slow
def test_the_prediction_from_a_cold_start_is_the_law_of_the_modulus():
    cold = config(p=2000, start=ino.ColdStart(), ts=TS)
    law = ino.overlap_law(cold).abs()
    assert same(ino.predict(cold), law)
    plain = ino.predict(cold, error_bars=False)
    assert same(plain, ino.Trajectory(law.ts, law.q, law.lam))
