"""Data sets and a synthetic stream to try the algorithms on.

`digits` and the download of `faces` need the extra `sklearn`.
"""

import contextlib
import os
import socket
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float
from scipy.io import loadmat

from ._check import (
    Checked,
    plain_number,
    positive,
    reals_on_host,
    require,
    require_list,
    require_path,
    require_whole,
)
from ._extras import import_extra

FACES = "INOPCA_OLIVETTI"
"""The environment variable with the path of a file of the Olivetti faces."""

# How many seconds a download waits for an answer, and how often it is tried again.
_TIMEOUT, _RETRIES = 20.0, 1


class NotAvailable(OSError):
    """Raised if data are not on this machine and cannot be downloaded.

    **Example:**

    ```pycon
    >>> from inopca_jax import data
    >>> issubclass(data.NotAvailable, OSError)
    True
    ```
    """


def digits() -> Float[np.ndarray, "1797 64"]:
    """Returns scikit-learn's handwritten digits, which need no download.

    **Returns:**

    Shape `(1797, 64)`: images of 8 x 8 pixels in [0, 1], in float32.

    **Example:**

    ```pycon
    >>> from inopca_jax import data
    >>> data.digits().shape
    (1797, 64)
    ```
    """
    datasets = import_extra("sklearn.datasets", "data.digits", "sklearn")
    return np.asarray(datasets.load_digits().data, np.float32) / 16


def faces(path: Checked[str | Path | None] = None) -> Float[np.ndarray, "400 4096"]:
    """Returns the Olivetti faces: ten images of each of 40 people.

    They are read from `path`, or else from the file that the environment variable
    `INOPCA_OLIVETTI` names; an `OSError` is raised if that file is not valid. With neither,
    scikit-learn downloads them once, or `NotAvailable`, an `OSError`, is raised.

    **Arguments:**

    - `path`: `olivettifaces.mat`, as their home page has it, with one image in a column.

    **Returns:**

    Shape `(400, 4096)`: images of 64 x 64 pixels in [0, 1], in float32.

    **Example:**

    ```pycon
    >>> from inopca_jax import data
    >>> images = data.faces("olivettifaces.mat")  # doctest: +SKIP
    >>> images.shape  # doctest: +SKIP
    (400, 4096)
    ```
    """
    path = os.environ.get(FACES) if path is None else path
    if path is not None and not (isinstance(path, str) and not path):
        return _read_faces(require_path("path", path))
    remedy = f"pass path=, or set {FACES} to an olivettifaces.mat"
    try:
        datasets = import_extra("sklearn.datasets", "A download of the faces", "sklearn")
    except ImportError as error:
        raise NotAvailable(f"{error} Or {remedy}.") from None
    try:
        with _download_timeout(), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # scikit-learn warns of each further attempt
            fetched = datasets.fetch_olivetti_faces(n_retries=_RETRIES)
            return np.asarray(fetched.data, np.float32)
    # No connection, a broken one, a timeout, an incomplete file: many types of error.
    except Exception as error:
        raise NotAvailable(
            f"The Olivetti faces cannot be downloaded ({type(error).__name__}: {error}): "
            f"{remedy}; data.digits() needs no network."
        ) from error


@contextlib.contextmanager
def _download_timeout() -> Iterator[None]:
    """Sets a timeout for connections that are opened inside; Python's default is none."""
    before = socket.getdefaulttimeout()
    socket.setdefaulttimeout(_TIMEOUT)
    try:
        yield
    finally:
        socket.setdefaulttimeout(before)


def _read_faces(path: Path) -> Float[np.ndarray, "400 4096"]:
    remedy = f"pass path= or set {FACES} to an olivettifaces.mat"
    if not path.is_file():
        raise OSError(f"{path} is not a file: {remedy}.")
    try:
        pixels = loadmat(path)["faces"]
    # A damaged file raises almost anything.
    except Exception as error:
        raise OSError(f"{path} has no variable `faces` ({error}): {remedy}.") from None
    if pixels.shape != (4096, 400):
        raise OSError(f"{path} has faces of shape {pixels.shape}: {remedy}.")
    if (
        pixels.dtype.kind not in "iuf"
        or not np.isfinite(pixels).all()
        or not np.ptp(pixels)
    ):
        raise OSError(f"{path} has faces that are not images in grey levels: {remedy}.")
    pixels = pixels.T.astype(np.float32)
    pixels = (pixels - pixels.min()) / (pixels.max() - pixels.min())
    # The file stores an image column by column; we return it row by row.
    return pixels.reshape(400, 64, 64).transpose(0, 2, 1).reshape(400, 4096)


