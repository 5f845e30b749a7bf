"""The driver of ``convert_torchvision_weights``: tensors under new names.

Imports the standard library and torch only, for the grader's worker.
"""

from collections.abc import Mapping

from vitedu.checks.case import Case, build_args
from vitedu.checks.drivers import apply, changed_args, driver
from vitedu.checks.observation import Observation, keep, type_name

_MANY = 350  # names; a right answer to a case has fewer, and no reply carries many more


@driver
def renamed(answer, case: Case, seen: Observation) -> None:
    """Call a function that renames the tensors of a dict; store each under its new name."""
    args = build_args(case)
    result = apply(answer, case, args)
    seen.modified = changed_args(case, args)
    kind = "dict" if isinstance(result, Mapping) else type_name(result)
    if kind == "dict" and len(result) > _MANY:
        kind = f"dict of {len(result):,} names"
    seen.types["what comes back"] = kind
    if kind != "dict":
        return
    for name, tensor in result.items():
        keep(seen, str(name), tensor)
    names = ", ".join(sorted(map(str, result)))
    seen.facts["no name that the course's model does not have"] = f": {names}"
