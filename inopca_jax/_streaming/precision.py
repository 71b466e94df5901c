"""Arrays in float64, whatever JAX's mode."""

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import jax
import numpy as np

from .._pickling import from_pickle, to_pickle

__all__ = ["from_pickle", "precision_of", "to_pickle"]


def precision_of(dtype: Any) -> AbstractContextManager[Any]:
    """JAX's x64 mode for data in float64; the one in use for others."""
    return jax.enable_x64(True) if dtype == np.float64 else nullcontext()
