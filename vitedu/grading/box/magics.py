"""IPython's own syntax as Python text: magics, commands, help.

Role: ``to_python``, for the box and for a grader without IPython. A line is read as IPython's only
where Python's parser fails at it, so that such a line inside a text stays. Standard library only.
"""

import ast
import re

MAX_MAGICS = 60  # lines of a cell in IPython's own syntax
MAX_LINE = 2_000  # characters of such a line
SHELL = "get_ipython()"
_LINE = re.compile(r"(\s*)(?:([\w.,\s]+=)\s*)?(?:%(\w+)\s*(.*)|(!).*)$")
_HELP = re.compile(r"(\s*)(?:\?.*|.*\?\s*)$")


def to_python(source: str) -> str:
    """Write a cell as Python.

    Raises:
        SyntaxError, ValueError, RecursionError, MemoryError: it is neither Python nor IPython's.

    Example:
        >>> to_python("%time x = 1\\nx?")
        "get_ipython().run_line_magic('time', 'x = 1')\\npass"
        >>> to_python("%%time\\nx = 1")
        "get_ipython().run_cell_magic('time', '', 'x = 1')"
    """
    lines = source.split("\n")
    first = next((i for i, line in enumerate(lines) if line.strip()), 0)
    if lines[first].startswith("%%"):
        name, _, rest = lines[first][2:].strip().partition(" ")
        body = "\n".join(lines[first + 1 :])
        return f"{SHELL}.run_cell_magic({name!r}, {rest.strip()!r}, {body!r})"
    for _ in range(min(MAX_MAGICS, 500_000 // (len(source) + 1)) + 1):
        text = "\n".join(lines)
        try:
            ast.parse(text)
        except SyntaxError as error:
            at = (error.lineno or 0) - 1
            line = lines[at] if 0 <= at < len(lines) else ""
            if len(line) > MAX_LINE or not (written := _write_line(line)):
                raise
            lines[at] = written
        else:
            return text
    raise SyntaxError(f"more than {MAX_MAGICS} lines in IPython's own syntax")


def _write_line(line: str) -> str:
    """Write a line of IPython's as Python, or return "" if it is none."""
    if found := _LINE.match(line):
        indent, target, magic, rest, _ = found.groups()
        call = f"{SHELL}.run_line_magic({magic!r}, {rest!r})" if magic else f"{SHELL}.getoutput()"
        return f"{indent}{target or ''}{' ' if target else ''}{call}"
    found = _HELP.match(line)
    return f"{found[1]}pass" if found else ""
