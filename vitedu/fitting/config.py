"""What a training run is told: one frozen dataclass, checked when it is made.

Role: ``TrainConfig``. Not here: the loop that follows it (``loop``), presets (``recipes``).
"""

from dataclasses import dataclass

PRECISIONS = ("auto", "float32", "bfloat16", "float16")
OPTIMIZERS = ("adamw", "muon")


@dataclass(frozen=True)
class TrainConfig:
    """How to train. The defaults suit a small ViT on 32 px images."""

    epochs: int = 15  # passes over the training images
    batch_size: int = 128  # images a step, on all devices together; an epoch's last may be smaller
    lr: float = 1e-3  # the peak learning rate
    final_lr: float = 0.0  # the learning rate of the last step
    warmup_share: float = 0.1  # of all steps: the linear climb to the peak
    # "adamw", or "muon" for the matrices inside the model and AdamW for the rest
    optimizer: str = "adamw"
    freeze: int = 0  # the first blocks, and the embedding with them, that keep their weights
    layer_decay: float = 1.0  # a block's learning rate, as a share of that of the block above it
    weight_decay: float = 0.05  # of matrices and convolution kernels only
    betas: tuple[float, float] = (0.9, 0.95)  # AdamW's memory of the gradient and of its square
    label_smoothing: float = 0.0  # share of the target spread over all classes
    clip_norm: float = 1.0  # gradients longer than this are shortened to it; 0 never
    crop_padding: int | None = 4  # pixels of random shift, with mirroring; None takes images as is
    policy_share: float = 0.0  # of images that get one random operation: a turn, a colour shift ...
    policy_strength: float = 0.5  # the largest such operation, 1 being TrivialAugment's
    mixup_share: float = 0.0  # of images that are blended with another, labels alike
    cutmix_share: float = 0.0  # of images that get a rectangle of another, labels alike
    erasing_share: float = 0.0  # of images that get a rectangle of noise
    clean_epochs: int = 0  # the last ones do without policy, mixing and erasing
    ema_decay: float = 0.0  # keep a running average of the weights and end with it; 0 keeps none
    precision: str = "auto"  # of matrix products; "auto" asks the hardware, else a torch type
    compile: bool = False  # translate the model first (torch.compile): minutes once, then faster
    device: str = "auto"  # "auto" takes the fastest, else "cpu", "cuda", "cuda:1", "mps"
    seed: int = 0  # order of images, augmentation and dropout; starting weights are the model's own

    def __post_init__(self):
        positive = {"epochs": self.epochs, "batch_size": self.batch_size, "lr": self.lr}
        for name, value in positive.items():
            if not value > 0:  # NaN too
                raise ValueError(f"{name} must be positive (got {name}={value}).")
        for name in ("final_lr", "freeze", "weight_decay", "clip_norm", "clean_epochs"):
            if not getattr(self, name) >= 0:
                raise ValueError(f"{name} must not be negative (got {name}={getattr(self, name)}).")
        for name in ("warmup_share", "label_smoothing", "ema_decay"):
            if not 0 <= getattr(self, name) < 1:
                raise ValueError(f"{name} must be in [0, 1) (got {name}={getattr(self, name)}).")
        if not 0 < self.layer_decay <= 1:
            raise ValueError(f"layer_decay must be in (0, 1] (got layer_decay={self.layer_decay}).")
        shares = ("policy_share", "mixup_share", "cutmix_share", "erasing_share")
        for name in (*shares, "policy_strength"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"{name} must be in [0, 1] (got {name}={getattr(self, name)}).")
        if self.mixup_share + self.cutmix_share > 1:
            raise ValueError(
                "mixup_share and cutmix_share are shares of the same images and add up to at most "
                f"1 (got mixup_share={self.mixup_share} and cutmix_share={self.cutmix_share})."
            )
        for name, choices in (("optimizer", OPTIMIZERS), ("precision", PRECISIONS)):
            if getattr(self, name) not in choices:
                raise ValueError(
                    f"{name} must be one of {', '.join(choices)} (got {getattr(self, name)!r})."
                )
