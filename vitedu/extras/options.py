"""What the textbook's Vision Transformer does without: its options, and the model that has them.

Role: ``ViTConfigWithOptions`` extends ``ViTConfig``, ``VisionTransformerWithOptions`` extends
``VisionTransformer``; ``preset`` and ``build_model`` give the class that a configuration needs. Not
here: the layers that an option asks for (``fast``).
"""

import difflib
from dataclasses import dataclass, fields
from functools import partial
from typing import Any

import torch
from torch import nn

from vitedu.extras.fast import MLPS, AttentionPool, ConvStem, block_with_options
from vitedu.patches import PatchEmbed, add_class_token_and_positions
from vitedu.vit import PRESETS, VisionTransformer, ViTConfig, initialise

CHOICES: dict[str, Any] = {
    "pool": ("cls", "mean", "max", "map"),
    "stem": ("patch", "conv"),
    "mlp": MLPS,
}


@dataclass(frozen=True)
class ViTConfigWithOptions(ViTConfig):
    """A ``ViTConfig`` with options, all switched off by default."""

    # the head reads "cls" (the paper), or of the patches, without a class token, the "mean", the
    # largest of each feature ("max") or what a learned query takes ("map", as in SigLIP)
    pool: str = "cls"
    fused: bool = False  # compute what the head reads in the fastest form, which keeps no weights
    rope: bool = False  # turn queries and keys by their patch's row and column (rotary positions)
    qk_norm: bool = False  # give queries and keys mean 0 and variance 1 before they meet
    stem: str = "patch"  # makes the tokens: "patch" (the paper) or "conv", small convolutions
    stem_depth: int = 1  # of a conv stem, layers that look again after each halving of the image
    num_registers: int = 0  # learned tokens behind the class token, which no head reads
    drop_rate: float = 0.0  # in training, share of the numbers set to 0 at the end of each branch
    drop_path_rate: float = 0.0  # in training, share of images that skip the last of several blocks
    # of published models since 2021
    mlp: str = "gelu"  # "gelu" (the paper), "quick_gelu" (CLIP) or "swiglu"
    norm_first: bool = False  # a norm over all tokens before the first block, as in CLIP
    norm_eps: float = 1e-6  # of every norm but those of QK-norm and of a conv stem

    has_options = True  # no field: what models without it refuse

    def __post_init__(self):
        super().__post_init__()
        hidden = int(self.embed_dim * self.mlp_ratio)
        for name, choices in CHOICES.items():
            if (value := getattr(self, name)) not in choices:
                raise ValueError(f"{name} must be one of {', '.join(choices)} (got {value!r}).")
        if self.stem_depth < 0:
            raise ValueError(f"stem_depth must be at least 0 (got stem_depth={self.stem_depth}).")
        if self.stem == "patch" and self.stem_depth != 1:
            raise ValueError(
                f"stem_depth counts layers of a conv stem (got stem_depth={self.stem_depth}, "
                f"stem={self.stem!r}); use stem='conv', or stem_depth=1."
            )
        for name in ("drop_rate", "drop_path_rate"):
            if not 0 <= getattr(self, name) < 1:
                raise ValueError(
                    f"{name} must be at least 0 and below 1 (got {name}={getattr(self, name)})."
                )
        if self.mlp == "swiglu" and hidden % 2:
            raise ValueError(
                f"swiglu halves the hidden width, which must be even (got {hidden}, embed_dim="
                f"{self.embed_dim} times mlp_ratio={self.mlp_ratio:g}); use mlp_ratio=4."
            )
        if self.num_registers < 0 or (self.num_registers and self.pool != "cls"):
            raise ValueError(
                "registers stand behind a class token and cannot be fewer than 0 (got "
                f"num_registers={self.num_registers}, pool={self.pool!r}); use pool='cls', or "
                "num_registers=0."
            )

    @property
    def num_prefix_tokens(self) -> int:
        """Tokens before the patches: the class token and its registers, or none."""
        return 1 + self.num_registers if self.pool == "cls" else 0


def with_options(config: ViTConfig, **changes: Any) -> ViTConfig:
    """Change fields of a configuration, options among them.

    Returns:
        A ``ViTConfigWithOptions``, or a ``ViTConfig`` if every option is as in the textbook.

    Example:
        >>> type(with_options(ViTConfig(), rope=True)).__name__
        'ViTConfigWithOptions'
    """
    changed = ViTConfigWithOptions(**{**vars(config), **changes})
    textbook = {field.name: getattr(changed, field.name) for field in fields(ViTConfig)}
    return ViTConfig(**textbook) if changed == ViTConfigWithOptions(**textbook) else changed


