# ruff: noqa: E402 (JAX reads its environment when it is imported)
import os
import subprocess
import sys
from pathlib import Path

# Most of the time goes into compiling, of which these options save half. Only another
# process can tell which of them this JAX has: the variable is read once, when XLA starts.
# The workers of pytest-xdist inherit the answer.
ASK = """
from inopca_jax._xla import QUICK_TO_COMPILE, as_flags, supported
print(as_flags(supported(QUICK_TO_COMPILE)))
"""
if "PYTEST_XDIST_WORKER" not in os.environ:
    known = subprocess.run([sys.executable, "-c", ASK], stdout=subprocess.PIPE, check=True)
    flags = f"{os.environ.get('XLA_FLAGS', '')} {known.stdout.decode().strip()}"
    os.environ["XLA_FLAGS"] = flags
# And two workers, two runs, or the processes that a test starts, compile much alike. On
# some CPUs XLA complains at length about every file that it reads back: see `reproduce`.
os.environ["JAX_COMPILATION_CACHE_DIR"] = str(Path(__file__).parents[1] / ".jax_cache")
os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0.2"
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import jax
import matplotlib as mpl
import pytest

jax.config.update("jax_numpy_rank_promotion", "raise")
jax.config.update("jax_numpy_dtype_promotion", "strict")
mpl.use("Agg")


@pytest.fixture(scope="module", autouse=True)
def programs_are_let_go():
    """A process that keeps all of the programs that the tests compile runs out of maps."""
    yield
    jax.clear_caches()


@pytest.fixture
def x64():
    with jax.enable_x64(True):
        yield
