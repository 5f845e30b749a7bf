"""Flag what a person should look at: risks, the published reference, answers that are alike.

Role: ``scan_answer`` looks at one answer for a way to what judges answers, and for the reference;
``compare_class`` finds answers that are the same. Points do not change, and nothing is run.
The scan finds what is copied honestly or tried openly. Who hides a name passes, so nothing depends
on it: values decide, and what an answer's own process says beside them is worth little. What an
exercise forbids is refused by the worker.

``split_tokens`` removes what an author chooses freely: names, comments, layout, type hints. What is
left is one text for a copy and its source, and has one digest. The reference has none, a few tokens
say nothing, and neither does an answer that more than ``COMMON_SHARE`` of the class wrote.
"""

import ast
import builtins
import hashlib
import io
import itertools
import re
import tokenize
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache

from vitedu.course.parsing import parse
from vitedu.course.references import reference_source
from vitedu.exercises import find
from vitedu.grading.grades import Answer, Flag

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
_JUDGES = re.compile(
    r"^\s*(?:from|import)\s+(vitedu(?:\.|\s+import\s+[^#\n]*)\b(?:checks|grading)\b)", re.M
)
# what set-up cells of the course import, in this edition or an older one; the box has neither
_SET_UP = re.compile(
    r"^from vitedu\.checks\.(?:api import judge|(?:explaining\.)?costs import mistake_costs)$", re.M
)
MOST_WORDS = 8  # that a flag names

COMMON_SHARE = 0.1  # an answer that a larger share of the class wrote does not count
MAX_WRITERS = 4  # in a small class, an answer counts if at most so many students wrote it
PARTNERS = 5  # the most partners named in a flag
# the names that stay; all others are the author's
FIXED = {*dir(builtins), "torch", "nn", "F", "math", "np", "einops", "rearrange", "einsum", "self"}
TOKEN = re.compile(r"\w+|[^\w\s]")


# --- one answer ----------------------------------------------------------------------------------


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
    reference = reference_source(find(answer.exercise))
    tokens = split_tokens(answer.source, answer.exercise)
    is_equal = tokens and tokens == split_tokens(reference, answer.exercise)
    if is_equal and count_own_tokens(reference) >= MIN_TOKENS:
        words = "the published reference; names, comments and layout aside"
        flags.append(Flag("like_reference", words))
    return flags


def count_own_tokens(source: str) -> int:
    """Count the tokens of an answer that its text leaves open: bodies, but for ``__init__``.

    A signature is given, and an ``__init__`` follows from the names that the text asks for.
    """
    words = []
    for node in ast.walk(parse(source)):
        if isinstance(node, ast.FunctionDef) and node.name != "__init__":
            body = node.body[1:] if ast.get_docstring(node) else node.body
            words += [word for part in body for word in TOKEN.findall(ast.unparse(part))]
    return len(words)


@lru_cache(4096)
def read_risks(text: str) -> frozenset[str]:
    """Read what no answer needs: names and whole strings of a cell; nothing of one that is none."""
    try:
        tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
    except (SyntaxError, tokenize.TokenError):
        return frozenset()
    kinds = tokenize.NAME, tokenize.STRING
    words = {token.string.strip("'\"") for token in tokens if token.type in kinds}
    judges = _JUDGES.findall(_SET_UP.sub("", text))
    return frozenset(words & INSIDES | {f"import {name}" for name in judges})


# --- a class -------------------------------------------------------------------------------------


def compare_class(answers: dict[str, dict[str, Answer]]) -> dict[str, list[Flag]]:
    """Find students who have answers of some length in common.

    Args:
        answers: student -> exercise -> answer.

    Returns:
        student -> flags of kind "similar", only for students who have any.
    """
    writers: dict[tuple[str, str], list[str]] = defaultdict(list)  # of an answer
    for student in sorted(answers):
        for id, answer in answers[student].items():
            if answer.tokens:
                writers[id, answer.digest].append(student)
    tried = Counter(id for own in answers.values() for id in own)
    shared: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for (id, _), students in writers.items():
        if len(students) <= max(MAX_WRITERS, COMMON_SHARE * tried[id]):
            for one, other in itertools.permutations(students, 2):
                shared[one][other].append(id)
    flags: dict[str, list[Flag]] = {}
    for student, others in shared.items():
        sizes = {o: sum(answers[student][id].tokens for id in ids) for o, ids in others.items()}
        partners = sorted((-n, other) for other, n in sizes.items() if n >= MIN_TOKENS)
        texts = [f"{other}: {', '.join(others[other])}" for _, other in partners[:PARTNERS]]
        more = f"; and {len(partners) - PARTNERS} more" if len(partners) > PARTNERS else ""
        words = f"the same, names and layout aside, as {'; '.join(texts)}{more}"
        flags |= {student: [Flag("similar", words)]} if partners else {}
    return flags


def mark(answer: Answer) -> Answer:
    """Note what makes an answer the same as another; nothing of a stub, a value, the reference."""
    tokens = split_tokens(answer.source, answer.exercise)
    reference = reference_source(find(answer.exercise))
    if not tokens or tokens == split_tokens(reference, answer.exercise):
        return answer
    digest = hashlib.sha256(" ".join(tokens).encode()).hexdigest()[:16]
    return replace(answer, tokens=count_own_tokens(answer.source), digest=digest)


@lru_cache(256)
def split_tokens(source: str, name: str) -> list[str]:
    """Split the last definition of a name into tokens, with one token for the author's names.

    There are none of a stub, or where nothing defines the name or the text is no Python.

    Example:
        >>> split_tokens("total = first.sum(dim=1)", "total")
        ['v', '=', 'v', '.', 'sum', '(', 'dim', '=', '1', ')']
    """
    tokens = []
    try:
        for node in parse(source).body:
            targets = {t.id for t in getattr(node, "targets", []) if isinstance(t, ast.Name)}
            if name in targets | {getattr(node, "name", None)}:
                text = "" if is_stub(node) else ast.unparse(_Normaliser().visit(node))
                tokens = TOKEN.findall(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    return tokens


class _Normaliser(ast.NodeTransformer):
    """Renames names and drops docstrings and types. Attributes and keywords stay: torch's names."""

    def visit_Name(self, node):
        return ast.Name(node.id if node.id in FIXED else "v")

    def visit_arg(self, node):
        return ast.arg(node.arg if node.arg in FIXED else "v")

    def visit_AnnAssign(self, node):
        self.generic_visit(node)
        return ast.Assign([node.target], node.value, lineno=0) if node.value else None

    def visit_FunctionDef(self, node):
        node.returns = None
        return self.visit_ClassDef(node)

    def visit_ClassDef(self, node):
        if ast.get_docstring(node) is not None:
            node.body = node.body[1:] or [ast.Pass()]
        return self.generic_visit(node)


def is_stub(node: ast.AST) -> bool:
    """Tell whether a statement is a stub: an error to replace is left in it, or its value is none.

    Example:
        >>> is_stub(ast.parse("gelu = None").body[0])
        True
        >>> is_stub(ast.parse("def gelu(x):\\n    return x").body[0])
        False
    """
    value = getattr(node, "value", None)
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return "raise NotImplementedError" in ast.unparse(node)
    return isinstance(value, ast.Constant) and value.value in (None, ...)
