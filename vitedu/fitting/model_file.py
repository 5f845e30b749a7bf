"""A student's file as the model and the loop of a run: ``vitedu train --model my_vit.py``.

Role: ``ModelFile``, and ``FileRun``, whose epochs are made of the file's own parts. To read such a
file is to run its text. So a path comes here only if somebody named it, never from a run's folder.
"""

import math
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.optim.lr_scheduler import LambdaLR

from vitedu.exporting.importing import load_file
from vitedu.fitting.config import TrainConfig
from vitedu.fitting.loop import Run
from vitedu.vit import ViTConfig

COPY = "my_vit.py"  # the text, in the folder of a run
NEEDED = "ViTConfig VisionTransformer MuonAndAdamW random_crop_flip warmup_cosine".split()
NEEDED += ["train_one_epoch", "evaluate"]
SETTINGS = "epochs batch_size lr warmup_share weight_decay crop_padding device seed".split()


class ModelFile:
    """A file that ``vitedu export`` wrote, edited or not; making one runs it.

    Raises:
        ValueError: it cannot be run, or lacks what a run needs.
        OSError: it cannot be read.
    """

    def __init__(self, path: str | Path):
        self.path = Path(path)
        self.text = self.path.read_text(encoding="utf-8")
        try:
            self.module = load_file(self.path)
        except (Exception, SystemExit) as error:
            reason = (str(error).splitlines() or [""])[0]
            raise ValueError(f"{path} cannot be run: {type(error).__name__}: {reason}") from None
        missing = [name for name in NEEDED if not hasattr(self.module, name)]
        if missing:
            raise ValueError(
                f"{path} has no {', '.join(missing)}; vitedu export writes such files."
            )

    def configure(self, **fields: Any) -> Any:
        """Give the file's own configuration.

        Raises:
            ValueError: a field that it does not have, or sizes that do not go together.
        """
        others = [name for name in fields if name not in self.module.ViTConfig.__dataclass_fields__]
        if others:
            raise ValueError(f"the ViTConfig of {self.path} has no {', '.join(others)}.")
        config = self.module.ViTConfig(**fields)
        ViTConfig(**asdict(config))  # refuses such sizes
        return config


class FileRun(Run):
    """A run whose steps, order of images aside, are those of a student's file."""

    def __init__(self, module: Any, model: nn.Module, data: Any, config: TrainConfig):
        super().__init__(model, data, config)
        self.module = module
        self.optimizer = module.MuonAndAdamW(model, config.lr, config.weight_decay)

    def learn(self, epoch: int, order: torch.Tensor) -> tuple[float, float, float]:
        """Learn from images in an order; return means of loss, accuracy, learning rate."""
        done, schedule = epoch * self.steps, (self.total_steps, self.warmup_steps, 1.0)
        steps = range(done, done + self.steps)
        shares = [self.module.warmup_cosine(step, *schedule) for step in steps]  # of the peak rate
        # the scheduler asks for one past the end
        scheduler = LambdaLR(self.optimizer, lambda step: shares[min(step, self.steps - 1)])
        batches = self.batches(order, done)
        loss, accuracy = self.module.train_one_epoch(self.model, batches, self.optimizer, scheduler)
        if not math.isfinite(loss):
            raise self.divergence(epoch, self.steps - 1, self.config.lr)
        return float(loss), float(accuracy), float(self.config.lr * sum(shares) / self.steps)

    def batches(
        self, order: torch.Tensor, done: int
    ) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        """Yield batches, shifted, mirrored and normalised; ``done`` steps of the run are past."""
        shift, scale = self.scaling
        for step, chosen in enumerate(order.split(self.config.batch_size), start=done + 1):
            batch = self.images[chosen]
            if padding := self.config.crop_padding:
                batch = self.module.random_crop_flip(batch, padding, self.generator)
            yield batch.float() * scale + shift, self.labels[chosen]
            if self.bar and self.bar.is_due():
                self.bar.update(step, f"epoch {done // self.steps + 1}")

    def validate(self) -> tuple[float, float]:
        """Measure loss and accuracy on the validation images."""
        split, (shift, scale) = self.data.validation, self.scaling
        size = self.config.batch_size
        parts = (x.to(self.device).split(size) for x in (split.images, split.labels))
        batches = ((x.float() * scale + shift, labels) for x, labels in zip(*parts, strict=True))
        loss, accuracy = self.module.evaluate(self.model, batches)
        return float(loss), float(accuracy)
