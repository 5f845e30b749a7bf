"""Recipes: arguments that are not plain data. Each is built anew for every call from plain fields.

Role: the recipes of all chapters, registered by name, so that a case can be sent to another
process. Imports the standard library and torch only, and no reference. ``Config`` also uses the
course's ``ViTConfig``.
"""

from typing import Any

import torch
from torch import nn

from vitedu.checks.case import Recipe
from vitedu.checks.drivers import state_of

RECIPES: dict[str, type[Recipe]] = {}


def recipe(kind: type[Recipe]) -> type[Recipe]:
    """Register a recipe under its class name; ``kind(**recipe.plain())`` makes an equal one."""
    RECIPES[kind.__name__] = kind
    return kind


class Part(Recipe):
    """A module, which a call must leave as it was built: an input is never modified."""

    def changed(self, built: nn.Module) -> bool:
        """Tell whether a value, the mode of a part, or what learns changed."""
        fresh = self.build()
        now, before = nn.Module.state_dict(built), nn.Module.state_dict(fresh)
        return (
            state_of(built) != state_of(fresh)
            or now.keys() != before.keys()
            or any(
                now[name].dtype != x.dtype or not torch.equal(now[name], x)
                for name, x in before.items()
            )
        )


@recipe
class Conv(Part):
    """A patch-embedding convolution with the given weight (D, C, P, P) and bias (D,)."""

    def __init__(self, weight: torch.Tensor, bias: torch.Tensor | None):
        self.weight, self.bias = weight, bias

    def build(self) -> nn.Conv2d:
        """Build the layer."""
        D, C, P, _ = self.weight.shape
        conv = nn.Conv2d(C, D, P, stride=P, bias=self.bias is not None, dtype=self.weight.dtype)
        with torch.no_grad():
            conv.weight.copy_(self.weight)
            if conv.bias is not None and self.bias is not None:
                conv.bias.copy_(self.bias)
        return conv


@recipe
class Layer(Part):
    """A layer norm or a linear layer with the given weight and bias."""

    def __init__(self, weight: torch.Tensor, bias: torch.Tensor | None):
        self.weight, self.bias = weight, bias

    def build(self) -> nn.Module:
        """Build a layer norm if the weight is a vector, a linear layer if it is a matrix."""
        shape, has_bias = list(self.weight.shape), self.bias is not None
        layer = (
            nn.LayerNorm(shape, 1e-6, bias=has_bias)
            if len(shape) == 1
            else nn.Linear(shape[1], shape[0], bias=has_bias)
        )
        layer = layer.to(self.weight.dtype)
        state = {"weight": self.weight, "bias": self.bias}
        layer.load_state_dict({name: x for name, x in state.items() if x is not None})
        return layer


@recipe
class Config(Recipe):
    """A ``ViTConfig`` with these fields."""

    def __init__(self, **fields):
        self.fields = fields

    def plain(self) -> dict[str, Any]:
        """Return the fields."""
        return dict(self.fields)

    def build(self):
        """Build the configuration."""
        from vitedu.vit import ViTConfig

        return ViTConfig(**self.fields)

    def __str__(self) -> str:
        short = {
            "image_size": "image",
            "patch_size": "patch",
            "in_channels": "channels",
            "num_classes": "classes",
            "embed_dim": "embed_dim",
            "depth": "depth",
            "num_heads": "heads",
            "mlp_ratio": "mlp_ratio",
            "qkv_bias": "qkv_bias",
        }
        return ", ".join(
            f"{name} {self.fields[field]}" for field, name in short.items() if field in self.fields
        )


