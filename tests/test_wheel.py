"""The wheel, installed without extras in an environment of its own."""

import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]

pytestmark = pytest.mark.slow  # it downloads and installs all dependencies


def run(*command, cwd=None, check=True):
    # Isolated from this checkout, whose folder may be on the path.
    environment = {"PATH": "/usr/bin:/bin", "MPLBACKEND": "Agg", "HOME": str(Path.home())}
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert not check or done.returncode == 0, done.stderr
    return done


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    pip = (sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps")
    subprocess.run([*pip, "--wheel-dir", str(folder), str(ROOT)], check=True)
    (path,) = folder.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def environment(wheel):
    """The folder of the commands of an environment that has the wheel."""
    folder = wheel.parent / "venv"
    run(sys.executable, "-m", "venv", folder)
    pip = (folder / "bin" / "python", "-m", "pip", "install", "--quiet", wheel)
    subprocess.run(list(map(str, pip)), check=True)
    return folder / "bin"


def test_the_wheel_has_types_licence_and_metadata(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        (metadata,) = (n for n in names if n.endswith(".dist-info/METADATA"))
        lines = archive.read(metadata).decode().splitlines()
    assert "inopca_jax/py.typed" in names
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert {name.split("/")[0] for name in names} == {
        "inopca_jax",
        f"inopca_jax-{PROJECT['version']}.dist-info",
    }
    assert f"Version: {PROJECT['version']}" in lines
    assert "License-Expression: Apache-2.0" in lines
    assert "Classifier: Typing :: Typed" in lines


WORK = """
import numpy as np, jax.random as jr, scipy.io
import inopca_jax as ino
from inopca_jax import data, plot
config = ino.Config(model=ino.SpikedModel(p=50), ts=np.array([0.0, 0.5, 1.0]))
runs = ino.simulate(config, key=jr.key(0), trials=2)
runs.save("runs.npz")
assert np.array_equal(ino.Trajectory.load("runs.npz").q, runs.q)
plot.save(plot.learning_curves([plot.Curve("a", ino.mean_field(config), runs)]), "a.png")
drift = data.Drift([9.0, 4.0], p=20)
subspace = ino.stream_pca(ino.InoPCA(0.1), drift.samples(200), components=2)
assert subspace.components.shape == (2, 20)
images = np.random.default_rng(0).random((4096, 400))
scipy.io.savemat("olivettifaces.mat", dict(faces=images))
assert data.faces("olivettifaces.mat").shape == (400, 4096)
print(ino.__version__)
"""


def test_what_needs_no_extra_works_without(environment, tmp_path):
    done = run(environment / "python", "-I", "-c", WORK, cwd=tmp_path)
    assert done.stdout.strip() == PROJECT["version"]


MISSING = """
import numpy as np, jax.random as jr
import inopca_jax as ino
from inopca_jax import data
config, grid = ino.Config(), {"rule.tau": [0.2, 0.5]}
path = ino.Trajectory(np.arange(2.0), *np.ones((2, 2)))
calls = dict(
    StreamingPCA=lambda: ino.StreamingPCA,
    digits=data.digits,
    faces=data.faces,
    sweep=lambda: ino.sweep(config, grid, key=jr.key(0)),
    store=lambda: ino.sweep(config, grid, key=jr.key(0), store="a.zarr"),
    xarray=path.to_xarray,
    pandas=path.to_pandas,
)
for name, call in calls.items():
    try:
        call()
    except (ImportError, data.NotAvailable) as error:
        print(name, str(error).replace("\\n", " "))
"""


def test_each_missing_extra_is_named_with_its_install_line(environment, tmp_path):
    done = run(environment / "python", "-I", "-c", MISSING, cwd=tmp_path)
    said = dict(line.split(" ", 1) for line in done.stdout.splitlines())
    extra_of = dict.fromkeys(["StreamingPCA", "digits", "faces"], "sklearn")
    extra_of |= dict.fromkeys(["sweep", "store", "xarray", "pandas"], "sweep")
    assert said.keys() == extra_of.keys()
    for name, extra in extra_of.items():
        assert f"pip install 'inopca_jax[{extra}]'" in said[name]
    assert list(tmp_path.iterdir()) == []  # nothing was begun


SPEC = """
[config]
p = 50

[grid]
"rule.tau" = [0.2, 0.5]
"""


def test_commands_work_or_name_the_extra_that_they_need(environment, tmp_path):
    inopca = environment / "inopca"
    samples = np.random.default_rng(0).normal(size=(300, 8)).astype(np.float32)
    np.save(tmp_path / "x.npy", samples)
    flags = ("--components", "2", "--out", "c.npz", "--plot", "scree.png")
    fitted = run(inopca, "fit", "x.npy", *flags, cwd=tmp_path)
    assert "300 samples of 8 features" in fitted.stdout
    assert {"c.npz", "scree.png"} <= {path.name for path in tmp_path.iterdir()}
    (tmp_path / "spec.toml").write_text(SPEC)
    sweep = (inopca, "sweep", "run", "spec.toml", "--store", "out.zarr")
    for more, extra in (((), "sweep"), (("--dask", "tcp://127.0.0.1:1"), "dask")):
        done = run(*sweep, *more, cwd=tmp_path, check=False)
        assert done.returncode == 2
        assert f"pip install 'inopca_jax[{extra}]'" in done.stderr
    assert not (tmp_path / "out.zarr").exists()


def test_the_command_prints_its_version(environment):
    assert PROJECT["version"] in run(environment / "inopca", "--version").stdout
