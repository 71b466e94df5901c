"""PCA of real data: `stream_pca`, the estimator `StreamingPCA`, distances of subspaces.

Simulations of the spiked model are in `_engine`, and loaders of data in `inopca_jax.data`.
"""

from .components import init_components, update_components
from .distance import captured_variance, grassmann_distance, principal_angles
from .sketch import Sketch
from .stream_pca import Subspace, stream_pca

__all__ = [
    "Sketch",
    "Subspace",
    "captured_variance",
    "grassmann_distance",
    "init_components",
    "principal_angles",
    "stream_pca",
    "update_components",
]
