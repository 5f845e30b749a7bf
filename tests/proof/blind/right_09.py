"""Right answers, chapter 09: transfer."""

import copy
import re

import torch
import torch.nn.functional as F
from torch import nn


# --------------------------------------------------- interpolate_positions


def interpolate_positions__permute(pos_embed, new_grid_size, num_prefix_tokens=1):
    prefix = pos_embed[:, :num_prefix_tokens]
    grid = pos_embed[:, num_prefix_tokens:]
    N, D = grid.shape[1:]
    side = round(N**0.5)
    grid = grid.reshape(1, side, side, D).permute(0, 3, 1, 2)
    grid = F.interpolate(grid, size=tuple(new_grid_size), mode="bicubic", align_corners=False)
    grid = grid.permute(0, 2, 3, 1).reshape(1, -1, D)
    return torch.cat([prefix, grid], dim=1)


def interpolate_positions__upsample(pos_embed, new_grid_size, num_prefix_tokens=1):
    t, d = pos_embed.shape[1:]
    side = int((t - num_prefix_tokens) ** 0.5)
    prefix, patches = pos_embed.split([num_prefix_tokens, t - num_prefix_tokens], dim=1)
    picture = patches.transpose(1, 2).unflatten(2, (side, side))
    gh, gw = new_grid_size
    resized = nn.Upsample(size=(gh, gw), mode="bicubic", align_corners=False)(picture)
    return torch.cat((prefix, resized.flatten(2).transpose(1, 2)), dim=1)


def interpolate_positions__channels(pos_embed, new_grid_size, num_prefix_tokens=1):
    rows = pos_embed[0]
    old = rows[num_prefix_tokens:]
    side = 1
    while side * side < old.shape[0]:
        side += 1
    gh, gw = new_grid_size
    columns = []
    for c in range(old.shape[1]):
        picture = old[:, c].reshape(1, 1, side, side)
        picture = F.interpolate(
            picture, (gh, gw), mode="bicubic", align_corners=False, antialias=False
        )
        columns.append(picture.reshape(gh * gw))
    new = torch.stack(columns, dim=1)
    return torch.vstack([rows[:num_prefix_tokens], new]).unsqueeze(0)


# --------------------------------------------- convert_torchvision_weights


def convert_torchvision_weights__table(state_dict):
    outside = {
        "class_token": "cls_token",
        "conv_proj.weight": "patch_embed.proj.weight",
        "conv_proj.bias": "patch_embed.proj.bias",
        "encoder.pos_embedding": "pos_embed",
        "encoder.ln.weight": "norm.weight",
        "encoder.ln.bias": "norm.bias",
        "heads.head.weight": "head.weight",
        "heads.head.bias": "head.bias",
    }
    inside = {
        "ln_1.weight": "norm1.weight",
        "ln_1.bias": "norm1.bias",
        "self_attention.in_proj_weight": "attn.qkv.weight",
        "self_attention.in_proj_bias": "attn.qkv.bias",
        "self_attention.out_proj.weight": "attn.proj.weight",
        "self_attention.out_proj.bias": "attn.proj.bias",
        "ln_2.weight": "norm2.weight",
        "ln_2.bias": "norm2.bias",
        "mlp.0.weight": "mlp.fc1.weight",
        "mlp.0.bias": "mlp.fc1.bias",
        "mlp.3.weight": "mlp.fc2.weight",
        "mlp.3.bias": "mlp.fc2.bias",
    }
    converted = {}
    for key, value in state_dict.items():
        if key in outside:
            converted[outside[key]] = value
        else:
            match = re.fullmatch(r"encoder\.layers\.encoder_layer_(\d+)\.(.+)", key)
            converted[f"blocks.{match.group(1)}.{inside[match.group(2)]}"] = value
    return converted


def convert_torchvision_weights__replace(state_dict):
    rules = [
        ("encoder.layers.encoder_layer_", "blocks."),
        ("ln_1.", "norm1."),
        ("ln_2.", "norm2."),
        ("self_attention.in_proj_", "attn.qkv."),
        ("self_attention.out_proj.", "attn.proj."),
        ("mlp.0.", "mlp.fc1."),
        ("mlp.3.", "mlp.fc2."),
        ("encoder.ln.", "norm."),
        ("encoder.pos_embedding", "pos_embed"),
        ("class_token", "cls_token"),
        ("conv_proj.", "patch_embed.proj."),
        ("heads.head.", "head."),
    ]
    result = {}
    for name, tensor in state_dict.items():
        for old, new in rules:
            name = name.replace(old, new)
        result[name] = tensor.clone()
    return result


