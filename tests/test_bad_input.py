"""Nothing bad passes silently: each error names the argument, its value, the remedy."""

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

import inopca_jax as ino

from .cases import config

NAN, INF = float("nan"), float("inf")
SPIKED = ino.SpikedModel

BAD = {
    "tau zero": (lambda: ino.InoPCA(0.0), r"tau = 0.0 .* positive"),
    "tau negative": (lambda: ino.Oja(-0.5), r"tau = -0.5 .* positive"),
    "tau nan": (lambda: ino.Cubic(NAN), r"tau = nan .* finite"),
    "tau inf": (lambda: ino.Krasulina(INF), r"tau = inf .* finite"),
    "tau 2p": (
        lambda: config(ino.InoPCA(400.0), p=200),
        r"tau = 400.0 .* 2p = 400 .* smaller",
    ),
    "taus 2p": (
        lambda: config(ino.Oja(ino.Interpolated([0, 1], [0.5, 500])), p=200),
        r"tau = .*500.0.* 2p = 400",
    ),
    "harmonic 2p": (
        lambda: config(ino.Oja(ino.Harmonic(5.0, t0=0.0, k0=1.0)), p=3),
        r"tau = 7.5 .* 2p = 6 .* larger t0",
    ),
    "harmonic start": (
        lambda: ino.Harmonic(2.0, t0=0.0),
        r"t0 = 0.0, k0 = 0.0 .* infinite",
    ),
    "taus": (lambda: ino.Interpolated([0, 1], [0.5, -1]), r"taus = .*-1.0.* positive"),
    "knots": (lambda: ino.Interpolated([1, 0], [0.5, 1]), r"ts = \[1.0, 0.0\] .* increase"),
    "knots shape": (
        lambda: ino.Interpolated([0, 1], [0.5]),
        r"shape \(2,\).*one tau for each",
    ),
    "harmonic c": (lambda: ino.Harmonic(0.0), r"c = 0.0 .* positive"),
    "harmonic t0": (lambda: ino.Harmonic(1.0, t0=-1.0), r"t0 = -1.0 .* not negative"),
    "b0": (lambda: ino.AdaOja(-1.0), r"b0 = -1.0 .* positive"),
    "amnesic": (lambda: ino.CCIPCA(-1.0), r"amnesic = -1.0 .* 0 <= amnesic"),
    "degree": (lambda: ino.Cubic(0.5, degree=2.0), r"degree = 2.0 .* > 2"),
    "omega negative": (lambda: SPIKED(omega=-0.1), r"omega = -0.1.* not negative"),
    "omega nan": (lambda: SPIKED(omega=NAN), r"omega = nan .* finite"),
    "p fraction": (lambda: SPIKED(p=10.5), r"p = 10.5 .* whole number of at least 3"),
    "p small": (lambda: SPIKED(p=2), r"p = 2 .* at least 3"),
    "p text": (lambda: SPIKED(p="many"), r"p = 'many' .* whole number"),
    "p nan": (lambda: SPIKED(p=NAN), r"p = nan .* whole number"),
    "rho": (lambda: ino.Sparse(0.0), r"rho = 0.0 .* 0 < rho <= 1"),
    "rate": (lambda: ino.ShiftedExponential(rate=0.0), r"rate = 0.0 .* positive"),
    "q0 above": (lambda: ino.WarmStart(1.1), r"q0 = 1.1.* lies in \[-1, 1\]"),
    "q0 below": (lambda: ino.WarmStart(-1.1), r"q0 = -1.1.* lies in"),
    "q0 nan": (lambda: ino.WarmStart(NAN), r"q0 = nan .* lies in"),
    "lam0 zero": (lambda: ino.ColdStart(0.0), r"lam0 = 0.0 .* positive"),
    "lam0 negative": (lambda: ino.WarmStart(lam0=-1.0), r"lam0 = -1.0 .* positive"),
    "lam0 large": (lambda: ino.ColdStart(1e16), r"lam0 = 1.* float32, within .*1e\+15"),
    "lam0 small": (lambda: ino.ColdStart(1e-16), r"lam0 = .* within \[1e-15"),
    "ts unsorted": (lambda: config(ts=[0.0, 2.0, 1.0]), r"ts = .* sorted"),
    "ts negative": (lambda: config(ts=[-1.0, 2.0]), r"ts = \[-1.0, 2.0\] .* start at 0"),
    "ts empty": (lambda: config(ts=[]), r"ts of shape \(0,\) .* at least one time"),
    "ts nan": (lambda: config(ts=[0.0, NAN]), r"ts = .*nan.* finite"),
    "ts inf": (lambda: config(ts=[0.0, INF]), r"ts = .*inf.* finite"),
    "ts grid": (lambda: config(ts=np.ones((2, 2))), r"ts of shape \(2, 2\) .* one axis"),
    "rule": (lambda: ino.Config(rule=0.5), r"rule = .*AbstractRule"),
    "model": (lambda: ino.Config(model="x"), r"model = 'x' .*AbstractModel"),
    "several": (lambda: ino.InoPCA([0.3, 0.5]), r"\[0.3, 0.5\] .* one number"),
    "several lam0": (lambda: ino.WarmStart(0.3, [1.0, 2.0]), r"\[1.0, 2.0\] .* one number"),
    "spike": (lambda: SPIKED(spike="uniform"), r"spike = 'uniform' .* AbstractSpike"),
    "no schedule": (
        lambda: config(Bare(0.5)),
        r"rule.tau = .* AbstractSchedule",
    ),
    "dtype": (lambda: ino.Chain(dtype="int32"), r"dtype = 'int32' .* float32 or float64"),
    "dtype junk": (lambda: ino.Stream(dtype="junk"), r"dtype = 'junk' .* float32"),
    "far": (lambda: run(ts=[0.0, 1e18]), r"ts up to .*e\+1[78] at p = 200 is 2e\+20 steps"),
    "wide norm": (
        lambda: run(start=wide_start(), engine=ino.Stream()),
        r"lam0 = .*e\+20 .* float32",
    ),
    "switch type": (
        lambda: ino.Switching([SPIKED(), 3], [1.0]),
        r"models = 3 .* SpikedModel",
    ),
    "switch unsorted": (
        lambda: ino.Switching([SPIKED()] * 3, [2.0, 1.0]),
        r"times = \[2.0, 1.0\] .* increase",
    ),
    "switch count": (
        lambda: ino.Switching([SPIKED()] * 2, []),
        r"times = \[\] .* one fewer",
    ),
    "switch p": (
        lambda: ino.Switching([SPIKED(p=5), SPIKED(p=6)], [1.0]),
        r"p = \[5, 6\].* same p",
    ),
    "chain chunk": (lambda: ino.Chain(chunk=1), r"chunk = 1 .* at least 2"),
    "stream chunk": (lambda: ino.Stream(chunk=5), r"chunk = 5 .* even"),
    "trials zero": (lambda: run(trials=0), r"trials = 0 .* at least 1"),
    "snapshot p": (lambda: run(p=3, engine=ino.Chain(snapshots=True)), r"p = 3 .* p >= 4"),
    "too long": (lambda: run(p=10**9), r"ts up to 4.0 at p = 1000000000 .* shorten"),
    "oracle omega": (lambda: ino.oracle_overlap(-1.0, 0.1, 1.0), r"omega = -1.0"),
    "oracle q0": (lambda: ino.oracle_overlap(1.0, 2.0, 1.0), r"q0 = 2.0 .* lies in"),
    "offline t": (lambda: ino.offline_overlap(1.0, -1.0), r"t = -1.0 .* start at 0"),
    "best lam0": (lambda: ino.best_lam0(0.5, 0.0), r"omega = 0.0 .* signal"),
    "nodes": (lambda: ino.Uniform().quadrature(0), r"nodes = 0 .* at least 1"),
}


