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
    "mean_field",
    "density",
    "finite_p",
    "tune",
    "real_data",
    "sweep",
    "growth",
    "large",
)
LEAST = {  # what a ratio must be
    "components of a stream vs NumPy loop": 8,
    "chain vs NumPy p-dimensional loop": 2500,
    "stream vs NumPy p-dimensional loop": 4,
    "stream vs Numba prange p-dimensional loop": 2.5,
    "normals vs jax.random.normal": 3.5,
    "mean field, 100 x 100 grid, vs SciPy RK45": 100,
    "density, stepping, vs SciPy LSODA at L1 error 2e-4": 5,
    "Diffusion, p = 1e9, t = 50, vs chain, p = 10,000": 1,
    "10,000 cells to the store, fsync off, vs 200 a second": 1,
    "sweep of 16 x 16 cells vs one bare vmap, one core": 0.9,
}


def output(script: str) -> str:
    print(f"benchmarks.{script} ...", file=sys.stderr, flush=True)
    command = [sys.executable, "-m", f"benchmarks.{script}"]
    done = subprocess.run(
        command, cwd=HERE.parent, stdout=subprocess.PIPE, text=True, check=True
    )
    return done.stdout


def machine() -> str:
    model = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        names = [
            line for line in info.read_text().splitlines() if line.startswith("model name")
        ]
        model = names[0].split(":")[1].strip() if names else model
    return f"{os.cpu_count()} cores, {model}"


def show(value) -> str:
    return (
        ""
        if value is None
        else f"{value:,.4g}"
        if isinstance(value, float)
        else f"{value:,}"
    )


def row(line: dict) -> str:
    least = LEAST.get(line["name"], "")
    if line["name"].startswith("chain vs Numba") and line["trials"] == 1024:
        least = 1.5
    cells = [line["name"], show(line["ours"]), show(line["baseline"]), show(line["ratio"])]
    cells += [
        str(least),
        line["unit"],
        show(line["p"]),
        show(line["trials"]),
        line["dtype"],
    ]
    return "| " + " | ".join(cells) + " |"


def growth(lines: list[dict]) -> str:
    rows = ["| curve | against | at | value | unit |", "|---|---|---|---|---|"]
    for line in lines:
        name = line["name"].removeprefix("growth: ")
        cells = (name, line["against"].split(",")[0], show(line["at"]), show(line["ours"]))
        rows.append("| " + " | ".join((*cells, line["unit"])) + " |")
    return "\n".join(rows)


def main() -> None:
    lines = [json.loads(text) for script in SCRIPTS for text in output(script).splitlines()]
    races = [line for line in lines if not line["name"].startswith("growth")]
    curves = [line for line in lines if line["name"].startswith("growth")]
    versions = ", ".join(
        f"{name} {version}" for name, version in lines[0]["versions"].items()
    )
    header = "| what | ours | baseline | ratio | at least | unit | p | trials | dtype |"
    parts = [
        "# Results",
        f"Written by `python -m benchmarks` on {machine()}; {versions}. Warm, the best of "
        "several runs, compilation apart; the two sides of a ratio in one run. Each script "
        "checks the answers before it times them.",
        "\n".join([header, "|---" * 9 + "|", *map(row, races)]),
        "## Growth",
        "![cost and memory as they grow](growth.png)",
        growth(curves),
        "## On paper",
        output("gpu").strip(),
    ]
    (HERE / "RESULTS.md").write_text("\n\n".join(parts) + "\n")
    print(f"results: {HERE / 'RESULTS.md'}")


if __name__ == "__main__":
    main()
