"""Sweeps whose units are computed by the workers of an executor."""

import multiprocessing
import os
import signal
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor

import pytest

import inopca_jax as ino
from inopca_jax._cli.main import main
from inopca_jax._sweep import executor, points, run
from inopca_jax._sweep.points import Point
from inopca_jax._sweep.store import Store

from .cases import sparing
from .test_sweep import CELLS, STUDY, UNIT, Sometimes, config, key, study

pytestmark = pytest.mark.xdist_group("executor")


@pytest.fixture(scope="module")
def plain():
    return study(theory=True)


def processes(count=2):
    return ProcessPoolExecutor(count, mp_context=multiprocessing.get_context("spawn"))


@pytest.mark.parametrize("pool", sparing([lambda: ThreadPoolExecutor(2), processes]))
def test_an_executor_has_the_bits_of_this_process(pool, plain, tmp_path):
    with pool() as workers:
        assert study(theory=True, executor=workers).identical(plain)
        path = tmp_path / "s.zarr"
        assert study(theory=True, executor=workers, store=path).identical(plain)
        Store(path).invalidate(2)
        assert study(theory=True, executor=workers, store=path).identical(plain)
    assert not list((path / ".leases").iterdir())


class Slow(ThreadPoolExecutor):
    """Keeps count of the jobs that are not done."""

    def __init__(self):
        super().__init__(1)
        self.most, self._jobs = 0, []

    def submit(self, *arguments) -> Future:
        job = super().submit(*arguments)
        self._jobs = [*(j for j in self._jobs if not j.done()), job]
        self.most = max(self.most, len(self._jobs))
        return job


def test_a_bounded_number_of_units_is_in_flight(monkeypatch):
    monkeypatch.setattr(run, "IN_FLIGHT", 3)
    with Slow() as workers:
        study(executor=workers)
    assert workers.most == 3


def test_ctrl_c_takes_back_what_has_not_begun(tmp_path, monkeypatch):
    """And keeps what ends within the grace, here one unit."""
    monkeypatch.setattr(run, "GRACE", 600.0)

    begun = []

    def watch(reached):
        if reached == Point.UNIT_BEGUN and not begun:
            begun.append(reached)
            os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(points, "watch", watch)
    path = tmp_path / "s.zarr"
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with ThreadPoolExecutor(1) as workers, pytest.raises(KeyboardInterrupt):
            study(executor=workers, store=path)
    finally:
        signal.signal(signal.SIGINT, before)
    assert UNIT <= Store(path).done_cells().sum() < CELLS
    assert not list((path / ".leases").iterdir())
    monkeypatch.setattr(points, "watch", lambda _: None)
    assert study(store=path).identical(study())


def test_a_worker_of_other_bits_is_refused(monkeypatch):
    monkeypatch.setattr(executor, "_MACHINE_FIELDS", ("x64", "shape"))
    made = executor._rebuild

    def other(job, x64):
        run, manifest = made(job, x64)
        return run, manifest | dict(shape=dict(tile=[64]))

    monkeypatch.setattr(executor, "_rebuild", other)
    with ThreadPoolExecutor(1) as workers, pytest.raises(ValueError, match="other bits"):
        study(executor=workers)


def test_a_sweep_that_cannot_be_sent_is_refused(tmp_path):
    class Local(Sometimes):
        """Of this function: no other process can import it."""

    one = config(Local(ino.Constant(0.5), 1.0), **STUDY)
    call = dict(trials=3, key=key(), store=tmp_path / "s.zarr")
    with ThreadPoolExecutor(1) as workers, pytest.raises(ValueError, match="in a module"):
        ino.sweep(one, {"rule.sometimes": [0.1]}, executor=workers, **call)
    assert not list(tmp_path.iterdir())


@pytest.fixture(scope="module")
def cluster():
    distributed = pytest.importorskip("distributed")
    import dask

    with (
        dask.config.set({"distributed.worker.use-file-locking": False}),
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
        ) as made,
        distributed.Client(made, set_as_default=False) as client,
    ):
        yield client


@pytest.mark.filterwarnings("ignore")  # Dask's own
def test_dask_has_the_bits_of_this_process(cluster, plain, tmp_path, capsys):
    workers = cluster.get_executor()
    path = tmp_path / "s.zarr"
    found = study(theory=True, executor=workers, store=path, progress=True)
    assert found.identical(plain)
    assert f"{CELLS}/{CELLS}" in capsys.readouterr().err
    Store(path).invalidate(3)
    assert study(theory=True, executor=workers, store=path).identical(plain)


@pytest.mark.filterwarnings("ignore")
def test_a_dask_worker_that_is_killed_is_replaced(cluster, plain, tmp_path, monkeypatch):
    """As soon as a first result is there, when others are under way."""
    victims = [cluster.run(os.getpid)[w] for w in list(cluster.scheduler_info()["workers"])]

    def watch(reached):
        if reached == Point.RESULT_COMPLETE and victims:
            os.kill(victims.pop(), signal.SIGKILL)
            victims.clear()

    monkeypatch.setattr(points, "watch", watch)
    path = tmp_path / "s.zarr"
    workers = cluster.get_executor()
    assert study(theory=True, executor=workers, store=path).identical(plain)
    assert not victims


@pytest.mark.filterwarnings("ignore")
def test_ctrl_c_leaves_a_store_that_dask_goes_on_with(
    cluster, plain, tmp_path, monkeypatch
):
    """As soon as a first result is there; those under way are kept or taken back."""
    stops = iter([signal.SIGINT])

    def watch(reached):
        if reached == Point.RESULT_COMPLETE and (stop := next(stops, None)):
            os.kill(os.getpid(), stop)

    monkeypatch.setattr(points, "watch", watch)
    path, workers = tmp_path / "s.zarr", cluster.get_executor()
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            study(theory=True, executor=workers, store=path)
    finally:
        signal.signal(signal.SIGINT, before)
    assert Store(path).done_cells().sum() >= UNIT
    assert not list((path / ".leases").iterdir())
    assert study(theory=True, executor=workers, store=path).identical(plain)


SPEC = """
[config]
p = 60
ts = [0, 1, 2]
[grid]
"rule.tau" = [0.2, 0.5, 0.8]
[run]
trials = 5
"""


@pytest.mark.filterwarnings("ignore")
def test_the_command_uses_a_dask_scheduler(cluster, tmp_path, capsys):
    spec = tmp_path / "spec.toml"
    spec.write_text(SPEC)
    paths = [tmp_path / f"{i}.zarr" for i in range(2)]
    command = ["sweep", "run", str(spec), "--store"]
    assert main([*command, str(paths[0]), "--dask", cluster.scheduler.address]) == 0
    assert main([*command, str(paths[1])]) == 0
    one, other = map(ino.open_sweep, paths)
    assert one.identical(other)
    assert main([*command, str(paths[0]), "--dask", "a:b", "--hosts"]) == 2


@pytest.mark.filterwarnings("ignore")
def test_a_dask_scheduler_that_is_not_there_is_named(tmp_path, capsys):
    pytest.importorskip("distributed")
    spec = tmp_path / "spec.toml"
    spec.write_text(SPEC)
    command = ["sweep", "run", str(spec), "--store", str(tmp_path / "s.zarr")]
    assert main([*command, "--dask", "nowhere"]) == 2
    assert "--dask nowhere does not answer" in capsys.readouterr().err
    assert not (tmp_path / "s.zarr").exists()
