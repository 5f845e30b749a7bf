"""The other side of the line: runs one answer in a process of its own and tells what it did.

Role: ``main`` serves the requests of a judge until its pipe closes: "load" code, "look" at the answer, "observe" it on a
case, give it as a "plain" value. Standard library, numpy, torch, and the few modules named in ``package_view``.

What it holds is worth nothing to a cheat: inputs, and references of earlier exercises. No expected value, tolerance,
expected error or misconception ever comes here, and a nonce, used once, tells a reply from an older one. Everything sent
back is a claim, since student code shares this process and can reach every object in it. Values are compared elsewhere,
so a claim helps only where it is no value: that an input was left unchanged, that no forbidden operation ran, how often a
step was called. Forbidden kernels are therefore taken out of torch itself before student code is loaded, which holds in
other threads and outside of torch's modes too. Not covered: kernels that torch itself needs (``_NEEDED``), watched by the
probes, with the making of parameters refused; the same operation in another library, of which the known ones are not there (``ways.SOLVED``); a copy of
torch's Python text. The scan of the source looks for those.
"""

import contextlib
import ctypes
import fcntl
import functools
import importlib
import inspect
import os
import random
import re
import signal
import sys
import types
import warnings
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from vitedu.checks import (
    drivers,  # noqa: F401  (registers the chapters' drivers)
    probing,
)
from vitedu.checks.answers import LocalAnswer
from vitedu.checks.guard import TimeUp, neutral_settings, quiet, time_limit
from vitedu.checks.probing import Case, describe
from vitedu.grading.box.cells import CLOSED, run_cell, run_imports
from vitedu.grading.box.seal import Seal
from vitedu.grading.box.visible import install
from vitedu.grading.line.messages import (
    Loaded,
    read_case,
    write_case,
    write_loaded,
    write_look,
    write_observation,
    write_plain,
)
from vitedu.grading.line.wire import PREFIX, WireError, length_of, pack, unpack

MAX_HEADER = 16 * 2**20  # bytes; what comes from the judge is trusted
HIGHEST = 512  # file descriptors are moved up to here, out of the way of closing loops
_IN_PYTHON = ("torch._refs", "torch._decomp", "torch.nn.functional")  # made of other kernels
_ELSEWHERE = {  # methods and modules of torch that do the same: name of the kernel -> place
    "softmax": "torch.distributions.transforms.SoftmaxTransform._call",
    "scaled_dot_product_attention": "torch._higher_order_ops.flex_attention.math_attention",
    "multi_head_attention_forward": "torch.ao.nn.quantizable.modules.activation.MultiheadAttention._forward_impl",
}
REHEARSALS = (4, 4, 3, 4, 3)  # elements of an input; with fewer than 4 the answer ends in an error
_NEEDED = {"empty", "normal_", "uniform_"}  # torch itself cannot do without; they are watched only
_KEYS = ("CPU", "AutogradCPU", "MkldnnCPU")  # replaced for every kernel, its own or composed
_LAYOUTS = ("QuantizedCPU", "SparseCPU", "SparseCsrCPU", "NestedTensorCPU")  # where it has its own


def main(read_fd: int, write_fd: int) -> None:
    """Serve one judge: frames come from ``read_fd`` and go to ``write_fd``; returns when the pipe closes."""
    source, sink = _aside(read_fd), _aside(write_fd)
    session = Session()
    while True:
        frame = _receive(source)
        if frame is None:
            return
        reply = session.answer_to(frame)
        signal.setitimer(signal.ITIMER_REAL, 0)  # a timer of the student's
        if not _send(sink, reply):
            return


def rehearse() -> None:
    """Exercise a trivial answer, so that what is slow for the first time is done before the fork.

    An error is rehearsed too, and all of it a few times, after which Python has settled on the form of its code: what a
    worker does not write, it shares. Gradients are left out: where there is a GPU, torch starts threads for them, which a
    fork would lose.
    """
    cell = "import math\n\ndef rehearsed(x):\n    if len(x) < 4:\n        raise ValueError(f'{len(x)}')\n"
    cell += "    return (x.reshape(2, 2).permute(1, 0).flatten() * 2).sum(), x\n"
    for size in REHEARSALS:
        names: dict[str, Any] = {}
        run_imports("import math", "<support>", names)
        run_cell(cell, "<answer>", names)
        case = Case("rehearsal", {"x": torch.arange(size) * 1.0}, outputs=("total", "x"))
        session = Session()
        session.answer = LocalAnswer(names["rehearsed"])
        session._look({"calls": [[1, []]]}, [])
        data, tensors = write_case(case, "rehearsal")
        request, arrays = unpack(pack({"do": "observe", "case": data, "seconds": 5.0}, tensors))
        pack(*session._observe(request, arrays))
    _seed(0)
    _in_python()
    with contextlib.suppress(ImportError):  # gradients look there
        importlib.import_module("torch.nested._internal.nested_tensor")


