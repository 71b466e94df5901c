"""The law of the data: the spike's entries, and how a sample is made from them.

Independent of rules and engines.
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
