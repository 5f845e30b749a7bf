"""The guard of a check: whatever happens inside or around it, both sides keep their settings."""

import contextlib
import functools
import importlib
import os
import random
import signal
import subprocess
import sys
import threading
import time
import warnings

import numpy as np
import pytest
import torch
from verdicts import failed_parts

from vitedu import attention, encoder, patches, training
from vitedu.checks.api import judge
from vitedu.checks.observing.errors import is_raised_by_student
from vitedu.checks.observing.limits import MAX_OUTPUT, TimeUp, capture_output, time_limit
from vitedu.checks.observing.settings import neutral_settings

ANSWERS = {
    "patchify": patches.patchify,
    "sincos_positions": patches.sincos_positions,
    "linear_from_conv": patches.linear_from_conv,
    "scaled_dot_product_attention": attention.scaled_dot_product_attention,
    "EncoderBlock": encoder.EncoderBlock,
    "evaluate": training.evaluate,
}


@pytest.fixture(autouse=True)
def unhurried(monkeypatch):
    """Judge right however crowded the machine is: tests of time limits set their own."""
    monkeypatch.setenv("VITEDU_TIME_LIMIT", "60")


def settings() -> dict:
    """Write down every global setting that a check may not change."""
    return {
        "torch": torch.get_rng_state().tolist(),
        "numpy": np.random.get_state()[1].tolist(),
        "numpy position": np.random.get_state()[2],
        "random": random.getstate(),
        "dtype": torch.get_default_dtype(),
        "device": torch.get_default_device(),
        "device of new tensors": torch.empty(1).device,
        "grad": torch.is_grad_enabled(),
        "inference": torch.is_inference_mode_enabled(),
        "autocast": torch.is_autocast_enabled("cpu"),
        "filters": list(warnings.filters),
        "alarm": signal.getsignal(signal.SIGALRM),
    }


@contextlib.contextmanager
def default(change, value, before):
    """Set a default, and the one before it at the end."""
    change(value)
    try:
        yield
    finally:
        change(before)


