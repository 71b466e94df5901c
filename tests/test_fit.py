"""`inopca fit`, as a user types it."""

import io
import os
import signal

import numpy as np
import pytest
from hypothesis import given, strategies as st

import inopca_jax as ino
from inopca_jax import data
from inopca_jax._cli.main import main
from inopca_jax._streaming.scaled import ScaledStream

from .cases import arrays_in, budgets


def test_fit_prints_writes_and_draws(tmp_path, capsys):
    np.save(tmp_path / "x.npy", data.digits())
    out, figure = tmp_path / "c.npz", tmp_path / "scree.png"
    flags = ["--components", "3", "--out", str(out), "--plot", str(figure)]
    assert main(["fit", str(tmp_path / "x.npy"), *flags]) == 0
    printed = capsys.readouterr().out
    assert "1,797 samples of 64 features (float32)" in printed
    assert printed.startswith("Sketch, memory = inf")
    model = ino.StreamingPCA(3, random_state=0).fit(data.digits())
    found = arrays_in(out)
    assert np.array_equal(found["components"], model.components_)
    total = np.var(data.digits(), axis=0, ddof=1).sum()
    assert found["total_variance"] == pytest.approx(total, rel=1e-6)
    assert figure.stat().st_size > 5_000


def test_an_interrupted_fit_keeps_what_it_has(tmp_path, monkeypatch, capsys):
    np.save(tmp_path / "x.npy", np.tile(data.digits(), (6, 1)))
    whole, calls = ScaledStream.updated, []

    def interrupted(self, rows):
        calls.append(len(rows))
        if len(calls) == 3:  # the first one compiles
            os.kill(os.getpid(), signal.SIGINT)
        return whole(self, rows)

    monkeypatch.setattr(ScaledStream, "updated", interrupted)
    command = ["fit", str(tmp_path / "x.npy"), "--out", str(tmp_path / "c.npz")]
    assert main(command) == 130
    assert arrays_in(tmp_path / "c.npz")["samples"] == sum(calls[1:]) < 6 * 1797
    assert (
        capsys.readouterr().err
        == "inopca: stopped; the results are those of the samples before\n"
    )


BAD_DATA = {
    "nan": (np.where(np.arange(8) == 3, np.nan, np.ones((5, 8))), "first in row 0"),
    "flat": (np.ones(5), "shape (5,)"),
    "empty": (np.ones((0, 3)), "shape (0, 3)"),
    "complex": (np.ones((5, 3), complex), "complex128"),
    "text": (np.array([["a", "b"]]), "<U1"),
    "durations": (np.ones((5, 3), "m8[s]"), "timedelta64"),
    "truths": (np.ones((5, 3), bool), "bool"),
    "records": (np.ones((5, 3), [("a", "<f8"), ("b", "<f4")]), "('a', '<f8')"),
    "objects": (np.full((5, 3), None), "Python objects"),
    "large": (1e160 * np.eye(5), "escale"),
    "small": (1e-160 * np.eye(5), "escale"),
    "beyond float64": (np.eye(5) * np.longdouble("1e3000"), "row 0"),
    "narrow": (np.ones((5, 1)), "--components 2"),
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


def npy(shape, descr="'<f8'"):
    """A file with that shape in its header, and 400 bytes after it."""
    text = f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}"
    text += " " * (-(len(text) + 11) % 64) + "\n"
    return b"\x93NUMPY\1\0" + len(text).to_bytes(2, "little") + text.encode() + bytes(400)


def zipped():
    file = io.BytesIO()
    np.savez(file, x=np.ones((5, 3)))
    return file.getvalue()


