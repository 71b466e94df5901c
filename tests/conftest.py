import os
from pathlib import Path

# Most of the time goes into compiling, of which these save half: less of LLVM's work, and
# on one thread, as there is a worker for every core. What comes out is as fast to a fifth.
os.environ["XLA_FLAGS"] = " ".join(
    [
        os.environ.get("XLA_FLAGS", ""),
        "--xla_backend_optimization_level=1",
        "--xla_cpu_use_fusion_emitters=false",
        "--xla_cpu_parallel_codegen_split_count=1",
    ]
)
# And two workers, two runs, or the processes that a test starts, compile much alike.
os.environ["JAX_COMPILATION_CACHE_DIR"] = str(Path(__file__).parents[1] / ".jax_cache")
os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0.2"

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
