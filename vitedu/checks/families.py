"""Mistakes that several exercises share, with their words.

Role: ``general_mistakes`` lists those that every exercise of a kind can show; they wrap the
reference. The constants are families: an exercise takes one with ``.by({...})`` and gives the edits
that make it there. Shared explanations of survivors are here as well.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch import nn
from torch.utils._pytree import tree_leaves, tree_map

from vitedu.checks.mistakes import Mistake
from vitedu.checks.probing import Case, tensors_in

# --- families -----------------------------------------------------------------------------------

MEAN_OF_MEANS = Mistake(
    "mean_of_means", "a mean of means is taken, not the mean over all", "every item counts the same",
    "An item of a small group would weigh more than one of a large group.", "Add up and count; divide once, at the end.",
)  # fmt: skip
SUM_NOT_MEAN = Mistake(
    "sum_not_mean", "a sum is returned where a mean is asked for", "a mean", "A sum grows with the number of items.",
    "Divide by the number of items.",
)  # fmt: skip
NOT_DETACHED = Mistake(
    "not_detached", "a gradient reaches what must stay fixed", "no gradient there",
    "Training would move the target towards the answer instead of the answer towards the target.",
    "Call detach() on it, or compute it under torch.no_grad().", part="gradients",
)  # fmt: skip
CACHED_BY_SHAPE = Mistake(
    "cached_by_shape", "a result of an earlier call comes back", "a result of this call's inputs",
    "Inputs of one shape need not be the same inputs.", "Look for a cache whose key leaves out the values.",
    part="again",
)  # fmt: skip
FIRST_OF_BATCH = Mistake(
    "first_of_batch", "the whole batch gets what belongs to its first item", "each item of the batch by itself",
    "It goes unnoticed with a batch of one.", "Look for an index 0 where the whole batch belongs.",
)  # fmt: skip

# --- explanations of survivors --------------------------------------------------------------------

SAME_AXIS = "the same axis, counted from the other end or named in the other order"
SIDE_BY_SIDE = "two axes that stay side by side to the end may be split in either order"
NEW_AXIS = "broadcasting adds the axis in front by itself"
UNUSED_SIZES = "sizes that are bound and not used"
DEFAULT = "what is left out is the default"
NEGATIVE_DIVISOR = "a remainder by -n is 0 where one by n is"
SAME_ZERO = "0 and 0.0 are added to alike"
AS_MANY_LABELS = "a batch has as many labels as images"
TENSOR_AS_NUMBER = "exercises.md takes 0-d tensors as numbers"

# --- mistakes that every exercise of a kind can show ----------------------------------------------


def general_mistakes(reference: Any, cases: list[Case]) -> list[Mistake]:
    """List the general mistakes that these cases can show."""
    main = [case for case in cases if case.part == "values"]
    mistakes = []
    if any(case.raises for case in cases):
        numbers = any(case.mentions for case in cases)
        mistakes += [
            Mistake(
                "no_error", "an impossible size is accepted", "a ValueError", part="errors",
                why="Wrong results that look fine cost more than an error.",
                look="Test the sizes first and raise a ValueError.",
                build=lambda: _never_raises(reference),
            ),
            Mistake(
                "wrong_error", "an impossible size ends in an error of another kind", "a ValueError", part="errors",
                why="Neither an assert nor the error of a later line says what the caller did.",
                look="Test the sizes first and raise a ValueError that says so.",
                build=lambda: _raises(reference, lambda text: RuntimeError("shape is invalid")),
            ),
        ]  # fmt: skip
        if numbers:
            mistakes.append(
                Mistake(
                    "error_without_numbers", "the error does not name the numbers", "both numbers in the message",
                    part="errors", why="Whoever reads it wants to know which size met which.",
                    look='Use an f-string: f"... (got {height}, {patch_size})".',
                    build=lambda: _raises(reference, lambda text: ValueError("bad size")),
                )
            )  # fmt: skip
    tensors = [name for case in main for name, value in case.args.items() if _is_float(value)]
    if tensors and main[0].driver in ("call", "module"):
        mistakes.append(
            Mistake(
                "modifies_input", "an input is modified in place", "inputs left as they were", part="unchanged",
                why="Whoever called still needs the tensor; in training it may belong to the graph.",
                look="Look for what writes into it: x += ..., x[...] = ..., a method that ends in an underscore.",
                build=lambda: wrap(reference, before=_spoil_after(reference)),
            )
        )  # fmt: skip
    if any(case.gradients for case in main):
        mistakes.append(
            Mistake(
                "detached", "a result carries no gradient", "results attached to the graph", part="gradients",
                why="What is cut off here cannot be trained.",
                look="Look for .detach(), .data, .item(), no_grad or NumPy.",
                build=lambda: wrap(reference, after=lambda x: x.detach() if isinstance(x, torch.Tensor) else x),
            )
        )  # fmt: skip
    # cases that return a plain number do not count: it has no dtype
    arrays = [value for case in cases if not case.number for value in case.args.values()]
    if any(_is_float(value, torch.float64) for value in arrays):
        mistakes.append(
            Mistake(
                "single_precision", "float64 goes in, float32 comes out", "the dtype of the input",
                why="A function that changes the dtype breaks the next one that mixes the two.",
                look="Look for .float() and for tensors made without dtype=x.dtype.",
                build=lambda: wrap(reference, after=lambda x: x.float() if isinstance(x, torch.Tensor) and x.is_floating_point() else x),
            )
        )  # fmt: skip
    if any(case.on_accelerator for case in cases):
        mistakes.append(
            Mistake(
                "own_device", "a tensor is made on the CPU, wherever the inputs are", "one device", part="any device",
                why="On a GPU the two cannot meet.",
                look="Make new tensors with device=x.device, or from an input: x.new_zeros(...).",
                build=lambda: wrap(reference, after=lambda x: x.cpu() if isinstance(x, torch.Tensor) else x),
            )
        )  # fmt: skip
    return mistakes + _traces(reference, cases)


def _traces(reference: Any, cases: list[Case]) -> list[Mistake]:
    """List the mistakes that show only in a second call, or in what the call leaves behind."""
    again = [case for case in cases if case.part == "again"]
    kinds = {case.extra["driver"] for case in again}
    mistakes = []
    if kinds & {"call", "module"} and any(_is_float(x) for x in again[0].args.values()):
        mistakes.append(replace(CACHED_BY_SHAPE, build=lambda: remembering(reference)))
        if not again[0].number:
            mistakes.append(
                Mistake(
                    "buffer_overwritten", "a later call overwrites an earlier result", "earlier results stay as they were",
                    part="again", why="Whoever called first still holds that tensor, and its numbers change unseen.",
                    look="Make a new tensor in every call.", build=lambda: overwriting(reference),
                )
            )  # fmt: skip
    if kinds & {"call", "module", "layer_from_layer"}:
        mistakes += [
            Mistake(
                "gradients_left_off", "the call leaves gradients switched off", "everything is left as it was",
                part="again", why="Nothing that is computed afterwards can be trained.",
                look="Use `with torch.no_grad():`, which puts back what it found.",
                build=lambda: leaving(reference, lambda: torch.set_grad_enabled(False)),
            ),
            Mistake(
                "dtype_left", "the call leaves another default dtype behind", "everything is left as it was",
                part="again", why="Every tensor that is made afterwards has that dtype.",
                look="Give dtype=... where the tensor is made.",
                build=lambda: leaving(reference, lambda: torch.set_default_dtype(torch.float64)),
            ),
        ]  # fmt: skip
    return mistakes


def _around(reference: Any, change: Callable) -> Any:
    """Return the reference, a function or a module class, with its call wrapped by ``change``."""
    if isinstance(reference, type) and issubclass(reference, nn.Module):

        class Changed(reference):
            def forward(self, *args, **kwargs):
                return change(super().forward)(*args, **kwargs)

        return Changed
    return change(reference)


def remembering(reference: Any) -> Any:
    """Return the reference with a cache whose key is shapes, dtypes, devices and gradient flags."""
    kept: dict = {}

    def change(call):
        def run(*args, **kwargs):
            key = (
                torch.is_grad_enabled(),
                *(
                    (tuple(x.shape), x.dtype, x.device, x.requires_grad)
                    if isinstance(x, torch.Tensor)
                    else repr(x)
                    for x in tree_leaves((args, kwargs))
                ),
            )
            if key not in kept:
                kept[key] = call(*args, **kwargs)
            return kept[key]

        return run

    return _around(reference, change)


def overwriting(reference: Any) -> Any:
    """Return the reference with all CPU results of one shape and dtype sharing one buffer."""
    buffers: dict = {}

    def change(call):
        def run(*args, **kwargs):
            result = call(*args, **kwargs)
            results = result if isinstance(result, tuple) else (result,)
            out = []
            for i, x in enumerate(results):
                if isinstance(x, torch.Tensor) and x.device.type == "cpu":
                    buffer = buffers.setdefault((i, tuple(x.shape), x.dtype), torch.empty_like(x))
                    buffer.data.copy_(x.detach())
                    x = x + (buffer - x).detach() if x.requires_grad else buffer
                    x.data = buffer.data
                out.append(x)
            return tuple(out) if isinstance(result, tuple) else out[0]

        return run

    return _around(reference, change)


def leaving(reference: Any, leave: Callable) -> Any:
    """Return the reference with ``leave`` called after each call, to change a setting."""

    def change(call):
        def run(*args, **kwargs):
            result = call(*args, **kwargs)
            leave()
            return result

        return run

    return _around(reference, change)


def _is_float(value: Any, dtype: torch.dtype | None = None) -> bool:
    return any(
        x.is_floating_point() and (dtype is None or x.dtype == dtype)
        for _, x in tensors_in("", value)
    )


def _never_raises(reference):
    def careless(*args, **kwargs):
        try:
            return reference(*args, **kwargs)
        except ValueError:
            return torch.zeros(1)

    return careless


def _raises(reference, error):
    def complains(*args, **kwargs):
        try:
            return reference(*args, **kwargs)
        except ValueError as original:
            raise error(str(original)) from None

    return complains


def _spoil_after(reference):
    """Return a ``before`` hook that passes on a copy and edits the original in place."""

    def hook(x):
        copy = x.clone()
        if x.is_floating_point() and not (x.is_leaf and x.requires_grad):
            x.mul_(1.5).add_(0.25)
        return copy

    return hook


def wrap(reference: Any, after: Callable | None = None, before: Callable | None = None) -> Any:
    """Return the reference, a function or a module class, with its tensors changed.

    ``before`` is applied to every input tensor, ``after`` to every output.
    """

    def tampered(call):
        def run(*args, **kwargs):
            if before:
                args = tree_map(lambda x: before(x) if isinstance(x, torch.Tensor) else x, args)
            result = call(*args, **kwargs)
            if not after:
                return result
            if isinstance(result, tuple):
                return tuple(after(x) for x in result)
            return after(result)

        return run

    if isinstance(reference, type) and issubclass(reference, nn.Module):

        class Tampered(reference):
            def forward(self, *args, **kwargs):
                return tampered(super().forward)(*args, **kwargs)

        return Tampered
    return tampered(reference)
