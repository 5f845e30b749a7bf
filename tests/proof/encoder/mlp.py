"""Right answers to 3.3 Mlp, and what becomes of its mutants."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from vitedu.encoder import gelu


class WithOwnGelu(nn.Module):
    def __init__(self, embed_dim, hidden_dim):
        super().__init__()
        self.fc1 = nn.Linear(embed_dim, hidden_dim)
        self.fc2 = nn.Linear(hidden_dim, embed_dim)

    def forward(self, x):
        x = self.fc1(x)
        x = gelu(x)
        return self.fc2(x)


class WithGeluOfTorch(nn.Module):
    def __init__(self, D, hidden):
        super().__init__()
        self.fc2, self.gelu, self.fc1 = nn.Linear(hidden, D), nn.GELU(), nn.Linear(D, hidden)

    def forward(self, tokens):
        return self.fc2(self.gelu(self.fc1(tokens)))


class InADict(nn.ModuleDict):
    def __init__(self, embed_dim, hidden_dim):
        fc1, fc2 = nn.Linear(embed_dim, hidden_dim), nn.Linear(hidden_dim, embed_dim)
        super().__init__({"fc1": fc1, "fc2": fc2})

    def forward(self, x):
        x = self["fc1"](x)
        return self["fc2"](x * (torch.erf(x / math.sqrt(2)) + 1) / 2)


class ByProducts(nn.Sequential):
    def __init__(self, embed_dim, hidden_dim):
        super().__init__()
        self.add_module("fc1", nn.Linear(embed_dim, hidden_dim))
        self.add_module("fc2", nn.Linear(hidden_dim, embed_dim))

    def forward(self, x):
        hidden = F.gelu(torch.einsum("btd,md->btm", x, self.fc1.weight) + self.fc1.bias)
        return hidden @ self.fc2.weight.T + self.fc2.bias


class TokenByToken(WithOwnGelu):
    def forward(self, x):
        rows = [self.fc2(F.gelu(self.fc1(token))) for token in x.flatten(0, 1)]
        return torch.stack(rows).reshape(x.shape)


# conditions on the arguments: a mutant that is wrong only under one of them must fail
SPECIAL = (
    "x.shape[1] == 1",
    "len(x) == 1",
    "x.shape[1] == x.shape[2]",
    "self.fc1.out_features == x.shape[2]",
    "self.fc1.out_features == 1",
)
