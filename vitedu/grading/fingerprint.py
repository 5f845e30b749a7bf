"""Hashes of everything that a grade depends on: if the hash is the same, so is the grade.

Role: ``digest_files`` covers what was handed in, ``versions`` the code that judges, and ``digest``
both of them with the options. ``batch`` compares the hashes.
"""

import functools
import hashlib
import platform
from pathlib import Path

from vitedu import __version__
from vitedu.exercises import EXERCISES
from vitedu.grading.grades import Submission
from vitedu.grading.intake.notebook_file import Unreadable, open_regular

# the files whose text decides a grade: what judges, the checkers, their words, the references
SOURCES = [
    *"checks/**/*.py checks/**/*.toml grading/box/*.py grading/intake/*.py".split(),
    *"grading/transport/*.py grading/judge.py grading/student.py grading/grades.py".split(),
    *"exercises.* words.py options.py fast.py".split(),  # the options of models in arguments
    *sorted({f"{exercise.module.removeprefix('vitedu.')}.py" for exercise in EXERCISES}),
]


def digest_files(submission: Submission) -> str:
    """Hash the names and contents of the files that were handed in."""
    total = hashlib.sha256()
    for path in submission.files:
        total.update(path.name.encode("utf-8", "surrogatepass") + b"\0")
        try:
            with open_regular(path) as file:
                while block := file.read(1 << 20):
                    total.update(block)
        except (OSError, Unreadable) as error:
            total.update(f"unreadable: {getattr(error, 'errno', error)}".encode())
        total.update(b"\0")
    return total.hexdigest()


def digest(files: str, *options) -> str:
    """Hash all that the grade of an exercise depends on: files (as hashed), versions, options."""
    words = [f"{name} {version}" for name, version in sorted(versions().items())]
    words += [*map(str, options), files]
    return hashlib.sha256("\0".join(words).encode()).hexdigest()


@functools.cache
def versions() -> dict[str, str]:
    """Return the versions of what judges, with a hash of the references, checkers and grader."""
    import torch

    package = Path(__file__).parents[1]
    total = hashlib.sha256()
    for path in sorted({path for pattern in SOURCES for path in package.glob(pattern)}):
        total.update(path.read_bytes())
    return {
        "vitedu": __version__,
        "checkers": total.hexdigest()[:12],
        "torch": str(torch.__version__),
        "python": platform.python_version(),
    }
