"""The worker: runs an answer in its own process and reports what it did.

Role: ``main`` serves the requests of a judge until its pipe closes: "load" code, "look" at the
answer, "observe" it on a case, send it as a "plain" value. Uses the standard library, numpy, torch,
and the modules named in ``package_view``.

This process holds nothing that helps a cheat: only inputs and references of earlier exercises.
Expected values, tolerances, errors and mistakes are never sent here, only that a layer must refuse.
A nonce ties each reply to its request. No reply can be trusted, because student code shares this
process and can change every object in it. Values are compared by the judge, so a false reply helps
only about what is no value: that an input was not modified, that no forbidden operation ran, how
often a step was called.

Forbidden kernels are therefore replaced in torch itself before student code is loaded. This also
covers other threads and calls outside of torch's modes. Three ways around it remain, and the scan
of the source looks for them: kernels that torch itself needs (``_ESSENTIAL``), which the probes
watch while making parameters is refused; the same operation in another library, of which the known
ones are hidden (``launch.SOLUTION_LIBRARIES``); and a copy of torch's Python text.
"""

import contextlib
import ctypes
import functools
import importlib
import inspect
import os
import pkgutil
import random
import signal
import sys
import time
import types
import warnings
import weakref
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from vitedu.checks.observing import drivers
from vitedu.checks.observing.answers import MIN_SECONDS, LocalAnswer
from vitedu.checks.observing.case import Case
from vitedu.checks.observing.errors import describe_error
from vitedu.checks.observing.limits import TimeUp, capture_output, time_limit
from vitedu.checks.observing.observe import observe
from vitedu.checks.observing.second_call import second_call_cases
from vitedu.checks.observing.settings import neutral_settings
from vitedu.grading.box.module_state import ModuleState
from vitedu.grading.box.names import CLOSED_MODULES, Program, Statement, is_attempt
from vitedu.grading.box.visible_modules import install
from vitedu.grading.transport.messages import (
    LoadResult,
    read_case,
    write_case,
    write_fields,
    write_observation,
    write_plain,
)
from vitedu.grading.transport.wire import PREFIX, WireError, is_full, length_of, pack, unpack

drivers.import_drivers()  # before an answer is loaded

# modules that implement kernels in Python, from other kernels
_PYTHON_MODULES = ("torch._refs", "torch._decomp", "torch.nn.functional")
# name of a kernel -> another function of torch that does the same
_EQUIVALENTS = {
    "softmax": "torch.distributions.transforms.SoftmaxTransform._call",
    "scaled_dot_product_attention": "torch._higher_order_ops.flex_attention.math_attention",
    "multi_head_attention_forward": "torch.ao.nn.quantizable.modules.activation."
    "MultiheadAttention._forward_impl",
}
WARM_UP_SIZES = (4, 4, 3, 4, 3)  # sizes of the input; below 4 the answer raises an error
# an answer that does nothing useful, with operations that many answers use
WARM_UP_CODE = """
import math
import torch

def answer(x):
    if len(x) < 4:
        raise ValueError(f"{len(x)}")
    y = x.reshape(2, 2).permute(1, 0).unsqueeze(0).expand(3, -1, -1)
    y = torch.cat([y, torch.stack([row for row in y.split(1)]).squeeze(1)], dim=-1)
    y = (y @ y.mT / math.sqrt(2) - y.mean(dim=-1, keepdim=True).exp()).transpose(0, 1).contiguous()
    z = torch.arange(4, dtype=x.dtype, device=x.device) ** 2.0 + torch.zeros(4).to(x)
    return (y.flatten().view(-1)[:4] * torch.sin(z[None]).sum(dim=0)).clone().sum(), x
"""
_ESSENTIAL = {"empty", "normal_", "uniform_"}  # torch itself needs them, so they are only watched
_KEYS = ("CPU", "AutogradCPU", "MkldnnCPU")  # dispatch keys that are replaced for every kernel
# dispatch keys that are replaced only if the kernel has an implementation for them
_LAYOUT_KEYS = ("QuantizedCPU", "SparseCPU", "SparseCsrCPU", "NestedTensorCPU")


