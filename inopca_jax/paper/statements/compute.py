"""The numbers that the statements without a figure are checked against."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np

import inopca_jax as ino

from ..claim import Arrays
from ..learning_curves import OMEGA, TAU, paper_config

# The estimate from which single steps are taken: its dimension, overlap and norm. It is no
# fixed point of any algorithm, so that terms which cancel there do not cancel here.
SIZE, Q, LAM = 50, 0.8, 2.0
# Dimensions for the order of the term that eq:diffusion leaves out.
SIZES = (50, 200, 800)
# Signals for the norm at late times, and extreme initial norms.
OMEGAS, LAM0S = (0.1, 0.5, 1.0, 2.0, 4.0), (0.05, 20.0)
# The stream for several components: variances of the spikes beside unit noise, features and
# samples. CCIPCA's amnesic parameter on it.
SPIKES, FEATURES, SAMPLES, AMNESIC = (12.0, 8.0, 5.0), 40, 3000, 2.0
# Two sides of an identity differ by less than this in double precision.
ROUNDING = 1e-10


def configs(quick: bool = False) -> dict[str, ino.Config]:
    """Returns the configs for the norm at late times, by signal, and from extreme norms."""

    def config(omega: float, lam0: float) -> ino.Config:
        rule, start = ino.InoPCA(TAU), ino.WarmStart(0.5, lam0)
        return paper_config(rule, t_max=40.0, points=41, start=start, omega=omega, p=2000)

    by_signal = {f"omega = {omega:g}": config(omega, 1.0) for omega in OMEGAS}
    return by_signal | {f"lam0 = {lam0:g}": config(OMEGA, lam0) for lam0 in LAM0S}


def compute(quick: bool = False) -> Arrays:
    """Returns all numbers, by the statement that they belong to."""
    all_configs = configs(quick)
    arrays: Arrays = {"state": np.array([SIZE, Q, LAM]), "spikes": np.array(SPIKES)}
    arrays["ts"] = np.asarray(next(iter(all_configs.values())).ts)
    for number, (name, config) in enumerate(all_configs.items()):
        key = jr.fold_in(jr.key(21), number)
        runs = ino.simulate(config, key=key, trials=32 if quick else 96)
        arrays |= {f"{name}/lam": np.asarray(runs.lam), f"{name}/q": np.asarray(runs.q)}
    # In double precision, so that a difference is not taken for rounding.
    with jax.enable_x64(True):
        arrays |= moments_of_one_step(40_000 if quick else 100_000)
        arrays |= _identities() | _mean_field_identities() | _several_components()
    return arrays | _operations()


def norms_by_name(
    arrays: Arrays, name: str, values: tuple[float, ...]
) -> dict[float, np.ndarray]:
    """Returns the norms of the trials, of shape (trials, times), by the value of `omega` or
    `lam0`."""
    return {x: arrays[f"{name} = {x:g}/lam"].astype(float) for x in values}


def estimate_and_spike(p: int, q: float, lam: float) -> tuple[np.ndarray, np.ndarray]:
    """Returns `x` and `xi` with exactly this overlap and norm."""
    random = np.random.default_rng(p)
    xi = random.uniform(-1, 1, p)
    xi *= p**0.5 / np.linalg.norm(xi)
    orthogonal = random.standard_normal(p)
    orthogonal -= orthogonal @ xi / p * xi
    orthogonal *= p**0.5 / np.linalg.norm(orthogonal)
    return lam * (q * xi + (1 - q**2) ** 0.5 * orthogonal), xi


def _samples(xi: np.ndarray, count: int) -> np.ndarray:
    """Samples of eq:data_model, of shape (count, p)."""
    random = np.random.default_rng(1)
    c, a = random.standard_normal((count, 1)), random.standard_normal((count, xi.size))
    return np.sqrt(OMEGA / xi.size) * c * xi + a


def after_one_sample(rule: ino.AbstractRule, x: np.ndarray, ys: np.ndarray) -> np.ndarray:
    """Returns the package's estimate after one step from `x`, for each of the samples."""
    step = lambda y: ino.sample_step(rule, x, y)[0]
    return np.asarray(jax.jit(jax.vmap(step))(jnp.asarray(ys)))


def _second_moment(x: np.ndarray, xi: np.ndarray) -> np.ndarray:
    """`E[Delta Delta^T]` of INO-PCA, exactly. By Isserlis' theorem `E[(y.x)^2 y y^T]` is
    `(x.S x) S + 2 S x x^T S` with the covariance S of y."""
    p, lam = x.size, np.linalg.norm(x) / x.size**0.5
    sx = x + OMEGA / p * (xi @ x) * xi
    fourth = (x @ sx) * (np.eye(p) + OMEGA / p * np.outer(xi, xi)) + 2 * np.outer(sx, sx)
    cross = np.outer(sx, x)
    return TAU**2 / p**2 * (fourth / lam**2 - (cross + cross.T) / lam + np.outer(x, x))


