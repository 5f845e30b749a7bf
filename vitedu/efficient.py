"""Notebook 08: what makes attention cheaper, and what it costs in accuracy.

Role: attention in windows, attention that is linear in the number of tokens, fewer tokens by
pruning and by merging, several images in one sequence, a trained model with fewer tokens or int8
weights, and the models that the notebook trains to compare.
Not here: the fused kernel (``vitedu.extras.fast``), training (``vitedu.bench.experiments``),
figures (``vitedu.plots.efficient``).

Legend: B batch, T tokens, N patches, D embed_dim, d hd head_dim, nh heads, w window_size, gh gw
patch grid. A mask is True where attention is allowed.

References: Liu et al. 2021, "Swin Transformer" (arXiv 2103.14030); Katharopoulos et al. 2020,
"Transformers are RNNs" (arXiv 2006.16236); Bolya et al. 2023, "Token Merging" (arXiv 2210.09461);
Dehghani et al. 2023, "Patch n' Pack" (arXiv 2307.06304).
"""

import copy
import warnings
from collections.abc import Callable, Sequence
from typing import Any, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from vitedu.attention import merge_heads, split_heads
from vitedu.encoder import EncoderBlock, Mlp
from vitedu.patches import add_class_token_and_positions
from vitedu.vit import VisionTransformer

# on how many tokens a corner token and a central one depend: windows of 4 x 4 in a 12 x 12 grid,
# then the same shifted by 2
tokens_reached = (16, 64)

# by count, linear attention costs what softmax attention does at T = d; here heads of 64 columns
crossing_tokens = 64


