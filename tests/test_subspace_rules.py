"""Rules that act on all components at once: Oja's subspace rule, GHA, PAST, PETRELS."""

from typing import ClassVar

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

import inopca_jax as ino
from inopca_jax import data
from inopca_jax._order_parameters.component_field import component_mean_field

from .cases import sparing
from .test_components import FULL, assert_same_law, several

RULES = {
    "OjaSubspace": lambda: ino.OjaSubspace(0.5),
    "GHA": lambda: ino.GHA(0.4),
    "PAST": lambda: ino.PAST(0.6, gain0=0.5),
    "PETRELS": lambda: ino.PETRELS(0.5, gain0=0.4),
}


def published(name, V, y, P, tau, p):
    """One step as the literature has it, in units in which the estimates have length 1:
    the columns of V, the sample y and the matrix P of recursive least squares."""
    if name == "OjaSubspace":
        Q, R = np.linalg.qr(V + tau / p * np.outer(y, V.T @ y))
        return Q * np.sign(np.diag(R)), P
    if name == "GHA":  # Sanger's equation (7), whose rows are our columns
        w = V.T @ y
        lower = np.tril(np.outer(w, w))
        return (V.T + tau / p * (np.outer(w, y) - lower @ V.T)).T, P
    beta = 1 - tau / p
    if name == "PAST":  # Yang's table I
        w = V.T @ y
        h = P @ w
        g = h / (beta + w @ h)
        return V + np.outer(y - V @ w, g), (P - np.outer(g, h)) / beta
    a = np.linalg.lstsq(V, y, rcond=None)[0]  # the projection of the sample on the span
    h = P @ a
    g = h / (beta + a @ h)
    return V + np.outer(y - V @ a, g), (P - np.outer(g, h)) / beta


def loop(name, V, ys, P, tau):
    for y in ys:
        V, P = published(name, V, y, P, tau, len(y))
    return V


RATES = {"OjaSubspace": 0.5, "GHA": 0.4, "PAST": 0.6, "PETRELS": 0.5}
GAINS = {"PAST": 0.5, "PETRELS": 0.4}


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("name", RULES)
def test_a_rule_takes_the_steps_of_the_published_equations(name):
    p, r, steps = 30, 3, 200
    random = np.random.default_rng(0)
    V = np.linalg.qr(random.normal(size=(p, r)))[0]
    if name != "OjaSubspace":
        V = V @ (np.eye(r) + 0.2 * random.normal(size=(r, r)))
    ys = random.normal(size=(steps, p))
    ys[:, :r] *= np.sqrt([5.0, 3.0, 2.0])
    P = np.eye(r) * GAINS.get(name, 1.0) / p
    rule, x, state = RULES[name](), jnp.asarray(np.sqrt(p) * V.T), None
    step = jax.jit(lambda x, y, k, state: ino.sample_step(rule, x, y, k, state))
    for k, y in enumerate(ys):
        V, P = published(name, V, y, P, RATES[name], p)
        x, state = step(x, y, k, state)
        assert np.max(np.abs(x.T / np.sqrt(p) - V)) < 1e-10


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("name", sparing(["PAST", "OjaSubspace", "GHA", "PETRELS"]))
def test_a_stream_of_data_takes_the_steps_of_the_published_equations(name):
    """The first samples start the components, as what those before leave of them."""
    p, r = 20, 3
    random = np.random.default_rng(1)
    ys = random.normal(size=(150, p)) * np.sqrt([6.0, 4.0, 3.0] + [1.0] * (p - 3))
    V = np.zeros((p, 0))
    for y in ys[:r]:
        rest = y - V @ np.linalg.lstsq(V, y, rcond=None)[0] if V.size else y
        length = np.linalg.norm(rest) if name == "OjaSubspace" else np.sqrt(p)
        V = np.column_stack([V, rest / length])
    expected = loop(name, V, ys[r:], np.eye(r) * GAINS.get(name, 1.0) / p, RATES[name])
    subspace = ino.stream_pca(RULES[name](), ys, components=r)
    found = np.asarray(subspace.now().vectors).T
    assert np.max(np.abs(found - expected)) < 1e-10


