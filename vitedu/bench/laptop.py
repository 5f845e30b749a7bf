"""The course's small model on a laptop: ``vitedu bench laptop``, and with a neighbour: ``--busy``.

Role: run what a claim needs and print the figures with all that belongs beside them. Not here: the
loop, the recipes.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from statistics import fmean

import torch

from vitedu.stopwatch import machine
from vitedu.data import Data, load_data
from vitedu.fitting import TrainConfig
from vitedu.fitting.recipes import RECIPES
from vitedu.fitting.runs import train

LAPTOP_PRESET = "vit_micro_patch8_32"
LAPTOP_ACCURACY = 0.85  # of the test images, mean over seeds
LAPTOP_SECONDS = 120.0  # of training, mean over seeds, on two CPU cores
BUSY_RATIO = (
    2.5  # seconds of training beside one busy process over seconds without, mean over seeds
)
BUSY_EPOCHS = 2


def bench_laptop(
    seeds: list[int],
    device: str = "cpu",
    precision: str = "auto",
    config: TrainConfig | None = None,
) -> bool:
    """Train the course's small preset on the drawn shapes once a seed and print what each reached.

    A seed draws the starting weights, the order and the augmentation; the images are the same.

    Args:
        seeds: at least one.
        device: where to train.
        precision: of matrix products; "auto" asks the hardware.
        config: how to train; the preset's recipe if None.

    Returns:
        Whether the means meet ``LAPTOP_ACCURACY`` and ``LAPTOP_SECONDS``.
    """
    config = replace(config or RECIPES[LAPTOP_PRESET], device=device, precision=precision)
    data = load_data("shapes")
    print(f"{LAPTOP_PRESET} on {data}")
    print(
        f"{config.epochs} epochs, batch {config.batch_size}, peak lr {config.lr:g}, "
        f"{torch.get_num_threads()} CPU threads"
    )
    print(" seed  device  precision  train acc  val acc  test acc  seconds  images/s", flush=True)
    rows = []
    for seed in seeds:
        result = train(data, LAPTOP_PRESET, replace(config, seed=seed))
        history = result.history
        if history.interrupted:
            raise KeyboardInterrupt
        speed = config.epochs * len(data.train) / history.seconds
        rows.append((result.test_accuracy, history.seconds, speed))
        last = history.rows[-1]
        print(
            f"{seed:5d}  {history.device:<6}  {history.precision:<9}  {last.train_accuracy:9.1%}  "
            f"{last.validation_accuracy:7.1%}  {result.test_accuracy:8.1%}  "
            f"{history.seconds:7.1f}  {speed:8.0f}",
            flush=True,
        )
    accuracy, seconds, speed = (sum(column) / len(rows) for column in zip(*rows, strict=True))
    print(f" mean{'':40}{accuracy:8.1%}  {seconds:7.1f}  {speed:8.0f}")
    is_met = accuracy >= LAPTOP_ACCURACY and seconds <= LAPTOP_SECONDS
    print(
        f"aim: at least {LAPTOP_ACCURACY:.0%} on the test images within {LAPTOP_SECONDS:.0f} s of "
        f"training: {'met' if is_met else 'not met'}"
    )
    return is_met


def bench_busy(seeds: list[int], config: TrainConfig | None = None) -> bool:
    """Train for a few epochs on a quiet CPU and beside one busy process, in turn, and print both.

    Args:
        seeds: one pair of runs each; at least one.
        config: how to train; ``BUSY_EPOCHS`` epochs of the preset's recipe if None.

    Returns:
        Whether the mean ratio of busy to quiet seconds is at most ``BUSY_RATIO``.
    """
    config = config or replace(RECIPES[LAPTOP_PRESET], epochs=BUSY_EPOCHS, clean_epochs=0)
    config = replace(config, device="cpu")
    data = load_data("shapes")
    names = ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY", "OMP_NUM_THREADS")
    settings = ", ".join(f"{name}={os.environ[name]}" for name in names if name in os.environ)
    print(f"{LAPTOP_PRESET} on {data}, {config.epochs} epochs")
    print(f"{machine('cpu')}; {settings or 'no setting of OpenMP'}")
    print(" seed  quiet, seconds  busy, seconds  ratio", flush=True)
    ratios = []
    for seed in seeds:
        quiet = _training_seconds(data, replace(config, seed=seed))
        with busy_process():
            busy = _training_seconds(data, replace(config, seed=seed))
        ratios.append(busy / quiet)
        print(f"{seed:5d}  {quiet:14.1f}  {busy:13.1f}  {ratios[-1]:5.2f}", flush=True)
    is_met = fmean(ratios) <= BUSY_RATIO
    print(f" mean{'':33}{fmean(ratios):5.2f}")
    print(f"aim: at most {BUSY_RATIO:g}: {'met' if is_met else 'not met'}")
    return is_met


@contextmanager
def busy_process() -> Iterator[None]:
    """Keep one core busy with another process while the block runs."""
    process = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        yield
    finally:
        process.kill()
        process.wait()


def _training_seconds(data: Data, config: TrainConfig) -> float:
    history = train(data, LAPTOP_PRESET, config).history
    if history.interrupted:
        raise KeyboardInterrupt
    return history.seconds
