"""A student's file as the model and the loop of a run: ``vitedu train --model my_vit.py``.

Role: ``ModelFile``, and ``FileRun``, whose epochs are made of the file's own parts. To read such a
file is to run its text. So a path comes here only if somebody named it, never from a run's folder.
"""

import math
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import torch
from torch.optim.lr_scheduler import LambdaLR

from vitedu.exporting.importing import load_file
from vitedu.fitting.config import TrainConfig
from vitedu.fitting.history import divergence_error
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

    def configure(self, **fields):
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

    def __init__(self, module, model, data, config: TrainConfig, device):
        super().__init__(model, data, config, device)
        self.module = module
        self.optimizer = module.MuonAndAdamW(model, config.lr, config.weight_decay)

    def share_of_lr(self, step: int) -> float:
        """Give the learning rate of a step of the run, as a share of the peak."""
        step = min(step, self.total_steps - 1)  # the scheduler asks for one past the end
        return self.module.warmup_cosine(step, self.total_steps, self.warmup_steps, 1.0)

    def learn(self, epoch: int, order: torch.Tensor) -> tuple[float, float, float]:
        """Learn from images in an order; return means of loss, accuracy, learning rate."""
        done = epoch * self.steps
        scheduler = LambdaLR(self.optimizer, lambda step: self.share_of_lr(done + step))
        batches = self.batches(self.images, self.labels, order, done)
        loss, accuracy = self.module.train_one_epoch(self.model, batches, self.optimizer, scheduler)
        if not math.isfinite(loss):
            raise divergence_error(epoch, self.steps - 1, self.config.lr, self.dtype, self.history)
        shares = [self.share_of_lr(step) for step in range(done, done + self.steps)]
        return float(loss), float(accuracy), float(self.config.lr * sum(shares) / self.steps)

    def validate(self) -> tuple[float, float]:
        """Measure loss and accuracy on the validation images."""
        split = self.data.validation
        images, labels = split.images.to(self.device), split.labels.to(self.device)
        in_order = self.batches(images, labels, torch.arange(len(labels), device=self.device))
        loss, accuracy = self.module.evaluate(self.model, in_order)
        return float(loss), float(accuracy)

    def batches(self, images, labels, order, done: int | None = None) -> Iterator[tuple]:
        """Yield normalised batches; after ``done`` steps of a run shifted and mirrored ones."""
        shift, scale = self.scaling
        for step, chosen in enumerate(order.split(self.config.batch_size)):
            batch = images[chosen]
            if done is not None and self.config.crop_padding:
                padding = self.config.crop_padding
                batch = self.module.random_crop_flip(batch, padding, self.generator)
            yield batch.float() * scale + shift, labels[chosen]
            if done is not None and self.bar and self.bar.is_due():
                self.bar.update(done + step + 1, f"epoch {done // self.steps + 1}")
