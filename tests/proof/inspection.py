"""Say what is wrong with the files of the checkers, for ``make lint``.

Role: loads every checker and the words beside it, makes every known mistake, and lists what fails:
the file, what is wrong, and the remedy. Nothing is judged; that the checkers decide rightly is
shown by ``make proof``.
"""

import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import vitedu
from vitedu.checks.explaining.diagnose import PART_OF_STAGE
from vitedu.checks.writing import checker as checkers
from vitedu.checks.writing import mistake_files as files
from vitedu.checks.writing.mistakes import Mistake, apply_mistakes
from vitedu.exercises import EXERCISES, Exercise
from vitedu.ground.words import WordsError, read

PARTS = {*PART_OF_STAGE.values(), "values", "returns", "errors"}  # that need no case of their own


def checker_problems(exercises: Sequence[Exercise] = EXERCISES) -> list[str]:
    """List what is wrong with the checkers of exercises and with their words, a line each."""
    problems = _collect("shared words", _read_shared)
    for exercise in exercises:
        stem = f"vitedu/checks/{exercise.chapter}/{exercise.file_stem}"
        problems += _collect(f"{stem}.py", _inspect, exercise, f"{stem}.toml")
    return list(dict.fromkeys(problems))


def _collect(where: str, look: Callable[..., Iterator[str] | None], *words) -> list[str]:
    """Give the problems that a look finds, or the one that stops it."""
    try:
        return list(look(*words) or ())
    except WordsError as error:
        return [str(error)]
    except Exception as error:
        return [f"{where}: {type(error).__name__}: {' '.join(str(error).split())}; correct it."]


def _read_shared() -> None:
    files.read_reports()
    tables = files.read_families()
    for name in tables["family"]:
        files.family(name)
    for name in tables["bank"]:
        files.check_unique("families.toml", files.shared_bank(name))
    files.read_errors()


def _inspect(exercise: Exercise, path: str) -> Iterator[str]:
    """Yield what is wrong with the known mistakes of an exercise."""
    checker = checkers.find_checker(exercise.id)
    if not checker.bank:
        yield f"{path}: has no mistake of {exercise.id}; write the typical ones."
    if exercise.kind == "value":
        return
    parts = {case.part for case in checker.draw(0)} | PARTS
    if not checker.idea.get("values"):
        yield f'{path}: "idea" does not say what "values" shows; add it.'
    for part in {*checker.idea, *checker.polish} - parts - {"allowed operations"}:
        yield f'{path}: no case is of the part "{part}"; the parts are {", ".join(sorted(parts))}.'
    if "accepts" not in read(Path(vitedu.__file__).parents[1] / path):
        yield f"{path}: has no [accepts]; the docstring of tests/proof/test_accepts.py explains it."
    proof = Path(__file__).parent / exercise.chapter / f"{exercise.file_stem}.py"
    if not proof.exists():
        yield f"tests/proof/{exercise.chapter}/{proof.name}: is missing; write right answers there."
    for mistake in checker.bank:
        where = f"{path}, mistake {mistake.id}"
        if mistake.part not in parts:
            names = ", ".join(sorted(parts))
            yield f'{where}: no case is of the part "{mistake.part}"; the parts are {names}.'
        if not mistake.edits:
            yield f"{where}: has no edits; write them."
        yield from _collect(where, _make, exercise, mistake)


def _make(exercise: Exercise, mistake: Mistake) -> None:
    for one in mistake.variants() if mistake.edits else ():
        apply_mistakes(exercise.id, [one.edits])


if __name__ == "__main__":
    print(*(found := checker_problems()), f"checkers: {len(found)} problems", sep="\n")
    sys.exit(bool(found))
