"""Names as Python finds them: what runs of a notebook, in which order, and what does not."""

import json
import threading
import typing

import pytest
import torch
from run_answer import RunAnswer

from vitedu.grading.box.names import global_loads, is_attempt
from vitedu.grading.grades import Submission
from vitedu.grading.intake.extraction import extract


@pytest.fixture
def run(tmp_path):
    """Hand in notebooks, each a list of cells, and run the answer to ``gelu`` in the last one."""

    def run_cells(*cells, others=(), **rest):
        paths = []
        for number, contents in enumerate((*others, cells)):
            paths.append(tmp_path / f"{number}.ipynb")
            made = [{"cell_type": "code", "metadata": {}, "source": cell} for cell in contents]
            paths[-1].write_text(json.dumps({"cells": made, "nbformat": 4, "metadata": {}}))
        return RunAnswer(extract(Submission("ann", tuple(paths))).answers["gelu"], **rest)

    return run_cells


# --- where a name may be read --------------------------------------------------------------------

PLACES = {
    "a function": "def gelu(x):\n    return x + ONE",
    "a function inside": "def gelu(x):\n    def inner(): return ONE\n    return x + inner()",
    "a comprehension": "def gelu(x):\n    return x + sum([ONE for _ in range(1)])",
    "a default": "def gelu(x, one=ONE):\n    return x + one",
    "a class body": "class A:\n    one = ONE\ndef gelu(x):\n    return x + A.one",
    "a base": "class A(type(ONE)):\n    pass\ndef gelu(x):\n    return x + A(1)",
    "a decorator": "def add(n):\n    return lambda f: lambda x: f(x) + n\n"
    "@add(ONE)\ndef gelu(x):\n    return x",
    "a dataclass": "from dataclasses import dataclass\n@dataclass\nclass A:\n    one: int = ONE\n"
    "def gelu(x):\n    return x + A().one",
    "eval": "def gelu(x):\n    return x + eval('ONE')",
    "a generator": "def gelu(x):\n    return x + next(ONE for _ in 'a')",
    "a method": "class A:\n    def one(self): return ONE\ndef gelu(x):\n    return x + A().one()",
    "a closure": "def make():\n    def f(x):\n        return x + ONE\n    return f\ngelu = make()",
    "an object": "class A:\n    def __call__(self, x):\n        return x + ONE\ngelu = A()",
    "a partial": "from functools import partial\ngelu = partial(lambda one, x: x + ONE, 1)",
    "a wrapped function": "from functools import lru_cache\n@lru_cache\ndef one(): return ONE\n"
    "def gelu(x):\n    return x + one()",
}


@pytest.mark.parametrize("cell", PLACES.values(), ids=PLACES)
@pytest.mark.parametrize("before", [True, False], ids=["bound above", "bound below"])
def test_a_name_is_found_wherever_it_is_read(run, cell, before):
    """From a cell above, or else from one below."""
    found = run(*(["ONE = 1", cell] if before else [cell, "ONE = 1"]))
    assert found.error is None and found.value(1) == 2
    assert type(found.names) is dict


def test_a_thread_and_type_hints_find_names_too(run):
    """The namespace is a module's, with its real dict."""
    cell = "def gelu(x: 'Kind') -> 'Kind':\n    return x + ONE"
    found = run("ONE = 1\nKind = int", cell)
    results = []
    thread = threading.Thread(target=lambda: results.append(found.value(1)))
    thread.start()
    thread.join()
    assert results == [2] and typing.get_type_hints(found.value) == {"x": int, "return": int}


def test_only_what_is_read_runs(run):
    """An attribute, a keyword or a string is no name; plots, checks and other answers stay."""
    found = run(
        "for step in range(10**9): pass",
        "data = load_data()\nplots.show(data)",
        "def gelu(x, opt=None):\n    'data'\n    return opt.step(data=x) if opt else x",
        "check(gelu)\nresult = gelu(data)",
    )
    assert found.ran == [
        "def gelu(x, opt=None):\n    'data'\n    return opt.step(data=x) if opt else x"
    ]
    assert found.value(3) == 3 and found.program.failures == []


# --- which value it has --------------------------------------------------------------------------


def test_a_name_has_the_value_of_its_place(run):
    """Bound twice: a default reads the first, a body the last one above, neither the one below."""
    found = run(
        "D = 64\ndef f(d=D): return d", "D = 128", "def gelu(x):\n    return f(), D", "D = 1"
    )
    assert found.value(0) == (64, 128)
    late = run("D = 64\ndef f(d=D): return d", "D = 128", "def gelu(x, d=D):\n    return f(), d")
    assert late.value(0) == (64, 128)


