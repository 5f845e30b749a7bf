"""Our augmented batches beside a torchvision DataLoader's: ``vitedu bench data``.

Ours are made by the training process itself, whole batches at a time; theirs one image at a time in
worker processes, as most training scripts do. What is equal: the 32 px uint8 images, the batch,
normalised float32 at the end, crop with four reflected pixels and mirroring; with ``policy``, one
random operation for every image and CutMix for every batch.
"""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from statistics import median
from types import SimpleNamespace
from typing import Any

import torch

from vitedu.fitting.augmentation import augment
from vitedu.fitting.config import TrainConfig
from vitedu.fitting.evaluating import scaling
from vitedu.stopwatch import machine, median_speedup, seconds_in_turn, spread

NUM_CLASSES = 10
MEAN, STD = (0.49, 0.48, 0.45), (0.25, 0.24, 0.26)  # of CIFAR-10, about; any values cost the same
Batches = Iterator[tuple[torch.Tensor, torch.Tensor]]


def our_batches(
    images: torch.Tensor, labels: torch.Tensor, batch: int, generator: torch.Generator, policy: bool
) -> Batches:
    """Yield augmented batches as ``vitedu.fitting`` makes them; a short last one is left out.

    Images are (B, 3, H, W) float32, and labels (B,), or (B, K) with ``policy``.
    """
    share = float(policy)
    config = TrainConfig(policy_share=share, policy_strength=1.0, cutmix_share=share)
    scales = scaling(SimpleNamespace(mean=MEAN, std=STD), images.device)
    order = torch.randperm(len(images), generator=generator, device=generator.device)
    for chosen in order.to(images.device).split(batch)[: len(images) // batch]:
        y = labels[chosen]
        x, targets = augment(images[chosen], y, config, NUM_CLASSES, scales, generator)
        yield x, y if targets is None else targets


def make_batch(samples: list, transform: Callable, mix: Callable | None):
    """Transform images one by one, put them together, then mix; workers may need to pickle it."""
    done = [(transform(image), label) for image, label in samples]
    batch = torch.utils.data.default_collate(done)
    return mix(*batch) if mix else batch


def torchvision_loader(
    images: torch.Tensor, labels: torch.Tensor, batch: int, policy: bool, workers: int
) -> torch.utils.data.DataLoader:
    """Return a loader of the same batches, made with torchvision's transforms in its workers."""
    from torchvision.transforms import v2

    steps = [v2.RandomCrop(images.shape[-2:], padding=4, padding_mode="reflect")]
    steps += [v2.RandomHorizontalFlip(), *([v2.TrivialAugmentWide()] if policy else [])]
    steps += [v2.ToDtype(torch.float32, scale=True), v2.Normalize(MEAN, STD)]
    mix = v2.CutMix(num_classes=NUM_CLASSES) if policy else None
    together = partial(make_batch, transform=v2.Compose(steps), mix=mix)
    options: Any = {"num_workers": workers, "persistent_workers": workers > 0, "drop_last": True}
    data = torch.utils.data.TensorDataset(images, labels)
    return torch.utils.data.DataLoader(data, batch, shuffle=True, collate_fn=together, **options)


def bench_data(
    device: torch.device, num_images=8192, batch=128, rounds=7, workers=2
) -> dict[str, float]:
    """Time passes over random images, ours and torchvision's in turn, and print images per second.

    Our images lie on the device, and the loader's batches are moved there. A round is a pass.

    Returns:
        For each kind of batch how many times as fast as the loader ours are made.
    """
    if num_images < batch:
        raise ValueError(f"batch must be at most {num_images} images (got batch={batch}).")
    generator = torch.Generator().manual_seed(0)
    images = torch.randint(0, 256, (num_images, 3, 32, 32), dtype=torch.uint8, generator=generator)
    labels = torch.randint(0, NUM_CLASSES, (num_images,), generator=generator)
    here, draws = (images.to(device), labels.to(device)), torch.Generator(device).manual_seed(0)

    def pass_over(batches: Callable[[], Iterable]) -> Callable[[], None]:
        def run() -> None:
            for x, y in batches():
                x.to(device), y.to(device)

        return run

    pass_size = num_images // batch * batch
    print(f"{machine(device)}\n{pass_size} random 32 px images a pass, batch {batch}")
    print(f"batches made by                            images/s   (DataLoader: {workers} workers)")
    ratios = {}
    for kind, policy in (("crop, flip", False), ("crop, flip, policy, cutmix", True)):
        loader = torchvision_loader(images, labels, batch, policy, workers)
        ours = pass_over(partial(our_batches, *here, batch, draws, policy))
        work = {f"{kind}: vitedu": ours, f"{kind}: DataLoader": pass_over(loader.__iter__)}
        times = seconds_in_turn(work, rounds, device, warmup=1)
        for name, seconds in times.items():
            print(f"{name:<40}{pass_size / median(seconds):>11,.0f} ±{spread(seconds):>4.0%}")
        ratios[kind] = median_speedup(times, *work)
        print(f"{kind}: {ratios[kind]:.1f} x the DataLoader's rate")
    return ratios
