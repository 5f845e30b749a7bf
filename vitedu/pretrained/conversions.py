"""Other libraries' Vision Transformers, read into ours.

Role: ``from_torchvision`` and ``from_timm`` turn a model in memory into a ``VisionTransformer``
with the same logits, or say what ours has no place for. ``PublishedViT`` is ours with what
published models have around their blocks; LayerScale needs no place, it is multiplied into the
layer that it follows. Not here: names, downloads, files and pictures (``loading``, ``published``),
positions for another image size (``vitedu.transfer``).

Legend: D embed_dim, N num_patches, gh gw patch grid.

References: torchvision ``models/vision_transformer.py``; timm ``models/vision_transformer.py``;
Dosovitskiy et al. 2020, section 3.2 (arXiv 2010.11929), for positions at another resolution;
Touvron et al. 2021, section 2 (arXiv 2103.17239), LayerScale.
"""

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Any

import torch
from torch import nn

from vitedu.attention import merge_heads, scaled_dot_product_attention, split_heads
from vitedu.encoder import Mlp
from vitedu.options import (
    VisionTransformerWithOptions,
    ViTConfigWithOptions,
    build_model,
    with_options,
)
from vitedu.transfer import convert_torchvision_weights
from vitedu.vit import VisionTransformer, ViTConfig

NORM_EPS = 1e-6  # of every norm in vitedu.vit
# kinds of modules that ours has a place for, or that do nothing outside of training
KINDS = "VisionTransformer Sequential Conv2d Linear LayerNorm GELU Dropout Identity".split()
TORCHVISION_KINDS = [*KINDS, "Encoder", "EncoderBlock", "MLPBlock", "MultiheadAttention"]
TORCHVISION_KINDS += ["NonDynamicallyQuantizableLinear"]
TIMM_KINDS = [*KINDS, "PatchEmbed", "Block", "Attention", "Mlp", "GluMlp", "QuickGELU", "SiLU"]
TIMM_KINDS += ["LayerNormFp32", "LayerScale", "DropPath", "PatchDropout", "AttentionPoolLatent"]
TIMM_MLPS = {  # kinds of MLP and activation, and whether the last half is the gate -> our name
    ("Mlp", "GELU", False): "gelu",
    ("Mlp", "QuickGELU", False): "quick_gelu",
    ("GluMlp", "SiLU", False): "swiglu",
}


@dataclass(frozen=True)
class PublishedConfig(ViTConfigWithOptions):
    """The shape of a ``PublishedViT``; ``num_classes`` is embed_dim where there is no head."""

    norm_first: bool = False  # a norm over all tokens before the first block, as in CLIP
    norm_eps: float = NORM_EPS  # of every norm
    pool_heads: int = 0  # of the attention that pools the tokens, as in SigLIP; 0 for none


