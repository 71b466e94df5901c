"""One sweep over several processes, joined by JAX."""

import socket
import subprocess
import sys
import textwrap
import threading

import pytest

import inopca_jax as ino
from inopca_jax._sweep import hosts

from .test_sweep import study

# Connects before it imports what makes a key, for then JAX has begun to compute.
RUN = textwrap.dedent("""
    import sys
    import inopca_jax as ino
    ino.connect(f"127.0.0.1:{sys.argv[1]}", 2, int(sys.argv[2]))
    from inopca_jax._sweep import run
    from tests.test_sweep import study
    run._TILES = 2 >> int(sys.argv[2])  # as where one of them has less memory
    found = study(store=sys.argv[3], theory=True)
    found.to_netcdf(sys.argv[4], engine="scipy")
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
    workers = [
        subprocess.Popen([sys.executable, "-c", RUN, port, str(i), stores[i], found[i]])
        for i in range(2)
    ]
    assert [worker.wait(300) for worker in workers] == [0, 0]
    plain = study(theory=True)
    assert ino.open_sweep(stores[0]).identical(plain)
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
        with pytest.raises(ValueError, match="are all processes started"):
            hosts._visit(where, "127.0.0.1", port, 2, 1.0)

    guest = threading.Thread(target=visit)
    guest.start()
    with pytest.raises(ValueError, match="after 1 s number 1, 3 is not there"):
        ino.connect(where, 4, 0, patience=1.0)
    guest.join()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (("nowhere", 2, 0), "coordinator = 'nowhere' is not allowed"),
        (("a:b", 2, 0), "coordinator = 'a:b' is not allowed"),
        (("a:1", 2, 2), "process = 2 of processes = 2"),
        ((None, None, None), "cannot be told from the surroundings"),
        (("a:1", 2, None), "^process cannot be told"),
    ],
)
def test_bad_hosts_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        ino.connect(*call, patience=0.3)


def test_slurm_tells_who_the_others_are(monkeypatch):
    for name, value in dict(
        SLURM_JOB_ID="7",
        SLURM_STEP_NODELIST="node[03-04]",
        SLURM_NTASKS="4",
        SLURM_PROCID="3",
        SLURM_LOCALID="1",
        SLURM_STEP_NUM_NODES="2",
    ).items():
        monkeypatch.setenv(name, value)
    where, count, this = hosts._detected(None, None, None)
    assert where.startswith("node03:")
    assert (count, this) == (4, 3)
