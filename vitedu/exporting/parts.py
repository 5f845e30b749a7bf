"""Put the texts of the parts into one file; a text is read here and never run.

Role: ``assemble``. Not here: where the texts come from (``source``), whether the file works
(``trial``).
"""

import ast
import inspect
import re
import sys
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from vitedu.course.parsing import global_names, parse
from vitedu.course.references import defined_names, reference_source
from vitedu.exercises import BY_ID, EXERCISES, Exercise
from vitedu.exporting.source import statement_text

PARTS = tuple(exercise for exercise in EXERCISES if exercise.part)
# what is read as the file's own in every text but that of the part itself
OWN = {
    "torch.nn.LayerNorm": ("LayerNorm", "layer_norm"),
    "torch.nn.GELU": ("GELU", "gelu"),
    "torch.nn.functional.gelu": ("gelu", "gelu"),
}


class ExportError(ValueError):
    """Why the parts do not make one file, and what to rename."""


@dataclass
class Part:
    """One part as it will stand in the file."""

    exercise: Exercise
    is_yours: bool
    texts: dict[str, str]  # the name that a statement defines -> its text; helpers first
    imports: dict[str, str] = field(default_factory=dict)  # alias -> its statement
    notes: list[str] = field(default_factory=list)  # for the mark

    @property
    def text(self) -> str:
        """Its code."""
        return _join(self.texts.values())

    @property
    def mark(self) -> str:
        """The comment above it."""
        notes = "; ".join(self.notes)
        mark = f"{self.exercise.number}, {'yours' if self.is_yours else _THEIRS}"
        mark += f"{';' if self.is_yours else ':'} {notes}" if notes else ""
        return textwrap.fill(mark, 100, initial_indent="# ", subsequent_indent="#   ")


_THEIRS = "the reference's"


@cache
def template() -> str:
    """Read the file that has a place for each part."""
    return Path(__file__).with_name("my_vit.txt").read_text(encoding="utf-8")


def make_parts(answers: Mapping[str, str], reasons: Mapping[str, str]) -> dict[str, Part]:
    """Make each part from the student's text or the reference's.

    Args:
        answers: id -> text, as ``source.collect`` returns it.
        reasons: id -> why the reference stands in its place; "still open" for those in neither.

    Raises:
        ExportError: two texts use one name for two things.
    """
    parts = {}
    for exercise in PARTS:
        if exercise.id in answers and exercise.id not in reasons:
            part = _yours(exercise, answers[exercise.id])
            if foreign := _foreign_part(part, answers):
                words = f"{BY_ID[foreign].number} {foreign}"
                reason = f"it uses a {foreign} that is not the one of {words}: rename it, or check "
                reasons = {**reasons, exercise.id: f"{reason}{foreign} and then this again"}
        if exercise.id not in answers or exercise.id in reasons:
            part = Part(exercise, False, {exercise.id: _reference_text(exercise)})
            why = reasons.get(exercise.id)
            part.notes.append(f"yours passed, but {why}" if why else "still open")
        parts[exercise.id] = part
    _refuse_clashes(parts)
    return parts


def assemble(parts: Mapping[str, Part]) -> str:
    """Write the file."""
    placed: set[str] = set()
    pieces = re.split(r"^#: (\w+)\n", template(), flags=re.M)
    at_head = _imports_of(parse(pieces[0]).body)
    imports: dict[str, str] = {}
    for part in parts.values():
        imports |= {k: v for k, v in part.imports.items() if k not in at_head}
    packages = {_path(statement).split(".")[0] for statement in imports.values()}
    others = sorted(packages - {*sys.stdlib_module_names, "torch"})
    head = pieces[0].replace("{needs}", f"It needs {', '.join(['torch', *others])}.")
    out = [head.rstrip(), "\n"]
    out += [f"{statement}\n" for statement in sorted(imports.values())]
    for name, after in zip(pieces[1::2], pieces[2::2], strict=True):
        if name == "imports":
            out.append(after)
            continue
        part = parts[name]
        texts = [text for own, text in part.texts.items() if own not in placed]
        placed |= part.texts.keys()
        body, rest = _split_body(after)
        out.append(f"{part.mark}\n{_join(texts)}\n\n\n{rest}")
    return "".join(out)


def _join(texts: Iterable[str]) -> str:
    """Join statements; assignments in one line stand together."""
    joined, before = "", ""
    for text in texts:
        gap = "\n" if "\n" not in before + text else "\n\n\n"
        joined, before = joined + gap * bool(joined) + text, text
    return joined


def _split_body(after: str) -> tuple[str, str]:
    """Split what follows a place into the body that the template gives it, and the rest."""
    if after.startswith("\n"):
        return "", after.lstrip("\n")
    body, _, rest = after.partition("\n\n\n")
    return body, rest


def _reference_text(exercise: Exercise) -> str:
    """Return the template's text of a part, or else the package's."""
    own = re.search(rf"^#: {exercise.id}\n((?!\n).*?)\n\n\n", template(), flags=re.M | re.S)
    text = own[1] if own else reference_source(exercise)
    at_head = _imports_of(parse(template().partition("#: ")[0]).body)
    return _read_as_own(_shorten(text, exercise), at_head, exercise)[0]


