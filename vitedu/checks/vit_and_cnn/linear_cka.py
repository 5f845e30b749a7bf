import torch

from vitedu.checks.kit import FLOAT64, ON_ACCELERATOR, Checker, Mistake, also, shaped

CENTRED_X, CENTRED_Y = "x = x - x.mean(dim=0)", "y = y - y.mean(dim=0)"
OWN = "((x.T @ x).norm() * (y.T @ y).norm())"
SHARED = "(y.T @ x).square().sum()"

MISTAKES = (
    Mistake(
        "not_centred",
        "the features are not centred",
        "the mean of every column is 0 first",
        "A feature that is large for every image would make all layers look alike.",
        "Subtract the mean over the images from every column.",
        {CENTRED_X: "x = x", CENTRED_Y: "y = y"},
    ),
    Mistake(
        "y_not_centred",
        "only x is centred",
        "both sides are centred",
        "The norm of y.T @ y would count its mean.",
        "Subtract the mean of y, too.",
        {CENTRED_Y: "y = y"},
    ),
    Mistake(
        "x_not_centred",
        "only y is centred",
        "both sides are centred",
        "The norm of x.T @ x would count its mean.",
        "Subtract the mean of x, too.",
        {CENTRED_X: "x = x"},
    ),
    Mistake(
        "rows_centred",
        "every image is centred over its features",
        "every feature is centred over the images",
        "The question is how a feature varies from image to image.",
        "The images stand on dim 0.",
        {
            "x.mean(dim=0)": "x.mean(dim=1, keepdim=True)",
            "y.mean(dim=0)": "y.mean(dim=1, keepdim=True)",
        },
    ),
    Mistake(
        "one_mean_for_all",
        "one mean is taken over all numbers of a side",
        "a mean for every column",
        "Every feature has its own mean.",
        "Give mean the argument dim=0.",
        {"x.mean(dim=0)": "x.mean()", "y.mean(dim=0)": "y.mean()"},
    ),
    Mistake(
        "standardised",
        "the columns are divided by their standard deviation",
        "centred and not scaled",
        "A feature that hardly varies would count as much as one that varies a lot.",
        "Subtract the means and leave it at that.",
        {
            CENTRED_X: CENTRED_X + "\nx = x / x.std(dim=0)",
            CENTRED_Y: CENTRED_Y + "\ny = y / y.std(dim=0)",
        },
    ),
    Mistake(
        "not_squared",
        "the norm above is not squared",
        "the squared norm of y.T @ x",
        "A layer compared with itself would not give 1.",
        "Compare a layer with itself.",
        {SHARED: SHARED + ".sqrt()"},
    ),
    Mistake(
        "spectral_norm",
        "the norms are the largest singular values",
        "Frobenius norms: the root of the sum of squares",
        "All directions but one would be left out.",
        "Leave out ord=2; norm() alone is the Frobenius norm.",
        {
            SHARED: "torch.linalg.norm(y.T @ x, ord=2).square()",
            OWN: "(torch.linalg.norm(x.T @ x, ord=2) * torch.linalg.norm(y.T @ y, ord=2))",
        },
    ),
    Mistake(
        "root_taken",
        "the square root of CKA is returned",
        "no root at the end",
        "A root makes small likenesses look large.",
        "Look for a root around the quotient.",
        {"return shared": "return shared.sqrt()", OWN: OWN + ".sqrt()"},
    ),
    Mistake(
        "norms_of_features",
        "it divides by the norms of x and y",
        "the norms of x.T @ x and of y.T @ y",
        "The quotient would depend on the number of directions in which the features vary.",
        "Compare a layer with itself: the result must be 1.",
        {OWN: "(x.norm() * y.norm()).square()"},
        also=({OWN: "(x.norm() * y.norm())"},),
    ),
    Mistake(
        "brackets_forgotten",
        "it is divided by one norm and multiplied by the other",
        "a quotient by the product of both norms",
        "a / b * c is (a / b) * c.",
        "Put brackets around the product.",
        {OWN: OWN[1:-1]},
    ),
    Mistake(
        "own_squared",
        "the norms below are squared",
        "the product of two norms, each to the first power",
        "Twice as large features would change the result.",
        "Multiply x by 2: nothing may change.",
        {OWN: OWN + ".square()"},
    ),
    Mistake(
        "not_divided",
        "it is not divided by the norms of the two sides",
        "a quotient between 0 and 1",
        "Larger features would look more alike.",
        "Multiply x by 2: nothing may change.",
        {"shared / " + OWN: "shared"},
    ),
    Mistake(
        "number_added",
        "a small number is added below",
        "the product of the two norms",
        "Small features would look less alike than large ones.",
        "Divide x and y by 30: nothing may change.",
        {OWN: "(" + OWN + " + 1e-3)"},
        also=({OWN: "(" + OWN + " + 1e-4)"},),
    ),
    Mistake(
        "y_norm_twice",
        "the norm of y.T @ y is taken twice",
        "one norm of each side",
        "The result would change when x and y change places.",
        "Compare linear_cka(x, y) with linear_cka(y, x).",
        {"(x.T @ x)": "(y.T @ y)"},
    ),
    Mistake(
        "sum_of_products",
        "the entries of y.T @ x are added, not their squares",
        "the squared Frobenius norm",
        "Positive and negative products would cancel.",
        "Square every entry before the sum.",
        {SHARED: "(y.T @ x).sum().square()"},
    ),
    Mistake(
        "distance",
        "one minus CKA is returned",
        "a likeness: 1 for a layer and itself",
        "A distance is 0 where the likeness is 1.",
        "Compare a layer with itself.",
        {"return shared": "return 1 - shared"},
    ),
)


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


CHECKER = Checker(
    "linear_cka",
    cases=shaped(
        "x: n p; y: n q",
        also("other sizes", "as many features on both sides", q="p"),
        also("other sizes", "one feature against several", p=1),
        also("other sizes", "more features than images", p="3 * n", q="2 * n + 1"),
        also("other sizes", "y a hundred times as large", scale={"y": 100.0}),
        also(
            "other sizes",
            "columns far from zero",
            values=dict.fromkeys("xy", lambda z: z + 1e3),
            rtol=1e-2,
        ),
        # features that are small, not so small that a guard of 1e-12 against 0 is felt
        also("other sizes", "both sides a hundredth as large", scale=1 / 100, rtol=2e-3),
        also(
            "other sizes",
            "y the first two columns of x in memory",
            p=5,
            q=2,
            extra={"views": {"y": "x"}},
        ),
        FLOAT64,
        ON_ACCELERATOR,
        ranges={"n": (6, 9), "p": (2, 5), "q": (2, 5)},
        # a mean of its own for each column, so that centring is felt
        values={name: lambda z: z + 2 * z[:1] + 0.5 * z.mean(dim=1).mean() for name in ("x", "y")},
        name="features ({n}, {p}) and ({n}, {q})",
        rtol=1e-4,
    ),
    proves={
        "values": "centred, compared and divided by the norms of both sides",
        "other sizes": "also for one feature, more features than images, other scales and float64",
    },
    equivalent={
        "a square has no sign": ("x = x.mean(dim=0) - x", "y = y.mean(dim=0) - y"),
        "both products have the same singular values": ("() * (y @ y.T)", "(x @ x.T).norm"),
    },
    special="x.shape[1] == y.shape[1]; x.shape[1] == 1",
)
