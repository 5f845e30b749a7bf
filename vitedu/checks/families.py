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

from vitedu.checks.evidence import row_sums, shapes
from vitedu.checks.mistakes import Mistake
from vitedu.checks.probing import Case, Observation, observe, tensors_in

# --- families -----------------------------------------------------------------------------------

MEAN_OF_MEANS = Mistake(
    "mean_of_means",
    "a mean of means is taken, not the mean over all",
    "every item counts the same",
    "An item of a small group would weigh more than one of a large group.",
    "Add up and count; divide once, at the end.",
)
SUM_NOT_MEAN = Mistake(
    "sum_not_mean",
    "a sum is returned where a mean is asked for",
    "a mean",
    "A sum grows with the number of items.",
    "Divide by the number of items.",
)
NOT_DETACHED = Mistake(
    "not_detached",
    "a gradient reaches what must stay fixed",
    "no gradient there",
    "Training would move the target towards the answer instead of the answer towards the target.",
    "Call detach() on it, or compute it under torch.no_grad().",
    part="gradients",
)
CACHED_BY_SHAPE = Mistake(
    "cached_by_shape",
    "a result of an earlier call comes back",
    "a result of this call's inputs",
    "Inputs of one shape need not be the same inputs.",
    "Look for inputs that the code does not use, or for a cache whose key leaves out the values.",
    part="again",
)
FIRST_OF_BATCH = Mistake(
    "first_of_batch",
    "the whole batch gets what belongs to its first item",
    "each item of the batch by itself",
    "It goes unnoticed with a batch of one.",
    "Look for an index 0 where the whole batch belongs.",
)


PYTHON_NUMBER = Mistake(
    "python_number",
    "the loss is a Python number",
    "a 0-d tensor",
    "A float has no graph; nothing could be learned from it.",
    "Leave out .item() and float().",
)
GLOBAL_DRAWS = Mistake(
    "global_draws",
    "draws do not come from generator",
    "every draw from generator",
    "A run could not be repeated.",
    "Give every draw generator=generator.",
)
OWN_GENERATOR = Mistake(
    "own_generator",
    "a generator of its own decides",
    "every draw from the generator given",
    "Every call would draw the same.",
    "Use the argument, and leave its seed alone.",
)
GENERATOR_DEVICE = Mistake(
    "generator_device",
    "draws are made where the images are",
    "draws made where the generator is",
    "A generator draws on its own device only.",
    "Draw with device=generator.device and move the result.",
    part="any device",
)

# of grids, patches and windows
SQUARE_ONLY = Mistake(
    "square_only",
    "the grid is taken to be square",
    "gh from the height, gw from the width",
    "It breaks on the first photograph.",
    "Take each number from its own side.",
)
GRID_EXCHANGED = Mistake(
    "grid_exchanged",
    "the two sides of the grid have changed places",
    "gh from the height, gw from the width",
    "It is right for squares only.",
    "Look at which side each of the two numbers comes from.",
)
SIDES_SWAPPED = Mistake(
    "sides_swapped",
    "height and width of the grid are swapped",
    "grid_size is (gh, gw)",
    "It goes unnoticed where the grid is square.",
    "Look at the order in which grid_size is unpacked.",
    {"gh, gw = grid_size": "gw, gh = grid_size"},
)
GRID_TURNED = Mistake(
    "grid_turned",
    "rows and columns of the grid have changed places",
    "gh rows and gw columns",
    "On a square grid no shape objects, and every map is wrong.",
    "Look at the order of gh and gw.",
)
DOWN_THE_COLUMNS = Mistake(
    "down_the_columns",
    "the patches are laid out down the columns",
    "row by row, as patchify numbers them",
    "Each map is mirrored along its diagonal.",
    "The second patch stands to the right of the first.",
)
DOUBLE_TABLE = Mistake(
    "double_table",
    "the table is float64",
    "float32, like every table made from sizes alone",
    "Added to float32 tokens it would turn all of them into float64.",
    "Finish with .float().",
)

# of masks that say who may look at whom
MASK_INVERTED = Mistake(
    "inverted",
    "True stands where attention is forbidden",
    "True where attention is allowed",
    "Libraries differ: torch's attn_mask wants True where a token may look.",
    "Look at the last comparison.",
    {"==": "!="},
)
ADDED_TO_SCORES = Mistake(
    "added_to_scores",
    "a float mask with large negative numbers comes back",
    "a boolean mask",
    "That form is added to the scores; here True and False are asked for.",
    "Return the comparison itself.",
)
CAUSAL = Mistake(
    "causal",
    "a token may not look at later tokens",
    "every token sees every token",
    "That mask belongs to language models; an image has no future.",
    "Leave the mask out.",
)

