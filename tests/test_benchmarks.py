"""The benchmarks check their answers and print what they say they print."""

import json

from benchmarks import engines


def test_the_engines_benchmark_prints_json_lines(capsys):
    engines.main(quick=True)
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert len(lines) == 7
    for line in lines:
        assert line["ratio"] > 0
        assert {"name", "ours", "baseline", "p", "trials", "dtype", "jax"} <= set(line)
