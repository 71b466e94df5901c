"""Spikes that turn: the process, engines against each other, theory against the chain."""

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from scipy import stats

import inopca_jax as ino
from inopca_jax._engine.turning import turned_coordinates, turned_spikes

from .cases import assert_same_law, config, sparing, z_scores

SPIKED = ino.SpikedModel
STILL = ino.InoPCA(1e-12)  # an estimate that does not move


def turning(rule=None, *, p=60, omega=1.5, delta=0.1, start=None, ts=(1.0, 3.0), **more):
    model = SPIKED(p, omega, turning=delta, **more)
    return ino.Config(rule or ino.InoPCA(0.5), model, start or ino.WarmStart(0.6), ts)


def finite_columns(run):
    """What is observed of several components, with the trials in front."""
    arrays = [np.asarray(getattr(run, n)) for n in ("overlaps", "norms", "cosines")]
    return np.concatenate([a.reshape(len(a), -1) for a in arrays], axis=1)


@pytest.mark.usefixtures("x64")
def test_spikes_turn_by_the_same_angle_and_stay_orthogonal():
    p, delta = 7, 0.4
    first, second = np.linalg.qr(jr.normal(jr.key(0), (p, 2)))[0].T * np.sqrt(p)
    xis = tuple(map(jnp.asarray, (first, second)))
    zs = list(jr.normal(jr.key(1), (2, p)))
    new = np.asarray(turned_spikes(xis, jnp.asarray(delta), p, zs))
    assert np.allclose(new @ new.T, p * np.eye(2), atol=1e-12)
    keep = np.sqrt(1 - 2 * delta / p)
    assert np.allclose(new @ np.stack(xis).T, p * keep * np.eye(2), atol=1e-12)


@pytest.mark.usefixtures("x64")
def test_coordinates_of_vectors_turn_as_the_vectors_do():
    """The chain's turn against p-dimensional vectors in NumPy, for the same directions."""
    p, spikes, columns, delta = 9, 2, 3, 0.3
    rng = np.random.default_rng(0)
    basis = np.linalg.qr(rng.normal(size=(p, p)))[0]
    u, f, more = np.split(basis, [spikes, spikes + columns], axis=1)
    along, across = rng.normal(size=(spikes, columns)), np.triu(rng.normal(size=(3, 3)))
    vectors = u @ along + f @ across
    # Raw directions orthogonal to the spikes; of each the rest is one direction of `more`.
    top, mixed = rng.normal(size=(columns, spikes)), rng.normal()
    raw = f @ top + more[:, :spikes] @ np.array([[1.3, mixed], [0.0, 0.8]])
    etas = np.linalg.qr(raw)[0]
    etas = etas * np.sign(np.sum(etas * raw, axis=0))
    new = np.sqrt(1 - 2 * delta / p) * u + np.sqrt(2 * delta / p) * etas
    draws = [([*top[:, 0]], np.asarray(1.3**2)), ([*top[:, 1], mixed], np.asarray(0.8**2))]
    draws = [(list(map(jnp.asarray, z)), jnp.asarray(rest)) for z, rest in draws]
    turned = turned_coordinates(
        [[*map(jnp.asarray, row)] for row in along],
        [[*map(jnp.asarray, across[: i + 1, i])] for i in range(columns)],
        jnp.asarray(delta),
        p,
        draws,
    )
    assert np.allclose(np.asarray(turned[0]), new.T @ vectors, atol=1e-12)
    factor = np.zeros((3, 3))
    for i, column in enumerate(turned[1]):
        factor[: i + 1, i] = column
    rest = vectors - new @ (new.T @ vectors)
    assert np.allclose(factor.T @ factor, rest.T @ rest, atol=1e-12)


