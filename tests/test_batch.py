"""A class is graded: each trouble stays with its submission, and a killed grader loses nothing."""

import json
import re
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest
from made_class import FakeBox, exercise_grade, extract, hand_in, judge, made_parts

from vitedu.exercises import in_file
from vitedu.grading import batch
from vitedu.grading import student as grading
from vitedu.grading.batch import Store, grade_class
from vitedu.grading.grades import Flag, safe_name
from vitedu.ground.files import UNFINISHED

CLASS = {
    "anna": {"patchify": "passed", "unpatchify": "failed"},
    "bob": {"patchify": "failed", "unpatchify": "raises error"},
    "cleo": "raise",
    "dan": {"patchify": 'not_gradable {"reason": "timeout"}'},
    "eve": {"patchify": "raises exit", "unpatchify": "passed"},
    "finn": {"patchify": "passed", "unpatchify": "raises memory"},
}
TWO = ("patchify", "unpatchify")


def states(out, student):
    data = json.loads((out / "submissions" / f"{safe_name(student)}.json").read_text())
    return [(each["state"], each["reason"]) for each in data["exercises"]]


def contents(folder):
    paths = folder.glob("*.json")
    return {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in paths}


@pytest.fixture
def folder(tmp_path):
    return hand_in(tmp_path / "in", **CLASS)


def test_trouble_of_one_is_its_own_finding(folder, out):
    """Faults of reading and judging, also those that are no Exception, are "grader" there alone."""
    outcome = grade_class(folder, out, exercises=TWO, parts=made_parts())
    assert outcome.students == sorted(CLASS) and outcome.num_new == 6 and outcome.level == "full"
    fault = ("not_gradable", "grader")
    assert states(out, "anna") == [("passed", ""), ("failed", "")]
    assert states(out, "bob") == [("failed", ""), fault]
    assert states(out, "cleo") == [fault, fault]
    assert states(out, "dan") == [("not_gradable", "timeout"), ("not_gradable", "no_cell")]
    assert states(out, "eve") == [fault, ("passed", "")]
    assert states(out, "finn") == [("passed", ""), fault]
    log = (out / "grader.log").read_text()
    assert "'cleo', reading" in log and "the extraction broke" in log
    assert "'bob', unpatchify" in log and "RuntimeError: on purpose" in log


def test_same_command_again_changes_nothing(folder, out):
    """Files are the same to the byte and in time; what the grader failed at is tried once more."""
    grade_class(folder, out, exercises=TWO, parts=made_parts())
    before = contents(out / "submissions")
    outcome = grade_class(folder, out, exercises=TWO, parts=made_parts())
    after = contents(out / "submissions")
    assert (outcome.num_new, outcome.num_stored) == (4, 2)
    for student in ("anna", "dan"):
        name = f"{safe_name(student)}.json"
        assert after[name] == before[name]


def test_nothing_to_do_opens_no_box(tmp_path, out):
    """A finished class needs no sandbox."""
    folder = hand_in(tmp_path / "in", anna={"patchify": "passed"})
    grade_class(folder, out, parts=made_parts())

    def refuse(*, allow_unsafe):
        raise AssertionError("opened")

    outcome = grade_class(folder, out, parts=made_parts(open_box=refuse))
    assert (outcome.num_new, outcome.num_stored, outcome.level) == (0, 1, "")


@pytest.mark.parametrize("choices", [{}, {"notebook": "01_patches"}], ids=["all", "notebook"])
def test_a_finished_class_is_not_read_again(choices, tmp_path, out):
    """Notebooks are opened for their digest alone; what the class tells is kept."""
    same = {"patchify": "passed", "softmax": "failed"}
    folder = hand_in(tmp_path / "in", anna=same, bob=same)
    first = grade_class(folder, out, parts=made_parts(), **choices)

    def refuse(submission):
        raise AssertionError("read")

    again = grade_class(folder, out, parts=made_parts(extract=refuse), **choices)
    assert (again.num_new, again.num_stored) == (0, 2)
    assert again.class_flags == first.class_flags and "bob" in again.class_flags
    assert again.other_notebooks == first.other_notebooks
    hand_in(folder, bob={"patchify": "failed", "softmax": "failed"})
    assert grade_class(folder, out, parts=made_parts(), **choices).class_flags == {}


@pytest.mark.parametrize("content", ["", "{", "[]", '{"key": 1}'])
def test_damaged_memory_of_the_class_is_made_again(content, tmp_path, out):
    """It only saves time."""
    folder = hand_in(tmp_path / "in", anna={"patchify": "passed"})
    grade_class(folder, out, parts=made_parts())
    (out / "class.json").write_text(content)
    assert grade_class(folder, out, parts=made_parts()).num_stored == 1
    assert len((out / "class.json").read_text()) > 50


