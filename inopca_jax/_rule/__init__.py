from .base import AbstractRule, Rates, learn, rates_at
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
    "learn",
    "rates_at",
]