def convert_torchvision_weights__blocks(state_dict):
    sd = state_dict
    depth = len({key.split(".")[2] for key in sd if key.startswith("encoder.layers.")})
    ours = {"cls_token": sd["class_token"], "pos_embed": sd["encoder.pos_embedding"]}
    for kind in ("weight", "bias"):
        ours[f"patch_embed.proj.{kind}"] = sd[f"conv_proj.{kind}"]
        for i in range(depth):
            theirs, mine = f"encoder.layers.encoder_layer_{i}", f"blocks.{i}"
            ours[f"{mine}.norm1.{kind}"] = sd[f"{theirs}.ln_1.{kind}"]
            ours[f"{mine}.attn.qkv.{kind}"] = sd[f"{theirs}.self_attention.in_proj_{kind}"]
            ours[f"{mine}.attn.proj.{kind}"] = sd[f"{theirs}.self_attention.out_proj.{kind}"]
            ours[f"{mine}.norm2.{kind}"] = sd[f"{theirs}.ln_2.{kind}"]
            ours[f"{mine}.mlp.fc1.{kind}"] = sd[f"{theirs}.mlp.0.{kind}"]
            ours[f"{mine}.mlp.fc2.{kind}"] = sd[f"{theirs}.mlp.3.{kind}"]
        ours[f"norm.{kind}"] = sd[f"encoder.ln.{kind}"]
        ours[f"head.{kind}"] = sd[f"heads.head.{kind}"]
    return ours


# ----------------------------------------------------- layerwise_lr_groups


def layerwise_lr_groups__each(model, base_lr, decay):
    L = len(model.blocks)
    groups = []
    for name, p in model.named_parameters():
        if name.startswith("blocks."):
            i = int(name.split(".")[1])
            lr = base_lr * decay ** (L - i)
        elif name.startswith(("norm.", "head.")):
            lr = base_lr
        else:
            lr = base_lr * decay ** (L + 1)
        groups.append({"params": [p], "lr": lr})
    return groups


def layerwise_lr_groups__depths(model, base_lr, decay):
    num_blocks = len(model.blocks)
    by_depth = {d: [] for d in range(num_blocks + 2)}  # 0: embedding, L + 1: norm and head
    for name, parameter in model.named_parameters():
        match = re.match(r"blocks\.(\d+)\.", name)
        if match:
            depth = int(match[1]) + 1
        elif name in ("cls_token", "pos_embed") or name.startswith("patch_embed"):
            depth = 0
        else:
            depth = num_blocks + 1
        by_depth[depth].append(parameter)
    return [
        {"params": params, "lr": base_lr * decay ** (num_blocks + 1 - depth)}
        for depth, params in by_depth.items()
    ]


def layerwise_lr_groups__modules(model, base_lr, decay):
    top = list(model.head.parameters()) + list(model.norm.parameters())
    groups = [dict(params=top, lr=base_lr)]
    lr = base_lr
    for block in reversed(list(model.blocks)):
        lr = lr * decay
        groups.append(dict(params=list(block.parameters()), lr=lr))
    bottom = [model.cls_token, model.pos_embed, *model.patch_embed.parameters()]
    groups.append(dict(params=bottom, lr=lr * decay))
    return groups


# --------------------------------------------------------------- clip_loss


def clip_loss__builtin(image_features, text_features, temperature):
    image = F.normalize(image_features, dim=-1)
    text = F.normalize(text_features, dim=-1)
    logits = image @ text.T / temperature
    labels = torch.arange(len(logits), device=logits.device)
    return (F.cross_entropy(logits, labels) + F.cross_entropy(logits.T, labels)) / 2


def clip_loss__diagonal(image_features, text_features, temperature):
    a = image_features / image_features.norm(dim=1, keepdim=True)
    b = text_features / text_features.norm(dim=1, keepdim=True)
    table = torch.einsum("id,jd->ij", a, b) / temperature
    rows = torch.log_softmax(table, dim=1).diagonal()
    columns = torch.log_softmax(table, dim=0).diagonal()
    return -0.5 * (rows + columns).mean()


