"""The learning rate that finds itself, and schedules that keep a vector of their own."""

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

import inopca_jax as ino
from inopca_jax._rule import rates_and_next_state

from .cases import assert_same_law, config, sparing, z_scores

RULES = {"InoPCA": ino.InoPCA, "Oja": ino.Oja, "Krasulina": ino.Krasulina}


@pytest.mark.parametrize("name", sparing(RULES))
def test_chain_and_stream_agree_in_law(name):
    rule, start = RULES[name](ino.SelfTuning()), ino.WarmStart(0.15)
    study = config(rule, p=100, omega=2.0, start=start, ts=[1.0, 4.0, 12.0])
    chain = ino.simulate(study, key=jr.key(1), trials=1500)
    stream = ino.simulate(study, key=jr.key(2), trials=500, engine=ino.Stream())
    assert_same_law(chain, stream)


CASES = {
    "switch": lambda: ino.Switching(
        [ino.SpikedModel(p=60, omega=w, spike=ino.Sparse(0.3)) for w in (3.0, 1.0)], [2.0]
    ),
    "turning": lambda: ino.SpikedModel(p=60, omega=3.0, turning=0.1),
    "missing": lambda: ino.SpikedModel(p=2000, omega=3.0, observed=0.5),
    "two spikes": lambda: ino.SpikedModel(p=60, omega=[4.0, 2.0]),
}


