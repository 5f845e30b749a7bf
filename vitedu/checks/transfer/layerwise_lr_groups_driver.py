"""The driver of ``layerwise_lr_groups``: the learning rate of each parameter.

Imports the standard library and torch only, for the grader's worker.
"""

from vitedu.checks.case import Case, build_args
from vitedu.checks.drivers import apply, changed_args, driver
from vitedu.checks.observation import Observation
from vitedu.checks.parameter_groups import ONCE, not_once, read_groups, values_by_parameter


@driver
def rates(answer, case: Case, seen: Observation) -> None:
    """Call a function that groups a model's parameters; write down each learning rate."""
    args = build_args(case)
    names = {id(parameter): name for name, parameter in args["model"].named_parameters()}
    result = apply(answer, case, args)
    seen.modified = changed_args(case, args)
    found, trouble = read_groups(result, "lr")
    seen.types["result"] = trouble or "groups: dicts with params and lr"
    if not trouble:
        seen.facts[ONCE] = not_once(names, found)
        seen.facts["the learning rate of each parameter"] = values_by_parameter(names, found)
