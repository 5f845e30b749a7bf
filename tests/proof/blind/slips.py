"""Answers that are right in the idea with ONE slip of polish. Names: `<exercise>__<slip>`.

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


# ---------------------------------------------------------------------------------- 01 to 03


def patchify__error_without_numbers(images, patch_size):
    # The ValueError names no numbers.
    try:
        return _patchify(images, patch_size)
    except ValueError:
        raise ValueError("this image cannot be cut into patches") from None


def patchify__runtime_error(images, patch_size):
    # torch's RuntimeError from reshape in place of the ValueError.
    B, C, H, W = images.shape
    P = patch_size
    x = images.reshape(B, C, H // P, P, W // P, P).permute(0, 2, 4, 1, 3, 5)
    return x.reshape(B, (H // P) * (W // P), C * P * P)


def unpatchify__canvas_of_float32(patches, patch_size, image_size):
    # Fills torch.zeros(...): float64 patches are rounded, and it lies on the CPU.
    P, (H, W) = patch_size, image_size
    B, N, length = patches.shape
    C = length // P**2
    images = torch.zeros(B, C, H, W)
    for n in range(N):
        top, left = n // (W // P) * P, n % (W // P) * P
        images[:, :, top : top + P, left : left + P] = patches[:, n].reshape(B, C, P, P)
    return images


def linear_from_conv__float32_on_the_cpu(conv):
    # The Linear has the default dtype and device: a float64 conv is rounded, a GPU conv left
    # behind.
    out, bias = conv.out_channels, conv.bias is not None
    linear = nn.Linear(conv.weight[0].numel(), out, bias=bias)
    with torch.no_grad():
        linear.weight.copy_(conv.weight.flatten(1))
        if bias:
            linear.bias.copy_(conv.bias)
    return linear


class PatchEmbed__runtime_error(_PatchEmbed):
    # torch's RuntimeError in place of the ValueError for sizes that do not divide.
    def forward(self, images):
        patches = patchify__runtime_error(images, self.patch_size)
        return F.linear(patches, self.proj.weight.flatten(1), self.proj.bias)


class PatchEmbed__crops(nn.Module):
    # Sizes that do not divide are cropped by the convolution, without an error.
    def __init__(self, patch_size, in_channels, embed_dim):
        super().__init__()
        self.proj = nn.Conv2d(in_channels, embed_dim, patch_size, stride=patch_size)

    def forward(self, images):
        return self.proj(images).flatten(2).transpose(1, 2)


def add_class_token_and_positions__float32_result(patch_tokens, cls_token, pos_embed):
    # The result is float32 for float64 tokens: it is written into torch.empty(...), on the CPU.
    B, N, D = patch_tokens.shape
    x = torch.empty(B, N + 1, D)
    x[:, :1], x[:, 1:] = cls_token, patch_tokens
    return x + pos_embed.float()


def sincos_positions__float64_table(num_positions, embed_dim):
    # The table is float64 where float32 is asked for.
    if embed_dim % 2:
        raise ValueError(f"embed_dim {embed_dim} is odd")
    rate = 10000 ** (-torch.arange(0, embed_dim, 2).double() / embed_dim)
    angle = torch.arange(num_positions).double()[:, None] * rate
    return torch.stack([angle.sin(), angle.cos()], -1).flatten(1)


def sincos_positions__assertion(num_positions, embed_dim):
    # AssertionError in place of the ValueError for an odd D.
    assert embed_dim % 2 == 0, f"embed_dim {embed_dim} is odd"
    return _sincos(num_positions, embed_dim)


def sincos_positions_2d__error_of_the_half(grid_size, embed_dim):
    # No check of its own: D = 6 names the half (3), and D = 5 returns a table of 4 columns.
    gh, gw = grid_size
    rows, columns = _sincos(gh, embed_dim // 2), _sincos(gw, embed_dim // 2)
    rows, columns = rows.repeat_interleave(gw, 0), columns.repeat(gh, 1)
    return torch.cat([rows, columns], 1)


def softmax__float32_inside(x, dim=-1):
    # float64 scores are rounded to float32 on the way.
    y = x.float()
    e = (y - y.amax(dim, keepdim=True)).exp()
    return (e / e.sum(dim, keepdim=True)).to(x.dtype)


def softmax__no_axis_crashes(x, dim=-1):
    # A single number (0 axes) crashes.
    e = (x - torch.stack(x.unbind(dim)).amax(0).unsqueeze(dim)).exp()
    return e / e.sum(dim, keepdim=True)


def scaled_dot_product_attention__one_key_crashes(q, k, v):
    # squeeze() before the product: one key or depth 1 crashes; larger ones are right (3 axes).
    weights = (q @ k.squeeze().transpose(-2, -1) / q.shape[-1] ** 0.5).softmax(-1)
    return weights @ v, weights


def scaled_dot_product_attention__root_in_float32(q, k, v):
    # The root is a float32 tensor of one axis on the CPU: breaks on a GPU, rounds float64.
    root = torch.sqrt(torch.tensor([float(q.shape[-1])]))
    weights = (q @ k.transpose(-2, -1) / root).softmax(-1)
    return weights @ v, weights


def split_heads__runtime_error(x, num_heads):
    # torch's RuntimeError from reshape in place of the ValueError.
    B, T, D = x.shape
    return x.reshape(B, T, num_heads, D // num_heads).transpose(1, 2)


def split_heads__error_names_one(x, num_heads):
    # The ValueError names one of the two numbers only.
    B, T, D = x.shape
    if D % num_heads:
        raise ValueError(f"cannot split into {num_heads} heads")
    return x.reshape(B, T, num_heads, -1).transpose(1, 2)


def merge_heads__canvas_of_float32(x):
    # Fills torch.zeros(...): float64 is rounded, and it lies on the CPU.
    B, h, T, d = x.shape
    out = torch.zeros(B, T, h * d)
    for j in range(h):
        out[:, :, j * d : (j + 1) * d] = x[:, j]
    return out


class MultiHeadAttention__no_error(nn.Module):
    # __init__ takes a D that num_heads does not divide; the RuntimeError comes in forward.
    def __init__(self, embed_dim, num_heads, qkv_bias=True):
        super().__init__()
        self.num_heads = num_heads
        self.qkv = nn.Linear(embed_dim, 3 * embed_dim, bias=qkv_bias)
        self.proj = nn.Linear(embed_dim, embed_dim)

    forward = _Attention.forward


class MultiHeadAttention__crash_without_bias(_Attention):
    # qkv_bias=False crashes in forward.
    def forward(self, x):
        B, T, D = x.shape
        x = x @ self.qkv.weight.T + self.qkv.bias
        q, k, v = x.reshape(B, T, 3, self.num_heads, -1).permute(2, 0, 3, 1, 4)
        output, weights = _attention(q, k, v)
        return self.proj(output.transpose(1, 2).flatten(2)), weights


def attention_macs__float(num_tokens, embed_dim):
    # A float in place of an int.
    T, D = num_tokens, embed_dim
    return 4.0 * T * D**2 + 2.0 * T**2 * D


def layer_norm__one_axis_crashes(x, weight, bias, eps=1e-6):
    # A single token (D,) crashes.
    axis = 1 if x.ndim == 2 else x.ndim - 1 or 1
    mean = x.mean(axis, keepdim=True)
    var = (x - mean).square().mean(axis, keepdim=True)
    return (x - mean) / (var + eps).sqrt() * weight + bias


def layer_norm__float32_inside(x, weight, bias, eps=1e-6):
    # float64 tokens are rounded to float32 on the way.
    y = x.float()
    y = y - y.mean(-1, keepdim=True)
    y = y / (y.square().mean(-1, keepdim=True) + eps).sqrt()
    return y.to(x.dtype) * weight + bias


def gelu__root_in_float32(x):
    # The root of 2 is a float32 tensor of one axis on the CPU: rounds float64, breaks on a GPU.
    root = torch.tensor([2.0]).sqrt()
    return (x * 0.5 * (1 + torch.erf(x / root))).reshape(x.shape)


class Mlp__float32_only(_Mlp):
    # Casts to float32 on the way in: a float64 layer crashes.
    def forward(self, x):
        return super().forward(x.float())


class EncoderBlock__float32_only(_Block):
    # Casts to float32 after the first norm: a float64 block crashes.
    def forward(self, x):
        x = x + self.attn(self.norm1(x).float())[0]
        return x + self.mlp(self.norm2(x))


class VisionTransformer__canvas_of_float32(_ViT):
    # Tokens are written into torch.empty(...): float64 crashes in the first norm, a GPU breaks.
    def tokens(self, images):
        patches = self.patch_embed(images)
        x = torch.empty(len(patches), patches.shape[1] + 1, patches.shape[2])
        x[:, :1], x[:, 1:] = self.cls_token, patches
        return x + self.pos_embed.float()


def count_parameters__float(config):
    # A float: `/` where `//` is meant.
    c, D = config, config.embed_dim
    N, M = (c.image_size / c.patch_size) ** 2, int(D * c.mlp_ratio)
    block = 4 * D + 3 * D * D + 3 * D * c.qkv_bias + D * D + D + 2 * D * M + M + D
    patches = D * c.in_channels * c.patch_size**2 + D
    return patches + D + (N + 1) * D + c.depth * block + 2 * D + (D + 1) * c.num_classes


# ---------------------------------------------------------------------------------------- 04


def cross_entropy__int64_only(logits, labels, label_smoothing=0.0):
    # int32 labels crash.
    logp, K = logits.log_softmax(-1), logits.shape[-1]
    target = (1 - label_smoothing) * F.one_hot(labels, K) + label_smoothing / K
    return -(target.to(logits.dtype) * logp).sum(-1).mean()


def cross_entropy__float32_targets(logits, labels, label_smoothing=0.0):
    # Targets and the answer are float32 for float64 logits.
    target = F.one_hot(labels.long(), logits.shape[-1]).float()
    target = (1 - label_smoothing) * target + label_smoothing / logits.shape[-1]
    return -(target * logits.float().log_softmax(-1)).sum(-1).mean()


def warmup_cosine__float32_tensor(step, total_steps, warmup_steps, peak_lr, final_lr=0.0):
    # A float32 tensor in place of a Python number.
    if step < warmup_steps:
        return torch.tensor(peak_lr * (step + 1) / warmup_steps)
    progress = torch.tensor((step + 1 - warmup_steps) / (total_steps - warmup_steps))
    return final_lr + (peak_lr - final_lr) * (1 + torch.cos(math.pi * progress)) / 2


def weight_decay_groups__generators(model, weight_decay):
    # "params" are generators, which can be read once.
    decay, plain = _groups(model, weight_decay)
    return [{**g, "params": (p for p in g["params"])} for g in (decay, plain)]


def random_crop_flip__float_comes_back(images, padding, generator):
    # uint8 images come back as float32.
    return _crop_flip(images.float(), padding, generator)


def random_crop_flip__draws_where_the_images_are(images, padding, generator):
    # Draws on the images' device: a CPU generator breaks for images elsewhere.
    B, where = len(images), images.device
    draws = torch.randint(2 * padding + 1, (2, B), generator=generator, device=where)
    flip = torch.rand(B, generator=generator, device=where) < 0.5
    out = []
    for i, image in enumerate(images):
        rows = _reflect(
            torch.arange(image.shape[1], device=where) + draws[0, i] - padding, image.shape[1]
        )
        columns = torch.arange(image.shape[2], device=where) + draws[1, i] - padding
        columns = _reflect(columns, image.shape[2])
        image = image[:, rows][:, :, columns]
        out.append(image.flip(-1) if flip[i] else image)
    return torch.stack(out)


def train_one_epoch__tensors(model, batches, optimizer, scheduler):
    # 0-d tensors in place of Python numbers.
    model.train()
    total, right, seen = 0, 0, 0
    for images, labels in batches:
        optimizer.zero_grad()
        logits = model(images)
        loss = F.cross_entropy(logits, labels)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        scheduler.step()
        total = total + loss.detach() * len(labels)
        right = right + (logits.argmax(-1) == labels).sum()
        seen += len(labels)
    return total / seen, right / seen


def evaluate__mode_of_the_root(model, batches):
    # model.train(was) at the end: a frozen submodule comes back in the root's mode.
    was, total, right, seen = model.training, 0.0, 0, 0
    model.eval()
    with torch.no_grad():
        for images, labels in batches:
            logits = model(images)
            total += F.cross_entropy(logits, labels, reduction="sum").item()
            right += (logits.argmax(-1) == labels).sum().item()
            seen += len(labels)
    model.train(was)
    return total / seen, right / seen


def evaluate__mode_not_restored(model, batches):
    # The model stays in eval mode.
    total, right, seen = 0.0, 0, 0
    model.eval()
    with torch.no_grad():
        for images, labels in batches:
            logits = model(images)
            total += F.cross_entropy(logits, labels, reduction="sum").item()
            right += (logits.argmax(-1) == labels).sum().item()
            seen += len(labels)
    return total / seen, right / seen


def orthogonalise__zero_matrix(matrix, steps=5):
    # Without the 1e-7: a matrix of zeros gives nan.
    return _ns(matrix / matrix.norm(), steps)


def orthogonalise__float32(matrix, steps=5):
    # float64 comes back as float32.
    return _ns(matrix.float(), steps)


# ---------------------------------------------------------------------------------- 05 and 06


def class_attention__one_head_squeezed(weights, grid_size):
    # One head or one image loses its axis.
    gh, gw = grid_size
    row = weights[:, :, 0, -gh * gw :].squeeze()
    return row.reshape(*row.shape[:-1], gh, gw)


def attention_rollout__identity_on_the_cpu(layers):
    # torch.eye(T) without device: breaks on a GPU.
    result = eye = torch.eye(layers[0].shape[-1])
    for weights in layers:
        step = (weights.mean(1) + eye) / 2
        result = step / step.sum(-1, keepdim=True) @ result.to(step.dtype)
    return result


def attention_rollout__float32_identity(layers):
    # The product starts in float32: float64 layers crash.
    B, _, T, _ = layers[0].shape
    result = torch.eye(T, device=layers[0].device).expand(B, T, T)
    for weights in layers:
        step = (weights.mean(1) + torch.eye(T, device=weights.device)) / 2
        result = (step / step.sum(-1, keepdim=True)).bmm(result)
    return result


def position_similarity__float32(pos_embed, grid_size):
    # float64 comes back as float32.
    gh, gw = grid_size
    rows = F.normalize(pos_embed[0, -gh * gw :].float(), dim=-1)
    return (rows @ rows.T).reshape(gh * gw, gh, gw)


def confusion_matrix__int32(predictions, labels, num_classes):
    # Counts are int32.
    K = num_classes
    counts = torch.bincount(labels.long() * K + predictions.long(), minlength=K * K)
    return counts.reshape(K, K).int()


def confusion_matrix__float(predictions, labels, num_classes):
    # Counts are float32.
    rows, columns = (F.one_hot(x.long(), num_classes).float() for x in (labels, predictions))
    return rows.T @ columns


def pointing_game__float_masks_crash(attention, masks):
    # `&` with a boolean patch: masks of floats crash.
    B, gh, gw = attention.shape
    H, W = masks.shape[1:]
    hottest = F.one_hot(attention.flatten(1).argmax(1), gh * gw).reshape(B, gh, gw).bool()
    patch = hottest.repeat_interleave(H // gh, 1).repeat_interleave(W // gw, 2)
    return (patch & masks).flatten(1).any(1).double().mean().item()


def pointing_game__tensor(attention, masks):
    # A float32 tensor in place of a Python number.
    B, gh, gw = attention.shape
    H, W = masks.shape[1:]
    cells = masks.reshape(B, gh, H // gh, gw, W // gw).bool().any(4).any(2).flatten(1)
    return cells.gather(1, attention.flatten(1).argmax(1)[:, None]).float().mean()


def logit_lens__axes_of_one_squeezed(layers, norm, head):
    # One layer or one image loses its axis.
    return torch.stack([head(norm(x))[:, 0] for x in layers]).squeeze()


def receptive_field__tensor(kernel_sizes, strides):
    # A tensor in place of a Python number.
    field, jump = torch.tensor(1), torch.tensor(1)
    for kernel, stride in zip(kernel_sizes, strides):
        field = field + (kernel - 1) * jump
        jump = jump * stride
    return field


def effective_receptive_field__images_require_gradients(feature_map, images):
    # The caller's images require gradients afterwards.
    images.requires_grad_()
    features = feature_map(images)
    cell = features[..., features.shape[-2] // 2, features.shape[-1] // 2].sum()
    grad = torch.autograd.grad(cell, images)[0].abs().sum(1).mean(0)
    return grad / grad.max()


def effective_receptive_field__gradients_left_in_the_model(feature_map, images):
    # backward() leaves gradients in the parameters of a feature map that is a module.
    pixels = images.detach().clone().requires_grad_()
    features = feature_map(pixels)
    features[..., features.shape[-2] // 2, features.shape[-1] // 2].sum().backward()
    grad = pixels.grad.abs().sum(1).mean(0)
    return grad / grad.max()


def shift_consistency__mode_not_restored(model, images, shift):
    # The model stays in eval mode.
    model.eval()
    with torch.no_grad():
        before = model(images).argmax(-1)
        after = model(torch.roll(images, shift, (2, 3))).argmax(-1)
    return (before == after).double().mean().item()


def shift_consistency__mode_of_the_root(model, images, shift):
    # model.train(was) at the end: a frozen submodule comes back in the root's mode.
    was = model.training
    answer = shift_consistency__mode_not_restored(model, images, shift)
    model.train(was)
    return answer


def shuffle_patches__canvas_of_float32(images, patch_size, permutation):
    # Fills torch.zeros(...): float64 is rounded, and it lies on the CPU.
    P, out = patch_size, torch.zeros(images.shape)
    columns = images.shape[3] // P
    for i, j in enumerate(permutation.tolist()):
        (r, c), (s, t) = divmod(i, columns), divmod(j, columns)
        piece = images[:, :, s * P : (s + 1) * P, t * P : (t + 1) * P]
        out[:, :, r * P : (r + 1) * P, c * P : (c + 1) * P] = piece
    return out


def linear_cka__float32(x, y):
    # float64 features are rounded, and the answer is float32.
    x, y = (z.float() - z.float().mean(0) for z in (x, y))
    return (y.T @ x).norm() ** 2 / ((x.T @ x).norm() * (y.T @ y).norm())


def linear_cka__one_feature_crashes(x, y):
    # squeeze() before the products: one feature crashes.
    x, y = ((z - z.mean(0)).squeeze() for z in (x, y))
    gram = [torch.mm(x.T, x).norm(), torch.mm(y.T, y).norm()]
    return torch.mm(y.T, x).norm() ** 2 / (gram[0] * gram[1])


# ---------------------------------------------------------------------------------------- 07


def mixup__labels_of_float32(images, labels, num_classes, lam, permutation):
    # Soft labels are float32 for float64 images.
    hot = F.one_hot(labels, num_classes).float()
    mixed = lam * images + (1 - lam) * images[permutation]
    return mixed, lam * hot + (1 - lam) * hot[permutation]


def cutmix__labels_of_float32(images, labels, num_classes, box, permutation):
    # Soft labels are float32 for float64 images.
    H, W = images.shape[2:]
    top, left, bottom, right = (min(max(b, 0), s) for b, s in zip(box, (H, W, H, W)))
    area = max(bottom - top, 0) * max(right - left, 0) / (H * W)
    out = images.clone()
    out[:, :, top:bottom, left:right] = images[permutation][:, :, top:bottom, left:right]
    hot = F.one_hot(labels.long(), num_classes).float()
    return out, (1 - area) * hot + area * hot[permutation]


def drop_path__error_only_in_training(x, drop_prob, training, generator=None):
    # A wrong probability is refused in training only.
    return _drop(x, drop_prob, training, generator) if training else x


def drop_path__draws_where_x_is(x, drop_prob, training, generator=None):
    # Draws on the device of x: a CPU generator breaks for x elsewhere.
    if not 0 <= drop_prob < 1:
        raise ValueError(f"drop_prob must be in [0, 1), not {drop_prob}")
    if not training or not drop_prob:
        return x
    draws = torch.rand(len(x), generator=generator, device=x.device).to(x.dtype)
    stay = (draws >= drop_prob).to(x.dtype).reshape(-1, *[1] * (x.ndim - 1))
    return x * stay / (1 - drop_prob)


def distillation_loss__float32(cls_logits, dist_logits, teacher_logits, labels):
    # The loss is float32 for float64 logits.
    own = F.cross_entropy(cls_logits.float(), labels)
    return (own + F.cross_entropy(dist_logits.float(), teacher_logits.argmax(-1))) / 2


def random_masking__bool_mask(tokens, mask_ratio, noise):
    # The mask is boolean.
    M = round(tokens.shape[1] * (1 - mask_ratio))
    order = noise.argsort(1)
    restore = order.argsort(1)
    kept = tokens.gather(1, order[:, :M, None].expand(-1, -1, tokens.shape[2]))
    return kept, restore >= M, restore


def random_masking__mask_of_float32(tokens, mask_ratio, noise):
    # The mask is float32 for float64 tokens, and made on the CPU.
    kept, mask, restore = random_masking__bool_mask(tokens, mask_ratio, noise)
    canvas = torch.zeros(mask.shape)
    canvas[mask] = 1
    return kept, canvas, restore


def masked_patch_loss__boolean_masks_crash(prediction, target, mask):
    # The error of all patches times the mask as a matrix product: boolean masks crash.
    error = ((prediction - target) ** 2).mean(-1)
    return error.flatten() @ mask.flatten() / mask.sum()


def dino_loss__float32(
    student_logits, teacher_logits, center, student_temperature=0.1, teacher_temperature=0.04
):
    # The loss is float32 for float64 logits.
    with torch.no_grad():
        target = ((teacher_logits - center).float() / teacher_temperature).softmax(-1)
    logp = (student_logits.float() / student_temperature).log_softmax(-1)
    return -(target * logp).sum(-1).mean()


# ---------------------------------------------------------------------------------------- 08


def window_partition__canvas_of_float32(x, window_size):
    # Fills torch.zeros(...): float64 is rounded, and it lies on the CPU.
    (B, gh, gw, D), w = x.shape, window_size
    out = torch.zeros(B, gh // w, gw // w, w * w, D)
    for r in range(gh // w):
        for c in range(gw // w):
            piece = x[:, r * w : (r + 1) * w, c * w : (c + 1) * w]
            out[:, r, c] = piece.reshape(B, w * w, D)
    return out.reshape(-1, w * w, D)


def window_merge__canvas_of_float32(windows, window_size, grid_size):
    # Fills torch.zeros(...): float64 is rounded, and it lies on the CPU.
    (gh, gw), w, D = grid_size, window_size, windows.shape[-1]
    x = windows.reshape(-1, gh // w * (gw // w), w, w, D)
    out = torch.zeros(len(x), gh, gw, D)
    for i in range(x.shape[1]):
        r, c = divmod(i, gw // w)
        out[:, r * w : (r + 1) * w, c * w : (c + 1) * w] = x[:, i]
    return out


def shifted_window_mask__float(grid_size, window_size, shift):
    # 0.0 and 1.0 in place of booleans.
    return _window_mask(grid_size, window_size, shift).float()


def linear_attention__three_axes(q, k, v):
    # bmm: any number of leading axes but one crashes.
    q, k = F.elu(q) + 1, F.elu(k) + 1
    total = k.transpose(-2, -1).bmm(v)
    return q.bmm(total) / q.bmm(k.sum(-2)[..., None])


def relative_position_index__int32(grid_size):
    # int32 in place of int64.
    gh, gw = grid_size
    rows, columns = (
        x.flatten() for x in torch.meshgrid(torch.arange(gh), torch.arange(gw), indexing="ij")
    )
    rows = rows[:, None] - rows + gh - 1
    return (rows * (2 * gw - 1) + columns[:, None] - columns + gw - 1).int()


def prune_tokens__one_crashes(tokens, cls_attention, keep):
    # squeeze() of the places: keep = 1 (or one image) crashes.
    places = cls_attention.topk(keep, 1).indices.sort(1).values.squeeze() + 1
    index = places[:, :, None].expand(-1, -1, tokens.shape[2])
    return torch.cat([tokens[:, :1], tokens.gather(1, index)], 1)


def merge_tokens__runtime_error(tokens, keys, sizes, merge):
    # torch's RuntimeError from topk in place of the ValueError.
    k = F.normalize(keys[:, 1:], dim=-1)
    best, place = (k[:, ::2] @ k[:, 1::2].transpose(1, 2)).max(-1)
    out = []
    for b in range(len(tokens)):
        x, n = list((tokens[b] * sizes[b][:, None]).unbind()), list(sizes[b].unbind())
        joined, leave = set(), best[b].topk(merge).indices.tolist()
        for i in leave:
            t = 2 * int(place[b, i]) + 2
            x[t], n[t] = x[t] + x[2 * i + 1], n[t] + n[2 * i + 1]
            joined.add(t)
        gone = {2 * i + 1 for i in leave}
        stay = [j for j in range(len(x)) if j not in gone]
        rows = [x[j] / n[j] if j in joined else tokens[b, j] for j in stay]
        out.append((torch.stack(rows), torch.stack([n[j] for j in stay])))
    return torch.stack([x for x, _ in out]), torch.stack([n for _, n in out])


def packing_mask__integers(lengths):
    # 0 and 1 in place of booleans.
    number = torch.repeat_interleave(torch.arange(len(lengths)), torch.tensor(list(lengths)))
    return (number[:, None] == number).long()


# ---------------------------------------------------------------------------------------- 09


def convert_torchvision_weights__copies(state_dict):
    # The tensors are copies, not the same tensors.
    return {_our_name(name): value.clone() for name, value in state_dict.items()}


def interpolate_positions__runtime_error(pos_embed, new_grid_size, num_prefix_tokens=1):
    # torch's RuntimeError from reshape in place of the ValueError for N that is no square.
    prefix, patches = pos_embed[:, :num_prefix_tokens], pos_embed[:, num_prefix_tokens:]
    side = int(patches.shape[1] ** 0.5)
    picture = patches.reshape(1, side, side, pos_embed.shape[2]).permute(0, 3, 1, 2)
    size = tuple(new_grid_size)
    picture = F.interpolate(picture, size=size, mode="bicubic", align_corners=False)
    return torch.cat([prefix, picture.flatten(2).transpose(1, 2)], 1)


def layerwise_lr_groups__frozen_missing(model, base_lr, decay):
    # Parameters that are frozen now are left out.
    groups = _lr_groups(model, base_lr, decay)
    return [{**g, "params": [p for p in g["params"] if p.requires_grad]} for g in groups]


def layerwise_lr_groups__tensors(model, base_lr, decay):
    # Learning rates are 0-d tensors in place of Python numbers.
    return [{**g, "lr": torch.tensor(g["lr"])} for g in _lr_groups(model, base_lr, decay)]


def clip_loss__labels_on_the_cpu(image_features, text_features, temperature):
    # torch.arange(B) without device: breaks on a GPU.
    image, text = (F.normalize(x, dim=-1) for x in (image_features, text_features))
    logits, labels = image @ text.T / temperature, torch.arange(len(image))
    return (F.cross_entropy(logits, labels) + F.cross_entropy(logits.T, labels)) / 2


def sigmoid_contrastive_loss__signs_on_the_cpu(image_features, text_features, scale, bias):
    # torch.eye(B) without dtype and device: breaks on a GPU.
    image, text = (F.normalize(x, dim=-1) for x in (image_features, text_features))
    signs = 2 * torch.eye(len(image)) - 1
    return -F.logsigmoid(signs * (scale * image @ text.T + bias)).sum() / len(image)


class LoRALinear__merged_in_float32(nn.Module):
    # merged() makes a Linear of the default dtype and device: float64 is rounded.
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

    @torch.no_grad()
    def merged(self):
        old = self.linear
        new = nn.Linear(old.in_features, old.out_features, bias=old.bias is not None)
        new.weight.copy_(old.weight + self.alpha / self.rank * self.up.weight @ self.down.weight)
        if old.bias is not None:
            new.bias.copy_(old.bias)
        return new