def moments_of_one_step(count: int) -> Arrays:
    """Returns moments of one step from a fixed estimate, over `count` samples.

    Names that end in `/z` are differences from a formula in standard errors; `growth`,
    `fourth` and `krasulina/<q>` are pairs of a mean and its standard error.
    """
    x, xi = estimate_and_spike(SIZE, Q, LAM)
    ys = _samples(xi, count)
    moved = after_one_sample(ino.InoPCA(TAU), x, ys)
    delta = moved - x
    second = delta.T @ delta / count
    second_error = np.sqrt(((delta**2).T @ delta**2 / count - second**2) / count)
    drift = TAU / SIZE * (OMEGA * Q * xi + x / LAM - x)
    growth = np.sum(moved**2, axis=1) - np.sum(x**2)  # of p lam^2
    along_spike = TAU**2 / SIZE**2 / LAM**2 * ((ys @ x) * (ys @ xi)) ** 2
    arrays = {
        "drift/z": (delta.mean(axis=0) - drift) / (delta.std(axis=0) / count**0.5),
        "diffusion/z": (second - _second_moment(x, xi)) / second_error,
        "growth": _mean_and_error(growth),
        "fourth": _mean_and_error(along_spike),
        "top": np.sum(ys[:2000] ** 2, axis=1),
        "second eigenvalues": np.linalg.eigvalsh(ys[:50, :, None] * ys[:50, None])[:, -2],
        "written/Q": np.array(xi @ x / LAM),
    }
    return arrays | _second_moment_remainder() | _krasulina(count)


def _mean_and_error(values: np.ndarray) -> np.ndarray:
    return np.array([values.mean(), values.std() / len(values) ** 0.5])


def _second_moment_remainder() -> Arrays:
    """The root mean square of what eq:diffusion leaves out, by dimension."""
    remainders = []
    for p in SIZES:
        x, xi = estimate_and_spike(p, Q, LAM)
        leading = TAU**2 / p * (OMEGA * Q**2 + 1) * np.eye(p)
        remainders.append(np.sqrt(np.mean((_second_moment(x, xi) - leading) ** 2)))
    return {"diffusion/p": np.array(SIZES), "diffusion/remainder": np.array(remainders)}


def _krasulina(count: int) -> Arrays:
    """The growth of log lam per unit of time under Krasulina's method, without and with an
    overlap, and the largest cosine of a step with the estimate."""
    arrays, cosines = {}, []
    for q in (0.0, Q):
        x, xi = estimate_and_spike(SIZE, q, 1.0)
        moved = after_one_sample(ino.Krasulina(TAU), x, _samples(xi, count))
        growth = SIZE * np.log(np.linalg.norm(moved, axis=1) / SIZE**0.5)
        arrays[f"krasulina/{q:g}"] = _mean_and_error(growth)
        cosine = (moved - x) @ x / np.linalg.norm(moved - x, axis=1) / np.linalg.norm(x)
        cosines.append(np.abs(cosine).max())
    return arrays | {"krasulina/cosine": np.array(max(cosines))}


def _identities() -> Arrays:
    """Differences between the two sides of identities of single steps, relative to |x|, and
    how far Oja's and Krasulina's steps are apart, by rate."""
    x, xi = estimate_and_spike(SIZE, Q, LAM)
    ys = _samples(xi, 100)
    size = np.linalg.norm(x)
    order = np.random.default_rng(2).permutation(SIZE)
    permuted_after = after_one_sample(ino.InoPCA(TAU), x, ys)[:, order]
    permuted_before = after_one_sample(ino.InoPCA(TAU), x[order], ys[:, order])
    gap = np.abs(permuted_before - permuted_after).max() / size
    arrays: Arrays = {"exchangeable": np.array(gap)}
    for degree in (3.0, 4.0):

        def objective(x: Any, y: Any, degree: float = degree) -> Any:
            eta = SIZE ** (-(degree - 2) / 2)
            return -(jnp.sum(y * x) ** 2) / 2 + eta / degree * jnp.sum(x**2) ** (degree / 2)

        gradients = jax.vmap(jax.grad(objective), (None, 0))(x, jnp.asarray(ys))
        descent = x - TAU / SIZE * np.asarray(gradients)
        gap = np.abs(descent - after_one_sample(ino.Cubic(TAU, degree), x, ys)).max() / size
        arrays[f"gradient/{degree:g}"] = np.array(gap)
    rates, distances = np.array([0.4, 0.2, 0.1, 0.05]), []
    for tau in rates:
        oja, krasulina = (
            after_one_sample(rule(tau), x / LAM, ys) for rule in (ino.Oja, ino.Krasulina)
        )
        distances.append(np.linalg.norm(oja - krasulina, axis=1).mean() / SIZE**0.5)
    return arrays | {"krasulina/rates": rates, "krasulina/distances": np.array(distances)}


