from .dataset import open_sweep
from .hosts import connect
from .sweep import sweep

__all__ = ["connect", "open_sweep", "sweep"]
