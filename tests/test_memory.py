"""What does not fit into the memory is refused before it is begun."""

import re
from pathlib import Path

import jax.random as jr
import numpy as np
import pytest

import inopca_jax as ino
from inopca_jax._batch import memory

from .cases import config

TS = np.linspace(0.0, 0.1, 5)
BOTH = {
    "Chain": (ino.Chain(), 4 * 2),
    "Stream": (ino.Stream(), 4 * 2),
    "Chain with snapshots": (ino.Chain(snapshots=True), 4 * (2 + 2 * 50)),
    "Stream with snapshots": (ino.Stream(snapshots=True), 4 * (2 + 2 * 50)),
}


@pytest.mark.parametrize("name", BOTH)
def test_as_many_trials_run_as_fit(name, monkeypatch):
    """All numbers that are observed, twice: as rows, and as one array."""
    engine, one_look = BOTH[name]
    needs = 2 * 7 * len(TS) * one_look
    run = lambda: ino.simulate(config(p=50, ts=TS), key=jr.key(0), trials=7, engine=engine)
    monkeypatch.setattr(memory, "host_room", lambda: float(needs))
    assert run().q.shape == (7, 5)
    monkeypatch.setattr(memory, "host_room", lambda: needs - 1.0)
    kind = type(engine).__name__
    message = rf"trials = 7 at p = 50 with {kind} need 0.00 GiB .* 5 times, .* fewer trials"
    with pytest.raises(ValueError, match=message):
        run()


@pytest.mark.parametrize("p", [10**8, 10**9])
def test_a_stream_of_too_many_dimensions_is_refused(p, monkeypatch):
    """By what XLA says that a call takes: three vectors a trial, and the samples."""
    monkeypatch.setattr(memory, "room_for_calls", lambda workers: 2 * 3 * 4 * p / workers)
    study = config(p=p, ts=[0.0, 1e-8])
    with pytest.raises(ValueError, match=rf"p = {p} with Stream needs .* for 2 trials"):
        ino.simulate(study, key=jr.key(0), trials=2, engine=ino.Stream())


MEMINFO = Path("/proc/meminfo")


@pytest.mark.skipif(not MEMINFO.exists(), reason="not Linux")
def test_the_memory_that_is_available_counts_and_not_the_free_one():
    """Pages that hold files are given up when a process asks for memory."""
    found = memory.free_bytes()
    lines = MEMINFO.read_text()
    total = 1024 * int(re.search(r"MemTotal: *(\d+) kB", lines)[1])
    assert 0 < found < total
    assert memory.host_room() < total
    assert memory.room_for_calls(2) < 0.5 * total