def _yours(exercise: Exercise, text: str) -> Part:
    body = parse(text).body
    imports, texts, notes = _imports_of(body), {}, set()
    for node in body:
        for name in defined_names(node)[-1:]:
            own = _shorten(statement_text(text, node), exercise)
            texts[name], read = _read_as_own(own, imports, exercise)
            notes |= read
    used = {name for each in texts.values() for name in global_names(each)[0]}
    kept = {alias: path for alias, path in imports.items() if alias in used}
    words = [f"{name} is read as the file's {OWN[path][0]}" for path, name in sorted(notes)]
    return Part(exercise, True, texts, kept, words)


def _imports_of(body: list[ast.stmt]) -> dict[str, str]:
    """Return alias -> import statement of this one name, for the imports among statements."""
    found: dict[str, str] = {}
    for node in body:
        names = node.names if isinstance(node, ast.Import | ast.ImportFrom) else []
        for name in names:
            alias = ast.alias(name.name, None if name.asname == name.name else name.asname)
            module = getattr(node, "module", None)
            one = ast.ImportFrom(module, [alias], 0) if module else ast.Import([alias])
            found[name.asname or name.name] = ast.unparse(one)
    return found


def _path(statement: str) -> str:
    """Return what an import brings: "torch.nn.functional"."""
    return re.sub(r"^(from (\S+) )?import (\S+).*", r"\2.\3", statement).lstrip(".")


def _read_as_own(text: str, imports: Mapping, exercise: Exercise) -> tuple[str, set]:
    """Put the file's LayerNorm, GELU and gelu in place of torch's: (text, {(path, as written)}).

    Training parts keep theirs: they meet other models too, and the file's layers are torch's.
    """
    tree, edits = parse(text), []
    notes: set[tuple[str, str]] = set()
    if exercise.part != "model":
        return text, notes
    other = {
        id(node.func)
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and any(k.arg == "approximate" for k in node.keywords)
    }
    lines = text.encode().split(b"\n")
    for node in (node for node in ast.walk(tree) if isinstance(node, ast.expr)):
        path = _dotted(node, imports)
        if path not in OWN or OWN[path][1] == exercise.id or id(node) in other:
            continue
        place = node.lineno, node.col_offset, node.end_col_offset
        edits.append((*place, OWN[path][0].encode()))
        notes.add((path, ast.unparse(node)))
    for line, start, end, name in sorted(edits, reverse=True):
        lines[line - 1] = lines[line - 1][:start] + name + lines[line - 1][end:]
    return b"\n".join(lines).decode(), notes


def _dotted(node: ast.AST, imports: Mapping[str, str]) -> str:
    """Return what a name or attribute means by the imports, such as "torch.nn.GELU", or ""."""
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
        return _path(imports.get(node.id, ""))
    if isinstance(node, ast.Attribute) and node.lineno == node.end_lineno:
        before = _dotted(node.value, imports)
        return f"{before}.{node.attr}" if before else ""
    return ""


def _shorten(text: str, exercise: Exercise) -> str:
    """Leave one line of the docstrings that the course wrote; a student's own stay whole."""
    ours = {words for _, words in _docstrings(parse(reference_source(exercise)))}
    lines = text.split("\n")
    for node, words in reversed(list(_docstrings(parse(text)))):
        if words in ours and node.end_lineno != node.lineno:
            first = lines[node.lineno - 1].rstrip()
            lines[node.lineno - 1 : node.end_lineno] = [f'{first}"""']
    return "\n".join(lines)


def _docstrings(tree: ast.Module) -> Iterator[tuple[ast.expr, str]]:
    """Yield (docstring, its first line), in the order of the text."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and ast.get_docstring(node):
            value = node.body[0].value  # type: ignore[attr-defined]
            found.append((value, inspect.cleandoc(value.value).split("\n")[0]))
    yield from sorted(found, key=lambda pair: pair[0].lineno)


def _foreign_part(part: Part, answers: Mapping[str, str]) -> str | None:
    """Name a part that this text brings along and that is not the file's own.

    A text that equals the file's own part, as after a restart of the kernel, is left out.
    """
    for name in [*part.texts, *part.imports]:
        if name == part.exercise.id or name not in BY_ID or not BY_ID[name].part:
            continue
        accepted = _yours(BY_ID[name], answers[name]).texts.get(name) if name in answers else None
        mine = part.texts.get(name)
        if accepted is None or mine is None:
            return name
        if ast.dump(parse(_shorten(mine, BY_ID[name]))) != ast.dump(parse(accepted)):
            return name
        del part.texts[name]
        return _foreign_part(part, answers)
    return None


def _refuse_clashes(parts: Mapping[str, Part]) -> None:
    """Raise an error if one name means two things; the message says which to rename."""
    body = parse(re.sub(r"^#: .*\n", "", template(), flags=re.M)).body
    means = {name: ("", name) for node in body for name in defined_names(node)}
    means |= {alias: ("", _path(line)) for alias, line in _imports_of(body).items()}
    for part in (part for part in parts.values() if part.is_yours):
        here = {alias: _path(line) for alias, line in part.imports.items()}
        here |= {name: ast.dump(parse(text)) for name, text in part.texts.items()}
        for name, meaning in here.items():
            if name == part.exercise.id:
                continue
            owner, before = means.setdefault(name, (part.exercise.id, meaning))
            if before != meaning:
                other = f"the one of your {owner}" if owner else "what my_vit.py itself calls so"
                raise ExportError(
                    f"{name} in your {part.exercise.id} is not {other}: give {name} another name "
                    f"there and check {part.exercise.id} again."
                )