# what notebook 04 measures: no class token, rotary positions, everything in its fastest form
MODERN: dict[str, Any] = {"pool": "mean", "fused": True, "rope": True}
TINY, PICO = (with_options(PRESETS[f"vit_{size}_patch4_32"], **MODERN) for size in ("tiny", "pico"))

PRESETS_WITH_OPTIONS: dict[str, ViTConfig] = {
    "vit_pico_patch4_rope_32": PICO,
    # with QK-norm, whose worth is not settled: three epochs of the smallest lost a point once and
    # nothing once
    "vit_tiny_patch4_rope_32": with_options(TINY, qk_norm=True),
    # two blocks or four make room for small convolutions in front, where Xiao et al. 2021 (arXiv
    # 2106.14881) gave up one block; in the larger model the stem has 72 % of the products
    "vit_pico_convstem_patch4_rope_32": with_options(PICO, depth=2, stem="conv"),
    "vit_tiny_convstem_patch4_rope_32": with_options(TINY, depth=2, stem="conv", stem_depth=3),
    "vit_mini_patch4_rope_32": with_options(
        TINY, embed_dim=256, depth=9, num_heads=4, mlp_ratio=3, qk_norm=True
    ),
}


def preset(name: str, **changes: Any) -> ViTConfig:
    """Look a preset up by name, with some fields changed, such as ``num_classes`` or ``rope``.

    Raises:
        ValueError: no such preset; the message lists the choices.

    Example:
        >>> preset("vit_tiny_patch4_32", num_classes=5).num_classes
        5
    """
    presets = PRESETS | PRESETS_WITH_OPTIONS
    if name not in presets:
        nearest = difflib.get_close_matches(name, presets, n=1)
        guess = f" Did you mean {nearest[0]!r}?" if nearest else ""
        raise ValueError(f"no preset named {name!r}.{guess} Choices: {', '.join(presets)}.")
    return with_options(presets[name], **changes)


class VisionTransformerWithOptions(VisionTransformer):
    """A ``VisionTransformer`` with the layers that its configuration asks for.

    Args:
        config: a ``ViTConfigWithOptions``, or a ``ViTConfig``, which has every option off.
    """

    config: ViTConfigWithOptions
    has_options = True

    def __init__(self, config: ViTConfig):
        nn.Module.__init__(self)  # the textbook's own would build layers for nothing
        config = self.config = ViTConfigWithOptions(**vars(config))
        D, conv_stem = config.embed_dim, partial(ConvStem, depth=config.stem_depth)
        stem: Any = PatchEmbed if config.stem == "patch" else conv_stem
        self.patch_embed = stem(config.patch_size, config.in_channels, D)
        self.cls_token = nn.Parameter(torch.zeros(1, config.num_prefix_tokens, D))
        self.pos_embed = nn.Parameter(torch.zeros(1, config.num_tokens, D))
        self.blocks = nn.ModuleList(
            block_with_options(config, number) for number in range(config.depth)
        )
        self.norm = nn.LayerNorm(D)
        self.head = nn.Linear(D, config.num_classes)
        initialise(self)
        if config.norm_first:
            self.norm_pre = nn.LayerNorm(D)
        if config.pool == "map":
            self.attn_pool = AttentionPool(D, config.num_heads, int(D * config.mlp_ratio))
        for module in self.modules():
            if isinstance(module, nn.LayerNorm):
                module.eps = config.norm_eps

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Map images (B, C, H, W) to logits (B, K)."""
        x = self.embed(images)  # (B, C, H, W) -> (B, T, D)
        for block in self.blocks:
            x = block(x)
        return self.head(self.pool(self.norm(x)))  # (B, T, D) -> (B, D) -> (B, K)

    def pool(self, x: torch.Tensor) -> torch.Tensor:
        """Make what the head reads (B, D) of all tokens (B, T, D)."""
        if self.config.pool == "map":
            return self.attn_pool(x)
        if self.config.pool == "max":
            return x.amax(dim=1)
        return x[:, 0] if self.config.pool == "cls" else x.mean(dim=1)

    def embed(self, images: torch.Tensor) -> torch.Tensor:
        """Map images (B, C, H, W) to the tokens of the first block (B, T, D)."""
        x = self.patch_embed(images)
        x = add_class_token_and_positions(x, self.cls_token, self.pos_embed)
        return self.norm_pre(x) if self.config.norm_first else x


def build_model(config: ViTConfig) -> VisionTransformer:
    """Build the untrained model of a configuration: the textbook's, or the one with options."""
    has_options = isinstance(config, ViTConfigWithOptions)
    return (VisionTransformerWithOptions if has_options else VisionTransformer)(config)
