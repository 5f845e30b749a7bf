"""The drivers of random functions: known states of a generator, and batch after batch with one."""

from typing import Any

import torch

from vitedu.checks.observing.arguments import recipe
from vitedu.checks.observing.case import Case, Recipe, build_args
from vitedu.checks.observing.drivers import call_answer, driver, find_modified_args
from vitedu.checks.observing.observation import Observation, store_output
from vitedu.checks.observing.settings import seed_everything

GRADIENT_FLOW = "gradients pass where a sample stays"


@recipe
class CpuGenerator(Recipe):
    """A generator on the CPU in a known state."""

    def __init__(self, seed: int):
        self.seed = seed

    def build(self) -> torch.Generator:
        """Build the generator."""
        return torch.Generator().manual_seed(self.seed)


@driver
def repeated_draws(answer: Any, case: Case, seen: Observation) -> None:
    """Call a random function several times and store the outputs.

    "first" and "again" use the same generator state with different global states, "other" and
    "third" use other states of the generator. Two, because one draw can come again by chance.
    """
    calls = (("first", 1, 10), ("again", 1, 20), ("other", 2, 10), ("third", 3, 10))
    for name, seed, global_seed in calls:
        seed_everything(global_seed)
        args = build_args(case)
        args["generator"].manual_seed(seed + (case.seed or 0))
        before = args["generator"].get_state()
        store_output(seen, name, call_answer(answer, case, args), is_random=True)
        has_moved = not torch.equal(args["generator"].get_state(), before)
        seen.facts["every call moves the generator on"] = "it moves" if has_moved else "it stays"


@driver
def random_batches(answer: Any, case: Case, seen: Observation) -> None:
    """Call a random function on one batch after another with the same generator; store all outputs.

    ``sizes`` splits the first argument into batches: one size, or a list of them.
    """
    args, outputs = build_args(case), list[torch.Tensor]()
    name = next(iter(args))
    for x in args[name].split(case.sizes):
        result = call_answer(answer, case, {**args, name: x})
        store_output(seen, f"output for {len(x)}", result, is_random=True)
        if not isinstance(result, torch.Tensor) or result.shape != x.shape:
            seen.types["all outputs"] = "tensor"  # the type and shape of this one are told first
            break
        outputs.append(result.detach())
    else:
        store_output(seen, "all outputs", torch.cat(outputs), is_random=True)
    seen.modified = find_modified_args(case, args)


@driver
def dropping(answer: Any, case: Case, seen: Observation) -> None:
    """Do the same with a function that drops samples, and say whether gradients pass."""
    random_batches(answer, case, seen)
    if "all outputs" not in seen.draws:
        return
    torch.set_grad_enabled(True)
    args = build_args(case)
    leaf = args["x"].split(case.sizes)[0].requires_grad_()
    result = call_answer(answer, case, {**args, "x": leaf.clone()})
    torch.set_grad_enabled(True)  # if the call switched it off, the part "again" reports that
    factor = result.detach() / leaf.detach()  # by which each number was multiplied
    if not result.requires_grad:  # a sample that is dropped may be a constant
        words = "no gradient at all" if factor.any() else "they do"
    else:
        (slope,) = torch.autograd.grad(result.sum(), leaf)
        is_same = torch.allclose(slope, factor, rtol=1e-3, atol=1e-5)
        words = "they do" if is_same else "other gradients"
    seen.facts[GRADIENT_FLOW] = words
