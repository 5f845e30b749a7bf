"""An autograder for Gradescope: the zip file to upload, and the code that runs in it.

Role: ``write_autograder`` makes the zip, and ``grade_container`` grades the one submission of a
container. ``exports`` defines the content of ``results.json``.

Gradescope unpacks the zip in ``/autograder/source``, puts the student's files in
``/autograder/submission``, and shows ``/autograder/results/results.json``. The package runs from
the unpacked folder and is never installed, because answers can read what is installed.

Reference: Gradescope's autograder specifications (gradescope-autograders.readthedocs.io).
"""

import hashlib
import importlib.metadata
import json
import os
import re
import secrets
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path

import vitedu
from vitedu.checks.writing.inputs import SPLIT
from vitedu.exercises import EXERCISES, Exercise, select
from vitedu.grading.grades import SubmissionGrade, not_gradable
from vitedu.grading.intake.submissions import read_folder
from vitedu.grading.pages.exports import gradescope_results
from vitedu.grading.student import Parts, grade_submission
from vitedu.ground.files import replace_file, write_whole

SETTINGS_FILE = "assignment.json"
MAX_METADATA = 2**20  # the most bytes of submission_metadata.json that are read


def write_autograder(
    out: Path, notebooks: Path = Path("notebooks"), exercises: Sequence[Exercise] = EXERCISES
) -> Path:
    """Write the zip file of an autograder.

    Args:
        out: the file, ending in ``.zip``.
        notebooks: the notebooks of the assignment: one of the course's, or a folder of them.
        exercises: which of their exercises are graded.
    """
    from vitedu.course.notebooks import find_notebooks  # needs nbformat, which a container lacks
    from vitedu.grading.adapters.assign import read_template

    out = Path(out)
    if out.suffix != ".zip":
        raise ValueError(f"Gradescope takes a .zip file (got {out}).")
    stems = {path.stem for path in find_notebooks(notebooks)}
    ids = [exercise.id for exercise in exercises if exercise.stem in stems]
    if not ids:
        raise ValueError(f"no notebook in {notebooks} holds one of these exercises.")
    package = Path(vitedu.__file__).parent
    files = {
        "setup.sh": read_template("setup.sh"),
        "run_autograder": read_template("run_autograder.sh"),
        "requirements.txt": "\n".join(requirements()) + "\n",
    }
    kinds = ("*.py", "*.toml", "box/*.txt", "templates/*")
    for path in sorted(path for kind in kinds for path in package.rglob(kind)):
        files[f"vitedu/{path.relative_to(package).as_posix()}"] = path.read_text(encoding="utf-8")
    # All submissions get the same input sizes; the values are drawn for each submission.
    total = hashlib.sha256("\0".join(files.values()).encode()).digest()
    sizes = 1 + int.from_bytes(total[:8], "big") % (SPLIT - 1)
    files[SETTINGS_FILE] = json.dumps({"exercises": ids, "sizes": sizes}) + "\n"
    out.parent.mkdir(parents=True, exist_ok=True)
    with replace_file(out) as new, zipfile.ZipFile(new, "w") as archive:
        for name, text in files.items():
            entry = zipfile.ZipInfo(name)  # dated 1980, so that the same sources make the same zip
            entry.external_attr = (0o755 if text.startswith("#!") else 0o644) << 16
            archive.writestr(entry, text, zipfile.ZIP_DEFLATED)
    return out


def requirements() -> list[str]:
    """List the packages that this package requires, without extras."""
    lines = importlib.metadata.requires("vitedu") or []
    return sorted(line for line in lines if not re.search(r";.*\bextra\b", line))


def grade_container(root: Path) -> dict:
    """Grade ``root/submission``, write ``root/results/results.json`` and return its content.

    Errors are written there as well, because without results Gradescope shows students nothing.
    """
    root = Path(root)
    log: list[str] = []
    settings = json.loads((root / "source" / SETTINGS_FILE).read_text(encoding="utf-8"))
    exercises = select(settings["exercises"])
    student, identity = _read_student(root)
    seed = settings["sizes"] * SPLIT + secrets.randbelow(SPLIT)
    try:
        submission, parts = read_folder(root / "submission", student, identity), Parts()
        unsafe = os.environ.get("VITEDU_ALLOW_UNSAFE") == "1"
        with parts.open_box(allow_unsafe=unsafe) as box:
            grade = grade_submission(submission, exercises, parts, box, seed=seed, log=log.append)
    except (ValueError, OSError) as error:  # for example if answers cannot be isolated
        log.append(str(error))
        grades = [not_gradable(exercise, "grader", str(error)) for exercise in exercises]
        grade = SubmissionGrade(student, [], "", seed, "none", grades, identity=identity)
    results = gradescope_results(grade)
    results["extra_data"] |= {
        "seed": seed,
        "flags": [f"{flag.kind}: {flag.message}" for flag in grade.flags]
        + [f"{e.exercise}, {f.kind}: {f.message}" for e in grade.exercises for f in e.flags],
        "trouble": log,
    }
    (root / "results").mkdir(exist_ok=True)
    write_whole(root / "results" / "results.json", json.dumps(results, indent=1).encode())
    return results


def _read_student(root: Path) -> tuple[str, dict[str, str]]:
    try:
        with (root / "submission_metadata.json").open("rb") as file:
            users = json.loads(file.read(MAX_METADATA))["users"]
        names = ", ".join(str(user["name"]) for user in users)
        return names or "submission", {"email": ", ".join(str(user["email"]) for user in users)}
    except (OSError, ValueError, KeyError, TypeError):
        return "submission", {}


if __name__ == "__main__":
    results = grade_container(Path(sys.argv[1] if len(sys.argv) > 1 else "/autograder"))
    print(f"{results['score']} points; isolation: {results['extra_data']['isolation']}")
    print(*results["extra_data"]["trouble"], sep="\n")
