"""Run a file of parts once, in this process: is it right, which parts run, and is one slow?

Role: ``try_parts`` and what is read from it. The state of random numbers, the mode of gradients and
the modules of the process stay as they were. Only the student's own kernel, or his own command,
comes here.
"""

import contextlib
import functools
import io
import math
import re
import sys
import time
import types
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch

from vitedu.exporting.parts import Part, assemble, make_parts
from vitedu.vit import PRESETS, VisionTransformer

NAME = "_my_vit_on_trial"
BATCH, SHAPE = 8, {**vars(PRESETS["vit_pico_patch4_32"]), "depth": 1}
TOLERANCE = 1e-5  # of logits whose size is about 1
SLOW = 3  # times the seconds of the reference's steps


@dataclass
class Trial:
    """What happened when a file ran."""

    fault: str = ""  # what is wrong with it
    callers: dict[str, str] = field(default_factory=dict)  # part that ran -> the part it ran for
    seconds: float = math.inf  # of the fastest step


def try_parts(parts: Mapping[str, Part]) -> Trial:
    """Run the file that these parts make: logits beside the package's, a step, an epoch.

    The epoch is left out where all parts of the loop are the reference's, since torch takes seconds
    to load what an optimizer needs.
    """
    return _try_text(*_trial_of(parts))


def _trial_of(parts: Mapping[str, Part]) -> tuple[str, bool]:
    """Give the file with a meter at each part, and whether its loop has a part of the student's."""
    is_own_loop = any(p.is_yours and p.exercise.part == "training" for p in parts.values())
    return assemble(parts, "\n{0} = _meter({0!r}, {0})"), is_own_loop


def find_idle(parts: Mapping[str, Part]) -> dict[str, str]:
    """Give id -> why, for the parts that a step of training and an evaluation do not call."""
    usual = _try_text(_trial_of(make_parts({}, {}))[0], _trial_of(parts)[1]).callers
    called, reasons = try_parts(parts).callers, {}
    for name in (name for name in usual if name not in called):
        caller, missing = usual[name], name
        while caller and caller not in called:
            caller, missing = usual[caller], caller
        text = "\n".join(parts[caller].statements.values()) if caller else ""
        other = re.search(rf"[\w.]*\.{missing}\b", text)
        whose = "your" if caller and parts[caller].is_yours else "the"
        deed = f"uses {other[0]}" if other else f"does without {missing}"
        reasons[name] = f"{whose} {caller} {deed}" if caller else "nothing calls it"
    return reasons


def find_slow(parts: Mapping[str, Part]) -> list[str]:
    """List the student's parts with which a step takes over three times the reference's."""
    yours = {name: part.statements for name, part in parts.items() if part.is_yours}
    if not _is_slow(*_trial_of(parts)):
        return []
    return [n for n, each in yours.items() if _is_slow(*_trial_of(make_parts({n: each}, {})))]


@functools.cache
def _is_slow(text: str, is_own_loop: bool) -> bool:
    usual = _trial_of(make_parts({}, {}))[0]
    # the trial says whether it can be; then the fastest of five steps decides
    for attempt in (_try_text, functools.partial(_try_text.__wrapped__, steps=5)):
        before, now = (attempt(each, is_own_loop).seconds for each in (usual, text))
        if now <= SLOW * before:
            return False
    return True


@functools.lru_cache(maxsize=64)
def _try_text(text: str, is_own_loop: bool, steps: int = 2) -> Trial:
    trial = Trial()
    try:
        with _running(text, trial) as module:
            config = module.ViTConfig(**SHAPE)
            ours, mine = VisionTransformer(config).eval(), module.VisionTransformer(config).eval()
            for parameter in ours.parameters():  # starting values are too small to tell parts apart
                torch.nn.init.normal_(parameter, std=0.1)
            mine.load_state_dict(ours.state_dict())
            images = torch.randn(BATCH, 3, 32, 32)
            with torch.no_grad():
                wanted, got = ours(images), mine(images)
            error = (wanted - got).abs().max().item() / max(1, wanted.abs().max().item())
            if not error <= TOLERANCE:
                trial.fault = f"with it the file's logits are off by {error:.2g}"
            pixels, labels = images.to(torch.uint8), torch.arange(BATCH)
            for _ in range(steps):
                start = time.perf_counter()
                module.cross_entropy(mine.train()(images), labels).backward()
                if is_own_loop:
                    module.train_and_measure(mine, pixels, labels, 1)
                trial.seconds = min(trial.seconds, time.perf_counter() - start)
    except Exception as error:
        words = (str(error).splitlines() or [""])[0][:120]
        trial.fault = f"with it the file ends in {type(error).__name__}: {words}"
    return trial


@contextlib.contextmanager
def _running(text: str, trial: Trial) -> Iterator[Any]:
    """Give the file as a module, whose parts note who calls them; nothing of it stays."""
    running = [""]

    def meter(name: str, part: Any) -> Any:
        if isinstance(part, type):
            part.forward = meter(name, part.forward)  # type: ignore[attr-defined]
            return part

        @functools.wraps(part)
        def metered(*arguments, **options):
            trial.callers.setdefault(name, running[-1])
            running.append(name)
            try:
                return part(*arguments, **options)
            finally:
                running.pop()

        return metered

    module = types.ModuleType(NAME)
    vars(module)["_meter"] = meter
    dtype, device = torch.get_default_dtype(), torch.get_default_device()
    with contextlib.ExitStack() as stack:
        stack.enter_context(contextlib.redirect_stdout(io.StringIO()))
        stack.enter_context(warnings.catch_warnings())
        stack.enter_context(torch.random.fork_rng(devices=[]))
        stack.enter_context(torch.enable_grad())
        if device.type != "cpu":
            stack.enter_context(torch.device("cpu"))
        stack.callback(torch.set_default_dtype, dtype)
        stack.callback(sys.modules.pop, NAME, None)
        warnings.simplefilter("ignore")
        torch.set_default_dtype(torch.float32)
        torch.default_generator.manual_seed(0)
        sys.modules[NAME] = module  # dataclasses look their module up
        exec(compile(text, "my_vit.py", "exec", dont_inherit=True), vars(module))
        yield module
