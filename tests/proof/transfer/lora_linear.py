"""Right answers to 9.2 LoRALinear, and what becomes of its mutants."""

import copy

import torch
import torch.nn.functional as F
from torch import nn

from vitedu.transfer import LoRALinear as Given  # right answers need its constructor


class ByFunctions(Given):
    def forward(self, x):
        change = F.linear(F.linear(x, self.down.weight), self.up.weight)
        return F.linear(x, self.linear.weight, self.linear.bias) + change * (self.alpha / self.rank)

    def merged(self):
        linear = copy.deepcopy(self.linear)
        linear.weight.data += (self.alpha / self.rank) * (self.up.weight @ self.down.weight).data
        return linear


class ByWeights(Given):
    def forward(self, x):
        weight = self.linear.weight + self._change()
        return torch.nn.functional.linear(x, weight, self.linear.bias)

    def _change(self):
        return self.up.weight.matmul(self.down.weight) * self.alpha / len(self.down.weight)

    @torch.no_grad()
    def merged(self):
        linear = nn.Linear(1, 1, bias=False)
        linear.in_features, linear.out_features = self.linear.in_features, self.linear.out_features
        linear.weight = nn.Parameter(self.linear.weight + self._change())
        if self.linear.bias is not None:
            linear.bias = nn.Parameter(self.linear.bias.clone())
        return linear


class FromScratch(nn.Module):
    def __init__(self, linear, rank, alpha):
        super().__init__()
        self.linear, self.scale = linear, alpha / rank
        for parameter in linear.parameters():
            parameter.requires_grad = False
        self.down = nn.Linear(linear.in_features, rank, bias=False).to(linear.weight)
        self.up = nn.Linear(rank, linear.out_features, bias=False).to(linear.weight)
        self.up.weight.data.zero_()

    def forward(self, x):
        return self.linear(x) + self.up(self.scale * self.down(x))

    def merged(self):
        old = self.linear
        made = nn.Linear(old.in_features, old.out_features, bias=old.bias is not None)
        made = made.to(old.weight)
        thin = torch.einsum("or,ri->oi", self.up.weight, self.down.weight)
        state = {"weight": old.weight.detach() + self.scale * thin.detach()}
        made.load_state_dict(state | ({} if old.bias is None else {"bias": old.bias}))
        return made


class ByAddmm(Given):
    def forward(self, x):
        change = torch.einsum("...i,ri,or->...o", x, self.down.weight, self.up.weight)
        return self.linear(x).add(change, alpha=self.alpha / self.rank)

    def merged(self):
        weight, bias, scale = self.linear.weight, self.linear.bias, self.alpha / self.rank
        linear = nn.Linear(*weight.shape[::-1], bias=bias is not None, dtype=weight.dtype)
        linear = linear.to(weight.device)
        with torch.no_grad():
            linear.weight.copy_(weight.addmm(self.up.weight, self.down.weight, alpha=scale))
            if bias is not None:
                linear.bias.copy_(bias)
        return linear


# conditions on the arguments: a mutant that is wrong only under one of them must fail
SPECIAL = (
    "self.rank == 1",
    "self.alpha == 0",
    "self.linear.bias is None",
)
