"""Everything that holds no vector of p entries takes any p up to 10^15, in float32 too."""

import functools
import itertools
import math
import re

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from scipy import stats

import inopca_jax as ino
from inopca_jax._batch.calls import plan_calls
from inopca_jax._order_parameters.limit import velocity

from .cases import config, sparing

SMALL, WIDE, LARGE, LARGEST = 10**4, 2**31, 10**12, 10**15
TS = (0.0, 1.0, 4.0)

# Algorithms whose limit does not depend on p.
ALGORITHMS = {
    "InoPCA": lambda p: ino.InoPCA(0.5),
    "AdaGrad": lambda p: ino.Oja(ino.AdaGrad(1.5 * p)),
    "Harmonic": lambda p: ino.InoPCA(ino.Harmonic(2.0, t0=1.0, k0=3.0 * p)),
    "CCIPCA": lambda p: ino.CCIPCA(t0=2.0),
    "Oja": lambda p: ino.Oja(0.5),
    "Cubic": lambda p: ino.Cubic(0.5),
    "Krasulina": lambda p: ino.Krasulina(0.3),
    "Oracle": lambda p: ino.AdaptiveInoPCA(),
    "Interpolated": lambda p: ino.InoPCA(ino.Interpolated([0.0, 2.0], [0.6, 0.3])),
}


def study(p, name="InoPCA", **parts):
    return config(ALGORITHMS[name](p), p=p, **dict(ts=TS) | parts)


def short(p, steps=1000, **parts):
    """So short that a chain may count the steps."""
    return study(p, **parts, ts=(0.0, steps / p))


def run(study, engine=None, trials=2, seed=1):
    return ino.simulate(study, key=jr.key(seed), trials=trials, engine=engine)


@pytest.mark.parametrize("p", [WIDE, LARGEST])
@pytest.mark.parametrize("name", sparing(ALGORITHMS, 3))
def test_the_mean_field_is_the_same_at_every_p(name, p):
    small, large = (ino.mean_field(study(n, name)) for n in (SMALL, p))
    assert large.q.dtype == jnp.float32
    assert np.allclose(large.q, small.q, rtol=2e-6)
    assert np.allclose(large.lam, small.lam, rtol=2e-6)


@pytest.mark.parametrize("rule", [ino.AdaOja(2.0**-17), ino.CCIPCA()])
@pytest.mark.filterwarnings("ignore:The mean field is singular")
def test_a_start_that_is_forgotten_is_followed_beyond_the_range_of_float32(rule):
    """AdaGrad's `beta` begins at `(b0/p)^2`, of which float32 makes zero."""
    narrow = ino.mean_field(config(rule, p=LARGEST, ts=TS))
    with jax.enable_x64(True):
        wide = ino.mean_field(config(rule, p=LARGEST, ts=TS))
    assert narrow.q.dtype == jnp.float32
    assert np.allclose(narrow.q, wide.q, rtol=1e-5, atol=1e-30)
    assert np.allclose(narrow.lam, wide.lam, rtol=1e-5)


SAME_AT_EVERY_P = {
    "density": ("AdaGrad", lambda c: ino.density(c, solver=ino.ClosedForm()).pdf),
    "sensitivity": ("AdaGrad", lambda c: ino.sensitivity(c, "start.q0").q),
    "effective_gain": ("Harmonic", lambda c: ino.effective_gain(c, ino.mean_field(c))),
    "best_overlap": ("InoPCA", lambda c: ino.best_overlap(c, np.array(TS))),
    "steady_density": ("InoPCA", lambda c: ino.steady_density(c).pdf),
    "tune": ("Harmonic", lambda c: ino.tune(c, over="rule.tau.c").value),
    "density by steps": ("AdaGrad", lambda c: ino.density(c).pdf),
    "density by lines": (
        "AdaGrad",
        lambda c: ino.density(c, solver=ino.MethodOfLines()).pdf,
    ),
}


@pytest.mark.parametrize("of", sparing(SAME_AT_EVERY_P, 5))
def test_what_follows_from_the_mean_field_is_the_same_at_every_p(of):
    name, value = SAME_AT_EVERY_P[of]
    small, large = (value(study(p, name)) for p in (SMALL, LARGEST))
    assert np.allclose(large, small, rtol=1e-5, atol=1e-6)


