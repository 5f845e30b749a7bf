"""Flag what a person should look at in one answer. Points do not change, and nothing is run.

Role: ``scan_answer`` looks for a way to what judges answers, and for the published reference.
``similarity`` compares the answers of a class. What an exercise forbids is refused by the worker.

The scan finds what is copied honestly or tried openly. Who hides a name passes, so nothing depends
on it: values decide, and what an answer's own process says beside them is worth little.
"""

import ast
import re
from collections.abc import Iterable
from functools import cache, lru_cache

from vitedu.course.parsing import parse
from vitedu.course.references import reference_source
from vitedu.exercises import Exercise, find
from vitedu.grading.grades import Answer, Flag
from vitedu.grading.intake.similarity import TOKEN, split_tokens

# tokens of a reference beyond what its stub forces; hardly anybody writes so many alike by chance
MIN_TOKENS = 90
# names that no answer has by accident: frames and insides of Python, the process, foreign memory
# and code, the environment, connections
INSIDES = set(
    "_getframe f_back f_locals f_globals tb_frame gi_frame cr_frame __globals__ __closure__ "
    "__code__ __subclasses__ __loader__ __spec__ __builtins__ meta_path get_objects get_referrers "
    "settrace setprofile _exit popen fork ctypes "
    "mmap cffi cpp_extension load_inline load_library ExtensionFileLoader putenv "
    "LD_PRELOAD socket environ getenv".split()
)
READS = {"environ", "getenv"}  # a cell above may well ask them for a name; an answer may not
_JUDGES = re.compile(r"vitedu\.(checks|grading)\b")
MOST_WORDS = 8  # that a flag names


def scan_answer(answer: Answer, above: Iterable[str] = ()) -> list[Flag]:
    """Return the flags of one answer. Never raises because of the text.

    Args:
        answer: what a person reads.
        above: all cells of the student's own up to it.
    """
    flags = []
    everywhere = set().union(*map(read_risks, above)) - READS
    if risks := sorted(everywhere | read_risks(answer.source)):
        more = f" and {len(risks) - MOST_WORDS} more" if len(risks) > MOST_WORDS else ""
        words = f"no answer needs {', '.join(risks[:MOST_WORDS])}{more}"
        flags.append(Flag("dangerous", words))
    exercise, tokens = find(answer.exercise), split_tokens(answer.source, answer.exercise)
    is_equal = tokens and tokens == split_tokens(reference_source(exercise), exercise.id)
    if is_equal and count_own_tokens(exercise) >= MIN_TOKENS:
        words = "the published reference; names, comments and layout aside"
        flags.append(Flag("like_reference", words))
    return flags


@cache
def count_own_tokens(exercise: Exercise) -> int:
    """Count the tokens of a reference that its text leaves open: bodies, but for ``__init__``.

    A signature is given, and an ``__init__`` follows from the names that the text asks for.
    """
    words = []
    for node in ast.walk(parse(reference_source(exercise))):
        if isinstance(node, ast.FunctionDef) and node.name != "__init__":
            body = node.body[1:] if ast.get_docstring(node) else node.body
            words += [word for part in body for word in TOKEN.findall(ast.unparse(part))]
    return len(words)


@lru_cache(4096)
def read_risks(text: str) -> frozenset[str]:
    """Read what no answer needs in the text of a cell; nothing of one that is no Python."""
    risks = set()
    try:
        nodes = list(ast.walk(parse(text)))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return frozenset()
    for node in nodes:
        if isinstance(node, ast.Attribute):
            risks |= {node.attr} & INSIDES
        elif isinstance(node, ast.Name):
            risks |= {node.id} & INSIDES
        elif isinstance(node, ast.Import | ast.ImportFrom):
            module = getattr(node, "module", "") or ""
            for alias in node.names:
                whole = f"{module}.{alias.name}" if module else alias.name
                if _JUDGES.match(f"{whole}.") or INSIDES & set(whole.split(".")):
                    risks.add(f"import {whole}")
        elif isinstance(node, ast.Call):
            words = [a.value for a in node.args if isinstance(a, ast.Constant)]
            risks |= {repr(word) for word in words if isinstance(word, str) and word in INSIDES}
    return frozenset(risks)
