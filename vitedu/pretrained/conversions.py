"""Other libraries' Vision Transformers, read into ours.

Role: ``from_torchvision`` and ``from_timm`` turn a model in memory into a ``VisionTransformer``
with the same logits, or say what ours has no place for. ``PublishedViT`` is ours with what CLIP's
image encoder has around its blocks; LayerScale needs no place, it is multiplied into the layer that
it follows. Not here: names, downloads, files and pictures (``loading``,
``published``), positions for another image size (``vitedu.transfer``).

Legend: D embed_dim, N num_patches, gh gw patch grid.

References: torchvision ``models/vision_transformer.py``; timm ``models/vision_transformer.py``;
Dosovitskiy et al. 2020, section 3.2 (arXiv 2010.11929), for positions at another resolution;
Touvron et al. 2021, section 2 (arXiv 2103.17239), LayerScale.
"""

import math
from collections.abc import Iterator
from typing import Any

import torch
from torch import nn

from vitedu.options import VisionTransformerWithOptions, build_model, with_options
from vitedu.transfer import convert_torchvision_weights
from vitedu.vit import VisionTransformer, ViTConfig

NORM_EPS = 1e-6  # of every norm in vitedu.vit
# what ``build_model`` builds, in the words of ``PublishedViT``
DEFAULTS = {"norm_first": False, "norm_eps": NORM_EPS}