@pytest.mark.parametrize("engine", sparing([ino.Chain(), ino.Stream()]))
def test_an_estimate_at_rest_loses_the_spike_as_the_turn_says(engine):
    """`E q' = a q` and `E q'^2 = a^2 q^2 + b^2 (1 - q^2)/(p - 1)`, exactly at every p."""
    p, delta, steps, trials = 5, 0.3, 15, 4000
    study = turning(STILL, p=p, delta=delta, ts=np.array([0, steps]) / p)
    q = np.asarray(ino.simulate(study, key=jr.key(3), trials=trials, engine=engine).q)
    first, second = q[:, 0].copy(), q[:, 0] ** 2
    b2 = 2 * delta / p
    for _ in range(steps):
        first = np.sqrt(1 - b2) * first
        second = (1 - b2) * second + b2 * (1 - second) / (p - 1)
    for now, expected in ((q[:, 1], first), (q[:, 1] ** 2, second)):
        gap = now - expected
        assert abs(gap.mean()) < 5 * gap.std() / np.sqrt(trials)


def test_chain_and_stream_agree_in_law_where_the_spike_turns():
    study = turning()
    chain = ino.simulate(study, key=jr.key(1), trials=3000)
    stream = ino.simulate(study, key=jr.key(2), trials=600, engine=ino.Stream())
    assert_same_law(chain, stream)


@pytest.mark.slow
@pytest.mark.parametrize("p", [60, 200])
@pytest.mark.parametrize("rule", [ino.InoPCA(0.5), ino.Oja(0.4), ino.CCIPCA(2.0)])
def test_chain_and_stream_agree_in_law_for_three_rules(rule, p):
    for start in (ino.WarmStart(0.6), ino.ColdStart()):
        study = turning(rule, p=p, start=start, ts=(1.0, 3.0, 8.0))
        chain = ino.simulate(study, key=jr.key(1), trials=4000)
        stream = ino.simulate(study, key=jr.key(2), trials=1000, engine=ino.Stream())
        assert_same_law(chain, stream)


@pytest.mark.slow
@pytest.mark.parametrize("components", [1, 2, 3])
def test_chain_and_stream_agree_in_law_for_spikes_that_turn(components):
    model = SPIKED(60, [3.0, 1.5], turning=0.1)
    study = ino.Config(
        ino.InoPCA(0.5), model, ino.ColdStart(), (1.0, 3.0), components=components
    )
    chain = ino.simulate(study, key=jr.key(1), trials=4000)
    stream = ino.simulate(study, key=jr.key(2), trials=1000, engine=ino.Stream())
    chain, stream = finite_columns(chain), finite_columns(stream)
    scattered = chain.std(0) > 1e-5
    assert np.max(np.abs(z_scores(chain, stream)[scattered])) < 5
    for a, b in zip(chain.T[scattered], stream.T[scattered], strict=True):
        assert stats.ks_2samp(a, b).pvalue > 1e-3


@pytest.mark.slow
@pytest.mark.parametrize("first", [0.2, None])
def test_chain_and_stream_agree_in_law_across_switches_of_spikes_that_turn(first):
    """Spikes with a mean: what the estimate keeps of the first matters to the others."""
    p, spike = 60, ino.ShiftedExponential()
    models = [
        SPIKED(p, 2.0, spike, turning=first),
        SPIKED(p, 1.5, spike, turning=0.1),
        SPIKED(p, 2.5, ino.Sparse(0.3)),
    ]
    model = ino.Switching(models, [2.0, 4.0])
    study = ino.Config(
        ino.InoPCA(0.5), model, ino.WarmStart(0.6), [1.0, 2.0, 3.0, 4.0, 5.0]
    )
    chain = ino.simulate(study, key=jr.key(1), trials=3000)
    stream = ino.simulate(study, key=jr.key(2), trials=1500, engine=ino.Stream())
    assert_same_law(chain, stream)


