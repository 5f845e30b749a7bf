"""What each notebook asks of a student, and where its links lead and its numbers are from."""

import re
import tomllib
from pathlib import Path

import pytest

from vitedu.course.notebooks import exercise_cells, read, shelf_path
from vitedu.course.references import check_lines
from vitedu.exercises import BY_ID, MINUTES, STEMS, describe_minutes

NOTEBOOKS = Path(__file__).parents[1] / "notebooks"
FOLDED = re.compile(r"<details>.*?</details>", re.DOTALL)
FIGURE = re.compile(r"\b(?:plots\.\w+|explore_\w+|show_\w+|draw_\w+|postcard)\(")
PREDICTION = re.compile(r"(?m)^my_\w+ = None\b")
WARM_UP = re.compile(r"(?m)^(?!my_)\w+ = None\b|\*\*Decide")
MEASURED = re.compile(r"""\bmeasured\([^,()]*(,\s*(\w+=)?["'][^()]*)?\)""")  # without live images
BOLD = re.compile(r"\*\*(.+?)\*\*")
SHOWS = re.compile(r"\b(?:print|compare|measured|show_\w+|explore_\w+|plots\.\w+)\(")
LINK = re.compile(r"\[([^\]]*)\]\(([^)\s]+)\)")
ARXIV = re.compile(r"\d{4}\.\d{4,5}")
ABSOLUTE = re.compile(
    r"(?<![\w./:~])/(?:home|Users|root|tmp|var|opt|usr|etc|mnt|work|content|workspace)/[\w.-]+"
    r"|(?<!\w)[A-Za-z]:\\+[\w.-]+"
)
MOST = {"cells": 85, "words": 2800, "lines": 250, "predictions": 6}
MOST_MINUTES = 110, 105  # of the cores of 01 to 04, and of 05 to 09
MOST_LINES = 25  # of a given code cell that is open
# what nobody says -> what is said
TURNS = tomllib.loads(Path(__file__).with_name("turns.toml").read_text(encoding="utf-8"))


def course(name):
    """Read a notebook."""
    return read(NOTEBOOKS / shelf_path(f"{name}.ipynb"))


def open_sources(notebook):
    """List the text of the code cells that are given and not folded."""
    stubs = {index for index, _ in exercise_cells(notebook)}
    code = [(i, cell) for i, cell in enumerate(notebook.cells) if cell.cell_type == "code"]
    is_folded = {i for i, cell in code if "hide-input" in cell.metadata.get("tags", ())}
    return [cell.source for i, cell in code if i not in stubs | is_folded]


def measure(notebook):
    """Count what it asks for; readers with a clock gave the weights of the minutes."""
    texts = [cell.source for cell in notebook.cells if cell.cell_type == "markdown"]
    given, own = open_sources(notebook), [BY_ID[name] for _, name in exercise_cells(notebook)]
    checks = {line for exercise in own for line in check_lines(exercise)}
    lines = [line for source in given for line in source.splitlines()]
    count = {
        "cells": len(notebook.cells),
        "words": sum(len(FOLDED.sub("", text).split()) for text in texts),
        "lines": sum(bool(line.strip()) and line.strip() not in checks for line in lines),
        "predictions": sum(len(PREDICTION.findall(source)) for source in given),
    }
    folded = sum(len(fold.split()) for text in texts for fold in FOLDED.findall(text))
    warm_ups = sum(len(WARM_UP.findall(source)) for source in given + texts)
    figures = sum(bool(FIGURE.search(source)) for source in given)
    reading = count["words"] / 120 + folded / 240 + count["lines"] / 12
    writing = sum(exercise.minutes for exercise in own) + 3 * warm_ups
    looking = 1.5 * (count["predictions"] + figures)
    run = notebook.metadata.get("vitedu", {}).get("run_minutes", 0.0)  # in the laptop profile
    return count | {"minutes": reading + writing + looking + run}


