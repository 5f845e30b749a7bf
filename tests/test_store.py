"""The output folder: names that can do no harm, files that are whole or not there."""

import errno
import os
import subprocess
import sys

import pytest
from made_class import exercise_grade, submission_grade

from vitedu.grading.batch import Store
from vitedu.grading.grades import safe_name
from vitedu.ground.files import UNFINISHED

NASTY = ["../../etc/passwd", "/etc/passwd", "..\\..\\windows", "CON", "aux.txt", "..", "", "   "]
NASTY += ["x" * 5000, "李雷", "a\udcff", "a\0b", "a\nb", "-rf", ".ssh", '*?<>|:"', "C:"]


@pytest.mark.parametrize("student", NASTY, ids=lambda student: ascii(student)[:20])
def test_names_are_plain_and_inside(student, tmp_path):
    """Letters, digits and hyphens alone, short, and the file lies in its folder."""
    name = safe_name(student)
    assert name == name.lower() and name.replace("-", "").isalnum() and name.isascii()
    assert len(name) <= 53 and not name.startswith("-")
    with Store(tmp_path) as store:
        store.save(submission_grade(student))
        assert store.path(student).resolve().parent == (tmp_path / "submissions").resolve()
        assert store.load(student).student == student


def test_names_differ_where_students_do():
    """Also where only letter case, accents or signs differ."""
    students = ["Anna", "anna", "ANNA", "Änna", "an-na", "an na", "Anna ", *NASTY]
    assert len({safe_name(student) for student in students}) == len(students)


def test_grade_comes_back_as_it_was(tmp_path):
    """JSON keeps everything, pictures and odd names too."""
    grade = submission_grade(
        "Zoë \udcff", [exercise_grade(), exercise_grade("unpatchify", "failed", printed="\x1b[1m")]
    )
    with Store(tmp_path) as store:
        store.save(grade)
        assert store.load(grade.student) == grade
        assert list(store.load_all(["nobody", grade.student])) == [grade]


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b"null", b'{"student": "Anna"}', b"\xff\xfe"]
)
def test_file_that_makes_no_sense_is_no_grade(content, tmp_path):
    """It is graded anew instead of stopping the class."""
    with Store(tmp_path) as store:
        store.path("Anna").write_bytes(content)
        assert store.load("Anna") is None


def test_grade_of_another_student_is_no_grade(tmp_path):
    """A file that was copied over another does not count for both."""
    with Store(tmp_path) as store:
        store.save(submission_grade("Anna"))
        os.replace(store.path("Anna"), store.path("Bob"))
        assert store.load("Bob") is None


def test_full_disk_names_the_file_and_the_remedy_and_keeps_the_old_grade(tmp_path, monkeypatch):
    """What was written before stays, nothing half-written is left."""
    with Store(tmp_path) as store:
        store.save(submission_grade(seed=1))
        before = store.path("Anna").read_bytes()

        def full(handle):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        monkeypatch.setattr(os, "fsync", full)
        with pytest.raises(OSError, match=r"No space left.*same command again"):
            store.save(submission_grade(seed=2))
        assert store.path("Anna").read_bytes() == before
        assert not list(tmp_path.rglob(f"*{UNFINISHED}"))


def test_folder_that_cannot_be_made_is_told(tmp_path):
    """A file is in the way."""
    (tmp_path / "out").write_text("a file")
    with pytest.raises(OSError, match=r"out cannot be written"), Store(tmp_path / "out"):
        pass


def test_leftovers_of_a_killed_run_are_removed_and_nothing_else(tmp_path):
    """Only names that the grader gives to temporary files."""
    with Store(tmp_path) as store:
        store.save(submission_grade())
    leftover = tmp_path / "submissions" / f".anna-0123.json{UNFINISHED}"
    leftover.write_text("{")
    (tmp_path / "feedback" / f".a.html{UNFINISHED}").write_text("<")
    (tmp_path / "submissions" / "notes.txt").write_text("mine")
    with Store(tmp_path):
        pass
    names = {path.name for path in tmp_path.rglob("*") if path.is_file()}
    assert names == {".lock", "notes.txt", f"{safe_name('Anna')}.json"}


def test_what_does_not_change_is_not_written(tmp_path):
    """The second writing leaves the file's time alone; a third with other text does not."""
    with Store(tmp_path) as store:
        store.write("grades.csv", "a")
        os.utime(tmp_path / "grades.csv", (1, 1))
        store.write("grades.csv", "a")
        assert (tmp_path / "grades.csv").stat().st_mtime == 1
        store.write("grades.csv", "b")
        assert (tmp_path / "grades.csv").read_text() == "b"


def test_a_damaged_file_is_kept_beside_the_new_one(tmp_path):
    """A person's decisions may stand in it; the log tells of it."""
    with Store(tmp_path) as store:
        store.write_json("decisions.json", {"Anna": {}})
        (tmp_path / "decisions.json").write_text('{"Anna": {')
        assert store.load_json("decisions.json") == store.load_json("decisions.json") == {}
        assert (tmp_path / "decisions.json.damaged").read_text() == '{"Anna": {'
        assert "kept as decisions.json.damaged" in (tmp_path / "grader.log").read_text()


def test_two_graders_do_not_share_a_folder(tmp_path):
    """The second says so; once the first has ended, however it ended, the folder is free."""
    code = "import sys, time; from pathlib import Path; from vitedu.grading.batch import Store\n"
    code += "with Store(Path(sys.argv[1])):\n    print('in', flush=True); time.sleep(60)"
    words = [sys.executable, "-c", code, str(tmp_path)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout.readline() == "in\n"
        with pytest.raises(OSError, match="another grader is at work"), Store(tmp_path):
            pass
        other.kill()
    with Store(tmp_path):
        pass


def test_log_that_can_not_be_written_stops_nothing(tmp_path):
    """A folder is in its place."""
    with Store(tmp_path) as store:
        store.log("one")
        store.log("two \udcff")
        assert (tmp_path / "grader.log").read_text() == "one\ntwo ?\n"
        (tmp_path / "grader.log").unlink()
        (tmp_path / "grader.log").mkdir()
        store.log("three")
