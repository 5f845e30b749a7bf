"""A fresh machine: what is installed, in what order, and that a second run repeats none of it."""

import ast
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from vitedu.commands import doctor

ROOT = Path(__file__).parents[1]
# where the name that is imported is not the name that is installed
DISTRIBUTION = {"PIL": "pillow", "IPython": "ipython", "yaml": "pyyaml"}
# installed by something that is named: its distribution -> by which
COMES_WITH = {"jupyter_client": "nbclient", "jsonschema": "nbformat", "markupsafe": "jinja2"}
COMES_WITH |= {"pillow": "torchvision", "huggingface_hub": "timm", "vit_pytorch": "vit-pytorch"}
COMES_WITH |= {"pyyaml": "jupyterlab", "jupyter_server": "jupyterlab"}
COMES_WITH |= dict.fromkeys(("ipython", "psutil", "traitlets"), "ipykernel")
COMES_WITH |= {"docutils": "myst-nb", "sphinx": "myst-nb", "xdist": "pytest-xdist"}
# our own files, which tests import beside each other, and what a notebook uses only if it is there
OWN = {*"vitedu my_vit google onnxruntime".split(), *(p.stem for p in (ROOT / "tests").iterdir())}

# A Python that writes down what it is asked, and says that it is new enough.
FAKE_PYTHON = """#!/bin/sh
echo "$@" >> "{log}"
case "$1 $2" in
  "-c "*) exit {status} ;;
  "--version "*) echo "Python 3.9.18" ;;
  "-m vitedu")
    test "$3" != setup || ! test -e "{log}.broken" || exit 2
    case "$3 $4" in
      "setup --test") mkdir -p .venv-test/bin && cp "$0" .venv-test/bin/python ;;
      "setup ") mkdir -p .venv/bin && cp "$0" .venv/bin/python ;;
    esac ;;
esac
"""

needs_make = pytest.mark.skipif(
    not shutil.which("make") or sys.platform == "win32", reason="needs make and a POSIX shell"
)


def requirements():
    """Give name -> lower bound of requirements.txt."""
    lines = (ROOT / "requirements.txt").read_text().splitlines()
    words = [line.split("#")[0].strip() for line in lines]
    return dict(word.split(">=") for word in words if word)


