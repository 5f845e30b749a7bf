"""Say what is wrong with the files of the checkers, for ``vitedu lint``.

Role: loads every checker and the words beside it, and lists the problems: the file, what is wrong,
and the remedy. Nothing is judged; that the checkers decide rightly is shown by ``make proof``.
"""

import importlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from vitedu.checks.explaining.diagnose import PART_OF_STAGE
from vitedu.checks.explaining.values import ValueChecker
from vitedu.checks.writing import checker as checkers
from vitedu.checks.writing import mistake_files as files
from vitedu.checks.writing.checker import Checker
from vitedu.checks.writing.mistake_files import words_path
from vitedu.checks.writing.mistakes import Mistake, apply_edits, bare_source, run_source
from vitedu.exercises import EXERCISES, FILE, Exercise
from vitedu.words import WordsError, format_problems, place

CHECKS = Path(checkers.__file__).parents[1]
PARTS = {*PART_OF_STAGE.values(), "values", "returns", "errors"}  # that need no case of their own


def checker_problems(exercises: Sequence[Exercise] = EXERCISES) -> list[str]:
    """List what is wrong with the checkers of exercises and with their words, a line each."""
    paths = [FILE, files.FAMILIES, files.ERRORS, *sorted(CHECKS.glob("*/*.toml"))]
    problems = [line for path in paths if path.is_file() for line in format_problems(path)]
    problems += _check_shared_words()
    for exercise in exercises:
        problems += _check_exercise(exercise)
    return list(dict.fromkeys([*problems, *_find_strays()]))


def _check_shared_words() -> Iterator[str]:
    checks: list[Callable] = [files.check_families, files.read_errors]
    for check in checks:
        try:
            check()
        except WordsError as error:
            yield str(error)


def _find_strays() -> Iterator[str]:
    """Yield the files in the chapters' folders that belong to no exercise."""
    for folder in sorted({exercise.chapter for exercise in EXERCISES}):
        own = {exercise.file_stem for exercise in EXERCISES if exercise.chapter == folder}
        for path in sorted((CHECKS / folder).glob("*.toml")):
            if path.stem not in own:
                yield f"{place(path)}: belongs to no exercise; rename or remove it."


def _check_exercise(exercise: Exercise) -> Iterator[str]:
    path = CHECKS / exercise.chapter / f"{exercise.file_stem}.py"
    if not path.is_file():
        yield f"{place(path)}: there is no checker of {exercise.id}; write it there."
        return
    try:
        module = importlib.import_module(f"vitedu.checks.{exercise.chapter}.{exercise.file_stem}")
    except Exception as error:
        yield f"{place(path)}: cannot be loaded ({_error_line(error)}); correct it."
        return
    if exercise.kind == "value":
        one, name = getattr(module, "CHECKERS", {}).get(exercise.id), f'CHECKERS["{exercise.id}"]'
    else:
        one, name = getattr(module, "CHECKER", None), "CHECKER"
    if not isinstance(one, ValueChecker if exercise.kind == "value" else Checker):
        yield f"{place(path)}: defines no {name}; write one (checks/writing/kit.py shows how)."
        return
    try:
        bank = checkers.read_bank(exercise, module)
    except WordsError as error:
        yield str(error)
        return
    if not bank:
        where = place(words_path(module))
        yield f"{where}: has no mistake of {exercise.id}; write the typical ones."
    if exercise.kind != "value":
        yield from _check_cases(exercise, path)
        yield from _check_edits(exercise, place(words_path(module)), bank)


def _check_cases(exercise: Exercise, path: Path) -> Iterator[str]:
    """Yield what is wrong with the cases of a checker and with the parts of its mistakes."""
    try:
        checker = checkers.find_checker(exercise.id)
        cases = checker.draw(0)
    except Exception as error:
        yield f"{place(path)}: makes no cases ({_error_line(error)}); correct it."
        return
    if not checker.idea.get("values"):
        yield f'{place(path)}: "idea" does not say what "values" shows; add it.'
    parts = {case.part for case in cases} | PARTS
    for mistake in checker.bank:
        if mistake.part not in parts:
            names = ", ".join(sorted(parts))
            yield (
                f"{place(path.with_suffix('.toml'))}, mistake {mistake.id}: no case is of the part "
                f'"{mistake.part}"; the parts are {names}.'
            )


def _check_edits(exercise: Exercise, where: str, bank: Sequence[Mistake]) -> Iterator[str]:
    """Yield the edits that do not fit the reference, or make it no program."""
    text = bare_source(exercise.id)
    mistake_by_text: dict[str, str] = {}  # text -> the mistake that makes it
    for mistake in bank:
        at = f"{where}, mistake {mistake.id}"
        if bool(mistake.edits) == bool(mistake.build):
            yield f"{at}: has edits and build, or neither; give it one of them."
        for edits in (mistake.edits, *mistake.also) if mistake.edits else ():
            try:
                new = apply_edits(text, [edits])
                if new is None or new == text:
                    yield f"{at}: the edits change one place twice, or nothing; correct them."
                    continue
                if new in mistake_by_text:
                    yield f"{at}: makes the same text as {mistake_by_text[new]}; remove one."
                mistake_by_text[new] = mistake.id
                run_source(new, exercise.id, exercise.module)
            except Exception as error:
                yield f"{at}: {_error_line(error)}"


def _error_line(error: Exception) -> str:
    """Write an error in one line."""
    words = " ".join(str(error).split())
    return words if isinstance(error, ValueError) else f"{type(error).__name__}: {words}"
