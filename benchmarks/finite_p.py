"""Compares the theory at finite p, and the engine `Diffusion`, with the chain.

python -m benchmarks.finite_p [--quick]

Predicted standard deviations and escape times are compared for accuracy, the diffusion for
speed.
"""

import sys

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jax.flatten_util import ravel_pytree

import inopca_jax as ino
from inopca_jax._config import rule_of_one
from inopca_jax._numerics import cast
from inopca_jax._order_parameters.increments import drift, sample_noise
from inopca_jax._order_parameters.initial import start_law

from .report import report, seconds

ALGORITHMS = {
    "InoPCA": lambda p: ino.InoPCA(0.5),
    "Cubic": lambda p: ino.Cubic(0.5),
    "Oja": lambda p: ino.Oja(0.5),
    "Krasulina": lambda p: ino.Krasulina(0.3),
    "AdaptiveInoPCA": lambda p: ino.AdaptiveInoPCA(),
    "AdaOja": lambda p: ino.AdaOja(float(p)),
    "CCIPCA": lambda p: ino.CCIPCA(t0=2.0),
}


def make_config(p: int, start: ino.AbstractStart, ts, rule=None) -> ino.Config:
    rule = ino.InoPCA(0.5) if rule is None else rule
    return ino.Config(rule, ino.SpikedModel(p=p), start, np.asarray(ts, float))


def compare_deviations(name: str, p: int, trials: int, ts) -> None:
    """Reports the largest relative error of the predicted standard deviations."""
    config = make_config(p, ino.WarmStart(0.3), ts, ALGORITHMS[name](p))
    theory = ino.fluctuations(config)
    std = ino.simulate(config, key=jr.key(1), trials=trials).std()
    pairs = [(theory.q_std, std.q)]
    if not config.rule.projects:
        pairs.append((theory.lam_std, std.lam))
    errors = [float(np.max(np.abs(np.asarray(a) / np.asarray(b) - 1))) for a, b in pairs]
    standard_error = 1 / np.sqrt(2 * trials)
    report(
        f"predicted sd of q, lam, {name}, largest relative error, vs 5 % and 3 s.e.",
        ours=max(errors),
        baseline=0.05 + 3 * standard_error,
        unit="1",
        p=p,
        trials=trials,
        dtype="float64",
        errors=[round(e, 4) for e in errors],
    )
    assert max(errors) < 0.05 + 3 * standard_error, (name, p, errors)


def compare_escapes(name: str, p: int, trials: int, end: float, level: float) -> None:
    """Reports the errors of the predicted quantiles of the escape time.

    The standard errors of the chain's quantiles are those of the bootstrap.
    """
    config = make_config(p, ino.ColdStart(), np.linspace(0, end, 1001), ALGORITHMS[name](p))
    is_past = np.abs(ino.simulate(config, key=jr.key(1), trials=trials).q) >= level
    times = np.where(is_past.any(1), config.ts[np.argmax(is_past, 1)], np.inf)
    probabilities = np.array([0.1, 0.5, 0.9])
    quantiles = np.quantile(times, probabilities)
    random = np.random.default_rng(0)
    resampled = [
        np.quantile(random.choice(times, trials), probabilities) for _ in range(200)
    ]
    predicted = np.asarray(ino.escape_time(config, level).quantile(probabilities))
    errors = predicted / quantiles - 1
    standard_errors = np.std(resampled, axis=0) / quantiles
    tolerance = 0.03 + 3 * standard_errors
    report(
        f"escape past {level}, {name}, quantiles 10, 50, 90 %, vs 3 % and 3 s.e.",
        ours=float(np.max(np.abs(errors) / tolerance)),
        baseline=1.0,
        unit="1",
        p=p,
        trials=trials,
        dtype="float64",
        errors=[round(float(e), 4) for e in errors],
        standard_errors=[round(float(e), 4) for e in standard_errors],
    )
    assert np.all(np.abs(errors) < tolerance)


