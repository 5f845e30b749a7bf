"""What is a label worth? Frozen features and a linear layer, from 10 labels to 4,000.

The end of notebook 07. All encoders have the shape of ``vit_pico_patch4_32``. "dino" and "masked"
learned from 45,000 photographs without a label; "supervised" saw all 45,000 labels, so it is no
rival but a horizon. Each seed draws photographs of its own, and the weights of "untrained".
"""

from collections.abc import Callable, Sequence

import torch
from torch import nn

from vitedu.bench.experiments import Arms, Data, Measurement, Profile, Results, by_arm
from vitedu.bench.experiments.less_data import draw, photographs
from vitedu.extras.options import build_model, preset
from vitedu.inside import probe_accuracy
from vitedu.pretrained import load_pretrained
from vitedu.pretrained.reading import shipped_models

PRESET = "vit_pico_patch4_32"
WITHOUT_LABELS = {  # "dino" -> the model's name
    name.split("_")[2]: name for name, record in shipped_models().items() if not record["labels"]
}
SUPERVISED = f"{PRESET}.cifar10"
ARMS: Arms = {
    "pixels": {},
    "untrained": {"model": PRESET},
    **{arm: {"model": name} for arm, name in WITHOUT_LABELS.items()},
    "supervised": {"model": SUPERVISED},
}
COUNTS = (10, 40, 400, 4_000)  # labels
Reader = Callable[[torch.Tensor], torch.Tensor]


def run(arm: str, seed: int, profile: Profile) -> Results:
    """Give the test accuracy for each number of labels: {"40 labels": ...}."""
    found = probe(encoder(arm, seed), photographs(profile), seed)
    return {f"{count:,} labels": round(value, 4) for count, value in found.items()}


def encoder(arm: str, seed: int) -> Reader:
    """Give what maps normalised images (n, 3, 32, 32) to features (n, D)."""
    if arm == "pixels":
        return lambda images: images.flatten(1)
    torch.manual_seed(seed)
    name = ARMS[arm]["model"]
    model = load_pretrained(name) if name.endswith(".cifar10") else build_model(preset(name))
    model.head = nn.Identity()  # type: ignore[assignment]
    return model.eval()


@torch.no_grad()
def features_of(read: Reader, images: torch.Tensor, data: Data) -> torch.Tensor:
    """Give the features (n, D) of uint8 images (n, 3, 32, 32)."""
    return torch.cat([read(data.normalize(part)) for part in images.split(500)])


def probe(read: Reader, data: Data, seed: int) -> dict[int, float]:
    """Fit a linear layer to the frozen features of so many photographs each: {count: accuracy}."""
    few = draw(data.train, min(max(COUNTS), len(data.train) // 2), seed)
    known, new = (features_of(read, split.images, data) for split in (few, data.test))
    return {n: probe_accuracy(known[:n], few.labels[:n], new, data.test.labels) for n in COUNTS}


def by_count(rows: Sequence[Measurement]) -> dict[str, dict[int, list[float]]]:
    """Give arm -> {number of labels: test accuracies in %, one a seed}, as ``ARMS`` lists them."""
    found = {count: by_arm(rows, f"{count:,} labels", 100) for count in COUNTS}
    return {arm: {count: found[count][arm] for count in COUNTS} for arm in ARMS}
