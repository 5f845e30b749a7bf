"""Can a network compare two distant places? One layer of attention against convolutions.

The cue-matching figure of notebook 06; the task and the networks stand in ``vitedu.vit_and_cnn``.
"""

import time

import torch
from torch import nn

from vitedu.bench.experiments import Arms, Profile, Results, cut
from vitedu.vit_and_cnn import CUE_DISTANCE, CellNetwork, accuracy_by_distance, draw_grids

DATA = "cells"  # of ``draw_grids``
ARMS: Arms = {
    "1 layer of attention": {"attention": 1, "convolutions": 0},
    "2 convolutions": {"attention": 0, "convolutions": 2},
    "4 convolutions": {"attention": 0, "convolutions": 4},
}


def train(arm: str, seed: int, steps: int) -> tuple[nn.Module, list[float]]:
    """Train one network, each batch drawn afresh, and give it with its accuracy by distance."""
    torch.manual_seed(seed)
    model = CellNetwork(**ARMS[arm])
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 3e-3, total_steps=steps)
    generator = torch.Generator().manual_seed(seed)
    alike = 1 / (2 * CUE_DISTANCE + 1)  # all distances count alike: there are 2 d + 1 cells each
    price = nn.BCEWithLogitsLoss(alike, pos_weight=torch.tensor(3.0))  # three say no for each yes
    for _ in range(steps):
        images, answers = draw_grids(64, generator)
        optimizer.zero_grad()
        price(model(images), answers).backward()
        optimizer.step()
        schedule.step()
    images, answers = draw_grids(1_000, torch.Generator().manual_seed(10_000))
    with torch.no_grad():
        return model, accuracy_by_distance(model.eval()(images), answers)


def run(arm: str, seed: int, profile: Profile) -> Results:
    """Train one network and say how often it is right at every distance from the cue."""
    started = time.process_time()
    model, accuracy = train(arm, seed, steps=cut(500, profile, 10))
    results: Results = {"parameters": sum(p.numel() for p in model.parameters())}
    results |= {f"distance {d}": round(value, 4) for d, value in enumerate(accuracy, start=1)}
    return results | {"cpu_seconds": round(time.process_time() - started, 1)}
