"""Show the verdict of every part for every answer in a file.

Role: a tool for authors of exercises. ``make proof ANSWERS=my_answers.py`` judges each top-level
name that is an exercise's id. A name may go on with two underscores and more
(``patchify__by_loops``), so that one file can hold several answers. The file is executed, so it
must be trusted.
"""

import ast
import json
import sys
import types
from pathlib import Path

from vitedu import exercises
from vitedu.checks.engine import judge_answer
from vitedu.checks.writing.checker import find_checker
from vitedu.course.parsing import parse


def load_answers(path: Path) -> dict[str, object]:
    """Execute a Python file, or the definitions of a notebook, and return its top-level names.

    In a notebook only imports, functions, classes and the assignments of answer cells are executed,
    so its checks and pictures do not run.

    Raises:
        ValueError: the file is neither of the two, or does not exist.
    """
    if path.suffix not in (".py", ".ipynb"):
        raise ValueError(f"{path.name} is neither a .py file nor a notebook.")
    if not path.is_file():
        raise ValueError(f"there is no file {path}.")
    text = path.read_text(encoding="utf-8")
    module = types.ModuleType("audited_answers")
    module.__file__ = str(path)
    sys.modules[module.__name__] = module  # inspect and dataclasses look it up there
    if path.suffix == ".py":
        exec(compile(text, str(path), "exec"), module.__dict__)
        return dict(vars(module))
    for number, cell in enumerate(json.loads(text)["cells"]):
        if cell["cell_type"] == "code":
            is_answer = "exercise" in cell.get("metadata", {}).get("vitedu", {})
            _run_definitions(
                "".join(cell["source"]), f"{path.name}, cell {number}", module, is_answer
            )
    return dict(vars(module))


def _run_definitions(source: str, name: str, module: types.ModuleType, is_answer: bool) -> None:
    kinds = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.ClassDef)
    try:
        body = parse(source).body
    except SyntaxError as error:
        print(f"{name}: left out, {error.msg} in line {error.lineno}")
        return
    for node in body:
        if not isinstance(node, kinds) and not (is_answer and isinstance(node, ast.Assign)):
            continue
        try:
            exec(compile(ast.Module([node], []), name, "exec"), module.__dict__)
        except Exception as error:
            print(f"{name}: line {node.lineno} left out, {type(error).__name__}: {error}")


def main_audit(path: Path, num_seeds: int) -> int:
    """Print a table of verdicts; return 0 if every answer passed on every seed, else 1."""
    answers = [
        (name, name.split("__")[0], value)
        for name, value in load_answers(path).items()
        if name.split("__")[0] in exercises.BY_ID
    ]
    if not answers:
        raise ValueError(
            f"{path.name} defines no answer: name it after an exercise "
            "(patchify, patchify__by_loops); `vitedu list` shows the ids."
        )
    all_passed = True
    for name, exercise_id, value in answers:
        checker = find_checker(exercise_id)
        reports = [judge_answer(checker, value, seed) for seed in range(num_seeds)]
        passed = sum(report.passed for report in reports)
        all_passed &= passed == num_seeds
        first_failure = next((report for report in reports if not report.passed), reports[0])
        points = f"{first_failure.points:g}/{first_failure.max_points:g} points"
        print(f"{name}: passed {passed}/{num_seeds} seeds, {points}")
        for index, finding in enumerate(first_failure.findings):
            count = sum(
                report.findings[index].passed for report in reports if len(report.findings) > index
            )
            print(f"  {finding.mark} {finding.name:<20} {count}/{num_seeds}   {finding.message}")
        names = sorted({id_ for report in reports for id_ in report.misconceptions})
        print(f"  named: {', '.join(names) or 'nothing'}\n")
    return 0 if all_passed else 1
