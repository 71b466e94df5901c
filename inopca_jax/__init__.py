"""Online PCA in high dimensions: exact simulation and its mean-field theory."""

from typing import TYPE_CHECKING, Any

from ._batch import simulate
from ._config import Config
from ._densities import (
    AbstractDensitySolver,
    ClosedForm,
    FokkerPlanck,
    MethodOfLines,
    density,
    steady_density,
)
from ._densities.density import Density
from ._densities.histogram import Histogram, empirical_density
from ._engine import AbstractEngine, Chain, Diffusion, Stream
from ._model import (
    AbstractModel,
    AbstractSpike,
    Gaussian,
    ShiftedExponential,
    Sparse,
    SpikedModel,
    Switching,
    Uniform,
)
from ._observables import Hidden, Sample
from ._order_parameters import (
    EscapeTime,
    OverlapLaw,
    best_lam0,
    best_overlap,
    critical_snr,
    effective_gain,
    escape_time,
    fluctuations,
    mean_field,
    offline_overlap,
    oracle_overlap,
    overlap_law,
    sensitivity,
    steady_state,
)
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
from ._schedule import AbstractSchedule, AdaGrad, Constant, Harmonic, Interpolated, Oracle
from ._start import (
    AbstractDensityStart,
    AbstractGaussianStart,
    AbstractStart,
    Box,
    ColdStart,
    TwoBumps,
    WarmStart,
)
from ._streaming import (
    Subspace,
    captured_variance,
    grassmann_distance,
    principal_angles,
    stream_pca,
)
from ._sweep import connect, open_sweep, sweep
from ._trajectory import Trajectory
from ._tuning import (
    AbstractObjective,
    AbstractPathObjective,
    Area,
    Average,
    CautiousOverlap,
    FinalOverlap,
    SteadyOverlap,
    TimeToReach,
    Tuned,
    WorstCase,
    tune,
)

if TYPE_CHECKING:
    from ._streaming.estimator import StreamingPCA

__all__ = [
    "CCIPCA",
    "AbstractDensitySolver",
    "AbstractDensityStart",
    "AbstractEngine",
    "AbstractGaussianStart",
    "AbstractModel",
    "AbstractObjective",
    "AbstractPathObjective",
    "AbstractRule",
    "AbstractSchedule",
    "AbstractSpike",
    "AbstractStart",
    "AdaGrad",
    "AdaOja",
    "AdaptiveInoPCA",
    "Area",
    "Average",
    "Box",
    "CautiousOverlap",
    "Chain",
    "ClosedForm",
    "ColdStart",
    "Config",
    "Constant",
    "Cubic",
    "Density",
    "Diffusion",
    "EscapeTime",
    "FinalOverlap",
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
    "OverlapLaw",
    "Rates",
    "Sample",
    "ShiftedExponential",
    "Sparse",
    "SpikedModel",
    "SteadyOverlap",
    "Stream",
    "StreamingPCA",
    "Subspace",
    "Switching",
    "TimeToReach",
    "Trajectory",
    "Tuned",
    "TwoBumps",
    "Uniform",
    "WarmStart",
    "WorstCase",
    "best_lam0",
    "best_overlap",
    "captured_variance",
    "connect",
    "critical_snr",
    "density",
    "effective_gain",
    "empirical_density",
    "escape_time",
    "fluctuations",
    "grassmann_distance",
    "mean_field",
    "offline_overlap",
    "open_sweep",
    "oracle_overlap",
    "overlap_law",
    "principal_angles",
    "sensitivity",
    "simulate",
    "steady_density",
    "steady_state",
    "stream_pca",
    "sweep",
    "tune",
]


def __getattr__(name: str) -> Any:
    # scikit-learn is an extra, and takes a second to import.
    if name != "StreamingPCA":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        from ._streaming.estimator import StreamingPCA
    except ImportError as error:
        raise ImportError(
            "StreamingPCA needs scikit-learn: pip install 'inopca_jax[sklearn]'."
        ) from error
    return StreamingPCA
