"""Flag what a person should look at in one answer. Points do not change, and nothing is run.

Role: ``scan_answer`` looks for forbidden names, calls that no answer needs, and the published
reference. ``similarity`` compares the answers of a class.

The scan reads names only, so hidden tricks pass. The isolation does not depend on it.
"""

import ast
import re
import sys
from collections.abc import Sequence
from functools import cache
from typing import Any

from vitedu.course.parsing import parse
from vitedu.course.references import reference_source
from vitedu.exercises import BY_ID, find
from vitedu.grading.grades import Answer, Flag
from vitedu.grading.intake.normal_form import normalise, split_tokens
from vitedu.grading.intake.statements import IMPORTS

# tokens of a reference, with its signature; hardly anybody writes one this long by chance
MIN_TOKENS = 90

# modules whose names are worth a look wherever they appear
MODULES = set(
    "os subprocess ctypes multiprocessing socket signal gc inspect importlib pickle shutil "
    "builtins atexit mmap cffi code codeop linecache pathlib tempfile threading tracemalloc "
    "traceback pty resource faulthandler http urllib requests dill cloudpickle joblib marshal "
    "zipimport runpy site weakref concurrent asyncio platform glob".split()
)
# the modules of Python whose import needs no look; every other one does
HARMLESS_MODULES = set(
    "__future__ abc array base64 bisect calendar cmath collections colorsys contextlib copy csv "
    "dataclasses datetime decimal difflib enum fractions functools hashlib heapq html itertools "
    "json locale logging math numbers operator pprint random re statistics string struct sys "
    "textwrap time typing unicodedata uuid warnings zlib".split()
)
CALLS = set("open exec eval compile __import__ globals breakpoint input get_ipython".split())
# attribute -> what it gives access to
ATTRIBUTES = {
    **dict.fromkeys(
        "os sys subprocess builtins importlib ctypes inspect".split(), "a module through another"
    ),
    **dict.fromkeys(
        "_getframe f_back f_locals f_globals tb_frame gi_frame cr_frame".split(),
        "frames of the caller",
    ),
    **dict.fromkeys(
        "__globals__ __closure__ __code__ __builtins__ __subclasses__ __bases__ __mro__ __dict__ "
        "__reduce__ __reduce_ex__ __loader__ __spec__ mro __class__ __func__ __wrapped__".split(),
        "the insides of Python",
    ),
    **dict.fromkeys(
        "__setattr__ __delattr__ __setitem__ setitem ctypeslib attrgetter methodcaller".split(),
        "a change by another name",
    ),
    **dict.fromkeys(
        "is_meta __torch_dispatch__ __torch_function__ _forward_hooks "
        "register_forward_hook".split(),
        "the probes",
    ),
    **dict.fromkeys(
        "settrace setprofile _exit system popen fork execv kill".split(), "the process"
    ),
    **dict.fromkeys(
        "_C _ops library load hub cpp_extension _dynamo".split(), "the insides of torch"
    ),
    **dict.fromkeys(
        "getsource getsourcelines getsourcefile read_text read_bytes fromfile from_file".split(),
        "files",
    ),
    **dict.fromkeys(
        "set_default_dtype set_default_device use_deterministic_algorithms".split(),
        "a global setting",
    ),
}
INTERNAL_NAMES = {"ctypeslib", "cdll", "pythonapi", "_inductor", "cpp_extension"}
IMPORT_STATE = {"modules", "meta_path", "path_hooks"}  # of sys: how modules are found
INDIRECT_CALLS = {"setattr", "delattr", "vars", "eval", "exec", "__import__", "globals"}
PRIVATE_NAME = re.compile(r"_[A-Z]\w*?__\w")  # an attribute that is private to another class
HOOKS = {"__torch_function__", "__torch_dispatch__", "__eq__", "__class__", "__instancecheck__"}


def scan_answer(answer: Answer) -> list[Flag]:
    """Return the flags of one answer and its support code. Never raises because of the content."""
    try:
        source, support = [list(ast.walk(parse(text))) for text in (answer.source, answer.support)]
        flags = []
        if words := _find_forbidden(answer.exercise, source, support):
            flags.append(Flag("forbidden_name", f"the answer names {_list_words(words)}"))
        if words := _find_risks(source, answer.exercise) | _find_risks(support, answer.exercise):
            flags.append(Flag("dangerous", f"no answer needs {_list_words(words)}"))
        if _is_reference(answer):
            flags.append(
                Flag("like_reference", "the published reference; names, comments and layout aside")
            )
        return flags
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []  # the judge will say what is wrong with the code


