"""Run code that may do anything, and come back.

Role: one context that isolates a check from the student's settings and the student from the check's:
random states, default dtype and device, gradient modes, warnings, output, time. Standard library and
torch only. Not a security boundary: code under ``guard`` shares the process.
"""

import contextlib
import ctypes
import functools
import heapq
import io
import itertools
import queue
import random
import signal
import sys
import threading
import time
import warnings
import weakref

import numpy as np
import torch
from torch import overrides
from torch.utils import _device

KEPT_OUTPUT = 400  # characters of printed output that a report may show


class TimeUp(BaseException):
    """The time limit of a check is over. Not an ``Exception``, so that plain handlers let it pass."""


class Sink(io.TextIOBase):
    """A text file that keeps its first characters and counts the rest."""

    def __init__(self):
        self.head, self.written = "", 0

    def writable(self):
        return True

    def write(self, text):
        self.head += text[: max(0, KEPT_OUTPUT - len(self.head))]
        self.written += len(text)
        return len(text)


@contextlib.contextmanager
def time_limit(seconds: float):
    """Raise ``TimeUp`` in this thread after so many seconds, again and again until it has left.

    A POSIX timer where there is one and this is the main thread (it also interrupts sleeping);
    elsewhere an exception set from a second thread, which needs Python code to be running.
    """
    if hasattr(signal, "setitimer") and threading.current_thread() is threading.main_thread():

        def alarm(signum, frame):
            raise TimeUp

        before = signal.signal(signal.SIGALRM, alarm)
        start = time.monotonic()
        pending, interval = signal.setitimer(signal.ITIMER_REAL, seconds, 0.5)
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
            if pending:  # somebody else's timer was running: let it go on where it would be now
                rest = max(1e-3, pending - (time.monotonic() - start))
                signal.setitimer(signal.ITIMER_REAL, rest, interval)
        return

    block = _Block()
    _to_be_watched().put((time.monotonic() + seconds, next(_ORDER), weakref.ref(block)))
    try:
        yield
    finally:
        try:
            block.leave()
        except TimeUp:  # time is up at this very moment: the block must be left all the same
            block.leave()
            raise


class _Block:
    """A block of this thread that has a time limit, until it is left, or forgotten with all who entered it."""

    def __init__(self):
        self.owner, self.thread = threading.current_thread(), ctypes.c_ulong(threading.get_ident())
        self.lock, self.is_left = threading.Lock(), False

    def interrupt(self) -> bool:
        """Set the exception in the block's thread, if both are still there; tell whether they were.

        A new thread may have the number of one that has ended.
        """
        with self.lock:
            is_there = not self.is_left and self.owner.is_alive()
            if is_there:
                ctypes.pythonapi.PyThreadState_SetAsyncExc(self.thread, ctypes.py_object(TimeUp))
            return is_there

    def leave(self) -> None:
        """Take back an exception that was set too late."""
        with self.lock:
            self.is_left = True
        ctypes.pythonapi.PyThreadState_SetAsyncExc(self.thread, None)


_ORDER = itertools.count()  # of blocks that end at the same time
_LIMITS: queue.SimpleQueue = queue.SimpleQueue()
_STARTING = threading.Lock()
_watcher: threading.Thread | None = None


def _to_be_watched() -> queue.SimpleQueue:
    """Give the line to the one thread that watches all limits, and see that it runs, after a fork too.

    There is one for all and not one for each, since Python may set an exception in the wrong thread: until a new thread
    runs, it has the number of the one that starts it. It would end before it began, and its starter wait for ever.
    """
    global _watcher
    if _watcher is None or not _watcher.is_alive():
        with _STARTING:
            if _watcher is None or not _watcher.is_alive():
                _watcher = threading.Thread(target=_watch, name="time limits", daemon=True)
                _watcher.start()
    return _LIMITS


def _watch() -> None:
    """Interrupt blocks whose time is up, every half second until they have been left."""
    ends: list[tuple[float, int, weakref.ref]] = []
    while True:
        with contextlib.suppress(queue.Empty):
            wait = max(0.0, ends[0][0] - time.monotonic()) if ends else None
            heapq.heappush(ends, _LIMITS.get(timeout=wait))
        while ends and ends[0][0] <= time.monotonic():
            _, _, limit = heapq.heappop(ends)
            if (block := limit()) is not None and block.interrupt():
                heapq.heappush(ends, (time.monotonic() + 0.5, next(_ORDER), limit))
            block = None  # or it would not be forgotten


