"""The distances that the figure shows."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from ..._config import Config
from ..._rule import AbstractRule, AdaOja, InoPCA, Oja
from ..._schedule import Harmonic
from ..._streaming import grassmann_distance
from ..._streaming.block import BLOCK, nothing_learned, take
from ...data import faces

SAMPLES = 4000
COMPONENTS = (5, 9, 16)
LANES = 18
PIXELS = 64

Arrays = dict[str, np.ndarray]


class Method(NamedTuple):
    """An algorithm and the values that its parameter is chosen from."""

    rule: Callable[[Any], AbstractRule]
    values: tuple[float, ...]


# The weight of a sample, tau/p, of INO-PCA; of Oja's method that times the total variance,
# for its rate has a unit. AdaOja has nothing to choose.
METHODS = {
    "INO-PCA": Method(InoPCA, tuple(np.geomspace(2e-4, 0.02, 9))),
    "Oja": Method(Oja, tuple(np.geomspace(0.01, 1, 9))),
    "CCIPCA": Method(
        lambda c: InoPCA(Harmonic(c, t0=0.0, k0=c)), (1, 1.5, 2, 3, 4, 5, 7, 9, 13)
    ),
    "AdaOja": Method(AdaOja, (1e-5,)),
}
# What the paper does not have, and a quick run leaves out.
BEYOND = ("AdaOja",)


def prepared(images: Float[np.ndarray, "400 4096"]) -> dict[str, np.ndarray]:
    """The ways to prepare the images; offline PCA subtracts the mean in any case."""
    images = np.asarray(images, float)
    each = images - images.mean(axis=1, keepdims=True)
    each *= PIXELS / np.linalg.norm(each, axis=1, keepdims=True)
    centred = images - images.mean(axis=0)
    return {
        "pixels 0 to 1, centred": centred,
        "pixels 0 to 255, centred": 255 * centred,
        r"images of norm $\sqrt{p}$, centred": each - each.mean(axis=0),
        r"images of norm $\sqrt{p}$": each,
    }


class Coordinates(NamedTuple):
    """The images in an orthonormal basis of their span.

    An algorithm sees inner products alone, so it does the same there, at a tenth of the
    cost; `unit` makes up for the p in its formulas, which is the basis' size now.
    """

    rows: np.ndarray
    basis: np.ndarray

    @property
    def unit(self) -> float:
        return (self.basis.shape[1] / self.basis.shape[0]) ** 0.5

    @staticmethod
    def of(images: np.ndarray) -> "Coordinates":
        _, _, basis = np.linalg.svd(images, full_matrices=False)
        return Coordinates(images @ basis.T, basis)


@eqx.filter_jit
def _curves(
    rules: AbstractRule,
    rows: Float[Array, "images p"],
    drawn: Int[Array, "lanes blocks block"],
    wanted: Int[Array, " blocks"],
    truth: Float[Array, "components p"],
) -> tuple[Float[Array, "lanes blocks"], Float[Array, "lanes components p"]]:
    """The distance after each block of a stream, and the last vectors."""

    def one(rule, drawn):
        start = nothing_learned(rule, len(truth), rows.shape[1], rows.dtype)

        def block(learned, now):
            images, wanted = now
            learned = take(rule, learned, rows[images], wanted, False)
            return learned, grassmann_distance(learned.vectors, truth)

        learned, distances = jax.lax.scan(block, start, (drawn, wanted))
        return distances, learned.vectors

    return jax.vmap(one)(rules, drawn)


class Stream(NamedTuple):
    """Which images come, for each seed; blocks of them, the last one shorter."""

    drawn: np.ndarray
    wanted: np.ndarray

    @staticmethod
    def of(seeds: range, images: np.ndarray) -> "Stream":
        """Images drawn from the rows of `images`, in equal parts of the stream."""
        blocks = -(-SAMPLES // BLOCK)
        part = np.arange(blocks * BLOCK) * len(images) // SAMPLES
        part = np.minimum(part, len(images) - 1)
        draws = [np.random.default_rng(seed).random(part.size) for seed in seeds]
        picks = (np.asarray(draws) * images.shape[1]).astype(int)
        wanted = np.full(blocks, BLOCK)
        wanted[-1] = SAMPLES - BLOCK * (blocks - 1)
        return Stream(images[part, picks].reshape(-1, blocks, BLOCK), wanted)


ALL = np.arange(400)[None]
# Twenty people, then the others; and the methods that are asked how they take it.
CHANGED = ("INO-PCA", "CCIPCA")
CHANGE = np.arange(400).reshape(2, 200)
# The first seed of the streams that the parameter is chosen on; those shown begin at 0.
_OTHERS = 1000


def _run(
    method: Method, values: np.ndarray, where: Coordinates, stream: Stream, truth: Array
) -> tuple[np.ndarray, np.ndarray]:
    size = len(where.basis)
    variance = np.mean(np.sum(where.rows**2, axis=1))
    if method.rule is InoPCA:
        values = values * size
    elif method.rule is Oja:
        values = values * size / (variance * where.unit**2)
    rules = jax.vmap(method.rule)(jnp.asarray(values, jnp.float32))
    rows = jnp.asarray(where.rows * where.unit, jnp.float32)
    drawn, wanted = (jnp.asarray(x, jnp.int32) for x in stream)
    return tuple(map(np.asarray, _curves(rules, rows, drawn, wanted, truth)))  # pyright: ignore


def configs(quick: bool = False) -> dict[str, Config]:
    """None: the data are no model's."""
    return {}


