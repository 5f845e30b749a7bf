"""Other libraries' Vision Transformers, read into ours.

Role: ``from_torchvision`` and ``from_timm`` turn a model in memory into a ``VisionTransformer``
that computes the same logits from the same image, or say why not. LayerScale needs no place, it is
multiplied into the layer that it follows. Not here: names, downloads, files and pictures
(``loading``, ``published``), positions for another image size (``vitedu.transfer``).

Legend: D embed_dim, N num_patches, gh gw patch grid.

References: torchvision ``models/vision_transformer.py``; timm ``models/vision_transformer.py``;
Dosovitskiy et al. 2020, section 3.2 (arXiv 2010.11929), for positions at another resolution;
Touvron et al. 2021, section 2 (arXiv 2103.17239), LayerScale.
"""

import math
import re
from typing import Any

import torch
from torch import nn

from vitedu.extras.options import build_model, with_options
from vitedu.transfer import convert_torchvision_weights
from vitedu.vit import VisionTransformer, ViTConfig

TOLERANCE = 1e-3  # of logits whose size is about 1; another activation moves them by more
TIMM_MLPS = {  # kinds of MLP and activation -> our name
    ("Mlp", "GELU"): "gelu",
    ("Mlp", "QuickGELU"): "quick_gelu",
    ("GluMlp", "SiLU"): "swiglu",
}


def from_torchvision(model: Any) -> VisionTransformer:
    """Copy a torchvision ViT into ours.

    Its configuration is read from its shapes, so that any size converts, trained or not.

    Args:
        model: a ``torchvision.models.VisionTransformer``; it comes to eval mode and shares no
            memory.

    Returns:
        A model with the same logits, in eval mode and of the same dtype. Dropout is left out.

    Raises:
        ValueError: it has a part that ours has no place for, or its logits are others.

    Example:
        >>> from torchvision.models import VisionTransformer as Theirs
        >>> from_torchvision(Theirs(32, 8, 2, 3, 12, 48, num_classes=5)).config.embed_dim
        12
    """
    from torchvision.models import VisionTransformer as Theirs

    _refuse_kind(model, Theirs)
    first = model.encoder.layers[0]
    config = with_options(
        ViTConfig(),
        norm_eps=first.ln_1.eps,
        image_size=model.image_size,
        patch_size=model.patch_size,
        in_channels=model.conv_proj.in_channels,
        num_classes=model.num_classes,
        embed_dim=model.hidden_dim,
        depth=len(model.encoder.layers),
        num_heads=first.num_heads,
        mlp_ratio=_ratio(model.mlp_dim, model.hidden_dim),
    )
    return _assemble(config, convert_torchvision_weights(model.state_dict()), model)