class Session:
    """What is loaded in this worker."""

    def __init__(self) -> None:
        self.answer: LocalAnswer | None = None
        self.restore: Callable[[], None] | None = None  # once an answer has been loaded
        self.used: set[str] = set()  # forbidden kernels that were called

    def answer_to(self, frame: bytes) -> bytes:
        """Do what a frame asks, and never raise."""
        nonce = None
        try:
            request, tensors = unpack(frame, MAX_HEADER)
            nonce = request["nonce"]
            head, arrays = getattr(self, f"_{request['do']}")(request, tensors)
            return pack({"nonce": nonce, "done": head}, arrays)
        except BaseException as error:  # student code may leave anything behind, for any object
            kind = error.args[0] if isinstance(error, WireError) else type(error).__name__
            return pack({"nonce": nonce, "failed": str(kind)[:200]})

    def _load(self, request: dict, tensors: list) -> tuple[dict, list]:
        """Install the visible package, run the support code and the answer's cell, keep the answer."""
        self.answer = None
        install(request["modules"])
        if self.restore is None:  # a process that is shared goes on as it is
            sys.modules.update(dict.fromkeys(CLOSED))  # type: ignore[arg-type]  # None: not to be imported
            _run_uncompiled()
            self._forbid(request["forbidden"])
            probing.after_answer = lambda: restore()  # before the seal, which keeps it
            self.restore = Seal().restore  # before any answer can put another one there
        restore = self.restore
        _seed(request["seed"])
        name, module = request["name"], types.ModuleType("__main__")
        sys.modules["__main__"] = module  # dataclasses look their module up
        names = vars(module)
        lost: list[Any] = []
        error: BaseException | None = None
        with quiet() as sink, neutral_settings():
            try:
                with time_limit(request["seconds"]):
                    given = _given(request["given"], f"{request['support']}\n{request['answer']}")
                    names.update(given)
                    lost = run_imports(request["support"], "<support>", names)
                    names.update(
                        given
                    )  # what was built earlier is the reference, whatever came along
                    error = run_cell(request["answer"], "<answer>", names)
            except BaseException as trouble:
                error = trouble
            finally:
                restore()
        if name in names:
            self.answer = LocalAnswer(names[name])
        loaded = Loaded(
            defined=name in names,
            trouble=None if error is None else describe(error),
            timed_out=isinstance(error, TimeUp),
            lost=tuple(lost),
            printed=sink.head,
        )
        return write_loaded(loaded), []

    def _look(self, request: dict, tensors: list) -> tuple[dict, list]:
        calls = [(count, tuple(keywords)) for count, keywords in request["calls"]]
        return write_look(self._loaded().look(calls)), []

    def _observe(self, request: dict, tensors: list) -> tuple[dict, list]:
        self.used.clear()
        seen = self._loaded().observe(read_case(request["case"], tensors), request["seconds"])
        seen.operations |= self.used
        return write_observation(seen)

    def _plain(self, request: dict, tensors: list) -> tuple[dict, list]:
        return write_plain(self._loaded().plain()), []

    def _loaded(self) -> LocalAnswer:
        if self.answer is None:
            raise WireError("no answer is loaded.")
        return self.answer

    def _forbid(self, names: list[str]) -> None:
        """Put a refusal in the place of forbidden kernels, for all threads and ways of calling.

        Args:
            names: of functions and kernels; those that name no kernel are watched for by the probes alone.
        """
        kernels = {name.removeprefix("aten.").split(".")[0] for name in names}
        if (
            kernels & _NEEDED
        ):  # whoever builds a layer makes parameters, or stands-in for them, in any thread
            _refuse(torch.nn.Parameter.__new__, "aten.empty", self.used.add)
            torch.nn.Module.__init__ = _refusal("aten.empty", self.used.add)  # type: ignore[method-assign]
        kernels -= _NEEDED
        if not kernels:
            return
        _take_from_python(kernels, self.used.add)
        fused = {name.split(".")[1] for name in names if name.startswith("mkldnn.")}
        self._replace("aten", kernels)
        self._replace("mkldnn", fused)

    def _replace(self, namespace: str, kernels: set[str]) -> None:
        """Put a refusal in the place of kernels, wherever they can be called on a CPU."""
        library = torch.library.Library(namespace, "IMPL")

        def refusal(name):
            def refuse(*args, **kwargs):
                self.used.add(f"{namespace}.{name}")
                raise RuntimeError(f"{name.strip('_')} is not allowed in this exercise")

            return refuse

        has_own = torch._C._dispatch_has_kernel_for_dispatch_key
        for kernel in kernels:
            packet = getattr(getattr(torch.ops, namespace), kernel, None)
            for overload in packet.overloads() if packet is not None else ():
                full = kernel if overload == "default" else f"{kernel}.{overload}"
                own = [key for key in _LAYOUTS if has_own(f"{namespace}::{full}", key)]
                for key in (*_KEYS, *own):
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore")  # that a kernel is replaced
                        library.impl(full, refusal(kernel), key)
        _make_final(library)


