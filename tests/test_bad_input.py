"""Nothing bad passes silently: each error names the argument, its value, the remedy."""

import copy
import re
from concurrent.futures import ThreadPoolExecutor

import diffrax
import jax
import jax.numpy as jnp
import jax.random as jr
import matplotlib.pyplot as plt
import numpy as np
import optax
import pytest

import inopca_jax as ino
from inopca_jax import data, plot

from .cases import config

NAN, INF = float("nan"), float("inf")
SPIKED = ino.SpikedModel
KEY = jr.key(0)

OPTIONAL = set()


def optional(make):
    """A call to which `None` is no bad input: it stands for the default."""
    OPTIONAL.add(make)
    return make


# Where one number is wanted, by its name.
NUMBERS = {
    "tau": [ino.InoPCA, ino.Cubic, ino.Oja, ino.Krasulina, ino.Constant],
    "c": [ino.Harmonic],
    "t0": [lambda x: ino.Harmonic(1.0, t0=x)],
    "k0": [lambda x: ino.Harmonic(1.0, k0=x)],
    "b0": [ino.AdaGrad, ino.AdaOja],
    "amnesic": [ino.CCIPCA],
    "degree": [lambda x: ino.Cubic(0.5, degree=x)],
    "omega": [
        lambda x: SPIKED(omega=x),
        optional(lambda x: plot.learning_curves(curves(), omega=x)),
    ],
    "turning": [
        optional(lambda x: SPIKED(turning=x)),
        optional(lambda x: ino.critical_snr(ino.Oja(), x)),
    ],
    "observed": [optional(lambda x: SPIKED(observed=x))],
    "rho": [ino.Sparse],
    "rate": [ino.ShiftedExponential],
    "shift": [lambda x: ino.ShiftedExponential(shift=x)],
    "q0": [ino.WarmStart, ino.TwoBumps, ino.Box],
    "lam0": [ino.ColdStart, lambda x: ino.WarmStart(lam0=x)],
    "separation": [lambda x: ino.TwoBumps(separation=x)],
    "level": [ino.TimeToReach, lambda x: ino.escape_time(config(), x)],
    "within": [ino.SteadyOverlap],
    "fraction": [lambda x: ino.SteadyOverlap(1.0, x)],
    "deviations": [ino.CautiousOverlap],
    "dt": [ino.Diffusion, lambda x: ino.FokkerPlanck(dt=x)],
    "end": [lambda x: ino.Interpolated.flat(0.5, x)],
    "rtol": [lambda x: ino.MethodOfLines(rtol=x)],
    "turn": [lambda x: data.Drift([3.0], p=5, turn=x)],
    "bars": [lambda x: plot.learning_curves(curves(), bars=x)],
    "total": [lambda x: plot.scree(np.ones(2), x)],
    "t": [lambda x: law().at(x)],
    "patience": [lambda x: ino.connect("localhost:1", 1, 0, patience=x)],
}
NO_NUMBERS = ["0.5", None, 1 + 1j, True, {"value": 0.5}, [0.3, 0.5], NAN]

# Where arrays of real numbers are wanted.
ARRAYS = {
    "ts": [
        lambda x: ino.Config(ts=x),
        lambda x: ino.Interpolated(x, [0.5, 1.0]),
        lambda x: ino.best_overlap(config(), x),
    ],
    "taus": [lambda x: ino.Interpolated([0.0, 1.0], x)],
    "times": [lambda x: ino.Switching([SPIKED()] * 2, x)],
    "omegas": [
        lambda x: ino.WorstCase(ino.FinalOverlap(), x),
        lambda x: ino.Average(ino.Area(), x),
    ],
    "omega": [lambda x: ino.oracle_overlap(x, 0.1, 1.0)],
    "q0": [lambda x: ino.oracle_overlap(1.0, x, 1.0)],
    "t": [
        lambda x: ino.offline_overlap(1.0, x),
        lambda x: ino.velocity(config(), 0.1, 1.0, x),
    ],
    "q": [lambda x: ino.velocity(config(), x, 1.0)],
    "lam": [lambda x: ino.velocity(config(), 0.1, x)],
    "x": [lambda x: ino.sample_step(ino.Oja(), x, np.ones(3))],
    "y": [lambda x: ino.sample_step(ino.Oja(), np.ones(3), x)],
    "tau": [lambda x: ino.best_lam0(x, 1.0)],
    "probability": [lambda x: escape().quantile(x)],
    "bins": [lambda x: ino.empirical_density(snapshots(), bins=x)],
    "atoms": [optional(lambda x: ino.empirical_density(snapshots(), atoms=x))],
    "a": [lambda x: ino.principal_angles(x, np.eye(2))],
    "b": [lambda x: ino.grassmann_distance(np.eye(2), x)],
    "components": [lambda x: ino.captured_variance(x, np.eye(2))],
    "samples": [
        lambda x: ino.captured_variance(np.eye(2), x),
        lambda x: ino.update_components(ino.Oja(), components(), x),
    ],
    "eigenvalues": [lambda x: data.Drift(x, p=5)],
    "variance": [lambda x: plot.scree(x, 1.0)],
    "times of a figure": [optional(lambda x: plot.density(law(), times=x))],
    "given": [optional(lambda x: plot.density(law(), given=x))],
}
NO_ARRAYS = ["0:10", None, [0.0, "1.0"], [0.0, 1j], [True, False], [[0.0], [1.0, 2.0]]]

