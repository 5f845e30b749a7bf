"""The submissions of a class, each read at most once.

Role: ``Reading``. It also counts notebooks and compares answers over the whole class. These results
are stored in ``class.json`` with a hash of all files and versions, so that the same command again
reads no notebook. ``extraction`` reads a notebook, ``similarity`` compares answers.
"""

import hashlib
from collections import Counter
from typing import Any

from vitedu.grading.fingerprint import digest_files, versions
from vitedu.grading.grades import Flag, Submission
from vitedu.grading.store import Store
from vitedu.grading.student import Parts, faults
from vitedu.progressbar import ProgressBar

FILE = "class.json"


class Reading:
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
        self._found: dict[str, Any] = {}
        known = store.load_plain(FILE)
        self._known: dict[str, Any] = known if known.get("key") == self._key else {"key": self._key}

    def extraction(self, submission: Submission) -> Any:
        """Read one student's answers.

        Returns:
            From ``Parts.extract``, or None after a fault of the grader. ``grade_submission`` then
            tries again and reports the fault.
        """
        student = submission.student
        if student not in self._found:
            found = None
            with faults(lambda text: None, student, "reading"):
                found = self.parts.extract(submission)
            self._found[student] = found
        return self._found[student]

    def notebooks(self) -> Counter:
        """Count the submissions that contain each of the course's notebooks."""
        if "notebooks" not in self._known:
            held = Counter(name for found in self._all() for name in found.notebooks)
            self._known["notebooks"] = dict(sorted(held.items()))
        return Counter(self._known["notebooks"])

    def flags(self) -> dict[str, list[Flag]]:
        """Compare the class's answers. A fault in doing so is logged and changes no grade."""
        if "flags" not in self._known:
            self._all()
            answers = {s: found.answers for s, found in self._found.items() if found is not None}
            flags = None
            with faults(self.store.log, "the class", "comparing answers"):
                flags = self.parts.compare(answers)
            if flags is None:
                return {}
            self._known["flags"] = {
                student: [[flag.kind, flag.message] for flag in own]
                for student, own in sorted(flags.items())
            }
        return {s: [Flag(*words) for words in own] for s, own in self._known["flags"].items()}

    def keep(self) -> None:
        """Store what was found out about the class.

        Raises:
            OSError: the output folder cannot be written.
        """
        self.store.write_plain(FILE, self._known)

    def _all(self) -> list[Any]:
        bar = ProgressBar(total=len(self.submissions))
        for done, submission in enumerate(self.submissions, 1):
            self.extraction(submission)
            bar.update(done, f"{done} of {len(self.submissions)} submissions read")
        bar.close()
        return [found for found in self._found.values() if found is not None]
