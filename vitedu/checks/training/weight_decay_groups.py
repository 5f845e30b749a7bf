import torch
from torch import nn

from vitedu.checks.kit import Case, Checker, Mistake, Network, draw, families


def cases(g: torch.Generator) -> list[Case]:
    """Draw models and a weight decay."""

    def case(kind, words, part="values"):
        decay = draw(g, 6, 30) / 100
        args = {"model": Network(kind, 2 * draw(g, 2, 4)), "weight_decay": decay}
        return Case(f"{words}, weight_decay={decay:g}", args, part, driver="groups")

    return [
        case("encoder", "a model with the names of a ViT"),
        case("nested", "a ViT inside another model", "nested parts"),
        case("other_names", "a model with other names", "other names"),
        case("frozen", "a ViT with a frozen patch embedding", "frozen or shared"),
        case("shared", "a ViT with a matrix that two parts share", "frozen or shared"),
    ]


MISTAKES = (
    Mistake(
        "everything_decays",
        "every parameter decays",
        "biases, norms, cls_token and pos_embed without decay",
        "Shrinking a norm's scale or a bias regularises nothing; it only pulls towards 0.",
        "Sort by ndim and by name.",
        {"no_decay if": "decay if"},
    ),
    Mistake(
        "nothing_decays",
        "no parameter decays",
        "matrices and kernels with weight_decay",
        "There would be no regularisation at all.",
        "Look at the condition that sends a parameter to the first group.",
        {"else decay": "else no_decay"},
    ),
    Mistake(
        "swapped",
        "the two groups have each other's weight_decay",
        "matrices and kernels decay, the rest does not",
        "What should be left alone is shrunk.",
        "Look at which list gets 0.",
        {'"params": decay': '"params": no_decay', '"params": no_decay': '"params": decay'},
    ),
    Mistake(
        "tokens_decay",
        "cls_token and pos_embed decay",
        "both without decay",
        "They have three axes, so ndim alone takes them for kernels.",
        "Ask for the name as well.",
        {" or is_token": ""},
    ),
    Mistake(
        "top_level_tokens",
        "a cls_token or pos_embed inside a part of the model decays",
        "both without decay, wherever they are",
        "Its full name is encoder.cls_token.",
        'Compare the last piece: name.split(".")[-1].',
        {'name.split(".")[-1] in': "name in"},
    ),
    Mistake(
        "norms_decay",
        "the scales of the norms decay",
        "norms without decay",
        "A norm's weight is a vector of scales around 1, not a matrix.",
        "A norm's weight has one axis, as a bias has.",
        {"parameter.ndim < 2": 'name.endswith("bias")'},
    ),
    Mistake(
        "biases_decay",
        "biases decay",
        "biases without decay",
        "A bias is an offset, and 0 is no better than any other.",
        "A bias has one axis: ask for ndim.",
        {"parameter.ndim < 2": 'parameter.ndim < 2 and not name.endswith("bias")'},
    ),
    Mistake(
        "by_name",
        "norms and biases are told by their names",
        "the same sorting whatever the parts are called",
        "Not every norm is called norm, and a matrix may stand in a part whose name contains norm or bias.",
        "ndim tells a norm's scale from a matrix without reading names.",
        {"parameter.ndim < 2": '"norm" in name or "bias" in name'},
    ),
    Mistake(
        "tokens_by_a_word",
        "whatever has token in its name is taken for a token",
        "matrices decay, whatever they are called",
        "The matrix of a tokenizer is no token.",
        'Compare the last piece: name.split(".")[-1].',
        {
            'name.split(".")[-1] in ("cls_token", "pos_embed")': 'any(word in name for word in ("token", "pos_embed"))'
        },
    ),
    Mistake(
        "kernels_spared",
        "convolution kernels do not decay",
        "matrices and kernels decay",
        "A kernel of four axes is a matrix too: (D, C*P*P).",
        "Ask for ndim < 2, not for ndim == 2.",
        {"ndim < 2": "ndim != 2"},
    ),
    Mistake(
        "fixed_decay",
        "weight_decay is not the one given",
        "the argument weight_decay",
        "Whoever calls chooses it.",
        "Look for a number in place of the argument.",
        {": weight_decay}": ": 0.05}"},
        also=({": weight_decay}": ": 0.1}"}, {": weight_decay}": ": 0.01}"}),
    ),
    Mistake(
        "default_left",
        "the second group does not say weight_decay",
        "weight_decay 0 in the second group",
        "A group that says nothing gets the optimizer's default, which for AdamW is 0.01.",
        'Add "weight_decay": 0.0.',
        {', "weight_decay": 0.0': ""},
    ),
    Mistake(
        "spared_left_out",
        "what does not decay is not returned",
        "two groups that hold every parameter",
        "An optimizer trains only what it is given: biases and norms would stay as they began.",
        "Return both groups.",
        {'{"params": no_decay, "weight_decay": 0.0},': ""},
    ),
    families.TOKENS_LEFT_OUT.by(
        {"group.append": "if is_token:\n    continue\ngroup.append"},
        look="Send them to the second list rather than skipping them.",
    ),
    Mistake(
        "root_left_out",
        "parameters that belong to the model itself are in no group",
        "every parameter in exactly one group",
        "model.children() gives the parts; what is registered on the model directly is in none of them.",
        "Use model.named_parameters().",
        {"is_token =": 'if "." not in name:\n    continue\nis_token ='},
    ),
    families.FROZEN_LEFT_OUT.by(
        {"group.append": "if not parameter.requires_grad:\n    continue\ngroup.append"},
        part="frozen or shared",
    ),
    Mistake(
        "shared_twice",
        "a parameter that two parts share comes twice",
        "every parameter in exactly one group",
        "An optimizer warns of it.",
        "model.named_parameters() gives each once; a walk through modules does not.",
        {"named_parameters()": "named_parameters(remove_duplicate=False)"},
        part="frozen or shared",
    ),
    families.IN_TWO_GROUPS.by(
        {'"params": no_decay': '"params": no_decay + decay'},
        name="matrices and kernels are in both groups",
    ),
    families.COPIES_IN_GROUPS,
    families.NAMES_IN_GROUPS,
)