# Where a whole number is wanted.
WHOLE = {
    "p": [
        lambda x: SPIKED(p=x),
        lambda x: data.Drift([3.0], p=x),
        lambda x: ino.init_components(ino.Oja(), 1, x),
    ],
    "trials": [
        lambda x: run(trials=x),
        lambda x: ino.sweep(config(), {"rule.tau": [0.5]}, trials=x, key=KEY),
    ],
    "max_steps": [
        lambda x: ino.mean_field(config(), max_steps=x),
        lambda x: ino.overlap_law(config(), max_steps=x),
        lambda x: ino.MethodOfLines(max_steps=x),
    ],
    "cells": [lambda x: ino.steady_density(config(), cells=x), ino.ClosedForm],
    "knots": [lambda x: ino.Interpolated.flat(0.5, 1.0, x)],
    "steps": [lambda x: ino.tune(config(), steps=x)],
    "order": [lambda x: law().moment(x), lambda x: law().moments(x)],
    "components": [
        lambda x: ino.stream_pca(ino.Oja(), np.ones((3, 4)), x),
        lambda x: ino.init_components(ino.Oja(), x, 4),
    ],
    "count": [
        lambda x: next(data.Drift([3.0], p=5).samples(x)),
        optional(
            lambda x: ino.update_components(ino.Oja(), components(), np.ones((3, 4)), x)
        ),
    ],
    "chunk": [lambda x: next(data.Drift([3.0], p=5).samples(3, x))],
    "sample": [lambda x: data.Drift([3.0], p=5).basis(x)],
    "seed": [lambda x: data.Drift([3.0], p=5, seed=x)],
    "step": [lambda x: ino.sample_step(ino.Oja(), np.ones(3), np.ones(3), x)],
    "index": [lambda x: plot.draw(axes(), curves()[0], "q", index=x)],
    "processes": [optional(lambda x: ino.connect("localhost:1", x, 0))],
}
NOT_WHOLE = ["20", None, 2.5, True, [20], -1, INF, np.ma.masked]

