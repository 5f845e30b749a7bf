"""An autograder for Gradescope: a zip file to upload, and what runs in it.

Role: ``write_autograder`` (makes the zip) and ``grade_here`` (grades the one submission of a container). Not here: the
form of ``results.json`` (``exports``); judging.

On Gradescope the zip lies unpacked in ``/autograder/source``, the student's files in ``/autograder/submission``, and
``/autograder/results/results.json`` is what is shown. The package is run from there and never installed, since what lies
among the libraries can be read by the answers.

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
from pathlib import Path

import vitedu
from vitedu.exercises import EXERCISES, Exercise, notebook_named
from vitedu.files import replacing, write_whole
from vitedu.grading.grades import SubmissionGrade
from vitedu.grading.intake.submissions import whole_folder
from vitedu.grading.pages.exports import gradescope_results
from vitedu.grading.store import SPLIT
from vitedu.grading.student import grade_submission, not_gradable, real_parts

SETTINGS = "assignment.json"
MAX_METADATA = 2**20  # bytes of submission_metadata.json that are read

SETUP = """\
#!/usr/bin/env bash
# Run once, as root, when Gradescope builds the image. VITEDU_PYTHON names a Python that has everything already.
set -euo pipefail
root="${AUTOGRADER_ROOT:-/autograder}"
if [ -n "${VITEDU_PYTHON:-}" ]; then
  exit 0
fi
apt-get update
apt-get install -y --no-install-recommends python3 python3-venv bubblewrap
python3 -m venv "$root/venv"
"$root/venv/bin/python" -m pip install --no-cache-dir --requirement "$root/source/requirements.txt"
"""

RUN = """\
#!/usr/bin/env bash
# Run for each submission. The sources hold the references: nobody but this user may read them.
set -euo pipefail
root="${AUTOGRADER_ROOT:-/autograder}"
chmod -R go-rwx "$root/source" "$root/results"
export PYTHONPATH="$root/source" PYTHONDONTWRITEBYTECODE=1 OMP_NUM_THREADS="${OMP_NUM_THREADS:-1}"
exec "${VITEDU_PYTHON:-$root/venv/bin/python}" -m vitedu.grading.adapters.gradescope "$root"
"""


def write_autograder(out: Path, notebooks: Path = Path("notebooks")) -> Path:
    """Write the zip file of an autograder.

    Args:
        out: the file, ending in ``.zip``.
        notebooks: a notebook of the course or a folder of them: what the assignment asks for.

    Returns:
        The file.

    Raises:
        ValueError: another ending, or a notebook that is not the course's.
        FileNotFoundError: as ``find_notebooks``.
    """
    from vitedu.course.notebooks import find_notebooks  # nbformat: not in the container

    out = Path(out)
    if out.suffix != ".zip":
        raise ValueError(f"Gradescope takes a .zip file (got {out}).")
    names = [notebook_named(path.name) for path in find_notebooks(notebooks)]
    package = Path(vitedu.__file__).parent
    files = {
        "setup.sh": SETUP,
        "run_autograder": RUN,
        "requirements.txt": "\n".join(requirements()) + "\n",
    }
    for path in sorted([*package.rglob("*.py"), *package.rglob("templates/*")]):
        files[f"vitedu/{path.relative_to(package).as_posix()}"] = path.read_text(encoding="utf-8")
    # one number for all who hand in; the values of the inputs are drawn for each of them
    total = hashlib.sha256("\0".join(files.values()).encode()).digest()
    sizes = 1 + int.from_bytes(total[:8], "big") % (SPLIT - 1)
    files[SETTINGS] = json.dumps({"notebooks": names, "sizes": sizes}) + "\n"
    out.parent.mkdir(parents=True, exist_ok=True)
    with replacing(out) as new, zipfile.ZipFile(new, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            entry = zipfile.ZipInfo(name)  # of 1980: the same sources make the same file
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (0o755 if text.startswith("#!") else 0o644) << 16
            archive.writestr(entry, text)
    return out


def requirements() -> list[str]:
    """List what the package needs, without its extras."""
    wanted = importlib.metadata.requires("vitedu") or []
    return sorted(line for line in wanted if not re.search(r";.*\bextra\b", line))


def grade_here(root: Path) -> dict:
    """Grade ``root/submission`` and write ``root/results/results.json``. Gives what it wrote.

    Whatever goes wrong is written there as well: a container without results shows students nothing.
    """
    root = Path(root)
    trouble: list[str] = []
    settings = json.loads((root / "source" / SETTINGS).read_text(encoding="utf-8"))
    exercises = [exercise for exercise in EXERCISES if exercise.notebook in settings["notebooks"]]
    student, identity = _student(root)
    seed = settings["sizes"] * SPLIT + secrets.randbelow(SPLIT)
    try:
        submission, parts = whole_folder(root / "submission", student, identity), real_parts()
        unsafe = os.environ.get("VITEDU_ALLOW_UNSAFE") == "1"
        with parts.open_box(allow_unsafe=unsafe) as box:
            grade = grade_submission(
                submission, exercises, parts, box, seed=seed, log=trouble.append
            )
    except (ValueError, OSError) as error:  # nothing that can isolate answers, say
        trouble.append(str(error))
        grade = _ungraded(exercises, student, identity, seed, str(error))
    results = gradescope_results(grade)
    results["extra_data"] |= {
        "seed": seed,
        "flags": [f"{flag.kind}: {flag.message}" for flag in grade.flags]
        + [f"{e.exercise}, {f.kind}: {f.message}" for e in grade.exercises for f in e.flags],
        "trouble": trouble,
    }
    folder = root / "results"
    folder.mkdir(exist_ok=True)
    write_whole(folder / "results.json", json.dumps(results, indent=1).encode())
    return results


def _student(root: Path) -> tuple[str, dict[str, str]]:
    """Read who handed in, where Gradescope tells."""
    try:
        with (root / "submission_metadata.json").open("rb") as file:
            users = json.loads(file.read(MAX_METADATA))["users"]
        names = ", ".join(str(user["name"]) for user in users)
        return names or "submission", {"email": ", ".join(str(user["email"]) for user in users)}
    except (OSError, ValueError, KeyError, TypeError):
        return "submission", {}


def _ungraded(
    exercises: list[Exercise], student: str, identity: dict[str, str], seed: int, why: str
) -> SubmissionGrade:
    """Say for every exercise that the grader could not work."""
    grades = [not_gradable(exercise, "grader", why) for exercise in exercises]
    return SubmissionGrade(student, [], "", seed, "none", grades, identity=identity)


if __name__ == "__main__":
    written = grade_here(Path(sys.argv[1] if len(sys.argv) > 1 else "/autograder"))
    print(f"{written['score']} points; isolation: {written['extra_data']['isolation']}")
    print(*written["extra_data"]["trouble"], sep="\n")
