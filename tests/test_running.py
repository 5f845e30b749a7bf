"""A notebook runs in the box as Jupyter ran it, and its answers are judged at each check."""

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from pathlib import Path

import pytest
from attacks import RIGHT, ZEROS, code, notebook
from bench.grade import bench_grade
from conftest import sample
from run_answer import grade_cells

from vitedu.course.notebooks import read as read_course
from vitedu.course.notebooks import solve_notebook
from vitedu.course.workspace import find_sources
from vitedu.exercises import find, in_file
from vitedu.grading import running
from vitedu.grading.grades import Script, Submission
from vitedu.grading.intake.extraction import Extraction, extract
from vitedu.grading.intake.reading import read_submission
from vitedu.grading.judge import Judge
from vitedu.grading.running import StudentRuns
from vitedu.grading.student import Parts, grade_answer

pytestmark = pytest.mark.slow
HEAD = "import math, torch\nfrom torch import nn\nfrom vitedu import check"
SCALED = "def gelu(x):\n    return state['half'] * x * (1 + torch.erf(x / math.sqrt(2)))"
GELU = SCALED.replace("state['half']", "0.5")
CHECK = "report = check(gelu)\ngelu = report.implementation"
# what stands in the cells: all of it is right in Jupyter
FULL = {
    "a call that binds nothing": ["state = {}", SCALED, "state.update(half=0.5)"],
    "a value that grows over cells": ["state = {'half': 0.1}", SCALED, "state['half'] += 0.4"],
    "text that is run": [f"exec({GELU!r})"],
    "an error of the box": ["state = {}", f"import pandas\nstate['half'] = 0.5\n{SCALED}"],
    "an error of the student": [f"state = {{'half': 0.5}}\n1 / 0\nstate = 0\n{GELU}", SCALED],
    "mended after a failed check": ["state = {'half': 1}", SCALED, CHECK, "state['half'] = 0.5"],
    "an experiment below a check": [GELU, "check(gelu)", "def gelu(x):\n    return x"],
    "wrong, then right": ["def gelu(x):\n    return x", CHECK, GELU],
    "checked in eight cells": ["def gelu(x):\n    return x\ncheck(gelu)"] * 7 + [GELU, CHECK],
    "a file": ["open('a.txt', 'w').write('0.5')", "state = {'half': float(open('a.txt').read())}"]
    + [SCALED],
    "a module": ["%%writefile own.py\nhalf = 0.5", f"import own\nstate = vars(own)\n{SCALED}"],
    "an await": ["async def half():\n    return 0.5\nstate = {'half': await half()}", SCALED],
    "a hidden name": [f"{GELU.replace('gelu', 'own')}\nglobals()['ge' + 'lu'] = own"],
}


@pytest.mark.parametrize("cells", FULL.values(), ids=FULL)
def test_right_as_in_jupyter(box, cells):
    """Whatever makes an answer right there makes it right here."""
    result = grade_cells(box, "gelu", HEAD, *cells)
    assert (result.state, result.points) == ("passed", 3.0), (result.detail, result.lines)


OPEN = {
    "data": ["from vitedu.data import load_data\nstate = load_data('cifar10')", SCALED],
    "a library": ["import pandas\nstate = pandas.DataFrame()", SCALED],
    "a cell that hangs": ["import time\ntime.sleep(99)\nstate = {'half': 0.5}", SCALED],
    "a cell that ends the process": ["import os\nos._exit(1)\nstate = {'half': 0.5}", SCALED],
}


@pytest.mark.parametrize("cells", OPEN.values(), ids=OPEN)
def test_what_an_answer_misses_here_leaves_it_open(box, cells):
    """With the name that it misses, and never a zero."""
    result = grade_cells(box, "gelu", HEAD, *cells)
    assert (result.state, result.reason) == ("not_gradable", "import"), result.lines
    assert "it needs state" in result.detail


def test_what_no_run_came_to_is_open_with_the_reason(box, monkeypatch):
    """Never "no cell binds it": five processes ended above it, or the time was over before."""
    result = grade_cells(box, "gelu", HEAD, *["import os\nos._exit(1)"] * 6, GELU)
    assert (result.state, result.reason) == ("not_gradable", "crashed")
    assert result.detail == "5 times this notebook ended its process"
    monkeypatch.setattr(running, "STUDENT_SECONDS", 0.0)
    result = grade_cells(box, "gelu", HEAD, GELU)
    assert (result.state, result.reason) == ("not_gradable", "timeout")


