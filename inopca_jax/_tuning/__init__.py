"""The best numbers of a config for an objective: `tune`, and the objectives.

Derivatives of a mean field along its path are in `_order_parameters`.
"""

from .objective import (
    AbstractObjective,
    AbstractPathObjective,
    Area,
    CautiousOverlap,
    FinalDistance,
    FinalOverlap,
    SteadyOverlap,
    TimeToReach,
)
from .robust import AbstractRobust, Average, WorstCase
from .tune import Tuned, tune

__all__ = [
    "AbstractObjective",
    "AbstractPathObjective",
    "AbstractRobust",
    "Area",
    "Average",
    "CautiousOverlap",
    "FinalDistance",
    "FinalOverlap",
    "SteadyOverlap",
    "TimeToReach",
    "Tuned",
    "WorstCase",
    "tune",
]
