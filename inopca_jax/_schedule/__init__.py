from .adagrad import AdaGrad
from .base import AbstractSchedule
from .constant import Constant
from .harmonic import Harmonic
from .interpolated import Interpolated
from .oracle import Oracle

__all__ = [
    "AbstractSchedule",
    "AdaGrad",
    "Constant",
    "Harmonic",
    "Interpolated",
    "Oracle",
]
