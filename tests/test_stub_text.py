"""What lint writes from the references: stubs and check cells; a sound notebook stays as it is."""

import ast
import json
import shutil
from pathlib import Path

import nbformat
import pytest

from vitedu.course import references
from vitedu.course.lint import fix_notebook, lint
from vitedu.course.notebooks import NBVAL_TAG, exercise_cells, read, shelf_path
from vitedu.course.references import stub_text
from vitedu.exercises import STEMS, find

NOTEBOOKS = Path(__file__).parents[1] / "notebooks"


@pytest.mark.parametrize("name", STEMS)
def test_a_sound_notebook_stays_as_it_is(name, tmp_path):
    """Not one byte changes where stubs and references agree."""
    path = Path(shutil.copy(NOTEBOOKS / shelf_path(f"{name}.ipynb"), tmp_path))
    before = path.read_bytes()
    assert not fix_notebook(path)
    assert path.read_bytes() == before


def test_todo_lines_alone_become_a_stub_and_its_check(tmp_path):
    """A stub that is there stays; lint says where it differs from its reference."""
    path = tmp_path / "01_patches.ipynb"
    notebook = read(NOTEBOOKS / path.name)
    (first, _), (second, _), *_ = exercise_cells(notebook)
    stub = notebook.cells[first].source
    notebook.cells[first].source = "# TODO 1.1: cut, then flatten"
    notebook.cells[second].source = notebook.cells[second].source.replace('"""', '"""Old. ', 1)
    del notebook.cells[first + 1]
    nbformat.write(notebook, path)
    assert fix_notebook(path) and not fix_notebook(path)
    new = read(path)
    assert ast.dump(ast.parse(new.cells[first].source)) == ast.dump(ast.parse(stub))
    assert new.cells[first + 1].source.startswith("report = check(patchify)\n")
    (problem,) = [problem for problem in lint(path) if "links to" not in problem]
    assert 'the stub of PatchEmbed has \'"""Old. ' in problem


def test_what_a_run_left_is_cleared(tmp_path):
    """Outputs, counts and widgets: byte for byte the author's notebook again."""
    path = Path(shutil.copy(NOTEBOOKS / "05_inside.ipynb", tmp_path))
    before, notebook = path.read_bytes(), json.loads(path.read_text(encoding="utf-8"))
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    ran = [cell for cell in code if NBVAL_TAG not in cell["metadata"].get("tags", ())]
    for number, cell in enumerate(ran, start=1):
        cell["execution_count"] = number
        cell["outputs"] = [{"name": "stdout", "output_type": "stream", "text": ["1"]}]
    notebook["metadata"]["widgets"] = {}
    path.write_text(json.dumps(notebook), encoding="utf-8")
    words = f"{len(ran)} cells hold an output or a count"
    assert any(words in problem for problem in lint(path)) and len(ran) > 25
    assert fix_notebook(path)
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


def test_init_of_a_class_is_given_unless_it_is_the_students():
    """Else forward holds the TODO lines, and every other method is open, too."""
    text = stub_text(find("LoRALinear"), "# TODO 9.2: two products and a sum")
    assert "self.linear = linear.requires_grad_(False)" in text
    assert (
        "# TODO 9.2: two products and a sum\n"
        '        raise NotImplementedError("9.2 LoRALinear")' in text
    )


def test_arguments_by_keyword_alone_are_no_part_of_the_stub():
    """They serve the package; the exercise is the positional signature."""
    text = stub_text(find("interpolate_positions"), "# TODO 9.1: x")
    assert "antialias: bool" in references.reference_source(find("interpolate_positions"))
    assert "    num_prefix_tokens: int = 1,\n) -> torch.Tensor:" in text
