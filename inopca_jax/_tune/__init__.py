from .objective import (
    AbstractObjective,
    AbstractPathObjective,
    AbstractRobust,
    Area,
    Average,
    CautiousOverlap,
    FinalOverlap,
    SteadyOverlap,
    TimeToReach,
    WorstCase,
)
from .tune import Tuned, tune

__all__ = [
    "AbstractObjective",
    "AbstractPathObjective",
    "AbstractRobust",
    "Area",
    "Average",
    "CautiousOverlap",
    "FinalOverlap",
    "SteadyOverlap",
    "TimeToReach",
    "Tuned",
    "WorstCase",
    "tune",
]
