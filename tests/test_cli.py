"""The command line answers at once, says in one line what is wrong, and has a reliable status."""

import argparse
import json
import re
import subprocess
import sys
import types

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook
from sound_notebook import build

from vitedu.__main__ import build_parser, main
from vitedu.commands.students import JSON_HELP, SHELLS
from vitedu.course import results, tour
from vitedu.course.notebooks import exercise_cells
from vitedu.course.workspace import lay_notebooks
from vitedu.exercises import EXERCISES, find, in_file, in_notebook

COMMANDS = next(
    action.choices
    for action in build_parser()._actions
    if isinstance(action, argparse._SubParsersAction)
)


def run(*words, **options):
    return subprocess.run(
        [sys.executable, "-m", "vitedu", *words],
        capture_output=True,
        text=True,
        timeout=60,
        **options,
    )


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_answers_help(command, capsys):
    """Status 0, and the first sentence says what it does."""
    with pytest.raises(SystemExit) as stop:
        main([command, "--help"])
    assert stop.value.code == 0
    text = capsys.readouterr().out
    assert text.startswith(f"usage: vitedu {command} ")
    assert re.search(r"^[A-Z][^.]+\.$", text, re.M)


@pytest.mark.parametrize("words", ["frobnicate", "hint", "list --frob"])
def test_wrong_words_are_wrong_use(words, capsys):
    """argparse's own errors have status 2."""
    with pytest.raises(SystemExit) as stop:
        main(words.split())
    assert stop.value.code == 2
    assert "usage: vitedu" in capsys.readouterr().err


def test_no_command_lists_all_in_four_groups(capsys):
    """Each group with an example that can be typed, each command with a line."""
    assert main([]) == 0
    text = capsys.readouterr().out
    examples = re.findall(r"^(\w+), such as: vitedu (.+)$", text, re.M)
    assert [group for group, _ in examples] == ["learn", "teach", "train", "maintain"]
    assert all(build_parser().parse_args(words.split()).run for _, words in examples)
    assert set(re.findall(r"^  (\w+) ", text, re.M)) == set(COMMANDS)


NO_NOTEBOOK, NOWHERE, NEAR = "there are 01_patches", "there is no nowhere", "did you mean patchify"
MISTAKES = {"hint pachify": NEAR, "solution pachify": NEAR, "check nowhere.ipynb": NOWHERE}
MISTAKES |= dict.fromkeys(("list 10_nothing", "progress 10_nothing"), NO_NOTEBOOK)
MISTAKES |= dict.fromkeys(
    ("solve nowhere", "lint nowhere", "tour nowhere", "site nowhere"), NOWHERE
)
MISTAKES |= {"hint 1.1-1.2": "names 2 exercises", "race nowhere": "nowhere: No such file"}


@pytest.mark.parametrize(("words", "said"), MISTAKES.items(), ids=MISTAKES)
def test_mistakes_of_the_caller_are_one_line(words, said, capsys):
    """Status 2, the reason and the choices on stderr, no traceback."""
    assert main(words.split()) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("vitedu: ") and captured.err.count("\n") == 1
    assert said in captured.err


def test_an_error_of_a_students_file_is_one_line(tmp_path, monkeypatch, capsys):
    """With the file and its line; the variable that it names shows the rest."""
    path = tmp_path / "my_vit.py"
    path.write_text("def f():\n    raise TypeError('no\\nsuch thing')\nf()\n")
    assert main(["race", str(path)]) == 2
    error = capsys.readouterr().err
    assert error.startswith("vitedu: TypeError: no such thing (") and error.count("\n") == 1
    assert "my_vit.py" in error and "line 2)" in error
    monkeypatch.setenv("VITEDU_TRACEBACK", "1")
    with pytest.raises(TypeError):
        main(["race", str(path)])


def test_completion_is_the_librarys_or_says_what_is_missing(monkeypatch, capsys):
    """Every shell has the library's lines below the place where they go."""
    shellcode = types.SimpleNamespace(shellcode=lambda names, shell: f"{shell} {names}")
    for shell in SHELLS:
        monkeypatch.setitem(sys.modules, "argcomplete", shellcode)
        assert main(["completion", shell]) == 0
        assert capsys.readouterr().out == f"# {SHELLS[shell]}\n{shell} ['vitedu']\n"
        monkeypatch.setitem(sys.modules, "argcomplete", None)
        assert main(["completion", shell]) == 2
        assert "pip install argcomplete" in capsys.readouterr().err