def _take_from_python(kernels: set[str], note: Callable[[str], None]) -> None:
    """Take out torch's own definitions of kernels in Python, which need none of them."""
    bare = {name.strip("_") for name in kernels}
    for name, inner in _in_python() if bare else ():
        if name.strip("_") in bare:
            _refuse(inner, name, note)


def _refusal(name: str, note: Callable[[str], None]) -> Callable[..., Any]:
    """Give a function that refuses, for what has a code that cannot be replaced."""

    def refused(*args: Any, **kwargs: Any) -> None:
        note(name)
        raise RuntimeError(f"{name} is not allowed in this exercise")

    return refused


def _refuse(function: Any, name: str, note: Callable[[str], None]) -> None:
    """Replace the code of a function and not its name: whoever holds the function meets the refusal."""

    def refused(*args, note, name, **kwargs):
        note(name)
        raise RuntimeError(f"{name} is not allowed in this exercise")

    function.__code__, function.__defaults__ = refused.__code__, None
    function.__kwdefaults__ = {"note": note, "name": name}


@functools.cache
def _in_python() -> list[tuple[str, types.FunctionType]]:
    """List torch's definitions of kernels in Python; done once before the fork, since it reads thousands of objects."""
    found: dict[int, tuple[str, Any]] = {}
    for title, module in list(sys.modules.items()):
        if module is not None and title.startswith(_IN_PYTHON):
            found |= {id(f): (name, f) for name, f in vars(module).items() if callable(f)}
    for table in torch._decomp.global_decomposition_table.values():
        for operation, function in table.items():
            words = str(operation).split("::")[-1].split(".")
            found[id(function)] = (words[1] if words[0] == "aten" else words[0], function)
    for name, place in _ELSEWHERE.items():
        function = _at(place)
        found[id(function)] = (name, function)
    unwrapped = [
        (name, inspect.unwrap(function))
        for name, function in found.values()
        if function is not None
    ]
    return [
        (name, inner)
        for name, inner in unwrapped
        if isinstance(inner, types.FunctionType) and not inner.__code__.co_freevars
    ]


def _at(place: str) -> Any:
    """Find a function of a module or class that is loaded; else None."""
    end = max(i for i, c in enumerate(place) if c == "." and place[:i] in sys.modules)
    owner: Any = sys.modules[place[:end]]
    for name in place[end + 1 :].split("."):
        owner = getattr(owner, name, None)
    return owner


def _make_final(library: torch.library.Library) -> None:
    """Let what a library registered outlive it, with no object left that could undo it."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(library.m))  # never freed; nothing leads to it
    for finalizer in list(weakref.finalize._registry):  # type: ignore[attr-defined]
        if (alive := finalizer.peek()) and alive[0] is library:
            finalizer.detach()
    library.m = None


def _given(places: list[list[str]], text: str) -> dict[str, Any]:
    """Give the references of earlier exercises that the code mentions, as earlier cells would have."""
    given, words = {}, set(re.findall(r"\w+", text))
    for name, module in places:
        if name in words:
            __import__(module)
            given[name] = getattr(sys.modules[module], name)
    return given


_COMPILERS = ("script", "trace", "script_if_tracing")  # of torch.jit


def _run_uncompiled() -> None:
    """Let an answer that asks to be compiled run as it is written: no compiler works in the box, and none is needed.

    The decorators give the function back, so that its signature can be read as well.
    """

    def as_it_is(function: Any = None, *rest: Any, **settings: Any) -> Any:
        return function if function is not None else as_it_is

    for place, name in ((torch, "compile"), *((torch.jit, n) for n in _COMPILERS)):
        setattr(place, name, as_it_is)
    torch.nn.Module.compile = lambda self, *rest, **settings: None  # type: ignore[method-assign]


def _seed(seed: int) -> None:
    """Make chance differ from process to process, where an answer asks for it in the usual places."""
    random.seed(seed)
    np.random.seed(seed % 2**32)  # noqa: NPY002 - the generator that an answer would use
    torch.default_generator.manual_seed(seed)  # torch.manual_seed formats a stack where CUDA sleeps


# --- the pipes ----------------------------------------------------------------------------------


def _aside(fd: int) -> int:
    """Move a file descriptor up, closed to programs that are started, and close the old one."""
    for lowest in (HIGHEST, 128, 32):
        try:
            moved = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, lowest)
        except OSError:  # fewer descriptors are allowed
            continue
        os.close(fd)
        return moved
    return fd


def _receive(fd: int) -> bytes | None:
    """Read one frame; None at the end."""
    prefix = _read(fd, PREFIX)
    rest = _read(fd, length_of(prefix)) if prefix else None
    return prefix + rest if prefix and rest else None


def _read(fd: int, count: int) -> bytes | None:
    parts = []
    while count:
        try:
            part = os.read(fd, min(count, 2**20))
        except OSError:
            return None
        except BaseException:  # a signal that the answer's code has set up
            continue
        if not part:
            return None
        parts.append(part)
        count -= len(part)
    return b"".join(parts)


def _send(fd: int, frame: bytes) -> bool:
    view = memoryview(frame)
    while view:
        try:
            view = view[os.write(fd, view) :]
        except OSError:
            return False
    return True
