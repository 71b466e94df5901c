"""What the text and the appendix say without a figure, computed.

One step of the p-dimensional algorithm at a fixed estimate, many times over; identities
that hold sample by sample; the norm at late times and from bold starts, by the exact chain
at p = 2,000; several components of a small synthetic stream.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np

from .._batch import simulate
from .._config import Config, cast
from .._engine.steps import StreamState, one_sample
from .._model import SpikedModel, Uniform
from .._order_parameters.limit import velocity
from .._rule import CCIPCA, AbstractRule, Cubic, InoPCA, Krasulina, Oja
from .._start import WarmStart
from .._streaming import grassmann_distance, stream_pca
from .curves import OMEGA, TAU, Arrays, P, setting
from .statements_claims import claims

__all__ = ["claims", "compute", "configs"]

# A state that is nobody's fixed point, so that what differs is seen to.
SIZE, Q, LAM = 50, 0.8, 2.0
SNRS, NORMS = (0.1, 0.5, 1.0, 2.0, 4.0), (0.05, 20.0)
# Of the stream with several spikes: variances besides the noise's of 1, and its size.
SPIKES, FEATURES, SAMPLES, AMNESIC = (12.0, 8.0, 5.0), 40, 3000, 2.0


def configs(quick: bool = False) -> dict[str, Config]:
    """Of the norm at late times, by omega; and of bold initial norms."""

    def made(omega: float, lam0: float) -> Config:
        start = WarmStart(0.5, lam0)
        return setting(InoPCA(TAU), t_max=40.0, points=41, start=start, omega=omega, p=2000)

    late = {f"omega = {omega:g}": made(omega, 1.0) for omega in SNRS}
    return late | {f"lam0 = {lam0:g}": made(OMEGA, lam0) for lam0 in NORMS}


def compute(quick: bool = False) -> Arrays:
    """All numbers, by the statement that they belong to."""
    cases = configs(quick)
    found: Arrays = {"state": np.array([SIZE, Q, LAM]), "spikes": np.array(SPIKES)}
    found["ts"] = np.asarray(next(iter(cases.values())).ts)
    for number, (name, config) in enumerate(cases.items()):
        key = jr.fold_in(jr.key(21), number)
        runs = simulate(config, key=key, trials=32 if quick else 96)
        found |= {f"{name}/lam": np.asarray(runs.lam), f"{name}/q": np.asarray(runs.q)}
    # Identities are to be seen apart from rounding.
    with jax.enable_x64(True):
        found |= _one_step(40_000 if quick else 100_000) | _sample_by_sample() | _limits()
        found |= _several_components()
    return found | _operations()


def _state(p: int, q: float, lam: float) -> tuple[np.ndarray, np.ndarray]:
    """`x` and `xi` with exactly this overlap and norm."""
    random = np.random.default_rng(p)
    xi = random.uniform(-1, 1, p)
    xi *= p**0.5 / np.linalg.norm(xi)
    rest = random.standard_normal(p)
    rest -= rest @ xi / p * xi
    rest *= p**0.5 / np.linalg.norm(rest)
    return lam * (q * xi + (1 - q**2) ** 0.5 * rest), xi


def _samples(xi: np.ndarray, count: int) -> np.ndarray:
    """`eq:data_model`."""
    random = np.random.default_rng(1)
    c, a = random.standard_normal((count, 1)), random.standard_normal((count, xi.size))
    return np.sqrt(OMEGA / xi.size) * c * xi + a


def _after(rule: AbstractRule, x: Any, xi: Any, ys: Any) -> np.ndarray:
    """What the package's update makes of `x`, for each of the samples."""
    rule, model = cast((rule, SpikedModel(p=xi.size, omega=OMEGA)), np.float64)
    state = StreamState.begin(jnp.asarray(x), jnp.asarray(xi), rule.tau.init(xi.size))
    one = lambda y: one_sample(rule, model, state, jnp.int32(0), y).x
    return np.asarray(eqx.filter_jit(jax.vmap(one))(jnp.asarray(ys)))


def _second_moment(x: np.ndarray, xi: np.ndarray) -> np.ndarray:
    """`E[Delta Delta^T]` of INO-PCA, exactly: by Isserlis' theorem `E[(y.x)^2 y y^T]` is
    `(x.S x) S + 2 S x x^T S` with the covariance S of y."""
    p, lam = x.size, np.linalg.norm(x) / x.size**0.5
    sx = x + OMEGA / p * (xi @ x) * xi
    four = (x @ sx) * (np.eye(p) + OMEGA / p * np.outer(xi, xi)) + 2 * np.outer(sx, sx)
    cross = np.outer(sx, x)
    return TAU**2 / p**2 * (four / lam**2 - (cross + cross.T) / lam + np.outer(x, x))


