"""The driver of ``convert_torchvision_weights``: tensors under new names."""

from collections.abc import Mapping
from typing import Any

from vitedu.checks.observing.case import Case, build_args
from vitedu.checks.observing.drivers import call_answer, driver, find_modified_args
from vitedu.checks.observing.observation import Observation, store_output, type_name

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