# what changes -> the choices of the next run, and how many it grades: of six students two are
# done with, and four had something that the grader failed at
CHANGES = {
    "file": ({}, 5),
    "versions": ({}, 6),
    "exercises": ({"exercises": ("patchify",)}, 2),  # where the grader failed at it
    "polish": ({"polish": 0.1}, 6),
    "seed": ({"seed": 7}, 6),
    "again": ({"again": True}, 6),
}


@pytest.mark.parametrize("what", CHANGES)
def test_a_change_is_graded_anew(what, folder, out, monkeypatch):
    """A file, a version, the exercises, the price of remarks, another seed, or ``again``."""
    choices, expected = {"exercises": TWO, "polish": 0.0}, CHANGES[what][1]
    grade_class(folder, out, parts=made_parts(), **choices)
    if what == "file":
        hand_in(folder, anna={"patchify": "failed"})
    elif what == "versions":
        monkeypatch.setattr(batch, "versions", lambda: {"vitedu": "9"})
    again = grade_class(folder, out, parts=made_parts(), **choices | CHANGES[what][0])
    assert again.num_new == expected


def test_grades_of_the_version_before_stay_until_they_are_graded_anew(folder, out):
    """Fields that were renamed since are no fault: a new grade takes the place of the old one."""
    grade_class(folder, out, exercises=TWO, parts=made_parts())
    for path in (out / "submissions").glob("*.json"):
        path.write_text(path.read_text().replace('"isolation"', '"level"'))
    old = contents(out / "submissions")
    outcome = grade_class(folder, out, exercises=TWO, only=["anna"], parts=made_parts())
    assert outcome.students == ["anna"] and (outcome.num_new, outcome.num_pending) == (1, 5)
    assert len(old.items() & contents(out / "submissions").items()) == 5
    outcome = grade_class(folder, out, exercises=TWO, parts=made_parts())
    assert outcome.students == sorted(CLASS) and outcome.num_pending == 0


def test_seed_is_secret_fresh_and_recorded_and_can_be_replayed(folder, out):
    """Two students differ; a replay gives every exercise the recorded seed."""
    seeds = []

    def keep(answer, runs):
        seeds.append(runs.judge.seed)
        return judge(answer, runs)

    grade_class(folder, out, exercises=TWO, parts=made_parts())
    with Store(out) as store:
        drawn = {grade.student: grade.seed for grade in store.load_all(sorted(CLASS))}
    assert len(set(drawn.values())) == len(CLASS)
    assert all(0 <= seed < 2**48 for seed in drawn.values())
    choices = {"exercises": TWO, "only": ["anna"], "seed": drawn["anna"], "again": True}
    grade_class(folder, out, parts=made_parts(grade=keep), **choices)
    assert seeds == [drawn["anna"]] * 2


def test_grades_rest_neither_on_order_nor_on_jobs(folder, tmp_path):
    """One job and four, forwards and backwards, give the same but for time."""

    def backwards(folder):
        intake = made_parts().find(folder)
        intake.submissions.reverse()
        return intake

    results = []
    for jobs, parts in ((1, made_parts()), (4, made_parts()), (3, made_parts(find=backwards))):
        out = tmp_path / f"out{jobs}"
        outcome = grade_class(folder, out, exercises=TWO, jobs=jobs, seed=5, parts=parts)
        stored = [json.loads(path.read_text()) for path in sorted(out.glob("submissions/*"))]
        grades = [grade | {"seconds": 0} for grade in stored]
        results.append((outcome.students, outcome.class_flags, grades))
    assert results[0] == results[1] == results[2]


@pytest.mark.parametrize(("jobs", "most"), [(4, 4), (None, batch.MOST_JOBS)])
def test_jobs_are_at_work_together_and_no_more_of_them(jobs, most, tmp_path, out, monkeypatch):
    """Four jobs: four answers inside the box at a time, never five; of 64 cores six are used."""
    monkeypatch.setattr(batch, "cores", lambda: 64)
    folder = hand_in(tmp_path / "in", **{f"s{i}": {"patchify": "passed"} for i in range(12)})
    barrier, box = threading.Barrier(most, timeout=10), FakeBox()

    def together(answer, runs):
        with box.lock:
            box.inside += 1
            box.most = max(box.most, box.inside)
        barrier.wait()
        with box.lock:
            box.inside -= 1
        return exercise_grade()

    parts = made_parts(box, grade=together)
    grade_class(folder, out, exercises=("patchify",), jobs=jobs, parts=parts)
    assert box.most == most


