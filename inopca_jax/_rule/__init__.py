"""Rules: what an algorithm does with a sample. Learning rates come from `_schedule`."""

from .base import AbstractRule, Rates, initial_state, rates_and_next_state, rates_at
from .cubic import Cubic
from .ino import InoPCA
from .krasulina import Krasulina
from .oja import Oja
from .pairs import CCIPCA, AdaOja, AdaptiveInoPCA

__all__ = [
    "CCIPCA",
    "AbstractRule",
    "AdaOja",
    "AdaptiveInoPCA",
    "Cubic",
    "InoPCA",
    "Krasulina",
    "Oja",
    "Rates",
    "initial_state",
    "rates_and_next_state",
    "rates_at",
]
