"""Right answers, chapter 03: the encoder and the whole ViT."""

import math

import torch
import torch.nn.functional as F
from torch import nn


# -------------------------------------------------------------- layer_norm


def layer_norm__formula(x, weight, bias, eps=1e-6):
    mean = x.mean(dim=-1, keepdim=True)
    var = ((x - mean) ** 2).mean(dim=-1, keepdim=True)
    return (x - mean) / torch.sqrt(var + eps) * weight + bias


def layer_norm__var(x, weight, bias, eps=1e-6):
    mu = x.mean(-1, keepdim=True)
    sigma2 = x.var(-1, keepdim=True, unbiased=False)
    return torch.addcmul(bias, weight, (x - mu) * torch.rsqrt(sigma2 + eps))


def layer_norm__double(x, weight, bias, eps=1e-6):
    tokens = x.double()
    d = tokens.shape[-1]
    centred = tokens - tokens.sum(dim=-1, keepdim=True) / d
    variance = torch.einsum("...d,...d->...", centred, centred).unsqueeze(-1) / d
    normed = centred / (variance + eps).sqrt()
    return (normed * weight.double() + bias.double()).to(x.dtype)


# -------------------------------------------------------------------- gelu


def gelu__erf(x):
    return 0.5 * x * (1 + torch.erf(x / math.sqrt(2)))


def gelu__ndtr(x):
    return x * torch.special.ndtr(x)


def gelu__normal(x):
    standard_normal = torch.distributions.Normal(0.0, 1.0)
    return x * standard_normal.cdf(x)


# --------------------------------------------------------------------- Mlp


class Mlp__plain(nn.Module):
    def __init__(self, embed_dim, hidden_dim):
        super().__init__()
        self.fc1 = nn.Linear(embed_dim, hidden_dim)
        self.fc2 = nn.Linear(hidden_dim, embed_dim)

    def forward(self, x):
        return self.fc2(F.gelu(self.fc1(x)))


class Mlp__module(nn.Module):
    def __init__(self, embed_dim, hidden_dim):
        super().__init__()
        self.fc1 = nn.Linear(embed_dim, hidden_dim)
        self.act = nn.GELU()
        self.fc2 = nn.Linear(hidden_dim, embed_dim)

    def forward(self, x):
        x = self.fc1(x)
        x = self.act(x)
        x = self.fc2(x)
        return x


class Mlp__matrices(nn.Module):
    def __init__(self, embed_dim, hidden_dim):
        super(Mlp__matrices, self).__init__()
        self.fc1, self.fc2 = nn.Linear(embed_dim, hidden_dim), nn.Linear(hidden_dim, embed_dim)

    def forward(self, tokens):
        hidden = tokens @ self.fc1.weight.T + self.fc1.bias
        hidden = gelu__erf(hidden)
        return hidden @ self.fc2.weight.T + self.fc2.bias


# ------------------------------------------------- the parts that are given


