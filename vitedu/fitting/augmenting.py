"""What a batch goes through before the model sees it, in the order that ``TrainConfig`` describes.

Role: ``augment``, of ``fit`` and of the benchmark of batches. Not here: the operations
(``augmentation``; crops and mirroring are ``training.random_crop_flip``).

Legend: B batch, C H W image, K classes.
"""

import torch

from vitedu.fitting.augmentation import random_erasing, random_mix, random_policy
from vitedu.fitting.config import TrainConfig
from vitedu.training import random_crop_flip


def augment(
    images: torch.Tensor,
    labels: torch.Tensor,
    config: TrainConfig,
    num_classes: int,
    scaling: tuple[torch.Tensor, torch.Tensor],
    generator: torch.Generator,
    *,
    is_clean: bool = False,
) -> tuple[torch.Tensor, torch.Tensor | None]:
    """Crop and mirror, one random operation, normalise, mix, erase: each as far as it is asked for.

    Args:
        images: (B, C, H, W) uint8.
        labels: (B,) int64, of the images.
        config: which of the steps, and how often.
        num_classes: K, of the soft labels.
        scaling: shift and scale (C, 1, 1), as ``evaluating.scaling`` gives them.
        generator: the source of all draws.
        is_clean: leave out operation, mixing and erasing, as in the last epochs of a run.

    Returns:
        Images (B, C, H, W) float32, normalised; soft labels (B, K), or None if none are mixed.
    """
    shift, scale = scaling
    targets = None
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
            num_classes,
            mixup=config.mixup_share,
            cutmix=config.cutmix_share,
            generator=generator,
        )
    if config.erasing_share and not is_clean:
        images = random_erasing(images, config.erasing_share, generator)
    return images, targets