def window_partition(x: torch.Tensor, window_size: int) -> torch.Tensor:
    """Cut a grid of tokens into square windows, each a short sequence of its own.

    Attention within windows costs T * w * w products where global attention costs T * T.

    Args:
        x: (B, gh, gw, D); gh and gw are multiples of w.
        window_size: w, the side of a window in tokens.

    Returns:
        (B*num_windows, w*w, D). The windows of one image stand together, row by row from the top
        left; so do the tokens of a window.

    Example:
        >>> window_partition(torch.zeros(2, 6, 9, 5), window_size=3).shape
        torch.Size([12, 9, 5])

    Reference: Liu et al. 2021, section 3.2.
    """
    B, gh, gw, D = x.shape
    w = window_size
    x = x.reshape(B, gh // w, w, gw // w, w, D)  # (B, gh, gw, D) -> (B, gh/w, w, gw/w, w, D)
    x = x.permute(0, 1, 3, 2, 4, 5)  # -> (B, gh/w, gw/w, w, w, D)
    return x.reshape(-1, w * w, D)  # -> (B*num_windows, w*w, D)


def window_merge(
    windows: torch.Tensor, window_size: int, grid_size: tuple[int, int]
) -> torch.Tensor:
    """Put windows back in their places: the exact inverse of ``window_partition``.

    Args:
        windows: (B*num_windows, w*w, D), as ``window_partition`` returns them.
        window_size: w, in tokens.
        grid_size: (gh, gw), in tokens.

    Returns:
        (B, gh, gw, D).

    Example:
        >>> window_merge(torch.zeros(12, 9, 5), window_size=3, grid_size=(6, 9)).shape
        torch.Size([2, 6, 9, 5])
    """
    gh, gw = grid_size
    w, D = window_size, windows.shape[-1]
    x = windows.reshape(-1, gh // w, gw // w, w, w, D)  # -> (B, gh/w, gw/w, w, w, D)
    x = x.permute(0, 1, 3, 2, 4, 5)  # -> (B, gh/w, w, gw/w, w, D)
    return x.reshape(-1, gh, gw, D)  # -> (B, gh, gw, D)


def shifted_window_mask(grid_size: tuple[int, int], window_size: int, shift: int) -> torch.Tensor:
    """Say which tokens of a shifted window are neighbours in the image too.

    A roll brings the first rows and columns to the far side, where they share windows with the last
    ones.

    Args:
        grid_size: (gh, gw), multiples of w.
        window_size: w, in tokens.
        shift: by how many tokens the grid is rolled up and to the left, 0 .. w-1.

    Returns:
        (num_windows, w*w, w*w) boolean, windows and tokens as ``window_partition`` orders them
        after ``torch.roll(x, (-shift, -shift))`` over the grid. True where both tokens came round
        the edge or neither did, in rows and in columns; all True for shift 0.

    Example:
        >>> shifted_window_mask((4, 4), window_size=2, shift=1).sum(dim=(1, 2))
        tensor([16,  8,  8,  4])

    Reference: Liu et al. 2021, section 3.2 and figure 4.
    """
    gh, gw = grid_size
    row_wraps = torch.arange(gh) >= gh - shift  # (gh,) after the roll: came from the top
    column_wraps = torch.arange(gw) >= gw - shift  # (gw,) came from the left
    region = 2 * row_wraps[:, None].int() + column_wraps.int()  # (gh, gw), 0 .. 3
    region = window_partition(region[None, :, :, None], window_size)[..., 0]  # (num_windows, w*w)
    return region[:, :, None] == region[:, None, :]  # (num_windows, w*w, w*w)


def relative_position_index(grid_size: tuple[int, int]) -> torch.Tensor:
    """Number the offsets between tokens, so that equal offsets can share one learned bias.

    Args:
        grid_size: (gh, gw), of an image or a window.

    Returns:
        (N, N) int64, N = gh*gw. Entry (i, j) is ``(row_i - row_j + gh-1) * (2*gw-1) + (column_i -
        column_j + gw-1)``, from 0 to ``(2*gh-1) * (2*gw-1) - 1``.

    Example:
        >>> relative_position_index((1, 3))
        tensor([[2, 1, 0],
                [3, 2, 1],
                [4, 3, 2]])

    Reference: Liu et al. 2021, section 3.2, equation 4; the numbering is that of their code.
    """
    gh, gw = grid_size
    rows = torch.arange(gh).repeat_interleave(gw)  # (N,) of the tokens, row by row
    columns = torch.arange(gw).repeat(gh)
    down = rows[:, None] - rows[None, :] + gh - 1  # (N, N), 0 .. 2gh-2
    across = columns[:, None] - columns[None, :] + gw - 1
    return down * (2 * gw - 1) + across


def linear_attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """Attend with a kernel that is a product of features, so that no T x T matrix is needed.

    ``(f(q) f(k)^T) v`` equals ``f(q) (f(k)^T v)``; the second order costs T * d * dv.

    Args:
        q: queries (..., Tq, d).
        k: keys (..., Tk, d).
        v: values (..., Tk, dv).

    Returns:
        (..., Tq, dv): for each query the mean of the values, weighted with ``f(q_i) . f(k_j)``,
        where ``f(x) = elu(x) + 1``. Scores are not scaled.

    Example:
        >>> linear_attention(torch.zeros(2, 5, 4), torch.zeros(2, 7, 4), torch.ones(2, 7, 3)).shape
        torch.Size([2, 5, 3])

    Reference: Katharopoulos et al. 2020, equations 5 to 7.
    """
    q, k = F.elu(q) + 1, F.elu(k) + 1  # positive features
    collected = k.transpose(-2, -1) @ v  # (..., d, Tk) @ (..., Tk, dv) -> (..., d, dv)
    total = k.sum(dim=-2)[..., None]  # (..., d, 1)
    return (q @ collected) / (q @ total)  # (..., Tq, dv) / (..., Tq, 1)


def prune_tokens(tokens: torch.Tensor, cls_attention: torch.Tensor, keep: int) -> torch.Tensor:
    """Drop the patch tokens that the class token attends to least.

    Args:
        tokens: (B, N+1, D), class token first.
        cls_attention: (B, N), how much the class token attends to each patch.
        keep: how many patch tokens stay, 1 .. N.

    Returns:
        (B, keep+1, D): the class token, then the most attended patch tokens in their original
        order.

    Example:
        >>> tokens = torch.arange(4.0)[None, :, None]
        >>> prune_tokens(tokens, torch.tensor([[0.2, 0.3, 0.5]]), keep=2).flatten()
        tensor([0., 2., 3.])

    Reference: Liang et al. 2022, "Not All Patches Are What You Need" (arXiv 2202.07800), without
    their token that fuses the dropped ones.
    """
    B, _, D = tokens.shape
    chosen = cls_attention.topk(keep, dim=-1).indices.sort(dim=-1).values + 1  # (B, keep), places
    places = torch.cat([chosen.new_zeros(B, 1), chosen], dim=1)  # (B, keep+1)
    return tokens.gather(1, places[:, :, None].expand(-1, -1, D))  # (B, keep+1, D)


def merge_tokens(
    tokens: torch.Tensor, keys: torch.Tensor, sizes: torch.Tensor, merge: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """Merge the patch tokens that resemble another one most, instead of dropping any.

    Args:
        tokens: (B, N+1, D), class token first, N at least 2.
        keys: (B, N+1, d), by which tokens are compared.
        sizes: (B, N+1), how many patches each token stands for.
        merge: by how many tokens the sequence shrinks.

    Returns:
        tokens (B, N+1-merge, D) and sizes (B, N+1-merge). Of the patch tokens, those at even places
        (0, 2, ...) each look for the odd-placed one with the most similar key (cosine). The
        ``merge`` even ones with the highest similarity join theirs, by the mean weighted with
        sizes. The class token stays as it is, and all that remain keep their order.

    Raises:
        ValueError: merge is negative or larger than the number of even-placed patch tokens.

    Example:
        >>> tokens, ones = torch.tensor([0.0, 1, 1, 5, 9]).reshape(1, 5, 1), torch.ones(1, 5)
        >>> keys = torch.tensor([[[1.0, 1], [1, 0], [1, 0], [0, 1], [1, 1]]])
        >>> merged, sizes = merge_tokens(tokens, keys, ones, merge=1)
        >>> merged.flatten(), sizes
        (tensor([0., 1., 5., 9.]), tensor([[1., 2., 1., 1.]]))

    Reference: Bolya et al. 2023, section 3.
    """
    B, T, D = tokens.shape
    if not 0 <= merge <= T // 2:
        raise ValueError(
            f"merge must lie between 0 and {T // 2}, the even-placed ones of {T - 1} patch tokens "
            f"(got merge={merge}); merge fewer tokens in each layer."
        )
    unit = F.normalize(keys, dim=-1)
    # (B, even, odd); place 0 of the sequence is the class token, so even patches stand at odd
    # places
    similarity = unit[:, 1::2] @ unit[:, 2::2].mT
    best, partner = similarity.max(dim=-1)  # (B, even) each
    leaving = best.argsort(dim=-1, descending=True)[:, :merge]  # (B, merge), counted among the even
    target = torch.arange(T, device=tokens.device).repeat(B, 1)  # (B, T): where each token goes
    target = target.scatter(1, 2 * leaving + 1, 2 * partner.gather(1, leaving) + 2)
    stays = torch.ones_like(target, dtype=torch.bool).scatter(1, 2 * leaving + 1, False)  # (B, T)
    total = torch.zeros_like(sizes).scatter_add(1, target, sizes)  # (B, T)
    total = total[stays].reshape(B, -1)  # -> (B, T-merge)
    weighted = tokens * sizes[:, :, None]
    mixed = torch.zeros_like(tokens).scatter_add(1, target[:, :, None].expand(-1, -1, D), weighted)
    mixed = mixed[stays].reshape(B, -1, D)[:, 1:] / total[:, 1:, None]
    return torch.cat([tokens[:, :1], mixed], dim=1), total  # (B, T-merge, D), (B, T-merge)


def packing_mask(lengths: Sequence[int]) -> torch.Tensor:
    """Keep images apart that share one sequence.

    Images of different sizes give sequences of different lengths. Packed one after another they
    need no padding, if no token attends to another image.

    Args:
        lengths: how many tokens each image has.

    Returns:
        (T, T) boolean, T = sum(lengths), True where both tokens belong to one image.

    Example:
        >>> packing_mask([1, 2]).int()
        tensor([[1, 0, 0],
                [0, 1, 1],
                [0, 1, 1]], dtype=torch.int32)

    Reference: Dehghani et al. 2023, section 2.1.
    """
    image = torch.arange(len(lengths)).repeat_interleave(torch.as_tensor(lengths))  # (T,)
    return image[:, None] == image[None, :]


# --- a trained model with less to do -----------------------------------------------------------

Step = Callable[..., tuple[torch.Tensor, torch.Tensor]]


def forward_with(
    model: VisionTransformer,
    images: torch.Tensor,
    shorten: Step | None = None,
    masks: Sequence[torch.Tensor | None] | None = None,
) -> torch.Tensor:
    """Run a trained model, and let tokens leave or be kept apart on the way.

    Attention is the fused function, and a token that stands for s patches counts as s of them in
    every softmax ("proportional attention").

    Args:
        model: with a class token, in eval mode; without rope, qk_norm and norm_first.
        images: (B, C, H, W).
        shorten: called after the attention of each block, as shorten(block number, tokens (B, T,
            D), the class token's weights (B, N), keys (B, T, hd), sizes (B, T)); gives tokens and
            sizes that go on. Weights and keys are means over the heads.
        masks: for each block (T, T) boolean, True where attention is allowed, or None.

    Returns:
        Logits (B, K).

    Reference: Bolya et al. 2023, section 3: merging stands between attention and MLP, and compares
    the mean of the keys over the heads.
    """
    x = add_class_token_and_positions(model.patch_embed(images), model.cls_token, model.pos_embed)
    sizes, nh = x.new_ones(x.shape[:2]), model.config.num_heads
    for i, block in enumerate(cast(Any, model.blocks)):
        parts = block.attn.qkv(block.norm1(x)).chunk(3, dim=-1)
        q, k, v = (split_heads(part, nh) for part in parts)  # (B, nh, T, hd)
        counts = None if (sizes == 1).all() else sizes.log()[:, None, None]  # (B, 1, 1, T)
        mask = masks[i] if masks else None
        if counts is not None:
            mask = counts if mask is None else counts.masked_fill(~mask, -torch.inf)
        attended = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        x = x + block.attn.proj(merge_heads(attended))
        if shorten:
            scores = q[:, :, :1] @ k.mT / q.shape[-1] ** 0.5  # (B, nh, 1, T)
            scores = scores if counts is None else scores + counts
            looks = scores.softmax(dim=-1)[:, :, 0, 1:].mean(dim=1)  # (B, N)
            x, sizes = shorten(i, x, looks, k.mean(dim=1), sizes)
        x = x + block.mlp(block.norm2(x))
    return model.head(model.norm(x)[:, 0])


class Int8Linear(nn.Module):
    """A linear layer with weights of one byte: a scale for each row, rounded to the nearest step.

    Args:
        linear: the layer whose weights it takes.
        bits: of a weight, 2 to 8; one with fewer is still stored in a byte.
    """

    weight: torch.Tensor  # (out, in) int8
    scale: torch.Tensor  # (out, 1)

    def __init__(self, linear: nn.Linear, bits: int = 8):
        super().__init__()
        top = 2 ** (bits - 1) - 1  # 127 for 8 bits
        scale = linear.weight.detach().abs().amax(dim=1, keepdim=True) / top
        self.register_buffer("weight", (linear.weight.detach() / scale).round().to(torch.int8))
        self.register_buffer("scale", scale)
        self.bias = linear.bias

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Give what the layer gave, up to rounding: float products with weights made anew."""
        return F.linear(x, self.weight.to(x.dtype) * self.scale, self.bias)


def quantised(model: nn.Module, bits: int = 8) -> nn.Module:
    """Copy a model with every linear layer replaced by an ``Int8Linear``."""
    smaller = copy.deepcopy(model).eval()
    for parent in list(smaller.modules()):
        for name, child in list(parent.named_children()):
            if isinstance(child, nn.Linear):
                setattr(parent, name, Int8Linear(child, bits))
    return smaller


def with_int8_kernel(model: nn.Module) -> nn.Module:
    """Copy a model so that its linear layers multiply int8 numbers: torch's dynamic quantisation.

    The inputs of each layer are rounded too, with one scale for all. torch has deprecated this
    function; its successor is the package torchao, made for compiled models.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return torch.ao.quantization.quantize_dynamic(model, {nn.Linear}, dtype=torch.qint8)


def bytes_of_linears(model: nn.Module, bits: int = 8) -> int:
    """Add up the bytes of all linear layers, biases left out.

    An ``Int8Linear`` counts as if its weights were packed to ``bits`` each, with its scales.
    """
    layers: list[Any] = [m for m in model.modules() if isinstance(m, nn.Linear | Int8Linear)]
    rounded = [layer for layer in layers if isinstance(layer, Int8Linear)]
    saved = sum(layer.weight.numel() * (8 - bits) // 8 - layer.scale.nbytes for layer in rounded)
    return sum(layer.weight.nbytes for layer in layers) - saved


# --- models of images of 32 px with these forms of attention -----------------------------------


class GridBlock(EncoderBlock):
    """An encoder block on a grid of tokens; here every token sees all others."""

    def __init__(self, embed_dim: int, grid: int):
        # one width has heads of 16 columns, the four widths heads of 8
        super().__init__(embed_dim, embed_dim // (16 if embed_dim == 48 else 8), 2.0)
        self.grid = grid

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Map a grid of tokens (B, gh, gw, D) to (B, gh, gw, D)."""
        x = x + self.mix(self.norm1(x))
        return x + self.mlp(self.norm2(x))

    def mix(self, x: torch.Tensor) -> torch.Tensor:
        """Let the places of a grid exchange information."""
        return self.attend(x.flatten(1, 2)).unflatten(1, x.shape[1:3])

    def attend(self, tokens: torch.Tensor, **options: Any) -> torch.Tensor:
        """Map (B, T, D) to (B, T, D) with the attention of this block."""
        parts = self.attn.qkv(tokens).chunk(3, dim=-1)
        q, k, v = (split_heads(part, self.attn.num_heads) for part in parts)
        return self.attn.proj(merge_heads(self.attention(q, k, v, **options)))

    def attention(self, q: Tensor, k: Tensor, v: Tensor, **options: Any) -> Tensor:
        """Map q, k and v (B, nh, T, hd) to (B, nh, T, hd)."""
        return F.scaled_dot_product_attention(q, k, v, **options)


class LinearBlock(GridBlock):
    """The same with linear attention."""

    def attention(self, q: Tensor, k: Tensor, v: Tensor, **_: Any) -> Tensor:
        return linear_attention(q, k, v)


class RandomFeaturesBlock(GridBlock):
    """The same with random features of the kernel: FAVOR+ (Choromanski et al. 2021, 2009.14794)."""

    directions: torch.Tensor  # (m, hd), m = 4 * hd, drawn once; each hd rows are orthogonal

    def __init__(self, embed_dim: int, grid: int):
        super().__init__(embed_dim, grid)
        hd = embed_dim // self.attn.num_heads
        rows = torch.cat([torch.linalg.qr(torch.randn(hd, hd))[0] for _ in range(4)])
        lengths = torch.randn(4 * hd, hd).norm(dim=1, keepdim=True)
        self.register_buffer("directions", rows * lengths)

    def attention(self, q: Tensor, k: Tensor, v: Tensor, **_: Any) -> Tensor:
        def features(part, over):  # (B, nh, T, hd) -> (B, nh, T, m)
            part = part / part.shape[-1] ** 0.25
            exponent = part @ self.directions.T - part.square().sum(dim=-1, keepdim=True) / 2
            # a common factor cancels; the small number is that of the paper's code
            return (exponent - exponent.amax(dim=over, keepdim=True)).exp() + 1e-4

        q, k = features(q, -1), features(k, (-2, -1))
        return q @ (k.mT @ v) / (q @ k.sum(dim=-2, keepdim=True).mT)


class AveragedKeysBlock(GridBlock):
    """The same with keys and values averaged over squares of 2 x 2."""

    def attention(self, q: Tensor, k: Tensor, v: Tensor, **_: Any) -> Tensor:
        def fewer(part):  # (B, nh, T, hd) -> (B, nh, T/4, hd)
            square = part.mT.flatten(0, 1).unflatten(-1, (self.grid, self.grid))
            return F.avg_pool2d(square, 2).flatten(2).unflatten(0, part.shape[:2]).mT

        return F.scaled_dot_product_attention(q, fewer(k), fewer(v))


class WindowBlock(GridBlock):
    """The same within windows of 4 x 4 tokens, shifted or not; a smaller grid is one window."""

    mask: torch.Tensor  # (windows, w*w, w*w), True where attention is allowed
    index: torch.Tensor  # (w*w, w*w), the number of each offset

    def __init__(self, embed_dim: int, grid: int, shift: int = 0, has_bias: bool = False):
        super().__init__(embed_dim, grid)
        w = self.window_size = min(4, grid)
        self.shift = shift if grid > w else 0
        mask = shifted_window_mask((grid, grid), w, self.shift)
        self.register_buffer("mask", mask, persistent=False)
        self.register_buffer("index", relative_position_index((w, w)), persistent=False)
        # one number for each offset and head, in a row: the optimizer takes tables for matrices
        size = (2 * w - 1) ** 2 * self.attn.num_heads
        self.bias_table = nn.Parameter(torch.zeros(size)) if has_bias else None

    def mix(self, x: torch.Tensor) -> torch.Tensor:
        """Let the places of each window exchange information."""
        B, gh, gw, _ = x.shape
        rolled = x.roll((-self.shift, -self.shift), dims=(1, 2))
        tokens = window_partition(rolled, self.window_size)  # (B*windows, w*w, D)
        scores = torch.zeros(self.mask.shape, device=x.device).masked_fill(~self.mask, -torch.inf)
        scores = scores[:, None]  # (windows, 1, w*w, w*w)
        if self.bias_table is not None:
            scores = scores + self.bias_table.view(self.attn.num_heads, -1)[:, self.index]
        # the windows of one image stand together
        attended = self.attend(tokens, attn_mask=scores.repeat(B, 1, 1, 1))
        merged = window_merge(attended, self.window_size, (gh, gw))
        return merged.roll((self.shift, self.shift), dims=(1, 2))


class MixerBlock(nn.Module):
    """An MLP over places, one over features: MLP-Mixer (Tolstikhin et al. 2021, 2105.01601)."""

    def __init__(self, embed_dim: int, grid: int):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(embed_dim), nn.LayerNorm(embed_dim)
        # as many parameters as the attention has
        self.over_places = Mlp(grid**2, 4 * embed_dim**2 // (2 * grid**2))
        self.mlp = Mlp(embed_dim, 2 * embed_dim)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Map a grid of tokens (B, gh, gw, D) to (B, gh, gw, D)."""
        mixed = self.over_places(self.norm1(x).flatten(1, 2).mT).mT  # over T, each feature alone
        x = x + mixed.unflatten(1, x.shape[1:3])
        return x + self.mlp(self.norm2(x))


class ConvNeXtBlock(nn.Module):
    """A 7 x 7 convolution of each feature, then an MLP (Liu et al. 2022, arXiv 2201.03545)."""

    def __init__(self, embed_dim: int, grid: int):
        super().__init__()
        # a kernel of 7 x 7 on a grid of 8 x 8 or more, and of 3 x 3 on smaller ones
        kernel = 7 if grid >= 8 else 3
        self.conv = nn.Conv2d(embed_dim, embed_dim, kernel, padding=kernel // 2, groups=embed_dim)
        self.norm = nn.LayerNorm(embed_dim)
        # as many parameters as attention and MLP have
        hidden = max(embed_dim, (8 * embed_dim - kernel**2) // 2)
        self.mlp = Mlp(embed_dim, hidden)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Map a grid of tokens (B, gh, gw, D) to (B, gh, gw, D)."""
        mixed = self.conv(x.permute(0, 3, 1, 2)).permute(0, 2, 3, 1)  # (B, D, gh, gw) and back
        return x + self.mlp(self.norm(mixed))


KINDS: Any = {  # name -> what builds a block of embed_dim on a grid
    "global": GridBlock,
    "linear": LinearBlock,
    "random features": RandomFeaturesBlock,
    "averaged keys": AveragedKeysBlock,
    "mixer": MixerBlock,
    "convolution": ConvNeXtBlock,
    "windows": WindowBlock,
}


class Merging(nn.Module):
    """Put 2 x 2 neighbours beside each other and mix them into twice the width: the grid halves."""

    def __init__(self, embed_dim: int):
        super().__init__()
        self.norm = nn.LayerNorm(4 * embed_dim)
        self.reduction = nn.Linear(4 * embed_dim, 2 * embed_dim, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Map (B, gh, gw, D) to (B, gh/2, gw/2, 2D)."""
        _, gh, gw, _ = x.shape
        neighbours = window_partition(x, 2).flatten(1)  # (B*T/4, 4D)
        return self.reduction(self.norm(neighbours)).reshape(-1, gh // 2, gw // 2, 2 * x.shape[-1])


class StagedNetwork(nn.Module):
    """Patches, stages of blocks with merging between them, the mean over all places, a head.

    Args:
        patch_size: P, of images of 32 pixels.
        widths: D of each stage, each twice the one before.
        depths: blocks of each stage.
        kinds: a key of ``KINDS`` for each stage.
        has_positions: whether a learned number is added to every feature of every first token.
        has_bias: whether windows have a learned number for each offset.
    """

    def __init__(
        self,
        patch_size: int,
        widths: list[int],
        depths: list[int],
        kinds: list[str],
        has_positions: bool = False,
        has_bias: bool = False,
    ):
        super().__init__()
        grid = 32 // patch_size
        self.patch_embed = nn.Conv2d(3, widths[0], patch_size, stride=patch_size)
        table = 0.02 * torch.randn(grid, grid, widths[0])
        self.pos_embed = nn.Parameter(table) if has_positions else None
        self.blocks = nn.Sequential()
        for stage, (D, depth, kind) in enumerate(zip(widths, depths, kinds, strict=True)):
            for i in range(depth):
                more = {"shift": 2 * (i % 2), "has_bias": has_bias} if kind == "windows" else {}
                self.blocks.append(KINDS[kind](D, grid, **more))
            if stage + 1 < len(widths):
                self.blocks.append(Merging(D))
                grid //= 2
        self.norm, self.head = nn.LayerNorm(widths[-1]), nn.Linear(widths[-1], 10)

    def embed(self, images: torch.Tensor) -> torch.Tensor:
        """Map images (B, C, H, W) to a grid of tokens (B, gh, gw, D)."""
        x = self.patch_embed(images).permute(0, 2, 3, 1)
        return x if self.pos_embed is None else x + self.pos_embed

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Map images (B, C, H, W) to logits (B, K)."""
        x = self.blocks(self.embed(images))
        return self.head(self.norm(x).mean(dim=(1, 2)))


def macs(model: nn.Module) -> float:
    """Count the millions of multiply-accumulates for one image of 32 px."""
    from torch.nn.attention import SDPBackend, sdpa_kernel
    from torch.utils.flop_counter import FlopCounterMode

    # torch 2.14 counts no fused kernel on a CPU; written as two products, attention counts the same
    as_products = sdpa_kernel(SDPBackend.MATH)
    with torch.no_grad(), as_products, FlopCounterMode(display=False) as counter:
        model.eval()(torch.zeros(1, 3, 32, 32))
    return counter.get_total_flops() / 2e6