@contextlib.contextmanager
def errors_for_warnings():
    """Make every warning an error."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


DEFAULT_META = lambda: [default(torch.set_default_device, "meta", None)]  # noqa: E731
# what stands around a check, outermost first; some contexts are on as soon as they are made
SURROUNDINGS = {
    "nothing": lambda: [],
    "default dtype float64": lambda: [
        default(torch.set_default_dtype, torch.float64, torch.float32)
    ],
    "no_grad": lambda: [torch.no_grad()],
    "inference_mode": lambda: [torch.inference_mode()],
    "autocast": lambda: [torch.autocast("cpu", dtype=torch.bfloat16)],
    "device meta": lambda: [torch.device("meta")],
    "device meta twice": lambda: [torch.device(name) for name in ("meta", "cpu", "meta")],
    "default device meta": DEFAULT_META,
    "warnings as errors": lambda: [errors_for_warnings()],
    "numpy errors": lambda: [np.errstate(all="raise")],
}


@contextlib.contextmanager
def unchanged(around):
    """Enter surroundings in which all settings shall stand at the end as at the beginning."""
    with contextlib.ExitStack() as stack:
        for context in around():
            stack.enter_context(context)
        before = settings()
        yield
        assert before == settings()


def wrong_patchify(images, patch_size):
    values = patches.patchify(images, patch_size).mT
    return values.reshape(len(images), -1, images.shape[1] * patch_size**2)


def reports() -> list[tuple[str, dict]]:
    """Judge right answers of each kind and a wrong one."""
    results = [judge(answer, name, seed=5) for name, answer in ANSWERS.items()]
    assert all(report.passed for report in results), results
    results.append(judge(wrong_patchify, "patchify", seed=5))
    return [(str(report), report.to_dict()) for report in results]


plain_reports = functools.cache(reports)  # where nothing is set


@pytest.mark.slow
@pytest.mark.parametrize("around", SURROUNDINGS.values(), ids=SURROUNDINGS)
def test_verdict_and_settings_do_not_depend_on_the_surroundings(around):
    """The same seed gives the same report under any setting, and every setting stands as before."""
    plain = plain_reports()
    with unchanged(around):
        assert reports() == plain


def test_seeds_around_a_check_change_nothing():
    """Global seeds change no report, and a check draws nothing from the global generators."""
    reports = []
    for seed in (1, 2):
        torch.manual_seed(seed)
        np.random.seed(seed)
        random.seed(seed)
        with unchanged(SURROUNDINGS["nothing"]):
            reports.append(str(judge(lambda x: x * torch.rand(()), "gelu", seed=3)))
    assert reports[0] == reports[1]


def spoil() -> None:
    """Change every global setting that torch, NumPy and Python have."""
    torch.set_default_dtype(torch.float64)
    torch.manual_seed(7)
    np.random.seed(7)
    random.seed(7)
    torch.set_autocast_enabled("cpu", True)
    warnings.simplefilter("error")


def test_an_answer_that_spoils_every_setting_loses_one_finding():
    """What the answer sets is undone after each call, and told; nobody else sees it."""

    def layer_norm(x, weight, bias, eps=1e-6):
        result = encoder.layer_norm(x, weight, bias, eps)
        spoil()
        return result

    with unchanged(SURROUNDINGS["nothing"]):
        report = judge(layer_norm, seed=0)
    assert failed_parts(report) == ["again"], str(report)
    assert "the default dtype is torch.float64" in str(report)


def enter_for_good(context, contexts=[]) -> None:  # noqa: B006 - so that it lives on
    """Enter a context that nobody leaves."""
    contexts.append(context)
    context.__enter__()


SPOILED = {
    "set_grad_enabled": lambda: torch.set_grad_enabled(False),
    "set_default_device": lambda: torch.set_default_device("meta"),
    "device entered": lambda: torch.device("meta").__enter__(),
    "autocast entered": lambda: enter_for_good(torch.autocast("cpu")),
}


@pytest.mark.parametrize("spoil_one", SPOILED.values(), ids=SPOILED)
@pytest.mark.parametrize(
    "around", [SURROUNDINGS["nothing"], DEFAULT_META], ids=["plain", "default meta"]
)
def test_settings_that_change_results_are_undone_too(spoil_one, around):
    """Gradients switched off or a default device left behind cost points in this answer alone."""

    def gelu(x):
        result = encoder.gelu(x)
        spoil_one()
        return result

    with unchanged(around):
        judge(gelu, seed=0)
        assert judge(encoder.gelu, seed=0).passed


# --- time ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("busy", [lambda: None, lambda: time.sleep(5)], ids=["looping", "sleeping"])
def test_time_limit_ends_a_block(busy):
    """A loop and a sleep are both interrupted."""
    start = time.perf_counter()
    with pytest.raises(TimeUp), time_limit(0.1, waiting=0.5):
        while True:
            busy()
    assert time.perf_counter() - start < 4.0


def test_time_limit_passes_a_plain_handler():
    """``except Exception`` inside a loop does not swallow the end of time."""
    with pytest.raises(TimeUp), time_limit(0.1):
        while True:
            try:
                sum(range(1000))
            except Exception:  # noqa: S110
                pass


def test_time_limit_works_in_a_thread():
    """Where no signal can be used, a second thread ends the loop."""
    ended = []

    def work():
        try:
            with time_limit(0.1):
                while True:
                    sum(range(100))
        except TimeUp:
            ended.append(True)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join(60)
    assert ended == [True]


def swallowing():
    """Catch whatever interrupts a loop, as a bare except does."""
    while True:
        try:
            sum(range(1000))
        except BaseException:  # noqa: S110
            pass


def test_a_loop_that_catches_everything_ends():
    """The line that catches the end of time is interrupted as well."""
    start = time.process_time()
    with pytest.raises(TimeUp), time_limit(0.1):
        swallowing()
    assert time.process_time() - start < 2 and sys.gettrace() is None


class Slow:
    """Takes longer to go than there is time."""

    def __del__(self):
        start = time.thread_time()
        while time.thread_time() - start < 0.5:
            pass
        DELETED.append(True)


DELETED: list[bool] = []


@pytest.mark.parametrize("place", ["main", "thread"])
def test_no_destructor_is_interrupted(place):
    """It could not pass the exception on, and would leave its work half done."""
    DELETED.clear()

    def work():
        with contextlib.suppress(TimeUp), time_limit(0.1):
            Slow()
            while True:
                pass

    thread = threading.Thread(target=work)
    thread.start() if place == "thread" else work()
    thread.join() if place == "thread" else None
    assert DELETED == [True]


def test_no_import_is_interrupted(tmp_path, monkeypatch):
    """Time is up during an import; the module is whole all the same."""
    (tmp_path / "slow_to_import.py").write_text(
        "import time\nstart = time.thread_time()\n"
        "while time.thread_time() - start < 0.5:\n    pass\nvalue = 1\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(TimeUp), time_limit(0.1):
        importlib.import_module("slow_to_import")
        while True:
            pass
    assert sys.modules.pop("slow_to_import").value == 1


def test_waiting_is_no_computing():
    """A block that waits has more time by the clock, and is told apart."""
    start = time.perf_counter()
    with pytest.raises(TimeUp, match="waits"), time_limit(0.1, waiting=0.6):
        time.sleep(30)
    assert 0.5 < time.perf_counter() - start < 20


MANY = """
import threading, time
from vitedu.checks.observing.limits import TimeUp, time_limit

