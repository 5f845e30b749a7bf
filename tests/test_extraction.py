"""From notebooks to answers: found by mark or name, cut down to what they need."""

import ast
import json
import os
import time
from collections import defaultdict
from pathlib import Path

import pytest
import torch
from run_answer import RunAnswer

from vitedu.checks.engine import judge_answer
from vitedu.checks.writing.checker import find_checker
from vitedu.course.notebooks import exercise_cells, find_notebooks, read, shelf_path, solve_notebook
from vitedu.course.references import solution_source
from vitedu.exercises import EXERCISES, find, in_file
from vitedu.grading.grades import REASONS, Flag, Submission
from vitedu.grading.intake import notebook_file
from vitedu.grading.intake.extraction import extract
from vitedu.grading.intake.notebook_file import read_notebook
from vitedu.grading.intake.statements import MAX_SOURCE, is_stub, parse_cell

NOTEBOOKS = Path(__file__).parents[1] / "notebooks"
GELU = "def gelu(x):\n    return x * 0.5 * (1 + torch.erf(x / math.sqrt(2)))"


def handed_in(folder, content, name="work.ipynb"):
    """Write a file and extract it."""
    path = folder / name
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        path.write_text(content if isinstance(content, str) else json.dumps(content), "utf-8")
    return extract(Submission("ann", (path,)))


def cell(source, exercise=None, **rest):
    """Write one code cell."""
    metadata = {"vitedu": {"exercise": exercise}} if exercise else {}
    return {"cell_type": "code", "metadata": metadata, "source": source, "outputs": [], **rest}


def notebook(*cells, **rest):
    """Write a notebook of cells; text is an unmarked cell."""
    cells = [cell(c) if isinstance(c, str) else c for c in cells]
    return {"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": cells, **rest}


def course(folder, name, answers):
    """Extract the course's own notebook with some answers put in."""
    content = json.loads((NOTEBOOKS / shelf_path(f"{name}.ipynb")).read_text("utf-8"))
    for own in content["cells"]:
        exercise = own["metadata"].get("vitedu", {}).get("exercise")
        own["source"] = answers.get(exercise, own["source"])
    return handed_in(folder, content, f"{name}.ipynb")


def value(answer):
    """Run an answer of ours and give what it defines."""
    result = RunAnswer(answer)
    assert result.error is None, result.program.failures
    return result.value


def needed(answer):
    """Give the texts of the statements that an answer may need."""
    return [each.text for places in answer.program.spaces.values() for each in places.values()]


def kinds(answer):
    """Give the kinds of an answer's flags that extraction itself raises."""
    own = {"duplicate", "elsewhere", "found_by_name", "not_code", "magics"}
    return [flag.kind for flag in answer.flags if flag.kind in own]


@pytest.fixture(scope="module")
def whole_course(tmp_path_factory):
    """The solved course as one student's files."""
    folder, files = tmp_path_factory.mktemp("solved"), []
    for path in find_notebooks(NOTEBOOKS):
        files.append(folder / path.name)
        files[-1].write_text(json.dumps(solve_notebook(read(path))), "utf-8")
    return tuple(files)


# --- which cell answers what ---------------------------------------------------------------------


@pytest.mark.slow
def test_every_exercise_of_the_solved_course_is_found_and_stands_alone(whole_course):
    """Support and answer run together, and define what was asked, without plots, data or checks."""
    result = extract(Submission("ann", whole_course))
    assert list(result.answers) == [exercise.id for exercise in EXERCISES]
    assert (result.problems, result.flags) == ({}, [])
    for answer in result.answers.values():
        assert kinds(answer) == []
        result = RunAnswer(answer)
        assert result.error is None and result.value is not None, result.program.failures
        text = "\n".join(result.ran)
        assert not any(word in text for word in ("load_data", "plots", "check(", "hint", "profile"))


@pytest.mark.slow
def test_dropped_metadata_changes_nothing_but_how_answers_were_found(whole_course, tmp_path):
    """An editor that drops all cell metadata costs nobody an answer."""
    for path in whole_course[:2]:
        marked = extract(Submission("ann", (path,))).answers
        content = json.loads(path.read_text("utf-8"))
        for own in content["cells"]:
            own["metadata"] = {"id": "colab"}
        result = handed_in(tmp_path, content, "renamed.ipynb")
        assert list(result.answers) == [e.id for e in in_file(path.stem)]
        assert result.notebooks == {path.stem}
        for id, answer in result.answers.items():
            assert answer.source == marked[id].source and needed(answer) == needed(marked[id])
            assert kinds(answer) == ["found_by_name"]


