"""Our augmented batches beside a torchvision DataLoader's: ``vitedu bench data``.

Role: make batches of the same 32 px uint8 images both ways, in turn, and print images per second.
Ours are made by the training process itself, whole batches at a time; theirs one image at a time in
worker processes, as most training scripts do. Not here: training.

What is equal: the images, the batch, normalised float32 at the end, crop with four reflected pixels
and mirroring; with ``policy``, one random operation for every image and CutMix for every batch.
"""

import statistics
from collections.abc import Callable, Iterator
from pathlib import Path

import torch

from vitedu.stopwatch import machine, median_speedup, seconds_in_turn, spread, write_json
from vitedu.fitting.augmenting import augment
from vitedu.fitting.config import TrainConfig
from vitedu.fitting.evaluating import Statistics, scaling

NUM_CLASSES = 10
MEAN, STD = (0.49, 0.48, 0.45), (0.25, 0.24, 0.26)  # of CIFAR-10, about; any values cost the same
PLAIN = TrainConfig()  # crops and mirroring
WITH_POLICY = TrainConfig(policy_share=1.0, policy_strength=1.0, cutmix_share=1.0)
Batches = Iterator[tuple[torch.Tensor, torch.Tensor]]


def our_batches(
    images: torch.Tensor, labels: torch.Tensor, batch: int, generator: torch.Generator, policy: bool
) -> Batches:
    """Yield augmented batches as ``vitedu.fitting`` makes them.

    Args:
        images: (N, 3, H, W) uint8, on the device.
        labels: (N,) int64.
        batch: B; a short last batch is left out.
        generator: the source of all draws.
        policy: whether to add one operation an image, and CutMix.

    Yields:
        Images (B, 3, H, W) float32 and labels (B,), or (B, K) with ``policy``.
    """
    config = WITH_POLICY if policy else PLAIN
    scales = scaling(Statistics(torch.tensor(MEAN), torch.tensor(STD)), images.device)
    order = torch.randperm(len(images), generator=generator, device=generator.device)
    for start in range(0, len(images) - batch + 1, batch):
        chosen = order[start : start + batch].to(images.device)
        x, y = images[chosen], labels[chosen]
        x, targets = augment(x, y, config, NUM_CLASSES, scales, generator)
        yield x, y if targets is None else targets


class AugmentedImages(torch.utils.data.Dataset):
    """Images (N, 3, H, W) and labels (N,); a transform is applied when an image is asked for."""

    def __init__(self, images: torch.Tensor, labels: torch.Tensor, transform: Callable):
        self.images, self.labels, self.transform = images, labels, transform

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, i: int) -> tuple[torch.Tensor, int]:
        return self.transform(self.images[i]), int(self.labels[i])


def torchvision_loader(
    images: torch.Tensor, labels: torch.Tensor, batch: int, policy: bool, workers: int
) -> torch.utils.data.DataLoader:
    """Return a loader of the same batches, made image by image with torchvision's transforms.

    Its workers start once and stay. CutMix, which needs the whole batch, runs where the batch is
    put together: in a worker.
    """
    from torchvision.transforms import v2

    transform = v2.Compose(
        [
            v2.RandomCrop(images.shape[-2:], padding=4, padding_mode="reflect"),
            v2.RandomHorizontalFlip(),
            *([v2.TrivialAugmentWide()] if policy else []),
            v2.ToDtype(torch.float32, scale=True),
            v2.Normalize(MEAN, STD),
        ]
    )
    collate = torch.utils.data.default_collate
    return torch.utils.data.DataLoader(
        AugmentedImages(images, labels, transform),
        batch_size=batch,
        shuffle=True,
        drop_last=True,
        num_workers=workers,
        persistent_workers=workers > 0,
        collate_fn=MixedBatch(v2.CutMix(num_classes=NUM_CLASSES)) if policy else collate,
    )


class MixedBatch:
    """Put samples together, then mix the batch; a class, since workers may need to pickle it."""

    def __init__(self, mix: Callable):
        self.mix = mix

    def __call__(self, samples: list) -> tuple[torch.Tensor, torch.Tensor]:
        return self.mix(*torch.utils.data.default_collate(samples))


def bench_data(
    device: torch.device,
    *,
    num_images: int = 8192,
    batch: int = 128,
    rounds: int = 7,
    workers: int = 2,
    json: Path | None = None,
) -> dict[str, float]:
    """Time passes over random images, ours and torchvision's in turn, and print images per second.

    Args:
        device: where our images lie and our batches are made. The loader's batches are moved there.
        num_images: in one pass, at least one batch.
        batch: B.
        rounds: passes that are counted.
        workers: processes of the loader.
        json: where to write all figures.

    Returns:
        For each kind of batch how many times as fast as the loader ours are made.
    """
    if num_images < batch:
        raise ValueError(
            f"num_images must fill one batch (got num_images={num_images}, batch={batch})."
        )
    generator = torch.Generator().manual_seed(0)
    images = torch.randint(0, 256, (num_images, 3, 32, 32), dtype=torch.uint8, generator=generator)
    labels = torch.randint(0, NUM_CLASSES, (num_images,), generator=generator)
    here = images.to(device), labels.to(device)
    draws = torch.Generator(device).manual_seed(0)

    def pass_over(batches: Callable[..., Batches], *args) -> Callable[[], None]:
        def run() -> None:
            for x, y in batches(*args):
                x.to(device), y.to(device)

        return run

    work = {}
    for kind, policy in (("crop, flip", False), ("crop, flip, policy, cutmix", True)):
        loader = torchvision_loader(images, labels, batch, policy, workers)
        work[f"{kind}: vitedu"] = pass_over(our_batches, *here, batch, draws, policy)
        work[f"{kind}: DataLoader"] = pass_over(loader.__iter__)
    times = seconds_in_turn(work, rounds, device, warmup=1)

    seen = num_images // batch * batch
    rates = {name: seen / statistics.median(seconds) for name, seconds in times.items()}
    kinds = dict.fromkeys(name.split(":")[0] for name in work)
    ratios = {
        kind: median_speedup(times, f"{kind}: vitedu", f"{kind}: DataLoader") for kind in kinds
    }
    print(f"{machine(device)}\n{seen} random 32 px images a pass, batch {batch}")
    print(f"batches made by                            images/s   (DataLoader: {workers} workers)")
    for name, rate in rates.items():
        print(f"{name:<40}{rate:>11,.0f} ±{spread(times[name]):>4.0%}")
    for kind, ratio in ratios.items():
        print(f"{kind}: {ratio:.1f} x the DataLoader's rate")
    record = {"machine": machine(device), "workers": workers, "images_per_second": rates}
    write_json(json, {**record, "ratios": ratios, "seconds": times})
    return ratios