@contextlib.contextmanager
def neutral_settings():
    """Give the block torch's factory settings and put the caller's back afterwards.

    Whatever ``torch.manual_seed``, ``set_default_dtype``, ``no_grad``, ``inference_mode``, ``autocast`` or
    default device stands around a check, and whatever the checked code sets, changes no verdict.
    """
    dtype, precision = torch.get_default_dtype(), torch.get_float32_matmul_precision()
    deterministic = torch.are_deterministic_algorithms_enabled()
    warn_only = torch.is_deterministic_algorithms_warn_only_enabled()
    anomaly, threads = torch.is_anomaly_enabled(), torch.get_num_threads()
    numpy_state, python_state = np.random.get_state(), random.getstate()
    gpus = range(torch.cuda.device_count()) if torch.cuda.is_initialized() else []
    with contextlib.ExitStack() as stack:
        stack.enter_context(_no_function_modes())
        stack.enter_context(torch.random.fork_rng(devices=gpus))
        stack.enter_context(torch.inference_mode(False))
        stack.enter_context(torch.enable_grad())
        for kind in {"cpu", "cuda"} if torch.cuda.is_available() else {"cpu"}:
            stack.enter_context(torch.autocast(kind, enabled=False))
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore")
        torch.set_default_dtype(torch.float32)
        if deterministic:
            torch.use_deterministic_algorithms(False)
        torch.autograd.set_detect_anomaly(False)
        try:
            yield
        finally:
            torch.set_default_dtype(dtype)
            torch.set_float32_matmul_precision(precision)
            if torch.are_deterministic_algorithms_enabled() != deterministic:
                torch.use_deterministic_algorithms(deterministic, warn_only=warn_only)
            torch.autograd.set_detect_anomaly(anomaly)
            if torch.get_num_threads() != threads:
                torch.set_num_threads(threads)
            np.random.set_state(numpy_state)
            random.setstate(python_state)


def settings_left() -> list[str]:
    """Say which of torch's settings stand otherwise than ``neutral_settings`` gave them."""
    words = []
    if not torch.is_grad_enabled():
        words.append("gradients are switched off")
    if torch.get_default_dtype() != torch.float32:
        words.append(f"the default dtype is {torch.get_default_dtype()}")
    if _device.CURRENT_DEVICE is not None:
        words.append(f"the default device is {_device.CURRENT_DEVICE}")
    if torch.is_inference_mode_enabled():
        words.append("inference mode is on")
    if torch.are_deterministic_algorithms_enabled():
        words.append("deterministic algorithms are on")
    if torch.is_anomaly_enabled():
        words.append("anomaly detection is on")
    return words


@contextlib.contextmanager
def _no_function_modes():
    """Take off what stands between a caller and torch's functions, default devices above all, and put it back.

    ``with torch.device("cpu")`` would not do: torch keeps one default device, and a ``set_default_device`` in the
    block throws out those that ``with`` has put there.
    """
    kept = getattr(torch._GLOBAL_DEVICE_CONTEXT, "device_context", None), _device.CURRENT_DEVICE
    modes = _take_modes()
    torch._GLOBAL_DEVICE_CONTEXT.device_context = _device.CURRENT_DEVICE = None
    try:
        yield
    finally:
        _take_modes()
        for mode in modes:
            overrides._push_mode(mode)
        torch._GLOBAL_DEVICE_CONTEXT.device_context, _device.CURRENT_DEVICE = kept


def _take_modes() -> list:
    """Empty the stack of function modes; the bottom one first."""
    modes = overrides._get_current_function_mode_stack()
    for _ in modes:
        overrides._pop_mode()
    return modes


@contextlib.contextmanager
def quiet():
    """Send what the block prints into a ``Sink``, which is yielded."""
    sink = Sink()
    with contextlib.redirect_stdout(sink), contextlib.redirect_stderr(sink):
        yield sink


def seed_everything(seed: int) -> None:
    """Put all global generators in a known state, for one call of the checked code."""
    torch.default_generator.manual_seed(seed)  # torch.manual_seed formats a stack where CUDA sleeps
    if torch.cuda.is_initialized():
        torch.cuda.manual_seed_all(seed)
    np.random.seed(seed % 2**32)
    random.seed(seed)


def text_of(error: BaseException) -> str:
    """Give an error's message, whatever its ``__str__`` does."""
    try:
        return str.__str__(str(error))  # a subclass of str may be returned, and slice as it likes
    except Exception:
        return "(its message cannot be shown)"


def is_raised_by_hand(error: BaseException) -> bool:
    """Tell whether a ``raise`` statement of the student's made an error, not a library on the way."""
    import dis

    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None or not _is_students(trace.tb_frame.f_code.co_filename):
        return False
    instructions = dis.get_instructions(trace.tb_frame.f_code)
    return any(i.offset == trace.tb_lasti and i.opname == "RAISE_VARARGS" for i in instructions)


@functools.cache
def _is_students(filename: str) -> bool:
    """Tell whether code is neither ours nor a library's."""
    import sysconfig

    ours = __file__.rsplit("checks", 1)[0]
    if "site-packages" in filename or "dist-packages" in filename:
        return False  # of whatever environment: one may look into another
    return not filename.startswith((ours, sysconfig.get_paths()["stdlib"], "<frozen"))


def student_frames(error: BaseException) -> list[tuple[str, int, str, str]]:
    """List where an error passed through code that is not ours and not a library's.

    Returns:
        Tuples (file, line number, function, source line), outermost first.
    """
    import linecache

    frames, trace = [], error.__traceback__
    while trace is not None:
        code = trace.tb_frame.f_code
        if _is_students(code.co_filename):
            line = linecache.getline(code.co_filename, trace.tb_lineno).strip()
            frames.append((code.co_filename, trace.tb_lineno, code.co_name, line))
        trace = trace.tb_next
    return frames


def is_interactive() -> bool:
    """Tell whether a notebook or IPython shell is listening."""
    return "IPython" in sys.modules and sys.modules["IPython"].get_ipython() is not None
