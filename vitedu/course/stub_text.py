"""Write what a notebook takes from its references: signatures, docstrings and check cells.

Role: ``fix_notebook``, behind ``vitedu lint --fix``. An author marks a cell with its exercise and
writes the TODO lines; everything else comes from the reference. A stub does not have the optional
keyword-only arguments of its reference. Rules for notebooks are in ``vitedu.course.lint``.
"""

import ast
import copy
import re
import textwrap
from pathlib import Path

import nbformat
from nbformat.v4 import new_code_cell

from vitedu.course.notebooks import clear_outputs, exercise_cells, read
from vitedu.course.parsing import parse
from vitedu.course.references import first_line, reference_source
from vitedu.exercises import BY_ID, Exercise

WIDTH = 100
KERNEL: dict[str, dict] = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}


def fix_notebook(path: Path) -> list[str]:
    """Rewrite what differs from the references, and clear what a run left.

    Stubs get the signatures of their references, and the docstrings that they lack: one that the
    author edited stays, and ``vitedu lint`` says that it differs.

    Args:
        path: the student variant; it is rewritten if something changes.

    Returns:
        What was done, in words; empty if nothing was.
    """
    notebook = read(path)
    before, cells, done = copy.deepcopy(notebook), notebook.cells, []
    for index, exercise_id in reversed([*exercise_cells(notebook)]):
        if (exercise := BY_ID.get(exercise_id)) is None:
            continue
        if not any(c.source.startswith("report = check(") for c in cells[index + 1 : index + 2]):
            name = f"{exercise.id.replace('_', '-')}-check"
            cells.insert(index + 1, new_code_cell(id=name))
        stub, check = cells[index : index + 2]
        lines = [*check_lines(exercise), *check.source.splitlines()[2:]]
        texts = stub_text(exercise, stub.source), "\n".join(lines)
        if (stub.source, check.source) != texts:
            stub.source, check.source = texts
            done.append(f"wrote {exercise.id}")
    if count := clear_outputs(cells):
        done.append(f"cleared {count} cells")
    # an editor writes what it is into a notebook
    notebook.metadata |= {name: KERNEL[name] for name in KERNEL.keys() & notebook.metadata.keys()}
    notebook.metadata.pop("widgets", None)
    if notebook != before:
        Path(path).write_text(nbformat.writes(notebook) + "\n", encoding="utf-8")
        done = done or ["cleared its metadata"]
    return done[::-1]


def check_lines(exercise: Exercise) -> tuple[str, str]:
    """Return the first two lines of a check cell."""
    name_argument = f', "{exercise.id}"' if exercise.kind == "value" else ""
    return f"report = check({exercise.id}{name_argument})", f"{exercise.id} = report.implementation"


def stub_text(exercise: Exercise, before: str) -> str:
    """Write a stub: signatures of the reference, docstrings and body of the present stub.

    Args:
        exercise: the exercise of the stub.
        before: the present text of the cell; TODO comments alone are enough.

    Returns:
        The text of the cell, with the reference's docstring where there is none. Open methods stay
        open. In a class without methods, all become open; ``__init__`` only if the exercise says so
        (``whole``).

    Raises:
        ValueError: the reference is no function and no class.
    """
    if exercise.kind == "value":
        has_name = any(line.startswith(f"{exercise.id} = ") for line in before.splitlines())
        return before if has_name else f"{before}\n{exercise.id} = None".lstrip()
    source = reference_source(exercise)
    node = _find_definition(source, exercise.id)
    stub = _find_definition(before, exercise.id)
    if node is None:
        raise ValueError(f"the reference of {exercise.id} is no function and no class.")
    if isinstance(node, ast.FunctionDef):
        return _open_stub(source, node, before, stub, exercise)
    inside = getattr(stub, "body", ())
    methods = {part.name: part for part in inside if isinstance(part, ast.FunctionDef)}
    lines, own = source.splitlines(), before
    parts, start = [], node.lineno - 1
    for method in [part for part in node.body if isinstance(part, ast.FunctionDef)]:
        first, mine = first_line(method) - 1, methods.get(method.name)
        parts += lines[start:first]
        start = method.end_lineno or 0
        is_open = exercise.whole or method.name != "__init__"
        if mine:
            is_open = "raise NotImplementedError" in ast.unparse(mine)
        if is_open:
            parts.append(_open_stub(source, method, before, mine, exercise))
            before = before if methods else ""  # the TODO lines belong to the first open method
        else:
            parts += lines[first:start]
    text = "\n".join(parts)
    if stub and (words := _docstring_lines(own, stub)):
        text = text.replace("\n".join(_docstring_lines(source, node)), "\n".join(words), 1)
    return text


def _find_definition(text: str, name: str) -> ast.FunctionDef | ast.ClassDef | None:
    try:
        body = parse(text).body
    except SyntaxError:  # for example a signature without a body
        return None
    kinds = ast.FunctionDef | ast.ClassDef
    return next((node for node in body if isinstance(node, kinds) and node.name == name), None)


def _open_stub(source: str, node, before: str, stub, exercise: Exercise) -> str:
    """Write one open function: signature and docstring of the reference, body of the stub.

    Decorators are left out: the student writes them.
    """
    indent = " " * (node.col_offset + 4)
    lines = source.splitlines()
    head = lines[node.lineno - 1 : node.body[0].lineno - 1]
    if node.args.kwonlyargs:
        head = _signature_lines(node)
    head += (_docstring_lines(before, stub) if stub else []) or _docstring_lines(source, node)
    raise_line = f'{indent}raise NotImplementedError("{exercise.number} {exercise.id}")'
    if stub is None:
        comments = [line.strip() for line in before.splitlines() if line.strip().startswith("#")]
        return "\n".join([*head, *(indent + line for line in comments), raise_line])
    own_lines, start = before.splitlines(), stub.body[0].end_lineno
    if ast.get_docstring(stub) is None:
        start = stub.body[0].lineno - 1
        while own_lines[start - 1].lstrip().startswith("#"):  # belongs to the body
            start -= 1
    work = textwrap.dedent("\n".join(own_lines[start : stub.end_lineno]))
    work = textwrap.indent(work, indent) if work.strip() else raise_line
    return "\n".join([*head, work])


def _docstring_lines(text: str, node: ast.FunctionDef | ast.ClassDef) -> list[str]:
    has_words = ast.get_docstring(node) is not None
    return text.splitlines()[node.body[0].lineno - 1 : node.body[0].end_lineno] if has_words else []


def _signature_lines(node: ast.FunctionDef) -> list[str]:
    """Write a signature without its optional keyword-only arguments."""
    indent, arguments = " " * node.col_offset, copy.copy(node.args)
    pairs = zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True)
    arguments.kwonlyargs = [one for one, default in pairs if default is None]
    arguments.kw_defaults = [None] * len(arguments.kwonlyargs)
    # ``ast`` writes no spaces around the default of an annotated argument (``x: int = 1``)
    text = re.sub(r"(: [^:=]+)=", r"\1 = ", ast.unparse(arguments))
    returns = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    line = f"{indent}def {node.name}({text}){returns}:"
    if len(line) <= WIDTH:
        return [line]
    return [f"{indent}def {node.name}(", f"{indent}    {text}", f"{indent}){returns}:"]
