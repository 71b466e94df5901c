"""Command lines that are refused: exit code 2, one line that names the argument and its
value, and nothing is printed or written, simulated or compiled."""

import re
import shlex
from importlib import import_module

import pytest

import inopca_jax as ino
from inopca_jax._cli.main import main

from .test_sweep_command import BAD_SPECS

# The flags of a config, each line with what has to be said of it. Every command that takes
# a config refuses all of these.
CONFIG = {
    "--tau -1": "--tau -1.0",
    "--tau 0": "--tau 0.0",
    "--tau nan": "--tau nan",
    "--tau inf": "--tau inf",
    "--tau 200 --p 100": "--tau 200.0",
    "--rule cubic --degree 1": "--degree 1.0",
    "--rule cubic --degree nan": "--degree nan",
    "--schedule harmonic --c 0": "--c 0.0",
    "--schedule harmonic --t0 -1": "--t0 -1.0",
    "--schedule harmonic --k0 inf": "--k0 inf",
    "--schedule adagrad --b0 -1": "--b0 -1.0",
    "--schedule adagrad --b0 nan": "--b0 nan",
    "--rule ada-oja --b0 0": "--b0 0.0",
    "--rule ccipca --amnesic -1": "--amnesic -1.0",
    "--rule ccipca --amnesic nan": "--amnesic nan",
    "--rule ccipca --t0 -2": "--t0 -2.0",
    "--schedule interpolated --knots 0 1": "--knots (0.0, 1.0)",
    "--schedule interpolated --knots 1 0 --taus 1 1": "--knots [1.0, 0.0]",
    "--schedule interpolated --knots nan": "--knots [nan]",
    "--schedule interpolated --taus -1": "--taus [-1.0]",
    "--p 10.5": "--p 10.5",
    "--p 2": "--p 2",
    "--p -5": "--p -5",
    "--p nan": "--p nan",
    "--p 1e400": "--p inf",
    "--p 1e16": "--p 1e+16",
    "--omega -1": "--omega -1.0",
    "--omega inf": "--omega inf",
    "--spike sparse --rho 0": "--rho 0.0",
    "--spike sparse --rho nan": "--rho nan",
    "--spike shifted-exponential --rate 0": "--rate 0.0",
    "--spike shifted-exponential --shift inf": "--shift inf",
    "--switch-times 2": "--switch-times (2.0,)",
    "--switch-spikes sparse": "--switch-spikes ('sparse',)",
    "--switch-omegas 2": "--switch-omegas (2.0,)",
    "--switch-times 2 1 --switch-spikes sparse uniform": "--switch-times [2.0, 1.0]",
    "--switch-times nan --switch-spikes sparse": "--switch-times [nan]",
    "--switch-times 1 --switch-spikes sparse --switch-omegas -1": "--switch-omegas [-1.0]",
    "--q0 2": "--q0 2.0",
    "--q0 nan": "--q0 nan",
    "--lam0 0": "--lam0 0.0",
    "--lam0 inf": "--lam0 inf",
    "--start two-bumps --separation 2": "--separation 2.0",
    "--ts 1 0": "--ts [1.0, 0.0]",
    "--ts nan": "--ts [nan]",
    "--ts -1": "--ts [-1.0]",
    "--t-max -1": "--t-max -1.0",
    "--t-max inf": "--t-max inf",
    "--points 0": "--points 0",
    "--points 10000000000000": "--points 10000000000000",
    # And what the rest of the line leaves unread.
    "--rule ccipca --tau 3": "--tau 3.0",
    "--rule ccipca --tau=0.5": "--tau 0.5",
    "--rule ccipca --schedule oracle": "--schedule oracle",
    "--rule ada-oja --schedule constant": "--schedule constant",
    "--rule adaptive-ino-pca --b0 1": "--b0 1.0",
    "--rule oja --degree 5": "--degree 5.0",
    "--rule oja --amnesic 2": "--amnesic 2.0",
    "--rule ada-oja --t0 1": "--t0 1.0",
    "--schedule constant --c 3": "--c 3.0",
    "--schedule oracle --tau 0.5": "--tau 0.5",
    "--schedule adagrad --t0 1": "--t0 1.0",
    "--schedule harmonic --b0 1": "--b0 1.0",
    "--k0 1": "--k0 1.0",
    "--knots 0": "--knots 0.0",
    "--taus 1": "--taus 1.0",
    "--spike uniform --rho 0.1": "--rho 0.1",
    "--rate 2": "--rate 2.0",
    "--spike sparse --shift 1": "--shift 1.0",
    "--switch-times 1 --switch-spikes sparse --shift 1": "--shift 1.0",
    "--start cold --q0 0.5": "--q0 0.5",
    "--start warm --separation 0.3": "--separation 0.3",
    "--ts 0 1 --t-max 5": "--t-max 5.0",
    "--ts 0 1 --points 5": "--points 5",
}

