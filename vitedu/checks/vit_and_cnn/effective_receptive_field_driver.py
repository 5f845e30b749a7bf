"""The argument of ``effective_receptive_field``, which needs no driver of its own."""

import torch
from torch import nn

from vitedu.checks.observing.arguments import ModuleRecipe, recipe


@recipe
class FeatureMap(ModuleRecipe):
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
