"""Right answers, chapter 01: patches."""

import math

import torch
import torch.nn.functional as F
from torch import nn


# ---------------------------------------------------------------- patchify


def patchify__loops(images, patch_size):
    B, C, H, W = images.shape
    P = patch_size
    if H % P != 0 or W % P != 0:
        raise ValueError(f"image of {H} x {W} can not be cut into patches of {P}")
    patches = []
    for row in range(0, H, P):
        for col in range(0, W, P):
            patch = images[:, :, row : row + P, col : col + P]
            patches.append(patch.reshape(B, C * P * P))
    return torch.stack(patches, dim=1)


def patchify__permute(images, patch_size):
    b, c, h, w = images.shape
    if h % patch_size or w % patch_size:
        raise ValueError(f"height {h} and width {w} must be divisible by patch size {patch_size}")
    gh, gw = h // patch_size, w // patch_size
    x = images.reshape(b, c, gh, patch_size, gw, patch_size)
    x = torch.einsum("bcipjq->bijcpq", x)
    return x.reshape(b, gh * gw, c * patch_size**2)


def patchify__unfold(images, patch_size):
    height, width = images.shape[-2:]
    if height % patch_size or width % patch_size:
        raise ValueError("H=%d, W=%d not divisible by P=%d" % (height, width, patch_size))
    return F.unfold(images, kernel_size=patch_size, stride=patch_size).transpose(1, 2)


# -------------------------------------------------------------- unpatchify


def unpatchify__loops(patches, patch_size, image_size):
    B, N, L = patches.shape
    P = patch_size
    H, W = image_size
    C = L // (P * P)
    gw = W // P
    images = patches.new_zeros(B, C, H, W)
    for k in range(N):
        r, c = k // gw, k % gw
        images[:, :, r * P : (r + 1) * P, c * P : (c + 1) * P] = patches[:, k].reshape(B, C, P, P)
    return images


def unpatchify__permute(patches, patch_size, image_size):
    height, width = image_size
    gh, gw = height // patch_size, width // patch_size
    if gh * gw != patches.shape[1]:
        raise ValueError(f"{patches.shape[1]} patches do not fill a grid of {gh} x {gw}")
    tiles = patches.reshape(patches.shape[0], gh, gw, -1, patch_size, patch_size)
    return tiles.permute(0, 3, 1, 4, 2, 5).reshape(patches.shape[0], -1, height, width)


def unpatchify__fold(patches, patch_size, image_size):
    return F.fold(
        patches.transpose(1, 2),
        output_size=tuple(image_size),
        kernel_size=patch_size,
        stride=patch_size,
    )


# -------------------------------------------------------- linear_from_conv


def linear_from_conv__copy(conv):
    weight = conv.weight
    linear = nn.Linear(
        weight[0].numel(),
        weight.shape[0],
        bias=conv.bias is not None,
        device=weight.device,
        dtype=weight.dtype,
    )
    with torch.no_grad():
        linear.weight.copy_(weight.flatten(1))
        if conv.bias is not None:
            linear.bias.copy_(conv.bias)
    return linear


def linear_from_conv__parameters(conv):
    matrix = conv.weight.detach().clone().reshape(conv.out_channels, -1)
    layer = nn.Linear(matrix.shape[1], matrix.shape[0], bias=False)
    layer.weight = nn.Parameter(matrix)
    if conv.bias is not None:
        layer.bias = nn.Parameter(conv.bias.detach().clone())
    return layer


@torch.no_grad()
def linear_from_conv__loops(conv):
    kh, kw = conv.kernel_size
    in_features = conv.in_channels * kh * kw
    has_bias = conv.bias is not None
    linear = nn.Linear(in_features, conv.out_channels, bias=has_bias).to(conv.weight)
    for j in range(conv.out_channels):
        linear.weight[j] = conv.weight[j].reshape(-1)
        if has_bias:
            linear.bias[j] = conv.bias[j]
    return linear


# -------------------------------------------------------------- PatchEmbed


class PatchEmbed__conv(nn.Module):
    def __init__(self, patch_size, in_channels, embed_dim):
        super().__init__()
        self.patch_size = patch_size
        self.proj = nn.Conv2d(in_channels, embed_dim, kernel_size=patch_size, stride=patch_size)

    def forward(self, images):
        H, W = images.shape[-2:]
        if H % self.patch_size or W % self.patch_size:
            raise ValueError(f"{H} x {W} is not divisible by {self.patch_size}")
        x = self.proj(images)  # (B, D, gh, gw)
        return x.flatten(2).transpose(1, 2)  # (B, N, D)


class PatchEmbed__product(nn.Module):
    def __init__(self, patch_size, in_channels, embed_dim):
        super().__init__()
        self.patch_size = patch_size
        self.proj = nn.Conv2d(in_channels, embed_dim, patch_size, patch_size)

    def forward(self, images):
        patches = patchify__loops(images, self.patch_size)
        return patches @ self.proj.weight.flatten(1).T + self.proj.bias