# of the groups of an optimizer
IN_ONE_GROUP = "every parameter in exactly one group"
FROZEN_LEFT_OUT = Mistake(
    "frozen_left_out",
    "parameters that are frozen now are in no group",
    IN_ONE_GROUP,
    "They may learn later, and the optimizer would not know them.",
    "Do not ask for requires_grad.",
)
TOKENS_LEFT_OUT = Mistake(
    "tokens_left_out",
    "class token and positions are in no group",
    IN_ONE_GROUP,
    "They would never be trained.",
    "They belong to the model itself, so no part has them.",
)
IN_TWO_GROUPS = Mistake(
    "in_both",
    "parameters are in two groups",
    IN_ONE_GROUP,
    "An optimizer refuses a parameter that comes twice.",
    "Each parameter goes to one list.",
)
NAMES_IN_GROUPS = Mistake(
    "names",
    "the groups hold names",
    "parameters in params",
    "An optimizer needs the tensors.",
    "named_parameters() gives pairs: append the second of each.",
    {"append(parameter)": "append(name)"},
)
COPIES_IN_GROUPS = Mistake(
    "copies",
    "the groups hold copies of the parameters",
    "the model's own parameters",
    "The optimizer would train the copies and leave the model as it is.",
    "Append the parameter itself, without clone or detach.",
    {"append(parameter)": "append(nn.Parameter(parameter.detach().clone()))"},
)

# of losses and shares
PERCENT = Mistake(
    "percent",
    "the share is in percent",
    "a share in [0, 1]",
    "The course keeps fractions and shows percent.",
    "Leave out the 100.",
)
SIGN = Mistake(
    "sign",
    "the sign is turned",
    "a loss of at least 0",
    "The optimizer would make the truth less likely.",
    "The log of a probability is at most 0; look for the minus.",
)
FIRST_IMAGE = Mistake(
    "first_image",
    "only the first image counts",
    "the mean over the batch",
    "The others would teach nothing.",
    "Look for an index 0, or for a return inside the loop.",
)
SOFTMAX_TWICE = Mistake(
    "softmax_first",
    "softmax is applied twice",
    "cross-entropy of the logits themselves",
    "Probabilities lie between 0 and 1; as logits they can hardly prefer any class.",
    "Leave the logits as the model gave them.",
)

# of heads
FIRST_IMAGE_ONLY = Mistake(
    "first_image_only",
    "only the first image is treated",
    "all images of the batch",
    "It works for a batch of one.",
    "Look for an index 0 or for a 1 where B belongs.",
    evidence=shapes,
)
HEADS_BACKWARDS = Mistake(
    "heads_backwards",
    "the heads come in reverse order",
    "head 0 has the first columns",
    "split_heads and merge_heads must agree on the order.",
    "Look for a flip, or for a loop that counts down.",
)
OVER_QUERIES = Mistake(
    "softmax_over_queries",
    "softmax runs over queries, not keys",
    "weights.sum(dim=-1) == 1",
    "Each query spreads one unit of attention over the keys.",
    "Compare softmax(dim=-1) with dim=-2 on a 2 x 3 example.",
    evidence=row_sums,
)

# of sequences of layers or tokens
FIRST_LEFT_OUT = Mistake(
    "first_layer_left_out",
    "the first layer is left out",
    "every layer once",
    "Off by one.",
    "Look at where the loop starts.",
)
LAST_LEFT_OUT = Mistake(
    "last_layer_left_out",
    "the last layer is left out",
    "every layer once",
    "Off by one.",
    "Look at where the loop ends.",
)
FIRST_PATCH = Mistake(
    "first_patch",
    "the first patch is read",
    "the class token, token 0",
    "Token 1 is the patch at the top left.",
    "Look at the index.",
)
LAST_TOKEN = Mistake(
    "last_token",
    "the last token is read",
    "the class token, token 0",
    "The last token is a patch, at the bottom right.",
    "Look at the index.",
)
SET_TO_ZERO = Mistake(
    "set_to_zero",
    "tokens are set to zero, not left out",
    "the tokens that stay, alone",
    "A shorter sequence is the gain; zeros cost as much as tokens.",
    "Gather the tokens that stay.",
)