OBJECTIVES = {
    "area": ino.Area(),
    "time": ino.TimeToReach(0.5),
    "steady": ino.SteadyOverlap(4.0),
    "worst": ino.WorstCase(ino.FinalOverlap(), [0.5, 1.0]),
    "average": ino.Average(ino.FinalOverlap(), [0.5, 1.0]),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", OBJECTIVES)
def test_every_objective_is_tuned_alike_at_every_p(name):
    small, large = (
        ino.tune(study(p), over="rule.tau", objective=OBJECTIVES[name])
        for p in (SMALL, LARGEST)
    )
    assert np.isclose(large.value, small.value, rtol=1e-4)


@pytest.mark.slow
def test_caution_costs_nothing_where_nothing_scatters():
    objective = ino.CautiousOverlap()
    cautious = ino.tune(study(LARGEST), over="rule.tau", objective=objective)
    plain = ino.tune(study(LARGEST), over="rule.tau")
    assert np.isclose(cautious.value, plain.value, atol=1e-4)


@functools.cache
def predicted(name="InoPCA"):
    return ino.fluctuations(study(SMALL, name))


OTHERS = [
    (name, p) for name in ("InoPCA", "AdaGrad", "Harmonic", "CCIPCA") for p in (WIDE, LARGE)
]


@pytest.mark.parametrize(("name", "p"), sparing([("InoPCA", LARGEST), *OTHERS]))
def test_the_scatter_goes_as_a_root_of_p_and_the_shift_as_one_over_p(name, p):
    small, large = predicted(name), ino.fluctuations(study(p, name))
    for of in ("q", "lam"):
        scatter = [getattr(at, f"{of}_std") for at in (small, large)]
        assert np.allclose(scatter[1], scatter[0] * math.sqrt(SMALL / p), rtol=1e-5)
        shift = [getattr(at, f"{of}_shift") for at in (small, large)]
        assert np.allclose(shift[1] * (p / SMALL), shift[0], rtol=1e-4, atol=1e-9)
    assert np.allclose(large.correlation, small.correlation, atol=1e-5)


def assert_scatters(runs, name, p):
    """About the mean field by as much as `fluctuations` says."""
    theory, trials = predicted(name), len(runs.q)
    assert bool(runs.finite.all())
    for of in ("q", "lam"):
        centre, std = (np.asarray(getattr(theory, of + end)) for end in ("", "_std"))
        std = std * math.sqrt(SMALL / p)
        off = np.asarray(getattr(runs, of), float) - centre
        moves = std > 1e-12
        assert np.all(np.abs(off[:, ~moves]) < 1e-6)
        off, std = off[:, moves], std[moves]
        assert np.all(np.abs(off.std(0) / std - 1) < 5 / math.sqrt(2 * trials))
        # In float32 the mean field itself is off by some units.
        unit = 4 * jnp.finfo(runs.q.dtype).eps
        assert np.all(np.abs(off.mean(0)) < 5 * std / math.sqrt(trials) + unit)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "p"), sparing([("InoPCA", LARGE), ("InoPCA", WIDE), ("AdaGrad", LARGE)])
)
def test_the_diffusion_scatters_as_predicted(name, p):
    runs = run(study(p, name), ino.Diffusion(), trials=4000)
    assert runs.q.dtype == jnp.float32
    assert_scatters(runs, name, p)


@pytest.mark.slow
@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("name", ["InoPCA", "AdaGrad", "Harmonic"])
def test_it_does_so_at_the_largest_p_which_float32_could_not_show(name):
    with jax.enable_x64(False):
        predicted(name)  # kept for all tests, in their precision
    runs = run(study(LARGEST, name), ino.Diffusion(), trials=4000)
    exact = np.asarray(ino.mean_field(study(LARGEST, name)).q)
    std = np.asarray(predicted(name).q_std) * math.sqrt(SMALL / LARGEST)
    off = np.asarray(runs.q) - exact
    assert np.all(np.abs(off.std(0) / std - 1) < 5 / math.sqrt(8000))
    # Steps of 0.1 leave an error of their own in the mean field.
    assert np.all(np.abs(off.mean(0)) < 5 * std / math.sqrt(4000) + 1e-6)


@pytest.mark.slow
@pytest.mark.usefixtures("x64")
def test_the_diffusion_counts_single_samples_where_the_time_is_short():
    trials, at = 1000, short(LARGE, steps=300)
    moved = [
        np.diff(np.asarray(run(at, engine, trials).q))
        for engine in (ino.Diffusion(), ino.Chain())
    ]
    assert abs(moved[0].std() / moved[1].std() - 1) < 5 / math.sqrt(trials)


