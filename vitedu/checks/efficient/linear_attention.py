import torch
import torch.nn.functional as F

from vitedu.checks.kit import FUSED_NAMES, USUAL, Checker, Mistake, also, shaped

FEATURES = "F.elu(q) + 1, F.elu(k) + 1"
RESULT = "(q @ collected) / (q @ total)"
MEAN = "the weights of a query sum to 1"

MISTAKES = (
    Mistake(
        "no_features",
        "queries and keys meet as they are",
        "features elu(x) + 1",
        "Products of raw vectors can be negative, and their sum can be 0.",
        "Put q and k through the feature map first.",
        {FEATURES: "q, k"},
    ),
    Mistake(
        "without_one",
        "the 1 of the feature map is missing",
        "features elu(x) + 1",
        "elu goes down to -1; features shall be positive.",
        "Look at the smallest feature.",
        {FEATURES: "F.elu(q), F.elu(k)"},
    ),
    Mistake(
        "one_inside",
        "the 1 is added inside elu",
        "features elu(x) + 1",
        "elu(x + 1) goes down to -1; features shall be positive.",
        "Look at the brackets.",
        {FEATURES: "F.elu(q + 1), F.elu(k + 1)"},
    ),
    Mistake(
        "queries_only",
        "only the queries go through the feature map",
        "features of queries and of keys",
        "The weights can be negative.",
        "Do the same to k.",
        {"F.elu(k) + 1": "k"},
    ),
    Mistake(
        "keys_only",
        "only the keys go through the feature map",
        "features of queries and of keys",
        "The weights can be negative.",
        "Do the same to q.",
        {"F.elu(q) + 1": "q"},
    ),
    Mistake(
        "axes_from_front",
        "the axes of tokens and features are counted from the front",
        "the last two axes, whatever stands before them",
        "Axes 1 and 2 are tokens and features only where one axis stands before them.",
        "Count from the back: -2 and -1.",
        {
            "k.transpose(-2, -1)": "k.transpose(1, 2)",
            "k.sum(dim=-2)[..., None]": "k.sum(dim=1, keepdim=True).transpose(1, 2)",
        },
    ),
    Mistake(
        "relu",
        "relu is taken for the feature map",
        "features elu(x) + 1",
        "A feature of 0 has no gradient, and a query may get no weight at all.",
        "Use F.elu.",
        {FEATURES: "F.relu(q) + 1e-6, F.relu(k) + 1e-6"},
        also=({FEATURES: "F.relu(q) + 1, F.relu(k) + 1"},),
    ),
    Mistake(
        "softmax_features",
        "softmax is taken for the feature map",
        "features elu(x) + 1",
        "That is another linear attention (Shen et al. 2018).",
        "Use F.elu.",
        {FEATURES: "q.softmax(dim=-1), k.softmax(dim=-2)"},
    ),
    Mistake(
        "scaled",
        "queries are divided by the root of the depth",
        "features elu(x) + 1 of q and k as they come",
        "The feature map is no product: a scale inside it changes the weights.",
        "Leave the scale out.",
        {"F.elu(q)": "F.elu(q / q.shape[-1] ** 0.5)"},
    ),
    Mistake(
        "not_normalised",
        "the result is not divided by the sum of the weights",
        MEAN,
        "The output grows with the number of keys.",
        "Divide by f(q) times the sum of the f(k).",
        {" / (q @ total)": ""},
    ),
    Mistake(
        "number_added",
        "a number that is felt is added to the sum of the weights",
        MEAN,
        "The output shrinks where the weights are small.",
        "Leave it out; features are positive.",
        {"(q @ total)": "(q @ total + 1e-3)"},
    ),
    Mistake(
        "divided_by_features",
        "the result is divided by the sum of the query's features",
        MEAN,
        "The sum of the weights depends on the keys, too. Some published code has this mistake.",
        "The sum over j of f(q) . f(k_j) is f(q) times the sum of the f(k_j).",
        {"q @ total": "q.sum(dim=-1, keepdim=True)"},
    ),
    Mistake(
        "divided_by_itself",
        "the result is divided by its own sum",
        MEAN,
        "The values may have any sum; only the weights have to sum to 1.",
        "Divide by f(q) times the sum of the f(k).",
        {"q @ total": "(q @ collected).sum(dim=-1, keepdim=True)"},
    ),
    Mistake(
        "divided_by_keys",
        "the result is divided by the number of keys",
        MEAN,
        "Weights are no counts.",
        "Divide by f(q) times the sum of the f(k).",
        {"q @ total": "k.shape[-2]"},
    ),
    Mistake(
        "softmax_attention",
        "this is softmax attention",
        "weights f(q) . f(k)",
        "Its cost grows with the square of the tokens.",
        "No exp is needed here.",
        {FEATURES: "q, k", RESULT: "(q @ k.mT / k.shape[-1] ** 0.5).softmax(dim=-1) @ v"},
    ),
    Mistake(
        "quadratic",
        "a matrix of queries by keys is built",
        "k^T v first: a matrix of d x dv",
        "The numbers are right, and the cost is that of softmax attention.",
        "Move the brackets: (q k^T) v is q (k^T v).",
        {RESULT: "((q @ k.mT) / (q @ total)) @ v"},
        part="cost",
    ),
)