def test_an_earlier_definition_does_not_come_back(run):
    """A function that calls itself calls itself, and not an attempt above."""
    found = run("def gelu(x):\n    return 'old'", "def gelu(x):\n    return x and gelu(x - 1)")
    assert found.value(3) == 0 and len(found.ran) == 1
    helpers = "def f(x):\n    return 'old'\ndef f(x):\n    return x and f(x - 1)"
    assert run(helpers, "def gelu(x):\n    return f(x)").value(3) == 0


def test_changes_come_along(run):
    """What binds no name: items, attributes, methods, decorators, a loop, a function's doing."""
    found = run(
        "table = {}\ntable['a'] = 1\ntable.update(b=2)\nn = 1\nn += 1",
        "class A: pass\nA.c = 3",
        "def put(kind, value):\n    kind.d = value\nput(A, 4)",
        "import torch\nw = torch.zeros(1)\nfor p in [w]:\n    p.fill_(5)",
        "def gelu(x):\n    return table, n, A.c, A.d, w.item()",
        "table['c'] = 9",
    )
    assert found.value(0) == ({"a": 1, "b": 2}, 2, 3, 4, 5.0)


def test_a_table_is_filled_by_decorators(run):
    """What a decorator of one's own registers comes along."""
    found = run(
        "parts = {}\ndef part(name):\n    def put(f):\n        parts[name] = f\n        return f\n"
        "    return put",
        "@part('one')\ndef one(): return 1\n@part('two')\ndef two(): return 2",
        "def gelu(x):\n    return [f() for f in parts.values()]",
    )
    assert found.value(0) == [1, 2]


def test_changes_of_the_answer_itself_come_from_below(run):
    """A method that is attached, a registered case; until the name is bound anew."""
    found = run(
        "from functools import singledispatch\n@singledispatch\ndef gelu(x):\n    return 'any'",
        "@gelu.register\ndef _(x: int):\n    return 'int'",
        "for gelu in []: pass",
    )
    assert found.value(1) == "int" and found.value("a") == "any"


def test_functions_of_torch_that_change_values_do_not_change_torch(run):
    """``nn.init.zeros_(w)`` is needed for w, and not for whoever reads nn."""
    cells = "from torch import nn\nlayer = nn.Linear(1, 1)\nnn.init.zeros_(layer.weight)"
    found = run(cells, "def gelu(x):\n    return nn.Identity()(x)")
    assert not any("zeros_" in text for text in found.ran)
    assert any("zeros_" in text for text in run(cells, "def gelu(x):\n    return layer(x)").ran)


def test_a_gradient_comes_along(run):
    """A backward pass changes the values of its cell."""
    cell = "w = torch.ones(1, requires_grad=True)\nloss = 3 * w\nloss.backward()"
    found = run("import torch", cell, "gelu = lambda x: w.grad.item()")
    assert found.value(0) == 3.0


def test_a_seed_of_the_cell_comes_along(run):
    """Numbers are drawn as in the notebook."""
    found = run("import torch", "torch.manual_seed(3)\nw = torch.rand(1)", "gelu = lambda x: w")
    torch.manual_seed(3)
    assert found.value(0) == torch.rand(1)


def test_loops_that_train_stay_out(run):
    """The name that only such a loop binds is missing, and the failure says why."""
    found = run(
        "for step in range(10):\n    loss = step\n    opt.step()", "def gelu(x):\n    return loss"
    )
    with pytest.raises(NameError):
        found.value(0)
    assert found.program.failures == [[["loss", "step"], "a loop that trains makes it", ""]]


def test_loop_variables_do_not_drag_in_other_loops(run):
    """What is above the last certain binding does not run."""
    found = run("for i in range(10**9): pass", "i = 3\nfor i in (4, 5): pass", "gelu = lambda x: i")
    assert found.value(0) == 5 and "for i in range(10**9): pass" not in found.ran


def test_a_value_made_step_by_step_has_all_its_steps(run):
    """Thousands of them, without as many calls inside each other."""
    assert run("x = 1\n" + "x = x + 1\n" * 3_000, "gelu = lambda y: x").value(0) == 3_001


def test_a_caught_missing_name_is_not_swallowed(run):
    """``except NameError`` does not run where the notebook binds the name; nothing runs twice."""
    found = run(
        "calls = []",
        "def one():\n    calls.append(1)\n    try:\n        return ONE\n"
        "    except NameError:\n        return 7",
        "ONE = 1\nvalue = one()",
        "def gelu(x):\n    return value, calls",
    )
    assert found.value(0) == (1, [1])