def test_untouched_notebook_gives_its_stubs(tmp_path):
    """A stub is an answer that the judge calls not attempted, and no missing cell."""
    result = course(tmp_path, "03_encoder", {})
    assert set(result.answers) == {exercise.id for exercise in in_file("03_encoder")}
    assert result.problems["patchify"] == ("not handed in", "no file holds notebook 01_patches")
    more = course(tmp_path, "03_encoder_more", {})  # without its core it stands by itself
    assert set(more.answers) == {exercise.id for exercise in in_file("03_encoder_more")}


def test_last_attempt_wins_and_a_stub_is_no_attempt(tmp_path):
    """Two answers: the last, flagged. An answer and a stub: the answer, in either order."""
    first, second = "def gelu(x):\n    return x", "def gelu(x):\n    return 2 * x"
    stub = "def gelu(x):\n    raise NotImplementedError('3.2')"
    both = handed_in(tmp_path, notebook(cell(first, "gelu"), cell(second))).answers["gelu"]
    assert both.source == second and kinds(both) == ["duplicate", "found_by_name"]
    for cells in ([stub, first], [first, stub]):
        result = handed_in(tmp_path, notebook(*(cell(c, "gelu") for c in cells))).answers["gelu"]
        assert result.source == first and kinds(result) == []


def test_newest_file_wins(tmp_path):
    """Files come oldest first."""
    paths = tmp_path / "1.ipynb", tmp_path / "2.ipynb"
    for path in paths:
        own = cell(f"def gelu(x):\n    return {path.stem}", "gelu")
        path.write_text(json.dumps(notebook(own)))
    answer = extract(Submission("ann", paths)).answers["gelu"]
    assert "return 2" in answer.source and kinds(answer) == ["duplicate"]


def test_wrappers_of_the_notebook_are_no_answers(tmp_path):
    """report.implementation, an import and a check are not what the student wrote."""
    cells = [
        cell(GELU, "gelu"),
        "report = check(gelu)\ngelu = report.implementation",
        "from vitedu.encoder import gelu",
        "gelu = check(gelu).implementation",
    ]
    answer = handed_in(tmp_path, notebook("import torch, math", *cells)).answers["gelu"]
    assert answer.source == GELU and kinds(answer) == []
    only = handed_in(tmp_path, notebook(cell("from vitedu.encoder import gelu", "gelu")))
    assert only.problems["gelu"][0] == "no_cell"


def test_a_mark_that_names_another_exercise_is_ignored(tmp_path):
    """A cell marked for one exercise that defines another answers the other; so do cells alike."""
    swapped = cell("def gelu(x): return x", "layer_norm"), cell("layer_norm = abs", "gelu")
    result = handed_in(tmp_path, notebook(*swapped))
    assert "def gelu" in result.answers["gelu"].source
    assert kinds(result.answers["gelu"]) == kinds(result.answers["layer_norm"]) == []


def test_an_answer_in_another_chapters_file_counts_with_a_remark(tmp_path):
    """Chapter 02 handed in as 01; where the own chapter has an answer too, that one counts."""
    own = "def softmax(x, dim=-1):\n    return x"
    contents = notebook(cell("patchify = abs", "patchify"), own), notebook(cell(GELU, "softmax"))
    contents[1]["cells"][0]["source"] = own + " + 1"
    paths = [tmp_path / f"{name}.ipynb" for name in ("01_patches", "02_attention")]
    for path, content in zip(paths, contents, strict=True):
        path.write_text(json.dumps(content))
    one, two = (extract(Submission("ann", tuple(paths[:n]))).answers["softmax"] for n in (1, 2))
    assert one.source == own and kinds(one) == ["elsewhere", "found_by_name"]
    assert two.source == own + " + 1" and kinds(two) == []


NO_ATTEMPTS = [
    "for gelu in (1, 2): pass",
    "gelu = 'curve'",
    "gelu = gelu(torch.randn(3))",
    "gelu = 3.0 * x",
    "with open('f') as gelu: pass",
    "def gelu(x):\n    raise NotImplementedError",
    "from my_vit import gelu",
    "gelu = solution('gelu')",
]


@pytest.mark.parametrize("line", NO_ATTEMPTS)
def test_what_is_no_attempt_replaces_none(tmp_path, line):
    """A loop, a plot, a tensor below an answer."""
    answer = handed_in(tmp_path, notebook(cell(GELU, "gelu"), line)).answers["gelu"]
    assert answer.source == GELU and kinds(answer) == []


