"""Reads from the environment which process of a SLURM or Open MPI job this one is."""

import os
import re
from typing import NamedTuple


class JobProcess(NamedTuple):
    """One process of a job; a field is None where the environment does not give it."""

    coordinator: str | None = None
    """`"host:port"` of process 0."""
    processes: int | None = None
    """The number of processes in the job."""
    process: int | None = None
    """The index of this process, from 0."""
    local: int | None = None
    """The index of this process among those on the same host, from 0."""


def detect() -> JobProcess:
    """Returns this process of a job, as the variables of Open MPI or SLURM describe it.

    Open MPI is read first: its processes inherit the variables of the SLURM job in which
    `mpirun` was called, and those describe `mpirun` itself.
    """
    if "OMPI_COMM_WORLD_RANK" in os.environ:
        return JobProcess(
            _open_mpi_coordinator(),
            _integer("OMPI_COMM_WORLD_SIZE"),
            _integer("OMPI_COMM_WORLD_RANK"),
            _integer("OMPI_COMM_WORLD_LOCAL_RANK"),
        )
    if "SLURM_JOB_ID" in os.environ and "SLURM_STEP_NODELIST" in os.environ:
        host = _first_node(os.environ["SLURM_STEP_NODELIST"])
        return JobProcess(
            _address(host, int(os.environ["SLURM_JOB_ID"])),
            _integer("SLURM_NTASKS"),
            _integer("SLURM_PROCID"),
            _integer("SLURM_LOCALID"),
        )
    return JobProcess()


def _first_node(nodes: str) -> str:
    """Returns the first host of a SLURM node list: `node03` of `node[03-04,07],login`."""
    return re.sub(r"\[([^],-]+)[^]]*\]", r"\1", nodes).split(",")[0]


def _open_mpi_coordinator() -> str | None:
    """Returns the address of process 0, which by default runs on the host of `mpirun`."""
    # Up to Open MPI 4: 1531576320.0;tcp://10.96.0.1,10.148.0.1:34911, or with
    # tcp6://[fe80::3000:2]:34911.
    uri = os.environ.get("OMPI_MCA_orte_hnp_uri", "")  # noqa: SIM112 (its name)
    if match := re.match(r"(\d+)\..*;tcp6?://(?:\[([^],]+)|([^],:]+))", uri):
        job, v6, host = match.groups()
        # Open MPI numbers its jobs in multiples of 2^12.
        return _address(f"[{v6}]" if v6 else host, int(job) // 2**12)
    # From Open MPI 5 on: prterun-node03-1234@1, with the host and the process of `mpirun`.
    if match := re.match(r"[^-]+-(.+)-(\d+)@", os.environ.get("PMIX_NAMESPACE", "")):
        return _address(match[1], int(match[2]))
    return None


def _address(host: str, job: int) -> str:
    """Returns `"host:port"`, with a port that follows from the job's number.

    All processes of a job then choose the same port, and two jobs on one host usually
    different ones. The last 2^12 ports are not assigned to any service.
    """
    port = os.environ.get("JAX_COORDINATOR_PORT") or 2**16 - 2**12 + job % 2**12
    return f"{host}:{port}"


def _integer(name: str) -> int | None:
    value = os.environ.get(name)
    return None if value is None else int(value)