def test_a_builtin_of_ones_own_wins(run):
    """A helper named ``sum``, and star imports that hide builtins."""
    assert run("def sum(x): return 'own'", "gelu = lambda x: sum(x)").value([1]) == "own"
    starred = run(
        "from math import *", "def pow(*x): return 'own'", "gelu = lambda x: (pi > 3, pow(2, 2))"
    )
    assert starred.value(0) == (True, "own")


def test_a_failed_import_takes_nothing_with_it(run):
    """Of several names only the missing one is lost, and says from where."""
    found = run("from math import pi, no_such", "gelu = lambda x: (pi, no_such)")
    with pytest.raises(NameError):
        found.value(0)
    ((names, why, origin),) = found.program.failures
    assert names == ["no_such"] and why.startswith("ImportError") and origin == "math"


def test_future_features_reach_later_statements(run):
    """An import from the future holds for the whole notebook."""
    found = run("from __future__ import annotations", "def gelu(x: Unknown):\n    return x")
    assert found.value.__annotations__ == {"x": "Unknown"}


def test_errors_name_the_lines_of_the_cell(run):
    """A traceback shows the student's line, by the number in the cell."""
    import traceback

    found = run("\n\ndef gelu(x):\n    return x + undefined  # here\n")
    with pytest.raises(NameError) as caught:
        found.value(1)
    last = traceback.extract_tb(caught.tb)[-1]
    line = "return x + undefined  # here"
    assert (last.lineno, last.line, last.filename) == (4, line, "<answer>")


# --- what stands in ------------------------------------------------------------------------------


def test_own_answers_are_used_unless_references_stand_in(run):
    """First the student's softmax, with his arguments; on request the reference."""
    cells = "def softmax(x, scale=1):\n    return 7 * scale", "gelu = lambda x: softmax(x)"
    assert run(*cells).value(0) == 7
    other = run(*cells, stand_ins=["softmax"])
    assert other.value(torch.zeros(2)).tolist() == [0.5, 0.5]


@pytest.mark.parametrize(
    "line",
    [
        "softmax = solution('softmax')",
        "softmax = report.implementation",
        "from my_vit import softmax",
        "for softmax in (1, 2): pass",
        "softmax = 'a plot'",
        "softmax = softmax(torch.ones(2))",
    ],
)
def test_what_is_no_answer_means_the_students_own(run, line):
    """Wherever it stands; without an own one, the reference."""
    own = run("def softmax(x): return 7", line, "gelu = lambda x: softmax(x)")
    assert own.value(0) == 7
    none = run(line, "gelu = lambda x: softmax(x)")
    assert none.value(torch.zeros(2)).tolist() == [0.5, 0.5]


def test_the_students_own_model_is_what_he_passed(run):
    """``my_vit`` holds his answers that passed, and references for the others."""
    others = [["def softmax(x): return 7"]]
    cells = "import my_vit", "gelu = lambda x: my_vit.softmax(x)"
    assert run(*cells, others=others, own=["softmax"]).value(0) == 7
    assert run(*cells, others=others).value(torch.zeros(1)).tolist() == [1.0]


def test_notebooks_have_namespaces_of_their_own(run):
    """A helper is one's own notebook's; a passed answer, and a lost helper, come from another."""
    others = [["D = 1\ndef helper(): return D", "def softmax(x): return helper()"]]
    cells = "D = 2", "gelu = lambda x: (D, helper(), softmax(x))"
    assert run(*cells, others=others, own=["softmax"]).value(0) == (2, 1, 1)


def test_a_module_that_a_cell_writes_can_be_imported(run):
    """By name, as a module, with a star."""
    module = "%%writefile tools.py\nONE = 1\ndef one():\n    return ONE"
    for cell in ("from tools import one", "import tools\none = tools.one", "from tools import *"):
        found = run(module, cell, "gelu = lambda x: one()")
        assert (found.error, found.value(0)) == (None, 1), cell


def test_an_attempt_is_something_that_can_be_called():
    """A tensor or a string is none; of a value, anything."""
    assert is_attempt(len, "function") and not is_attempt(torch.ones(1), "function")
    assert is_attempt(int, "class") and not is_attempt(torch.nn.Identity(), "class")
    assert is_attempt("a", "value")


def test_global_loads_are_those_of_the_bytecode():
    """More than 255 names, too, and no attribute."""
    text = "\n".join(f"a{i}.b{i}" for i in range(300))
    assert global_loads(compile(text, "", "exec")) == {f"a{i}" for i in range(300)}
