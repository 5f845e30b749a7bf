"""Every notebook runs, as committed and solved: headless, offline, on the CPU, quick profile.

As committed every check says not_attempted and everything still runs: the cores under nbval from
top to bottom, the sections of the second shelf each after the set-up alone. Solved, all run under
nbval from top to bottom, and every check says passed. nbval compares the outputs that are stored; a
warning is an error.

Of the sections a sixth runs, and all in the weekly workflow and by ``make notebooks``. What a
section names is looked up in all of them, without a run.
"""

import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import alone
import nbformat
import pytest
from conftest import NO_GRAMMARS, WHOLE, sample
from facts import FACTS
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from sound_notebook import build

from vitedu.course import environments, notebooks, results
from vitedu.course.notebooks import NBVAL_TAG, exercise_cells, find_notebooks, read, shelf_path
from vitedu.course.references import reference_source, solution_source
from vitedu.exercises import EXERCISES, MORE, STEMS, find, in_file

ROOT = Path(__file__).parents[1]
NOTEBOOKS = ROOT / "notebooks"
# Where the solved notebooks lie with their outputs, for the tests in a browser: as the tests below
# left them, or, in a profile that the user names, `make site`. What is not there they run.
TESTED = ROOT / "build" / "tested"
RAN = TESTED.with_name("runs") if os.environ.get("VITEDU_PROFILE") else TESTED
FILES = {stem: NOTEBOOKS / shelf_path(f"{stem}.ipynb") for stem in STEMS}
CORES = [stem for stem in STEMS if not stem.endswith(MORE)]
SHELF = [path for stem, path in FILES.items() if stem not in CORES]

# Loaded by every Python that the run starts: nothing but this machine can be reached.
OFFLINE = """
import socket

connect = socket.socket.connect


def connect_here(self, address):
    here = self.family == getattr(socket, "AF_UNIX", None)
    if not here and address[0] not in ("127.0.0.1", "::1", "localhost"):
        raise OSError(f"the test is offline, but {address} was asked for")
    return connect(self, address)


socket.socket.connect = connect_here
"""


# nbval keeps no outputs.
KEEP = """
import nbformat


def pytest_sessionfinish(session):
    for item in session.items:
        item.cell.outputs = getattr(item, "test_outputs", None) or []  # None after an error
    nbformat.write(session.items[0].parent.nb, "ran.ipynb")
"""


@dataclass(frozen=True)
class Outcome:
    """What nbval said of a notebook, and what its checks stored."""

    returncode: int
    text: str
    entries: dict


def variables(home: Path) -> dict:
    """Give the environment of a run that sees none of this user's or this machine's settings."""
    base = {name: os.environ[name] for name in ("PATH", "SYSTEMROOT", "LANG") if name in os.environ}
    return {
        **base,
        "HOME": str(home),
        "USERPROFILE": str(home),
        "VITEDU_HOME": str(home / "store"),
        "VITEDU_PROFILE": "quick",
        "CUDA_VISIBLE_DEVICES": "",
        "OMP_NUM_THREADS": "1",
        # the package beside these tests, wherever else one is installed
        "PYTHONPATH": str(ROOT),
    }


def environment(home: Path, shared: Path) -> dict:
    """Give that of an offline run in which a warning is an error."""
    return variables(home) | {
        # its list of fonts is built once, not for each run
        "MPLCONFIGDIR": str(shared / "matplotlib"),
        "PYTHONPATH": os.pathsep.join([str(shared / "offline"), str(ROOT)]),
        "PYTHONWARNINGS": "error::UserWarning,error::FutureWarning,error::RuntimeWarning",
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",  # nbval alone, below
    }


def nbval(path: Path, home: Path, shared: Path) -> Outcome:
    """Run one notebook under nbval, offline; a warning is an error."""
    home.mkdir()
    # -x: the cells after the first that fails would fail for its sake
    command = [sys.executable, "-m", "pytest", "-p", "nbval.plugin", "-p", "keep"]
    command += ["-p", "no:cacheprovider"]
    command += ["--nbval-lax", "--nbval-current-env", "--nbval-cell-timeout=300", "-q", "-x"]
    command += ["-c", str(shared / "pytest.ini"), "--rootdir", str(path.parent), str(path)]
    done = subprocess.run(
        command, env=environment(home, shared), cwd=path.parent, capture_output=True, text=True
    )
    # nbval colours even what nobody sees
    text = re.sub(r"\x1b\[[0-9;]*m", "", done.stdout + done.stderr)
    return Outcome(done.returncode, text, results.load(home / "store"))