# of scaled_dot_product_attention and of the layer around it
UNSTABLE = Mistake(
    "unstable",
    "large scores overflow",
    "finite weights for large scores",
    "exp(89) is infinite in float32; trained networks reach such scores.",
    "Use your softmax of 2.1, which shifts the scores first.",
    {"softmax(scores, dim=-1)": "scores.exp() / scores.exp().sum(dim=-1, keepdim=True)"},
)
SCORES_RETURNED = Mistake(
    "scores_returned",
    "the scores come back in the place of the weights",
    "weights.sum(dim=-1) == 1",
    "The scores may be negative and sum to anything.",
    "Return what softmax gave.",
    {"@ v, weights": "@ v, scores"},
    evidence=row_sums,
)
RESULTS_SWAPPED = Mistake(
    "results_swapped",
    "the two results are swapped",
    "output first, then weights",
    "Who unpacks output, weights = ... gets each under the other's name.",
    "Look at the order in the return.",
    {"weights @ v, weights": "weights, weights @ v"},
    evidence=shapes,
)
WEIGHTS_NOT_RETURNED = Mistake(
    "weights_not_returned",
    "only the output comes back",
    "two results: output, weights",
    "Without the weights there is nothing to look at.",
    "Return a pair.",
    {"@ v, weights": "@ v"},
)

# kernels that compute attention in one call
FUSED_NAMES = frozenset(
    "scaled_dot_product_attention _scaled_dot_product_attention_math aten.scaled_dot_product_attention "
    "aten._scaled_dot_product_attention_math aten._scaled_dot_product_attention_math_for_mps "
    "aten._scaled_dot_product_flash_attention aten._scaled_dot_product_flash_attention_for_cpu "
    "aten._scaled_dot_product_efficient_attention aten._scaled_dot_product_cudnn_attention "
    "aten._scaled_dot_product_fused_attention_overrideable aten._flash_attention_forward "
    "aten._efficient_attention_forward aten._cudnn_attention_forward "
    "multi_head_attention_forward aten._native_multi_head_attention aten._transformer_encoder_layer_fwd".split()
)


def own_results(case: Case, seen: Observation) -> str:
    """Give the mean loss and the accuracy of the answer."""
    values = [seen.arrays.get(name) for name in case.outputs]
    if any(value is None for value in values):
        return "other results"
    return "mean loss {:.4g}, accuracy {:.4g}".format(*(float(x) for x in values if x is not None))


def graph_of(case: Case, seen: Observation) -> str:
    """Say what a mean loss with a graph looks like."""
    return "a mean loss with requires_grad=True"


# the means of train_one_epoch and evaluate
START, FOR = "total_loss, correct, seen = 0.0, 0, 0", "for images, labels in batches:"
COUNTED = {START: START + "\ncount = 0", "seen += len(labels)": "seen += len(labels)\ncount += 1"}

