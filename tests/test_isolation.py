"""What runs in the box reaches nothing, its end has a reason, and nothing of it survives."""

import errno
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest
from boxed_code import FILES, ask, frame

from vitedu.grading.box import canary, isolation, launch, seccomp
from vitedu.grading.box.conversation import WorkerTrouble
from vitedu.grading.box.isolation import BREACHES, Box, Isolation, IsolationError, open_box
from vitedu.grading.box.limits import MB, Limits
from vitedu.grading.grades import REASONS

SMALL = Limits(memory_mb=256, cpu_seconds=1, reply_mb=1, threads=16)
LINUX = sys.platform == "linux"
pytestmark = [pytest.mark.slow, pytest.mark.skipif(not LINUX, reason="the box is Linux's")]


@pytest.fixture(scope="module")
def box():
    """A box, opened once."""
    with open_box(SMALL, files=FILES, allow_unsafe=True) as box:
        yield box


@pytest.fixture
def worker(box):
    with box.worker() as worker:
        yield worker


def descendants(pid):
    """Give (number, start time) of all processes below one."""
    processes = set()
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in task.read_text().split():
            processes |= {(int(child), started(int(child)))} | descendants(int(child))
    return processes


def started(pid):
    """Give the time at which a process started, None if there is none or it is dead already."""
    try:
        words = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except OSError:
        return None
    return None if words[0] in "ZX" else words[19]


def gone(processes, seconds=5.0):
    """Wait until none of the processes lives."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if not [pid for pid, start in processes if start and started(pid) == start]:
            return True
        time.sleep(0.02)
    return False


# --- the level ----------------------------------------------------------------------------------


def test_level_is_full(box):
    """The canary could do nothing of what it tried, which includes every refused call."""
    assert (box.level, box.isolation.breaches, box.isolation.missing) == ("full", {}, {})
    assert {"landlock", "seccomp", "no capabilities"} <= set(box.isolation.restrictions)
    assert box.isolation.count > 300


def test_canary_outside_a_box_can_do_everything(tmp_path):
    """Each try is one that works where nothing forbids it: else its failure would prove nothing."""
    code = "from vitedu.grading.box import canary; canary.main(0, 1)"
    words, pipe = [sys.executable, "-c", code], subprocess.PIPE
    (tmp_path / "decoy").touch()
    needed = [str(tmp_path / "missing")]
    with isolation.probe_targets(needed, str(tmp_path / "decoy"), 1) as plan:
        plan |= {"most": 10_000}
        with subprocess.Popen(words, stdin=pipe, stdout=pipe, cwd=tmp_path) as child:
            stop = threading.Timer(60, child.kill)
            stop.start()
            child.stdin.write(canary.write_frame(plan) + b"!")
            child.stdin.flush()
            reply = {}
            for _ in range(2):
                length = int.from_bytes(child.stdout.read(8), "little")
                reply |= json.loads(child.stdout.read(length))
            stop.cancel()
    assert reply.pop("needs") == needed[0] and reply.pop("count") > 300
    assert {name for name, evidence in reply.items() if not evidence} == set()
    assert [code for _, _, code in canary.TRIES if code not in str(reply)] == []
    refused = {*seccomp.REFUSED_CALLS, *canary.FORBIDDEN} - set(reply["kernel"].split("; "))
    if os.geteuid() == 0:  # a kernel may be built without modules and ports
        without = {name for name in refused if re.search("module|kexec|iop", name)}
        assert refused - without == canary.UNSAFE_CALLS
    assert set(reply) == set(BREACHES)
    assert [path.name for path in tmp_path.iterdir()] == ["decoy"]


# what a fork server needs of torch and numpy, to open many boxes in little time
STAND_INS = {
    "torch/__init__.py": """
class Matrix:
    __matmul__ = lambda self, other: self
class default_generator:
    manual_seed = staticmethod(lambda seed: None)
