"""Words travel with the code: grades depend on them, and every form of the package holds them."""

import shutil
import zipfile
from pathlib import Path

import pytest

import vitedu
from vitedu.grading import student
from vitedu.grading.adapters.gradescope import write_autograder
from vitedu.grading.box.package_view import base_files

PACKAGE = Path(vitedu.__file__).parent
NOTEBOOK = PACKAGE.parent / "notebooks" / "01_patches.ipynb"
CHANGES = {
    "points": ("course/exercises.toml", "points = 6", "points = 7"),
    "a mistake's words": ("checks/patches/patchify.toml", "without moving", "and no one moves"),
    "a value's words": ("checks/patches/values.toml", "is not counted", "is forgotten"),
    "a family's words": (
        "checks/writing/families.toml",
        "taken to be square",
        "taken for a square",
    ),
}


@pytest.fixture
def copy(tmp_path):
    """Copy the package, without its weights and pictures."""
    skipped = shutil.ignore_patterns("__pycache__", "*.safetensors", "*.jpg", "*.jsonl")
    return Path(shutil.copytree(PACKAGE, tmp_path / "vitedu", ignore=skipped))


def change(package, name):
    """Change a word of one file."""
    path, old, new = CHANGES[name]
    text = (package / path).read_text(encoding="utf-8")
    assert old in text
    (package / path).write_text(text.replace(old, new, 1), encoding="utf-8")


def test_changed_words_or_points_grade_anew(copy, monkeypatch):
    """The hash of what judges covers each file of words."""

    def checkers():
        student.versions.cache_clear()
        return student.versions()["checkers"]

    monkeypatch.setattr(student, "__file__", str(copy / "grading" / "student.py"))
    hashes = [checkers()]
    assert checkers() == hashes[0]
    for name in CHANGES:
        change(copy, name)
        hashes.append(checkers())
    student.versions.cache_clear()
    assert len(set(hashes)) == 1 + len(CHANGES)


def test_autograder_of_gradescope_holds_the_words(copy, monkeypatch, tmp_path):
    """And another word makes another zip."""
    monkeypatch.setattr(vitedu, "__file__", str(copy / "__init__.py"))
    first = write_autograder(tmp_path / "a.zip", NOTEBOOK).read_bytes()
    change(copy, "a mistake's words")
    assert write_autograder(tmp_path / "b.zip", NOTEBOOK).read_bytes() != first
    with zipfile.ZipFile(tmp_path / "b.zip") as archive:
        names = set(archive.namelist())
        text = archive.read("vitedu/checks/patches/patchify.toml").decode()
    assert "and no one moves" in text
    words = {path.relative_to(PACKAGE.parent).as_posix() for path in PACKAGE.rglob("*.toml")}
    assert words and words <= names


def test_box_of_the_grader_holds_no_words():
    """Where an answer runs, nothing tells of mistakes, points or hints."""
    assert not [name for name in base_files() if name.endswith(".toml")]
