"""The training loop for whole runs: any ``nn.Module``, any set of images that fits in memory.

Role: ``fit``. Its settings are described in ``config``, what it reports in ``history``, and how a
model is measured in ``evaluating``, some of whose names can be imported from here too. Not here:
models, data, a trained model's folder (``checkpoints``).

The pieces are those of notebook 04 (``vitedu.training``). This module adds speed: the images stay
uint8 on the device, a batch is a gather, a crop and a scaling, and within an epoch nothing waits
for the device but the line of progress, five times a second.

Legend: B batch, C H W image, K classes.

Reference: Micikevicius et al. 2017, mixed precision (arXiv 1710.03740).
"""

import copy
import io
import math
import time
import zlib
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from vitedu.fitting.augmentation import random_erasing, random_mix, random_policy
from vitedu.fitting.checkpoints import refuse_changes
from vitedu.fitting.config import TrainConfig
from vitedu.fitting.evaluating import (
    autocast,
    logits_of,
    measure,
    measure_test_accuracy,
    predict,
    scaling,
)
from vitedu.fitting.history import (
    TABLE_HEADER,
    DivergedError,
    EpochResult,
    History,
    broken_loss,
    closing_line,
    table_line,
)
from vitedu.fitting.optimizers import freeze, make_optimizer, update_average
from vitedu.ground.files import write_whole
from vitedu.ground.hardware import keep_freed_memory, pick_device, pick_precision
from vitedu.ground.progressbar import ProgressBar
from vitedu.training import cross_entropy, random_crop_flip, warmup_cosine

__all__ = ["Run", "fit", "logits_of", "measure_test_accuracy", "predict"]

FORMAT = "vitedu training state, 3"
PARTS = ("model", "learner", "optimizer", "scaler")  # of a run: what has a state


def fit(
    model: nn.Module,
    data: Any,
    config: TrainConfig,
    *,
    show_progress: bool = True,
    on_epoch: Callable[[History], None] | None = None,
    on_step: Callable[[float], None] | None = None,
    resume: Path | None = None,
) -> History:
    """Train a model in place, and say how it went.

    Choices belong to the validation split; the test split is not touched (see
    ``measure_test_accuracy``). Same seed, same machine, same number of threads, CPU: same result to
    the last bit, with or without breaks.

    Args:
        model: maps float images (B, C, H, W) to logits (B, K). It moves to the device.
        data: has ``train`` and ``validation``, each with ``images`` (N, C, H, W) uint8 and
            ``labels`` (N,) int64, and ``mean`` and ``std`` of the C channels for pixels in [0, 1].
        config: what to do.
        show_progress: whether to show a line with loss, accuracy and time left.
        on_epoch: called with the history after each epoch; ``model`` is then what would come out.
        on_step: called with the loss after each step; on an accelerator it waits for the device. A
            ``KeyboardInterrupt`` that it raises ends the run as an interruption.
        resume: a file. If it is there, the run that wrote it goes on after its last finished epoch;
            the model needs the same shape, its weights are replaced. After each epoch the state is
            written to it. It stays when the run is over, and then gives its outcome at once.

    Returns:
        One row an epoch. An interruption (Ctrl-C, a notebook's stop button) ends the run early,
        keeps the weights learned so far, in the unfinished epoch too, and sets ``interrupted``.

    Raises:
        DivergedError: the loss became NaN or infinite.
        ValueError: images that are no uint8 tensor (N, C, H, W), or none at all; a file to resume
            from that another model, other images or other settings wrote.
    """
    run = Run(model, data, config)
    run.on_step = on_step
    return run.all_epochs(show_progress, on_epoch, resume)


