"""vitedu start: notebooks in a folder of the student's own; no work of his is overwritten."""

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from vitedu.__main__ import main
from vitedu.course import results, workspace
from vitedu.course.notebooks import exercise_cells, find_notebooks, read, shelf_path
from vitedu.course.references import reference_source
from vitedu.exercises import EXERCISES, find
from vitedu.exporting import export, importing

ROOT = Path(__file__).parents[1]
FILES = [*dict.fromkeys(shelf_path(f"{exercise.stem}.ipynb") for exercise in EXERCISES)]
MORE = "more/03_encoder_more.ipynb"
HELPER = "def halve(x):\n    return x / 2"
GELU, COUNT = (f"{reference_source(find(id))}  # mine" for id in ("gelu", "count_parameters"))


@pytest.fixture
def shipped(tmp_path, monkeypatch):
    """Give copies of three notebooks and a page, which stand for what is installed."""
    folder = tmp_path / "shipped"
    (folder / "more").mkdir(parents=True)
    for name in ("02_attention.ipynb", "03_encoder.ipynb", MORE, *workspace.PAGES):
        (folder / name).write_bytes((ROOT / "notebooks" / name).read_bytes())
    monkeypatch.setattr(workspace, "find_sources", lambda: find_notebooks(folder))
    return folder


@pytest.fixture
def passed():
    """Store an answer of each shelf that passed; to gelu with an import and a helper."""
    texts = {"torch": "import torch", "pi": "from cmath import pi", "halve": HELPER, "gelu": GELU}
    for id, statements in (("gelu", texts), ("count_parameters", {"count_parameters": COUNT})):
        results.record({"exercise": id, "status": "passed", "points": 3, "max_points": 3})
        with results.edit("exercises", id) as entry:
            entry["source"] = {"statements": statements}


def start(folder, *words):
    """Run the command without JupyterLab."""
    return main(["start", str(folder), "--no-lab", *words])


def edit(path, exercise, change):
    """Change a notebook's cells: ``change`` takes them and the index of an exercise's."""
    notebook = json.loads(path.read_text(encoding="utf-8"))
    places = {name: index for index, name in exercise_cells(read(path))}
    change(notebook["cells"], places[exercise])
    path.write_text(json.dumps(notebook), encoding="utf-8")


def contents(folder):
    """Give path -> bytes of the files below a folder."""
    paths = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}


def test_notebooks_are_laid_with_the_answers_that_passed(shipped, passed, tmp_path, monkeypatch):
    """In their own cells, without imports that the notebook has; all else is as it was shipped.

    But for stored outputs: below an open exercise they would tell what its answer prints.
    """
    monkeypatch.setattr(export, "bring_file", lambda folder: None)
    assert start(mine := tmp_path / "a" / "mine") == 0
    assert contents(mine).keys() - {workspace.RECORD} == contents(shipped).keys()
    different = []
    for path in find_notebooks(shipped):
        place = mine / path.relative_to(shipped)
        old, new = (json.loads(p.read_text(encoding="utf-8")) for p in (path, place))
        code = [cell for cell in old["cells"] if cell["cell_type"] == "code"]
        assert any(cell["outputs"] for cell in code) or path.name != "02_attention.ipynb"
        for cell in code:
            cell.update(outputs=[], execution_count=None)
        cells = zip(old.pop("cells"), new.pop("cells"), strict=True)
        different += [(a, b) for a, b in cells if a != b]
        assert old == new
    assert all(before["metadata"] == after["metadata"] for before, after in different)
    written = {a["metadata"]["vitedu"]["exercise"]: "".join(a["source"]) for _, a in different}
    gelu = "\n\n\n".join(["from cmath import pi", HELPER, GELU])
    assert written == {"gelu": gelu, "count_parameters": COUNT}


def test_a_second_start_changes_nothing(shipped, tmp_path, capsys):
    """The student's work stays as he left it; a notebook that he removed is laid again."""
    start(mine := tmp_path / "mine")
    edit(mine / "02_attention.ipynb", "softmax", lambda cells, i: cells[i].update(source="mine"))
    before = contents(mine)
    assert start(mine) == 0
    assert contents(mine) == before
    assert capsys.readouterr().out.endswith(f"{mine}: as you left it.\n")
    (mine / "03_encoder.ipynb").unlink()
    start(mine)
    assert contents(mine) == before


