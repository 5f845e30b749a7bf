"""Right answers to 4.10 orthogonalise, and what becomes of its mutants."""

import torch

A, B, C = 3.4445, -4.7750, 2.0315


def as_in_the_text(matrix, steps=5):
    X = matrix / (torch.linalg.norm(matrix) + 1e-7)
    tall = X.size(0) > X.size(1)
    if tall:
        X = X.T
    for _ in range(steps):
        gram = X @ X.T
        X = A * X + (B * gram + C * gram @ gram) @ X
    return X.T if tall else X


def never_turned(matrix, steps=5):
    x = matrix / max(matrix.pow(2).sum().sqrt(), torch.tensor(1e-7))
    while steps > 0:
        gram = x.mm(x.t())
        x, steps = A * x + B * gram.mm(x) + C * gram.mm(gram).mm(x), steps - 1
    return x


@torch.no_grad()
def from_the_right(matrix, steps=5):
    x = matrix.div(matrix.norm(p="fro").add(1e-7))
    is_wide = x.shape[1] > x.shape[0]
    x = x.mT if is_wide else x
    for _ in range(steps):
        gram = x.mT @ x
        x = x @ (A * torch.eye(len(gram)).to(gram) + B * gram + C * gram.matrix_power(2))
    return x.mT if is_wide else x


def by_recursion(matrix, steps=5):
    if matrix.shape[0] > matrix.shape[1]:
        return by_recursion(matrix.T, steps).T
    if steps == 0:
        return matrix / (matrix.square().sum() ** 0.5 + 1e-7)
    x = by_recursion(matrix, steps - 1)
    return A * x + (B * torch.eye(len(x)).to(x) + C * x @ x.T) @ x @ x.T @ x


def by_singular_values(matrix, steps=5):
    u, s, v = torch.linalg.svd(matrix, full_matrices=False)
    s = s / (s.norm() + 1e-7)
    for _ in range(steps):
        s = A * s + B * s**3 + C * s**5
    return u @ torch.diag(s) @ v


# conditions on the arguments: a mutant that is wrong only under one of them must fail
SPECIAL = (
    "steps == 0",
    "steps > 5",
    "matrix.shape[0] == 1",
    "matrix.shape[0] == matrix.shape[1]",
    "matrix.shape[0] > matrix.shape[1]",
    "not matrix.any()",
)

EQUIVALENT = {
    "X and its transpose have the same singular values; the products are only larger": (
        "is_tall = matrix.shape[0] < matrix.shape[1]",
        "is_tall = matrix.shape[0] <= matrix.shape[1]",
        "is_tall = matrix.shape[0] >= matrix.shape[1]",
        "is_tall = matrix.shape[0] == matrix.shape[1]",
        "is_tall = matrix.shape[0] != matrix.shape[1]",
        "is_tall = matrix.shape[-1] > matrix.shape[1]",
        "is_tall = matrix.shape[1] > matrix.shape[1]",
        "is_tall = matrix.shape[0] > matrix.shape[-2]",
        "is_tall = matrix.shape[0] > matrix.shape[0]",
    ),
}
LEFT_OPEN = {
    "what keeps a matrix of zeros from NaN may be any tiny number": (
        "x = x / x.norm().clamp(min=1e-08)",
        "x = x / x.norm().clamp(min=5e-08)",
        "x = x / x.norm().clamp(min=2e-07)",
        "x = x / x.norm().clamp(min=1e-06)",
    ),
}
