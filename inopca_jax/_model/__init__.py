"""The law of the data: the spike's entries, and how a sample is made from them.

Nothing here knows of algorithms or of how a run is observed.
"""

from .spike import AbstractSpike, Gaussian, ShiftedExponential, Sparse, Uniform
from .spiked import AbstractModel, SpikedModel, Switching

__all__ = [
    "AbstractModel",
    "AbstractSpike",
    "Gaussian",
    "ShiftedExponential",
    "Sparse",
    "SpikedModel",
    "Switching",
    "Uniform",
]