def test_list_shows_the_syllabus(capsys):
    """Each exercise in a line below the name of its file; with a name, one notebook's two."""
    assert main(["list"]) == 0
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    for e in EXERCISES:
        assert f"{e.number} {e.id} {e.points} points {e.minutes} min {e.title}" in lines
    assert main(["list", "attention"]) == 0
    out = capsys.readouterr().out
    heads = [line.split()[0] for line in out.splitlines() if line[0] != " "]
    assert heads == ["02_attention", "02_attention_more"] and "patchify" not in out


def test_hint_goes_on_where_the_last_one_stopped(capsys):
    """Three hints, then the third again; each is counted in the store."""
    for number in (1, 2, 3, 3):
        assert main(["hint", "patchify" if number == 1 else "1.1"]) == 0
        text = find("patchify").hints[number - 1]
        assert f"hint {number} of 3: {text}\n" in capsys.readouterr().out
    assert results.load()["patchify"]["hints_used"] == 3


def test_solution_and_progress_print_the_reference_and_the_table(capsys):
    """Code that could be pasted, and what is recorded."""
    assert main(["solution", "softmax"]) == 0
    assert capsys.readouterr().out.startswith("def softmax(x: torch.Tensor, dim: int = -1)")
    results.record({"exercise": "softmax", "status": "passed", "points": 4, "max_points": 4})
    assert main(["progress", "02"]) == 0
    assert capsys.readouterr().out == results.table_text("02_attention") + "\n"


def test_solve_writes_and_names_the_files(tmp_path, capsys):
    """One path a line."""
    (tmp_path / "01_patches.ipynb").write_text(json.dumps(build()))
    assert main(["solve", str(tmp_path), "--out", str(tmp_path / "out")]) == 0
    assert capsys.readouterr().out == f"{tmp_path / 'out' / '01_patches.ipynb'}\n"


def test_lint_has_status_1_where_there_is_a_problem(tmp_path, capsys):
    """One sentence a problem, then the sum."""
    path = tmp_path / "01_patches.ipynb"
    path.write_text(json.dumps(build()))
    assert main(["lint", str(path)]) == 0
    assert capsys.readouterr().out == "1 notebooks, 0 problems\n"
    notebook = build()
    notebook.cells[-1]["id"] = "not an id"
    path.write_text(json.dumps(notebook))
    assert main(["lint", str(path)]) == 1
    assert capsys.readouterr().out.endswith("1 notebooks, 1 problems\n")


def test_python_m_vitedu_and_a_closed_pipe():
    """The module runs, and a reader that leaves early is no error."""
    assert run("--version").stdout.startswith("vitedu 0.")
    for _ in range(3):
        command = [sys.executable, "-m", "vitedu", "list"]
        pipe = subprocess.PIPE
        with subprocess.Popen(command, stdout=pipe, stderr=pipe) as writer:
            writer.stdout.close()
            assert writer.stderr.read() == b""
        assert writer.returncode == 0


# --- what runs notebooks --------------------------------------------------------------------------


def answered(*answers):
    """Build a notebook of two exercises of notebook 01 with the given sources in their stubs."""
    notebook = build()
    cells = {cell["id"]: cell for cell in notebook.cells}
    kept = [cells["imports"]]
    for name, source in answers:
        cells[f"{name}-stub"].source = source
        kept += [cells[f"{name}-stub"], cells[f"{name}-check"]]
    notebook.cells = kept
    return notebook


def read_json(capsys, **more):
    """Read what ``check --json`` printed, as exercise -> object, and hold it to its schema.

    ``more`` are the names and types that a Python file has beside those of a notebook.
    """
    captured = capsys.readouterr()
    assert captured.err == ""
    rows = json.loads(captured.out)
    kinds = {"exercise": str, "status": str, "points": int | float, "max_points": int | float}
    kinds |= {"remarks": list, "mistakes": list, "seconds": float, **more}
    for row in rows:
        assert list(row) == list(kinds)
        assert all(isinstance(row[name], kind) for name, kind in kinds.items())
        assert row["status"] in "passed failed error not_attempted not_checked".split()
        assert all(isinstance(mistake, str) for mistake in row["mistakes"])
        assert all(set(remark) == {"part", "message", "points"} for remark in row["remarks"])
        assert all(name in JSON_HELP for name in kinds) and row["status"] in JSON_HELP
    return {row["exercise"]: row for row in rows}


