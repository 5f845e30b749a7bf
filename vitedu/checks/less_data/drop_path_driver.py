"""The driver of ``drop_path``: samples that are dropped, batch after batch.

Imports the standard library and torch only, for the grader's worker.
"""

import torch

from vitedu.checks.case import Case, build_args
from vitedu.checks.drivers import call_answer, driver
from vitedu.checks.observation import Observation, store_output

GRADIENT_FLOW = "gradients pass where a sample stays"


@driver
def dropping(answer, case: Case, seen: Observation) -> None:
    """Call a function that drops samples, batch after batch with one generator; keep all it gave.

    ``extra["size"]`` is the number of samples in a batch. Results of the first batch tell whether
    gradients pass.
    """
    args = build_args(case)
    outputs: list[torch.Tensor] = []
    for x in args["x"].split(case.extra["size"]):
        leaf = x.clone().requires_grad_(not outputs)
        argument = leaf.clone() if not outputs else leaf
        result = call_answer(answer, case, {**args, "x": argument})
        store_output(seen, f"output of {len(x)} sample(s)", result, is_random=True)
        if not isinstance(result, torch.Tensor) or result.shape != x.shape:
            seen.types["all outputs"] = "tensor"  # the type and shape of this one are told first
            break
        if not outputs:
            seen.facts[GRADIENT_FLOW] = _describe_gradient(leaf, result)
            if not torch.equal(argument.detach(), x):
                seen.modified = ("x",)
        outputs.append(result.detach())
    else:
        store_output(seen, "all outputs", torch.cat(outputs), is_random=True)


def _describe_gradient(leaf: torch.Tensor, result: torch.Tensor) -> str:
    """Say whether the gradient of a result is the factor by which it was multiplied."""
    torch.set_grad_enabled(True)
    factor = result.detach() / leaf.detach()
    if not result.requires_grad:  # a sample that is dropped may be a constant
        return "no gradient at all" if factor.any() else "they do"
    (slope,) = torch.autograd.grad(result.sum(), leaf)
    return "they do" if torch.allclose(slope, factor, rtol=1e-3, atol=1e-5) else "other gradients"