def test_a_reference_that_is_out_earns_nothing(box):
    """A check at or below the horizon counts no more; the run without hand-outs decides."""
    stolen = f"{HEAD}\nstolen = check(softmax).implementation"
    result = grade_cells(box, "softmax", HEAD, ZEROS, stolen, "softmax = stolen")
    assert result.points == grade_cells(box, "softmax", HEAD, ZEROS).points > 0


def test_a_mistake_costs_its_own_points_only(box):
    """The reference stands in for a wrong patchify where unpatchify uses it."""
    cells = HEAD, "def patchify(images, patch_size):\n    return images * 0", "check(patchify)"
    answer = (
        "made = patchify(torch.arange(16.0).reshape(1, 1, 4, 4), 2)\n"
        "tokens_at_224 = int(made[0, 0, 3]) * 39 + 2"
    )
    assert grade_cells(box, "tokens_at_224", *cells, answer).state == "passed"


def test_cells_run_in_the_order_in_which_they_ran(box, tmp_path):
    """Where the document's order gives a wrong answer; the counts of the cells tell."""
    cells = [(HEAD, 1), ("state = {'half': 9}", 2), (SCALED, 4), ("state['half'] = 0.5", 3)]
    cells.insert(2, ("check(gelu)", 5))
    path = tmp_path / "03_encoder.ipynb"
    path.write_text(notebook([code(text, execution_count=count) for text, count in cells]))
    extraction = extract(Submission("ann", (path,)))
    runs = StudentRuns(box, extraction, [find("gelu")], Judge(1, 0.25))
    assert grade_answer(extraction.answers["gelu"], runs).state == "passed"


def test_students_run_side_by_side(monkeypatch):
    """None waits for the notebook of another."""
    both = threading.Barrier(2, timeout=20)
    monkeypatch.setattr(
        StudentRuns, "_run_script", lambda self, script, ids: ({}, both.wait() and None)
    )
    one = Extraction({}, {}, [], set(), [Script("gelu", [], ["03_encoder"], {}, {}, None, {}, {})])
    runs = [StudentRuns(None, one, [find("gelu")], Judge(1, 0.25)) for _ in range(2)]
    with ThreadPoolExecutor(2) as pool:
        assert [found for found, _ in pool.map(lambda each: each.found, runs)] == [{}, {}]


def test_a_verdict_that_the_notebook_shows_is_told(box, tmp_path):
    """It says passed, and the grader does not."""
    shown = [{"output_type": "stream", "name": "stdout", "text": "✓ 2.1 softmax: passed"}]
    path = tmp_path / "02_attention.ipynb"
    path.write_text(notebook([code(HEAD), code(ZEROS), code("check(softmax)", outputs=shown)]))
    extraction = extract(Submission("ann", (path,)))
    runs = StudentRuns(box, extraction, [find("softmax")], Judge(1, 0.25))
    result = grade_answer(extraction.answers["softmax"], runs)
    assert "stored_verdict" in {flag.kind for flag in result.flags} and result.state == "failed"
    assert "stored_verdict" not in {f.kind for f in grade_cells(box, "softmax", RIGHT).flags}


@pytest.mark.timeout(900)
@pytest.mark.parametrize("source", sample(find_sources()), ids=lambda path: path.stem)
def test_solved_notebooks_have_all_points(box, tmp_path, source):
    """All exercises of every third; and no cell that an exercise touches fails in the box."""
    path = tmp_path / source.name
    path.write_text(json.dumps(solve_notebook(read_course(source))), "utf-8")
    extraction = read_submission(Submission("ann", (path,)))
    (script,) = extraction.scripts
    runs = StudentRuns(box, extraction, in_file(path.stem), Judge(1, 0.25))
    grades = [grade_answer(extraction.answers[e.id], runs) for e in in_file(path.stem)]
    _, (run, *_) = runs.found
    assert {g.exercise: g.lines or g.detail for g in grades if g.points != g.max_points} == {}
    touched = {
        script.cells[place].number
        for places in [*script.defines.values(), *script.checks.values()]
        for place in places
    }
    assert [error for error in run.errors if error[0] in touched] == []


def test_the_benchmark_of_the_grader_runs(box, monkeypatch, capsys):
    """Two students, graded in the box that is open: what they get was known before."""
    parts = Parts(open_box=lambda *, allow_unsafe: nullcontext(box))
    monkeypatch.setattr("vitedu.grading.batch.Parts", lambda: parts)
    monkeypatch.chdir(Path(__file__).parents[1])
    assert bench_grade(2, 2, "01_patches", compared=0)
    assert "\n0 grades are not what they should be" in capsys.readouterr().out