@recipe
class Network(Part):
    """A small model for exercises about named parameters; ``kind`` chooses a method below."""

    def __init__(self, kind: str, width: int):
        self.kind, self.width = kind, width

    def build(self) -> nn.Module:
        """Build the model, with the same weights every time."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            return getattr(self, f"_{self.kind}")(self.width)

    @staticmethod
    def _encoder(width: int) -> nn.Module:
        """Build a model whose parts are named as in the course's ViT."""
        model = nn.Module()
        model.cls_token = nn.Parameter(torch.zeros(1, 1, width))
        model.pos_embed = nn.Parameter(torch.zeros(1, 5, width))
        model.patch_embed = nn.Module()
        model.patch_embed.proj = nn.Conv2d(1, width, 2, stride=2)
        model.blocks = nn.ModuleList([Network._block(width)])
        model.norm = nn.LayerNorm(width)
        model.head = nn.Linear(width, 3)
        return model

    @staticmethod
    def _block(width: int) -> nn.Module:
        """Build a part whose own parts are named as in a block."""
        block = nn.Module()
        block.norm1 = nn.LayerNorm(width)
        block.qkv = nn.Linear(width, 3 * width)
        return block

    @staticmethod
    def _deep(width: int, depth: int = 12) -> nn.Module:
        """Build a model whose blocks have numbers of two digits."""
        model = Network._encoder(width)
        model.blocks = nn.ModuleList(Network._block(width) for _ in range(depth))
        return model

    @staticmethod
    def _shallow(width: int) -> nn.Module:
        """Build a model with three blocks."""
        return Network._deep(width, 3)

    @staticmethod
    def _frozen_below(width: int) -> nn.Module:
        """Build a model with four blocks in which everything below the last two is frozen."""
        model = Network._deep(width, 4)
        for name, parameter in model.named_parameters():
            parameter.requires_grad_(name.startswith(("blocks.2", "blocks.3", "norm", "head")))
        return model

    @staticmethod
    def _other_names(width: int) -> nn.Module:
        """Build a model whose part names say nothing about their kind, or something misleading."""
        model = nn.Module()
        model.stem = nn.Sequential(nn.Conv1d(2, width, 3, bias=False), nn.BatchNorm1d(width))
        model.ln = nn.LayerNorm(width)
        model.attn = nn.MultiheadAttention(width, 1)
        model.groups = nn.GroupNorm(1, width)
        model.normalized_head = nn.Linear(width, 3)
        model.debias = nn.Linear(width, 2, bias=False)
        model.compose = nn.Linear(width, 2, bias=False)
        model.tokenizer = nn.Linear(width, 2, bias=False)
        return model

    @staticmethod
    def _nested(width: int) -> nn.Module:
        """Build a model whose class token and positions belong to a submodule."""
        model = nn.Module()
        model.encoder = Network._encoder(width)
        model.classifier = nn.Linear(3, 1)
        return model

    @staticmethod
    def _frozen(width: int) -> nn.Module:
        """Build a model with one frozen part."""
        model = Network._encoder(width)
        model.patch_embed.requires_grad_(False)
        return model

    @staticmethod
    def _shared(width: int) -> nn.Module:
        """Build a model in which two parts share one matrix."""
        model = Network._encoder(width)
        model.more = nn.Linear(width, 3 * width, bias=False)
        model.more.weight = model.get_parameter("blocks.0.qkv.weight")
        return model


@recipe
class StateDict(Recipe):
    """A dict of tensors by name, like a model's state dict."""

    def __init__(self, **tensors: torch.Tensor):
        self.tensors = tensors

    def plain(self) -> dict[str, Any]:
        """Return the tensors."""
        return dict(self.tensors)

    def build(self) -> dict[str, torch.Tensor]:
        """Build the dict."""
        return {name: tensor.clone() for name, tensor in self.tensors.items()}

    def changed(self, built: dict[str, torch.Tensor]) -> bool:
        """Tell whether a name or a value changed."""
        return list(built) != list(self.tensors) or not all(
            map(torch.equal, built.values(), self.tensors.values())
        )


@recipe
class CpuGenerator(Recipe):
    """A generator on the CPU in a known state."""

    def __init__(self, seed: int):
        self.seed = seed

    def build(self) -> torch.Generator:
        """Build the generator."""
        return torch.Generator().manual_seed(self.seed)


@recipe
class FeatureMap(Part):
    """Two convolutions with a tanh between them: a grid of cells that each see some pixels."""

    def __init__(self, first: torch.Tensor, second: torch.Tensor):
        self.first, self.second = first, second

    def build(self) -> nn.Module:
        """Build the network. The second kernel is as wide as its stride."""
        (M, C, k, _), (D, _, P, _) = self.first.shape, self.second.shape
        dtype = self.first.dtype
        layers = nn.Sequential(
            nn.Conv2d(C, M, k, padding=k // 2, bias=False, dtype=dtype),
            nn.Tanh(),
            nn.Conv2d(M, D, P, stride=P, bias=False, dtype=dtype),
        )
        state = {"0.weight": self.first.clone(), "2.weight": self.second.clone()}
        layers.load_state_dict(state)
        return layers

    def __str__(self) -> str:
        return "a feature map"
