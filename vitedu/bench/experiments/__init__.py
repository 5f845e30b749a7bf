"""Experiments that a notebook quotes but does not wait for: ``vitedu bench experiments NAME``.

Each experiment is a module of this folder with a table ``ARMS``, arm -> settings, and
``run(arm, seed, profile) -> Results``, which many get from ``training``. The lines that notebooks
show lie beside it as ``<name>.jsonl``; ``measured(name)`` reads them. Here stands what experiments
share: images, training with ``fit`` and measuring, and runs of all arms, each a line of JSON. A run
that was stopped goes on: what stands in the file is not run again.

Every line names its data. A module that runs on other data than ``DATA`` has a ``DATA`` of its own.
"""

import importlib
import itertools
import json
import platform
import shlex
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from importlib import metadata
from pathlib import Path
from statistics import fmean
from types import ModuleType
from typing import Any

import torch
from torch import nn

from vitedu import __version__
from vitedu.data import Data, load_data
from vitedu.data.loading import Split
from vitedu.data.shapes import draw_shapes
from vitedu.fitting import TrainConfig, fit
from vitedu.fitting.evaluating import measure
from vitedu.ground.hardware import Profile, pick_device
from vitedu.ground.stopwatch import machine

FOLDER = Path(__file__).parent
DATA = "cifar10"  # what experiments run on
load = cache(load_data)
Settings = dict[str, Any]  # in what JSON can hold
Arms = dict[str, Settings]  # name -> settings
Results = dict[str, Any]  # numbers, and facts in words such as the precision in use
COLUMNS = "parameters train_accuracy test_accuracy cpu_seconds"
REMEDY = "Remove the line to measure it again."


def cut(size: int, profile: Profile, quick: int) -> int:
    """Give a size, in the quick profile at most ``quick``."""
    return min(size, quick) if profile.name == "quick" else size


def images(profile: Profile, count: int | None, quick: tuple[int, int], name: str = DATA) -> Data:
    """Load images once: ``count`` to learn from; ``quick`` says how many, and how many others."""
    limit, held_out = quick if profile.name == "quick" else (count, None)
    return load(name, limit=limit, held_out=held_out)


@cache
def drawings(count: int, stream: int) -> tuple[torch.Tensor, ...]:
    """Draw images, labels and masks, once: stream 0 to learn from, stream 2 to test on."""
    return tuple(map(torch.from_numpy, draw_shapes(count, seed=0, stream=stream)))


def look_up(arm: str, arms: Arms) -> Settings:
    """Give the settings of an arm; a ValueError lists the choices."""
    if arm not in arms:
        raise ValueError(f"no arm named {arm!r}. Choices: {'; '.join(arms)}.")
    return arms[arm]


def settings_of(arm: str, arms: Arms, **common: Any) -> tuple[Settings, Settings]:
    """Part the settings of an arm, over ``common`` ones: the model's, then ``TrainConfig``'s."""
    both: tuple[Settings, Settings] = {}, {}
    for name, value in (common | look_up(arm, arms)).items():
        both[hasattr(TrainConfig, name)][name] = value
    return both


def training(
    arms: Arms,
    build: Callable[[str, int], nn.Module],
    columns: str = COLUMNS,
    *,
    data: Callable[[int, Profile], Data] | None = None,
    quick: tuple[int, int] = (200, 200),
    validation: int | None = 100,
    **common: Any,
) -> Callable[[str, int, Profile], Results]:
    """Make the ``run`` of an experiment that trains one network a run and measures it.

    Args:
        arms: fields of ``TrainConfig`` among the settings change those of ``common``.
        build: makes the network of an arm and a seed.
        columns, validation: as in ``train_and_measure``.
        data: gives the images for a seed and a profile; by default all photographs, in the quick
            profile as many as ``quick`` says, to learn from and others.
    """

    def run(arm: str, seed: int, profile: Profile) -> Results:
        recipe = settings_of(arm, arms, **common)[1] | {"seed": seed}
        recipe["epochs"] = cut(recipe["epochs"], profile, 1)
        learned_from = data(seed, profile) if data else images(profile, None, quick)
        torch.manual_seed(seed)
        model, config = build(arm, seed), TrainConfig(**recipe)
        return train_and_measure(model, learned_from, config, columns, validation)

    return run