@pytest.mark.slow
def test_snapshots_of_a_spike_that_turns_have_the_streams_law():
    """Coordinates and products of successive snapshots of estimate and spike."""
    p, trials, features = 30, 4000, []
    study = turning(p=p, delta=0.3, spike=ino.Sparse(0.3), ts=[0.5, 1.0, 2.0])
    for seed, engine in ((1, ino.Chain(snapshots=True)), (2, ino.Stream(snapshots=True))):
        run = ino.simulate(study, key=jr.key(seed), trials=trials, engine=engine)
        x, xi = np.asarray(run.x, dtype=float), np.asarray(run.xi, dtype=float)
        lam = np.sqrt(np.mean(x**2, -1))
        assert np.allclose(lam, run.lam, rtol=1e-4)
        assert np.allclose(np.mean(x * xi, -1) / lam, run.q, atol=1e-4)
        assert np.allclose(np.mean(xi**2, -1), 1, rtol=1e-4)
        vectors = [x[:, 0], xi[:, 0], x[:, 1], xi[:, 1], x[:, 2], xi[:, 2]]
        products = [np.mean(a * b, -1) for i, a in enumerate(vectors) for b in vectors[:i]]
        fourth = [np.mean(xi[:, i] ** 4, -1) for i in range(3)]
        mixed = [np.mean(x[:, i] * xi[:, j] ** 3, -1) for i in range(3) for j in range(3)]
        features.append([*products, *fourth, *mixed, *(xi[:, i, 0] for i in range(3))])
    for one, two in zip(*features, strict=True):
        assert stats.ks_2samp(one, two).pvalue > 1e-3
        assert abs(one.mean() - two.mean()) < 5 * np.sqrt((one.var() + two.var()) / trials)


def test_error_bars_of_an_estimate_at_rest_have_a_closed_form():
    """With `q = q0 e^(-delta t)`, `C' = -2 delta C + 2 delta (1 - q^2)` for the variance
    C/p of the overlap: the noise of the turn alone."""
    p, delta, q0 = 1000, 0.2, 0.6
    ts = np.array([0.0, 1.0, 4.0])
    study = turning(STILL, p=p, delta=delta, start=ino.WarmStart(q0), ts=ts)
    path = ino.fluctuations(study)
    fall = np.exp(-2 * delta * ts)
    begin = p * float(path.q_std[0]) ** 2
    variance = fall * begin + (1 - fall) - 2 * delta * ts * q0**2 * fall
    assert np.allclose(path.q, q0 * np.exp(-delta * ts), rtol=1e-5)
    assert np.allclose(p * path.q_std**2, variance, rtol=1e-4)
    # a^(p t) is exp(-delta t) less a part delta^2 t/p.
    begin = float(path.q_shift[0]) * np.exp(-delta * ts)
    shift = begin - delta**2 * ts * q0 * np.exp(-delta * ts) / p
    assert np.allclose(path.q_shift, shift, atol=2e-8)


@pytest.mark.slow
@pytest.mark.parametrize("rule", [ino.InoPCA(0.4), ino.Oja(0.3), ino.CCIPCA(2.0, t0=2.0)])
def test_error_bars_and_the_diffusion_are_the_chains(rule):
    trials, p = 4000, 2000
    study = turning(rule, p=p, delta=0.08, start=ino.WarmStart(0.5), ts=(2.0, 5.0, 12.0))
    chain = ino.simulate(study, key=jr.key(1), trials=trials)
    diffusion = ino.simulate(study, key=jr.key(2), trials=trials, engine=ino.Diffusion())
    assert_same_law(chain, diffusion)
    theory = ino.fluctuations(study)
    mean, std = chain.mean(), chain.std()
    assert np.all(np.abs(std.q / theory.q_std - 1) < 5 / np.sqrt(2 * trials))
    error = theory.q_std / np.sqrt(trials)
    assert np.all(np.abs(mean.q - theory.q - theory.q_shift) < 5 * error + 5 / p**1.5)