BAD_FILES = {
    "no bytes": b"",
    "a zip": zipped(),
    "a pickle": b"\x80\x04N.",
    "negative": npy("(-5, -3)"),
    "negative rows": npy("(-5, 3)"),
    "not whole": npy("(5.0, 3)"),
    "a truth": npy("(True, 3)"),
    "huge": npy(f"({10**30}, 3)"),
    "nested": npy("(" * 3_000 + ")" * 3_000),
    "nested, a little": npy("(" * 90 + ")" * 90),
    "many signs": npy(f"({'-' * 5_000}1, 3)"),
    "no type": npy("(5, 3)", "'zzz'"),
    "objects": npy("(5, 3)", "'|O'"),
    "cut": npy("(5, 3)")[:200],
    "cut in the header": npy("(5, 3)")[:60],
    "cut in the first bytes": npy("(5, 3)")[:7],
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_a_file_that_is_no_array_is_one_line_and_exit_code_2(name, tmp_path, capsys):
    path = tmp_path / "x.npy"
    path.write_bytes(BAD_FILES[name])
    assert main(["fit", str(path)]) == 2
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith(f"inopca: data = {path} ")
    assert "allow_pickle" not in line


@pytest.mark.parametrize("make", [os.mkdir, os.mkfifo])
def test_what_is_no_regular_file_is_refused(make, tmp_path, capsys):
    """To open a fifo would be to wait for somebody to write to it."""
    make(tmp_path / "x.npy")
    assert main(["fit", str(tmp_path / "x.npy")]) == 2
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith(f"inopca: data = {tmp_path / 'x.npy'} ")


def fitted(folder, content):
    path = folder / "x.npy"
    path.write_bytes(content)
    return main(["fit", str(path), "--components", "1"])


@budgets(quick=60)
@given(st.binary(max_size=300), st.booleans())
def test_random_bytes_as_data_are_refused(folder, content, magic):
    assert fitted(folder, magic * b"\x93NUMPY\1\0" + content) == 2


@budgets(quick=60)
@given(st.data())
def test_a_damaged_header_raises_nothing_but_our_errors(folder, data):
    file = io.BytesIO()
    np.save(file, np.random.default_rng(0).standard_normal((20, 3)))
    content = bytearray(file.getvalue())
    for place in data.draw(st.lists(st.integers(0, 8 * 128 - 1), min_size=1, max_size=3)):
        content[place // 8] ^= 1 << place % 8
    assert fitted(folder, bytes(content)) in (0, 2)


@pytest.mark.parametrize("center", ["--center", "--no-center"])
def test_shares_do_not_depend_on_the_scale(center, tmp_path, capsys):
    samples = data.digits()[:300].astype(float)
    shares = []
    for scale in (1.0, 1e153, 1e-140):
        np.save(tmp_path / "x.npy", scale * samples)
        assert main(["fit", str(tmp_path / "x.npy"), center]) == 0
        printed, noted = capsys.readouterr()
        assert not noted
        lines = printed.splitlines()[3:5]
        shares.append([float(line.split()[2]) for line in lines])
    assert np.all(np.array(shares) > 0.01)
    assert np.allclose(shares, shares[0], atol=1e-3)


def test_a_first_row_unlike_the_others_is_no_error(tmp_path, capsys):
    for first in (0.0, 1e-200):
        samples = data.digits()[:300].astype(float)
        samples[0] = first
        np.save(tmp_path / "x.npy", samples)
        for center in ("--center", "--no-center"):
            assert main(["fit", str(tmp_path / "x.npy"), center]) == 0


@pytest.mark.parametrize("rule", ["ino-pca", "oja", "ada-oja", "krasulina", "cubic"])
def test_a_flag_that_the_rule_does_not_read_is_refused(rule, tmp_path, capsys):
    np.save(tmp_path / "x.npy", data.digits()[:100])
    flags = ["--rule", rule, "--amnesic", "2.0"]
    assert main(["fit", str(tmp_path / "x.npy"), *flags]) == 2
    [line] = capsys.readouterr().err.splitlines()
    assert line == (
        "inopca: --amnesic 2.0 is not allowed: it is read only with --rule ccipca. "
        "Leave it out."
    )


def test_a_memory_is_that_of_the_sketch(tmp_path, capsys):
    np.save(tmp_path / "x.npy", data.digits()[:300])
    path, out = str(tmp_path / "x.npy"), str(tmp_path / "c.npz")
    assert main(["fit", path, "--memory", "50", "--out", out]) == 0
    assert capsys.readouterr().out.startswith("Sketch, memory = 50")
    model = ino.StreamingPCA(2, memory=50, random_state=0).fit(data.digits()[:300])
    assert np.array_equal(arrays_in(tmp_path / "c.npz")["components"], model.components_)
    assert main(["fit", path, "--rule", "ino-pca"]) == 0
    assert capsys.readouterr().out.startswith("INO-PCA, tau = ")
    for flags in (["--rule", "oja", "--memory", "50"], ["--tau", "0.1"], ["--memory", "0"]):
        assert main(["fit", path, *flags]) == 2


def test_ccipcas_amnesia_is_2_unless_it_is_given(tmp_path):
    np.save(tmp_path / "x.npy", data.digits()[:300])
    found = []
    for flags in ([], ["--amnesic", "2"], ["--amnesic", "4"]):
        out = ["--out", str(tmp_path / "c.npz")]
        command = ["fit", str(tmp_path / "x.npy"), "--rule", "ccipca", *flags, *out]
        assert main(command) == 0
        found.append(arrays_in(tmp_path / "c.npz")["components"])
    assert np.array_equal(found[0], found[1])
    assert not np.allclose(found[0], found[2])
