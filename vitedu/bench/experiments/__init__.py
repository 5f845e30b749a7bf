"""Experiments that a notebook quotes but does not wait for: ``vitedu bench experiments NAME``.

Each experiment is a module of this folder with

* ``ARMS``: name of an arm -> its settings, in what JSON can hold;
* ``run(arm, seed, profile) -> dict``: the name of each result -> a number (or a fact in words, such
  as the precision).

The lines that notebooks show lie beside it as ``<name>.jsonl``; ``measured(name)`` reads them. Here
stands what the experiments share: images, training with ``fit`` and what is measured then, and runs
of all arms, each a line of JSON. A run that was stopped goes on: what stands in the file is not run
again.
"""

import importlib
import json
import platform
import shlex
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
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
from vitedu.fitting.evaluating import logits_of, measure
from vitedu.fitting.history import History
from vitedu.hardware import Profile, pick_device
from vitedu.stopwatch import machine

FOLDER = Path(__file__).parent
Arms = dict[str, dict[str, Any]]  # name -> settings
Results = dict[str, Any]  # numbers, and facts in words such as the precision in use

# --- what experiments share: sizes, images, training, measuring ---------------------------------


def cut(size: int, profile: Profile, quick: int) -> int:
    """Give a size, in the quick profile at most ``quick``."""
    return min(size, quick) if profile.name == "quick" else size


load = cache(load_data)


def shapes(profile: Profile, count: int | None, quick: tuple[int, int | None]) -> Data:
    """Draw shapes, once: ``count`` training images, and all others.

    In the quick profile ``quick`` says how many training images, and at most how many others.
    """
    limit, held_out = quick if profile.name == "quick" else (count, None)
    return load("shapes", limit=limit, held_out=held_out)


@cache
def drawings(count: int, stream: int, seed: int = 0) -> tuple[torch.Tensor, ...]:
    """Draw images, labels and masks, once: stream 0 to learn from, stream 2 to test on."""
    return tuple(map(torch.from_numpy, draw_shapes(count, seed=seed, stream=stream)))


def normalized(images: torch.Tensor, known: dict) -> torch.Tensor:
    """Bring uint8 images (n, 3, H, W) to what one of our own models takes; see ``read_own``."""
    mean, std = (torch.tensor(known[key]).view(-1, 1, 1) for key in ("mean", "std"))
    return (images / 255 - mean) / std


def train_to_end(
    model: nn.Module,
    data: Data,
    config: TrainConfig,
    validation_images: int | None = None,
    show_progress: bool = False,
) -> History:
    """Train a model in place, with ``fit``, to the end: half a run must not become a row.

    Where nothing is chosen, epochs are measured on the first ``validation_images`` only.

    Raises:
        KeyboardInterrupt: the run was stopped. ``fit`` itself would keep what was learned.
    """
    few = Split(
        data.validation.images[:validation_images], data.validation.labels[:validation_images]
    )
    history = fit(model, replace(data, validation=few), config, show_progress=show_progress)
    if history.interrupted:
        raise KeyboardInterrupt
    return history


def train_and_measure(
    model: nn.Module,
    data: Data,
    config: TrainConfig,
    wanted: str = "parameters train_accuracy test_accuracy cpu_seconds",
    validation_images: int | None = None,
) -> Results:
    """Train a model to the end, leave it on the CPU, and give the results that are wanted.

    Args:
        model, data, config, validation_images: as ``train_to_end`` takes them.
        wanted: names. Accuracies of training are those that ``fit`` counted, in the last epoch or
            in all. Accuracies on validation images, all of them, and on test images are measured
            without augmentation. "answers" has a digit for each of the first 1,000 test images.
            Seconds are those of training.
    """
    started = time.process_time()
    history = train_to_end(model, data, config, validation_images)
    cpu_seconds, cpu = time.process_time() - started, torch.device("cpu")
    model.to(cpu)

    def accuracy(split: Split) -> float:
        return measure(model, split, data, cpu, torch.float32)[1]

    def answers() -> str:
        logits = logits_of(model, data.test.images[:1000], data, torch.float32)
        return "".join(map(str, logits.argmax(dim=1).tolist()))

    known: dict[str, Callable[[], Any]] = {
        "parameters": lambda: sum(p.numel() for p in model.parameters()),
        "train_accuracy": lambda: round(history.rows[-1].train_accuracy, 4),
        "train_accuracies": lambda: [round(row.train_accuracy, 3) for row in history.rows],
        "validation_accuracy": lambda: (
            accuracy(data.validation) if validation_images else history.rows[-1].validation_accuracy
        ),
        "test_accuracy": lambda: accuracy(data.test),
        "answers": answers,
        "precision": lambda: history.precision,
        "seconds": lambda: round(history.seconds, 1),
        "cpu_seconds": lambda: round(cpu_seconds, 1),
    }
    return {name: known[name]() for name in wanted.split()}


# --- runs and their lines -----------------------------------------------------------------------


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


def names() -> list[str]:
    """List the experiments: the modules of this folder."""
    return sorted(path.stem for path in FOLDER.glob("*.py") if path.stem != "__init__")


def find(name: str) -> ModuleType:
    """Import the module of an experiment.

    Raises:
        ValueError: no such experiment; the message lists the choices.
    """
    if name not in names():
        raise ValueError(f"no experiment named {name!r}. Choices: {', '.join(names())}.")
    return importlib.import_module(f"{__name__}.{name}")


