"""Right answers to the exercises of notebook 01, each by another road."""

import math

import torch
import torch.nn.functional as F
from torch import nn

# --- unpatchify ---------------------------------------------------------------------------------


def unpatchify_by_fold(patches, patch_size, image_size):
    """The fold of convolutions."""
    return F.fold(patches.transpose(1, 2), image_size, kernel_size=patch_size, stride=patch_size)


def unpatchify_by_loops(patches, patch_size, image_size):
    """Write patch after patch into an empty image."""
    H, W = image_size
    P = patch_size
    C = patches.shape[-1] // P**2
    out = patches.new_zeros(len(patches), C, H, W)
    for i in range(patches.shape[1]):
        top, left = divmod(i, W // P)
        out[:, :, top * P : top * P + P, left * P : left * P + P] = patches[:, i].view(-1, C, P, P)
    return out


def unpatchify_by_einops(patches, patch_size, image_size):
    """One pattern."""
    from einops import rearrange

    return rearrange(
        patches,
        "b (i j) (c p q) -> b c (i p) (j q)",
        i=image_size[0] // patch_size,
        p=patch_size,
        q=patch_size,
    )


def unpatchify_by_joining(patches, patch_size, image_size):
    """Join patches to rows, rows to an image."""
    across = image_size[1] // patch_size
    squares = patches.unflatten(-1, (-1, patch_size, patch_size)).unbind(1)
    rows = [torch.cat(squares[i : i + across], dim=-1) for i in range(0, len(squares), across)]
    return torch.cat(rows, dim=-2)


def unpatchify_by_transposed_convolution(patches, patch_size, image_size):
    """A transposed convolution whose kernels write one pixel each."""
    length = patches.shape[-1]
    kernels = torch.eye(length, dtype=patches.dtype, device=patches.device).view(
        length, -1, patch_size, patch_size
    )
    grid = patches.mT.unflatten(-1, (image_size[0] // patch_size, -1))
    return F.conv_transpose2d(grid, kernels, stride=patch_size)


# --- linear_from_conv ---------------------------------------------------------------------------


def linear_by_state_dict(conv):
    """Load a state dict."""
    linear = nn.Linear(conv.weight[0].numel(), conv.out_channels, bias=conv.bias is not None).to(
        conv.weight
    )
    state = {"weight": conv.weight.flatten(1)}
    if conv.bias is not None:
        state["bias"] = conv.bias
    linear.load_state_dict(state)
    return linear


def linear_by_new_parameters(conv):
    """Replace the parameters."""
    linear = nn.Linear(1, 1, bias=False)
    linear.in_features, linear.out_features = conv.weight[0].numel(), conv.weight.shape[0]
    linear.weight = nn.Parameter(conv.weight.detach().clone().reshape(conv.out_channels, -1))
    if conv.bias is not None:
        linear.bias = nn.Parameter(conv.bias.detach().clone())
    return linear


def linear_by_impulses(conv):
    """Ask the convolution: feed one lit pixel after the other."""
    C, P = conv.in_channels, conv.kernel_size[0]
    with torch.no_grad():
        impulses = torch.eye(C * P * P, dtype=conv.weight.dtype, device=conv.weight.device).view(
            -1, C, P, P
        )
        dark = conv(torch.zeros_like(impulses[:1])).flatten()
        columns = F.conv2d(impulses, conv.weight, stride=P).flatten(1)
        linear = nn.Linear(
            C * P * P, len(dark), conv.bias is not None, dtype=dark.dtype, device=dark.device
        )
        linear.weight.data = columns.T.contiguous()
        if linear.bias is not None:
            linear.bias.data = dark.clone()
    return linear


def linear_by_loops(conv):
    """Copy number by number."""
    D, C, P, Q = conv.weight.shape
    linear = nn.Linear(
        C * P * Q, D, bias=conv.bias is not None, dtype=conv.weight.dtype, device=conv.weight.device
    )
    for out in range(D):
        for c in range(C):
            for row in range(P):
                for column in range(Q):
                    linear.weight.data[out, (c * P + row) * Q + column] = conv.weight.data[
                        out, c, row, column
                    ]
        if conv.bias is not None:
            linear.bias.data[out] = conv.bias.data[out]
    return linear


# --- add_class_token_and_positions --------------------------------------------------------------


def tokens_by_repeat(patch_tokens, cls_token, pos_embed):
    """Repeat instead of expand."""
    return torch.cat((cls_token.repeat(len(patch_tokens), 1, 1), patch_tokens), 1) + pos_embed


def tokens_in_two_parts(patch_tokens, cls_token, pos_embed):
    """Add positions first, each to its part."""
    first = (cls_token + pos_embed[:, :1]).expand(patch_tokens.shape[0], 1, patch_tokens.shape[2])
    return torch.hstack([first, patch_tokens + pos_embed[:, 1:]])


def tokens_by_padding(patch_tokens, cls_token, pos_embed):
    """Make room in front and add."""
    room = F.pad(patch_tokens, (0, 0, 1, 0))
    mask = torch.zeros(1, room.shape[1], 1, dtype=room.dtype, device=room.device)
    mask[:, 0] = 1
    return room + mask * cls_token + pos_embed


def tokens_by_filling(patch_tokens, cls_token, pos_embed):
    """Fill an empty tensor."""
    B, N, D = patch_tokens.shape
    out = patch_tokens.new_empty(B, N + 1, D)
    out[:, 0] = cls_token[0, 0]
    out[:, 1:] = patch_tokens
    return out.add(pos_embed)


# --- sincos_positions ---------------------------------------------------------------------------


def sincos_by_slices(num_positions, embed_dim):
    """Fill even and odd columns; exp and log instead of a power."""
    if embed_dim % 2 == 1:
        raise ValueError("odd")
    table = torch.zeros(num_positions, embed_dim)
    position = torch.arange(num_positions).float().unsqueeze(1)
    rate = torch.exp(torch.arange(0, embed_dim, 2).float() * (-math.log(10000.0) / embed_dim))
    table[:, 0::2] = torch.sin(position * rate)
    table[:, 1::2] = torch.cos(position * rate)
    return table


def sincos_by_loops(num_positions, embed_dim):
    """Number by number."""
    if embed_dim & 1:
        raise ValueError(f"embed_dim={embed_dim}")
    rows = []
    for p in range(num_positions):
        angles = [p / 10000 ** (2 * (j // 2) / embed_dim) for j in range(embed_dim)]
        rows.append([math.cos(a) if j % 2 else math.sin(a) for j, a in enumerate(angles)])
    return torch.tensor(rows)


def sincos_by_phase(num_positions, embed_dim):
    """A cosine is a sine a quarter turn ahead."""
    if embed_dim % 2:
        raise ValueError("embed_dim must be even")
    column = torch.arange(embed_dim, dtype=torch.float64)
    rate = torch.pow(torch.tensor(10000.0, dtype=torch.float64), -2 * (column // 2) / embed_dim)
    turn = (column % 2) * math.pi / 2
    return torch.sin(torch.outer(torch.arange(num_positions, dtype=torch.float64), rate) + turn).to(
        torch.float32
    )


def sincos_by_complex_powers(num_positions, embed_dim):
    """Powers of numbers on the unit circle."""
    if embed_dim % 2:
        raise ValueError("embed_dim must be even")
    rate = 10000 ** (-torch.arange(0, embed_dim, 2, dtype=torch.float64) / embed_dim)
    circle = torch.polar(torch.ones_like(rate), rate)
    turned = circle[None] ** torch.arange(num_positions, dtype=torch.float64)[:, None]
    return torch.view_as_real(turned)[..., [1, 0]].flatten(1).float()


# --- sincos_positions_2d ------------------------------------------------------------------------


def _four_divides(D):
    if D % 4:
        raise ValueError(f"{D} is not divisible by 4")


def sincos_2d_by_broadcast(grid_size, embed_dim):
    """Expand both codes over the grid."""
    _four_divides(embed_dim)
    gh, gw = grid_size
    rows = sincos_by_slices(gh, embed_dim // 2)[:, None].expand(gh, gw, -1)
    columns = sincos_by_slices(gw, embed_dim // 2)[None].expand(gh, gw, -1)
    return torch.cat([rows, columns], dim=-1).reshape(gh * gw, embed_dim)


def sincos_2d_by_index(grid_size, embed_dim):
    """Look up row and column of every cell."""
    _four_divides(embed_dim)
    gh, gw = grid_size
    cell = torch.arange(gh * gw)
    half = sincos_by_phase(max(gh, gw), embed_dim // 2)
    return torch.hstack([half[cell // gw], half[cell % gw]])


def sincos_2d_by_meshgrid(grid_size, embed_dim):
    """Coordinates of all cells, then one formula."""
    _four_divides(embed_dim)
    y, x = torch.meshgrid(torch.arange(grid_size[0]), torch.arange(grid_size[1]), indexing="ij")
    rate = 10000.0 ** (-torch.arange(0, embed_dim // 2, 2).double() / (embed_dim // 2))
    angle = torch.stack([y.flatten(), x.flatten()], dim=1).double()[:, :, None] * rate
    return torch.stack([torch.sin(angle), torch.cos(angle)], dim=-1).reshape(-1, embed_dim).float()


def sincos_2d_by_loops(grid_size, embed_dim):
    """Cell by cell."""
    _four_divides(embed_dim)
    rows, columns = (
        sincos_by_loops(grid_size[0], embed_dim // 2),
        sincos_by_loops(grid_size[1], embed_dim // 2),
    )
    return torch.stack([torch.cat([r, c]) for r in rows for c in columns])


ALTERNATIVES = {
    "unpatchify": [
        unpatchify_by_fold,
        unpatchify_by_loops,
        unpatchify_by_einops,
        unpatchify_by_joining,
        unpatchify_by_transposed_convolution,
    ],
    "linear_from_conv": [
        linear_by_state_dict,
        linear_by_new_parameters,
        linear_by_impulses,
        linear_by_loops,
    ],
    "add_class_token_and_positions": [
        tokens_by_repeat,
        tokens_in_two_parts,
        tokens_by_padding,
        tokens_by_filling,
    ],
    "sincos_positions": [
        sincos_by_slices,
        sincos_by_loops,
        sincos_by_phase,
        sincos_by_complex_powers,
    ],
    "sincos_positions_2d": [
        sincos_2d_by_broadcast,
        sincos_2d_by_index,
        sincos_2d_by_meshgrid,
        sincos_2d_by_loops,
    ],
}