RESULTS_BANK = (
    Mistake(
        "loss_unweighted",
        "the mean loss is a mean of batch means",
        "every image counts the same",
        "An image of a short last batch would weigh more than any other.",
        "Multiply each batch's loss by its number of images, and divide by all images.",
        COUNTED | {".item() * len(labels)": ".item()", "total_loss / seen": "total_loss / count"},
        evidence=own_results,
    ),
    Mistake(
        "accuracy_unweighted",
        "the accuracy is a mean of batch accuracies",
        "every image counts the same",
        "An image of a short last batch would weigh more than any other.",
        "Count hits and images; divide once, at the end.",
        COUNTED | {".sum().item()": ".double().mean().item()", "correct / seen": "correct / count"},
        evidence=own_results,
    ),
    Mistake(
        "loss_over_batches",
        "the mean loss divides a sum over images by the batches",
        "the mean over all images",
        "It grows with the batch size.",
        "Divide by the images seen.",
        COUNTED | {"total_loss / seen": "total_loss / count"},
        evidence=own_results,
    ),
    Mistake(
        "hits_over_batches",
        "the accuracy divides hits by the batches",
        "an accuracy in [0, 1]",
        "Hits are counted image by image, and a batch has many.",
        "Divide by the images seen.",
        COUNTED | {"correct / seen": "correct / count"},
        evidence=own_results,
    ),
    Mistake(
        "loss_summed",
        "the losses are added, not averaged",
        "the mean over all images",
        "It would grow with the data set.",
        "Divide by the images seen.",
        {"total_loss / seen": "total_loss"},
        evidence=own_results,
    ),
    Mistake(
        "hits_counted",
        "the accuracy is a count",
        "an accuracy in [0, 1]",
        "Counts of data sets of two sizes cannot be compared.",
        "Divide by the images seen.",
        {"correct / seen": "correct"},
        evidence=own_results,
    ),
    Mistake(
        "percent",
        "the accuracy is in percent",
        "an accuracy in [0, 1]",
        "The course keeps fractions and shows percent.",
        "Leave out the 100.",
        {"correct / seen": "100 * correct / seen"},
        evidence=own_results,
    ),
    Mistake(
        "swapped_results",
        "accuracy and loss have changed places",
        "(mean_loss, accuracy)",
        "Callers unpack them in this order.",
        "Turn the pair round.",
        {"total_loss / seen, correct / seen": "correct / seen, total_loss / seen"},
        evidence=own_results,
    ),
    Mistake(
        "loss_alone",
        "only the loss is returned",
        "(mean_loss, accuracy)",
        "Callers unpack two numbers.",
        "Count the hits too.",
        {", correct / seen": ""},
    ),
    Mistake(
        "last_batch_only",
        "only the last batch is reported",
        "a mean over all batches",
        "One batch is a noisy sample.",
        "Start the sums before the loop, and add inside.",
        {FOR: FOR + "\n    total_loss, correct, seen = 0.0, 0, 0"},
        evidence=own_results,
    ),
    Mistake(
        "one_batch_only",
        "the loop ends after the first batch",
        "every batch once",
        "The other batches are never seen.",
        "Look for a return or break inside the loop.",
        {"seen += len(labels)": "seen += len(labels)\nbreak"},
        evidence=own_results,
    ),
    Mistake(
        "last_batch_dropped",
        "a short last batch is left out",
        "every batch, of whatever size",
        "Its images would never count.",
        "Take every batch that comes.",
        {
            START: START + "\nsize = 0",
            FOR: FOR
            + "\n    size = size or len(labels)\n    if len(labels) < size:\n        break",
        },
        evidence=own_results,
    ),
    Mistake(
        "softmax_first",
        "softmax is applied before cross-entropy",
        "cross-entropy of the logits",
        "Cross-entropy applies the softmax itself; twice flattens it.",
        "Hand the logits over as they are.",
        {"entropy(logits": "entropy(logits.softmax(dim=-1)"},
        evidence=own_results,
    ),
    Mistake(
        "smoothed_loss",
        "the loss is smoothed",
        "mean cross-entropy without smoothing",
        "Smoothed and plain losses cannot be compared.",
        "Leave label_smoothing at its default.",
        {"entropy(logits, labels": "entropy(logits, labels, label_smoothing=0.1"},
        evidence=own_results,
    ),
    Mistake(
        "needs_len",
        "the batches must have a length",
        "any iterable, a generator too",
        "A generator does not know how many batches it will give.",
        "Count while you go.",
        {FOR: "len(batches)\n" + FOR},
    ),
    Mistake(
        "read_twice",
        "the batches are read twice",
        "any iterable, read once",
        "A generator is empty after its first reading.",
        "Do all the work in one loop.",
        {FOR: "for _ in batches:\n    pass\n" + FOR},
    ),
)

# what evaluate and shift_consistency do with modes and gradients, in the same lines
PARTS = {"modes.items()": "[(part, modes[part]) for part in (model, *model.children())]"}
GRAPH = {"@torch.no_grad()": "@torch.enable_grad()"}

