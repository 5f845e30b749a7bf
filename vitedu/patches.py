"""Notebook 01: an image becomes a sequence of tokens.

Role: everything between pixels and the first encoder block. Not here: attention, blocks, the model.

Legend: B batch, C H W image, P patch size, gh gw patch grid, N = gh*gw patches, D embed_dim.

References: Dosovitskiy et al. 2020, "An Image is Worth 16x16 Words", section 3.1 (arXiv
2010.11929); Vaswani et al. 2017, "Attention Is All You Need", section 3.5 (arXiv 1706.03762).
"""

import torch
from torch import nn

tokens_at_224 = (224 // 16) ** 2 + 1  # 14 x 14 patches and the class token

# how much more patch 7 is like patch 8 than patch 0 is, on an 8 x 8 grid of 64 columns: cosines of
# the 1-D code, of the 2-D code
seam_neighbours = (0.2657, -0.1429)

stem_tokens = (224 // 2**3) ** 2  # three convolutions of stride 2 leave 28 x 28 places


def patchify(images: torch.Tensor, patch_size: int) -> torch.Tensor:
    """Cut images into a sequence of flat patches.

    A Transformer reads sequences; this is how an image becomes one.

    Args:
        images: (B, C, H, W).
        patch_size: P, the side of a square patch in pixels.

    Returns:
        (B, N, C*P*P). Patches run row by row from the top left. Inside a patch the order is
        channel, row, column, the order of ``Conv2d.weight.flatten(1)``.

    Raises:
        ValueError: H or W is not divisible by P; the message names the numbers.

    Example:
        >>> patchify(torch.zeros(2, 3, 32, 48), patch_size=8).shape
        torch.Size([2, 24, 192])

    Reference: Dosovitskiy et al. 2020, section 3.1.
    """
    B, C, H, W = images.shape
    P = patch_size
    if H % P or W % P:
        raise ValueError(
            f"image size must be divisible by patch_size (got H={H}, W={W}, patch_size={P}, "
            f"remainders {H % P} and {W % P}); crop or resize the image, or change patch_size."
        )
    gh, gw = H // P, W // P
    x = images.reshape(B, C, gh, P, gw, P)  # (B, C, H, W) -> (B, C, gh, P, gw, P)
    x = x.permute(0, 2, 4, 1, 3, 5)  # -> (B, gh, gw, C, P, P)
    return x.reshape(B, gh * gw, C * P * P)  # -> (B, N, C*P*P)


def unpatchify(patches: torch.Tensor, patch_size: int, image_size: tuple[int, int]) -> torch.Tensor:
    """Put patches back together: the exact inverse of ``patchify``.

    An inverse is the best test of a cut: if nothing was lost, it can be undone.

    Args:
        patches: (B, N, C*P*P), as ``patchify`` returns them.
        patch_size: P, in pixels.
        image_size: (H, W), in pixels.

    Returns:
        (B, C, H, W).

    Raises:
        ValueError: the patches do not fill an image of this size.

    Example:
        >>> unpatchify(torch.zeros(2, 24, 192), patch_size=8, image_size=(32, 48)).shape
        torch.Size([2, 3, 32, 48])
    """
    B, N, length = patches.shape
    P = patch_size
    H, W = image_size
    gh, gw = H // P, W // P
    if H % P or W % P or gh * gw != N or length % (P * P):
        raise ValueError(
            f"{N} patches of {length} values do not fill an image of H={H}, W={W} with "
            f"patch_size={P}; that needs {gh} x {gw} = {gh * gw} patches of C*{P * P} values."
        )
    C = length // (P * P)
    x = patches.reshape(B, gh, gw, C, P, P)  # (B, N, C*P*P) -> (B, gh, gw, C, P, P)
    x = x.permute(0, 3, 1, 4, 2, 5)  # -> (B, C, gh, P, gw, P)
    return x.reshape(B, C, H, W)  # -> (B, C, H, W)


def linear_from_conv(conv: nn.Conv2d) -> nn.Linear:
    """Turn a patch-embedding convolution into the linear layer it secretly is.

    With kernel = stride = P, a convolution sees every patch once and alone: it is a matrix product.

    Args:
        conv: a Conv2d with kernel_size = stride = P and no padding; it is left unchanged.

    Returns:
        An ``nn.Linear(C*P*P, D)`` with its own copy of the values, for which
        ``linear(patchify(x, P))`` equals ``conv(x).flatten(2).transpose(1, 2)``. It has a bias
        if and only if ``conv`` has one.

    Example:
        >>> linear_from_conv(nn.Conv2d(3, 64, kernel_size=4, stride=4))
        Linear(in_features=48, out_features=64, bias=True)
    """
    weight = conv.weight.detach().flatten(1)  # (D, C, P, P) -> (D, C*P*P)
    D, length = weight.shape
    linear = nn.Linear(
        length, D, bias=conv.bias is not None, device=weight.device, dtype=weight.dtype
    )
    with torch.no_grad():
        linear.weight.copy_(weight)
        if conv.bias is not None:
            linear.bias.copy_(conv.bias)
    return linear


def add_class_token_and_positions(
    patch_tokens: torch.Tensor, cls_token: torch.Tensor, pos_embed: torch.Tensor
) -> torch.Tensor:
    """Put the class token first, then add a position vector to every token.

    The class token will collect what the head reads; the positions tell otherwise equal tokens
    apart.

    Args:
        patch_tokens: (B, N, D).
        cls_token: (1, 1, D), one learned vector for all images.
        pos_embed: (1, N+1, D); row 0 belongs to the class token.

    Returns:
        (B, N+1, D).

    Example:
        >>> D = 8
        >>> tokens, cls, pos = torch.zeros(2, 6, D), torch.ones(1, 1, D), torch.zeros(1, 7, D)
        >>> add_class_token_and_positions(tokens, cls, pos).shape
        torch.Size([2, 7, 8])

    Reference: Dosovitskiy et al. 2020, equation 1.
    """
    B, N, D = patch_tokens.shape
    cls = cls_token.expand(B, -1, -1)  # (1, 1, D) -> (B, 1, D), without copying
    tokens = torch.cat([cls, patch_tokens], dim=1)  # (B, N, D) -> (B, N+1, D)
    return tokens + pos_embed


def sincos_positions(num_positions: int, embed_dim: int) -> torch.Tensor:
    """Write each position as a row of sines and cosines of falling frequency.

    A fixed code: every position gets its own row, and a shift of positions is a rotation of rows.

    Args:
        num_positions: how many positions, 0 .. num_positions-1.
        embed_dim: D, even.

    Returns:
        (num_positions, D), float32. Column 2i is ``sin(p / 10000**(2i/D))``, column 2i+1 the
        cosine of the same angle.

    Raises:
        ValueError: D is odd.

    Example:
        >>> sincos_positions(3, 4)[0]
        tensor([0., 1., 0., 1.])

    Reference: Vaswani et al. 2017, section 3.5.
    """
    if embed_dim % 2:
        raise ValueError(
            f"embed_dim must be even, a sine and a cosine for each frequency (got {embed_dim}); "
            f"use {embed_dim - 1} or {embed_dim + 1}."
        )
    position = torch.arange(num_positions, dtype=torch.float64).unsqueeze(1)  # (n, 1)
    exponent = torch.arange(0, embed_dim, 2, dtype=torch.float64) / embed_dim  # (D/2,)
    angle = position / 10000**exponent  # (n, D/2)
    return torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(1).float()  # -> (n, D)


def sincos_positions_2d(grid_size: tuple[int, int], embed_dim: int) -> torch.Tensor:
    """Write each cell of a grid as the code of its row beside the code of its column.

    Args:
        grid_size: (gh, gw), patches down and across.
        embed_dim: D, divisible by 4.

    Returns:
        (gh*gw, D), float32, cells row by row: the first D/2 columns encode the row, the last D/2
        the column, each as ``sincos_positions``.

    Raises:
        ValueError: D is not divisible by 4.

    Example:
        >>> sincos_positions_2d((2, 3), 8).shape
        torch.Size([6, 8])

    Reference: Beyer et al. 2022, "Better plain ViT baselines for ImageNet-1k" (arXiv 2205.01580);
    their columns differ: the column of the grid first, in each half sines before cosines, and
    frequencies that end at exactly 1/10000.
    """
    if embed_dim % 4:
        raise ValueError(
            f"embed_dim must be divisible by 4, half for rows and half for columns "
            f"(got {embed_dim}, remainder {embed_dim % 4})."
        )
    gh, gw = grid_size
    rows = sincos_positions(gh, embed_dim // 2)  # (gh, D/2)
    columns = sincos_positions(gw, embed_dim // 2)  # (gw, D/2)
    return torch.cat(
        [rows.repeat_interleave(gw, dim=0), columns.repeat(gh, 1)], dim=1
    )  # two times (gh*gw, D/2) -> (gh*gw, D)


class PatchEmbed(nn.Module):
    """Turn every patch into a token with one matrix, kept as a convolution ``proj``.

    timm keeps it so, and its weights fit.

    Args:
        patch_size: P, in pixels.
        in_channels: C.
        embed_dim: D.

    Example:
        >>> PatchEmbed(patch_size=4, in_channels=3, embed_dim=64)(torch.zeros(2, 3, 32, 32)).shape
        torch.Size([2, 64, 64])
    """

    def __init__(self, patch_size: int, in_channels: int, embed_dim: int):
        super().__init__()
        self.patch_size = patch_size
        self.proj = nn.Conv2d(in_channels, embed_dim, kernel_size=patch_size, stride=patch_size)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Map images (B, C, H, W) to patch tokens (B, N, D).

        Raises:
            ValueError: H or W is not divisible by P; the message names the numbers.
        """
        H, W = images.shape[-2:]
        P = self.patch_size
        if H % P or W % P:
            raise ValueError(
                f"image size must be divisible by patch_size (got H={H}, W={W}, patch_size={P})."
            )
        return self.proj(images).flatten(2).transpose(1, 2)  # (B, D, gh, gw) -> (B, N, D)