def compute(quick: bool = False) -> Arrays:
    """For each preparation, number of components and method: the chosen value, the
    distances on the shown streams, and at nine components the vectors of one of them."""
    ways = list(prepared(faces()).items())[: 1 if quick else None]
    cells = [(way, r) for way in ways for r in (COMPONENTS[1:2] if quick else COMPONENTS)]
    lanes = 9 if quick else LANES
    methods = {x: METHODS[x] for x in METHODS if not (quick and x in BEYOND)}
    found: Arrays = {}
    for (way, images), r in cells:
        where = Coordinates.of(images)
        truth = jnp.asarray(_offline(images, r) @ where.basis.T, jnp.float32)
        for name, method in methods.items():
            cell, best = f"{way}/{r}/{name}", _best(method, where, truth, lanes)
            shown = partial(_run, method, np.full(lanes, best), where)
            found[cell], vectors = shown(Stream.of(range(lanes), ALL), truth)
            found[f"{cell}/chosen"] = np.array(best)
            if r == 9:
                found[f"{cell}/vectors"] = vectors[0] @ where.basis
            if r == 9 and way == ways[0][0] and name in CHANGED:
                after = _offline(images[CHANGE[1]], r) @ where.basis.T
                changes = Stream.of(range(lanes), CHANGE)
                changed, _ = shown(changes, jnp.asarray(after, jnp.float32))
                found[f"{cell}/change"] = changed
        if r == 9:
            found[f"{way}/{r}/offline PCA/vectors"] = np.asarray(truth) @ where.basis
    return found


def _offline(images: np.ndarray, components: int) -> np.ndarray:
    """The leading components of offline PCA, exactly: scikit-learn's would be found by
    random projections, other ones in each run."""
    _, _, basis = np.linalg.svd(images - images.mean(axis=0), full_matrices=False)
    return basis[:components]


def _best(method: Method, where: Coordinates, truth: Array, lanes: int) -> float:
    """The value of the method's parameter with the least distance in the end."""
    values = np.asarray(method.values)
    if len(values) == 1:
        return float(values[0])
    streams = Stream.of(range(_OTHERS, _OTHERS + lanes // len(values)), ALL)
    streams = streams._replace(drawn=np.repeat(streams.drawn, len(values), axis=0))
    searched, _ = _run(method, np.resize(values, lanes), where, streams, truth)
    last = searched[:, -1].reshape(-1, len(values)).mean(axis=0)
    return float(values[np.nanargmin(last)])


def cells_of(found: Arrays) -> list[str]:
    """The preparations and numbers of components that were computed."""
    return [key.removesuffix("/INO-PCA") for key in found if key.endswith("/INO-PCA")]
