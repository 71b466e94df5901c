"""The stream against the paper's vector equations, written out in NumPy."""

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

import inopca_jax as ino
from inopca_jax._engine import stream
from inopca_jax._engine.draws import SampleNoise, sample_of
from inopca_jax._engine.sample import draw_pairs

from .cases import RULES, config, sparing

P, STEPS, OMEGA, TAU = 53, 400, 1.5, 0.4


def ino_pca(x, y, k, memory):
    lam = np.linalg.norm(x) / np.sqrt(P)
    return x + TAU / P * (y * (y @ x) / lam - x), memory


def cubic(x, y, k, memory):
    lam = np.linalg.norm(x) / np.sqrt(P)
    return x + TAU / P * (y * (y @ x) - lam * x), memory


def quartic(x, y, k, memory):
    # eq:formulation with l = 4, eta = 1/p: the penalty's gradient is eta |x|^2 x.
    return x + TAU / P * (y * (y @ x) - (x @ x) / P * x), memory


def oja(x, y, k, memory):
    x = x + TAU / P * y * (y @ x)
    return np.sqrt(P) * x / np.linalg.norm(x), memory


def krasulina(x, y, k, memory):
    return x + TAU / P * (y * (y @ x) - (y @ x) ** 2 / (x @ x) * x), memory


def adaptive(x, y, k, memory):
    xi = memory
    lam = np.linalg.norm(x) / np.sqrt(P)
    q = xi @ x / (P * lam)
    tau = lam * OMEGA * (1 - q**2) / (OMEGA * q**2 + 1)
    return x + tau / P * (y * (y @ x) / lam - x), memory


def ada_oja(x, y, k, b2):
    w = x / np.linalg.norm(x)
    b2 = b2 + np.linalg.norm(y * (y @ w)) ** 2
    w = w + y * (y @ w) / np.sqrt(b2)
    return np.sqrt(P) * w / np.linalg.norm(w), b2


def ccipca(x, y, k, memory):
    amnesic = 2.0
    n = k + 2 + amnesic
    v = x / np.sqrt(P)  # the published |v| is the eigenvalue, the paper's |x|/sqrt(p)
    v = (n - 1 - amnesic) / n * v + (1 + amnesic) / n * y * (y @ v) / np.linalg.norm(v)
    return np.sqrt(P) * v, memory


LITERAL = {
    "ino": (lambda: ino.InoPCA(TAU), ino_pca),
    "cubic": (lambda: ino.Cubic(TAU), cubic),
    "quartic": (lambda: ino.Cubic(TAU, degree=4), quartic),
    "oja": (lambda: ino.Oja(TAU), oja),
    "krasulina": (lambda: ino.Krasulina(TAU), krasulina),
    "adaptive": (ino.AdaptiveInoPCA, adaptive),
    "ada_oja": (lambda: ino.AdaOja(1e-5), ada_oja),
    "ccipca": (lambda: ino.CCIPCA(2.0), ccipca),
}


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("name", LITERAL)
def test_the_stream_is_the_papers_equation_step_by_step(name, monkeypatch):
    # From a table, because a generator compiled in two places may round differently.
    c, a = jr.normal(jr.key(5), (STEPS,)), jr.normal(jr.key(6), (STEPS, P))

    def tabled(key, pairs, *_):
        halves = (2 * pairs + i for i in range(2))
        return tuple(SampleNoise((c[rows],), a[rows]) for rows in halves)

    monkeypatch.setattr(stream, "draw_pairs", tabled)
    make, update = LITERAL[name]
    study = config(make(), p=P, omega=OMEGA, ts=np.arange(STEPS + 1) / P)
    run = ino.simulate(study, key=jr.key(8), trials=2, engine=ino.Stream(snapshots=True))
    for trial in range(2):
        xs, xi = np.asarray(run.x[trial]), np.asarray(run.xi[trial, 0])
        x, memory = xs[0], {"ada_oja": 1e-10, "adaptive": xi}.get(name)
        for k in range(STEPS):
            y = np.sqrt(OMEGA / P) * c[k] * xi + a[k]
            x, memory = update(x, np.asarray(y), k, memory)
            assert np.linalg.norm(x - xs[k + 1]) < 1e-10 * np.linalg.norm(x)


