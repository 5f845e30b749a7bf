"""The driver of ``linear_from_conv``: a function that turns one layer into another.

Imports the standard library and torch only, for the grader's worker.
"""

import torch
from torch import nn

from vitedu.checks.observing.arguments import ModuleRecipe, recipe
from vitedu.checks.observing.case import Case, build_args
from vitedu.checks.observing.drivers import call_answer, driver, find_modified_args
from vitedu.checks.observing.observation import Observation, store_output, type_name


@recipe
class Conv(ModuleRecipe):
    """A patch-embedding convolution with the given weight (D, C, P, P) and bias (D,)."""

    def __init__(self, weight: torch.Tensor, bias: torch.Tensor | None):
        self.weight, self.bias = weight, bias

    def build(self) -> nn.Conv2d:
        """Build the layer."""
        D, C, P, _ = self.weight.shape
        conv = nn.Conv2d(C, D, P, stride=P, bias=self.bias is not None, dtype=self.weight.dtype)
        state = {"weight": self.weight, "bias": self.bias}
        conv.load_state_dict({name: x for name, x in state.items() if x is not None})
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
    values = {"weight": result.weight, "bias": result.bias}
    values = {name: value for name, value in values.items() if value is not None}
    bias = "with a bias" if "bias" in values else "without a bias"
    seen.facts["a bias if and only if conv has one"] = bias
    for name, value in values.items():
        store_output(seen, name, value)
    learns = [name for name, value in nn.Module.named_parameters(result) if value.requires_grad]
    missing = [name for name in values if name not in learns]
    seen.facts["weight and bias are parameters that learn"] = (
        f"{' and '.join(missing)} cannot learn" if missing else "they are"
    )
    (source,) = args.values()
    before = [value.detach().clone() for value in values.values()]
    with torch.no_grad():
        for value in source.parameters():
            value.add_(1.0)
    own = all(map(torch.equal, before, values.values()))
    seen.facts["a copy of its own"] = "its own" if own else "memory shared with conv"
