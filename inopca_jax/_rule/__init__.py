"""Rules: what an algorithm does with a sample. Learning rates come from `_schedule`."""

from .base import (
    AbstractAlgorithm,
    AbstractRule,
    Rates,
    as_rule,
    initial_state,
    rates_and_next_state,
    rates_at,
)
from .cubic import Cubic
from .gha import GHA
from .ino import InoPCA
from .krasulina import Krasulina
from .oja import Oja
from .oja_subspace import OjaSubspace
from .pairs import CCIPCA, AdaOja, AdaptiveInoPCA
from .past import PAST
from .penalised import Penalised, require_rates, split_penalty
from .penalty import AbstractPenalty, Ridge, SoftThreshold
from .petrels import PETRELS
from .subspace import (
    AbstractSubspaceRule,
    SubspaceObservables,
    SubspaceRates,
    SubspaceState,
    initial_states,
    learning_rate,
    schedule_drift,
    subspace_rates_and_next_state,
)

__all__ = [
    "CCIPCA",
    "GHA",
    "PAST",
    "PETRELS",
    "AbstractAlgorithm",
    "AbstractPenalty",
    "AbstractRule",
    "AbstractSubspaceRule",
    "AdaOja",
    "AdaptiveInoPCA",
    "Cubic",
    "InoPCA",
    "Krasulina",
    "Oja",
    "OjaSubspace",
    "Penalised",
    "Rates",
    "Ridge",
    "SoftThreshold",
    "SubspaceObservables",
    "SubspaceRates",
    "SubspaceState",
    "as_rule",
    "initial_state",
    "initial_states",
    "learning_rate",
    "rates_and_next_state",
    "rates_at",
    "require_rates",
    "schedule_drift",
    "split_penalty",
    "subspace_rates_and_next_state",
]
