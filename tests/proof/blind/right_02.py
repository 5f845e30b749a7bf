"""Right answers, chapter 02: attention."""

import math

import torch
from torch import nn


# ----------------------------------------------------------------- softmax


def softmax__shift(x, dim=-1):
    x = x - x.amax(dim=dim, keepdim=True)
    e = torch.exp(x)
    return e / e.sum(dim=dim, keepdim=True)


def softmax__logsumexp(x, dim=-1):
    return torch.exp(x - torch.logsumexp(x, dim=dim, keepdim=True))


def softmax__double(x, dim=-1):
    scores = x.to(torch.float64)
    largest, _ = scores.max(dim, keepdim=True)
    numerator = (scores - largest).exp()
    denominator = torch.sum(numerator, dim, keepdim=True)
    return torch.div(numerator, denominator).to(x.dtype)


# -------------------------------------------- scaled_dot_product_attention


def scaled_dot_product_attention__matmul(q, k, v):
    d = q.shape[-1]
    scores = q @ k.transpose(-2, -1) / math.sqrt(d)
    weights = softmax__shift(scores, dim=-1)
    return weights @ v, weights


def scaled_dot_product_attention__einsum(q, k, v):
    q = q * k.shape[-1] ** -0.5
    scores = torch.einsum("...qd,...kd->...qk", q, k)
    weights = scores.softmax(dim=-1)
    output = torch.einsum("...qk,...kv->...qv", weights, v)
    return output, weights


def scaled_dot_product_attention__rows(q, k, v):
    # one query after the other
    d = k.size(-1)
    outputs, rows = [], []
    for i in range(q.size(-2)):
        query = q[..., i : i + 1, :]
        score = (query * k).sum(dim=-1) / d**0.5  # (..., Tk)
        w = torch.softmax(score, dim=-1)
        rows.append(w)
        outputs.append((w.unsqueeze(-1) * v).sum(dim=-2))  # (..., dv)
    return torch.stack(outputs, dim=-2), torch.stack(rows, dim=-2)


# ------------------------------------------------- split_heads/merge_heads


def split_heads__reshape(x, num_heads):
    B, T, D = x.shape
    if D % num_heads != 0:
        raise ValueError(f"embed_dim {D} is not divisible by num_heads {num_heads}")
    return x.reshape(B, T, num_heads, D // num_heads).transpose(1, 2)


def split_heads__slices(x, num_heads):
    width = x.shape[-1]
    if width % num_heads:
        raise ValueError(f"{width} columns can not be shared by {num_heads} heads")
    d = width // num_heads
    return torch.stack([x[:, :, j * d : (j + 1) * d] for j in range(num_heads)], dim=1)


def split_heads__unflatten(x, num_heads):
    if x.size(-1) % num_heads:
        raise ValueError("D=%d, h=%d" % (x.size(-1), num_heads))
    return x.unflatten(-1, (num_heads, -1)).permute(0, 2, 1, 3)


def merge_heads__reshape(x):
    B, h, T, d = x.shape
    return x.transpose(1, 2).reshape(B, T, h * d)


def merge_heads__cat(x):
    return torch.cat([x[:, j] for j in range(x.shape[1])], dim=-1)


def merge_heads__flatten(x):
    return torch.einsum("bhtd->bthd", x).flatten(start_dim=2)


# ------------------------------------------------------ MultiHeadAttention


class MultiHeadAttention__reshape(nn.Module):
    def __init__(self, embed_dim, num_heads, qkv_bias=True):
        super().__init__()
        if embed_dim % num_heads:
            raise ValueError(f"embed_dim {embed_dim} is not divisible by num_heads {num_heads}")
        self.num_heads = num_heads
        self.qkv = nn.Linear(embed_dim, 3 * embed_dim, bias=qkv_bias)
        self.proj = nn.Linear(embed_dim, embed_dim)

    def forward(self, x):
        B, T, D = x.shape
        h = self.num_heads
        q, k, v = self.qkv(x).reshape(B, T, 3, h, D // h).permute(2, 0, 3, 1, 4)
        scores = q @ k.transpose(-2, -1) * (D // h) ** -0.5
        weights = scores.softmax(dim=-1)
        out = (weights @ v).transpose(1, 2).reshape(B, T, D)
        return self.proj(out), weights


class MultiHeadAttention__parts(nn.Module):
    """From the functions written before."""

    def __init__(self, embed_dim, num_heads, qkv_bias=True):
        super().__init__()
        self.num_heads = num_heads
        self.qkv = nn.Linear(embed_dim, embed_dim * 3, bias=qkv_bias)
        self.proj = nn.Linear(embed_dim, embed_dim)

    def forward(self, x):
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        q = split_heads__unflatten(q, self.num_heads)
        k = split_heads__unflatten(k, self.num_heads)
        v = split_heads__unflatten(v, self.num_heads)
        heads, weights = scaled_dot_product_attention__matmul(q, k, v)
        return self.proj(merge_heads__reshape(heads)), weights


class MultiHeadAttention__headloop(nn.Module):
    def __init__(self, embed_dim, num_heads, qkv_bias=True):
        super().__init__()
        self.embed_dim = embed_dim
        self.num_heads = num_heads
        self.head_dim = embed_dim // num_heads
        self.qkv = nn.Linear(embed_dim, 3 * embed_dim, bias=qkv_bias)
        self.proj = nn.Linear(embed_dim, embed_dim, bias=True)

    def forward(self, x):
        D, d = self.embed_dim, self.head_dim
        qkv = self.qkv(x)
        results, maps = [], []
        for j in range(self.num_heads):
            columns = slice(j * d, (j + 1) * d)
            q = qkv[:, :, 0:D][:, :, columns]
            k = qkv[:, :, D : 2 * D][:, :, columns]
            v = qkv[:, :, 2 * D : 3 * D][:, :, columns]
            a = softmax__shift(torch.bmm(q, k.transpose(1, 2)) / math.sqrt(d))
            maps.append(a)
            results.append(torch.bmm(a, v))
        return self.proj(torch.cat(results, dim=-1)), torch.stack(maps, dim=1)


# ---------------------------------------------------------- attention_macs


def attention_macs__formula(num_tokens, embed_dim):
    return 4 * num_tokens * embed_dim**2 + 2 * num_tokens**2 * embed_dim


def attention_macs__steps(num_tokens, embed_dim):
    T, D = num_tokens, embed_dim
    qkv = T * D * (3 * D)
    scores = T * D * T
    mix = T * T * D
    output = T * D * D
    return qkv + scores + mix + output


def _matmul_macs(rows, inner, cols):
    return rows * inner * cols


def attention_macs__products(num_tokens, embed_dim):
    products = [(num_tokens, embed_dim, embed_dim)] * 4
    products += [(num_tokens, embed_dim, num_tokens), (num_tokens, num_tokens, embed_dim)]
    return sum(_matmul_macs(*shape) for shape in products)