class PatchEmbed__linear(nn.Module):
    def __init__(self, patch_size, in_channels, embed_dim):
        super().__init__()
        self.proj = nn.Conv2d(
            in_channels,
            embed_dim,
            kernel_size=(patch_size, patch_size),
            stride=(patch_size, patch_size),
        )

    def forward(self, images):
        P = self.proj.kernel_size[0]
        columns = F.unfold(images, P, stride=P)  # (B, C*P*P, N)
        matrix = self.proj.weight.reshape(self.proj.out_channels, -1)
        return F.linear(columns.mT, matrix, self.proj.bias)


# ------------------------------------------ add_class_token_and_positions


def add_class_token_and_positions__expand(patch_tokens, cls_token, pos_embed):
    cls = cls_token.expand(patch_tokens.shape[0], -1, -1)
    return torch.cat([cls, patch_tokens], dim=1) + pos_embed


def add_class_token_and_positions__loops(patch_tokens, cls_token, pos_embed):
    sequences = []
    for tokens in patch_tokens:
        sequence = torch.cat((cls_token[0], tokens), dim=0)
        sequences.append(sequence + pos_embed[0])
    return torch.stack(sequences)


def add_class_token_and_positions__fill(patch_tokens, cls_token, pos_embed):
    b, n, d = patch_tokens.shape
    out = patch_tokens.new_empty(b, n + 1, d)
    out[:, :1] = cls_token + pos_embed[:, :1]
    out[:, 1:] = patch_tokens + pos_embed[:, 1:]
    return out


# -------------------------------------------------------- sincos_positions


def sincos_positions__loops(num_positions, embed_dim):
    if embed_dim % 2 == 1:
        raise ValueError(f"embed_dim must be even, got {embed_dim}")
    table = torch.zeros(num_positions, embed_dim)
    for p in range(num_positions):
        for i in range(embed_dim // 2):
            angle = p / 10000 ** (2 * i / embed_dim)
            table[p, 2 * i] = math.sin(angle)
            table[p, 2 * i + 1] = math.cos(angle)
    return table


def sincos_positions__div_term(num_positions, embed_dim):
    # the form of the annotated transformer, all in float32
    if embed_dim % 2 != 0:
        raise ValueError("need an even embed_dim, not {}".format(embed_dim))
    position = torch.arange(num_positions).unsqueeze(1)
    div_term = torch.exp(torch.arange(0, embed_dim, 2) * (-math.log(10000.0) / embed_dim))
    pe = torch.zeros(num_positions, embed_dim)
    pe[:, 0::2] = torch.sin(position * div_term)
    pe[:, 1::2] = torch.cos(position * div_term)
    return pe


def sincos_positions__outer(num_positions, embed_dim):
    if embed_dim % 2:
        raise ValueError(f"odd embed_dim {embed_dim} leaves a sine without its cosine")
    half = torch.arange(embed_dim // 2, dtype=torch.float64)
    omega = 10000.0 ** (-2.0 * half / embed_dim)
    angles = torch.outer(torch.arange(num_positions, dtype=torch.float64), omega)
    return torch.stack((angles.sin(), angles.cos()), dim=-1).flatten(1).float()


# ----------------------------------------------------- sincos_positions_2d


def sincos_positions_2d__loops(grid_size, embed_dim):
    if embed_dim % 4 != 0:
        raise ValueError(f"embed_dim {embed_dim} is not divisible by 4")
    gh, gw = grid_size
    row_code = sincos_positions__loops(gh, embed_dim // 2)
    col_code = sincos_positions__loops(gw, embed_dim // 2)
    cells = []
    for r in range(gh):
        for c in range(gw):
            cells.append(torch.cat([row_code[r], col_code[c]]))
    return torch.stack(cells)


def sincos_positions_2d__repeat(grid_size, embed_dim):
    if embed_dim % 4:
        raise ValueError(f"embed_dim must be a multiple of 4, got {embed_dim}")
    gh, gw = grid_size
    rows = sincos_positions__div_term(gh, embed_dim // 2).repeat_interleave(gw, dim=0)
    cols = sincos_positions__div_term(gw, embed_dim // 2).repeat(gh, 1)
    return torch.cat((rows, cols), dim=1)


def sincos_positions_2d__index(grid_size, embed_dim):
    if embed_dim % 4:
        raise ValueError(f"{embed_dim} % 4 != 0")
    gh, gw = grid_size
    cell = torch.arange(gh * gw)
    row = torch.div(cell, gw, rounding_mode="floor")
    col = cell % gw
    codes = sincos_positions__outer(max(gh, gw), embed_dim // 2)
    return torch.hstack([codes[row], codes[col]])
