"""What a process of the box does with an answer: look at it, run it on cases, report.

Role: ``Session`` answers a judge: "look" at the answer, "observe" it on cases, send it as a "plain"
value. ``notebook`` brings the answer. Uses the standard library, numpy, torch, and the modules
named in ``package_view``.

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
import pkgutil
import sys
import time
import types
import warnings
import weakref
from collections.abc import Callable
from typing import Any

import torch

from vitedu.checks.observing import drivers
from vitedu.checks.observing.answers import MIN_SECONDS
from vitedu.checks.observing.observe import observe
from vitedu.checks.observing.settings import neutral_settings
from vitedu.grading.box.course_stand_ins import CLOSED_MODULES
from vitedu.grading.box.module_state import ModuleState
from vitedu.grading.transport.messages import (
    read_case,
    write_fields,
    write_observation,
    write_plain,
)
from vitedu.grading.transport.wire import pack

drivers.import_drivers()  # before an answer is loaded

FULL = 2**18  # bytes of observations after which a reply goes; a frame may have many more
_now, _pack = time.monotonic, pack  # bound now, because a cell could replace them
# modules that implement kernels in Python, from other kernels
_PYTHON_MODULES = ("torch._refs", "torch._decomp", "torch.nn.functional")
# name of a kernel -> another function of torch that does the same
_EQUIVALENTS = {
    "softmax": "torch.distributions.transforms.SoftmaxTransform._call",
    "scaled_dot_product_attention": "torch._higher_order_ops.flex_attention.math_attention",
    "multi_head_attention_forward": "torch.ao.nn.quantizable.modules.activation."
    "MultiheadAttention._forward_impl",
}
_ESSENTIAL = {"empty", "normal_", "uniform_"}  # torch itself needs them, so they are only watched
_KEYS = ("CPU", "AutogradCPU", "MkldnnCPU")  # dispatch keys that are replaced for every kernel
# dispatch keys that are replaced only if the kernel has an implementation for them
_LAYOUT_KEYS = ("QuantizedCPU", "SparseCPU", "SparseCsrCPU", "NestedTensorCPU")


def warm_up() -> None:
    """Do before the fork what takes each worker some time."""
    _python_kernels()
    with contextlib.suppress(ImportError):  # the first backward pass would import it
        importlib.import_module("torch.nested._internal.nested_tensor")
    # entered for good: the blocks of a worker then find neutral settings, and keep no random states
    _SETTINGS.enter_context(neutral_settings())


_SETTINGS = contextlib.ExitStack()


def make_restorer() -> Callable[[], None]:
    """Close what no answer needs; return a function that restores what the probes use."""
    sys.modules.update(dict.fromkeys(CLOSED_MODULES))  # type: ignore[arg-type]  # None forbids it
    _disable_compilers()
    # set before the state is stored, so that it is restored
    drivers.after_answer = lambda: restore()
    restore = ModuleState().restore
    return restore


class Session:
    """The answer that is judged now, and methods for the requests."""

    def __init__(self) -> None:
        self.answer: Any = None  # a LocalAnswer
        self.restore: Callable[[], None] = lambda: None  # ``notebook`` sets it
        self.forbidden_calls: set[str] = set()  # forbidden kernels that were called

    def _look(self, request: dict) -> dict:
        calls = [(count, tuple(keywords)) for count, keywords in request["calls"]]
        return write_fields(self.answer.info(calls))

    def _observe(self, request: dict) -> list[dict]:
        """Observe the cases, but none after a long one or after a large part of a frame."""
        seen, room, end = list[dict](), FULL, _now() + request["seconds"]
        for case in request["cases"]:
            self.restore()
            self.forbidden_calls.clear()
            limit = max(MIN_SECONDS, end - _now())
            one = observe(self.answer.answer, read_case(case), limit, waiting=limit)
            one.operations |= self.forbidden_calls
            seen.append(write_observation(one))
            room -= len(_pack(seen[-1]))
            if room < 0 or _now() > end or one.error_kind in ("TimeUp", "KeyboardInterrupt"):
                break
        return seen

    def _plain(self, request: dict) -> dict:
        return write_plain(self.answer.plain())

    def forbid(self, names: list[str]) -> None:
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
            raise RuntimeError(f"{words} is not allowed in this exercise")  # ``cells.REFUSAL``

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


def hide_judges() -> None:
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

    # optimizers ask it to leave them alone; the real one needs a compiler
    dynamo = types.ModuleType("torch._dynamo")
    dynamo.disable, dynamo.graph_break = return_unchanged, lambda: None  # type: ignore
    torch._dynamo = sys.modules[dynamo.__name__] = dynamo
    for place, name in ((torch, "compile"), *((torch.jit, n) for n in _COMPILERS)):
        setattr(place, name, return_unchanged)
    torch.nn.Module.compile = lambda self, *rest, **settings: None  # type: ignore[method-assign]
