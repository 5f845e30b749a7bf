"""What did it learn? One small ViT, its pooling, its registers, and images with shuffled patches.

Notebook 05. Every arm trains the same small model with at most one thing changed. Its patches have
8 px, twice those of the model that the notebook looks into, so that a run costs a quarter. The
shuffle stands inside its model, behind crops and flips, which are made for pictures.
"""

import torch

from vitedu.bench.experiments import Arms, Results, cut, images, settings_of, train_and_measure
from vitedu.data import Data
from vitedu.fitting import TrainConfig
from vitedu.hardware import Profile
from vitedu.inside import measure_internals
from vitedu.options import VisionTransformerWithOptions, with_options
from vitedu.vit import VisionTransformer, ViTConfig
from vitedu.vit_and_cnn import shuffle_patches

CONFIG = ViTConfig(patch_size=8, embed_dim=64, depth=4, num_heads=4, mlp_ratio=2.0)
DATA = "shapes"  # maps are set beside masks
ARMS: Arms = {
    "class token": {},
    "mean of the patches": {"pool": "mean"},
    "largest of the patches": {"pool": "max"},
    "4 registers": {"num_registers": 4},
    "one fixed patch shuffle": {"shuffled": True},
}
IMAGES = 500  # test images that maps are measured on


class LargestPatch(VisionTransformerWithOptions):
    """Pool by the largest value that any patch has, feature by feature; there is no class token."""

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Map images (B, C, H, W) to logits (B, K)."""
        x = self.patch_embed(images) + self.pos_embed  # (B, N, D)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x).amax(dim=1))  # (B, N, D) -> (B, D) -> (B, K)


class ShuffledPatches(VisionTransformerWithOptions):
    """See the patches of every image in another order: place i gets patch ``order[i]``."""

    order: torch.Tensor  # (N,)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Map images (B, C, H, W) to logits (B, K)."""
        return super().forward(shuffle_patches(images, CONFIG.patch_size, self.order))


def build(arm: str, seed: int, data: Data) -> VisionTransformer:
    """Make the untrained model of an arm."""
    torch.manual_seed(seed)
    options: dict = {"num_classes": data.num_classes, "in_channels": data.in_channels}
    options |= {"fused": True, **settings_of(arm, ARMS)[0]}
    kind = ShuffledPatches if options.pop("shuffled", False) else VisionTransformerWithOptions
    if options.get("pool") == "max":  # has the shape of a model without a class token
        kind, options["pool"] = LargestPatch, "mean"
    model = kind(with_options(CONFIG, **options))
    if kind is ShuffledPatches:
        model.register_buffer("order", draw_patch_order(seed), persistent=False)
    return model


def draw_patch_order(seed: int) -> torch.Tensor:
    """Draw one order of the patches (N,); place i takes what stood at place ``order[i]``."""
    return torch.randperm(CONFIG.num_patches, generator=torch.Generator().manual_seed(seed))


def settings(seed: int, epochs: int) -> TrainConfig:
    """Say how every arm is trained."""
    return TrainConfig(epochs, 64, 4e-3, optimizer="muon", crop_padding=2, seed=seed)


def run(arm: str, seed: int, profile: Profile) -> Results:
    """Train one model and measure what the notebook measures."""
    data, config = images(profile, None, (64, 50), DATA), settings(seed, cut(4, profile, 1))
    model = build(arm, seed, data)
    before = measure_inside(model, data)
    columns = "test_accuracy train_accuracy precision seconds"
    results = train_and_measure(model, data, config, columns, validation_images=100)
    for when, measures in (("untrained", before), ("trained", measure_inside(model, data))):
        results |= {f"{when}: {name}": round(value, 4) for name, value in measures.items()}
    return results


def measure_inside(model: VisionTransformer, data: Data) -> dict[str, float]:
    """Look into a model with the first test images, and their masks where there are some."""
    masks = None if data.test.masks is None else data.test.masks[:IMAGES]
    return measure_internals(model, data.normalize(data.test.images[:IMAGES]), masks)