def train_and_measure(
    model: nn.Module,
    data: Data,
    config: TrainConfig,
    columns: str = COLUMNS,
    validation_images: int | None = None,
    **more: Any,
) -> Results:
    """Train a model to the end, leave it on the CPU, and give the results named by ``columns``.

    ``fit``, which takes what is ``more``, validates on the first images only, or on all, and
    counted the losses and accuracies of training, in its last epoch or in all. Accuracies on
    validation and test images are of all of them. Seconds are those of training. A
    KeyboardInterrupt passes: half a run must not become a row.
    """
    split, names = data.validation, columns.split()
    few = Split(split.images[:validation_images], split.labels[:validation_images])
    started = time.process_time()
    history = fit(model, replace(data, validation=few), config, show_progress=False, **more)
    if history.interrupted:
        raise KeyboardInterrupt
    cpu_seconds, last = time.process_time() - started, history.rows[-1]
    model.to("cpu")
    results: Results = {"device": history.device, "precision": history.precision}
    results |= {"seconds": round(history.seconds, 1), "cpu_seconds": round(cpu_seconds, 1)}
    results["parameters"] = sum(p.numel() for p in model.parameters())
    results["train_images"] = len(data.train)
    results["train_accuracies"] = [round(share, 3) for share in history.column("train_accuracy")]
    results["validation_accuracy"] = last.validation_accuracy
    for name in ("train_loss", "train_accuracy", "validation_loss"):
        results[name] = round(getattr(last, name), 4)
    if validation_images and "validation_accuracy" in names:
        results["validation_accuracy"] = measure(model, split, data)[1]
    if "test_accuracy" in names:
        results["test_accuracy"] = measure(model, data.test, data)[1]
    return {name: results[name] for name in names}


@dataclass(frozen=True)
class Measurement:
    """What one run of one arm gave, and all that is needed to repeat it."""

    experiment: str
    arm: str
    settings: dict  # of the arm, when it ran
    seed: int
    options: dict  # of the whole experiment, such as {"profile": "laptop"}
    results: Results
    machine: str
    versions: dict[str, str]
    command: str
    data: str  # the name of what was learned from, such as "shapes"


def names() -> list[str]:
    """List the experiments: the modules of this folder."""
    return sorted(path.stem for path in FOLDER.glob("*.py") if path.stem != "__init__")


def find(name: str) -> ModuleType:
    """Import the module of an experiment; a ValueError lists the choices."""
    if name not in names():
        raise ValueError(f"no experiment named {name!r}. Choices: {', '.join(names())}.")
    return importlib.import_module(f"{__name__}.{name}")


def data_of(name: str) -> str:
    """Name the data that an experiment runs on now."""
    return getattr(find(name), "DATA", DATA)


def measured(name: str, data: Data | str | None = None) -> list[Measurement]:
    """Give the measurements of an experiment that come with the package, those on one data set.

    Args:
        name: of the experiment.
        data: the images of the live numbers that they will stand beside; a name, such as "shapes",
            to show them alone. By default what the experiment itself runs on now.

    Raises:
        ValueError: they were made on other data.
    """
    found: dict[str, list[Measurement]] = {}
    for row in read(FOLDER / f"{name}.jsonl", find(name).ARMS):
        found.setdefault(row.data, []).append(row)
    asked: Any = getattr(data, "name", data) or data_of(name)
    if found and asked not in found:
        what = f"the shipped measurements of {name} were made on {' and '.join(sorted(found))}"
        remedy = f"Measure anew (vitedu bench experiments {name}), or show the shipped ones alone: "
        remedy += " or ".join(f'measured("{name}", "{own}")' for own in sorted(found))
        raise ValueError(f"{what}, not on {asked}. {remedy}.")
    return found.get(asked, [])


