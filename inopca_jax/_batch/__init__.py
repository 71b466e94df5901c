"""Many trials at once: tiles of trials on cores and devices, within the memory.

What one trial does is in `_engine`; grids of configs and stores are in `_sweep`.
"""

from .trials import simulate

__all__ = ["simulate"]
