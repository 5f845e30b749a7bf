"""Right answers to 6.7 linear_cka, and what becomes of its mutants."""

import torch


def by_gram_matrices(x, y):
    """The same from the n x n likenesses of images, which suits many features."""
    n = len(x)
    centre = torch.eye(n, dtype=x.dtype, device=x.device) - 1 / n
    K, L = centre @ x @ x.T @ centre, centre @ y @ y.T @ centre
    return (K * L).sum() / ((K * K).sum() * (L * L).sum()).sqrt()


def by_einsum(x, y):
    x, y = (z - torch.einsum("nf->f", z) / z.shape[0] for z in (x, y))

    def shared(a, b):
        return torch.einsum("ni,nj->ij", a, b).pow(2).sum()

    return shared(x, y) * torch.rsqrt(shared(x, x)) * torch.rsqrt(shared(y, y))


def by_linalg(x, y):
    x, y = x.sub(x.mean(0, keepdim=True)), y.sub(y.mean(0, keepdim=True))
    norm = torch.linalg.matrix_norm
    return norm(torch.matmul(x.mT, y)) ** 2 / norm(x.mT @ x) / norm(y.mT @ y)


def by_covariance(x, y):
    p = x.shape[1]
    C = torch.cov(torch.cat([x, y], dim=1).T)
    return C[:p, p:].square().sum() / (C[:p, :p].norm() * C[p:, p:].norm())


def by_traces(x, y):
    x, y = x - x.sum(0) / len(x), y - y.sum(0) / len(y)
    K, L = x @ x.T, y @ y.T
    return torch.trace(K @ L) / torch.sqrt(torch.trace(K @ K) * torch.trace(L @ L))


EQUIVALENT = {
    "a square has no sign": ("x = x.mean(dim=0) - x", "y = y.mean(dim=0) - y"),
    "both products have the same singular values": ("() * (y @ y.T)", "(x @ x.T).norm"),
}


# conditions on the arguments: a mutant that is wrong only under one of them must fail
SPECIAL = (
    "x.shape[1] == y.shape[1]",
    "x.shape[1] == 1",
)
