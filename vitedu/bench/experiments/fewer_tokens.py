"""What is left of a trained model when tokens leave on the way, and when weights have fewer bits?

Sections 4 to 6 of notebook 08: ``vit_tiny_patch4_32`` with its shipped weights, nothing trained
anew, on the first 2,000 test photographs. Arms of one plan have the same number of tokens in every
block, so the same multiply-accumulates.
"""

from functools import partial
from typing import Any

import torch

from vitedu.bench.experiments import DATA, Arms, Data, Profile, Results, cut, load
from vitedu.efficient import Step, forward_with, merge_tokens, prune_tokens, quantised
from vitedu.pretrained import load_pretrained

NAME = "vit_tiny_patch4_32.cifar10"
PLANS = {  # how many tokens leave in each of the six blocks
    "4 in every block": [4] * 6,
    "8 in every block": [8] * 6,
    "10 in every block": [10, 10, 10, 10, 10, 7],
    "16 to 4": [16, 12, 10, 8, 6, 4],
    "32 at once": [32, 0, 0, 0, 0, 0],
}
WAYS = ("merged", "least attended", "at random")
ARMS: Arms = {
    "whole": {},
    **{f"{way}, {name}": {"way": way, "plan": PLANS[name]} for name in PLANS for way in WAYS},
    "most attended, 8 in every block": {"way": "most attended", "plan": [8] * 6},
    "merged, 8 in every block, sizes ignored": {"way": "sizes ignored", "plan": [8] * 6},
    **{f"{bits} bits": {"bits": bits} for bits in (8, 4, 3, 2)},
}


def leaving(way: str, plan: list[int]) -> Step:
    """Make the step of ``forward_with`` in which plan[i] tokens leave in block i."""

    def shorten(i, x, looks, keys, sizes):
        if way in ("merged", "sizes ignored"):
            x, sizes = merge_tokens(x, keys, sizes, plan[i])
            return x, sizes if way == "merged" else torch.ones_like(sizes)
        scores = {"least attended": looks, "most attended": -looks}.get(way)
        scores = torch.rand_like(looks) if scores is None else scores
        x = prune_tokens(x, scores, looks.shape[1] - plan[i])
        return x, sizes[:, : x.shape[1]]

    return shorten


@torch.no_grad()
def share_right(answer: Any, data: Data, count: int) -> float:
    """Give the share of the first test photographs that a function (images -> logits) names."""
    parts = data.test.images[:count].split(250)
    said = torch.cat([answer(data.normalize(part)).argmax(dim=-1) for part in parts])
    return (said == data.test.labels[:count]).sum().item() / count


def run(arm: str, seed: int, profile: Profile) -> Results:
    """Measure one way; the seed draws who leaves by chance."""
    count, settings = cut(2_000, profile, 50), ARMS[arm]
    data, model = load(DATA, limit=10, held_out=count), load_pretrained(NAME).eval()
    torch.manual_seed(seed)
    answer: Any = quantised(model, settings["bits"]) if "bits" in settings else model
    if "plan" in settings:
        answer = partial(forward_with, model, shorten=leaving(**settings))
    return {"images": count, "test_accuracy": share_right(answer, data, count)}
