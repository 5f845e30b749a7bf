"""From notebooks to scripts: cells in order, and which exercises they touch."""

import ast
import json
from pathlib import Path

import pytest

from vitedu.course.notebooks import exercise_cells, find_notebooks, read, shelf_path, solve_notebook
from vitedu.course.references import solution_source
from vitedu.exercises import EXERCISES, find, in_file
from vitedu.grading.grades import REASONS, Flag, Submission
from vitedu.grading.intake import notebook_file, reading
from vitedu.grading.intake.extraction import extract
from vitedu.grading.intake.flags import is_stub
from vitedu.grading.intake.notebook_file import Unreadable, read_notebook

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


def test_course_cells_are_cut_down_to_what_somebody_needs(tmp_path):
    """Of the solved course no demonstration runs; a student's own cell brings what it reads."""
    known = frozenset(reading.course_cells())
    for source in find_notebooks(NOTEBOOKS):
        path = tmp_path / source.name
        path.write_text(json.dumps(solve_notebook(read(source))))
        submission = Submission("ann", (path,))
        (script,), (whole,) = (extract(submission, cells).scripts for cells in (known, frozenset()))
        assert script.stems == [path.stem]
        touched = {p for places in script.defines.values() for p in places}
        touched |= {p for places in script.checks.values() for p in places}
        length = sum(len(c.source) for c in script.cells)
        assert length < 0.8 * sum(len(c.source) for c in whole.cells), path.name
        for place in touched:
            assert script.cells[place].source == whole.cells[place].source


def test_untouched_notebook_gives_its_stubs(tmp_path):
    """A stub is an answer that the judge calls not attempted, and no missing cell."""
    result = course(tmp_path, "03_encoder", {})
    assert set(result.answers) == {exercise.id for exercise in in_file("03_encoder")}
    assert result.problems["patchify"] == ("not handed in", "no file holds notebook 01_patches")
    more = course(tmp_path, "03_encoder_more", {})  # without its core it stands by itself
    assert set(more.answers) == {exercise.id for exercise in in_file("03_encoder_more")}


def test_the_last_attempt_is_shown_and_a_stub_is_none(tmp_path):
    """Two answers: the last. An answer and a stub: the answer, in either order."""
    first, second = "def gelu(x):\n    return x", "def gelu(x):\n    return 2 * x"
    stub = "def gelu(x):\n    raise NotImplementedError('3.2')"
    both = handed_in(tmp_path, notebook(cell(first, "gelu"), cell(second))).answers["gelu"]
    assert both.source == second and both.cell == 2
    for cells in ([stub, first], [first, stub]):
        result = handed_in(tmp_path, notebook(*(cell(c, "gelu") for c in cells))).answers["gelu"]
        assert result.source == first


def test_newest_file_wins(tmp_path):
    """Files come oldest first."""
    paths = tmp_path / "1.ipynb", tmp_path / "2.ipynb"
    for path in paths:
        own = cell(f"def gelu(x):\n    return {path.stem}", "gelu")
        path.write_text(json.dumps(notebook(own)))
    result = extract(Submission("ann", paths))
    assert "return 2" in result.answers["gelu"].source
    assert [script.name for script in result.scripts] == ["2.ipynb", "1.ipynb"]


def test_wrappers_of_the_notebook_define_nothing(tmp_path):
    """report.implementation and a check are not what the student wrote."""
    cells = [
        cell(GELU, "gelu"),
        "report = check(gelu)\ngelu = report.implementation",
        "gelu = check(gelu).implementation",
    ]
    (script,) = handed_in(tmp_path, notebook("import torch, math", *cells)).scripts
    assert script.defines["gelu"] == [1] and script.checks["gelu"] == [2, 3]


def test_an_answer_in_another_chapters_file_counts_with_a_remark(tmp_path):
    """Chapter 02 handed in as 01; where the own chapter has an answer too, that one counts."""
    own = "def softmax(x, dim=-1):\n    return x"
    contents = notebook(cell("patchify = abs", "patchify"), own), notebook(cell(GELU, "softmax"))
    contents[1]["cells"][0]["source"] = own + " + 1"
    paths = [tmp_path / f"{name}.ipynb" for name in ("01_patches", "02_attention")]
    for path, content in zip(paths, contents, strict=True):
        path.write_text(json.dumps(content))
    one, two = (extract(Submission("ann", tuple(paths[:n]))).answers["softmax"] for n in (1, 2))
    assert one.source == own and [flag.kind for flag in one.flags] == ["elsewhere"]
    assert two.source == own + " + 1" and not two.flags


