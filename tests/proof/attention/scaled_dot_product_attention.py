"""Right answers to 2.2 scaled_dot_product_attention, and what becomes of its mutants."""

import math

import torch
import torch.nn.functional as F

from proof.reasons import DEFAULT


def by_einsum(q, k, v):
    scores = torch.einsum("...id,...jd->...ij", q, k) * q.size(-1) ** -0.5
    weights = F.softmax(scores, dim=-1)
    return torch.einsum("...ij,...jc->...ic", weights, v), weights


def by_queries(q, k, v):
    outputs, rows = [], []
    for query in q.unbind(-2):
        scores = (k * query.unsqueeze(-2)).sum(-1) / math.sqrt(query.shape[-1])
        row = torch.softmax(scores, -1)
        rows.append(row)
        outputs.append((row.unsqueeze(-1) * v).sum(-2))
    return torch.stack(outputs, -2), torch.stack(rows, -2)


def by_kernel_regression(q, k, v):
    scores = (q[..., :, None, :] * k[..., None, :, :]).sum(-1) / k.shape[-1] ** 0.5
    kernel = (scores - scores.amax(-1, keepdim=True)).exp()
    total = kernel.sum(-1, keepdim=True)
    return kernel @ v / total, kernel / total


def by_batches(q, k, v):
    leading = q.shape[:-2]
    flat = [
        x.reshape(-1, *x.shape[-2:]) for x in (q / q.shape[-1] ** 0.25, k / k.shape[-1] ** 0.25, v)
    ]
    weights = torch.bmm(flat[0], flat[1].mT).softmax(dim=2)
    output = torch.bmm(weights, flat[2])
    return output.reshape(*leading, *output.shape[1:]), weights.reshape(
        *leading, *weights.shape[1:]
    )


def in_double(q, k, v):
    scores = (
        torch.matmul(q.double(), k.double().swapaxes(-1, -2)) / torch.tensor(k.shape[-1]).sqrt()
    )
    weights = scores.log_softmax(-1).exp()
    return [torch.matmul(weights, v.double()).to(v.dtype), weights.to(q.dtype)]


EQUIVALENT = {
    "queries and keys have one depth": ("scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5",),
    DEFAULT: ("weights = softmax(scores)",),
}


# conditions on the arguments: a mutant that is wrong only under one of them must fail
SPECIAL = (
    "q.ndim == 2",
    "q.ndim == 3",
    "len(q) == 1",
    "q.shape[-2] == 1",
    "k.shape[-2] == 1",
    "k.shape[-1] == 1",
    "v.shape[-1] == 1",
    "q.shape == k.shape",
    "q.shape[-2] == q.shape[-1]",
    "q.shape[-2] > 64",
    "q.ndim == 5",
)
