"""What the README shows is run."""

import re
import shlex
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType

import jax.random as jr
import numpy as np
import pytest

import inopca_jax as ino
from inopca_jax import data
from inopca_jax._cli.main import main

from .cases import sparing

ROOT = Path(__file__).parents[1]
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)


# What takes the longest to compile: blocks on which no other builds.
LONG = re.compile(r"overlap_law\(|ino\.tune\(|ino\.sensitivity\(")


@pytest.mark.parametrize("whole", sparing([False, True]))
def test_the_python_blocks_run_in_their_order(whole, monkeypatch, tmp_path):
    blocks = [text for language, text in BLOCKS if language == "python"]
    blocks = [text for text in blocks if whole or not LONG.search(text)]
    assert len(blocks) >= 3
    monkeypatch.chdir(tmp_path)
    names: dict = {}
    for text in blocks:
        exec(compile(text, "README.md", "exec"), names)
    # A rule of the reader's own has an engine, a limit and a steady state.
    assert bool(names["runs"].finite.all())
    assert abs(names["runs"].mean().q[-1] - names["ode"].q[-1]) < 0.05


class LocalSLURM:
    """Stands in for dask-jobqueue's cluster, and has its worker in this process."""

    def __new__(cls, **_):
        import distributed

        class Cluster(distributed.LocalCluster):
            def scale(self, n=0, jobs=None):
                return super().scale(n) if jobs is None else None

        return Cluster(1, threads_per_worker=1, processes=False, dashboard_address=None)


@pytest.mark.filterwarnings("ignore")  # Dask's own
def test_the_blocks_for_clusters_run_with_stand_ins(monkeypatch, tmp_path):
    """For what needs SLURM or MPI; all that is this project's is run as it is shown."""
    blocks = [text for language, text in BLOCKS if language == "py"]
    assert len(blocks) == 2
    stand_ins = {
        "dask_jobqueue": dict(SLURMCluster=LocalSLURM),
        "mpi4py.futures": dict(MPIPoolExecutor=lambda: ThreadPoolExecutor(2)),
    }
    for name, values in stand_ins.items():
        module = ModuleType(name)
        vars(module).update(values)
        monkeypatch.setitem(sys.modules, name, module)
    config = ino.Config(model=ino.SpikedModel(50), ts=np.array([0.0, 1.0]))
    names = dict(ino=ino, config=config, grid={"rule.tau": [0.2, 0.5]}, key=jr.key(0))
    truth = ino.sweep(config, names["grid"], key=names["key"])
    for i, text in enumerate(blocks):
        (tmp_path / str(i)).mkdir()
        monkeypatch.chdir(tmp_path / str(i))
        exec(compile(text, "README.md", "exec"), names | dict(__name__="__main__"))
        assert ino.open_sweep("out.zarr").identical(truth)


def commands():
    lines = [
        line for language, text in BLOCKS if language == "sh" for line in text.splitlines()
    ]
    return [line for line in lines if line.strip() and not line.startswith("#")]


SWEEP = [c for c in commands() if c.startswith("inopca sweep")]


@pytest.mark.parametrize(
    "line",
    sparing([c for c in commands() if c.startswith("inopca") and c not in SWEEP]),
)
def test_the_commands_run(line, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    np.save("data.npy", data.digits())
    assert main(shlex.split(line)[1:]) == 0


def test_the_commands_of_a_sweep_run_in_their_order(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    (spec,) = [text for language, text in BLOCKS if language == "toml"]
    Path("spec.toml").write_text(spec)
    assert len(SWEEP) == 5
    for line in SWEEP:
        assert main(shlex.split(line)[1:]) == 0


def test_the_make_targets_exist():
    makefile = (ROOT / "Makefile").read_text()
    targets = [line.split()[1] for line in commands() if line.startswith("make")]
    assert targets
    assert all(re.search(rf"^{target}:", makefile, re.MULTILINE) for target in targets)


def test_no_command_is_shown_that_the_others_do_not_test():
    assert [c for c in commands() if not c.startswith(("inopca ", "make "))] == []