def test_of_a_value_the_last_assignment_counts(tmp_path):
    """Nobody may guess twice: an earlier one is never tried."""
    cells = [f"tokens_at_224 = {guess}" for guess in (197, 1, "'two'")]
    answer = handed_in(tmp_path, notebook(*cells, "for tokens_at_224 in []: pass"))
    answer = answer.answers["tokens_at_224"]
    assert len(answer.program.targets) == 1 and value(answer) == "two"
    assert kinds(answer) == ["duplicate", "found_by_name"]


def test_answer_in_a_cell_of_another_type_is_taken(tmp_path):
    """One wrong key in Jupyter turns a cell into markdown."""
    answer = handed_in(tmp_path, notebook(cell(GELU, "gelu", cell_type="markdown"))).answers["gelu"]
    assert answer.source == GELU and kinds(answer) == ["not_code"]


def test_an_attempt_turned_into_text_is_no_answer_beside_code(tmp_path):
    """Metadata stay when a cell becomes text: an attempt that was put aside must not win."""
    aside = cell("def gelu(x):\n    return x", "gelu", cell_type="markdown")
    answer = handed_in(tmp_path, notebook(cell(GELU, "gelu"), aside)).answers["gelu"]
    assert answer.source == GELU and kinds(answer) == ["duplicate"]


# --- what comes along ----------------------------------------------------------------------------


@pytest.mark.slow
def test_answers_measured_on_the_notebook_are_gradable(tmp_path):
    """The cells that a measurement rests on come along: models, seeds, loops, a backward pass."""
    measured = defaultdict(dict)
    for exercise in EXERCISES:
        if exercise.measured:
            measured[exercise.stem][exercise.id] = solution_source(exercise)
    assert len(measured) >= 5
    for name, answers in measured.items():
        result = course(tmp_path, name, answers)
        for id in answers:
            assert judge_answer(find_checker(id), value(result.answers[id]), 0).passed, id


def test_helpers_constants_and_later_changes_come_along(tmp_path):
    """Defined before or after, in other cells, changed in place, decorated; nothing else does."""
    own = "@twice\ndef gelu(x):\n    images = 1\n    return half * x * erf(x)\ngelu(torch.zeros(2))"
    cells = [
        "import os, math, torch\nfrom functools import cache\nfrom vitedu.plots import patches",
        "half = 0.5\nroot = {}\nroot['two'] = math.sqrt(2)\nroot.update(one=1)\nprint(root)",
        "images = [os.getcwd() for _ in range(10**9)]",
        cell(own, "gelu"),
        "def erf(x):\n    return root['one'] + torch.erf(x / root['two'])",
        "def twice(f):\n    return f",
        "gelu.name = 'g'\ncheck(gelu)",
    ]
    answer = handed_in(tmp_path, notebook(*cells)).answers["gelu"]
    assert float(value(answer)(torch.tensor(1.0))) == pytest.approx(0.8413, abs=1e-4)
    text = "\n".join(RunAnswer(answer).ran)
    assert "gelu.name = 'g'" in text and "root.update" in text
    assert not [word for word in "images = [|print|plots|os|check|zeros".split("|") if word in text]
    assert answer.source == own


CHANGED_IN_PLACE = {
    "in a with": "with torch.no_grad():\n    layer.weight.fill_(2)",
    "in a loop": "for p in layer.parameters():\n    p.data.fill_(2)",
    "by a function": "nn.init.constant_(layer.weight, 2)",
    "in an if": "if True:\n    layer.load_state_dict({'weight': torch.full((1, 1), 2.0)})",
}


@pytest.mark.parametrize("change", CHANGED_IN_PLACE.values(), ids=CHANGED_IN_PLACE)
def test_what_methods_change_in_place_comes_along(tmp_path, change):
    """From a cell of its own, inside of blocks too."""
    first = "import torch\nfrom torch import nn\nlayer = nn.Linear(1, 1, bias=False)"
    own = cell("stem_tokens = layer(torch.ones(1)).item()", "stem_tokens")
    result = handed_in(tmp_path, notebook(first, change, own))
    assert value(result.answers["stem_tokens"]) == 2.0


def test_own_helper_with_the_name_of_an_earlier_chapters_exercise_is_the_students(tmp_path):
    """In notebook 03 a student's softmax is a helper; an imported one is the package's."""
    source = "def gelu(x):\n    return softmax(x)"
    own = handed_in(tmp_path, notebook("def softmax(x): return 7", cell(source, "gelu")))
    assert value(own.answers["gelu"])(0) == 7
    imported = notebook("from vitedu.attention import softmax, split_heads", cell(source, "gelu"))
    answer = handed_in(tmp_path, imported).answers["gelu"]
    assert value(answer)(torch.zeros(2)).tolist() == [0.5, 0.5]