@pytest.mark.parametrize("p", [WIDE, LARGEST])
def test_the_chain_is_the_same_in_either_mode(p):
    """Its state is in double precision in both; 0.25 and 0.5 are exact in float32."""
    start = ino.WarmStart(0.25)
    narrow = run(short(p, start=start))
    with jax.enable_x64(True):
        wide = run(short(p, start=start))
    assert narrow.q.dtype == jnp.float32
    assert np.array_equal(narrow.q, np.asarray(wide.q, np.float32))
    assert np.array_equal(narrow.lam, np.asarray(wide.lam, np.float32))


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("name", sparing(["InoPCA", "AdaGrad", "Harmonic", "Krasulina"]))
def test_the_chain_drifts_as_the_mean_field_does(name):
    """Over so short a time that the drift is constant: what is off is off by rounding."""
    p, steps, trials, q0 = LARGE, 4000, 1000, 0.3
    at = short(p, steps, name=name, start=ino.WarmStart(q0))
    runs = run(at, trials=trials)
    rule, one, t = at.rule, jnp.ones(()), jnp.asarray(steps / p / 2)
    now = (jnp.asarray(q0), one, rule.tau.init(float(p)))
    rates = velocity(rule, one, float(p), t, *now)
    for seen, rate in zip((runs.q, runs.lam), rates, strict=False):
        moved = np.asarray(seen[:, 1] - seen[:, 0]) * p / steps
        error = moved.std() / math.sqrt(trials)
        assert abs(moved.mean() - rate) < 5 * error + 1e-6
        assert error < 1e-2


@pytest.mark.usefixtures("x64")
def test_the_chains_start_scatters_as_it_should_at_the_largest_p():
    """By 3e-8, half of it from the length of the noise, which float32 would round away."""
    q0, trials = 0.9, 2000
    at = config(p=LARGEST, start=ino.WarmStart(q0), ts=(0.0,))
    q = np.asarray(run(at, trials=trials).q[:, 0])
    left = 1 - q0**2
    std = math.sqrt(left**2 * (1 - q0**2 / 2) / LARGEST)
    assert stats.kstest((q - q0) / std, "norm").pvalue > 1e-3


SWEEPS = [(ino.Chain(), [LARGE]), (ino.Diffusion(), [SMALL, LARGE])]


@pytest.mark.parametrize(("engine", "ps"), sparing(SWEEPS))
def test_a_sweep_takes_any_p(engine, ps):
    pytest.importorskip("xarray")
    grid, at = {"model.p": ps}, short(LARGE, name="AdaGrad")
    swept = ino.sweep(at, grid, trials=2, key=jr.key(0), engine=engine, theory=True)
    assert swept["model.p"].values.tolist() == ps
    at_large = swept.sel({"model.p": LARGE})
    assert np.allclose(at_large.q_mean, at_large.q_theory, atol=1e-5)


@pytest.mark.slow
def test_each_thousandfold_p_delays_the_escape_by_as_much():
    """By the time in which an overlap grows by the root of a thousand; a median is within
    0.1 of where finer lanes and looks would have it."""
    tau, omega = 0.5, 1.0
    rate = tau * omega - tau**2 / 2

    def median(p):
        cold = config(ino.Oja(tau), p=p, start=ino.ColdStart(), ts=(0.0, 100.0))
        return float(ino.escape_time(cold, 0.5).quantile(0.5))

    medians = [median(p) for p in (10**9, LARGE, LARGEST)]
    assert np.allclose(np.diff(medians), math.log(1000) / 2 / rate, atol=0.15)


@pytest.mark.slow
def test_the_law_of_a_cold_start_is_the_diffusions():
    cold = study(LARGE, start=ino.ColdStart(), ts=(0.0, 60.0, 75.0, 90.0))
    law = ino.overlap_law(cold).abs()
    runs = run(cold, ino.Diffusion(), trials=2000)
    size = np.abs(np.asarray(runs.q, float))
    error = 5 * size.std(0) / math.sqrt(len(size))
    assert np.all(np.abs(size.mean(0) - law.q) < error + 2e-3)


def switching(p):
    models = [ino.SpikedModel(p, spike=ino.Sparse(0.3)), ino.SpikedModel(p)]
    return ino.Config(ino.InoPCA(0.5), ino.Switching(models, [0.5]), ts=np.array(TS))