def _list_words(words) -> str:
    words = sorted(words)
    return ", ".join(words[:8]) + (f" and {len(words) - 8} more" if len(words) > 8 else "")


# --- forbidden names -----------------------------------------------------------------------------


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


def _find_forbidden(exercise: str, *trees: list[ast.AST]) -> set[str]:
    """Find forbidden names: attributes, imports from torch, and strings passed to a call.

    Args:
        exercise: its id.
        trees: the nodes of each tree.
    """
    forbidden, names = forbidden_names(exercise), set()
    flagged = checker_names(exercise)[1]
    # modules of the course; for example ``attention.softmax`` is allowed as an earlier exercise
    own_modules = {
        alias.asname or alias.name.split(".")[0]
        for tree in trees
        for node in tree
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("vitedu")
        for alias in node.names
    }
    for tree in trees:
        for node in tree:
            if isinstance(node, ast.Attribute) and _unify(node.attr) in forbidden:
                if _dotted_name(node).split(".")[0] not in own_modules:
                    names.add(_dotted_name(node))
            elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("torch"):
                names |= {
                    f"{node.module}.{a.name}" for a in node.names if _unify(a.name) in forbidden
                }
            elif isinstance(node, ast.Call):
                words = [a.value for a in node.args if isinstance(a, ast.Constant)]
                names |= {
                    repr(word)
                    for word in words
                    if isinstance(word, str) and _unify(word.split(".")[-1]) in forbidden
                }
            name = node.id if isinstance(node, ast.Name) else getattr(node, "attr", "")
            if name in flagged:
                names.add(name)
    return names


def _dotted_name(node: ast.AST) -> str:
    parts = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    parts.append(node.id if isinstance(node, ast.Name) else "(...)")
    return ".".join(reversed(parts))[-60:]


# --- calls that no answer needs ------------------------------------------------------------------


def _find_risks(tree: list[ast.AST], exercise: str) -> set[str]:
    """Find imports, calls, attributes and assignments that affect more than the answer itself."""
    problems, imported, changes, sys_names = set(), set(), [], {"sys"}
    tree = [_as_attribute(node) for node in tree]
    for node in tree:
        if isinstance(node, ast.Import):
            imported |= {a.asname or a.name.split(".")[0] for a in node.names}
            problems |= {f"import {a.name}" for a in node.names if _is_suspect(a.name)}
            sys_names |= {a.asname for a in node.names if a.name == "sys" and a.asname}
            problems |= {f"import {a.name}" for a in node.names if _is_own(a.name)}
            problems |= {f"import {a.name}" for a in node.names if _is_internal(a.name)}
        elif isinstance(node, ast.ImportFrom):
            module = node.module or ""
            imported |= {a.asname or a.name for a in node.names if module.startswith("torch")}
            if _is_suspect(module) or _is_own(module) or _is_internal(module):
                problems.add(f"from {module} import")
            problems |= {
                f"from {module} import {a.name}"
                for a in node.names
                if a.name in MODULES | {"sys"}
                or a.name in ATTRIBUTES
                or a.name in INTERNAL_NAMES
                or (module == "sys" and a.name in IMPORT_STATE)
            }
            if exercise in {a.name for a in node.names} and module.startswith("vitedu"):
                problems.add(f"from {module} import {exercise}")
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            if node.func.id in CALLS:
                problems.add(f"{node.func.id}()")
            if node.func.id == "vars" and not _is_self(node.args[:1]):
                problems.add("vars()")
            if node.func.id == "getattr" and not _is_plain_name(node.args[1:2]):
                problems.add("getattr() of a name that is put together")
            if node.func.id in ("setattr", "delattr") and node.args:
                changes.append((node.args[0], f"{node.func.id}()"))
        elif isinstance(node, ast.Attribute):
            if node.attr in ATTRIBUTES and not _is_self([node.value]):
                problems.add(f"{_dotted_name(node)} ({ATTRIBUTES[node.attr]})")
            if PRIVATE_NAME.match(node.attr):
                problems.add(f"{_dotted_name(node)} (a name of another class)")
            if node.attr in IMPORT_STATE and _root(node) in sys_names:
                problems.add(f"sys.{node.attr}")
            if re.match(r"_[a-zA-Z]", node.attr) and _root(node) in imported | IMPORTS.keys():
                problems.add(f"{_dotted_name(node)} (the insides of a library)")
        elif isinstance(node, ast.Constant) and _is_internal_name(node.value):
            problems.add(repr(node.value))
        elif isinstance(node, ast.Name) and node.id in ("__builtins__", "__file__", "__loader__"):
            problems.add(node.id)
        elif isinstance(node, ast.Assign) and _root(node.value) in imported:  # t = torch
            imported |= {target.id for target in node.targets if isinstance(target, ast.Name)}
        elif isinstance(node, ast.FunctionDef) and node.name in HOOKS:
            problems.add(f"def {node.name}")
        elif isinstance(node, ast.ClassDef):
            bases = {_dotted_name(base) for base in node.bases}
            problems |= {
                f"a subclass of {b}" for b in bases & {"torch.Tensor", "Tensor", "nn.Parameter"}
            }
        if isinstance(node, ast.Attribute | ast.Subscript) and not isinstance(node.ctx, ast.Load):
            changes.append((node, f"a change of {_dotted_name(node)}"))
    called = {id(node.func) for node in tree if isinstance(node, ast.Call)}
    for node in tree:  # put = setattr
        if isinstance(node, ast.Name) and id(node) not in called and node.id in INDIRECT_CALLS:
            problems.add(f"{node.id} under another name")
    for node, words in changes:  # torch.exp = f, math.__dict__["pi"] = 3, setattr(torch, ...)
        while isinstance(node, ast.Attribute | ast.Subscript):
            node = node.value
        if isinstance(node, ast.Name) and node.id in imported:
            problems.add(words)
    return problems