SIMULATE = {
    "--trials 0": "--trials 0",
    "--trials -3": "--trials -3",
    "--seed -1": "--seed -1",
    "--seed 99999999999999999999": "--seed 99999999999999999999",
    "--chunk 0": "--chunk 0",
    "--engine stream --chunk 3": "--chunk 3",
    "--engine diffusion --dt 0": "--dt 0.0",
    "--engine diffusion --dt nan": "--dt nan",
    "--engine diffusion --p 10": "--p 10",
    "--engine stream --p 1e10": "--p 10000000000",
    "--p 1e10": "--p 10000000000",
    "--plot a.png --bars -1": "--bars -1.0",
    "--plot a.png --bars nan": "--bars nan",
    "--reference -1": "--reference -1",
    "--reference 1 --reference-until -1": "--reference-until -1.0",
    "--reference 1 --reference-until nan": "--reference-until nan",
    "--engine diffusion --p 1e10 --reference 1": "--p 10000000000",
    "--rule ccipca --bands": "--bands",
    "--out a.txt": "--out a.txt",
    "--out ''": "--out .",
    "--out .npz": "--out .npz",
    "--out /proc/none/a.npz": "--out /proc/none/a.npz",
    "--out /proc/a.npz": "--out /proc/a.npz",
    "--plot a.bmp": "--plot a.bmp",
    "--plot /proc/none/a.png": "--plot /proc/none/a.png",
    "--plot /proc/a.png": "--plot /proc/a.png",
    "--plot ''": "--plot .",
    # What is allowed beside what is not.
    "--out a.npz --tau -1": "--tau -1.0",
    "--out a.csv --plot /proc/none/a.png": "--plot /proc/none/a.png",
    "--engine stream --dt 0.5": "--dt 0.5",
    "--dt 0.1": "--dt 0.1",
    "--engine diffusion --chunk 8": "--chunk 8",
    "--reference-until 3": "--reference-until 3.0",
    "--reference 0 --reference-until 3": "--reference-until 3.0",
    "--bars 2": "--bars 2.0",
    "--out a.npz --bars 1": "--bars 1.0",
}

DENSITY = {
    "--cells 8": "--cells 8",
    "--cells 0": "--cells 0",
    "--cells 1000000000000": "--cells 1000000000000",
    "--nodes 0": "--nodes 0",
    "--nodes 1000000000000": "--nodes 1000000000000",
    "--dt 0": "--dt 0.0",
    "--dt nan": "--dt nan",
    "--domain 1 -1": "--domain (1.0, -1.0)",
    "--domain nan 1": "--domain (nan, 1.0)",
    "--plot a.png --given 99": "--given 99.0",
    "--plot a.png --given nan": "--given nan",
    "--plot a.png --spike sparse --given 1": "--given 1.0",
    "--plot a.png --given 0 --switch-times 1 --switch-spikes sparse": "--given (0.0,)",
    "--plot a.png --trials -1": "--trials -1",
    "--plot a.png --bins 0": "--bins 0",
    "--plot a.png --bins 1000000000000": "--bins 1000000000000",
    "--plot a.png --given 0 --groups 0": "--groups 0",
    "--plot a.png --seed -1": "--seed -1",
    "--plot a.png --p 1e10": "--p 10000000000",
    "--out a.csv": "--out a.csv",
    "--out /proc/none/a.npz": "--out /proc/none/a.npz",
    "--plot a.bmp": "--plot a.bmp",
    "--solver closed-form --dt 0.1": "--dt 0.1",
    "--solver method-of-lines --dt 0.1": "--dt 0.1",
    "--given 0": "--given 0.0",
    "--out a.npz --trials 0 --given 0": "--given 0.0",
    "--trials 5": "--trials 5",
    "--bins 10": "--bins 10",
    "--seed 1": "--seed 1",
    "--no-rescaled": "--no-rescaled",
    "--progress": "--progress",
    "--plot a.png --trials 0 --bins 10": "--bins 10",
    "--plot a.png --trials 0 --seed 1": "--seed 1",
    "--plot a.png --groups 4": "--groups 4",
    "--plot a.png --given 0 --trials 0 --groups 4": "--groups 4",
    "--plot a.png --given 0 --spike sparse --groups 4": "--groups 4",
}

