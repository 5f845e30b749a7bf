"""What version 0.1 stored is read, and kept: files that it wrote stand in ``stored_by_0.1``.

They were made by commit 5ebfd3c: two checks and a hint, one graded softmax, a run of one epoch.
"""

import json
import shutil
from dataclasses import asdict
from pathlib import Path

import torch

from vitedu.course import results
from vitedu.fitting.saved_run import load_run
from vitedu.grading.store import Store

STORED = Path(__file__).with_name("stored_by_0.1")


def test_results_are_read_and_kept(store):
    """Points, remarks and hints stand in the table, and a new result leaves the others alone."""
    store.mkdir(parents=True)
    shutil.copy(STORED / "progress.json", store)
    before = json.loads((store / "progress.json").read_text("utf-8"))["exercises"]
    table = [line.split() for line in results.table_text().splitlines()]
    rows = {row[1]: row[2:] for row in table if len(row) > 2}
    assert rows["patchify"] == ["core", "6/6", "passed"]
    assert rows["softmax"][1:] == ["3.56/4", "failed", "large", "scores", "overflow"]
    assert rows["gelu"][-3:] == ["1", "hint", "used"]
    report = {"exercise": "gelu", "status": "passed", "points": 3, "max_points": 3}
    results.record(report)
    after = json.loads((store / "progress.json").read_text("utf-8"))["exercises"]
    assert after["gelu"]["best"]["status"] == "passed" and after["gelu"]["hints_used"] == 1
    assert {**after, "gelu": 0} == {**before, "gelu": 0}
    assert [path.name for path in store.glob("*damaged*")] == []


def test_grades_are_read_and_kept(tmp_path):
    """A grade comes back whole, and opening its folder changes no byte of it."""
    shutil.copytree(STORED / "grades", tmp_path, dirs_exist_ok=True)
    with Store(tmp_path) as store:
        grade = store.load("ada")
        path = store.path("ada")
        assert (grade.points, grade.max_points, grade.versions["vitedu"]) == (3.56, 4.0, "0.1.0")
        assert grade.exercises[0].misconceptions == ["not_shifted"]
        assert path.read_bytes() == (STORED / "grades" / "submissions" / path.name).read_bytes()
        store.save(grade)
        assert json.loads(path.read_text("utf-8")) == asdict(grade)


def test_checkpoints_are_read():
    """The description of a run builds its model, and the weights fit."""
    model, description = load_run(STORED / "run", "cpu")
    assert (model.config.embed_dim, description["data"]["source"]) == (8, "shapes")
    with torch.no_grad():
        assert model(torch.zeros(2, 3, 32, 32)).shape == (2, 10)