class AttentionPool(nn.Module):
    """Make one vector of all tokens: a learned query attends to them, and an MLP follows.

    Example:
        >>> AttentionPool(12, num_heads=3, hidden_dim=48)(torch.zeros(2, 5, 12)).shape
        torch.Size([2, 12])

    Reference: Zhai et al. 2021, section 3.3, the MAP head (arXiv 2106.04560).
    """

    def __init__(self, embed_dim: int, num_heads: int, hidden_dim: int):
        super().__init__()
        self.num_heads = num_heads
        self.latent = nn.Parameter(torch.zeros(1, 1, embed_dim))
        self.q = nn.Linear(embed_dim, embed_dim)
        self.kv = nn.Linear(embed_dim, 2 * embed_dim)
        self.proj = nn.Linear(embed_dim, embed_dim)
        self.norm = nn.LayerNorm(embed_dim)
        self.mlp = Mlp(embed_dim, hidden_dim)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Map tokens (B, T, D) to (B, D)."""
        query = self.q(self.latent).expand(len(x), -1, -1)  # (1, 1, D) -> (B, 1, D)
        parts = (query, *self.kv(x).chunk(2, dim=-1))
        out, _ = scaled_dot_product_attention(
            *(split_heads(each, self.num_heads) for each in parts)
        )
        x = self.proj(merge_heads(out)[:, 0])  # (B, nh, 1, hd) -> (B, D)
        return x + self.mlp(self.norm(x))


class PublishedViT(VisionTransformerWithOptions):
    """Our model with what published ones have around their blocks.

    Reference: Radford et al. 2021, section 2.4 (arXiv 2103.00020), the norm before the first block.
    """

    config: PublishedConfig

    def __init__(self, config: PublishedConfig):
        super().__init__(ViTConfigWithOptions(**_fields(config, ViTConfigWithOptions)))
        self.config = config
        self.norm_pre = nn.LayerNorm(config.embed_dim) if config.norm_first else nn.Identity()
        if config.pool_heads:
            sizes = config.embed_dim, config.pool_heads, int(config.embed_dim * config.mlp_ratio)
            self.attn_pool = AttentionPool(*sizes)
        for module in self.modules():
            if isinstance(module, nn.LayerNorm):
                module.eps = config.norm_eps

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Map images (B, C, H, W) to logits (B, K)."""
        if not self.config.pool_heads:
            return super().forward(images)
        x = self.embed(images)  # (B, C, H, W) -> (B, T, D)
        for block in self.blocks:
            x = block(x)
        return self.head(self.attn_pool(self.norm(x)))  # -> (B, D) -> (B, K)

    def embed(self, images: torch.Tensor) -> torch.Tensor:
        """Map images (B, C, H, W) to the tokens of the first block (B, T, D)."""
        return self.norm_pre(super().embed(images))


def published_config(**values) -> ViTConfig:
    """Give the simplest configuration that holds these fields; ``build`` makes its model.

    Example:
        >>> type(published_config(norm_eps=1e-5)).__name__, published_config(depth=2).depth
        ('PublishedConfig', 2)
    """
    config = PublishedConfig(**values)
    plain = _fields(config, ViTConfigWithOptions)
    is_plain = config == PublishedConfig(**plain)
    return with_options(ViTConfig(), **plain) if is_plain else config


def build(config: ViTConfig) -> VisionTransformer:
    """Build the untrained model of any configuration of ours."""
    return PublishedViT(config) if isinstance(config, PublishedConfig) else build_model(config)


def _fields(config: ViTConfig, kind: Any) -> dict[str, Any]:
    """Read the fields of a kind of configuration off another."""
    return {field.name: getattr(config, field.name) for field in fields(kind)}


def from_torchvision(model: Any) -> VisionTransformer:
    """Copy a torchvision ViT into ours.

    Its configuration is read from its shapes, so that any size converts, trained or not.

    Args:
        model: a ``torchvision.models.VisionTransformer``; it is left unchanged and shares no
            memory.

    Returns:
        A model with the same logits in eval mode, of the same device, dtype and mode. Dropout is
        left out.

    Raises:
        ValueError: it has a part that ours has no place for; the message names each.

    Example:
        >>> from torchvision.models import VisionTransformer as Theirs
        >>> from_torchvision(Theirs(32, 8, 2, 3, 12, 48, num_classes=5)).config.embed_dim
        12
    """
    from torchvision.models import VisionTransformer as Theirs

    _refuse("torchvision", _other_kinds(model, Theirs, TORCHVISION_KINDS))
    conv, blocks = model.conv_proj, list(model.encoder.layers)
    heads = list(model.heads) if isinstance(model.heads, nn.Sequential) else [model.heads]
    num_heads = {block.self_attention.num_heads for block in blocks}
    others = _differences(model, num_heads)
    if conv.kernel_size != conv.stride or conv.padding != (0, 0):
        others.append(f"a convolution {conv} whose patches are not side by side")
    if len(heads) != 1 or not isinstance(heads[0], nn.Linear):
        others.append("a head that is not one linear layer (set model.heads to an nn.Linear)")
    _refuse("torchvision", others)
    first: Any = blocks[0]
    head: Any = heads[0]
    config = published_config(
        norm_eps=first.ln_1.eps,
        image_size=model.image_size,
        patch_size=conv.kernel_size[0],
        in_channels=conv.in_channels,
        num_classes=head.out_features,
        embed_dim=model.hidden_dim,
        depth=len(blocks),
        num_heads=num_heads.pop(),
        mlp_ratio=_ratio(first.mlp[0].out_features, model.hidden_dim),
        qkv_bias=first.self_attention.in_proj_bias is not None,
    )
    body = {n: tensor for n, tensor in model.state_dict().items() if not n.startswith("heads.")}
    tensors = convert_torchvision_weights(body)
    tensors |= {f"head.{name}": tensor for name, tensor in head.state_dict().items()}
    return _assemble("torchvision", config, tensors, model.training)


