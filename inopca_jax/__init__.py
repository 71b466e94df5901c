"""Online PCA in high dimensions: exact simulation and its mean-field theory."""

from ._config import Config
from ._engine import AbstractEngine, Chain, Stream, simulate
from ._model import AbstractModel, SpikedModel, Switching
from ._rule import (
    CCIPCA,
    AbstractRule,
    AdaOja,
    AdaptiveInoPCA,
    Cubic,
    InoPCA,
    Krasulina,
    Oja,
    Rates,
)
from ._sample import Hidden, Sample
from ._schedule import (
    AbstractSchedule,
    AdaGrad,
    Constant,
    Harmonic,
    Interpolated,
    Oracle,
)
from ._spike import AbstractSpike, Gaussian, ShiftedExponential, Sparse, Uniform
from ._start import AbstractStart, ColdStart, WarmStart
from ._theory import (
    best_lam0,
    critical_snr,
    mean_field,
    offline_overlap,
    oracle_overlap,
    steady_state,
)
from ._trajectory import Trajectory

__all__ = [
    "CCIPCA",
    "AbstractEngine",
    "AbstractModel",
    "AbstractRule",
    "AbstractSchedule",
    "AbstractSpike",
    "AbstractStart",
    "AdaGrad",
    "AdaOja",
    "AdaptiveInoPCA",
    "Chain",
    "ColdStart",
    "Config",
    "Constant",
    "Cubic",
    "Gaussian",
    "Harmonic",
    "Hidden",
    "InoPCA",
    "Interpolated",
    "Krasulina",
    "Oja",
    "Oracle",
    "Rates",
    "Sample",
    "ShiftedExponential",
    "Sparse",
    "SpikedModel",
    "Stream",
    "Switching",
    "Trajectory",
    "Uniform",
    "WarmStart",
    "best_lam0",
    "critical_snr",
    "mean_field",
    "offline_overlap",
    "oracle_overlap",
    "simulate",
    "steady_state",
]
