"""What a worker may see of this package: probes and pipes on disk, earlier references in memory, nothing else.

Role: ``base_files`` (what lies in the box), ``visible_sources`` (what is sent with an answer). The references of the
exercise under test and of every later one are cut out, with all that is built on them and all comments; so are the
checkers, the right answers and the wrong ones.
"""

import ast
from functools import cache
from pathlib import Path

from vitedu import __version__, exercises
from vitedu.references import defined_names, module_source

# what a worker runs: no reference, no expected value, no known mistake; isolation adds its own
BASE = (
    "checks/__init__.py",
    "checks/answers.py",
    "checks/drivers.py",
    "checks/guard.py",
    "checks/probing.py",
    "checks/recipes.py",
    "grading/__init__.py",
    "grading/cells.py",
    "grading/messages.py",
    "grading/visible.py",
    "grading/wire.py",
    "grading/worker.py",
)

# earlier references that would answer a later exercise by themselves
ANSWERS = {"count_parameters": {"VisionTransformer", "EncoderBlock", "MultiHeadAttention"}}

FRONT = '''"""vitedu where an answer is graded: checks hand the answer on and say nothing."""

__version__ = "{version}"


class Report:
    """What a check gives back; the verdict is made elsewhere."""

    passed, status, headline, picture, printed = True, "passed", "", "", ""
    points = max_points = 0
    misconception = seed = None

    def __init__(self, answer=None):
        self.implementation, self.misconceptions, self.findings, self.lines = answer, [], [], []


def check(answer=None, *rest, **settings):
    """Hand an answer on."""
    return Report(answer)


def _nothing(*rest, **settings):
    """Say nothing."""
    return ""


hint = solution = progress = reset = _nothing
'''


def base_files() -> dict[str, str]:
    """Give the files that may lie in the box: path from the folder that is on ``sys.path`` -> text."""
    package = Path(__file__).parents[1]
    files = {f"vitedu/{name}": (package / name).read_text(encoding="utf-8") for name in BASE}
    return {"vitedu/__init__.py": FRONT.format(version=__version__), **files}


def earlier(exercise_id: str) -> list[exercises.Exercise]:
    """List the exercises whose references an answer may use: those before it, in the order of the course."""
    order = [exercise.id for exercise in exercises.EXERCISES]
    before = exercises.EXERCISES[: order.index(exercises.find(exercise_id).id)]
    return [e for e in before if e.id not in ANSWERS.get(exercise_id, ())]


@cache
def visible_sources(exercise_id: str) -> dict[str, str]:
    """Give the modules of references as they may be seen by an answer to one exercise.

    Returns:
        Full module name -> source, without the references of this exercise and of all later ones.
    """
    known = {exercise.id for exercise in earlier(exercise_id)}
    hidden: dict[str, set[str]] = {}
    for exercise in exercises.EXERCISES:
        names = hidden.setdefault(exercise.module, set())
        if exercise.id not in known:
            names.add(exercise.id)
    sources: dict[str, str] = {}
    for module in list(hidden):
        _add(module, hidden, sources)
    return sources


def _add(module: str, hidden: dict[str, set[str]], sources: dict[str, str]) -> None:
    """Add a module after all that it imports of this package; note in ``hidden`` what it lost."""
    if module in sources:
        return
    sources[module] = ""  # in work
    tree = ast.parse(module_source(module))
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module.startswith("vitedu."):
            _add(node.module, hidden, sources)
    gone = hidden.setdefault(module, set())
    while _cut(tree, gone, hidden):
        pass
    for node in ast.walk(tree):  # an annotation alone is no use of a name
        if isinstance(node, ast.FunctionDef):
            node.returns = None
            for arg in [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]:
                arg.annotation = None
    sources[module] = ast.unparse(tree)


def _cut(tree: ast.Module, gone: set[str], hidden: dict[str, set[str]]) -> bool:
    """Take out statements that define or use a name that is gone; tell whether others may follow."""
    before, kept = len(gone), []
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and node.module in hidden:
            lost = [alias for alias in node.names if alias.name in hidden[node.module]]
            gone |= {alias.asname or alias.name for alias in lost}
            node.names = [alias for alias in node.names if alias not in lost]
            if node.names:
                kept.append(node)
        elif set(defined_names(node)) & gone or _uses(node, gone, hidden):
            gone |= set(defined_names(node))
        else:
            kept.append(node)
    tree.body = kept
    return len(gone) > before


def _uses(node: ast.stmt, gone: set[str], hidden: dict[str, set[str]]) -> bool:
    """Tell whether a statement does its work with a name that is gone; annotations do no work."""
    idle = {
        id(part)
        for function in ast.walk(node)
        if isinstance(function, ast.FunctionDef)
        for hint in (function.returns, *(arg.annotation for arg in ast.walk(function.args) if isinstance(arg, ast.arg)))
        if hint is not None
        for part in ast.walk(hint)
    }  # fmt: skip
    for part in ast.walk(node):
        if isinstance(part, ast.Name) and part.id in gone and id(part) not in idle:
            return True
        if isinstance(part, ast.ImportFrom) and part.module in hidden:
            if any(alias.name in hidden[part.module] for alias in part.names):
                return True
    return False