def main(source: int, sink: int) -> None:
    """Read frames from one pipe and write replies to another until one of them closes."""
    session, requests = Session(), open(source, "rb")
    with contextlib.suppress(OSError):
        while prefix := requests.read(PREFIX):
            reply = session.reply_to(prefix + requests.read(length_of(prefix)))
            signal.setitimer(signal.ITIMER_REAL, 0)  # in case the answer has set a timer
            _send(sink, reply)


def _send(fd: int, frame: bytes) -> None:
    view = memoryview(frame)
    while view:
        view = view[os.write(fd, view) :]


def warm_up() -> None:
    """Run a trivial answer a few times before the fork, so that nothing is slow for the first time.

    An error is raised too. After a few runs Python no longer changes its code objects, so workers
    share those pages. Gradients are computed only without a GPU: with one, torch starts threads for
    them, which a fork would lose.
    """
    gradients = () if torch.cuda.is_available() else ("x",)
    for size in WARM_UP_SIZES:
        names: dict[str, Any] = {}
        exec(WARM_UP_CODE, names)
        case = Case("warm_up", {"x": torch.arange(size) * 1.0}, outputs=("total", "x"))
        session = Session()
        session.answer = LocalAnswer(names["answer"])
        session._look({"calls": [[1, []]]})
        cases = [replace(case, gradients=gradients), *second_call_cases([case])]
        cases += [replace(case, on_accelerator=True)]
        request = {"cases": [write_case(each, "warm_up") for each in cases], "seconds": 5.0}
        pack(session._observe_all(unpack(pack(request))))
    _seed_generators(0)
    _python_kernels()
    with contextlib.suppress(ImportError):  # the first backward pass would import it
        importlib.import_module("torch.nested._internal.nested_tensor")
    # entered for good: the blocks of a worker then find neutral settings, and keep no random states
    _SETTINGS.enter_context(neutral_settings())
    _RESTORERS.append(_make_restorer())


_SETTINGS = contextlib.ExitStack()
_RESTORERS: list[Callable[[], None]] = []  # made before the fork, for answers that forbid nothing


def _make_restorer() -> Callable[[], None]:
    """Close what no answer needs; return a function that restores what the probes use."""
    sys.modules.update(dict.fromkeys(CLOSED_MODULES))  # type: ignore[arg-type]  # None forbids it
    _disable_compilers()
    # set before the state is stored, so that it is restored
    drivers.after_answer = lambda: restore()
    restore = ModuleState().restore
    return restore


