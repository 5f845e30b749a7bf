"""A model translated by ``torch.compile``, where that can be done.

Role: ``CompiledModel``. Not here: the loop (``loop``). A CPU needs a C++ compiler, CUDA Triton.

Reference: Ansel et al. 2024, "PyTorch 2"
(https://docs.pytorch.org/docs/stable/torch.compiler.html).
"""

from collections.abc import Callable

import torch
from torch import nn


class CompiledModel:
    """Call a model, translated for batches of one size; it keeps its weights and their names.

    The translation holds for one shape. A batch of another size, such as the short last one of an
    epoch, takes the model as it is: a second translation would cost more than it could save.
    Where the first translation fails, training goes on without it.

    Args:
        model: maps a batch to a tensor.
        batch_size: of the batches to translate for.
        note: told in one line if the translation fails.
    """

    def __init__(self, model: nn.Module, batch_size: int, note: Callable[[str], None]):
        self.model, self.batch_size, self.note = model, batch_size, note
        self.compiled: Callable | None = torch.compile(model, dynamic=False)

    def __call__(self, images: torch.Tensor) -> torch.Tensor:
        """Map a batch (B, ...) as the model does."""
        if self.compiled is None or len(images) != self.batch_size:
            return self.model(images)
        random_state = torch.get_rng_state()
        try:
            return self.compiled(images)
        except Exception as error:  # any of many; a mistake of the model shows again below
            lines = str(error).splitlines() or [""]
            self.note(f"without torch.compile: {type(error).__name__}: {lines[0]}")
            self.compiled = None
            torch.set_rng_state(random_state)  # dropout draws as if nobody had tried
            return self.model(images)
