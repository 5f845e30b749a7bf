"""Notebook 08: what makes attention cheaper, and what it costs in accuracy.

Role: attention in windows, attention that is linear in the number of tokens, fewer tokens by
pruning and by merging, several images in one sequence. Not here: the fused kernel
(``vitedu.fast``), timing (``vitedu.bench``), figures (``vitedu.plots.efficient``).

Legend: B batch, T tokens, N patches, D embed_dim, d head_dim, w window_size, gh gw patch grid. A
mask is True where attention is allowed.

References: Liu et al. 2021, "Swin Transformer" (arXiv 2103.14030); Katharopoulos et al. 2020,
"Transformers are RNNs" (arXiv 2006.16236); Bolya et al. 2023, "Token Merging" (arXiv 2210.09461);
Dehghani et al. 2023, "Patch n' Pack" (arXiv 2307.06304).
"""

from collections.abc import Sequence

import torch
import torch.nn.functional as F

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
        tokens: (B, N+1, D), class token first.
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
