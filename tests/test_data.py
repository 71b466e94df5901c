"""Data, and the paper's experiment on faces."""

import contextlib
import http.server
import os
import socket
import subprocess
import sys
import threading

import numpy as np
import pytest
from scipy.io import savemat
from sklearn.datasets import _olivetti_faces

from inopca_jax import data

FACES = os.environ.get(data.FACES)
needs_faces = pytest.mark.skipif(not FACES, reason=f"no faces: set {data.FACES}")


@needs_faces
def test_the_faces_are_those_that_scikit_learn_has():
    faces = data.faces(FACES)
    centred = faces - faces.mean(axis=0)
    values = np.linalg.svd(centred, compute_uv=False) ** 2 / 399
    assert faces.shape == (400, 4096)
    assert (faces.min(), faces.max()) == (0, 1)
    assert values.sum() == pytest.approx(79.12, abs=0.01)
    assert np.allclose(values[:5], [18.84, 11.07, 6.30, 3.95, 2.86], atol=0.01)


@needs_faces
def test_faces_stand_upright():
    """A row of a face is like the same row of its mirror image; a column is not."""
    mean = data.faces(FACES).mean(axis=0).reshape(64, 64)
    assert np.corrcoef(mean.ravel(), mean[:, ::-1].ravel())[0, 1] > 0.9
    assert np.corrcoef(mean.ravel(), mean[::-1].ravel())[0, 1] < 0.6


@contextlib.contextmanager
def a_server(answer):
    """The address of one that answers each request as told."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            answer(self)

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/faces"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def is_cut(handler):
    handler.send_response(200)
    handler.send_header("Content-Length", "1000000")
    handler.end_headers()
    handler.wfile.write(b"half")


def has_something_else(handler):
    handler.send_response(200)
    handler.send_header("Content-Length", "4")
    handler.end_headers()
    handler.wfile.write(b"else")


def is_down(handler):
    handler.send_error(503)


def speaks_another_protocol(handler):
    handler.wfile.write(b"what?\n")


released = threading.Event()


def hangs(handler):
    released.wait(60)


@pytest.mark.parametrize(
    "answer", [is_cut, has_something_else, is_down, speaks_another_protocol, hangs]
)
def test_faces_that_cannot_be_downloaded_are_not_available(answer, monkeypatch, tmp_path):
    monkeypatch.delenv(data.FACES, raising=False)
    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(tmp_path))
    monkeypatch.setattr(data, "_TIMEOUT", 0.5)
    before = socket.getdefaulttimeout()
    released.clear()
    with a_server(answer) as url:
        remote = _olivetti_faces.FACES._replace(url=url)
        monkeypatch.setattr(_olivetti_faces, "FACES", remote)
        with pytest.raises(data.NotAvailable, match=f"path=.*{data.FACES}.*digits"):
            data.faces()
        released.set()
    assert socket.getdefaulttimeout() == before


def test_without_a_server_or_with_half_a_download_faces_are_not_available(
    monkeypatch, tmp_path
):
    monkeypatch.delenv(data.FACES, raising=False)
    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(tmp_path))
    remote = _olivetti_faces.FACES._replace(url="http://127.0.0.1:1/faces")
    monkeypatch.setattr(_olivetti_faces, "FACES", remote)
    with pytest.raises(data.NotAvailable, match="refused"):
        data.faces()
    (tmp_path / "olivetti_py3.pkz").write_bytes(b"half of a file")
    with pytest.raises(data.NotAvailable, match="cannot be downloaded"):
        data.faces()


def test_without_scikit_learn_its_extra_is_named():
    script = """
import sys
sys.modules["sklearn"] = None  # as if it were not installed
from inopca_jax import data
from inopca_jax.paper.olivetti import FIGURE
for call in (lambda: FIGURE.compute(True), data.digits):
    try:
        call()
    except Exception as error:
        print(type(error).__name__, error)