def from_timm(model: Any) -> VisionTransformer:
    """Copy a timm ViT into ours.

    Class token, average or attention pooling, registers, SwiGLU, a norm before the first block,
    with or without biases and head. LayerScale is folded into the weights. Positions that timm adds
    before the class token comes (``no_embed_class``) are ours with rows of zeros.

    Args:
        model: a ``timm.models.VisionTransformer``; it comes to eval mode and shares no memory.

    Returns:
        A model with the same logits, or features (B, D) where there is no head, in eval mode and of
        the same dtype. Dropout and stochastic depth are left out.

    Raises:
        ValueError: it has a part that ours has no place for, or its logits are others.

    Example:
        >>> from timm.models import VisionTransformer as Theirs  # doctest: +SKIP
        >>> theirs = Theirs(32, 8, embed_dim=12, depth=2, num_heads=3)  # doctest: +SKIP
        >>> from_timm(theirs).config.depth  # doctest: +SKIP
        2
    """
    from timm.models import VisionTransformer as Theirs

    if type(model).__name__ == "Eva":  # DINOv3, EVA-02
        _refuse("an Eva, which turns queries and keys by other angles than our rope")
    _refuse_kind(model, Theirs)
    first, pool, has_token = model.blocks[0], model.global_pool, model.cls_token is not None
    if type(first).__name__ != "Block":
        _refuse(f"a {type(first).__name__}")
    mlp = type(first.mlp).__name__, type(first.mlp.act).__name__
    if mlp not in TIMM_MLPS:
        _refuse(f"an MLP that is a {mlp[0]} with {mlp[1]}")
    if pool not in (("token",) if has_token else ("avg", "map")):
        _refuse(f"pooling by {pool!r} with{'' if has_token else 'out'} a class token")
    registers = 0 if model.reg_token is None else model.reg_token.shape[1]
    config = with_options(
        ViTConfig(),
        norm_first=not isinstance(model.norm_pre, nn.Identity),
        norm_eps=first.norm1.eps,
        image_size=model.patch_embed.img_size[0],
        patch_size=model.patch_embed.patch_size[0],
        in_channels=model.patch_embed.proj.in_channels,
        num_classes=model.num_classes or model.embed_dim,
        embed_dim=model.embed_dim,
        depth=len(model.blocks),
        num_heads=first.attn.num_heads,
        mlp_ratio=_ratio(first.mlp.fc1.out_features, model.embed_dim),
        qkv_bias=first.attn.qkv.bias is not None,
        pool="cls" if has_token else pool.replace("avg", "mean"),
        num_registers=registers,
        mlp=TIMM_MLPS[mlp],
    )
    tensors, like = fold_layer_scale(model.state_dict()), model.patch_embed.proj.weight
    if not has_token:
        tensors["cls_token"] = like.new_zeros(1, 0, config.embed_dim)
    if registers:  # behind the class token, (1, 1, D) and (1, R, D) -> (1, 1+R, D)
        tensors["cls_token"] = torch.cat([model.cls_token, tensors.pop("reg_token")], dim=1)
    if has_token and model.no_embed_class and model.pos_embed is not None:
        rows = like.new_zeros(1, 1 + registers, config.embed_dim)
        tensors["pos_embed"] = torch.cat([rows, model.pos_embed], dim=1)  # (1, N, D) -> (1, T, D)
    return _assemble(config, tensors, model)


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
    config: ViTConfig, tensors: dict[str, torch.Tensor], theirs: nn.Module
) -> VisionTransformer:
    """Build our model around copies of the tensors, and see that it computes what theirs does.

    A bias that is missing there is zero here. Tensors on "meta" hold no numbers to compute with.
    """
    with torch.device("meta"):  # no memory, no random numbers: every value is replaced
        model = build_model(config)
        if "head.weight" not in tensors:  # the output is what a head would read
            model.register_module("head", nn.Identity())
    state = {name: tensor.detach().clone() for name, tensor in tensors.items()}
    like, expected = state["patch_embed.proj.weight"], model.state_dict()
    for name, tensor in expected.items():
        if name not in state and name.endswith(".bias"):
            state[name] = like.new_zeros(tensor.shape)
    shapes, wanted = ({n: t.shape for n, t in each.items()} for each in (state, expected))
    differing = [name for name in shapes | wanted if shapes.get(name) != wanted.get(name)]
    if differing:
        places = dict.fromkeys(re.sub(r"(?<=[._])\d+", "*", name) for name in differing)
        _refuse(f"parameters of other names or shapes: {', '.join(places)}")
    model.load_state_dict(state, assign=True)
    if not like.is_meta:
        size = 1, config.in_channels, config.image_size, config.image_size
        image = torch.randn(size, generator=torch.Generator().manual_seed(0)).to(like)
        with torch.no_grad():
            logits, found = theirs.eval()(image), model.eval()(image)
        difference = (found - logits).abs().max().item() / max(1, logits.abs().max().item())
        if not difference <= TOLERANCE:
            _refuse(f"something without parameters: logits differ by {difference:.1e}")
    return model.eval()


def _refuse_kind(model: Any, theirs: Any) -> None:
    """Raise if a model is no ViT of the library itself; a subclass may compute something else."""
    if type(model) is not theirs:
        kind = f"{theirs.__module__}.{theirs.__name__}"
        _refuse(f"a {type(model).__name__}, only for a {kind} itself")


def _refuse(part: str) -> None:
    """Raise, since a model has something that ours has no place for."""
    raise ValueError(
        f"this model cannot become a vitedu VisionTransformer, which has no place for {part}. With "
        "published weights, choose a plain model instead, such as vit_b_16 of torchvision or "
        "vit_base_patch16_224 of timm."
    )
