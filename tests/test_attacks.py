"""A class of cheats and of honest students, graded as an instructor would, and what is left of it.

One run of the real command in the real box, killed half-way and begun again. Between the attacks
stand honest controls, whose points must not move. Of each table every third attack is there, and
all of them in the weekly workflow.
"""

import csv
import hashlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import pytest
from attacks import EMPTY, RIGHT, VALUE, ZEROS, Attack, editors, files, table
from conftest import sample

from vitedu.exercises import find
from vitedu.grading.grades import safe_name

GRADED = (
    "softmax split_heads MultiHeadAttention gelu layer_norm cross_entropy evaluate random_crop_flip"
    " VisionTransformer linear_attention linear_from_conv tokens_at_224 order_blindness"
    " count_parameters"
).split()
TABLES = {name: table(name) for name in "answers line forbidden claims running honest".split()}
CLASS = {group: dict(sample(attacks.items())) for group, attacks in TABLES.items()}
CONTROLS = {
    "right": Attack(RIGHT, "full"),
    "zeros": Attack(ZEROS, "zeros"),
    "empty": Attack(EMPTY, "nothing"),
}
# right one time in three, by the luck of each process
LUCKY = f"def softmax(x, dim=-1):\n    return {VALUE} if lucky else x * 0\n"
LUCKY = Attack(f"import os\nlucky = os.urandom(1)[0] % 3 == 0\n{LUCKY}", "full")
TRIES = 6  # students who try their luck: all pass in (1/27)**6 of all runs
MEGABYTES = 200  # that grading may need beyond what importing torch takes
MINUTES = 20  # that a run may take on a crowded machine

needs_linux = pytest.mark.skipif(sys.platform != "linux", reason="the full box is Linux's")
pytestmark = [pytest.mark.slow, needs_linux, pytest.mark.timeout(2 * 60 * MINUTES)]


def hand_in(folder: Path, out: Path) -> None:
    """Write the class: a folder a student, controls first and last in the order of names."""
    for group, attacks in CLASS.items():
        for name, attack in attacks.items():
            write(folder / f"{group}_{name.replace(' ', '_')}", attack, out)
    for name, attack in CONTROLS.items():
        write(folder / f"aa_{name}", attack, out)
        write(folder / f"zz_{name}", attack, out)
    for number in range(TRIES):
        write(folder / f"lucky_{number}", LUCKY, out)
    for name, (file, content) in editors.FILES.items():
        (folder / f"saved_{name}").mkdir()
        (folder / f"saved_{name}" / file).write_bytes(content)
    files.make(folder)
    files.make_links(folder, folder / "aa_right" / "02_attention.ipynb")
    for name in files.STUDENTS:
        write(folder / name, CONTROLS["empty"], out)


def write(place: Path, attack: Attack, out: Path) -> None:
    place.mkdir()
    text = attack.notebook()
    places = {"{HERE!r}": Path(__file__).parents[1], "{OUT!r}": out, "{HOME!r}": Path.home()}
    for word, path in places.items():
        text = text.replace(word, repr(str(path)))
    (place / attack.file).write_text(text, encoding="utf-8")


def tree(folder: Path) -> dict[Path, str]:
    """Give the digest of every file, the target of every link."""
    entries = {}
    for path in folder.rglob("*"):
        if path.is_symlink():
            entries[path] = os.readlink(path)
        else:
            content = path.read_bytes() if path.is_file() else b""
            entries[path] = hashlib.sha256(content).hexdigest()
    return entries


def boxed(pid: int) -> list[str]:
    """List the processes in the boxes of a grader: all are forks of one, with its command."""
    folder, pids = f"/vitedu-box-{pid}-".encode(), []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if folder in path.read_bytes():
                pids.append(path.parent.name)
        except OSError:
            continue
    return pids


# the command, with less time for what never ends (4 seconds a cell and 14 a request, not 8 and 18),
# and with one seed for all, so that the known mistakes run once on its inputs
COMMAND = f"""import sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
import replay_caches
from vitedu.__main__ import main
from vitedu.grading import judge
from vitedu.grading.box.limits import Limits
_, _, *others = Limits.__init__.__defaults__
Limits.__init__.__defaults__ = (4.0, 14.0, *others)
judge.judge_observations = replay_caches.judge_observations
sys.exit(main())
"""


