"""What does each cheaper form of attention cost in accuracy, if all of them are trained alike?

Sections 3 and 12 of notebook 08. Every model learns from the same drawn shapes, for the same number
of steps, with the same shifts and mirror images and one recipe for all. Nothing was tuned for any
of them; ``efficient_rates`` tries larger learning rates. All have about 80,000 parameters, and the
mean over all places goes to the head. Beside it stand forms that need no new training: fewer
tokens, int8 weights. The time that each model takes is measured by the notebook.

Legend: B batch, gh gw grid of tokens, T = gh * gw, D width, w window_size, nh heads.
"""

from typing import Any

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from vitedu.attention import merge_heads, split_heads
from vitedu.bench.experiments import Arms, Results, cut, shapes, train_and_measure
from vitedu.data import Data
from vitedu.efficient import (
    linear_attention,
    merge_tokens,
    prune_tokens,
    relative_position_index,
    shifted_window_mask,
    window_merge,
    window_partition,
)
from vitedu.encoder import EncoderBlock, Mlp
from vitedu.fitting import TrainConfig
from vitedu.fitting.loop import measure_test_accuracy
from vitedu.hardware import Profile

ONE_GRID = {"patch_size": 4, "widths": [48], "depths": [4], "has_positions": True}
FOUR_STAGES = {"patch_size": 2, "widths": [8, 16, 32, 64], "depths": [2, 2, 4, 1]}
WINDOWS = {**FOUR_STAGES, "kinds": ["windows"] * 4}
MIXED = {**FOUR_STAGES, "kinds": ["convolution", "convolution", "global", "global"]}
ARMS: Arms = {
    "four stages, offset bias": {**WINDOWS, "has_bias": True},
    "four stages, no positions": WINDOWS,
    "ConvNeXt": {**ONE_GRID, "kinds": ["convolution"]},
    "MLP-Mixer": {**ONE_GRID, "kinds": ["mixer"]},
    "convolutions, then attention": {**MIXED, "has_positions": True},
    "global attention": {**ONE_GRID, "kinds": ["global"]},
    "patches of 8 px": {**ONE_GRID, "kinds": ["global"], "patch_size": 8},
    "windows": {**ONE_GRID, "kinds": ["windows"]},
    "averaged keys": {**ONE_GRID, "kinds": ["averaged keys"]},
    "linear attention": {**ONE_GRID, "kinds": ["linear"]},
    "random features": {**ONE_GRID, "kinds": ["random features"]},
}
HEAD_DIM = {48: 16}  # of the one width; the four widths have heads of 8 columns
RECIPE: Any = {"batch_size": 64, "optimizer": "muon", "crop_padding": 2, "label_smoothing": 0.1}