def clip_loss__cosines(image_features, text_features, temperature):
    cosines = F.cosine_similarity(image_features[:, None], text_features[None], dim=-1)
    scores = cosines / temperature
    B = scores.shape[0]
    loss = 0
    for i in range(B):
        loss = loss + torch.logsumexp(scores[i], 0) - scores[i, i]
        loss = loss + torch.logsumexp(scores[:, i], 0) - scores[i, i]
    return loss / (2 * B)


# ------------------------------------------------ sigmoid_contrastive_loss


def sigmoid_contrastive_loss__sign(image_features, text_features, scale, bias):
    x = F.normalize(image_features, dim=-1)
    y = F.normalize(text_features, dim=-1)
    logits = scale * x @ y.T + bias
    B = logits.shape[0]
    signs = 2 * torch.eye(B, dtype=logits.dtype, device=logits.device) - 1
    return -F.logsigmoid(signs * logits).sum() / B


def sigmoid_contrastive_loss__bce(image_features, text_features, scale, bias):
    image = image_features / torch.linalg.vector_norm(image_features, dim=-1, keepdim=True)
    text = text_features / torch.linalg.vector_norm(text_features, dim=-1, keepdim=True)
    logits = scale * (image @ text.transpose(0, 1)) + bias
    belongs = torch.eye(len(logits)).to(logits)
    return F.binary_cross_entropy_with_logits(logits, belongs, reduction="sum") / len(logits)


def sigmoid_contrastive_loss__loops(image_features, text_features, scale, bias):
    images = F.normalize(image_features, dim=1)
    texts = F.normalize(text_features, dim=1)
    B = images.shape[0]
    total = 0.0
    for i in range(B):
        for j in range(B):
            logit = scale * torch.dot(images[i], texts[j]) + bias
            # -log sigmoid(z) = softplus(-z)
            total = total + F.softplus(-logit if i == j else logit)
    return total / B


# -------------------------------------------------------------- LoRALinear


class _LoRABase(nn.Module):
    """The given constructor."""

    def __init__(self, linear, rank, alpha):
        super().__init__()
        self.linear = linear
        for p in self.linear.parameters():
            p.requires_grad_(False)
        like = dict(device=linear.weight.device, dtype=linear.weight.dtype)
        self.down = nn.Linear(linear.in_features, rank, bias=False, **like)
        self.up = nn.Linear(rank, linear.out_features, bias=False, **like)
        nn.init.zeros_(self.up.weight)
        self.rank = rank
        self.alpha = alpha


class LoRALinear__plain(_LoRABase):
    def forward(self, x):
        return self.linear(x) + self.alpha / self.rank * self.up(self.down(x))

    @torch.no_grad()
    def merged(self):
        out = nn.Linear(
            self.linear.in_features,
            self.linear.out_features,
            bias=self.linear.bias is not None,
            device=self.linear.weight.device,
            dtype=self.linear.weight.dtype,
        )
        out.weight.copy_(
            self.linear.weight + self.alpha / self.rank * self.up.weight @ self.down.weight
        )
        if self.linear.bias is not None:
            out.bias.copy_(self.linear.bias)
        return out


class LoRALinear__deepcopy(_LoRABase):
    def forward(self, x):
        frozen = self.linear(x)
        adapter = self.up(self.down(x))
        return frozen + adapter * (self.alpha / self.rank)

    def merged(self):
        layer = copy.deepcopy(self.linear)
        with torch.no_grad():
            layer.weight += (self.alpha / self.rank) * (self.up.weight @ self.down.weight)
        return layer


class LoRALinear__matrix(_LoRABase):
    def _change(self):
        return torch.einsum("or,ri->oi", self.up.weight, self.down.weight) * self.alpha / self.rank

    def forward(self, x):
        return F.linear(x, self.linear.weight + self._change(), self.linear.bias)

    def merged(self):
        weight = (self.linear.weight + self._change()).detach()
        n_out, n_in = weight.shape
        new = nn.Linear(n_in, n_out, bias=False)
        new.weight = nn.Parameter(weight)
        if self.linear.bias is not None:
            new.bias = nn.Parameter(self.linear.bias.detach().clone())
        return new
