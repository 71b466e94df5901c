"""Schedules: where the learning rate comes from. What is done with it is in `_rule`."""

from .adagrad import AdaGrad
from .base import AbstractSchedule, AbstractStatelessSchedule
from .constant import Constant
from .harmonic import Harmonic
from .interpolated import Interpolated
from .oracle import Oracle
from .self_tuning import SelfTuning
from .vector import AbstractVectorSchedule, VectorStep

__all__ = [
    "AbstractSchedule",
    "AbstractStatelessSchedule",
    "AbstractVectorSchedule",
    "AdaGrad",
    "Constant",
    "Harmonic",
    "Interpolated",
    "Oracle",
    "SelfTuning",
    "VectorStep",
]