def test_exercises_default_to_the_notebooks_of_the_class(tmp_path, out):
    """Who did not hand in a notebook that others did has open points there, not fewer."""
    folder = hand_in(tmp_path / "in", anna={"patchify": "passed"}, bob={"softmax": "passed"})
    grade_class(folder, out, parts=made_parts())
    expected = [e.id for e in (*in_file("01_patches"), *in_file("02_attention"))]
    with Store(out) as store:
        for student in ("anna", "bob"):
            grade = store.load(student)
            assert [each.exercise for each in grade.exercises] == expected
            open_ones = [each for each in grade.exercises if each.reason == "no_cell"]
            assert len(open_ones) == len(expected) - 1


def test_a_stray_notebook_costs_the_others_nothing(tmp_path, out):
    """One of five holds another notebook too: it is left out and told; asked for, it is graded."""
    students = {f"s{i}": {"patchify": "passed"} for i in range(5)}
    students["s0"]["softmax"] = "passed"
    folder = hand_in(tmp_path / "in", **students)
    outcome = grade_class(folder, out, parts=made_parts())
    with Store(out) as store:
        ids = {each.exercise for each in store.load("s0").exercises}
    assert ids == {exercise.id for exercise in in_file("01_patches")}
    assert outcome.other_notebooks == {"02_attention": 1}
    outcome = grade_class(folder, out, notebook="02_attention", parts=made_parts())
    assert outcome.other_notebooks == {} and outcome.num_new == 5  # both are in the tables now


def test_only_grades_those_named(folder, out):
    """The others wait, and are counted."""
    outcome = grade_class(folder, out, exercises=TWO, only=["bob"], parts=made_parts())
    assert outcome.students == ["bob"] and outcome.num_pending == 5


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({"polish": 0.5}, "polish must be 0 to 25"),
        ({"jobs": 0}, "jobs must be 1 or more"),
        ({"only": ["zoe"]}, "no submission of 'zoe'"),
        ({"exercises": ["patchfy"]}, "patchify"),
        ({"notebook": "99_x"}, "99_x"),
    ],
    ids=["polish", "jobs", "only", "exercises", "notebook"],
)
def test_choices_that_make_no_sense_are_refused(choices, message, folder, out):
    """Before anything is graded, with the remedy."""
    with pytest.raises(ValueError, match=message):
        grade_class(folder, out, parts=made_parts(), **choices)


def test_folders_that_make_no_sense_are_refused(folder, out, tmp_path):
    """No folder, an empty one, the submissions themselves, notebooks without answers."""
    with pytest.raises(ValueError, match="is not a folder"):
        grade_class(tmp_path / "nowhere", out, parts=made_parts())
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match="holds no"):
        grade_class(tmp_path / "empty", out, parts=made_parts())
    for bad in (folder, folder / "grades", folder / "a" / "b"):
        with pytest.raises(ValueError, match="must lie outside"):
            grade_class(folder, bad, parts=made_parts())
    inside = hand_in(tmp_path / "submissions", anna={"patchify": "passed"})
    with pytest.raises(ValueError, match="must lie outside"):
        grade_class(inside, tmp_path, parts=made_parts())
    assert [path.name for path in inside.iterdir()] == ["anna.txt"]
    with pytest.raises(ValueError, match="nothing to grade"):
        grade_class(hand_in(tmp_path / "blank", anna=""), out, parts=made_parts())


def test_students_of_one_name_are_told_apart(tmp_path, out):
    """Nobody's grade is overwritten, and nobody gets the points of another."""
    folder = hand_in(tmp_path / "in", a={"patchify": "passed"}, b={"patchify": "failed"})

    def namesakes(folder):
        intake = made_parts().find(folder)
        intake.submissions = [
            type(each)("Kim", each.files, place=each.student) for each in intake.submissions
        ]
        return intake

    parts = made_parts(find=namesakes)
    outcome = grade_class(folder, out, exercises=("patchify",), parts=parts)
    assert outcome.students == ["Kim ['a']", "Kim ['b']"]
    for student in outcome.students:
        assert states(out, student) == [("not_gradable", "ambiguous")]


def test_class_is_compared_and_a_fault_of_that_costs_nothing(tmp_path, out):
    """Flags of the class are given; where comparing breaks, there are none and the log says why."""
    same = {"patchify": "passed", "unpatchify": "passed"}
    folder = hand_in(tmp_path / "in", anna=same, bob=same)
    outcome = grade_class(folder, out, parts=made_parts())
    assert [flag.kind for flag in outcome.class_flags["bob"]] == ["similar"]

    def broken(answers):
        raise RecursionError("too deep")

    other = out / "other"
    outcome = grade_class(folder, other, parts=made_parts(compare=broken))
    assert outcome.class_flags == {} and outcome.num_new == 2
    assert "too deep" in (other / "grader.log").read_text()


