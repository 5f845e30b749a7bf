"""What the textbook layers do without: fast forms, rotary positions, QK-norm, SwiGLU and more.

Role: the layers of a ``ViTConfigWithOptions``, and the functions behind them. An option of
``AttentionWithOptions`` changes one step and adds no parameter, so weights of one form load into
any other. ``SwiGlu`` and ``QuickMlp`` stand in published models since 2021, ``ConvStem`` in place
of ``PatchEmbed``. Not here: the model (``options``).

Legend: B batch, T tokens, D embed_dim, nh heads, hd head_dim, gh gw patch grid.

References: Su et al. 2021, rotary positions (arXiv 2104.09864), along two axes in Heo et al. 2024
(arXiv 2403.13298); Dehghani et al. 2023, section 2, QK-norm (arXiv 2302.05442); Dao et al. 2022,
the fused kernel (arXiv 2205.14135); Shazeer 2020, SwiGLU (arXiv 2002.05202); Xiao et al. 2021,
small convolutions in front (arXiv 2106.14881).
"""

from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from vitedu.attention import (
    MultiHeadAttention,
    merge_heads,
    scaled_dot_product_attention,
    split_heads,
)
from vitedu.encoder import EncoderBlock, Mlp

ROTARY_BASE = 100.0  # the slowest pair of features turns about 1/100 as fast as the first