ones = lambda *shape: Matrix()
set_num_threads = lambda number: None
""",
    "numpy/__init__.py": "",
    "numpy/random.py": "seed = lambda number: None",
}


@pytest.fixture
def light_box(monkeypatch):
    """Open boxes without torch, whose set-up or confinement is changed."""

    def open_light(setup=None, module="", old="", new=""):
        prepare, write = isolation.plan_launch, isolation.write_view

        def plan(*arguments):
            planned = prepare(*arguments)
            planned.setup.update(setup or {})
            return planned

        def write_changed(folder, files):
            write(folder, files)
            if module:
                path = folder / "vitedu/grading/box" / module
                text = path.read_text()
                assert text.count(old) == 1
                path.write_text(text.replace(old, new))

        monkeypatch.setattr(isolation, "plan_launch", plan)
        monkeypatch.setattr(isolation, "write_view", write_changed)
        return Box(SMALL, {**FILES, **STAND_INS})

    return open_light


@pytest.mark.parametrize("version", range(1, 7))
def test_level_is_full_with_every_version_of_landlock(light_box, version):
    """Before version 3 it does not know truncation: the filter does."""
    with light_box({"newest_landlock": version}) as box:
        assert (box.level, box.isolation.breaches) == ("full", {})


@pytest.mark.parametrize("is_private", [True, False])
def test_level_is_full_whoever_may_read_this_python(light_box, is_private):
    """Where only root may, the worker reads in root's name and is still nobody."""
    if os.geteuid() != 0 or (not is_private and launch.find_private_part(sys.executable)):
        pytest.skip("only root has users to give, and they must be able to read this Python")
    with light_box({"is_private": is_private}) as box:
        assert (box.level, box.isolation.missing) == ("full", {})


STEPS = {
    '"seccomp", seccomp.install': {
        *("write", "processes", "network", "kernel", "children", "memory")
    },
    '"landlock", hide_files, setup': {"write", "files", "references"},
    '"own user", change_user, setup["uid"], number, setup["is_private"]': {"threads"},
    '"no capabilities", linux.drop_capabilities': {"threads"},  # root's have no limit
    '"not to be traced", linux.prctl, linux.DUMPABLE, 0': set(),
}


@pytest.mark.parametrize("step", STEPS)
def test_canary_finds_each_line_of_defence_that_is_missing(light_box, step):
    """Those that nothing else holds; the last one is a second line, which the filter holds."""
    if STEPS[step] == {"threads"} and os.geteuid() != 0:
        pytest.skip("only root has users to give, and rights to lose")
    change = "confinement.py", f"attempt(report, {step})", "pass"
    with light_box({"is_private": True}, *change) as box:
        assert STEPS[step] <= set(box.isolation.breaches) <= STEPS[step] | {"disk"}


@pytest.mark.parametrize(
    ("module", "old", "new", "found"),
    [
        ("limits.py", "limits[name] = (size + self.memory_mb * MB,) * 2", "pass", {"memory"}),
        ("limits.py", '"NPROC"', '"none"', {"threads"}),
        ("calls.txt", "truncate 76 45, ", "", {"write"}),
        ("seccomp.py", "SECOND, 0x203, [0x200]", "SECOND, 0x203, [0x201]", set()),  # open: libc's
        ("seccomp.py", "THIRD, 0x203, [0x200]", "THIRD, 0x203, [0x201]", {"write"}),
        ("seccomp.py", "[8, 15, 1024, 1026]", "[8, 15]", {"write"}),
        ("seccomp.py", "0xFF00, [0x5400], True", "0xFF00, [], False", {"write"}),
        ("seccomp.py", "[0x21, 0x100, 0x101, 0x120, 0x121]", "[0x21]", {"memory"}),
        ("confinement.py", '"/dev/zero", ', "", set()),
    ],
)
def test_canary_finds_what_a_rule_forgets(light_box, module, old, new, found):
    """Where Landlock does not know truncation, and for what no other rule holds."""
    setup = {"newest_landlock": 2, "is_private": True}
    with light_box(setup, module, old, new) as box:
        assert set(box.isolation.breaches) == found


@pytest.mark.parametrize(
    ("could", "level"),
    [
        ([], "full"),
        (["network"], "partial: no network isolation"),
        (["files", "disk"], "partial: other files can be read; no limit on temporary files"),
        (["write"], "none"),
        (["network", "processes"], "none"),
    ],
)
def test_level_follows_from_what_the_canary_could_do(could, level):
    """Reading is partial; changing something outside is none."""
    assert Isolation(dict.fromkeys(could, "seen"), (), {}).level == level