def _one_step(count: int) -> Arrays:
    """Moments of one step from a fixed estimate, with their standard errors."""
    x, xi = _state(SIZE, Q, LAM)
    ys = _samples(xi, count)
    moved = _after(InoPCA(TAU), x, xi, ys)
    delta = moved - x
    second = delta.T @ delta / count
    spread = np.sqrt(((delta**2).T @ delta**2 / count - second**2) / count)
    written = TAU / SIZE * (OMEGA * Q * xi + x / LAM - x)
    growth = np.sum(moved**2, axis=1) - np.sum(x**2)  # of p lam^2
    along = TAU**2 / SIZE**2 / LAM**2 * ((ys @ x) * (ys @ xi)) ** 2
    found = {
        "drift/z": (delta.mean(axis=0) - written) / (delta.std(axis=0) / count**0.5),
        "diffusion/z": (second - _second_moment(x, xi)) / spread,
        "growth": np.array([growth.mean(), growth.std() / count**0.5]),
        "fourth": np.array([along.mean(), along.std() / count**0.5]),
        "top": np.sum(ys[:2000] ** 2, axis=1),
        "eigenvalues": np.stack([np.linalg.eigvalsh(np.outer(y, y))[-2:] for y in ys[:50]]),
        "written/Q": np.array(xi @ x / LAM),
    }
    left = []
    for p in (50, 200, 800):
        x, xi = _state(p, Q, LAM)
        leading = TAU**2 / p * (OMEGA * Q**2 + 1) * np.eye(p)
        left.append(np.sqrt(np.mean((_second_moment(x, xi) - leading) ** 2)))
    found["diffusion/left"] = np.array(left)
    cosines = []
    for q in (0.0, Q):
        x, xi = _state(SIZE, q, 1.0)
        moved = _after(Krasulina(TAU), x, xi, _samples(xi, count))
        logs = SIZE * np.log(np.linalg.norm(moved, axis=1) / SIZE**0.5)
        found[f"krasulina/{q:g}"] = np.array([logs.mean(), logs.std() / count**0.5])
        cosine = (moved - x) @ x / np.linalg.norm(moved - x, axis=1) / np.linalg.norm(x)
        cosines.append(np.abs(cosine).max())
    found["krasulina/cosine"] = np.array(max(cosines))
    return found


def _sample_by_sample() -> Arrays:
    """Differences, relative to the estimate, that identities say are none."""
    x, xi = _state(SIZE, Q, LAM)
    ys = _samples(xi, 100)
    size = np.linalg.norm(x)
    turn = np.random.default_rng(2).permutation(SIZE)
    here = _after(InoPCA(TAU), x, xi, ys)
    there = _after(InoPCA(TAU), x[turn], xi[turn], ys[:, turn])
    gap = np.abs(there - here[:, turn]).max() / size
    found: Arrays = {"exchangeable": np.array(gap)}
    for degree in (3.0, 4.0):

        def objective(x: Any, y: Any, degree: float = degree) -> Any:
            eta = SIZE ** (-(degree - 2) / 2)
            return -(jnp.sum(y * x) ** 2) / 2 + eta / degree * jnp.sum(x**2) ** (degree / 2)

        slopes = jax.vmap(jax.grad(objective), (None, 0))(jnp.asarray(x), jnp.asarray(ys))
        step = x - TAU / SIZE * np.asarray(slopes)
        gap = np.abs(step - _after(Cubic(TAU, degree), x, xi, ys)).max() / size
        found[f"gradient/{degree:g}"] = np.array(gap)
    rates = np.array([0.4, 0.2, 0.1, 0.05])
    start = x / LAM
    apart = []
    for tau in rates:
        oja, other = (_after(rule(tau), start, xi, ys) for rule in (Oja, Krasulina))
        apart.append(np.linalg.norm(oja - other, axis=1).mean() / SIZE**0.5)
    return found | {"krasulina/rates": rates, "krasulina/apart": np.array(apart)}


