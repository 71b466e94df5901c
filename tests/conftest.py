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

import jax
import matplotlib as mpl
import pytest

jax.config.update("jax_numpy_rank_promotion", "raise")
jax.config.update("jax_numpy_dtype_promotion", "strict")
mpl.use("Agg")

# And two workers, or two runs, compile much alike.
jax.config.update(
    "jax_compilation_cache_dir", str(Path(__file__).parents[1] / ".jax_cache")
)
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.2)


@pytest.fixture(scope="module", autouse=True)
def programs_are_let_go():
    """A process that keeps all of the programs that the tests compile runs out of maps."""
    yield
    jax.clear_caches()


@pytest.fixture
def x64():
    with jax.enable_x64(True):
        yield