class Drift:
    """A synthetic stream whose principal subspace rotates steadily, or jumps.

    Sample `k` is `sum_i sqrt(eigenvalues_i - 1) c_i u_i + noise`, with independent standard
    normal `c_i`, standard normal noise, and orthonormal directions `u_i`.

    **Arguments:**

    - `eigenvalues`: the leading eigenvalues of the covariance, at least 1; others are 1.
    - `p`: the number of features, at least twice the number of eigenvalues.
    - `turn`: the angle in radians by which each direction rotates per sample, in a plane of
        its own.
    - `jumps`: the samples at which all directions are drawn anew.
    - `seed`: the seed of directions and samples.

    **Example:**

    ```pycon
    >>> from inopca_jax import data
    >>> stream = data.Drift([9.0, 4.0], p=20, turn=1e-3)
    >>> [rows.shape for rows in stream.samples(300, chunk=200)]
    [(200, 20), (100, 20)]
    >>> stream.basis(0).shape
    (2, 20)
    ```
    """

    def __init__(
        self,
        eigenvalues: Checked[Sequence[float]],
        *,
        p: Checked[int],
        turn: Checked[float] = 0.0,
        jumps: Checked[Sequence[int]] = (),
        seed: Checked[int] = 0,
    ):
        remedy = "pass a list of real numbers"
        self.eigenvalues = reals_on_host("eigenvalues", eigenvalues, remedy)
        if self.eigenvalues.ndim != 1 or not self.eigenvalues.size:
            raise ValueError(
                f"eigenvalues of shape {self.eigenvalues.shape} is not allowed: pass one "
                "axis of them."
            )
        require(
            "eigenvalues", self.eigenvalues, lambda x: x >= 1, "the noise has variance 1"
        )
        require("eigenvalues", self.eigenvalues, positive, "they must be finite")
        least = 2 * self.eigenvalues.size
        remedy = f"each direction rotates in a plane of its own: pass at least {least}"
        self.p = require_whole("p", p, least, remedy)
        self.turn = plain_number("turn", turn, np.isfinite, "pass a finite angle")
        remedy = "pass a list of whole numbers, the samples at which to jump"
        entries = require_list("jumps", jumps, remedy)
        self.jumps = tuple(
            sorted(require_whole("jumps", entry, 0, remedy, None) for entry in entries)
        )
        remedy = "pass a whole number, not negative"
        self.seed = require_whole("seed", seed, 0, remedy, most=None)

    def basis(self, sample: Checked[int]) -> Float[np.ndarray, "components p"]:
        """Returns the directions from which a sample is drawn.

        **Arguments:**

        - `sample`: the index of the sample, from 0.

        **Returns:**

        Shape `(components, p)`, orthonormal rows.
        """
        remedy = "pass a whole number, from 0 to 10^15"
        sample = require_whole("sample", sample, 0, remedy, most=10**15)
        return self._rotated(sample, self.turn * sample)

    def _rotated(self, sample: int, angle: float) -> Float[np.ndarray, "components p"]:
        """Returns the directions of the phase of a sample, rotated by an angle."""
        phase = sum(sample >= jump for jump in self.jumps)
        draw = np.random.default_rng([self.seed, phase]).standard_normal
        planes, _ = np.linalg.qr(draw((self.p, 2 * self.eigenvalues.size)))
        first, second = np.split(planes.T, 2)
        return np.cos(angle) * first + np.sin(angle) * second

    def samples(self, count: Checked[int], chunk: Checked[int] = 256) -> Iterator[Any]:
        """Returns an iterator over the samples.

        Every call yields the same samples, up to rounding if `chunk` differs.

        **Arguments:**

        - `count`: the number of samples.
        - `chunk`: the largest number of samples in an array.

        **Returns:**

        An iterator of arrays of shape `(rows, p)`, in float32.
        """
        remedy = "pass a whole number of samples, at most 10^15"
        count = require_whole("count", count, 0, remedy, most=10**15)
        chunk = require_whole("chunk", chunk, 1, "pass a whole number of at least 1")
        return self._samples(count, chunk)

    def _samples(self, count: int, chunk: int) -> Iterator[Any]:
        random = np.random.default_rng([self.seed, len(self.jumps), 1])
        strength = np.sqrt(self.eigenvalues - 1)
        begins = sorted({*range(0, count, chunk), *(j for j in self.jumps if j < count)})
        for begin, end in zip(begins, [*begins[1:], count], strict=True):
            size = end - begin
            # All numbers of a sample before the next, so that chunks do not matter.
            drawn = random.standard_normal((size, strength.size + self.p))
            c, noise = drawn[:, : strength.size] * strength, drawn[:, strength.size :]
            # Each plane is spanned by two directions, the same for all of these samples.
            angle = self.turn * np.arange(begin, end)[:, None]
            first, second = (self._rotated(begin, a) for a in (0.0, np.pi / 2))
            signal = (np.cos(angle) * c) @ first + (np.sin(angle) * c) @ second
            yield (signal + noise).astype(np.float32)
