"""Words as data: what a TOML file must be, and how it is told what is wrong with one."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from vitedu import exercises
from vitedu.ground import words
from vitedu.ground.words import WordsError, check_table, read

SOUND = """[[exercise]]
id = "patchify"
number = "1.1"
title = "cut"
points = 6
minutes = 15
hints = ["one", "two", "three"]
"""

BROKEN = {
    "twice": ('id = "a"\nid = "b"\n', "is not valid TOML: Cannot overwrite a value (at line 2"),
    "open": ('id = "a\n', "is not valid TOML: Illegal character"),
    "latin": (b'id = "\xe9"\n', "is not UTF-8 (byte 6); save it as UTF-8."),
}


@pytest.mark.parametrize(("text", "expected"), BROKEN.values(), ids=BROKEN)
def test_broken_file_is_one_line_with_its_name_and_a_remedy(text, expected, tmp_path):
    """Whatever the parser says, a maintainer reads one sentence."""
    path = tmp_path / "words.toml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(WordsError) as caught:
        read(path)
    assert str(caught.value).startswith(f"words.toml: {expected}") and "\n" not in str(caught.value)


def test_missing_file_says_to_install_again(tmp_path):
    """So it is where a wheel was built without its words."""
    with pytest.raises(WordsError, match=r"^a\.toml: cannot be read .*; install vitedu again"):
        read(tmp_path / "a.toml")


def test_marks_line_ends_and_tabs_are_forgiven(tmp_path):
    """What an editor on Windows writes reads the same; the course's own files have none."""
    path = tmp_path / "a.toml"
    path.write_bytes(b'\xef\xbb\xbfname = "x"\r\n\ttext = """one\r\ntwo"""\r\n')
    assert read(path) == {"name": "x", "text": "one\ntwo"}


TABLES = {
    "unknown": ({"id": "a", "pionts": 3}, 'has the unknown key "pionts"; write "points".'),
    "strange": ({"id": "a", "xyz": 3}, 'has the unknown key "xyz"; the keys are id, points'),
    "missing": ({"points": 3}, 'has no "id"; add it, a text.'),
    "kind": ({"id": "a", "points": "3"}, "\"points\" must be a whole number (got '3')"),
    "true": ({"id": "a", "points": True}, '"points" must be a whole number (got True)'),
    "no table": ([], "is no table"),
}


@pytest.mark.parametrize(("table", "expected"), TABLES.values(), ids=TABLES)
def test_keys_of_a_table_are_held(table, expected):
    """Every key is known, every key that is needed is there, and each has its type."""
    with pytest.raises(WordsError) as caught:
        check_table("a.toml, entry 1", table, {"id": str}, {"points": int})
    assert str(caught.value).startswith(f"a.toml, entry 1: {expected}")


ENTRIES = {
    "hints": ('["one", "two", "three"]', '["one"]', "has three hints (got 1); write three."),
    "empty": ('"three"]', '" "]', "has three hints"),
    "key": ("minutes", "minuets", 'has the unknown key "minuets"; write "minutes".'),
}


@pytest.mark.parametrize(("old", "new", "expected"), ENTRIES.values(), ids=ENTRIES)
def test_syllabus_tells_file_exercise_and_remedy(old, new, expected, tmp_path):
    """An entry that cannot be used is named."""
    path = tmp_path / "exercises.toml"
    path.write_text(SOUND.replace(old, new))
    with pytest.raises(WordsError) as caught:
        exercises.load(path)
    assert str(caught.value).startswith("exercises.toml, exercise patchify: ")
    assert expected in str(caught.value)


def test_entries_keep_their_order_whatever_their_numbers(tmp_path):
    """The number is a label: 1.10 may stand before 1.2."""
    path, later = tmp_path / "exercises.toml", SOUND.replace("patchify", "other")
    path.write_text(later.replace("1.1", "1.10") + SOUND.replace("1.1", "1.2"))
    assert [exercise.id for exercise in exercises.load(path)] == ["other", "patchify"]


def test_entries_of_the_course_are_of_its_kinds():
    """Reports, grades and links know an exercise by its id; what it asks is worth something."""
    assert len(exercises.BY_ID) == len(exercises.EXERCISES)
    assert {each.kind for each in exercises.EXERCISES} == {"function", "class", "value"}
    assert all(each.points > 0 and each.minutes > 0 for each in exercises.EXERCISES)
    notebooks = [each.notebook for each in exercises.EXERCISES]
    assert notebooks == sorted(notebooks) and len(set(notebooks)) == len(exercises.CHAPTERS)


def test_numbers_follow_the_order_of_reading_and_the_core_comes_first():
    """A number is the place in its chapter; the lint holds the stubs of each file to this order."""
    for notebook in {exercise.notebook for exercise in exercises.EXERCISES}:
        own = exercises.in_notebook(notebook)
        cores = [exercise.core for exercise in own]
        assert set(cores) == {True, False} and cores == sorted(cores, reverse=True)
        places = [f"{own[0].number[0]}.{place}" for place in range(1, len(own) + 1)]
        assert [exercise.number for exercise in own] == places


def test_part_is_said_where_it_holds():
    """The student's own model has parts of two kinds."""
    parts = [exercise for exercise in exercises.EXERCISES if exercise.part]
    assert {exercise.part for exercise in parts} == {"model", "training"}  # and "" of the others
    assert all(exercise.kind != "value" for exercise in parts)


@pytest.mark.slow
def test_package_without_its_syllabus_says_so_in_one_line(tmp_path):
    """Without it, as from a wheel that lacks it, nothing can go on; the command says why."""
    package = Path(words.__file__).parents[1]
    skipped = shutil.ignore_patterns("__pycache__", "*.safetensors", "*.jpg")
    shutil.copytree(package, tmp_path / "vitedu", ignore=skipped)
    (tmp_path / "vitedu" / "course" / "exercises.toml").unlink()
    done = subprocess.run(
        [sys.executable, "-m", "vitedu", "list"], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 2 and done.stderr.count("\n") == 1, done.stderr
    assert "vitedu/course/exercises.toml" in done.stderr