class Session:
    """The state of this worker: the loaded answer, and methods for the requests."""

    def __init__(self) -> None:
        self.answer: Any = None  # a LocalAnswer
        self.restore: Callable[[], None] | None = None  # set when the first answer is loaded
        self.forbidden_calls: set[str] = set()  # forbidden kernels that were called

    def reply_to(self, frame: bytes) -> bytes:
        """Do what a frame asks and return the reply. Never raises."""
        nonce = None
        try:
            request = unpack(frame, is_trusted=True)
            nonce = request["nonce"]
            return pack({"nonce": nonce, "done": getattr(self, f"_{request['do']}")(request)})
        except BaseException as error:  # student code may raise anything, at any place
            kind = error.args[0] if isinstance(error, WireError) else type(error).__name__
            return pack({"nonce": nonce, "failed": str(kind)[:200]})

    def _load(self, request: dict) -> dict:
        """Install the visible modules, run the answer with what it needs, keep the answer."""
        self.answer = None
        install(request["modules"])
        if self.restore is None:  # the first answer; a shared process does this only once
            self._forbid(request["forbidden"])
            is_ready = _RESTORERS and not request["forbidden"]
            self.restore = _RESTORERS.pop() if is_ready else _make_restorer()
        restore = self.restore
        _hide_judges()
        name = request["name"]
        found: dict[str, Any] = {}
        error: BaseException | None = None
        failures: list[Any] = []
        with capture_output() as sink, neutral_settings():
            try:
                with time_limit(request["seconds"], request["seconds"]):
                    for space, place in request["targets"]:
                        program = _read_program(request)
                        failures = program.failures
                        _seed_generators(request["seed"])
                        values = program.spaces[space].globals
                        found = found or values  # the last definition counts if none is an attempt
                        error = program.run(space, place, name)
                        if name not in values or is_attempt(values[name], request["kind"]):
                            found = values
                            break
            except BaseException as trouble:
                error = trouble
            finally:
                restore()
        if name in found:
            self.answer = LocalAnswer(found[name])
        loaded = LoadResult(
            is_defined=name in found,
            trouble=None if error is None else describe_error(error),
            timed_out=isinstance(error, TimeUp),
            failures=tuple(failures),
            printed=sink.head,
        )
        return write_fields(loaded)

    def _look(self, request: dict) -> dict:
        calls = [(count, tuple(keywords)) for count, keywords in request["calls"]]
        return write_fields(self.answer.info(calls))

    def _observe_all(self, request: dict) -> list[dict]:
        """Observe cases in turn; stop when time or room is used up, or a case ran out of time."""
        replies: list[dict] = []
        tensors: list[torch.Tensor] = []
        start = time.monotonic()
        for data in request["cases"]:
            seconds_left = request["seconds"] - (time.monotonic() - start)
            if replies and (seconds_left < MIN_SECONDS or is_full(tensors)):
                break
            self.forbidden_calls.clear()
            limit = max(MIN_SECONDS, seconds_left)
            seen = observe(self.answer.answer, read_case(data), limit, waiting=limit)
            seen.operations |= self.forbidden_calls
            replies.append(write_observation(seen))
            tensors += seen.tensors()
            if seen.error and seen.error.kind in ("TimeUp", "KeyboardInterrupt"):
                break
        return replies

    def _plain(self, request: dict) -> dict:
        return write_plain(self.answer.plain())

    def _forbid(self, names: list[str]) -> None:
        """Replace forbidden kernels by functions that refuse, for all threads and ways of calling.

        Args:
            names: of functions and kernels; names of no kernel are only watched by the probes.
        """
        kernels = {name.removeprefix("aten.").split(".")[0] for name in names}
        # these kernels make parameters; refusing Parameter and Module prevents building any layer
        if kernels & _ESSENTIAL:
            refuse = self._make_refusal("aten.empty")
            _replace_code(torch.nn.Parameter.__new__, refuse)
            torch.nn.Module.__init__ = refuse  # type: ignore[method-assign]
        kernels -= _ESSENTIAL
        if not kernels:
            return
        bare = {name.strip("_") for name in kernels}
        for name, function in _python_kernels():
            if name.strip("_") in bare:
                _replace_code(function, self._make_refusal(name))
        fused = {name.split(".")[1] for name in names if name.startswith("mkldnn.")}
        self._replace_kernels("aten", kernels)
        self._replace_kernels("mkldnn", fused)

    def _replace_kernels(self, namespace: str, kernels: set[str]) -> None:
        """Replace kernels by functions that refuse, for all dispatch keys of the CPU."""
        library = torch.library.Library(namespace, "IMPL")
        has_own = torch._C._dispatch_has_kernel_for_dispatch_key
        for kernel in kernels:
            refuse = self._make_refusal(f"{namespace}.{kernel}")
            packet = getattr(getattr(torch.ops, namespace), kernel, None)
            for overload in packet.overloads() if packet is not None else ():
                full = kernel if overload == "default" else f"{kernel}.{overload}"
                layout_keys = [key for key in _LAYOUT_KEYS if has_own(f"{namespace}::{full}", key)]
                for key in (*_KEYS, *layout_keys):
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore")  # torch warns that a kernel is replaced
                        library.impl(full, refuse, key)
        _make_permanent(library)

    def _make_refusal(self, name: str) -> Any:
        """Return a function that notes the call and refuses. Its code uses no outer variable."""

        def refuse(*args, note=self.forbidden_calls.add, name=name, **kwargs):
            note(name)
            words = name.rpartition(".")[2].strip("_")
            raise RuntimeError(f"{words} is not allowed in this exercise")

        return refuse


