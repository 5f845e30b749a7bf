"""The store of results keeps what it is given, whatever happens to its file."""

import json
import re
import subprocess
import sys

import pytest

from vitedu import exercises
from vitedu.course import calls, kept, results
from vitedu.course.hints import next_hint
from vitedu.exercises import EXERCISES, find
from vitedu.ground import files

PROGRESS = "progress.json"


def report(exercise="patchify", status="passed", points=6, **more):
    """A report of an exercise of six points."""
    return {"exercise": exercise, "status": status, "points": points, "max_points": 6, **more}


@pytest.fixture(autouse=True)
def nothing_said(monkeypatch):
    results._print_once.cache_clear()
    monkeypatch.setattr(results, "_unwritten", {})


def test_load_is_empty_before_anything_happened(store):
    """No file, no results, and reading creates none."""
    assert results.load() == {}
    assert not store.exists()


def test_record_keeps_what_the_report_says(store):
    """Status, points and misconception come back from the file."""
    results.record(report(status="failed", points=2, misconception="columns_first"))
    entry = json.loads((store / PROGRESS).read_text())["exercises"]["patchify"]
    assert entry == results.load()["patchify"]
    assert (entry["status"], entry["points"], entry["max_points"]) == ("failed", 2, 6)
    assert entry["misconception"] == "columns_first"


@pytest.mark.parametrize("later", ["not_attempted", "failed", "error"])
def test_best_survives_a_later_worse_result(later):
    """A passed exercise stays passed in the table when its stub runs again."""
    results.record(report())
    results.record(report(status=later, points=0))
    entry = results.load()["patchify"]
    assert (entry["status"], entry["best"]["status"]) == (later, "passed")
    row = next(line for line in results.table_text().splitlines() if " patchify " in line)
    assert "6/6" in row and "passed" in row and f"latest: {later.replace('_', ' ')}" in row


def test_best_is_replaced_by_a_better_result():
    """More points count, and what is not attempted is the least."""
    results.record(report(status="not_attempted", points=0))
    results.record(report(status="failed", points=3))
    results.record(report(status="failed", points=2))
    entry = results.load()["patchify"]
    assert (entry["best"]["points"], entry["points"]) == (3, 2)


def test_record_ignores_an_unknown_exercise(store):
    """A wrong name is a student's typing error."""
    results.record(report(exercise="pachify"))
    assert not store.exists()


def count_hint(exercise):
    """Take a hint and give its number."""
    return int(re.search(r"hint (\d) of 3", next_hint(find(exercise)))[1])


def test_count_hint_reaches_three_and_stays():
    """The number never exceeds the hints there are."""
    assert [count_hint("patchify") for _ in range(5)] == [1, 2, 3, 3, 3]
    assert results.load()["patchify"]["hints_used"] == 3


def test_two_kernels_that_count_at_once_count_both(monkeypatch):
    """What another kernel stored while this one waited for the lock is counted on."""
    lock = files.file_lock

    def after_the_other(*words):
        monkeypatch.setattr(files, "file_lock", lock)
        assert count_hint("patchify") == 1
        return lock(*words)

    monkeypatch.setattr(files, "file_lock", after_the_other)
    assert count_hint("patchify") == 2


def test_a_file_that_cannot_be_read_for_a_moment_loses_nothing(monkeypatch, capsys):
    """On Windows nobody reads what another program holds; later results join the old ones."""
    results.record(report())
    with monkeypatch.context() as held:
        held.setattr(results.Path, "read_bytes", lambda path: open(path / "held"))
        results.record(report(exercise="unpatchify"))
    assert "cannot be read" in capsys.readouterr().err
    results.record(report(exercise="softmax"))
    assert results.load().keys() == {"patchify", "softmax"}


def test_forget_drops_one_exercise_only():
    """Results and hints of the one are gone, the other stays."""
    results.record(report())
    results.record(report("unpatchify", points=4))
    calls.reset("patchify")
    assert list(results.load()) == ["unpatchify"]
    calls.reset("patchify")  # again: nothing to forget is no error


BEST = b'{"exercises": {"patchify": {"best": {"status": '
DAMAGED = {
    "empty": b"",
    "cut": b"{",
    "binary": b"\xff\xfe\x00",
    "list": b"[]",
    "no names": b'{"exercises": []}',
    "number": b'{"exercises": {"patchify": 3}}',
    "text": BEST + b'"passed", "points": "6"}}}}',
    "challenge": b'{"exercises": {"patchify": {"challenge": {"stopped": 3}}}}',
    "deep": b"[" * 100_000,
    "newer": b'{"version": 2, "exercises": {}}',
}


@pytest.mark.parametrize("content", DAMAGED.values(), ids=DAMAGED)
def test_damaged_file_is_set_aside_and_said(store, capsys, content):
    """Nothing is lost, nothing raises, and the next result is kept."""
    store.mkdir()
    (store / PROGRESS).write_bytes(content)
    results.record(report())
    assert (store / f"{PROGRESS}.damaged-1").read_bytes() == content
    assert "newer vitedu; it is kept as progress.json.damaged-1" in capsys.readouterr().err
    assert results.load()["patchify"]["status"] == "passed"


def test_damaged_files_do_not_replace_each_other(store):
    """The second gets the next number."""
    store.mkdir()
    for content in ("one", "two"):
        (store / PROGRESS).write_text(content)
        assert results.load() == {}
    assert (store / f"{PROGRESS}.damaged-1").read_text() == "one"
    assert (store / f"{PROGRESS}.damaged-2").read_text() == "two"


def test_unwritable_folder_is_said_once_and_results_stay_in_memory(store, capsys):
    """A file stands where the folder should be: no result is lost while the kernel lives."""
    store.write_text("in the way")
    results.record(report())
    assert count_hint("unpatchify") == 1
    assert count_hint("unpatchify") == 2
    assert results.load()["patchify"]["status"] == "passed"
    assert capsys.readouterr().err.count("cannot be written") == 1