"""
    environment = {k: v for k, v in os.environ.items() if k != data.FACES}
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=True,
        env=environment,
    )
    first, second = done.stdout.splitlines()
    assert first.startswith("NotAvailable")
    assert second.startswith("ImportError")
    for line in (first, second):
        assert "pip install 'inopca_jax[sklearn]'" in line
    assert data.FACES in first


def test_a_file_of_faces_that_is_named_and_broken_is_an_error(monkeypatch, tmp_path):
    def refusal(path=None):
        with pytest.raises(OSError, match=f"path=.*{data.FACES}") as caught:
            data.faces(path)
        assert not isinstance(caught.value, data.NotAvailable)
        return str(caught.value)

    assert "is not a file" in refusal(tmp_path / "none.mat")
    savemat(tmp_path / "other.mat", dict(faces=np.zeros((2, 2))))
    assert "shape" in refusal(tmp_path / "other.mat")
    savemat(tmp_path / "without.mat", dict(x=np.zeros((2, 2))))
    assert "has no variable" in refusal(tmp_path / "without.mat")
    pixels = np.random.default_rng(0).integers(0, 255, (4096, 400)).astype(np.uint8)
    savemat(tmp_path / "whole.mat", dict(faces=pixels), do_compression=True)
    whole = (tmp_path / "whole.mat").read_bytes()
    for size in (0, 64, 200, len(whole) // 2, len(whole) - 1):
        (tmp_path / "half.mat").write_bytes(whole[:size])
        assert "has no variable" in refusal(tmp_path / "half.mat")
    monkeypatch.setenv(data.FACES, str(tmp_path / "half.mat"))
    assert "half.mat" in refusal()
    assert data.faces(tmp_path / "whole.mat").shape == (400, 4096)


@pytest.mark.parametrize(
    "pixels",
    [
        np.zeros((4096, 400)),
        np.full((4096, 400), np.nan),
        np.ones((4096, 400)) * 1j,
        np.full((4096, 4), "x", object),
    ],
)
def test_faces_that_are_no_pictures_are_refused(pixels, tmp_path):
    savemat(tmp_path / "faces.mat", dict(faces=pixels))
    with pytest.raises(OSError, match=r"faces\.mat .*path="):
        data.faces(tmp_path / "faces.mat")


def test_digits_need_no_network():
    digits = data.digits()
    assert digits.shape == (1797, 64)
    assert (digits.min(), digits.max()) == (0, 1)


def test_a_drift_has_the_law_that_it_says():
    """In each phase, the variance along the directions and across; always the same bits;
    a basis that turns at the speed asked for."""
    drift = data.Drift([5.0, 3.0], p=10, jumps=[4_000], seed=2)
    samples = np.concatenate(list(drift.samples(8_000, chunk=300)))
    again = np.concatenate(list(drift.samples(8_000, chunk=300)))
    assert np.array_equal(samples, again)
    for part, sample in ((samples[:4_000], 0), (samples[4_000:], 7_999)):
        basis = drift.basis(sample)
        assert np.allclose(np.var(part @ basis.T, axis=0), [5, 3], rtol=0.12)
        assert np.var(part, axis=0).sum() == pytest.approx(10 + 4 + 2, rel=0.05)
    turning = data.Drift([9.0], p=6, turn=1e-3)
    assert (turning.basis(0) @ turning.basis(500).T).item() == pytest.approx(np.cos(0.5))
    late = np.concatenate(list(turning.samples(1_000)))[900:]
    along = np.var(late @ turning.basis(950).T)
    assert along > 2 * np.var(late @ turning.basis(950 + 1_571).T)


@pytest.mark.parametrize("changes", [dict(jumps=[100, 170]), dict(turn=0.01)])
def test_the_samples_of_a_drift_do_not_depend_on_how_many_are_drawn_at_a_time(changes):
    drift = data.Drift([5.0, 3.0], p=10, **changes)
    whole = np.concatenate(list(drift.samples(300, chunk=300)))
    for count, chunk in ((300, 7), (300, 256), (131, 64)):
        some = np.concatenate(list(drift.samples(count, chunk=chunk)))
        assert np.allclose(some, whole[:count], atol=1e-5)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (dict(eigenvalues=[0.5], p=10), "eigenvalues"),
        (dict(eigenvalues=[2.0, 2.0], p=3), "p = 3"),
        (dict(eigenvalues=[2.0], p=3, turn=np.nan), "turn"),
    ],
)
def test_a_drift_that_cannot_be_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        data.Drift(options.pop("eigenvalues"), **options)