MODES_BANK = (
    Mistake(
        "no_eval",
        "the model keeps the mode it came in",
        "eval mode",
        "Dropout would hide parts of the model, and running statistics would move.",
        "Call model.eval() first.",
        {"model.eval()": "pass"},
    ),
    Mistake(
        "train_mode",
        "the model is measured in train mode",
        "eval mode",
        "Dropout would hide parts of the model, and running statistics would move.",
        "Call model.eval(), not model.train().",
        {"model.eval()": "model.train()"},
    ),
    Mistake(
        "left_in_eval",
        "the model stays in eval mode",
        "every part in the mode it was in before",
        "The next epoch would train without dropout.",
        "Remember the modes before model.eval(), and put them back.",
        {"module.training = training": "pass"},
    ),
    Mistake(
        "always_train",
        "the model is in train mode afterwards, whatever it was before",
        "every part in the mode it was in before",
        "A frozen part, or a model that only predicts, would wake up.",
        "Remember the modes before model.eval(), and put them back.",
        {"module.training = training": "module.training = True"},
    ),
    Mistake(
        "root_mode_only",
        "the model's own mode is restored, and forced on all its parts",
        "every part in the mode it was in before",
        "model.train(mode) sets every part alike; a frozen part would wake up.",
        "Remember the mode of each of model.modules().",
        {"module.training = training": "module.train(modes[model])"},
    ),
    Mistake(
        "children_only",
        "a part inside a part does not get its mode back",
        "every part in the mode it was in before",
        "model.children() gives the parts and not what is inside them, but model.eval() reaches all.",
        "Go through model.modules(), not children().",
        PARTS,
    ),
    Mistake(
        "children_forced",
        "a part inside a part gets the mode of the part around it",
        "every part in the mode it was in before",
        "model.children() gives the parts and not what is inside them, and train(mode) sets both alike; a frozen part would wake up.",
        "Go through model.modules(), not children(), and set the attribute training.",
        PARTS | {"module.training = training": "module.train(training)"},
    ),
    Mistake(
        "graph_built",
        "a graph for gradients is built",
        "no gradients",
        "It costs memory for every batch and serves nobody.",
        "Work under torch.no_grad().",
        GRAPH,
    ),
    Mistake(
        "gradients_cleared",
        "gradients that the caller holds are wiped or changed",
        "gradients as they were before",
        "An accumulated gradient would be lost if someone measures between two steps.",
        "Leave out zero_grad() and backward().",
        {"model.eval()": "model.eval()\nmodel.zero_grad()"},
    ),
    Mistake(
        "gradients_left_off",
        "gradients stay switched off afterwards",
        "gradients possible again",
        "The next loss.backward() would fail.",
        "Use torch.no_grad() as a context or decorator, which ends by itself.",
        {
            "@torch.no_grad()\ndef": "def",
            "model.eval()": "model.eval()\ntorch.set_grad_enabled(False)",
        },
    ),
)

# --- explanations of survivors --------------------------------------------------------------------

SIDE_BY_SIDE = "two axes that stay side by side to the end may be split in either order"
NEW_AXIS = "broadcasting adds the axis in front by itself"
UNUSED_SIZES = "sizes that are bound and not used"
DEFAULT = "what is left out is the default"
NEGATIVE_DIVISOR = "a remainder by -n is 0 where one by n is"
SAME_ZERO = "0 and 0.0 are added to alike"
AS_MANY_LABELS = "a batch has as many labels as images"
TENSOR_AS_NUMBER = "exercises.md takes 0-d tensors as numbers"

RESULTS_SURVIVORS = {
    SAME_ZERO: (
        "correct, total_loss, seen = (0.0, 0, 0)",
        "seen, correct, total_loss = (0.0, 0, 0)",
        "total_loss, seen, correct = (0.0, 0, 0)",
        "total_loss, correct, seen = (0, 0.0, 0)",
        "total_loss, correct, seen = (0, 0, 0.0)",
    ),
}

# --- mistakes that every exercise of a kind can show ----------------------------------------------


