"""What runs in the box reaches nothing, its end has a reason, and nothing of it survives."""

import errno
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import pytest
from boxed_code import FILES, ask, frame

from vitedu.grading.box import cgroups, conversation, isolation, isolation_methods, levels
from vitedu.grading.box.conversation import WorkerTrouble
from vitedu.grading.box.isolation import Box, open_box
from vitedu.grading.box.levels import Isolation, IsolationError
from vitedu.grading.box.limits import MB, Limits
from vitedu.grading.grades import REASONS

SMALL = Limits(memory_mb=256, cpu_seconds=1, reply_mb=1, output_kb=4, tmp_mb=8, processes=16)
LINUX = sys.platform == "linux"
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not LINUX, reason="the other methods were not tried elsewhere"),
]
needs_bwrap = pytest.mark.skipif(shutil.which("bwrap") is None, reason="needs bubblewrap")


@pytest.fixture(scope="module")
def box():
    """The strongest box of this machine, opened once."""
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


@needs_bwrap
def test_level_is_full_where_bubblewrap_works(box):
    """The canary could do nothing of what it tried."""
    if box.method != "bwrap":
        pytest.skip(f"bubblewrap does not work here: {box.events}")
    assert (box.level, box.isolation.breaches) == ("full", {})
    parts = {"own process numbers", "own files", "no capabilities", "seccomp"}
    assert parts <= set(box.isolation.restrictions)


def test_canary_outside_a_box_can_do_everything(tmp_path):
    """Each try is one that works where nothing forbids it: else its failure would prove nothing."""
    code = "from vitedu.grading.box import canary; canary.main(0, 1)"
    words, pipe = [sys.executable, "-c", code], subprocess.PIPE
    with levels.ProbeTargets() as bait:
        needed = [str(tmp_path / "missing")]
        plan = {**bait.plan(), "needed": needed, "tmp_mb": 1, "memory_mb": 1}
        with subprocess.Popen(words, stdin=pipe, stdout=pipe, cwd=tmp_path) as child:
            stop = threading.Timer(60, child.kill)
            stop.start()
            child.stdin.write(levels.write_frame(plan) + b"!")
            child.stdin.flush()
            reply = {}
            for _ in range(2):
                length = int.from_bytes(child.stdout.read(8), "little")
                reply |= levels.read_frame(bytes(8) + child.stdout.read(length))
            stop.cancel()
            for pid in orphans_of(child.pid):
                os.kill(pid, signal.SIGKILL)
    assert reply.pop("needs") == needed[0]
    assert {name for name, evidence in reply.items() if not evidence} == set()
    assert set(reply) == set(levels.BREACHES)
    assert reply["processes"] == "64"
    assert list(tmp_path.iterdir()) == []


def orphans_of(pid):
    """Give the processes that the canary left: they look as if they ran the same command."""
    pids = set()
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if b"canary.main(0, 1)" in path.read_bytes():
                pids.add(int(path.parent.name))
        except OSError:
            continue
    return pids - {pid}


@pytest.mark.parametrize(
    ("could", "level"),
    [
        ([], "full"),
        (["network"], "partial: no network isolation"),
        (["files", "disk"], "partial: other files can be read; no limit on temporary files"),
        (["write"], "none"),
        (["network", "signal"], "none"),
    ],
)
def test_level_follows_from_what_the_canary_could_do(could, level):
    """Reading is partial; changing something outside is none."""
    assert Isolation(dict.fromkeys(could, "seen"), (), {}).level == level


def stand_in(outcomes):
    """Make a Box class whose methods end as given: a list of breaches, or a reason for none."""

    class StandIn:
        def __init__(self, way, limits, files):
            if isinstance(outcomes[way], str):
                raise IsolationError(outcomes[way])
            self.method, self.events, self.closed = way, [], False
            self.isolation = Isolation(dict.fromkeys(outcomes[way], "seen"), (), {})
            self.level = self.isolation.level

        def close(self):
            self.closed = True

    return StandIn


