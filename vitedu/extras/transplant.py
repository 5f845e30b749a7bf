"""Torch's own encoder as a closed box, and weights that move from one model to another.

Role: ``TorchEncoderViT`` is the model of notebook 01, whose blocks are torch's; notebook 02 puts
the student's attention into it (``replace_attention``), notebooks 02 and 03 move its weights into
the student's parts (``transplant``). Not here: files of weights (``pretrained``).

Legend: B batch, C H W image, N num_patches, T num_tokens, D embed_dim, K classes.
"""

import copy
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from vitedu.attention import MultiHeadAttention
from vitedu.patches import PatchEmbed, add_class_token_and_positions
from vitedu.vit import ViTConfig, initialise

NAMES = {  # torch's names -> ours, replaced in this order
    "encoder.": "",
    "layers.": "blocks.",
    "self_attn.attn.": "attn.",  # of ``replace_attention``
    "self_attn.": "attn.",
    "in_proj_": "qkv.",  # q, k and v stacked, in both
    "out_proj.": "proj.",
    "linear1.": "mlp.fc1.",
    "linear2.": "mlp.fc2.",
}
PARTS = {"all": "", "blocks": "blocks.", "attention": "attn."}  # -> what their names contain


class TorchEncoderViT(nn.Module):
    """A Vision Transformer whose blocks are a closed box, ``torch.nn.TransformerEncoder``.

    The box computes what our blocks compute, from starting values of the same kind.

    Args:
        config: a ``ViTConfig``.
        patch_embed: makes, of patch_size, in_channels and embed_dim, what maps images
            (B, C, H, W) to tokens (B, N, D).
        add_tokens: does what ``add_class_token_and_positions`` does.

    Example:
        >>> TorchEncoderViT(ViTConfig(embed_dim=12, depth=2))(torch.zeros(2, 3, 32, 32)).shape
        torch.Size([2, 10])
    """

    def __init__(
        self,
        config: ViTConfig,
        patch_embed: Callable = PatchEmbed,
        add_tokens: Callable = add_class_token_and_positions,
    ):
        super().__init__()
        D, self.config, self.add_tokens = config.embed_dim, config, add_tokens
        self.patch_embed = patch_embed(config.patch_size, config.in_channels, D)
        self.cls_token = nn.Parameter(torch.zeros(1, 1, D))
        self.pos_embed = nn.Parameter(torch.zeros(1, config.num_tokens, D))
        layer = nn.TransformerEncoderLayer(
            D,
            config.num_heads,
            int(D * config.mlp_ratio),
            dropout=0.0,
            activation="gelu",
            layer_norm_eps=1e-6,
            batch_first=True,
            norm_first=True,
        )
        self.encoder = nn.TransformerEncoder(layer, config.depth, enable_nested_tensor=False)
        self.norm = nn.LayerNorm(D, eps=1e-6)
        self.head = nn.Linear(D, config.num_classes)
        initialise(self)  # type: ignore[arg-type]
        for module in self.modules():
            if isinstance(module, nn.MultiheadAttention):  # its first matrix is no ``nn.Linear``
                nn.init.trunc_normal_(module.in_proj_weight, std=0.02, a=-0.04, b=0.04)

    def forward(self, images: Tensor) -> Tensor:
        """Map images (B, C, H, W) to logits (B, K)."""
        x = self.patch_embed(images)  # (B, C, H, W) -> (B, N, D)
        x = self.add_tokens(x, self.cls_token, self.pos_embed)  # -> (B, T, D)
        x = self.norm(self.encoder(x))
        return self.head(x[:, 0])  # the class token, (B, T, D) -> (B, K)


class AttentionForTorch(nn.Module):
    """Our attention, called as torch's encoder calls its own: with queries, keys, values, masks."""

    batch_first = False  # else torch takes a shortcut when nothing learns, and this is not called

    def __init__(self, attn: nn.Module):
        super().__init__()
        self.attn = attn

    def forward(self, query: Tensor, key: Tensor, value: Tensor, **masks: Any) -> Any:
        """Map tokens (B, T, D), all three the same, to output (B, T, D) and weights."""
        return self.attn(query)


