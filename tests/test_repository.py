"""What people look for first, a licence, workflows and pages, holds what it says."""

import importlib.util
import re
import shlex
import subprocess
import sys
import tomllib
from collections import Counter, defaultdict
from pathlib import Path

import nbformat
import numpy as np
import pytest
import yaml
from conftest import whole
from PIL import Image

import vitedu
from vitedu.__main__ import build_parser
from vitedu.course.notebooks import find_notebooks
from vitedu.exercises import EXERCISES, MINUTES, QUICK, describe_minutes
from vitedu.pretrained.reading import shipped_models

ROOT = Path(__file__).parents[1]
GITHUB = ROOT / ".github"
WORKFLOWS = sorted((GITHUB / "workflows").glob("*.yml"))
README = ROOT / "README.md"
PAGES = [
    *GITHUB.glob("*.md"),
    *(ROOT / "notebooks").glob("*.md"),
    README,
    ROOT / "vitedu/README.md",
]
MAKEFILE = (ROOT / "Makefile").read_text("utf-8")
TARGETS = re.findall(r"^([a-z-]+):.*## ", MAKEFILE, re.M)
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
PROJECT = SETTINGS["project"]
MARKS = re.findall(r"(?m)^(\w+):", "\n".join(SETTINGS["tool"]["pytest"]["ini_options"]["markers"]))


def jobs(path):
    """List the jobs of a workflow."""
    return list(yaml.safe_load(path.read_text("utf-8"))["jobs"].values())


def is_known(command):
    """Tell whether all that a command of a workflow names is in this tree."""
    program, *words = shlex.split(command)
    if program == "make":
        return all(word in TARGETS or f"{word.split('=')[0]} ?=" in MAKEFILE for word in words)
    if program.endswith("python"):
        files = re.findall(r"--requirement (\S+)", command)
        extras = re.findall(r"\w+", "".join(word for word in words if word.startswith(".[")))
        marks = re.findall(r"not (\w+)", command)
        return (
            (words[1] == "pip" or importlib.util.find_spec(words[1]))
            and all((ROOT / name).is_file() for name in files)
            and set(extras) <= set(PROJECT["optional-dependencies"])
            and set(marks) <= set(MARKS)
        )
    # gh is GitHub's own, on every machine of theirs
    return program == "gh" or (ROOT / program).is_file()


def test_the_version_and_the_licence_are_the_same_everywhere():
    """Package, project, citation and the first heading of the changes."""
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    changes = re.findall(r"(?m)^## (\S+)", (GITHUB / "CHANGELOG.md").read_text("utf-8"))
    assert vitedu.__version__ == PROJECT["version"] == str(cited["version"]) == changes[0]
    assert PROJECT["license"] == cited["license"] == "MIT"
    assert (ROOT / "LICENSE").read_text("utf-8").startswith("MIT License\n")
    assert all((ROOT / name).is_file() for name in PROJECT["license-files"])


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_workflows_run_what_is_there(path):
    """Each command is a target, a module or a program that exists; actions are GitHub's own."""
    steps = [step for job in jobs(path) for step in job["steps"]]
    commands = [line for step in steps for line in step.get("run", "").splitlines()]
    commands = [re.sub(r"\$\{\{.*?\}\}", "word", line) for line in commands]
    assert [line for line in commands if not is_known(line)] == []
    actions = [step["uses"] for step in steps if "uses" in step]
    assert commands or actions
    assert all(re.fullmatch(r"actions/[a-z-]+@v\d+", action) for action in actions)


def test_every_python_that_is_promised_is_tested():
    """On three systems; the classifiers promise what the matrix has."""
    matrix = jobs(GITHUB / "workflows" / "tests.yml")[0]["strategy"]["matrix"]
    assert [system.split("-")[0] for system in matrix["system"]] == ["ubuntu", "macos", "windows"]
    promised = [line.split(" :: ")[-1] for line in PROJECT["classifiers"] if ":: 3." in line]
    assert matrix["python"] == promised
    assert PROJECT["requires-python"] == f">={promised[0]}"


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_pages_name_commands_and_files_that_exist(path):
    """Targets of make, commands of vitedu, files that links lead to, and the headings in them."""
    text = path.read_text("utf-8")
    fence = r"(?ms)^```\w*\n(.*?)^```$"
    code = "\n".join(re.findall(fence, text) + re.findall(r"`([^`\n]+)`", re.sub(fence, "", text)))
    targets = re.findall(r"(?m)(?:^|exec )make ([a-z-]+)", code)
    commands = re.findall(r"(?m)(?:^|bin/)vitedu ([a-z]+)\b", code)
    choices = build_parser()._subparsers._group_actions[0].choices
    assert set(targets) <= set(TARGETS) and set(commands) <= set(choices)
    for target, heading in re.findall(r"\]\((?!https?:)([^)#\s]*)#?([^)\s]*)\)", text):
        file = path.parent / target if target else path
        assert file.exists(), target
        titles = re.findall(r"(?m)^#+ (.+)$", file.read_text("utf-8")) if heading else []
        names = [re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles]
        anchor = f'id="{heading}"' in file.read_text("utf-8") if heading else True
        assert anchor or heading in names, (target, heading)