def measured(name: str) -> list[Measurement]:
    """Give the measurements of an experiment that come with the package.

    Raises:
        ValueError: no such experiment, or a line that does not belong to its present arms.
    """
    return list(read(FOLDER / f"{name}.jsonl", find(name).ARMS))


def run_experiment(
    name: str, out: Path, *, profile: Profile, seeds: Sequence[int], only: Sequence[str] = ()
) -> list[Measurement]:
    """Run what is missing of an experiment in the size of a profile, and print a table.

    Args, returns and errors are those of ``complete``.
    """
    module, options = find(name), {"profile": profile.name}

    def run(arm: str, seed: int) -> Results:
        return module.run(arm, seed, profile)

    found = complete(name, module.ARMS, run, out, seeds=seeds, only=only, options=options)
    print(table(found, module.ARMS))
    return found


def complete(
    experiment: str,
    arms: Arms,
    run: Callable[[str, int], Results],
    out: Path,
    *,
    seeds: Sequence[int],
    only: Sequence[str],
    options: dict,
) -> list[Measurement]:
    """Run every chosen arm with every seed that the file does not hold under these options.

    Args:
        experiment, arms, run: the name, settings and work of an experiment.
        out: a file of JSON lines; each run is added as soon as it is done.
        seeds: one run of every arm each.
        only: parts of names to choose arms by; all if empty.
        options: of the whole experiment.

    Returns:
        All measurements of the file.

    Raises:
        ValueError: no arm is chosen, or a line does not belong to the present arms.
    """
    chosen = [arm for arm in arms if not only or any(word in arm for word in only)]
    if not chosen:
        raise ValueError(f"no arm matches {' '.join(only)}. Choices: {'; '.join(arms)}.")
    done = [(found.arm, found.seed, found.options) for found in read(out, arms)]
    versions = {name: metadata.version(name) for name in ("torch", "torchvision")}
    versions |= {"vitedu": __version__, "python": platform.python_version()}
    command, where = shlex.join(["vitedu", *sys.argv[1:]]), machine(pick_device())
    for seed in seeds:
        for arm in chosen:
            if (arm, seed, options) in done:
                continue
            print(f"{arm}, seed {seed}", flush=True)
            results = run(arm, seed)
            of_arm = (experiment, arm, arms[arm], seed)
            line = Measurement(*of_arm, options, results, where, versions, command)
            out.parent.mkdir(parents=True, exist_ok=True)
            with out.open("a", encoding="utf-8") as file:
                file.write(json.dumps(asdict(line)) + "\n")
    return list(read(out, arms))


def read(path: Path, arms: Arms) -> Iterator[Measurement]:
    """Give the measurements of a file, none if there is no file.

    Raises:
        ValueError: a line that is none, or of an arm that has other settings by now.
    """
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    for number, line in enumerate(lines, start=1):
        place = f"{path}, line {number}"
        try:
            found = Measurement(**json.loads(line))
        except (TypeError, ValueError) as error:
            raise ValueError(f"{place} is no measurement: {error}") from None
        if found.arm not in arms:
            raise ValueError(f"{place}: no arm named {found.arm!r}. Choices: {'; '.join(arms)}.")
        if found.settings != arms[found.arm]:
            raise ValueError(
                f"{place}: {found.arm!r} was measured with {found.settings}, and now means "
                f"{arms[found.arm]}. Remove the line to measure it again."
            )
        yield found


def by_arm(
    found: Iterable[Measurement], arms: Mapping[str, dict]
) -> list[tuple[str, dict, list[Measurement]]]:
    """Group measurements by arm and options, arms in their order: (arm, options, measurements)."""
    groups: dict[tuple[str, str], list[Measurement]] = {}
    for each in found:
        groups.setdefault((json.dumps(each.options), each.arm), []).append(each)
    order = list(arms)
    keys = sorted(groups, key=lambda key: (key[0], order.index(key[1])))
    return [(arm, json.loads(options), groups[options, arm]) for options, arm in keys]


def table(found: Iterable[Measurement], arms: Mapping[str, dict]) -> str:
    """Write mean, least and largest of every result over the seeds, arm by arm.

    Example:
        >>> runs = [
        ...     Measurement("x", "a", {}, seed, {}, {"accuracy": value}, "", {}, "")
        ...     for seed, value in enumerate([0.5, 0.75])
        ... ]
        >>> print(table(runs, {"a": {}}))  # doctest: +NORMALIZE_WHITESPACE
        arm   options   result      mean     least   largest   seeds
        a               accuracy    0.625    0.5     0.75      2
    """
    row = "{:<38}  {:<18}  {:<22}  {:>9}  {:>9}  {:>9}  {:>5}"
    lines = [row.format("arm", "options", "result", "mean", "least", "largest", "seeds")]
    for arm, options, group in by_arm(found, arms):
        shown = " ".join(map(str, options.values()))
        for result in dict.fromkeys(name for each in group for name in each.results):
            if values := numbers(group, result):
                spread = (f"{of(values):.4g}" for of in (fmean, min, max))
                lines.append(row.format(arm, shown, result, *spread, len(values)))
    return "\n".join(lines)


def numbers(group: Iterable[Measurement], result: str) -> list[float]:
    """Give one result of several measurements, without those that lack it or say it in words."""
    found = (each.results.get(result) for each in group)
    return [value for value in found if isinstance(value, int | float)]