def test_no_box_at_level_none_without_allow_unsafe(monkeypatch):
    """The error names what each method could not, and the remedy."""
    monkeypatch.setattr(isolation, "Box", stand_in({"bwrap": "no namespaces", "plain": ["write"]}))
    monkeypatch.setattr(levels.shutil, "which", lambda name: None)
    with pytest.raises(IsolationError) as caught:
        open_box(files={}, methods=("bwrap", "plain"))
    words = ["bwrap: no namespaces", "plain: files outside can be written (seen)"]
    for word in [*words, "apt install bubblewrap", "--allow-unsafe"]:
        assert word in str(caught.value)
    box = open_box(files={}, methods=("bwrap", "plain"), allow_unsafe=True)
    assert (box.level, box.events) == ("none", ["bwrap: no namespaces"])


def test_full_temporary_folder_is_no_weakness_of_the_machine(monkeypatch):
    """One line names the folder and the remedy, and nobody is told to grade without a box."""

    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(isolation, "write_view", full)
    with pytest.raises(OSError, match=r"vitedu-box-.* \(No space left on device\).*TMPDIR"):
        open_box(files={})


def test_best_method_is_kept_and_the_others_closed(monkeypatch):
    """A method that is not full gives way to a better one that comes later."""
    outcomes = {"bwrap": ["signal"], "namespaces": ["network"], "plain": ["network", "files"]}
    monkeypatch.setattr(isolation, "Box", stand_in(outcomes))
    box = open_box(files={}, methods=tuple(outcomes))
    assert (box.method, box.closed) == ("namespaces", False)


def test_box_needs_at_least_one_method(monkeypatch):
    """Even --allow-unsafe opens nothing where nothing starts."""
    monkeypatch.setattr(isolation, "Box", stand_in({"plain": "broken"}))
    with pytest.raises(IsolationError, match="plain: broken"):
        open_box(files={}, methods=("plain",), allow_unsafe=True)


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
import os; out = os.listdir('/proc')
out = open('/dev/zero', 'r+b')
out = open(vars(__import__('vitedu'))['__file__'], 'a')
import torch; out = open(torch.__file__, 'a')
import os; out = os.chmod({__file__!r}, 0o644)
import os; out = os.utime({__file__!r})
out = open({__file__!r}).read()
out = open({str(levels.PACKAGE / "patches.py")!r}).read()
""".strip().splitlines()
DENIED = ("PermissionError", "FileNotFoundError", "ProcessLookupError", "not allowed to raise")
DENIED += ("Read-only file system",)


@pytest.mark.parametrize("code", REFUSED)
def test_answer_is_refused(box, worker, code):
    """With an exception that it sees, so that it fails like any other wrong answer."""
    if "open(" in code and {"files", "references", "write"} & set(box.isolation.breaches):
        pytest.skip(f"files are not isolated here: {box.level}")
    got = ask(worker, code)
    assert any(word in got for word in DENIED), got
    assert "None" in ask(worker, "pass")  # and the worker is as before


def test_torch_still_works_in_a_worker(worker):
    """Products, gradients, threads, random numbers and files in its own folder."""
    code = """
import os, tempfile, threading, torch
x = torch.randn(64, 64, requires_grad=True)
(x @ x).sum().backward()
torch.set_num_threads(2)
y = torch.randn(512, 512) @ torch.randn(512, 512)
seen = []
thread = threading.Thread(target=lambda: seen.append(1)); thread.start(); thread.join()
with tempfile.NamedTemporaryFile("w") as file:
    file.write("x")
