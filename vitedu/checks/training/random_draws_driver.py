"""The drivers of random functions: known states of a generator, and batch after batch with one."""

import torch

from vitedu.checks.observing.case import Case, build_args
from vitedu.checks.observing.drivers import call_answer, driver, find_modified_args
from vitedu.checks.observing.observation import Observation, store_output
from vitedu.checks.observing.settings import seed_everything

GRADIENT_FLOW = "gradients pass where a sample stays"


@driver
def repeated_draws(answer, case: Case, seen: Observation) -> None:
    """Call a random function several times and store the outputs.

    "first" and "again" use the same generator state with different global states, "other" and
    "third" use other states of the generator. Two, because one draw can come again by chance.
    """
    calls = (("first", 1, 10), ("again", 1, 20), ("other", 2, 10), ("third", 3, 10))
    for name, seed, global_seed in calls:
        seed_everything(global_seed)
        args = build_args(case)
        args["generator"].manual_seed(seed + case.extra["seed"])
        before = args["generator"].get_state()
        store_output(seen, name, call_answer(answer, case, args), is_random=True)
        has_moved = not torch.equal(args["generator"].get_state(), before)
        seen.facts["every call moves the generator on"] = "it moves" if has_moved else "it stays"


@driver
def random_images(answer, case: Case, seen: Observation) -> None:
    """Call a random function on one batch after another with the same generator; store all outputs.

    ``extra["sizes"]`` splits the case's images into batches.
    """
    args = build_args(case)
    outputs = []
    for images in args["images"].split(list(case.extra["sizes"])):
        result = call_answer(answer, case, {**args, "images": images})
        name = f"output of {len(images)} image(s)"
        store_output(seen, name, result, is_random=True)
        if name not in seen.draws or seen.draws[name].shape != images.shape:
            break
        outputs.append(result.detach())
    else:
        store_output(seen, "all outputs", torch.cat(outputs), is_random=True)
    seen.modified = find_modified_args(case, args)


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
