"""Flag what a person should look at in one answer. Points do not change, and nothing is run.

Role: ``scan_answer`` looks for the functions that an exercise forbids, for a way to what judges
answers, and for the published reference. ``similarity`` compares the answers of a class.

The scan finds what is copied honestly or tried openly. Who hides a name passes, so nothing depends
on it: values decide, and what an answer's own process says beside them is worth little.
"""

import ast
import re
from functools import cache, lru_cache
from typing import NamedTuple

from vitedu.course.parsing import parse
from vitedu.course.references import reference_source
from vitedu.exercises import BY_ID, find
from vitedu.grading.grades import Answer, Flag
from vitedu.grading.intake.normal_form import normalise, split_tokens

# tokens of a reference, with its signature; hardly anybody writes one this long by chance
MIN_TOKENS = 90
# names that no answer has by accident: frames and insides of Python, the process, foreign memory
INSIDES = set(
    "_getframe f_back f_locals f_globals tb_frame gi_frame cr_frame __globals__ __closure__ "
    "__code__ __subclasses__ __loader__ __spec__ __builtins__ meta_path get_objects get_referrers "
    "settrace setprofile _exit popen fork ctypes".split()
)
_JUDGES = re.compile(r"vitedu\.(checks|grading)\b")


class Facts(NamedTuple):
    """What the scan reads in one statement."""

    words: list[tuple[str, str, str]]  # (name in the spelling of ``_unify``, as written, its root)
    names: set[str]
    package: set[str]  # names of the package's modules
    risks: set[str]


def scan_answer(answer: Answer) -> list[Flag]:
    """Return the flags of one answer and of what it may need. Never raises because of the text."""
    facts = [read_facts(text) for text in _texts(answer)]
    own = set().union({"self", "cls"}, *(each.package for each in facts))
    if program := answer.program:
        for space, places in program.needed.items():
            statements = [program.spaces[space][place] for place in places]
            own |= {name for s in statements if "import" not in s.marks for name in s.binds}
    forbidden, flagged = forbidden_names(answer.exercise), checker_names(answer.exercise)[1]
    words = {
        written
        for each in facts
        for word, written, root in each.words
        if word in forbidden and root not in own
    }
    words |= set().union(*(each.names for each in facts)).intersection(flagged)
    risks = set().union(*(each.risks for each in facts))
    flags = []
    if words:
        flags.append(Flag("forbidden_name", f"the answer names {_list_words(words)}"))
    if risks:
        flags.append(Flag("dangerous", f"no answer needs {_list_words(risks)}"))
    if _is_reference(answer):
        flags.append(
            Flag("like_reference", "the published reference; names, comments and layout aside")
        )
    return flags


def _texts(answer: Answer) -> list[str]:
    """Return the answer, and the definitions and imports that it may need."""
    program = answer.program
    if program is None:
        return [answer.source]
    statements = [program.spaces[s][p] for s, places in program.needed.items() for p in places]
    target = program.spaces[program.targets[0][0]][program.targets[0][1]]
    return [target.text, *(s.text for s in statements if "value" not in s.marks and s.binds)]


@lru_cache(4096)
def read_facts(text: str) -> Facts:
    """Read the text of a statement; nothing of one that is no Python."""
    facts = Facts([], set(), set(), set())
    try:
        nodes = list(ast.walk(parse(text)))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return facts
    for node in nodes:
        if isinstance(node, ast.Attribute):
            written = _dotted_name(node)
            facts.words.append((_unify(node.attr), written, written.split(".")[0]))
            facts.names.add(node.attr)
            facts.risks.update({written} if node.attr in INSIDES else ())
        elif isinstance(node, ast.Name):
            facts.names.add(node.id)
            facts.risks.update({node.id} & INSIDES)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            module = getattr(node, "module", "") or ""
            for alias in node.names:
                whole = f"{module}.{alias.name}" if module else alias.name
                if module.startswith("torch"):
                    facts.words.append((_unify(alias.name), whole, ""))
                if module.startswith("vitedu"):
                    facts.package.add(alias.asname or alias.name)
                if _JUDGES.match(f"{whole}.") or INSIDES & set(whole.split(".")):
                    facts.risks.add(f"import {whole}")
        elif isinstance(node, ast.Call):
            for argument in node.args:
                if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
                    word = argument.value[:200]
                    facts.words.append((_unify(word.split(".")[-1]), repr(word), ""))
                    facts.risks.update({repr(word)} if word in INSIDES else ())
    return facts


def _list_words(words) -> str:
    words = sorted(words)
    return ", ".join(words[:8]) + (f" and {len(words) - 8} more" if len(words) > 8 else "")


# exercise -> names that it forbids, and names that it allows but that are worth a look; a process
# without torch cannot load checkers, so it is told them
NAMES: dict[str, tuple[list[str], list[str]]] = {}


def checker_names(exercise: str) -> tuple[list[str], list[str]]:
    """Return the names that an exercise forbids, and those that are worth a look."""
    if exercise not in NAMES:
        from vitedu.checks.checker import find_checker

        checker = find_checker(exercise)
        names = (sorted(getattr(checker, kind, ())) for kind in ("forbidden", "flags"))
        NAMES[exercise] = next(names), next(names)
    return NAMES[exercise]


@cache
def forbidden_names(exercise: str) -> set[str]:
    """Return the names that an exercise forbids, in the spelling of ``_unify``."""
    names = checker_names(exercise)[0]
    return {_unify(name.removeprefix("aten.").split(".")[0]) for name in names}


def _unify(name: str) -> str:
    """Unify names of functions, layers and kernels: LayerNorm, layer_norm, native_layer_norm_."""
    return re.sub(r"^(aten|native)_?|loss$", "", name.lower().strip("_")).replace("_", "")


def _dotted_name(node: ast.AST) -> str:
    parts: list[str] = []
    while isinstance(node, ast.Attribute) and len(parts) < 20:
        parts.append(node.attr)
        node = node.value
    parts.append(node.id if isinstance(node, ast.Name) else "(...)")
    return ".".join(reversed(parts))[-60:]


def _is_reference(answer: Answer) -> bool:
    """Tell whether an answer equals the reference, apart from names, comments, types and layout."""
    reference = _long_reference(answer.exercise)
    if not reference:
        return False
    try:
        return normalise(answer.source, answer.exercise) == reference
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False


@cache
def _long_reference(exercise: str) -> str:
    """Return a reference, normalised; "" if it is a value or too short to prove anything."""
    source = reference_source(find(exercise))
    if BY_ID[exercise].kind == "value" or len(split_tokens(source, exercise)) < MIN_TOKENS:
        return ""
    return normalise(source, exercise)
