"""The output folder of a graded class. A file in it is complete or does not exist.

Role: safe file names, writing and reading grades, and the lock of the folder. ``grades`` defines
what a grade is, ``pages`` writes reports, and ``vitedu.files`` replaces a file in one step.
"""

import hashlib
import json
import os
import re
import secrets
import threading
import unicodedata
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict
from pathlib import Path

from vitedu.files import UNFINISHED, file_lock, write_whole
from vitedu.grading.grades import SubmissionGrade

SAFE_NAME = re.compile(r"[a-z0-9-]+-[0-9a-f]{12}")
FOLDERS = ("submissions", "feedback", "gradescope")
SECRET = "secret.json"  # decides the sizes of this class's inputs; students may not see it
TABLES = "tables.json"  # what the tables hold: exercises, and the name of Canvas's column
SPLIT = 2**24  # equals vitedu.checks.writing.inputs.SPLIT, whose import would load torch


def safe_name(student: str) -> str:
    """Make a file name for a student: ASCII letters of the name, and a digest that is unique.

    It is safe for any name: paths, Windows' reserved names, any length, any script, and file
    systems that ignore letter case.

    Example:
        >>> safe_name("../../Zoë Müller")
        'zoe-muller-716e91db1b3d'
    """
    digest = hashlib.sha256(student.encode("utf-8", "surrogatepass")).hexdigest()[:12]
    ascii_only = unicodedata.normalize("NFKD", student).encode("ascii", "ignore").decode()
    words = re.sub(r"[^a-z0-9]+", "-", ascii_only.lower()).strip("-")[:40].strip("-")
    return f"{words or 'student'}-{digest}"


class Store:
    """The output folder, locked by one grader at a time.

    Args:
        out: the folder; it is created.

    Raises:
        OSError: it cannot be written, or another grader has locked it.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as out, Store(Path(out)) as store:
        ...     store.write("grades.csv", "student")
        ...     sorted(path.name for path in Path(out).iterdir() if path.is_file())
        ['.lock', 'grades.csv']
    """

    def __init__(self, out: Path):
        self.out = Path(out)
        self._stack = ExitStack()
        self._secret_lock = threading.Lock()

    def __enter__(self) -> "Store":
        with self._explain(self.out):
            for folder in FOLDERS[:2]:
                (self.out / folder).mkdir(parents=True, exist_ok=True)
        with ExitStack() as stack:
            if not stack.enter_context(file_lock(self.out / ".lock", 0)):
                raise OSError(
                    f"another grader is at work in {self.out}; wait for it, or choose another "
                    "--out."
                )
            for place in (self.out, *(self.out / folder for folder in FOLDERS)):
                for path in place.glob(f".*{UNFINISHED}"):
                    path.unlink(missing_ok=True)  # left by a run that was killed
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_) -> None:
        self._stack.close()

    # --- grades ----------------------------------------------------------------------------------

    def path(self, student: str) -> Path:
        """Return the path of a student's JSON file."""
        return self.out / "submissions" / f"{safe_name(student)}.json"

    def load(self, student: str) -> SubmissionGrade | None:
        """Read a grade; None if there is no valid one."""
        try:
            grade = SubmissionGrade.from_dict(json.loads(self.path(student).read_bytes()))
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return None
        return grade if grade.student == student else None

    def load_all(self, students: Iterable[str]) -> Iterator[SubmissionGrade]:
        """Read grades one at a time, so that the whole class is never in memory."""
        for student in students:
            if (grade := self.load(student)) is not None:
                yield grade

    def save(self, grade: SubmissionGrade) -> None:
        """Write a grade in one step.

        Raises:
            OSError: it cannot be written; an earlier file stays unchanged.
        """
        text = json.dumps(asdict(grade), indent=1, allow_nan=False)
        self._replace(self.path(grade.student), text.encode())

    # --- other files -----------------------------------------------------------------------------

    def write(self, name: str, text: str) -> None:
        """Write a file in one step, unless its content would stay the same.

        Args:
            name: its path inside the output folder, made of safe names.
            text: the content, written as UTF-8.

        Raises:
            OSError: it cannot be written; an earlier file stays unchanged.
        """
        path, content = self.out / name, text.encode("utf-8", "replace")
        with suppress(OSError):
            if path.read_bytes() == content:
                return
        self._replace(path, content)

    def remove_others(self, folder: str, ending: str, students: Iterable[str]) -> None:
        """Remove files of students who are no longer in the class; files of other names stay."""
        known = {safe_name(student) for student in students}
        for path in (self.out / folder).glob(f"*{ending}"):
            if SAFE_NAME.fullmatch(path.stem) and path.stem not in known:
                with self._explain(path):
                    path.unlink(missing_ok=True)

    def load_json(self, name: str) -> dict:
        """Read a JSON object; an empty dict if there is none. A damaged file is kept beside it."""
        path = self.out / name
        try:
            data = json.loads(path.read_bytes())
        except OSError:
            return {}
        except (ValueError, RecursionError):
            data = None
        if isinstance(data, dict):
            return data
        with suppress(OSError):  # what a person decided may stand in it
            os.replace(path, f"{path}.damaged")
            self.log(f"{name} is no JSON object; it is kept as {name}.damaged")
        return {}

    def write_json(self, name: str, data: dict) -> None:
        """Write a JSON object; see ``write``."""
        self.write(name, json.dumps(data, indent=1, sort_keys=True))

    def class_secret(self) -> int:
        """Return the secret seed of this class's input sizes, which is drawn once and stored."""
        with self._secret_lock:
            sizes = self.load_json(SECRET).get("sizes")
            if type(sizes) is not int or not 0 < sizes < SPLIT:
                sizes = 1 + secrets.randbelow(SPLIT - 1)
                self.write_json(SECRET, {"sizes": sizes})
            return sizes

    def log(self, text: str) -> None:
        """Add lines to ``grader.log``; do nothing if it cannot be written."""
        path = self.out / "grader.log"
        with suppress(OSError), path.open("a", encoding="utf-8", errors="replace") as file:
            file.write(text.rstrip() + "\n")

    def _replace(self, path: Path, content: bytes) -> None:
        with self._explain(path):
            path.parent.mkdir(exist_ok=True)
            write_whole(path, content)

    @contextmanager
    def _explain(self, path: Path) -> Iterator[None]:
        """Name the file that cannot be written, and the remedy."""
        try:
            yield
        except OSError as error:
            raise OSError(
                f"{path} cannot be written ({error.strerror or error}). Every grade in "
                f"{self.out / 'submissions'} is whole; make room or choose another --out and give "
                "the same command again: it goes on where it stopped."
            ) from None
