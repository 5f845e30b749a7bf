"""The driver of ``convert_torchvision_weights``: tensors under new names."""

from collections.abc import Mapping
from typing import Any

import torch

from vitedu.checks.observing.arguments import recipe
from vitedu.checks.observing.case import Case, Recipe, build_args
from vitedu.checks.observing.drivers import call_answer, driver, find_modified_args
from vitedu.checks.observing.observation import Observation, store_output, type_name


@recipe
class StateDict(Recipe):
    """A dict of tensors by name, like a model's state dict."""

    def __init__(self, **tensors: torch.Tensor):
        self.tensors = tensors

    def plain(self) -> dict[str, Any]:
        """Return the tensors."""
        return dict(self.tensors)

    def build(self) -> dict[str, torch.Tensor]:
        """Build the dict."""
        return {name: tensor.clone() for name, tensor in self.tensors.items()}

    def is_modified(self, state_dict: dict[str, torch.Tensor]) -> bool:
        """Tell whether a name or a value changed."""
        return list(state_dict) != list(self.tensors) or not all(
            map(torch.equal, state_dict.values(), self.tensors.values())
        )


_MAX_NAMES = 350  # names; a right answer to a case has fewer, and no reply carries many more


@driver
def renaming(answer: Any, case: Case, seen: Observation) -> None:
    """Call a function that renames the tensors of a dict; store each under its new name."""
    args = build_args(case)
    result = call_answer(answer, case, args)
    seen.modified = find_modified_args(case, args)
    kind = "dict" if isinstance(result, Mapping) else type_name(result)
    if kind == "dict" and len(result) > _MAX_NAMES:
        kind = f"dict of {len(result):,} names"
    seen.types["what comes back"] = kind
    if kind != "dict":
        return
    for name, tensor in result.items():
        store_output(seen, str(name), tensor)
    names = ", ".join(sorted(map(str, result)))
    seen.facts["no name that the course's model does not have"] = f": {names}"