@pytest.mark.slow
def test_laws_from_a_cold_start_are_the_chains():
    trials = 1000
    study = turning(
        ino.InoPCA(0.4), p=10_000, delta=0.05, start=ino.ColdStart(), ts=(2.0, 5.0, 8.0)
    )
    chain = ino.simulate(study, key=jr.key(1), trials=trials).abs()
    for law in (ino.overlap_law(study).abs(), ino.cold_start_law(study).law):
        error = chain.std().q / np.sqrt(trials)
        assert np.all(np.abs(chain.mean().q - law.q) < 5 * error)
        assert np.allclose(law.q_std, chain.std().q, rtol=0.15)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("omega", "delta", "t"),
    [(1.0, 0.02, 60.0), (3.0, 0.1, 20.0), (2.0, 0.005, 60.0), (1.0, 0.1, 30.0)],
)
def test_the_chain_at_large_p_ends_at_the_closed_form(omega, delta, t):
    trials, p = 60, 20_000
    for rule in (ino.InoPCA, ino.Oja):
        tau = ino.best_rate(turning(rule(0.5), omega=omega, delta=delta))
        study = turning(rule(tau), p=p, omega=omega, delta=delta, ts=[t])
        q, lam = ino.steady_state(study)
        chain = ino.simulate(study, key=jr.key(5), trials=trials)
        error = chain.std().q[0] / np.sqrt(trials)
        assert abs(chain.mean().q[0] - q) < 4 * error + 1e-4
        assert abs(chain.mean().lam[0] - lam) < 4 * chain.std().lam[0] / trials**0.5 + 1e-4


@pytest.mark.slow
@pytest.mark.parametrize("rule", [ino.InoPCA, ino.Oja])
def test_the_best_rate_is_the_best_on_a_grid(rule):
    """A parabola through the chain's overlaps at rates around it is highest there."""
    trials, ts = 400, np.linspace(40.0, 60.0, 11)
    best = float(ino.best_rate(turning(rule(0.5), omega=1.0, delta=0.02)))
    logs, means, errors = np.linspace(-0.7, 0.7, 7), [], []
    for i, log in enumerate(logs):
        study = turning(rule(best * np.exp(log)), p=2000, omega=1.0, delta=0.02, ts=ts)
        run = ino.simulate(study, key=jr.key(i), trials=trials)
        of_trials = np.asarray(run.q).mean(1)
        means.append(of_trials.mean())
        errors.append(of_trials.std() / np.sqrt(trials))
    # Up to the fourth power: the overlap falls faster towards small rates.
    fit, covariance = np.polyfit(logs, means, 4, w=1 / np.array(errors), cov="unscaled")
    slope, bend = fit[3], 2 * fit[2]
    assert bend < 0
    assert abs(slope / bend) < 4 * np.sqrt(covariance[3, 3]) / -bend + 0.02


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("rule", [ino.InoPCA, ino.Oja, ino.Cubic, ino.Krasulina])
def test_the_steady_overlap_is_stationary_at_the_best_rate(rule):
    for omega, delta in ((1.0, 0.02), (3.0, 0.1), (2.0, 0.005), (0.7, 0.2)):
        study = turning(rule(0.5), omega=omega, delta=delta)

        def overlap(tau, study=study):
            return ino.steady_state(ino.Config(rule(tau), study.model))[0]

        tau = ino.best_rate(study)
        assert abs(jax.grad(overlap)(tau)) < 1e-8
        assert overlap(tau) > max(overlap(0.9 * tau), overlap(1.1 * tau))
        # The gain at which the oracle ends is the best constant one.
        oracle = ino.Config(ino.AdaptiveInoPCA(), study.model)
        assert np.isclose(overlap(tau), ino.steady_state(oracle)[0], rtol=1e-12)


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize(
    "rule",
    sparing([ino.InoPCA(0.4), ino.AdaptiveInoPCA(), ino.Oja(0.3), ino.Cubic(0.3, 5.0)]),
)
def test_the_mean_field_ends_at_the_steady_state(rule):
    for omega, delta in ((1.0, 0.02), (0.3, 0.1)):
        study = turning(rule, omega=omega, delta=delta, ts=[0.0, 2000.0])
        path, (q, lam) = ino.mean_field(study), ino.steady_state(study)
        assert np.allclose([path.q[1], path.lam[1]], [q, lam], atol=1e-7)
        threshold = float(ino.critical_snr(rule, delta))
        learns = [
            float(ino.steady_state(turning(rule, omega=w, delta=delta))[0]) > 0
            for w in (threshold * (1 - 1e-9), threshold * (1 + 1e-6))
        ]
        assert learns == [False, True]