def test_cell_with_a_syntax_error_is_lost_alone(tmp_path):
    """Its neighbours stay, its own exercise says where it broke."""
    cells = [
        "import math, torch",
        "def broken(:",
        cell(GELU, "gelu"),
        cell("def layer_norm(:", "layer_norm"),
    ]
    result = handed_in(tmp_path, notebook(*cells))
    value(result.answers["gelu"])
    reason, detail = result.problems["layer_norm"]
    assert reason == "syntax" and "line 1: " in detail


def test_lost_imports_of_the_first_cell_are_replaced(tmp_path):
    """A student who returned only the answer's cell still has torch."""
    value(handed_in(tmp_path, notebook(cell(GELU, "gelu"))).answers["gelu"])


# --- cells ---------------------------------------------------------------------------------------


def test_ipython_lines_are_taken_out_and_flagged(tmp_path):
    """Magics, shell lines, help; a string that looks like one stays; bash is no Python."""
    source = "%%time\n!ls\nn = !ls\n%pip install x\nabs?\nif True:\n    %matplotlib inline\n"
    source += 'mlp_share = """\n!a\n"""'
    answer = handed_in(tmp_path, notebook(cell(source, "mlp_share"))).answers["mlp_share"]
    assert value(answer) == "\n!a\n" and kinds(answer) == ["magics"]
    assert answer.flags[0].message.startswith("6 lines")
    result = handed_in(tmp_path, notebook(cell("%%bash\necho 1", "gelu")))
    assert result.problems["gelu"][0] == "syntax" and "%%bash" in result.problems["gelu"][1]


@pytest.mark.parametrize(
    "source",
    [
        "x = " + "1 + " * 20_000 + "1",
        "x = " + "(" * 5_000,
        "x = a" + ".b" * 20_000,
        "x = " + "-" * 50_000 + "1",
        "x = '\0'",
        "x = 1" * MAX_SOURCE,
        "return 1\nawait x\nx: int\ndel x\nglobal y",
        "match x:\n    case {'a': [b, *c], **d}: pass",
        "lambda: (yield)",
        "\ud800",
        "",
    ],
    ids=range(11),
)
def test_hostile_source_is_read_or_refused_but_never_raises(source, tmp_path):
    """Nothing that is written in a cell stops the reading of the others."""
    parse_cell(source)
    answer = handed_in(tmp_path, notebook(source, cell(GELU, "gelu"), cell(source, "softmax")))
    assert "gelu" in answer.answers


def test_patterns_take_no_longer_on_lines_made_for_that(tmp_path):
    """Blanks, hundreds of magics, names that go round in circles: seconds of work, not minutes."""
    circle = "".join(f"x{i % 50} = x{(i * 7 + 3) % 50}\n" for i in range(2_000)) + "x = x1"
    for source in (" " * 99_000 + "$", "!x\n" * 200 + "a = 1\n" * 8_000, circle):
        start = time.process_time()
        result = handed_in(tmp_path, notebook(source, cell("def gelu(y):\n    return x", "gelu")))
        assert "gelu" in result.answers and time.process_time() - start < 5


def test_honest_oddities_of_text_cost_nothing(tmp_path):
    """CRLF, a byte order mark, letters of any alphabet, sources as lists, UTF-16."""
    source = "# naïve Lösung 解\nδ = 2\ndef gelu(x):\n    return x * δ"
    lists = source.splitlines(keepends=True)
    text = json.dumps(notebook(cell(lists, "gelu")), ensure_ascii=False)
    variants = [
        json.dumps(notebook(cell(source.replace("\n", "\r\n"), "gelu"))),
        b"\xef\xbb\xbf" + text.encode(),
        text.encode("utf-16"),
        notebook(cell("\ufeff" + source, "gelu")),
        notebook(cell(source, "gelu", id="same"), cell("x = 1", id="same")),
        notebook(cell(source, "gelu"), metadata={"kernelspec": {"name": "ir", "language": "R"}}),
    ]
    for content in variants:
        assert value(handed_in(tmp_path, content).answers["gelu"])(3) == 6