STARTS = (ino.Box(), ino.TwoBumps(), ino.WarmStart(), ino.ColdStart())
SPIKES = (ino.Sparse(), ino.ShiftedExponential(), ino.Gaussian(), ino.Uniform())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("start", "spike"), sparing(list(itertools.product(STARTS, SPIKES)))
)
def test_every_start_and_spike_has_a_diffusion_and_a_mean_field(start, spike):
    at = study(LARGEST, start=start, spike=spike)
    runs, theory = run(at, ino.Diffusion()), ino.mean_field(at)
    assert np.allclose(runs.q, theory.q[None, :], atol=1e-5)
    assert np.allclose(runs.lam, theory.lam[None, :], atol=1e-5)


def test_p_is_a_whole_number_up_to_a_limit():
    for p in (LARGEST + 1, 10**400, 10**5000, 1e300, math.inf, math.nan, 2.5, 2):
        with pytest.raises(ValueError, match=r"p = .* is not allowed: .* at most 10\^15"):
            ino.SpikedModel(p)


def test_so_it_may_be_given_as_a_float():
    assert ino.SpikedModel(1e15).p == LARGEST


def test_a_chain_that_takes_too_many_steps_says_what_to_do():
    at = study(LARGE)
    with pytest.raises(ValueError, match=r"step counters end at") as refused:
        run(at)
    number = r"([\d.e+-]+)"
    advice = rf"shorten ts to {number}, lower p to {number}, or use Diffusion\(\)"
    end, p = map(float, re.search(advice, str(refused.value)).groups())
    # Not run, which would take a minute: it is here that steps are counted.
    for allowed in (config(p=LARGE, ts=(0.0, end)), study(p)):
        calls = plan_calls(allowed, ino.Chain().prepare(allowed), 2**20)
        assert calls[-1].stops[-1, -1] > 2e9
    assert bool(run(at, ino.Diffusion()).finite.all())


@pytest.mark.parametrize(
    ("rule", "regular"), sparing([(ino.CCIPCA(), "CCIPCA"), (ino.AdaOja(), "AdaGrad")])
)
def test_a_diffusion_that_would_begin_with_a_jump_says_what_to_do(rule, regular):
    with pytest.raises(ValueError, match=r"Use Chain\(\), for at most \d+ samples, a b0"):
        run(config(rule, p=LARGE, ts=TS), ino.Diffusion())
    assert bool(run(config(rule, p=LARGE, ts=(0.0, 1e-9))).finite.all())
    # With t0 > 0, or a b0 of order p.
    assert bool(run(study(LARGE, regular), ino.Diffusion()).finite.all())


def test_what_holds_vectors_is_refused_before_any_is_made():
    for engine in (ino.Stream(), ino.Stream(snapshots=True)):
        with pytest.raises(ValueError, match=r"p = 1000000000000 .* Stream: .* Diffusion"):
            run(short(LARGE), engine)
    with pytest.raises(ValueError, match=r"snapshots=True.*: .* leave snapshots out"):
        run(short(LARGE), ino.Chain(snapshots=True))
    # What they name instead: without snapshots, and over a short time, this one works.
    assert bool(run(short(LARGE)).finite.all())


@pytest.mark.parametrize("at", sparing([switching, lambda p: study(p, start=ino.Box())]))
def test_a_chain_that_would_begin_with_a_vector_is_refused(at):
    with pytest.raises(ValueError, match=r"with a Chain with a switch .* Use Diffusion"):
        run(at(LARGE))
    runs, theory = run(at(LARGE), ino.Diffusion()), ino.mean_field(at(LARGE))
    assert np.allclose(runs.q, theory.q[None, :], atol=1e-4)


@pytest.mark.slow
def test_a_config_that_a_compiled_function_has_captured_works_in_the_other_mode():
    """JAX 0.10 mixes up the precisions of an array of NumPy's that it has captured."""
    study = config(p=300, start=ino.WarmStart(0.4), ts=np.array([0.0, 1.0]))

    def captured(tau):
        return ino.mean_field(
            ino.Config(ino.InoPCA(tau), study.model, study.start, study.ts)
        ).q

    calls = [
        lambda: jax.jit(captured)(0.5),
        lambda: ino.mean_field(study).q,
        lambda: ino.fluctuations(study).q,
        lambda: ino.density(study).q,
        lambda: ino.velocity(study, 0.3, 1.0)[0],
        lambda: ino.predict(study).q,
        lambda: ino.simulate(study, key=jr.key(0), trials=2, engine=ino.Diffusion()).q,
    ]
    for call in (*calls, *calls):
        narrow = call()
        with jax.enable_x64(True):
            wide = np.asarray(call())
        assert wide.dtype == np.float64
        np.testing.assert_allclose(narrow, wide, atol=1e-4)
