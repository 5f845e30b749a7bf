"""Experiments that a notebook quotes but does not wait for: ``vitedu bench experiments NAME``.

Role: run the arms of an experiment over several seeds, keep each result as a line of JSON, and read
the lines back. A run that was stopped goes on: what stands in the file is not run again.
``train_to_end`` is how experiments call ``fit``. Not here: what an experiment does.

Each experiment is a module of this folder with

* ``ARMS``: name of an arm -> its settings, in what JSON can hold;
* ``run(arm, seed, profile) -> dict``: the name of each result -> a number (or a fact in words, such
  as the precision). ``profile.pick`` gives the size that fits the hardware.

The lines that notebooks show lie beside it as ``<name>.jsonl``; ``measured(name)`` reads them.
"""

import importlib
import json
import platform
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from importlib import metadata
from pathlib import Path
from statistics import fmean
from types import ModuleType
from typing import Any

import torch
from torch import nn

from vitedu import __version__
from vitedu.bench.stopwatch import machine
from vitedu.data import Data
from vitedu.data.loading import Split
from vitedu.fitting import TrainConfig, fit
from vitedu.fitting.history import History
from vitedu.hardware import Profile, pick_device

FOLDER = Path(__file__).parent
Results = dict[str, Any]  # numbers, and facts in words such as the precision in use


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


def train_to_end(
    model: nn.Module,
    data: Data,
    config: TrainConfig,
    *,
    validation_images: int | None = None,
    show_progress: bool = False,
) -> History:
    """Train a model to the end: half a run must not become a row.

    Args:
        model: trained in place.
        data: what ``fit`` takes.
        config: what ``fit`` takes.
        validation_images: measure every epoch on the first ones only; nothing is chosen.
        show_progress: whether ``fit`` prints.

    Returns:
        The history of all epochs.

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

    Args:
        name: of the experiment.
        out: a file of JSON lines; each run is added when it is done.
        profile: the size of the runs.
        seeds: one run of every arm each.
        only: parts of names to choose arms by; all if empty.

    Returns:
        All measurements of the file.

    Raises:
        ValueError: no such experiment or arm, or a line that does not belong to its present arms.
    """
    module = find(name)

    def run(arm: str, seed: int) -> Results:
        return module.run(arm, seed, profile)

    options = {"profile": profile.name}
    found = complete(name, module.ARMS, run, out, seeds=seeds, only=only, options=options)
    print(table(found, module.ARMS))
    return found


def complete(
    experiment: str,
    arms: Mapping[str, dict],
    run: Callable[[str, int], Results],
    out: Path,
    *,
    seeds: Sequence[int],
    only: Sequence[str],
    options: dict,
) -> list[Measurement]:
    """Run every chosen arm with every seed that the file does not hold under these options.

    Returns:
        All measurements of the file, which holds each as soon as its run is done.
    """
    chosen = [arm for arm in arms if not only or any(word in arm for word in only)]
    if not chosen:
        raise ValueError(f"no arm matches {' '.join(only)}. Choices: {'; '.join(arms)}.")
    done = [(found.arm, found.seed, found.options) for found in read(out, arms)]
    for seed in seeds:
        for arm in chosen:
            if (arm, seed, options) in done:
                continue
            print(f"{arm}, seed {seed}", flush=True)
            results = run(arm, seed)
            line = Measurement(
                experiment=experiment,
                arm=arm,
                settings=arms[arm],
                seed=seed,
                options=options,
                results=results,
                machine=machine(pick_device()),
                versions=versions(),
                command=shlex.join(["vitedu", *sys.argv[1:]]),
            )
            out.parent.mkdir(parents=True, exist_ok=True)
            with out.open("a", encoding="utf-8") as file:
                file.write(json.dumps(asdict(line)) + "\n")
    return list(read(out, arms))


def read(path: Path, arms: Mapping[str, dict]) -> Iterator[Measurement]:
    """Give the measurements of a file, none if there is no file.

    Raises:
        ValueError: a line that is none, or of an arm that has other settings by now.
    """
    if not path.is_file():
        return
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        try:
            found = Measurement(**json.loads(line))
        except (TypeError, ValueError) as error:
            raise ValueError(f"{path}, line {number} is no measurement: {error}") from None
        if found.arm not in arms:
            raise ValueError(
                f"{path}, line {number}: no arm named {found.arm!r}. Choices: {'; '.join(arms)}."
            )
        if found.settings != arms[found.arm]:
            raise ValueError(
                f"{path}, line {number}: {found.arm!r} was measured with {found.settings}, and now "
                f"means {arms[found.arm]}. Remove the line to measure it again."
            )
        yield found


def by_arm(
    found: Iterable[Measurement], arms: Mapping[str, dict]
) -> list[tuple[str, dict, list[Measurement]]]:
    """Group measurements by arm and options, arms in their order: (arm, options, measurements)."""
    groups: dict[tuple[str, str], list[Measurement]] = {}
    for each in found:
        groups.setdefault((each.arm, json.dumps(each.options)), []).append(each)
    order = list(arms)
    keys = sorted(groups, key=lambda key: (key[1], order.index(key[0])))
    return [(arm, json.loads(options), groups[arm, options]) for arm, options in keys]


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
    lines = [
        f"{'arm':<38}  {'options':<18}  {'result':<22}"
        f"  {'mean':>9}  {'least':>9}  {'largest':>9}  seeds"
    ]
    for arm, options, group in by_arm(found, arms):
        shown = " ".join(str(value) for value in options.values())
        for result in dict.fromkeys(name for each in group for name in each.results):
            values = numbers(group, result)
            if not values:
                continue
            lines.append(
                f"{arm:<38}  {shown:<18}  {result:<22}  {fmean(values):>9.4g}"
                f"  {min(values):>9.4g}  {max(values):>9.4g}  {len(values):>5}"
            )
    return "\n".join(lines)


def numbers(group: Iterable[Measurement], result: str) -> list[float]:
    """Give one result of several measurements, without those that lack it or say it in words."""
    found = (each.results.get(result) for each in group)
    return [value for value in found if isinstance(value, int | float)]


def versions() -> dict[str, str]:
    """Give the versions that a result may depend on."""
    return {
        "vitedu": __version__,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "torchvision": metadata.version("torchvision"),
    }
