"""Whole training runs: ``fit`` for any ``nn.Module``, and all that a run needs around it."""

from vitedu.fitting.config import TrainConfig
from vitedu.fitting.loop import fit

__all__ = ["TrainConfig", "fit"]