def test_no_box_at_level_none_without_allow_unsafe(monkeypatch):
    """The error names what the canary could do, what is missing, and the remedy."""

    class StandIn:
        def __init__(self, limits, files):
            found = {"write": "/tmp"}, ("seccomp",), {"landlock": "no such call"}
            self.isolation, self.is_closed = Isolation(*found), False
            self.level = self.isolation.level

        def close(self):
            self.is_closed = True

    monkeypatch.setattr(isolation, "Box", StandIn)
    with pytest.raises(IsolationError) as caught:
        open_box(files={})
    words = ["files outside can be changed: /tmp", "no landlock: no such call", "Linux 5.13"]
    for word in [*words, "--allow-unsafe"]:
        assert word in str(caught.value)
    box = open_box(files={}, allow_unsafe=True)
    assert (box.level, box.is_closed) == ("none", False)


def test_full_temporary_folder_is_no_weakness_of_the_machine(monkeypatch):
    """One line names the folder and the remedy, and nobody is told to grade without a box."""

    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(isolation, "write_view", full)
    with pytest.raises(OSError, match=r"vitedu-box-.* \(No space left on device\).*TMPDIR"):
        open_box(files={})


def test_box_needs_workers_that_start(monkeypatch):
    """Even --allow-unsafe opens nothing where nothing starts."""
    monkeypatch.setattr(launch, "BOOT", "raise SystemExit('broken')")
    with pytest.raises(IsolationError, match="broken"):
        open_box(files={}, allow_unsafe=True)


# --- what an answer cannot do ------------------------------------------------------------------


REFUSED = f"""
import os; out = os.fork()
import os; out = os.execv('/bin/sh', ['sh'])
import subprocess; out = subprocess.run(['true'])
import socket; out = socket.socket()
import socket; out = socket.socketpair()
import os; out = os.kill(-1, 0)
import os; out = os.kill(os.getppid(), 0)
import os; out = os.memfd_create('x')
import mmap; out = mmap.mmap(-1, 4096)
import resource; out = resource.setrlimit(resource.RLIMIT_CPU, (-1, -1))
import os; out = os.setuid(0)
import os; out = os.truncate(vars(__import__('vitedu'))['__file__'], 0)
import os; out = os.open(vars(__import__('vitedu'))['__file__'], os.O_TRUNC)
out = open('mine.txt', 'w')
import tempfile; out = tempfile.TemporaryFile()
import torch; out = torch.save(1, 'weights.pt')
import os; out = os.mkdir('mine')
import os; out = os.listdir('/proc')
out = open('/dev/zero', 'r+b')
out = open(vars(__import__('vitedu'))['__file__'], 'a')
import torch; out = open(torch.__file__, 'a')
import os; out = os.chmod({__file__!r}, 0o644)
import os; out = os.utime({__file__!r})
out = open({__file__!r}).read()
out = open({str(isolation.PACKAGE / "patches.py")!r}).read()
""".strip().splitlines()
DENIED = ("PermissionError", "FileNotFoundError", "not allowed to raise")
DENIED += ("Permission denied",)


@pytest.mark.parametrize("code", REFUSED)
def test_answer_is_refused(box, worker, code):
    """With an exception that it sees, so that it fails like any other wrong answer."""
    got = ask(worker, code)
    assert any(word in got for word in DENIED), got
    assert "None" in ask(worker, "pass")  # and the worker is as before


def test_torch_still_works_in_a_worker(worker):
    """Products, gradients, threads, random numbers, and printing into nothing."""
    code = """
import contextlib, io, os, threading, torch
x = torch.randn(64, 64, requires_grad=True)
(x @ x).sum().backward()
torch.set_num_threads(2)
y = torch.randn(512, 512) @ torch.randn(512, 512)
seen = []
thread = threading.Thread(target=lambda: seen.append(1)); thread.start(); thread.join()
with open(os.devnull, "w") as file, contextlib.redirect_stdout(file):
    print("nothing")
torch.save(x, io.BytesIO())
out = list(y.shape), x.grad.shape == x.shape, seen, os.listdir(".")
"""
    assert ask(worker, code) == "([512, 512], True, [1], [])"


