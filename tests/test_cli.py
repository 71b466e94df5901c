"""The commands as a user types them."""

import csv
import shlex

import numpy as np
import pytest

import inopca_jax as ino
from inopca_jax._cli.main import main

from .cases import arrays_in, sparing

# At a p that is large enough for all trials to keep the sign of the overlap.
QUICK = ["--p", "2000", "--t-max", "2", "--points", "5", "--trials", "3"]


def simulate(*flags):
    return main(["simulate", *QUICK, *flags])


def test_simulate_prints_a_table_of_theory_and_trials(capsys):
    assert simulate() == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "INO-PCA, p = 2000, 3 trials"
    assert lines[1].split() == [
        "t",
        "q",
        "theory",
        "q",
        "mean",
        "q",
        "sd",
        "lam",
        "theory",
        "lam",
        "mean",
        "lam",
        "sd",
    ]
    rows = np.array([[float(v) for v in line.split()] for line in lines[2:7]])
    assert rows[:, 0].tolist() == [0.0, 0.5, 1.0, 1.5, 2.0]
    assert rows[0, 1] == 0.1
    assert np.all(np.isfinite(rows))


@pytest.mark.smoke
def test_numbers_and_figure_are_written(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")  # for a table of one block
    npz, png = tmp_path / "a.npz", tmp_path / "a.png"
    assert simulate("--out", str(npz), "--plot", str(png), "--reference", "2") == 0
    printed = capsys.readouterr().out
    assert f"figure: {png}" in printed
    assert printed.splitlines()[1].endswith("q reference")
    arrays = arrays_in(npz)
    assert arrays["q"].shape == arrays["lam"].shape == (3, 5)
    assert arrays["reference_q"].shape == (2, 5)
    assert arrays["finite"].all()
    assert png.read_bytes()[:4] == b"\x89PNG"

    table = tmp_path / "a.csv"
    assert simulate("--out", str(table)) == 0
    rows = list(csv.reader(table.read_text().splitlines()))
    assert rows[0][:3] == ["t", "q_theory", "q_mean"]
    assert np.isclose(float(rows[3][2]), arrays["q"][:, 2].mean(), atol=1e-6)


@pytest.mark.slow
def test_the_seed_decides_the_bits(tmp_path):
    qs = []
    for i, flags in enumerate(
        (["--seed", "1"], ["--seed", "1", "--chunk", "32"], ["--seed", "2"])
    ):
        out = tmp_path / f"{i}.npz"
        assert simulate(*flags, "--out", str(out)) == 0
        qs.append(arrays_in(out)["q"])
    assert np.array_equal(qs[0], qs[1])
    assert not np.array_equal(qs[0], qs[2])


ALGORITHMS = [
    ["--rule", "cubic", "--degree", "4"],
    ["--rule", "oja", "--schedule", "harmonic", "--c", "2", "--t0", "2"],
    [
        "--rule",
        "ino-pca",
        "--schedule",
        "interpolated",
        "--knots",
        "0",
        "1",
        "--taus",
        "1",
        ".5",
    ],
    ["--rule", "ada-oja", "--b0", "100"],
    ["--rule", "ccipca", "--amnesic", "2", "--t0", "1"],
    ["--engine", "stream", "--dtype", "float64", "--start", "cold", "--lam0", "2"],
    [
        "--spike",
        "sparse",
        "--rho",
        ".3",
        "--switch-times",
        "1",
        "--switch-spikes",
        "gaussian",
    ],
]


def test_every_name_builds_its_algorithm():
    from inopca_jax._cli import problem

    for rule in problem.LABELS:
        assert isinstance(problem.Algorithm(rule=rule).build(), ino.AbstractRule)
    for schedule in ("constant", "harmonic", "adagrad", "oracle", "interpolated"):
        built = problem.Algorithm(rule="krasulina", schedule=schedule).build()
        assert type(built.tau).__name__.lower() == schedule


@pytest.mark.parametrize("flags", sparing(ALGORITHMS), ids=" ".join)
def test_every_rule_schedule_and_model_can_be_asked_for(flags, capsys):
    assert simulate(*flags) == 0
    assert "steady state" in capsys.readouterr().out


def test_a_start_without_a_side_is_reported_by_its_modulus(capsys):
    assert simulate("--rule", "ccipca", "--start", "warm") == 0
    output = capsys.readouterr()
    assert "|q|" in output.out
    assert "note: The mean field is singular" in output.err


@pytest.mark.slow
def test_the_theory_of_a_cold_start_is_that_of_the_modulus(tmp_path, capsys):
    out, trials = tmp_path / "cold.npz", 400
    flags = f"--start cold --p 1000 --t-max 20 --points 6 --trials {trials} --out {out}"
    assert main(["simulate", *flags.split()]) == 0
    lines = capsys.readouterr().out.splitlines()
    table = np.array([[float(v) for v in line.split()] for line in lines[3:9]])
    shown, mean, sd = table[:, 1], table[:, 2], table[:, 3]
    assert np.all(np.abs(shown - mean) < 4 * sd / trials**0.5)
    assert mean[-1] > 0.8  # where the mean field has 0
    arrays = arrays_in(out)
    assert np.allclose(arrays["theory_q"], shown, atol=1e-4)
    assert "theory_q_std" not in arrays


def test_a_theory_that_stays_at_zero_says_so(capsys):
    assert simulate("--rule", "ccipca", "--start", "cold") == 0
    assert "note: The theory is the mean field, which stays at q = 0" in (
        capsys.readouterr().err
    )


def test_limits_prints_the_closed_forms(capsys):
    assert main(["limits", "--omega", "1", "--tau", "0.5"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("INO-PCA, omega = 1, t = 50\n")
    for number in ("0.207107", "0.881917", "2.000000", "0.980196"):
        assert number in out


def test_ctrl_c_is_exit_code_130(monkeypatch, capsys):
    def interrupted(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr(ino, "simulate", interrupted)
    assert simulate() == 130
    assert "stopped" in capsys.readouterr().err


@pytest.mark.slow
def test_density_prints_writes_and_draws(tmp_path, capsys):
    out, drawn = tmp_path / "d.npz", tmp_path / "d.png"
    flags = shlex.split("--p 400 --ts 0 2 --cells 100 --trials 0 --spike sparse")
    flags += ["--given", "0", "--no-rescaled"]
    assert main(["density", *flags, "--out", str(out), "--plot", str(drawn)]) == 0
    table = capsys.readouterr().out
    assert "mass - 1" in table
    with np.load(out) as arrays:
        assert arrays["pdf"].shape == (2, 2, 100)
        assert arrays["pdf"].dtype == np.float64
        width = arrays["x"][1] - arrays["x"][0]
        assert np.allclose(arrays["marginal"].sum(axis=1) * width, 1, atol=1e-12)
    assert drawn.stat().st_size > 5000


TUNE = ["tune", "--p", "500", "--t-max", "5", "--points", "6"]


def test_tune_prints_writes_draws_and_checks(tmp_path, capsys):
    npz, png = tmp_path / "tuned.npz", tmp_path / "tuned.png"
    files = ["--out", str(npz), "--plot", str(png)]
    assert main([*TUNE, "--check", "--trials", "20", *files]) == 0
    lines = capsys.readouterr().out.splitlines()
    rows = {name: numbers for name, *numbers in (line.rsplit(None, 2) for line in lines)}
    before, after = map(float, rows["rule.tau.value"])
    assert before == 0.5
    assert after > 0.5  # there is little time
    assert rows["objective"][1] > rows["objective"][0]
    assert rows["trials"] == ["20", "20"]
    assert "simulated with p = 500:" in lines
    arrays = arrays_in(npz)
    assert np.isclose(arrays["rule.tau.value"], after, rtol=1e-5)
    assert np.isclose(arrays["value"], arrays["values"].max())
    assert png.read_bytes()[:4] == b"\x89PNG"


def test_a_level_that_no_gain_reaches_is_one_line_and_exit_code_2(capsys):
    assert main([*TUNE, "--objective", "time-to-reach", "--level", "0.9"]) == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert len(output.err.splitlines()) == 1
    assert "--level 0.9 cannot be reached by t = 5: no gain has" in output.err
