"""The output folder of a graded class: files that are whole or not there.

Role: safe names, writing and reading grades, one lock a folder. Not here: what is in a grade
(``grades``), what a page says (``feedback``, ``class_report``), how a file is replaced in one step
(``vitedu.files``).
"""

import hashlib
import json
import re
import secrets
import threading
import unicodedata
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path

from vitedu.files import UNFINISHED, locked, write_whole
from vitedu.grading.grades import SubmissionGrade

FOLDERS = ("submissions", "feedback", "gradescope")
SECRET = "secret.json"  # not for students: the sizes of the inputs of this class
SPLIT = 2**24  # as in vitedu.checks.inputs, which would load torch


def safe_name(student: str) -> str:
    """Give a file name for a student: plain letters to recognise it, a digest to tell it apart.

    Windows' reserved names, paths, any length and any script are harmless; two students never
    share a name, whatever their files were called and whether or not the disk minds letter case.

    Example:
        >>> safe_name("../../Zoë Müller")
        'zoe-muller-716e91db1b3d'
    """
    digest = hashlib.sha256(student.encode("utf-8", "surrogatepass")).hexdigest()[:12]
    ascii_only = unicodedata.normalize("NFKD", student).encode("ascii", "ignore").decode()
    words = re.sub(r"[^a-z0-9]+", "-", ascii_only.lower()).strip("-")[:40].strip("-")
    return f"{words or 'student'}-{digest}"


class Store:
    """The output folder, held by one grader at a time.

    Args:
        out: the folder; it is made.

    Raises:
        OSError: it cannot be written, or another grader is at work in it.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as out, Store(Path(out)) as store:
        ...     store.write("grades.csv", "student")
        ...     sorted(path.name for path in Path(out).iterdir() if path.is_file())
        ['.lock', 'grades.csv']
    """

    def __init__(self, out: Path):
        self.out = Path(out)
        self._held = ExitStack()
        self._drawing = threading.Lock()

    def __enter__(self) -> "Store":
        try:
            for folder in FOLDERS[:2]:
                (self.out / folder).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise self._trouble(self.out, error) from None
        with ExitStack() as held:
            if not held.enter_context(locked(self.out / ".lock", 0)):
                raise OSError(
                    f"another grader is at work in {self.out}; wait for it, or choose another --out."
                )
            for place in (self.out, *(self.out / folder for folder in FOLDERS)):
                for path in place.glob(f".*{UNFINISHED}"):
                    path.unlink(missing_ok=True)  # of a run that was killed
            self._held = held.pop_all()
        return self

    def __exit__(self, *_) -> None:
        self._held.close()

    # --- grades ----------------------------------------------------------------------------------

    def path(self, student: str) -> Path:
        """Give the place of a student's JSON file."""
        return self.out / "submissions" / f"{safe_name(student)}.json"

    def load(self, student: str) -> SubmissionGrade | None:
        """Read a grade back; None where there is none, or none that makes sense."""
        try:
            grade = SubmissionGrade.from_dict(json.loads(self.path(student).read_bytes()))
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return None
        return grade if grade.student == student else None

    def load_all(self, students: Iterable[str]) -> Iterator[SubmissionGrade]:
        """Read grades one after the other, so that a class never lies in memory as a whole."""
        for student in students:
            grade = self.load(student)
            if grade is not None:
                yield grade

    def save(self, grade: SubmissionGrade) -> None:
        """Write a grade, as one step.

        Raises:
            OSError: it cannot be written; an earlier file stays as it was.
        """
        text = json.dumps(grade.to_dict(), indent=1, allow_nan=False)
        self._replace(self.path(grade.student), text.encode())

    # --- what is made from grades ----------------------------------------------------------------

    def write(self, name: str, text: str) -> None:
        """Write a file that can be made again; one that would not change is left alone.

        Args:
            name: its path inside the output folder, made of safe names.
            text: written as UTF-8.

        Raises:
            OSError: it cannot be written; an earlier file stays as it was.
        """
        path, content = self.out / name, text.encode("utf-8", "replace")
        try:
            if path.read_bytes() == content:
                return
        except OSError:
            pass
        self._replace(path, content)

    def load_plain(self, name: str) -> dict:
        """Read a JSON object back; an empty one where there is none that makes sense."""
        try:
            data = json.loads((self.out / name).read_bytes())
        except (OSError, ValueError, RecursionError):
            return {}
        return data if isinstance(data, dict) else {}

    def write_plain(self, name: str, data: dict) -> None:
        """Write a JSON object; see ``write``."""
        self.write(name, json.dumps(data, indent=1, sort_keys=True))

    def class_secret(self) -> int:
        """Give the number that the sizes of this class are drawn from; it is drawn once and kept."""
        with self._drawing:
            known = self.load_plain(SECRET).get("sizes")
            if type(known) is not int or not 0 < known < SPLIT:
                known = 1 + secrets.randbelow(SPLIT - 1)
                self.write_plain(SECRET, {"sizes": known})
            return known

    def log(self, text: str) -> None:
        """Add lines to ``grader.log``. A log that cannot be written stops nothing."""
        try:
            with open(self.out / "grader.log", "a", encoding="utf-8", errors="replace") as file:
                file.write(text.rstrip() + "\n")
        except OSError:
            pass

    def _replace(self, path: Path, content: bytes) -> None:
        try:
            path.parent.mkdir(exist_ok=True)
            write_whole(path, content)
        except OSError as error:
            raise self._trouble(path, error) from None

    def _trouble(self, path: Path, error: OSError) -> OSError:
        return OSError(
            f"{path} cannot be written ({error.strerror or error}). Every grade in "
            f"{self.out / 'submissions'} is whole; make room or choose another --out and give the "
            "same command again: it goes on where it stopped."
        )
