"""Online PCA in high dimensions: exact simulation and its mean-field theory."""

from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

from ._batch import simulate
from ._components import (
    AbstractComponentTrajectory,
    ComponentSnapshots,
    ComponentTrajectory,
)
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
from ._engine import (
    AbstractEngine,
    Chain,
    Diffusion,
    Stream,
    sample_step,
    simulate_trial,
)
from ._extras import import_extra
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
from ._observables import Hidden, Observables, VectorProducts
from ._order_parameters import (
    ColdStartLaw,
    EscapeTime,
    OverlapLaw,
    best_lam0,
    best_overlap,
    best_rate,
    cold_start_law,
    critical_snr,
    effective_gain,
    escape_time,
    fluctuations,
    forgetting_eigenvalue,
    forgetting_overlap,
    keeps_sign,
    mean_field,
    offline_overlap,
    oracle_overlap,
    overlap_law,
    predict,
    sensitivity,
    steady_distance,
    steady_state,
    velocity,
)
from ._rule import (
    CCIPCA,
    GHA,
    PAST,
    PETRELS,
    AbstractAlgorithm,
    AbstractRule,
    AbstractSubspaceRule,
    AdaOja,
    AdaptiveInoPCA,
    Cubic,
    InoPCA,
    Krasulina,
    Oja,
    OjaSubspace,
    Rates,
    SubspaceObservables,
    SubspaceRates,
)
from ._schedule import (
    AbstractSchedule,
    AbstractStatelessSchedule,
    AbstractVectorSchedule,
    AdaGrad,
    Constant,
    Harmonic,
    Interpolated,
    Oracle,
    SelfTuning,
    VectorStep,
)
from ._start import (
    AbstractDensityStart,
    AbstractGaussianStart,
    AbstractStart,
    Box,
    ColdStart,
    FirstSamples,
    TwoBumps,
    WarmStart,
)
from ._streaming import (
    Sketch,
    Subspace,
    captured_variance,
    grassmann_distance,
    init_components,
    principal_angles,
    stream_pca,
    update_components,
)
from ._sweep import connect, open_sweep, sweep
from ._trajectory import AbstractTrajectory, Prediction, Snapshots, Trajectory
from ._tuning import (
    AbstractObjective,
    AbstractPathObjective,
    Area,
    Average,
    CautiousOverlap,
    FinalDistance,
    FinalOverlap,
    SteadyOverlap,
    TimeToReach,
    Tuned,
    WorstCase,
    tune,
)

try:
    __version__ = version("inopca_jax")
except PackageNotFoundError:  # imported from the source, without an installation
    __version__ = "0+not-installed"

if TYPE_CHECKING:
    from ._streaming.estimator import StreamingPCA

__all__ = [
    "CCIPCA",
    "GHA",
    "PAST",
    "PETRELS",
    "AbstractAlgorithm",
    "AbstractComponentTrajectory",
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
    "AbstractStatelessSchedule",
    "AbstractSubspaceRule",
    "AbstractTrajectory",
    "AbstractVectorSchedule",
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
    "ColdStartLaw",
    "ComponentSnapshots",
    "ComponentTrajectory",
    "Config",
    "Constant",
    "Cubic",
    "Density",
    "Diffusion",
    "EscapeTime",
    "FinalDistance",
    "FinalOverlap",
    "FirstSamples",
    "FokkerPlanck",
    "Gaussian",
    "Harmonic",
    "Hidden",
    "Histogram",
    "InoPCA",
    "Interpolated",
    "Krasulina",
    "MethodOfLines",
    "Observables",
    "Oja",
    "OjaSubspace",
    "Oracle",
    "OverlapLaw",
    "Prediction",
    "Rates",
    "SelfTuning",
    "ShiftedExponential",
    "Sketch",
    "Snapshots",
    "Sparse",
    "SpikedModel",
    "SteadyOverlap",
    "Stream",
    "StreamingPCA",
    "Subspace",
    "SubspaceObservables",
    "SubspaceRates",
    "Switching",
    "TimeToReach",
    "Trajectory",
    "Tuned",
    "TwoBumps",
    "Uniform",
    "VectorProducts",
    "VectorStep",
    "WarmStart",
    "WorstCase",
    "best_lam0",
    "best_overlap",
    "best_rate",
    "captured_variance",
    "cold_start_law",
    "connect",
    "critical_snr",
    "density",
    "effective_gain",
    "empirical_density",
    "escape_time",
    "fluctuations",
    "forgetting_eigenvalue",
    "forgetting_overlap",
    "grassmann_distance",
    "init_components",
    "keeps_sign",
    "mean_field",
    "offline_overlap",
    "open_sweep",
    "oracle_overlap",
    "overlap_law",
    "predict",
    "principal_angles",
    "sample_step",
    "sensitivity",
    "simulate",
    "simulate_trial",
    "steady_density",
    "steady_distance",
    "steady_state",
    "stream_pca",
    "sweep",
    "tune",
    "update_components",
    "velocity",
]


def __getattr__(name: str) -> Any:
    # scikit-learn is an extra, and takes a second to import.
    if name != "StreamingPCA":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import_extra("sklearn", "StreamingPCA", "sklearn")
    from ._streaming.estimator import StreamingPCA

    return StreamingPCA
