"""Data flows one way: the rooms of the package stand on a ladder, read against the source.

A room uses the rooms below it. Reference code does not know that it is being taught: nothing below
``checks`` imports ``checks``, ``course`` or ``grading``.
"""

import ast
import graphlib
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from vitedu.exercises import EXERCISES
from vitedu.grading.box.package_view import base_files

PACKAGE = Path(__file__).parents[1] / "vitedu"

# from top to bottom; rooms of one line do not see each other, unless the line below says so
LADDER = """
__main__
commands
bench
grading
checks
fitting
pretrained
exporting
inside vit_and_cnn less_data efficient transfer
extras
vit
encoder
attention patches training
"""
# all rooms may stand on these, and each of these on those after it
GROUND = "course plots data exercises ground".split()
# reference code: from notebooks 05 to 09 down
REFERENCES = set(" ".join(LADDER.split("\n")[9:]).split())
# slow, or not everywhere
IN_FUNCTIONS_ONLY = {"torchvision", "timm", "ipywidgets", "IPython", "nbconvert"}
MODULES = {
    ".".join(path.relative_to(PACKAGE).with_suffix("").parts): path
    for path in sorted(PACKAGE.rglob("*.py"))
}
ROOMS = {name.split(".")[0] for name in MODULES}
PACKAGES = {
    f"vitedu.{name.removesuffix('.__init__')}"
    for name in MODULES
    if "." in name and name.endswith("__init__")
}


def below(room):
    """Give the rooms that a room may import from, itself among them."""
    if room in GROUND:
        return set(GROUND[GROUND.index(room) :])
    steps = [line.split() for line in LADDER.strip().split("\n")]
    at = next(i for i in range(len(steps)) if room in steps[i])
    return {room, *GROUND}.union(*steps[at + 1 :])


@cache
def import_statements(path):
    """Give (statement, whether at module level) of all imports in a file, which is read once."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    at_top = {id(node) for statement in tree.body for node in flat(statement)}
    kinds = (ast.Import, ast.ImportFrom)
    return [(node, id(node) in at_top) for node in ast.walk(tree) if isinstance(node, kinds)]


def imports(path):
    """Give (name, whether at module level) of a file's imports but the standard library's.

    Modules of the package lose its name: ``from vitedu.data import x`` gives ``data``.
    """
    for node, at_top in import_statements(path):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif node.module == "vitedu":
            names = [f"vitedu.{alias.name}" for alias in node.names]
        elif node.module in PACKAGES:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            assert not node.level, f"{path.name}, line {node.lineno}: a relative import"
            names = [node.module]
        for name in names:
            if name.startswith("vitedu."):
                yield name.removeprefix("vitedu."), at_top
            elif name.split(".")[0] not in sys.stdlib_module_names:
                yield name.split(".")[0], at_top


def flat(node):
    """Walk a statement, but not into functions."""
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        yield node
        for child in ast.iter_child_nodes(node):
            yield from flat(child)


@pytest.mark.parametrize("module", MODULES)
def test_room_imports_only_from_the_rooms_below_it(module):
    """Reference code knows nothing of the course; slow and optional libraries wait in functions."""
    room, seen = module.split(".")[0], set()
    for name, at_top in imports(MODULES[module]):
        assert not (at_top and name in IN_FUNCTIONS_ONLY), name
        if room != "__init__" and (first := name.split(".")[0]) in ROOMS:
            assert first in below(room), f"{module} imports {name}, which stands above it"
            seen.add(first)
    if room in REFERENCES:
        assert not seen & {"course", "exercises"}, f"{module} knows that it is being taught"


def test_ladder_names_every_room_and_training_knows_no_model():
    """A new room needs a place, which is the moment to ask where it belongs."""
    named = {*LADDER.split(), *GROUND, "__init__"}
    assert not ROOMS - named
    assert not [name for name, _ in imports(MODULES["training"]) if name.split(".")[0] in ROOMS]


def test_worker_needs_the_standard_library_numpy_and_torch_alone():
    """What runs beside an untrusted answer imports, of the package, only what lies in the box."""
    files = {name.removeprefix("vitedu/") for name in base_files() if name.endswith(".py")}
    base = {name.removesuffix(".py").replace("/", ".") for name in files - {"__init__.py"}}
    for module in base:
        found = {name for name, at_top in imports(MODULES[module]) if at_top}
        found -= base | {"numpy", "torch"} | {name.removesuffix(".__init__") for name in base}
        assert not found, f"{module} imports {found}"


STEPS = "observing writing judging explaining".split()  # of the checks, from the bottom


def test_no_room_of_the_checks_imports_from_a_higher_one():
    """What is observed knows no judge, and what judges knows no words."""
    arrows = set()
    for module, path in MODULES.items():
        if not module.startswith("checks."):
            continue
        room = module.split(".")[1]
        for name, _ in imports(path):
            other = name.split(".")[1] if name.startswith("checks.") else room
            arrows |= {(room, other)} - {(room, room)}
            if room in STEPS:
                assert other == room or other in STEPS[: STEPS.index(room)], f"{module}: {name}"
    assert len(arrows) <= 60


def is_engine(module):
    """Tell whether a module is one of those at the top of ``checks``."""
    return re.match(r"vitedu\.checks\.(writing|observing|judging|explaining)\.", module)


def test_files_of_exercises_take_the_vocabulary_from_one_door():
    """Beside it they import whole modules and neighbours, and the door offers nothing idle."""
    own = {f"checks.{e.chapter}.{e.file_stem}" for e in EXERCISES if e.kind != "value"}
    taken = set()
    for module in own:
        for node, _ in import_statements(MODULES[module]):
            if isinstance(node, ast.ImportFrom) and node.module == "vitedu.checks.writing.kit":
                taken |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                assert node.module in PACKAGES or not is_engine(node.module), module
    offered = [node for node, _ in import_statements(MODULES["checks.writing.kit"])]
    assert taken == {alias.name for node in offered for alias in node.names}


def test_imports_have_no_cycle():
    """Every module can be read after all that it imports, inside functions too."""
    graph = {
        module: {name for name, _ in imports(path) if name in MODULES and name != module}
        for module, path in MODULES.items()
    }
    order = list(graphlib.TopologicalSorter(graph).static_order())  # CycleError names the cycle
    assert order.index("exercises") < order.index("__main__")


def run(code):
    """Run code in a fresh Python and give what it prints."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()[-1].split()


LOADED = """
import sys, vitedu
from vitedu.__main__ import build_parser, main
build_parser().format_help()
from vitedu.course.results import progress_html
for words in ("list", "progress", "hint patchify", "solution patchify"):
    main(words.split())
progress_html()
print("torch" in sys.modules, "numpy" in sys.modules)
"""


def test_what_needs_no_torch_loads_neither_torch_nor_numpy():
    """These take a second or more to load, and a student waits for it."""
    assert run(LOADED) == ["False", "False"]


def test_package_offers_what_a_notebook_needs():
    """Its names are those of the checks' door, functions and not modules, which would hide them."""
    import vitedu
    from vitedu.checks import api

    for name in vitedu.__all__:
        assert getattr(vitedu, name) is getattr(api, name)
    with pytest.raises(AttributeError, match="no attribute 'chekc'"):
        vitedu.chekc  # noqa: B018 - the access is the test
    assert set(vitedu.__all__) <= set(dir(vitedu)) and not set(vitedu.__all__) & set(MODULES)