def test_libraries_can_be_listed_and_a_folder_looks_as_if_it_could_be_written(worker):
    """Python lists a folder that has changed again; Matplotlib wants a folder of its own."""
    code = """
import os, torch
folders = [os.path.dirname(os.__file__), os.path.dirname(os.path.dirname(torch.__file__))]
out = [len(os.listdir(folder)) > 9 for folder in folders], os.access(os.environ["HOME"], os.W_OK)
"""
    assert ask(worker, code) == "([True, True], True)"


@pytest.mark.parametrize("name", ["timm", "torchvision", "scipy"])
def test_libraries_that_hold_answers_are_absent_whether_or_not_they_are_installed(worker, name):
    """As Python says it of what is not there; libraries that look for them are not disturbed."""
    wanted = repr(ModuleNotFoundError(f"No module named '{name}'"))
    assert ask(worker, f"import {name}") == ask(worker, f"from {name}.models import vit") == wanted
    code = f"import sys, importlib.util as u; out = u.find_spec('{name}'), '{name}' in sys.modules"
    assert ask(worker, code) == "(None, False)"


def test_workers_do_not_see_each_other(box):
    """Not by signals, not by process numbers, and not by equal random numbers."""
    draw = "import random, numpy, torch; out = random.random(), numpy.random.rand(), torch.rand(1)"
    with box.worker() as first, box.worker() as second:
        assert ask(first, draw) != ask(second, draw)
        pid = int(ask(second, "import os; out = os.getpid()"))
        hostile = f"""
import os
out = []
for pid in (*range(1, 400), {pid}, os.getppid(), -{pid}, -1):
    if pid != os.getpid():
        for number in (0, 9, 19):
            try:
                os.kill(pid, number); out.append(pid)
            except OSError:
                pass
"""
        assert ask(first, hostile) == "[]"
        assert ask(second, "out = 1") == "1"


def test_worker_holds_only_its_own_descriptors(worker):
    """Nothing, its requests and its replies: no socket, no file of the grader."""
    code = """
import os, stat
held = {}
for fd in range(1024):
    try:
        held[fd] = stat.S_IFMT(os.fstat(fd).st_mode)
    except OSError:
        pass
pipes = {fd for fd, kind in held.items() if kind == stat.S_IFIFO}
out = pipes == {requests, replies}, set(held) - pipes
"""
    assert ask(worker, code) == "(True, {0, 1, 2})"


def test_threads_are_limited(box, worker):
    """Some are fine, ten thousand are an error that the answer sees; the worker goes on."""
    code = """
import threading
wait = threading.Event()
threads = []
try:
    for _ in range(10_000):
        threads.append(threading.Thread(target=wait.wait, daemon=True))
        threads[-1].start()
    out = "no limit"
except RuntimeError as error:
    out = str(error), 5 < len(threads) < 1000
wait.set()
"""
    assert ask(worker, code) == '("can\'t start new thread", True)'


def test_memory_of_a_library_is_not_the_answers(worker):
    """Address space that it gives back is counted again as its own data."""
    code = f"""
import ctypes, mmap, torch
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
class Library(ctypes.Structure):
    _fields_ = [("start", ctypes.c_void_p), ("name", ctypes.c_char_p)]
given = []
def visit(library, size, data):
    name, start = library.contents.name or b"", library.contents.start
    if name.endswith(b"libtorch_cpu.so"):
        given.append(libc.munmap(start, {200 * MB}))
    return 0
words = ctypes.c_int, ctypes.POINTER(Library), ctypes.c_size_t, ctypes.c_void_p
libc.dl_iterate_phdr(ctypes.CFUNCTYPE(*words)(visit), None)
place = libc.mmap(None, {400 * MB}, 3, 0x22, -1, 0)
out = given, place == 2**64 - 1, ctypes.get_errno()
"""
    assert ask(worker, code) == "([0], True, 12)"