# Where an instance of a class is wanted.
INSTANCES = {
    "config": [
        ino.mean_field,
        ino.fluctuations,
        ino.overlap_law,
        ino.cold_start_law,
        ino.density,
        ino.steady_state,
        ino.steady_density,
        ino.tune,
        lambda x: ino.escape_time(x, 0.5),
        lambda x: ino.simulate(x, key=KEY),
        lambda x: ino.sweep(x, {"rule.tau": [0.5]}, key=KEY),
        lambda x: ino.sensitivity(x, "rule.tau"),
        lambda x: ino.best_overlap(x, [1.0]),
        lambda x: ino.effective_gain(x, path()),
        ino.best_rate,
        ino.predict,
        ino.keeps_sign,
        lambda x: ino.velocity(x, 0.1, 1.0),
        lambda x: ino.ClosedForm().solve(x),
        lambda x: ino.FinalOverlap().value(x),
        lambda x: ino.Area().bound(x),
        lambda x: ino.SteadyOverlap(1.0).value(x),
        lambda x: ino.CautiousOverlap().bound(x),
        lambda x: ino.WorstCase(ino.Area(), [1.0]).shortfalls(x),
    ],
    "rule": [
        ino.critical_snr,
        lambda x: ino.Config(rule=x),
        lambda x: ino.stream_pca(x, np.ones((3, 4)), 1),
        lambda x: ino.sample_step(x, np.ones(3), np.ones(3)),
        lambda x: ino.init_components(x, 1, 4),
        lambda x: ino.update_components(x, components(), np.ones((3, 4))),
    ],
    "model": [lambda x: ino.Config(model=x)],
    "start": [lambda x: ino.Config(start=x)],
    "spike": [lambda x: SPIKED(spike=x), lambda x: ino.WarmStart().moments(x)],
    "models": [lambda x: ino.Switching([SPIKED(), x], [1.0])],
    "engine": [
        optional(lambda x: run(engine=x)),
        optional(lambda x: swept(engine=x)),
    ],
    "solver": [
        lambda x: ino.MethodOfLines(solver=x),
        optional(lambda x: ino.density(config(), solver=x)),
        optional(lambda x: ino.mean_field(config(), solver=x)),
    ],
    "adjoint": [optional(lambda x: ino.fluctuations(config(), adjoint=x))],
    "objective": [
        optional(lambda x: ino.tune(config(), objective=x)),
        lambda x: ino.WorstCase(x, [1.0]),
    ],
    "optimiser": [optional(lambda x: ino.tune(config(), optimiser=x))],
    "path": [lambda x: ino.effective_gain(config(), x)],
    "runs": [
        ino.empirical_density,
        optional(lambda x: plot.tuning(config(), config(), runs=x)),
    ],
    "state": [
        optional(lambda x: ino.stream_pca(ino.Oja(), np.ones((3, 4)), 1, state=x)),
        lambda x: ino.update_components(ino.Oja(), x, np.ones((3, 4))),
    ],
    "executor": [optional(lambda x: swept(executor=x))],
    "before": [lambda x: plot.tuning(x, config())],
    "after": [lambda x: plot.tuning(config(), x)],
    "theory": [plot.density],
    "empirical": [optional(lambda x: plot.density(law(), x))],
    "figure": [lambda x: plot.save(x, "figure.png")],
    "ax": [
        lambda x: plot.draw(x, curves()[0], "q"),
        lambda x: plot.offline_limit(x, 1.0, np.ones(2)),
    ],
    "curve": [lambda x: plot.draw(axes(), x, "q")],
    "by_name": [plot.sensitivities],
    "dataset": [plot.sweep],
    "key": [
        lambda x: ino.simulate(config(), key=x),
        lambda x: swept(key=x),
        lambda x: ino.Uniform().sample(x, 5),
    ],
}
NO_INSTANCES = ["x", None, 3, {}, object, SPIKED]

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
    "several lam0": (
        lambda: config(start=ino.WarmStart(0.3, [1.0, 2.0])),
        r"lam0 of shape \(2,\) .* one number",
    ),
    "spike": (lambda: SPIKED(spike="uniform"), r"spike = 'uniform' .* AbstractSpike"),
    "no schedule": (
        lambda: config(Bare("fast")),
        r"tau = 'fast' .* one number",
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
    "velocity overlap": (lambda: ino.velocity(config(), 1.1, 1.0), r"q = 1.1 .* lies in"),
    "velocity norm": (lambda: ino.velocity(config(), 0.1, 0.0), r"lam = 0.0 .* positive"),
    "velocity time": (
        lambda: ino.velocity(config(), 0.1, 1.0, -1.0),
        r"t = -1.0 .* start at 0",
    ),
    "velocity shapes": (
        lambda: ino.velocity(config(), [0.1, 0.2], np.ones(3)),
        r"q, lam, t of shapes \(2,\), \(3,\), \(\) are not allowed",
    ),
    "predict bars": (
        lambda: ino.predict(config(), error_bars="no"),
        r"error_bars = 'no' .* True or False",
    ),
    "more than the samples": (
        lambda: ino.update_components(ino.Oja(), components(), np.ones((3, 4)), 4),
        r"count = 4 .* of the 3 samples",
    ),
    "dtype of components": (
        lambda: ino.init_components(ino.Oja(), 1, 4, "int32"),
        r"dtype = 'int32' .* float32 or float64",
    ),
    "oracle omega": (lambda: ino.oracle_overlap(-1.0, 0.1, 1.0), r"omega = -1.0"),
    "oracle q0": (lambda: ino.oracle_overlap(1.0, 2.0, 1.0), r"q0 = 2.0 .* lies in"),
    "offline t": (lambda: ino.offline_overlap(1.0, -1.0), r"t = -1.0 .* start at 0"),
    "best lam0": (lambda: ino.best_lam0(0.5, 0.0), r"omega = 0.0 .* signal"),
    "nodes": (lambda: ino.Uniform().quadrature(0), r"nodes = 0 .* at least 1"),
    "taus nan": (lambda: ino.Interpolated([0, 1], [NAN, 1]), r"taus = .*nan.* finite"),
    "tau class": (lambda: ino.InoPCA(ino.Harmonic), r"tau = .*Harmonic.* number"),
    "tau rule": (lambda: ino.InoPCA(ino.Oja(0.5)), r"tau = Oja.* number"),
    "tau huge": (lambda: ino.InoPCA(10**400), r"tau = about 10\^400 .* number"),
    "tau beyond": (lambda: ino.InoPCA(1e39), r"tau = 1e\+39 .* float32"),
    "tau masked": (lambda: ino.InoPCA(np.ma.masked), r"tau = masked .* number"),
    "tau array": (lambda: ino.InoPCA(np.array("0.5")), r"tau = .*0.5.* number"),
    "tau jax bool": (lambda: ino.InoPCA(jnp.array(True)), r"tau = .*True.* number"),
    "tau date": (lambda: ino.InoPCA(np.datetime64("2020")), r"tau = .*2020.* number"),
    "flat tau": (lambda: ino.Interpolated.flat("0.5", 1.0), r"tau = '0.5' .* number"),
    "flat tau negative": (lambda: ino.Interpolated.flat(-1.0, 1.0), r"tau = -1.0 .* pos"),
    "rule class": (lambda: ino.Config(rule=ino.InoPCA), r"rule = .*InoPCA.* instance of"),
    "rule of a config": (lambda: ino.critical_snr(config()), r"rule = Config.* AbstractR"),
    "config of a rule": (lambda: ino.steady_state(ino.Oja()), r"config = Oja.* Config"),
    "ts number": (lambda: ino.Config(ts=5.0), r"ts of shape \(\) .* one axis"),
    "ts object": (lambda: ino.Config(ts=config()), r"ts = Config.* numbers"),
    "switch no list": (
        lambda: ino.Switching(SPIKED(), [1.0]),
        r"models = SpikedModel.* list of SpikedModel",
    ),
    "switch none": (lambda: ino.Switching([], [1.0]), r"times = \[1.\] .* one fewer"),
    "switch number": (lambda: ino.Switching([SPIKED()] * 2, 1.0), r"times .*\(\).* one ax"),
    "dtype array": (lambda: ino.Chain(dtype=jnp.ones(3)), r"dtype = .* float32 or float64"),
    "dtype dict": (lambda: ino.Stream(dtype={}), r"dtype = \{\} .* float32 or float64"),
    "dtype complex": (lambda: ino.Diffusion(dtype=complex), r"dtype = .*complex.* float32"),
    "dtype bool": (lambda: ino.Chain(dtype=True), r"dtype = True .* float32 or float64"),
    "chain chunk text": (lambda: ino.Chain(chunk="8"), r"chunk = '8' .* whole number"),
    "stream chunk list": (lambda: ino.Stream(chunk=[4]), r"chunk = \[4\] .* even number"),
    "stream block": (lambda: ino.Stream(block=True), r"block = True .* even number"),
    "stream block text": (lambda: ino.Stream(block="1"), r"block = '1' .* even number"),
    "snapshots text": (
        lambda: ino.Chain(snapshots="no"),
        r"snapshots = 'no' .* True or Fa",
    ),
    "snapshots list": (
        lambda: ino.Stream(snapshots=[]),
        r"snapshots = \[\] .* True or Fal",
    ),
    "trials numpy": (lambda: run(trials=np.True_), r"trials = .*True.* at least 1"),
    "engine class": (lambda: run(engine=ino.Chain), r"engine = .*Chain.* instance of"),
    "keys": (
        lambda: ino.simulate(config(), key=jr.split(KEY, 2)),
        r"key = .* pass one key",
    ),
    "key numpy": (
        lambda: ino.simulate(config(), key=np.zeros(2, np.uint32)),
        r"key = .* pass one key",
    ),
    "solver class": (
        lambda: ino.mean_field(config(), solver=diffrax.Tsit5),
        r"solver = .*Tsit5.* instance of AbstractSolver",
    ),
    "solver of densities": (
        lambda: ino.mean_field(config(), solver=ino.ClosedForm()),
        r"solver = ClosedForm.* instance of AbstractSolver",
    ),
    "adjoint class": (
        lambda: ino.mean_field(config(), adjoint=diffrax.ForwardMode),
        r"adjoint = .*ForwardMode.* instance of AbstractAdjoint",
    ),
    "rtol": (lambda: ino.mean_field(config(), rtol=0.0), r"rtol = 0.0 .* positive"),
    "atol": (lambda: ino.fluctuations(config(), atol="1e-6"), r"atol = '1e-6' .* number"),
    "max_steps zero": (lambda: ino.mean_field(config(), max_steps=0), r"max_steps = 0 "),
    "domain text": (lambda: ino.FokkerPlanck(domain="ab"), r"domain = 'ab' .* two finite"),
    "domain number": (lambda: ino.ClosedForm(domain=3.0), r"domain = 3.0 .* two finite"),
    "domain texts": (
        lambda: ino.MethodOfLines(domain=("-5", "5")),
        r"domain = \('-5', '5'\) .* two finite",
    ),
    "level above": (lambda: ino.escape_time(config(), 1.5), r"level = 1.5 .* level < 1"),
    "probability above": (
        lambda: escape().quantile([0.5, 1.5]),
        r"probability = \[0.5, 1.5\] .* 0 to 1",
    ),
    "probability below": (lambda: escape().quantile(-0.1), r"probability = -0.1 .* 0 to 1"),
    "probability nan": (lambda: escape().quantile(NAN), r"probability = nan .* 0 to 1"),
    "exceeds": (lambda: overlaps().exceeds("0.5"), r"level = '0.5' .* number"),
    "exceeds several": (lambda: overlaps().exceeds([0.1, 0.2]), r"level = \[0.1, 0.2\] "),
    "xi text": (lambda: law().conditional("a"), r"xi = 'a' .* number"),
    "xi none": (lambda: law().conditional(None), r"xi = None .* number"),
    "xi several": (lambda: law().conditional([0.1, 0.2]), r"xi = \[0.1, 0.2\] .* number"),
    "xi nan": (lambda: law().conditional(NAN), r"xi = nan .* number"),
    "trials for a gain": (
        lambda: ino.effective_gain(config(), snapshots()),
        r"path .*\(2, 1\).*\(times,\)",
    ),
    "name": (lambda: ino.sensitivity(config(), "rule.tua"), r"name = 'rule.tua' .* mean"),
    "name none": (lambda: ino.sensitivity(config(), None), r"name = None .* 'rule.tau'"),
    "name list": (
        lambda: ino.sensitivity(config(), ["rule.tau"]),
        r"name = \['rule.tau'\]",
    ),
    "name several": (
        lambda: ino.sensitivity(config(), "start"),
        r"name = 'start' .* more than one .* pass one of",
    ),
    "name path": (lambda: ino.sensitivity(config(), "ts"), r"name = 'ts' of shape"),
    "over": (lambda: ino.tune(config(), over="rule.tua"), r"over = 'rule.tua' .* mean"),
    "over number": (lambda: ino.tune(config(), over=3), r"over = 3 .* 'rule.tau'"),
    "over numbers": (lambda: ino.tune(config(), over=[3]), r"over = \[3\] .* 'rule.tau'"),
    "over dict": (
        lambda: ino.tune(config(), over={"rule.tau": 1}),
        r"over = \{.* 'rule.ta",
    ),
    "over nothing": (lambda: ino.tune(config(), over=()), r"over = \(\) .* at least one"),
    "over twice": (
        lambda: ino.tune(config(), over=["rule.tau", "rule.tau"]),
        r"over = \['rule.tau', 'rule.tau'\] .* same number",
    ),
    "over nested": (
        lambda: ino.tune(config(), over=("rule.tau", "rule.tau.value")),
        r"over = \('rule.tau', 'rule.tau.value'\) .* same number",
    ),
    "over problem": (
        lambda: ino.tune(config(), over="model.omega"),
        r"over = 'model.omega'",
    ),
    "objective class": (
        lambda: ino.tune(config(), objective=ino.Area),
        r"objective = .*Area",
    ),
    "optimiser maker": (
        lambda: ino.tune(config(), optimiser=optax.adam),
        r"optimiser = .*ad",
    ),
    "omegas number": (
        lambda: ino.WorstCase(ino.Area(), 1.0),
        r"omegas of shape \(\) .* axis",
    ),
    "grid": (lambda: swept(3), r"grid = 3 .* dict"),
    "grid name": (lambda: swept({3: [0.5]}), r"grid names 3.* tuple of names"),
    "grid value": (lambda: swept({"rule.tau": ["0.5"]}), r"grid.*'rule.tau'.* '0.5'"),
    "grid complex": (lambda: swept({"rule.tau": [1j]}), r"grid.*'rule.tau'.* 1j"),
    "store": (lambda: swept(store=3), r"store = 3 .* path"),
    "store dict": (lambda: swept(store={}), r"store = \{\} .* path"),
    "store empty": (lambda: swept(store=""), r"store = '' .* path"),
    "observables number": (lambda: swept(observables=3), r"observables = 3 .* mean"),
    "observables none": (lambda: swept(observables=None), r"observables = None .* mean"),
    "observables name": (lambda: swept(observables=["mode"]), r"observables = .*'mode'"),
    "theory text": (lambda: swept(theory="yes"), r"theory = 'yes' .* 'bars'"),
    "theory array": (lambda: swept(theory=np.ones(2)), r"theory = .* 'bars'"),
    "theory none": (lambda: swept(theory=None), r"theory = None .* 'bars'"),
    "executor class": (
        lambda: swept(executor=ThreadPoolExecutor),
        r"executor = .*ThreadPoolExecutor.* instance of Executor",
    ),
    "sweep path": (lambda: ino.open_sweep(3), r"path = 3 .* path"),
    "sweep path none": (lambda: ino.open_sweep(None), r"path = None .* path"),
    "sweep path missing": (
        lambda: ino.open_sweep("no.zarr"),
        r"path = no.zarr .* not exist",
    ),
    "coordinator": (lambda: ino.connect(3, 1, 0), r"coordinator = 3 .* 'host:port'"),
    "coordinator port": (
        lambda: ino.connect("host", 1, 0),
        r"coordinator = 'host' .*host:",
    ),
    "coordinator digit": (
        lambda: ino.connect("h:²", 1, 0),
        r"coordinator = 'h:²' .*host:",
    ),
    "process": (lambda: ino.connect("localhost:1", 2, "0"), r"process = '0' .* from 0"),
    "process above": (lambda: ino.connect("localhost:1", 2, 2), r"process = 2 .* from 0"),
    "patience negative": (
        lambda: ino.connect("localhost:1", 1, 0, patience=-1.0),
        r"patience = -1.0 .* seconds",
    ),
    "samples none": (lambda: streamed(None), r"samples = None .* shape \(samples, p\)"),
    "samples text": (lambda: streamed("abc"), r"samples = 'abc' .* shape \(samples, p\)"),
    "samples number": (lambda: streamed(3), r"samples = 3 .* shape \(samples, p\)"),
    "samples dict": (lambda: streamed({"a": 1}), r"samples = \{'a': 1\} .* \(samples, p\)"),
    "samples ragged": (lambda: streamed([[[1.0], [1.0, 2.0]]]), r"samples .* numbers"),
    "samples complex": (lambda: streamed(np.ones((2, 3)) * 1j), r"samples of type complex"),
    "center": (lambda: streamed(np.ones((2, 3)), center="no"), r"center = 'no' .* True or"),
    "angles shapes": (
        lambda: ino.principal_angles(np.eye(2), np.ones((3, 2))),
        r"shapes \(2, 2\) and \(3, 2\)",
    ),
    "angles nan": (
        lambda: ino.principal_angles(NAN * np.eye(2), np.eye(2)),
        r"a = .*nan.*",
    ),
    "captured shapes": (
        lambda: ino.captured_variance(np.eye(2), np.ones((5, 3))),
        r"shape \(2, 2\).*shape \(5, 3\)",
    ),
    "captured row": (
        lambda: ino.captured_variance(np.ones(3), np.ones((5, 3))),
        r"components of shape \(3,\)",
    ),
    "no snapshots": (lambda: ino.empirical_density(path()), r"runs has no snapshots"),
    "runs of theory": (
        lambda: ino.empirical_density(snapshots(trials=None)),
        r"runs .* \(trials, times\)",
    ),
    "bins zero": (lambda: ino.empirical_density(snapshots(), bins=0), r"bins = 0 .* edges"),
    "bins fraction": (lambda: ino.empirical_density(snapshots(), bins=2.5), r"bins = 2.5 "),
    "bins edges": (
        lambda: ino.empirical_density(snapshots(), bins=[1.0, 0.0]),
        r"bins = \[1.0, 0.0\] .* increase",
    ),
    "bins grid": (
        lambda: ino.empirical_density(snapshots(), bins=np.ones((2, 2))),
        r"bins = .* increase",
    ),
    "groups text": (
        lambda: ino.empirical_density(snapshots(), groups="3"),
        r"groups = '3' .* edges",
    ),
    "groups and atoms": (
        lambda: ino.empirical_density(snapshots(), groups=2, atoms=[0.0]),
        r"groups = 2 and atoms = \[0.0\]",
    ),
    "atoms none of them": (
        lambda: ino.empirical_density(snapshots(), atoms=[]),
        r"atoms = \[\] .* point masses",
    ),
    "rescaled": (
        lambda: ino.empirical_density(snapshots(), rescaled="no"),
        r"rescaled = 'no' .* True or False",
    ),
    "trajectory shapes": (
        lambda: remade(path(), q=jnp.zeros(3)),
        r"q of shape \(3,\) .* 1 times",
    ),
    "trajectory text": (
        lambda: remade(path(), q="q"),
        r"q = 'q' .* array",
    ),
    "trajectory norm": (
        lambda: remade(path(), lam=None),
        r"lam = None .* array",
    ),
    "density shapes": (
        lambda: remade(law(), pdf=jnp.zeros((1, 3, 4))),
        r"pdf of shape \(1, 3, 4\) .* \(times, nodes, cells\)",
    ),
    "curves trajectory": (
        lambda: plot.learning_curves(path()),
        r"curves = Traj.* of Curve",
    ),
    "curves of runs": (
        lambda: plot.learning_curves([path()]),
        r"curves\[0\] = Traj.* Curve",
    ),
    "curves one": (lambda: plot.learning_curves(curves()[0]), r"curves = .* list of Curve"),
    "curves none": (lambda: plot.learning_curves(None), r"curves = None .* list of Curve"),
    "curves empty": (lambda: plot.learning_curves([]), r"curves = \[\] .* at least one"),
    "curve theory": (
        lambda: plot.learning_curves([plot.Curve("a", config())]),
        r"theory = Config.*Trajectory",
    ),
    "curve runs": (
        lambda: plot.learning_curves([plot.Curve("a", runs=path())]),
        r"runs .* \(trials, times\)",
    ),
    "quantities": (
        lambda: plot.learning_curves(curves(), quantities=("q", "mu")),
        r"quantities = \('q', 'mu'\) .* 'lam'",
    ),
    "quantities none": (
        lambda: plot.learning_curves(curves(), quantities=None),
        r"quantities = None .* 'lam'",
    ),
    "quantity": (lambda: plot.draw(axes(), curves()[0], "x"), r"quantity = 'x' .* 'lam'"),
    "figure path": (lambda: plot.save(figure(), 3), r"paths = 3 .* path"),
    "figure path none": (lambda: plot.save(figure(), None), r"paths = None .* path"),
    "figure paths": (lambda: plot.save(figure(), "a.png", None), r"paths = None .* path"),
    "figure format": (lambda: plot.save(figure(), "a.png", "a.xyz"), r"a.xyz.* png"),
    "figure no format": (lambda: plot.save(figure(), "a"), r"paths = 'a' .* suffix .*png"),
    "shapes": (
        lambda: ino.oracle_overlap(np.ones(2), np.ones(3) / 2, 1.0),
        r"omega, q0, t of shapes \(2,\), \(3,\), \(\) are not allowed",
    ),
    "trials huge": (lambda: run(trials=10**400), r"trials = about 10\^400 .* at most 2147"),
    "nodes huge": (lambda: ino.Uniform().quadrature(10**400), r"nodes = about 10\^400 "),
    "names huge": (
        lambda: ino.tune(config(), over=[10**5000]),
        r"over = a list of huge .* ",
    ),
    "observables array": (
        lambda: swept(observables=np.ones((2, 2))),
        r"observables = .* name some of mean",
    ),
    "figure no paths": (lambda: plot.save(figure()), r"paths = \(\) .* at least one"),
    "figure rescaled": (
        lambda: plot.density(law(), rescaled="no"),
        r"rescaled = 'no' .* Tr",
    ),
    "sensitivity run": (
        lambda: plot.sensitivities({"rule.tau": config()}),
        r"by_name\['rule.tau'\] = Config.*Trajectory",
    ),
    "scree grid": (lambda: plot.scree(np.ones((2, 2)), 1.0), r"variance of shape \(2, 2\)"),
    "scree total": (lambda: plot.scree(np.ones(2), 0.0), r"total = 0.0 .* positive"),
    "faces": (lambda: data.faces(3), r"path = 3 .* path"),
    "jumps": (lambda: data.Drift([3.0], p=5, jumps=3), r"jumps = 3 .* whole"),
    "jumps text": (lambda: data.Drift([3.0], p=5, jumps=["2"]), r"jumps = .*'2'.* whole"),
    "eigenvalues number": (
        lambda: data.Drift(3.0, p=5),
        r"eigenvalues of shape \(\) .* axis",
    ),
    "spike p": (lambda: ino.Uniform().sample(KEY, "5"), r"p = '5' .* whole number"),
}


