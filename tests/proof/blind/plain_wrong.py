"""Plain natural mistakes of students. Names: `<exercise>__<mistake>`.

Needs torch alone. Names with a leading underscore are right parts."""

import math

import torch
import torch.nn.functional as F
from torch import nn


# ------------------------------------------------------------------------------ right parts


def _patchify(images, patch_size):
    B, C, H, W = images.shape
    P = patch_size
    if H % P or W % P:
        raise ValueError(f"{H} x {W} is not divisible by {P}")
    x = images.reshape(B, C, H // P, P, W // P, P).permute(0, 2, 4, 1, 3, 5)
    return x.reshape(B, (H // P) * (W // P), C * P * P)


def _unpatchify(patches, patch_size, image_size):
    P, (H, W), B = patch_size, image_size, len(patches)
    C = patches.shape[-1] // P**2
    x = patches.reshape(B, H // P, W // P, C, P, P).permute(0, 3, 1, 4, 2, 5)
    return x.reshape(B, C, H, W)


def _sincos(num_positions, embed_dim):
    if embed_dim % 2:
        raise ValueError(f"embed_dim {embed_dim} is odd")
    rate = 10000 ** (-torch.arange(0, embed_dim, 2).double() / embed_dim)
    angle = torch.arange(num_positions).double()[:, None] * rate
    return torch.stack([angle.sin(), angle.cos()], -1).flatten(1).float()


def _attention(q, k, v):
    weights = (q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5).softmax(-1)
    return weights @ v, weights


class _Attention(nn.Module):
    def __init__(self, embed_dim, num_heads, qkv_bias=True):
        super().__init__()
        if embed_dim % num_heads:
            raise ValueError(f"embed_dim {embed_dim} is not divisible by num_heads {num_heads}")
        self.num_heads = num_heads
        self.qkv = nn.Linear(embed_dim, 3 * embed_dim, bias=qkv_bias)
        self.proj = nn.Linear(embed_dim, embed_dim)

    def forward(self, x):
        B, T, D = x.shape
        parts = self.qkv(x).chunk(3, -1)
        q, k, v = (p.reshape(B, T, self.num_heads, -1).transpose(1, 2) for p in parts)
        output, weights = _attention(q, k, v)
        return self.proj(output.transpose(1, 2).flatten(2)), weights


class _Mlp(nn.Module):
    def __init__(self, embed_dim, hidden_dim):
        super().__init__()
        self.fc1 = nn.Linear(embed_dim, hidden_dim)
        self.fc2 = nn.Linear(hidden_dim, embed_dim)

    def forward(self, x):
        return self.fc2(F.gelu(self.fc1(x)))


class _Block(nn.Module):
    def __init__(self, embed_dim, num_heads, mlp_ratio=4.0, qkv_bias=True):
        super().__init__()
        self.norm1 = nn.LayerNorm(embed_dim, eps=1e-6)
        self.attn = _Attention(embed_dim, num_heads, qkv_bias)
        self.norm2 = nn.LayerNorm(embed_dim, eps=1e-6)
        self.mlp = _Mlp(embed_dim, int(embed_dim * mlp_ratio))

    def forward(self, x):
        x = x + self.attn(self.norm1(x))[0]
        return x + self.mlp(self.norm2(x))


class _PatchEmbed(nn.Module):
    def __init__(self, patch_size, in_channels, embed_dim):
        super().__init__()
        self.patch_size = patch_size
        self.proj = nn.Conv2d(in_channels, embed_dim, patch_size, stride=patch_size)

    def forward(self, images):
        patches = _patchify(images, self.patch_size)
        return F.linear(patches, self.proj.weight.flatten(1), self.proj.bias)


class _ViT(nn.Module):
    def __init__(self, config):
        super().__init__()
        c = self.config = config
        D = c.embed_dim
        self.patch_embed = _PatchEmbed(c.patch_size, c.in_channels, D)
        self.cls_token = nn.Parameter(torch.zeros(1, 1, D))
        tokens = (c.image_size // c.patch_size) ** 2 + 1
        self.pos_embed = nn.Parameter(torch.zeros(1, tokens, D))
        self.blocks = nn.ModuleList(
            _Block(D, c.num_heads, c.mlp_ratio, c.qkv_bias) for _ in range(c.depth)
        )
        self.norm = nn.LayerNorm(D, eps=1e-6)
        self.head = nn.Linear(D, c.num_classes)

    def tokens(self, images):
        x = self.patch_embed(images)
        return torch.cat([self.cls_token.expand(len(x), -1, -1), x], 1) + self.pos_embed

    def forward(self, images):
        x = self.tokens(images)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x)[:, 0])


def _windows(x, w):
    B, gh, gw, D = x.shape
    x = x.reshape(B, gh // w, w, gw // w, w, D).transpose(2, 3)
    return x.reshape(-1, w * w, D)


def _regions(size, shift):
    """0 for the places that stay, 1 for those that came round the edge, after the roll."""
    return (torch.arange(size) >= size - shift).long() if shift else torch.zeros(size).long()


def _window_mask(grid_size, window_size, shift):
    rows, columns = (_regions(size, shift) for size in grid_size)
    region = (2 * rows[:, None] + columns)[None, ..., None]
    region = _windows(region, window_size)[..., 0]
    return region[:, :, None] == region[:, None]


def _groups(model, weight_decay):
    decay, plain = [], []
    for name, p in model.named_parameters():
        small = p.ndim < 2 or name.split(".")[-1] in ("cls_token", "pos_embed")
        (plain if small else decay).append(p)
    return [
        {"params": decay, "weight_decay": weight_decay},
        {"params": plain, "weight_decay": 0.0},
    ]


def _lr_groups(model, base_lr, decay):
    L = len(model.blocks)
    groups = [{"params": [], "lr": base_lr * decay ** (L + 1 - i)} for i in range(L + 2)]
    for name, p in model.named_parameters():
        part = name.split(".")
        if part[0] == "blocks":
            i = int(part[1]) + 1
        else:
            i = L + 1 if part[0] in ("head", "norm") else 0
        groups[i]["params"].append(p)
    return groups


def _our_name(name):
    fixed = {
        "class_token": "cls_token",
        "encoder.pos_embedding": "pos_embed",
        "conv_proj": "patch_embed.proj",
        "encoder.ln": "norm",
        "heads.head": "head",
        "encoder.layers.encoder_layer_": "blocks.",
        "ln_1": "norm1",
        "ln_2": "norm2",
        "self_attention.in_proj_": "attn.qkv.",
        "self_attention.out_proj": "attn.proj",
        "mlp.linear_1": "mlp.fc1",
        "mlp.linear_2": "mlp.fc2",
        "mlp.0": "mlp.fc1",
        "mlp.3": "mlp.fc2",
    }
    for theirs, ours in fixed.items():
        name = name.replace(theirs, ours)
    return name


def _positions(pos_embed, new_grid_size, num_prefix_tokens=1, **options):
    prefix, patches = pos_embed[:, :num_prefix_tokens], pos_embed[:, num_prefix_tokens:]
    side = math.isqrt(patches.shape[1])
    if side**2 != patches.shape[1]:
        raise ValueError(f"{patches.shape[1]} positions are no square")
    if tuple(new_grid_size) == (side, side):
        return pos_embed
    picture = patches.reshape(1, side, side, -1).permute(0, 3, 1, 2)
    options = {"mode": "bicubic", "align_corners": False, **options}
    picture = F.interpolate(picture, size=tuple(new_grid_size), **options)
    return torch.cat([prefix, picture.flatten(2).transpose(1, 2)], 1)


def _crop_flip(images, padding, generator):
    B, _, H, W = images.shape
    where = generator.device
    top, left = torch.randint(2 * padding + 1, (2, B), generator=generator, device=where).tolist()
    flip = torch.randint(2, (B,), generator=generator, device=where).tolist()
    out = []
    for i in range(B):
        rows = _reflect(torch.arange(H, device=images.device) + top[i] - padding, H)
        columns = _reflect(torch.arange(W, device=images.device) + left[i] - padding, W)
        view = images[i][:, rows][:, :, columns.flip(0) if flip[i] else columns]
        out.append(view)
    return torch.stack(out)


def _reflect(index, size):
    index = index.abs()
    return torch.where(index >= size, 2 * size - 2 - index, index)


def _drop(x, p, training, generator=None):
    if not 0 <= p < 1:
        raise ValueError(f"drop_prob must be in [0, 1), not {p}")
    if not training or p == 0:
        return x
    where = generator.device if generator else x.device
    stay = torch.rand(len(x), generator=generator, device=where) >= p
    stay = stay.to(x.device).reshape(-1, *[1] * (x.ndim - 1))
    return torch.where(stay, x / (1 - p), torch.zeros_like(x))


def _ns(matrix, steps=5, coefficients=(3.4445, -4.7750, 2.0315)):
    a, b, c = coefficients
    X = matrix.T if matrix.shape[0] > matrix.shape[1] else matrix
    X = X / (X.norm() + 1e-7)
    for _ in range(steps):
        A = X @ X.T
        X = a * X + (b * A + c * A @ A) @ X
    return X.T if matrix.shape[0] > matrix.shape[1] else X


def _eval_modes(model):
    modes = {m: m.training for m in model.modules()}
    model.eval()
    return modes


def _give_back(modes):
    for module, mode in modes.items():
        module.training = mode


# ---------------------------------------------------------------------------------------- 01


def unpatchify__bare_reshape(patches, patch_size, image_size):
    # The numbers are laid down as they come in memory.
    return patches.reshape(len(patches), -1, *image_size)


def unpatchify__grid_by_columns(patches, patch_size, image_size):
    # Patches are laid down column by column: right for one row or one column.
    P, (H, W), B = patch_size, image_size, len(patches)
    x = patches.reshape(B, W // P, H // P, -1, P, P).permute(0, 3, 2, 4, 1, 5)
    return x.reshape(B, -1, H, W)


def unpatchify__channels_last(patches, patch_size, image_size):
    # Takes the channel for the last axis inside a patch: right for one channel.
    P, (H, W), B = patch_size, image_size, len(patches)
    x = patches.reshape(B, H // P, W // P, P, P, -1).permute(0, 5, 1, 3, 2, 4)
    return x.reshape(B, -1, H, W)


def linear_from_conv__channels_last(conv):
    # Filters are flattened with channels last: right for one channel or P = 1.
    D, C, P, _ = conv.weight.shape
    like = {"dtype": conv.weight.dtype, "device": conv.weight.device}
    linear = nn.Linear(C * P * P, D, bias=conv.bias is not None, **like)
    with torch.no_grad():
        linear.weight.copy_(conv.weight.permute(0, 2, 3, 1).flatten(1))
        if conv.bias is not None:
            linear.bias.copy_(conv.bias)
    return linear


def linear_from_conv__shared(conv):
    # Weight and bias are views of conv's: they share memory.
    D, C, P, _ = conv.weight.shape
    linear = nn.Linear(C * P * P, D, bias=conv.bias is not None)
    linear.weight = nn.Parameter(conv.weight.data.flatten(1))
    linear.bias = conv.bias
    return linear


def linear_from_conv__bias_forgotten(conv):
    # The bias keeps its random values, and exists without one in conv.
    D, C, P, _ = conv.weight.shape
    linear = nn.Linear(C * P * P, D).to(conv.weight)
    with torch.no_grad():
        linear.weight.copy_(conv.weight.flatten(1))
    return linear


def sincos_positions__halves(num_positions, embed_dim):
    # All sines first, then all cosines: right for D = 2.
    table = _sincos(num_positions, embed_dim)
    return torch.cat([table[:, ::2], table[:, 1::2]], 1)


def sincos_positions__frequency_of_column(num_positions, embed_dim):
    # The exponent is 2i/D with i the column, not the pair: cosines get another frequency.
    if embed_dim % 2:
        raise ValueError(f"embed_dim {embed_dim} is odd")
    angle = torch.arange(num_positions)[:, None] / 10000 ** (torch.arange(embed_dim) / embed_dim)
    angle[:, ::2], angle[:, 1::2] = angle[:, ::2].sin(), angle[:, 1::2].cos()
    return angle


def sincos_positions__from_one(num_positions, embed_dim):
    # Positions count from 1.
    return _sincos(num_positions + 1, embed_dim)[1:]


def sincos_positions_2d__columns_first(grid_size, embed_dim):
    # The column comes first, then the row.
    if embed_dim % 4:
        raise ValueError(f"embed_dim {embed_dim} is not divisible by 4")
    gh, gw = grid_size
    rows = _sincos(gh, embed_dim // 2).repeat_interleave(gw, 0)
    return torch.cat([_sincos(gw, embed_dim // 2).repeat(gh, 1), rows], 1)


def sincos_positions_2d__cells_by_columns(grid_size, embed_dim):
    # Cells are numbered column by column: right for one row or one column.
    if embed_dim % 4:
        raise ValueError(f"embed_dim {embed_dim} is not divisible by 4")
    gh, gw = grid_size
    rows = _sincos(gh, embed_dim // 2).repeat(gw, 1)
    return torch.cat([rows, _sincos(gw, embed_dim // 2).repeat_interleave(gh, 0)], 1)


def sincos_positions_2d__sum(grid_size, embed_dim):
    # Row and column codes of full width are added.
    if embed_dim % 4:
        raise ValueError(f"embed_dim {embed_dim} is not divisible by 4")
    gh, gw = grid_size
    return (_sincos(gh, embed_dim)[:, None] + _sincos(gw, embed_dim)).flatten(0, 1)


# ---------------------------------------------------------------------------------------- 02


def split_heads__no_transpose(x, num_heads):
    # reshape alone to (B, h, T, d): right for one head or one token.
    B, T, D = x.shape
    if D % num_heads:
        raise ValueError(f"D = {D} is not divisible by {num_heads} heads")
    return x.reshape(B, num_heads, T, D // num_heads)


def split_heads__every_hth_column(x, num_heads):
    # Head j gets every h-th column.
    B, T, D = x.shape
    if D % num_heads:
        raise ValueError(f"D = {D} is not divisible by {num_heads} heads")
    return x.reshape(B, T, -1, num_heads).permute(0, 3, 1, 2)


def split_heads__d_and_h_exchanged(x, num_heads):
    # num_heads is taken for the width of a head: right where h * h = D.
    B, T, D = x.shape
    if D % num_heads:
        raise ValueError(f"D = {D} is not divisible by {num_heads} heads")
    return x.reshape(B, T, -1, num_heads).transpose(1, 2)


def merge_heads__no_transpose(x):
    # reshape alone: right for one head or one token.
    B, h, T, d = x.shape
    return x.reshape(B, T, h * d)


def merge_heads__interleaved(x):
    # Columns of the heads take turns.
    return x.permute(0, 2, 3, 1).flatten(2)


def merge_heads__added(x):
    # Heads are averaged and repeated to the width.
    return x.mean(1).repeat(1, 1, x.shape[1])


def attention_macs__three_projections(num_tokens, embed_dim):
    # The output projection is forgotten.
    return 3 * num_tokens * embed_dim**2 + 2 * num_tokens**2 * embed_dim


def attention_macs__one_product(num_tokens, embed_dim):
    # One of the two T x T products is forgotten.
    return 4 * num_tokens * embed_dim**2 + num_tokens**2 * embed_dim


def attention_macs__flop(num_tokens, embed_dim):
    # FLOP, twice as many.
    return 8 * num_tokens * embed_dim**2 + 4 * num_tokens**2 * embed_dim


# ---------------------------------------------------------------------------------------- 03


def gelu__tanh(x):
    # The approximation by tanh.
    return 0.5 * x * (1 + torch.tanh((2 / math.pi) ** 0.5 * (x + 0.044715 * x**3)))


def gelu__sigmoid(x):
    # x * sigmoid(1.702 x), the fast approximation.
    return x * torch.sigmoid(1.702 * x)


def gelu__no_root(x):
    # erf(x) where erf(x / root 2) is meant.
    return x * (1 + torch.erf(x)) / 2


class Mlp__tanh_gelu(_Mlp):
    # GELU by tanh.
    def forward(self, x):
        return self.fc2(F.gelu(self.fc1(x), approximate="tanh"))


class Mlp__no_nonlinearity(_Mlp):
    # Nothing between the two layers.
    def forward(self, x):
        return self.fc2(self.fc1(x))


class Mlp__gelu_at_the_end(_Mlp):
    # A second GELU after fc2.
    def forward(self, x):
        return F.gelu(super().forward(x))


def _count(c, block_extra=0, bias=True, tokens=1):
    D, N, M = c.embed_dim, (c.image_size // c.patch_size) ** 2, int(c.embed_dim * c.mlp_ratio)
    block = 4 * D + 4 * D * D + (3 * D if bias and c.qkv_bias else 0) + D + 2 * D * M + M + D
    patches = D * c.in_channels * c.patch_size**2 + D
    last = 2 * D + (D + 1) * c.num_classes
    return patches + D + (N + tokens) * D + c.depth * (block + block_extra) + last


def count_parameters__no_qkv_bias(config):
    # The biases of q, k and v are forgotten: right for qkv_bias=False.
    return _count(config, bias=False)


def count_parameters__always_qkv_bias(config):
    # Counts qkv biases that are not there: right for qkv_bias=True.
    return _count(config, block_extra=0 if config.qkv_bias else 3 * config.embed_dim)


def count_parameters__no_position_of_class_token(config):
    # N positions where there are N + 1.
    return _count(config, tokens=0)


def count_parameters__ratio_of_four(config):
    # The hidden width is 4 D: right for mlp_ratio 4.
    D, M = config.embed_dim, int(config.embed_dim * config.mlp_ratio)
    return _count(config, block_extra=(4 * D - M) * (2 * D + 1))


# ---------------------------------------------------------------------------------------- 04


def warmup_cosine__from_zero(step, total_steps, warmup_steps, peak_lr, final_lr=0.0):
    # The first step uses rate 0, and the last one misses final_lr.
    if step < warmup_steps:
        return peak_lr * step / warmup_steps
    progress = (step - warmup_steps) / (total_steps - warmup_steps)
    return final_lr + (peak_lr - final_lr) * (1 + math.cos(math.pi * progress)) / 2


def warmup_cosine__final_ignored(step, total_steps, warmup_steps, peak_lr, final_lr=0.0):
    # final_lr is ignored: right for 0.
    if step < warmup_steps:
        return peak_lr * (step + 1) / warmup_steps
    progress = (step + 1 - warmup_steps) / (total_steps - warmup_steps)
    return peak_lr * (1 + math.cos(math.pi * progress)) / 2


def warmup_cosine__progress_of_all_steps(step, total_steps, warmup_steps, peak_lr, final_lr=0.0):
    # Progress counts all steps: right without warm-up.
    if step < warmup_steps:
        return peak_lr * (step + 1) / warmup_steps
    progress = (step + 1) / total_steps
    return final_lr + (peak_lr - final_lr) * (1 + math.cos(math.pi * progress)) / 2


def weight_decay_groups__by_axes_only(model, weight_decay):
    # Everything with two axes or more decays, cls_token and pos_embed too.
    big = [p for p in model.parameters() if p.ndim > 1]
    small = [p for p in model.parameters() if p.ndim <= 1]
    return [{"params": big, "weight_decay": weight_decay}, {"params": small, "weight_decay": 0.0}]


def weight_decay_groups__by_name_bias(model, weight_decay):
    # Everything called "weight" decays, weights of norms too.
    names = [*model.named_parameters()]
    big = [p for name, p in names if name.endswith("weight")]
    small = [p for name, p in names if not name.endswith("weight")]
    return [{"params": big, "weight_decay": weight_decay}, {"params": small, "weight_decay": 0.0}]


def weight_decay_groups__other_order(model, weight_decay):
    # The group without decay stands first.
    return _groups(model, weight_decay)[::-1]


def random_crop_flip__one_draw(images, padding, generator):
    # One draw for the whole batch.
    B, C, H, W = images.shape
    return _crop_flip(images.reshape(1, B * C, H, W), padding, generator).reshape(B, C, H, W)


def random_crop_flip__end_excluded(images, padding, generator):
    # Offsets end at 2 * padding - 1: the last one never comes.
    out = []
    for image in images:
        top, left = torch.randint(2 * padding or 1, (2,), generator=generator).tolist()
        rows = _reflect(torch.arange(image.shape[1]) + top - padding, image.shape[1])
        columns = _reflect(torch.arange(image.shape[2]) + left - padding, image.shape[2])
        flip = torch.rand((), generator=generator) < 0.5
        out.append(image[:, rows][:, :, columns.flip(0) if flip else columns])
    return torch.stack(out)


def random_crop_flip__upside_down(images, padding, generator):
    # Mirrors top to bottom.
    return _crop_flip(images.transpose(2, 3), padding, generator).transpose(2, 3)


def random_crop_flip__global_coin(images, padding, generator):
    # The coin is torch's own and not the generator's: a run cannot be repeated.
    coin = torch.rand(len(images)) < 0.5
    moved = [random_crop_flip__never_mirrored(x[None], padding, generator)[0] for x in images]
    return torch.stack([x.flip(-1) if c else x for x, c in zip(moved, coin)])


def random_crop_flip__never_mirrored(images, padding, generator):
    # The coin is forgotten.
    out = []
    for image in images:
        top, left = torch.randint(2 * padding + 1, (2,), generator=generator).tolist()
        rows = _reflect(torch.arange(image.shape[1]) + top - padding, image.shape[1])
        columns = _reflect(torch.arange(image.shape[2]) + left - padding, image.shape[2])
        out.append(image[:, rows][:, :, columns])
    return torch.stack(out)


def _epoch(model, batches, optimizer, scheduler, zero=True, clip=True, late=False, weigh=True):
    model.train()
    total, right, seen, weights = 0.0, 0, 0, 0
    for images, labels in batches:
        if zero:
            optimizer.zero_grad()
        logits = model(images)
        loss = F.cross_entropy(logits, labels)
        loss.backward()
        if clip:
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        scheduler.step()
        if late:
            logits = model(images).detach()
            loss = F.cross_entropy(logits, labels)
        weight = len(labels) if weigh else 1
        total, weights = total + loss.item() * weight, weights + weight
        right += (logits.argmax(-1) == labels).sum().item()
        seen += len(labels)
    return total / weights, right / seen


def train_one_epoch__gradients_pile_up(model, batches, optimizer, scheduler):
    # zero_grad is forgotten: right for a first batch alone.
    return _epoch(model, batches, optimizer, scheduler, zero=False)


def train_one_epoch__not_clipped(model, batches, optimizer, scheduler):
    # Gradients are not clipped: right where they are shorter than 1.
    return _epoch(model, batches, optimizer, scheduler, clip=False)


def train_one_epoch__measured_after(model, batches, optimizer, scheduler):
    # Measures each batch after its update.
    return _epoch(model, batches, optimizer, scheduler, late=True)


def train_one_epoch__mean_of_batches(model, batches, optimizer, scheduler):
    # The loss is the mean of the batches' means: right for batches of one size.
    return _epoch(model, batches, optimizer, scheduler, weigh=False)


def orthogonalise__not_transposed_back(matrix, steps=5):
    # A tall matrix comes back as a wide one: right for m <= n.
    wide = matrix.T if matrix.shape[0] > matrix.shape[1] else matrix
    return _ns(wide, steps)


def orthogonalise__cubic(matrix, steps=5):
    # The old coefficients (1.5, -0.5, 0).
    return _ns(matrix, steps, (1.5, -0.5, 0.0))


def orthogonalise__largest_singular_value(matrix, steps=5):
    # Divides by the largest singular value: right for rank 1.
    scaled = matrix / (torch.linalg.matrix_norm(matrix, 2) + 1e-7)
    X = scaled.T if matrix.shape[0] > matrix.shape[1] else scaled
    for _ in range(steps):
        A = X @ X.T
        X = 3.4445 * X + (-4.7750 * A + 2.0315 * A @ A) @ X
    return X.T if matrix.shape[0] > matrix.shape[1] else X


# ---------------------------------------------------------------------------------------- 05


def _rollout(layers, residual=True, norm=True, left=True):
    result = None
    for weights in layers:
        step = weights.mean(1)
        if residual:
            step = (step + torch.eye(step.shape[-1]).to(step)) / 2
        step = step / step.sum(-1, keepdim=True) if norm else step
        if result is None:
            result = step
        else:
            result = step @ result if left else result @ step
    return result


def attention_rollout__first_layer_leftmost(layers):
    # The product runs the other way: right for one layer.
    return _rollout(layers, left=False)


def attention_rollout__no_identity(layers):
    # The residual path is forgotten.
    return _rollout(layers, residual=False)


def attention_rollout__rows_not_normed(layers):
    # Rows are not normed: right for rows that sum to 1.
    return _rollout(layers, norm=False)


def attention_rollout__largest_head(layers):
    # The maximum over heads in place of the mean: right for one head.
    return _rollout([weights.amax(1, keepdim=True) for weights in layers])


def position_similarity__dot_products(pos_embed, grid_size):
    # Dot products in place of cosines: right for rows of length 1.
    gh, gw = grid_size
    rows = pos_embed[0, -gh * gw :]
    return (rows @ rows.T).reshape(gh * gw, gh, gw)


def position_similarity__one_prefix_row(pos_embed, grid_size):
    # Drops exactly one row: wrong without and with several prefix rows.
    gh, gw = grid_size
    rows = F.normalize(pos_embed[0, 1 : 1 + gh * gw], dim=-1)
    return (rows @ rows.T).reshape(-1, gh, gw)


def position_similarity__last_rows_dropped(pos_embed, grid_size):
    # Takes the first N rows, the class token's among them: right without prefix rows.
    gh, gw = grid_size
    rows = F.normalize(pos_embed[0, : gh * gw], dim=-1)
    return (rows @ rows.T).reshape(gh * gw, gh, gw)


def _hits(attention, masks, last=False, whole=False):
    B, gh, gw = attention.shape
    H, W = masks.shape[1:]
    cells = masks.bool().reshape(B, gh, H // gh, gw, W // gw)
    cells = (cells.all(4).all(2) if whole else cells.any(4).any(2)).flatten(1)
    flat = attention.flatten(1)
    place = gh * gw - 1 - flat.flip(1).argmax(1) if last else flat.argmax(1)
    return cells.gather(1, place[:, None]).double().mean().item()


def pointing_game__last_of_several(attention, masks):
    # Of equally hot patches the last counts: right without ties.
    return _hits(attention, masks, last=True)


def pointing_game__whole_patch(attention, masks):
    # A hit needs the whole patch inside the object.
    return _hits(attention, masks, whole=True)


def pointing_game__middle_pixel(attention, masks):
    # Looks at the middle pixel of the patch only.
    B, gh, gw = attention.shape
    H, W = masks.shape[1:]
    middle = masks[:, H // gh // 2 :: H // gh, W // gw // 2 :: W // gw].flatten(1).bool()
    return middle.gather(1, attention.flatten(1).argmax(1)[:, None]).double().mean().item()


def pointing_game__over_the_batch(attention, masks):
    # One hottest place for the whole batch, from the mean map: right for one image.
    return _hits(attention.mean(0, keepdim=True).expand_as(attention), masks)


def logit_lens__no_norm(layers, norm, head):
    # The norm is forgotten.
    return torch.stack([head(x[:, 0]) for x in layers])


def logit_lens__mean_of_tokens(layers, norm, head):
    # The mean of all tokens in place of the class token: right for one token.
    return torch.stack([head(norm(x).mean(1)) for x in layers])


def logit_lens__norm_after_head(layers, norm, head):
    # Only the last layer goes through the norm: right for one layer.
    return torch.stack([head(x[:, 0]) for x in layers[:-1]] + [head(norm(layers[-1][:, 0]))])


# ---------------------------------------------------------------------------------------- 06


def receptive_field__strides_ignored(kernel_sizes, strides):
    # Strides are ignored: right for strides of 1 (the last one never counts).
    return 1 + sum(k - 1 for k in kernel_sizes)


def receptive_field__own_stride_counts(kernel_sizes, strides):
    # A layer's own stride multiplies its own kernel: right for strides of 1.
    field, jump = 1, 1
    for kernel, stride in zip(kernel_sizes, strides):
        jump *= stride
        field += (kernel - 1) * jump
    return field


def receptive_field__last_layer_first(kernel_sizes, strides):
    # Reads the stack from the last layer to the first.
    field, jump = 1, 1
    for kernel, stride in zip(kernel_sizes[::-1], strides[::-1]):
        field += (kernel - 1) * jump
        jump *= stride
    return field


def _erf(feature_map, images, cell, absolute_last=False, largest=True):
    pixels = images.detach().clone().requires_grad_()
    grad = torch.autograd.grad(cell(feature_map(pixels)), pixels)[0]
    grad = grad.sum(1).mean(0).abs() if absolute_last else grad.abs().sum(1).mean(0)
    return grad / (grad.max() if largest else grad.sum())


def _middle(features):
    return features[..., features.shape[-2] // 2, features.shape[-1] // 2].sum()


def effective_receptive_field__signs_cancel(feature_map, images):
    # Absolute values come after the sums: right for gradients of one sign.
    return _erf(feature_map, images, _middle, absolute_last=True)


def effective_receptive_field__all_cells(feature_map, images):
    # Sums over all cells of the map: right for a map of one cell.
    return _erf(feature_map, images, lambda features: features.sum())


def effective_receptive_field__first_channel(feature_map, images):
    # Looks at channel 0 only: right for one channel.
    return _erf(feature_map, images, lambda features: _middle(features[:, :1]))


def effective_receptive_field__sum_of_one(feature_map, images):
    # Divides by the sum in place of the maximum.
    return _erf(feature_map, images, _middle, largest=False)


def _consistency(model, images, shift, axes=(2, 3)):
    modes = _eval_modes(model)
    with torch.no_grad():
        same = model(images).argmax(-1) == model(torch.roll(images, shift, axes)).argmax(-1)
    _give_back(modes)
    return same.double().mean().item()


def shift_consistency__axes_exchanged(model, images, shift):
    # dy moves to the right and dx down: right for dy = dx.
    return _consistency(model, images, shift, (3, 2))


def shift_consistency__zeros_come_in(model, images, shift):
    # What leaves is lost and zeros come in.
    (dy, dx), (H, W) = shift, images.shape[2:]
    moved = torch.zeros_like(images)
    rows, columns = torch.arange(H) - dy, torch.arange(W) - dx
    r, c = (rows >= 0) & (rows < H), (columns >= 0) & (columns < W)
    moved[:, :, r.nonzero(), c.nonzero().T] = images[:, :, rows[r][:, None], columns[c]]
    modes = _eval_modes(model)
    with torch.no_grad():
        same = model(images).argmax(-1) == model(moved).argmax(-1)
    _give_back(modes)
    return same.double().mean().item()


def shift_consistency__in_train_mode(model, images, shift):
    # Never calls eval: wrong for models with dropout or batch norm in train mode.
    with torch.no_grad():
        same = model(images).argmax(-1) == model(torch.roll(images, shift, (2, 3))).argmax(-1)
    return same.double().mean().item()


def shuffle_patches__inverse(images, patch_size, permutation):
    # Patch i goes to place permutation[i]: right for permutations that are their own inverse.
    patches = _patchify(images, patch_size)[:, permutation.argsort()]
    return _unpatchify(patches, patch_size, images.shape[2:])


def shuffle_patches__batch(images, patch_size, permutation):
    # Every image gets the permutation once more than the one before it: right for one image.
    patches, rows = _patchify(images, patch_size), []
    order = permutation
    for row in patches:
        rows.append(row[order])
        order = order[permutation]
    return _unpatchify(torch.stack(rows), patch_size, images.shape[2:])


def shuffle_patches__numbered_by_columns(images, patch_size, permutation):
    # Patches are numbered column by column: right for one row or one column of patches.
    turned = images.transpose(2, 3)
    patches = _patchify(turned, patch_size)[:, permutation]
    return _unpatchify(patches, patch_size, turned.shape[2:]).transpose(2, 3)


# ---------------------------------------------------------------------------------------- 07


def _hot(images, labels, num_classes):
    return F.one_hot(labels, num_classes).to(images.dtype)


def mixup__weights_exchanged(images, labels, num_classes, lam, permutation):
    # lam weighs the partner: right for 0.5.
    hot = _hot(images, labels, num_classes)
    soft = (1 - lam) * hot + lam * hot[permutation]
    return (1 - lam) * images + lam * images[permutation], soft


def mixup__hard_labels(images, labels, num_classes, lam, permutation):
    # Labels are not mixed.
    return lam * images + (1 - lam) * images[permutation], _hot(images, labels, num_classes)


def mixup__partner_the_other_way(images, labels, num_classes, lam, permutation):
    # The inverse permutation: right for permutations that are their own inverse.
    p, hot = permutation.argsort(), _hot(images, labels, num_classes)
    return lam * images + (1 - lam) * images[p], lam * hot + (1 - lam) * hot[p]


def drop_path__single_numbers(x, drop_prob, training, generator=None):
    # Single numbers are dropped (dropout) in place of whole samples.
    if not 0 <= drop_prob < 1:
        raise ValueError(f"drop_prob must be in [0, 1), not {drop_prob}")
    if not training or not drop_prob:
        return x
    stay = torch.rand(x.shape, generator=generator) >= drop_prob
    return x * stay.to(x) / (1 - drop_prob)


def drop_path__no_scale(x, drop_prob, training, generator=None):
    # Survivors are not divided.
    return _drop(x, drop_prob, training, generator) * (1 - drop_prob if training else 1)


def drop_path__one_draw(x, drop_prob, training, generator=None):
    # One draw for the whole batch.
    return _drop(x[None], drop_prob, training, generator)[0]


def drop_path__keeps_with_drop_prob(x, drop_prob, training, generator=None):
    # drop_prob is the probability to stay, and survivors are divided by it: the mean is right, the
    # share of dropped samples is not; right in eval mode, at 0 and at 0.5.
    if not 0 <= drop_prob < 1:
        raise ValueError(f"drop_prob must be in [0, 1), not {drop_prob}")
    return _drop(x, 1 - drop_prob, True, generator) if training and drop_prob else x


def distillation_loss__soft(cls_logits, dist_logits, teacher_logits, labels):
    # Soft distillation: the teacher's probabilities in place of its argmax.
    soft = F.cross_entropy(dist_logits, teacher_logits.softmax(-1))
    return (F.cross_entropy(cls_logits, labels) + soft) / 2


def distillation_loss__sum(cls_logits, dist_logits, teacher_logits, labels):
    # The halves are forgotten.
    own = F.cross_entropy(cls_logits, labels)
    return own + F.cross_entropy(dist_logits, teacher_logits.argmax(-1))


def distillation_loss__labels_for_both(cls_logits, dist_logits, teacher_logits, labels):
    # The distillation head learns from the labels: right where the teacher is always right.
    return (F.cross_entropy(cls_logits, labels) + F.cross_entropy(dist_logits, labels)) / 2


def masked_patch_loss__all_patches(prediction, target, mask):
    # The mean over all patches, hidden or not.
    return ((prediction - target) ** 2).mean()


def masked_patch_loss__visible(prediction, target, mask):
    # The mean over the visible patches.
    error, seen = ((prediction - target) ** 2).mean(-1), 1 - mask.to(prediction.dtype)
    return (error * seen).sum() / seen.sum()


def masked_patch_loss__mean_of_images(prediction, target, mask):
    # The mean in each image, then over images: right for equally many hidden patches.
    error, mask = ((prediction - target) ** 2).mean(-1), mask.to(prediction.dtype)
    return ((error * mask).sum(1) / mask.sum(1)).mean()


def masked_patch_loss__divided_by_all(prediction, target, mask):
    # The sum over hidden patches is divided by the number of all.
    return (((prediction - target) ** 2).mean(-1) * mask.to(prediction.dtype)).mean()


def _dino(s, t, c, ts, tt, detach=True):
    target = ((t - c) / tt).softmax(-1)
    target = target.detach() if detach else target
    return -(target * (s / ts).log_softmax(-1)).sum(-1).mean()


def dino_loss__teacher_learns(
    student_logits, teacher_logits, center, student_temperature=0.1, teacher_temperature=0.04
):
    # Numbers right; gradients reach teacher and centre.
    return _dino(
        student_logits, teacher_logits, center, student_temperature, teacher_temperature, False
    )


def dino_loss__not_centred(
    student_logits, teacher_logits, center, student_temperature=0.1, teacher_temperature=0.04
):
    # The centre is forgotten: right for a centre of equal numbers.
    return _dino(student_logits, teacher_logits, 0, student_temperature, teacher_temperature)


def dino_loss__student_centred_too(
    student_logits, teacher_logits, center, student_temperature=0.1, teacher_temperature=0.04
):
    # The centre is subtracted from the student too.
    student = student_logits - center.detach()
    return _dino(student, teacher_logits, center, student_temperature, teacher_temperature)


def dino_loss__temperatures_exchanged(
    student_logits, teacher_logits, center, student_temperature=0.1, teacher_temperature=0.04
):
    # The temperatures are exchanged: right where they are equal.
    return _dino(student_logits, teacher_logits, center, teacher_temperature, student_temperature)


# ---------------------------------------------------------------------------------------- 08


def window_partition__bare_reshape(x, window_size):
    # reshape alone: right where the grid is one window wide.
    return x.reshape(-1, window_size**2, x.shape[-1])


def window_partition__windows_by_columns(x, window_size):
    # Windows run column by column: right for one row or column of windows.
    (B, gh, gw, D), w = x.shape, window_size
    return x.reshape(B, gh // w, w, gw // w, w, D).permute(0, 3, 1, 2, 4, 5).reshape(-1, w * w, D)


def window_partition__images_inside(x, window_size):
    # Windows of the images take turns: right for one image.
    (B, gh, gw, D), w = x.shape, window_size
    return x.reshape(B, gh // w, w, gw // w, w, D).permute(1, 3, 0, 2, 4, 5).reshape(-1, w * w, D)


def window_merge__bare_reshape(windows, window_size, grid_size):
    # reshape alone: right where the grid is one window wide.
    return windows.reshape(-1, *grid_size, windows.shape[-1])


def window_merge__windows_by_columns(windows, window_size, grid_size):
    # Windows are laid down column by column.
    (gh, gw), w, D = grid_size, window_size, windows.shape[-1]
    x = windows.reshape(-1, gw // w, gh // w, w, w, D).permute(0, 2, 3, 1, 4, 5)
    return x.reshape(-1, gh, gw, D)


def window_merge__grid_exchanged(windows, window_size, grid_size):
    # grid_size is read as (gw, gh): right for square grids.
    (gw, gh), w, D = grid_size, window_size, windows.shape[-1]
    x = windows.reshape(-1, gh // w, gw // w, w, w, D).transpose(2, 3)
    return x.reshape(-1, gh, gw, D)


def shifted_window_mask__forbidden(grid_size, window_size, shift):
    # True where attention is forbidden.
    return ~_window_mask(grid_size, window_size, shift)


def shifted_window_mask__rows_only(grid_size, window_size, shift):
    # Only rows that came round the edge are told apart.
    (gh, gw), w = grid_size, window_size
    region = _regions(gh, shift)[:, None].expand(gh, gw)[None, ..., None]
    region = _windows(region, w)[..., 0]
    return region[:, :, None] == region[:, None]


def shifted_window_mask__roll_the_other_way(grid_size, window_size, shift):
    # The grid is rolled down and to the right.
    (gh, gw), w = grid_size, window_size
    rows, columns = (torch.arange(size) < shift for size in (gh, gw))
    region = _windows((2 * rows.long()[:, None] + columns.long())[None, ..., None], w)[..., 0]
    return region[:, :, None] == region[:, None]


def linear_attention__not_divided(q, k, v):
    # The sum of the weights is forgotten.
    return (F.elu(q) + 1) @ ((F.elu(k) + 1).transpose(-2, -1) @ v)


def linear_attention__scaled(q, k, v):
    # Queries are divided by the root of d first, as in softmax attention.
    q, k = F.elu(q / q.shape[-1] ** 0.5) + 1, F.elu(k) + 1
    total = q @ k.sum(-2)[..., None]
    return q @ (k.transpose(-2, -1) @ v) / total


def linear_attention__relu(q, k, v):
    # Features relu(x) + 1 in place of elu(x) + 1: right for positive q and k.
    q, k = F.relu(q) + 1, F.relu(k) + 1
    return q @ (k.transpose(-2, -1) @ v) / (q @ k.sum(-2)[..., None])


def linear_attention__quadratic(q, k, v):
    # Right numbers from a T x T matrix.
    weights = (F.elu(q) + 1) @ (F.elu(k) + 1).transpose(-2, -1)
    return weights @ v / weights.sum(-1, keepdim=True)


def _offsets(grid_size):
    gh, gw = grid_size
    row, column = torch.arange(gh * gw) // gw, torch.arange(gh * gw) % gw
    return row[:, None] - row + gh - 1, column[:, None] - column + gw - 1


def relative_position_index__key_minus_query(grid_size):
    # Key minus query: the table is transposed.
    rows, columns = _offsets(grid_size)
    return (rows * (2 * grid_size[1] - 1) + columns).T.contiguous()


def relative_position_index__width_of_rows(grid_size):
    # Rows are multiplied by 2 gh - 1: right for square grids and one row.
    rows, columns = _offsets(grid_size)
    return rows * (2 * grid_size[0] - 1) + columns


def relative_position_index__columns_first(grid_size):
    # Numbers run column by column: right for a grid of one row or one column.
    rows, columns = _offsets(grid_size)
    return columns * (2 * grid_size[0] - 1) + rows


def prune_tokens__order_of_attention(tokens, cls_attention, keep):
    # Kept tokens stand in the order of attention.
    index = cls_attention.topk(keep, 1).indices[..., None].expand(-1, -1, tokens.shape[2]) + 1
    return torch.cat([tokens[:, :1], tokens.gather(1, index)], 1)


def prune_tokens__off_by_one(tokens, cls_attention, keep):
    # Places of patches are taken for places of tokens.
    index = cls_attention.topk(keep, 1).indices.sort(1).values
    index = index[..., None].expand(-1, -1, tokens.shape[2])
    return torch.cat([tokens[:, :1], tokens.gather(1, index)], 1)


def prune_tokens__first_image_chooses(tokens, cls_attention, keep):
    # The first image chooses for the whole batch: right for one image.
    index = cls_attention[0].topk(keep).indices.sort().values + 1
    return torch.cat([tokens[:, :1], tokens[:, index]], 1)


def prune_tokens__least_attended(tokens, cls_attention, keep):
    # Keeps the least attended: right where all are kept.
    index = cls_attention.topk(keep, 1, largest=False).indices.sort(1).values + 1
    index = index[..., None].expand(-1, -1, tokens.shape[2])
    return torch.cat([tokens[:, :1], tokens.gather(1, index)], 1)


def packing_mask__causal(lengths):
    # Tokens see only earlier ones of their image.
    number = torch.tensor([i for i, n in enumerate(lengths) for _ in range(n)])
    return (number[:, None] == number).tril()


def packing_mask__by_length(lengths):
    # Tells images apart by their lengths: wrong where two images are equally long.
    length = torch.tensor([n for n in lengths for _ in range(n)])
    return length[:, None] == length


def packing_mask__forbidden(lengths):
    # True where attention is forbidden.
    number = torch.tensor([i for i, n in enumerate(lengths) for _ in range(n)])
    return number[:, None] != number


# ---------------------------------------------------------------------------------------- 09


def interpolate_positions__bilinear(pos_embed, new_grid_size, num_prefix_tokens=1):
    # Bilinear in place of bicubic.
    return _positions(pos_embed, new_grid_size, num_prefix_tokens, mode="bilinear")


def interpolate_positions__corners_aligned(pos_embed, new_grid_size, num_prefix_tokens=1):
    # align_corners=True.
    return _positions(pos_embed, new_grid_size, num_prefix_tokens, align_corners=True)


def interpolate_positions__one_prefix_row(pos_embed, new_grid_size, num_prefix_tokens=1):
    # Always one prefix row: right for 1.
    return _positions(pos_embed, new_grid_size, 1)


def interpolate_positions__antialias(pos_embed, new_grid_size, num_prefix_tokens=1):
    # antialias=True: differs where the grid shrinks (and a little where it grows).
    return _positions(pos_embed, new_grid_size, num_prefix_tokens, antialias=True)


def convert_torchvision_weights__twelve_blocks(state_dict):
    # Knows twelve blocks: names of later ones stay torchvision's.
    def number(name):
        part = name.split("encoder_layer_")
        return int(part[1].split(".")[0]) if len(part) > 1 else 0

    return {n if number(n) > 11 else _our_name(n): value for n, value in state_dict.items()}


def convert_torchvision_weights__norms_exchanged(state_dict):
    # ln_1 becomes norm2 and ln_2 becomes norm1.
    new = {}
    for name, value in state_dict.items():
        name = _our_name(name)
        swap = {".norm1.": ".norm2.", ".norm2.": ".norm1."}
        for old, other in swap.items():
            if old in name:
                name = name.replace(old, other)
                break
        new[name] = value
    return new


def convert_torchvision_weights__transposed(state_dict):
    # Matrices are transposed, as from a library that stores (in, out).
    return {_our_name(n): value.T if value.ndim == 2 else value for n, value in state_dict.items()}


def convert_torchvision_weights__dict_emptied(state_dict):
    # Takes the tensors out of the given dict with pop.
    return {_our_name(name): state_dict.pop(name) for name in list(state_dict)}


def layerwise_lr_groups__other_way(model, base_lr, decay):
    # The first blocks get the largest rates.
    groups = _lr_groups(model, base_lr, decay)
    rates = [g["lr"] for g in groups][::-1]
    return [{**g, "lr": lr} for g, lr in zip(groups, rates)]


def layerwise_lr_groups__one_step_less(model, base_lr, decay):
    # The last block learns at base_lr like the head.
    groups = _lr_groups(model, base_lr, decay)
    return [
        {**g, "lr": base_lr * decay ** max(0, len(groups) - 2 - i)} for i, g in enumerate(groups)
    ]


def layerwise_lr_groups__norm_at_the_bottom(model, base_lr, decay):
    # The final norm learns at the rate of the patch embedding.
    groups = _lr_groups(model, base_lr, decay)
    norm = list(model.norm.parameters())
    ids = {id(p) for p in norm}
    groups[-1]["params"] = [p for p in groups[-1]["params"] if id(p) not in ids]
    groups[0]["params"] += norm
    return groups


def layerwise_lr_groups__positions_missing(model, base_lr, decay):
    # Class token and positions, which belong to no submodule, are forgotten.
    groups = _lr_groups(model, base_lr, decay)
    groups[0]["params"] = list(model.patch_embed.parameters())
    return groups


def clip_loss__one_direction(image_features, text_features, temperature):
    # Only images ask for texts: right for a symmetric table.
    image, text = (F.normalize(x, dim=-1) for x in (image_features, text_features))
    return F.cross_entropy(image @ text.T / temperature, torch.arange(len(image)))


def clip_loss__not_normalised(image_features, text_features, temperature):
    # Features keep their lengths: right for length 1.
    logits, labels = (
        image_features @ text_features.T / temperature,
        torch.arange(len(image_features)),
    )
    return (F.cross_entropy(logits, labels) + F.cross_entropy(logits.T, labels)) / 2


def clip_loss__multiplied(image_features, text_features, temperature):
    # Cosines are multiplied by the temperature: right for 1.
    return _clip(image_features, text_features, 1 / temperature)


def clip_loss__sum(image_features, text_features, temperature):
    # The sum of both cross-entropies.
    return 2 * _clip(image_features, text_features, temperature)


def _clip(image_features, text_features, temperature):
    image, text = (F.normalize(x, dim=-1) for x in (image_features, text_features))
    logits, labels = image @ text.T / temperature, torch.arange(len(image))
    return (F.cross_entropy(logits, labels) + F.cross_entropy(logits.T, labels)) / 2


def _pairs(image_features, text_features, scale, bias):
    image, text = (F.normalize(x, dim=-1) for x in (image_features, text_features))
    signs = 2 * torch.eye(len(image), dtype=image.dtype) - 1
    return signs * (scale * image @ text.T + bias)


def sigmoid_contrastive_loss__mean_of_pairs(image_features, text_features, scale, bias):
    # Divided by B * B: right for one pair.
    return -F.logsigmoid(_pairs(image_features, text_features, scale, bias)).mean()


def sigmoid_contrastive_loss__log_of_sigmoid(image_features, text_features, scale, bias):
    # log(sigmoid(x)): infinite for large logits.
    pairs = _pairs(image_features, text_features, scale, bias)
    return -torch.sigmoid(pairs).log().sum() / len(pairs)


def sigmoid_contrastive_loss__diagonal_only(image_features, text_features, scale, bias):
    # Only the pairs on the diagonal count: right for one pair.
    pairs = _pairs(image_features, text_features, scale, bias)
    return -F.logsigmoid(pairs.diagonal()).mean()


def sigmoid_contrastive_loss__bias_before_scale(image_features, text_features, scale, bias):
    # scale * (cosine + bias): right for bias 0 or scale 1.
    return -F.logsigmoid(_pairs(image_features, text_features, scale, scale * bias)).sum() / len(
        image_features
    )
