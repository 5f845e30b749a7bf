"""What former versions stored is read, and kept: files that they wrote stand in ``stored_by_*``.

0.1 (commit 5ebfd3c): two checks and a hint, one graded softmax, a run of one epoch.
0.2 (commit ffdde6e3):

* ``progress.json``: ``check`` of 13 exercises, three hints, a challenge. Those of 02 and the
  first of 03 came before ``vitedu start my-notebooks``; those of 01 were typed into that folder.
* ``measurements.json``: two numbers of ``keep``. Predictions (``compare``) are printed, not stored.
* ``laid``: three notebooks of the folder, and its record of all nine. 01 holds what was typed, 02
  what ``start`` filled in, and nobody touched 07.
* ``my_vit.py.txt``: its ``my_vit.py``. So named, no tool takes it for code of these tests.
* ``run``: ``vitedu train --model my_vit.py --data shapes --limit 32 --epochs 1 --set embed_dim=8
  depth=1 num_heads=2 patch_size=8 batch_size=16 --out run``, without picture and copy of the file.
* ``cue.jsonl``: ``vitedu bench experiments cue --profile quick --only "2 conv" --seeds 0``.
* ``grades``: what ``vitedu grade handed_in --out grades --exercises softmax split_heads`` reads
  again, with ``overrides.csv`` and points from ``open.csv``.
"""

import csv
import json
import shutil
import sys
from dataclasses import asdict
from pathlib import Path

import pytest
import torch
from PIL import Image

from vitedu.__main__ import main
from vitedu.course import results
from vitedu.course.kept import keep, kept
from vitedu.course.notebooks import exercise_cells, read
from vitedu.course.workspace import lay_notebooks
from vitedu.exporting.handed_out import is_reference
from vitedu.exporting.importing import load_file
from vitedu.exporting.parts import PARTS
from vitedu.fitting.saved_run import load_run
from vitedu.grading.batch import Store
from vitedu.grading.grades import Submission
from vitedu.grading.intake.extraction import extract
from vitedu.grading.pages.decisions import FILE, OVERRIDES, apply, read_points

HERE = Path(__file__).parent
FIRST, SECOND = HERE / "stored_by_0.1", HERE / "stored_by_0.2"
OWN = "patchify PatchEmbed softmax scaled_dot_product_attention split_heads MultiHeadAttention gelu"
OWN_PARTS = {*OWN.split(), "orthogonalise"}
ROWS = {
    FIRST: {
        "patchify": "6/6 passed",
        "softmax": "3.56/4 failed large scores overflow",
    },
    SECOND: {
        "PatchEmbed": "4/4 passed",
        "unpatchify": "4/4 passed latest: failed, the patches are reshaped without moving any axis",
        "linear_from_conv": "0.5/4 failed the layer shares its memory with the convolution",
        "softmax": "challenge: 5 of 22 stopped",
        "layer_norm": "failed the variance is divided by D-1",
        "class_token_alone": "2/2 passed",
    },
}


@pytest.fixture
def mine(store, tmp_path, monkeypatch):
    """Give a student's folder as 0.2 left it; what is stored about him is in the store."""
    store.mkdir(parents=True)
    for name in ("progress.json", "measurements.json"):
        shutil.copy(SECOND / name, store)
    folder = shutil.copytree(SECOND / "laid", tmp_path / "mine")
    shutil.copy(SECOND / "my_vit.py.txt", folder / "my_vit.py")
    monkeypatch.chdir(folder)
    yield folder
    sys.modules.pop("my_vit", None)


def contents(folder):
    """Give path -> bytes of the files below a folder."""
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def missing_answers(folder):
    """List the exercises that have no cell, or one without the answer that passed."""
    notebooks = [read(path) for path in folder.rglob("*.ipynb")]
    cells = [(name, each.cells[i].source) for each in notebooks for i, name in exercise_cells(each)]
    sources = {name: entry["source"] for name, entry in results.load().items() if "source" in entry}
    assert sources.keys() == OWN_PARTS | {"unpatchify"}
    texts = {name: source["statements"][name] for name, source in sources.items()}
    return [n for n, text in texts.items() if {text in s for m, s in cells if m == n} != {True}]


