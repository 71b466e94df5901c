"""Data to try the algorithms on (some of it needs the extra `sklearn`)."""

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

FACES = "INOPCA_OLIVETTI"
"""The environment variable that names a file with the faces."""

_NEEDS_SKLEARN = "needs scikit-learn: pip install 'inopca_jax[sklearn]'"
# After how many seconds without an answer a download is given up, of which scikit-learn
# makes one attempt and as many more as this.
_TIMEOUT, _RETRIES = 20.0, 1


class NotAvailable(OSError):
    """Data that are not on this machine and cannot be downloaded to it."""


def digits() -> Float[np.ndarray, "1797 64"]:
    """scikit-learn's handwritten digits, 8 x 8 pixels in [0, 1]; they need no network."""
    try:
        from sklearn.datasets import load_digits
    except ImportError:
        raise ImportError(f"data.digits {_NEEDS_SKLEARN}.") from None
    return np.asarray(load_digits().data, np.float32) / 16  # pyright: ignore


def faces(path: Checked[str | Path | None] = None) -> Float[np.ndarray, "400 4096"]:
    """The Olivetti faces, 64 x 64 pixels in [0, 1], ten of each of 40 people.

    From `path`, or the file that the environment variable `INOPCA_OLIVETTI` names: a
    `.mat` as their home page has it, one image a column. A file that is not that raises an
    `OSError`. Without either through scikit-learn, which downloads them once; if that
    fails, for whatever reason, `NotAvailable` is raised, which is an `OSError` too.
    """
    path = os.environ.get(FACES) if path is None else path
    if path is not None and not (isinstance(path, str) and not path):
        return _faces_in(require_path("path", path))
    remedy = f"pass path=, or set {FACES} to an olivettifaces.mat"
    try:
        from sklearn.datasets import fetch_olivetti_faces
    except ImportError:
        text = f"To download the Olivetti faces {_NEEDS_SKLEARN}, or {remedy}."
        raise NotAvailable(text) from None
    try:
        with _impatient(), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of another attempt: the error says enough
            return np.asarray(
                fetch_olivetti_faces(n_retries=_RETRIES).data,  # pyright: ignore
                np.float32,
            )
    # No connection, one that is cut or does not answer, a file that is not whole: any.
    except Exception as error:
        raise NotAvailable(
            f"The Olivetti faces cannot be downloaded ({type(error).__name__}: {error}): "
            f"{remedy}; data.digits() needs no network."
        ) from error


@contextlib.contextmanager
def _impatient() -> Iterator[None]:
    """Connections that are opened inside do not wait for ever, as by default they do."""
    before = socket.getdefaulttimeout()
    socket.setdefaulttimeout(_TIMEOUT)
    try:
        yield
    finally:
        socket.setdefaulttimeout(before)


def _faces_in(path: Path) -> Float[np.ndarray, "400 4096"]:
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
        raise OSError(f"{path} has faces that are no pictures in shades of grey: {remedy}.")
    pixels = pixels.T.astype(np.float32)
    pixels = (pixels - pixels.min()) / (pixels.max() - pixels.min())
    # Stored column by column; upright, row by row.
    return pixels.reshape(400, 64, 64).transpose(0, 2, 1).reshape(400, 4096)


class Drift:
    """A stream whose main subspace turns steadily, or jumps.

    Samples are `sum_i sqrt(eigenvalues_i - 1) c_i u_i + noise` of unit variance, with
    orthonormal `u_i`. Each turns in a plane of its own by `turn` radians a sample, and at
    the samples in `jumps` all are drawn anew.
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
        twice = 2 * self.eigenvalues.size
        self.p = require_whole(
            "p", p, twice, f"each direction turns in a plane of its own: at least {twice}"
        )
        self.turn = plain_number("turn", turn, np.isfinite, "pass a finite angle")
        remedy = "pass a list of whole numbers, of samples"
        found = require_list("jumps", jumps, remedy)
        self.jumps = tuple(
            sorted(require_whole("jumps", j, 0, remedy, None) for j in found)
        )
        remedy = "pass a whole number, not negative"
        self.seed = require_whole("seed", seed, 0, remedy, most=None)

    def basis(self, sample: Checked[int]) -> Float[np.ndarray, "components p"]:
        """The directions when this sample is drawn, the first being number 0."""
        remedy = "pass a whole number, from 0 to 10^15"
        sample = require_whole("sample", sample, 0, remedy, most=10**15)
        return self._turned(sample, self.turn * sample)

    def _turned(self, sample: int, angle: float) -> Float[np.ndarray, "components p"]:
        phase = sum(sample >= jump for jump in self.jumps)
        draw = np.random.default_rng([self.seed, phase]).standard_normal
        planes, _ = np.linalg.qr(draw((self.p, 2 * self.eigenvalues.size)))
        one, other = np.split(planes.T, 2)
        return np.cos(angle) * one + np.sin(angle) * other

    def samples(self, count: Checked[int], chunk: Checked[int] = 256) -> Iterator[Any]:
        """The first `count`, in arrays of up to `chunk` rows; always the same ones, up to
        rounding if `chunk` is another."""
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
            # Sample by sample, so that it does not matter how many at a time.
            drawn = random.standard_normal((size, strength.size + self.p))
            c, noise = drawn[:, : strength.size] * strength, drawn[:, strength.size :]
            # Two directions of each plane serve for all samples of the phase.
            angle = self.turn * np.arange(begin, end)[:, None]
            one, other = (self._turned(begin, a) for a in (0.0, np.pi / 2))
            signal = (np.cos(angle) * c) @ one + (np.sin(angle) * c) @ other
            yield (signal + noise).astype(np.float32)
