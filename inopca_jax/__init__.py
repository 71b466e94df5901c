"""Online PCA in high dimensions: exact simulation and its mean-field theory."""

from ._config import Config
from ._density import Density
from ._engine import AbstractEngine, Chain, Stream, simulate
from ._histogram import Histogram, empirical_density
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
from ._start import (
    AbstractDensityStart,
    AbstractGaussianStart,
    AbstractStart,
    Box,
    ColdStart,
    TwoBumps,
    WarmStart,
)
from ._theory import (
    AbstractDensitySolver,
    ClosedForm,
    FokkerPlanck,
    MethodOfLines,
    best_lam0,
    critical_snr,
    density,
    mean_field,
    offline_overlap,
    oracle_overlap,
    steady_density,
    steady_state,
)
from ._trajectory import Trajectory

__all__ = [
    "CCIPCA",
    "AbstractDensitySolver",
    "AbstractDensityStart",
    "AbstractEngine",
    "AbstractGaussianStart",
    "AbstractModel",
    "AbstractRule",
    "AbstractSchedule",
    "AbstractSpike",
    "AbstractStart",
    "AdaGrad",
    "AdaOja",
    "AdaptiveInoPCA",
    "Box",
    "Chain",
    "ClosedForm",
    "ColdStart",
    "Config",
    "Constant",
    "Cubic",
    "Density",
    "FokkerPlanck",
    "Gaussian",
    "Harmonic",
    "Hidden",
    "Histogram",
    "InoPCA",
    "Interpolated",
    "Krasulina",
    "MethodOfLines",
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
    "TwoBumps",
    "Uniform",
    "WarmStart",
    "best_lam0",
    "critical_snr",
    "density",
    "empirical_density",
    "mean_field",
    "offline_overlap",
    "oracle_overlap",
    "simulate",
    "steady_density",
    "steady_state",
]