def from_timm(model: Any) -> VisionTransformer:
    """Copy a timm ViT into ours.

    Class token, average or attention pooling, registers, SwiGLU, a norm before the first block,
    with or without biases and head. LayerScale is folded into the weights. Positions that timm adds
    before the class token comes (``no_embed_class``) are ours with rows of zeros.

    Args:
        model: a ``timm.models.VisionTransformer``; it is left unchanged and shares no memory.

    Returns:
        A model with the same logits in eval mode, or the same features (B, D) where there is no
        head; of the same device, dtype and mode. Dropout and stochastic depth are left out.

    Raises:
        ValueError: it has a part that ours has no place for; the message names each.

    Example:
        >>> from timm.models import VisionTransformer as Theirs  # doctest: +SKIP
        >>> theirs = Theirs(32, 8, embed_dim=12, depth=2, num_heads=3)  # doctest: +SKIP
        >>> from_timm(theirs).config.depth  # doctest: +SKIP
        2
    """
    from timm.models import VisionTransformer as Theirs

    if type(model).__name__ == "Eva":  # DINOv3, EVA-02
        _refuse("timm", ["an Eva, which turns queries and keys by other angles than our rope"])
    _refuse("timm", _other_kinds(model, Theirs, TIMM_KINDS))
    blocks, pool, has_token = list(model.blocks), model.global_pool, model.cls_token is not None
    num_heads = {block.attn.num_heads for block in blocks}
    mlps = {
        (type(mlp).__name__, type(mlp.act).__name__, getattr(mlp, "gate_last", False))
        for mlp in (block.mlp for block in blocks)
    }
    others = _differences(model, num_heads)
    if len(mlps) != 1 or mlps - TIMM_MLPS.keys():
        others.append(f"MLPs that differ, or are none of {', '.join(TIMM_MLPS.values())}")
    if pool not in ("token", "avg", "map"):
        others.append(f"pooling by {pool!r} (global_pool='token')")
    height, width = model.patch_embed.img_size
    if height != width:
        others.append(f"images of {height} x {width} pixels, which are no squares")
    registers = 0 if model.reg_token is None else model.reg_token.shape[1]
    if registers and not has_token:
        others.append(f"registers, {registers} without a class token (reg_tokens=0)")
    if pool in ("avg", "map") and has_token:
        others.append(f"a class token beside pooling by {pool!r} (global_pool='token')")
    _refuse("timm", others)
    first = blocks[0]
    has_head = isinstance(model.head, nn.Linear)
    config = published_config(
        norm_first=not isinstance(model.norm_pre, nn.Identity),
        pool_heads=model.attn_pool.num_heads if pool == "map" else 0,
        norm_eps=first.norm1.eps,
        image_size=height,
        patch_size=model.patch_embed.patch_size[0],
        in_channels=model.patch_embed.proj.in_channels,
        num_classes=model.head.out_features if has_head else model.embed_dim,
        embed_dim=model.embed_dim,
        depth=len(blocks),
        num_heads=num_heads.pop(),
        mlp_ratio=_ratio(first.mlp.fc1.out_features, model.embed_dim),
        qkv_bias=first.attn.qkv.bias is not None,
        pool="cls" if has_token else "mean",
        num_registers=registers,
        mlp=TIMM_MLPS[mlps.pop()],
    )
    tensors, like = fold_layer_scale(model.state_dict()), model.patch_embed.proj.weight
    if not has_token:
        tensors["cls_token"] = like.new_zeros(1, 0, config.embed_dim)
    if registers:  # behind the class token, (1, 1, D) and (1, R, D) -> (1, 1+R, D)
        tensors["cls_token"] = torch.cat([model.cls_token, tensors.pop("reg_token")], dim=1)
    if has_token and model.no_embed_class and model.pos_embed is not None:
        rows = like.new_zeros(1, 1 + registers, config.embed_dim)
        tensors["pos_embed"] = torch.cat([rows, model.pos_embed], dim=1)  # (1, N, D) -> (1, T, D)
    return _assemble("timm", config, tensors, model.training)


