"""Tests of the programs that XLA compiles for GPUs, without one: `make test-gpu-compile`.

JAX's plugin for CUDA would change on which backends a process runs, so it is installed into
an environment of its own, `.venvs/gpu`, which takes all other packages from the environment
that runs this. If it cannot be had, that is said, and the exit code is 0.
"""

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import jax

ROOT = Path(__file__).resolve().parents[1]
ENVIRONMENT = ROOT / ".venvs" / "gpu"
PYTHON = ENVIRONMENT / "bin" / "python"


def install() -> bool:
    """Makes the environment, and returns whether all packages could be had."""
    if not PYTHON.exists():
        subprocess.run([sys.executable, "-m", "venv", str(ENVIRONMENT)], check=True)
    ask = "import sysconfig; print(sysconfig.get_paths()['purelib'])"
    own = subprocess.run([PYTHON, "-c", ask], capture_output=True, text=True, check=True)
    others = sysconfig.get_paths()["purelib"]
    link = Path(own.stdout.strip()) / "other_packages.pth"
    link.write_text(f"import site; site.addsitedir({others!r})\n")
    plugin = [f"jax-cuda12-{part}=={jax.__version__}" for part in ("plugin", "pjrt")]
    pip = [str(PYTHON), "-m", "pip", "install", "--quiet", "--no-deps"]
    return subprocess.run([*pip, *plugin, "nvidia-cuda-nvcc-cu12"]).returncode == 0


def main() -> int:
    if not install():
        print("skipped: the packages to compile for a GPU cannot be had")
        return 0
    # No GPU is looked for. XLA complains on stderr that there is none, at any log level;
    # what fails is on stdout.
    variables = os.environ | dict(JAX_PLATFORMS="cpu", TF_CPP_MIN_LOG_LEVEL="3")
    command = [str(PYTHON), "-m", "pytest", "-m", "gpu", "tests/test_gpu_compile.py"]
    done = subprocess.run(command, cwd=ROOT, env=variables, stderr=subprocess.PIPE)
    if done.returncode != 0:
        sys.stderr.write(done.stderr.decode())
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
