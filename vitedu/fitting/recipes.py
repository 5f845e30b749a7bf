"""How each preset is trained: one ``TrainConfig`` a preset.

Role: ``RECIPES``, ``FINE_TUNING`` for trained weights, and ``thread_recipe`` for the short runs of
notebooks 01 to 04. Not here: what the fields mean (``config``), the models (``options``), what each
cost and reached: that stands in ``vitedu/bench/MEASURED.md``, with its command and date.
"""

from dataclasses import replace
from typing import Any

from vitedu.fitting.config import TrainConfig

# what all presets with options share
MODERN = TrainConfig(optimizer="muon", weight_decay=0.1, label_smoothing=0.1)

# 2.7 M parameters on CIFAR-10
TINY = replace(
    MODERN,
    epochs=25,
    lr=3e-3,
    policy_share=0.5,  # 25 epochs are enough to learn plain images by heart
    cutmix_share=0.5,
    clean_epochs=4,  # end on images as they are
)

# trained weights on some pictures of one's own: few steps, small enough to keep what they know
FINE_TUNING = TrainConfig(epochs=10, batch_size=16, lr=1e-3, crop_padding=2)

RECIPES: dict[str, TrainConfig] = {
    # the course's run on the drawn shapes
    "vit_micro_patch8_32": TrainConfig(epochs=10, batch_size=64, lr=2e-3, crop_padding=2),
    # CIFAR-10 with the textbook model
    "vit_pico_patch4_32": TrainConfig(epochs=20, lr=1e-3, label_smoothing=0.1),
    "vit_tiny_patch4_32": TrainConfig(epochs=25, lr=1e-3, label_smoothing=0.1),
    # CIFAR-10 in minutes on two cores; a small model takes larger steps
    "vit_pico_patch4_rope_32": replace(
        MODERN,
        epochs=18,
        lr=4e-3,
        clean_epochs=2,  # matters once mixing is switched on with --set
    ),
    # a conv stem and two blocks, twice as many steps an epoch, smaller shifts
    "vit_pico_convstem_patch4_rope_32": replace(
        MODERN, epochs=4, batch_size=64, lr=4e-3, crop_padding=1
    ),
    "vit_tiny_patch4_rope_32": TINY,
    # nine small convolutions and two blocks learn sooner, so they get harder images
    "vit_tiny_convstem_patch4_rope_32": replace(
        TINY, crop_padding=3, policy_share=1.0, policy_strength=0.75, clean_epochs=3
    ),
    # CIFAR-10, at most 7 M parameters and as long as it takes; sized for a GPU, not measured yet
    "vit_mini_patch4_rope_32": replace(
        MODERN,
        epochs=300,
        batch_size=256,
        lr=2e-3,
        policy_share=0.8,
        policy_strength=1.0,
        mixup_share=0.3,
        cutmix_share=0.5,
        erasing_share=0.25,
        clean_epochs=30,
        ema_decay=0.9995,
    ),
}


def recipe(name: str) -> TrainConfig:
    """Return how to train a preset; those that are too large for this course get the defaults."""
    return RECIPES.get(name, TrainConfig())


def thread_recipe(**changes: Any) -> TrainConfig:
    """Return how notebooks 01 to 04 train ``vit_pico_patch4_32``: one epoch of all photographs.

    Chosen among the arms of ``vitedu bench experiments thread``.

    Args:
        **changes: of fields of ``TrainConfig``, such as ``epochs=2``.
    """
    recipe = TrainConfig(
        epochs=1, batch_size=64, optimizer="muon", lr=4e-3, weight_decay=0.1, crop_padding=1
    )
    return replace(recipe, **changes)