def test_cells_of_text_run_only_where_no_code_answers(tmp_path):
    """One wrong key in Jupyter turns a cell into markdown; an attempt put aside must not win."""
    text = cell(GELU, "gelu", cell_type="markdown")
    assert handed_in(tmp_path, notebook(text)).answers["gelu"].source == GELU
    aside = cell("def gelu(x):\n    return x", "gelu", cell_type="markdown")
    (script,) = handed_in(tmp_path, notebook(cell(GELU, "gelu"), aside)).scripts
    assert [own.source for own in script.cells] == [GELU]


def test_another_order_and_stored_verdicts_are_seen(tmp_path):
    """Counts of execution, and what the notebook itself says of an answer."""
    said = [{"output_type": "stream", "name": "stdout", "text": ["✓ 3.2 gelu: passed\n"]}]
    own = (
        cell(GELU, "gelu", execution_count=2),
        cell("check(gelu)", execution_count=3, outputs=said),
    )
    (script,) = handed_in(tmp_path, notebook(*own, cell("x = 1", execution_count=1))).scripts
    assert script.order == [2, 0, 1] and script.passes == {"gelu": 2}
    (script,) = handed_in(tmp_path, notebook(*own)).scripts
    assert script.order is None


# --- cells ---------------------------------------------------------------------------------------


def test_syntax_of_ipython_becomes_python(tmp_path):
    """Magics, shell lines, help; a string that looks like one stays."""
    source = "!ls\nn = !ls\n%pip install x\nabs?\nif True:\n    %matplotlib inline\n"
    source += 'mlp_share = """\n!a\n"""'
    (script,) = handed_in(tmp_path, notebook(cell(source, "mlp_share"))).scripts
    assert ast.parse(script.cells[0].source) and '"""\n!a\n"""' in script.cells[0].source


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
        answer = handed_in(tmp_path, content).answers["gelu"]
        names = {}
        exec(answer.source, names)
        assert names["gelu"](3) == 6


def test_malformed_parts_are_left_out_and_the_rest_is_read(tmp_path):
    """Cells that are no objects, marks that are no words, sources that are no text."""
    strange = [7, None, {}, {"cell_type": "code", "source": {"a": 1}}, {"source": [1]}]
    marks = (3, {"vitedu": 4}, {"vitedu": {"exercise": []}})
    marks = [cell("x = 1") | {"metadata": mark} for mark in marks]
    content = notebook(*marks, cell("y = 1", "no_such_exercise"), cell(GELU, "gelu"))
    content |= {"cells": strange + content["cells"], "nbformat": "x", "metadata": []}
    result = handed_in(tmp_path, content)
    assert "gelu" in result.answers
    assert sorted({flag.kind for flag in result.flags}) == ["oddity"]


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
    assert result.answers["layer_norm"].cell == 0
    assert extract(Submission("ann", paths[2:])).problems["gelu"][0] == "unreadable"


def test_student_without_a_notebook_is_told_why():
    """What was handed in instead is the reason for every exercise."""
    flag = Flag("archive", "bob.zip is an archive; unpack it and grade again")
    empty = extract(Submission("bob", (), {}, (flag,)))
    assert set(empty.problems.values()) == {("unreadable", flag.message)} and empty.flags == [flag]
    assert extract(Submission("cy", ())).problems["gelu"] == ("unreadable", "no file at all")


# --- large files ---------------------------------------------------------------------------------


def test_too_large_a_file_is_refused_with_its_size(tmp_path, monkeypatch):
    """Before it is read."""
    monkeypatch.setattr(notebook_file, "MAX_FILE", 3 * 2**20)
    (tmp_path / "a.ipynb").write_bytes(b" " * (4 * 2**20))
    with pytest.raises(Unreadable, match="^4 MB, more than the 3 MB"):
        read_notebook(tmp_path / "a.ipynb")


def test_every_stub_is_known_as_one_and_no_reference_is():
    """The stubs of the notebooks, and their solutions."""
    for path in find_notebooks(NOTEBOOKS):
        own = read(path)
        for index, id in exercise_cells(own):
            assert is_stub(ast.parse(own.cells[index].source).body[-1]), id
            assert not is_stub(ast.parse(solution_source(find(id))).body[-1]), id
