import copy
from functools import partial

import torch
import torch.nn.functional as F
from torch import nn

from vitedu.checks.kit import Case, Checker, Layer, Mistake, distinct, normal, usual
from vitedu.transfer import LoRALinear as Given  # right answers need its constructor


def cases(g: torch.Generator) -> list[Case]:
    """Draw a frozen layer, two thin matrices and tokens; no two sizes are the same."""
    B, T, n_in, n_out, rank = distinct(g, 5, 2, 9)

    def case(note="", part="other sizes", n_out=n_out, rank=rank, bias=True, shape=(B, T), **rest):
        drawn = partial(normal, g, dtype=rest.pop("dtype", torch.float32))
        weight, vector = drawn(n_out, n_in) / n_in**0.5, drawn(n_out) if bias else None
        linear, alpha = Layer(weight, vector), rest.pop("alpha", rank + 1.5)
        state = {"linear.weight": drawn(n_out, n_in) / n_in**0.5}
        state |= {"down.weight": drawn(rank, n_in), "up.weight": drawn(n_out, rank)}
        if bias:
            state["linear.bias"] = drawn(n_out)
        rest = {"driver": "module", "args": {"x": drawn(*shape, n_in)}} | rest
        frozen = [name for name in state if name.startswith("linear")]
        rest |= {"extra": {"frozen": frozen}, "rtol": 1e-4, "atol": 1e-5}
        shown = f"Linear({n_in}, {n_out}, bias={bias}), rank={rank}, alpha={alpha:g}"
        init = {"linear": linear, "rank": rank, "alpha": alpha}
        return Case(f"LoRALinear({shown}){note}", part=part, init=init, state=state, **rest)

    def merge(note="", part="merged", **rest):
        return case(note, part, driver="merged", args={}, **rest)

    return [
        case(part="values", gradients=("x",)),
        merge(", merged"),
        case(", no bias", bias=False),
        case(", rank 1", rank=1),
        case(", alpha 0", alpha=0.0),
        case(", a square layer", n_out=n_in),
        case(", one vector", shape=()),
        merge(", merged, no bias", bias=False),
        merge(", merged, rank 1", rank=1),
        merge(", merged, alpha 0", alpha=0.0),
        merge(", merged, a square layer and thin matrices that are square", n_out=n_in, rank=n_in),
        merge(", merged, float64", dtype=torch.float64),
        *usual(case),
    ]


FORWARD = "self.linear(x) + self.alpha / self.rank * self.up(self.down(x))"
CHANGE = "self.up.weight @ self.down.weight"
SUM = "old.weight + self.alpha / self.rank * change"
MADE = "linear = nn.Linear(old.in_features, old.out_features, bias=has_bias, **like)"

