"""A class graded by a real dask cluster: the same grades, whatever becomes of a worker."""

import json
import os
import signal
import threading
import time
import warnings
from dataclasses import replace
from functools import partial

import pytest
from bench.made_class import filled
from made_class import exercise_grade, submission_grade
from sound_notebook import build

from vitedu.course.references import reference_source
from vitedu.exercises import find
from vitedu.grading.adapters import cluster
from vitedu.grading.adapters.cluster import Cluster, pack_task, read_result
from vitedu.grading.batch import grade_class
from vitedu.grading.fingerprint import versions
from vitedu.grading.grades import Flag, Submission
from vitedu.grading.intake.extraction import Extraction, written_answer
from vitedu.grading.intake.reading import unpack_extraction, unpack_submission
from vitedu.grading.store import Store
from vitedu.grading.student import real_parts

distributed = pytest.importorskip(
    "distributed", reason="distributed is not installed: pip install vitedu[test]"
)

# dask leaves what it cannot close in time to the end of the process
pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("default::ResourceWarning:distributed"),
]
IDS = ["tokens_at_224", "seam_neighbours", "stem_tokens"]
SOURCES = {id: reference_source(find(id)) for id in IDS}
ENDS = "import os\nseam_neighbours = os._exit(0)"
CLASS = {
    "anna": SOURCES,
    "ben": {**SOURCES, "stem_tokens": "stem_tokens = 3"},
    "cem": {**SOURCES, "seam_neighbours": ENDS},
    "dora": {},
    "eva": {**SOURCES, "tokens_at_224": "tokens_at_224 = 'höchstens 1'"},
}


def deserved(id, source):
    """Give what an answer is worth: exercise, state, points, reason."""
    if source == SOURCES[id]:
        return id, "passed", float(find(id).points), ""
    return (id, "not_gradable", None, "crashed") if source == ENDS else (id, "failed", 0.0, "")


@pytest.fixture(scope="module")
def running():
    """A scheduler and two workers in processes of their own, without a dashboard."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=None, memory_limit=0
        )
    yield made
    made.close(timeout=20)


@pytest.fixture
def folder(tmp_path):
    """Five students, one of whose answers ends its process."""
    notebook = build("01_patches")
    for student, answers in CLASS.items():
        path = tmp_path / "class" / student / "01_patches.ipynb"
        path.parent.mkdir(parents=True)
        path.write_text(filled(notebook, answers), encoding="utf-8")
    return tmp_path / "class"


def graded(folder, out, **choices):
    """Grade, and give what became of every exercise."""
    grade_class(folder, out, exercises=IDS, seed=5, **choices)
    with Store(out) as store:
        grades = list(store.load_all(CLASS))
    assert len(grades) == len(list((out / "submissions").glob("*.json"))) == len(CLASS)
    assert not [e.detail for g in grades for e in g.exercises if e.reason == "grader"]
    return {
        grade.student: [(e.exercise, e.state, e.points, e.reason) for e in grade.exercises]
        for grade in grades
    }


def test_another_version_on_a_worker_is_an_error(running, monkeypatch):
    """It is told before anything is graded, with both versions."""
    monkeypatch.setattr(cluster, "versions", lambda: {**versions(), "torch": "9.9"})
    with pytest.raises(ValueError, match=r"cannot grade: torch is .* there and 9\.9 here"):
        Cluster(running.scheduler_address)


def test_an_address_without_a_scheduler_is_an_error(monkeypatch):
    """It does not wait for long."""
    monkeypatch.setattr(cluster, "CONNECT_SECONDS", 0.5)
    with pytest.raises(ValueError, match="no dask scheduler answers at tcp://127.0.0.1:9"):
        Cluster("tcp://127.0.0.1:9")


def test_a_class_has_its_grades_also_when_a_worker_is_killed(running, folder, tmp_path):
    """One of two workers dies half-way; everybody is graded as deserved, and once."""
    out = tmp_path / "out"
    parts = replace(real_parts(), open_box=partial(Cluster, running.scheduler_address))
    killed = []

    def kill():
        end = time.monotonic() + 120
        while not list(out.glob("submissions/*.json")) and time.monotonic() < end:
            time.sleep(0.02)
        killed.append(next(iter(running.workers.values())).pid)
        os.kill(killed[0], signal.SIGKILL)

    killer = threading.Thread(target=kill, daemon=True)
    killer.start()
    grades = graded(folder, out, parts=parts)
    killer.join(150)
    assert killed and grades == {
        student: [deserved(id, answers.get(id)) for id in IDS] for student, answers in CLASS.items()
    }
    before = {path: path.read_bytes() for path in out.glob("submissions/*.json")}
    levels = {json.loads(text)["isolation"] for text in before.values()}
    assert all(level.startswith(("full", "partial")) for level in levels)
    assert graded(folder, out, parts=parts) == grades
    assert before == {path: path.read_bytes() for path in out.glob("submissions/*.json")}


# --- what travels -------------------------------------------------------------------------------

EXERCISES = [find(id) for id in ("patchify", "stem_tokens")]
SUBMISSION = Submission("Zoë", (), {"moodle": "7"})


def test_a_submission_arrives_as_it_was_sent():
    """Answers, reasons, flags and names, in any script."""
    flags = (Flag("duplicate", "2"),)
    answer = replace(written_answer("patchify", "def patchify(): 'ß'", "import math"), flags=flags)
    sent = Extraction({"patchify": answer}, {"stem_tokens": ("no_cell", "")}, [Flag("oddity", "x")])
    how = {"seed": 5, "runs": 3, "polish": None}
    head = json.loads(pack_task(SUBMISSION, sent, EXERCISES, how))
    assert unpack_submission(head["submission"]) == SUBMISSION
    assert unpack_extraction(head["found"]) == sent
    assert head["exercises"] == ["patchify", "stem_tokens"] and head["how"] == how


def made_result(**changes):
    """What a worker would send."""
    exercises = [exercise_grade("patchify"), exercise_grade("stem_tokens", "not_gradable")]
    grade = submission_grade("Zoë", exercises, seed=5).to_dict()
    return json.dumps({"grade": {**grade, **changes}, "log": ["a line"]}).encode()


def test_a_grade_is_read_and_anything_else_refused():
    """Another student, seed, list of exercises or too many points are not taken for a grade."""
    grade, lines = read_result(made_result(), SUBMISSION, EXERCISES, 5)
    assert grade.points == find("patchify").points and lines == ["a line"]
    exercises = json.loads(made_result())["grade"]["exercises"]
    more = [{**exercises[0], "points": 7.0}, exercises[1]]
    for wrong in (
        made_result(student="Tom"),
        made_result(seed=6),
        made_result(exercises=exercises[:1]),
        made_result(exercises=more),
        made_result(surplus=1),
        b"[]",
        b"\x80\x04.",  # a pickle
    ):
        with pytest.raises(ValueError, match="a worker's grade"):
            read_result(wrong, SUBMISSION, EXERCISES, 5)