# names of Hugging Face's transformers, of version 4 and 5 -> timm's, in the order of reading
HUGGING_FACE = {
    r"^(vit|deit|dinov2|base_model)\.": "",
    r"^embeddings\.patch_embeddings\.projection": "patch_embed.proj",
    r"^embeddings\.position_embeddings": "pos_embed",
    r"^embeddings\.": "",
    r"^(encoder\.)?layers?\.": "blocks.",
    r"\.layernorm_before\.": ".norm1.",
    r"\.layernorm_after\.": ".norm2.",
    r"\.layer_scale(\d)\.lambda1": r".ls\1.gamma",
    r"\.attention\.(attention\.)?(q|k|v)(uery|ey|alue|_proj)\.": r".attn.\2.",
    r"\.attention\.(output\.dense|o_proj)\.": ".attn.proj.",
    r"\.intermediate\.dense\.": ".mlp.fc1.",
    r"\.output\.dense\.": ".mlp.fc2.",
    r"^layernorm\.": "norm.",
    r"^classifier\.": "head.",
}


def convert_huggingface_weights(state_dict: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Give the weights of a ViT of Hugging Face's transformers timm's names; others stay.

    It keeps the projections to q, k and v apart, which are stacked here.

    Example:
        >>> parts = {f"vit.layers.0.attention.{p}_proj.bias": torch.zeros(4) for p in "qkv"}
        >>> {name: len(t) for name, t in convert_huggingface_weights(parts).items()}
        {'blocks.0.attn.qkv.bias': 12}
    """
    converted: dict[str, torch.Tensor] = {}
    apart: dict[str, dict[str, torch.Tensor]] = {}
    for name, tensor in state_dict.items():
        for theirs, ours in HUGGING_FACE.items():
            name = re.sub(theirs, ours, name)
        if found := re.fullmatch(r"(.*\.attn)\.([qkv])\.(\w+)", name):
            apart.setdefault(f"{found[1]}.qkv.{found[3]}", {})[found[2]] = tensor
        elif not name.startswith("pooler."):  # reads the class token; no classifier uses it
            converted[name] = tensor
    return converted | {n: torch.cat([parts[p] for p in "qkv"]) for n, parts in apart.items()}


def fold_layer_scale(state_dict: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Multiply every LayerScale of timm's names into the linear layer before it.

    A factor for each feature behind a linear layer is a factor for each row of its matrix and each
    number of its bias, so the plain block computes the same.

    Args:
        state_dict: with ``ls1.gamma`` and ``ls2.gamma`` (D,), or without; it is left unchanged.

    Returns:
        The tensors without these factors.

    Example:
        >>> weights = {"ls1.gamma": torch.tensor([2.0]), "attn.proj.weight": torch.ones(1, 3)}
        >>> fold_layer_scale(weights)
        {'attn.proj.weight': tensor([[2., 2., 2.]])}
    """
    tensors = dict(state_dict)
    for factor, layer in (("ls1.gamma", "attn.proj"), ("ls2.gamma", "mlp.fc2")):
        for name in [name for name in state_dict if name.endswith(factor)]:
            gamma, layer_name = tensors.pop(name), name.removesuffix(factor) + layer
            if (bias := f"{layer_name}.bias") in tensors:
                tensors[bias] = gamma * tensors[bias]
            tensors[f"{layer_name}.weight"] = gamma[:, None] * tensors[f"{layer_name}.weight"]
    return tensors


def _ratio(hidden: int, embed_dim: int) -> float:
    """Return the mlp_ratio for which ``int(embed_dim * mlp_ratio)`` is the hidden width."""
    ratio = hidden / embed_dim
    if int(embed_dim * ratio) != hidden:  # rounded down, just below the whole number
        ratio = math.nextafter(ratio, math.inf)
    return ratio


def _assemble(
    library: str, config: ViTConfig, tensors: dict[str, torch.Tensor], training: bool
) -> VisionTransformer:
    """Build our model around copies of the tensors; a bias that is missing there is zero here."""
    with torch.device("meta"):  # no memory, no random numbers: every value is replaced
        model = build(config)
        if "head.weight" not in tensors:  # the output is what a head would read
            model.register_module("head", nn.Identity())
    state = {name: tensor.detach().clone() for name, tensor in tensors.items()}
    expected = model.state_dict()
    for name, tensor in expected.items():
        if name not in state and name.endswith(".bias"):
            state[name] = state["patch_embed.proj.weight"].new_zeros(tensor.shape)
    shapes, wanted = ({n: t.shape for n, t in each.items()} for each in (state, expected))
    differing = [name for name in shapes | wanted if shapes.get(name) != wanted.get(name)]
    if differing:
        _refuse(library, [f"parameters of other names or shapes: {_places(differing)}"])
    model.load_state_dict(state, assign=True)
    return model.train(training)


def _refuse(library: str, parts: list[str]) -> None:
    """Raise if there is anything that ours has no place for."""
    if parts:
        plain = {"torchvision": "vit_b_16", "timm": "vit_base_patch16_224"}[library]
        raise ValueError(
            f"this {library} model cannot become a vitedu VisionTransformer, which has no place "
            f"for {'; '.join(parts)}. With published weights, choose a plain model instead, such "
            f"as {plain}."
        )


def _other_kinds(model: Any, theirs: Any, kinds: list[str]) -> list[str]:
    """Name the modules of a kind that ours has no place for."""
    if type(model) is not theirs:  # a subclass may compute something else
        return [f"a {type(model).__name__} (pass a {theirs.__module__}.{theirs.__name__} itself)"]
    places: dict[str, list[str]] = {}
    for name, part in model.named_modules():
        if type(part).__name__ not in kinds or getattr(part, "approximate", "none") != "none":
            places.setdefault(str(part).partition("\n")[0].rstrip("("), []).append(name)
    return [f"{kind} at {_places(names)}" for kind, names in places.items()]


def _differences(model: nn.Module, num_heads: set[int]) -> list[str]:
    """Say where blocks differ, or norms: ours have one number of heads and one eps."""
    eps = {part.eps for part in model.modules() if isinstance(part, nn.LayerNorm)}
    many: dict[str, set] = {"blocks with {} heads": num_heads, "norms with eps {}": eps}
    return [words.format(sorted(found)) for words, found in many.items() if len(found) != 1]


def _places(names: Iterable[str]) -> str:
    """Write names of parts, those of all blocks as one."""
    return ", ".join(dict.fromkeys(re.sub(r"(?<=[._])\d+", "*", name) for name in names))
