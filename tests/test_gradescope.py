"""Gradescope's autograder: the zip, unpacked and run as Gradescope lays it out."""

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from vitedu.__main__ import main
from vitedu.course.references import reference_source
from vitedu.exercises import in_file
from vitedu.grading.adapters import gradescope
from vitedu.grading.adapters.gradescope import grade_container, requirements, write_autograder

pytestmark = pytest.mark.slow

NOTEBOOK = Path(__file__).parents[1] / "notebooks" / "01_patches.ipynb"


def unpacked(folder):
    """Lay a container out, the autograder in it."""
    root = folder / "autograder"
    with zipfile.ZipFile(write_autograder(folder / "out.zip", NOTEBOOK)) as archive:
        archive.extractall(root / "source")
        for entry in archive.infolist():
            (root / "source" / entry.filename).chmod(entry.external_attr >> 16)
    (root / "run_autograder").write_bytes((root / "source" / "run_autograder").read_bytes())
    (root / "run_autograder").chmod(0o755)
    (root / "submission").mkdir()
    (root / "results").mkdir()
    return root


def hand_in(root, answers):
    """Put the course's notebook with some answers into the container."""
    notebook = json.loads(NOTEBOOK.read_text("utf-8"))
    for cell in notebook["cells"]:
        exercise = cell["metadata"].get("vitedu", {}).get("exercise")
        cell["source"] = answers.get(exercise, cell["source"])
    (root / "submission" / "my work.ipynb").write_text(json.dumps(notebook), "utf-8")
    who = {"users": [{"name": "Ann Lee", "email": "ann@example.org", "id": 1}]}
    (root / "submission_metadata.json").write_text(json.dumps(who))


def run(root, script="run_autograder", **environment):
    """Run a script of the container with this Python in place of the container's."""
    variables = {**os.environ, "AUTOGRADER_ROOT": str(root), **environment}
    quiet = {"capture_output": True, "text": True, "timeout": 240}
    return subprocess.run([str(root / script)], cwd=root, env=variables, **quiet)


def test_zip_holds_what_gradescope_wants_and_nothing_of_this_machine(tmp_path, capsys):
    """Both scripts, executable, at the top, the package, its requirements; the same bytes twice."""
    assert main(["assign", "--gradescope", str(tmp_path / "a.zip"), str(NOTEBOOK)]) == 0
    assert capsys.readouterr().out.strip() == str(tmp_path / "a.zip")
    write_autograder(tmp_path / "b.zip", NOTEBOOK)
    assert (tmp_path / "a.zip").read_bytes() == (tmp_path / "b.zip").read_bytes()
    with zipfile.ZipFile(tmp_path / "a.zip") as archive:
        names = archive.namelist()
        modes = {name: archive.getinfo(name).external_attr >> 16 for name in names}
        settings = json.loads(archive.read("assignment.json"))
        ids = [exercise.id for exercise in in_file("01_patches")]
        assert settings.pop("sizes") > 0 and settings == {"exercises": ids}
        assert archive.read("requirements.txt").decode().split("\n")[:-1] == requirements()
    assert modes["setup.sh"] == modes["run_autograder"] == 0o755
    assert "vitedu/grading/judge.py" in names and "vitedu/patches.py" in names
    assert not [name for name in names if "__pycache__" in name or "test" in name]
    assert any(line.startswith("torch>=") for line in requirements())
    assert not any("nbgrader" in line or "timm" in line for line in requirements())


def test_setup_can_be_replaced_by_a_python_that_is_there(tmp_path):
    """VITEDU_PYTHON: nothing is installed."""
    root = unpacked(tmp_path)
    done = run(root, "source/setup.sh", VITEDU_PYTHON=sys.executable)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_autograder_grades_in_a_clean_folder(tmp_path):
    """Points for what is right, some for what is partly so, no score for what cannot be graded."""
    root = unpacked(tmp_path)
    answers = {e.id: reference_source(e) for e in in_file("01_patches")}
    answers["tokens_at_224"] = "tokens_at_224 = 196"
    answers["PatchEmbed"] = "class PatchEmbed(nn.Module:"
    answers["patchify"] = answers["patchify"].replace("0, 2, 4, 1, 3, 5", "0, 2, 4, 3, 5, 1")
    hand_in(root, answers)
    done = run(root, VITEDU_PYTHON=sys.executable, VITEDU_ALLOW_UNSAFE="1")
    assert done.returncode == 0, done.stderr
    results = json.loads((root / "results" / "results.json").read_text())
    tests = {test["name"].split(":")[0]: test for test in results["tests"]}
    assert list(tests) == [exercise.id for exercise in in_file("01_patches")]
    assert "score" not in tests["PatchEmbed"]
    assert "not valid Python" in tests["PatchEmbed"]["output"]
    assert tests["tokens_at_224"]["score"] == 0
    assert 0 < tests["patchify"]["score"] < 6 and "channel" in tests["patchify"]["output"]
    for id in answers.keys() - {"PatchEmbed", "tokens_at_224", "patchify"}:
        assert tests[id]["score"] == tests[id]["max_score"], id
    assert results["score"] == pytest.approx(sum(t.get("score", 0) for t in tests.values()))
    assert results["extra_data"]["seed"] >= 0 and results["extra_data"]["trouble"] == []
    assert sorted(path.name for path in (root / "results").iterdir()) == ["results.json"]


def test_results_are_written_even_where_nothing_can_be_graded(tmp_path, monkeypatch):
    """No box, no notebook, no metadata: every exercise says so, and none has a score."""
    root = unpacked(tmp_path)

    class Parts:
        @staticmethod
        def open_box(**_):
            raise ValueError("no isolation on this machine; use Linux.")

    monkeypatch.setattr(gradescope, "Parts", Parts)
    results = grade_container(root)
    assert results == json.loads((root / "results" / "results.json").read_text())
    assert results["output"].startswith("Nothing could be graded by machine")
    assert all("score" not in test for test in results["tests"])
    assert results["extra_data"]["trouble"] == ["no isolation on this machine; use Linux."]


def test_wrong_use_is_refused(tmp_path):
    """Another ending; a notebook of somebody else."""
    with pytest.raises(ValueError, match=r"takes a \.zip file"):
        write_autograder(tmp_path / "out", NOTEBOOK)
    (tmp_path / "x.ipynb").write_text("{}")
    with pytest.raises(ValueError, match="holds one of these exercises"):
        write_autograder(tmp_path / "out.zip", tmp_path / "x.ipynb")
