"""Put the statements of the parts into one file; a text is read here and never run.

Role: ``make_parts``, ``assemble``. Not here: where the texts come from (``source``), whether the
file works (``trial``). ``my_vit.txt`` has a place for each part (``#: patchify``), with the
reference's text where that is not the package's, and things that only some parts need (``#?``).
"""

import ast
import re
import sys
import textwrap
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

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
            why = f"yours passed, but {reasons[name]}" if name in reasons else "still open"
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


def assemble(parts: Mapping[str, Part], after_each: str = "") -> str:
    """Write the file; for a trial with a statement after each part, where ``{0}`` is its name."""
    head, *places = re.split(r"^#: (\w+)\n", _template(), flags=re.M)
    statements = {name: text for part in parts.values() for name, text in part.statements.items()}
    imports = {t for n, t in statements.items() if _is_import(t) and n not in names_of_template()}
    out, libraries = [], {"torch"}
    placed: set[str] = set()
    for name, after in zip(places[::2], places[1::2], strict=True):
        body, _, rest = after.partition("\n\n\n") if after[0] != "\n" else ("", "", after)
        if name == "imports":
            body, libraries = _sort_imports([*body.split("\n"), *imports])
        else:
            code = {n: t for n, t in parts[name].statements.items() if not _is_import(t)}
            body = f"{parts[name].mark}\n{_join(t for n, t in code.items() if n not in placed)}"
            body += after_each.format(name)
            placed |= code.keys()
        out.append(f"{body}\n\n\n{rest.lstrip()}")
    text = "".join(out)
    for block, name, code in re.findall(r"(#\? (\w+)\n(.*?\n\n\n))", text, flags=re.S):
        is_used = name in global_names(text.replace(block, ""))[0]
        text = text.replace(block, code if is_used else "")
    count = sum(part.is_yours for part in parts.values())
    is_all = count == len(parts)
    share = f"all {count} of its parts" if is_all else f"{count} of its {len(parts)} parts"
    return head.format(share=share, libraries=", ".join(sorted(libraries))) + text


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


def _is_import(text: str) -> bool:
    return text.startswith(("import ", "from "))


def _is_same(text: str, other: str) -> bool:
    return text == other or ast.dump(parse(text)) == ast.dump(parse(other))
