from .base import AbstractEngine
from .chain import Chain
from .diffusion import Diffusion
from .run import simulate
from .stream import Stream

__all__ = ["AbstractEngine", "Chain", "Diffusion", "Stream", "simulate"]
