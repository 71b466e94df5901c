"""The benchmarks check their answers and print what they say they print."""

import json

import pytest

from benchmarks import (
    density,
    engines,
    finite_p,
    gpu,
    large,
    mean_field,
    noise,
    phase_diagram,
    real_data,
    sweep,
    tune,
)

from .cases import sparing

QUICK = [(noise, 2), (mean_field, 3)]
LONGER = [
    (density, 2),
    (real_data, 3),
    (large, 1),
    (tune, 2),
    (engines, 9),
    (finite_p, 3),
    (sweep, 2),
    (phase_diagram, 1),
]


@pytest.mark.parametrize(
    ("script", "count"),
    sparing([*QUICK, *LONGER], len(QUICK)),
)
def test_a_benchmark_prints_json_lines(script, count, capsys):
    script.main(quick=True)
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert len(lines) == count
    for line in lines:
        assert line["ratio"] > 0
        assert {"name", "ours", "baseline", "p", "trials", "dtype", "versions"} <= set(line)


def test_the_estimate_for_a_gpu_says_that_it_is_one(capsys):
    gpu.main()
    out = capsys.readouterr().out
    assert "estimate" in out
    assert "Nobody has measured" in out
