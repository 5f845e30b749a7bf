"""The destination of notebooks 01 to 03: the whole Vision Transformer, and a way to look inside it.

Role: configuration, presets, the model, ``capture``. Not here: its parts (``patches``,
``attention``, ``encoder``), what it can have besides (``options``) and its training (``training``,
``fitting``).

Legend: B batch, C H W image, N num_patches, T num_tokens, D embed_dim, K classes. timm's attribute
names throughout; ``in_channels`` follows torch.

Reference: Dosovitskiy et al. 2020 (arXiv 2010.11929); timm ``vision_transformer.py``.
"""

import inspect
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import nn

from vitedu.attention import MultiHeadAttention
from vitedu.encoder import EncoderBlock
from vitedu.patches import PatchEmbed, add_class_token_and_positions


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

    def __new__(cls, *values, **fields):
        if cls is ViTConfig and (others := [name for name in fields if not hasattr(cls, name)]):
            raise TypeError(
                f"ViTConfig has no field {', '.join(others)}, only {', '.join(vars(ViTConfig()))}; "
                "vitedu.extras.options.ViTConfigWithOptions has the options."
            )
        return super().__new__(cls)

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
        """Tokens before the patches: the class token."""
        return 1

    @property
    def num_tokens(self) -> int:
        """T = num_patches + num_prefix_tokens."""
        return self.num_patches + self.num_prefix_tokens


# what Python shows as the arguments: the fields
vars(ViTConfig.__new__)["__signature__"] = inspect.signature(ViTConfig.__init__)

PRESETS: dict[str, ViTConfig] = {
    # the course's own, for 32 px images and ten classes; ``options`` has more
    "vit_micro_patch8_32": ViTConfig(patch_size=8, embed_dim=128, depth=4, num_heads=4),
    "vit_tiny_patch4_32": ViTConfig(patch_size=4, embed_dim=192, depth=6, num_heads=3),
    "vit_pico_patch4_32": ViTConfig(embed_dim=96, depth=4, num_heads=3, mlp_ratio=2),
    # the published sizes, for 224 px images and the 1000 classes of ImageNet
    "vit_tiny_patch16_224": ViTConfig(224, 16, 3, 1000, embed_dim=192, depth=12, num_heads=3),
    "vit_small_patch16_224": ViTConfig(224, 16, 3, 1000, embed_dim=384, depth=12, num_heads=6),
    "vit_base_patch16_224": ViTConfig(224, 16, 3, 1000, embed_dim=768, depth=12, num_heads=12),
    "vit_large_patch16_224": ViTConfig(224, 16, 3, 1000, embed_dim=1024, depth=24, num_heads=16),
    "vit_huge_patch14_224": ViTConfig(224, 14, 3, 1000, embed_dim=1280, depth=32, num_heads=16),
}

# without one in the projection to q, k, v
BlockWithoutBias = partial(EncoderBlock, attention=partial(MultiHeadAttention, qkv_bias=False))


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
        self.patch_embed = PatchEmbed(config.patch_size, config.in_channels, D)
        self.cls_token = nn.Parameter(torch.zeros(1, 1, D))
        self.pos_embed = nn.Parameter(torch.zeros(1, config.num_tokens, D))
        Block = EncoderBlock if config.qkv_bias else BlockWithoutBias
        self.blocks = nn.ModuleList(
            Block(D, config.num_heads, config.mlp_ratio) for _ in range(config.depth)
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
        x = x[:, 0]  # the class token, (B, T, D) -> (B, D)
        return self.head(x)  # (B, D) -> (B, K)


def initialise(model: VisionTransformer) -> None:
    """Give a model its starting values, in place.

    Linear weights, class token and positions: normal, standard deviation 0.02, cut at two of them
    (which leaves 0.0176). Linear biases: zero. The patch convolution and the norms keep torch's
    defaults. Departure from timm: its values are not cut, and its class token starts near 0.

    Raises:
        TypeError: the configuration has options, and the model knows none.
    """
    config = getattr(model, "config", None)
    if hasattr(config, "has_options") and not hasattr(model, "has_options"):
        raise TypeError(
            f"{type(model).__name__} takes a ViTConfig (got a {type(config).__name__}); "
            "vitedu.extras.options.build_model(config) builds a model with options."
        )
    for module in model.modules():
        if isinstance(module, nn.Linear):
            nn.init.trunc_normal_(module.weight, std=0.02, a=-0.04, b=0.04)
            if module.bias is not None:
                nn.init.zeros_(module.bias)
    nn.init.trunc_normal_(model.pos_embed, std=0.02, a=-0.04, b=0.04)
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
        >>> tensors = capture(model, torch.zeros(2, 3, 32, 32))
        >>> tensors["blocks.0.attn.weights"].shape
        torch.Size([2, 4, 17, 17])
    """
    tensors: dict[str, torch.Tensor] = {}

    def store(name):
        def hook(module, inputs, output):
            if isinstance(output, tuple):  # attention: (output, weights)
                output, weights = output
                tensors[f"{name}.weights"] = weights.detach()
            tensors[name] = output.detach()

        return hook

    def store_tokens(module, inputs):
        tensors["tokens"] = inputs[0].detach()

    handles = [
        module.register_forward_hook(store(name))
        for name, module in model.named_modules()
        if name and not isinstance(module, nn.ModuleList)
    ]
    blocks: Any = getattr(model, "blocks", ())
    if len(blocks):
        handles.append(blocks[0].register_forward_pre_hook(store_tokens))
    modes = {module: module.training for module in model.modules()}
    fused: list[Any] = [module for module in model.modules() if getattr(module, "fused", False)]
    try:
        model.eval()
        for layer in fused:
            layer.fused = False  # the fused kernel forms no weights to look at
        with torch.no_grad():
            tensors["logits"] = model(images)
    finally:
        for handle in handles:
            handle.remove()
        for layer in fused:
            layer.fused = True
        for part, training in modes.items():
            part.training = training
    return tensors