class Run:
    """One start of the command, watched."""

    def __init__(self, folder: Path, out: Path):
        words = [sys.executable, "-c", COMMAND, "grade", folder, "--out", out, "--jobs", "4"]
        words += ["--for", "canvas", "moodle", "gradescope"]
        words += ["--seed", "7", "--exercises", *GRADED]
        self.said = out.parent / f"said-{time.monotonic_ns()}.txt"
        with self.said.open("wb") as file:
            self.process = subprocess.Popen(words, stdout=file, stderr=file, cwd=out.parent)
        self.start, self.most = time.monotonic(), 0  # MB of memory of its own
        self.most_boxed = 0  # processes in its box at a time

    def goes_on(self) -> bool:
        """Look after a moment how it is doing; tell whether it runs."""
        time.sleep(0.5)
        pid = self.process.pid
        try:
            status = Path(f"/proc/{pid}/status").read_text()
        except OSError:
            status = ""
        if match := re.search(r"RssAnon:\s+(\d+) kB", status):
            self.most = max(self.most, int(match[1]) // 1024)
        self.most_boxed = max(self.most_boxed, len(boxed(pid)))
        if time.monotonic() - self.start > 60 * MINUTES:
            self.process.kill()
        return self.process.poll() is None

    def survivors(self) -> list[str]:
        """List what still runs in its boxes, some seconds after its end."""
        for _ in range(50):
            if not (pids := boxed(self.process.pid)):
                break
            time.sleep(0.1)
        return pids


def contents(out: Path) -> dict[str, tuple[bytes, int]]:
    """Give every finished grade, byte for byte, and when it was written."""
    paths = list((out / "submissions").glob("*.json"))
    return {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in paths}


@pytest.fixture(scope="module")
def graded(tmp_path_factory):
    """Grade the class once for all tests; the grader is killed after a dozen students."""
    place = tmp_path_factory.mktemp("class")
    folder, out, beside = place / "in", place / "out", place / "beside"
    folder.mkdir()
    hand_in(folder, out)
    for name in ("home/.ipython/profile_default/startup/00.py", "gradebook.db", "notes/a.txt"):
        (beside / name).parent.mkdir(parents=True, exist_ok=True)
        (beside / name).write_text("as before")
    before = {**tree(folder), **tree(beside)}

    first = Run(folder, out)
    while first.goes_on():
        if len(contents(out)) >= 12:
            first.process.send_signal(signal.SIGKILL)
    first.process.wait()
    survivors, stored = first.survivors(), contents(out)

    second = Run(folder, out)
    while second.goes_on():
        pass
    records = [json.loads(text) for text, _ in contents(out).values()]
    grades = {data["student"]: data for data in records}
    assert second.process.returncode == 0, second.said.read_text()[-2000:]
    after = {**tree(folder), **tree(beside)}
    return SimpleNamespace(**locals())


def exercise(graded: SimpleNamespace, student: str, name: str = "softmax") -> dict:
    """Give one grade of one student."""
    return next(e for e in graded.grades[student]["exercises"] if e["exercise"] == name)


def earned(graded: SimpleNamespace, grade: dict) -> str:
    """Say in a word what a grade is worth."""
    zeros = exercise(graded, "aa_zeros")
    if grade["state"] == "passed":
        return "full" if grade["points"] == grade["max_points"] else "remarks"
    if grade["state"] == "not_gradable":
        return grade["reason"]
    if not grade["points"]:
        return "nothing"
    is_zeros = grade["exercise"] == "softmax" and grade["points"] == zeros["points"]
    return "zeros" if is_zeros else "less"


def expect(graded: SimpleNamespace, student: str, worth: str, name: str = "softmax") -> dict:
    """Hold a grade against what it may be."""
    grade = exercise(graded, student, name)
    points = {earned(graded, grade), str(grade["points"])}
    assert points & set(worth.split()), {**grade, "picture": ""}
    assert (grade["points"] is None) == (grade["state"] == "not_gradable")
    return grade


EACH = [(group, name) for group, attacks in CLASS.items() for name in attacks]


@pytest.mark.parametrize(("group", "name"), EACH, ids=lambda part: part.replace(" ", "_"))
def test_each_gets_what_it_deserves(graded, group, name):
    """Honest work earns full points, tricks earn their honest part, and a person is told."""
    attack = TABLES[group][name]
    grade = expect(graded, f"{group}_{name.replace(' ', '_')}", attack.worth, attack.exercise)
    flags = {flag["kind"] for flag in grade["flags"]}
    assert set(attack.flags.split()) <= flags
    if grade["state"] != "not_gradable" and grade["attempted"]:
        assert grade["runs"] == 3 or earned(graded, grade) == "nothing"


@pytest.mark.parametrize("name", files.CONTENT)
def test_broken_files_are_findings_of_their_own(graded, name):
    """What cannot be read is not gradable, with the reason; what can be read is graded."""
    expect(graded, f"file_{name}", files.CONTENT[name][0])


@pytest.mark.parametrize("name", editors.FILES)
def test_notebooks_of_all_editors_score_in_full(graded, name):
    """Colab, VS Code and JupyterLab, other encodings, other names, another order."""
    expect(graded, f"saved_{name}", "full")


def test_controls_do_not_move(graded):
    """Honest work at both ends of the class: right 4, zeros 0.33, untouched 0."""
    for end in ("aa", "zz"):
        for name, points in {"right": 4.0, "zeros": 0.33, "empty": 0.0}.items():
            grade = expect(graded, f"{end}_{name}", CONTROLS[name].worth)
            assert grade["points"] == points and grade["runs"] == (1 if name == "empty" else 3)
    assert exercise(graded, "zz_empty")["attempted"] is False


def test_luck_earns_nothing(graded):
    """What is drawn once, where the answer is defined, is right for a third; others fail."""
    points = [earned(graded, exercise(graded, f"lucky_{n}")) for n in range(TRIES)]
    assert set(points) <= {"full", "zeros", "unstable"} and points.count("full") < TRIES, points
    for number, word in enumerate(points):
        flags = {flag["kind"] for flag in exercise(graded, f"lucky_{number}")["flags"]}
        assert ("unstable" in flags) == (word == "unstable")


def test_links_are_not_followed(graded):
    """A link to a neighbour's work, to the system or to itself earns and shows nothing."""
    for name in ("link_to_neighbour", "link_to_etc", "link_to_itself", "pipe"):
        if name in graded.grades:
            expect(graded, name, "unreadable no_cell")
    assert "root:" not in json.dumps(graded.grades)


def test_a_killed_grader_begun_again_loses_and_changes_nothing(graded):
    """The second run keeps the first one's grades to the byte, and every student has one."""
    assert graded.first.process.returncode == -signal.SIGKILL
    assert len(graded.stored) >= 12
    now = contents(graded.out)
    for name, was in graded.stored.items():
        again = any(e["reason"] == "grader" for e in json.loads(was[0])["exercises"])
        assert again or now[name] == was, name
    handed_in = {path.name for path in (graded.place / "in").iterdir()}
    missing = {safe_name(name) for name in handed_in} - {Path(name).stem for name in now}
    assert missing <= {
        safe_name("loop"),
        *map(safe_name, files.STUDENTS),
        *map(safe_name, ("link_to_neighbour", "link_to_etc", "link_to_itself", "pipe")),
    }
    reasons = {e["reason"] for grade in graded.grades.values() for e in grade["exercises"]}
    assert "grader" not in reasons


def test_nothing_is_left_behind(graded):
    """No process of either run, no folder of a box, no changed file of students or beside them."""
    assert graded.first.most_boxed > 1 and graded.second.most_boxed > 1, "no box was seen"
    assert graded.survivors == [] and graded.second.survivors() == []
    for run in (graded.first, graded.second):
        folders = Path(tempfile.gettempdir()).glob(f"vitedu-box-{run.process.pid}-*")
        assert not list(folders)
    assert graded.after == graded.before
    known = {"in", "out", "beside", graded.first.said.name, graded.second.said.name}
    assert {path.name for path in graded.place.iterdir()} == known
    assert not list(graded.out.rglob("pickled*"))


def test_the_grader_stays_small(graded):
    """200 MB of outputs, of prints and of arrays do not end up in its memory."""
    words = "import torch; print(*[l for l in open('/proc/self/status') if 'RssAnon' in l])"
    bare = subprocess.check_output([sys.executable, "-c", words], text=True, timeout=120)
    alone = int(bare.split()[1]) // 1024
    most = max(graded.first.most, graded.second.most)
    assert alone / 2 < most < alone + MEGABYTES, (alone, most)


def test_pages_and_tables_run_nothing(graded):
    """No script in a page, no formula in a table, no name that leaves the folder."""
    pages = list(graded.out.rglob("*.html"))
    assert len(pages) > len(graded.grades) / 2
    for path in pages:
        text = path.read_text("utf-8")
        assert not re.search(r"<script>alert|<img src=x|\x1b|\0|\u202e", text), path.name
    for path in graded.out.rglob("*.csv"):
        with path.open(newline="", encoding="utf-8-sig") as file:
            for row in csv.reader(file):
                for cell in row:
                    assert not re.match(r"[=@\t\r]|[+-](?![\d.]+$)", cell), (path.name, cell)
    inside = graded.out.resolve()
    assert all(path.resolve().is_relative_to(inside) for path in inside.rglob("*"))


def test_every_attack_names_a_known_exercise():
    """The tables hold together: exercises that are graded, modules that are still there."""
    for group, attacks in TABLES.items():
        for name, attack in attacks.items():
            assert find(attack.exercise).id in GRADED, (group, name)
            for module in re.findall(r"(?:import|from|,) (vitedu[\w.]*)", attack.source):
                assert find_spec(module), (group, name, module)
    assert sum(map(len, TABLES.values())) > 200
