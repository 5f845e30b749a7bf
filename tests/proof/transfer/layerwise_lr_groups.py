"""Right answers to 9.5 layerwise_lr_groups, and what becomes of its mutants."""

import torch


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


EQUIVALENT = {
    "a group more that stays empty": ("range(L + 3)", "range(L + 4)"),
    "no part of the model comes before blocks in the alphabet": ("if part <= 'blocks':",),
    "the order of a look-up": ("depth = L + 1 if part in ('head', 'norm') else 0",),
}


# conditions on the arguments: a mutant that is wrong only under one of them must fail
SPECIAL = (
    "decay == 1",
    "len(model.blocks) == 1",
)
