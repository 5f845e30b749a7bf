"""What a training run is told: one frozen dataclass, checked when it is made.

Role: ``TrainConfig``. Not here: the loop that follows it (``loop``), presets (``recipes``), words
that become its fields (``runs``).
"""

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Integral
from typing import Any

PRECISIONS = ("auto", "float32", "bfloat16", "float16")
OPTIMIZERS = ("adamw", "muon")
# fields, what each must be, and whether a value is that: NaN never is
RANGES: tuple[tuple[str, str, Callable[[Any], bool]], ...] = (
    ("epochs batch_size lr", "be positive", lambda x: x > 0),
    ("final_lr freeze weight_decay clip_norm clean_epochs", "not be negative", lambda x: x >= 0),
    ("epochs batch_size freeze clean_epochs", "be whole", lambda x: isinstance(x, Integral)),
    ("crop_padding", "be None or not negative", lambda x: x is None or x >= 0),
    ("warmup_share label_smoothing ema_decay", "be in [0, 1)", lambda x: 0 <= x < 1),
    ("layer_decay", "be in (0, 1]", lambda x: 0 < x <= 1),
    ("policy_share policy_strength mixup_share", "be in [0, 1]", lambda x: 0 <= x <= 1),
    ("cutmix_share erasing_share", "be in [0, 1]", lambda x: 0 <= x <= 1),
    ("optimizer", f"be one of {', '.join(OPTIMIZERS)}", lambda x: x in OPTIMIZERS),
    ("precision", f"be one of {', '.join(PRECISIONS)}", lambda x: x in PRECISIONS),
)


@dataclass(frozen=True)
class TrainConfig:
    """How to train. The defaults suit a small ViT on 32 px images."""

    epochs: int = 15  # passes over the training images
    batch_size: int = 128  # images a step; an epoch's last may be smaller
    lr: float = 1e-3  # the peak learning rate
    final_lr: float = 0.0  # the learning rate of the last step
    warmup_share: float = 0.1  # of all steps: the linear climb to the peak
    # "adamw", or "muon" for the matrices inside the model and AdamW for the rest
    optimizer: str = "adamw"
    freeze: int = 0  # the first blocks, and the embedding with them, that keep their weights
    layer_decay: float = 1.0  # a block's learning rate, as a share of that of the block above it
    weight_decay: float = 0.05  # of all but vectors, cls_token and pos_embed
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
        object.__setattr__(self, "betas", tuple(self.betas))  # JSON makes it a list
        for names, words, fits in RANGES:
            for name in names.split():
                value = getattr(self, name)
                if not fits(value):
                    raise ValueError(f"{name} must {words} (got {name}={value!r}).")
        if self.mixup_share + self.cutmix_share > 1:
            raise ValueError(
                "mixup_share and cutmix_share are shares of the same images and add up to at most "
                f"1 (got mixup_share={self.mixup_share} and cutmix_share={self.cutmix_share})."
            )