torch.save(x, "weights.pt")
is_home = os.getcwd() == tempfile.gettempdir()
out = list(y.shape), x.grad.shape == x.shape, seen, os.listdir("."), is_home
"""
    assert ask(worker, code) == "([512, 512], True, [1], ['weights.pt'], True)"


def test_worker_is_the_python_and_torch_of_the_grader(worker):
    """Another Python would be found by its prefix, another torch by its file."""
    import torch

    code = "import sys, torch; out = (sys.base_prefix, sys.version, torch.__version__)"
    assert ask(worker, code) == repr((sys.base_prefix, sys.version, torch.__version__))


def test_another_python_inside_is_refused(box):
    """A silent fall back to the system's Python would grade with another torch."""
    import torch

    good = {"prefix": sys.base_prefix, "python": list(sys.version_info[:3]), "threads": 1}
    good["torch_file"] = torch.__file__
    box._verify_versions(good)
    for change in ({"prefix": "/elsewhere"}, {"torch_file": "/usr/torch"}, {"python": [3, 9, 0]}):
        with pytest.raises(IsolationError, match="another Python or torch"):
            box._verify_versions({**good, **change})
    with pytest.raises(IsolationError, match="4 threads"):
        box._verify_versions({**good, "threads": 4})


@pytest.mark.parametrize("name", ["timm", "torchvision", "scipy"])
def test_libraries_that_hold_answers_are_absent_whether_or_not_they_are_installed(worker, name):
    """As Python says it of what is not there; libraries that look for them are not disturbed."""
    wanted = repr(ModuleNotFoundError(f"No module named '{name}'"))
    assert ask(worker, f"import {name}") == ask(worker, f"from {name}.models import vit") == wanted
    code = f"import sys, importlib.util as u; out = u.find_spec('{name}'), '{name}' in sys.modules"
    assert ask(worker, code) == "(None, False)"


def test_workers_do_not_see_each_other(box):
    """Not by signals, not by process numbers, not by files, and not by equal random numbers."""
    draw = "import random, numpy, torch; out = random.random(), numpy.random.rand(), torch.rand(1)"
    with box.worker() as first, box.worker() as second:
        assert ask(first, draw) != ask(second, draw)
        ask(second, "open('mine.txt', 'w').write('x')")
        hostile = """
import os
out = os.listdir(".")
for pid in range(1, 400):
    if pid != os.getpid():
        for number in (0, 9, 19):
            try:
                os.kill(pid, number); out.append(pid)
            except OSError:
                pass
"""
        assert ask(first, hostile) == "[]"
        assert ask(second, "import os; out = os.listdir('.')") == "['mine.txt']"
    with box.worker() as third:
        assert ask(third, "import os; out = os.listdir('.')") == "[]"


def test_worker_holds_only_its_own_descriptors(worker):
    """Nothing, both outputs, its requests and its replies: no socket, no file of the grader."""
    code = """
import os, stat
held = {}
for fd in range(1024):
    try:
        held[fd] = stat.S_IFMT(os.fstat(fd).st_mode)
    except OSError:
        pass
pipes = {fd for fd, kind in held.items() if kind == stat.S_IFIFO}
out = pipes == {1, 2, requests, replies}, set(held) - pipes
"""
    assert ask(worker, code) == "(True, {0})"


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
        ("import os; os.close(replies)\nwhile True: pass", "protocol", "closed its pipe"),
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
    assert not worker.has_survivors


@pytest.mark.parametrize(
    ("ended", "kills", "reason"),
    [
        ({"ended": -9, "cpu": 0.1}, 1, "memory"),
        ({"ended": -9, "cpu": 0.1}, 0, "crashed"),
        ({"ended": -9, "cpu": 1.9}, 0, "timeout"),
        ({"ended": -24, "cpu": 1.0}, 0, "timeout"),
        ({"ended": -11, "cpu": 0.1}, 0, "crashed"),
        ({"ended": 86, "cpu": 0.1}, 0, "memory"),
        ({"ended": 0, "cpu": 0.1}, 0, "crashed"),
        (None, 0, "grader"),
    ],
)
def test_end_is_told_from_evidence(monkeypatch, worker, ended, kills, reason):
    """SIGKILL alone says nothing: the control group, the clock and the machine's count decide."""
    monkeypatch.setattr(worker, "group", SimpleNamespace(count_kills=lambda: kills))
    monkeypatch.setattr(worker, "_end", ended)
    monkeypatch.setattr(conversation, "count_machine_kills", lambda: worker._kills_before)
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
        time.sleep(0.5)
        with pytest.raises(WorkerTrouble, match="protocol: the worker spoke before it was asked"):
            ask(worker, "out = 2")


