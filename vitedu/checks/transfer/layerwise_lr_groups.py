import torch

from vitedu.checks.kit import Case, Checker, Mistake, Network, draw, families


def cases(g: torch.Generator) -> list[Case]:
    """Draw models of several depths, a learning rate and a decay."""

    def case(kind, words, part="other models", decay=None):
        decay = draw(g, 60, 85) / 100 if decay is None else decay
        model, base_lr = Network(kind, 2 * draw(g, 2, 4)), draw(g, 2, 9) / 1000
        args = {"model": model, "base_lr": base_lr, "decay": decay}
        return Case(f"{words}, base_lr={base_lr:g}, decay={decay:g}", args, part, driver="rates")

    return [
        case("shallow", "three blocks", "values"),
        case("encoder", "one block"),
        case("deep", "twelve blocks"),
        case("shallow", "three blocks", decay=1.0),
        case("frozen_below", "four blocks, the lower ones frozen", "frozen parameters"),
    ]


POWER = "decay ** (L + 1 - depth)"
BLOCK = "depth = int(rest[0]) + 1"
ENDS = 'depth = L + 1 if part in ("norm", "head") else 0'
APPEND = 'groups[depth]["params"].append(parameter)'
LAST = "block L-1 has base_lr * decay"
DOWN = "head and norm highest, patch embedding lowest"

MISTAKES = (
    Mistake(
        "upside_down",
        "the learning rate falls from the patches up to the head",
        DOWN,
        "The first blocks hold what most pictures share.",
        "The exponent shrinks with the number of the block.",
        {POWER: "decay ** depth"},
    ),
    Mistake(
        "off_by_one",
        "the last block learns as fast as the head",
        LAST,
        "The exponent of block i is L - i, and i ends at L - 1.",
        "Count: for the last block L - i is 1.",
        {BLOCK: "depth = int(rest[0]) + 2"},
        also=(
            {
                BLOCK: "depth = int(rest[0]) + 2",
                ENDS: 'depth = L + 1 if part in ("norm", "head") else 1',
            },
        ),
    ),
    Mistake(
        "blocks_upside_down",
        "the first block learns fastest of the blocks",
        DOWN,
        "The first blocks hold what most pictures share.",
        "The exponent of block i is L - i.",
        {BLOCK: "depth = L - int(rest[0])"},
        also=({BLOCK: "depth = L + 1 - int(rest[0])"},),
    ),
    Mistake(
        "one_too_slow",
        "every block learns one step too slowly",
        LAST,
        "The exponent of block i is L - i.",
        "Count: for the last block L - i is 1.",
        {BLOCK: "depth = int(rest[0])"},
    ),
    Mistake(
        "everything_slower",
        "all rates are one factor decay too small",
        "head and norm at base_lr",
        "decay ** 0 belongs to the head.",
        "Look at the largest rate.",
        {POWER: "decay ** (L + 2 - depth)"},
    ),
    Mistake(
        "everything_faster",
        "all rates are one factor decay too large",
        "head and norm at base_lr",
        "decay ** 0 belongs to the head.",
        "Look at the largest rate.",
        {POWER: "decay ** (L - depth)"},
    ),
    Mistake(
        "patches_with_first_block",
        "patch embedding, class token and positions learn as fast as the first block",
        "base_lr * decay ** (L + 1) for them",
        "They stand below the first block.",
        "Give them a group of their own.",
        {ENDS: 'depth = L + 1 if part in ("norm", "head") else 1'},
    ),
    Mistake(
        "tokens_at_the_top",
        "class token and positions learn as fast as the head",
        "base_lr * decay ** (L + 1) for them",
        "They enter below the first block.",
        "Name norm and head, and let the rest stand at the bottom.",
        {ENDS: 'depth = 0 if part == "patch_embed" else L + 1'},
    ),
    Mistake(
        "positions_at_the_top",
        "the positions learn as fast as the head",
        "base_lr * decay ** (L + 1) for them",
        "They enter below the first block.",
        "Name all three: patch_embed, cls_token, pos_embed.",
        {ENDS: 'depth = 0 if part in ("patch_embed", "cls_token") else L + 1'},
    ),
    Mistake(
        "class_token_at_the_top",
        "the class token learns as fast as the head",
        "base_lr * decay ** (L + 1) for it",
        "It enters below the first block.",
        "Name all three: patch_embed, cls_token, pos_embed.",
        {ENDS: 'depth = 0 if part in ("patch_embed", "pos_embed") else L + 1'},
    ),
    Mistake(
        "norm_at_the_bottom",
        "the final norm learns as slowly as the patches",
        "head and final norm at base_lr",
        "It stands above the last block.",
        "Name it beside the head.",
        {ENDS: 'depth = L + 1 if part == "head" else 0'},
    ),
    Mistake(
        "norm_below_head",
        "the final norm learns as fast as the last block",
        "head and final norm at base_lr",
        "The text puts it beside the head.",
        "Name it beside the head.",
        {ENDS: 'depth = L + 1 if part == "head" else L if part == "norm" else 0'},
    ),
    Mistake(
        "head_at_the_bottom",
        "the head learns as slowly as the patches",
        "head and final norm at base_lr",
        "The head is new and has most to learn.",
        "Name it.",
        {ENDS: 'depth = L + 1 if part == "norm" else 0'},
    ),
    Mistake(
        "norms_by_word",
        "the norms inside the blocks learn as fast as the head",
        "every part of block i at one rate",
        "norm1 and norm2 have the word in their names, too.",
        "Look at the first part of the name.",
        {BLOCK: 'depth = L + 1 if "norm" in name else int(rest[0]) + 1'},
    ),
    Mistake(
        "first_digit",
        "only the first digit of a block's number is read",
        "block 10 is not block 1",
        "It goes unnoticed up to ten blocks.",
        "Split the name at the dots and take int of the second part.",
        {BLOCK: "depth = int(rest[0][0]) + 1"},
        part="other models",
    ),
    Mistake(
        "decay_multiplied",
        "the decay is multiplied, not raised",
        "base_lr * decay ** (L - i)",
        "Each block takes the factor once more than the block above.",
        "Use **.",
        {POWER: "(decay * (L + 1 - depth) if depth <= L else 1)"},
    ),
    Mistake(
        "decay_linear",
        "the rates fall by equal steps",
        "base_lr * decay ** (L - i)",
        "Equal factors are asked for.",
        "Use **.",
        {POWER: "(1 - (1 - decay) * (L + 1 - depth) / (L + 1))"},
    ),
    Mistake(
        "one_rate",
        "everything has one learning rate",
        "base_lr * decay ** (L - i) for block i",
        "That is full fine-tuning.",
        "Use the exponent.",
        {POWER: "1"},
    ),
    Mistake(
        "divided",
        "the rates grow downwards",
        DOWN,
        "Dividing by decay makes the step larger.",
        "Multiply.",
        {POWER: "decay ** (depth - L - 1)"},
    ),
    Mistake(
        "fixed_depth",
        "twelve blocks are expected",
        "L, the blocks of this model",
        "Other models are deeper.",
        "Use len(model.blocks).",
        {"len(model.blocks)": "12"},
    ),
    families.FROZEN_LEFT_OUT.by(
        {APPEND: "if parameter.requires_grad:\n    " + APPEND}, part="frozen parameters"
    ),
    families.TOKENS_LEFT_OUT.by({APPEND: 'if "." in name:\n    ' + APPEND}),
    Mistake(
        "head_left_out",
        "the head is in no group",
        "every parameter in exactly one group",
        "It has most to learn.",
        "Give it to the top group.",
        {APPEND: 'if part != "head":\n    ' + APPEND},
    ),
    Mistake(
        "norm_left_out",
        "the final norm is in no group",
        "every parameter in exactly one group",
        "It would never be trained.",
        "Give it to the top group.",
        {APPEND: 'if part != "norm":\n    ' + APPEND},
    ),
    Mistake(
        "twice",
        "the top group holds everything",
        "every parameter in exactly one group",
        "An optimizer refuses a parameter that comes twice.",
        "One group for each parameter.",
        {APPEND: APPEND + '\nif depth <= L:\n    groups[-1]["params"].append(parameter)'},
    ),
    families.NAMES_IN_GROUPS,
    families.COPIES_IN_GROUPS,
    Mistake(
        "no_rate",
        "the groups do not say lr",
        'dicts with "params" and "lr"',
        "The optimizer would use one rate for all.",
        'Add "lr".',
        {f', "lr": base_lr * {POWER}': ""},
    ),
)