TUNE = {
    "--over start.lam": "--over 'start.lam'",
    "--over start.lam0 model.omega": "--over 'model.omega'",
    "--over ''": "--over ''",
    "--start cold": "--start cold",
    "--q0 0": "--q0 0.0",
    "--rule ccipca --t0 2 --schedule-knots 8": "--schedule-knots 8",
    "--schedule-knots -3": "--schedule-knots -3",
    "--schedule-knots 1": "--schedule-knots 1",
    "--schedule-knots 1000000000000": "--schedule-knots 1000000000000",
    "--omegas nan": "--omegas [nan]",
    "--omegas -1": "--omegas [-1.0]",
    "--omegas 1 0": "--omegas [1.0, 0.0]",
    "--steps 0": "--steps 0",
    "--steps -1": "--steps -1",
    "--check --trials 1": "--trials 1",
    "--check --seed -1": "--seed -1",
    "--check --p 1e10": "--p 10000000000",
    "--objective time-to-reach --level 2": "--level 2.0",
    "--objective time-to-reach --level nan": "--level nan",
    "--objective steady-overlap --within 0": "--within 0.0",
    "--objective steady-overlap --fraction 1": "--fraction 1.0",
    "--objective cautious-overlap --deviations inf": "--deviations inf",
    "--out a.csv": "--out a.csv",
    "--out /proc/none/a.npz": "--out /proc/none/a.npz",
    "--plot a.txt": "--plot a.txt",
    "--level 0.9": "--level 0.9",
    "--objective area --within 3": "--within 3.0",
    "--objective time-to-reach --fraction 0.5": "--fraction 0.5",
    "--objective steady-overlap --deviations 1": "--deviations 1.0",
    "--average": "--average",
    "--trials 50": "--trials 50",
    "--seed 1": "--seed 1",
    "--no-check --seed 1": "--seed 1",
}

RUN = {
    "--patience 5": "--patience 5.0",
    "--coordinator a:1": "--coordinator a:1",
    "--processes 2": "--processes 2",
    "--process 0": "--process 0",
    "--hosts --patience 0": "--patience 0.0",
    "--hosts --patience nan": "--patience nan",
    "--hosts --dask a:1": "--dask a:1",
    "--hosts --coordinator a --processes 1 --process 0": "--coordinator 'a'",
    "--hosts --coordinator a:1 --processes 1 --process 1": "--process 1",
}

OTHERS = {
    "sweep status none.zarr": "store = none.zarr",
    "sweep verify none.zarr": "store = none.zarr",
    "sweep status /": "store = /",
    "sweep verify ''": "store = .",
    "sweep plot none.zarr --out a.png": "store = none.zarr",
    "sweep plot / --out a.png": "store = /",
    "sweep plot none.zarr --out a.bmp": "--out a.bmp",
    "sweep plot none.zarr --out /proc/none/a.png": "--out /proc/none/a.png",
    "sweep export none.zarr --out a.nc": "store = none.zarr",
    "sweep export none.zarr --out a.npz": "--out a.npz",
    "sweep export none.zarr --out /proc/none/a.nc": "--out /proc/none/a.nc",
    "sweep run none.toml --store s.zarr": "spec = none.toml",
    "sweep run / --store s.zarr": "spec = /",
    "reproduce --figure taw": "--figure 'taw'",
    "reproduce --figure ''": "--figure ''",
    "reproduce --quick --figure tau taw --out new": "--figure 'taw'",
    "reproduce --quick --out /proc/report": "--out /proc/report",
    "fit none.npy": "data = none.npy",
    "fit /proc/self/status": "data = /proc/self/status",
    "fit none.npy --seed -1": "--seed -1",
    "fit none.npy --out a.csv": "--out a.csv",
    "fit none.npy --out /proc/none/a.npz": "--out /proc/none/a.npz",
    "fit none.npy --plot a.bmp": "--plot a.bmp",
    "fit none.npy --rule ccipca --tau 1": "--tau 1.0",
}