MISTAKES = (
    Mistake(
        "not_scaled",
        "alpha / rank is left out",
        "alpha / rank times up(down(x))",
        "The step would depend on the rank.",
        "Look at the factor.",
        {FORWARD: "self.linear(x) + self.up(self.down(x))", SUM: "old.weight + change"},
    ),
    Mistake(
        "not_scaled_forward",
        "forward leaves alpha / rank out",
        "alpha / rank times up(down(x))",
        "The step would depend on the rank.",
        "Look at the factor.",
        {FORWARD: "self.linear(x) + self.up(self.down(x))"},
    ),
    Mistake(
        "not_divided",
        "the change is multiplied by alpha alone",
        "alpha / rank",
        "A larger rank would take larger steps.",
        "Divide by the rank.",
        {FORWARD: "self.linear(x) + self.alpha * self.up(self.down(x))"},
    ),
    Mistake(
        "multiplied_by_rank",
        "the change is multiplied by the rank",
        "alpha / rank",
        "The rank stands below the line.",
        "Divide by the rank.",
        {FORWARD: "self.linear(x) + self.alpha * self.rank * self.up(self.down(x))"},
    ),
    Mistake(
        "ratio_turned",
        "the factor is rank / alpha",
        "alpha / rank",
        "An alpha of 0 shall switch the change off.",
        "Turn it.",
        {FORWARD: "self.linear(x) + self.rank / max(self.alpha, 1e-9) * self.up(self.down(x))"},
        also=(
            {
                FORWARD: "self.linear(x) + self.rank / self.alpha * self.up(self.down(x))",
                SUM: "old.weight + self.rank / self.alpha * change",
            },
        ),
    ),
    Mistake(
        "root_of_rank",
        "the change is divided by the root of the rank",
        "alpha / rank",
        "That is rsLoRA, a later variant.",
        "Divide by the rank itself.",
        {FORWARD: "self.linear(x) + self.alpha / self.rank**0.5 * self.up(self.down(x))"},
    ),
    Mistake(
        "whole_division",
        "alpha // rank is rounded down to a whole number",
        "alpha / rank",
        "An alpha below the rank would switch the change off.",
        "Divide with one slash.",
        {FORWARD: FORWARD.replace("/", "//"), SUM: SUM.replace("/", "//")},
        also=({FORWARD: FORWARD.replace("/", "//")},),
    ),
    Mistake(
        "change_alone",
        "the frozen layer is left out",
        "the frozen layer plus the change",
        "At the start the change is 0, and so would be the result.",
        "Add self.linear(x).",
        {FORWARD: "self.alpha / self.rank * self.up(self.down(x))"},
    ),
    Mistake(
        "frozen_alone",
        "the change is left out",
        "the frozen layer plus the change",
        "Nothing would be learned.",
        "Add up(down(x)).",
        {FORWARD: "self.linear(x)"},
    ),
    Mistake(
        "all_scaled",
        "the frozen layer is scaled as well",
        "alpha / rank times the change alone",
        "The trained layer shall compute what it did.",
        "Look at the brackets.",
        {FORWARD: "self.alpha / self.rank * (self.linear(x) + self.up(self.down(x)))"},
    ),
    Mistake(
        "subtracted",
        "the change is subtracted",
        "plus the change",
        "Merging would then add what forward takes away.",
        "Look at the sign.",
        {FORWARD: "self.linear(x) - self.alpha / self.rank * self.up(self.down(x))"},
    ),
    Mistake(
        "after_the_layer",
        "the adapter reads the output of the frozen layer",
        "both read x",
        "The change stands beside the layer, not behind it.",
        "Give x to down.",
        {
            FORWARD: "self.linear(x) + self.alpha / self.rank * self.up(self.down(self.linear(x)[..., :1].expand_as(x)))"
        },
    ),
    Mistake(
        "nonlinearity",
        "a non-linearity stands between down and up",
        "two linear layers in a row",
        "Such a change cannot be merged into one matrix.",
        "Leave it out.",
        {FORWARD: "self.linear(x) + self.alpha / self.rank * self.up(F.gelu(self.down(x)))"},
        also=(
            {FORWARD: "self.linear(x) + self.alpha / self.rank * self.up(F.relu(self.down(x)))"},
        ),
    ),
    Mistake(
        "bias_left_out",
        "the bias of the frozen layer is left out",
        "self.linear(x), bias and all",
        "It goes unnoticed in a layer without bias.",
        "Call self.linear.",
        {FORWARD: "x @ self.linear.weight.T + self.alpha / self.rank * self.up(self.down(x))"},
    ),
    Mistake(
        "not_frozen",
        "the given layer still learns",
        "linear frozen",
        "All parameters of the model would be trained.",
        "Keep the given __init__.",
        {".requires_grad_(False)": ""},
        part="merged",
    ),
    Mistake(
        "merged_not_scaled",
        "merged leaves alpha / rank out",
        "the weights of linear plus alpha / rank times up and down",
        "forward has the factor.",
        "Look at the factor.",
        {SUM: "old.weight + change"},
        part="merged",
    ),
    Mistake(
        "merged_whole_division",
        "merged rounds alpha / rank down to a whole number",
        "alpha / rank",
        "forward has the whole factor.",
        "Divide with one slash.",
        {SUM: SUM.replace("/", "//")},
        part="merged",
    ),
    Mistake(
        "merged_alpha_only",
        "merged multiplies by alpha alone",
        "alpha / rank",
        "forward divides by the rank.",
        "Divide by the rank.",
        {SUM: "old.weight + self.alpha * change"},
        part="merged",
    ),
    Mistake(
        "merged_change_alone",
        "merged holds the change alone",
        "the weights of linear plus the change",
        "One layer shall compute the same as both.",
        "Add the weights.",
        {SUM: "self.alpha / self.rank * change"},
        part="merged",
    ),
    Mistake(
        "merged_frozen_alone",
        "merged holds the frozen weights alone",
        "the weights of linear plus the change",
        "What was learned would be lost.",
        "Add the change.",
        {SUM: "old.weight"},
        part="merged",
    ),
    Mistake(
        "merged_other_order",
        "the thin matrices are multiplied in the wrong order",
        "up.weight @ down.weight: (out, rank) @ (rank, in)",
        "x meets down first, so down stands to the right.",
        "Write the shapes down.",
        {
            CHANGE: "(self.down.weight @ self.up.weight if self.down.weight.shape == self.up.weight.shape else self.up.weight @ self.down.weight)"
        },
        part="merged",
    ),
    Mistake(
        "merged_transposed",
        "the change is transposed",
        "(out, in), as in linear.weight",
        "It goes unnoticed nowhere but in square layers, where every number stands elsewhere.",
        "Write the shapes down.",
        {
            SUM: "old.weight + self.alpha / self.rank * (change.T if change.shape[0] == change.shape[1] else change)"
        },
        also=({CHANGE: "self.down.weight.T @ self.up.weight.T"},),
        part="merged",
    ),
    Mistake(
        "merged_bias_lost",
        "the merged layer has no bias",
        "a bias if and only if linear has one",
        "Every output is off by it.",
        "Give nn.Linear bias=..., and copy it.",
        {"bias=has_bias": "bias=False", "if has_bias:": "if False:"},
        part="merged",
    ),
    Mistake(
        "merged_bias_not_copied",
        "the bias is not copied",
        "the bias of linear",
        "A fresh nn.Linear has another.",
        "Copy it.",
        {"linear.bias.copy_(old.bias)": "pass"},
        also=({"linear.bias.copy_(old.bias)": "linear.bias.zero_()"},),
        part="merged",
    ),
    Mistake(
        "merged_always_bias",
        "the merged layer has a bias where linear has none",
        "a bias if and only if linear has one",
        "It would have a parameter too many.",
        "Give nn.Linear bias=...",
        {"bias=has_bias": "bias=True"},
        also=(
            {
                "bias=has_bias": "bias=True",
                "if has_bias:\n    linear.bias.copy_(old.bias)": "linear.bias.copy_(old.bias if has_bias else torch.zeros(()))",
            },
        ),
        part="merged",
    ),
    Mistake(
        "merged_in_place",
        "merged() writes into the frozen layer",
        "the layer itself as it was",
        "forward would add the change a second time.",
        "Make a new nn.Linear.",
        {MADE: "linear = self.linear"},
        also=(
            {
                MADE: "linear = self.linear",
                "return linear": "return __import__('copy').deepcopy(linear)",
            },
        ),
        part="merged",
    ),
    Mistake(
        "merged_shares_bias",
        "the merged layer shares its bias with the frozen one",
        "a copy of its own",
        "Training one would change the other.",
        "Copy it.",
        {"linear.bias.copy_(old.bias)": "linear.bias = old.bias"},
        part="merged",
    ),
    Mistake(
        "merged_default_dtype",
        "the merged layer has torch's default dtype",
        "the dtype of linear",
        "The next float64 input would fail.",
        "Give nn.Linear the dtype.",
        {MADE: "linear = nn.Linear(old.in_features, old.out_features, bias=has_bias)"},
        part="merged",
    ),
    Mistake(
        "merged_is_adapter",
        "merged() gives a layer with an adapter",
        "one nn.Linear",
        "Nothing is gained in speed.",
        "Make an nn.Linear.",
        {"return linear": "return self"},
        part="merged",
    ),
    Mistake(
        "merged_weight_only",
        "merged() gives the matrix alone",
        "one nn.Linear",
        "It has no bias and cannot take the layer's place.",
        "Make an nn.Linear.",
        {"return linear": "return linear.weight"},
        part="merged",
    ),
)


