"""Wrong answers, mostly subtle: right on the usual case, wrong for inputs that the text allows.

Every name is `<exercise>__<slug>`. Needs torch alone. Names with a leading underscore are right
parts that the wrong answers are made of.
"""

import math

import torch
import torch.nn.functional as F
from torch import nn


# ------------------------------------------------------------------------------ right parts


def _divides(images, patch_size):
    H, W = images.shape[-2:]
    if H % patch_size or W % patch_size:
        raise ValueError(f"{H} x {W} is not divisible by the patch size {patch_size}")


def _cut(images, P):
    B, C, H, W = images.shape
    x = images.reshape(B, C, H // P, P, W // P, P).permute(0, 2, 4, 1, 3, 5)
    return x.reshape(B, (H // P) * (W // P), C * P * P)


class _PatchEmbed(nn.Module):
    def __init__(self, patch_size, in_channels, embed_dim):
        super().__init__()
        self.patch_size = patch_size
        self.proj = nn.Conv2d(in_channels, embed_dim, patch_size, stride=patch_size)

    def forward(self, images):
        _divides(images, self.patch_size)
        return self.proj(images).flatten(2).transpose(1, 2)


class _Attention(nn.Module):
    def __init__(self, embed_dim, num_heads, qkv_bias=True):
        super().__init__()
        if embed_dim % num_heads:
            raise ValueError(f"embed_dim {embed_dim} is not divisible by num_heads {num_heads}")
        self.num_heads = num_heads
        self.qkv = nn.Linear(embed_dim, 3 * embed_dim, bias=qkv_bias)
        self.proj = nn.Linear(embed_dim, embed_dim)

    def heads(self, x):
        B, T, D = x.shape
        parts = self.qkv(x).chunk(3, dim=-1)
        return [p.reshape(B, T, self.num_heads, -1).transpose(1, 2) for p in parts]

    def forward(self, x):
        q, k, v = self.heads(x)
        weights = (q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5).softmax(-1)
        return self.proj((weights @ v).transpose(1, 2).flatten(2)), weights


class _Mlp(nn.Module):
    approximate = "none"

    def __init__(self, embed_dim, hidden_dim):
        super().__init__()
        self.fc1 = nn.Linear(embed_dim, hidden_dim)
        self.fc2 = nn.Linear(hidden_dim, embed_dim)

    def forward(self, x):
        return self.fc2(F.gelu(self.fc1(x), approximate=self.approximate))


class _Block(nn.Module):
    eps = 1e-6

    def __init__(self, embed_dim, num_heads, mlp_ratio=4.0, qkv_bias=True):
        super().__init__()
        self.norm1 = nn.LayerNorm(embed_dim, eps=self.eps)
        self.attn = _Attention(embed_dim, num_heads, qkv_bias)
        self.norm2 = nn.LayerNorm(embed_dim, eps=self.eps)
        self.mlp = _Mlp(embed_dim, int(embed_dim * mlp_ratio))

    def forward(self, x):
        x = x + self.attn(self.norm1(x))[0]
        return x + self.mlp(self.norm2(x))


class _ViT(nn.Module):
    block = _Block
    eps = 1e-6

    def __init__(self, config):
        super().__init__()
        c = config
        D = c.embed_dim
        self.config = config
        self.patch_embed = _PatchEmbed(c.patch_size, c.in_channels, D)
        self.cls_token = nn.Parameter(torch.zeros(1, 1, D))
        tokens = (c.image_size // c.patch_size) ** 2 + 1
        self.pos_embed = nn.Parameter(torch.zeros(1, tokens, D))
        self.blocks = self.make_blocks(c)
        self.norm = nn.LayerNorm(D, eps=self.eps)
        self.head = nn.Linear(D, c.num_classes)
        nn.init.trunc_normal_(self.cls_token, std=0.02)
        nn.init.trunc_normal_(self.pos_embed, std=0.02)

    def make_blocks(self, c):
        return nn.ModuleList(
            self.block(c.embed_dim, c.num_heads, c.mlp_ratio, c.qkv_bias) for _ in range(c.depth)
        )

    def tokens(self, images):
        x = self.patch_embed(images)
        return torch.cat([self.cls_token.expand(len(x), -1, -1), x], 1) + self.pos_embed

    def forward(self, images):
        x = self.tokens(images)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x)[:, 0])


# --------------------------------------------------------------------------------- patchify


def patchify__sides_sorted(images, patch_size):
    # The shorter side is taken for the height: wrong for images that are higher than wide.
    _divides(images, patch_size)
    P = patch_size
    B, C, H, W = images.shape
    gh, gw = sorted((H // P, W // P))
    x = images.reshape(B, C, gh, P, gw, P).permute(0, 2, 4, 1, 3, 5)
    return x.reshape(B, gh * gw, C * P * P)


def patchify__one_row_of_patches(images, patch_size):
    # Grids of one row (1 x 4) take a shortcut that puts rows before channels: wrong for gh = 1 and
    # more than one channel.
    _divides(images, patch_size)
    P = patch_size
    B, C, H, W = images.shape
    if H == P:
        x = images.reshape(B, C, P, W // P, P).permute(0, 3, 2, 1, 4)
        return x.reshape(B, W // P, C * P * P)
    return _cut(images, P)


def patchify__chunks_of_64(images, patch_size):
    # Works in chunks of 64 patches and forgets the last incomplete chunk (zeros): wrong for more
    # than 64 patches unless their number is a multiple of 64.
    _divides(images, patch_size)
    whole = _cut(images, patch_size)
    N = whole.shape[1]
    pieces = torch.zeros_like(whole)
    for start in range(0, N // 64 * 64 or N, 64):
        pieces[:, start : start + 64] = whole[:, start : start + 64]
    return pieces


def patchify__batches_of_8(images, patch_size):
    # Works on 8 images at a time and forgets the rest: zeros for image 9 of 9 and image 17 of 17.
    _divides(images, patch_size)
    out = torch.zeros_like(_cut(images, patch_size))
    for i in range(max(1, len(images) // 8)):
        out[8 * i : 8 * i + 8] = _cut(images[8 * i : 8 * i + 8], patch_size)
    return out


def patchify__only_first_image_learns(images, patch_size):
    # Numbers right; gradients reach the first image only.
    _divides(images, patch_size)
    first, others = _cut(images[:1], patch_size), _cut(images[1:], patch_size)
    return torch.cat([first, others.detach()])


def patchify__strides_of_contiguous(images, patch_size):
    # Strides are computed from the shape: wrong for images that are not contiguous (channels_last,
    # a transposed or cropped image, a batch made with expand).
    _divides(images, patch_size)
    P = patch_size
    B, C, H, W = images.shape
    shape, strides = (B, H // P, W // P, C, P, P), (C * H * W, P * W, P, H * W, W, 1)
    strides = tuple(s if n > 1 else 0 for n, s in zip(shape, strides))
    return images.as_strided(shape, strides).reshape(B, (H // P) * (W // P), C * P * P)


def patchify__patches_of_one_pixel(images, patch_size):
    # A shortcut for P = 1 reshapes where it should transpose: wrong for P = 1 with C > 1.
    _divides(images, patch_size)
    B, C, H, W = images.shape
    if patch_size == 1:
        return images.reshape(B, H * W, C)
    return _cut(images, patch_size)


def patchify__axes_found_by_size(images, patch_size):
    # Finds each axis by its length: wrong where lengths coincide (C = gh, P = gh, P = gw, ...), as
    # with 3 channels and 3 rows of patches.
    _divides(images, patch_size)
    P = patch_size
    B, C, H, W = images.shape
    x = images.reshape(B, C, H // P, P, W // P, P)
    free, axes = [1, 2, 3, 4, 5], [0]
    for size in (H // P, W // P, C, P, P):
        axis = next(a for a in free if x.shape[a] == size)
        free.remove(axis)
        axes.append(axis)
    return x.permute(axes).reshape(B, -1, C * P * P)


_PATCHIFY_TABLE = {}


def patchify__table_kept_by_number(images, patch_size):
    # Keeps a table of places between calls under (C, P, N): a 2 x 8 grid after a 4 x 4 grid gets
    # the old table. Every first call is right.
    _divides(images, patch_size)
    B, C, H, W = images.shape
    key = C, patch_size, H * W // patch_size**2
    if key not in _PATCHIFY_TABLE:
        places = torch.arange(C * H * W).reshape(1, C, H, W)
        _PATCHIFY_TABLE[key] = _cut(places, patch_size)[0]
    return images.flatten(1)[:, _PATCHIFY_TABLE[key].to(images.device)]


def patchify__columns_first_inside(images, patch_size):
    # Plain: inside a patch columns come before rows; wrong unless P = 1.
    _divides(images, patch_size)
    P = patch_size
    B, C, H, W = images.shape
    x = images.reshape(B, C, H // P, P, W // P, P).permute(0, 2, 4, 1, 5, 3)
    return x.reshape(B, (H // P) * (W // P), C * P * P)


# ------------------------------------------------------------------------------- PatchEmbed


class PatchEmbed__bias_detached(_PatchEmbed):
    # Numbers right; the bias gets no gradient.
    def forward(self, images):
        _divides(images, self.patch_size)
        W, b = self.proj.weight, self.proj.bias.detach()
        return _cut(images, self.patch_size) @ W.flatten(1).T + b


class PatchEmbed__learns_only_if_images_do(_PatchEmbed):
    # Numbers right; no parameter learns unless the images require gradients.
    def forward(self, images):
        with torch.set_grad_enabled(images.requires_grad):
            return super().forward(images)


class PatchEmbed__matrix_of_init(_PatchEmbed):
    # The matrix is copied in __init__: right for a new module, wrong after weights are loaded or
    # learned, and no gradient for proj.weight.
    def __init__(self, patch_size, in_channels, embed_dim):
        super().__init__(patch_size, in_channels, embed_dim)
        matrix = self.proj.weight.detach().flatten(1).clone()
        self.register_buffer("matrix", matrix, persistent=False)

    def forward(self, images):
        _divides(images, self.patch_size)
        return _cut(images, self.patch_size) @ self.matrix.T + self.proj.bias


class PatchEmbed__width_found_by_size(_PatchEmbed):
    # Transposes only where the last axis is not D: wrong for as many patches as D.
    def forward(self, images):
        _divides(images, self.patch_size)
        x = self.proj(images).flatten(2)
        return x if x.shape[-1] == self.proj.out_channels else x.transpose(1, 2)


class PatchEmbed__columns_in_chunks(_PatchEmbed):
    # Fills 64 columns at a time and forgets the rest: zeros in the last columns for widths above 64
    # that are no multiple of 64 (96, 100).
    def forward(self, images):
        x = super().forward(images)
        D = x.shape[-1]
        kept = D // 64 * 64 or D
        return torch.cat([x[..., :kept], torch.zeros_like(x[..., kept:])], -1)


class PatchEmbed__dropout_in_training(_PatchEmbed):
    # Drops a tenth of the numbers in train mode; right in eval mode.
    def forward(self, images):
        return F.dropout(super().forward(images), 0.1, self.training)


class PatchEmbed__last_images_kept(_PatchEmbed):
    # Returns the kept result for the same tensor of images: wrong after the weights changed (a
    # training loop on one batch), and a second backward crashes.
    kept = (None, None)

    def forward(self, images):
        if self.kept[0] is not images:
            self.kept = images, super().forward(images)
        return self.kept[1]


class PatchEmbed__portrait_by_columns(_PatchEmbed):
    # Portrait images (H > W) are read column by column; square and landscape images are right.
    def forward(self, images):
        _divides(images, self.patch_size)
        x = self.proj(images)
        if images.shape[2] > images.shape[3]:
            x = x.transpose(2, 3)
        return x.flatten(2).transpose(1, 2)


class PatchEmbed__linear_made_in_forward(_PatchEmbed):
    # A Linear with copied values is made in every forward: numbers right, proj never learns.
    def forward(self, images):
        _divides(images, self.patch_size)
        D, C, P, _ = self.proj.weight.shape
        linear = nn.Linear(C * P * P, D).to(self.proj.weight)
        with torch.no_grad():
            linear.weight.copy_(self.proj.weight.flatten(1))
            linear.bias.copy_(self.proj.bias)
        return linear(_cut(images, self.patch_size))


class PatchEmbed__reshape_for_transpose(_PatchEmbed):
    # Plain: (B, D, gh, gw) reshaped to (B, N, D): wrong unless N = 1 or D = 1.
    def forward(self, images):
        _divides(images, self.patch_size)
        x = self.proj(images)
        return x.reshape(len(x), -1, x.shape[1])


# ----------------------------------------------------------- add_class_token_and_positions


def _join(patch_tokens, cls_token):
    return torch.cat([cls_token.expand(len(patch_tokens), -1, -1), patch_tokens], 1)


def add_class_token_and_positions__class_token_detached(patch_tokens, cls_token, pos_embed):
    # Numbers right; the class token gets no gradient.
    return _join(patch_tokens, cls_token.detach()) + pos_embed


def add_class_token_and_positions__learns_only_if_tokens_do(patch_tokens, cls_token, pos_embed):
    # Numbers right; class token and positions get gradients only where the tokens require them.
    with torch.set_grad_enabled(patch_tokens.requires_grad):
        return _join(patch_tokens, cls_token) + pos_embed


def add_class_token_and_positions__batch_as_tokens(patch_tokens, cls_token, pos_embed):
    # Positions are taken for one row an image where there are as many tokens as images: wrong for
    # B = N + 1.
    x, positions = _join(patch_tokens, cls_token), pos_embed[0]
    return x + (positions[:, None] if len(positions) == len(x) else positions)


def add_class_token_and_positions__argument_changed(patch_tokens, cls_token, pos_embed):
    # Adds the positions to the caller's patch tokens where these need no gradient.
    if patch_tokens.requires_grad:
        patch_tokens = patch_tokens.clone()
    with torch.no_grad():
        patch_tokens += pos_embed[:, 1:]
    patch_tokens = patch_tokens + (pos_embed[:, 1:] - pos_embed[:, 1:].detach())
    return _join(patch_tokens, cls_token + pos_embed[:, :1])


def add_class_token_and_positions__eight_images(patch_tokens, cls_token, pos_embed):
    # Of every 16 images only the first 8 get positions: right for batches of up to 8, wrong for 9
    # and 17.
    x = _join(patch_tokens, cls_token)
    gets = torch.arange(len(x), device=x.device) % 16 < 8
    return x + pos_embed * gets.to(x.dtype)[:, None, None]


def add_class_token_and_positions__first_64(patch_tokens, cls_token, pos_embed):
    # Patches after the 64th get no position: wrong for more than 64 patches.
    x = _join(patch_tokens, cls_token)
    return torch.cat([x[:, :65] + pos_embed[:, :65], x[:, 65:]], 1)


_KEPT_POSITIONS = {}


def add_class_token_and_positions__positions_kept(patch_tokens, cls_token, pos_embed):
    # Keeps the positions of the first call with each shape: wrong from the second call on.
    kept = _KEPT_POSITIONS.setdefault(
        (pos_embed.shape, pos_embed.dtype), pos_embed.detach().clone()
    )
    return _join(patch_tokens, cls_token) + kept + (pos_embed - pos_embed.detach())


def add_class_token_and_positions__shorter_first(patch_tokens, cls_token, pos_embed):
    # Puts the shorter part first: wrong for N = 1, where both are equally long.
    parts = [patch_tokens, cls_token.expand(len(patch_tokens), -1, -1)]
    return torch.cat(sorted(parts, key=lambda part: part.shape[1]), 1) + pos_embed


def add_class_token_and_positions__class_token_without_position(patch_tokens, cls_token, pos_embed):
    # Plain: the class token gets no position; right where row 0 of the positions is 0.
    return _join(patch_tokens + pos_embed[:, 1:], cls_token)


def add_class_token_and_positions__class_token_last(patch_tokens, cls_token, pos_embed):
    # Plain: class token last.
    return torch.cat([patch_tokens, cls_token.expand(len(patch_tokens), -1, -1)], 1) + pos_embed


# ---------------------------------------------------------------------------------- softmax


def softmax__clamped(x, dim=-1):
    # Clamps at +-80 instead of the shift: wrong where scores beyond 80 differ, as (1e4, 9e3), or
    # (-1e4, -9e3); right for (1e4, 0).
    e = x.clamp(-80, 80).exp()
    return e / e.sum(dim, keepdim=True)


def softmax__one_maximum_for_all(x, dim=-1):
    # Subtracts the maximum of the whole tensor: nan in rows that lie far (100 and more) below it.
    e = (x - x.max()).exp()
    return e / e.sum(dim, keepdim=True)


def softmax__shift_only_down(x, dim=-1):
    # Shifts by max(0, maximum): nan for rows whose scores are all very negative (-1e4).
    e = (x - x.amax(dim, keepdim=True).clamp(min=0)).exp()
    return e / e.sum(dim, keepdim=True)


def softmax__sum_detached(x, dim=-1):
    # Numbers right; the sum is detached, so gradients are wrong.
    e = (x - x.amax(dim, keepdim=True)).exp()
    return e / e.sum(dim, keepdim=True).detach()


def softmax__unsqueezed_last(x, dim=-1):
    # Maximum and sum come back as the last axis whatever dim is: silently wrong for dim = 0 of a
    # square matrix, a crash for other sizes.
    e = (x - x.max(dim).values.unsqueeze(-1)).exp() if x.dim() else torch.ones_like(x)
    return e / e.sum(dim).unsqueeze(-1) if x.dim() else e


def softmax__movedim_twice(x, dim=-1):
    # Moves the axis to the end and moves it "back" by the same call: wrong for dim = 0 (or any that
    # is two places from the end) of three or more axes.
    x = x.movedim(dim, -1)
    e = (x - x.amax(-1, keepdim=True)).exp()
    return (e / e.sum(-1, keepdim=True)).movedim(dim, -1)


def softmax__sum_of_whole_chunks(x, dim=-1):
    # The sum runs over whole chunks of 64 and forgets the rest: wrong for more than 64 scores
    # unless a multiple of 64.
    e = (x - x.amax(dim, keepdim=True)).exp()
    n = x.shape[dim] if x.dim() else 1
    if n <= 64:
        return e / e.sum(dim, keepdim=True)
    return e / e.narrow(dim, 0, n // 64 * 64).sum(dim, keepdim=True)


def softmax__argument_changed(x, dim=-1):
    # Subtracts the maximum from the caller's scores where these need no gradient.
    if x.requires_grad:
        x = x - x.amax(dim, keepdim=True)
    else:
        x -= x.amax(dim, keepdim=True)
    e = x.exp()
    return e / e.sum(dim, keepdim=True)


def softmax__learns_only_leaves(x, dim=-1):
    # Numbers right; no gradient where x was itself computed (every score in a model).
    with torch.set_grad_enabled(x.is_leaf and x.requires_grad):
        e = (x - x.amax(dim, keepdim=True)).exp()
        return e / e.sum(dim, keepdim=True)


def softmax__no_shift(x, dim=-1):
    # Plain: nothing is subtracted: nan above 88.
    return x.exp() / x.exp().sum(dim, keepdim=True)


# ------------------------------------------------------------ scaled_dot_product_attention


def scaled_dot_product_attention__scaled_by_values(q, k, v):
    # Scales by the width of the values: right where dv = d.
    w = (q @ k.transpose(-2, -1) / v.shape[-1] ** 0.5).softmax(-1)
    return w @ v, w


def scaled_dot_product_attention__queries_in_chunks(q, k, v):
    # Answers 64 queries at a time and forgets the rest: zeros for more than 64 queries unless a
    # multiple of 64.
    w = (q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5).softmax(-1)
    kept = w.shape[-2] // 64 * 64 or w.shape[-2]
    w = torch.cat([w[..., :kept, :], torch.zeros_like(w[..., kept:, :])], -2)
    return w @ v, w


def scaled_dot_product_attention__weights_detached(q, k, v):
    # Output right with its gradients; the returned weights carry none.
    w = (q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5).softmax(-1)
    return w @ v, w.detach()


def scaled_dot_product_attention__one_maximum_for_all(q, k, v):
    # Softmax with the maximum of the whole tensor: nan for a query whose scores lie 100 below those
    # of another one.
    scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
    e = (scores - scores.max()).exp()
    w = e / e.sum(-1, keepdim=True)
    return w @ v, w


def scaled_dot_product_attention__three_axes(q, k, v):
    # Transposes axes 1 and 2: right with one leading axis, wrong or a crash with none or two
    # (silently wrong where heads, keys and depth are equally many).
    w = (q @ k.transpose(1, 2) / q.shape[-1] ** 0.5).softmax(-1)
    return w @ v, w


def scaled_dot_product_attention__argument_changed(q, k, v):
    # Divides the caller's queries by the root where these need no gradient.
    q = q.clone() if q.requires_grad else q
    q /= q.shape[-1] ** 0.5
    w = (q @ k.transpose(-2, -1)).softmax(-1)
    return w @ v, w


def scaled_dot_product_attention__keys_detached(q, k, v):
    # Numbers right; the keys get no gradient.
    w = (q @ k.detach().transpose(-2, -1) / q.shape[-1] ** 0.5).softmax(-1)
    return w @ v, w


def scaled_dot_product_attention__zeros_are_padding(q, k, v):
    # Keys of zeros are taken for padding and left out (unless all are zero): wrong for a zero key,
    # which has score 0 and a weight.
    padding = (k == 0).all(-1)
    padding = padding & ~padding.all(-1, keepdim=True)
    scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
    w = scores.masked_fill(padding[..., None, :], -torch.inf).softmax(-1)
    return w @ v, w


def scaled_dot_product_attention__best_64_keys(q, k, v):
    # Only the 64 best keys get weights: wrong for more than 64 keys.
    scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
    best = scores.topk(min(64, scores.shape[-1]), -1)
    w = torch.zeros_like(scores).scatter(-1, best.indices, best.values.softmax(-1))
    return w @ v, w


def scaled_dot_product_attention__softmax_over_queries(q, k, v):
    # Plain: softmax over the queries.
    w = (q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5).softmax(-2)
    return w @ v, w


# ----------------------------------------------------------------------- MultiHeadAttention


class MultiHeadAttention__scaled_by_width(_Attention):
    # Plain: scales by the root of D instead of D/h: right for one head.
    def forward(self, x):
        q, k, v = self.heads(x)
        weights = (q @ k.transpose(-2, -1) / x.shape[-1] ** 0.5).softmax(-1)
        return self.proj((weights @ v).transpose(1, 2).flatten(2)), weights


class MultiHeadAttention__heads_not_merged(_Attention):
    # Plain: (B, h, T, d) reshaped to (B, T, D) without a transpose: right for one head or one
    # token; the weights are always right.
    def forward(self, x):
        q, k, v = self.heads(x)
        weights = (q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5).softmax(-1)
        return self.proj((weights @ v).reshape(x.shape)), weights


class MultiHeadAttention__learns_only_if_x_does(_Attention):
    # Numbers right; no parameter learns where x requires no gradient.
    def forward(self, x):
        with torch.set_grad_enabled(x.requires_grad):
            return super().forward(x)


class MultiHeadAttention__bias_always(_Attention):
    # qkv_bias is not passed on: right for the default, wrong for qkv_bias=False.
    def __init__(self, embed_dim, num_heads, qkv_bias=True):
        super().__init__(embed_dim, num_heads)


class MultiHeadAttention__proj_detached(_Attention):
    # Numbers right; the weight of proj gets no gradient (its bias does).
    def forward(self, x):
        q, k, v = self.heads(x)
        weights = (q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5).softmax(-1)
        out = (weights @ v).transpose(1, 2).flatten(2)
        return F.linear(out, self.proj.weight.detach(), self.proj.bias), weights


class MultiHeadAttention__dropout_in_training(_Attention):
    # A tenth of the weights is dropped in train mode; right in eval mode.
    def forward(self, x):
        q, k, v = self.heads(x)
        weights = (q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5).softmax(-1)
        weights = F.dropout(weights, 0.1, self.training)
        return self.proj((weights @ v).transpose(1, 2).flatten(2)), weights


class MultiHeadAttention__no_gradient_in_eval(_Attention):
    # Numbers right; nothing carries a gradient in eval mode (needed for saliency and for frozen
    # models under a new head).
    def forward(self, x):
        with torch.set_grad_enabled(self.training and torch.is_grad_enabled()):
            return super().forward(x)


class MultiHeadAttention__heads_found_by_size(_Attention):
    # Transposes only where axis 1 is not already as long as the number of heads: wrong for as many
    # tokens as heads.
    def forward(self, x):
        B, T, D = x.shape
        parts = [p.reshape(B, T, self.num_heads, -1) for p in self.qkv(x).chunk(3, dim=-1)]
        q, k, v = (p if p.shape[1] == self.num_heads else p.transpose(1, 2) for p in parts)
        weights = (q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5).softmax(-1)
        return self.proj((weights @ v).transpose(1, 2).flatten(2)), weights


class MultiHeadAttention__thirds_kept(_Attention):
    # The thirds of qkv are split once, at the first forward, and kept: wrong after a step of the
    # optimizer or after other weights are loaded; qkv never learns.
    thirds = None

    def forward(self, x):
        if self.thirds is None:
            W = self.qkv.weight.detach().clone().chunk(3)
            b = (None,) * 3 if self.qkv.bias is None else self.qkv.bias.detach().clone().chunk(3)
            self.thirds = list(zip(W, b))
        B, T, D = x.shape
        parts = [F.linear(x, W, b) for W, b in self.thirds]
        q, k, v = (p.reshape(B, T, self.num_heads, -1).transpose(1, 2) for p in parts)
        weights = (q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5).softmax(-1)
        return self.proj((weights @ v).transpose(1, 2).flatten(2)), weights


class MultiHeadAttention__near_tokens_only(_Attention):
    # A token sees only tokens at most 64 places away: wrong for more than 65 tokens.
    def forward(self, x):
        q, k, v = self.heads(x)
        places = torch.arange(x.shape[1], device=x.device)
        far = (places[:, None] - places).abs() > 64
        scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
        weights = scores.masked_fill(far, -torch.inf).softmax(-1)
        return self.proj((weights @ v).transpose(1, 2).flatten(2)), weights


# ------------------------------------------------------------------------------- layer_norm


def layer_norm__eps_outside(x, weight, bias, eps=1e-6):
    # Plain: eps is added to the standard deviation: shows for tokens of small spread, or a large
    # eps.
    mean, std = x.mean(-1, keepdim=True), x.var(-1, correction=0, keepdim=True).sqrt()
    return (x - mean) / (std + eps) * weight + bias


def layer_norm__unbiased(x, weight, bias, eps=1e-6):
    # Plain: variance over D - 1; hard to see for large D.
    mean, var = x.mean(-1, keepdim=True), x.var(-1, keepdim=True)
    return (x - mean) / (var + eps).sqrt() * weight + bias


def layer_norm__mean_of_squares(x, weight, bias, eps=1e-6):
    # Variance as mean of squares minus squared mean: nan or noise in float32 for tokens with a
    # large common offset (1e4).
    mean = x.mean(-1, keepdim=True)
    var = (x * x).mean(-1, keepdim=True) - mean * mean
    return (x - mean) / (var + eps).sqrt() * weight + bias


def layer_norm__eps_ignored(x, weight, bias, eps=1e-6):
    # Uses 1e-6 whatever eps is: wrong for another eps with small variance (or a large eps).
    mean = x.mean(-1, keepdim=True)
    var = ((x - mean) ** 2).mean(-1, keepdim=True)
    return (x - mean) / (var + 1e-6).sqrt() * weight + bias


def layer_norm__variance_detached(x, weight, bias, eps=1e-6):
    # Numbers right; variance is detached, so the gradient of x is wrong (those of weight and bias
    # are right).
    mean = x.mean(-1, keepdim=True)
    var = ((x - mean) ** 2).mean(-1, keepdim=True).detach()
    return (x - mean) / (var + eps).sqrt() * weight + bias


def layer_norm__shift_before_scale(x, weight, bias, eps=1e-6):
    # (normed + bias) * weight: right where weight is 1 or bias is 0.
    mean = x.mean(-1, keepdim=True)
    var = ((x - mean) ** 2).mean(-1, keepdim=True)
    return ((x - mean) / (var + eps).sqrt() + bias) * weight


def layer_norm__variance_at_least_eps(x, weight, bias, eps=1e-6):
    # max(variance, eps) instead of the sum: right for variance 0 and for variances far above eps.
    mean = x.mean(-1, keepdim=True)
    var = ((x - mean) ** 2).mean(-1, keepdim=True)
    return (x - mean) / var.clamp(min=eps).sqrt() * weight + bias


def layer_norm__learns_only_if_x_does(x, weight, bias, eps=1e-6):
    # Numbers right; weight and bias get no gradient where x requires none.
    with torch.set_grad_enabled(x.requires_grad):
        mean = x.mean(-1, keepdim=True)
        var = ((x - mean) ** 2).mean(-1, keepdim=True)
        return (x - mean) / (var + eps).sqrt() * weight + bias


def layer_norm__mean_of_means(x, weight, bias, eps=1e-6):
    # Means are taken over pieces of 64 features, then over pieces: wrong for D above 64 that is no
    # multiple of 64 (96, 100).
    def mean(y):
        return torch.stack([p.mean(-1) for p in y.split(64, -1)]).mean(0)[..., None]

    centred = x - mean(x)
    return centred / (mean(centred**2) + eps).sqrt() * weight + bias


def layer_norm__argument_changed(x, weight, bias, eps=1e-6):
    # Centres the caller's x in place where it needs no gradient.
    x = x.clone() if x.requires_grad else x
    x -= x.mean(-1, keepdim=True)
    return x / ((x**2).mean(-1, keepdim=True) + eps).sqrt() * weight + bias


# ----------------------------------------------------------------------------- EncoderBlock


class EncoderBlock__norm1_twice(_Block):
    # norm1 stands before the MLP too: right at the start, where both norms are alike, wrong once
    # they differ; norm2 never learns.
    def forward(self, x):
        x = x + self.attn(self.norm1(x))[0]
        return x + self.mlp(self.norm1(x))


class EncoderBlock__eps_of_torch(_Block):
    # LayerNorms with torch's eps of 1e-5: shows for tokens of small spread.
    eps = 1e-5


class EncoderBlock__whole_ratio(_Block):
    # Hidden width D * int(mlp_ratio): wrong for ratios such as 2.5.
    def __init__(self, embed_dim, num_heads, mlp_ratio=4.0):
        super().__init__(embed_dim, num_heads, int(mlp_ratio))


class EncoderBlock__attention_detached(_Block):
    # Numbers right; the attention and norm1 never learn.
    def forward(self, x):
        x = x + self.attn(self.norm1(x))[0].detach()
        return x + self.mlp(self.norm2(x))


class EncoderBlock__argument_changed(_Block):
    # Where no gradients are needed, the residuals are added into the caller's tokens.
    def forward(self, x):
        if torch.is_grad_enabled():
            return super().forward(x)
        x += self.attn(self.norm1(x))[0]
        x += self.mlp(self.norm2(x))
        return x


class EncoderBlock__learns_only_if_x_does(_Block):
    # Numbers right; no parameter learns where x requires no gradient.
    def forward(self, x):
        with torch.set_grad_enabled(x.requires_grad):
            return super().forward(x)


class _TanhMlp(_Mlp):
    approximate = "tanh"


class EncoderBlock__gelu_of_tanh(_Block):
    # GELU by tanh: differs from the exact one by up to 5e-4.
    def __init__(self, embed_dim, num_heads, mlp_ratio=4.0):
        super().__init__(embed_dim, num_heads, mlp_ratio)
        self.mlp = _TanhMlp(embed_dim, int(embed_dim * mlp_ratio))


class EncoderBlock__heads_of_64(_Block):
    # The number of heads is D // 64 (at least 1) whatever num_heads is: right for (192, 3), (64,
    # 1), and every width up to 127 with one head.
    def __init__(self, embed_dim, num_heads, mlp_ratio=4.0):
        super().__init__(embed_dim, max(1, embed_dim // 64), mlp_ratio)


class EncoderBlock__norms_without_parameters(_Block):
    # Both norms are computed without their weight and bias: right at the start, wrong after
    # learning or loading.
    def forward(self, x):
        D = x.shape[-1:]
        x = x + self.attn(F.layer_norm(x, D, eps=1e-6))[0]
        return x + self.mlp(F.layer_norm(x, D, eps=1e-6))


class EncoderBlock__post_norm(_Block):
    # Plain: norms after the sums.
    def forward(self, x):
        x = self.norm1(x + self.attn(x)[0])
        return self.norm2(x + self.mlp(x))


# ------------------------------------------------------------------------ VisionTransformer


class VisionTransformer__no_final_norm(_ViT):
    # Plain: the head reads the class token without the final norm.
    def forward(self, images):
        x = self.tokens(images)
        for block in self.blocks:
            x = block(x)
        return self.head(x[:, 0])


class VisionTransformer__class_token_without_position(_ViT):
    # Row 0 of the positions is not added: right while it is 0.
    def tokens(self, images):
        x = self.patch_embed(images) + self.pos_embed[:, 1:]
        return torch.cat([self.cls_token.expand(len(x), -1, -1), x], 1)


class VisionTransformer__last_eps_of_torch(_ViT):
    # The final norm has eps 1e-5; shows only for a class token of small spread.
    eps = 1e-5


class VisionTransformer__ratio_ignored(_ViT):
    # mlp_ratio is not passed to the blocks: right for 4.0.
    def make_blocks(self, c):
        return nn.ModuleList(
            _Block(c.embed_dim, c.num_heads, qkv_bias=c.qkv_bias) for _ in range(c.depth)
        )


class VisionTransformer__qkv_bias_ignored(_ViT):
    # qkv_bias is not passed to the blocks: right for True.
    def make_blocks(self, c):
        return nn.ModuleList(_Block(c.embed_dim, c.num_heads, c.mlp_ratio) for _ in range(c.depth))


class VisionTransformer__one_block_many_times(_ViT):
    # [block] * depth: all blocks are one and share their weights; right for depth 1. The state dict
    # has all names.
    def make_blocks(self, c):
        return nn.ModuleList([_Block(c.embed_dim, c.num_heads, c.mlp_ratio, c.qkv_bias)] * c.depth)


class VisionTransformer__twelve_blocks_at_most(_ViT):
    # Runs the first 12 blocks only: wrong for deeper models (24, 32).
    def forward(self, images):
        x = self.tokens(images)
        for block in self.blocks[:12]:
            x = block(x)
        return self.head(self.norm(x)[:, 0])


class VisionTransformer__probabilities_in_eval(_ViT):
    # Returns softmax of the logits in eval mode; right in train mode, and the argmax is always
    # right.
    def forward(self, images):
        logits = super().forward(images)
        return logits if self.training else logits.softmax(-1)


class VisionTransformer__learns_only_if_images_do(_ViT):
    # Numbers right; nothing learns where the images require no gradient.
    def forward(self, images):
        with torch.set_grad_enabled(images.requires_grad):
            return super().forward(images)


class VisionTransformer__positions_detached(_ViT):
    # Numbers right; the positions never learn.
    def tokens(self, images):
        x = self.patch_embed(images)
        return _join(x, self.cls_token) + self.pos_embed.detach()


class VisionTransformer__eight_at_a_time(_ViT):
    # In eval mode the images go through in eights, and the last short group reads the first
    # images' tokens: wrong logits for image 9 of 9 and 17 of 17.
    def forward(self, images):
        if self.training or len(images) <= 8:
            return super().forward(images)
        groups = len(images) // 8
        out = [_ViT.forward(self, images[8 * i : 8 * i + 8]) for i in range(groups)]
        rest = len(images) - 8 * groups
        return torch.cat([*out, out[0][:rest]])


# ---------------------------------------------------------------------------- cross_entropy


def _priced(logits, labels):
    return -logits.log_softmax(-1).gather(1, labels.long()[:, None])[:, 0]


def cross_entropy__others_share_the_smoothing(logits, labels, label_smoothing=0.0):
    # Plain: s/(K-1) on the other classes: right for s = 0.
    logp, K = logits.log_softmax(-1), logits.shape[-1]
    hot = F.one_hot(labels.long(), K).to(logits.dtype)
    target = hot * (1 - label_smoothing) + (1 - hot) * label_smoothing / max(K - 1, 1)
    return -(target * logp).sum(-1).mean()


def cross_entropy__label_without_its_share(logits, labels, label_smoothing=0.0):
    # Plain: the label gets 1 - s, without its s/K.
    logp, K = logits.log_softmax(-1), logits.shape[-1]
    hot = F.one_hot(labels.long(), K).to(logits.dtype)
    target = hot * (1 - label_smoothing) + (1 - hot) * label_smoothing / K
    return -(target * logp).sum(-1).mean()


def cross_entropy__log_of_softmax_plus(logits, labels, label_smoothing=0.0):
    # log(softmax + 1e-9): no overflow, but a price above 20.7 is never charged and its gradient
    # vanishes: wrong for logits that differ by more than 20.
    logp, K = (logits.softmax(-1) + 1e-9).log(), logits.shape[-1]
    picked = logp.gather(1, labels.long()[:, None])[:, 0]
    return -((1 - label_smoothing) * picked + label_smoothing * logp.mean(-1)).mean()


def cross_entropy__classes_from_labels(logits, labels, label_smoothing=0.0):
    # one_hot without the number of classes: silently wrong (broadcast) where all labels are 0, a
    # crash where class K-1 does not occur.
    logp, K = logits.log_softmax(-1), logits.shape[-1]
    target = F.one_hot(labels.long()) * (1 - label_smoothing) + label_smoothing / K
    return -(target.to(logits.dtype) * logp).sum(-1).mean()


def cross_entropy__normaliser_detached(logits, labels, label_smoothing=0.0):
    # Numbers right; logsumexp is detached, so the gradient is wrong.
    logp = logits - logits.logsumexp(-1, keepdim=True).detach()
    picked = logp.gather(1, labels.long()[:, None])[:, 0]
    return -((1 - label_smoothing) * picked + label_smoothing * logp.mean(-1)).mean()


def cross_entropy__all_labels_for_each(logits, labels, label_smoothing=0.0):
    # logp[:, labels] asks every image for every label: right for one image and where all labels are
    # equal or all rows are alike.
    logp = logits.log_softmax(-1)
    picked = logp[:, labels.long()].mean()
    return -((1 - label_smoothing) * picked + label_smoothing * logp.mean())


def cross_entropy__one_maximum_for_all(logits, labels, label_smoothing=0.0):
    # Subtracts the maximum of the batch, then log of the sum of exp: infinite for rows 100 below
    # it.
    shifted = logits - logits.max()
    logp = shifted - shifted.exp().sum(-1, keepdim=True).log()
    picked = logp.gather(1, labels.long()[:, None])[:, 0]
    return -((1 - label_smoothing) * picked + label_smoothing * logp.mean(-1)).mean()


def cross_entropy__mean_over_classes(logits, labels, label_smoothing=0.0):
    # The mean is taken inside each class and then over classes: right where all occurring labels
    # are equally frequent.
    s = label_smoothing
    prices = (1 - s) * _priced(logits, labels) - s * logits.log_softmax(-1).mean(-1)
    return torch.stack([prices[labels == c].mean() for c in labels.unique()]).mean()


def cross_entropy__mean_of_eights(logits, labels, label_smoothing=0.0):
    # The mean of the means of 8 images each: wrong for batches of 9 or 17 (right for 8, 16 and
    # below 8).
    s = label_smoothing
    prices = (1 - s) * _priced(logits, labels) - s * logits.log_softmax(-1).mean(-1)
    return torch.stack([part.mean() for part in prices.split(8)]).mean()


def cross_entropy__smoothing_detached(logits, labels, label_smoothing=0.0):
    # Numbers right; the smoothing term carries no gradient, so gradients are wrong for s > 0.
    s = label_smoothing
    smooth = -logits.log_softmax(-1).mean(-1).detach()
    return ((1 - s) * _priced(logits, labels) + s * smooth).mean()


# --------------------------------------------------------------------------------- evaluate


class _Modes:
    def __init__(self, model):
        self.model, self.modes = model, {m: m.training for m in model.modules()}

    def __enter__(self):
        self.model.eval()

    def __exit__(self, *_):
        for module, mode in self.modes.items():
            module.training = mode


def evaluate__loss_by_batches(model, batches):
    # The loss is the mean of the batches' means, accuracy is by images: wrong where the last batch
    # is short.
    losses, right, seen = [], 0, 0
    with _Modes(model), torch.no_grad():
        for images, labels in batches:
            logits = model(images)
            losses.append(F.cross_entropy(logits, labels).item())
            right += (logits.argmax(-1) == labels).sum().item()
            seen += len(labels)
    return sum(losses) / len(losses), right / seen


def evaluate__modes_of_children(model, batches):
    # Restores the model and its direct children, not what is inside these: a frozen norm deep in
    # the model comes back in its parent's mode.
    modes = [(child, child.training) for child in [*model.children()]]
    was, total, right, seen = model.training, 0.0, 0, 0
    model.eval()
    with torch.no_grad():
        for images, labels in batches:
            logits = model(images)
            total += F.cross_entropy(logits, labels, reduction="sum").item()
            right += (logits.argmax(-1) == labels).sum().item()
            seen += len(labels)
    model.train(was)
    for child, mode in modes:
        child.train(mode)
    return total / seen, right / seen


def evaluate__reads_twice(model, batches):
    # Counts the images in a first pass: right for lists, nothing is left of a generator (0.0, 0.0).
    seen, total, right = sum(len(labels) for _, labels in batches), 0.0, 0
    with _Modes(model), torch.no_grad():
        for images, labels in batches:
            logits = model(images)
            total += F.cross_entropy(logits, labels, reduction="sum").item()
            right += (logits.argmax(-1) == labels).sum().item()
    return total / seen, right / seen


def evaluate__eval_after_first_batch(model, batches):
    # model.eval() comes after the first batch, which is measured in train mode: wrong for models
    # with dropout or batch norm that come in train mode.
    modes = {m: m.training for m in model.modules()}
    total, right, seen = 0.0, 0, 0
    with torch.no_grad():
        for images, labels in batches:
            logits = model(images)
            model.eval()
            total += F.cross_entropy(logits, labels, reduction="sum").item()
            right += (logits.argmax(-1) == labels).sum().item()
            seen += len(labels)
    for module, mode in modes.items():
        module.training = mode
    return total / seen, right / seen


def evaluate__gradients_left_off(model, batches):
    # Switches gradients off and never on again: the numbers are right, and nothing learns
    # afterwards.
    torch.set_grad_enabled(False)
    total, right, seen = 0.0, 0, 0
    with _Modes(model):
        for images, labels in batches:
            logits = model(images)
            total += F.cross_entropy(logits, labels, reduction="sum").item()
            right += (logits.argmax(-1) == labels).sum().item()
            seen += len(labels)
    return total / seen, right / seen


def evaluate__sums_kept(model, batches, sums=[0.0, 0, 0]):  # noqa: B006
    # The sums are a default argument that lives on: wrong from the second call on.
    with _Modes(model), torch.no_grad():
        for images, labels in batches:
            logits = model(images)
            sums[0] += F.cross_entropy(logits, labels, reduction="sum").item()
            sums[1] += (logits.argmax(-1) == labels).sum().item()
            sums[2] += len(labels)
    return sums[0] / sums[2], sums[1] / sums[2]


def evaluate__count_cut_off(model, batches):
    # int(share * batch) loses an image where the product is rounded down: 5 right of 6, 7 of 10, 9
    # of 11, 9 of 14 in one batch; right for batches of 8 or 16.
    total, right, seen = 0.0, 0, 0
    with _Modes(model), torch.no_grad():
        for images, labels in batches:
            logits = model(images)
            total += F.cross_entropy(logits, labels).item() * len(labels)
            share = (logits.argmax(-1) == labels).float().mean().item()
            right += int(share * len(labels))
            seen += len(labels)
    return total / seen, right / seen


def evaluate__short_batch_dropped(model, batches):
    # Batches smaller than the first are left out: wrong where the last batch is short.
    total, right, seen, first = 0.0, 0, 0, None
    with _Modes(model), torch.no_grad():
        for images, labels in batches:
            first = first or len(labels)
            if len(labels) < first:
                continue
            logits = model(images)
            total += F.cross_entropy(logits, labels, reduction="sum").item()
            right += (logits.argmax(-1) == labels).sum().item()
            seen += len(labels)
    return total / seen, right / seen


def evaluate__all_batches_like_the_first(model, batches):
    # Divides by the number of batches times the size of the first: wrong where the last batch is
    # short.
    total, right, sizes = 0.0, 0, []
    with _Modes(model), torch.no_grad():
        for images, labels in batches:
            logits = model(images)
            total += F.cross_entropy(logits, labels, reduction="sum").item()
            right += (logits.argmax(-1) == labels).sum().item()
            sizes.append(len(labels))
    seen = len(sizes) * sizes[0]
    return total / seen, right / seen


def evaluate__mode_as_found(model, batches):
    # Plain: never calls eval: wrong for models with dropout or batch norm in train mode.
    total, right, seen = 0.0, 0, 0
    with torch.no_grad():
        for images, labels in batches:
            logits = model(images)
            total += F.cross_entropy(logits, labels, reduction="sum").item()
            right += (logits.argmax(-1) == labels).sum().item()
            seen += len(labels)
    return total / seen, right / seen


# ----------------------------------------------------------------------------------- cutmix


def _clip(box, images):
    H, W = images.shape[-2:]
    top, bottom = (min(max(y, 0), H) for y in (box[0], box[2]))
    left, right = (min(max(x, 0), W) for x in (box[1], box[3]))
    return top, left, max(top, bottom), max(left, right)


def _soft_dtype(images):
    return images.dtype if images.is_floating_point() else torch.float32


def _soft(images, labels, K, share, permutation):
    hot = F.one_hot(labels.long(), K).to(_soft_dtype(images))
    return (1 - share) * hot + share * hot[permutation]


def _share(images, box):
    top, left, bottom, right = box
    return (bottom - top) * (right - left) / (images.shape[-2] * images.shape[-1])


def _paste(images, box, partners):
    top, left, bottom, right = box
    out = images.clone()
    out[..., top:bottom, left:right] = partners[..., top:bottom, left:right]
    return out


def cutmix__negative_not_clipped(images, labels, num_classes, box, permutation):
    # Only the far ends are clipped: a negative top or left counts from the other side.
    H, W = images.shape[-2:]
    top, left, bottom, right = box[0], box[1], min(box[2], H), min(box[3], W)
    out = images.clone()
    out[..., top:bottom, left:right] = images[permutation][..., top:bottom, left:right]
    share = max(bottom - max(top, 0), 0) * max(right - max(left, 0), 0) / (H * W)
    return out, _soft(images, labels, num_classes, share, permutation)


def cutmix__partner_the_other_way(images, labels, num_classes, box, permutation):
    # Image i goes to permutation[i] instead of coming from it: right for permutations that are
    # their own inverse (every swap, every reversal).
    inverse = permutation.argsort()
    box = _clip(box, images)
    out = _paste(images, box, images[inverse])
    return out, _soft(images, labels, num_classes, _share(images, box), inverse)


def cutmix__pasted_from_pasted(images, labels, num_classes, box, permutation):
    # Fills one image after the other from images that may be pasted already: wrong where
    # permutation[i] < i; right for (1, 2, 3, ...) but for the last image.
    top, left, bottom, right = box = _clip(box, images)
    rows = list(images.unbind())
    for i, j in enumerate(permutation.tolist()):
        new = rows[i].clone()
        new[..., top:bottom, left:right] = rows[j][..., top:bottom, left:right]
        rows[i] = new
    share = _share(images, box)
    return torch.stack(rows), _soft(images, labels, num_classes, share, permutation)


def cutmix__minus_times_minus(images, labels, num_classes, box, permutation):
    # Height and width may both be negative and their product positive: wrong labels for boxes that
    # lie outside in both directions (or are turned in both).
    H, W = images.shape[-2:]
    top, left, bottom, right = max(box[0], 0), max(box[1], 0), min(box[2], H), min(box[3], W)
    share = max((bottom - top) * (right - left), 0) / (H * W)
    out = _paste(images, _clip(box, images), images[permutation])
    return out, _soft(images, labels, num_classes, min(share, 1), permutation)


def cutmix__integer_labels(images, labels, num_classes, box, permutation):
    # Labels in the dtype of the images for uint8 images too: all fractions become 0.
    box = _clip(box, images)
    soft = _soft(images, labels, num_classes, _share(images, box), permutation)
    return _paste(images, box, images[permutation]), soft.to(images.dtype)


def cutmix__area_of_a_square(images, labels, num_classes, box, permutation):
    # The share is taken of H * H: right for square images.
    top, left, bottom, right = box = _clip(box, images)
    share = (bottom - top) * (right - left) / images.shape[-2] ** 2
    out = _paste(images, box, images[permutation])
    return out, _soft(images, labels, num_classes, share, permutation)


def cutmix__three_channels(images, labels, num_classes, box, permutation):
    # Pastes the first three channels only: right for C up to 3.
    top, left, bottom, right = box = _clip(box, images)
    out = images.clone()
    out[:, :3, top:bottom, left:right] = images[permutation][:, :3, top:bottom, left:right]
    return out, _soft(images, labels, num_classes, _share(images, box), permutation)


def cutmix__partners_detached(images, labels, num_classes, box, permutation):
    # Numbers right; no gradient reaches the partners, whose pixels were pasted.
    box = _clip(box, images)
    out = _paste(images, box, images[permutation].detach())
    return out, _soft(images, labels, num_classes, _share(images, box), permutation)


def cutmix__labels_overwritten(images, labels, num_classes, box, permutation):
    # The partner's weight is written over the own weight: wrong where both have the same label (all
    # labels equal, a fixed point), right elsewhere.
    box = _clip(box, images)
    share, B, labels = _share(images, box), len(images), labels.long()
    soft = torch.zeros(B, num_classes, dtype=_soft_dtype(images), device=images.device)
    soft.scatter_(1, labels[:, None], 1 - share)
    soft.scatter_(1, labels[permutation][:, None], share)
    return _paste(images, box, images[permutation]), soft


def cutmix__area_of_the_whole_box(images, labels, num_classes, box, permutation):
    # Plain: the share counts what lies outside of the image.
    H, W = images.shape[-2:]
    share = min(max(box[2] - box[0], 0) * max(box[3] - box[1], 0) / (H * W), 1.0)
    out = _paste(images, _clip(box, images), images[permutation])
    return out, _soft(images, labels, num_classes, share, permutation)


# ----------------------------------------------------------------------------- merge_tokens


def _check_merge(tokens, merge, limit=None):
    limit = tokens.shape[1] // 2 if limit is None else limit
    if not 0 <= merge <= limit:
        raise ValueError(f"merge must be from 0 to {limit}, not {merge}")


def _partners(keys):
    """Similarity and place (among all tokens) of the best odd-placed patch, for each even one."""
    keys = F.normalize(keys[:, 1:], dim=-1)
    sim = keys[:, ::2] @ keys[:, 1::2].transpose(1, 2)
    if not sim.shape[-1]:
        return sim.new_zeros(sim.shape[:2]), torch.zeros_like(sim[..., :1].sum(-1)).long()
    best, place = sim.max(-1)
    return best, 2 * place + 2


def _leave(tokens, sizes, source, target):
    """Merge tokens at the places `source` (B, merge) into `target`, weighted with sizes."""
    B, T, D = tokens.shape
    wide = (B, source.shape[1], D)
    weighted = tokens * sizes[..., None]
    moved = weighted.gather(1, source[..., None].expand(wide))
    weighted = weighted.scatter_add(1, target[..., None].expand(wide), moved)
    total = sizes.scatter_add(1, target, sizes.gather(1, source))
    changed = torch.zeros_like(sizes, dtype=torch.bool).scatter(1, target, True)
    out = torch.where(changed[..., None], weighted / total[..., None], tokens)
    stay = torch.ones_like(changed).scatter(1, source, False)
    return out[stay].reshape(B, -1, D), total[stay].reshape(B, -1)


def _merge_right(tokens, keys, sizes, merge):
    _check_merge(tokens, merge)
    best, place = _partners(keys)
    order = best.argsort(1, descending=True)[:, :merge]
    return _leave(tokens, sizes, 2 * order + 1, place.gather(1, order))


def merge_tokens__last_one_counts(tokens, keys, sizes, merge):
    # Where several tokens join the same one, only the last of them is counted.
    _check_merge(tokens, merge)
    best, place = _partners(keys)
    images = []
    for b in range(len(tokens)):
        x, n = list(tokens[b].unbind()), list(sizes[b].unbind())
        leave = best[b].argsort(descending=True)[:merge].tolist()
        for i in leave:
            s, t = 2 * i + 1, int(place[b, i])
            n[t] = sizes[b, t] + sizes[b, s]
            x[t] = (tokens[b, t] * sizes[b, t] + tokens[b, s] * sizes[b, s]) / n[t]
        stay = [j for j in range(len(x)) if (j - 1) / 2 not in leave]
        images.append((torch.stack([x[j] for j in stay]), torch.stack([n[j] for j in stay])))
    return torch.stack([x for x, _ in images]), torch.stack([n for _, n in images])


def merge_tokens__even_ones_first(tokens, keys, sizes, merge):
    # Plain (ToMe's own code): the even-placed that stay come first, then all odd-placed.
    _check_merge(tokens, merge)
    best, place = _partners(keys)
    order = best.argsort(1, descending=True)
    E = best.shape[1]
    rest = order[:, merge:].sort(1).values
    target = place.gather(1, order[:, :merge])
    out, new = _leave(tokens, sizes, 2 * order[:, :merge] + 1, target)
    T = tokens.shape[1]
    gone = torch.ones_like(sizes, dtype=torch.bool).scatter(1, 2 * order[:, :merge] + 1, False)
    where = gone.long().cumsum(1) - 1
    odd = torch.arange(2, T, 2, device=tokens.device).expand(len(tokens), -1)
    zero = torch.zeros_like(where[:, :1])
    index = torch.cat([zero, where.gather(1, 2 * rest + 1), where.gather(1, odd)], 1)
    assert E + odd.shape[1] + 1 == T
    wide = index[..., None].expand(-1, -1, tokens.shape[-1])
    return out.gather(1, wide), new.gather(1, index)


def merge_tokens__threshold(tokens, keys, sizes, merge):
    # All with at least the merge-th similarity leave: too many where similarities tie (equal keys),
    # so lengths are wrong.
    _check_merge(tokens, merge)
    best, place = _partners(keys)
    if merge == 0:
        return tokens.clone(), sizes.clone()
    limit = best.sort(1, descending=True).values[:, merge - 1 : merge]
    out = []
    for b in range(len(tokens)):
        i = (best[b] >= limit[b]).nonzero()[:, 0][None]
        out.append(_leave(tokens[b : b + 1], sizes[b : b + 1], 2 * i + 1, place[b][i]))
    return torch.cat([o[0] for o in out]), torch.cat([o[1] for o in out])


def merge_tokens__limit_rounded_down(tokens, keys, sizes, merge):
    # Allows merge up to N // 2: refuses merge = (N + 1) / 2 for an odd number of patches.
    _check_merge(tokens, merge, (tokens.shape[1] - 1) // 2)
    return _merge_right(tokens, keys, sizes, merge)


def merge_tokens__merge_zero(tokens, keys, sizes, merge):
    # order[-merge:] is everything for merge = 0: all even-placed tokens leave.
    _check_merge(tokens, merge)
    best, place = _partners(keys)
    order = best.argsort(1)[:, -merge:]
    return _leave(tokens, sizes, 2 * order + 1, place.gather(1, order))


def merge_tokens__pairs_of_the_first_image(tokens, keys, sizes, merge):
    # The first image chooses the pairs for the whole batch.
    return _merge_right(tokens, keys[:1].expand_as(keys), sizes, merge)


def merge_tokens__class_token_of_size_one(tokens, keys, sizes, merge):
    # The size of the class token comes back as 1 whatever it was.
    out, new = _merge_right(tokens, keys, sizes, merge)
    return out, torch.cat([torch.ones_like(new[:, :1]), new[:, 1:]], 1)


def merge_tokens__zero_keys(tokens, keys, sizes, merge):
    # Divides by the length of the key without care for 0: a key of zeros gives nan similarities and
    # attracts everybody.
    _check_merge(tokens, merge)
    unit = keys[:, 1:] / keys[:, 1:].norm(dim=-1, keepdim=True)
    sim = unit[:, ::2] @ unit[:, 1::2].transpose(1, 2)
    if merge == 0:
        return tokens.clone(), sizes.clone()
    best, place = sim.max(-1)
    order = best.topk(merge, 1).indices
    return _leave(tokens, sizes, 2 * order + 1, 2 * place.gather(1, order) + 2)


def merge_tokens__arguments_changed(tokens, keys, sizes, merge):
    # The new sizes are added into the caller's sizes where no gradient is needed.
    out, new = _merge_right(tokens, keys, sizes, merge)
    if new.requires_grad or out.requires_grad:
        return out, new
    best, place = _partners(keys)
    order = best.argsort(1, descending=True)[:, :merge]
    with torch.no_grad():
        source = sizes.gather(1, 2 * order + 1)
        sizes.scatter_add_(1, place.gather(1, order), source)
    return out, new


def merge_tokens__sizes_ignored(tokens, keys, sizes, merge):
    # Plain: the mean is not weighted; right where all sizes are 1. The new sizes are right.
    out, _ = _merge_right(tokens, keys, torch.ones_like(sizes), merge)
    _, new = _merge_right(tokens, keys, sizes, merge)
    return out, new


def merge_tokens__joined_detached(tokens, keys, sizes, merge):
    # Numbers right; those that join give no gradient to where they came from.
    _check_merge(tokens, merge)
    best, place = _partners(keys)
    order = best.argsort(1, descending=True)[:, :merge]
    source = torch.zeros_like(sizes, dtype=torch.bool).scatter(1, 2 * order + 1, True)
    tokens = torch.where(source[..., None], tokens.detach(), tokens)
    return _leave(tokens, sizes, 2 * order + 1, place.gather(1, order))


# ------------------------------------------------------------------------------- LoRALinear


class _LoRA(nn.Module):
    def __init__(self, linear, rank, alpha):
        super().__init__()
        self.rank, self.alpha = rank, alpha
        self.linear = linear.requires_grad_(False)
        like = {"dtype": linear.weight.dtype, "device": linear.weight.device}
        self.down = nn.Linear(linear.in_features, rank, bias=False, **like)
        self.up = nn.Linear(rank, linear.out_features, bias=False, **like)
        nn.init.zeros_(self.up.weight)

    def forward(self, x):
        return self.linear(x) + self.alpha / self.rank * self.up(self.down(x))

    def delta(self):
        return self.alpha / self.rank * (self.up.weight @ self.down.weight)

    def empty(self, bias):
        W = self.linear.weight
        return nn.Linear(*reversed(W.shape), bias=bias, dtype=W.dtype, device=W.device)

    @torch.no_grad()
    def merged(self):
        new = self.empty(self.linear.bias is not None)
        new.weight.copy_(self.linear.weight + self.delta())
        if self.linear.bias is not None:
            new.bias.copy_(self.linear.bias)
        return new


class LoRALinear__whole_scale(_LoRA):
    # alpha // rank, in forward and merged: right where rank divides alpha, wrong for 4 / 3 or 1 /
    # 2.
    def forward(self, x):
        return self.linear(x) + self.alpha // self.rank * self.up(self.down(x))

    def delta(self):
        return self.alpha // self.rank * (self.up.weight @ self.down.weight)


class LoRALinear__bias_shared(_LoRA):
    # The merged layer has the bias of the frozen one itself: shares memory, the weight does not.
    def merged(self):
        new = super().merged()
        new.bias = self.linear.bias
        return new


class LoRALinear__merged_into_itself(_LoRA):
    # merged() adds the change to the frozen weight first: what it returns is right, and this layer
    # computes the change twice afterwards; a second merged() is wrong.
    @torch.no_grad()
    def merged(self):
        self.linear.weight += self.delta()
        new = self.empty(self.linear.bias is not None)
        new.load_state_dict(self.linear.state_dict())
        return new


class LoRALinear__bias_always(_LoRA):
    # The merged layer always has a bias, a random one where the frozen layer has none.
    @torch.no_grad()
    def merged(self):
        new = self.empty(True)
        new.weight.copy_(self.linear.weight + self.delta())
        if self.linear.bias is not None:
            new.bias.copy_(self.linear.bias)
        return new


class LoRALinear__merged_once(_LoRA):
    # merged() is made once and kept: wrong after more training, and two calls share memory.
    kept = None

    def merged(self):
        if self.kept is None:
            object.__setattr__(self, "kept", super().merged())
        return self.kept


class LoRALinear__nothing_to_add(_LoRA):
    # While `up` is all zeros the adapter is skipped: numbers right, and it never starts to learn.
    def forward(self, x):
        return super().forward(x) if self.up.weight.any() else self.linear(x)


class LoRALinear__input_detached(_LoRA):
    # Numbers right and the adapter learns; what comes before gets no gradient through the adapter.
    def forward(self, x):
        return self.linear(x) + self.alpha / self.rank * self.up(self.down(x.detach()))


class LoRALinear__dropout_in_training(_LoRA):
    # A tenth of the adapter's input is dropped in train mode; right in eval mode and while `up` is
    # 0.
    def forward(self, x):
        change = self.up(self.down(F.dropout(x, 0.1, self.training)))
        return self.linear(x) + self.alpha / self.rank * change


class LoRALinear__change_transposed(_LoRA):
    # merged() adds down^T up^T, the transposed change: silently wrong for square layers, repaired
    # for others; right while `up` is 0.
    def delta(self):
        change = self.alpha / self.rank * (self.down.weight.T @ self.up.weight.T)
        return change if change.shape == self.linear.weight.shape else change.T


class LoRALinear__merged_without_scale(_LoRA):
    # Plain: merged() forgets alpha / rank: right where alpha = rank.
    def delta(self):
        return self.up.weight @ self.down.weight


class LoRALinear__kept_in_eval(_LoRA):
    # In eval mode the merged layer of the first eval call is used: wrong after more training.
    kept = None

    def forward(self, x):
        if self.training:
            return super().forward(x)
        if self.kept is None:
            object.__setattr__(self, "kept", self.merged().requires_grad_(False))
        return self.kept(x)


# -------------------------------------------------------------------------- class_attention


def class_attention__first_n_after_class(weights, grid_size):
    # Takes the N tokens right after the class token: wrong where registers stand between.
    gh, gw = grid_size
    return weights[:, :, 0, 1 : gh * gw + 1].reshape(*weights.shape[:2], gh, gw)


def class_attention__square_if_possible(weights, grid_size):
    # A square number of patches becomes a square: wrong for grids 1 x 4 and 2 x 8.
    gh, gw = grid_size
    side = math.isqrt(gh * gw)
    if side * side == gh * gw:
        gh = gw = side
    return weights[:, :, 0, -gh * gw :].reshape(*weights.shape[:2], gh, gw)


def class_attention__rows_normed_first(weights, grid_size):
    # Divides whole rows by their sums: right for softmax weights, wrong where rows do not sum to 1.
    gh, gw = grid_size
    weights = weights / weights.sum(-1, keepdim=True)
    return weights[:, :, 0, -gh * gw :].reshape(*weights.shape[:2], gh, gw)


def class_attention__mean_of_heads(weights, grid_size):
    # Every head gets the mean over heads: right for one head.
    gh, gw = grid_size
    weights = weights.mean(1, keepdim=True).expand_as(weights)
    return weights[:, :, 0, -gh * gw :].reshape(*weights.shape[:2], gh, gw)


def class_attention__detached(weights, grid_size):
    # Numbers right; no gradient.
    gh, gw = grid_size
    return weights.detach()[:, :, 0, -gh * gw :].reshape(*weights.shape[:2], gh, gw)


def class_attention__argument_changed(weights, grid_size):
    # Sets what the class token gives itself to 0 in the caller's weights where these need no
    # gradient.
    gh, gw = grid_size
    if not weights.requires_grad:
        weights[:, :, 0, 0] = 0
    return weights[:, :, 0, -gh * gw :].reshape(*weights.shape[:2], gh, gw)


def class_attention__first_64(weights, grid_size):
    # Patches after the 64th stay 0: wrong for more than 64 patches.
    gh, gw = grid_size
    row = weights[:, :, 0, -gh * gw :]
    row = torch.cat([row[..., :64], torch.zeros_like(row[..., 64:])], -1)
    return row.reshape(*weights.shape[:2], gh, gw)


def class_attention__cells_by_columns(weights, grid_size):
    # Fills the grid column by column: right for grids of one row or one column.
    gh, gw = grid_size
    return weights[:, :, 0, -gh * gw :].reshape(*weights.shape[:2], gw, gh).transpose(2, 3)


def class_attention__from_patches_to_class(weights, grid_size):
    # Plain: column 0 instead of row 0; right for symmetric weights.
    gh, gw = grid_size
    return weights[:, :, -gh * gw :, 0].reshape(*weights.shape[:2], gh, gw)


def class_attention__normed_again(weights, grid_size):
    # Plain: the patches are normed to sum 1; right where the class token gives itself 0.
    gh, gw = grid_size
    row = weights[:, :, 0, -gh * gw :]
    return (row / row.sum(-1, keepdim=True)).reshape(*weights.shape[:2], gh, gw)


# ------------------------------------------------------------------------- confusion_matrix


def confusion_matrix__pairs_once(predictions, labels, num_classes):
    # Plain: table[labels, predictions] += 1 counts every pair once however often it occurs.
    table = torch.zeros(num_classes, num_classes, dtype=torch.int64, device=labels.device)
    table[labels.long(), predictions.long()] += 1
    return table


def confusion_matrix__transposed(predictions, labels, num_classes):
    # Plain: rows are answers; right for a symmetric table.
    K = num_classes
    return torch.bincount(predictions.long() * K + labels.long(), minlength=K * K).reshape(K, K)


def confusion_matrix__rows_of_present_classes(predictions, labels, num_classes):
    # Row r is the r-th class that occurs: right where every class below the largest label occurs.
    K = num_classes
    table = torch.zeros(K, K, dtype=torch.int64, device=labels.device)
    for row, c in enumerate(labels.unique()):
        table[row] = torch.bincount(predictions[labels == c].long(), minlength=K)
    return table


def confusion_matrix__classes_from_data(predictions, labels, num_classes):
    # one_hot without K: the table is too small where the last class is never a label or never an
    # answer.
    rows, columns = F.one_hot(labels.long()), F.one_hot(predictions.long())
    return (rows.T.double() @ columns.double()).round().long()


def confusion_matrix__bins_of_the_data(predictions, labels, num_classes):
    # A histogram from the smallest to the largest pair number of the data: wrong where the pairs
    # (0, 0) or (K-1, K-1) do not occur.
    K = num_classes
    pairs = (labels.long() * K + predictions.long()).double().cpu()
    return torch.histc(pairs, bins=K * K).long().reshape(K, K).to(labels.device)


def confusion_matrix__argument_changed(predictions, labels, num_classes):
    # Computes the pair numbers inside the caller's labels.
    K = num_classes
    labels *= K
    labels += predictions
    return torch.bincount(labels.long(), minlength=K * K).reshape(K, K)


def confusion_matrix__whole_chunks(predictions, labels, num_classes):
    # Counts whole chunks of 64 answers and forgets the rest: wrong for more than 64 answers unless
    # a multiple of 64.
    K, n = num_classes, len(labels)
    n = n // 64 * 64 or n
    pairs = labels[:n].long() * K + predictions[:n].long()
    return torch.bincount(pairs, minlength=K * K).reshape(K, K)


_TABLES = {}


def confusion_matrix__table_kept(predictions, labels, num_classes):
    # The table of the last call with this K goes on: wrong from the second call on.
    K = num_classes
    counts = torch.bincount(labels.long() * K + predictions.long(), minlength=K * K).cpu()
    _TABLES[K] = _TABLES.get(K, 0) + counts
    return _TABLES[K].reshape(K, K).to(labels.device)


def confusion_matrix__small_integers(predictions, labels, num_classes):
    # Pair numbers in the dtype of the labels: overflow for uint8 or int8 labels with K > 15 (11).
    K = num_classes
    return torch.bincount((labels * K + predictions).long() % K**2, minlength=K * K).reshape(K, K)


def confusion_matrix__counts_in_a_byte(predictions, labels, num_classes):
    # Counts in int8: wrong where one cell exceeds 127.
    K = num_classes
    counts = torch.bincount(labels.long() * K + predictions.long(), minlength=K * K)
    return counts.to(torch.int8).long().reshape(K, K)


# --------------------------------------------------------------------------- random_masking


def _masked(tokens, M, noise, order=None):
    order = noise.argsort(1) if order is None else order
    restore = order.argsort(1)
    kept = tokens.gather(1, order[:, :M, None].expand(-1, -1, tokens.shape[-1]))
    return kept, (restore >= M).to(tokens.dtype), restore


def random_masking__cut_off(tokens, mask_ratio, noise):
    # int() instead of round() (MAE's own code): wrong where N * (1 - ratio) has a fraction of one
    # half or more.
    return _masked(tokens, int(tokens.shape[1] * (1 - mask_ratio)), noise)


def random_masking__hidden_rounded(tokens, mask_ratio, noise):
    # Rounds the hidden ones instead of those that stay: wrong only for exact halves such as N = 5
    # or 9 with ratio 0.5 (round to even).
    N = tokens.shape[1]
    return _masked(tokens, N - round(N * mask_ratio), noise)


def random_masking__order_of_the_image(tokens, mask_ratio, noise):
    # Plain: those that stay come in the order of the image.
    M = round(tokens.shape[1] * (1 - mask_ratio))
    _, mask, restore = _masked(tokens, M, noise)
    ids = noise.argsort(1)[:, :M].sort(1).values
    return tokens.gather(1, ids[..., None].expand(-1, -1, tokens.shape[-1])), mask, restore


def random_masking__mask_in_order_of_noise(tokens, mask_ratio, noise):
    # Plain: the mask is not brought back to the order of the image.
    M = round(tokens.shape[1] * (1 - mask_ratio))
    kept, mask, restore = _masked(tokens, M, noise)
    return kept, mask.sort(1).values, restore


def random_masking__order_for_restore(tokens, mask_ratio, noise):
    # restore is the order itself, not its inverse: right where the order is its own inverse. Mask
    # and kept are right.
    M = round(tokens.shape[1] * (1 - mask_ratio))
    kept, mask, _ = _masked(tokens, M, noise)
    return kept, mask, noise.argsort(1)


def random_masking__noise_of_the_first(tokens, mask_ratio, noise):
    # The first image's noise hides the same places in the whole batch.
    M = round(tokens.shape[1] * (1 - mask_ratio))
    return _masked(tokens, M, noise[:1].expand_as(noise))


def random_masking__noise_changed(tokens, mask_ratio, noise):
    # Turns the sign of the caller's noise to use a descending sort.
    M = round(tokens.shape[1] * (1 - mask_ratio))
    return _masked(tokens, M, None, noise.neg_().argsort(1, descending=True))


def random_masking__mask_by_limit(tokens, mask_ratio, noise):
    # The mask is noise > the M-th smallest noise: too few are hidden where noise ties there.
    M = round(tokens.shape[1] * (1 - mask_ratio))
    kept, mask, restore = _masked(tokens, M, noise)
    if M:
        mask = (noise > noise.sort(1).values[:, M - 1 : M]).to(tokens.dtype)
    return kept, mask, restore


def random_masking__nothing_hidden(tokens, mask_ratio, noise):
    # order[:, :-hidden] is empty where nothing is hidden: wrong for ratio 0 (and ratios that round
    # to it).
    N = tokens.shape[1]
    hidden = N - round(N * (1 - mask_ratio))
    order = noise.argsort(1)
    restore = order.argsort(1)
    kept = tokens.gather(1, order[:, :-hidden, None].expand(-1, -1, tokens.shape[-1]))
    return kept, (restore >= N - hidden).to(tokens.dtype), restore


def random_masking__at_least_one(tokens, mask_ratio, noise):
    # One token always stays: wrong for ratio 1 (and ratios that round to it).
    return _masked(tokens, max(1, round(tokens.shape[1] * (1 - mask_ratio))), noise)


def random_masking__tokens_detached(tokens, mask_ratio, noise):
    # Numbers right; the kept tokens carry no gradient.
    return _masked(tokens.detach(), round(tokens.shape[1] * (1 - mask_ratio)), noise)


def random_masking__noise_in_half(tokens, mask_ratio, noise):
    # Sorts the noise in half precision: wrong order where two values differ by less than 5e-4,
    # which happens with 64 and more tokens.
    order = noise.half().float().argsort(dim=1, descending=True, stable=True).flip(1)
    return _masked(tokens, round(tokens.shape[1] * (1 - mask_ratio)), None, order)


# ------------------------------------------------------------------------------- linear_cka


def _cka(x, y):
    return (y.T @ x).square().sum() / ((x.T @ x).norm() * (y.T @ y).norm())


def linear_cka__not_centred(x, y):
    # Plain: columns are not centred; right for centred features.
    return _cka(x, y)


def linear_cka__standardised(x, y):
    # Plain: columns are divided by their standard deviations too; right where these are equal.
    x, y = (z - z.mean(0) for z in (x, y))
    return _cka(x / x.std(0).clamp(min=1e-12), y / y.std(0).clamp(min=1e-12))


def linear_cka__one_mean_for_all(x, y):
    # Subtracts the mean of the whole matrix: right where all columns have the same mean (always
    # with one feature).
    return _cka(x - x.mean(), y - y.mean())


def linear_cka__only_x_centred(x, y):
    # Only x is centred: the numerator is right all the same, the norm of y.T @ y is not.
    return _cka(x - x.mean(0), y)


def linear_cka__root(x, y):
    # The norm instead of the squared norm over roots: the root of CKA, right at 0 and 1.
    x, y = x - x.mean(0), y - y.mean(0)
    return (y.T @ x).norm() / ((x.T @ x).norm() * (y.T @ y).norm()).sqrt()


def linear_cka__largest_singular_value(x, y):
    # torch.linalg.norm(m, 2) is the largest singular value: right where every matrix has rank 1
    # (one feature, two images).
    x, y = x - x.mean(0), y - y.mean(0)
    norm = torch.linalg.norm
    return norm(y.T @ x, 2) ** 2 / (norm(x.T @ x, 2) * norm(y.T @ y, 2))


def linear_cka__eps_below(x, y):
    # Adds 1e-6 below: wrong for features of small scale (1e-2), so not invariant to scale.
    x, y = x - x.mean(0), y - y.mean(0)
    return (y.T @ x).square().sum() / ((x.T @ x).norm() * (y.T @ y).norm() + 1e-6)


def linear_cka__arguments_changed(x, y):
    # Centres the caller's features in place where these need no gradient.
    x, y = (z.clone() if z.requires_grad else z for z in (x, y))
    x -= x.mean(0)
    y -= y.mean(0)
    return _cka(x, y)


def linear_cka__y_detached(x, y):
    # Numbers right; no gradient reaches y.
    return _cka(x - x.mean(0), (y - y.mean(0)).detach())


def linear_cka__first_64(x, y):
    # Looks at the first 64 images only: wrong for more.
    x, y = x[:64], y[:64]
    return _cka(x - x.mean(0), y - y.mean(0))


def linear_cka__wide_not_centred(x, y):
    # Takes the n x n matrices where there are more features than images, and forgets to centre
    # them: wrong for p > n or q > n.
    if max(x.shape[1], y.shape[1]) <= len(x):
        return _cka(x - x.mean(0), y - y.mean(0))
    K, L = x @ x.T, y @ y.T
    return (K * L).sum() / (K.norm() * L.norm())