SPEC = "[grid]\n'model.omega' = [1.0, 2.0]\n"

LINES = {
    **{f"simulate {flags}": said for flags, said in (CONFIG | SIMULATE).items()},
    **{f"limits {flags}": said for flags, said in CONFIG.items()},
    **{f"density {flags}": said for flags, said in DENSITY.items()},
    **{f"tune {flags}": said for flags, said in TUNE.items()},
    **{f"sweep run {{spec}} --store s.zarr {f}": said for f, said in RUN.items()},
    **OTHERS,
}


def test_there_are_bad_lines_of_every_command():
    assert len(LINES) + len(BAD_SPECS) >= 150
    commands = {line.split()[0] for line in LINES}
    assert commands == {
        "simulate",
        "limits",
        "density",
        "tune",
        "sweep",
        "reproduce",
        "fit",
    }
    actions = {line.split()[1] for line in LINES if line.startswith("sweep")}
    assert actions == {"run", "status", "verify", "plot", "export"}


@pytest.fixture
def nothing_runs(monkeypatch):
    """Whatever computes for longer than a refusal may take fails instead."""

    def ran(*args, **kwargs):
        raise AssertionError("a request that cannot be met was computed")

    for name in ("simulate", "density", "mean_field", "sweep"):
        monkeypatch.setattr(ino, name, ran)
    # By their modules: the packages have functions of the same names.
    tune, reproduce = map(
        import_module, (ino.tune.__module__, "inopca_jax._report.reproduce")
    )
    monkeypatch.setattr(tune, "_bound_and_overlap", ran)
    monkeypatch.setattr(reproduce, "_make_all", ran)


@pytest.mark.usefixtures("nothing_runs")
@pytest.mark.parametrize("line", LINES)
def test_a_bad_line_is_one_line_and_exit_code_2(
    line, tmp_path, tmp_path_factory, monkeypatch, capsys
):
    spec = tmp_path_factory.mktemp("spec") / "spec.toml"
    spec.write_text(SPEC)
    monkeypatch.chdir(tmp_path)
    assert main(shlex.split(line.format(spec=spec))) == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert len(output.err.splitlines()) == 1
    assert output.err.startswith("inopca: ")
    # The name as a whole, and the value as a whole: not 3.0 of 3.05.
    said = re.escape(LINES[line])
    assert re.search(rf"(?<![\w.-]){said}(?![\w])", output.err), output.err
    assert not list(tmp_path.iterdir())


UNPARSED = {
    "simulate --taw 1": "--taw",
    "simulate --tau": "--tau",
    "simulate --tau big": "--tau",
    "simulate --ta 3": "--ta",
    "simulate --omega big": "--omega",
    "simulate --p ''": "--p",
    "simulate --rule oya": "--rule",
    "simulate --rule ''": "--rule",
    "simulate --trials 1e12": "--trials",
    "simulate --witness 2": "--witness",
    "limits --seed 1": "--seed",
    "density --cells 1e12": "--cells",
    "density --domain 1": "--domain",
    "tune --objective fastest": "--objective",
    "tune --steps 1.5": "--steps",
    "sweep run spec.toml": "--store",
    "sweep plot s.zarr": "--out",
    "sweep status": "A sweep's store",
    "sweep": "run",
    "reproduce --out": "--out",
    "fit": "A .npy file of shape",
    "": "simulate",
    "simulat": "simulat",
}


@pytest.mark.parametrize("line", UNPARSED)
def test_a_line_that_cannot_be_parsed_names_the_flag(line, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as error:
        main(shlex.split(line))
    assert error.value.code == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert UNPARSED[line] in output.err
    assert not list(tmp_path.iterdir())