TOKENS = ("cls_token", "pos_embed")


def by_comprehension(model, weight_decay):
    named = dict(model.named_parameters())
    spared = {n for n, p in named.items() if p.dim() <= 1 or n.rpartition(".")[2] in TOKENS}
    return [
        {"params": [named[n] for n in named if n in spared], "weight_decay": 0.0},
        {"params": [named[n] for n in named if n not in spared], "weight_decay": weight_decay},
    ]


def by_module_kind(model, weight_decay):
    decay, rest, met = [], [], set()
    norms = (nn.LayerNorm, nn.GroupNorm, nn.BatchNorm1d, nn.BatchNorm2d)
    for module in model.modules():
        for name, parameter in module.named_parameters(recurse=False):
            spared = isinstance(module, norms) or name in TOKENS or name.endswith("bias")
            if parameter not in met:
                (rest if spared else decay).append(parameter)
            met.add(parameter)
    spared = dict(weight_decay=0, params=rest, name="rest")
    return dict(weight_decay=weight_decay, params=decay, name="decay"), spared


def by_generator(model, weight_decay):
    for decays in (True, False):
        yield {
            "weight_decay": weight_decay if decays else 0.0,
            "params": (
                p
                for n, p in model.named_parameters()
                if (len(p.shape) > 1 and not n.endswith(TOKENS)) is decays
            ),
        }


def by_named_pairs(model, weight_decay):
    groups = {weight_decay: [], 0.0: []}
    for name, parameter in model.named_parameters():
        matrix = parameter.ndim > 1 and name.split(".")[-1] not in TOKENS
        groups[weight_decay if matrix else 0.0].append((name, parameter))
    return [{"params": pairs, "weight_decay": decay} for decay, pairs in groups.items()]


CHECKER = Checker(
    "weight_decay_groups",
    proves={
        "values": "two groups, every parameter once, with its weight decay",
        "nested parts": "cls_token and pos_embed are found inside other parts",
        "other names": "norms and matrices are told apart whatever they are called",
        "frozen or shared": "a parameter that is frozen now, or that two parts share, stands there once too",
    },
    advice={
        "other names": (
            "A word inside a name says little: debias.weight is a matrix, ln.weight a norm.",
            "Sort by the number of axes and the last part of the name.",
        ),
        "frozen or shared": (
            "A frozen parameter may learn later. An optimizer warns of a parameter that comes twice.",
            "model.named_parameters() gives every parameter once, frozen ones too.",
        ),
    },
    special="not all(p.requires_grad for p in model.parameters())",
    equivalent={
        "two empty lists": ("no_decay, decay = ([], [])",),
        "the order of a look-up": ("is_token = name.split('.')[-1] in ('pos_embed', 'cls_token')",),
    },
    left_open={
        "the order of the groups is free": ("{'params': no_decay, 'weight_decay': 0.0},",),
    },
)