LAWS = [
    (2, 3, "PAST"),
    (2, 2, "OjaSubspace"),
    (3, 2, "GHA"),
    (2, 2, "PETRELS"),
    (2, 2, "GHA"),
    (2, 2, "PAST"),
    (3, 2, "OjaSubspace"),
    (3, 2, "PAST"),
    (3, 2, "PETRELS"),
    (2, 3, "OjaSubspace"),
    (2, 3, "GHA"),
    (2, 3, "PETRELS"),
    (2, 1, "PAST"),
    (1, 5, "PAST"),
    (1, 5, "OjaSubspace"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("spikes", "components", "name"), sparing(LAWS))
def test_chain_and_stream_agree_in_law(spikes, components, name):
    study = several(spikes, components, RULES[name](), p=50)
    chain = ino.simulate(study, key=jr.key(3), trials=4000)
    stream = ino.simulate(study, key=jr.key(4), trials=1200, engine=ino.Stream())
    assert_same_law(chain, stream)


@pytest.mark.slow
@pytest.mark.parametrize("name", RULES)
@pytest.mark.parametrize("start", [ino.FirstSamples(), ino.WarmStart(FULL, [1.0, 1.5])])
def test_chain_and_stream_agree_in_law_from_other_starts(name, start):
    study = several(3, 2, RULES[name](), start=start, ts=(0.0, 0.5, 2.0))
    chain = ino.simulate(study, key=jr.key(1), trials=4000)
    stream = ino.simulate(study, key=jr.key(2), trials=1200, engine=ino.Stream())
    assert_same_law(chain, stream)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["OjaSubspace", "PAST"])
def test_snapshots_and_switches_have_the_streams_law(name):
    model = ino.Switching(
        [ino.SpikedModel(p=60, omega=[1.0, 3.0]), ino.SpikedModel(p=60, omega=[2.0, 1.0])],
        times=[1.5],
    )
    ts = np.array([1.4, 1.5, 2.0, 5.0])
    study = ino.Config(RULES[name](), model, ino.WarmStart(0.5), ts, components=2)
    chain = ino.simulate(
        study, key=jr.key(1), trials=2000, engine=ino.Chain(snapshots=True)
    )
    stream = ino.simulate(study, key=jr.key(2), trials=1000, engine=ino.Stream())
    assert_same_law(chain, stream)


@pytest.mark.slow
@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("name", RULES)
def test_a_block_of_samples_takes_the_steps_one_by_one(name):
    study = several(3, 2, RULES[name](), ts=(0.1, 1.0))
    one, block = (
        ino.simulate(study, key=jr.key(1), trials=2, engine=ino.Stream(block=size))
        for size in (1, 8)
    )
    for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(block), strict=True):
        assert np.allclose(a, b, rtol=1e-9, atol=1e-9)


@pytest.mark.slow
@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("name", RULES)
def test_the_chain_approaches_the_mean_field_as_one_over_p(name):
    """From a start that is not orthogonal and couples all components."""
    dimensions, trials = (50, 100, 200, 400), 12000
    gaps, noises = [], []
    for p in dimensions:
        start = ino.WarmStart(FULL, [1.0, 1.3])
        study = several(3, 2, RULES[name](), p=p, start=start, ts=(1.0, 3.0))
        run, ode = ino.simulate(study, key=jr.key(1), trials=trials), ino.mean_field(study)
        parts = [(run.overlaps, ode.overlaps), (run.norms, ode.norms)]
        if name != "OjaSubspace":
            parts.append((run.cosines[..., 0, 1], ode.cosines[..., 0, 1]))
        means = [np.asarray(a, float).mean(0) - np.asarray(b) for a, b in parts]
        scatter = [np.asarray(a, float).std(0) / trials**0.5 for a, _ in parts]
        gaps.append(np.concatenate([a.ravel() for a in means]))
        noises.append(np.concatenate([a.ravel() for a in scatter]))
    inverse = 1 / np.array(dimensions)
    # gap = a/p + b/p^2 with no constant term, by weighted least squares for each number.
    gaps, noises = np.array(gaps), np.maximum(np.array(noises), 1e-7)
    with_constant = np.stack([np.ones(4), inverse, inverse**2], axis=1)
    zs, slopes = [], []
    for gap, noise in zip(gaps.T, noises.T, strict=True):
        weighted = with_constant / noise[:, None]
        covariance = np.linalg.inv(weighted.T @ weighted)
        fit = covariance @ weighted.T @ (gap / noise)
        zs.append(fit[0] / covariance[0, 0] ** 0.5)
        slopes.append(np.abs(gap[0]) / noise[0])
    print(f"|z| of the limit <= {np.max(np.abs(zs)):.2f}; gaps: {np.abs(gaps).max(1)}")
    assert np.max(np.abs(zs)) < 5
    assert np.max(slopes) > 5  # there is a gap at p = 50
    largest = np.abs(gaps).max(1)
    assert largest[-1] < largest[0] / 4 + 5 * noises[-1].max()