@pytest.mark.parametrize("folder", ROWS, ids=lambda path: path.name)
def test_results_are_read_and_kept(store, folder):
    """Points, remarks and hints stand in the table, and a new result leaves the others alone."""
    store.mkdir(parents=True)
    shutil.copy(folder / "progress.json", store)
    before = json.loads((store / "progress.json").read_text("utf-8"))["exercises"]
    table = [line.split() for line in results.table_text().splitlines()]
    rows = {row[1]: " ".join(row[2:]) for row in table if len(row) > 2}
    assert {name: words for name, words in ROWS[folder].items() if words not in rows[name]} == {}
    report = {"exercise": "gelu", "status": "passed", "points": 3, "max_points": 3}
    results.record(report)
    after = json.loads((store / "progress.json").read_text("utf-8"))["exercises"]
    assert after["gelu"]["best"]["status"] == "passed"
    assert after["gelu"]["hints_used"] == before["gelu"]["hints_used"]
    assert {**after, "gelu": 0} == {**before, "gelu": 0}
    assert [path.name for path in store.glob("*damaged*")] == []


def test_a_laid_folder_keeps_every_answer(mine, tmp_path):
    """Typed or filled in; what the course has now is laid, and a second start changes nothing.

    In a new folder the answers come back into the cells of their exercises.
    """
    typed, file = ((mine / name).read_bytes() for name in ("01_patches.ipynb", "my_vit.py"))
    assert main(["start", str(mine), "--no-lab"]) == 0
    after = contents(mine)
    assert typed in after.values() and after[mine / "my_vit.py"] == file
    assert missing_answers(mine) == []
    laid = [[cell.id for cell in read(path).cells] for path in mine.rglob("*.ipynb")]
    for path in (HERE.parent / "notebooks").rglob("*.ipynb"):
        assert [cell.id for cell in read(path).cells] in laid, path.name
    assert main(["start", str(mine), "--no-lab"]) == 0
    assert contents(mine) == after
    lay_notebooks(tmp_path / "new")
    assert missing_answers(tmp_path / "new") == []


def test_a_notebook_of_one_file_is_graded_by_its_ids(mine):
    """Its ten exercises are those of both files now; the course's cells of then concern nobody."""
    answers = extract(Submission("ann", (mine / "01_patches.ipynb",))).answers
    assert len(answers) == 10
    flags = {flag.kind for answer in answers.values() for flag in answer.flags}
    assert "dangerous" not in flags


def test_my_vit_holds_the_student_s_eight_parts(mine):
    """The other parts count as the reference's, whatever numbers the exercises have now."""
    module = load_file(mine / "my_vit.py")
    parts = {name: getattr(module, name) for name in PARTS if hasattr(module, name)}
    assert {n for n, part in parts.items() if not is_reference(part, n)} == OWN_PARTS


@pytest.mark.slow
def test_my_vit_is_judged_and_written_anew(mine, capsys):
    """What passed passes, with the remark that it had; the file counts as not edited."""
    main(["check", "my_vit.py", "--json"])
    rows = {row["exercise"]: row for row in json.loads(capsys.readouterr().out)}
    assert {rows[name]["status"] for name in OWN_PARTS} == {"passed"}
    assert [remark["part"] for remark in rows["softmax"]["remarks"]] == ["dtype"]
    assert main(["export", "my_vit.py"]) == 0 and ": 8 of its " in capsys.readouterr().out


def test_numbers_and_measurements_are_read(mine, capsys):
    """A new number stands behind the old one; what was measured is shown and not run again."""
    keep("04_training", "another", 0.5)
    assert list(kept("04_training").items()) == [("your plain loop", 0.4125), ("another", 0.5)]
    assert kept("07_less_data") == {"my recipe, 400 photographs": 0.351}
    shutil.copy(SECOND / "cue.jsonl", mine)
    words = "bench experiments cue --profile quick --seeds 0 --json cue.jsonl --only".split()
    assert main([*words, "2 conv"]) == 0 and "0.505" in capsys.readouterr().out
    assert Path("cue.jsonl").read_bytes() == (SECOND / "cue.jsonl").read_bytes()


