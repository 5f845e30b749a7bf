"""Put the statements of the parts into one file; a text is read here and never run.

Role: ``make_parts``, ``assemble``, and ``course_part``, which the file calls for a part that is not
the student's. Not here: where the texts come from (``source``), whether the file works (``trial``).
``my_vit.txt`` has a place for each part (``#: patchify``), with the reference's text where that is
not the package's, and things that only some parts need (``#?``).
"""

import __future__

import ast
import linecache
import re
import sys
import textwrap
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from vitedu.course.parsing import global_names, parse
from vitedu.course.references import defined_names, reference_source
from vitedu.exercises import EXERCISES, Exercise

PARTS = {exercise.id: exercise for exercise in EXERCISES if exercise.part}
# torch's layers in a text of the model -> what is read as the file's own, and the part behind it
TORCH = {
    r"\b(torch\.)?nn\.LayerNorm\b": ("LayerNorm", "layer_norm"),
    r"\b(torch\.)?nn\.GELU\b(?!\([^)]*approximate)": ("GELU", "gelu"),
    r"\b(F|(torch\.)?nn\.functional)\.gelu\b(?!\([^)]*approximate)": ("gelu", "gelu"),
}
# what the template defines -> the part that it calls
BEHIND = {"LayerNorm": "layer_norm", "GELU": "gelu", "BlockWithoutBias": "EncoderBlock"}
OPEN = "still open"


class ExportError(ValueError):
    """Why the parts do not make one file, and what to rename."""


@dataclass
class Part:
    """One part as it will stand in the file."""

    exercise: Exercise
    statements: dict[str, str]  # the name that each defines -> its text; imports and helpers first
    is_yours: bool = False
    notes: list[str] = field(default_factory=list)  # for the mark

    def __post_init__(self):
        """Shorten the docstrings that the course wrote, and read torch's layers as the file's."""
        first_lines = re.findall(r'"""(.*[^"\n])\n', reference_source(self.exercise))
        for name, text in self.statements.items():
            for line in first_lines:
                text = re.sub(rf'("""{re.escape(line)})\n.*?"""', r'\1"""', text, flags=re.S)
            for pattern, (own, part) in TORCH.items() if self.exercise.part == "model" else ():
                found = re.search(pattern, text)
                if found and part != self.exercise.id and not _is_import(text):
                    text = re.sub(pattern, own, text)
                    self.notes += [f"{found[0]} is read as the file's {own}"] * self.is_yours
            self.statements[name] = text

    @property
    def line(self) -> str:
        """What stands in the file for a part that is not the student's: no text of a reference."""
        name = self.exercise.id
        if _calls_parts(name):
            return f'{name} = course_part("{name}", globals())'
        return f"from {self.exercise.module} import {name}"

    def written(self, complete: bool, placed: Container[str]) -> str:
        """Write the part with its mark, without the names that stand in the file already."""
        if self.is_yours or complete:
            code = {n: t for n, t in self.statements.items() if not _is_import(t)}
            return f"{self.mark}\n{_join(t for n, t in code.items() if n not in placed)}"
        if self.notes[0] == OPEN:
            return f"{self.line}  # {self.exercise.number} is {OPEN}"
        return f"{self.mark}\n{self.line}"

    @property
    def mark(self) -> str:
        """The comment above it."""
        owner, stop = ("yours", ";") if self.is_yours else ("the reference's", ":")
        notes = f"{stop} {'; '.join(dict.fromkeys(self.notes))}" if self.notes else ""
        mark = f"{self.exercise.number}, {owner}{notes}"
        return textwrap.fill(mark, 100, initial_indent="# ", subsequent_indent="#   ")


def make_parts(
    answers: Mapping[str, dict[str, str]], reasons: Mapping[str, str]
) -> dict[str, Part]:
    """Make each part from the student's statements or the reference's.

    Args:
        answers: id -> statements, as ``source.collect`` returns them.
        reasons: id -> why the reference stands in its place; "still open" for those in neither.

    Raises:
        ExportError: two texts use one name for two things.
    """
    parts = {}
    for name, exercise in PARTS.items():
        if name in answers and name not in reasons:
            parts[name] = Part(exercise, dict(answers[name]), True)
        else:
            why = f"yours passed, but {reasons[name]}" if name in reasons else OPEN
            parts[name] = Part(exercise, {name: reference_part(name)}, notes=[why])
    known = {each: ("", text) for each, text in names_of_template().items()}
    for name, part in parts.items():
        own = part.statements if part.is_yours else {}
        for each, text in [*own.items()]:
            owner, before = known.setdefault(each, (name, text))
            if each == name or (each not in parts and _is_same(before, text)):
                continue
            if each not in parts:
                whose = f"the one of your {owner}" if owner else "what my_vit.py itself calls so"
                raise ExportError(
                    f"{each} in your {name} is not {whose}: give {each} another name there and "
                    f"check {name} again."
                )
            if not _is_same(text, parts[each].statements[each]):
                why = f"it uses a {each} that is not the one of {PARTS[each].number} {each}: "
                why += f"rename it, or check {each} and then this again"
                return make_parts(answers, {**reasons, name: why})
            del own[each]  # the file's own, as after a restart of the kernel
    return parts