STEADY = [
    ("PAST", 3, 2),
    ("GHA", 3, 2),
    ("OjaSubspace", 3, 2),
    ("PETRELS", 3, 2),
    ("GHA", 2, 3),
    ("OjaSubspace", 2, 3),
    ("PAST", 2, 3),
    ("PETRELS", 2, 3),
]


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize(("name", "spikes", "components"), sparing(STEADY))
def test_the_mean_field_ends_at_the_closed_forms(name, spikes, components):
    overlaps = np.pad(np.asarray(FULL)[:spikes], [(0, 0), (0, components - 2)])
    start, ts = ino.WarmStart(overlaps), [0.0, 400.0]
    study = several(spikes, components, RULES[name](), start=start, ts=ts)
    ode = ino.mean_field(study).abs()
    cosines = np.sort(np.cos(np.asarray(ode.angles()[-1])))
    alone = [
        ino.steady_state(ino.Config(study.rule, ino.SpikedModel(p=40, omega=omega)))[0]
        for omega in sorted(study.model.omega, reverse=True)[:components]
    ]
    assert np.allclose(cosines, np.sort(alone), atol=1e-8)
    distance = ode.grassmann_distance()[-1]
    assert np.isclose(distance, ino.steady_distance(study), atol=1e-6)
    if name in ("OjaSubspace", "GHA"):
        q, lam = ino.steady_state(study)
        order = np.argsort(-np.asarray(study.model.omega))
        expected = np.zeros((spikes, components))
        for i in range(min(spikes, components)):
            expected[order[i], i] = q[i]
        assert np.allclose(np.abs(ode.overlaps[-1]), expected, atol=1e-8)
        assert np.allclose(ode.norms[-1], lam, atol=1e-8)
        assert np.allclose(ode.cosines[-1], np.eye(components), atol=1e-8)
    else:
        with pytest.raises(ValueError, match="steady_distance"):
            ino.steady_state(study)
        assert np.all(np.isfinite(ode.norms))


@pytest.mark.usefixtures("x64")
def test_the_mean_field_of_gha_and_of_the_span_are_those_derived_by_hand():
    """THEORY: dQ/dt and dN/dt of GHA, and of Oja's subspace rule up to the basis of the
    span, where `Q Q^T` moves as by the symmetric projection."""
    omega, tau = np.array([4.0, 2.0, 1.0]), 0.4

    def gha(Q, N):
        W = Q.T @ np.diag(omega) @ Q + N
        U = np.triu(W)
        dQ = tau * ((omega[:, None] + 1) * Q - Q @ U)
        return dQ, tau * (2 * W - N @ U - U.T @ N) + tau**2 * W

    def subspace(Q, N):
        inner = Q.T @ np.diag(omega) @ Q
        return tau * (omega[:, None] * Q - Q * tau / 2 - (1 + tau / 2) * Q @ inner), 0 * N

    distances = []
    for rule, velocity in ((ino.GHA(tau), gha), (ino.OjaSubspace(tau), subspace)):
        Q = np.array(FULL)
        N = Q.T @ Q + np.diag(1 - np.sum(Q**2, 0))
        if rule.projects:
            Q, N = Q @ np.linalg.inv(np.linalg.cholesky(N).T), np.eye(2)
        dt, times = 1e-3, 1000
        for _ in range(times):  # Runge and Kutta's method
            k1 = velocity(Q, N)
            k2 = velocity(Q + dt / 2 * k1[0], N + dt / 2 * k1[1])
            k3 = velocity(Q + dt / 2 * k2[0], N + dt / 2 * k2[1])
            k4 = velocity(Q + dt * k3[0], N + dt * k3[1])
            Q = Q + dt / 6 * (k1[0] + 2 * k2[0] + 2 * k3[0] + k4[0])
            N = N + dt / 6 * (k1[1] + 2 * k2[1] + 2 * k3[1] + k4[1])
        model = ino.SpikedModel(p=40, omega=omega)
        study = ino.Config(rule, model, ino.WarmStart(FULL), [1.0], components=2)
        ode = ino.mean_field(study)
        found = np.asarray(ode.overlaps[0]) * np.asarray(ode.norms[0])
        assert np.allclose(found @ found.T, Q @ Q.T, atol=1e-8)
        distances.append(ode.grassmann_distance()[0])
        if not rule.projects:
            assert np.allclose(found, Q, atol=1e-8)
            assert np.allclose(ode.norms[0], np.sqrt(np.diag(N)), atol=1e-8)
    # From one start, the spans of both are the same at all times.
    assert np.isclose(*distances, atol=1e-8)


