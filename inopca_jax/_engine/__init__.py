"""How one trial is simulated: the exact chain, the p-dimensional stream, the diffusion.

Batches of trials, and all that happens on the host, are in `_batch`.
"""

from .base import AbstractEngine
from .chain import Chain
from .diffusion import Diffusion
from .stream import Stream

__all__ = ["AbstractEngine", "Chain", "Diffusion", "Stream"]