# What does not run again: experiments, whose size the profile picks, training, other processes.
LONG = re.compile(r"profile\.pick\(|subprocess\.run\(|for epoch in|\bfit\(|[pP]anel\b|_heart\(")
# The last cell of a third of the solved cores: the other cells once more, the last one first.
AGAIN = """
ipython = get_ipython()
ipython.display_formatter.active_types = ["text/plain"]  # its figures have been drawn
ipython.display_formatter.mimebundle_formatter.enabled = False
ipython.display_formatter.ipython_display_formatter.enabled = False
for cell_source in {sources!r}:
    ipython.run_cell(cell_source).raise_error()
"""


@pytest.fixture(scope="session")
def shared(tmp_path_factory):
    """Give the folder of what all runs share."""
    folder = tmp_path_factory.mktemp("shared")
    (folder / "offline").mkdir()
    (folder / "offline" / "sitecustomize.py").write_text(NO_GRAMMARS + OFFLINE)
    (folder / "offline" / "keep.py").write_text(KEEP)
    (folder / "pytest.ini").write_text("[pytest]\n")
    return folder


@pytest.fixture
def outcome(tmp_path, shared, name):
    """Run one solved notebook in a folder of its own, where it may write beside itself."""
    notebook = notebooks.solve_notebook(read(FILES[name]))
    sources = [cell.source for cell in notebook.cells if cell.cell_type == "code"]
    if name in FACTS:
        notebook.cells.append(new_code_cell(FACTS[name]))
    if name in sample(CORES):
        again = [source for source in reversed(sources) if not LONG.search(source)]
        notebook.cells.append(new_code_cell(AGAIN.format(sources=again)))
    path = tmp_path / "notebook" / shelf_path(f"{name}.ipynb")
    path.parent.mkdir(parents=True)
    nbformat.write(notebook, path)
    outcome = nbval(path, tmp_path / "home", shared)
    keep(nbformat.read(path.with_name("ran.ipynb"), as_version=4), name)
    return outcome


def keep(ran, name):
    """Leave a notebook with its outputs for the browser, without the cells that were added here."""
    ran.cells = ran.cells[: len(read(FILES[name]).cells)]
    ran.metadata["vitedu_profile"] = "quick"
    TESTED.mkdir(parents=True, exist_ok=True)
    nbformat.write(ran, TESTED / f"{name}.ipynb")


