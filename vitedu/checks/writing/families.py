"""Mistakes that every exercise of a kind can show.

Role: ``general_mistakes`` lists them. Their words are families of ``families.toml``. Two of them
show in the results and are made by wrapping the reference; the others are recognised from facts
(``diagnose``). ``tests/proof/general.py`` makes all of them.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch import nn
from torch.utils._pytree import tree_map_only

from vitedu.checks.writing.mistake_files import family
from vitedu.checks.writing.mistakes import Mistake

# kernels that compute attention in one call
FUSED_NAMES = frozenset(
    """
    scaled_dot_product_attention _scaled_dot_product_attention_math
    aten.scaled_dot_product_attention aten._scaled_dot_product_attention_math
    aten._scaled_dot_product_attention_math_for_mps aten._scaled_dot_product_flash_attention
    aten._scaled_dot_product_flash_attention_for_cpu aten._scaled_dot_product_efficient_attention
    aten._scaled_dot_product_cudnn_attention aten._scaled_dot_product_fused_attention_overrideable
    aten._flash_attention_forward aten._efficient_attention_forward aten._cudnn_attention_forward
    multi_head_attention_forward aten._native_multi_head_attention
    aten._transformer_encoder_layer_fwd
    """.split()
)


# families that are recognised from facts
_FROM_FACTS = """
    no_error wrong_error error_without_numbers modifies_input detached own_device cached_by_shape
    buffer_overwritten gradients_left_off dtype_left seeded
""".split()


def general_mistakes(reference: Any) -> list[Mistake]:
    """List the general mistakes, made of the reference where they show in its results."""
    made: dict[str, Any] = {"squeezed": torch.squeeze, "single_precision": to_float32}
    return [family(name) for name in _FROM_FACTS] + [
        replace(family(name), build=partial(change_results, reference, change))
        for name, change in made.items()
    ]


def wrap_call(reference: Any, run: Callable) -> Any:
    """Return the reference, a function or a module class, with ``run(call, ...)`` for its call."""
    if isinstance(reference, type) and issubclass(reference, nn.Module):

        class Changed(reference):
            def forward(self, *args, **kwargs):
                return run(super().forward, *args, **kwargs)

        return Changed
    return partial(run, reference)


def change_results(reference: Any, change: Callable) -> Any:
    """Return the reference, a function or a module class, with every tensor of a result changed."""
    return wrap_call(
        reference,
        lambda call, *args, **named: tree_map_only(torch.Tensor, change, call(*args, **named)),
    )


def to_float32(x: torch.Tensor) -> torch.Tensor:
    """Round what is a float."""
    return x.float() if x.is_floating_point() else x