def test_malformed_parts_are_left_out_and_the_rest_is_read(tmp_path):
    """Cells that are no objects, marks that are no words, sources that are no text."""
    strange = [7, None, {}, {"cell_type": "code", "source": {"a": 1}}, {"source": [1]}]
    marks = (3, {"vitedu": 4}, {"vitedu": {"exercise": []}})
    marks = [cell("x = 1") | {"metadata": mark} for mark in marks]
    content = notebook(*marks, cell("y = 1", "no_such_exercise"), cell(GELU, "gelu"))
    content |= {"cells": strange + content["cells"], "nbformat": "x", "metadata": []}
    result = handed_in(tmp_path, content)
    assert "gelu" in result.answers
    assert sorted({flag.kind for flag in result.flags}) == ["oddity", "unknown_exercise"]


UNREADABLE = [
    b"",
    b"{",
    b"[]",
    b"{}",
    b'{"cells": 3}',
    b'{"cells": []',
    b"\xff\xfe\x00",
    b"\0" * 99,
]
UNREADABLE += [b"not json", b"[" * 100_000, b'{"a":' * 100_000, b'"' + b"a" * 50]
UNREADABLE += [b'{"cells": [1' + b"1" * 5000]


@pytest.mark.parametrize("content", UNREADABLE, ids=range(len(UNREADABLE)))
def test_unreadable_files_are_a_finding_for_every_exercise(content, tmp_path):
    """With a reason that grades know and a detail that names the file."""
    result = handed_in(tmp_path, content)
    assert set(result.problems) == {exercise.id for exercise in EXERCISES}
    for reason, detail in result.problems.values():
        assert reason == "unreadable" and reason in REASONS and detail.startswith("work.ipynb: ")


def test_unreadable_file_blocks_its_own_notebook_only(tmp_path):
    """Its name says which."""
    paths = tmp_path / "01_patches.ipynb", tmp_path / "03_encoder.ipynb", tmp_path / "gone.ipynb"
    paths[0].write_text("{")
    paths[1].write_text(json.dumps(notebook(cell(GELU, "gelu"))))
    result = extract(Submission("ann", paths[:2]))
    assert result.problems["patchify"][0] == "unreadable" and "gelu" in result.answers
    assert result.problems["softmax"][0] == "not handed in"
    assert result.problems["layer_norm"][0] == "no_cell"
    assert extract(Submission("ann", paths[2:])).problems["gelu"][0] == "unreadable"


def test_student_without_a_notebook_is_told_why():
    """What was handed in instead is the reason for every exercise."""
    flag = Flag("archive", "bob.zip is an archive; unpack it and grade again")
    empty = extract(Submission("bob", (), {}, (flag,)))
    assert set(empty.problems.values()) == {("unreadable", flag.message)} and empty.flags == [flag]
    assert extract(Submission("cy", ())).problems["gelu"] == ("unreadable", "no file at all")


# --- large files ---------------------------------------------------------------------------------


def test_what_a_notebook_shows_is_no_answer(tmp_path):
    """Outputs, and pictures of several MB in a cell of text, as Colab stores them."""
    picture = {"cell_type": "markdown", "source": "![](data:image/png;base64," + "A" * 6 * 2**20}
    answer = cell(GELU, "gelu", outputs=[{"text": ["a\n" * 10**6]}])
    assert "gelu" in handed_in(tmp_path, notebook(picture, answer)).answers


def test_too_large_a_file_is_refused_with_its_size(tmp_path, monkeypatch):
    """Before it is read."""
    monkeypatch.setattr(notebook_file, "MAX_FILE", 3 * 2**20)
    (tmp_path / "a.ipynb").write_bytes(b" " * (4 * 2**20))
    assert read_notebook(tmp_path / "a.ipynb").problem.startswith("4 MB, more than the 3 MB")


def test_link_or_pipe_in_the_place_of_a_file_is_not_opened(tmp_path):
    """Even if it came there after the folder was looked through."""
    (tmp_path / "link.ipynb").symlink_to("/dev/zero")
    os.mkfifo(tmp_path / "pipe.ipynb")
    assert read_notebook(tmp_path / "link.ipynb").problem.startswith("it cannot be opened")
    assert read_notebook(tmp_path / "pipe.ipynb").problem == "it is no regular file"


def test_every_stub_is_known_as_one_and_no_reference_is():
    """The stubs of the notebooks, and their solutions."""
    for path in find_notebooks(NOTEBOOKS):
        own = read(path)
        for index, id in exercise_cells(own):
            assert is_stub(ast.parse(own.cells[index].source).body[-1]), id
            assert not is_stub(ast.parse(solution_source(find(id))).body[-1]), id
