"""Does guessing hidden patches help where labels are few? A masked autoencoder, then 100 labels.

The end of section 8 of notebook 07. All arms fine-tune the same model on the same 100 shapes. They
differ in the weights that it starts from, and in how long. The guess is judged by its error on new
images, as a share of the error of the visible patches' mean.
"""

import copy
from dataclasses import replace

import torch

from vitedu.bench.experiments import Arms, Results, cut, shapes, train_and_measure
from vitedu.bench.experiments.less_data import FEW, few_shapes
from vitedu.data.loading import Data, Split
from vitedu.fitting import TrainConfig
from vitedu.hardware import Profile
from vitedu.less_data import MaskedAutoencoder, descend, masked_patch_loss
from vitedu.patches import patchify
from vitedu.training import warmup_cosine
from vitedu.vit import VisionTransformer, ViTConfig

CONFIG = ViTConfig(patch_size=4, embed_dim=64, depth=4, num_heads=4, mlp_ratio=2)
ARMS: Arms = {
    "from scratch": {"steps": 0, "epochs": 60},
    "from the masked autoencoder": {"steps": 450, "epochs": 60},
    "from scratch, 600 steps": {"steps": 0, "epochs": 300},
    "from the masked autoencoder, 600 steps": {"steps": 450, "epochs": 300},
}
RATIO, BATCH, LABELS = 0.75, 64, 100


def run(arm: str, seed: int, profile: Profile) -> Results:
    """Learn to guess hidden patches, or do not; then fine-tune on 100 labels."""
    many, few = shapes(profile, 4_000, quick=(300, None)), few_shapes(400)
    steps, epochs = cut(ARMS[arm]["steps"], profile, 3), cut(ARMS[arm]["epochs"], profile, 1)
    model, results = pretrain(many.normalize(many.train.images), steps, seed), {}
    if steps:
        error = share_of_error(model, many.normalize(few.test.images[:200]))
        results["error over the visible mean"] = round(error, 4)
    return results | {"test_accuracy": round(fine_tune(model.encoder, few, seed, epochs), 4)}


def pretrain(images: torch.Tensor, steps: int, seed: int) -> MaskedAutoencoder:
    """Train a masked autoencoder on normalised images (n, 3, H, W); 0 steps: an untrained one."""
    torch.manual_seed(seed)
    model = MaskedAutoencoder(VisionTransformer(CONFIG))
    optimizer = torch.optim.AdamW(model.parameters(), betas=(0.9, 0.95), weight_decay=0.05)
    draws = torch.Generator().manual_seed(seed)
    for step in range(steps):
        batch = images[torch.randint(len(images), (BATCH,), generator=draws)]
        noise = torch.rand(BATCH, CONFIG.num_patches, generator=draws)
        prediction, mask = model(batch, RATIO, noise)
        loss = masked_patch_loss(prediction, patchify(batch, CONFIG.patch_size), mask)
        descend(optimizer, loss, warmup_cosine(step, steps, steps // 10, 3e-3))
    return model.eval()


@torch.no_grad()
def share_of_error(model: MaskedAutoencoder, images: torch.Tensor) -> float:
    """Divide the error on hidden patches by that of the mean of an image's visible patches."""
    target = patchify(images, CONFIG.patch_size)
    noise = torch.rand(target.shape[:2], generator=torch.Generator().manual_seed(1))
    prediction, mask = model(images, RATIO, noise)
    visible = (1 - mask)[:, :, None]
    mean = (target * visible).sum(dim=1, keepdim=True) / visible.sum(dim=1, keepdim=True)
    of_mean = masked_patch_loss(mean.expand_as(target), target, mask)
    return (masked_patch_loss(prediction, target, mask) / of_mean).item()


def fine_tune(encoder: VisionTransformer, few: Data, seed: int, epochs: int) -> float:
    """Train a copy on the first 100 training images, two steps an epoch; give its test accuracy."""
    train = Split(few.train.images[:LABELS], few.train.labels[:LABELS])
    config = TrainConfig(epochs=epochs, label_smoothing=0.1, seed=seed, **FEW)
    model, hundred = copy.deepcopy(encoder), replace(few, train=train)
    results = train_and_measure(model, hundred, config, "test_accuracy", validation_images=10)
    return results["test_accuracy"]