def by_einsum(q, k, v):
    q, k = F.elu(q) + 1.0, F.elu(k) + 1.0
    above = torch.einsum("...id,...dc->...ic", q, torch.einsum("...jd,...jc->...dc", k, v))
    return above / torch.einsum("...id,...d->...i", q, k.sum(-2)).unsqueeze(-1)


def by_column_of_ones(q, k, v):
    q, k = (torch.where(x > 0, x + 1, x.clamp(max=0).exp()) for x in (q, k))
    together = q @ (k.mT @ torch.cat([v, torch.ones_like(v[..., :1])], dim=-1))
    return together[..., :-1] / together[..., -1:]


def by_tokens(q, k, v):
    collected, total = 0, 0
    for key, value in zip(k.unbind(-2), v.unbind(-2), strict=True):
        feature = F.elu(key) + 1
        collected = collected + feature[..., :, None] * value[..., None, :]
        total = total + feature
    q = F.elu(q) + 1
    return torch.matmul(q, collected) / (q * total.unsqueeze(-2)).sum(-1, keepdim=True)


def with_epsilon(q, k, v):
    q, k = F.elu(q) + 1, F.elu(k) + 1
    rest = 1 / (q @ k.sum(dim=-2, keepdim=True).transpose(-2, -1) + 1e-6)
    return q @ (k.transpose(-2, -1) @ v) * rest


def with_mean_keys(q, k, v):
    q, k = torch.nn.ELU()(q) + 1, torch.nn.ELU()(k) + 1
    k = k / k.sum(dim=-2, keepdim=True).sum(dim=-1, keepdim=True)
    return (q @ (k.mT @ v)) / (q * k.sum(dim=-2, keepdim=True)).sum(dim=-1, keepdim=True)


CHECKER = Checker(
    "linear_attention",
    cases=shaped(
        "q: B nh Tq d; k: B nh Tk d; v: B nh Tk dv",
        also(
            "cost",
            "and one of 4 x as many tokens",
            shapes="q: long d; k: long d; v: long dv",
            driver="growth",
            gradients=(),
            long=24,
        ),
        also("leading axes", "no leading axis", shapes="q: Tq d; k: Tk d; v: Tk dv"),
        also("leading axes", "one leading axis", shapes="q: B Tq d; k: B Tk d; v: B Tk dv"),
        also("other sizes", "T equals d", Tq="d", Tk="d", dv="d"),
        also(
            "cost",
            "of few tokens, and one of 4 x as many",
            shapes="q: long d; k: long d; v: long dv",
            driver="growth",
            gradients=(),
            long=4,
            d=2,
            dv=2,
        ),
        also(
            "cost",
            "with many features, and one of 4 x as many tokens",
            shapes="q: long d; k: long d; v: long dv",
            driver="growth",
            gradients=(),
            long=5,
            d=10,
            dv=3,
        ),
        also(
            "other sizes",
            "q and k of size 100",
            values=dict.fromkeys("qk", lambda x: 100 * x.abs()),
            gradients=("q", "k"),
        ),
        also("other sizes", "one query", Tq=1),
        also("other sizes", "one key", Tk=1),
        *USUAL,
        ranges={"d": (2, 5), "dv": (2, 5), "Tk": (2, 5)},
        # the first query has small features, so that a number added to the sum of its weights is felt
        values={"q": lambda q: torch.cat([0.2 * q[..., :1, :] - 2.5, q[..., 1:, :]], dim=-2)},
        rtol=1e-4,
        atol=2e-5,
    ),
    forbidden=FUSED_NAMES,
    weights={"cost": 3},
    proves={
        "allowed operations": "made from products and elu",
        "values": "each output is the mean of the values, weighted with f(q) . f(k)",
        "cost": "four times the tokens cost about four times the work, counted from the operations that ran",
        "leading axes": "with none, one or two leading axes",
        "other sizes": "also when T equals d, for one query, one key, a batch of one, and float64",
    },
    special="q.shape[-2] == k.shape[-2]; q.shape[-2] == 1; k.shape[-2] == 1; "
    "q.shape[-1] == v.shape[-1]; len(q) == 1",
)
