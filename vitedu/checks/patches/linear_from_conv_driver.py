"""The driver of ``linear_from_conv``: a function that turns one layer into another.

Imports the standard library and torch only, for the grader's worker.
"""

import torch
from torch import nn

from vitedu.checks.arguments import ModuleRecipe, recipe
from vitedu.checks.case import Case, build_args
from vitedu.checks.drivers import call_answer, driver, find_modified_args
from vitedu.checks.observation import Observation, store_output, type_name


@recipe
class Conv(ModuleRecipe):
    """A patch-embedding convolution with the given weight (D, C, P, P) and bias (D,)."""

    def __init__(self, weight: torch.Tensor, bias: torch.Tensor | None):
        self.weight, self.bias = weight, bias

    def build(self) -> nn.Conv2d:
        """Build the layer."""
        D, C, P, _ = self.weight.shape
        conv = nn.Conv2d(C, D, P, stride=P, bias=self.bias is not None, dtype=self.weight.dtype)
        with torch.no_grad():
            conv.weight.copy_(self.weight)
            if conv.bias is not None and self.bias is not None:
                conv.bias.copy_(self.bias)
        return conv


@driver
def layer_from_layer(answer, case: Case, seen: Observation) -> None:
    """Call a function that turns one layer into an ``nn.Linear``.

    Writes down its parameters and whether they share memory with the given layer.
    """
    args = build_args(case)
    result = call_answer(answer, case, args)
    is_linear = type(result) is nn.Linear  # a subclass may show another weight than it has
    seen.types["result"] = "nn.Linear" if is_linear else type_name(result)
    seen.modified = find_modified_args(case, args)
    if not is_linear:
        return
    store_output(seen, "weight", result.weight)
    seen.facts["a bias if and only if conv has one"] = (
        "with a bias" if result.bias is not None else "without a bias"
    )
    if result.bias is not None:
        store_output(seen, "bias", result.bias)
    learns = [name for name, value in nn.Module.named_parameters(result) if value.requires_grad]
    wanted = ["weight", "bias"] if result.bias is not None else ["weight"]
    missing = [name for name in wanted if name not in learns]
    seen.facts["weight and bias are parameters that learn"] = (
        f"{' and '.join(missing)} cannot learn" if missing else "they are"
    )
    (source,) = args.values()
    before = [value.detach().clone() for value in (result.weight, result.bias) if value is not None]
    with torch.no_grad():
        for value in source.parameters():
            value.add_(1.0)
    after = [value for value in (result.weight, result.bias) if value is not None]
    own = all(torch.equal(old, new) for old, new in zip(before, after, strict=True))
    seen.facts["a copy of its own"] = "its own" if own else "memory shared with conv"