@pytest.mark.parametrize(("folder", "points"), [(FIRST, (3.56, 4.0)), (SECOND, (7.67, 8.0))])
def test_grades_are_read_and_kept(folder, points, tmp_path):
    """A grade comes back whole, and opening its folder changes no byte of it."""
    shutil.copytree(folder / "grades", tmp_path, dirs_exist_ok=True)
    with Store(tmp_path) as store:
        grade = store.load("ada")
        path = store.path("ada")
        assert (grade.points, grade.max_points) == points
        assert f"stored_by_{grade.versions['vitedu']}" == f"{folder.name}.0"
        assert grade.exercises[0].misconceptions == ["not_shifted"]
        assert path.read_bytes() == (folder / "grades" / "submissions" / path.name).read_bytes()
        store.save(grade)
        assert json.loads(path.read_text("utf-8")) == asdict(grade)


def test_what_a_person_decided_counts_again(tmp_path):
    """Rows of ``overrides.csv``, and what was read from ``open.csv``."""
    shutil.copytree(SECOND / "grades", tmp_path, dirs_exist_ok=True)
    with Store(tmp_path) as store:
        grades = list(store.load_all(["ada", "ben"]))
        rows = {"by": OVERRIDES, "only_open": False, "warn": print}
        decisions = store.load_json(FILE), read_points(tmp_path / OVERRIDES, grades, **rows)
    ada, ben = (apply(grade, *decisions).exercises for grade in grades)
    assert [each.points for each in (*ada, *ben)] == [4, 4, 1.5, 2]
    assert [each.comment for each in ben] == ["written by two, points shared", "the idea, is right"]
    assert ben[1].decided_by == "instructor (by machine: open)"


@pytest.mark.slow
def test_the_class_is_graded_again_with_its_overrides(tmp_path):
    """By this version, in the folder that 0.2 wrote."""
    out = shutil.copytree(SECOND / "grades", tmp_path / "grades")
    words = ["grade", SECOND / "handed_in", "--out", out, "--allow-unsafe", "--exercises"]
    assert main([*map(str, words), "softmax", "split_heads"]) == 0
    rows = list(csv.DictReader((out / "grades.csv").read_text("utf-8-sig").splitlines()))
    points = {row["student"]: row["points"] for row in rows if row["exercise"] == "softmax"}
    assert points == {"ada": "4.0", "ben": "1.5"} and len(rows) == 4


def test_runs_are_read(mine, capsys):
    """Of a preset, and of a student's file, which has to be named; both name an image's class."""
    image = torch.zeros(2, 3, 32, 32)
    model, description = load_run(FIRST / "run", "cpu")
    assert (model.config.embed_dim, description["data"]["source"]) == (8, "shapes")
    with torch.no_grad():
        assert model(image).shape == (2, 10)
    with pytest.raises(ValueError, match="to run it or its copy, name it"):
        load_run(SECOND / "run", "cpu")
    model, description = load_run(SECOND / "run", "cpu", mine / "my_vit.py")
    assert (description["train"]["batch_size"], model.patch_embed.size) == (16, 8)
    with torch.no_grad():
        assert model(image).shape == (2, 10)
    Image.new("RGB", (32, 32), "red").save("red.png")
    for folder, words in ((FIRST, []), (SECOND, ["--model", "my_vit.py"])):
        assert main(["predict", "red.png", "--checkpoint", str(folder / "run"), *words]) == 0
        *_, line = capsys.readouterr().out.splitlines()
        guesses = [guess.split()[0] for guess in line.removeprefix("red.png: ").split(", ")]
        assert len(guesses) == 3 and {*guesses} <= {*description["data"]["class_names"]}