class Bare(ino.AbstractRule):
    tau: float
    projects = False

    def rates(self, sample, tau):
        return ino.Rates(gain=tau, decay=tau)


def wide_start():
    with jax.enable_x64(True):
        return ino.ColdStart(1e20)


def run(*, trials=2, engine=None, p=200, ts=(0.0, 1.0, 4.0), start=None):
    study = config(p=p, ts=np.asarray(ts), start=start)
    return ino.simulate(study, key=jr.key(0), trials=trials, engine=engine)


def test_a_simulation_inside_a_transformation_is_refused():
    def final(tau):
        return ino.simulate(config(ino.InoPCA(tau)), key=jr.key(0)).q

    with pytest.raises(ValueError, match="traced config or key"):
        jax.vmap(final)(jnp.array([0.3, 0.5]))


@pytest.mark.slow
def test_a_change_after_the_end_never_comes():
    late = ino.Switching([SPIKED(p=50)] * 2, [1e18])
    study = ino.Config(model=late, ts=np.array([0.5, 1.0]))
    plain = ino.Config(model=SPIKED(p=50), ts=study.ts)
    runs = [ino.simulate(s, key=jr.key(0), trials=2).q for s in (study, plain)]
    assert np.array_equal(*runs)
    assert np.allclose(ino.mean_field(study).q, ino.mean_field(plain).q, atol=1e-6)


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_refused_by_name_value_and_remedy(name):
    make, message = BAD[name]
    with pytest.raises(ValueError, match=r"(?s)" + message):
        make()


def test_a_wider_norm_is_allowed_in_double_precision():
    with jax.enable_x64(True):
        assert ino.ColdStart(1e20).lam0 == 1e20
        with pytest.raises(ValueError, match="lam0"):
            ino.ColdStart(1e200)