@pytest.mark.slow
@pytest.mark.parametrize("snapshots", [False, True])
@pytest.mark.parametrize("case", CASES)
def test_chain_and_stream_agree_in_law_in_other_models(case, snapshots):
    model = CASES[case]()
    study = ino.Config(
        ino.InoPCA(ino.SelfTuning()), model, ino.ColdStart(), ts=[1.5, 3.0, 8.0]
    )
    trials = 400 if case == "missing" else 3000
    chain = ino.simulate(
        study, key=jr.key(1), trials=trials, engine=ino.Chain(snapshots=snapshots)
    )
    stream = ino.simulate(study, key=jr.key(2), trials=trials // 2, engine=ino.Stream())
    if case == "two spikes":
        chain, stream = chain.overlaps**2, stream.overlaps**2
        assert np.max(np.abs(z_scores(chain, stream))) < 5
    else:
        assert_same_law(chain, stream)


@pytest.mark.slow
def test_chain_and_stream_agree_in_law_with_several_components():
    model = ino.SpikedModel(p=80, omega=[5.0, 3.0, 2.0])
    rule, start = ino.InoPCA(ino.SelfTuning()), ino.WarmStart([0.3, 0.2])
    study = ino.Config(rule, model, start, ts=[1.0, 4.0, 10.0], components=2)
    chain = ino.simulate(study, key=jr.key(1), trials=3000)
    stream = ino.simulate(study, key=jr.key(2), trials=1500, engine=ino.Stream())
    for name in ("overlaps", "norms"):
        a, b = getattr(chain, name), getattr(stream, name)
        assert np.max(np.abs(z_scores(a, b))) < 5
        assert np.max(np.abs(z_scores(a**2, b**2))) < 5


def numpy_loop(samples, components):
    """The equations of the docstring of `SelfTuning` with INO-PCA and deflation."""
    p = samples.shape[1]
    xs, gs, states = [], [], []
    for y in samples:
        for i in range(components):
            if i == len(xs):
                xs.append(y)
                gs.append(np.zeros(p))
                states.append([1.0, 1.0, 0.0, 0.0, (1.6 * p) ** 0.25])
                break
            x, g = xs[i], gs[i]
            r, s2, d, n, search = states[i]
            v, ridge = x / np.linalg.norm(x), 100 / p
            along, length = y @ v, y @ y / p
            big = (n + ridge * (1 + search)) / (max(d, 0) + ridge)
            big = max(big, 1)
            nu = max(big / max(s2, 1) - 1, 0)
            k = 3 * (1 + nu)
            r += max(k, search**4 / 1.6) / p * (length - r)
            excess = (along**2 - length) / r
            evidence = (along * (y @ g) - length * (g @ v)) / r + big * excess
            known = max(d, 0) / (max(d, 0) + ridge)
            u = s2 - 1
            d += (u * excess - nu**2 * d) / p
            n += (u * evidence - nu**2 * n) / p
            search += search / 4 * (known * nu**2 - search**4 / 1.6) / p
            s2 += k / p * (1 + excess - s2)
            states[i] = [r, s2, d, n, search]
            big = (n + ridge * (1 + search)) / (max(d, 0) + ridge)
            big = max(big, 1)
            nu = max(big / max(s2, 1) - 1, 0)
            k = 3 * (1 + nu)
            gs[i] = g + k / p * (along * y / r - big * v - g)
            tau = nu / r * np.linalg.norm(x) / np.sqrt(p)
            xs[i] = (1 - tau / p) * x + nu / r / p * (y @ x) * y
            y = y - (y @ xs[i]) / (xs[i] @ xs[i]) * xs[i]
    return np.stack(xs) / np.sqrt(p), np.stack(gs)


def spiked_samples(count, p, seed=0):
    samples = 1.3 * np.random.default_rng(seed).standard_normal((count, p))
    return samples * np.array([3.0, 2.0, *[1.0] * (p - 2)])


@pytest.mark.parametrize("components", sparing([2, 1, 3]))
def test_on_data_it_is_the_equations_of_its_docstring(components):
    samples = spiked_samples(500, 60)
    with jax.enable_x64(True):
        rule = ino.InoPCA(ino.SelfTuning())
        found = ino.stream_pca(rule, samples, components).now()
    xs, gs = numpy_loop(samples, components)
    np.testing.assert_allclose(found.vectors, xs, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(found.schedule_vectors, gs, rtol=1e-9, atol=1e-11)


@pytest.mark.slow
@pytest.mark.parametrize("scale", [1e-3, 1e3])
def test_a_scale_of_the_data_changes_no_direction(scale):
    samples = spiked_samples(400, 40)
    with jax.enable_x64(True):
        rule = ino.Oja(ino.SelfTuning())
        one = ino.stream_pca(rule, samples, 2).now().vectors
        other = ino.stream_pca(rule, scale * samples, 2).now().vectors
    np.testing.assert_allclose(one, other, rtol=1e-8, atol=1e-10)


def test_it_reads_neither_the_overlap_nor_the_snr():
    p = 500.0
    products = ino.VectorProducts(*map(jnp.asarray, (0.1, 0.4)))
    observables = ino.Observables(
        *map(jnp.asarray, (1.3, 0.7, 1.1, 2.5, p)), vector=products
    )

    def outcome(rule, q, omega):
        state = jax.tree.map(lambda leaf: 1.1 * leaf + 0.2, rule.tau.init(jnp.asarray(p)))
        rates, state = rates_and_next_state(rule, observables, q, omega, state)
        numbers = [rates.gain, rates.decay, *jax.tree.leaves(state)]
        if not isinstance(rule.tau, ino.Oracle):
            step = rule.tau.vector_step(observables, state)
            numbers += [step.decay, step.along, step.pull]
        return jnp.stack([jnp.asarray(x) for x in numbers])

    hidden = (jnp.asarray(0.4), jnp.asarray(2.0))
    for schedule in (ino.SelfTuning(), ino.Oracle()):
        for rule in (ino.InoPCA(schedule), ino.Oja(schedule), ino.Cubic(schedule)):
            for i in range(2):
                tangents = tuple(jnp.asarray(float(i == j)) for j in range(2))
                _, change = jax.jvp(lambda *h, r=rule: outcome(r, *h), hidden, tangents)
                assert bool(jnp.any(change != 0)) == isinstance(schedule, ino.Oracle)


def test_its_gain_is_the_oracles_where_it_knows_the_eigenvalue():
    """The gain (1 + omega)/E[S^2] - 1, of every rule."""
    p, omega, s2 = 1e6, 2.0, 2.5
    state = ino.SelfTuning().init(jnp.asarray(p))
    values = (1.0, s2, 50.0, 50.0 * (1 + omega), 0.5)
    state = type(state)(*map(jnp.asarray, values))
    q = np.sqrt((s2 - 1) / omega)
    products = ino.VectorProducts(*map(jnp.asarray, (0.0, 0.0)))
    # A sample at which no running mean moves.
    observables = ino.Observables(
        *map(jnp.asarray, (1.3, s2, 1.0, 2.5, p)), vector=products
    )
    for make in (ino.InoPCA, ino.Oja, ino.Cubic, ino.Krasulina):
        rule = make(ino.SelfTuning())
        args = (observables, jnp.asarray(0.0), jnp.asarray(0.0))
        rates, _ = rates_and_next_state(rule, *args, state)
        best = omega * (1 - q**2) / (1 + omega * q**2)
        assert np.isclose(rates.gain, best, rtol=1e-4)


REFUSED = {
    "mean_field": lambda c: ino.mean_field(c),
    "fluctuations": lambda c: ino.fluctuations(c),
    "velocity": lambda c: ino.velocity(c, [0.1], [1.0]),
    "density": lambda c: ino.density(c),
    "steady_density": lambda c: ino.steady_density(c),
    "steady_state": lambda c: ino.steady_state(c),
    "steady_distance": lambda c: ino.steady_distance(c),
    "critical_snr": lambda c: ino.critical_snr(c.rule),
    "overlap_law": lambda c: ino.overlap_law(c),
    "escape_time": lambda c: ino.escape_time(c, 0.5),
    "cold_start_law": lambda c: ino.cold_start_law(c),
    "predict": lambda c: ino.predict(c),
    "keeps_sign": lambda c: ino.keeps_sign(c),
    "effective_gain": lambda c: ino.effective_gain(
        c, ino.Trajectory(c.ts, *[jnp.ones(3)] * 2)
    ),
    "tune": lambda c: ino.tune(c),
    "Diffusion": lambda c: ino.simulate_trial(c, key=jr.key(0), engine=ino.Diffusion()),
}


@pytest.mark.parametrize("name", REFUSED)
def test_the_theory_refuses_it_by_name(name):
    study = config(ino.InoPCA(ino.SelfTuning()))
    with pytest.raises(ValueError, match=rf"SelfTuning\(\) .* with {name}.*Chain\(\)"):
        REFUSED[name](study)


def test_what_does_not_fit_is_refused():
    rule = ino.InoPCA(ino.SelfTuning())
    x = np.ones(20)
    with pytest.raises(ValueError, match=r"SelfTuning\(\) is not allowed.*stream_pca"):
        ino.sample_step(rule, x, x)
    with pytest.raises(ValueError, match=r"GHA\.tau = SelfTuning"):
        ino.GHA(ino.SelfTuning())
    study = config(rule)
    for engine, message in (
        (ino.Stream(block=8), "block = 8 is not allowed with the schedule SelfTuning"),
        (ino.Chain(dtype="float32"), "float32 is not allowed .* SelfTuning"),
    ):
        with pytest.raises(ValueError, match=message):
            ino.simulate_trial(study, key=jr.key(0), engine=engine)
    model = ino.SpikedModel(p=50, omega=[3.0, 2.0])
    study = ino.Config(rule, model, ino.FirstSamples(), ts=[0.0, 1.0], components=2)
    for engine in (ino.Chain(), ino.Stream()):
        with pytest.raises(ValueError, match=r"FirstSamples.* with components = 2"):
            ino.simulate_trial(study, key=jr.key(0), engine=engine)
    small = config(rule, p=3)
    with pytest.raises(ValueError, match="p = 3 is not"):
        ino.simulate_trial(small, key=jr.key(0))


def areas(runs):
    """The areas under 1 - |q| before and after the switch at t = 50, for each trial."""
    lost = 1 - np.abs(np.asarray(runs.q, dtype=float))
    middle = lost.shape[1] // 2
    steps = np.diff(np.asarray(runs.ts))
    halves = [slice(0, middle), slice(middle, None)]
    return np.stack([np.sum(lost[:, h] * steps[0], axis=1) for h in halves])


@pytest.mark.slow
@pytest.mark.parametrize("omega", [1.0, 3.0])
def test_it_recovers_most_of_the_way_to_the_oracle(omega):
    """From the best constant rate for this omega and horizon, in both phases, without
    knowing omega or when the spike switches."""
    p, trials = 10_000, 40
    model = ino.Switching([ino.SpikedModel(p=p, omega=omega)] * 2, [50.0])
    ts = np.arange(0.25, 100, 0.5)

    def lost(rule):
        study = ino.Config(rule, model, ino.ColdStart(), ts)
        return areas(ino.simulate(study, key=jr.key(123), trials=trials))

    own, oracle = lost(ino.InoPCA(ino.SelfTuning())), lost(ino.AdaptiveInoPCA())
    constants = np.stack([lost(ino.InoPCA(tau)) for tau in (0.4, 0.5, 0.6, 0.7, 0.8, 1.0)])
    for phase in range(2):
        best = np.argmin(constants[:, phase].mean(-1))
        gap = constants[best, phase] - oracle[phase]
        # The same key draws the same starts, so that differences scatter less.
        excess = own[phase] - oracle[phase]
        share = 1 - excess.mean() / gap.mean()
        error = np.std(excess - (1 - share) * gap) / np.sqrt(trials) / gap.mean()
        assert share > 0.75 - 3 * error
        assert share - 3 * error > 0.3