def _mean_field_identities() -> Arrays:
    """Over a grid of states, the moments of the weak PDE less what the corollaries say, and
    dq/dt of the cubic rule less that of Oja's method."""
    grid = np.meshgrid(np.linspace(-0.9, 0.9, 7), np.geomspace(0.3, 4, 7))
    q, lam = (a.ravel() for a in grid)
    s2 = OMEGA * q**2 + 1
    dq = TAU * q / lam * (OMEGA - OMEGA * q**2 - TAU * s2 / (2 * lam))
    dlam = TAU * (s2 - lam + TAU * s2 / (2 * lam))
    # Averages over the spike's law and over a normal law of x given xi, by quadrature. Any
    # law with this overlap and norm has the same averages.
    xi, weight = (np.asarray(a, float)[:, None] for a in ino.Uniform().quadrature(32))
    z, w = np.polynomial.hermite_e.hermegauss(16)
    w = weight * w / w.sum()
    column = lambda a: a[:, None, None]
    x = column(q * lam) * xi + column(lam * np.sqrt(1 - q**2)) * z
    drift = TAU * (OMEGA * column(q) * xi + x / column(lam) - x)
    drift_xi, drift_x = (np.sum(w * drift * f, axis=(1, 2)) for f in (xi, x))

    def dq_dt(rule: ino.AbstractRule) -> np.ndarray:
        return np.asarray(ino.velocity(paper_config(rule, t_max=1.0), q, lam)[0])

    return {
        "weak/first": drift_xi - (lam * dq + q * dlam),
        "weak/second": 2 * drift_x + TAU**2 * s2 - 2 * lam * dlam,
        "equivalent": dq_dt(ino.Cubic(TAU)) - dq_dt(ino.Oja(TAU)),
    }


def _several_components() -> Arrays:
    """The package's components of a stream against the published algorithms written out
    line by line, and against the truth."""
    random = np.random.default_rng(3)
    truth, _ = np.linalg.qr(random.standard_normal((FEATURES, len(SPIKES))))
    signal = random.standard_normal((SAMPLES, len(SPIKES))) * np.sqrt(SPIKES)
    ys = signal @ truth.T + random.standard_normal((SAMPLES, FEATURES))
    p, arrays = FEATURES, {}

    def ino_update(v: np.ndarray, y: np.ndarray, k: int) -> np.ndarray:
        return v + 1 / p * (y * (y @ v) / (np.linalg.norm(v) / p**0.5) - v)

    def ccipca_update(v: np.ndarray, y: np.ndarray, k: int) -> np.ndarray:
        n, pull = k + AMNESIC, y * (y @ v) / np.linalg.norm(v)
        return (n - 1 - AMNESIC) / n * v + (1 + AMNESIC) / n * pull

    # The lengths of CCIPCA's vectors are eigenvalues; the paper's are sqrt(p) times those.
    cases = (
        ("INO-PCA", ino.InoPCA(1.0), ino_update, 1.0),
        ("CCIPCA", ino.CCIPCA(AMNESIC), ccipca_update, p**0.5),
    )
    for name, rule, update, unit in cases:
        state = ino.stream_pca(rule, ys, len(SPIKES)).now()
        line_by_line = _components_line_by_line(unit * ys, update)
        vectors = p**0.5 * unit * np.asarray(state.vectors)
        gap = np.abs(vectors - line_by_line).max() / np.abs(line_by_line).max()
        distance = ino.grassmann_distance(state.components, jnp.asarray(truth.T))
        arrays[f"several/{name}/gap"] = np.asarray(gap)
        arrays[f"several/{name}/distance"] = np.asarray(distance)
        arrays[f"several/{name}/eigenvalues"] = np.asarray(state.eigenvalues(rule))
    return arrays


def _components_line_by_line(ys: np.ndarray, update: Callable) -> np.ndarray:
    """The vectors of alg:INO-PCA_multiple_pc with this update of one vector."""
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
    """The number of floating-point operations of a step as the paper writes it, for INO-PCA
    and Oja's method, as XLA counts them."""

    def ino_step(x: Any, y: Any) -> Any:
        lam = jnp.sqrt(jnp.sum(x * x) / x.size)
        return x + TAU / x.size * (y * (jnp.sum(y * x) / lam) - x)

    def oja_step(x: Any, y: Any) -> Any:
        moved = x + TAU / x.size * (y * jnp.sum(y * x))
        return moved * (x.size**0.5 / jnp.sqrt(jnp.sum(moved * moved)))

    sizes, counts = (1000, 2000, 4000), []
    for step in (ino_step, oja_step):
        shapes = [jax.ShapeDtypeStruct((p,), np.float32) for p in sizes]
        analyses: list[Any] = [jax.jit(step).lower(s, s).cost_analysis() for s in shapes]
        counts.append([analysis["flops"] for analysis in analyses])
    return {"operations/p": np.array(sizes), "operations": np.array(counts)}