def by_parts(model, base_lr, decay):
    L = len(model.blocks)
    lowest = [*model.patch_embed.parameters(), model.cls_token, model.pos_embed]
    groups = [{"params": lowest, "lr": base_lr * decay ** (L + 1)}]
    for i, block in enumerate(model.blocks):
        groups.append({"params": block.parameters(), "lr": base_lr * decay ** (L - i)})
    highest = [*model.norm.parameters(), *model.head.parameters()]
    return [*groups, {"params": highest, "lr": base_lr}]


def one_group_each(model, base_lr, decay):
    L = len(model.blocks)
    groups = []
    for name, parameter in model.named_parameters():
        if name.startswith(("head", "norm.")):
            exponent = 0
        elif name.startswith("blocks."):
            exponent = L - int(name.split(".", 2)[1])
        else:
            exponent = L + 1
        groups.append({"lr": base_lr * decay**exponent, "params": [parameter], "name": name})
    return groups


def from_the_top(model, base_lr, decay):
    rest = dict(model.named_parameters())
    rate = torch.tensor(base_lr, dtype=torch.float64)
    for stem in ("head", *(f"blocks.{i}." for i in reversed(range(len(model.blocks)))), ""):
        stems = (stem, "norm.") if stem == "head" else (stem,)
        chosen = [name for name in rest if name.startswith(stems)]
        yield {"params": [rest.pop(name) for name in chosen], "lr": float(rate)}
        rate = rate * decay


def by_a_table(model, base_lr, decay):
    table, L = {}, len(model.blocks)
    for name, parameter in model.named_parameters():
        words = name.split(".")
        depth = {"head": L + 1, "norm": L + 1}.get(words[0], 0)
        depth = int(words[1]) + 1 if words[0] == "blocks" else depth
        table.setdefault(depth, []).append((name, parameter))
    return tuple(dict(params=table[d], lr=base_lr * pow(decay, L + 1 - d)) for d in sorted(table))


CHECKER = Checker(
    "layerwise_lr_groups",
    proves={
        "values": "every parameter once, at the rate of its depth",
        "other models": "also for one block, twelve blocks, and a decay of 1",
        "frozen parameters": "a parameter that is frozen now stands in its group, too",
    },
    equivalent={
        "a group more that stays empty": ("range(L + 3)", "range(L + 4)"),
        "no part of the model comes before blocks in the alphabet": ("if part <= 'blocks':",),
        "the order of a look-up": ("depth = L + 1 if part in ('head', 'norm') else 0",),
    },
    special="decay == 1; len(model.blocks) == 1",
)
