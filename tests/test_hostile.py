"""Texts and files that are made to stop a grader: each is read in little time, or is a finding."""

import json
import subprocess
import sys
import time
from dataclasses import asdict
from pathlib import Path

import hostile
import pytest

from vitedu.grading.batch import digest_files
from vitedu.grading.grades import REASONS, Answer, Flag, Submission, from_plain
from vitedu.grading.intake import reading
from vitedu.grading.intake.extraction import Extraction
from vitedu.grading.intake.reading import read_submission
from vitedu.grading.intake.submissions import find_submissions

pytestmark = pytest.mark.slow  # each file is read in a process of its own


def read(folder):
    """Read one student's folder as the grader does."""
    (submission,) = find_submissions(folder).submissions
    return submission, read_submission(submission)


@pytest.mark.parametrize("kind", hostile.TEXTS)
def test_a_text_is_read_in_linear_time(kind, tmp_path):
    """Its work does not double with each level, so that the answer is found."""
    hostile.hand_in(tmp_path, kind)
    _, found = read(tmp_path)
    assert "patchify" in found.answers, found.problems["patchify"]


@pytest.mark.parametrize("kind", hostile.FILES)
def test_a_file_is_read_or_is_a_finding(kind, tmp_path):
    """What cannot be read has a reason that a person understands, whatever it is."""
    hostile.hand_in(tmp_path, kind)
    submission, found = read(tmp_path)
    assert len(digest_files(submission)) == len(submission.files)
    if "patchify" in found.answers:
        return
    reason, words = found.problems["patchify"]
    assert reason in REASONS and found.flags and "computing time" not in words


# --- a process that dies -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("limit", "amount", "words"),
    [
        ("CPU_SECONDS", 0, "took more than 0 s of computing time"),
        ("WALL_SECONDS", 0.0, "took more than 0 s"),
        ("MAX_REPLY", 0, "gave more than can be kept"),
    ],
)
def test_beyond_a_limit_reading_ends_and_says_so(limit, amount, words, tmp_path, monkeypatch):
    """The student's exercises are open with the reason, flags and files stay, the next is read."""
    hostile.hand_in(tmp_path / "first", "chained targets")
    hostile.hand_in(tmp_path / "next", "names")
    (mallory,) = find_submissions(tmp_path / "first").submissions
    with monkeypatch.context() as patch:
        patch.setattr(reading, limit, amount)
        found = read_submission(
            Submission("mallory", mallory.files, {}, (Flag("late", "by a day"),))
        )
    assert found.answers == {} and found.notebooks == {"01_patches"}
    assert found.problems["patchify"] == ("unreadable", f"reading what was handed in {words}")
    assert [flag.kind for flag in found.flags] == ["late", "unreadable"]
    assert "patchify" in read(tmp_path / "next")[1].answers


@pytest.mark.skipif(sys.platform != "linux", reason="needs a limit on memory")
def test_memory_is_limited(tmp_path, monkeypatch):
    """A file that needs more is a finding of its own."""
    hostile.hand_in(tmp_path, "many keys")
    monkeypatch.setattr(reading, "MEMORY_MB", 0)
    reason, words = read(tmp_path)[1].problems["patchify"]
    assert reason == "unreadable" and "memory" in words


def test_a_fault_of_the_grader_is_told_with_its_lines():
    """It is no finding of a submission."""
    with pytest.raises(RuntimeError, match="(?s)Traceback.*TypeError"):
        reading.call(reading.extract_plain, [{"student": ""}, []])


PARENT = """
import sys
from vitedu.grading.intake import reading
words = "import os, time; os.mkdir(f'{}/{os.getpid()}'); time.sleep(60)"
reading.call(exec, words.replace("{}", sys.argv[1]))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_reading_ends_with_its_parent(tmp_path):
    """Also where the parent is killed: nothing goes on reading."""
    with subprocess.Popen([sys.executable, "-c", PARENT, tmp_path]) as parent:
        for _ in range(600):
            if pids := [path.name for path in tmp_path.iterdir()]:
                break
            time.sleep(0.1)
        stat = Path(f"/proc/{pids[0]}/stat")
        assert stat.exists()
        parent.kill()
    for _ in range(300):
        if not stat.exists() or stat.read_text().rsplit(")", 1)[1].split()[0] == "Z":
            return
        time.sleep(0.1)
    raise AssertionError("it goes on reading")


def test_a_submission_and_what_was_found_in_it_come_back_as_they_were():
    """Also with names that are no text; as JSON between processes."""
    flag = Flag("late", "by a \udcff")
    given = Submission("a\udcff", (Path("b\udcff.ipynb"),), {"canvas_id": "7"}, (flag,))
    data = json.loads(json.dumps(asdict(given), default=str))
    assert from_plain(Submission, data) == given
    answer = Answer("gelu", "x", flags=(flag,), cell=3, tokens=90, digest="0f")
    found = Extraction({"gelu": answer}, {"softmax": ("no_cell", "")}, [flag], {"03_encoder"})
    data = json.loads(json.dumps(asdict(found), default=list))
    assert from_plain(Extraction, data) == found
