"""`inopca fit`, as a user types it."""

import os
import signal

import numpy as np
import pytest

import inopca_jax as ino
from inopca_jax import data
from inopca_jax.cli import main

from .cases import arrays_in


def test_fit_prints_writes_and_draws(tmp_path, capsys):
    np.save(tmp_path / "x.npy", data.digits())
    out, figure = tmp_path / "c.npz", tmp_path / "scree.png"
    flags = ["--components", "3", "--out", str(out), "--plot", str(figure)]
    assert main(["fit", str(tmp_path / "x.npy"), *flags]) == 0
    printed = capsys.readouterr().out
    assert "1,797 samples of 64 features (float32)" in printed
    assert "a second; tau = " in printed
    model = ino.StreamingPCA(3, random_state=0).fit(data.digits())
    found = arrays_in(out)
    assert np.array_equal(found["components"], model.components_)
    total = np.var(data.digits(), axis=0, ddof=1).sum()
    assert found["total_variance"] == pytest.approx(total, rel=1e-6)
    assert figure.stat().st_size > 5_000


def test_an_interrupted_fit_keeps_what_it_has(tmp_path, monkeypatch, capsys):
    np.save(tmp_path / "x.npy", np.tile(data.digits(), (6, 1)))
    whole, calls = ino.StreamingPCA.partial_fit, []

    def interrupted(self, rows):
        calls.append(len(rows))
        if len(calls) == 2:
            os.kill(os.getpid(), signal.SIGINT)
        return whole(self, rows)

    monkeypatch.setattr(ino.StreamingPCA, "partial_fit", interrupted)
    command = ["fit", str(tmp_path / "x.npy"), "--out", str(tmp_path / "c.npz")]
    assert main(command) == 130
    assert arrays_in(tmp_path / "c.npz")["samples"] == sum(calls) < 6 * 1797
    assert capsys.readouterr().err == "inopca: stopped; this is what came before\n"


BAD_DATA = {
    "nan": (np.where(np.arange(8) == 3, np.nan, np.ones((5, 8))), "first in row 0"),
    "flat": (np.ones(5), "shape (5,)"),
    "empty": (np.ones((0, 3)), "shape (0, 3)"),
    "complex": (np.ones((5, 3), complex), "complex128"),
    "text": (np.array([["a", "b"]]), "<U1"),
    "narrow": (np.ones((5, 1)), "components = 2"),
}


@pytest.mark.parametrize("name", BAD_DATA)
def test_data_that_cannot_be_fitted_are_one_line_and_exit_code_2(name, tmp_path, capsys):
    samples, message = BAD_DATA[name]
    np.save(tmp_path / "x.npy", samples)
    assert main(["fit", str(tmp_path / "x.npy"), "--out", str(tmp_path / "c.npz")]) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "c.npz").exists()
    assert main(["fit", str(tmp_path / "none.npy")]) == 2
    assert main(["fit", str(tmp_path / "x.npy"), "--rule", "ccipca", "--tau", "1"]) == 2