def project():
    """Read pyproject.toml."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text())


def test_requirements_are_lower_bounds():
    """Nothing is pinned: each line is a name and the oldest release that will do."""
    for name, bound in requirements().items():
        assert re.fullmatch(r"[a-z0-9]+", name), name
        assert re.fullmatch(r"\d+(\.\d+)+", bound), name


def test_requirements_are_the_package_with_its_lab():
    """`make lab`, `pip install -e ".[lab]"` and `uv sync` bring the same, with the same bounds."""
    about = project()
    lab = about["project"]["optional-dependencies"]["lab"]
    words = [*about["project"]["dependencies"], *lab]
    assert dict(word.split(">=") for word in words) == requirements()
    assert about["dependency-groups"] == {"dev": ["vitedu[lab]"]}


def test_doctor_knows_the_requirements():
    """It asks for the same bounds; what only tests and style need, it does not look at."""
    asked = {each.name: str(each.specifier).removeprefix(">=") for each in doctor.requirements()}
    assert asked.items() <= requirements().items() and set(doctor.IMPORTED) < set(asked)
    assert set(requirements()) - set(asked) == set(doctor.NOT_NEEDED)


def imported(source):
    """Name the distributions that a piece of code imports, without the standard library."""
    for node in ast.walk(ast.parse(source)):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        names += [node.module] if isinstance(node, ast.ImportFrom) and node.module else []
        for name in (name.split(".")[0] for name in names):
            if name not in sys.stdlib_module_names and name not in OWN:
                yield DISTRIBUTION.get(name, name)


@pytest.mark.slow
def test_everything_imported_is_installed_by_name():
    """Notebooks need requirements.txt alone; the package may use any extra, the tests theirs."""
    named = set(requirements())
    extras = {
        name: {word.split(">=")[0] for word in words}
        for name, words in project()["project"]["optional-dependencies"].items()
    }
    extra, any_extra = extras["test"], set().union(*extras.values())
    sources = {path: path.read_text(encoding="utf-8") for path in (ROOT / "vitedu").rglob("*.py")}
    for path in (ROOT / "notebooks").rglob("*.ipynb"):
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
        sources[path] = re.sub(r"(?m)^([ \t]*)[%!].*$", r"\1pass", "\n".join(code))
    for path, source in sources.items():
        for name in imported(source):
            allowed = named | (any_extra if path.suffix == ".py" else set())
            assert COMES_WITH.get(name, name) in allowed, f"{path.name} imports {name}"
    for path in (ROOT / "tests").rglob("*.py"):
        for name in imported(path.read_text(encoding="utf-8")):
            assert COMES_WITH.get(name, name) in named | extra, f"{path.name} imports {name}"


def test_every_folder_of_code_is_a_package():
    """A folder without __init__.py would be missing where the package is installed, as on Colab."""
    folders = {path.parent for path in (ROOT / "vitedu").rglob("*.py")}
    assert [folder for folder in folders if not (folder / "__init__.py").exists()] == []


def test_every_file_beside_the_code_is_installed():
    """Weights, rows and templates that pyproject.toml does not name would be missing on Colab."""
    globs = project()["tool"]["setuptools"]["package-data"]
    installed = {
        path
        for package, patterns in globs.items()
        for pattern in patterns
        for path in (ROOT / package.replace(".", "/")).glob(pattern)
    }
    files = {path for path in (ROOT / "vitedu").rglob("*") if path.is_file()}
    data = {path for path in files if path.suffix != ".py" and "__pycache__" not in path.parts}
    assert data and data <= installed


@pytest.fixture
def fresh(tmp_path):
    """Give a folder with the set-up files, and a function that runs make in it."""
    for name in ("Makefile", "requirements.txt", "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path)
    log = tmp_path / "log"

    def make(*words, status=0, python=None):
        fake = tmp_path / "python-for-the-test"
        fake.write_text(FAKE_PYTHON.format(log=log, status=status))
        fake.chmod(0o755)
        log.write_text("")
        command = ["make", *words, f"PYTHON={python or fake}"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
        return done.returncode, done.stdout + done.stderr, log.read_text().splitlines()

    return tmp_path, make


@needs_make
def test_help_is_the_default_and_lists_every_target(fresh):
    """What can be called is said."""
    _, make = fresh
    status, out, calls = make()
    assert (status, calls) == (0, [])
    targets = re.findall(r"^\.PHONY: (.+)$", (ROOT / "Makefile").read_text(), re.M)[0].split()
    assert {"lab", "test", "check", "tour", "solve", "lint", "clean", "help"} <= set(targets)
    assert re.findall(r"^  ([\w-]+) ", out, re.M) == targets


@needs_make
@pytest.mark.parametrize("target", "lab test notebooks check tour site solve lint".split())
def test_a_second_run_repeats_no_set_up(fresh, target):
    """The first creates .venv and installs; the second only does its work.

    Changed requirements are installed again, in the .venv that stands. What tests need is apart,
    and students who never test never download it.
    """
    folder, make = fresh
    status, out, calls = make(target)
    assert status == 0, out
    assert "-m vitedu setup" in calls
    assert ("-m vitedu setup --test" in calls) == (target not in ("lab", "tour", "solve"))
    status, out, again = make(target)
    assert status == 0, out
    assert again and not [call for call in again if "setup" in call]
    assert set(again) < set(calls)
    stamp = (folder / ".venv" / ".lab").stat().st_mtime
    os.utime(folder / "requirements.txt", (stamp + 10, stamp + 10))
    assert "-m vitedu setup" in make("setup")[2]


@needs_make
def test_a_broken_download_is_taken_up_by_the_same_command(fresh):
    """No stamp says that the set-up stands, so the next run sets up again, then opens the lab."""
    folder, make = fresh
    (folder / "log.broken").touch()
    status, out, _ = make("lab")
    assert status != 0
    (folder / "log.broken").unlink()
    status, out, calls = make("lab", "LAB_ARGS=--no-browser --port=1")
    assert status == 0, out
    assert calls[-2:] == ["-m vitedu setup", "-m vitedu lab --lab-args=--no-browser --port=1"]


@needs_make
def test_make_hands_words_to_pytest(fresh):
    """`make test` those of TEST_ARGS, `make check` its own before them."""
    _, make = fresh
    assert make("test", "TEST_ARGS=-k patch")[2][-1] == "-m vitedu test -- -k patch"
    calls = make("check", "TEST_ARGS=-x")[2]
    own = "-q --maxprocesses 2 -m not notebook and not slow and not bank"
    assert f"-m vitedu test -- {own} -x" in calls


@needs_make
def test_python_that_will_not_do_gets_a_clear_message(fresh):
    """The version found, the version needed, the command to type; nothing is created."""
    folder, make = fresh
    status, out, _ = make("lab", status=1)
    assert status == 2
    assert "vitedu needs Python 3.11 or newer" in out and "is Python 3.9.18" in out
    assert "make lab PYTHON=python3.12" in out
    status, out, _ = make("test", python="python-of-nowhere")
    assert status == 2
    assert "There is no python-of-nowhere here" in out and "make test PYTHON=" in out
    assert not (folder / ".venv").exists()


@needs_make
def test_clean_leaves_what_is_committed(fresh):
    """Set-up, results and caches go, the rest stays."""
    folder, make = fresh
    before = {path.name for path in folder.iterdir()}
    make("setup")
    (folder / "build" / "tour").mkdir(parents=True)
    (folder / "vitedu" / "__pycache__").mkdir(parents=True)
    make("clean")
    after = {path.name for path in folder.iterdir()} - {"log", "python-for-the-test", "vitedu"}
    assert after == before
    assert not (folder / "vitedu" / "__pycache__").exists()


def test_readme_of_the_package_lists_every_file():
    """Its tree has one line with a comment for each."""
    readme = (ROOT / "vitedu" / "README.md").read_text(encoding="utf-8")
    names = [path.name for path in (ROOT / "vitedu").glob("*.py") if path.name != "__init__.py"]
    names += [f"{path.parent.name}/" for path in (ROOT / "vitedu").glob("*/__init__.py")]
    for name in names:
        assert re.search(rf"(?m)^\W*{re.escape(name)}\s+\w", readme), f"{name} is not in the tree"
