"""The syllabus as plain data: every exercise with its notebook, points, minutes and hints.

Loads without torch, so that listing and progress are instant. Not here: references (in the module
of the notebook), checkers (``vitedu.checks``), stubs (in the notebooks).
"""

import difflib
from dataclasses import dataclass


@dataclass(frozen=True)
class Exercise:
    """One thing a student writes or answers."""

    id: str  # the name of the function, class or value
    notebook: str  # stem of its notebook, such as "01_patches"
    number: str  # as the notebook counts: "1.1"
    title: str  # what it is, in a few words
    kind: str  # "function", "class" or "value"
    points: int
    minutes: int  # what a student may expect to need
    hints: tuple[str, ...] = ()  # three: a nudge, the idea, nearly the code

    @property
    def module(self) -> str:
        """The module that holds the reference."""
        stem = self.notebook.split("_", 1)[1]
        return "vitedu.vit" if self.id == "VisionTransformer" else f"vitedu.{stem}"

    @property
    def chapter(self) -> str:
        """The word that names notebook, module, checks and tests: "patches"."""
        return self.notebook.split("_", 1)[1]


EXERCISES: tuple[Exercise, ...] = (
    # --- 01_patches -------------------------------------------------------------------------
    Exercise("patchify", "01_patches", "1.1", "cut an image into patches", "function", 6, 15),
    Exercise("unpatchify", "01_patches", "1.2", "put it back together", "function", 4, 10),
    Exercise(
        "linear_from_conv", "01_patches", "1.3", "a convolution that is a matrix", "function", 4, 10
    ),
    Exercise("tokens_at_224", "01_patches", "1.4", "how long is the sequence?", "value", 1, 2),
    Exercise(
        "add_class_token_and_positions",
        "01_patches",
        "1.5",
        "one more token, and where each stands",
        "function",
        4,
        10,
    ),
    Exercise(
        "sincos_positions", "01_patches", "1.6", "positions as sines and cosines", "function", 4, 15
    ),
    Exercise("sincos_positions_2d", "01_patches", "1.7", "rows and columns", "function", 4, 10),
    # --- 02_attention -----------------------------------------------------------------------
    Exercise("softmax", "02_attention", "2.1", "scores into weights", "function", 4, 10),
    Exercise(
        "scaled_dot_product_attention",
        "02_attention",
        "2.2",
        "each query collects values",
        "function",
        6,
        15,
    ),
    Exercise(
        "split_heads", "02_attention", "2.3", "a slice of columns for each head", "function", 4, 8
    ),
    Exercise(
        "merge_heads", "02_attention", "2.4", "the slices side by side again", "function", 3, 5
    ),
    Exercise("MultiHeadAttention", "02_attention", "2.5", "the whole layer", "class", 6, 15),
    Exercise("attention_macs", "02_attention", "2.6", "what it costs", "function", 3, 8),
    Exercise("order_blindness", "02_attention", "2.7", "what attention can not see", "value", 2, 5),
    # --- 03_encoder -------------------------------------------------------------------------
    Exercise("layer_norm", "03_encoder", "3.1", "normalise each token", "function", 4, 10),
    Exercise("gelu", "03_encoder", "3.2", "a soft gate", "function", 3, 5),
    Exercise("EncoderBlock", "03_encoder", "3.3", "two residual steps", "class", 6, 15),
    Exercise("VisionTransformer", "03_encoder", "3.4", "from pixels to logits", "class", 6, 15),
    Exercise(
        "count_parameters", "03_encoder", "3.5", "where the parameters are", "function", 4, 15
    ),
    # --- 04_training ------------------------------------------------------------------------
    Exercise(
        "cross_entropy", "04_training", "4.1", "the price of a wrong belief", "function", 5, 12
    ),
    Exercise(
        "warmup_cosine", "04_training", "4.2", "the learning rate of every step", "function", 5, 12
    ),
    Exercise(
        "weight_decay_groups",
        "04_training",
        "4.3",
        "what to shrink and what not",
        "function",
        4,
        10,
    ),
    Exercise(
        "random_crop_flip", "04_training", "4.4", "a new view of every image", "function", 6, 20
    ),
    Exercise(
        "train_one_epoch", "04_training", "4.5", "learn from every batch once", "function", 6, 15
    ),
    Exercise("evaluate", "04_training", "4.6", "measure without touching", "function", 4, 8),
)

BY_ID: dict[str, Exercise] = {exercise.id: exercise for exercise in EXERCISES}


def find(exercise_id: str) -> Exercise:
    """Look an exercise up by its id.

    Raises:
        ValueError: no such exercise; the message names the nearest ones.

    Example:
        >>> find("patchify").number
        '1.1'
    """
    if exercise_id in BY_ID:
        return BY_ID[exercise_id]
    folded = {known.casefold(): known for known in BY_ID}
    near = difflib.get_close_matches(str(exercise_id).casefold(), folded, n=3, cutoff=0.5)
    names = ", ".join(folded[name] for name in near)
    advice = f"did you mean {names}?" if near else "`vitedu list` shows them all."
    raise ValueError(f"there is no exercise {exercise_id!r}; {advice}")


def in_notebook(notebook: str) -> list[Exercise]:
    """Give the exercises of one notebook, in its order."""
    return [exercise for exercise in EXERCISES if exercise.notebook == notebook]