def rotary_table(
    grid_size: tuple[int, int], head_dim: int, num_prefix_tokens: int = 0
) -> torch.Tensor:
    """Give the angle by which each token turns each pair of its features, as a point on the circle.

    The first half of a head's features turns with the row of the patch, the second with its column.
    The product of a turned query and a turned key then depends only on how far apart they are.

    Args:
        grid_size: (gh, gw).
        head_dim: hd, divisible by 4.
        num_prefix_tokens: tokens before the patches, which have no place and do not turn.

    Returns:
        (T, hd/2, 2) float32: cosine and sine for every token and pair.

    Raises:
        ValueError: hd is not divisible by 4.

    Example:
        >>> table = rotary_table((2, 3), head_dim=8, num_prefix_tokens=1)
        >>> table.shape, table[0].tolist()
        (torch.Size([7, 4, 2]), [[1.0, 0.0], [1.0, 0.0], [1.0, 0.0], [1.0, 0.0]])
    """
    if head_dim % 4:
        raise ValueError(
            f"rotary positions need a head_dim divisible by 4 (got head_dim={head_dim}): "
            "two axes, and pairs of features in each."
        )
    gh, gw = grid_size
    pairs = head_dim // 4  # of features, for each axis
    frequency = ROTARY_BASE ** -(torch.arange(pairs) / pairs)  # (hd/4,), from 1 down
    rows = torch.arange(gh).repeat_interleave(gw)  # (N,) of the patches, row by row
    columns = torch.arange(gw).repeat(gh)
    places = torch.stack([rows, columns], dim=1)[:, :, None]  # (N, 2, 1)
    angles = (places * frequency).flatten(1)  # -> (N, hd/2)
    angles = torch.cat([torch.zeros(num_prefix_tokens, head_dim // 2), angles])  # -> (T, hd/2)
    return torch.stack([angles.cos(), angles.sin()], dim=-1)


def rotate(x: torch.Tensor, table: torch.Tensor) -> torch.Tensor:
    """Turn each pair of neighbouring features by its token's angle; lengths stay.

    A pair read as a complex number turns by one multiplication.

    Args:
        x: queries or keys (..., T, hd), such as (B, nh, T, hd).
        table: (T, hd/2, 2) of ``rotary_table``.

    Returns:
        (..., T, hd), dtype of x.

    Example:
        >>> turned = rotate(torch.ones(4, 4), rotary_table((2, 2), head_dim=4))
        >>> turned.norm(dim=-1).flatten()
        tensor([2.0000, 2.0000, 2.0000, 2.0000])
    """
    pairs = torch.view_as_complex(x.float().unflatten(-1, (-1, 2)))  # (..., T, hd/2)
    turned = pairs * torch.view_as_complex(table.float())  # (T, hd/2)
    return torch.view_as_real(turned).flatten(-2).to(x.dtype)  # -> (..., T, hd)


class MatrixConv2d(nn.Module):
    """A convolution without bias that keeps every kernel as a row of one matrix.

    ``nn.Conv2d`` keeps the same numbers in four axes. Muon, which steps only matrices, passes those
    by; as a matrix it steps them like a linear layer on the pixels under the kernel, which is what
    they are.

    Args:
        in_channels: C.
        out_channels: C'.
        kernel_size: k, odd; a border of zeros keeps the size of the image where the stride is 1.
        stride: pixels between two kernels.

    Example:
        >>> layer = MatrixConv2d(3, 8, kernel_size=3)
        >>> layer.weight.shape, layer(torch.zeros(2, 3, 6, 6)).shape
        (torch.Size([8, 27]), torch.Size([2, 8, 6, 6]))
    """

    def __init__(self, in_channels: int, out_channels: int, kernel_size: int, stride: int = 1):
        super().__init__()
        self.kernel_size, self.stride = kernel_size, stride
        self.weight = nn.Parameter(torch.empty(out_channels, kernel_size**2 * in_channels))
        nn.init.kaiming_uniform_(self.weight, a=5**0.5)  # as nn.Conv2d does

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Map images (B, C, H, W) to (B, C', H', W')."""
        k = self.kernel_size
        kernels = self.weight.unflatten(1, (k, k, -1))  # (C', k, k, C)
        kernels = kernels.permute(0, 3, 1, 2)  # -> (C', C, k, k), channels last, no copy
        return F.conv2d(images, kernels, stride=self.stride, padding=k // 2)


class ConvStem(nn.Module):
    """Make tokens of pixels with several small convolutions in place of one large one.

    The first layer keeps the image's size. Then one layer halves it and others look again, until a
    place stands for a patch; each is a convolution of 3 x 3 with BatchNorm and GELU. A last layer
    of 1 x 1 looks at every place alone. Where the image is twice as small the features are twice as
    many. A token also sees pixels around its patch.

    Args:
        patch_size: P, pixels, a power of 2.
        in_channels: C.
        embed_dim: D, divisible by P; the first layer has D / P features.
        depth: how many layers look again after each halving.

    Raises:
        ValueError: P is no power of 2, or D is not divisible by it.

    Example:
        >>> ConvStem(4, in_channels=3, embed_dim=96)(torch.zeros(2, 3, 32, 32)).shape
        torch.Size([2, 64, 96])

    Reference: Xiao et al. 2021 (arXiv 2106.14881). Departures: their first layer halves the image
    already, for images of 224 px, only their largest stem looks again between halvings, and ReLU
    stands where GELU stands here.
    """

    def __init__(self, patch_size: int, in_channels: int, embed_dim: int, depth: int = 1):
        super().__init__()
        if patch_size.bit_count() != 1 or embed_dim % patch_size:
            raise ValueError(
                "a conv stem halves the image and doubles the features until a place is a patch: "
                "patch_size must be a power of 2 that divides embed_dim (got "
                f"patch_size={patch_size}, embed_dim={embed_dim})."
            )
        self.patch_size = patch_size
        width = embed_dim // patch_size
        layers = [small_convolution(in_channels, width)]
        for _ in range(patch_size.bit_length() - 1):
            layers += [small_convolution(width, 2 * width, stride=2)]
            width = 2 * width
            layers += [small_convolution(width, width) for _ in range(depth)]
        self.layers = nn.Sequential(*layers)
        self.proj = MatrixConv2d(embed_dim, embed_dim, kernel_size=1)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Map images (B, C, H, W) to tokens (B, N, D)."""
        x = self.layers(images.contiguous(memory_format=torch.channels_last))  # -> (B, D, gh, gw)
        return self.proj(x).flatten(2).transpose(1, 2)  # -> (B, D, gh, gw) -> (B, N, D)


def small_convolution(in_channels: int, out_channels: int, stride: int = 1) -> nn.Sequential:
    """Build one layer of ``ConvStem``: 3 x 3, BatchNorm, GELU."""
    convolution = MatrixConv2d(in_channels, out_channels, kernel_size=3, stride=stride)
    return nn.Sequential(convolution, nn.BatchNorm2d(out_channels), nn.GELU())


class QuickMlp(Mlp):
    """An ``Mlp`` with CLIP's cheap form of GELU, ``x * sigmoid(1.702 x)``."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Map tokens (B, T, D) to (B, T, D)."""
        x = self.fc1(x)  # (B, T, D) -> (B, T, hidden)
        return self.fc2(x * torch.sigmoid(1.702 * x))


class SwiGlu(nn.Module):
    """An MLP in which one half of the hidden values decides how much of the other half passes.

    Args:
        embed_dim: D.
        hidden_dim: width of both halves together, an even number.

    Example:
        >>> SwiGlu(embed_dim=12, hidden_dim=64)(torch.zeros(2, 5, 12)).shape
        torch.Size([2, 5, 12])
    """

    def __init__(self, embed_dim: int, hidden_dim: int):
        super().__init__()
        self.fc1 = nn.Linear(embed_dim, hidden_dim)
        self.fc2 = nn.Linear(hidden_dim // 2, embed_dim)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Map tokens (B, T, D) to (B, T, D)."""
        gate, value = self.fc1(x).chunk(2, dim=-1)  # (B, T, hidden) -> twice (B, T, hidden/2)
        return self.fc2(F.silu(gate) * value)


class AttentionWithOptions(MultiHeadAttention):
    """``MultiHeadAttention`` with any of three options; with none of them the results are the same.

    Args:
        embed_dim: D.
        num_heads: nh, a divisor of D.
        qkv_bias: whether the q, k, v projection has a bias.
        fused: use the fastest form at hand, which keeps no weights; ``layer.fused = False``
            switches an instance back, as ``capture`` does while it looks.
        qk_norm: give every query and key mean 0 and variance 1, so that scores cannot grow.
        rotary: (grid_size, num_prefix_tokens), to turn queries and keys by their place, or None.

    Example:
        >>> layer = AttentionWithOptions(12, 3, qk_norm=True, rotary=((2, 2), 1))
        >>> output, weights = layer(torch.zeros(2, 5, 12))
        >>> output.shape, weights.shape
        (torch.Size([2, 5, 12]), torch.Size([2, 3, 5, 5]))
    """

    rotary_table: torch.Tensor | None

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        qkv_bias: bool = True,
        *,
        fused: bool = False,
        qk_norm: bool = False,
        rotary: tuple[tuple[int, int], int] | None = None,
    ):
        super().__init__(embed_dim, num_heads, qkv_bias)
        self.fused, self.qk_norm = fused, qk_norm
        table = None
        if rotary is not None:
            grid_size, num_prefix_tokens = rotary
            table = rotary_table(grid_size, embed_dim // num_heads, num_prefix_tokens)
        self.register_buffer("rotary_table", table, persistent=False)  # follows from the arguments

    # the textbook layer always has weights to give, this one not if it is fused
    def forward(  # type: ignore[override]
        self, x: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor | None]:
        """Map tokens (B, T, D) to output (B, T, D) and weights (B, nh, T, T), None if fused."""
        q, k, v = self.queries_keys_values(x)
        # on a CPU torch's kernel is slow for short sequences, and in bfloat16 for all that a ViT
        # has
        is_slow = q.device.type == "cpu" and (q.dtype is torch.bfloat16 or k.shape[-2] <= 128)
        if self.fused and not is_slow:
            return self.proj(merge_heads(F.scaled_dot_product_attention(q, k, v))), None
        scores = q @ k.transpose(-2, -1) / k.shape[-1] ** 0.5  # (B, nh, T, hd) @ (B, nh, hd, T)
        weights = scores.softmax(dim=-1)  # (B, nh, T, T)
        return self.proj(merge_heads(weights @ v)), None if self.fused else weights

    def queries_keys_values(
        self, x: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Project tokens (B, T, D) to queries, keys and values, each (B, nh, T, hd)."""
        qkv = self.qkv(x).unflatten(-1, (3, self.num_heads, -1))  # (B, T, 3, nh, hd)
        qkv = qkv.permute(2, 0, 3, 1, 4)  # -> (3, B, nh, T, hd)
        # one copy here spares several in the products and in their backward pass; the compiler
        # plans its own copies, and with this one a compiled step on a CPU takes almost twice as
        # long
        if not torch.compiler.is_compiling():
            qkv = qkv.contiguous()
        q, k, v = qkv
        if self.qk_norm or self.rotary_table is not None:
            qk = F.layer_norm(qkv[:2], qkv.shape[-1:]) if self.qk_norm else qkv[:2]
            qk = qk if self.rotary_table is None else rotate(qk, self.rotary_table)
            q, k = qk.to(v.dtype)
        return q, k, v


class LastBlock(EncoderBlock):
    """The last block where the head reads the class token: it computes that token and no other.

    The class token still reads all tokens; what the others would become, nobody looks at. Outputs
    and gradients of the model are those of an ``EncoderBlock``, for a quarter of its products.
    While its attention is not ``fused``, as when ``capture`` looks, it is one.

    Example:
        >>> block = LastBlock(12, 3, attention=AttentionWithOptions)
        >>> block.attn.fused = True
        >>> block(torch.zeros(2, 5, 12)).shape
        torch.Size([2, 1, 12])
    """

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Map tokens (B, T, D) to the class token (B, 1, D)."""
        if not self.attn.fused:
            return super().forward(x)
        q, k, v = self.attn.queries_keys_values(self.norm1(x))  # (B, nh, T, hd) each
        scores = q[:, :, :1] @ k.transpose(-2, -1) / k.shape[-1] ** 0.5  # (B, nh, 1, T)
        x = x[:, :1] + self.attn.proj(merge_heads(scores.softmax(dim=-1) @ v))  # (B, 1, D)
        return x + self.mlp(self.norm2(x))


class DroppingBlock(EncoderBlock):
    """An ``EncoderBlock`` whose branches drop in training: single numbers, and whole images.

    Skipping a branch is ``vitedu.less_data.drop_path``, written here once more because models do
    not know the notebooks; a test holds the two equal.

    Args:
        embed_dim, num_heads, mlp_ratio, **layers: as in ``EncoderBlock``.
        drop_rate: share of the numbers of a branch that are set to 0.
        drop_path_rate: share of the images for which a branch is left out.

    Example:
        >>> block = DroppingBlock(12, 3, drop_rate=0.1, drop_path_rate=0.2)
        >>> block(torch.zeros(2, 5, 12)).shape
        torch.Size([2, 5, 12])
    """

    def __init__(
        self, *sizes: Any, drop_rate: float = 0.0, drop_path_rate: float = 0.0, **layers: Any
    ):
        super().__init__(*sizes, **layers)
        self.drop_rate, self.drop_path_rate = drop_rate, drop_path_rate

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Map tokens (B, T, D) to (B, T, D)."""
        attended, _ = self.attn(self.norm1(x))
        x = x + self.drop(attended)
        return x + self.drop(self.mlp(self.norm2(x)))

    def drop(self, branch: torch.Tensor) -> torch.Tensor:
        """Drop parts of what a branch adds, (B, T, D); outside of training nothing."""
        branch = F.dropout(branch, self.drop_rate, self.training)
        if not (self.training and self.drop_path_rate):
            return branch
        stays = torch.rand(len(branch), device=branch.device) >= self.drop_path_rate
        scale = stays.to(branch.dtype) / (1 - self.drop_path_rate)
        return branch * scale[:, None, None]


class AttentionPool(nn.Module):
    """Make one vector of all tokens: a learned query attends to them, and an MLP follows.

    Example:
        >>> AttentionPool(12, num_heads=3, hidden_dim=48)(torch.zeros(2, 5, 12)).shape
        torch.Size([2, 12])

    Reference: Zhai et al. 2021, section 3.3, the MAP head (arXiv 2106.04560).
    """

    def __init__(self, embed_dim: int, num_heads: int, hidden_dim: int):
        super().__init__()
        self.num_heads = num_heads
        self.latent = nn.Parameter(torch.zeros(1, 1, embed_dim))
        self.q = nn.Linear(embed_dim, embed_dim)
        self.kv = nn.Linear(embed_dim, 2 * embed_dim)
        self.proj = nn.Linear(embed_dim, embed_dim)
        self.norm = nn.LayerNorm(embed_dim)
        self.mlp = Mlp(embed_dim, hidden_dim)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Map tokens (B, T, D) to (B, D)."""
        query = self.q(self.latent).expand(len(x), -1, -1)  # (1, 1, D) -> (B, 1, D)
        parts = (query, *self.kv(x).chunk(2, dim=-1))
        out, _ = scaled_dot_product_attention(
            *(split_heads(each, self.num_heads) for each in parts)
        )
        x = self.proj(merge_heads(out)[:, 0])  # (B, nh, 1, hd) -> (B, D)
        return x + self.mlp(self.norm(x))


MLPS = {"gelu": Mlp, "quick_gelu": QuickMlp, "swiglu": SwiGlu}


def block_with_options(config: Any, number: int) -> EncoderBlock:
    """Build block ``number`` with the layers that a ``ViTConfigWithOptions`` asks for.

    Where something drops, drop-path grows from 0 in the first block to its full rate in the last
    one, as in Huang et al. 2016, section 3. Where the head reads the class token alone, the last
    block of a fused model computes nothing else.
    """
    attention: Any = partial(MultiHeadAttention, qkv_bias=config.qkv_bias)
    if config.fused or config.rope or config.qk_norm:
        attention = partial(
            AttentionWithOptions,
            qkv_bias=config.qkv_bias,
            fused=config.fused,
            qk_norm=config.qk_norm,
            rotary=(config.grid_size, config.num_prefix_tokens) if config.rope else None,
        )
    layers = {"attention": attention, "mlp": MLPS[config.mlp]}
    sizes = config.embed_dim, config.num_heads, config.mlp_ratio
    if config.drop_rate or config.drop_path_rate:
        path_rate = config.drop_path_rate * number / max(1, config.depth - 1)
        return DroppingBlock(*sizes, drop_rate=config.drop_rate, drop_path_rate=path_rate, **layers)
    is_last = number == config.depth - 1
    kind = LastBlock if config.fused and config.pool == "cls" and is_last else EncoderBlock
    return kind(*sizes, **layers)