class Run:
    """The state of one training: images on the device, what learns, optimizer, generator.

    ``model`` is what comes out. ``learner`` is what steps: the same module, or a copy of it where
    ``model`` follows as its running average.
    """

    def __init__(self, model: nn.Module, data: Any, config: TrainConfig):
        check_split(data.train, "train")
        check_split(data.validation, "validation")
        device = pick_device() if config.device == "auto" else torch.device(config.device)
        if device.type == "cpu":
            keep_freed_memory()
        self.data, self.config, self.device = data, config, device
        is_auto = config.precision == "auto"
        self.dtype = pick_precision(device) if is_auto else getattr(torch, config.precision)
        precision = str(self.dtype).removeprefix("torch.")
        self.history = History(str(device), precision)
        self.bar: ProgressBar | None = None
        self.on_step: Callable[[float], None] | None = None
        freeze(model, config.freeze)
        self.model = model.to(device)
        self.learner = copy.deepcopy(model) if config.ema_decay else model
        self.forward: Callable = self.learner
        if config.compile:
            # for one shape: a second translation would cost more than a short batch saves
            translated: Callable = torch.compile(self.learner, dynamic=False)
            whole, plain = config.batch_size, self.learner
            self.forward = lambda batch: (translated if len(batch) == whole else plain)(batch)
        self.images = data.train.images.to(device)
        self.labels = data.train.labels.to(device)
        self.num_classes = int(data.train.labels.max()) + 1  # a head may have more
        self.steps = -(-len(self.labels) // config.batch_size)  # of an epoch, a short one included
        self.total_steps = config.epochs * self.steps
        self.warmup_steps = round(config.warmup_share * self.total_steps)
        self.clean_from = self.total_steps - config.clean_epochs * self.steps  # the first such step
        self.generator = torch.Generator(device).manual_seed(config.seed)
        self.scaling = scaling(data, device)
        self.optimizer = make_optimizer(self.learner, config, device)
        self.scaler = torch.amp.GradScaler(device.type, enabled=self.dtype is torch.float16)

    def all_epochs(
        self,
        show_progress: bool = True,
        on_epoch: Callable[[History], None] | None = None,
        resume: Path | None = None,
    ) -> History:
        """Learn until the configured number of epochs stands in the history; see ``fit``."""
        history, config, was_training = self.history, self.config, self.model.training
        if resume is not None and Path(resume).exists():
            self.load_state(resume)
        elif resume is not None:
            self.save_state(resume)  # a place that cannot be written shows now
        done = len(history.rows)
        if show_progress and done < config.epochs:
            self.bar = ProgressBar(self.total_steps, start=done * self.steps)
            self.bar.note(TABLE_HEADER)
        try:
            with torch.random.fork_rng([self.device] if self.device.type == "cuda" else []):
                for epoch in range(done, config.epochs):
                    history.rows.append(self.epoch(epoch))
                    if resume is not None:
                        self.save_state(resume)
                    if self.bar:
                        self.bar.note(table_line(history.rows[-1]))
                    if on_epoch:
                        on_epoch(history)
        except KeyboardInterrupt:
            history.interrupted = True
        finally:
            self.model.train(was_training)
            if self.bar:
                self.bar.close(closing_line(history))
        return history

    def epoch(self, epoch: int) -> EpochResult:
        """Learn once from every training image, then validate."""
        # dropout draws from torch's own generator: a seed an epoch, so that a break leaves no trace
        torch.manual_seed(self.config.seed + 1_000_003 * epoch)
        num_images = len(self.labels)
        order = torch.randperm(num_images, generator=self.generator, device=self.device)
        started = time.perf_counter()
        loss, accuracy, lr = self.learn(epoch, order)
        seconds = time.perf_counter() - started
        validation = self.validate()
        if not math.isfinite(validation[0]):  # the last step broke the weights
            raise self.divergence(epoch, self.steps - 1, lr)
        return EpochResult(
            epoch=epoch + 1,
            train_loss=loss,
            train_accuracy=accuracy,
            validation_loss=validation[0],
            validation_accuracy=validation[1],
            lr=lr,
            seconds=seconds,
            images_per_second=num_images / seconds,
        )

    def divergence(self, epoch: int, step: int, lr: float) -> DivergedError:
        """Make the error that says where the loss broke and what to try."""
        config = self.config
        remedies = [f"a lower lr than {config.lr:g} (a third is a good next try)"]
        if config.warmup_share < 0.1:
            remedies.append("warmup_share=0.1")
        if not config.clip_norm:
            remedies.append("clip_norm=1.0")
        if self.dtype is torch.float16:
            remedies.append("precision='float32'")
        where = f"epoch {epoch + 1}, step {step + 1}, lr {lr:.2e}"
        return DivergedError(broken_loss(where, remedies))

    def learn(self, epoch: int, order: torch.Tensor) -> tuple[float, float, float]:
        """Learn from images in an order; return means of loss, accuracy, learning rate."""
        config, device = self.config, self.device
        self.learner.train()
        losses = torch.zeros(self.steps, device=device)  # of each step, times its images
        correct = torch.zeros((), dtype=torch.int64, device=device)
        lrs = []
        schedule = self.total_steps, self.warmup_steps, config.lr, config.final_lr
        for step, batch in enumerate(order.split(config.batch_size)):
            step_of_run = epoch * self.steps + step
            lrs.append(warmup_cosine(step_of_run, *schedule))
            loss, hits = self.step(batch, lrs[-1], step_of_run)
            losses[step] = loss * len(batch)
            correct += hits
            # elsewhere reading a number waits for the device
            if device.type == "cpu" and not losses[step].isfinite():
                raise self.divergence(epoch, step, lrs[-1])
            if self.on_step:
                self.on_step(loss.item())
            if self.bar and self.bar.is_due():
                count = step * config.batch_size + len(batch)
                text = f"epoch {epoch + 1}/{config.epochs}, loss {losses.sum() / count:.3f}"
                self.bar.update(step_of_run + 1, f"{text}, accuracy {correct / count:.1%}")
        broken = (~losses.isfinite()).nonzero().flatten().tolist()  # waits for the device
        if broken:
            raise self.divergence(epoch, broken[0], lrs[broken[0]])
        mean_loss = losses.sum(dtype=torch.float32).item() / len(order)
        return mean_loss, correct.item() / len(order), sum(lrs) / len(lrs)

    def validate(self) -> tuple[float, float]:
        """Measure loss and accuracy on the validation images."""
        return measure(self.model, self.data.validation, self.data, self.dtype)

    def step(
        self, batch: torch.Tensor, lr: float, step_of_run: int
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Learn from the images at ``batch`` (B,); return loss and hits, 0-d, on the device."""
        config = self.config
        images, labels, targets = self.augment(batch, step_of_run >= self.clean_from)
        with autocast(self.device, self.dtype):
            logits = self.forward(images)
        logits = logits.float()  # (B, K); the loss needs the digits that bfloat16 lacks
        if targets is None:
            loss = cross_entropy(logits, labels, config.label_smoothing)
        else:
            targets = F.pad(targets, (0, logits.shape[1] - targets.shape[1]))  # none of these here
            loss = F.cross_entropy(logits, targets, label_smoothing=config.label_smoothing)

        for group in self.optimizer.param_groups:
            group["lr"] = lr * group.get("lr_share", 1.0)
        self.optimizer.zero_grad()
        self.scaler.scale(loss).backward()
        if config.clip_norm:
            self.scaler.unscale_(self.optimizer)
            nn.utils.clip_grad_norm_(self.learner.parameters(), config.clip_norm)
        self.scaler.step(self.optimizer)
        self.scaler.update()
        if config.ema_decay:
            update_average(self.model, self.learner, config.ema_decay, step_of_run)
        return loss.detach(), (logits.argmax(dim=-1) == labels).sum()

    def augment(
        self, batch: torch.Tensor, is_clean: bool
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor | None]:
        """Give images (B, C, H, W), normalised, labels (B,), and soft labels (B, K) or None.

        Crop and mirror, one random operation, normalise, mix, erase: each as far as it is asked
        for. Clean images have no operation, and are neither mixed nor erased.
        """
        images, labels, targets = self.images[batch], self.labels[batch], None
        config, generator, (shift, scale) = self.config, self.generator, self.scaling
        if config.crop_padding is not None:
            images = random_crop_flip(images, config.crop_padding, generator)
        images = images.float()
        if config.policy_share and not is_clean:
            images = random_policy(images, config.policy_share, config.policy_strength, generator)
        images = images * scale + shift
        if (config.mixup_share or config.cutmix_share) and not is_clean:
            images, targets = random_mix(
                images,
                labels,
                self.num_classes,
                mixup=config.mixup_share,
                cutmix=config.cutmix_share,
                generator=generator,
            )
        if config.erasing_share and not is_clean:
            images = random_erasing(images, config.erasing_share, generator)
        return images, labels, targets

    def save_state(self, path: Path) -> None:
        """Write all that it takes to go on after the finished epochs, in one step.

        That is tensors, numbers and words alone. Dropout draws from torch's own generator, which is
        seeded at the start of each epoch, so its state is not needed.
        """
        content, path = io.BytesIO(), Path(path)
        state = {
            "format": FORMAT,
            "settings": self.settings(),
            "rows": [asdict(row) for row in self.history.rows],
            "generator": self.generator.get_state(),
            "parts": {name: getattr(self, name).state_dict() for name in PARTS},
        }
        torch.save(state, content)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, content.getvalue())

    def load_state(self, path: Path) -> None:
        """Bring a run that has not started to where the one stood that wrote the file.

        Raises:
            ValueError: the file is damaged, or the run was set up differently: the message names
                each setting that differs, with both values.
        """
        try:
            state = torch.load(path, "cpu", weights_only=True)
            is_known = state["format"] == FORMAT
        except Exception:  # damaged files and such with code fail in many ways
            is_known = False
        if not is_known:
            raise ValueError(f"{path} holds no state of a training run of this version.")
        refuse_changes(state["settings"], self.settings(), path)
        try:
            for name in PARTS:
                getattr(self, name).load_state_dict(state["parts"][name])
        except (KeyError, RuntimeError, ValueError) as error:
            reason = " ".join(str(error).split())
            raise ValueError(f"{path} holds the state of another model: {reason}") from None
        self.generator.set_state(state["generator"])
        self.history.rows[:] = [EpochResult(**row) for row in state["rows"]]

    def settings(self) -> dict[str, Any]:
        """Say on what the rest of the run depends beside its state."""
        return {
            **asdict(self.config),
            "device in use": self.device.type,  # a generator's state fits its own kind of device
            "precision in use": self.history.precision,
            "training images": fingerprint(self.data.train),
            "validation images": fingerprint(self.data.validation),
        }


def fingerprint(split: Any) -> str:
    """Write number and checksum of a split, such as ``"900 (1c291ca3)"``."""
    checksum = 0
    for tensor in (split.images, split.labels):
        checksum = zlib.crc32(tensor.cpu().contiguous().numpy(), checksum)
    return f"{len(split.labels)} ({checksum:08x})"


def check_split(split: Any, name: str) -> None:
    """Refuse images that the loop cannot use, before any time is spent on them."""
    images, labels = split.images, split.labels
    is_tensor = isinstance(images, torch.Tensor)
    is_bytes = is_tensor and images.dtype == torch.uint8 and images.ndim == 4
    if not is_bytes or len(images) != len(labels) or not len(labels):
        kind = type(images).__name__
        if is_tensor:
            kind = f"{images.dtype} of shape {tuple(images.shape)}"
        raise ValueError(
            f"{name} images must be a uint8 tensor (N, C, H, W), at least one, with a label each "
            f"(got {kind}, {len(labels)} labels)."
        )
