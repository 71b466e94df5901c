"""A sweep that is killed, or stopped by Ctrl-C, at each moment that matters."""

import contextlib
import itertools
import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import pytest

import inopca_jax as ino
from inopca_jax._cli.main import main
from inopca_jax._sweep import leases, points, run
from inopca_jax._sweep.points import Point
from inopca_jax._sweep.store import Store

from .cases import sparing
from .test_sweep import CELLS, UNIT, study

pytestmark = pytest.mark.xdist_group("kills")

# A process that has imported everything, and forks a child for each job that it is given:
# a child then takes less than a second. JAX has not begun to compute, so it may be forked.
FORKS = textwrap.dedent("""
    import json, os, sys, traceback, warnings
    import xarray, zarr
    from tests import test_sweep_kills as jobs
    warnings.simplefilter("ignore")  # of Python 3.12, about forks and threads
    for line in sys.stdin:
        name, *arguments = json.loads(line)
        child = os.fork()
        if child == 0:
            code = 1
            try:
                code = getattr(jobs, name)(*arguments) or 0
            except BaseException:
                traceback.print_exc()
            finally:
                sys.stdout.flush()
                os._exit(code)
        status = os.waitpid(child, 0)[1]
        print(os.waitstatus_to_exitcode(status), flush=True)
    """)


class Forks:
    def __init__(self):
        cache = dict(JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS="0")
        self.process = subprocess.Popen(
            [sys.executable, "-c", FORKS],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | cache,
        )

    def start(self, job, *arguments):
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps([job.__name__, *map(str, arguments)]) + "\n")
        self.process.stdin.flush()

    def exit_code(self):
        assert self.process.stdout is not None
        return int(self.process.stdout.readline())

    def run(self, job, *arguments):
        self.start(job, *arguments)
        return self.exit_code()


@pytest.fixture(scope="module")
def two_forks():
    both = Forks(), Forks()
    with both[0].process, both[1].process:  # which close what they read, and so end
        yield both


@pytest.fixture(scope="module")
def forks(two_forks):
    return two_forks[0]


@pytest.fixture(scope="module")
def plain():
    return study()


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    """The results of the study, as a file has them."""
    path = tmp_path_factory.mktemp("rows")
    study(store=path / "s.zarr")
    np.save(path / "rows.npy", Store(path / "s.zarr").results())
    return path / "rows.npy"


def at(point, times, act):
    """Has this process do something when it reaches a point for the n-th time."""
    counts = itertools.count(1)

    def watch(reached):
        if reached == Point[point] and next(counts) == int(times):
            act()

    points.watch = watch


def die():
    os.kill(os.getpid(), signal.SIGKILL)


def write(path, rows, point, times):
    """A job: creates the store and writes all units that are missing."""
    at(point, times, die)
    path, rows = Path(path), np.load(rows)
    if not path.exists():
        fields, times = (list(range(n)) for n in rows.shape[1:])
        grid = [dict(names=["x"], values=[[i] for i in range(CELLS)])]
        manifest = dict(fields=fields, config=dict(ts=times), grid=grid, unit_cells=UNIT)
        Store.create(path, manifest, np.arange(CELLS))
    store = Store(path)
    for unit in np.flatnonzero(~store.done()).tolist():
        store.write(unit, rows[store.cells(unit)])


def run_study(path, point, times):
    """A job: a real sweep."""
    at(point, times, die)
    study(store=path)


CREATION = [Point.STORE_MADE, Point.STORE_NAMED]
WRITING = [p for p in Point if p.name.startswith(("RESULT", "FLAG"))]


@pytest.mark.parametrize("point", sparing([*CREATION, *WRITING], 3), ids=lambda p: p.name)
def test_a_writer_that_is_killed_at_any_point_loses_nothing(point, forks, rows, tmp_path):
    """Again and again, at the n-th time of each: it opens every time, and what was marked
    is still marked, there and right, until all is."""
    path, truth = tmp_path / "s.zarr", np.load(rows)
    before = np.zeros(CELLS, bool)
    for times in (1,) if point in CREATION else (1, 2, 3):
        assert forks.run(write, path, rows, point.name, times) == -signal.SIGKILL
        assert path.exists() == (point != Point.STORE_MADE)
        if path.exists():
            store = Store(path)
            done = store.done_cells()
            assert np.all(done >= before)
            assert np.array_equal(store.results()[done], truth[done])
            before = done
    assert forks.run(write, path, rows, point.name, 0) == 0
    assert np.array_equal(Store(path).results(), truth)
    assert Store(path).done().all()
    assert not list(Store(path).damaged())


