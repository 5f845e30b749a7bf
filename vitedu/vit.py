"""The destination of notebooks 01 to 03: the whole Vision Transformer, and a way to look inside it.

Role: configuration, presets, the model, ``capture``. Not here: its parts (``patches``,
``attention``, ``encoder``) and its training (``training``, ``fitting``).

Legend: B batch, C H W image, N num_patches, T num_tokens, D embed_dim, K classes. timm's attribute
names throughout; ``in_channels`` follows torch.

Reference: Dosovitskiy et al. 2020 (arXiv 2010.11929); timm ``vision_transformer.py``.
"""

import difflib
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch
from torch import nn

from vitedu.attention import MultiHeadAttention
from vitedu.encoder import EncoderBlock, Mlp
from vitedu.fast import (
    AttentionWithOptions,
    ConvStem,
    DroppingBlock,
    FusedMlp,
    LastBlock,
    QuickMlp,
    ScaledBlock,
    SwiGlu,
)
from vitedu.patches import PatchEmbed, add_class_token_and_positions

MLPS = {"gelu": Mlp, "quick_gelu": QuickMlp, "swiglu": SwiGlu}


@dataclass(frozen=True)
class ViTConfig:
    """The shape of a Vision Transformer. Images are square."""

    image_size: int = 32  # H = W, pixels
    patch_size: int = 4  # P, pixels
    in_channels: int = 3  # C
    num_classes: int = 10  # K
    embed_dim: int = 192  # D, the width of every token
    depth: int = 6  # number of encoder blocks
    num_heads: int = 3  # heads of each attention; head_dim = embed_dim / num_heads
    mlp_ratio: float = 4.0  # hidden width of the MLP over embed_dim
    qkv_bias: bool = True  # whether the q, k, v projection has a bias
    # what the head reads: "cls" (the paper) or "mean" of the patch tokens, no class token
    pool: str = "cls"
    fused: bool = False  # compute what the head reads in the fastest form, which keeps no weights
    rope: bool = False  # turn queries and keys by their patch's row and column (rotary positions)
    qk_norm: bool = False  # give queries and keys mean 0 and variance 1 before they meet
    # what makes tokens of pixels: "patch" (the paper) or "conv", small convolutions one behind the
    # other
    stem: str = "patch"
    stem_depth: int = 1  # of a conv stem, layers that look again after each halving of the image
    num_registers: int = 0  # learned tokens behind the class token, which no head reads
    drop_rate: float = 0.0  # in training, share of the numbers set to 0 at the end of each branch
    # in training, share of the images that skip the last block's branches
    drop_path_rate: float = 0.0
    # of published models since 2021
    layer_scale: bool = False  # a learned factor a feature at the end of each side road
    mlp: str = "gelu"  # "gelu" (the paper), "quick_gelu" (CLIP) or "swiglu"

    def __post_init__(self):
        if self.image_size % self.patch_size:
            raise ValueError(
                f"image_size must be divisible by patch_size (got image_size={self.image_size}, "
                f"patch_size={self.patch_size}, remainder {self.image_size % self.patch_size})."
            )
        if self.embed_dim % self.num_heads:
            raise ValueError(
                f"embed_dim must be divisible by num_heads (got embed_dim={self.embed_dim}, "
                f"num_heads={self.num_heads}, remainder {self.embed_dim % self.num_heads})."
            )
        if self.rope and (self.embed_dim // self.num_heads) % 4:
            raise ValueError(
                f"rope needs a head_dim divisible by 4 (got embed_dim={self.embed_dim}, "
                f"num_heads={self.num_heads}, head_dim={self.embed_dim // self.num_heads})."
            )
        if self.stem not in ("patch", "conv"):
            raise ValueError(f"stem must be 'patch' or 'conv' (got {self.stem!r}).")
        if self.stem_depth < 0:
            raise ValueError(f"stem_depth must be at least 0 (got stem_depth={self.stem_depth}).")
        if self.stem == "patch" and self.stem_depth != 1:
            raise ValueError(
                f"stem_depth counts layers of a conv stem (got stem_depth={self.stem_depth}, "
                f"stem={self.stem!r}); use stem='conv', or stem_depth=1."
            )
        if self.pool not in ("cls", "mean"):
            raise ValueError(f"pool must be 'cls' or 'mean' (got {self.pool!r}).")
        for name in ("drop_rate", "drop_path_rate"):
            if not 0 <= getattr(self, name) < 1:
                raise ValueError(
                    f"{name} must be at least 0 and below 1 (got {name}={getattr(self, name)})."
                )
        if self.mlp not in MLPS:
            raise ValueError(f"mlp must be one of {', '.join(MLPS)} (got {self.mlp!r}).")
        if self.mlp == "swiglu" and int(self.embed_dim * self.mlp_ratio) % 2:
            raise ValueError(
                "swiglu halves the hidden width, which must be even (got "
                f"{int(self.embed_dim * self.mlp_ratio)}, embed_dim={self.embed_dim} times "
                f"mlp_ratio={self.mlp_ratio:g}); use mlp_ratio=4."
            )
        if self.layer_scale and (self.drop_rate or self.drop_path_rate):
            raise ValueError(
                f"a block with layer_scale drops nothing (got drop_rate={self.drop_rate}, "
                f"drop_path_rate={self.drop_path_rate}); set both to 0, or layer_scale=False."
            )
        if self.num_registers < 0 or (self.num_registers and self.pool != "cls"):
            raise ValueError(
                "registers stand behind a class token and cannot be fewer than 0 (got "
                f"num_registers={self.num_registers}, pool={self.pool!r}); use pool='cls', or "
                "num_registers=0."
            )

    @property
    def grid_size(self) -> tuple[int, int]:
        """Patches down and across."""
        side = self.image_size // self.patch_size
        return side, side

    @property
    def num_patches(self) -> int:
        """N, the patches of one image."""
        return self.grid_size[0] * self.grid_size[1]

    @property
    def num_prefix_tokens(self) -> int:
        """Tokens before the patches: the class token and its registers, or none."""
        return 1 + self.num_registers if self.pool == "cls" else 0

    @property
    def has_textbook_blocks(self) -> bool:
        """Whether the blocks are the textbook's, which have a bias and none of the options."""
        options = self.fused or self.rope or self.qk_norm or self.layer_scale or self.mlp != "gelu"
        return self.qkv_bias and not (options or self.drop_rate or self.drop_path_rate)

    @property
    def num_tokens(self) -> int:
        """T = num_patches + num_prefix_tokens."""
        return self.num_patches + self.num_prefix_tokens


def with_options(config: ViTConfig, **more) -> ViTConfig:
    """Add to a textbook shape what notebook 04 measures: no class token, rotary positions, more."""
    return replace(config, pool="mean", fused=True, rope=True, **more)


TINY = ViTConfig(patch_size=4, embed_dim=192, depth=6, num_heads=3)
PICO = ViTConfig(patch_size=4, embed_dim=96, depth=4, num_heads=3, mlp_ratio=2)
MINI = ViTConfig(patch_size=4, embed_dim=256, depth=9, num_heads=4, mlp_ratio=3)

PRESETS: dict[str, ViTConfig] = {
    # the course's own, for 32 px images and ten classes
    "vit_micro_patch8_32": ViTConfig(patch_size=8, embed_dim=128, depth=4, num_heads=4),
    "vit_tiny_patch4_32": TINY,
    "vit_pico_patch4_32": PICO,
    "vit_pico_patch4_rope_32": with_options(PICO),
    # with QK-norm, whose worth is not settled: three epochs of the smallest lost a point once and
    # nothing once
    "vit_tiny_patch4_rope_32": with_options(TINY, qk_norm=True),
    # two blocks or four make room for small convolutions in front, where Xiao et al. 2021 (arXiv
    # 2106.14881) gave up one block; in the larger model the stem has 72 % of the products
    "vit_pico_convstem_patch4_rope_32": with_options(replace(PICO, depth=2), stem="conv"),
    "vit_tiny_convstem_patch4_rope_32": with_options(
        replace(TINY, depth=2), stem="conv", stem_depth=3
    ),
    "vit_mini_patch4_rope_32": with_options(MINI, qk_norm=True),
    # the published sizes, for 224 px images and the 1000 classes of ImageNet
    "vit_tiny_patch16_224": ViTConfig(224, 16, 3, 1000, embed_dim=192, depth=12, num_heads=3),
    "vit_small_patch16_224": ViTConfig(224, 16, 3, 1000, embed_dim=384, depth=12, num_heads=6),
    "vit_base_patch16_224": ViTConfig(224, 16, 3, 1000, embed_dim=768, depth=12, num_heads=12),
    "vit_large_patch16_224": ViTConfig(224, 16, 3, 1000, embed_dim=1024, depth=24, num_heads=16),
    "vit_huge_patch14_224": ViTConfig(224, 14, 3, 1000, embed_dim=1280, depth=32, num_heads=16),
}


def preset(name: str, **changes) -> ViTConfig:
    """Look a preset up by name, with some fields changed.

    Args:
        name: a key of ``PRESETS``.
        **changes: fields of ``ViTConfig`` to replace, such as ``num_classes=5``.

    Raises:
        ValueError: no such preset; the message lists the choices.

    Example:
        >>> preset("vit_tiny_patch4_32", num_classes=5).num_classes
        5
    """
    if name not in PRESETS:
        nearest = difflib.get_close_matches(name, PRESETS, n=1)
        guess = f" Did you mean {nearest[0]!r}?" if nearest else ""
        raise ValueError(f"no preset named {name!r}.{guess} Choices: {', '.join(PRESETS)}.")
    return replace(PRESETS[name], **changes)


class VisionTransformer(nn.Module):
    """Classify images with a stack of Transformer encoder blocks over their patches.

    Args:
        config: a ``ViTConfig``.

    Example:
        >>> VisionTransformer(PRESETS["vit_micro_patch8_32"])(torch.zeros(2, 3, 32, 32)).shape
        torch.Size([2, 10])

    Reference: Dosovitskiy et al. 2020, section 3.1. Departure: one linear head, as in fine-tuning,
    where the paper pre-trains with an MLP head.
    """

    def __init__(self, config: ViTConfig):
        super().__init__()
        D = config.embed_dim
        self.config = config
        stem = PatchEmbed if config.stem == "patch" else partial(ConvStem, depth=config.stem_depth)
        self.patch_embed = stem(config.patch_size, config.in_channels, D)
        self.cls_token = nn.Parameter(torch.zeros(1, config.num_prefix_tokens, D))
        self.pos_embed = nn.Parameter(torch.zeros(1, config.num_tokens, D))
        self.blocks = nn.ModuleList(
            EncoderBlock(D, config.num_heads, config.mlp_ratio)
            if config.has_textbook_blocks
            else block_with_options(config, number)
            for number in range(config.depth)
        )
        self.norm = nn.LayerNorm(D, eps=1e-6)
        self.head = nn.Linear(D, config.num_classes)
        initialise(self)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Map images (B, C, H, W) to logits (B, K)."""
        x = self.patch_embed(images)  # (B, C, H, W) -> (B, N, D)
        x = add_class_token_and_positions(x, self.cls_token, self.pos_embed)  # -> (B, T, D)
        for block in self.blocks:
            x = block(x)
        x = self.norm(x)
        x = x[:, 0] if self.config.pool == "cls" else x.mean(dim=1)  # (B, T, D) -> (B, D)
        return self.head(x)  # (B, D) -> (B, K)


def block_with_options(config: ViTConfig, number: int) -> EncoderBlock:
    """Build block ``number`` with the layers that a configuration asks for.

    That is attention with or without bias, with rotary positions or QK-norm, everything in its
    fastest form if it shall be fused, the last block for the class token alone if the head reads
    nothing else, and branches that drop. The rate of drop-path grows from 0 in the first block to
    its full size in the last one, as in Huang et al. 2016, section 3.
    """
    attention: Callable[[int, int], nn.Module]
    attention = partial(MultiHeadAttention, qkv_bias=config.qkv_bias)
    if config.fused or config.rope or config.qk_norm:
        attention = partial(
            AttentionWithOptions,
            qkv_bias=config.qkv_bias,
            fused=config.fused,
            qk_norm=config.qk_norm,
            rotary=(config.grid_size, config.num_prefix_tokens) if config.rope else None,
        )
    mlp = FusedMlp if config.fused and config.mlp == "gelu" else MLPS[config.mlp]
    kind: type[EncoderBlock] = ScaledBlock if config.layer_scale else EncoderBlock
    has_options = config.rope or config.qk_norm or config.layer_scale
    is_last = number == config.depth - 1
    if is_last and config.fused and config.pool == "cls" and not has_options:
        kind = LastBlock
    sizes = config.embed_dim, config.num_heads, config.mlp_ratio
    layers: dict[str, Any] = {"attention": attention, "mlp": mlp}
    if not (config.drop_rate or config.drop_path_rate):
        return kind(*sizes, **layers)
    path_rate = config.drop_path_rate * number / max(1, config.depth - 1)
    return DroppingBlock(*sizes, drop_rate=config.drop_rate, drop_path_rate=path_rate, **layers)


def initialise(model: VisionTransformer) -> None:
    """Give a model its starting values, in place.

    Linear weights, class token and positions: normal, standard deviation 0.02, cut at two of them
    (which leaves 0.0176). Linear biases: zero. The patch convolution and the norms keep torch's
    defaults. Departure from timm: its values are not cut, and its class token starts near 0.
    """
    for module in model.modules():
        if isinstance(module, nn.Linear):
            nn.init.trunc_normal_(module.weight, std=0.02, a=-0.04, b=0.04)
            if module.bias is not None:
                nn.init.zeros_(module.bias)
    nn.init.trunc_normal_(model.pos_embed, std=0.02, a=-0.04, b=0.04)
    if model.cls_token.numel():
        nn.init.trunc_normal_(model.cls_token, std=0.02, a=-0.04, b=0.04)


def capture(model: nn.Module, images: torch.Tensor) -> dict[str, torch.Tensor]:
    """Run a model once and keep every intermediate result by name.

    Looking needs no flags in ``forward``: hooks listen to the modules while they work.

    Args:
        model: a ``VisionTransformer``, the reference's or a student's. Its mode is restored; it
            runs in eval mode, without gradients.
        images: (B, C, H, W), on the model's device.

    Returns:
        The output of every module under its attribute name: ``"patch_embed"`` (B, N, D),
        ``"blocks.0.norm1"``, ``"blocks.0.attn"`` (B, T, D), ``"blocks.0"``, ``"norm"``, ``"head"``;
        and ``"tokens"`` (B, T, D), what enters the first block; ``"blocks.i.attn.weights"`` (B, nh,
        T, T); ``"logits"`` (B, K).

    Example:
        >>> model = VisionTransformer(PRESETS["vit_micro_patch8_32"])
        >>> found = capture(model, torch.zeros(2, 3, 32, 32))
        >>> found["blocks.0.attn.weights"].shape
        torch.Size([2, 4, 17, 17])
    """
    found: dict[str, torch.Tensor] = {}

    def keep(name):
        def hook(module, inputs, output):
            if isinstance(output, tuple):  # attention: (output, weights)
                output, weights = output
                found[f"{name}.weights"] = weights.detach()
            found[name] = output.detach()

        return hook

    handles = [
        module.register_forward_hook(keep(name))
        for name, module in model.named_modules()
        if name and not isinstance(module, nn.ModuleList)
    ]
    blocks: Any = getattr(model, "blocks", ())
    if len(blocks):
        handles.append(
            blocks[0].register_forward_pre_hook(
                lambda module, inputs: found.__setitem__("tokens", inputs[0].detach())
            )
        )
    modes = {module: module.training for module in model.modules()}
    fused: list[Any] = [module for module in model.modules() if getattr(module, "fused", False)]
    try:
        model.eval()
        for layer in fused:
            layer.fused = False  # the fused kernel forms no weights to look at
        with torch.no_grad():
            found["logits"] = model(images)
    finally:
        for handle in handles:
            handle.remove()
        for layer in fused:
            layer.fused = True
        for part, training in modes.items():
            part.training = training
    return found
