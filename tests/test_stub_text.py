"""What lint writes from the references: stubs and check cells; a sound notebook stays as it is."""

import ast
import json
import shutil
from pathlib import Path

import pytest

from vitedu.course import references
from vitedu.course.lint import lint
from vitedu.course.notebooks import exercise_cells, is_compared, read, shelf_path
from vitedu.course.stub_text import fix_notebook, stub_text
from vitedu.exercises import STEMS, find, in_file

NOTEBOOKS = Path(__file__).parents[1] / "notebooks"


@pytest.mark.parametrize("name", STEMS)
def test_a_sound_notebook_stays_as_it_is(name, tmp_path):
    """Not one byte changes where stubs and references agree."""
    path = Path(shutil.copy(NOTEBOOKS / shelf_path(f"{name}.ipynb"), tmp_path))
    before = path.read_bytes()
    assert fix_notebook(path) == []
    assert path.read_bytes() == before


@pytest.mark.slow
@pytest.mark.parametrize("name", STEMS)
def test_checks_that_are_gone_are_written_again_and_edited_docstrings_stay(name, tmp_path):
    """One run brings every check cell back; of an author's own words lint says that they differ."""
    path = tmp_path / f"{name}.ipynb"
    notebook = json.loads((NOTEBOOKS / shelf_path(path.name)).read_text(encoding="utf-8"))
    cells = []
    for cell in notebook["cells"]:
        text = "".join(cell["source"])
        if text.startswith("report = check("):
            continue
        if "exercise" in cell["metadata"].get("vitedu", {}):
            cell["source"] = [text.replace('"""', '"""Old words. ', 1)]
        cells.append(cell)
    notebook["cells"] = cells
    path.write_text(json.dumps(notebook), encoding="utf-8")
    own = in_file(name)
    assert fix_notebook(path) == [f"wrote {e.id}" for e in own]
    problems = [problem for problem in lint(path) if "links to" not in problem]
    about_stubs = [problem for problem in problems if "stub" in problem or "check" in problem]
    documented = [e for e in own if e.kind != "value"]
    assert path.read_text(encoding="utf-8").count("Old words") == len(documented)
    assert len(about_stubs) == len(documented)
    assert all('has \'"""Old words. ' in p for p in about_stubs)
    assert fix_notebook(path) == []


@pytest.mark.parametrize("old", [" = -1", ": torch.Tensor", " -> torch.Tensor"])
def test_a_signature_that_drifted_is_written_again(old):
    """That of the reference, above the author's own docstring."""
    stub = stub_text(find("softmax"), "# TODO 2.1: write it")
    drifted = stub.replace(old, "", 1).replace("Turn scores", "Make scores")
    assert drifted != (mended := stub.replace("Turn scores", "Make scores"))
    assert stub_text(find("softmax"), drifted) == mended


def test_what_a_run_left_is_cleared(tmp_path):
    """Saved in JupyterLab after a run, a notebook is byte for byte the author's again."""
    path = Path(shutil.copy(NOTEBOOKS / "05_inside.ipynb", tmp_path))
    before, notebook = path.read_bytes(), json.loads(path.read_text(encoding="utf-8"))
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    ran = [cell for cell in code if not is_compared(cell)]
    for number, cell in enumerate(ran, start=1):
        cell["execution_count"] = number
        cell["outputs"] = [{"name": "stdout", "output_type": "stream", "text": ["1"]}]
        cell["metadata"] |= {"execution": {}, "scrolled": True}
    notebook["metadata"]["language_info"] = {"name": "python", "version": "3.11.7"}
    notebook["metadata"]["kernelspec"]["display_name"] = "Python 3 (ipykernel)"
    notebook["metadata"]["widgets"] = {}
    path.write_text(json.dumps(notebook), encoding="utf-8")
    assert len(lint(path)) >= len(ran) > 25
    assert fix_notebook(path) == [f"cleared {len(ran)} cells"]
    assert path.read_bytes() == before


@pytest.mark.parametrize("name", STEMS)
def test_stub_of_a_package_without_notebooks_is_that_of_the_notebook(name):
    """But for the comments: what is open there is open here, and no more is given."""
    notebook = read(NOTEBOOKS / shelf_path(f"{name}.ipynb"))
    for index, exercise in exercise_cells(notebook):
        own, shown = stub_text(find(exercise), "# TODO: a title"), notebook.cells[index].source
        assert own.count("# TODO: a title") == 1
        assert ast.unparse(ast.parse(own)) == ast.unparse(ast.parse(shown)), exercise


def test_todo_lines_alone_are_enough():
    """An author writes the comments; signature, docstring and error come from the reference."""
    text = stub_text(find("softmax"), "# TODO 2.1: shift the scores\n# TODO 2.1: exp, then divide")
    assert text.startswith('def softmax(x: torch.Tensor, dim: int = -1) -> torch.Tensor:\n    """')
    assert text.endswith(
        "    # TODO 2.1: shift the scores\n    # TODO 2.1: exp, then divide\n"
        '    raise NotImplementedError("2.1 softmax")'
    )
    value = stub_text(find("stem_tokens"), "# TODO 1.10: a number")
    assert value == "# TODO 1.10: a number\nstem_tokens = None"


def test_a_class_without_methods_yet_gets_them_all():
    """__init__ is given as the reference has it; forward is open and holds the TODO lines."""
    text = stub_text(find("LoRALinear"), "# TODO 9.2: two products and a sum")
    assert "self.linear = linear.requires_grad_(False)" in text
    assert (
        "# TODO 9.2: two products and a sum\n"
        '        raise NotImplementedError("9.2 LoRALinear")' in text
    )


def test_arguments_by_keyword_alone_are_no_part_of_the_stub(monkeypatch):
    """They serve the package; the exercise is the positional signature."""
    source = references.reference_source(find("gelu"))
    more = source.replace("(x: torch.Tensor)", "(x: torch.Tensor, *, approximate: bool = False)")
    assert more != source
    monkeypatch.setattr("vitedu.course.stub_text.reference_source", lambda exercise: more)
    assert stub_text(find("gelu"), "# TODO 3.2: x").startswith(
        "def gelu(x: torch.Tensor) -> torch.Tensor:"
    )