def test_what_was_not_assigned_is_not_in_the_totals(tmp_path, out):
    """Where most of the class got the course's answer; whoever names an exercise has it graded."""
    own = {"patchify": "passed", "unpatchify": "failed"}
    folder = hand_in(tmp_path / "in", anna=own, bob=own, cleo=own)

    def with_given(submission):
        found = extract(submission)
        found.given |= {"PatchEmbed"} | ({"patchify"} if submission.student == "anna" else set())
        return found

    parts = made_parts(extract=with_given, compare=lambda answers: {})
    ids = [each.id for each in grade_class(folder, out, parts=parts).exercises]
    assert "patchify" in ids and "tokens_at_224" in ids and "PatchEmbed" not in ids
    again = grade_class(folder, out, parts=parts)  # reads no notebook
    assert [each.id for each in again.exercises] == ids
    words = ["PatchEmbed"]
    named = grade_class(folder, out / "named", parts=parts, exercises=words).exercises
    assert [each.id for each in named] == words


def test_equal_files_of_two_students_are_flagged(tmp_path, out):
    """Where an answer in them is somebody's own: stubs and the references are alike anyway."""
    own = {"patchify": "passed", "unpatchify": "failed"}
    folder = hand_in(tmp_path / "in", anna=own, bob=own, cleo={"patchify": "passed"})

    def with_runs(submission):
        found = extract(submission)
        for id, answer in found.answers.items():
            found.answers[id] = replace(answer, tokens=9, notebook=f"{submission.student}.txt")
        return found

    parts = made_parts(extract=with_runs, compare=lambda answers: {})
    flags = grade_class(folder, out, parts=parts).class_flags
    assert flags["bob"] == [Flag("similar", "handed in the same file as anna")]
    assert set(flags) == {"anna", "bob"}
    parts = made_parts(compare=lambda answers: {})
    assert grade_class(folder, out / "stubs", parts=parts).class_flags == {}


def test_grade_that_is_no_json_is_the_graders_fault(tmp_path, out):
    """Not-a-number points are written as "grader", not as a file that nobody can read."""
    folder = hand_in(tmp_path / "in", anna={"patchify": 'failed {"points": NaN}'})
    grade_class(folder, out, exercises=("patchify",), parts=made_parts())
    assert states(out, "anna") == [("not_gradable", "grader")]


def test_part_that_gives_no_grade_is_the_graders_fault(tmp_path, out):
    """Nothing is not a grade."""
    folder = hand_in(tmp_path / "in", anna={"patchify": "passed"})
    parts = made_parts(grade=lambda *_, **__: None)
    grade_class(folder, out, exercises=("patchify",), parts=parts)
    assert states(out, "anna") == [("not_gradable", "grader")]


def test_faults_that_a_part_tells_of_are_logged(tmp_path, out):
    """What the judge says of itself."""
    answer = 'not_gradable {"reason": "grader", "detail": "KeyError: a name"}'
    folder = hand_in(tmp_path / "in", anna={"patchify": answer})
    grade_class(folder, out, exercises=("patchify",), parts=made_parts())
    assert "'anna', patchify: KeyError: a name" in (out / "grader.log").read_text()


def test_full_disk_stops_the_batch_and_loses_nothing(tmp_path, out, monkeypatch):
    """What was written stays whole; with room again the same command finishes the rest."""
    folder = hand_in(tmp_path / "in", **{f"s{i}": {"patchify": "passed"} for i in range(8)})
    save, saved = Store.save, []

    def sometimes(self, grade):
        if len(saved) == 3:
            raise OSError("out/x.json cannot be written (No space left on device)")
        save(self, grade)
        saved.append(grade.student)

    with monkeypatch.context() as patch:
        patch.setattr(Store, "save", sometimes)
        with pytest.raises(OSError, match="No space left"):
            grade_class(folder, out, exercises=("patchify",), jobs=1, parts=made_parts())
    before = contents(out / "submissions")
    assert len(before) == 3
    outcome = grade_class(folder, out, exercises=("patchify",), parts=made_parts())
    assert (outcome.num_new, outcome.num_stored) == (5, 3)
    assert before.items() <= contents(out / "submissions").items()


def test_submissions_are_only_read(folder, out):
    """The folder that was handed in is as it was."""
    before = {path: path.read_bytes() for path in folder.rglob("*")}
    grade_class(folder, out, exercises=TWO, parts=made_parts())
    assert {path: path.read_bytes() for path in folder.rglob("*")} == before


