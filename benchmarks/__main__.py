"""Runs every benchmark and writes RESULTS.md.

python -m benchmarks
"""

import json
import os
import platform
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
SCRIPTS = (
    "noise",
    "engines",
    "components",
    "mean_field",
    "density",
    "finite_p",
    "tune",
    "self_tuning",
    "real_data",
    "streaming",
    "sweep",
    "growth",
    "large",
)
LEAST_RATIOS = {
    "components of a stream vs NumPy loop": 8,
    "chain vs NumPy p-dimensional loop": 2500,
    "chain vs NumPy p-dimensional loop, 4 components": 500,
    "chain, 4 components vs 1 component": 0.033,
    "stream vs NumPy p-dimensional loop": 4,
    "stream vs Numba prange p-dimensional loop": 2.5,
    "normals vs jax.random.normal": 3.5,
    "mean field, 100 x 100 grid, vs SciPy RK45": 100,
    "density, stepping, vs SciPy LSODA at L1 error 2e-4": 5,
    "Diffusion, p = 1e9, t = 50, vs chain, p = 10,000": 1,
    "100,489 cells to the store, fsync on, vs 300 a second": 1,
    "sweep of 16 x 16 cells vs one bare vmap, one core": 0.9,
}
"""The least ratio that a measurement should have, by its name."""


def output_of(script: str, python: str = sys.executable) -> str:
    """Returns what a benchmark prints, run in a process of its own."""
    print(f"benchmarks.{script} ...", file=sys.stderr, flush=True)
    command = [python, "-m", f"benchmarks.{script}"]
    process = subprocess.run(
        command, cwd=HERE.parent, stdout=subprocess.PIPE, text=True, check=True
    )
    return process.stdout


def compiled_for_gpus() -> str:
    """Returns the table of what is launched on GPUs, if it can be compiled for them."""
    python = HERE.parent / ".venvs" / "gpu" / "bin" / "python"
    if not python.exists():
        return "Not compiled for GPUs: `make test-gpu-compile` was not run before."
    return output_of("compiled", str(python)).strip()


def machine() -> str:
    """Returns the number of cores and the name of the processor."""
    name = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        names = [
            line for line in info.read_text().splitlines() if line.startswith("model name")
        ]
        name = names[0].split(":")[1].strip() if names else name
    return f"{os.cpu_count()} cores, {name}"


def formatted(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:,.4g}" if isinstance(value, float) else f"{value:,}"


def least_ratio(line: dict) -> float | None:
    if line["name"].startswith("chain vs Numba") and line["trials"] == 1024:
        return 1.5
    return LEAST_RATIOS.get(line["name"])


def ratio_row(line: dict) -> str:
    """Returns the row of the table of ratios for one measurement."""
    least = least_ratio(line)
    cells = [
        line["name"],
        formatted(line["ours"]),
        formatted(line["baseline"]),
        formatted(line["ratio"]),
        "" if least is None else str(least),
        line["unit"],
        formatted(line["p"]),
        formatted(line["trials"]),
        line["dtype"],
    ]
    return "| " + " | ".join(cells) + " |"


def growth_table(lines: list[dict]) -> str:
    rows = ["| curve | as a function of | at | value | unit |", "|---|---|---|---|---|"]
    for line in lines:
        curve, variable = line["name"].removeprefix("growth: "), line["against"]
        values = (formatted(line["at"]), formatted(line["ours"]))
        cells = (curve, variable.split(",")[0], *values, line["unit"])
        rows.append("| " + " | ".join(cells) + " |")
    return "\n".join(rows)


def main() -> None:
    lines = [
        json.loads(text) for script in SCRIPTS for text in output_of(script).splitlines()
    ]
    ratios = [line for line in lines if not line["name"].startswith("growth")]
    curves = [line for line in lines if line["name"].startswith("growth")]
    versions = ", ".join(
        f"{name} {version}" for name, version in lines[0]["versions"].items()
    )
    header = "| what | ours | baseline | ratio | at least | unit | p | trials | dtype |"
    parts = [
        "# Results",
        f"Written by `python -m benchmarks` on {machine()}; {versions}. Times are those of "
        "the fastest of several calls after the first, without compilation unless the name "
        "says otherwise. Both sides of a ratio were measured in the same run. Each script "
        "checks its results before it measures.",
        "\n".join([header, "|---" * 9 + "|", *map(ratio_row, ratios)]),
        "## Growth",
        "![cost and memory as functions of p, trials, devices and steps](growth.png)",
        growth_table(curves),
        "## Estimates",
        output_of("gpu").strip(),
        compiled_for_gpus(),
    ]
    (HERE / "RESULTS.md").write_text("\n\n".join(parts) + "\n")
    print(f"results: {HERE / 'RESULTS.md'}")
    missing = LEAST_RATIOS.keys() - {line["name"] for line in ratios}
    if missing:
        sys.exit(f"No script measured {sorted(missing)}: correct LEAST_RATIOS.")


if __name__ == "__main__":
    main()
