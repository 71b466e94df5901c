"""How one trial is simulated: the exact chain, the p-dimensional stream, the diffusion.

Batches of trials, and all that happens on the host, are in `_batch`.
"""

from .base import AbstractEngine
from .chain import Chain
from .diffusion import Diffusion
from .sample_step import sample_step
from .stream import Stream
from .trial import simulate_trial

__all__ = [
    "AbstractEngine",
    "Chain",
    "Diffusion",
    "Stream",
    "sample_step",
    "simulate_trial",
]
