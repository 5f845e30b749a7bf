"""The submissions of a class, each read at most once.

Role: ``ClassReader``. It also counts notebooks and compares answers over the whole class. These
results are stored in ``class.json`` with a hash of all files and versions, so that the same command
again reads no notebook. ``reading`` reads a submission, ``similarity`` compares answers.
"""

import hashlib
from collections import Counter
from typing import Any

from vitedu.grading.fingerprint import digest_files, versions
from vitedu.grading.grades import Flag, Submission
from vitedu.grading.store import Store
from vitedu.grading.student import Parts, catch_faults
from vitedu.progressbar import ProgressBar

FILE = "class.json"


class ClassReader:
    """The submissions of a class and their content. Several threads may call ``extraction``.

    Attributes:
        files: student -> digest of the files, computed before they are read.
    """

    def __init__(self, submissions: list[Submission], parts: Parts, store: Store):
        self.submissions, self.parts, self.store = submissions, parts, store
        self.files = {each.student: digest_files(each) for each in submissions}
        words = [f"{student!a} {digest}" for student, digest in sorted(self.files.items())]
        words += [f"{name} {version}" for name, version in sorted(versions().items())]
        self._key = hashlib.sha256("\n".join(words).encode()).hexdigest()
        self._extractions: dict[str, Any] = {}
        data = store.load_json(FILE)
        self._results: dict[str, Any] = data if data.get("key") == self._key else {"key": self._key}

    def extraction(self, submission: Submission) -> Any:
        """Read one student's answers.

        Returns:
            From ``Parts.extract``, or None after a fault of the grader. ``grade_submission`` then
            tries again and reports the fault.
        """
        student = submission.student
        if student not in self._extractions:
            result = None
            with catch_faults(lambda text: None, student, "reading"):
                result = self.parts.extract(submission)
            self._extractions[student] = result
        return self._extractions[student]

    def notebooks(self) -> Counter:
        """Count the submissions that contain each of the course's notebooks."""
        if "notebooks" not in self._results:
            counts = Counter(name for each in self._extract_all() for name in each.notebooks)
            self._results["notebooks"] = dict(sorted(counts.items()))
        return Counter(self._results["notebooks"])

    def flags(self) -> dict[str, list[Flag]]:
        """Compare the class's answers. A fault in doing so is logged and changes no grade."""
        if "flags" not in self._results:
            self._extract_all()
            answers = {s: each.answers for s, each in self._extractions.items() if each is not None}
            flags = None
            with catch_faults(self.store.log, "the class", "comparing answers"):
                flags = self.parts.compare(answers)
            if flags is None:
                return {}
            self._results["flags"] = {
                student: [[flag.kind, flag.message] for flag in own]
                for student, own in sorted(flags.items())
            }
        return {s: [Flag(*words) for words in own] for s, own in self._results["flags"].items()}

    def save(self) -> None:
        """Store what was found out about the class.

        Raises:
            OSError: the output folder cannot be written.
        """
        self.store.write_json(FILE, self._results)

    def _extract_all(self) -> list[Any]:
        bar = ProgressBar(total=len(self.submissions))
        for done, submission in enumerate(self.submissions, 1):
            self.extraction(submission)
            bar.update(done, f"{done} of {len(self.submissions)} submissions read")
        bar.close()
        return [each for each in self._extractions.values() if each is not None]