RUN = """
import sys, time
from pathlib import Path
sys.path.insert(0, {tests!r})
from made_class import judge, made_parts
from vitedu.grading import batch
from vitedu.grading import student as grading
from vitedu.grading.pages.publish import main_grade
batch.versions = grading.versions = lambda: {{"vitedu": "test"}}
# a clock that jumps by a day, back and forth
jumps, clock = [0, 86400, -86400], time.time
time.time = lambda: clock() + jumps[0]
def slow(answer, runs):
    time.sleep(0.002)
    jumps.append(jumps.pop(0))
    return judge(answer, runs)
words = {{"exercises": ("patchify", "unpatchify"), "jobs": 3, "parts": made_parts(grade=slow)}}
main_grade(Path(sys.argv[1]), Path(sys.argv[2]), formats=("canvas",), seed=7, **words)
"""


def results(out):
    """Give the text of all that a class is told, without how long it took."""
    files = [path for path in out.rglob("*") if path.suffix in (".csv", ".html", ".json")]
    texts = {str(path.relative_to(out)): path.read_text("utf-8") for path in files}
    times = r'"seconds": [0-9.e-]+|submissions: [0-9.]+ s'
    return {name: re.sub(times, "", text) for name, text in texts.items()}


@pytest.mark.slow
def test_killed_while_it_writes_tables_the_same_command_finishes(tmp_path, out):
    """Killed while it writes tables and pages: the same result (while it grades: test_attacks)."""
    answers = {"patchify": "passed", "unpatchify": "failed"}
    folder = hand_in(tmp_path / "in", **{f"s{number:03d}": answers for number in range(20)})
    words = [sys.executable, "-c", RUN.format(tests=str(Path(__file__).parent)), str(folder)]
    with subprocess.Popen([*words, str(out)], stderr=subprocess.DEVNULL) as process:
        while process.poll() is None and len(list(out.rglob("*.*"))) <= 30:  # 20 are grades
            time.sleep(0.001)
        process.send_signal(signal.SIGKILL)
    stood = contents(out / "submissions")
    assert all(len(json.loads(text)["exercises"]) == 2 for text, _ in stood.values())
    done = subprocess.run([*words, str(out)], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    assert f"20 submissions: {20 - len(stood)} graded now, {len(stood)} before." in done.stdout
    assert stood.items() <= contents(out / "submissions").items()
    assert not list(out.rglob(f"*{UNFINISHED}"))
    subprocess.run([*words, str(tmp_path / "other")], check=True, capture_output=True, timeout=600)
    assert results(out) == results(tmp_path / "other")


PARENT = """
import sys
for name in ("nbformat", "IPython", "ipykernel", "nbclient", "einops", "timm"):
    sys.modules[name] = None
from vitedu.checks.writing.checker import find_checker
from vitedu.checks.engine import judge_answer
from vitedu.exercises import EXERCISES
from vitedu.grading import student as grading
from vitedu.grading.adapters import gradescope
from vitedu.grading.pages import publish
grading.Parts()
# what reads random results is registered with their own checker, before any other is there
black = judge_answer(find_checker("random_crop_flip"), lambda images, *_: 0 * images, 1)
assert "outputs are not such a window" in str(black), black
for exercise in EXERCISES:
    find_checker(exercise.id)
assert not judge_answer(find_checker("softmax"), lambda x, dim=-1: x * 0.5, 1).passed
heavy = "sympy torch._dynamo torch.fx.experimental.symbolic_shapes matplotlib torchvision"
print(*[name for name in heavy.split() if name in sys.modules])
"""


@pytest.mark.slow
def test_the_grader_itself_needs_no_jupyter():
    """Modules, checkers and two verdicts load no large library beside torch."""
    output = subprocess.check_output([sys.executable, "-c", PARENT], text=True, timeout=120)
    assert output.split() == []


def test_versions_name_the_checkers_and_not_the_pages():
    """A changed checker grades anew; a changed page does not."""
    names = grading.versions()
    assert set(names) == {"vitedu", "checkers", "torch", "python"}
    package = Path(batch.__file__).parents[1]
    paths = [path for pattern in grading.SOURCES for path in package.glob(pattern)]
    files = {str(path.relative_to(package)) for path in paths}
    assert all(any(package.glob(pattern)) for pattern in grading.SOURCES)
    assert {"checks/patches/patchify.py", "patches.py", "grading/box/worker.py"} <= files
    assert not {"grading/pages/feedback.py", "grading/batch.py", "bench/grade.py"} & files