class Bare(ino.AbstractRule):
    tau: float
    projects = False

    def rates(self, observables, tau):
        return ino.Rates(gain=tau, decay=tau)


def named(table, wrong, few=3):
    """A bad call for each maker and wrong value, and what names both: the first maker of a
    name meets all of the values, others `few`."""
    cases = {}
    for name, makers in table.items():
        argument = name.split()[0]
        for i, make in enumerate(makers):
            for value in wrong if i == 0 else wrong[:few]:
                if value is None and make in OPTIONAL:
                    continue
                message = rf"{argument}\b.*{re.escape(repr(value))}.*: "
                case = f"{name} {i} {value!r}"
                cases[case] = (lambda make=make, value=value: make(value), message)
    return cases


def path():
    return ino.Trajectory(np.zeros(1), jnp.zeros(1), jnp.ones(1))


def components():
    return ino.init_components(ino.Oja(), 1, 4)


def snapshots(trials=2):
    head = () if trials is None else (trials,)
    ones, vectors = jnp.ones((*head, 1)), jnp.ones((*head, 1, 4))
    return ino.Snapshots(np.zeros(1), ones, ones, vectors, vectors)


def law():
    flat = jnp.full((1, 2, 4), 0.25)
    nodes = jnp.array([-1.0, 1.0])
    return ino.Density(
        np.ones(1), jnp.arange(4.0), nodes, nodes**2 / 2, flat, jnp.array(True)
    )


