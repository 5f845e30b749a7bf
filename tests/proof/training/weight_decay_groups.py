"""Right answers to 4.6 weight_decay_groups, and what becomes of its mutants."""

from torch import nn

TOKENS = ("cls_token", "pos_embed")


def by_comprehension(model, weight_decay):
    named = dict(model.named_parameters())
    spared = {n for n, p in named.items() if p.dim() <= 1 or n.rpartition(".")[2] in TOKENS}
    return [
        {"params": [named[n] for n in named if n not in spared], "weight_decay": weight_decay},
        {"params": [named[n] for n in named if n in spared], "weight_decay": 0.0},
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


EQUIVALENT = {
    "two empty lists": ("no_decay, decay = ([], [])",),
    "the order of a look-up": ("is_token = name.split('.')[-1] in ('pos_embed', 'cls_token')",),
}


# conditions on the arguments: a mutant that is wrong only under one of them must fail
SPECIAL = ("not all(p.requires_grad for p in model.parameters())",)