@pytest.mark.slow
@pytest.mark.usefixtures("x64")
def test_a_rule_of_ones_own_is_followed_to_its_steady_state():
    class Own(ino.AbstractRule):
        tau: ino.AbstractSchedule = 0.5
        projects = False

        def rates(self, observables, tau):
            return ino.Rates(gain=tau / observables.lam, decay=tau)

    own, study = Own(0.4), turning(ino.InoPCA(0.4), delta=0.02)
    q, lam = ino.steady_state(ino.Config(own, study.model))
    assert np.allclose([q, lam], ino.steady_state(study), rtol=1e-9)
    assert np.isclose(ino.critical_snr(own, 0.02), ino.critical_snr(study.rule, 0.02))
    with pytest.raises(ValueError, match=r"rule = Own .* Use tune"):
        ino.best_rate(ino.Config(own, study.model))


@pytest.mark.slow
def test_several_spikes_that_turn_are_followed_one_by_one():
    model = SPIKED(1000, [3.0, 1.5], turning=0.02)
    start = ino.WarmStart([0.5, 0.4])
    study = ino.Config(ino.InoPCA(0.4), model, start, [0.0, 300.0], components=2)
    path, (q, lam) = ino.mean_field(study), ino.steady_state(study)
    assert np.allclose(np.abs(np.asarray(path.overlaps)[1]), np.diag(q), atol=2e-4)
    assert np.allclose(path.norms[1], lam, rtol=1e-4)
    for i, omega in enumerate([3.0, 1.5]):
        alone = turning(study.rule, omega=omega, delta=0.02)
        assert np.allclose(ino.steady_state(alone), [q[i], lam[i]], rtol=1e-6)
    # The bound follows both spikes with the oracle's gain.
    bound = ino.FinalDistance().bound(study)
    oracles = [ino.AdaptiveInoPCA(), SPIKED(1000, [3.0, 1.5], turning=0.02)]
    assert np.isclose(bound, ino.steady_distance(ino.Config(*oracles, components=2)), 1e-3)


@pytest.mark.slow
def test_velocities_and_switches_know_the_turn():
    spike, delta = ino.ShiftedExponential(), 0.3
    models = [SPIKED(200, 2.0, spike), SPIKED(200, 2.0, spike, turning=delta)]
    study = ino.Config(ino.InoPCA(0.5), ino.Switching(models, [5.0]), ts=[0.0, 9.0])
    still, turned = (np.asarray(ino.velocity(study, 0.5, 1.2, t)) for t in (1.0, 6.0))
    assert np.allclose(turned - still, [-delta * 0.5, 0.0], atol=1e-6)
    # An estimate at rest: its overlap with the next spike is that with the vector of ones.
    again = ino.Switching([models[1], models[0]], [2.0])
    study = ino.Config(STILL, again, ino.WarmStart(0.5), [1.9, 2.0])
    mean = float(spike.mean())
    expected = [0.5 * np.exp(-delta * 1.9), 0.5 * mean**2]
    assert np.allclose(ino.mean_field(study).q, expected, atol=1e-5)


@pytest.mark.slow
def test_the_closed_form_has_the_moments_of_the_mean_field():
    study = turning(p=100, delta=0.1, spike=ino.Gaussian(), ts=[0.0, 2.0, 400.0])
    pdf, path = ino.density(study), ino.mean_field(study)
    assert np.allclose(pdf.q, path.q, atol=1e-4)
    assert np.allclose(pdf.lam, path.lam, atol=1e-4)
    steady = ino.steady_density(turning(p=100, delta=0.1))
    assert np.allclose(steady.q[0], path.q[-1], atol=1e-4)
    assert np.allclose(np.sum(steady.weights * steady.nodes**4), 3, rtol=1e-4)