def section(name):
    """List the cells of each row, below its head, of the table in a section of the README."""
    return table(README.read_text("utf-8").split(f"\n## {name}\n")[1].split("\n## ")[0])


def table(text):
    """List the cells of each row of a table, below its head."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def test_readme_has_the_notebooks_with_their_points():
    """As the syllabus counts them."""
    rows = [
        [re.search(r"/(\w+)\.ipynb", row[0])[1], int(row[3]), int(row[4])]
        for row in section("Notebooks")
    ]
    hours = sum(MINUTES.values()) / 60
    assert f"take {QUICK * hours:.0f} to {hours:.0f} hours" in README.read_text("utf-8")
    times = [row[2] for row in section("Notebooks")]
    assert all(
        words.startswith(describe_minutes(name).removesuffix(" minutes").replace(" to ", "–"))
        for words, name in zip(times, MINUTES, strict=True)
    )
    count, points = Counter(), Counter()
    for exercise in EXERCISES:
        count[exercise.notebook] += 1
        points[exercise.notebook] += exercise.points
    assert rows == [[name, count[name], points[name]] for name in count]
    rows = table((GITHUB / "PEERS.md").read_text("utf-8"))
    (peers,) = [row for row in rows if row[0] == "checked exercises"]
    assert peers[1] == str(len(EXERCISES)) and len(rows) == 10


def test_readme_quotes_what_was_measured():
    """Three rows: the command and each number stand in one row of MEASURED.md."""
    measured = (ROOT / "vitedu/bench/MEASURED.md").read_text("utf-8").splitlines()
    rows = section("Measured")
    assert len(rows) == 3
    for _, reached, command in rows:
        numbers = re.findall(r"\d[\d.,]*\d|\d", reached)
        found = [row for row in measured if command in row and all(n in row for n in numbers)]
        assert numbers and found, command


def test_readme_gives_the_accuracy_of_models_that_come_along():
    """As their records have it."""
    records = shipped_models()
    for name, _, accuracy in section("Trained models"):
        assert accuracy == f"{records[name.strip('`')]['accuracy']:.2%}".replace("%", " %")


def test_known_limits_name_attacks_that_are_tried():
    """The table's last column, against the text of the attacks' tests."""
    text = (GITHUB / "SECURITY.md").read_text("utf-8")
    cells = [row.split("|")[-2] for row in re.findall(r"(?m)^\| [A-Z].+\|$", text)]
    names = [name.strip() for cell in cells for name in cell.split(";")]
    names = [name for name in names if "authorship" not in name]
    attacks = "".join(file.read_text("utf-8") for file in (ROOT / "tests").rglob("attacks/*.toml"))
    attacks += (ROOT / "tests" / "test_attacks.py").read_text("utf-8").replace("_", " ")
    assert len(names) >= 7 and [name for name in names if name not in attacks] == []


@whole
def test_pictures_of_the_readme_are_drawn_by_their_command(tmp_path):
    """And they are light. A little of 255 is left for other fonts and processors."""
    words = [sys.executable, GITHUB / "picture.py", tmp_path / "picture.png"]
    subprocess.run(words, check=True, capture_output=True, timeout=250)
    for name in ("picture.png", "tasks.png"):
        paths = GITHUB / name, tmp_path / name
        assert paths[0].stat().st_size <= 150_000
        old, new = (np.asarray(Image.open(path).convert("RGB"), float) for path in paths)
        assert old.shape == new.shape and np.abs(old - new).mean() < 3


@whole
def test_figures_for_slides_are_made_as_written(tmp_path):
    """The code of the page runs, here on fewer images."""
    text = (GITHUB / "FIRST_WEEK.md").read_text("utf-8")
    code = re.search(r"(?s)```python\n(.*?)```", text)[1].replace("held_out=1000", "held_out=20")
    words = [sys.executable, "-c", code]
    subprocess.run(words, cwd=tmp_path, check=True, capture_output=True, timeout=250)
    assert len(list(tmp_path.glob("*.png"))) == 5


def test_papers_have_one_author_and_a_year_that_fits():
    """In notebooks and docstrings: ``Author et al. 2020 (arXiv 2010.11929)``."""
    words = r"([A-Z][\w'-]+)(?: et al\.| and [A-Z][\w'-]+)+ (20\d\d)[^()\[\]\d]*[(\[]{1,2}arXiv "
    authors = defaultdict(set)
    for file in [*find_notebooks(ROOT / "notebooks"), *ROOT.glob("vitedu/**/*.py")]:
        text = file.read_text("utf-8")
        if file.suffix == ".ipynb":
            text = "\n".join(cell.source for cell in nbformat.reads(text, 4).cells)
        for author, year, paper in re.findall(words + r"(\d{4}\.\d{5})", " ".join(text.split())):
            authors[paper].add(author)
            assert 2000 + int(paper[:2]) - 1 <= int(year) <= 2000 + int(paper[:2]) + 2, paper
    assert authors["2010.11929"] == {"Dosovitskiy"} and len(authors) > 50
    assert {paper: names for paper, names in authors.items() if len(names) > 1} == {}