@pytest.mark.parametrize(
    "code",
    [
        f"out = bytearray({600 * MB})",
        f"import torch; out = torch.ones({600 * MB // 4})",
        f"import mmap; out = mmap.mmap(-1, {600 * MB}, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)",
        "out = [bytearray(1 << 20) for _ in range(600)]",
    ],
    ids=["bytes", "tensor", "mapping", "pieces"],
)
def test_memory_above_the_limit_is_an_error_of_the_answer(worker, code):
    """It gets MemoryError (torch: RuntimeError) and may go on; 100 MB are no problem."""
    got = ask(worker, code)
    assert "MemoryError" in got or "allocate memory" in got, got
    assert ask(worker, f"out = len(bytearray({100 * MB}))") == str(100 * MB)


# --- how a worker ends --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "reason", "detail"),
    [
        ("import time; time.sleep(60)", "timeout", "no reply within 0.5 s"),
        ("while True:\n try:\n  while True: pass\n except BaseException: pass", "timeout", "0.5 s"),
        ("import os; os._exit(3)", "crashed", "status 3"),
        ("import sys; sys.exit(5)", "crashed", "status 5"),
        ("import ctypes; ctypes.string_at(0)", "crashed", "SIGSEGV"),
        ("import os; os.abort()", "crashed", "ended by SIG"),
        (f"escapes = 1; bytearray({600 * MB})", "memory", "256 MB"),
        ("import os; os.write(replies, (1 << 40).to_bytes(8, 'little'))", "flooded", "1 MB"),
        ("import os; os.write(replies, bytes(8) + b'more')", "protocol", "more than"),
        ("import os; os.write(replies, b'123')\nwhile True: pass", "timeout", "0.5 s"),
        ("import os, time; os.close(replies); time.sleep(60)", "protocol", "closed its pipe"),
    ],
    ids="sleep swallows exit sys-exit segfault abort memory flood extra half closed".split(),
)
def test_end_of_a_worker_has_a_reason(worker, code, reason, detail):
    """Each of the grader's words, on what was seen; and every later request says the same."""
    seconds = 0.5 if reason == "timeout" else 20.0
    with pytest.raises(WorkerTrouble) as caught:
        ask(worker, code, seconds)
    assert (caught.value.reason, detail in caught.value.detail) == (reason, True), caught.value
    assert reason in REASONS
    with pytest.raises(WorkerTrouble) as again:
        ask(worker, "pass")
    assert again.value is caught.value


@pytest.mark.parametrize(
    ("ended", "reason"),
    [
        ({"ended": -9, "used": 0.1}, "crashed"),
        ({"ended": -9, "used": 1.9}, "timeout"),
        ({"ended": -24, "used": 1.0}, "timeout"),
        ({"ended": -11, "used": 0.1}, "crashed"),
        ({"ended": -40, "used": 0.1}, "crashed"),
        ({"ended": 86, "used": 0.1}, "memory"),
        ({"ended": 0, "used": 0.1}, "crashed"),
        ({}, "grader"),
    ],
)
def test_end_is_told_from_evidence(monkeypatch, worker, ended, reason):
    """SIGKILL alone says nothing: the clock decides."""
    monkeypatch.setattr(worker, "_told", ended)
    assert worker._explain_end().reason == reason
    monkeypatch.undo()


def test_endless_computing_ends_although_nobody_waits(box):
    """The limit of computing time is under the deadline, for code that catches its warning too."""
    code = "import signal; signal.signal(signal.SIGXCPU, signal.SIG_IGN)\nwhile True: pass"
    with box.worker() as worker, pytest.raises(WorkerTrouble) as caught:
        ask(worker, code, 60.0)
    assert caught.value.reason == "timeout"
    assert "it computed for" in caught.value.detail


def test_worker_that_never_reads_does_not_hold_the_grader(box):
    """One deadline for writing and reading."""
    with box.worker() as worker:
        assert ask(worker, "import time; out = 1") == "1"
        start = time.monotonic()
        sleeps = "import time; time.sleep(60)"
        with pytest.raises(WorkerTrouble) as caught:
            worker.ask(frame(sleeps) + bytes(16 * MB), 0.5)  # it reads the first part
        assert time.monotonic() - start < 3.0
        assert caught.value.reason == "timeout"
        assert "bytes were never read" in caught.value.detail


