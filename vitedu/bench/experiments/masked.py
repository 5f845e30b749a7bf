"""Does guessing hidden patches help where labels are few? A masked autoencoder, and then 100
labels.

Role: the arms and one run of the end of section 8 of notebook 07. Not here: the autoencoder and its
loss (``vitedu.less_data``).

All arms fine-tune the same model on the same 100 labelled shapes with the same recipe. They differ
in the weights that it starts from, and in how long it is fine-tuned. The guess itself is judged by
its error on images that it has not seen, as a share of the error of the visible patches' mean.
"""

import copy
from dataclasses import replace
from typing import Any

import torch

from vitedu.bench.experiments import Results, train_to_end
from vitedu.bench.experiments.less_data import few_shapes
from vitedu.data import Data, load_data
from vitedu.data.loading import Split
from vitedu.fitting import TrainConfig
from vitedu.fitting.loop import measure_test_accuracy
from vitedu.hardware import Profile
from vitedu.less_data import MaskedAutoencoder, descend, masked_patch_loss
from vitedu.patches import patchify
from vitedu.training import warmup_cosine
from vitedu.vit import VisionTransformer, ViTConfig

CONFIG = ViTConfig(patch_size=4, embed_dim=64, depth=4, num_heads=4, mlp_ratio=2)
ARMS: dict[str, dict[str, Any]] = {
    "from scratch": {"steps": 0, "epochs": 60},
    "from the masked autoencoder": {"steps": 450, "epochs": 60},
    "from scratch, 600 steps": {"steps": 0, "epochs": 300},
    "from the masked autoencoder, 600 steps": {"steps": 450, "epochs": 300},
}
RATIO, BATCH, LABELS = 0.75, 64, 100


def run(arm: str, seed: int, profile: Profile) -> Results:
    """Learn to guess hidden patches, or do not; then fine-tune on 100 labels."""
    many = load_data("shapes", limit=profile.pick(quick=300, laptop=4_000, gpu=4_000))
    steps = min(ARMS[arm]["steps"], profile.pick(quick=3, laptop=10**6, gpu=10**6))
    model = pretrain(many.normalize(many.train.images), steps, seed)
    results: Results = {}
    if steps:
        tested = many.normalize(few_shapes(400).test.images[:200])
        results["error over the visible mean"] = round(share_of_error(model, tested), 4)
    epochs = min(ARMS[arm]["epochs"], profile.pick(quick=1, laptop=10**6, gpu=10**6))
    return results | {
        "test_accuracy": round(fine_tune(model.encoder, few_shapes(400), seed, epochs), 4)
    }


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
    errors = (
        masked_patch_loss(guess, target, mask) for guess in (prediction, mean.expand_as(target))
    )
    of_model, of_mean = errors
    return (of_model / of_mean).item()


def fine_tune(encoder: VisionTransformer, few: Data, seed: int, epochs: int) -> float:
    """Train a copy on the first 100 training images, two steps an epoch; give its test accuracy."""
    model = copy.deepcopy(encoder)
    hundred = replace(few, train=Split(few.train.images[:LABELS], few.train.labels[:LABELS]))
    config = TrainConfig(
        epochs=epochs, batch_size=50, label_smoothing=0.1, precision="float32", seed=seed
    )
    # nothing is chosen by the validation images: a few are enough
    train_to_end(model, hundred, config, validation_images=10)
    return measure_test_accuracy(model.cpu(), few)
