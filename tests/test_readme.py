"""What the README and the pages of `docs/` show is run, and CONTRIBUTING's reading order is
true."""

import ast
import re
import shlex
import sys
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType

import jax
import jax.random as jr
import matplotlib.pyplot as plt
import numpy as np
import pytest

import inopca_jax as ino
from inopca_jax import data
from inopca_jax._cli.main import main

from .cases import sparing

ROOT = Path(__file__).parents[1]
DOCUMENTS = [ROOT / "README.md", *sorted(ROOT.glob("docs/**/*.md"))]
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
BLOCKS = {
    str(path.relative_to(ROOT)): FENCE.findall(path.read_text()) for path in DOCUMENTS
}
"""The blocks of code of every document, each with its language."""


def blocks(language, name=None):
    """The blocks of one document, or of all of them, that are in a language."""
    chosen = [name] if name else BLOCKS
    return [text for name in chosen for kind, text in BLOCKS[name] if kind == language]


def test_every_block_is_of_a_kind_that_is_tested():
    languages = {kind for found in BLOCKS.values() for kind, _ in found}
    assert languages <= {"python", "py", "sh", "toml", "bash", "bibtex"}


# The blocks that take the longest to compile. No other block depends on them.
LONG = re.compile(r"overlap_law\(|ino\.tune\(|ino\.sensitivity\(|escape_time\(")


def agree_with_theory(names):
    """Runs of a user's own rule and their mean field."""
    runs = names["runs"]
    assert bool(runs.finite.all())
    assert abs(runs.mean().q[-1] - names["ode"].q[-1]) < 0.05


def have_the_derivative_of_the_theory(names):
    """The mean derivative of trials is that of the theory, up to their error and 1/p."""
    start, ts = ino.WarmStart(0.3), np.array([0.0, 10.0])
    overlap = lambda tau: ino.mean_field(ino.Config(ino.InoPCA(tau), start=start, ts=ts)).q
    slopes = np.asarray(names["slopes"], float)
    error = slopes.mean() - float(jax.grad(lambda tau: overlap(tau)[-1])(0.5))
    assert slopes.shape == (64,)
    assert abs(error) < 5 * slopes.std() / 8


SHOWS = {
    "README.md": agree_with_theory,
    "docs/guide/rules.md": agree_with_theory,
    "docs/guide/engines.md": have_the_derivative_of_the_theory,
}
WITH_PYTHON = [name for name in BLOCKS if blocks("python", name)]
SLOW, DOCS = pytest.mark.slow, pytest.mark.docs
FIRST = ["README.md", "docs/start.md"]  # what a newcomer runs
IN_FULL = [name for name in WITH_PYTHON if LONG.search("".join(blocks("python", name)))]


@pytest.mark.parametrize(
    ("name", "whole"),
    [(name, False) for name in FIRST]
    + [
        pytest.param(name, whole, marks=SLOW if whole else DOCS)
        for whole, names in ((False, WITH_PYTHON), (True, IN_FULL))
        for name in names
        if whole or name not in FIRST
    ],
)
def test_the_python_blocks_run_in_their_order(name, whole, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    names: dict = {}
    for text in blocks("python", name):
        if whole or not LONG.search(text):
            exec(compile(text, name, "exec"), names)
    if name in SHOWS:
        SHOWS[name](names)
    plt.close("all")


class LocalSLURM:
    """Replaces dask-jobqueue's cluster by one with a worker in this process."""

    def __new__(cls, **_):
        import distributed

        class Cluster(distributed.LocalCluster):
            def scale(self, n=0, jobs=None):
                return super().scale(n) if jobs is None else None

        return Cluster(1, threads_per_worker=1, processes=False, dashboard_address=None)


@pytest.mark.filterwarnings("ignore")  # Dask's own
def test_the_blocks_for_clusters_run_with_stand_ins(monkeypatch, tmp_path):
    """SLURM and MPI are replaced; all code of this project is run as it is shown."""
    assert len(blocks("py")) == 2
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
    for i, text in enumerate(blocks("py")):
        (tmp_path / str(i)).mkdir()
        monkeypatch.chdir(tmp_path / str(i))
        exec(compile(text, "docs", "exec"), names | dict(__name__="__main__"))
        assert ino.open_sweep("out.zarr").identical(truth)


def commands():
    lines = [line for text in blocks("sh") for line in text.splitlines()]
    return [line for line in lines if line.strip() and not line.startswith("#")]


SWEEP = [c for c in commands() if c.startswith("inopca sweep")]
OTHERS = [c for c in commands() if c.startswith("inopca") and c not in SWEEP]


@pytest.mark.slow
@pytest.mark.parametrize("line", sparing(dict.fromkeys(OTHERS)))
def test_the_commands_run(line, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    np.save("data.npy", data.digits())
    assert main(shlex.split(line)[1:]) == 0


def test_the_commands_of_a_sweep_run_in_their_order(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    (spec,) = blocks("toml")
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


def test_the_extras_that_are_shown_exist():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    shown = [path.read_text() for path in DOCUMENTS]
    lists = re.findall(r"pip install '\.\[(.+?)\]'", "".join(shown))
    assert {name for names in lists for name in names.split(",")} <= {
        *project["optional-dependencies"]
    }
    assert lists


PACKAGE = Path(ino.__file__).parent


def imports(path):
    """Returns the modules of the package that a file imports, as tuples of names."""
    package = path.relative_to(PACKAGE).parts[:-1]
    modules = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.level:
            base = package[: len(package) - node.level + 1]
            base += tuple(node.module.split(".")) if node.module else ()
            modules |= {(*base, alias.name) for alias in node.names}
    return modules


def reading_order():
    """Returns the modules of CONTRIBUTING's table in their order, and the files that it
    lists for each folder."""
    section = (ROOT / "CONTRIBUTING.md").read_text().split("## Reading order")[1]
    rows = re.findall(r"^\| (`.*?) \| (.*?) \|$", section, re.MULTILINE)
    order, files = [], {}
    for modules, description in rows:
        names = [name.rstrip("/") for name in re.findall(r"`(.+?)`", modules)]
        order += names
        folders = [name for name in names if (PACKAGE / name).is_dir()]
        for name in re.findall(r"`(\w+)`", description):
            for folder in folders:
                if (PACKAGE / folder / f"{name}.py").exists():
                    files.setdefault(folder, []).append(name)
    return order, files


def test_the_reading_order_is_that_of_dependencies():
    order, files = reading_order()
    present = {path.stem for path in PACKAGE.glob("*.py")} - {"__init__"}
    present |= {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    assert sorted(order) == sorted(present)
    for path in PACKAGE.glob("**/*.py"):
        module = path.relative_to(PACKAGE).with_suffix("").parts
        if module[0] == "__init__":
            continue
        for name, *rest in imports(path):
            assert order.index(name) <= order.index(module[0]), (path, name)
            listed = files.get(module[0], [])
            if name == module[0] and {rest[0], module[1]} <= set(listed):
                assert listed.index(rest[0]) <= listed.index(module[1]), (path, rest)