@pytest.mark.slow
@pytest.mark.usefixtures("x64")
def test_one_component_of_the_subspace_rule_is_oja():
    ts = np.array([0.0, 1.0, 5.0])
    model = ino.SpikedModel(p=60, omega=2.0)
    rules = ino.Oja(0.5), ino.OjaSubspace(0.5)
    one, other = (ino.Config(rule, model, ino.WarmStart(0.3), ts) for rule in rules)
    a, b = ino.mean_field(one), ino.mean_field(other)
    assert isinstance(b, ino.Trajectory)
    assert np.allclose(a.q, b.q, atol=1e-9)
    runs = [ino.simulate(study, key=jr.key(0), trials=3) for study in (one, other)]
    assert np.allclose(runs[0].q, runs[1].q, atol=1e-9)
    assert np.isclose(ino.critical_snr(rules[0]), ino.critical_snr(rules[1]))


@pytest.mark.usefixtures("x64")
@pytest.mark.slow
@pytest.mark.parametrize("omega", [0.1, 0.3, 2.0])
def test_one_component_ends_at_the_closed_forms(omega):
    for name, make in RULES.items():
        model = ino.SpikedModel(p=60, omega=omega)
        study = ino.Config(make(), model, ino.WarmStart(0.5), [0.0, 1500.0])
        path = component_mean_field(study)
        q, lam = ino.steady_state(study)
        assert np.isclose(abs(path.overlaps[-1, 0, 0]), q, atol=1e-7)
        assert (q > 0) == (omega > ino.critical_snr(study.rule))
        if name != "PETRELS":
            assert np.isclose(path.norms[-1, 0], lam, atol=1e-7)


@pytest.mark.usefixtures("x64")
def test_past_and_petrels_of_one_component_are_krasulina_with_a_gain_of_its_own():
    """dlog g/dt = tau - g (1 + g) s2 of PETRELS; PAST has the gain of INO-PCA at rest."""
    omega, tau = 1.5, 0.3
    q, g, dt = 0.2, 0.4, 1e-3
    for _ in range(5000):  # Heun's method

        def field(q, g):
            s2 = omega * q**2 + 1
            return q * g * (omega * (1 - q**2) - g * s2 / 2), g * (tau - g * (1 + g) * s2)

        k1 = field(q, g)
        k2 = field(q + dt * k1[0], g + dt * k1[1])
        q, g = q + dt / 2 * (k1[0] + k2[0]), g + dt / 2 * (k1[1] + k2[1])
    model = ino.SpikedModel(p=60, omega=omega)
    rule = ino.PETRELS(tau, gain0=0.4)
    path = ino.mean_field(ino.Config(rule, model, ino.WarmStart(0.2), [5.0]))
    assert np.isclose(path.q[0], q, atol=1e-6)
    rests = [
        ino.steady_state(ino.Config(rule(tau), model))[0] for rule in (ino.PAST, ino.InoPCA)
    ]
    assert np.isclose(*rests, rtol=1e-14)


@pytest.mark.slow
@pytest.mark.parametrize("name", sparing(["PETRELS", "PAST", "GHA", "OjaSubspace"]))
def test_data_give_the_span_of_the_leading_components(name):
    p, rule = 100, type(RULES[name]())(0.1)
    stream = data.Drift([9.0, 6.0, 4.0], p=p)
    samples = np.concatenate(list(stream.samples(64 * p)))
    subspace = ino.stream_pca(rule, samples, components=3)
    found = float(ino.grassmann_distance(subspace.components, stream.basis(0)))
    model = ino.SpikedModel(p=p, omega=[8.0, 5.0, 3.0])
    expected = ino.steady_distance(ino.Config(rule, model, components=3))
    assert 0.6 < found / expected < 1.6  # one sample of it, which scatters
    half = ino.stream_pca(rule, samples[: 32 * p], components=3)
    again = ino.stream_pca(rule, samples[32 * p :], components=3, state=half)
    assert np.array_equal(again.components, subspace.components)
    centred = ino.stream_pca(rule, samples + 5, components=3, center=True)
    assert (
        0.6 < ino.grassmann_distance(centred.components, stream.basis(0)) / expected < 1.6
    )


@pytest.mark.parametrize("name", sparing(["PETRELS", "PAST", "GHA", "OjaSubspace"]))
def test_data_of_a_lower_rank_leave_components_at_zero(name):
    random = np.random.default_rng(0)
    samples = random.normal(size=(500, 2)) @ random.normal(size=(2, 12))
    subspace = ino.stream_pca(RULES[name](), samples, components=4)
    found = np.asarray(subspace.components)
    assert np.all(np.isfinite(found))
    assert np.array_equal(np.any(found != 0, axis=1), [True, True, False, False])
    rest = samples - samples @ found[:2].T @ found[:2]
    assert np.max(np.abs(rest)) < 1e-3 * np.max(np.abs(samples))