def general_mistakes(reference: Any, cases: list[Case]) -> list[Mistake]:
    """List the general mistakes that these cases can show."""
    main = [case for case in cases if case.part == "values"]
    mistakes = []
    if any(case.raises for case in cases):
        numbers = any(case.mentions for case in cases)
        mistakes += [
            Mistake(
                "no_error",
                "an impossible size is accepted",
                "a ValueError",
                part="errors",
                why="Wrong results that look fine cost more than an error.",
                look="Test the sizes first and raise a ValueError.",
                build=lambda: _never_raises(reference),
            ),
            Mistake(
                "wrong_error",
                "an impossible size ends in another error than ValueError",
                "a ValueError",
                part="errors",
                why="Neither an assert nor the error of a later line says what the caller did.",
                look="Test the sizes first and raise a ValueError that says so.",
                build=lambda: _raises(reference, lambda text: RuntimeError("shape is invalid")),
            ),
        ]
        if numbers:
            mistakes.append(
                Mistake(
                    "error_without_numbers",
                    "the error does not name the numbers",
                    "both numbers in the message",
                    part="errors",
                    why="Whoever reads it wants to know which size met which.",
                    look='Use an f-string: f"... (got {height}, {patch_size})".',
                    build=lambda: _raises(reference, lambda text: ValueError("bad size")),
                )
            )
    usual = [case for case in cases if not case.raises and case.driver in ("call", "module")]
    results = [observe(reference, case).arrays for case in usual if not case.on_accelerator]
    if any(1 in x.shape for arrays in results for x in arrays.values()):
        mistakes.append(
            Mistake(
                "squeezed",
                "axes of size 1 are squeezed away",
                "all axes, those of size 1 too",
                why="The next line counts on the axes, and a batch of one is still a batch.",
                look="Look for squeeze, and for an index where a slice keeps the axis.",
                build=lambda: wrap(
                    reference, after=lambda x: x.squeeze() if isinstance(x, torch.Tensor) else x
                ),
            )
        )
    tensors = [name for case in main for name, value in case.args.items() if _is_float(value)]
    if tensors and main[0].driver in ("call", "module"):
        mistakes.append(
            Mistake(
                "modifies_input",
                "an input is modified in place",
                "inputs left as they were",
                part="unchanged",
                why="Whoever called still needs the tensor; in training it may belong to the graph.",
                look="Look for what writes into it: x += ..., x[...] = ..., a method that ends in an underscore.",
                build=lambda: wrap(reference, before=_spoil_after(reference)),
            )
        )
    if any(case.gradients for case in main):
        mistakes.append(
            Mistake(
                "detached",
                "a result carries no gradient",
                "results attached to the graph",
                part="gradients",
                why="What is cut off here cannot be trained.",
                look="Look for .detach(), .data, .item(), no_grad or NumPy.",
                build=lambda: wrap(
                    reference, after=lambda x: x.detach() if isinstance(x, torch.Tensor) else x
                ),
            )
        )
    # cases that return a plain number do not count: it has no dtype
    arrays = [value for case in cases if not case.number for value in case.args.values()]
    if any(_is_float(value, torch.float64) for value in arrays):
        mistakes.append(
            Mistake(
                "single_precision",
                "float64 goes in, float32 comes out",
                "the dtype of the input",
                why="A function that changes the dtype breaks the next one that mixes the two.",
                look="Look for .float() and for tensors made without dtype=x.dtype.",
                build=lambda: wrap(
                    reference,
                    after=lambda x: (
                        x.float() if isinstance(x, torch.Tensor) and x.is_floating_point() else x
                    ),
                ),
            )
        )
    if any(case.on_accelerator for case in cases):
        mistakes.append(
            Mistake(
                "own_device",
                "a tensor stays on the CPU, wherever the inputs are",
                "one device",
                part="any device",
                why="On a GPU the two cannot meet.",
                look="Make new tensors with device=x.device, or from an input: x.new_zeros(...). Move draws with .to(x.device).",
                build=lambda: wrap(
                    reference, after=lambda x: x.cpu() if isinstance(x, torch.Tensor) else x
                ),
            )
        )
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
                    "buffer_overwritten",
                    "a later call overwrites an earlier result",
                    "earlier results stay as they were",
                    part="again",
                    why="Whoever called first still holds that tensor, and its numbers change unseen.",
                    look="Make a new tensor in every call.",
                    build=lambda: overwriting(reference),
                )
            )
    if kinds & {"call", "module", "layer_from_layer"}:
        mistakes += [
            Mistake(
                "gradients_left_off",
                "the call leaves gradients switched off",
                "everything is left as it was",
                part="again",
                why="Nothing that is computed afterwards can be trained.",
                look="Use `with torch.no_grad():`, which puts back what it found.",
                build=lambda: leaving(reference, lambda: torch.set_grad_enabled(False)),
            ),
            Mistake(
                "dtype_left",
                "the call leaves another default dtype behind",
                "everything is left as it was",
                part="again",
                why="Every tensor that is made afterwards has that dtype.",
                look="Give dtype=... where the tensor is made.",
                build=lambda: leaving(reference, lambda: torch.set_default_dtype(torch.float64)),
            ),
        ]
    if again:
        mistakes.append(
            Mistake(
                "seeded",
                "the call seeds the global random numbers",
                "everything is left as it was",
                part="again",
                why="Whatever is drawn afterwards is the same after every call: crops, dropout, first weights.",
                look="Leave out manual_seed and seed. Draws that must repeat come from a generator of their own.",
                build=lambda: leaving(reference, lambda: torch.manual_seed(0)),
            )
        )
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
