"""How many answers change when the hottest patches of a map are blanked? Nothing is trained.

Notebook 05, sections 3 to 5. The arms are shipped models. Each seed takes a thousand test
photographs of its own, and draws the random patches and classes.
"""

import torch

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

ARMS: Arms = {
    "4 blocks": {"model": "vit_pico_patch4_32.cifar10"},
    "6 blocks": {"model": "vit_tiny_patch4_32.cifar10"},
}
COUNTS = (1, 4, 16)  # blanked patches, of 64
DRAWS = 20  # of the nulls of the lens


def run(arm: str, seed: int, profile: Profile) -> Results:
    """Give shares of answers that change, {"relevance, 4 of 64": ...}, and what the lens named."""
    data, count = images(profile, 10, (64, 50)), cut(1_000, profile, 16)
    part = slice(seed * count, (seed + 1) * count)
    photos, labels = data.normalize(data.test.images[part]), data.test.labels[part]
    model = load_pretrained(look_up(arm, ARMS)["model"])
    torch.manual_seed(seed)
    results = {}
    for name, scores in orders_of(model, photos).items():
        shares = answers_changed(model, photos, scores, COUNTS)
        for number, share in zip(COUNTS, shares, strict=True):
            results[f"{name}, {number} of 64"] = round(share, 4)
    return results | right_on_the_way(model, photos, labels)


def orders_of(model: VisionTransformer, photos: torch.Tensor) -> dict[str, torch.Tensor]:
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


def right_on_the_way(model: VisionTransformer, photos, labels: torch.Tensor) -> Results:
    """Give the share of mistakes whose class the lens named earlier, and what two nulls give.

    One null puts a random other class in the place of the truth, neither the truth nor the answer;
    the other exchanges the true classes among the mistakes.
    """
    tensors = capture(model, photos)
    layers = [tensors[f"blocks.{i}"] for i in range(model.config.depth)]
    with torch.no_grad():
        said = logit_lens(layers, model.norm, model.head).argmax(dim=-1)  # (L, n)
    missed = said[-1] != labels
    said, truth, K = said[:, missed], labels[missed], model.config.num_classes

    def named(classes: torch.Tensor) -> float:
        return (said[:-1] == classes).any(dim=0).double().mean().item()

    excluded = torch.zeros(len(truth), K).scatter(1, torch.stack([truth, said[-1]], dim=1), 1.0)
    others = [torch.multinomial(1 - excluded, 1)[:, 0] for _ in range(DRAWS)]
    exchanged = [truth[torch.randperm(len(truth))] for _ in range(DRAWS)]
    results = {"mistakes right earlier": named(truth)}
    for name, draws in (("another class", others), ("classes exchanged", exchanged)):
        results[f"null, {name}"] = sum(map(named, draws)) / DRAWS
    return {name: round(value, 4) for name, value in results.items()}