@pytest.mark.slow
def test_entries_of_the_stream_have_the_density_of_a_spike_that_turns():
    p, trials = 400, 400
    study = turning(p=p, delta=0.2, spike=ino.Gaussian(), ts=[3.0])
    run = ino.simulate(
        study, key=jr.key(0), trials=trials, engine=ino.Stream(snapshots=True)
    )
    x, xi = np.asarray(run.x)[:, 0], np.asarray(run.xi)[:, 0]
    path = ino.mean_field(study)
    q, lam = float(path.q[0]), float(path.lam[0])
    entries = (x[:, :4] - q * lam * xi[:, :4]).ravel() / (lam * np.sqrt(1 - q**2))
    assert stats.kstest(entries, "norm").pvalue > 1e-3


@pytest.mark.slow
def test_tune_finds_the_best_rate():
    study = turning(ino.InoPCA(0.8), omega=1.0, delta=0.02, ts=[0.0, 200.0])
    tuned = ino.tune(study)
    assert np.isclose(tuned.config.rule.tau.value, ino.best_rate(study), rtol=1e-2)
    best = ino.steady_state(ino.Config(ino.AdaptiveInoPCA(), study.model))[0]
    assert np.isclose(tuned.value, best, atol=1e-4)
    assert np.isclose(tuned.bound, best, atol=1e-4)


def test_a_spike_that_stands_still_has_no_further_leaf():
    leaves = jax.tree.leaves(SPIKED(100, 1.0))
    assert len(leaves) == 2
    assert repr(SPIKED(100, 1.0)) == "SpikedModel(p=100, omega=1.0, spike=Uniform())"
    both = SPIKED(100, 1.0, turning=0.1, observed=0.5)
    assert len(jax.tree.leaves(both)) == 4
    assert "turning=0.1, observed=0.5" in repr(both)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: SPIKED(turning=-0.1), r"turning = -0\.1.* not negative"),
        (lambda: SPIKED(turning=np.inf), r"turning = inf"),
        (lambda: SPIKED(p=10, turning=5.0), r"turning = 5\.0.* below p/2"),
        (lambda: SPIKED(p=5, omega=[1.0, 2.0, 3.0], turning=0.1), r"at most p/2 spikes"),
        (lambda: ino.Stream(block=8).prepare(turning()), r"block = 8 .* leave block out"),
        (
            lambda: ino.Chain(snapshots=True).prepare(turning(p=4)),
            r"p = 4 .* p >= 5.* Stream",
        ),
        (
            lambda: ino.Chain(dtype="float32").prepare(turning(p=10**5, delta=0.01)),
            r"turning = 0\.0.* leave dtype out",
        ),
        (
            lambda: ino.density(turning(), solver=ino.FokkerPlanck()),
            r"turning with FokkerPlanck .* ClosedForm",
        ),
        (
            lambda: ino.density(turning(), solver=ino.MethodOfLines()),
            r"turning with MethodOfLines",
        ),
        (lambda: ino.density(turning()), r"spike = Uniform with turning .* Gaussian\(\)"),
        (
            lambda: ino.density(turning(spike=ino.Gaussian(), start=ino.Box(0.3))),
            r"start = Box with a spike that turns",
        ),
        (lambda: ino.best_rate(config()), r"turning = None .* tune"),
        (lambda: ino.best_rate(turning(delta=0.0)), r"turning = 0\.0.* positive"),
        (lambda: ino.best_rate(turning(omega=0.5, delta=0.2)), r"turning = 0\.2 .* 0\.125"),
        (lambda: ino.best_rate(turning(ino.CCIPCA())), r"schedule Harmonic .* tune"),
        (lambda: ino.critical_snr(ino.Oja(), -1.0), r"turning = -1\.0"),
    ],
)
def test_what_is_refused_names_the_remedy(call, message):
    with pytest.raises(ValueError, match=message):
        call()