def test_results_in_memory_are_written_as_soon_as_the_folder_allows(store):
    """What waited is kept together with the next result."""
    store.write_text("in the way")
    results.record(report())
    store.unlink()
    results.record(report("unpatchify", points=4))
    written = json.loads((store / PROGRESS).read_text())["exercises"]
    assert set(written) == {"patchify", "unpatchify"}


def test_full_disk_leaves_the_old_file_whole(store, monkeypatch, capsys):
    """A write that fails half way changes nothing on disk and leaves no litter."""
    results.record(report())
    before = (store / PROGRESS).read_bytes()

    def no_space(*args, **kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files.os, "fsync", no_space)
    results.record(report("unpatchify", points=4))
    assert (store / PROGRESS).read_bytes() == before
    assert sorted(path.name for path in store.iterdir()) == [PROGRESS, "progress.lock"]
    assert "No space left on device" in capsys.readouterr().err
    assert set(results.load()) == {"patchify", "unpatchify"}


def test_processes_that_write_at_once_lose_nothing(store):
    """Four writers with six exercises each leave 24 results."""
    names = [exercise.id for exercise in EXERCISES][:24]
    code = "import sys; from vitedu.course.results import record\nfor name in sys.argv[1:]:\n    "
    code += "record(dict(exercise=name, status='passed', points=1, max_points=1))"
    shares = [names[start::4] for start in range(4)]
    writers = [subprocess.Popen([sys.executable, "-c", code, *share]) for share in shares]
    assert [writer.wait(timeout=60) for writer in writers] == [0, 0, 0, 0]
    assert set(results.load()) == set(names)


def test_lock_that_is_never_released_only_delays(store, monkeypatch):
    """After its patience the writer goes on; the file is replaced whole."""
    monkeypatch.setattr(results, "LOCK_SECONDS", 0.1)
    store.mkdir()
    with files.file_lock(store / "progress.lock", 1):
        results.record(report())
    assert results.load()["patchify"]["status"] == "passed"


def test_tables_show_every_exercise_and_the_same_points():
    """Text and HTML carry the same rows; the text needs no colour."""
    results.record(
        report(points=2.5, status="failed", headline="<columns> first", misconception="x")
    )
    text, page = results.table_text(), results.progress_html()
    for exercise in EXERCISES:
        assert f" {exercise.id} " in text
        assert f">{exercise.id}<" in page
    assert "2.5/6" in text and "2.5/6" in page
    assert "<columns> first" in text
    assert "&lt;columns&gt; first" in page and "<columns>" not in page


def test_table_of_one_notebook_has_only_its_exercises():
    """The name may be a stem, a file name or a chapter."""
    text = results.table_text("attention")
    assert "softmax" in text and "patchify" not in text
    assert results.table_text("notebooks/02_attention.ipynb") == text
    with pytest.raises(ValueError, match="there are 01_patches"):
        results.table_text("10_nothing")


def test_lines_count_the_core_and_all():
    """A pass with fewer points, as remarks cost them, is a pass; the last line sums all up."""
    results.record(report(points=5.5))
    results.record(report("unpatchify", points=4))
    results.record(report("tokens_at_224", status="failed", points=0))
    own, every = exercises.in_notebook("01_patches"), EXERCISES
    for group, name in ((own, "01_patches"), (every, "all")):
        core = sum(exercise.core for exercise in group)
        points = sum(exercise.points for exercise in group)
        words = f"core 1 of {core}, all 2 of {len(group)}, 9.5 of {points} points"
        assert re.search(rf"^{name} +{words}$", results.table_text(), re.MULTILINE)
        assert f">{words}<" in results.progress_html()
    assert re.search(r"1.1 +patchify +core +5.5/6 +passed$", results.table_text(), re.MULTILINE)
    assert re.search(r"1.5 +unpatchify +4/4 +passed$", results.table_text(), re.MULTILINE)


def next_of(notebook=None):
    """Give the last line, which stands below both tables."""
    line = results.table_text(notebook).splitlines()[-1]
    assert results.progress_html(notebook).endswith(f"<p>{line}</p>")
    return line


def test_next_comes_the_core_from_this_notebook_on_and_then_the_rest():
    """What this file has left, the core of later ones, of earlier ones; then what is no core."""

    def solve(chosen):
        for exercise in chosen:
            results.record(report(exercise.id, points=exercise.points))

    assert next_of() == "next: 1.1 patchify (core, 25 min)"
    assert next_of("02_attention").startswith("next: 2.1 softmax (core, ")
    assert next_of("01_patches_more") == "next: 1.5 unpatchify (more, 13 min)"
    results.record(report())
    assert next_of("01_patches") == next_of() != "next: 1.1 patchify (core, 25 min)"
    solve(exercise for exercise in EXERCISES if exercise.core and "9." not in exercise.number)
    rest = "next: the rest of 01_patches, as far as the picture at its end; then 9.1 "
    assert next_of("01_patches").startswith(rest)  # sections without exercises
    kept.keep(results.ENDS, "01_patches", 1)
    assert next_of("01_patches").startswith("next: 9.1 interpolate_positions (core, ")
    solve(exercise for exercise in EXERCISES if exercise.core)
    assert next_of() == "next: 1.5 unpatchify (more, 13 min)"
    assert next_of("patches") == next_of() and next_of("09_transfer").startswith("next: 9.4 ")
    solve(exercise for exercise in EXERCISES if exercise.notebook == "09_transfer")
    assert next_of("09_transfer") == next_of()
    solve(EXERCISES)
    assert next_of() == "next: nothing; every exercise is passed"
