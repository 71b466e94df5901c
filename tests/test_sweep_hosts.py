"""One sweep over several processes, joined by JAX."""

import os
import socket
import subprocess
import sys
import textwrap
import threading

import jax
import pytest

import inopca_jax as ino
from inopca_jax._sweep import hosts

RUN = textwrap.dedent("""
    import sys
    import inopca_jax as ino
    from tests.test_sweep import study
    ino.connect(f"127.0.0.1:{sys.argv[1]}", 2, int(sys.argv[2]))
    found = study(store=sys.argv[3], theory=True)
    found.to_netcdf(sys.argv[4], engine="scipy")
    """)

ONE = textwrap.dedent("""
    import sys
    from tests.test_sweep import study
    study(store=sys.argv[1], theory=True)
    """)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def test_two_processes_have_the_bits_of_one(tmp_path):
    """In the store, which the first alone sees, and in what both return."""
    port = str(free_port())
    stores = [tmp_path / "s.zarr", tmp_path / "not" / "seen.zarr"]
    found = [tmp_path / f"{i}.nc" for i in range(2)]
    begin = lambda *words: subprocess.Popen([sys.executable, "-c", *map(str, words)])
    workers = [begin(RUN, port, i, stores[i], found[i]) for i in range(2)]
    assert [worker.wait(300) for worker in workers] == [0, 0]
    assert begin(ONE, tmp_path / "one.zarr").wait(300) == 0
    assert ino.open_sweep(stores[0]).identical(ino.open_sweep(tmp_path / "one.zarr"))
    assert found[0].read_bytes() == found[1].read_bytes()
    assert not stores[1].parent.exists()


def test_a_coordinator_that_is_not_there_is_named():
    where = f"127.0.0.1:{free_port()}"
    with pytest.raises(ValueError, match=f"coordinator = {where} did not answer"):
        ino.connect(where, 2, 1, patience=0.3)


def test_a_port_that_is_taken_is_named():
    with socket.create_server(("", 0)) as taken:
        where = f"127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(ValueError, match="port cannot be opened"):
            ino.connect(where, 2, 0, patience=0.3)


def test_a_process_that_is_missing_is_named():
    port = free_port()
    where = f"127.0.0.1:{port}"

    def visit():
        with pytest.raises(ValueError, match="all processes are started"):
            hosts._report_to_coordinator(where, "127.0.0.1", port, 2, 1.0)

    guest = threading.Thread(target=visit)
    guest.start()
    with pytest.raises(ValueError, match="process 1, 3 did not start within 1 s"):
        ino.connect(where, 4, 0, patience=1.0)
    guest.join()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (("nowhere", 2, 0), "coordinator = 'nowhere' is not allowed"),
        (("a:b", 2, 0), "coordinator = 'a:b' is not allowed"),
        (("a:1", 2, 2), "process = 2 of processes = 2"),
        ((None, None, None), "cannot be read from the environment"),
        (("a:1", 2, None), "^process cannot be read"),
    ],
)
def test_bad_hosts_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        ino.connect(*call, patience=0.3)


@pytest.fixture
def surroundings(monkeypatch):
    """Sets variables; none of a cluster that the tests may run in are left."""
    for name in list(os.environ):
        if name.startswith(("SLURM_", "OMPI_", "PMIX_", "JAX_COORDINATOR")):
            monkeypatch.delenv(name)
    return lambda **values: [monkeypatch.setenv(*item) for item in values.items()]


SLURM = dict(
    SLURM_JOB_ID="7",
    SLURM_STEP_NODELIST="node[03-04]",
    SLURM_NTASKS="4",
    SLURM_PROCID="3",
    SLURM_LOCALID="1",
)
OPEN_MPI = dict(
    OMPI_COMM_WORLD_SIZE="4", OMPI_COMM_WORLD_RANK="2", OMPI_COMM_WORLD_LOCAL_RANK="0"
)


@pytest.mark.parametrize(
    ("nodes", "first"),
    [
        ("node[03-04]", "node03"),
        ("node03", "node03"),
        ("a1,b2", "a1"),
        ("gpu-[1,3-5]", "gpu-1"),
        ("gpu-[10,3-5],login", "gpu-10"),
        ("rack[2-3]-n[07,09]-ib", "rack2-n07-ib"),
    ],
)
def test_slurm_tells_who_the_others_are(nodes, first, surroundings):
    surroundings(**SLURM | dict(SLURM_STEP_NODELIST=nodes))
    assert hosts._resolve(None, None, None) == (f"{first}:61447", 4, 3, 1)
    # What is said goes first.
    assert hosts._resolve("a:1", 2, 0) == ("a:1", 2, 0, 1)


@pytest.mark.parametrize(
    ("variables", "where"),
    [
        (
            dict(OMPI_MCA_orte_hnp_uri="28672.0;tcp://10.96.0.1,10.148.0.1:34911"),
            "10.96.0.1:61447",
        ),
        (
            dict(OMPI_MCA_orte_hnp_uri="28672.0;tcp6://[fe80::b9b,fe80::3000:2]:43370"),
            "[fe80::b9b]:61447",
        ),
        (dict(PMIX_NAMESPACE="prterun-gpu-03-4103@1"), "gpu-03:61447"),
        (dict(PMIX_NAMESPACE="prterun-a-7@1", JAX_COORDINATOR_PORT="123"), "a:123"),
    ],
)
def test_open_mpi_tells_who_the_others_are(variables, where, surroundings):
    """Also in a job of SLURM's."""
    surroundings(**SLURM, **OPEN_MPI, **variables)
    assert hosts._resolve(None, None, None) == (where, 4, 2, 0)


def test_a_coordinator_that_open_mpi_does_not_tell_has_to_be_passed(surroundings):
    surroundings(**OPEN_MPI)
    with pytest.raises(ValueError, match=r"^coordinator cannot be read"):
        ino.connect(patience=0.3)


def test_the_processes_of_a_host_share_its_gpus(surroundings, monkeypatch):
    """One each, as JAX would do it by itself; and JAX detects nothing itself."""
    surroundings(**SLURM)
    calls = []
    monkeypatch.setattr(hosts, "_report_to_coordinator", lambda *_: None)
    monkeypatch.setattr(jax.distributed, "initialize", lambda *a, **_: calls.append(a))
    ino.connect()
    surroundings(JAX_LOCAL_DEVICE_IDS="2,3")
    ino.connect()
    assert calls == [("node03:61447", 4, 3, 1), ("node03:61447", 4, 3, None)]
