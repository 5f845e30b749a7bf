"""Data flows one way: what each module may import stands in one table, read against the source.

Reference code does not know that it is being taught: nothing but the command line and the checks'
own door imports ``checks``. A new module needs a line here, which is the moment to ask where it belongs.
"""

import ast
import graphlib
import subprocess
import sys
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "vitedu"

# module: what it may import beside the standard library; names without a dot first, `*` matches any
TABLE = {
    "exercises": "",
    "references": "exercises",
    "results": "exercises",
    # the model, from left to right
    "patches": "torch",
    "attention": "torch",
    "encoder": "torch attention",
    "fast_linear": "torch encoder hardware",
    "attention_options": "torch attention fast_linear",
    "vit": "torch patches attention attention_options encoder fast_linear",
    # what knows no model
    "training": "torch",
    "hardware": "torch",
    "predictions": "",
    "progressbar": "IPython",
    "augmentation": "torch",
    "augmenting": "torch augmentation train_config training",
    "train_config": "",
    "history": "torch train_config",
    "evaluating": "torch training",
    "optimizers": "torch train_config training",
    "resuming": "checkpoints history",
    "distributed": "torch hardware",
    "compiling": "torch",
    "curves": "history plots.training progressbar",
    "event_files": "torch history",
    "settings": "",
    "fitting": "torch augmenting compiling curves distributed evaluating hardware history optimizers progressbar "
    "resuming train_config training",
    "shapes": "numpy",
    "image_folder": "numpy PIL progressbar",
    "data": "numpy torch torchvision image_folder shapes",
    # pictures
    "plots.style": "numpy matplotlib IPython",
    "plots.*": "numpy torch matplotlib plots.style",
    "widgets": "numpy torch matplotlib ipywidgets IPython plots.*",
    # whole runs
    "checkpoints": "torch safetensors",
    "recipes": "train_config",
    "runs": "torch checkpoints curves data distributed event_files fitting hardware recipes resuming "
    "settings vit",
    "trained": "numpy torch checkpoints evaluating hardware image_folder runs vit",
    "ablations": "torch data fitting vit",
    "benchmarks": "torch data fitting hardware recipes runs vit",
    "stopwatch": "torch",
    "bench_steps": "torch timm torchvision vit_pytorch vit",
    "bench_train": "torch bench_steps stopwatch vit",
    "bench_data": "torch torchvision augmenting evaluating stopwatch train_config",
    "bench_cost": "torch bench_steps plots.cost stopwatch vit",
    # other people's weights
    "conversions": "torch torchvision timm vit",
    "published": "torch torchvision timm image_folder",
    "pretrained": "torch torchvision timm huggingface_hub PIL safetensors conversions hardware published vit",
    # judging
    "checks.api": "exercises references results checks.engine checks.reporting IPython",
    "checks.audit": "exercises checks.engine nbformat",
    "checks.bank": "exercises checks.* torch",
    "checks.mutation": "exercises references checks.* torch",
    "checks.patches.*": "torch patches checks.*",
    "checks.attention.*": "torch attention checks.*",
    "checks.encoder.*": "torch attention encoder vit checks.*",
    "checks.training.*": "torch training checks.*",
    "checks.recipes": "torch vit checks.probing",
    "checks.answers": "numpy torch checks.probing",
    "checks.alternatives.*": "numpy torch einops patches attention encoder vit training checks.*",
    "checks.*": "numpy torch exercises checks.*",
    # grading: the parent judges, the worker knows nothing
    "grading.grades": "",
    "grading.wire": "torch",
    "grading.cells": "",
    "grading.visible": "vitedu",
    "grading.messages": "torch checks.answers checks.probing checks.recipes grading.wire",
    "grading.worker": "numpy torch checks.drivers checks.answers checks.guard checks.probing grading.cells grading.messages grading.visible grading.wire",
    "grading.package_view": "__version__ exercises references",
    "grading.literals": "checks.answers grading.grades grading.messages",
    "grading.remote_answer": "checks.answers checks.probing grading.grades grading.limits grading.messages grading.package_view grading.wire",
    "grading.judge": "exercises checks.* grading.grades grading.limits grading.literals grading.messages grading.remote_answer grading.wire",
    "grading.linux": "",
    "grading.limits": "",
    "grading.cgroups": "grading.limits",
    "grading.seccomp": "grading.linux",
    "grading.canary": "grading.limits",
    "grading.confinement": "numpy torch grading.limits grading.linux grading.seccomp",
    "grading.preloaded": "numpy torch grading.confinement grading.linux",
    "grading.ways": "grading.limits",
    "grading.conversation": "grading.cgroups grading.limits",
    "grading.levels": "grading.conversation grading.limits",
    "grading.isolation": "grading.cgroups grading.conversation grading.levels grading.limits grading.package_view grading.ways",
    "grading.submissions": "exercises grading.grades grading.notebook_file",
    "grading.notebook_file": "",
    "grading.statements": "",
    "grading.stubs": "",
    "grading.assign": "exercises notebooks references nbformat",
    "grading.gradescope": "vitedu exercises notebooks grading.*",
    "grading.extraction": "exercises grading.*",
    "grading.scan": "exercises references checks.engine grading.grades grading.normalising",
    "grading.normalising": "",
    "grading.similarity": "exercises references grading.grades grading.normalising grading.stubs",
    "grading.store": "grading.grades",
    "grading.fingerprint": "__version__ torch exercises grading.grades",
    "grading.student": "exercises grading.*",
    "grading.reading": "progressbar grading.*",
    "grading.batch": "exercises progressbar grading.*",
    "grading.cluster": "exercises distributed grading.*",
    "grading.bench_class": "exercises references notebooks nbformat checks.* grading.grades",
    "grading.bench_nbgrader": "nbformat nbgrader traitlets grading.assign grading.bench_class",
    "grading.bench": "torch psutil exercises progressbar grading.*",
    "grading.pages": "grading.grades",
    "grading.exports": "exercises grading.grades grading.pages",
    "grading.feedback": "exercises grading.grades grading.pages",
    "grading.class_summary": "grading.grades grading.pages",
    "grading.class_report": "exercises checks.engine grading.class_summary grading.grades grading.pages grading.store",
    "grading.publish": "exercises grading.*",
    "grading.__init__": "",
    # notebooks and machines
    "notebooks": "exercises references nbformat",
    "notebook_lint": "exercises references notebooks nbformat",
    "tour": "exercises notebooks results nbformat nbclient nbconvert jupyter_client ipykernel",
    "doctor": "results jupyter_client",
    "commands.__init__": "exercises",
    "commands.*": "*",
    "__main__": "__version__ commands.*",
    "__init__": "",
    "plots.__init__": "",
    "checks.__init__": "",
    "checks.alternatives.__init__": "",
}
# slow, or not everywhere
IN_FUNCTIONS_ONLY = {"torchvision", "timm", "ipywidgets", "IPython", "nbconvert"}
MODULES = {
    ".".join(path.relative_to(PACKAGE).with_suffix("").parts): path
    for path in sorted(PACKAGE.rglob("*.py"))
}
PACKAGES = {
    f"vitedu.{name.removesuffix('.__init__')}"
    for name in MODULES
    if "." in name and name.endswith("__init__")
}


