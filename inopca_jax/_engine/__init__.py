from .base import AbstractEngine
from .chain import Chain
from .run import simulate
from .stream import Stream

__all__ = ["AbstractEngine", "Chain", "Stream", "simulate"]
