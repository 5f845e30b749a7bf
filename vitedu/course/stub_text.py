"""Write what a notebook takes from its references: stubs and check cells.

Role: ``fix_notebook``, behind ``vitedu lint --fix``. An author marks a cell with its exercise and
writes the TODO lines; everything else comes from the reference. A stub does not have the
keyword-only arguments of its reference. Rules for notebooks are in ``vitedu.course.lint``.
"""

import ast
import re
from pathlib import Path

import nbformat
from nbformat.v4 import new_code_cell

from vitedu.course.notebooks import clear_outputs, exercise_cells, read
from vitedu.course.parsing import parse
from vitedu.course.references import reference_source
from vitedu.exercises import BY_ID, Exercise


def fix_notebook(path: Path) -> list[str]:
    """Write the stubs of cells that hold TODO lines alone, and check cells; clear what a run left.

    A stub that is there stays: ``vitedu lint`` says where it differs from its reference.

    Args:
        path: the student variant; it is rewritten if something changes.

    Returns:
        What was done, in words; empty if nothing was.
    """
    notebook = read(path)
    cells, done = notebook.cells, []
    for index, exercise_id in reversed([*exercise_cells(notebook)]):
        if (exercise := BY_ID.get(exercise_id)) is None:
            continue
        lines = [line for line in cells[index].source.splitlines() if line.strip()]
        is_written = not all(line.startswith("#") for line in lines)
        if not is_written:
            cells[index].source = stub_text(exercise, "\n".join(lines))
        if not any(c.source.startswith("report = check(") for c in cells[index + 1 : index + 2]):
            name = f"{exercise.id.replace('_', '-')}-check"
            cells.insert(index + 1, new_code_cell("\n".join(check_lines(exercise)), id=name))
            is_written = False
        if not is_written:
            done.append(f"wrote {exercise.id}")
    if count := clear_outputs(cells):
        done.append(f"cleared {count} cells")
    if notebook.metadata.pop("widgets", None) is not None:
        done.append("cleared widgets")
    if done:
        Path(path).write_text(nbformat.writes(notebook) + "\n", encoding="utf-8")
    return done[::-1]


def check_lines(exercise: Exercise) -> tuple[str, str]:
    """Return the first two lines of a check cell."""
    name_argument = f', "{exercise.id}"' if exercise.kind == "value" else ""
    return f"report = check({exercise.id}{name_argument})", f"{exercise.id} = report.implementation"


def stub_text(exercise: Exercise, todo: str) -> str:
    """Write a stub: the reference, with TODO lines in place of what the student writes.

    That is the body of a function; of a class the bodies of its methods, of ``__init__`` only if
    the exercise says so (``whole``). The TODO lines stand in the first of them. Decorators are left
    out: the student writes them.
    """
    if exercise.kind == "value":
        return f"{todo}\n{exercise.id} = None"
    source = reference_source(exercise)
    lines, node = source.splitlines(), parse(source).body[0]
    start, text = node.lineno - 1, []
    for part in node.body if isinstance(node, ast.ClassDef) else [node]:
        if isinstance(part, ast.FunctionDef) and (exercise.whole or part.name != "__init__"):
            text += lines[start : part.lineno - 1]
            start = part.end_lineno or 0
            first, indent = part.body[0], " " * part.col_offset
            end = first.end_lineno if ast.get_docstring(part) else first.lineno - 1
            head = "\n".join(lines[part.lineno - 1 : end])
            if part.args.kwonlyargs:  # they stand last, a line each
                head = re.sub(r"\s+\*,[^)]*\)", f"\n{indent})", head, count=1)
            text += [head, *(f"{indent}    {line}" for line in todo.splitlines())]
            text.append(f'{indent}    raise NotImplementedError("{exercise.number} {exercise.id}")')
            todo = ""
    return "\n".join(text)
