"""What accuracies on photographs can be compared with, read from what comes with the package.

Role: ``horizons``. Not here: the runs (``vitedu bench experiments horizons``; the shipped model's
command stands in its record), the lines in figures (``plots.training``).
"""

import json
from pathlib import Path
from statistics import fmean

from vitedu.data.loading import Data

PACKAGE = Path(__file__).parents[1]
ROWS = "bench/experiments/horizons.jsonl"
RECORD = "pretrained/vit_pico_patch4_32.cifar10/config.json"


def horizons(data: Data | str) -> dict[str, float]:
    """Give accuracies on test images that a run on these images can be compared with.

    Only ``"cifar10"`` has any, for numbers of other images would mislead: a linear layer, a small
    CNN, the shipped textbook model. They are means over seeds, in [0, 1], by what they are.

    Example:
        >>> horizons("shapes")
        {}
    """
    name = data if isinstance(data, str) else data.name
    accuracies: dict[str, list[float]] = {}
    for line in (PACKAGE / ROWS).read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        if row["data"] == name:
            accuracies.setdefault(row["arm"], []).append(row["results"]["test_accuracy"])
    record = json.loads((PACKAGE / RECORD).read_text(encoding="utf-8"))
    if record["data"]["name"] == name:
        shipped = record["shipped"]
        accuracies[f"vit_pico, {shipped['epochs']} epochs"] = [shipped["accuracy"]]
    return {what: fmean(values) for what, values in accuracies.items()}
