"""Classroom 50's autograder, the open successor of GitHub Classroom: one student's repository.

Role: ``read_checkout`` takes the place of ``find_submissions`` for ``vitedu grade . --for
classroom``, which runs in the student's repository; ``exports.classroom_results`` defines the
``classroom.json`` to copy to ``result.json``. In ``autograder.py`` of an assignment::

    run = [sys.executable, "-m", "vitedu", "grade", ".", "--out", "/tmp/grades"]
    subprocess.run([*run, "--for", "classroom", "--notebook", "01_patches"], check=True)
    shutil.copy("/tmp/grades/classroom.json", "result.json")
"""

import os
from pathlib import Path

from vitedu.grading.intake.submissions import Intake, read_folder


def read_checkout(folder: Path) -> Intake:
    """Read a repository as the submission of its owner, whom the runner names."""
    return Intake([read_folder(folder, os.environ.get("OWNER") or "student")], [])
