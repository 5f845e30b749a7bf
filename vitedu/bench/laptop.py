"""The course's small model on a laptop: ``vitedu bench laptop``; with a neighbour: ``--busy``."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from statistics import fmean

from vitedu.data import load_data
from vitedu.fitting import TrainConfig
from vitedu.fitting.recipes import RECIPES
from vitedu.fitting.runs import train
from vitedu.stopwatch import machine

PRESET = "vit_micro_patch8_32"


def bench_laptop(
    seeds: list[int], device: str, *, busy: bool = False, config: TrainConfig | None = None
) -> None:
    """Train the course's small preset on the drawn shapes once a seed and print what each reached.

    A seed draws the starting weights, the order and the augmentation; the images are the same.

    Args:
        seeds: at least one.
        device: where to train.
        busy: train for two epochs only, and then again beside one busy process.
        config: how to train; the preset's recipe if None.
    """
    shorter = {"epochs": 2, "clean_epochs": 0} if busy else {}
    config = config or replace(RECIPES[PRESET], **shorter)
    data = load_data("shapes")
    print(f"{machine(device)}\n{PRESET} on {data}, {config.epochs} epochs")
    print(" seed  test accuracy  seconds" + "  beside a busy process  ratio" * busy, flush=True)
    rows = []
    for seed in seeds:
        own = replace(config, device=device, seed=seed)
        result = train(data, PRESET, own)
        row = [result.test_accuracy, result.history.seconds]
        if busy:
            with busy_process():
                beside = train(data, PRESET, own).history
            row += [beside.seconds, beside.seconds / row[1]]
        if result.history.interrupted or busy and beside.interrupted:
            raise KeyboardInterrupt
        rows.append(row)
        print(f"{seed:5d}  {row_text(row)}", flush=True)
    print(f" mean  {row_text([fmean(column) for column in zip(*rows, strict=True)])}")


def row_text(row: list[float]) -> str:
    """Write accuracy and seconds, and the seconds beside a process with the ratio if there."""
    more = f"  {row[2]:21.1f}  {row[3]:5.2f}" if len(row) > 2 else ""
    return f"{row[0]:13.1%}  {row[1]:7.1f}{more}"


@contextmanager
def busy_process() -> Iterator[None]:
    """Keep one core busy with another process while the block runs."""
    process = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        yield
    finally:
        process.kill()
        process.wait()
