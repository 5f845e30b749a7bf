"""One format for all code, and how much of it there is."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from vitedu.exercises import EXERCISES

ROOT = Path(__file__).parents[1]
MOST = {"vitedu": 35_000, "tests": 25_000}  # lines of Python; tests without proof
MOST_A_CHECKER = 28  # lines of Python in the mean


def python_files(folder):
    """List the Python files of a folder, in order."""
    return sorted((ROOT / folder).rglob("*.py"))


def lines(paths):
    """Count the lines of files."""
    return sum(len(path.read_text(encoding="utf-8").splitlines()) for path in paths)


def test_code_is_plainly_formatted_and_no_larger_than_agreed(capsys):
    """Ruff's format at 100 columns without exception, and no longer line; prints the count."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["ruff"]
    assert settings["line-length"] == 100 and "ignore" not in settings["lint"]
    long = settings["lint"]["per-file-ignores"]
    assert [name for name, rules in long.items() if "E501" in rules] == ["notebooks/*.ipynb"]
    code = [*python_files("vitedu"), *python_files("tests")]
    marks = ("# fmt:" + " skip", "# fmt:" + " off")
    assert [p for p in code if any(mark in p.read_text(encoding="utf-8") for mark in marks)] == []
    for words in (["format", "--check"], ["check", "--select", "E501"]):
        command = [sys.executable, "-m", "ruff", *words, "vitedu", "tests"]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout
    proof = set(python_files("tests/proof"))
    found = {
        "vitedu": lines(python_files("vitedu")),
        "tests": lines(path for path in python_files("tests") if path not in proof),
        "tests/proof": lines(proof),
        "TOML": lines((ROOT / "vitedu").rglob("*.toml")),
    }
    with capsys.disabled():
        print("\nlines:", ", ".join(f"{name} {count:,}" for name, count in found.items()))
    assert {name: count for name, count in found.items() if count > MOST.get(name, count)} == {}


ENGINE = {"checks", "writing", "observing", "judging", "explaining"}


def test_a_checker_costs_what_was_agreed():
    """Cases, what they prove, drawings: the words are TOML. Drivers and readers come beside it."""
    files = [path for path in python_files("vitedu/checks") if path.parent.name not in ENGINE]
    files = [path for path in files if not re.search("__init__|_driver|_reader", path.stem)]
    assert lines(files) / len(EXERCISES) <= MOST_A_CHECKER


@pytest.mark.parametrize("path", sorted((ROOT / "vitedu").rglob("*.toml")), ids=lambda p: p.stem)
def test_words_are_plain_utf8_with_unix_line_ends(path):
    """No byte order mark, no carriage return, no tab."""
    assert re.findall(rb"^\xef\xbb\xbf|\r|\t", path.read_bytes()) == []