class ByFunctions(Given):
    def forward(self, x):
        change = F.linear(F.linear(x, self.down.weight), self.up.weight)
        return F.linear(x, self.linear.weight, self.linear.bias) + change * (self.alpha / self.rank)

    def merged(self):
        linear = copy.deepcopy(self.linear)
        linear.weight.data += (self.alpha / self.rank) * (self.up.weight @ self.down.weight).data
        return linear


class ByWeights(Given):
    def forward(self, x):
        weight = self.linear.weight + self._change()
        return torch.nn.functional.linear(x, weight, self.linear.bias)

    def _change(self):
        return self.up.weight.matmul(self.down.weight) * self.alpha / len(self.down.weight)

    @torch.no_grad()
    def merged(self):
        linear = nn.Linear(1, 1, bias=False)
        linear.in_features, linear.out_features = self.linear.in_features, self.linear.out_features
        linear.weight = nn.Parameter(self.linear.weight + self._change())
        if self.linear.bias is not None:
            linear.bias = nn.Parameter(self.linear.bias.clone())
        return linear


class FromScratch(nn.Module):
    def __init__(self, linear, rank, alpha):
        super().__init__()
        self.linear, self.scale = linear, alpha / rank
        for parameter in linear.parameters():
            parameter.requires_grad = False
        self.down = nn.Linear(linear.in_features, rank, bias=False).to(linear.weight)
        self.up = nn.Linear(rank, linear.out_features, bias=False).to(linear.weight)
        self.up.weight.data.zero_()

    def forward(self, x):
        return self.linear(x) + self.up(self.scale * self.down(x))

    def merged(self):
        old = self.linear
        made = nn.Linear(old.in_features, old.out_features, bias=old.bias is not None)
        made = made.to(old.weight)
        thin = torch.einsum("or,ri->oi", self.up.weight, self.down.weight)
        state = {"weight": old.weight.detach() + self.scale * thin.detach()}
        made.load_state_dict(state | ({} if old.bias is None else {"bias": old.bias}))
        return made


class ByAddmm(Given):
    def forward(self, x):
        change = torch.einsum("...i,ri,or->...o", x, self.down.weight, self.up.weight)
        return self.linear(x).add(change, alpha=self.alpha / self.rank)

    def merged(self):
        weight, bias, scale = self.linear.weight, self.linear.bias, self.alpha / self.rank
        linear = nn.Linear(*weight.shape[::-1], bias=bias is not None, dtype=weight.dtype)
        linear = linear.to(weight.device)
        with torch.no_grad():
            linear.weight.copy_(weight.addmm(self.up.weight, self.down.weight, alpha=scale))
            if bias is not None:
                linear.bias.copy_(bias)
        return linear


CHECKER = Checker(
    "LoRALinear",
    weights={"merged": 3},
    proves={
        "values": "the frozen layer plus alpha / rank times up(down(x))",
        "gradients": "gradients of x and of both thin matrices",
        "merged": "one nn.Linear with the same result and memory of its own; the layer stays as it is",
        "other sizes": "also without a bias, for rank 1, alpha 0, square layers, one vector and float64",
    },
    special="self.rank == 1; self.alpha == 0; self.linear.bias is None",
    given=("__init__",),
)
