"""Data, and the paper's experiment on faces."""

import os
from urllib.error import URLError

import numpy as np
import pytest
from scipy.io import savemat

from inopca_jax import data
from inopca_jax.paper import olivetti

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


def test_without_faces_the_alternatives_are_named(monkeypatch, tmp_path):
    monkeypatch.delenv(data.FACES, raising=False)

    def offline(**_):
        raise URLError("no route")

    monkeypatch.setattr(data, "fetch_olivetti_faces", offline)
    with pytest.raises(OSError, match=rf"no route.*path=.*{data.FACES}.*digits"):
        data.faces()
    with pytest.raises(OSError, match="is not a file"):
        data.faces(tmp_path / "none.mat")
    (tmp_path / "text.mat").write_text("no faces")
    savemat(tmp_path / "other.mat", dict(faces=np.zeros((2, 2))))
    savemat(tmp_path / "without.mat", dict(x=np.zeros((2, 2))))
    monkeypatch.setenv(data.FACES, str(tmp_path / "text.mat"))
    for name, message in (
        (None, "has no variable"),
        ("other.mat", "shape"),
        ("without.mat", "has no variable"),
    ):
        with pytest.raises(OSError, match=message):
            data.faces(None if name is None else tmp_path / name)


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


@pytest.mark.slow
@needs_faces
def test_the_experiment_comes_out_as_recorded(tmp_path):
    """One preparation, nine components: the verdicts, and two figures."""
    found = olivetti.compute(quick=True)
    verdicts = [claim.verdict for claim in olivetti.claims(found)]
    assert verdicts == ["holds", "holds", "does not hold", "holds", "holds"]
    for draw in (olivetti.draw, olivetti.draw_components):
        draw(found).savefig(tmp_path / "figure.png")
        assert (tmp_path / "figure.png").stat().st_size > 10_000
