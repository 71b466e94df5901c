"""The numbers of `fig:olivetti`: distances from offline PCA along streams of faces."""

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

import inopca_jax as ino
from inopca_jax.data import faces

from ..claim import Arrays

PIXELS, IMAGES = 64, 400
# The length of a stream, and the number of samples from one distance to the next.
SAMPLES, SPACING = 4000, 64
COMPONENTS = (5, 9, 16)
# With this number of components the vectors are stored, and streams that change are run.
DETAILED = 9
STREAMS, QUICK_STREAMS = 18, 9


class Method(NamedTuple):
    """An algorithm and the values from which its parameter is chosen."""

    rule: Callable[[Any], ino.AbstractRule]
    values: tuple[float, ...]


# The parameter of INO-PCA is the weight tau/p of a sample. That of Oja's method is the same
# times the total variance, because its rate has a unit. AdaOja has nothing to choose.
METHODS = {
    "INO-PCA": Method(ino.InoPCA, tuple(np.geomspace(2e-4, 0.02, 9))),
    "Oja": Method(ino.Oja, tuple(np.geomspace(0.01, 1, 9))),
    "CCIPCA": Method(
        lambda c: ino.InoPCA(ino.Harmonic(c, t0=0.0, k0=c)),
        (1, 1.5, 2, 3, 4, 5, 7, 9, 13),
    ),
    "AdaOja": Method(ino.AdaOja, (1e-5,)),
}
# Methods that the paper does not show, which a quick run leaves out.
BEYOND_PAPER = ("AdaOja",)
# Methods that are also run on a stream that changes: images of twenty people, then of the
# other twenty.
ON_CHANGE = ("INO-PCA", "CCIPCA")
CHANGE = np.arange(IMAGES).reshape(2, -1)
NO_CHANGE = np.arange(IMAGES)[None]
# The first seed of the streams on which parameters are chosen; those shown begin at 0.
_FIRST_SEED_TO_CHOOSE = 1000


def prepared(images: Float[np.ndarray, "400 4096"]) -> dict[str, np.ndarray]:
    """Returns the images prepared in several ways, by name.

    Offline PCA, from which distances are measured, subtracts the mean in any case.
    """
    images = np.asarray(images, float)
    normalised = images - images.mean(axis=1, keepdims=True)
    normalised *= PIXELS / np.linalg.norm(normalised, axis=1, keepdims=True)
    centred = images - images.mean(axis=0)
    return {
        "pixels 0 to 1, centred": centred,
        "pixels 0 to 255, centred": 255 * centred,
        "images of norm sqrt(p), centred": normalised - normalised.mean(axis=0),
        "images of norm sqrt(p)": normalised,
    }