def diffrax_euler(config: ino.Config, trials: int, dt: float):
    """Returns a function that solves the same SDE by diffrax's Euler-Maruyama method, in
    the sense of Ito."""
    config = cast(config, jnp.result_type(float))
    rule, model, end = rule_of_one(config), config.model.phases()[0], float(config.ts[-1])
    initial, unravel = ravel_pytree(start_law(rule, model, config.start).mean)

    def velocity(t, state, _):
        return ravel_pytree(drift(rule, model, jnp.asarray(t), unravel(state)))[0]

    def scatter(t, state, _):
        noise = sample_noise(rule, model, jnp.asarray(t), unravel(state))
        return (noise.changes * jnp.sqrt(noise.weights)[:, None]).T / jnp.sqrt(model.p)

    @eqx.filter_jit
    def run(key):
        def one_trial(key):
            shape = jax.eval_shape(lambda: scatter(0.0, initial, None)[0])
            path = diffrax.VirtualBrownianTree(0.0, end, dt / 2, shape, key)
            terms = diffrax.MultiTerm(
                diffrax.ODETerm(velocity),  # pyright: ignore
                diffrax.ControlTerm(scatter, path),  # pyright: ignore
            )
            solution = diffrax.diffeqsolve(
                terms, diffrax.Euler(), 0.0, end, dt, initial, max_steps=None
            )
            assert solution.ys is not None
            return unravel(solution.ys[0]).q()

        return jax.vmap(one_trial)(jr.split(key, trials))

    return run


def compare_speed(p_chain: int, trials: int, end: float, repeats: int) -> None:
    """Times `Diffusion` beside the chain, and beside a solver of diffrax's."""
    diffusion = ino.Diffusion()
    large = make_config(10**9, ino.ColdStart(), np.linspace(0, end, 101))
    small = make_config(p_chain, ino.ColdStart(), np.linspace(0, end, 101))

    def run_diffusion(i, config=large, trials=trials):
        return ino.simulate(config, key=jr.key(i), trials=trials, engine=diffusion).q

    def run_chain(i):
        return ino.simulate(small, key=jr.key(i), trials=trials).q

    ours, compiling = seconds(run_diffusion, repeats)
    baseline, _ = seconds(run_chain, repeats)
    facts = dict(unit="s", trials=trials, dtype="float32 (chain: float64)")
    name = f"Diffusion, p = 1e9, t = {end:g}, vs chain, p = {p_chain:,}"
    report(
        name,
        ours=ours,
        baseline=baseline,
        p=10**9,
        compile_seconds=round(compiling, 2),
        **facts,
    )

    # The step of Diffusion is 50 times as long as Euler's, and its error is smaller.
    warm, trials = make_config(10**9, ino.WarmStart(0.3), [4.0]), min(trials, 64)
    facts["trials"] = trials
    with jax.enable_x64(True):
        mean, euler = float(ino.mean_field(warm).q[0]), diffrax_euler(warm, trials, 0.002)
        baseline, _ = seconds(lambda i: euler(jr.key(i)), repeats)
        euler_error = float(jnp.mean(euler(jr.key(0)))) - mean

    ours, _ = seconds(lambda i: run_diffusion(i, warm, trials), repeats)
    our_error = float(np.mean(np.asarray(run_diffusion(0, warm, trials), float))) - mean
    report(
        "Diffusion, dt = .1, vs diffrax's Euler of the same SDE, dt = .002",
        ours=ours,
        baseline=baseline,
        p=10**9,
        errors=[float(f"{e:.2g}") for e in (our_error, euler_error)],
        **facts,
    )
    assert abs(our_error) < abs(euler_error)


def main(quick: bool = False) -> None:
    if quick:
        compare_deviations("Oja", 2000, 1000, [1.0])
        compare_speed(1000, 64, 2.0, 1)
        return
    for name in ALGORITHMS:
        compare_deviations(name, 2000, 4000, [1.0, 3.0, 8.0, 20.0])
        compare_deviations(name, 20_000, 4000, [1.0, 2.0, 4.0, 8.0])
    for name in ("InoPCA", "Oja", "CCIPCA"):
        compare_escapes(name, 10_000, 4000, 40.0, 0.4)
    compare_speed(10_000, 1000, 50.0, 2)


if __name__ == "__main__":
    main(quick="--quick" in sys.argv[1:])
