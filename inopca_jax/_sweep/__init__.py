"""Sweeps: trials of the configs of a grid, kept in a store that survives interruptions.

The programs that compute trials are in `_batch`, and the figures of sweeps in `plot`.
"""

from .dataset import open_sweep
from .hosts import connect
from .sweep import sweep

__all__ = ["connect", "open_sweep", "sweep"]