def run_alone(paths, folder, shared, step=1):
    """Run notebooks of the second shelf as committed, by sections, of which every one counts."""
    command = [sys.executable, alone.__file__, str(step), *map(str, paths)]
    both = dict(stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return subprocess.run(command, env=environment(folder, shared), **both)


@pytest.mark.notebook
@pytest.mark.slow
@pytest.mark.timeout(900)
def test_sections_of_more_run_after_the_setup_alone(tmp_path, shared):
    """No answer is there. After a restart a reader runs the set-up and goes on in any section."""
    done = run_alone(SHELF, tmp_path, shared, step=1 if WHOLE else 6)
    assert done.returncode == 0, done.stdout


def unknown_names(paths, folder):
    """Write each section of notebooks with its set-up; say which names no cell of them makes."""
    for path in paths:
        setup, *sections = alone.parts(path).values()
        for k, cells in enumerate(sections):
            notebook = new_notebook(cells=[*setup, *cells])
            nbformat.write(notebook, folder / f"{path.stem}_{k}.ipynb")
    command = [sys.executable, "-m", "ruff", "check", "--isolated", "--select=F821", str(folder)]
    return subprocess.run(command, capture_output=True, text=True).stdout


def test_sections_of_more_name_what_they_or_the_set_up_make(tmp_path):
    """All of them: no name that another section makes."""
    assert "All checks passed" in unknown_names(SHELF, tmp_path)


def states(entries, name):
    """Give what the checks of a notebook stored."""
    return {each.id: entries.get(each.id, {}).get("status") for each in in_file(name)}


@pytest.mark.notebook
@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", CORES[1:])
def test_core_runs_as_committed(name, tmp_path, shared):
    """No answer is there, and every cell runs. That of 01 runs by the README's own line, below."""
    path = tmp_path / FILES[name].name
    path.write_bytes(FILES[name].read_bytes())
    outcome = nbval(path, tmp_path / "home", shared)
    assert outcome.returncode == 0, f"{name}\n{outcome.text[-6000:]}"
    assert set(states(outcome.entries, name).values()) <= {"not_attempted"}


@pytest.mark.notebook
@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", STEMS)
def test_solved_notebook_runs_and_every_check_agrees(outcome, name):
    """Every cell runs, stored outputs hold, and each exercise has passed.

    After a full run of every third core all short cells run again, in the opposite order.
    """
    assert outcome.returncode == 0, f"{name}\n{outcome.text[-6000:]}"
    assert set(states(outcome.entries, name).values()) <= {"passed"}


@pytest.mark.notebook
@pytest.mark.slow
@pytest.mark.timeout(900)
def test_lines_of_the_readme_pass_in_the_environment_of_requirements(tmp_path):
    """As anybody types them, without the packages of .venv-test; no check of 01 is attempted."""
    python = environments._python(ROOT / ".venv")
    if not Path(python).exists():
        pytest.skip("there is no .venv; `make setup` creates it")
    lines = re.findall("`python (-m pytest .+?)`", (ROOT / "README.md").read_text("utf-8"))
    assert len(lines) == 2 and "--nbval-lax notebooks/01_patches.ipynb" in lines[1]
    for line in lines:
        command = [python, *line.split()]
        done = subprocess.run(
            command, env=variables(tmp_path), cwd=ROOT, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stdout + done.stderr
    left = states(results.load(tmp_path / "store"), "01_patches")
    assert set(left.values()) == {"not_attempted"}


# --- the harness itself, on small notebooks -------------------------------------------------------


def small(tmp_path, *sources, outputs=None):
    """Write a notebook of a few code cells."""
    notebook = build(imports="import socket")
    cells = [cell for cell in notebook.cells if cell["id"] == "imports"]
    cells += [new_code_cell(source) for source in sources]
    if outputs is not None:
        cells[-1].outputs = [new_output("stream", text=outputs)]
        cells[-1].metadata["tags"] = [NBVAL_TAG]
        cells[-1].execution_count = 1
    notebook.cells = cells
    path = tmp_path / "small.ipynb"
    path.write_text(json.dumps(notebook))
    return path


@pytest.mark.slow
def test_nbval_fails_for_a_warning_the_network_and_a_changed_output(tmp_path, shared):
    """What the runs above would not notice, they would not prove."""
    faults = {
        "warning": ("import warnings; warnings.warn('old')", None, "UserWarning: old"),
        "network": ("socket.create_connection(('192.0.2.1', 80))", None, "the test is offline"),
        "output": ("print(1 + 1)", "3\n", "mismatch"),
    }
    for fault, (source, stored, expected) in faults.items():
        folder = tmp_path / fault
        folder.mkdir()
        outcome = nbval(small(folder, source, outputs=stored), folder / "home", shared)
        assert outcome.returncode == 1, fault
        assert expected in outcome.text, fault


@pytest.mark.slow
def test_section_that_needs_another_is_named(tmp_path, shared):
    """None sees what another made; where nothing forks, the first one runs."""
    cells = [new_code_cell("import math"), new_markdown_cell("## One"), new_code_cell("one = 1")]
    cells += [new_markdown_cell("## Two"), new_code_cell("one + math.pi", id="two")]
    nbformat.write(new_notebook(cells=cells), path := tmp_path / "small_more.ipynb")
    done = run_alone([path], tmp_path, shared)
    fault = "FAILED: small_more, ## Two, cell 'two'" in done.stdout and "NameError" in done.stdout
    forks = sys.platform == "linux"
    assert (fault, done.returncode) == (forks, int(forks)), done.stdout
    assert "Undefined name `one`" in unknown_names([path], tmp_path)


def test_long_helpers_are_folded_wherever_a_notebook_is_read():
    """A tagged cell is folded in Lab and in Colab; tests/test_site.py looks at the pages."""
    folded = [
        cell
        for path in FILES.values()
        for cell in read(path).cells
        if "hide-input" in cell.metadata.get("tags", ())
    ]
    assert folded
    for cell in folded:
        assert cell.metadata["jupyter"]["source_hidden"] and cell.metadata["cellView"] == "form"


@pytest.mark.parametrize("exercise", EXERCISES, ids=lambda exercise: exercise.id)
def test_heading_of_an_exercise_says_its_minutes_and_difficulty(exercise):
    """A notebook says what the syllabus says; difficulty has one form, ●○○ to ●●●."""
    notebook = read(FILES[exercise.stem])
    start = f"### Exercise {exercise.number} · `{exercise.id}` ({exercise.minutes} minutes, "
    text = "\n".join(cell.source for cell in notebook.cells)
    headings = re.findall(re.escape(start) + r"difficulty (.*)\)", text)
    assert len(headings) == 1 and headings[0] in ("●○○", "●●○", "●●●")


# --- reading and solving --------------------------------------------------------------------------


@pytest.mark.parametrize("exercise", EXERCISES, ids=lambda exercise: exercise.id)
def test_reference_source_defines_the_exercise(exercise):
    """The text alone is valid Python and ends with the name of the exercise defined."""
    compile(reference_source(exercise), exercise.id, "exec")
    assert exercise.id in reference_source(exercise)


def test_reference_source_keeps_decorators():
    """A decorator is part of the answer."""
    assert reference_source(find("evaluate")).startswith("@torch.no_grad()\ndef evaluate")


def test_solved_replaces_every_stub_and_nothing_else():
    """Other cells stay, and the notebook that was given is not changed."""
    notebook = build()
    before = json.dumps(notebook)
    result = notebooks.solve_notebook(notebook)
    assert json.dumps(notebook) == before
    stubs = dict(exercise_cells(notebook))
    assert len(stubs) == len(in_file("01_patches"))
    for index, (old, new) in enumerate(zip(notebook.cells, result.cells, strict=True)):
        if index in stubs:
            assert new.source == solution_source(find(stubs[index]))
        else:
            assert new.source == old.source


def test_solved_clears_outputs_but_those_that_are_compared():
    """A right answer changes no compared output, so they hold for both variants."""
    notebook = build()
    notebook.cells[2].outputs = list(notebook.cells[-1].outputs)
    result = notebooks.solve_notebook(notebook)
    assert result.cells[2].outputs == []
    assert result.cells[-1].outputs == notebook.cells[-1].outputs


def test_solve_writes_beside_and_never_over_the_notebooks(tmp_path):
    """Each in its shelf of the other folder; one of the second shelf not over itself, too."""
    for stem in ("01_patches", "01_patches_more"):
        (tmp_path / f"{stem}.ipynb").write_text(json.dumps(build(stem)))
    written, more = notebooks.solve(tmp_path, tmp_path / "out")
    assert written == tmp_path / "out" / "01_patches.ipynb"
    assert "NotImplementedError" not in written.read_text()
    for path, out in ((tmp_path, tmp_path), (more, tmp_path / "out"), (more, more.parent)):
        with pytest.raises(ValueError, match="holds the notebooks themselves"):
            notebooks.solve(path, out)


def test_solve_says_what_an_unknown_exercise_may_be(tmp_path):
    """The message has the name, and the nearest one."""
    notebook = build()
    index, _ = next(exercise_cells(notebook))
    notebook.cells[index].metadata["vitedu"]["exercise"] = "pachify"
    (tmp_path / "a.ipynb").write_text(json.dumps(notebook))
    with pytest.raises(ValueError, match="no exercise 'pachify'; did you mean patchify"):
        notebooks.solve(tmp_path, tmp_path / "out")


def test_find_notebooks_says_what_is_wrong_with_a_path(tmp_path):
    """Missing, empty and of another kind are told apart."""
    with pytest.raises(FileNotFoundError, match="there is no"):
        find_notebooks(tmp_path / "nowhere")
    with pytest.raises(ValueError, match="no notebook"):
        find_notebooks(tmp_path)
    (tmp_path / "a.py").write_text("")
    with pytest.raises(ValueError, match="does not end in .ipynb"):
        find_notebooks(tmp_path / "a.py")


def test_read_joins_sources_that_are_lists_of_lines(tmp_path):
    """Jupyter writes lists, other tools write text; both are one text here."""
    notebook = build()
    notebook.cells[1].source = ["import torch\n", "import math"]
    (tmp_path / "a.ipynb").write_text(json.dumps(notebook))
    assert read(tmp_path / "a.ipynb").cells[1].source == "import torch\nimport math"
