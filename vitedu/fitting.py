"""The training loop for whole runs: any ``nn.Module``, any set of images that fits in memory.

Role: ``fit`` (train), ``predict`` and ``measure_test_accuracy`` (use), ``TrainConfig`` (what to do) and
``History`` (what happened). Not here: models, data, files. The pieces are those of notebook 04
(``vitedu.training``); what this adds is speed: the images stay uint8 on the device, a batch is a
gather, a crop and a scaling, and nothing waits for the device within an epoch.

Legend: B batch, C H W image, K classes.

References: Loshchilov and Hutter 2019, AdamW (arXiv 1711.05101); Micikevicius et al. 2017, mixed
precision (arXiv 1710.03740); Karras et al. 2023, section 3, on averaging weights (arXiv 2312.02696).
"""

import copy
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import torch
import torch.nn.functional as F
from torch import nn

from vitedu.augmentation import random_erasing, random_mix, random_policy
from vitedu.hardware import pick_device, pick_precision
from vitedu.progressbar import ProgressBar
from vitedu.training import cross_entropy, random_crop_flip, warmup_cosine, weight_decay_groups

PRECISIONS = ("auto", "float32", "bfloat16", "float16")
OPTIMIZERS = ("adamw", "muon")
EVALUATION_BATCH = 500  # images; without gradients a larger batch fits


@dataclass(frozen=True)
class TrainConfig:
    """How to train. The defaults suit a small ViT on 32 px images."""

    epochs: int = 15  # passes over the training images
    batch_size: int = 128  # images a step; the last batch of an epoch may be smaller
    lr: float = 1e-3  # the peak learning rate
    final_lr: float = 0.0  # the learning rate of the last step
    warmup_share: float = 0.1  # of all steps: the linear climb to the peak
    optimizer: str = (
        "adamw"  # "adamw", or "muon" for the matrices inside the model and AdamW for the rest
    )
    weight_decay: float = 0.05  # of matrices and convolution kernels only
    betas: tuple[float, float] = (0.9, 0.95)  # AdamW's memory of the gradient and of its square
    label_smoothing: float = 0.0  # share of the target spread over all classes
    clip_norm: float = 1.0  # gradients longer than this are shortened to it; 0 never
    crop_padding: int | None = (
        4  # pixels of random shift, with mirroring; None takes images as they are
    )
    policy_share: float = 0.0  # of images that get one random operation: a turn, a colour shift ...
    policy_strength: float = 0.5  # the largest such operation, 1 being TrivialAugment's
    mixup_share: float = 0.0  # of images that are blended with another, labels alike
    cutmix_share: float = 0.0  # of images that get a rectangle of another, labels alike
    erasing_share: float = 0.0  # of images that get a rectangle of noise
    clean_epochs: int = 0  # the last ones do without policy, mixing and erasing
    ema_decay: float = 0.0  # keep a running average of the weights and end with it; 0 keeps none
    precision: str = (
        "auto"  # of matrix products; "auto" asks the hardware, else a torch type's name
    )
    device: str = "auto"  # "auto" takes the fastest, else "cpu", "cuda", "cuda:1", "mps"
    seed: int = 0  # order of images, augmentation and dropout; starting weights are the model's own

    def __post_init__(self):
        positive = {"epochs": self.epochs, "batch_size": self.batch_size, "lr": self.lr}
        for name, value in positive.items():
            if not value > 0:  # NaN too
                raise ValueError(f"{name} must be positive (got {name}={value}).")
        for name in ("warmup_share", "label_smoothing", "ema_decay"):
            if not 0 <= getattr(self, name) < 1:
                raise ValueError(f"{name} must be in [0, 1) (got {name}={getattr(self, name)}).")
        for name in (
            "policy_share",
            "policy_strength",
            "mixup_share",
            "cutmix_share",
            "erasing_share",
        ):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"{name} must be in [0, 1] (got {name}={getattr(self, name)}).")
        if self.mixup_share + self.cutmix_share > 1:
            raise ValueError(
                "mixup_share and cutmix_share are shares of the same images and add up to at most 1 "
                f"(got {self.mixup_share} + {self.cutmix_share})."
            )
        if self.clean_epochs < 0:
            raise ValueError(f"clean_epochs must not be negative (got {self.clean_epochs}).")
        if self.optimizer not in OPTIMIZERS:
            raise ValueError(
                f"optimizer must be one of {', '.join(OPTIMIZERS)} (got {self.optimizer!r})."
            )
        if self.precision not in PRECISIONS:
            raise ValueError(
                f"precision must be one of {', '.join(PRECISIONS)} (got {self.precision!r})."
            )