def test_a_new_version_is_laid_beside_work_and_over_what_nobody_touched(
    shipped, passed, tmp_path, capsys, monkeypatch
):
    """Of the notebooks that changed; it says what changed, and answers are filled in again."""
    monkeypatch.setattr(export, "bring_file", lambda folder: None)
    start(mine := tmp_path / "mine")
    edit(mine / "03_encoder.ipynb", "gelu", lambda cells, i: cells[0].update(source="mine"))
    before = contents(mine)

    def change(cells, index):
        cells[0]["source"] = ["# Other words"]

    edit(shipped / "03_encoder.ipynb", "gelu", change)
    edit(shipped / "02_attention.ipynb", "softmax", lambda cells, i: cells[1].update(source="v2"))
    edit(shipped / MORE, "count_parameters", lambda cells, i: cells[0].update(source="# v2"))
    for round in range(2):  # the second finds the new one
        capsys.readouterr()
        assert start(mine) == 0
        new = mine / f"03_encoder_v{workspace.__version__}.ipynb"
        assert contents(mine).keys() == before.keys() | {new.name}
        same = before.keys() - {workspace.RECORD, MORE}
        assert {name: contents(mine)[name] for name in same} == {n: before[n] for n in same}
        line = f"{new} is the new version of 03_encoder.ipynb."
        count = "2 notebooks laid, 1 of them in place of one that nobody touched, 2 of your answers"
        said = capsys.readouterr().out
        assert (line in said) == (count in said) == (round == 0)
    assert read(mine / MORE).cells[0].source == "# v2"
    for path, answer in ((new, GELU), (mine / MORE, COUNT)):
        assert any(cell.source.endswith(answer) for cell in read(path).cells)
    edit(new, "gelu", lambda cells, i: cells.append(cells[i]))  # two cells of one id: somebody's
    edit(shipped / "03_encoder.ipynb", "gelu", lambda cells, i: cells[0].update(source="# v3"))
    start(mine)
    assert (mine / f"03_encoder_v{workspace.__version__}_2.ipynb").is_file()


@pytest.mark.parametrize("content", ["a folder of something else", "a file", "the course's own"])
def test_another_folder_is_refused_in_one_line(content, tmp_path, capsys):
    """Nothing is written into it."""
    place = ROOT / "notebooks" if "own" in content else tmp_path / "other"
    if "something" in content:
        place.mkdir()
    if place.parent == tmp_path:
        (place / "thesis.tex" if place.is_dir() else place).write_text("x")
    before = place.read_bytes() if place.is_file() else contents(place)
    assert start(place) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"vitedu: {place} holds something else") and error.count("\n") == 1
    assert before == (place.read_bytes() if place.is_file() else contents(place))


def test_a_folder_that_cannot_be_written_is_one_line(shipped, tmp_path, capsys, monkeypatch):
    """With the reason, and what to type instead; one that needs nothing written is fine."""
    (tmp_path / "file").touch()
    assert start(tmp_path / "file" / "mine") == 2
    error = capsys.readouterr().err
    assert "cannot be written (Not a directory); name another folder: vitedu start" in error
    start(mine := tmp_path / "mine")
    monkeypatch.setattr(workspace, "write_whole", lambda *args: 1 / 0)
    assert start(mine) == 0


def test_a_damaged_record_costs_nothing(shipped, tmp_path):
    """All is laid anew, beside what is there."""
    start(mine := tmp_path / "mine")
    before = contents(mine)
    (mine / workspace.RECORD).write_text("{")
    start(mine)
    assert len(contents(mine)) == len(before) + 3
    assert all(contents(mine)[name] == before[name] for name in before if name.endswith("ipynb"))


