"""The course's small model on a laptop: ``vitedu bench laptop``; with a neighbour: ``--busy``."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from statistics import fmean

import torch

from vitedu.data import load_data
from vitedu.fitting import TrainConfig
from vitedu.fitting.recipes import RECIPES
from vitedu.fitting.runs import train
from vitedu.stopwatch import machine

PRESET = "vit_micro_patch8_32"


def bench_laptop(
    seeds: list[int], device: torch.device, busy: bool = False, config: TrainConfig | None = None
) -> None:
    """Train the course's small preset on the drawn shapes once a seed and print what each reached.

    A seed draws the starting weights, the order and the augmentation; the images are the same.
    ``busy``: two epochs only, and then again beside one busy process. ``config``: another recipe.
    """
    config = config or RECIPES[PRESET]
    config = replace(config, epochs=min(config.epochs, 2), clean_epochs=0) if busy else config
    data = load_data("shapes")
    print(f"{machine(device)}\n{PRESET} on {data}, {config.epochs} epochs")
    print(" seed  test accuracy  seconds" + "   busy  ratio" * busy)
    form = "  {:13.1%}  {:7.1f}" + "  {:5.1f}  {:5.2f}" * busy
    rows = []
    for seed in seeds:
        own = replace(config, device=str(device), seed=seed)
        results = [train(data, PRESET, own)]
        if busy:
            with busy_process():
                results.append(train(data, PRESET, own))
        if any(result.history.interrupted for result in results):
            raise KeyboardInterrupt
        seconds = [result.history.seconds for result in results]
        rows.append([results[0].test_accuracy, *seconds, seconds[-1] / seconds[0]])
        print(f"{seed:5d}" + form.format(*rows[-1]), flush=True)
    print(" mean" + form.format(*map(fmean, zip(*rows, strict=True))))


@contextmanager
def busy_process() -> Iterator[None]:
    """Keep one core busy with another process while the block runs."""
    process = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        yield
    finally:
        process.kill()
        process.wait()
