"""What SLURM and Open MPI tell a process about the job that it is part of."""

import os
import re
from typing import NamedTuple


class Place(NamedTuple):
    """A process among those of a job; None where nothing tells."""

    coordinator: str | None = None
    """`"host:port"` of process 0."""
    processes: int | None = None
    process: int | None = None
    local: int | None = None
    """Its number among the processes on the same host."""


def detected() -> Place:
    """This process's place. Open MPI goes first: its processes also have variables of the
    SLURM job that `mpirun` was called in, which are not about them."""
    if "OMPI_COMM_WORLD_RANK" in os.environ:
        return Place(
            _open_mpi_coordinator(),
            _number("OMPI_COMM_WORLD_SIZE"),
            _number("OMPI_COMM_WORLD_RANK"),
            _number("OMPI_COMM_WORLD_LOCAL_RANK"),
        )
    if "SLURM_JOB_ID" in os.environ and "SLURM_STEP_NODELIST" in os.environ:
        host = first_node(os.environ["SLURM_STEP_NODELIST"])
        return Place(
            _address(host, int(os.environ["SLURM_JOB_ID"])),
            _number("SLURM_NTASKS"),
            _number("SLURM_PROCID"),
            _number("SLURM_LOCALID"),
        )
    return Place()


def first_node(nodes: str) -> str:
    """The first of a list of SLURM's: `node03` of `node[03-04,07],login`."""
    return re.sub(r"\[([^],-]+)[^]]*\]", r"\1", nodes).split(",")[0]


def _open_mpi_coordinator() -> str | None:
    """Process 0 runs where `mpirun` does, unless told otherwise."""
    # Up to Open MPI 4: 1531576320.0;tcp://10.96.0.1,10.148.0.1:34911, or with
    # tcp6://[fe80::3000:2]:34911.
    uri = os.environ.get("OMPI_MCA_orte_hnp_uri", "")  # noqa: SIM112 (its name)
    if found := re.match(r"(\d+)\..*;tcp6?://(?:\[([^],]+)|([^],:]+))", uri):
        job, v6, host = found.groups()
        # Its jobs are numbered in multiples of 2^12.
        return _address(f"[{v6}]" if v6 else host, int(job) // 2**12)
    # From Open MPI 5 on: prterun-node03-1234@1, by the host and the process of `mpirun`.
    if found := re.match(r"[^-]+-(.+)-(\d+)@", os.environ.get("PMIX_NAMESPACE", "")):
        return _address(found[1], int(found[2]))
    return None


def _address(host: str, job: int) -> str:
    """All processes of a job have to come to the same port, and those of another job on the
    host to another one: by the job's number, among the last 2^12, which no service has."""
    port = os.environ.get("JAX_COORDINATOR_PORT") or 2**16 - 2**12 + job % 2**12
    return f"{host}:{port}"


def _number(name: str) -> int | None:
    value = os.environ.get(name)
    return None if value is None else int(value)
