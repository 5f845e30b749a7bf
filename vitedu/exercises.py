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
    Exercise(
        "softmax",
        "02_attention",
        "2.1",
        "scores into weights",
        "function",
        4,
        10,
        (
            "Two things make a weight: it is positive, and all of them sum to 1. Which function makes "
            "any number positive and keeps the order?",
            "exp(1e4) is infinite. Adding the same constant to every score changes no weight, so choose "
            "a constant that keeps exp small: take the largest score along dim away first.",
            "shifted = x - x.amax(dim=dim, keepdim=True), then exp of that, then divide by its own sum "
            "along the same dim. Without keepdim=True the subtraction pairs the wrong axes.",
        ),
    ),
    Exercise(
        "scaled_dot_product_attention",
        "02_attention",
        "2.2",
        "each query collects values",
        "function",
        6,
        15,
        (
            "Write the three shapes on paper. A score belongs to one query and one key, so the table of "
            "scores is (..., Tq, Tk): which two tensors meet, and which of them must be turned?",
            "scores = q times k transposed in its last two axes, divided by the square root of the key "
            "depth; softmax over the axis of the keys; those weights times v.",
            "k.transpose(-2, -1) works for any number of leading axes, where .T does not. The depth is "
            "k.shape[-1], the keys are the last axis of the scores. Return the pair, output first.",
        ),
    ),
    Exercise(
        "split_heads",
        "02_attention",
        "2.3",
        "a slice of columns for each head",
        "function",
        4,
        8,
        (
            "Do it in two moves: first cut the last axis in two, then bring the axes into the order that "
            "was asked for. Which axis is cut, and which must stay whole?",
            "reshape may cut D into (nh, hd), because neighbours in memory stay neighbours. It may not "
            "move nh in front of T: that is what transpose is for.",
            "x.reshape(B, T, num_heads, D // num_heads) has the heads on axis 2 and the tokens on axis 1; "
            "exchange those two. Test D % num_heads first and name both numbers in the ValueError.",
        ),
    ),
    Exercise(
        "merge_heads",
        "02_attention",
        "2.4",
        "the slices side by side again",
        "function",
        3,
        5,
        (
            "It undoes split_heads, so it makes the same two moves, backwards.",
            "First exchange the axes of heads and tokens, so that nh and hd lie side by side; then melt "
            "the two into one.",
            "After x.transpose(1, 2) the shape is (B, T, nh, hd); only the last two axes melt. .view would "
            "refuse here, because transpose moved no data; .reshape and .flatten copy where they must.",
        ),
    ),
    Exercise(
        "MultiHeadAttention",
        "02_attention",
        "2.5",
        "the whole layer",
        "class",
        6,
        15,
        (
            "You have written every part: split_heads, scaled_dot_product_attention, merge_heads. The "
            "two linear layers are in __init__. What is left is the order.",
            "One product with self.qkv gives (B, T, 3D): the first D columns are q, the next D are k, "
            "the last D are v. Split each into heads, attend, merge, and let self.proj mix the heads.",
            "q, k, v = self.qkv(x).chunk(3, dim=-1); then split_heads(part, self.num_heads) for each of the "
            "three. Attention returns output and weights: the output goes through merge_heads and "
            "self.proj, the weights are returned as they are.",
        ),
    ),
    Exercise(
        "attention_macs",
        "02_attention",
        "2.6",
        "what it costs",
        "function",
        3,
        8,
        (
            "A matrix product (a, b) @ (b, c) costs a*b*c multiply-accumulates. List the products of the "
            "layer and write the shape of each.",
            "There are six: q, k, v and the output projection, each (T, D) @ (D, D), and two in which "
            "tokens meet tokens, scores and weighted sum. Add the heads of the last two up: what cancels?",
            "The scores of one head cost T * hd * T; nh heads make that T * T * D. The weighted sum costs "
            "the same. Add four times the cost of one (T, D) @ (D, D) product.",
        ),
    ),
    Exercise(
        "attention_megabytes",
        "02_attention",
        "2.7",
        "what its weights weigh",
        "value",
        1,
        3,
        (
            "How many numbers are in weights, whose shape is (B, nh, T, T)? What is T with the class token?",
            "B * nh * T * T numbers of 4 bytes each, for one layer. A megabyte here is 10**6 bytes.",
            "T is 14 * 14 + 1, B is 32, nh is 12: multiply 32 * 12 * T * T * 4 and divide by 10**6.",
        ),
    ),
    Exercise(
        "order_blindness",
        "02_attention",
        "2.8",
        "what attention can not see",
        "value",
        2,
        5,
        (
            "Measure, do not guess: compare output_of_shuffled with output, and with output shuffled the "
            "same way.",
            "Two comparisons, one boolean each. Rounding makes equal things differ in the seventh digit, "
            "so compare with torch.allclose and atol=1e-5.",
            "The pair is (torch.allclose(output_of_shuffled, output, atol=1e-5), and the same with "
            "output[:, permutation] in the place of output).",
        ),
    ),
    Exercise(
        "untrained_entropy",
        "02_attention",
        "2.9",
        "what an untrained map shows",
        "value",
        2,
        5,
        (
            "The entropy of one row of weights is -sum(w * log(w)). How large is it when all T weights "
            "are equal?",
            "Equal weights give log(T), the largest entropy there is. Divide by it, so that 1 means "
            "uniform; then average over images, heads and queries.",
            "entropy = -(weights * weights.log()).sum(dim=-1) has one value a row; divide it by "
            "math.log(weights.shape[-1]) and take the mean.",
        ),
    ),
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