@dataclass(frozen=True)
class EpochResult:
    """What one epoch measured. Losses are means over images, without label smoothing in validation."""

    epoch: int  # 1 for the first
    train_loss: float  # each image measured before the update that it caused
    train_accuracy: float  # in [0, 1], likewise, on augmented images
    validation_loss: float  # after the epoch
    validation_accuracy: float  # in [0, 1]
    lr: float  # mean of the learning rates that this epoch's steps used
    seconds: float  # training alone, without validation
    images_per_second: float  # training alone


@dataclass
class History:
    """What a training run did. ``print(history.table())`` shows it."""

    config: TrainConfig
    device: str  # where it ran
    precision: str  # the type of matrix products
    rows: list[EpochResult] = field(default_factory=list)  # one for each epoch that was finished
    interrupted: bool = False  # stopped by Ctrl-C or a notebook's stop button

    def column(self, name: str) -> list[float]:
        """Return one field of every row, such as ``"train_loss"``."""
        return [getattr(row, name) for row in self.rows]

    @property
    def seconds(self) -> float:
        """Seconds of training, validation not counted."""
        return sum(self.column("seconds"))

    def table(self) -> str:
        """Return the epochs as text, one line each."""
        return "\n".join([TABLE_HEADER, *(table_line(row) for row in self.rows)])


TABLE_HEADER = (
    "epoch  train loss  train acc  val loss  val acc        lr  seconds  images/s\n"
    "-----  ----------  ---------  --------  -------  --------  -------  --------"
)


def table_line(row: EpochResult) -> str:
    """Return one epoch as a line under ``TABLE_HEADER``."""
    return (
        f"{row.epoch:5d}  {row.train_loss:10.4f}  {row.train_accuracy:9.1%}  "
        f"{row.validation_loss:8.4f}  {row.validation_accuracy:7.1%}  {row.lr:8.2e}  "
        f"{row.seconds:7.1f}  {row.images_per_second:8.0f}"
    )


class DivergedError(RuntimeError):
    """The loss stopped being a number. ``history`` holds the epochs before."""

    def __init__(self, message: str, history: History):
        super().__init__(message)
        self.history = history