def allowed(module):
    """Give the words of the first line of the table that speaks of a module."""
    return next((words.split() for name, words in TABLE.items() if fnmatchcase(module, name)), None)


def imports(path):
    """Give (name, whether at module level) of all that a file imports, without the standard library.

    Modules of the package lose its name: ``from vitedu.data import x`` gives ``data``.
    """
    tree = ast.parse(path.read_text(encoding="utf-8"))
    at_top = {id(node) for statement in tree.body for node in flat(statement)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module == "vitedu":
            names = [f"vitedu.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module in PACKAGES:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{path.name}, line {node.lineno}: a relative import"
            names = [node.module]
        else:
            continue
        for name in names:
            if name.startswith("vitedu."):
                yield name.removeprefix("vitedu."), id(node) in at_top
            elif name.split(".")[0] not in sys.stdlib_module_names:
                yield name.split(".")[0], id(node) in at_top


def flat(node):
    """Walk a statement, but not into functions."""
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        yield node
        for child in ast.iter_child_nodes(node):
            yield from flat(child)


@pytest.mark.parametrize("module", MODULES)
def test_module_imports_only_what_the_table_allows(module):
    """Third parties and modules of the package alike."""
    words = allowed(module)
    assert words is not None, f"{module} has no line in the table of tests/test_imports.py"
    for name, _ in imports(MODULES[module]):
        assert any(fnmatchcase(name, word) for word in words), f"{module} imports {name}"


@pytest.mark.parametrize("module", MODULES)
def test_slow_and_optional_libraries_are_imported_inside_functions(module):
    """A notebook without a front end, or a Python without torchvision, still loads the module."""
    at_top = {name for name, top in imports(MODULES[module]) if top}
    assert not at_top & IN_FUNCTIONS_ONLY


def test_table_has_no_line_for_a_module_that_is_gone():
    """A name in the table is a file."""
    assert [name for name in TABLE if "*" not in name and name not in MODULES] == []


def test_imports_have_no_cycle():
    """Every module can be read after all that it imports, inside functions too."""
    graph = {
        module: {name for name, _ in imports(path) if name in MODULES and name != module}
        for module, path in MODULES.items()
    }
    order = list(graphlib.TopologicalSorter(graph).static_order())  # CycleError names the cycle
    assert order.index("exercises") < order.index("__main__")


def test_nothing_is_called_utils_and_nothing_is_imported_by_star():
    """A helper lives with its user, under its name."""
    assert not [module for module in MODULES if "util" in module or "helper" in module]
    for path in MODULES.values():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom):
                assert all(alias.name != "*" for alias in node.names), path.name


def run(code):
    """Run code in a fresh Python and give what it prints."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()[-1].split()


TIMED = """
import sys, time
start = time.perf_counter()
{code}
print(time.perf_counter() - start, "torch" in sys.modules, "numpy" in sys.modules)
"""


@pytest.mark.parametrize(
    ("code", "seconds"),
    [
        ("import vitedu", 0.1),
        ("from vitedu.__main__ import main; main(['list'])", 0.3),
        ("from vitedu.__main__ import main; main(['progress'])", 0.3),
        ("from vitedu.__main__ import main; main(['hint', 'patchify'])", 0.3),
        ("from vitedu.__main__ import main; main(['solution', 'patchify'])", 0.3),
        ("from vitedu.__main__ import build_parser; build_parser().format_help()", 0.3),
    ],
    ids=["import", "list", "progress", "hint", "solution", "help"],
)
def test_what_needs_no_torch_is_instant(code, seconds):
    """Neither torch nor numpy is loaded; the best of three is within the limit."""
    runs = [run(TIMED.format(code=code)) for _ in range(3)]
    assert {tuple(words[1:]) for words in runs} == {("False", "False")}
    assert min(float(words[0]) for words in runs) < seconds


def test_package_offers_what_a_notebook_needs():
    """The names of the package are those of the checks' door, functions and not modules."""
    import vitedu
    from vitedu.checks import api

    for name in vitedu.__all__:
        assert getattr(vitedu, name) is getattr(api, name)
    with pytest.raises(AttributeError, match="no attribute 'chekc'"):
        vitedu.chekc  # noqa: B018 - the access is the test
    assert set(vitedu.__all__) <= set(dir(vitedu))


def test_no_module_takes_the_place_of_a_name_that_the_package_offers():
    """A submodule called progress would hide the function as soon as it is imported."""
    import vitedu

    assert not set(vitedu.__all__) & set(MODULES)