def test_worker_that_speaks_first_is_refused(box):
    """A reply that lies there before the request is no reply to it."""
    late = "import os, threading; threading.Timer(0.1, os.write, (replies, bytes(8))).start()"
    with box.worker() as worker:
        ask(worker, late)
        time.sleep(2)
        with pytest.raises(WorkerTrouble, match="protocol: the worker spoke before it was asked"):
            ask(worker, "out = 2")


def test_flood_of_prints_costs_neither_memory_nor_the_answer(worker):
    """200 MB go nowhere."""
    import resource

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    code = "import sys\nfor _ in range(200): sys.stdout.write('abc\\n' * (1 << 18))\nout = 7"
    assert ask(worker, code, 60.0) == "7"
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 30 * 1024  # kB


def test_fork_server_that_dies_is_started_again(box):
    """The grader lives, and the worker of that moment is the grader's fault."""
    first = box._process.pid
    with box.worker() as lost:
        pids = {box._process.pid} | {pid for pid, _ in descendants(box._process.pid)}
        for number, pid in [(n, pid) for n in (signal.SIGSTOP, signal.SIGKILL) for pid in pids]:
            with suppress(ProcessLookupError):
                os.kill(pid, number)  # all stop first, so that none reports another's end
        with pytest.raises(WorkerTrouble) as caught:
            ask(lost, "out = 1")
        assert (caught.value.reason, "ended" in caught.value.detail) == ("grader", True)
    # what dies with its parent could die with the thread that started it
    thread = threading.Thread(target=lambda: box.worker().close())
    thread.start()
    thread.join()
    with box.worker() as worker:
        assert ask(worker, "out = 3") == "3"
    assert box._process.pid != first


def test_workers_leave_no_descriptors_behind(box):
    """As many are open after five workers as before."""
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(5):
        with box.worker() as worker:
            ask(worker, "out = 1")
    assert len(os.listdir("/proc/self/fd")) == before


GRADER = """
import os, signal
from boxed_code import FILES, frame
from vitedu.grading.box.isolation import open_box
from test_isolation import SMALL
box = open_box(SMALL, files=FILES, allow_unsafe=True)
worker = box.worker()
print(os.getpid(), flush=True)
os.write(worker.fds["request"], frame("while True: pass"))
signal.pause()
"""


def test_nothing_survives_a_grader_that_is_killed():
    """SIGKILL, while an answer runs in an endless loop."""
    paths = os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
    words, environment = [sys.executable, "-c", GRADER], {**os.environ, "PYTHONPATH": paths}
    with subprocess.Popen(words, stdout=subprocess.PIPE, env=environment) as grader:
        assert grader.stdout.readline() == f"{grader.pid}\n".encode()
        family = descendants(grader.pid)
        assert len(family) >= 2  # the fork server and its worker
        grader.kill()
    assert gone(family)


# --- the parts ----------------------------------------------------------------------------------


def test_path_that_others_can_not_pass_is_named(tmp_path):
    """A worker's user needs every folder on the way to be open."""
    tmp_path.chmod(0o755)
    inner = tmp_path / "private" / "lib"
    inner.mkdir(parents=True)
    (inner / "module.py").write_text("")
    inner.parent.chmod(0o700)
    named = launch.find_private_part(str(inner / "module.py"))
    assert named and Path(named) in [inner.parent, *inner.parent.parents]


def test_installed_copy_of_the_package_is_hidden(tmp_path):
    """The references of a copy in site-packages are in no list of readable paths."""
    folder = tmp_path / "site-packages"
    for name in ("vitedu", "torch", "vitedu-0.1.0.dist-info"):
        (folder / name).mkdir(parents=True)
    (folder / "six.py").write_text("")
    visible, listed = launch.find_visible([str(folder)])
    assert {Path(path).name for path in visible} == {"torch", "six.py"}
    assert listed == [str(folder)]


def test_platform_without_a_box_is_named(monkeypatch):
    """Windows has WSL."""
    monkeypatch.setattr(launch.sys, "platform", "win32")
    with pytest.raises(IsolationError, match="on Windows, use WSL"):
        open_box(files={})
