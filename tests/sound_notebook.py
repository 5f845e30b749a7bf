"""A small notebook without a fault, built from the references, for the tests of lint and solve."""

from pathlib import Path

import nbformat
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from vitedu.course.notebooks import NBVAL_TAG, read, shelf_path
from vitedu.course.references import stub_text
from vitedu.exercises import in_file

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
        text = stub_text(exercise, f"# TODO {exercise.number}: write it")
        stub = new_code_cell(text, id=f"{exercise.id[:50]}-stub")
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
