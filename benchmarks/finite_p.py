"""Fluctuations, escapes and the diffusion against the chain: how right, and how fast.

python -m benchmarks.finite_p [--quick]
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
from inopca_jax._order_parameters.increments import drift, noise_of
from inopca_jax._order_parameters.initial import start

from .report import report, seconds

SEVEN = {
    "InoPCA": lambda p: ino.InoPCA(0.5),
    "Cubic": lambda p: ino.Cubic(0.5),
    "Oja": lambda p: ino.Oja(0.5),
    "Krasulina": lambda p: ino.Krasulina(0.3),
    "AdaptiveInoPCA": lambda p: ino.AdaptiveInoPCA(),
    "AdaOja": lambda p: ino.AdaOja(float(p)),
    "CCIPCA": lambda p: ino.CCIPCA(t0=2.0),
}


def study(p: int, start: ino.AbstractStart, ts, rule=None) -> ino.Config:
    rule = ino.InoPCA(0.5) if rule is None else rule
    return ino.Config(rule, ino.SpikedModel(p=p), start, np.asarray(ts, float))


def bars(name: str, p: int, trials: int, ts) -> None:
    """The largest relative error of the predicted standard deviations, over times."""
    config = study(p, ino.WarmStart(0.3), ts, SEVEN[name](p))
    theory = ino.fluctuations(config)
    seen = ino.simulate(config, key=jr.key(1), trials=trials).std()
    pairs = [(theory.q_std, seen.q)]
    if not config.rule.projects:
        pairs.append((theory.lam_std, seen.lam))
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


def escapes(name: str, p: int, trials: int, end: float, level: float) -> None:
    """Quantiles of the escape time against the chain's, with their bootstrap errors."""
    config = study(p, ino.ColdStart(), np.linspace(0, end, 1001), SEVEN[name](p))
    passed = np.abs(ino.simulate(config, key=jr.key(1), trials=trials).q) >= level
    when = np.where(passed.any(1), config.ts[np.argmax(passed, 1)], np.inf)
    probabilities = np.array([0.1, 0.5, 0.9])
    exact = np.quantile(when, probabilities)
    random = np.random.default_rng(0)
    again = [np.quantile(random.choice(when, trials), probabilities) for _ in range(200)]
    ours = np.asarray(ino.escape_time(config, level).quantile(probabilities))
    errors, noise = ours / exact - 1, np.std(again, axis=0) / exact
    report(
        f"escape past {level}, {name}, quantiles 10, 50, 90 %, vs 3 % and 3 s.e.",
        ours=float(np.max(np.abs(errors) / (0.03 + 3 * noise))),
        baseline=1.0,
        unit="1",
        p=p,
        trials=trials,
        dtype="float64",
        errors=[round(float(e), 4) for e in errors],
        standard_errors=[round(float(e), 4) for e in noise],
    )
    assert np.all(np.abs(errors) < 0.03 + 3 * noise)


def by_diffrax(config: ino.Config, trials: int, dt: float):
    """The same SDE, by diffrax's Euler-Maruyama in Ito's sense."""
    config = jax.tree.map(
        lambda a: jnp.asarray(a, float) if eqx.is_inexact_array(a) else a, config
    )
    rule, model, end = config.rule, config.model.phases()[0], float(config.ts[-1])
    first, unravel = ravel_pytree(start(rule, model, config.start).centre)

    def velocity(t, state, _):
        return ravel_pytree(drift(rule, model, jnp.asarray(t), unravel(state)))[0]

    def scatter(t, state, _):
        noise = noise_of(rule, model, jnp.asarray(t), unravel(state))
        return (noise.kinds * jnp.sqrt(noise.weights)[:, None]).T / model.p**0.5

    @eqx.filter_jit
    def run(key):
        def one(key):
            shape = jax.eval_shape(lambda: scatter(0.0, first, None)[0])
            path = diffrax.VirtualBrownianTree(0.0, end, dt / 2, shape, key)
            terms = diffrax.MultiTerm(
                diffrax.ODETerm(velocity),  # pyright: ignore
                diffrax.ControlTerm(scatter, path),  # pyright: ignore
            )
            solution = diffrax.diffeqsolve(
                terms, diffrax.Euler(), 0.0, end, dt, first, max_steps=None
            )
            assert solution.ys is not None
            return unravel(solution.ys[0]).q()

        return jax.vmap(one)(jr.split(key, trials))

    return run


def races(p_small: int, trials: int, end: float, repeats: int) -> None:
    diffusion = ino.Diffusion()
    large = study(10**9, ino.ColdStart(), np.linspace(0, end, 101))
    small = study(p_small, ino.ColdStart(), np.linspace(0, end, 101))

    def walk(i):
        return ino.simulate(large, key=jr.key(i), trials=trials, engine=diffusion).q

    def chain(i):
        return ino.simulate(small, key=jr.key(i), trials=trials).q

    ours, compiling = seconds(walk, repeats)
    baseline, _ = seconds(chain, repeats)
    facts = dict(unit="s", trials=trials, dtype="float32 (chain: float64)")
    name = f"Diffusion, p = 1e9, t = {end:g}, vs chain, p = {p_small:,}"
    report(
        name,
        ours=ours,
        baseline=baseline,
        p=10**9,
        compile_seconds=round(compiling, 2),
        **facts,
    )

    # The step of the first is 50 times as long, and its error still the smaller one.
    warm, trials = study(10**9, ino.WarmStart(0.3), [4.0]), min(trials, 64)
    facts["trials"] = trials
    with jax.enable_x64(True):
        exact, euler = float(ino.mean_field(warm).q[0]), by_diffrax(warm, trials, 0.002)
        theirs, _ = seconds(lambda i: euler(jr.key(i)), repeats)
        off = float(jnp.mean(euler(jr.key(0)))) - exact

    def step(i):
        return ino.simulate(warm, key=jr.key(i), trials=trials, engine=diffusion).q

    ours, _ = seconds(step, repeats)
    errors = [float(np.mean(np.asarray(step(0), float))) - exact, off]
    report(
        "Diffusion, dt = .1, vs diffrax's Euler of the same SDE, dt = .002",
        ours=ours,
        baseline=theirs,
        p=10**9,
        errors=[float(f"{e:.2g}") for e in errors],
        **facts,
    )
    assert abs(errors[0]) < abs(errors[1])


def main(quick: bool = False) -> None:
    if quick:
        bars("Oja", 2000, 1000, [1.0])
        races(1000, 64, 2.0, 1)
        return
    for name in SEVEN:
        bars(name, 2000, 4000, [1.0, 3.0, 8.0, 20.0])
        bars(name, 20_000, 4000, [1.0, 2.0, 4.0, 8.0])
    for name in ("InoPCA", "Oja", "CCIPCA"):
        escapes(name, 10_000, 4000, 40.0, 0.4)
    races(10_000, 1000, 50.0, 2)


if __name__ == "__main__":
    main(quick="--quick" in sys.argv[1:])
