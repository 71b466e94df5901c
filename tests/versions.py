"""The smoke tests in other environments than this one: `make test-versions`.

Every supported Python that this machine has, other than the one that runs this, with the
newest releases of all packages; and the oldest one with the oldest releases that
`pyproject.toml` allows. `python tests/versions.py 3.13 newest` runs one of them only.
Environments are kept in `.venvs/`. The exit code is the number of those that fail.
"""

import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
SUPPORTED = ("3.11", "3.12", "3.13", "3.14")
EXTRAS = ("sklearn", "sweep", "test")


def interpreters() -> Iterator[tuple[str, str]]:
    """The supported versions of Python that are installed, each with its executable."""
    for version in SUPPORTED:
        name = f"python{version}"
        candidates = [shutil.which(name)]
        # pyenv's own command of that name fails unless the version is selected.
        candidates += sorted(map(str, Path.home().glob(f".pyenv/versions/*/bin/{name}")))
        for path in filter(None, candidates):
            if subprocess.run([path, "-c", ""], capture_output=True).returncode == 0:
                yield version, path
                break


def oldest() -> list[str]:
    """`name==version` for every lower bound in `pyproject.toml`."""
    optional = PROJECT["optional-dependencies"]
    asked = [*PROJECT["dependencies"], *(x for extra in EXTRAS for x in optional[extra])]
    bounds = (re.match(r"([\w-]+)(?:\[.*\])?>=([\w.]+)", line) for line in asked)
    return [f"{bound[1]}=={bound[2]}" for bound in bounds if bound]


def install(python: str, environment: Path, constraints: list[str]) -> None:
    """The package and what its tests need, editable, in an environment of its own."""
    if not (environment / "bin" / "python").exists():
        subprocess.run([python, "-m", "venv", str(environment)], check=True)
    pip = [str(environment / "bin" / "python"), "-m", "pip", "install", "--quiet"]
    package = f"{ROOT}[{','.join(EXTRAS)}]"
    newest = ["--upgrade", "--upgrade-strategy", "eager"]
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        file.write("\n".join(constraints))
        file.flush()
        how = ["--constraint", file.name] if constraints else newest
        subprocess.run([*pip, *how, "--editable", package], check=True)


def passes(environment: Path, newest: bool) -> bool:
    """Whether the smoke tests pass and a figure of the paper is made. With the newest
    releases no warning may be raised or printed; old ones warn of each other."""
    # Only files that have such tests: others import packages that are not installed here.
    files = [
        p for p in sorted(ROOT.glob("tests/test_*.py")) if "mark.smoke" in p.read_text()
    ]
    tests = [environment / "bin" / "pytest", "-m", "smoke", *files]
    tests += [] if newest else ["-W", "default"]
    if subprocess.run(list(map(str, tests)), cwd=ROOT).returncode != 0:
        return False
    with tempfile.TemporaryDirectory() as out:
        report = [str(environment / "bin" / "inopca"), "reproduce", "--figure"]
        report += ["cos_lambda", "--quick", "--out", out]
        made = subprocess.run(report, cwd=out, capture_output=True, text=True)
    print(made.stdout, made.stderr, sep="")
    return made.returncode == 0 and not (newest and made.stderr)


def main(*only: str) -> int:
    found = dict(interpreters())
    own = f"{sys.version_info.major}.{sys.version_info.minor}"
    runs = [(version, "newest") for version in found if version != own]
    runs += [(min(found, key=SUPPORTED.index), "oldest")]
    runs = [(only[0], only[1])] if only else runs
    results = []
    for version, releases in runs:
        print(f"Python {version}, {releases} releases", flush=True)
        begin, environment = time.monotonic(), ROOT / ".venvs" / f"{version}-{releases}"
        install(found[version], environment, oldest() if releases == "oldest" else [])
        passed = passes(environment, releases == "newest")
        minutes = (time.monotonic() - begin) / 60
        results.append((version, releases, passed, minutes))
    for version, releases, passed, minutes in results:
        verdict = "passed" if passed else "FAILED"
        print(f"Python {version}, {releases} releases: {verdict} in {minutes:.1f} minutes")
    return sum(not passed for _, _, passed, _ in results)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
