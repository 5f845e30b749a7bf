"""The driver of ``weight_decay_groups``: which parameters are in which group.

Imports the standard library and torch only, for the grader's worker.
"""

from vitedu.checks.case import Case, build_args
from vitedu.checks.drivers import apply, changed_args, driver
from vitedu.checks.observation import Observation
from vitedu.checks.parameter_groups import ONCE, not_once, read_groups, values_by_parameter


@driver
def groups(answer, case: Case, seen: Observation) -> None:
    """Call a function that sorts a model's parameters into groups; write down which are where."""
    args = build_args(case)
    names = {id(parameter): name for name, parameter in args["model"].named_parameters()}
    result = apply(answer, case, args)
    seen.modified = changed_args(case, args)
    found, trouble = read_groups(result, "weight_decay")
    seen.types["result"] = trouble or "groups: dicts with params and weight_decay"
    if trouble:
        return
    seen.facts["two groups"] = f"{len(found)} group(s)"
    seen.facts[ONCE] = not_once(names, found)
    given = f"{case.args['weight_decay']:.6g}"
    fact = f"weight_decay {given} for matrices and kernels, 0 for all others"
    seen.facts[fact] = values_by_parameter(names, found)
