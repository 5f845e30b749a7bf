"""Right answers to 3.4 EncoderBlock, and what becomes of its mutants."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from vitedu.attention import MultiHeadAttention
from vitedu.encoder import Mlp


class _Parts(nn.Module):
    """The parts by their names; only ``forward`` differs below."""

    def __init__(self, embed_dim, num_heads, mlp_ratio=4.0):
        super().__init__()
        self.norm1 = nn.LayerNorm(embed_dim, eps=1e-6)
        self.attn = MultiHeadAttention(embed_dim, num_heads)
        self.norm2 = nn.LayerNorm(embed_dim, eps=1e-6)
        self.mlp = Mlp(embed_dim, int(embed_dim * mlp_ratio))


class WithShortcut(_Parts):
    def forward(self, x):
        shortcut = x
        x, _ = self.attn(self.norm1(x))
        x += shortcut
        return torch.add(self.mlp(self.norm2(x)), x)


class Functional(_Parts):
    def forward(self, x):
        D = (x.shape[-1],)
        y = x + self.attn(F.layer_norm(x, D, self.norm1.weight, self.norm1.bias, 1e-6))[0]
        z = F.layer_norm(y, D, self.norm2.weight, self.norm2.bias, 1e-6)
        z = F.gelu(F.linear(z, self.mlp.fc1.weight, self.mlp.fc1.bias))
        return y + F.linear(z, self.mlp.fc2.weight, self.mlp.fc2.bias)


class OwnMlp(nn.Module):
    def __init__(self, embed_dim, num_heads, mlp_ratio=4.0):
        super().__init__()
        hidden = int(mlp_ratio * embed_dim)
        fc1, fc2 = nn.Linear(embed_dim, hidden), nn.Linear(hidden, embed_dim)
        self.mlp = nn.ModuleDict({"fc1": fc1, "fc2": fc2})
        self.norm2, self.norm1 = (nn.LayerNorm(embed_dim, 1e-6) for _ in range(2))
        self.attn = MultiHeadAttention(embed_dim, num_heads)

    def forward(self, x):
        for norm, work in ((self.norm1, lambda t: self.attn(t)[0]), (self.norm2, self.bend)):
            x = x + work(norm(x))
        return x

    def bend(self, x):
        x = self.mlp["fc1"](x)
        return self.mlp["fc2"](x * (torch.erf(x / math.sqrt(2)) + 1) / 2)


class TokenByToken(_Parts):
    def forward(self, x):
        x = x + self.attn(self.norm1(x))[0]
        return torch.stack([token + self.mlp(self.norm2(token)) for token in x.unbind(1)], dim=1)


# conditions on the arguments: a mutant that is wrong only under one of them must fail
SPECIAL = (
    "self.attn.num_heads == 1",
    "x.shape[1] == 1",
    "len(x) == 1",
    "x.shape[1] == x.shape[2]",
    "self.mlp.fc1.out_features == x.shape[2]",
    "x.shape[1] > 64",
)
