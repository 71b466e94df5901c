import jax
import matplotlib as mpl
import pytest

jax.config.update("jax_numpy_rank_promotion", "raise")
jax.config.update("jax_numpy_dtype_promotion", "strict")
mpl.use("Agg")


@pytest.fixture
def x64():
    with jax.enable_x64(True):
        yield