def test_jupyterlab_opens_on_the_newest_first_notebook(shipped, tmp_path, monkeypatch, capsys):
    """In the student's folder, with words of his own; without JupyterLab a line says what to do."""
    monkeypatch.setenv("JUPYTER_CONFIG_PATH", "own")
    ran, opened, servers = [], [], []
    monkeypatch.setattr("jupyter_server.serverapp.list_running_servers", lambda: servers)
    monkeypatch.setattr("webbrowser.open", opened.append)
    monkeypatch.setattr("runpy.run_module", lambda name, **o: ran.append((name, sys.argv, Path())))
    monkeypatch.setattr(sys, "argv", [])
    monkeypatch.chdir(tmp_path)
    assert main(["lab", "mine", "--lab-args=--no-browser --port 1"]) == 0
    ((module, words, _),) = ran
    assert module == "jupyterlab"
    as_root = ["--allow-root"] * (getattr(os, "geteuid", os.getpid)() == 0)
    assert words[1:] == [*as_root, "--no-browser", "--port", "1", "02_attention.ipynb"]
    assert Path.cwd() == tmp_path / "mine"
    config = Path(os.environ["JUPYTER_CONFIG_PATH"].split(os.pathsep)[-1])
    assert "announcements" in (config / "labconfig" / "page_config.json").read_text()
    monkeypatch.chdir(tmp_path)
    servers += [{"root_dir": str(tmp_path), "url": "http://other/", "token": "t"}]
    servers += [{"root_dir": str(tmp_path / "mine"), "url": "http://here/", "token": "abc"}]
    capsys.readouterr()
    assert main(["lab", "mine"]) == 0 and len(ran) == 1
    assert opened == ["http://here/lab/tree/02_attention.ipynb?token=abc"]
    assert f"is running there already: {opened[0]}" in capsys.readouterr().out
    monkeypatch.setattr("vitedu.commands.students.find_spec", lambda name: None)
    assert main(["start", "mine"]) == 2
    assert "there is no JupyterLab; pip install" in capsys.readouterr().err


@pytest.mark.slow
def test_my_vit_comes_along(shipped, passed, tmp_path, monkeypatch, capsys):
    """Written where a part has passed; one edited elsewhere is copied; none is replaced."""
    monkeypatch.chdir(tmp_path)
    start(mine := tmp_path / "mine")
    written = (mine / "my_vit.py").read_text(encoding="utf-8")
    assert "# 3.2, yours" in written and "1 of its" in capsys.readouterr().out
    (mine / "my_vit.py").write_text("edited")
    start(mine)
    assert (mine / "my_vit.py").read_text() == "edited"
    importing.remember(mine / "my_vit.py")
    start(tmp_path / "other")
    assert (tmp_path / "other" / "my_vit.py").read_text() == "edited"
    assert "a copy of" in capsys.readouterr().out


def test_pages_are_renewed_where_nobody_changed_them(shipped, tmp_path):
    """One that somebody changed stays."""
    start(mine := tmp_path / "mine")
    (mine / "words.md").write_text("my words")
    for name in workspace.PAGES:
        (shipped / name).write_text("newer")
    start(mine)
    assert (mine / "AGENTS.md").read_text() == "newer"
    assert (mine / "words.md").read_text() == "my words"


def test_without_a_part_that_passed_no_references_are_written(shipped, tmp_path):
    """my_vit.py would be the solution of the course."""
    start(mine := tmp_path / "mine")
    assert not (mine / "my_vit.py").exists()


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_wheel_carries_the_notebooks(tmp_path):
    """Installed without a clone, `vitedu start` lays all of them, and the page that they link."""
    clone, wheels, there = tmp_path / "clone", tmp_path / "wheels", tmp_path / "there"
    clone.mkdir()
    for name in ("pyproject.toml", "README.md", "notebooks", "vitedu"):
        (clone / name).symlink_to(ROOT / name)
    pip = [sys.executable, "-m", "pip"]
    build = [*pip, "wheel", "--no-deps", "--no-build-isolation", "-w", str(wheels), "."]
    subprocess.run(build, cwd=clone, check=True, capture_output=True)
    (wheel,) = wheels.glob("*.whl")
    names = {Path(name).name for name in zipfile.ZipFile(wheel).namelist()}
    assert len(FILES) == 18 and {Path(name).name for name in (*FILES, "words.md")} <= names
    install = [*pip, "install", "--no-deps", "--no-index", "--target", str(there), str(wheel)]
    subprocess.run(install, check=True, capture_output=True)
    environment = {**os.environ, "PYTHONPATH": str(there), "VITEDU_HOME": str(tmp_path / "home")}
    command = [sys.executable, "-m", "vitedu", "start", "--no-lab"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert f"{len(FILES)} notebooks laid" in done.stdout
    laid = contents(tmp_path / "my-notebooks").keys() - {workspace.RECORD}
    assert laid == {*FILES, *workspace.PAGES}

    def run(*words):
        command = [sys.executable, "-m", "vitedu", *words]
        return subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True
        )

    assert run("assign", "out", "--core").returncode == 0
    assert (tmp_path / "out" / "words.md").is_file()
    for words in ("slug ada/vitedu", "setup", "bundle wheels2", "test"):
        done = run(*words.split())
        assert done.returncode == 2 and done.stderr.count("\n") == 1
        assert "the command needs a clone" in done.stderr and not (there / ".venv").exists()