def test_flood_of_prints_costs_neither_memory_nor_the_answer(worker):
    """200 MB are read and dropped; the head is kept, and what was dropped is counted."""
    import resource

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    code = "import sys\nfor _ in range(200): sys.stdout.write('abc\\n' * (1 << 18))\nout = 7"
    assert ask(worker, code, 60.0) == "7"
    ask(worker, "import sys; sys.stdout.flush()")
    assert worker.output.startswith("abc\nabc\n")
    assert worker.output.endswith(f"[{200 * MB - 4096} more bytes]")
    assert len(worker.output) < 5000
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 30 * 1024  # kB


def test_temporary_files_are_limited(box, worker):
    """No more than the folder holds."""
    if "own files" not in box.isolation.restrictions:
        pytest.skip("no file system of its own here")
    code = "for i in range(4):\n open(f'{i}', 'wb').write(bytes(3 << 20))"
    assert "No space left" in ask(worker, code)


def test_fork_server_that_dies_is_started_again(box):
    """The grader lives, the event is recorded, the worker of that moment is the grader's fault."""
    events = len(box.events)
    with box.worker() as lost:
        for pid in {box._process.pid} | {pid for pid, _ in descendants(box._process.pid)}:
            os.kill(pid, signal.SIGKILL)
        with pytest.raises(WorkerTrouble) as caught:
            ask(lost, "out = 1")
        assert (caught.value.reason, caught.value.server_ended) == ("grader", True)
    # what dies with its parent dies with the thread that started it: a thread that ends is no harm
    thread = threading.Thread(target=lambda: box.worker().close())
    thread.start()
    thread.join()
    with box.worker() as worker:
        assert ask(worker, "out = 3") == "3"
    assert len(box.events) == events + 1
    assert "started again" in box.events[-1]


def test_threads_share_a_box(box):
    """Each gets its own workers and its own replies."""
    got = []

    def run(number):
        for _ in range(2):
            with box.worker() as worker:
                got.append((number, ask(worker, f"out = {number}")))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(run, range(4)))
    assert sorted(got) == sorted([(n, str(n)) for n in range(4)] * 2)


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


@pytest.mark.parametrize(
    ("way", "forks"), [("plain", True), ("namespaces", True), ("plain", False)]
)
def test_weaker_methods_work_and_end(monkeypatch, way, forks):
    """Same workers, same end; also where each worker is a fresh Python, as on macOS."""
    if way not in isolation_methods.available_methods():
        pytest.skip("not a method of this user")
    prepare = isolation.plan_launch

    def prepared(*arguments):
        start = prepare(*arguments)
        start.setup["forks"] = forks
        return start

    monkeypatch.setattr(isolation, "plan_launch", prepared)
    before = descendants(os.getpid())
    try:
        box = Box(way, SMALL, FILES)
    except IsolationError as error:
        if way == "plain":
            raise  # nothing of it needs a right
        pytest.skip(f"not on this machine: {error}")
    with box:
        assert not set(box.isolation.breaches) & {"processes", "memory"}, box.isolation
        assert "dies first" not in box.isolation.missing
        with box.worker() as worker:
            assert ask(worker, "import torch; out = torch.ones(2).sum()") == "tensor(2.)"
            assert "ModuleNotFoundError" in ask(worker, "import timm.models")
            assert "PermissionError" in ask(worker, f"import os; os.chmod({__file__!r}, 0o644)")
            assert "PermissionError" in ask(worker, f"import os; os.utime({__file__!r})")
            with pytest.raises(WorkerTrouble, match="timeout"):
                ask(worker, "while True: pass", 0.3)
        family = descendants(os.getpid()) - before
        last = box.worker()
        family |= descendants(os.getpid()) - before
    assert last.has_survivors is False
    assert gone(family)
    assert not list(Path(box._folder.name).parent.glob(Path(box._folder.name).name))


# --- the parts ----------------------------------------------------------------------------------


