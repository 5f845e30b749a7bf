"""A small notebook without a fault, built from the references, for the tests of lint and solve."""

import ast
from pathlib import Path

import nbformat
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from vitedu.course.notebooks import NBVAL_TAG, read, shelf_path
from vitedu.course.references import reference_source
from vitedu.exercises import Exercise, in_file

IMPORTS = """import torch
from torch import nn

from vitedu import check"""


def build(name: str = "01_patches", imports: str = IMPORTS) -> nbformat.NotebookNode:
    """Build a file of the course, named by its stem, with nothing in it but its exercises."""
    course = read(NOTEBOOKS / shelf_path(f"{name}.ipynb"))
    cells = [
        new_markdown_cell(f"# {name}", id="title"),
        *course.cells[1:3],  # for Colab
        new_code_cell(imports, id="imports"),
    ]
    for exercise in in_file(name):
        stub = new_code_cell(stub_source(exercise), id=f"{exercise.id[:50]}-stub")
        stub.metadata["vitedu"] = {"exercise": exercise.id}
        named = f', "{exercise.id}"' if exercise.kind == "value" else ""
        source = f"report = check({exercise.id}{named})\n{exercise.id} = report.implementation"
        cells += [stub, new_code_cell(source, id=f"{exercise.id[:50]}-check")]
    output = nbformat.v4.new_output("stream", text="2\n")
    compared = new_code_cell("print(1 + 1)", id="compared", outputs=[output])
    compared.metadata["tags"] = [NBVAL_TAG]
    compared.execution_count = 1
    cells.append(compared)
    return new_notebook(cells=cells, metadata={"kernelspec": KERNEL})


NOTEBOOKS = Path(__file__).parents[1] / "notebooks"
KERNEL = {"name": "python3", "display_name": "Python 3", "language": "python"}


def stub_source(exercise: Exercise) -> str:
    """Cut the body out of a function; of a class, out of every method but ``__init__``."""
    todo = f"# TODO {exercise.number}: write it"
    if exercise.kind == "value":
        return f"{exercise.id} = None  {todo}"
    node = ast.parse(reference_source(exercise)).body[0]
    stop = ast.parse(f'raise NotImplementedError("{exercise.number} {exercise.id}")').body
    methods = [node]
    if isinstance(node, ast.ClassDef):
        methods = [n for n in node.body if isinstance(n, ast.FunctionDef) and n.name != "__init__"]
    for method in methods:
        method.decorator_list = []
        method.body = [method.body[0], *stop]
    return f"{ast.unparse(node)}\n{todo}"