@pytest.mark.parametrize("point", sparing(Point, 3), ids=lambda p: p.name)
def test_a_sweep_that_is_killed_at_any_point_goes_on(
    point, forks, plain, tmp_path, monkeypatch
):
    """And has the bits of one that was not, once the leases of the dead are old enough."""
    monkeypatch.setattr(leases, "STALE", 0.1)  # one lease may not say whose it is
    path = tmp_path / "s.zarr"
    if point == Point.LEASE_SET_ASIDE:  # takes a lease to set aside
        assert forks.run(run_study, path, Point.LEASE_TAKEN.name, 1) == -signal.SIGKILL
    times = 1 if point in CREATION or point == Point.LEASE_SET_ASIDE else 2
    assert forks.run(run_study, path, point.name, times) == -signal.SIGKILL
    if path.exists():
        found = ino.open_sweep(path)
        where = found.done.values
        assert where.sum() < CELLS
        assert np.array_equal(found.q_mean.values[where], plain.q_mean.values[where])
    make_old(tmp_path)
    assert study(store=path).identical(plain)
    assert main(["sweep", "verify", str(path)]) == 0
    left = [p for p in tmp_path.rglob("*") if p.name.startswith(".")]
    assert left == [path / ".leases"]
    assert not list(left[0].iterdir())
    assert not list(path.rglob("*.partial"))


def make_old(folder):
    """As if some minutes had passed."""
    for path in (*folder.iterdir(), *folder.rglob("*.partial"), *folder.rglob(".leases/*")):
        os.utime(path, (0, 0))


def run_study_and_die_last(path, point):
    """A job: dies at the point, when another process has done all that this one has not
    leased."""

    def wait_and_die():
        leases = Path(path) / ".leases"
        me = f'"pid": {os.getpid()}}}'
        mine = sum(lease.read_text().endswith(me) for lease in leases.iterdir())
        (Path(path).parent / "waits").touch()
        while Store(path).done_cells().sum() < CELLS - UNIT * mine:
            time.sleep(0.01)
        die()

    at(point, 1, wait_and_die)
    study(store=path)


@pytest.mark.parametrize("point", [Point.LEASE_TAKEN, Point.RESULT_COMPLETE])
def test_a_worker_takes_over_what_a_killed_one_had_leased(
    point, two_forks, plain, tmp_path
):
    path, (doomed, other) = tmp_path / "s.zarr", two_forks
    doomed.start(run_study_and_die_last, path, point.name)
    while not (tmp_path / "waits").exists():
        assert doomed.process.poll() is None
        time.sleep(0.01)
    assert other.run(run_study, path, point.name, 0) == 0
    assert doomed.exit_code() == -signal.SIGKILL
    assert ino.open_sweep(path).identical(plain)


LONG = """
[config]
p = 20_000
ts = [0, 1000, 100_000]
q0 = 0.3
[grid]
"rule.tau" = { from = 0.1, to = 1.0, count = 24 }
[run]
trials = 100
"""


def run_long(spec, path, point, times, grace):
    """A job: a sweep of hours by the command, which gets Ctrl-C at a point."""
    at(point, times, lambda: os.kill(os.getpid(), signal.SIGINT))
    run.GRACE = float(grace)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # as a terminal has it
    with open(f"{path}.txt", "w") as file, contextlib.redirect_stderr(file):
        return main(["sweep", "run", spec, "--store", path])


STOPS = [Point.STORE_MADE, Point.LEASE_OPENED, Point.LEASE_TAKEN, *[Point.UNIT_BEGUN] * 7]


def test_ctrl_c_does_not_wait_for_units_that_take_hours(forks, tmp_path):
    """Ten times: exit code 130, leases released, nothing half written."""
    spec = tmp_path / "spec.toml"
    spec.write_text(LONG)
    for i, point in enumerate(STOPS):  # the first time: one core has one unit under way
        path = tmp_path / f"{i}.zarr"
        assert forks.run(run_long, spec, path, point.name, 1, 0.1) == 130
        text = Path(f"{path}.txt").read_text()
        assert text.endswith(f"finished cells are in {path}; {GOES_ON}\n")
        assert not list((path / ".leases").iterdir())
        assert not list(tmp_path.rglob("*.partial"))


GOES_ON = "the same command continues the sweep"


def test_ctrl_c_keeps_what_ends_within_the_grace(forks, plain, tmp_path):
    """Here all that has begun, as there is time enough for it."""
    path = tmp_path / "s.zarr"
    assert forks.run(stop_study, path, Point.RESULT_WRITTEN.name, 1) == 130
    found = ino.open_sweep(path)
    where = found.done.values
    assert where.sum() >= UNIT
    assert np.array_equal(found.q_mean.values[where], plain.q_mean.values[where])
    assert not list((path / ".leases").iterdir())
    assert study(store=path).identical(plain)


def stop_study(path, point, times):
    """A job: a sweep in Python that gets Ctrl-C at a point."""
    at(point, times, lambda: os.kill(os.getpid(), signal.SIGINT))
    run.GRACE = 600.0  # its units take a fraction of a second on any machine
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        study(store=path)
    except KeyboardInterrupt:
        return 130
