"""Checker of weight_decay_groups: its cases, its known mistakes, and what is said of them."""

import torch
from torch import nn

from vitedu import training as reference
from vitedu.checks.arguments import Network
from vitedu.checks.diagnosing import Misconception
from vitedu.checks.engine import Checker
from vitedu.checks.inputs import draw
from vitedu.checks.probing import Case


def groups_cases(g: torch.Generator) -> list[Case]:
    """Draw models and a weight decay."""

    def case(kind, words, **rest):
        decay = draw(g, 6, 30) / 100
        args = {"model": Network(kind, 2 * draw(g, 2, 4)), "weight_decay": decay}
        return Case(f"{words}, weight_decay={decay:g}", args, driver="groups", **rest)

    return [
        case("encoder", "a model with the names of a ViT"),
        case("nested", "a ViT inside another model", part="nested parts"),
        case("other_names", "a model with other names", part="other names"),
    ]  # fmt: skip


def faulty_groups(mistakes: frozenset[str]):
    """Sort with the named mistakes made."""

    def is_spared(name, parameter):
        last = name.split(".")[-1]
        if "tokens_decay" in mistakes:
            token = False
        elif "top_level_tokens" in mistakes:
            token = name in ("cls_token", "pos_embed")
        else:
            token = last in ("cls_token", "pos_embed")
        if "by_name" in mistakes:
            return "norm" in name or "bias" in name or token
        if "norms_decay" in mistakes:
            return last.endswith("bias") or token
        if "biases_decay" in mistakes:
            return (parameter.ndim < 2 and not last.endswith("bias")) or token
        if "kernels_spared" in mistakes:
            return parameter.ndim != 2 or token
        return parameter.ndim < 2 or token

    def weight_decay_groups(model, weight_decay):
        if "fixed_decay" in mistakes:
            weight_decay = 0.05
        decay, spared = [], []
        for name, parameter in model.named_parameters():
            last = name.split(".")[-1]
            if "root_left_out" in mistakes and "." not in name:
                continue
            if "tokens_left_out" in mistakes and last in ("cls_token", "pos_embed"):
                continue
            group = spared if is_spared(name, parameter) else decay
            if "copies" in mistakes:
                parameter = nn.Parameter(parameter.detach().clone())
            if "names" in mistakes:
                parameter = name
            group.append(parameter)
        if "swapped" in mistakes:
            decay, spared = spared, decay
        if "in_both" in mistakes:
            spared = spared + decay
        if "everything_decays" in mistakes:
            decay, spared = decay + spared, []
        if "nothing_decays" in mistakes:
            decay, spared = [], decay + spared
        if "spared_left_out" in mistakes:
            return [{"params": decay, "weight_decay": weight_decay}]
        second = {"params": spared, "weight_decay": 0.0}
        if "default_left" in mistakes:
            del second["weight_decay"]
        return [{"params": decay, "weight_decay": weight_decay}, second]

    return weight_decay_groups


GROUPS_BANK = (
    Misconception(
        "everything_decays", "every parameter decays", "biases, norms, cls_token and pos_embed without decay",
        "Shrinking a norm's scale or a bias regularises nothing; it only pulls towards 0.", "Sort by ndim and by name.",
    ),
    Misconception(
        "nothing_decays", "no parameter decays", "matrices and kernels with weight_decay", "There would be no regularisation at all.",
        "Look at the condition that sends a parameter to the first group.",
    ),
    Misconception(
        "swapped", "the two groups have each other's weight_decay", "matrices and kernels decay, the rest does not",
        "What should be left alone is shrunk.", "Look at which list gets 0.",
    ),
    Misconception(
        "tokens_decay", "cls_token and pos_embed decay", "both without decay",
        "They have three axes, so ndim alone takes them for kernels.", "Ask for the name as well.",
    ),
    Misconception(
        "top_level_tokens", "a cls_token or pos_embed inside a part of the model decays", "both without decay, wherever they are",
        "Its full name is encoder.cls_token.", 'Compare the last piece: name.split(".")[-1].',
    ),
    Misconception(
        "norms_decay", "the scales of the norms decay", "norms without decay",
        "A norm's weight is a vector of scales around 1, not a matrix.", "A norm's weight has one axis, as a bias has.",
    ),
    Misconception(
        "biases_decay", "biases decay", "biases without decay", "A bias is an offset, and 0 is no better than any other.",
        "A bias has one axis: ask for ndim.",
    ),
    Misconception(
        "by_name", "norms and biases are told by their names", "the same sorting whatever the parts are called",
        "Not every norm is called norm, and a matrix may stand in a part whose name contains norm or bias.",
        "ndim tells a norm's scale from a matrix without reading names.",
    ),
    Misconception(
        "kernels_spared", "convolution kernels do not decay", "matrices and kernels decay",
        "A kernel of four axes is a matrix too: (D, C*P*P).", "Ask for ndim < 2, not for ndim == 2.",
    ),
    Misconception(
        "fixed_decay", "weight_decay is not the one given", "the argument weight_decay", "Whoever calls chooses it.",
        "Look for a number in place of the argument.",
    ),
    Misconception(
        "default_left", "the second group does not say weight_decay", "weight_decay 0 in the second group",
        "A group that says nothing gets the optimizer's default, which for AdamW is 0.01.", 'Add "weight_decay": 0.0.',
    ),
    Misconception(
        "spared_left_out", "what does not decay is not returned", "two groups that hold every parameter",
        "An optimizer trains only what it is given: biases and norms would stay as they began.", "Return both groups.",
    ),
    Misconception(
        "tokens_left_out", "cls_token and pos_embed are in no group", "every parameter in exactly one group",
        "They would never be trained.", "Send them to the second list rather than skipping them.",
    ),
    Misconception(
        "root_left_out", "parameters that belong to the model itself are in no group", "every parameter in exactly one group",
        "model.children() gives the parts; what is registered on the model directly is in none of them.", "Use model.named_parameters().",
    ),
    Misconception(
        "in_both", "matrices and kernels are in both groups", "every parameter in exactly one group",
        "An optimizer refuses a parameter that comes twice.", "One if, one else: each parameter goes to one list.",
    ),
    Misconception(
        "copies", "the groups hold copies of the parameters", "the model's own parameters",
        "The optimizer would train the copies and leave the model as it is.", "Append the parameter itself, without clone or detach.",
    ),
    Misconception(
        "names", "the groups hold names", "parameters in params", "An optimizer needs the tensors.",
        "named_parameters() gives pairs: append the second of each.",
    ),
)  # fmt: skip

CHECKER = Checker(
    "weight_decay_groups",
    reference.weight_decay_groups,
    groups_cases,
    faulty_groups,
    GROUPS_BANK,
    proves={
        "values": "two groups, every parameter once, with its weight decay",
        "nested parts": "cls_token and pos_embed are found inside other parts",
        "other names": "norms and matrices are told apart whatever they are called",
    },
    advice={
        "other names": (
            "A word inside a name says little: debias.weight is a matrix, ln.weight a norm.",
            "Sort by the number of axes and the last part of the name.",
        ),
    },
)
