"""Does warm-up matter? Both places of the norms, two learning rates each, with and without it.

For 04_training_more. A small model learns 128 photographs by heart. The rate climbs for a
third of the steps or not at all, and then stays at its peak. Both runs of a pair start from the
same weights and see the same batches, so their difference is what warm-up did.
"""

from statistics import fmean

import torch
from torch import nn

from vitedu.bench.experiments import DATA, Arms, Profile, Results, cut, load
from vitedu.encoder import EncoderBlock
from vitedu.extras.options import build_model, preset
from vitedu.training import train_one_epoch, weight_decay_groups
from vitedu.vit import VisionTransformer

PEAKS = (("post-norm", 1e-3), ("post-norm", 3e-3), ("pre-norm", 3e-3), ("pre-norm", 1e-2))
KINDS = {"no warm-up": False, "warm-up": True}
ARMS: Arms = {
    f"{norm}, {lr:g}, {kind}": {"norm": norm, "lr": lr, "warmup": warmup}
    for norm, lr in PEAKS
    for kind, warmup in KINDS.items()
}
IMAGES, BATCH_SIZE = 128, 32


class PostNormBlock(EncoderBlock):
    """The block of 2017: the sum is normalised, not the branch."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Map tokens (B, T, D) to (B, T, D)."""
        x = self.norm1(x + self.attn(x)[0])
        return self.norm2(x + self.mlp(x))


def build(norm: str, seed: int) -> VisionTransformer:
    """Make a small model; one seed gives the same weights for either norm."""
    torch.manual_seed(seed)
    model = build_model(preset("vit_micro_patch8_32", embed_dim=64, depth=6, num_heads=4))
    if norm == "post-norm":
        blocks = nn.ModuleList([PostNormBlock(64, 4) for _ in model.blocks])
        blocks.load_state_dict(model.blocks.state_dict())
        model.blocks = blocks
        model.register_module("norm", nn.Identity())
    return model


def run(arm: str, seed: int, profile: Profile) -> Results:
    """Train one model and say how low its loss came."""
    steps, (norm, lr, warmup) = cut(120, profile, 20), ARMS[arm].values()
    data = load(DATA, limit=IMAGES, held_out=1)
    images, labels = data.normalize(data.train.images[:IMAGES]), data.train.labels[:IMAGES]
    model, losses = build(norm, seed), list[float]()
    optimizer = torch.optim.AdamW(weight_decay_groups(model, 0.05), lr=lr)
    climb = steps // 3 if warmup else 1
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda k: min(1.0, (k + 1) / climb))
    generator = torch.Generator().manual_seed(seed)
    while len(losses) < steps:
        for index in torch.randperm(IMAGES, generator=generator).split(BATCH_SIZE):
            batch = [(images[index], labels[index])]
            losses.append(train_one_epoch(model, batch, optimizer, scheduler)[0])
    return {"final_loss": round(fmean(losses[-(steps // 5) :]), 4)}  # mean of the last fifth