def test_json_tells_remarks_and_mistakes_as_they_were_stored(monkeypatch, tmp_path, capsys):
    """What an earlier version stored has neither."""
    path = tmp_path / "returned.ipynb"
    path.write_text(json.dumps(answered(("tokens_at_224", ""), ("patchify", ""))))
    remark = {"part": "errors", "message": "names no numbers", "points": 0.5}
    old = {"status": "passed", "points": 1, "max_points": 1, "seconds": None}
    new = {"status": "passed", "points": 5.5, "max_points": 6, "seconds": 0.1}
    new |= {"remarks": [remark], "misconceptions": ["error_without_numbers"]}
    for name, report in {"tokens_at_224": old, "patchify": new}.items():
        results.record({"exercise": name, **report})
    run = None, results.load()
    monkeypatch.setattr(tour, "execute", lambda *args, **options: run)
    assert main(["check", str(path), "--json"]) == 1
    found = read_json(capsys)
    assert found["patchify"]["remarks"] == [remark]
    assert found["patchify"]["mistakes"] == ["error_without_numbers"]
    main(["check", str(path)])
    assert "5.5/6  passed\n       remark: errors: names no numbers\n" in capsys.readouterr().out
    assert found["tokens_at_224"]["remarks"] == found["tokens_at_224"]["mistakes"] == []


MY_VIT = """from vitedu.patches import patchify
def gelu(x):
    print("mine")
    return x * (x > 0)
tokens_at_224: int = 197
def helper(): pass
if __name__ == "__main__":
    raise SystemExit(3)
"""


@pytest.mark.slow
def test_check_judges_what_a_python_file_defines(tmp_path, store, capsys):
    """Its own definitions, in the course's order, in another process; status 0 if all pass."""
    path = tmp_path / "my_vit.py"
    path.write_text(MY_VIT)
    assert main(["check", str(path), "--json"]) == 1
    found = read_json(capsys, whose=str)
    assert list(found) == ["patchify", "tokens_at_224", "gelu"]
    assert [row["whose"] for row in found.values()] == ["the course's", "yours", "yours"]
    assert found["patchify"]["status"] == "not_attempted"
    assert found["gelu"]["mistakes"] == ["relu"] and found["gelu"]["seconds"] > 0
    assert found["tokens_at_224"]["status"] == "passed"
    right = MY_VIT.replace("(x > 0)", "(1 + (x / 2**0.5).erf()) / 2")
    path.write_text(right.partition("\n")[2])  # without the course's part, which is not passed
    assert main(["check", str(path)]) == 0
    text = capsys.readouterr().out
    assert re.search(r"^3\.2 +gelu +3/3  passed$", text, re.M) and "failed" not in text
    assert [file.name for file in tmp_path.iterdir()] == ["my_vit.py"] and not store.exists()


@pytest.mark.slow
def test_check_refuses_a_python_file_that_does_not_run(tmp_path, capsys):
    """One line with the error, on stderr alone."""
    path = tmp_path / "my_vit.py"
    path.write_text("gelu = abs\nimport nowhere_at_all\n")
    assert main(["check", str(path), "--json"]) == 2
    captured = capsys.readouterr()
    assert captured.out == "" and captured.err.count("\n") == 1
    assert f"{path} cannot be run: ModuleNotFoundError: No module named" in captured.err


@pytest.mark.parametrize("words", [[], ["--json"]], ids=["text", "json"])
@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("bad.py", b"x = 1\ndef gelu(:", "bad.py, line 2: invalid syntax"),
        ("bytes.py", b'gelu = "\xff"', "bytes.py: invalid or missing encoding"),
        ("none.py", b"x = 1", "none.py defines no exercise"),
        ("answers.txt", b"", "is not a notebook: its name does not end in .ipynb"),
        ("broken.ipynb", b"{", "cannot be read as a notebook"),
        ("", b"", "missing.py: No such file"),
    ],
    ids=["syntax", "bytes", "nothing", "ending", "damaged", "missing"],
)
def test_check_refuses_other_files_in_one_line(name, content, said, words, tmp_path, capsys):
    """Status 2, nothing on stdout."""
    path = tmp_path / (name or "missing.py")
    if name:
        path.write_bytes(content)
    assert main(["check", str(path), *words]) == 2
    captured = capsys.readouterr()
    assert captured.out == "" and captured.err.count("\n") == 1 and said in captured.err