def replace_attention(
    model: TorchEncoderViT, attention: Callable[[int, int], nn.Module] = MultiHeadAttention
) -> TorchEncoderViT:
    """Copy a model and put an attention of one's own, untrained, into every block of the copy.

    Args:
        model: stays as it is.
        attention: called with embed_dim and num_heads.
    """
    model = copy.deepcopy(model)
    layers: Any = model.encoder.layers
    for layer in layers:
        theirs = layer.self_attn
        own = attention(theirs.embed_dim, theirs.num_heads).to(theirs.in_proj_weight)
        layer.self_attn = AttentionForTorch(own)
    return model


@dataclass(frozen=True)
class Transplant:
    """What ``transplant`` did."""

    moved: tuple[str, ...]  # tensors, by our names
    difference: float | None  # the largest between the two outputs, if there were inputs

    def __str__(self) -> str:
        proof = "" if self.difference is None else f"; largest difference {self.difference:.1e}"
        layers = (re.sub(r"\.\d+\.", ".*.", name.rpartition(".")[0] or name) for name in self.moved)
        return f"{len(self.moved)} tensors moved ({', '.join(dict.fromkeys(layers))}){proof}"


def transplant(
    source: nn.Module, target: nn.Module, parts: str = "all", inputs: Tensor | None = None
) -> Transplant:
    """Copy the weights of one model, block or layer into another that computes the same.

    Either may be torch's (``TransformerEncoder``, its layer, ``MultiheadAttention``), ours, or a
    student's with our attribute names. What only one of them has stays as it is.

    Args:
        source: stays as it is.
        target: changed in place, on its own device.
        parts: "all", "blocks" or "attention".
        inputs: images (B, C, H, W), or tokens (B, T, D) for a part, that both are run on afterwards
            in eval mode; their modes are restored.

    Raises:
        ValueError: nothing fits, sizes differ, or one has a tensor (a bias, a block) that the other
            lacks; nothing was copied then.
    """
    if parts not in PARTS:
        raise ValueError(f"parts must be one of {', '.join(PARTS)} (got {parts!r}).")
    theirs, ours = (
        {name: tensor for name, tensor in named_tensors(model).items() if PARTS[parts] in name}
        for model in (source, target)
    )
    shared = {name.split(".")[0] for name in theirs} & {name.split(".")[0] for name in ours}
    names = [name for name in theirs | ours if name.split(".")[0] in shared]
    if not names:
        first, other = (next(iter(tensors), "nothing") for tensors in (theirs, ours))
        raise ValueError(
            f"nothing fits: {parts!r} begins with {first} in the source and {other} in the target."
        )
    for name in names:
        has, wants = (tuple(of[name].shape) if name in of else "missing" for of in (theirs, ours))
        if has != wants:
            raise ValueError(
                f"{name} is {has} in the source and {wants} in the target; build both with the "
                "same sizes, number of blocks and biases."
            )
    difference = None
    with torch.no_grad():
        for name in names:
            ours[name].copy_(theirs[name])
        if inputs is not None:
            difference = (run(source, inputs) - run(target, inputs)).abs().max().item()
    return Transplant(tuple(names), difference)


def named_tensors(model: nn.Module) -> dict[str, Tensor]:
    """List a model's tensors by our names.

    Example:
        >>> list(named_tensors(nn.MultiheadAttention(4, 2)))
        ['qkv.weight', 'qkv.bias', 'proj.weight', 'proj.bias']
    """
    tensors = {}
    for name, tensor in model.state_dict().items():
        for theirs, ours in NAMES.items():
            name = name.replace(theirs, ours)
        tensors[name] = tensor
    return tensors


def run(model: nn.Module, inputs: Tensor) -> Tensor:
    """Give the output of a model, or the first of a layer's outputs, in eval mode on the CPU."""
    modes = {module: module.training for module in model.modules()}
    inputs = inputs.to(next(model.parameters()).device)
    count = 3 if isinstance(model, nn.MultiheadAttention) else 1  # queries, keys, values
    try:
        output = model.eval()(*[inputs] * count)
    finally:
        for module, training in modes.items():
            module.training = training
    return (output[0] if isinstance(output, tuple) else output).cpu()
