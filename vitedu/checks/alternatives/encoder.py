"""Right answers to the exercises of notebook 03, each by another road."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from vitedu.attention import MultiHeadAttention
from vitedu.encoder import Mlp
from vitedu.vit import VisionTransformer

# --- EncoderBlock -------------------------------------------------------------------------------


class _Parts(nn.Module):
    """The parts by their names; only ``forward`` differs below."""

    def __init__(self, embed_dim, num_heads, mlp_ratio=4.0):
        super().__init__()
        self.norm1 = nn.LayerNorm(embed_dim, eps=1e-6)
        self.attn = MultiHeadAttention(embed_dim, num_heads)
        self.norm2 = nn.LayerNorm(embed_dim, eps=1e-6)
        self.mlp = Mlp(embed_dim, int(embed_dim * mlp_ratio))


class BlockInTwoLines(_Parts):
    """Shortcuts kept by name."""

    def forward(self, x):
        shortcut = x
        x, _ = self.attn(self.norm1(x))
        x += shortcut
        return torch.add(self.mlp(self.norm2(x)), x)


class BlockFunctional(_Parts):
    """Functional norms and layers over the parameters."""

    def forward(self, x):
        D = (x.shape[-1],)
        y = x + self.attn(F.layer_norm(x, D, self.norm1.weight, self.norm1.bias, 1e-6))[0]
        z = F.layer_norm(y, D, self.norm2.weight, self.norm2.bias, 1e-6)
        z = F.gelu(F.linear(z, self.mlp.fc1.weight, self.mlp.fc1.bias))
        return y + F.linear(z, self.mlp.fc2.weight, self.mlp.fc2.bias)


class BlockOwnMlp(nn.Module):
    """An MLP of one's own, with the same names."""

    def __init__(self, embed_dim, num_heads, mlp_ratio=4.0):
        super().__init__()
        hidden = int(mlp_ratio * embed_dim)
        self.mlp = nn.ModuleDict(
            {"fc1": nn.Linear(embed_dim, hidden), "fc2": nn.Linear(hidden, embed_dim)}
        )
        self.norm2, self.norm1 = (nn.LayerNorm(embed_dim, 1e-6) for _ in range(2))
        self.attn = MultiHeadAttention(embed_dim, num_heads)

    def forward(self, x):
        for norm, work in ((self.norm1, lambda t: self.attn(t)[0]), (self.norm2, self.bend)):
            x = x + work(norm(x))
        return x

    def bend(self, x):
        x = self.mlp["fc1"](x)
        return self.mlp["fc2"](x * (torch.erf(x / math.sqrt(2)) + 1) / 2)


class BlockTokenByToken(_Parts):
    """The MLP one token at a time."""

    def forward(self, x):
        x = x + self.attn(self.norm1(x))[0]
        return torch.stack([token + self.mlp(self.norm2(token)) for token in x.unbind(1)], dim=1)


# --- VisionTransformer --------------------------------------------------------------------------


class VitPlain(VisionTransformer):
    """Everything spelled out."""

    def forward(self, images):
        x = self.patch_embed.proj(images).flatten(2).transpose(1, 2)
        x = torch.cat((self.cls_token.repeat(x.size(0), 1, 1), x), dim=1)
        x = x + self.pos_embed
        for i in range(len(self.blocks)):
            x = self.blocks[i](x)
        return self.head(self.norm(x)[:, 0, :])


class VitSequential(VisionTransformer):
    """Blocks as one sequence; the class token picked before the norm, which is the same."""

    def forward(self, images):
        patches = self.patch_embed(images) + self.pos_embed[:, 1:]
        first = (self.cls_token + self.pos_embed[:, :1]).expand(len(images), -1, -1)
        encoded = nn.Sequential(*self.blocks)(torch.hstack([first, patches]))
        return self.head(self.norm(encoded.select(1, 0)))


class VitUnfolded(VisionTransformer):
    """The convolution as a matrix product over unfolded patches."""

    def forward(self, images):
        kernel = self.patch_embed.proj.weight
        columns = F.unfold(images, kernel.shape[-1], stride=kernel.shape[-1]).mT
        tokens = columns @ kernel.flatten(1).T + self.patch_embed.proj.bias
        x = F.pad(tokens, (0, 0, 1, 0)).clone()
        x[:, 0] = self.cls_token.squeeze()
        x = x + self.pos_embed
        for block in self.blocks:
            x = block(x)
        return F.linear(self.norm(x)[:, 0], self.head.weight, self.head.bias)


class VitImageByImage(VisionTransformer):
    """One image at a time."""

    def forward(self, images):
        rows = []
        for image in images:
            x = torch.cat([self.cls_token[0], self.patch_embed(image[None])[0]]) + self.pos_embed[0]
            x = x[None]
            for block in self.blocks:
                x = block(x)
            rows.append(self.head(self.norm(x[0, 0])))
        return torch.stack(rows)


# --- count_parameters ---------------------------------------------------------------------------


def count_by_shapes(config):
    """List every shape and multiply."""
    D, h = config.embed_dim, int(config.embed_dim * config.mlp_ratio)
    n = (config.image_size // config.patch_size) ** 2
    block = [(D,), (D,), (3 * D, D), (D, D), (D,), (D,), (D,), (h, D), (h,), (D, h), (D,)]
    if config.qkv_bias:
        block.append((3 * D,))
    shapes = [
        (D, config.in_channels, config.patch_size, config.patch_size),
        (D,),
        (D,),
        (n + 1, D),
        (D,),
        (D,),
    ]
    shapes += [(config.num_classes, D), (config.num_classes,)] + block * config.depth
    return sum(math.prod(shape) for shape in shapes)


def count_by_polynomial(config):
    """One formula."""
    D, L, K = config.embed_dim, config.depth, config.num_classes
    H, N = int(D * config.mlp_ratio), (config.image_size // config.patch_size) ** 2
    per_block = 4 * D * D + 2 * D * H + 6 * D + H + 3 * D * bool(config.qkv_bias)
    return D * (config.in_channels * config.patch_size**2 + N + 5) + L * per_block + (D + 1) * K


def count_by_layers(config):
    """Helpers for layers."""

    def linear(inputs, outputs, bias=True):
        return inputs * outputs + outputs * bias

    D, P = config.embed_dim, config.patch_size
    H = int(config.mlp_ratio * D)
    block = (
        2 * (D + D) + linear(D, 3 * D, config.qkv_bias) + linear(D, D) + linear(D, H) + linear(H, D)
    )
    tokens = 1 + (config.image_size // P) * (config.image_size // P)
    return (
        linear(P * P * config.in_channels, D)
        + D
        + tokens * D
        + block * config.depth
        + 2 * D
        + linear(D, config.num_classes)
    )


def count_by_loop(config):
    """Block by block, as a tensor."""
    D = config.embed_dim
    total = torch.tensor(D * config.in_channels * config.patch_size**2 + D)
    total += D + D * ((config.image_size // config.patch_size) ** 2 + 1)
    for _ in range(config.depth):
        total += 4 * D + 3 * D * (D + int(config.qkv_bias)) + D * (D + 1)
        total += int(D * config.mlp_ratio) * (2 * D + 1) + D
    return total + 2 * D + (D + 1) * config.num_classes


ALTERNATIVES = {
    "EncoderBlock": [BlockInTwoLines, BlockFunctional, BlockOwnMlp, BlockTokenByToken],
    "VisionTransformer": [VitPlain, VitSequential, VitUnfolded, VitImageByImage],
    "count_parameters": [count_by_shapes, count_by_polynomial, count_by_layers, count_by_loop],
}
