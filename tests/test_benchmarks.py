"""The benchmarks check their results and print one JSON line per measurement."""

import json

import pytest

from benchmarks import (
    components,
    density,
    engines,
    finite_p,
    gpu,
    growth,
    kills,
    large,
    mean_field,
    noise,
    phase_diagram,
    real_data,
    self_tuning,
    streaming,
    sweep,
    tune,
)

from .cases import sparing

QUICK = [(noise, 2), (mean_field, 3)]
LONGER = [
    (density, 2),
    (real_data, 3),
    (streaming, 4),
    (large, 1),
    (tune, 2),
    (self_tuning, 1),
    (engines, 9),
    (components, 5),
    (finite_p, 3),
    (sweep, 2),
    (growth, 12),
    (phase_diagram, 1),
]


def printed_lines(capsys):
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


@pytest.mark.parametrize(
    ("script", "count"),
    sparing([*QUICK, *LONGER], len(QUICK)),
)
def test_a_benchmark_prints_json_lines(script, count, capsys):
    script.main(quick=True)
    lines = printed_lines(capsys)
    assert len(lines) == count
    for line in lines:
        assert line["ratio"] > 0
        assert {"name", "ours", "baseline", "p", "trials", "dtype", "versions"} <= set(line)


@pytest.mark.slow
def test_killed_workers_lose_no_cell(capsys):
    kills.main(2)
    (line,) = printed_lines(capsys)
    assert line["kills"] == 2
    assert line["cells_compared"] > 0
    assert line["cells_lost"] == line["cells_wrong"] == 0


def test_the_numbers_for_a_gpu_are_called_estimates(capsys):
    gpu.main()
    out = capsys.readouterr().out
    assert "estimate" in out
    assert "no GPU was measured" in out