class _MultiHeadAttention(nn.Module):
    def __init__(self, embed_dim, num_heads, qkv_bias=True):
        super().__init__()
        self.num_heads = num_heads
        self.qkv = nn.Linear(embed_dim, 3 * embed_dim, bias=qkv_bias)
        self.proj = nn.Linear(embed_dim, embed_dim)

    def forward(self, x):
        B, T, D = x.shape
        qkv = self.qkv(x).reshape(B, T, 3, self.num_heads, D // self.num_heads)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)
        weights = (q @ k.mT / math.sqrt(q.shape[-1])).softmax(-1)
        return self.proj((weights @ v).transpose(1, 2).reshape(B, T, D)), weights


class _Mlp(nn.Module):
    def __init__(self, embed_dim, hidden_dim):
        super().__init__()
        self.fc1 = nn.Linear(embed_dim, hidden_dim)
        self.fc2 = nn.Linear(hidden_dim, embed_dim)

    def forward(self, x):
        return self.fc2(F.gelu(self.fc1(x)))


class _PatchEmbed(nn.Module):
    def __init__(self, patch_size, in_channels, embed_dim):
        super().__init__()
        self.proj = nn.Conv2d(in_channels, embed_dim, patch_size, stride=patch_size)

    def forward(self, images):
        return self.proj(images).flatten(2).transpose(1, 2)


# ------------------------------------------------------------ EncoderBlock


class EncoderBlock__plain(nn.Module):
    def __init__(self, embed_dim, num_heads, mlp_ratio=4.0):
        super().__init__()
        self.norm1 = nn.LayerNorm(embed_dim, eps=1e-6)
        self.attn = _MultiHeadAttention(embed_dim, num_heads)
        self.norm2 = nn.LayerNorm(embed_dim, eps=1e-6)
        self.mlp = _Mlp(embed_dim, int(embed_dim * mlp_ratio))

    def forward(self, x):
        x = x + self.attn(self.norm1(x))[0]
        x = x + self.mlp(self.norm2(x))
        return x


class EncoderBlock__steps(nn.Module):
    def __init__(self, embed_dim, num_heads, mlp_ratio=4.0):
        super().__init__()
        hidden_dim = int(embed_dim * mlp_ratio)
        self.mlp = Mlp__module(embed_dim, hidden_dim)
        self.attn = _MultiHeadAttention(embed_dim, num_heads)
        self.norm1 = nn.LayerNorm(embed_dim, eps=1e-6)
        self.norm2 = nn.LayerNorm(embed_dim, eps=1e-6)

    def forward(self, tokens):
        residual = tokens
        normed = self.norm1(tokens)
        attended, weights = self.attn(normed)
        after_attention = residual + attended
        update = self.mlp(self.norm2(after_attention))
        return after_attention + update


class EncoderBlock__helpers(nn.Module):
    """Two named side roads; the norm by the student's own layer_norm."""

    def __init__(self, embed_dim, num_heads, mlp_ratio=4.0):
        super().__init__()
        self.norm1, self.norm2 = (nn.LayerNorm(embed_dim, eps=1e-6) for _ in range(2))
        self.attn = _MultiHeadAttention(embed_dim, num_heads)
        self.mlp = Mlp__matrices(embed_dim, int(mlp_ratio * embed_dim))

    @staticmethod
    def _normalise(norm, z):
        return layer_norm__formula(z, norm.weight, norm.bias, norm.eps)

    def _look(self, z):
        output, _ = self.attn(self._normalise(self.norm1, z))
        return output

    def _think(self, z):
        return self.mlp(self._normalise(self.norm2, z))

    def forward(self, z):
        z = torch.add(z, self._look(z))
        return torch.add(z, self._think(z))


# ------------------------------------------------------- VisionTransformer


class _Block(nn.Module):
    def __init__(self, embed_dim, num_heads, mlp_ratio, qkv_bias):
        super().__init__()
        self.norm1 = nn.LayerNorm(embed_dim, eps=1e-6)
        self.attn = _MultiHeadAttention(embed_dim, num_heads, qkv_bias)
        self.norm2 = nn.LayerNorm(embed_dim, eps=1e-6)
        self.mlp = _Mlp(embed_dim, int(embed_dim * mlp_ratio))

    def forward(self, x):
        x = x + self.attn(self.norm1(x))[0]
        return x + self.mlp(self.norm2(x))


class VisionTransformer__modulelist(nn.Module):
    def __init__(self, config):
        super().__init__()
        D = config.embed_dim
        num_patches = (config.image_size // config.patch_size) ** 2
        self.patch_embed = _PatchEmbed(config.patch_size, config.in_channels, D)
        self.cls_token = nn.Parameter(torch.zeros(1, 1, D))
        self.pos_embed = nn.Parameter(torch.zeros(1, num_patches + 1, D))
        self.blocks = nn.ModuleList(
            [
                _Block(D, config.num_heads, config.mlp_ratio, config.qkv_bias)
                for _ in range(config.depth)
            ]
        )
        self.norm = nn.LayerNorm(D, eps=1e-6)
        self.head = nn.Linear(D, config.num_classes)
        nn.init.trunc_normal_(self.cls_token, std=0.02)
        nn.init.trunc_normal_(self.pos_embed, std=0.02)

    def forward(self, images):
        x = self.patch_embed(images)
        cls = self.cls_token.expand(x.shape[0], -1, -1)
        x = torch.cat([cls, x], dim=1)
        x = x + self.pos_embed
        for block in self.blocks:
            x = block(x)
        x = self.norm(x)
        return self.head(x[:, 0])


class VisionTransformer__sequential(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
        side = config.image_size // config.patch_size
        self.cls_token = nn.Parameter(0.02 * torch.randn(1, 1, config.embed_dim))
        self.pos_embed = nn.Parameter(0.02 * torch.randn(1, 1 + side * side, config.embed_dim))
        self.patch_embed = _PatchEmbedWithCheck(
            config.patch_size, config.in_channels, config.embed_dim
        )
        self.blocks = nn.Sequential(
            *(
                _Block(config.embed_dim, config.num_heads, config.mlp_ratio, config.qkv_bias)
                for _ in range(config.depth)
            )
        )
        self.norm = nn.LayerNorm(config.embed_dim, eps=1e-6)
        self.head = nn.Linear(config.embed_dim, config.num_classes)
        self.apply(self._initialise)

    @staticmethod
    def _initialise(module):
        if isinstance(module, nn.Linear):
            nn.init.trunc_normal_(module.weight, std=0.02)
            if module.bias is not None:
                nn.init.zeros_(module.bias)

    def forward(self, images):
        tokens = self.patch_embed(images)
        cls = self.cls_token.repeat(len(images), 1, 1)
        tokens = torch.cat((cls, tokens), dim=1) + self.pos_embed
        tokens = self.blocks(tokens)
        class_token = self.norm(tokens[:, 0, :])
        return self.head(class_token)


class _PatchEmbedWithCheck(nn.Module):
    def __init__(self, patch_size, in_channels, embed_dim):
        super().__init__()
        self.patch_size = patch_size
        self.proj = nn.Conv2d(in_channels, embed_dim, kernel_size=patch_size, stride=patch_size)

    def forward(self, images):
        if images.shape[-1] % self.patch_size or images.shape[-2] % self.patch_size:
            raise ValueError(f"{tuple(images.shape[-2:])} not divisible by {self.patch_size}")
        return torch.einsum("bdij->bijd", self.proj(images)).flatten(1, 2)


class VisionTransformer__replaced(nn.Module):
    """Builds the blocks from EncoderBlock, without qkv bias where the config asks."""

    def __init__(self, config):
        super().__init__()
        n = (config.image_size // config.patch_size) * (config.image_size // config.patch_size)
        self.patch_embed = nn.Module()
        self.patch_embed.proj = nn.Conv2d(
            config.in_channels, config.embed_dim, config.patch_size, config.patch_size
        )
        self.cls_token = nn.Parameter(torch.zeros(1, 1, config.embed_dim))
        self.pos_embed = nn.Parameter(torch.randn(1, n + 1, config.embed_dim) * 0.02)
        self.blocks = nn.ModuleList()
        for _ in range(config.depth):
            block = EncoderBlock__plain(config.embed_dim, config.num_heads, config.mlp_ratio)
            if not config.qkv_bias:
                block.attn = _MultiHeadAttention(config.embed_dim, config.num_heads, qkv_bias=False)
            self.blocks.append(block)
        self.norm = nn.LayerNorm(config.embed_dim, eps=1e-6)
        self.head = nn.Linear(config.embed_dim, config.num_classes)

    def embed(self, images):
        grid = self.patch_embed.proj(images)
        patches = grid.flatten(2).permute(0, 2, 1)
        first = self.cls_token + self.pos_embed[:, :1]
        rest = patches + self.pos_embed[:, 1:]
        return torch.cat([first.expand(images.size(0), -1, -1), rest], dim=1)

    def features(self, images):
        z = self.embed(images)
        for i in range(len(self.blocks)):
            z = self.blocks[i](z)
        return self.norm(z)

    def forward(self, images):
        return self.head(self.features(images)[:, 0])


# -------------------------------------------------------- count_parameters


def count_parameters__formula(config):
    D = config.embed_dim
    hidden = int(D * config.mlp_ratio)
    N = (config.image_size // config.patch_size) ** 2
    patch_embed = config.in_channels * config.patch_size**2 * D + D
    tokens = D + (N + 1) * D
    qkv = 3 * D * D + (3 * D if config.qkv_bias else 0)
    block = 2 * D + qkv + D * D + D + 2 * D + (D * hidden + hidden) + (hidden * D + D)
    head = D * config.num_classes + config.num_classes
    return patch_embed + tokens + config.depth * block + 2 * D + head


def _linear(n_in, n_out, bias=True):
    return n_in * n_out + n_out * bias


def count_parameters__helpers(config):
    d = config.embed_dim
    side = config.image_size // config.patch_size
    total = _linear(config.in_channels * config.patch_size * config.patch_size, d)
    total += d  # class token
    total += (side * side + 1) * d  # positions
    for _ in range(config.depth):
        total += 2 * d  # norm1
        total += _linear(d, 3 * d, config.qkv_bias) + _linear(d, d)
        total += 2 * d  # norm2
        total += _linear(d, int(d * config.mlp_ratio)) + _linear(int(d * config.mlp_ratio), d)
    total += 2 * d
    total += _linear(d, config.num_classes)
    return total


def count_parameters__shapes(config):
    D, P, K = config.embed_dim, config.patch_size, config.num_classes
    M = int(D * config.mlp_ratio)
    T = (config.image_size // P) ** 2 + 1
    outside = {
        "patch_embed.proj.weight": (D, config.in_channels, P, P),
        "patch_embed.proj.bias": (D,),
        "cls_token": (1, 1, D),
        "pos_embed": (1, T, D),
        "norm.weight": (D,),
        "norm.bias": (D,),
        "head.weight": (K, D),
        "head.bias": (K,),
    }
    block = {
        "norm1.weight": (D,),
        "norm1.bias": (D,),
        "attn.qkv.weight": (3 * D, D),
        "attn.proj.weight": (D, D),
        "attn.proj.bias": (D,),
        "norm2.weight": (D,),
        "norm2.bias": (D,),
        "mlp.fc1.weight": (M, D),
        "mlp.fc1.bias": (M,),
        "mlp.fc2.weight": (D, M),
        "mlp.fc2.bias": (D,),
    }
    if config.qkv_bias:
        block["attn.qkv.bias"] = (3 * D,)
    count = lambda shapes: sum(math.prod(shape) for shape in shapes.values())
    return count(outside) + config.depth * count(block)
