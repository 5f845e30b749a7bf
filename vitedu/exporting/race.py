"""The race: how good does ``my_vit.py`` become within a fixed budget? ``vitedu race my_vit.py``.

Role: trains a student's file by its own loop until a budget of multiply-accumulates is spent,
measures it on the test photographs, and writes one line; a folder of lines becomes a table. Every
product is counted by torch, in the model, its gradients and its optimizer. It runs the file, so it
is for a file of one's own.
"""

import datetime
import getpass
import json
import time
from pathlib import Path
from types import ModuleType

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode

from vitedu.data import load_data
from vitedu.exporting.importing import load_file

BUDGET = 6.5e12  # multiply-accumulates: enough for two epochs of the textbook model


class BudgetSpentError(Exception):
    """The budget of products is used up."""


class Budget(TorchDispatchMode):
    """End the run when a counter has counted too many products."""

    def __init__(self, counter: FlopCounterMode, macs: float):
        super().__init__()
        self.counter, self.macs = counter, macs

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if self.counter.get_total_flops() // 2 >= self.macs:
            raise BudgetSpentError
        return func(*args, **(kwargs or {}))


def race(
    path: Path, *, budget: float | None = None, name: str | None = None, out: Path | None = None
) -> dict:
    """Train the file within a budget, measure it, and append a line to ``out``.

    Args:
        path: the file, with ``ViTConfig``, ``VisionTransformer``, ``normalise_pixels`` and
            ``train_and_measure`` as ``vitedu export`` writes them. ``EPOCHS``, if it is there, is
            how many epochs this is told; else two.
        budget: multiply-accumulates; default ``BUDGET``.
        name: whose it is; default the login.
        out: default ``race.jsonl`` beside the file.

    Raises:
        ValueError: the file lacks a name.
    """
    budget = budget or BUDGET
    out = out or Path(path).with_name("race.jsonl")
    module = load_file(Path(path))
    needed = "ViTConfig", "VisionTransformer", "normalise_pixels", "train_and_measure"
    if missing := [each for each in needed if not hasattr(module, each)]:
        raise ValueError(f"{path} lacks {', '.join(missing)}; vitedu export writes a whole file.")
    data, start = load_data("cifar10"), time.perf_counter()
    torch.manual_seed(0)
    model = module.VisionTransformer(module.ViTConfig())
    counter, epochs = FlopCounterMode(display=False), getattr(module, "EPOCHS", 2)
    try:
        with counter, Budget(counter, budget):
            module.train_and_measure(model, data.train.images, data.train.labels, epochs)
    except BudgetSpentError:
        print("The budget is spent; the weights stay as they are now.")
    line = {
        "name": name or getpass.getuser(),
        "accuracy": _accuracy(model.eval(), module, data.test),
        "macs": counter.get_total_flops() // 2,
        "budget": budget,
        "parameters": sum(weight.numel() for weight in model.parameters()),
        "seconds": round(time.perf_counter() - start),
        "date": datetime.date.today().isoformat(),
    }
    with out.open("a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")
    return line


@torch.no_grad()
def _accuracy(model: torch.nn.Module, module: ModuleType, split) -> float:
    parts = zip(split.images.split(500), split.labels.split(500), strict=True)
    right = sum(
        (model(module.normalise_pixels(x)).argmax(dim=1) == y).sum().item() for x, y in parts
    )
    return right / len(split.labels)


def race_table(folder: Path) -> str:
    """Write the best line of everybody and each budget in a folder, the best first."""
    best: dict[tuple[str, float], dict] = {}
    for path in sorted(Path(folder).rglob("*.jsonl")):
        for line in map(json.loads, path.read_text(encoding="utf-8").splitlines()):
            key = line["name"], line["budget"]
            if key not in best or line["accuracy"] > best[key]["accuracy"]:
                best[key] = line
    if not best:
        raise ValueError(f"no line of a race in {folder}; vitedu race my_vit.py writes one.")
    rows = [f"{'place':>5}  {'name':<20}{'accuracy':>9}{'of 1e12 MACs':>14}{'parameters':>12}"]
    for place, line in enumerate(sorted(best.values(), key=lambda x: -x["accuracy"]), start=1):
        spent = f"{line['macs'] / 1e12:.2f} of {line['budget'] / 1e12:g}"
        rows.append(
            f"{place:>5}  {line['name']:<20}{line['accuracy']:>9.1%}{spent:>14}"
            f"{line['parameters']:>12,}"
        )
    return "\n".join(rows)