def _replace_code(function: Any, refuse: Any) -> None:
    """Replace the code object of a function, so that existing references to it refuse as well."""
    function.__code__, function.__defaults__ = refuse.__code__, None
    function.__kwdefaults__ = refuse.__kwdefaults__


@functools.cache
def _python_kernels() -> list[tuple[str, types.FunctionType]]:
    """List torch's Python definitions of kernels, which do not call these kernels.

    Called once before the fork, because it reads thousands of objects.
    """
    functions: dict[int, tuple[str, Any]] = {}
    for title, module in list(sys.modules.items()):
        if module is not None and title.startswith(_PYTHON_MODULES):
            functions |= {id(f): (name, f) for name, f in vars(module).items() if callable(f)}
    for table in torch._decomp.global_decomposition_table.values():
        for operation, function in table.items():
            words = str(operation).split("::")[-1].split(".")
            functions[id(function)] = (words[1] if words[0] == "aten" else words[0], function)
    for name, place in _EQUIVALENTS.items():
        with contextlib.suppress(ImportError, AttributeError):  # another version of torch
            function = pkgutil.resolve_name(place)
            functions[id(function)] = (name, function)
    unwrapped = [(name, inspect.unwrap(function)) for name, function in functions.values()]
    return [
        (name, inner)
        for name, inner in unwrapped
        if isinstance(inner, types.FunctionType) and not inner.__code__.co_freevars
    ]


def _make_permanent(library: torch.library.Library) -> None:
    """Keep what a library registered for ever, and leave no object that could undo it."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(library.m))  # never freed, and not reachable
    for finalizer in list(weakref.finalize._registry):  # type: ignore[attr-defined]
        if (alive := finalizer.peek()) and alive[0] is library:
            finalizer.detach()
    library.m = None


def _read_program(request: dict) -> Program:
    spaces = {
        name: {place: Statement(*statement) for place, statement in statements}
        for name, statements in request["spaces"]
    }
    keys = ("references", "stand_ins", "own", "mocks")
    return Program(spaces, *(request[key] for key in keys))


def _hide_judges() -> None:
    """Make an import of what observes answers load a second copy, whose changes have no effect."""
    for package in ("checks", "grading"):
        vars(sys.modules["vitedu"]).pop(package, None)
        for name in [name for name in sys.modules if name.startswith(f"vitedu.{package}")]:
            del sys.modules[name]


_COMPILERS = ("script", "trace", "script_if_tracing")  # functions of torch.jit


def _disable_compilers() -> None:
    """Make torch's compilers return the function itself: none works in the box, or is needed.

    The signature of the answer then stays readable as well.
    """

    def return_unchanged(function: Any = None, *rest: Any, **settings: Any) -> Any:
        return function if function is not None else return_unchanged

    for place, name in ((torch, "compile"), *((torch.jit, n) for n in _COMPILERS)):
        setattr(place, name, return_unchanged)
    torch.nn.Module.compile = lambda self, *rest, **settings: None  # type: ignore[method-assign]


def _seed_generators(seed: int) -> None:
    """Seed the usual global generators, differently in every process."""
    random.seed(seed)
    np.random.seed(seed % 2**32)  # noqa: NPY002 - the generator that an answer would use
    # torch.manual_seed would format a stack trace if CUDA is not initialized
    torch.default_generator.manual_seed(seed)