def _limits() -> Arrays:
    """The weak PDE's moments against the corollaries, and Oja's ODE against the cubic
    rule's, over a grid of states."""
    grid = np.meshgrid(np.linspace(-0.9, 0.9, 7), np.geomspace(0.3, 4, 7))
    q, lam = (a.ravel() for a in grid)
    s2 = OMEGA * q**2 + 1
    dq = TAU * q / lam * (OMEGA - OMEGA * q**2 - TAU * s2 / (2 * lam))
    dlam = TAU * (s2 - lam + TAU * s2 / (2 * lam))
    # Averages over the spike's law and that of x given xi, by quadrature; any law with
    # this overlap and norm has the same.
    xi, weight = (np.asarray(a, float)[:, None] for a in Uniform().quadrature(32))
    z, w = np.polynomial.hermite_e.hermegauss(16)
    w = weight * w / w.sum()
    across = lam * np.sqrt(1 - q**2)
    wide = lambda a: a[:, None, None]
    x = wide(q * lam) * xi + wide(across) * z
    drift = TAU * (OMEGA * wide(q) * xi + x / wide(lam) - x)
    first, pull = (np.sum(w * drift * f, axis=(1, 2)) for f in (xi, x))
    noise = TAU**2 * s2

    def moved(rule: AbstractRule) -> np.ndarray:
        omega, t = (jnp.asarray(number) for number in (OMEGA, 1.0))
        one = partial(velocity, cast(rule, np.float64), omega, P, t)
        return np.asarray(jax.vmap(lambda q, lam: one(q, lam, ())[0])(q, lam))

    return {
        "weak/first": first - (lam * dq + q * dlam),
        "weak/second": 2 * pull + noise - 2 * lam * dlam,
        "weak/written": pull + noise - 2 * lam * dlam,
        "equivalent": moved(Cubic(TAU)) - moved(Oja(TAU)),
    }


def _several_components() -> Arrays:
    """The package's stream against the algorithm line by line, and what it learns."""
    random = np.random.default_rng(3)
    truth, _ = np.linalg.qr(random.standard_normal((FEATURES, len(SPIKES))))
    signal = random.standard_normal((SAMPLES, len(SPIKES))) * np.sqrt(SPIKES)
    ys = signal @ truth.T + random.standard_normal((SAMPLES, FEATURES))
    p, found = FEATURES, {}

    def ours(v: np.ndarray, y: np.ndarray, k: int) -> np.ndarray:
        return v + 1 / p * (y * (y @ v) / (np.linalg.norm(v) / p**0.5) - v)

    def ccipca(v: np.ndarray, y: np.ndarray, k: int) -> np.ndarray:
        n, pull = k + AMNESIC, y * (y @ v) / np.linalg.norm(v)
        return (n - 1 - AMNESIC) / n * v + (1 + AMNESIC) / n * pull

    # CCIPCA's lengths are eigenvalues; the paper's have a unit of sqrt(p).
    cases = (("ours", InoPCA(1.0), ours, 1.0), ("ccipca", CCIPCA(AMNESIC), ccipca, p**0.5))
    for name, rule, update, unit in cases:
        learned = stream_pca(rule, ys, len(SPIKES)).now()
        line_by_line = _literally(unit * ys, update)
        vectors = p**0.5 * unit * np.asarray(learned.vectors)
        gap = np.abs(vectors - line_by_line).max() / np.abs(line_by_line).max()
        found[f"several/{name}/gap"] = gap
        distance = grassmann_distance(learned.components, jnp.asarray(truth.T))
        found[f"several/{name}/distance"] = np.asarray(distance)
        found[f"several/{name}/eigenvalues"] = np.asarray(learned.eigenvalues(rule))
    return {k: np.asarray(v) for k, v in found.items()}


def _literally(ys: np.ndarray, update: Callable) -> np.ndarray:
    """`alg:INO-PCA_multiple_pc` with this update of one vector."""
    vectors: list[np.ndarray] = []
    for k, y in enumerate(ys, start=1):
        for i in range(min(len(SPIKES), k)):
            if i == k - 1:
                vectors.append(y)
            else:
                vectors[i] = update(vectors[i], y, k)
            y = y - (y @ vectors[i]) * vectors[i] / (vectors[i] @ vectors[i])
    return np.array(vectors)


def _operations() -> Arrays:
    """Floating-point operations of a step as the paper writes it, as XLA counts them."""

    def ours(x: Any, y: Any) -> Any:
        lam = jnp.sqrt(jnp.sum(x * x) / x.size)
        return x + TAU / x.size * (y * (jnp.sum(y * x) / lam) - x)

    def oja(x: Any, y: Any) -> Any:
        moved = x + TAU / x.size * (y * jnp.sum(y * x))
        return moved * (x.size**0.5 / jnp.sqrt(jnp.sum(moved * moved)))

    sizes, counts = (1000, 2000, 4000), []
    for step in (ours, oja):
        shapes = [jax.ShapeDtypeStruct((p,), np.float32) for p in sizes]
        analyses: list[Any] = [jax.jit(step).lower(s, s).cost_analysis() for s in shapes]
        counts.append([analysis["flops"] for analysis in analyses])
    return {"operations/p": np.array(sizes), "operations": np.array(counts)}