def remade(result, **fields):
    """As if it were made with other fields. The checks of types that run in the tests would
    refuse those before, in words of their own."""
    new = copy.copy(result)
    vars(new).update(fields)
    new.__check_init__()


def escape():
    return ino.EscapeTime(jnp.arange(3.0), jnp.array([0.0, 0.5, 1.0]))


def overlaps():
    one = jnp.ones(1)
    near = ino.Prediction(np.zeros(1), *[one] * 7)
    paths = ino.Prediction(near.ts, *[one[None]] * 7)
    return ino.OverlapLaw(near.ts, near, one, paths, jnp.zeros((1, 1)))


def curves():
    return [plot.Curve("theory", path())]


def figure():
    return plt.figure()


def axes():
    return figure().add_subplot()


def swept(grid=None, *, key=KEY, **options):
    grid = {"rule.tau": [0.5]} if grid is None else grid
    return ino.sweep(config(), grid, key=key, **options)


def streamed(samples, **options):
    return ino.stream_pca(ino.Oja(0.5), samples, 1, **options)


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


# One number for each spike or component is allowed.
ONE_FOR_EACH = {f"{name} 0 [0.3, 0.5]" for name in ("omega", "q0", "lam0")}

ALL_BAD = (
    BAD
    | {
        case: bad
        for case, bad in named(NUMBERS, NO_NUMBERS).items()
        if case not in ONE_FOR_EACH
    }
    | named(ARRAYS, NO_ARRAYS)
    | named(WHOLE, NOT_WHOLE)
    | named(INSTANCES, NO_INSTANCES)
)


@pytest.mark.parametrize("name", ALL_BAD)
def test_bad_input_is_refused_by_name_value_and_remedy(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    make, message = ALL_BAD[name]
    try:
        with pytest.raises(ValueError, match=r"(?s)" + message):
            make()
    finally:
        plt.close("all")
    assert not list(tmp_path.iterdir())


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