@pytest.mark.usefixtures("x64")
def test_samples_have_the_models_covariance():
    p, n = 4, 40_000
    xi = ino.Gaussian().sample(jr.key(0), p)
    model = ino.SpikedModel(p=p, omega=3.0)
    pairs = draw_pairs(jr.key(1), jnp.arange(n // 2), p)
    y = np.concatenate(
        [jax.vmap(lambda n: sample_of(model, (xi,), n))(one) for one in pairs]
    )
    exact = np.eye(p) + 3.0 * np.outer(xi, xi) / p
    sd = np.sqrt((np.outer(np.diag(exact), np.diag(exact)) + exact**2) / n)
    assert np.max(np.abs(y.T @ y / n - exact) / sd) < 5
    lag = y[1:].T @ y[:-1] / n  # successive samples are independent
    assert np.max(np.abs(lag)) < 5 * exact.max() / np.sqrt(n)


@pytest.mark.parametrize("start", sparing([ino.WarmStart(-0.4, 0.5), ino.ColdStart(2.0)]))
def test_the_start_has_the_norm_and_the_overlap_that_were_asked_for(start):
    study = config(p=500, start=start, ts=[0.0])
    for engine in (ino.Stream(), ino.Chain(), ino.Chain(snapshots=True)):
        run = ino.simulate(study, key=jr.key(2), trials=500, engine=engine)
        assert np.allclose(run.lam, start.lam0, rtol=1e-5)
        # q0 fluctuates by about sqrt(1 - q0^2)/sqrt(p), and its mean is q0 up to 1/p.
        q0 = float(start.mixture()[0])
        sd = np.sqrt((1 - q0**2) / 500)
        assert abs(run.mean().q[0] - q0) < 5 * sd / np.sqrt(500) + 1 / 500
        assert 0.8 < run.std().q[0] / sd < 1.2


def test_oja_starts_on_the_sphere_whatever_lam0():
    study = config(ino.Oja(0.5), start=ino.WarmStart(0.3, lam0=3.0))
    for engine in (ino.Stream(), ino.Chain()):
        run = ino.simulate(study, key=jr.key(0), trials=3, engine=engine)
        assert np.allclose(run.lam, 1, atol=1e-5)
    assert np.allclose(ino.mean_field(study).lam, 1)


@pytest.mark.smoke
def test_float32_follows_float64_on_the_same_noise():
    study = config(p=100, ts=np.linspace(0, 2, 5))
    narrow, wide = (
        ino.simulate(study, key=jr.key(1), trials=4, engine=ino.Chain(dtype=dtype))
        for dtype in ("float32", "float64")
    )
    assert np.allclose(narrow.q, wide.q, atol=1e-4)
    assert np.allclose(narrow.lam, wide.lam, atol=1e-4)


def test_rounding_does_not_add_up_where_steps_are_small():
    # In float32 1 - tau/p would be off by 2 % of tau/p, at every step alike.
    study = config(ino.InoPCA(0.1), p=90_000, ts=[5.0])
    narrow, wide = (
        ino.simulate(study, key=jr.key(1), trials=8, engine=ino.Chain(dtype=dtype))
        for dtype in ("float32", "float64")
    )
    assert np.max(np.abs(narrow.lam - wide.lam)) < 1e-3
    assert np.max(np.abs(narrow.q - wide.q)) < 1e-3


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("rule", sparing(["Oja", "Krasulina"]))
def test_a_block_of_samples_takes_the_steps_of_the_loop(rule):
    # Stops that cut blocks, blocks that a chunk does not divide; AdaGrad has a memory.
    rule = RULES[rule](ino.AdaGrad(60.0))
    study = config(rule, p=P, omega=OMEGA, ts=[0.0, 0.3, 0.31, 2.0])
    one = ino.Stream(block=1, snapshots=True)
    loop = ino.simulate(study, key=jr.key(3), trials=3, engine=one)
    for size in (2, 8, 64):
        engine = ino.Stream(block=size, snapshots=True)
        block = ino.simulate(study, key=jr.key(3), trials=3, engine=engine)
        assert np.max(np.abs(block.x - loop.x)) < 1e-10
        assert np.max(np.abs(block.q - loop.q)) < 1e-10
