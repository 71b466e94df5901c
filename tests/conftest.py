import os
from pathlib import Path

# Programs are compiled as users compile them, with XLA's default settings. Two workers, two
# runs, and the processes that a test starts, compile much alike, so they share a cache. On
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