class PublishedViT(VisionTransformerWithOptions):
    """Our model with two departures that its configuration does not know.

    Args:
        config: its ``num_classes`` is the width of the output, embed_dim where there is no head.
        norm_first: a norm over all tokens before the first block, as in CLIP.
        norm_eps: of every norm.

    Reference: Radford et al. 2021, section 2.4 (arXiv 2103.00020), the norm before the first block.
    """

    def __init__(self, config: ViTConfig, *, norm_first: bool = False, norm_eps: float = NORM_EPS):
        super().__init__(config)
        self.norm_pre = nn.LayerNorm(config.embed_dim) if norm_first else nn.Identity()
        for module in self.modules():
            if isinstance(module, nn.LayerNorm):
                module.eps = norm_eps

    def embed(self, images: torch.Tensor) -> torch.Tensor:
        """Map images (B, C, H, W) to the tokens of the first block (B, T, D)."""
        return self.norm_pre(super().embed(images))


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
        ValueError: it has a part that ours has no place for; the message names each, and the
            remedy.

    Example:
        >>> from torchvision.models import VisionTransformer as Theirs
        >>> from_torchvision(Theirs(32, 8, 2, 3, 12, 48, num_classes=5)).config.embed_dim
        12
    """
    _raise_obstacles("torchvision", _torchvision_obstacles(model))
    first = model.encoder.layers[0]
    head = model.heads if isinstance(model.heads, nn.Linear) else model.heads[0]
    config = ViTConfig(
        image_size=model.image_size,
        patch_size=model.conv_proj.kernel_size[0],
        in_channels=model.conv_proj.in_channels,
        num_classes=head.out_features,
        embed_dim=model.hidden_dim,
        depth=len(model.encoder.layers),
        num_heads=first.self_attention.num_heads,
        mlp_ratio=_ratio(first.mlp[0].out_features, model.hidden_dim),
        qkv_bias=first.self_attention.in_proj_bias is not None,
    )
    body = {n: tensor for n, tensor in model.state_dict().items() if not n.startswith("heads.")}
    tensors = convert_torchvision_weights(body)
    tensors |= {f"head.{name}": tensor for name, tensor in head.state_dict().items()}
    return _assemble(config, tensors, model.training)


def from_timm(model: Any) -> VisionTransformer:
    """Copy a timm ViT into ours.

    Class token or average pooling, registers, SwiGLU, a norm before the first block, with or
    without biases and head. LayerScale is folded into the weights. Positions that timm adds before
    the class token comes (``no_embed_class``) are ours with rows of zeros.

    Args:
        model: a ``timm.models.VisionTransformer``; it is left unchanged and shares no memory.

    Returns:
        A model with the same logits in eval mode, or the same features (B, D) where there is no
        head; of the same device, dtype and mode. Dropout and stochastic depth are left out.

    Raises:
        ValueError: it has a part that ours has no place for; the message names each, and the
            remedy.

    Example:
        >>> from timm.models import VisionTransformer as Theirs  # doctest: +SKIP
        >>> theirs = Theirs(32, 8, embed_dim=12, depth=2, num_heads=3)  # doctest: +SKIP
        >>> from_timm(theirs).config.depth  # doctest: +SKIP
        2
    """
    _raise_obstacles("timm", _timm_obstacles(model))
    first = model.blocks[0]
    has_head = isinstance(model.head, nn.Linear)
    registers = 0 if model.reg_token is None else model.reg_token.shape[1]
    config = with_options(
        ViTConfig(),
        image_size=model.patch_embed.img_size[0],
        patch_size=model.patch_embed.patch_size[0],
        in_channels=model.patch_embed.proj.in_channels,
        num_classes=model.head.out_features if has_head else model.embed_dim,
        embed_dim=model.embed_dim,
        depth=len(model.blocks),
        num_heads=first.attn.num_heads,
        mlp_ratio=_ratio(first.mlp.fc1.out_features, model.embed_dim),
        qkv_bias=first.attn.qkv.bias is not None,
        pool="cls" if model.cls_token is not None else "mean",
        num_registers=registers,
        mlp=_kind_of_mlp(first.mlp),
    )
    tensors = fold_layer_scale(model.state_dict())
    if model.cls_token is None:
        tensors["cls_token"] = model.pos_embed.new_zeros(1, 0, config.embed_dim)
    if registers:  # behind the class token, (1, 1, D) and (1, R, D) -> (1, 1+R, D)
        tensors["cls_token"] = torch.cat([model.cls_token, tensors.pop("reg_token")], dim=1)
    if model.cls_token is not None and model.no_embed_class:
        rows = model.pos_embed.new_zeros(1, 1 + registers, config.embed_dim)
        tensors["pos_embed"] = torch.cat([rows, model.pos_embed], dim=1)  # (1, N, D) -> (1, T, D)
    changes = {"norm_first": not _is_identity(model.norm_pre), "norm_eps": first.norm1.eps}
    return _assemble(config, tensors, model.training, changes)


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


def _kind_of_mlp(mlp: Any) -> str:
    """Give the name that our configuration has for a timm MLP."""
    if hasattr(mlp, "gate_last"):
        return "swiglu"
    return "quick_gelu" if type(mlp.act).__name__ == "QuickGELU" else "gelu"


def _ratio(hidden: int, embed_dim: int) -> float:
    """Return the mlp_ratio for which ``int(embed_dim * mlp_ratio)`` is the hidden width."""
    ratio = hidden / embed_dim
    if int(embed_dim * ratio) != hidden:  # rounded down, just below the whole number
        ratio = math.nextafter(ratio, math.inf)
    return ratio


def _assemble(
    config: ViTConfig, tensors: dict[str, torch.Tensor], training: bool, changes: dict = DEFAULTS
) -> VisionTransformer:
    """Build our model around copies of the tensors; a bias that is missing there is zero here."""
    with torch.device("meta"):  # no memory, no random numbers: every value is replaced
        model = build_model(config) if changes == DEFAULTS else PublishedViT(config, **changes)
        if "head.weight" not in tensors:  # the output is what a head would read
            model.register_module("head", nn.Identity())
    state = {name: tensor.detach().clone() for name, tensor in tensors.items()}
    for name, expected in model.state_dict().items():
        if name not in state and name.endswith(".bias"):
            state[name] = state["pos_embed"].new_zeros(expected.shape)
    try:
        model.load_state_dict(state, assign=True)
    except RuntimeError as error:
        raise ValueError(
            f"the model is no plain ViT: its blocks differ, or it has other parameters. {error}"
        ) from None
    return model.train(training)


def _raise_obstacles(library: str, iterator: Iterator[str]) -> None:
    """Raise if there is anything that ours has no place for."""
    obstacles = list(iterator)
    if obstacles:
        raise ValueError(
            f"this {library} model cannot become a vitedu VisionTransformer, which has no place "
            "for "
            + "; ".join(obstacles)
            + ". With published weights, choose a plain model instead, such as "
            + ("vit_b_16." if library == "torchvision" else "vit_base_patch16_224.")
        )


def _torchvision_obstacles(model: Any) -> Iterator[str]:
    """Name each part of a torchvision model that ours has no place for, with the remedy."""
    from torchvision.models import vision_transformer as library

    kind = type(model)
    if kind is not library.VisionTransformer:  # a subclass may compute something else
        yield f"a {kind.__name__} (pass a torchvision.models.VisionTransformer itself)"
        return
    conv, P = model.conv_proj, model.patch_size
    if not isinstance(conv, nn.Conv2d):
        yield "a conv stem (build the model with conv_stem_configs=None)"
    elif conv.kernel_size != (P, P) or conv.stride != (P, P) or conv.padding != (0, 0):
        yield f"a convolution {conv} whose patches are not side by side (kernel_size=stride={P})"
    if isinstance(model.heads, nn.Sequential) and hasattr(model.heads, "pre_logits"):
        yield "pre_logits, a hidden layer in the head (representation_size=None)"
    elif not isinstance(model.heads, nn.Linear) and not (
        isinstance(model.heads, nn.Sequential)
        and len(model.heads) == 1
        and isinstance(model.heads[0], nn.Linear)
    ):
        yield "a head that is not one linear layer (set model.heads to an nn.Linear)"
    blocks = list(model.encoder.layers)
    yield from _block_obstacles([block.self_attention.num_heads for block in blocks])
    norms = [norm for block in blocks for norm in (block.ln_1, block.ln_2)]
    yield from _norm_obstacles([*norms, model.encoder.ln])
    yield from _activation_obstacles([block.mlp[1] for block in blocks], nn.GELU)


def _timm_obstacles(model: Any) -> Iterator[str]:
    """Name each part of a timm model that ours has no place for, with the remedy."""
    from timm.layers import GluMlp, QuickGELU
    from timm.layers.activations import GELU
    from timm.models import vision_transformer as library

    if getattr(model, "dist_token", None) is not None:
        yield "a distillation token (use the model without it, such as deit_base_patch16_224)"
        return
    kind = type(model)
    if kind is not library.VisionTransformer:  # a subclass may compute something else
        yield f"a {kind.__name__} (pass a timm.models.VisionTransformer itself)"
        return

    # from pixels to the first block
    embed = model.patch_embed
    if type(embed) is not library.PatchEmbed:
        yield f"a stem of type {type(embed).__name__} (embed_layer=PatchEmbed)"
    elif not _is_identity(embed.norm):
        yield "a norm inside the patch embedding (embed_norm_layer=None)"
    elif len(set(embed.img_size)) > 1 or len(set(embed.patch_size)) > 1:
        yield (
            f"images or patches that are not square, {embed.img_size} and {embed.patch_size} "
            "(give one number for img_size and patch_size)"
        )
    if model.reg_token is not None and model.cls_token is None:
        yield f"registers, {model.reg_token.shape[1]} without a class token (reg_tokens=0)"
    if model.pos_embed is None:
        yield "a model without learned positions (pos_embed='learn')"

    # the blocks
    blocks = list(model.blocks)
    kinds: set[type] = {type(block) for block in blocks} - {library.Block}
    kinds |= {type(block.attn) for block in blocks if hasattr(block, "attn")} - {library.Attention}
    kinds |= {type(block.mlp) for block in blocks if hasattr(block, "mlp")} - {library.Mlp, GluMlp}
    if kinds:
        names = ", ".join(sorted(kind.__name__ for kind in kinds))
        yield f"blocks made of {names} (leave block_fn, attn_layer and mlp_layer alone)"
    else:
        yield from _block_obstacles([block.attn.num_heads for block in blocks])
        if any(block.attn.head_dim * block.attn.num_heads != model.embed_dim for block in blocks):
            yield "heads that are not embed_dim / num_heads wide (leave attn_head_dim alone)"
        if not all(_is_identity(block.attn.q_norm) for block in blocks):
            yield "QK-norm (qk_norm=False)"
        inner = [getattr(part, "norm", None) for b in blocks for part in (b.attn, b.mlp)]
        if not all(_is_identity(norm) for norm in inner):
            yield "a norm inside attention or MLP (scale_attn_norm=False, scale_mlp_norm=False)"
        if any(getattr(block.attn, "gate", None) is not None for block in blocks):
            yield "gated attention (gated=False)"
        gated = [block.mlp for block in blocks if isinstance(block.mlp, GluMlp)]
        if any(mlp.gate_last or not isinstance(mlp.act, nn.SiLU) for mlp in gated):
            yield "a gated MLP other than SwiGLU (mlp_layer=SwiGLUPacked)"
        plain = [block.mlp.act for block in blocks if not isinstance(block.mlp, GluMlp)]
        yield from _activation_obstacles(plain, nn.GELU, GELU, QuickGELU)
        if len({_kind_of_mlp(block.mlp) for block in blocks}) > 1:
            yield "blocks whose MLPs differ (use one mlp_layer and act_layer)"

    # from the last block to the logits
    if getattr(model, "attn_pool", None) is not None or model.global_pool not in ("token", "avg"):
        yield f"pooling by {model.global_pool!r} (global_pool='token')"
    elif model.cls_token is not None and model.global_pool == "avg":
        yield "a class token beside average pooling (global_pool='token', or class_token=False)"
    if not _is_identity(model.fc_norm):
        yield "fc_norm, a norm after pooling (fc_norm=False)"
    elif _is_identity(model.norm):
        yield "a model without a last norm (final_norm=True)"
    if not isinstance(model.head, nn.Linear) and not _is_identity(model.head):
        yield f"a head of type {type(model.head).__name__} (num_classes)"
    if not kinds:
        norms = [norm for block in blocks for norm in (block.norm1, block.norm2)]
        norms += [norm for norm in (model.norm_pre, model.norm) if not _is_identity(norm)]
        eps = {norm.eps for norm in norms if isinstance(norm, nn.LayerNorm)}
        yield from _norm_obstacles(norms, eps=eps.pop() if len(eps) == 1 else NORM_EPS)


def _is_identity(module: nn.Module | None) -> bool:
    return module is None or isinstance(module, nn.Identity)


def _block_obstacles(heads: list[int]) -> Iterator[str]:
    """Find models without blocks, and blocks that differ in their number of heads."""
    if len(set(heads)) != 1:
        yield f"blocks with {heads} heads (use one number of heads, and at least one block)"


def _norm_obstacles(norms: list[nn.Module], eps: float = NORM_EPS) -> Iterator[str]:
    """Find norms of another class or with another eps, which would change every logit a little."""
    for norm in norms:
        if not isinstance(norm, nn.LayerNorm) or norm.weight is None:
            yield f"a norm of type {type(norm).__name__} (norm_layer=LayerNorm, with a weight)"
            return
        if norm.eps != eps:
            yield (
                f"LayerNorm with eps={norm.eps:g}, ours is {eps:g} "
                f"(norm_layer=partial(LayerNorm, eps={eps:g}))"
            )
            return


def _activation_obstacles(activations: list[nn.Module], *allowed: type) -> Iterator[str]:
    """Find MLPs that bend with anything but the exact GELU."""
    for act in activations:
        if not isinstance(act, allowed) or getattr(act, "approximate", "none") != "none":
            yield f"the activation {act} (act_layer=nn.GELU, without an approximation)"
            return
