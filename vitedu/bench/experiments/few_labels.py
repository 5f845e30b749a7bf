"""A hundred labels: how far does each way to go on from trained weights get?

Section 2 of notebook 09. The shipped encoder learned from photographs without labels. Each seed
takes a hundred labelled validation photographs of its own. Every way is tried with the rates of a
list until the best has a worse one on either side; seed 0 chooses, on other validation photographs.
Shown is what this rate reaches on test photographs.
"""

from collections.abc import Callable, Iterable, Sequence

import torch
from torch import nn

from vitedu.bench.experiments import DATA, Arms, Data, Measurement, Profile, cut, load, look_up
from vitedu.extras.options import build_model, with_options
from vitedu.pretrained.reading import read_course_model
from vitedu.transfer import LoRALinear, accuracy_of, fit_to, layerwise_lr_groups
from vitedu.vit import VisionTransformer, capture

NAME = "vit_pico_dino_patch4_32.cifar10"
WAYS: Arms = {"from scratch": {}, "head only": {}, "full": {}, "layer-wise": {"decay": 0.6}}
WAYS["LoRA"] = {"rank": 4, "layers": ["attn.qkv", "mlp.fc1"]}
RATES: dict[str, Sequence[float]] = {
    "from scratch": (5e-4, 1e-3, 2e-3, 4e-3),
    "head only": (3e-3, 1e-2, 3e-2),
    "full": (1e-4, 3e-4, 1e-3, 3e-3),
    "layer-wise": (3e-4, 1e-3, 3e-3, 1e-2),
    "LoRA": (1e-3, 3e-3, 1e-2, 3e-2),
}
ARMS: Arms = {
    f"{way}, {lr:g}": {"way": way, "lr": lr, **own}
    for way, own in WAYS.items()
    for lr in RATES[way]
}
LABELS, STEPS, BATCH = 100, 40, 50


def run(arm: str, seed: int, profile: Profile) -> dict:
    """Train in one way at one rate, and measure it on photographs that were not trained on."""
    model, num_trained = adapt(ARMS[arm]["way"], seed, profile, lr=ARMS[arm]["lr"])
    data, last = photographs(profile), -cut(500, profile, 100)  # on these no seed trains
    images, labels = data.normalize(data.validation.images[last:]), data.validation.labels[last:]
    chosen_by = round(accuracy_of(model, images, labels), 4)
    shown = round(test_accuracy(model, profile), 4)
    return {"parameters": num_trained, "validation_accuracy": chosen_by, "test_accuracy": shown}


def adapt(
    way: str,
    seed: int,
    profile: Profile,
    *,
    lr: float,
    count: int = LABELS,
    rank: int = WAYS["LoRA"]["rank"],
    layers: Sequence[str] = WAYS["LoRA"]["layers"],
    lora: Callable[..., nn.Module] = LoRALinear,
    groups_of: Callable[..., list[dict]] = layerwise_lr_groups,
) -> tuple[VisionTransformer, int]:
    """Train on a few photographs, at most 100, in one way; ``lora`` and ``groups_of`` may be a
    student's own.

    Returns:
        The model in eval mode, and how many parameters learned.
    """
    options, data = look_up(way, WAYS), photographs(profile)
    config, weights, _ = read_course_model(NAME)
    torch.manual_seed(seed)
    model = build_model(with_options(config, fused=True))
    model.register_module("head", nn.Identity())  # the weights have none
    if way != "from scratch":
        model.load_state_dict(weights)
    model.requires_grad_(way not in ("LoRA", "head only"))
    for block in model.blocks if way == "LoRA" else ():
        for path in layers:
            parent, _, name = path.rpartition(".")
            owner = block.get_submodule(parent)
            setattr(owner, name, lora(getattr(owner, name), rank, alpha=rank))
    model.head = head = nn.Linear(config.embed_dim, data.num_classes)
    nn.init.zeros_(head.weight)
    learning: list = [p for p in model.parameters() if p.requires_grad]
    num_trained = sum(p.numel() for p in learning)
    if way == "layer-wise":
        learning = groups_of(model, lr, options["decay"])
    start = LABELS * seed % (len(data.validation) // 2)  # the last ones are to choose with
    few = slice(start, start + count)  # a hundred: ten of each class
    images, labels = data.normalize(data.validation.images[few]), data.validation.labels[few]
    learner: nn.Module = model
    if way == "head only":  # frozen features are computed once
        learner, images = head, capture(model, images)["norm"][:, 0]
    fit_to(learner, images, labels, learning, lr, cut(STEPS, profile, 4), BATCH)
    return model.eval(), num_trained


def photographs(profile: Profile) -> Data:
    """Give the photographs: validation images to learn and to choose with, others to test on."""
    return load(DATA, limit=10, held_out=profile.pick(quick=200, laptop=2_000, gpu=2_000))


def test_accuracy(model: nn.Module, profile: Profile) -> float:
    """Give the share of the first test photographs that a model names right."""
    data, count = photographs(profile), cut(1_000, profile, 100)
    return accuracy_of(model, data.normalize(data.test.images[:count]), data.test.labels[:count])


def at_best_rate(rows: Iterable[Measurement]) -> dict[str, tuple[float, list[Measurement]]]:
    """Give way -> (its best rate, the rows there); the validation accuracy of seed 0 decides."""
    rows, best = list(rows), dict[str, Measurement]()
    for row in (row for row in rows if row.seed == 0):
        before = best.setdefault(way := row.settings["way"], row)
        best[way] = max(before, row, key=lambda one: one.results["validation_accuracy"])
    of_arm = {row.arm: [each for each in rows if each.arm == row.arm] for row in best.values()}
    return {way: (row.settings["lr"], of_arm[row.arm]) for way, row in best.items()}