class GridBlock(EncoderBlock):
    """An encoder block on a grid of tokens; here every token sees all others."""

    def __init__(self, embed_dim: int, grid: int):
        super().__init__(embed_dim, embed_dim // HEAD_DIM.get(embed_dim, 8), 2.0)
        self.grid = grid

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Map a grid of tokens (B, gh, gw, D) to (B, gh, gw, D)."""
        x = x + self.mix(self.norm1(x))
        return x + self.mlp(self.norm2(x))

    def mix(self, x: torch.Tensor) -> torch.Tensor:
        """Let the places of a grid exchange information."""
        return self.attend(x.flatten(1, 2)).unflatten(1, x.shape[1:3])

    def attend(self, tokens: torch.Tensor, **options) -> torch.Tensor:
        """Map (B, T, D) to (B, T, D) with the attention of this block."""
        parts = self.attn.qkv(tokens).chunk(3, dim=-1)
        q, k, v = (split_heads(part, self.attn.num_heads) for part in parts)
        return self.attn.proj(merge_heads(self.attention(q, k, v, **options)))

    def attention(self, q, k, v, **options) -> torch.Tensor:
        """Map q, k and v (B, nh, T, hd) to (B, nh, T, hd)."""
        return F.scaled_dot_product_attention(q, k, v, **options)


class LinearBlock(GridBlock):
    """The same with linear attention."""

    def attention(self, q, k, v):
        """Map q, k and v (B, nh, T, hd) to (B, nh, T, hd)."""
        return linear_attention(q, k, v)


class RandomFeaturesBlock(GridBlock):
    """The same with random features of the kernel: FAVOR+ (Choromanski et al. 2021, 2009.14794)."""

    directions: torch.Tensor  # (m, hd), m = 4 * hd, drawn once; each hd rows are orthogonal

    def __init__(self, embed_dim: int, grid: int):
        super().__init__(embed_dim, grid)
        hd = embed_dim // self.attn.num_heads
        rows = torch.cat([torch.linalg.qr(torch.randn(hd, hd))[0] for _ in range(4)])
        lengths = torch.randn(4 * hd, hd).norm(dim=1, keepdim=True)
        self.register_buffer("directions", rows * lengths)

    def attention(self, q, k, v):
        """Map q, k and v (B, nh, T, hd) to (B, nh, T, hd)."""

        def features(part, over):  # (B, nh, T, hd) -> (B, nh, T, m)
            part = part / part.shape[-1] ** 0.25
            exponent = part @ self.directions.T - part.square().sum(dim=-1, keepdim=True) / 2
            # a common factor cancels; the small number is that of the paper's code
            return (exponent - exponent.amax(dim=over, keepdim=True)).exp() + 1e-4

        q, k = features(q, -1), features(k, (-2, -1))
        return q @ (k.mT @ v) / (q @ k.sum(dim=-2, keepdim=True).mT)


class AveragedKeysBlock(GridBlock):
    """The same with keys and values averaged over squares of 2 x 2."""

    def attention(self, q, k, v):
        """Map q, k and v (B, nh, T, hd) to (B, nh, T, hd)."""

        def fewer(part):  # (B, nh, T, hd) -> (B, nh, T/4, hd)
            square = part.mT.flatten(0, 1).unflatten(-1, (self.grid, self.grid))
            return F.avg_pool2d(square, 2).flatten(2).unflatten(0, part.shape[:2]).mT

        return F.scaled_dot_product_attention(q, fewer(k), fewer(v))


class WindowBlock(GridBlock):
    """The same within windows of 4 x 4 tokens, shifted or not; a smaller grid is one window."""

    mask: torch.Tensor  # (windows, w*w, w*w), True where attention is allowed
    index: torch.Tensor  # (w*w, w*w), the number of each offset

    def __init__(self, embed_dim: int, grid: int, shift: int = 0, has_bias: bool = False):
        super().__init__(embed_dim, grid)
        w = self.window_size = min(4, grid)
        self.shift = shift if grid > w else 0
        mask = shifted_window_mask((grid, grid), w, self.shift)
        self.register_buffer("mask", mask, persistent=False)
        self.register_buffer("index", relative_position_index((w, w)), persistent=False)
        # one number for each offset and head, in a row: the optimizer takes tables for matrices
        size = (2 * w - 1) ** 2 * self.attn.num_heads
        self.bias_table = nn.Parameter(torch.zeros(size)) if has_bias else None

    def mix(self, x: torch.Tensor) -> torch.Tensor:
        """Let the places of each window exchange information."""
        B, gh, gw, _ = x.shape
        rolled = x.roll((-self.shift, -self.shift), dims=(1, 2))
        tokens = window_partition(rolled, self.window_size)  # (B*windows, w*w, D)
        scores = torch.zeros(self.mask.shape, device=x.device).masked_fill(~self.mask, -torch.inf)
        scores = scores[:, None]  # (windows, 1, w*w, w*w)
        if self.bias_table is not None:
            scores = scores + self.bias_table.view(self.attn.num_heads, -1)[:, self.index]
        # the windows of one image stand together
        attended = self.attend(tokens, attn_mask=scores.repeat(B, 1, 1, 1))
        merged = window_merge(attended, self.window_size, (gh, gw))
        return merged.roll((self.shift, self.shift), dims=(1, 2))


class MixerBlock(nn.Module):
    """An MLP over places, one over features: MLP-Mixer (Tolstikhin et al. 2021, 2105.01601)."""

    def __init__(self, embed_dim: int, grid: int):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(embed_dim), nn.LayerNorm(embed_dim)
        # as many parameters as the attention has
        self.over_places = Mlp(grid**2, 4 * embed_dim**2 // (2 * grid**2))
        self.mlp = Mlp(embed_dim, 2 * embed_dim)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Map a grid of tokens (B, gh, gw, D) to (B, gh, gw, D)."""
        mixed = self.over_places(self.norm1(x).flatten(1, 2).mT).mT  # over T, each feature alone
        x = x + mixed.unflatten(1, x.shape[1:3])
        return x + self.mlp(self.norm2(x))


class ConvNeXtBlock(nn.Module):
    """A 7 x 7 convolution of each feature, then an MLP (Liu et al. 2022, arXiv 2201.03545)."""

    def __init__(self, embed_dim: int, grid: int):
        super().__init__()
        # a kernel of 7 x 7 on a grid of 8 x 8 or more, and of 3 x 3 on smaller ones
        kernel = 7 if grid >= 8 else 3
        self.conv = nn.Conv2d(embed_dim, embed_dim, kernel, padding=kernel // 2, groups=embed_dim)
        self.norm = nn.LayerNorm(embed_dim)
        # as many parameters as attention and MLP have
        hidden = max(embed_dim, (8 * embed_dim - kernel**2) // 2)
        self.mlp = Mlp(embed_dim, hidden)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Map a grid of tokens (B, gh, gw, D) to (B, gh, gw, D)."""
        mixed = self.conv(x.permute(0, 3, 1, 2)).permute(0, 2, 3, 1)  # (B, D, gh, gw) and back
        return x + self.mlp(self.norm(mixed))


KINDS: Any = {  # name -> what builds a block of embed_dim on a grid
    "global": GridBlock,
    "linear": LinearBlock,
    "random features": RandomFeaturesBlock,
    "averaged keys": AveragedKeysBlock,
    "mixer": MixerBlock,
    "convolution": ConvNeXtBlock,
    "windows": WindowBlock,
}


class Merging(nn.Module):
    """Put 2 x 2 neighbours beside each other and mix them into twice the width: the grid halves."""

    def __init__(self, embed_dim: int):
        super().__init__()
        self.norm = nn.LayerNorm(4 * embed_dim)
        self.reduction = nn.Linear(4 * embed_dim, 2 * embed_dim, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Map (B, gh, gw, D) to (B, gh/2, gw/2, 2D)."""
        _, gh, gw, _ = x.shape
        neighbours = window_partition(x, 2).flatten(1)  # (B*T/4, 4D)
        return self.reduction(self.norm(neighbours)).reshape(-1, gh // 2, gw // 2, 2 * x.shape[-1])


class Staged(nn.Module):
    """Patches, stages of blocks with merging between them, the mean over all places, a head.

    Args:
        patch_size: P, of images of 32 pixels.
        widths: D of each stage, each twice the one before.
        depths: blocks of each stage.
        kinds: a key of ``KINDS`` for each stage.
        has_positions: whether a learned number is added to every feature of every first token.
        has_bias: whether windows have a learned number for each offset.
    """

    shortened: str | None = None  # how half of the tokens leave: see ``shorten_with``

    def __init__(
        self, patch_size, widths, depths, kinds, has_positions: bool = False, has_bias: bool = False
    ):
        super().__init__()
        grid = 32 // patch_size
        self.patch_embed = nn.Conv2d(3, widths[0], patch_size, stride=patch_size)
        table = 0.02 * torch.randn(grid, grid, widths[0])
        self.pos_embed = nn.Parameter(table) if has_positions else None
        self.blocks = nn.Sequential()
        for stage, (D, depth, kind) in enumerate(zip(widths, depths, kinds, strict=True)):
            for i in range(depth):
                more = {"shift": 2 * (i % 2), "has_bias": has_bias} if kind == "windows" else {}
                self.blocks.append(KINDS[kind](D, grid, **more))
            if stage + 1 < len(widths):
                self.blocks.append(Merging(D))
                grid //= 2
        self.norm, self.head = nn.LayerNorm(widths[-1]), nn.Linear(widths[-1], 10)

    def embed(self, images: torch.Tensor) -> torch.Tensor:
        """Map images (B, C, H, W) to a grid of tokens (B, gh, gw, D)."""
        x = self.patch_embed(images).permute(0, 2, 3, 1)
        return x if self.pos_embed is None else x + self.pos_embed

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Map images (B, C, H, W) to logits (B, K)."""
        if self.shortened:
            return shorten_with(self, images, self.shortened)
        x = self.blocks(self.embed(images))
        return self.head(self.norm(x).mean(dim=(1, 2)))


def shorten_with(model: Staged, images: torch.Tensor, how: str) -> torch.Tensor:
    """Give the logits (B, K) of a model of the arm "global attention", in eval mode, for images
    (B, C, H, W), with half of its tokens from the second block on: "pruned", only the most attended
    are left; "merged", those that are alike are joined.
    """
    x = model.embed(images).flatten(1, 2)  # (B, T, D)
    sizes = torch.ones(x.shape[:2])  # how many patches each token stands for
    blocks: list[Any] = list(model.blocks)
    for i, block in enumerate(blocks):
        normed = block.norm1(x)
        attended, weights = block.attn(normed)  # weights (B, nh, T, T)
        x = x + attended
        if i == 0:
            # both functions leave the first token alone: a copy stands where they expect the class
            # token
            x, sizes = torch.cat([x[:, :1], x], dim=1), torch.cat([sizes[:, :1], sizes], dim=1)
            half = x.shape[1] // 2
            if how == "pruned":
                x, sizes = prune_tokens(x, weights.mean(dim=(1, 2)), half), sizes[:, : half + 1]
            else:
                keys = block.attn.qkv(normed).chunk(3, dim=-1)[1]
                x, sizes = merge_tokens(x, torch.cat([keys[:, :1], keys], dim=1), sizes, half)
            x, sizes = x[:, 1:], sizes[:, 1:]
        x = x + block.mlp(block.norm2(x))
    share = sizes / sizes.sum(dim=1, keepdim=True)  # (B, T/2)
    return model.head((model.norm(x) * share[:, :, None]).sum(dim=1))


@torch.no_grad()
def round_weights(model: nn.Module) -> None:
    """Round the weights of all linear layers to 255 steps in each row, as int8 would hold them."""
    for layer in model.modules():
        if isinstance(layer, nn.Linear):
            step = layer.weight.abs().amax(dim=1, keepdim=True) / 127
            layer.weight.copy_((layer.weight / step).round() * step)


def build(arm: str, seed: int) -> Staged:
    """Make the untrained model of an arm; the seed draws its weights."""
    torch.manual_seed(seed)
    return Staged(**ARMS[arm])


def macs(model: nn.Module) -> float:
    """Count the millions of multiply-accumulates for one image of 32 px."""
    # torch 2.14 does not count a CPU's fused kernel; written as two products, attention counts the
    # same
    as_products = sdpa_kernel(SDPBackend.MATH)
    with torch.no_grad(), as_products, FlopCounterMode(display=False) as counter:
        model.eval()(torch.zeros(1, 3, 32, 32))
    return counter.get_total_flops() / 2e6


def data_and_recipe(seed: int, profile: Profile, lr: float = 4e-3) -> tuple[Data, TrainConfig]:
    """Say what all arms learn from, and how: 300 steps."""
    epochs = cut(6, profile, 1)
    config = TrainConfig(epochs=epochs, seed=seed, lr=lr, precision="float32", **RECIPE)
    return shapes(profile, 3_200, quick=(200, 200)), config


def learn(model: nn.Module, seed: int, profile: Profile) -> tuple[Data, float]:
    """Train any model as all arms are; give the data and the accuracy on training images."""
    data, config = data_and_recipe(seed, profile)
    found = train_and_measure(model, data, config, "train_accuracy", validation_images=100)
    return data, found["train_accuracy"]


def run(arm: str, seed: int, profile: Profile) -> Results:
    """Train one model and measure it, that of global attention in its other forms too."""
    model, (data, config) = build(arm, seed), data_and_recipe(seed, profile)
    results = train_and_measure(model, data, config, validation_images=100)
    if arm == "global attention":
        for how in ("pruned", "merged"):
            model.shortened = how
            results[f"{how}, test_accuracy"] = measure_test_accuracy(model, data)
        model.shortened = None
        round_weights(model)
        results["int8, test_accuracy"] = measure_test_accuracy(model, data)
    return results
