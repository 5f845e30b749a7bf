"""How many answers change when the hottest patches of a map are blanked? Nothing is trained.

Notebook 05, sections 3 and 5. The second arm asks what the logit lens named before a mistake. Each
seed takes test photographs of its own, and draws the random patches.
"""

import torch
from torch import Tensor

from vitedu.bench.experiments import Arms, Profile, Results, cut, images, look_up
from vitedu.inside import (
    answers_changed,
    edges_by_patch,
    falls_by_patch,
    logit_lens,
    maps_of,
    nearness_to_middle,
)
from vitedu.pretrained import load_pretrained
from vitedu.vit import VisionTransformer, capture

SHIPPED = "vit_pico_patch4_32.cifar10"
ARMS: Arms = {"4 blocks": {"model": SHIPPED}, "lens": {"model": SHIPPED, "photographs": 3_000}}
COUNTS = (1, 4, 16)  # blanked patches, of 64


def run(arm: str, seed: int, profile: Profile) -> Results:
    """Give shares of answers that change, {"relevance, 4 of 64": ...}, or what the lens named."""
    settings = look_up(arm, ARMS)
    data, count = images(profile, 10, (64, 50)), settings.get("photographs", 1_000)
    count = cut(count, profile, 16)
    part = slice(seed * count, (seed + 1) * count)
    photos, labels = data.normalize(data.test.images[part]), data.test.labels[part]
    model = load_pretrained(settings["model"])
    if arm == "lens":
        return right_on_the_way(model, photos, labels)
    torch.manual_seed(seed)
    results = {}
    for name, scores in orders_of(model, photos).items():
        shares = answers_changed(model, photos, scores, COUNTS)
        for number, share in zip(COUNTS, shares, strict=True):
            results[f"{name}, {number} of 64"] = round(share, 4)
    return results


def orders_of(model: VisionTransformer, photos: Tensor) -> dict[str, Tensor]:
    """Give every rule that chooses patches: (n, gh, gw), the largest value first."""
    grid, parts = model.config.grid_size, photos.split(250)
    found = [maps_of(model, part) for part in parts]
    maps = {name: torch.cat([each[name] for each in found]) for name in found[0]}
    return {
        **maps,
        "exact blanking": torch.stack([falls_by_patch(model, photo, grid) for photo in photos]),
        "relevance of another photograph": maps["relevance"].roll(1, dims=0),
        "edges": edges_by_patch(photos, grid),
        "middle": nearness_to_middle(grid).expand(len(photos), *grid),
        "at random": torch.rand(len(photos), *grid),
        "coldest, rollout": -maps["rollout"],
        "coldest, relevance": -maps["relevance"],
    }


def right_on_the_way(model: VisionTransformer, photos: Tensor, labels: Tensor) -> Results:
    """Give the share of mistakes whose class the lens named earlier, and what two nulls give.

    A null puts another class in the place of the truth: one drawn at random, or the true class of
    another mistake; never the truth itself, and never the answer, which the truth was not either.
    """
    said = torch.cat([said_after_blocks(model, part) for part in photos.split(250)], dim=1)
    missed = said[-1] != labels
    said, truth = said[:, missed], labels[missed]  # (L, n), (n,)
    named = torch.stack([(said[:-1] == k).any(dim=0) for k in range(model.config.num_classes)], 1)
    frequent = truth.bincount(minlength=named.shape[1]).expand(named.shape).double()
    frequent = frequent.scatter(1, torch.stack([truth, said[-1]], dim=1), 0.0)

    def share(chances: Tensor) -> float:
        """Give the expected share of mistakes that are named, from the chance of each class."""
        return round((named * chances / chances.sum(dim=1, keepdim=True)).sum(1).mean().item(), 4)

    return {
        "mistakes": len(truth),
        "mistakes right earlier": round(named[range(len(truth)), truth].double().mean().item(), 4),
        "null, random class": share((frequent > 0).double()),
        "null, class of another mistake": share(frequent),
    }


@torch.no_grad()
def said_after_blocks(model: VisionTransformer, photos: Tensor) -> Tensor:
    """Give the answers of the logit lens after every block, (L, n)."""
    tensors = capture(model, photos)
    layers = [tensors[f"blocks.{i}"] for i in range(model.config.depth)]
    return logit_lens(layers, model.norm, model.head).argmax(dim=-1)