@pytest.mark.parametrize("name", MINUTES)
def test_a_core_fits_its_budget_and_says_how_long_it_takes(name):
    """An ordinary student's minutes are those that the README has, and no more."""
    notebook, most = course(name), MOST_MINUTES[name > "05"]
    limits = {**MOST, "minutes": min(MINUTES[name], most)}
    counts = measure(notebook)
    assert {what: count for what, count in counts.items() if count > limits[what]} == {}
    assert describe_minutes(name) in notebook.cells[0].source


@pytest.mark.parametrize("name", STEMS)
def test_long_code_that_is_given_is_folded(name):
    """What a student has to read fits a screen."""
    counts = [len([1 for x in s.splitlines() if x.strip()]) for s in open_sources(course(name))]
    assert max(counts) <= MOST_LINES


@pytest.mark.parametrize("name", STEMS)
def test_a_folded_cell_says_what_it_does(name):
    """JupyterLab shows the first line of it, and no more."""
    cells = [cell for cell in course(name).cells if "hide-input" in cell.metadata.get("tags", ())]
    labels = [cell.source.splitlines()[0] for cell in cells]
    assert [label for label in labels if not re.fullmatch(r"# .{4,44}", label)] == []


@pytest.mark.parametrize("name", STEMS)
def test_shipped_measurements_say_their_data(name):
    """They are asked for beside live images, which are compared with theirs, or name their own."""
    code = [cell for cell in course(name).cells if cell.cell_type == "code"]
    alone = [cell.id for cell in code if MEASURED.search(cell.source)]
    assert [cell.id for cell in code if cell.id in alone and ".data" not in cell.source] == []


@pytest.mark.parametrize("name", STEMS)
def test_a_number_in_bold_has_its_source_beside_it(name):
    """A link, or a cell that shows it: in the same section, and not far away."""
    cells, start, bare = course(name).cells, 0, []
    for index, cell in enumerate(cells):
        start = index if re.match("## ", cell.source) else start
        beside = cells[max(start, index - 3) : index + 2]
        is_shown = any(SHOWS.search(c.source) for c in beside if c.cell_type == "code")
        if cell.cell_type == "markdown" and not is_shown and "](" not in cell.source:
            bare += filter(re.compile(r"\b\d").search, BOLD.findall(cell.source))
    assert bare == []


def anchors(notebook):
    """List the link targets in a notebook: its headings as Jupyter names them."""
    texts = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    return [
        re.sub(r"[`*]", "", h).replace(" ", "-") for h in re.findall(r"(?m)^#+ +(.+?) *$", texts)
    ]


@pytest.mark.parametrize("name", STEMS)
def test_links_lead_to_files_headings_and_the_papers_that_they_name(name):
    """In the same notebook and in another one, on either shelf; a picture is drawn by a cell."""
    path = NOTEBOOKS / shelf_path(f"{name}.ipynb")
    text = "\n".join(cell.source for cell in course(name).cells if cell.cell_type == "markdown")
    for words, target in LINK.findall(text):
        if "arxiv.org" in target and ARXIV.findall(words):
            assert ARXIV.findall(words) == ARXIV.findall(target)
        elif not re.match(r"https?:", target):
            file, _, heading = target.partition("#")
            place = path.parent / file if file else path
            assert place.exists() and (not heading or heading in anchors(read(place))), target


@pytest.mark.parametrize("name", STEMS)
def test_sentences_take_no_turn_of_a_translator(name):
    """Code within a sentence is not the author's."""
    assert TURNS and not any(re.search(bad, good) for bad, good in TURNS.items())
    texts = [cell.source for cell in course(name).cells if cell.cell_type == "markdown"]
    text = re.sub("`[^`]*`", "", "\n\n".join(texts))
    found = {match[0]: better for bad, better in TURNS.items() if (match := re.search(bad, text))}
    assert found == {}


@pytest.mark.parametrize("name", STEMS)
def test_no_path_of_an_authors_machine_is_left(name):
    """In a cell, or in an output that is stored."""
    texts = (cell.source + str(cell.get("outputs", "")) for cell in course(name).cells)
    assert [match[0] for text in texts if (match := ABSOLUTE.search(text))] == []
