"""The argument of ``effective_receptive_field``, which needs no driver of its own."""

import torch
from torch import nn

from vitedu.checks.observing.arguments import Layer, ModuleRecipe, recipe


@recipe
class FeatureMap(ModuleRecipe):
    """Two convolutions with a tanh between them: a grid of cells that each see some pixels."""

    def __init__(self, first: torch.Tensor, second: torch.Tensor):
        self.first, self.second = first, second

    def build(self) -> nn.Module:
        """Build the network. The second kernel is as wide as its stride."""
        M, C, k, _ = self.first.shape
        first = nn.Conv2d(C, M, k, padding=k // 2, bias=False, dtype=self.first.dtype)
        first.load_state_dict({"weight": self.first})
        return nn.Sequential(first, nn.Tanh(), Layer(self.second, None).build())
