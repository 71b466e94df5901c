from .dataset import open_sweep
from .sweep import sweep

__all__ = ["open_sweep", "sweep"]