def _as_attribute(node: ast.AST) -> ast.AST:
    """Write ``getattr(x, "name")`` as ``x.name``; every other node stays."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "getattr":
        if len(node.args) > 1 and isinstance(name := node.args[1], ast.Constant):
            return ast.Attribute(node.args[0], str(name.value), ast.Load())
    return node


def _is_internal_name(value: Any) -> bool:
    """Tell whether a string is a name with an underscore that gives access to the insides."""
    if not isinstance(value, str) or value[:1] != "_":
        return False
    return value in ATTRIBUTES or value in HOOKS or PRIVATE_NAME.match(value) is not None


def _is_suspect(module: str) -> bool:
    """Tell whether a module is worth a look: most of Python's own, and some others."""
    first = module.split(".")[0]
    return first in MODULES or (first in sys.stdlib_module_names and first not in HARMLESS_MODULES)


def _root(node: ast.AST) -> str:
    """Return the name with which a chain of attributes begins; "" for any other expression."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def _is_internal(module: str) -> bool:
    """Tell whether a module is a private part of torch or numpy, or gives access to others."""
    first, *rest = module.split(".")
    if first not in ("torch", "numpy"):
        return False
    return any(part.startswith("_") or part in MODULES | INTERNAL_NAMES for part in rest)


def _is_own(module: str) -> bool:
    """Tell whether a module of this package judges answers or contains solutions."""
    return re.match(r"vitedu\.(checks|grading|course|bench|commands)\b", module) is not None


def _is_plain_name(nodes: Sequence[ast.AST]) -> bool:
    return bool(nodes) and isinstance(nodes[0], ast.Constant | ast.Name)


def _is_self(nodes: Sequence[ast.AST]) -> bool:
    return bool(nodes) and isinstance(nodes[0], ast.Name) and nodes[0].id == "self"


# --- the reference -------------------------------------------------------------------------------


def _is_reference(answer: Answer) -> bool:
    """Tell whether an answer equals the reference, apart from names, comments, types and layout."""
    reference = _long_reference(answer.exercise)
    return bool(reference) and normalise(answer.source, answer.exercise) == reference


@cache
def _long_reference(exercise: str) -> str:
    """Return a reference, normalised; "" if it is a value or too short to prove anything."""
    source = reference_source(find(exercise))
    if BY_ID[exercise].kind == "value" or len(split_tokens(source, exercise)) < MIN_TOKENS:
        return ""
    return normalise(source, exercise)