class Coordinates(NamedTuple):
    """The images in an orthonormal basis of their span.

    An algorithm depends on the samples only through inner products, so it does the same in
    these coordinates, at a tenth of the cost. But there the dimension in its formulas is
    that of the span; samples are multiplied by `unit` to make up for it.
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


class Streams(NamedTuple):
    """The images of several streams.

    `images` are their indices, of shape (streams, batches, SPACING). `counts` says how many
    images of each batch belong to the stream: the last batch is padded.
    """

    images: np.ndarray
    counts: np.ndarray

    @staticmethod
    def of(seeds: range, parts: np.ndarray) -> "Streams":
        """One stream for each seed: equal parts, one for each row of `parts`, in which
        images are drawn at random from that row."""
        batches = -(-SAMPLES // SPACING)
        part = np.arange(batches * SPACING) * len(parts) // SAMPLES
        part = np.minimum(part, len(parts) - 1)
        uniforms = [np.random.default_rng(seed).random(part.size) for seed in seeds]
        columns = (np.asarray(uniforms) * parts.shape[1]).astype(int)
        counts = np.full(batches, SPACING)
        counts[-1] = SAMPLES - SPACING * (batches - 1)
        return Streams(parts[part, columns].reshape(-1, batches, SPACING), counts)


@eqx.filter_jit
def _distances(
    rules: ino.AbstractRule,
    rows: Float[Array, "images p"],
    images: Int[Array, "streams batches batch"],
    counts: Int[Array, " batches"],
    truth: Float[Array, "components p"],
) -> tuple[Float[Array, "streams batches"], Float[Array, "streams components p"]]:
    """The distance from the truth after each batch, and the last vectors, of each stream
    with its own rule."""

    def along_stream(rule: ino.AbstractRule, images: Array) -> tuple[Array, Array]:
        initial = ino.init_components(rule, len(truth), rows.shape[1], rows.dtype)

        def take_batch(state: Any, batch: tuple[Array, Array]) -> tuple[Any, Array]:
            images, count = batch
            state = ino.update_components(rule, state, rows[images], count)
            return state, ino.grassmann_distance(state.vectors, truth)

        state, distances = jax.lax.scan(take_batch, initial, (images, counts))
        return distances, state.vectors

    return jax.vmap(along_stream)(rules, images)


def _run(
    method: Method,
    values: np.ndarray,
    coordinates: Coordinates,
    streams: Streams,
    truth: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """The distances along each stream and the last vectors, with a value of the method's
    parameter for each stream."""
    size = len(coordinates.basis)
    variance = np.mean(np.sum(coordinates.rows**2, axis=1))
    if method.rule is ino.InoPCA:
        values = values * size
    elif method.rule is ino.Oja:
        values = values * size / (variance * coordinates.unit**2)
    rules = jax.vmap(method.rule)(jnp.asarray(values, jnp.float32))
    rows = jnp.asarray(coordinates.rows * coordinates.unit, jnp.float32)
    images, counts = (jnp.asarray(x, jnp.int32) for x in streams)
    distances, vectors = _distances(rules, rows, images, counts, jnp.asarray(truth))
    return np.asarray(distances), np.asarray(vectors)


def configs(quick: bool = False) -> dict[str, ino.Config]:
    """Returns nothing: the data do not come from a model."""
    return {}


def compute(quick: bool = False) -> Arrays:
    """Returns for each preparation, number of components and method the distances along the
    streams; in the detailed case also the vectors of one stream, and the distances along
    streams that change."""
    preparations = prepared(faces())
    first_preparation = next(iter(preparations))
    if quick:
        preparations = {first_preparation: preparations[first_preparation]}
    arrays: Arrays = {}
    for name, images in preparations.items():
        for components in (DETAILED,) if quick else COMPONENTS:
            with_change = components == DETAILED and name == first_preparation
            case = f"{name}/{components}"
            arrays |= _compute_case(case, images, components, with_change, quick)
    return arrays


def _compute_case(
    case: str, images: np.ndarray, components: int, with_change: bool, quick: bool
) -> Arrays:
    arrays: Arrays = {}
    seeds = range(QUICK_STREAMS if quick else STREAMS)
    coordinates = Coordinates.of(images)
    in_basis = lambda vectors: (vectors @ coordinates.basis.T).astype(np.float32)
    truth = in_basis(_offline_components(images, components))
    for name, method in METHODS.items():
        if quick and name in BEYOND_PAPER:
            continue
        value = _best_value(method, coordinates, truth, len(seeds))
        values = np.full(len(seeds), value)
        streams = Streams.of(seeds, NO_CHANGE)
        distances, vectors = _run(method, values, coordinates, streams, truth)
        arrays[f"{case}/{name}"] = distances
        if components == DETAILED:
            arrays[f"{case}/{name}/vectors"] = vectors[0] @ coordinates.basis
        if with_change and name in ON_CHANGE:
            after = in_basis(_offline_components(images[CHANGE[1]], components))
            streams = Streams.of(seeds, CHANGE)
            distances, _ = _run(method, values, coordinates, streams, after)
            arrays[f"{case}/{name}/change"] = distances
    if components == DETAILED:
        arrays[f"{case}/offline PCA/vectors"] = truth @ coordinates.basis
    return arrays


def _offline_components(images: np.ndarray, components: int) -> np.ndarray:
    """The leading components of offline PCA, by an exact decomposition: scikit-learn would
    find them by random projections, with other results in each run."""
    _, _, basis = np.linalg.svd(images - images.mean(axis=0), full_matrices=False)
    return basis[:components]


def _best_value(
    method: Method, coordinates: Coordinates, truth: np.ndarray, streams: int
) -> float:
    """The value of the method's parameter with the smallest distance at the end."""
    values = np.asarray(method.values)
    if len(values) == 1:
        return float(values[0])
    # As many streams as in the figure, so that the same compiled program serves both; each
    # seed with every value.
    repetitions = streams // len(values)
    first = _FIRST_SEED_TO_CHOOSE
    drawn = Streams.of(range(first, first + repetitions), NO_CHANGE)
    drawn = drawn._replace(images=np.repeat(drawn.images, len(values), axis=0))
    distances, _ = _run(method, np.resize(values, streams), coordinates, drawn, truth)
    last = distances[:, -1].reshape(-1, len(values)).mean(axis=0)
    return float(values[np.nanargmin(last)])


def cases_of(arrays: Arrays) -> list[str]:
    """Returns the computed cases, each `"<preparation>/<number of components>"`."""
    end = "/INO-PCA"
    return [key.removesuffix(end) for key in arrays if key.endswith(end)]