def fit(
    model: nn.Module,
    data,
    config: TrainConfig,
    *,
    show_progress: bool = True,
    on_epoch: Callable[[History], None] | None = None,
) -> History:
    """Train a model in place, and say how it went.

    Choices belong to the validation split; the test split is not touched (see ``measure_test_accuracy``).
    Same seed, same machine, same number of threads, CPU: same result to the last bit.

    Args:
        model: maps float images (B, C, H, W) to logits (B, K). It is moved to the device, and stays.
        data: has ``train`` and ``validation``, each with ``images`` (N, C, H, W) uint8 and ``labels``
            (N,) int64, and ``mean`` and ``std`` of the C channels for pixels in [0, 1].
        config: what to do.
        show_progress: whether to show a line with loss, accuracy and time left.
        on_epoch: called with the history after each epoch.

    Returns:
        One row an epoch. An interruption (Ctrl-C, a notebook's stop button) ends the run early, keeps
        the weights learned so far and sets ``interrupted``.

    Raises:
        DivergedError: the loss became NaN or infinite.
        ValueError: images that are no uint8 tensor (N, C, H, W), or none at all.
    """
    check_split(data.train, "train")
    check_split(data.validation, "validation")
    device = pick_device() if config.device == "auto" else torch.device(config.device)
    dtype = (
        pick_precision(device) if config.precision == "auto" else getattr(torch, config.precision)
    )
    history = History(config, str(device), str(dtype).removeprefix("torch."))
    model.to(device)
    averaged = copy.deepcopy(model) if config.ema_decay else model
    was_training = model.training

    num_images = len(data.train.labels)
    steps = -(-num_images // config.batch_size)  # of an epoch, the short last one included
    bar = ProgressBar(config.epochs * steps) if show_progress else None
    if bar and bar.display is None:
        bar.note(TABLE_HEADER)
    devices = [device] if device.type == "cuda" else []
    try:
        with torch.random.fork_rng(devices):  # dropout draws from torch's own state
            torch.manual_seed(config.seed)
            run = Run(model, averaged, data, config, device, dtype, steps, bar)
            for epoch in range(config.epochs):
                row = run.epoch(epoch, history)
                history.rows.append(row)
                if bar:
                    bar.note(table_line(row))
                if on_epoch:
                    on_epoch(history)
    except KeyboardInterrupt:
        history.interrupted = True
    finally:
        if averaged is not model:
            model.load_state_dict(averaged.state_dict())
        model.train(was_training)
        if bar:
            bar.close(closing_line(history))
    return history


class Run:
    """The state of one call of ``fit``: images on the device, optimizer, scaler, generator."""

    def __init__(self, model, averaged, data, config, device, dtype, steps, bar):
        self.model, self.averaged, self.config, self.bar = model, averaged, config, bar
        self.data, self.device, self.dtype, self.steps = data, device, dtype, steps
        self.images = data.train.images.to(device)
        self.labels = data.train.labels.to(device)
        self.total_steps = config.epochs * steps
        self.clean_from = (
            self.total_steps - config.clean_epochs * steps
        )  # first step without mixing
        self.num_classes = (
            int(self.labels.max()) + 1
        )  # the one wait for the device, before any step
        self.warmup_steps = round(config.warmup_share * self.total_steps)
        self.generator = torch.Generator(device).manual_seed(config.seed)
        self.shift, self.scale = scaling(data, device)
        self.optimizers = make_optimizers(model, config, device)
        self.scaler = torch.amp.GradScaler(device.type, enabled=dtype is torch.float16)

    def epoch(self, epoch: int, history: History) -> EpochResult:
        """Learn once from every training image, then validate."""
        config, device = self.config, self.device
        reads_at_once = device.type == "cpu"  # elsewhere reading a number waits for the device
        self.model.train()
        order = torch.randperm(len(self.labels), generator=self.generator, device=device)
        losses = torch.zeros(self.steps, device=device)  # of each step, times its images
        correct = torch.zeros((), dtype=torch.int64, device=device)
        lrs = []
        started = time.perf_counter()
        for step, batch in enumerate(order.split(config.batch_size)):
            step_of_run = epoch * self.steps + step
            lrs.append(
                warmup_cosine(
                    step_of_run, self.total_steps, self.warmup_steps, config.lr, config.final_lr
                )
            )
            loss, hits = self.step(batch, lrs[-1], step_of_run)
            losses[step] = loss * len(batch)
            correct += hits
            if reads_at_once and not losses[step].isfinite():
                raise diverged(epoch, step, lrs[-1], self.dtype, history)
            if self.bar and self.bar.is_due():
                text = f"epoch {epoch + 1}/{config.epochs}"
                if reads_at_once:
                    seen = step * config.batch_size + len(batch)
                    text += f", loss {losses.sum() / seen:.3f}, accuracy {correct / seen:.1%}"
                elif history.rows:
                    text += f", validation accuracy {history.rows[-1].validation_accuracy:.1%}"
                self.bar.update(step_of_run + 1, text)
        broken = (~losses.isfinite()).nonzero().flatten().tolist()  # waits for the device
        if broken:
            raise diverged(epoch, broken[0], lrs[broken[0]], self.dtype, history)
        seconds = time.perf_counter() - started

        num_images = len(self.labels)
        validation = measure(self.averaged, self.data.validation, self.data, device, self.dtype)
        return EpochResult(
            epoch=epoch + 1,
            train_loss=losses.sum(dtype=torch.float32).item() / num_images,
            train_accuracy=correct.item() / num_images,
            validation_loss=validation[0],
            validation_accuracy=validation[1],
            lr=sum(lrs) / len(lrs),
            seconds=seconds,
            images_per_second=num_images / seconds,
        )

    def step(self, batch: torch.Tensor, lr: float, step_of_run: int):
        """Learn from the images at ``batch`` (B,); return loss and hits, 0-d, on the device."""
        config = self.config
        images, targets = self.augmented(batch, is_clean=step_of_run >= self.clean_from)
        with autocast(self.device, self.dtype):
            logits = self.model(images)
        logits = logits.float()  # (B, K); the loss needs the digits that bfloat16 lacks
        labels = self.labels[batch]
        if targets is None:
            loss = cross_entropy(logits, labels, config.label_smoothing)
        else:  # soft labels (B, K)
            loss = F.cross_entropy(logits, targets, label_smoothing=config.label_smoothing)

        for optimizer in self.optimizers:
            for group in optimizer.param_groups:
                group["lr"] = lr
            optimizer.zero_grad()
        self.scaler.scale(loss).backward()
        if config.clip_norm:
            for optimizer in self.optimizers:
                self.scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm_(self.model.parameters(), config.clip_norm)
        for optimizer in self.optimizers:
            self.scaler.step(optimizer)
        self.scaler.update()
        if self.averaged is not self.model:
            update_average(self.averaged, self.model, config.ema_decay, step_of_run)
        return loss.detach(), (logits.argmax(dim=-1) == labels).sum()

    def augmented(self, batch: torch.Tensor, is_clean: bool):
        """Return images (B, C, H, W), normalised, and soft labels (B, K), or None where none are mixed."""
        config, generator = self.config, self.generator
        images, targets = self.images[batch], None
        if config.crop_padding is not None:
            images = random_crop_flip(images, config.crop_padding, generator)
        images = images.float()
        if config.policy_share and not is_clean:
            images = random_policy(images, config.policy_share, config.policy_strength, generator)
        images = images * self.scale + self.shift
        if (config.mixup_share or config.cutmix_share) and not is_clean:
            images, targets = random_mix(
                images,
                self.labels[batch],
                self.num_classes,
                mixup=config.mixup_share,
                cutmix=config.cutmix_share,
                generator=generator,
            )
        if config.erasing_share and not is_clean:
            images = random_erasing(images, config.erasing_share, generator)
        return images, targets


def make_optimizers(model: nn.Module, config: TrainConfig, device: torch.device) -> list:
    """Make what steps a model: AdamW for all of it, or Muon for its inner matrices and AdamW for the rest.

    Muon gives every direction of a matrix's update the same length. It is for matrices that map
    features to features; the last one, which maps them to classes, stays with AdamW. Its updates are
    scaled to the size of AdamW's, so that one learning rate serves both.

    Reference: Jordan et al. 2024, Muon; Liu et al. 2025, the scaling (arXiv 2502.16982).
    """
    fused = device.type in ("cpu", "cuda")
    groups = weight_decay_groups(model, config.weight_decay)
    if config.optimizer == "adamw":
        return [torch.optim.AdamW(groups, betas=config.betas, fused=fused)]
    matrices = [parameter for parameter in groups[0]["params"] if parameter.ndim == 2]
    matrices = matrices[:-1]
    inner = {id(parameter) for parameter in matrices}
    groups[0]["params"] = [p for p in groups[0]["params"] if id(p) not in inner]
    if not matrices:
        raise ValueError(
            "optimizer='muon' needs matrices besides the last (got none); use optimizer='adamw'."
        )
    return [
        torch.optim.Muon(
            matrices, weight_decay=config.weight_decay, adjust_lr_fn="match_rms_adamw"
        ),
        torch.optim.AdamW(groups, betas=config.betas, fused=fused),
    ]


def check_split(split, name: str) -> None:
    """Refuse images that the loop can not use, before any time is spent on them."""
    images, labels = split.images, split.labels
    if images.dtype != torch.uint8 or images.ndim != 4:
        raise ValueError(
            f"{name} images must be uint8 of shape (N, C, H, W) (got {str(images.dtype)[6:]} of "
            f"shape {tuple(images.shape)})."
        )
    if len(images) != len(labels) or not len(labels):
        raise ValueError(
            f"{name} needs one label an image and at least one of both (got {len(images)} images, "
            f"{len(labels)} labels)."
        )


def scaling(data, device: torch.device) -> tuple[torch.Tensor, torch.Tensor]:
    """Return (shift, scale), each (C, 1, 1): ``images * scale + shift`` has mean 0 and deviation 1.

    Made once a run, since a copy to the device in every step would wait for it.
    """
    mean = torch.as_tensor(data.mean, dtype=torch.float32).view(-1, 1, 1)
    std = torch.as_tensor(data.std, dtype=torch.float32).view(-1, 1, 1)
    return (-mean / std).to(device), (1 / (255 * std)).to(device)


def autocast(device: torch.device, dtype: torch.dtype):
    """Return a context in which matrix products run in ``dtype``."""
    return torch.autocast(device.type, dtype=dtype, enabled=dtype is not torch.float32)


@torch.no_grad()
def update_average(averaged: nn.Module, model: nn.Module, decay: float, step: int) -> None:
    """Move the averaged weights towards the model's, faster at first, while the average is young."""
    decay = min(decay, (1 + step) / (10 + step))
    for mean, now in zip(averaged.parameters(), model.parameters(), strict=True):
        mean.lerp_(now, 1 - decay)
    for mean, now in zip(averaged.buffers(), model.buffers(), strict=True):
        mean.copy_(now)


def diverged(epoch: int, step: int, lr: float, dtype: torch.dtype, history: History):
    """Make the error that says where the loss broke and what to try."""
    remedies = [f"a lower lr than {history.config.lr:g} (a third is a good next try)"]
    if history.config.warmup_share < 0.1:
        remedies.append("warmup_share=0.1")
    if not history.config.clip_norm:
        remedies.append("clip_norm=1.0")
    if dtype is torch.float16:
        remedies.append("precision='float32'")
    return DivergedError(
        f"the loss is not finite any more: epoch {epoch + 1}, step {step + 1}, lr {lr:.2e}. "
        f"Try {', '.join(remedies)}; if it breaks at the first step, look for NaN in the model.",
        history,
    )


def closing_line(history: History) -> str:
    """Say in one line how a run ended."""
    end = "interrupted" if history.interrupted else "trained"
    if not history.rows:
        return f"{end} before the first epoch was finished"
    last = history.rows[-1]
    return (
        f"{end} after {last.epoch} epochs, {history.seconds:.0f} s: train accuracy "
        f"{last.train_accuracy:.1%}, validation accuracy {last.validation_accuracy:.1%}"
    )


def predict(
    model: nn.Module, images: torch.Tensor, data, dtype: torch.dtype = torch.float32
) -> torch.Tensor:
    """Give the probability of every class for every image.

    Args:
        model: maps float images to logits (B, K). The mode of every submodule is restored.
        images: (N, C, H, W) uint8, on any device.
        data: has ``mean`` and ``std``, those of the training images.
        dtype: in which matrix products run.

    Returns:
        (N, K) float32 on the CPU; rows sum to 1.
    """
    return logits_of(model, images, data, dtype).softmax(dim=-1).cpu()


def measure_test_accuracy(model: nn.Module, data, dtype: torch.dtype = torch.float32) -> float:
    """Measure the accuracy on the test split, in [0, 1]. Call it once, when all choices are made."""
    predicted = logits_of(model, data.test.images, data, dtype).argmax(dim=-1).cpu()
    return (predicted == data.test.labels.cpu()).sum().item() / len(predicted)


def measure(model, split, data, device, dtype) -> tuple[float, float]:
    """Return (mean loss, accuracy in [0, 1]) of a model on a split, without changing it."""
    logits = logits_of(model, split.images, data, dtype)
    labels = split.labels.to(device)
    correct = (logits.argmax(dim=-1) == labels).sum().item()
    return cross_entropy(logits, labels).item(), correct / len(labels)


@torch.no_grad()
def logits_of(model: nn.Module, images: torch.Tensor, data, dtype: torch.dtype) -> torch.Tensor:
    """Run uint8 images (N, C, H, W) through a model in eval mode; (N, K) float32 on its device."""
    device = next(model.parameters()).device
    shift, scale = scaling(data, device)
    modes = {module: module.training for module in model.modules()}
    model.eval()
    try:
        with autocast(device, dtype):
            logits = [
                model(chunk.to(device).float() * scale + shift).float()
                for chunk in images.split(EVALUATION_BATCH)
            ]
    finally:
        for module, training in modes.items():
            module.training = training
    return torch.cat(logits)
