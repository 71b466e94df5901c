from .distance import captured_variance, grassmann_distance, principal_angles
from .stream_pca import Subspace, stream_pca

__all__ = [
    "Subspace",
    "captured_variance",
    "grassmann_distance",
    "principal_angles",
    "stream_pca",
]