def test_control_group_ends_what_takes_too_much():
    """For all processes of a group together, whatever each one's own limit is."""
    places = cgroups.find_folders()
    if not places:
        pytest.skip("no control group can be made here")
    group = cgroups.Group(places, Limits(memory_mb=1, tmp_mb=1, processes=8))
    code = """
import os, sys
for fd in sys.argv[1:]:
    os.write(int(fd), b"0")
for _ in range(3):
    if not os.fork():
        break
block = bytearray(120 << 20)
input()
"""
    words, pipes = [sys.executable, "-c", code, *map(str, group.fds)], {"stdin": subprocess.PIPE}
    try:
        with subprocess.Popen(words, pass_fds=group.fds, stderr=subprocess.DEVNULL, **pipes):
            deadline = time.monotonic() + 20
            while not group.count_kills() and time.monotonic() < deadline:
                time.sleep(0.05)
            assert group.count_kills() >= 1
    finally:
        group.close()
    assert not any(folder.exists() for folder in group.folders)


def test_control_groups_of_version_2_are_found_above_this_process(tmp_path):
    """A group is made where the memory controller is handed down, and nowhere above the mount."""
    own = tmp_path / "user.slice" / "session.scope"
    own.mkdir(parents=True)
    mounts = f"30 20 0:26 / {tmp_path} rw - cgroup2 cgroup2 rw"
    assert cgroups.find_folders("0::/user.slice/session.scope", mounts) == {}
    (own.parent / "cgroup.subtree_control").write_text("cpu memory pids")
    wanted = {name: (2, own.parent) for name in ("memory", "pids")}
    assert cgroups.find_folders("0::/user.slice/session.scope", mounts) == wanted
    mounts = mounts.replace("0:26 /", "0:26 /user.slice/session.scope")  # a container's view
    assert cgroups.find_folders("0::/user.slice/session.scope", mounts) == {}


def test_path_that_others_can_not_pass_is_named(tmp_path):
    """A worker's user needs every folder on the way to be open."""
    tmp_path.chmod(0o755)
    inner = tmp_path / "private" / "lib"
    inner.mkdir(parents=True)
    (inner / "module.py").write_text("")
    inner.parent.chmod(0o700)
    named = isolation_methods.find_private_part(str(inner / "module.py"))
    assert named and Path(named) in [inner.parent, *inner.parent.parents]


def test_installed_copy_of_the_package_is_hidden(tmp_path):
    """The references of a copy in site-packages are in no list of readable paths."""
    folder = tmp_path / "site-packages"
    for name in ("vitedu", "torch", "vitedu-0.1.0.dist-info"):
        (folder / name).mkdir(parents=True)
    (folder / "six.py").write_text("")
    readable, names = [str(folder)], {"vitedu", "vitedu-0.1.0.dist-info"}
    assert {Path(path).name for path in isolation_methods.find_hidden(readable)} == names
    assert {Path(p).name for p in isolation_methods.find_visible(readable)} == {"torch", "six.py"}


def test_platform_without_a_method_is_named(monkeypatch):
    """Windows has WSL."""
    monkeypatch.setattr(isolation_methods.sys, "platform", "win32")
    with pytest.raises(OSError, match="on Windows, use WSL"):
        isolation_methods.available_methods()


def test_limits_are_positive():
    """A limit of 0 would be none, or would refuse everything."""
    with pytest.raises(ValueError, match="memory_mb must be positive .got 0."):
        Limits(memory_mb=0)


def test_scratch_folder_covers_no_library(tmp_path, monkeypatch):
    """An environment beneath the system's temporary folder stays visible in bubblewrap."""
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "__init__.py").touch()
    monkeypatch.setattr(isolation_methods, "library_folders", lambda: [str(tmp_path)])
    monkeypatch.setattr(isolation_methods, "bubblewrap_command", lambda *_: [])
    setup = isolation_methods.plan_launch("bwrap", Limits(), tmp_path, tmp_path).setup
    assert str(tmp_path) in setup["readable"]
    assert not any(Path(path).is_relative_to(setup["tmp"]) for path in setup["readable"])