@pytest.mark.slow
def test_check_judges_a_notebook_and_touches_nothing(tmp_path, store, monkeypatch, capsys):
    """A right answer, a wrong one and one that is no Python; the others were not checked."""
    path = tmp_path / "returned.ipynb"
    notebook = answered(
        ("patchify", "def patchify(images, patch_size):\n    return images"),
        ("tokens_at_224", "tokens_at_224 = 197"),
        ("PatchEmbed", "class PatchEmbed(:"),
    )
    path.write_text(given := json.dumps(notebook))
    judged = tour.check_file(path)
    monkeypatch.setattr(tour, "check_file", lambda *_, **__: judged)  # one run, printed twice
    assert main(["check", str(path), "--json"]) == 1
    found = read_json(capsys)
    assert list(found) == [e.id for e in in_file("01_patches")]
    assert {found[name]["status"] for name in found} == {"passed", "failed", "not_checked"}
    assert found["tokens_at_224"]["points"] == 1 and found["patchify"]["mistakes"]
    assert main(["check", str(path)]) == 1
    lines = capsys.readouterr().out.splitlines()
    rows = {line.split()[1]: line for line in lines if re.match(r"\d\.\d", line)}
    assert list(rows) == [e.id for e in in_file("01_patches")]
    assert rows["tokens_at_224"].endswith("1/1  passed")
    assert rows["patchify"].endswith("failed")
    assert rows["PatchEmbed"].endswith("not checked")
    assert any("SyntaxError" in line for line in lines)
    assert path.read_text() == given
    assert not store.exists()


def test_check_judges_the_files_of_a_folder(monkeypatch, tmp_path, capsys):
    """Those in which something was written; the others are named."""
    lay_notebooks(tmp_path)
    path = tmp_path / "01_patches.ipynb"
    notebook = nbformat.read(path, 4)
    index = next(i for i, id in exercise_cells(notebook) if id == "tokens_at_224")
    notebook.cells[index].source = "tokens_at_224 = 197"
    nbformat.write(notebook, path)
    (tmp_path / "my_vit.py").write_text(MY_VIT)
    seen, judged = [], tour.CheckedFile("a table", [{"status": "passed"}], None)
    monkeypatch.setattr(tour, "check_file", lambda path, **_: seen.append(path.name) or judged)
    assert main(["check", str(tmp_path)]) == 0
    assert seen == ["01_patches.ipynb", "my_vit.py"]
    out = capsys.readouterr().out
    assert "written yet: 02_attention.ipynb" in out and f"\n{path}\na table\n" in out
    assert main(["check", str(tmp_path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == 2 * judged.rows


@pytest.mark.slow
def test_check_stops_an_answer_that_never_ends(tmp_path, capsys):
    """The cell is interrupted, the rest is judged; its imports may take some seconds, too."""
    path = tmp_path / "returned.ipynb"
    endless = answered(("tokens_at_224", "tokens_at_224 = 197"))
    endless.cells.insert(1, new_code_cell("import time\nwhile True:\n    time.sleep(1)"))
    path.write_text(json.dumps(endless))
    assert main(["check", str(path), "--seconds", "30"]) == 1
    assert "passed" in capsys.readouterr().out


def test_check_refuses_a_notebook_of_something_else(tmp_path, capsys):
    """No exercise in it is wrong use."""
    path = tmp_path / "other.ipynb"
    path.write_text(json.dumps(new_notebook(cells=[new_code_cell("1")])))
    assert main(["check", str(path)]) == 2
    assert "not one notebook of this course" in capsys.readouterr().err


@pytest.mark.slow
def test_tour_stores_runs_and_says_which_notebook_failed(tmp_path, capsys):
    """A sound notebook passes, and the next one's table shows it; one that raises has status 1."""
    good, bad = tmp_path / "good", tmp_path / "bad"
    table = new_notebook(cells=[new_code_cell("from vitedu import progress\nprogress()")])
    for path, notebook in {
        good / "01_patches.ipynb": answered(("tokens_at_224", "tokens_at_224 = None")),
        good / "02_attention.ipynb": table,
        bad / "01_patches.ipynb": new_notebook(
            cells=[new_code_cell("'before'"), new_code_cell("1 / 0")]
        ),
    }.items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(notebook))
    assert main(["tour", str(good), "--out", str(good / "out")]) == 0
    out = capsys.readouterr().out
    assert re.search(r"^01_patches +3 +\d+\.\d  every exercise passed$", out, re.M)
    assert main(["tour", str(bad), "--out", str(bad / "out")]) == 1
    assert "FAILED: ZeroDivisionError: division by zero" in capsys.readouterr().out
    stored = {path: path.read_text(encoding="utf-8") for path in tmp_path.glob("*/out/*.ipynb")}
    assert "14 x 14 patches" in stored[good / "out" / "01_patches.ipynb"]  # solved
    table = stored[good / "out" / "02_attention.ipynb"]
    assert f" all 1 of {len(in_notebook('01_patches'))}, " in table and table.count(">passed<") == 1
    failed = stored[bad / "out" / "01_patches.ipynb"]
    assert "before" in failed and "vitedu_profile" not in failed  # no page is made of it