def by_arm(rows: Iterable[Measurement], result: str, factor: float = 1) -> dict[str, list]:
    """Give arm -> one of its results, a seed each, times ``factor``; arms as they come."""
    found: dict[str, list] = {}
    for row in rows:
        if result not in row.results:
            which = f"the row of {row.arm!r}, seed {row.seed}, in {row.experiment}.jsonl"
            raise ValueError(f"{which} has no {result} (got {', '.join(row.results)}). {REMEDY}")
        found.setdefault(row.arm, []).append(factor * row.results[result])
    return found


def complete(
    name: str,
    out: Path,
    run: Callable,
    options: dict,
    *,
    data: str,
    seeds: list[int],
    only: Sequence[str] = (),
) -> list[Measurement]:
    """Run every chosen arm of an experiment with every seed that the file does not hold.

    ``run`` takes arm and seed, and learns from ``data``. Each run is added to the file ``out`` as
    soon as it is done. With other options or data an arm runs anew. ``only`` has parts of names to
    choose arms by; all if empty. All measurements of the file are returned.
    """
    arms = find(name).ARMS
    chosen = [arm for arm in arms if not only or any(word in arm for word in only)]
    if not chosen:
        raise ValueError(f"no arm matches {' '.join(only)}. Choices: {'; '.join(arms)}.")
    done = [(line.arm, line.seed, line.options, line.data) for line in read(out, arms)]
    versions = {each: metadata.version(each) for each in ("torch", "torchvision")}
    versions |= {"vitedu": __version__, "python": platform.python_version()}
    context = machine(pick_device()), versions, shlex.join(["vitedu", *sys.argv[1:]]), data
    out.parent.mkdir(parents=True, exist_ok=True)
    for seed, arm in itertools.product(seeds, chosen):
        if (arm, seed, options, data) not in done:
            print(f"{arm}, seed {seed}", flush=True)
            line = Measurement(name, arm, arms[arm], seed, options, run(arm, seed), *context)
            with out.open("a", encoding="utf-8") as file:
                file.write(json.dumps(asdict(line)) + "\n")
    return list(read(out, arms))


def read(path: Path, arms: Arms) -> Iterator[Measurement]:
    """Give the measurements of a file, none if there is no file.

    A ValueError names a line that is none, or of an arm that has other settings by now.
    """
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    for number, line in enumerate(lines, start=1):
        place = f"{path}, line {number}"
        try:
            row = Measurement(**json.loads(line))
        except (TypeError, ValueError) as error:
            raise ValueError(f"{place} is no measurement: {error}. {REMEDY}") from None
        if row.settings != (now := arms.get(row.arm, "no arm")):
            before = f"{place}: {row.arm!r} was measured with {row.settings}"
            raise ValueError(f"{before}, and now means {now}. {REMEDY}")
        yield row


def table(measurements: Iterable[Measurement], arms: Arms) -> str:
    """Write mean, least and largest of every result in numbers over the seeds, arm by arm.

    Example:
        >>> runs = [Measurement("x", "a", {}, i, {}, {"share": i}, "", {}, "", "x") for i in (0, 2)]
        >>> print(table(runs, {"a": {}}))  # doctest: +NORMALIZE_WHITESPACE
        arm   options   result   mean   least   largest   seeds
        a     x         share    1      0       2         2
    """
    row = "{:<38}  {:<18}  {:<22}  {:>9}  {:>9}  {:>9}  {:>5}"
    lines = [row.format("arm", "options", "result", "mean", "least", "largest", "seeds")]
    order = list(arms)

    def key(each: Measurement) -> tuple[str, int]:
        return " ".join(map(str, (each.data, *each.options.values()))), order.index(each.arm)

    for (options, place), group in itertools.groupby(sorted(measurements, key=key), key):
        results = [each.results for each in group]
        for name in dict.fromkeys(name for each in results for name in each):
            values = [each[name] for each in results if isinstance(each.get(name), int | float)]
            if values:
                spread = (f"{of(values):.4g}" for of in (fmean, min, max))
                lines.append(row.format(order[place], options, name, *spread, len(values)))
    return "\n".join(lines)