@pytest.mark.parametrize("lam0", [1e-15, 1e15])
@pytest.mark.parametrize("engine", [ino.Chain(), ino.Stream()])
def test_the_whole_allowed_range_of_norms_runs(engine, lam0):
    study = config(ino.InoPCA(0.5), start=ino.WarmStart(0.3, lam0), ts=[0.0, 0.05, 0.5])
    run = ino.simulate(study, key=jr.key(0), trials=3, engine=engine)
    assert bool(run.finite.all())
    assert np.allclose(run.lam[:, 0], lam0, rtol=1e-4)


def test_checks_stand_back_inside_a_transformation():
    out = jax.vmap(lambda tau: ino.mean_field(config(ino.InoPCA(tau), ts=[1.0])).q[0])(
        jnp.array([0.5, -1.0])
    )
    assert np.isfinite(out[0])


def test_a_diverging_trial_is_flagged_and_the_others_are_kept():
    # Cubic's decay tau lam overshoots once lam is near 2p/tau: from lam0 = 69 some
    # trials of p = 20 are thrown out, others fall back.
    study = config(ino.Cubic(0.6), p=20, start=ino.WarmStart(0.3, 69.0), ts=[0.0, 2.0])
    for engine in (ino.Chain(), ino.Stream()):
        run = ino.simulate(study, key=jr.key(0), trials=400, engine=engine)
        lost = int((~run.finite).sum())
        assert 0 < lost < 400
        with pytest.warns(UserWarning, match=f"{lost} of 400 trials are not finite"):
            mean = run.mean()
        kept = np.asarray(run.q, dtype=float)[np.asarray(run.finite)]
        assert np.allclose(mean.q, kept.mean(0), atol=1e-6)
        alone = ino.simulate(study, key=jr.key(0), trials=1, engine=engine)
        assert np.array_equal(alone.q, run.q[:1], equal_nan=True)


def test_a_mean_over_no_finite_trial_is_not_a_number():
    nothing = ino.Trajectory(np.zeros(2), jnp.full((3, 2), jnp.nan), jnp.ones((3, 2)))
    with pytest.warns(UserWarning, match="3 of 3"):
        assert np.all(np.isnan(nothing.mean().q))
    with pytest.raises(ValueError, match="trials, times"):
        ino.mean_field(config()).mean()


@pytest.mark.parametrize("kind", [ino.FokkerPlanck, ino.ClosedForm, ino.MethodOfLines])
def test_resolutions_that_cannot_be_are_refused(kind):
    for wrong in ({"cells": 15}, {"cells": 20.5}, {"nodes": 0}):
        (name,) = wrong
        with pytest.raises(ValueError, match=f"{name} = "):
            kind(**wrong)
    with pytest.raises(ValueError, match="nodes = 1 is not allowed"):
        ino.density(config(ts=[1.0]), solver=kind(nodes=1))
    with pytest.raises(ValueError, match="start has no density"):
        ino.density(config(start=ino.WarmStart(1.0), ts=[1.0]), solver=kind(nodes=4))
    for domain in ((1.0, 1.0), (2.0, -2.0), (0.0, np.inf), (np.nan, 1.0)):
        with pytest.raises(ValueError, match=r"domain = .* is not allowed"):
            kind(domain=domain)
    if kind is ino.FokkerPlanck:
        for dt in (0.0, -0.1, np.nan, np.inf):
            with pytest.raises(ValueError, match=r"dt = .* is not allowed"):
                kind(dt=dt)
    with pytest.raises(ValueError, match=r"domain = \(-1, 1\) .* holds 0.\d* of the"):
        ino.density(config(ts=[1.0]), solver=kind(domain=(-1.0, 1.0), nodes=4))
    narrow = config(start=ino.WarmStart(0.3, lam0=0.01), ts=[1.0])
    with pytest.raises(ValueError, match=r"cells = 64 .* narrower than a cell"):
        ino.density(narrow, solver=kind(cells=64, nodes=4))


def test_mass_at_the_edge_is_an_error():
    tight = ino.FokkerPlanck(cells=64, nodes=4, domain=(-5.5, 5.5))
    with pytest.raises(ValueError, match=r"domain = \(-5.5, 5.5\) .* edge came to hold"):
        ino.density(config(ts=[20.0]), solver=tight)
    # Where nothing can be raised, nothing plausible is returned either.
    mapped = jax.vmap(
        lambda tau: ino.density(config(ino.InoPCA(tau), ts=[20.0]), solver=tight).pdf
    )(jnp.array([0.5]))
    assert np.all(np.isnan(mapped))


def test_a_density_at_traced_times_or_of_no_limit_is_refused():
    with pytest.raises(ValueError, match="ts is traced"):
        jax.jit(lambda ts: ino.density(ino.Config(ts=ts)).q)(jnp.array([1.0]))
    for rule in (ino.Krasulina(0.5), ino.CCIPCA()):
        with pytest.raises(ValueError, match=f"rule = {type(rule).__name__}"):
            ino.steady_density(config(rule))