def run():
    for number in range(400):
        try:
            with time_limit(number % 8 * 2e-5):
                for _ in range(500):
                    pass
        except TimeUp:
            pass
    try:
        for _ in range(30):
            time.sleep(0.05)
    except TimeUp:
        print("a limit outlived its block")

before = threading.active_count()
threads = [threading.Thread(target=run) for _ in range(3)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(threading.active_count() - before, "more")
"""


@pytest.mark.slow
def test_limits_that_end_at_once_hang_nobody_and_outlive_no_block():
    """In several threads, with time up before, in and after a block."""
    done = subprocess.run(
        [sys.executable, "-c", MANY], capture_output=True, text=True, timeout=120, check=True
    )
    assert done.stdout == "0 more\n", done.stdout + done.stderr


PROFILED = """
import sys, threading, time
from vitedu.checks.observing.limits import TimeUp, time_limit

def run():
    for seconds in (30, 0):
        try:
            with time_limit(seconds):
                time.sleep(0.01)
        except TimeUp:
            pass

thread = threading.Thread(target=run)
thread.start()
thread.join()
calls = []
sys.setprofile(lambda frame, event, argument: calls.append(event))
run()
sys.setprofile(None)
print("call" in calls)
"""


def test_a_profiler_works_after_a_limit_in_a_thread():
    """In Python 3.11 it waited for ever where a limit had cleared an exception."""
    done = subprocess.run(
        [sys.executable, "-c", PROFILED], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout == "True\n", done.stdout + done.stderr


def test_time_limit_leaves_a_fast_block_alone():
    """What is done in time sees nothing of the limit, then or later."""
    with time_limit(0.05):
        value = 1
    time.sleep(0.1)
    assert value == 1


# --- output and errors --------------------------------------------------------------------------


def test_quiet_keeps_the_beginning_of_a_megabyte():
    """Of a flood the first characters are kept and the rest is counted."""
    with capture_output() as sink:
        print("x" * 10**6)
    assert len(sink.head) == MAX_OUTPUT and sink.length == 10**6 + 1


def caught(run) -> BaseException:
    """Give the error that a call raises."""
    try:
        run()
    except BaseException as error:
        return error
    raise AssertionError("no error")


def raised_here():
    """A stub."""
    raise NotImplementedError("1.1 patchify")


def test_a_raise_of_the_students_is_told_from_a_librarys():
    """Only a raise in the student's own code marks a stub; a missing kernel of torch does not."""
    assert is_raised_by_student(caught(raised_here))
    assert not is_raised_by_student(caught(lambda: torch.zeros(2, device="meta").tolist()))
    assert not is_raised_by_student(caught(lambda: torch.nn.Module()(1)))
    assert not is_raised_by_student(caught(lambda: os.stat("")))


def test_neutral_settings_survive_an_error():
    """Settings come back however the block is left."""
    with unchanged(SURROUNDINGS["nothing"]), pytest.raises(ZeroDivisionError), neutral_settings():
        spoil()
        1 / 0  # noqa: B018
