"""The driver of ``LoRALinear``: a layer with an adapter, merged."""

from typing import Any

import torch
from torch import nn

from vitedu.checks.observing.case import Case
from vitedu.checks.observing.drivers import call_answer, construct, driver
from vitedu.checks.observing.observation import Observation, store_output
from vitedu.checks.patches.linear_from_conv_driver import STORAGE, store_linear


@driver
def merging(answer: Any, case: Case, seen: Observation) -> None:
    """Build a layer with an adapter, merge it; store the result and what became of the layer.

    Then its thin matrices change, and it is merged once more.
    """
    layer: Any = construct(answer, case, seen)
    if layer is None:
        return
    frozen = [n for n, value in nn.Module.named_parameters(layer) if not value.requires_grad]
    seen.facts["what is frozen: linear, and nothing else"] = f": {', '.join(sorted(frozen))}"
    before = {name: value.clone() for name, value in nn.Module.state_dict(layer).items()}
    parameters = [*nn.Module.parameters(layer)]  # a layer that gives its own away takes others
    result = call_answer(layer.merged, case, {})
    parameters += nn.Module.parameters(layer)
    if not store_linear(result, seen, "linear", [*map(STORAGE, parameters)]):
        return
    after = nn.Module.state_dict(layer)
    stays = all(torch.equal(x, before[name]) for name, x in after.items() if name in before)
    words = "as before" if stays else "changed by merged()"
    words = words if after.keys() == before.keys() else "other parts than before"
    seen.facts["the layer itself as it was"] = words
    with torch.no_grad():  # as training does
        for name, value in nn.Module.named_parameters(layer):
            value.mul_({"down.weight": 0.5, "up.weight": -1.5}.get(name, 1.0))
    again = call_answer(layer.merged, case, {})
    if isinstance(again, nn.Linear):
        store_output(seen, "weight after more training", again.weight)