class Saturating(ino.AbstractSubspaceRule):
    """A gain that reads the sample."""

    tau: ino.AbstractSchedule = 0.5  # pyright: ignore
    projects: ClassVar[bool] = True

    def init(self, components):
        return ()

    def drift(self, observables, tau, state):
        return ()

    def rates(self, observables, tau, state):
        weight = tau / (1 + jnp.trace(observables.outer))
        eye = jnp.eye(len(observables.gram), dtype=tau.dtype)
        return ino.SubspaceRates(weight * eye, 0 * observables.gram)


@pytest.mark.slow
def test_a_rule_whose_equations_do_not_close_runs_in_the_chain_alone():
    study = several(2, 2, Saturating(0.5))
    chain = ino.simulate(study, key=jr.key(1), trials=2000)
    stream = ino.simulate(study, key=jr.key(2), trials=1000, engine=ino.Stream())
    assert_same_law(chain, stream)


def square(observables, tau, state):
    return ino.SubspaceRates(
        tau * jnp.eye(len(observables.gram)), observables.outer @ observables.outer
    )


def single(rule=None, **options):
    return ino.Config(rule or ino.GHA(0.5), ino.SpikedModel(p=100, omega=2.0), **options)


REFUSED = {
    "Oracle": (lambda: ino.GHA(ino.Oracle()), "GHA.tau = Oracle"),
    "gain0": (lambda: ino.PAST(0.5, gain0=-1.0), "gain0 = -1"),
    "forgetting": (lambda: single(ino.PAST(150.0)), "tau = 150.*forgetting"),
    "data": (lambda: ino.stream_pca(ino.PAST(7.0), np.eye(6), 2), "forgetting"),
    "field": (lambda: ino.mean_field(several(2, 2, Saturating(0.5))), "Saturating.*Chain"),
    "steady": (lambda: ino.steady_state(single(Saturating(0.5))), "mean_field"),
    "critical": (lambda: ino.critical_snr(Saturating(0.5)), "Saturating.*mean_field"),
    "fluctuations": (lambda: ino.fluctuations(single()), "GHA.*fluctuations"),
    "density": (lambda: ino.density(single()), "GHA.*density"),
    "velocity": (lambda: ino.velocity(single(), 0.1, 1.0), "GHA.*velocity"),
    "predict": (lambda: ino.predict(single()), "GHA.*predict"),
    "Diffusion": (
        lambda: ino.simulate(single(), key=jr.key(0), engine=ino.Diffusion()),
        "GHA.*Diffusion",
    ),
    "FinalOverlap": (
        lambda: ino.tune(single(), objective=ino.FinalOverlap()),
        "FinalDistance",
    ),
    "x": (lambda: ino.sample_step(ino.GHA(0.5), np.ones((5, 5)), np.ones(5)), "fewer"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_does_not_fit_such_a_rule_is_refused(name):
    call, message = REFUSED[name]
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.slow
@pytest.mark.usefixtures("x64")
def test_the_rate_of_forgetting_is_tuned_by_the_distance():
    model = ino.SpikedModel(p=2000, omega=[4.0, 2.0])
    study = lambda tau: ino.Config(
        ino.PAST(tau, gain0=1.0),
        model,
        ino.WarmStart([0.1, 0.2]),
        [0.0, 20.0],
        components=2,
    )
    tuned = ino.tune(study(0.5))
    value = lambda tau: ino.FinalDistance().value(study(tau))
    grid = jax.vmap(value)(np.geomspace(0.02, 2, 60))
    assert tuned.bound < tuned.value <= np.min(grid)


@pytest.mark.slow
def test_a_schedule_with_a_state_runs_in_both_engines_and_the_limit():
    """AdaGrad by the sum of the squared gradients of all components."""
    rule = ino.OjaSubspace(ino.AdaGrad(60.0))
    study = several(3, 2, rule, p=60)
    chain = ino.simulate(study, key=jr.key(1), trials=4000)
    stream = ino.simulate(study, key=jr.key(2), trials=1200, engine=ino.Stream())
    assert_same_law(chain, stream)
    large = several(3, 2, ino.OjaSubspace(ino.AdaGrad(2000.0)), p=2000,
                    start=ino.WarmStart(FULL), ts=(1.0, 4.0))  # fmt: skip
    runs, ode = ino.simulate(large, key=jr.key(3), trials=64), ino.mean_field(large)
    assert np.max(np.abs(runs.mean().overlaps - ode.overlaps)) < 0.02