def course_part(name: str, namespace: dict) -> Any:
    """Build a part as the course has it, out of the parts that a file defines.

    An ``EncoderBlock`` of the package would call the package's attention; this one calls the
    attention of the file.

    Args:
        name: id of the exercise.
        namespace: ``globals()`` of the file; the part's text runs in it.

    Example:
        >>> def softmax(x, dim=-1):
        ...     return 0 * x
        >>> namespace = {"softmax": softmax, "math": __import__("math")}
        >>> import torch
        >>> vectors = torch.ones(1, 4, 8)  # queries, keys and values
        >>> attend = course_part("scaled_dot_product_attention", namespace)
        >>> attend(vectors, vectors, vectors)[0].abs().max().item()
        0.0
    """
    text, file = _course_text(name), f"<{name}, as the course has it>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    flags = __future__.annotations.compiler_flag
    exec(compile(text, file, "exec", flags, dont_inherit=True), namespace)
    return namespace[name]


def assemble(parts: Mapping[str, Part], after_each: str = "", *, complete: bool = False) -> str:
    """Write the file.

    Args:
        parts: of the file, by id.
        after_each: for a trial, a statement after each part, where ``{0}`` is its name.
        complete: with the text of the references in place of lines that take them from the package.
    """
    head, *places = re.split(r"^#: (\w+)\n", _template(), flags=re.M)
    texts = {name: text for part in parts.values() for name, text in part.statements.items()}
    imports = {t for n, t in texts.items() if _is_import(t) and n not in names_of_template()}
    taken = {n for n, part in parts.items() if not (part.is_yours or complete)}
    if any(_calls_parts(name) for name in taken):
        imports.add("from vitedu.exporting.parts import course_part")
    out, libraries = [], {"torch"}
    placed: set[str] = set()
    for name, after in zip(places[::2], places[1::2], strict=True):
        body, _, rest = after.partition("\n\n\n") if after[0] != "\n" else ("", "", after)
        if name == "imports":
            body, libraries = _sort_imports([*body.split("\n"), *imports])
        else:
            body = parts[name].written(complete, placed) + after_each.format(name)
            placed |= parts[name].statements.keys()
        out.append(f"{body}\n\n\n{rest.lstrip()}")
    text = "".join(out)
    for block, name, code in re.findall(r"(#\? (\w+)\n(.*?\n\n\n))", text, flags=re.S):
        is_used = any(
            name in _names_in(each)
            for part in parts.values()
            if part.exercise.id not in taken or _calls_parts(part.exercise.id)
            for each in part.statements.values()
        )
        text = text.replace(block, code if is_used else "")
    count = sum(part.is_yours for part in parts.values())
    is_all = count == len(parts)
    share = f"all {count} of its parts" if is_all else f"{count} of its {len(parts)} parts"
    libraries -= {"vitedu"}
    until = "\nUntil every part is yours it also needs vitedu, which has the open ones." * bool(
        taken
    )
    return head.format(share=share, libraries=", ".join(sorted(libraries)), until=until) + text


def _sort_imports(lines: list[str]) -> tuple[str, set[str]]:
    """Sort imports, those of the standard library first; give the other libraries too."""

    def place(line: str) -> tuple:
        library = line.split()[1].split(".")[0]
        return library not in sys.stdlib_module_names, line.startswith("from"), line

    ordered = sorted({line for line in lines if line}, key=place)
    standard, others = (
        [line for line in ordered if place(line)[0] is is_ours] for is_ours in (False, True)
    )
    libraries = {line.split()[1].split(".")[0] for line in others}
    return "\n".join([*standard, "", *others]), libraries


def _join(texts: Iterable[str]) -> str:
    """Join statements; assignments in one line stand together."""
    joined, before = "", ""
    for text in texts:
        gap = "\n" if "\n" not in before + text else "\n\n\n"
        joined, before = joined + gap * bool(joined) + text, text
    return joined


@cache
def _template() -> str:
    """Read the file that has a place for each part."""
    return Path(__file__).with_name("my_vit.txt").read_text(encoding="utf-8")


@cache
def names_of_template() -> dict[str, str]:
    """Give what the template itself defines or imports: name -> statement."""
    tree = parse(re.sub(r"^#: .*\n", "", _template(), flags=re.M))
    names = {name: ast.unparse(node) for node in tree.body for name in defined_names(node)}
    for module, found in re.findall(r"^(?:from (\S+) )?import (.+)$", _template(), flags=re.M):
        for name in found.split(", "):
            names[name] = f"from {module} import {name}" if module else f"import {name}"
    return names


@cache
def reference_part(name: str) -> str:
    """Return the template's text of a part, or else the package's."""
    own = re.search(rf"^#: {name}\n((?!\n).*?)\n\n\n", _template(), flags=re.M | re.S)
    return own[1] if own else reference_source(PARTS[name])


@cache
def _names_in(statement: str) -> set[str]:
    return global_names(statement)[0]


@cache
def _calls_parts(name: str) -> bool:
    """Tell whether the course's text of a part calls other parts."""
    return bool(_names_in(_course_text(name)) & ({*PARTS, *BEHIND} - {name}))


@cache
def _course_text(name: str) -> str:
    """Give the course's text of a part, with the file's own layers in place of torch's."""
    return Part(PARTS[name], {name: reference_part(name)}).statements[name]


def _is_import(text: str) -> bool:
    return text.startswith(("import ", "from "))


def _is_same(text: str, other: str) -> bool:
    return text == other or ast.dump(parse(text)) == ast.dump(parse(other))
