"""On Colab a notebook installs the package and upgrades nothing; elsewhere its cell is idle."""

import json
import os
import re
import shutil
import subprocess
import sys
import time
from datetime import datetime
from types import SimpleNamespace

import pytest
from IPython.core.inputtransformer2 import TransformerManager
from jupyter_client import AsyncKernelManager
from jupyter_client.kernelspec import KernelSpec, KernelSpecManager
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell
from packaging.requirements import Requirement
from packaging.version import Version
from sound_notebook import build
from test_setup import ROOT, project, requirements

from vitedu import __version__
from vitedu.__main__ import main
from vitedu.course import colab, environments
from vitedu.course.notebooks import find_notebooks, read
from vitedu.exercises import MORE, STEMS

NOTEBOOKS = find_notebooks(ROOT / "notebooks")
COLAB = os.environ.get("VITEDU_COLAB_PYTHON")  # `make colab` sets it
BROUGHT = dict(
    line.replace(".*", "").partition("==")[::2]
    for line in (ROOT / "tests" / "colab.txt").read_text(encoding="utf-8").splitlines()
    if not line.startswith("#")
)


# --- what the cell does ---------------------------------------------------------------------------


class Shell:
    """Stands for IPython: it notes magics, with names in braces filled in, and runs none."""

    def __init__(self):
        self.asked = []

    def run_line_magic(self, name, line, **_):
        """Note one magic; what it installs from a release that exists is there from then on."""
        self.asked.append((name, line.format(**self.names)))
        if self.released in line.format(**self.names):
            self.names["is_missing"] = lambda: False


def run(source, released="releases/"):
    """Run a cell as IPython would, in a fresh namespace; give the magics that it asked for."""
    shell = Shell()
    shell.released = released
    shell.names = {"get_ipython": lambda: shell}
    exec(TransformerManager().transform_cell(source), shell.names)
    return shell.asked


def without_the_package(monkeypatch, folder):
    """Let no vitedu be found but what the folder holds."""
    monkeypatch.setattr(sys, "path", [str(folder)])
    monkeypatch.setattr(sys, "meta_path", [f for f in sys.meta_path if "editable" not in repr(f)])
    monkeypatch.delitem(sys.modules, "vitedu")


def install_cell(repository="ada/vitedu"):
    """Give the text of the cell, with an address in it."""
    return colab.renew(read(NOTEBOOKS[0]).cells[2].source, repository)


def words_of(repository="ada/vitedu"):
    """Give the words of the cell's pip command."""
    command = re.findall(r"(?m)^ *%pip (.+)$", install_cell(repository))[0]
    return command.replace("{wheel}", release_of(repository)).split()


def release_of(repository):
    """Give the address of the wheel of this version."""
    wheel = f"vitedu-{__version__}-py3-none-any.whl"
    return f"https://github.com/{repository}/releases/download/{colab.TAG}/{wheel}"


def opened_from(monkeypatch, reply):
    """Let there be Colab's module, which answers one question."""

    def blocking_request(name, **_):
        assert name == "get_ipynb"
        return reply

    message = SimpleNamespace(blocking_request=blocking_request)
    monkeypatch.setitem(sys.modules, "google", SimpleNamespace())
    monkeypatch.setitem(sys.modules, "google.colab", SimpleNamespace(_message=message))


def provenance(*files):
    """Give what Colab answers of a notebook that came from these files."""
    rows = [{"file_id": file, "timestamp": 1} for file in files]
    return {"ipynb": {"metadata": {"colab": {"provenance": rows}}}}


@pytest.mark.parametrize("repository", [colab.PLACEHOLDER, "ada/vitedu"])
def test_cell_does_nothing_where_the_package_is(repository, capsys):
    """A clone and `make lab` need no network, whatever the address is."""
    assert run(install_cell(repository)) == []
    assert capsys.readouterr().out == ""


def test_cell_installs_where_the_package_is_missing(monkeypatch, tmp_path):
    """One pip command for the wheel of this version's release, which needs no git.

    Beside a clone, or a results folder in Drive, Python finds a namespace that holds nothing.
    """
    (tmp_path / "results" / "vitedu").mkdir(parents=True)
    for folder in (tmp_path, tmp_path / "results"):
        with monkeypatch.context() as patch:
            without_the_package(patch, folder)
            ((name, line),) = run(install_cell())
        assert name == "pip" and line.split() == words_of()
        assert release_of("ada/vitedu") in line and "git+" not in line


ON_GITHUB = (
    "https://github.com/eve/cours-de-vit/blob/fall/2026/notebooks/more/01_patches_more.ipynb"
)


@pytest.mark.parametrize("repository", [colab.PLACEHOLDER, "ada/vitedu"])
def test_cell_asks_colab_where_the_notebook_is_from(repository, monkeypatch, tmp_path):
    """The release of that address; where it has none, the repository at the branch opened."""
    without_the_package(monkeypatch, tmp_path)
    opened_from(monkeypatch, provenance("https://drive.google.com/1x", ON_GITHUB))
    source = install_cell(repository)
    ((_, line),) = run(source)
    assert line.split() == words_of("eve/cours-de-vit")
    (_, first), (_, second) = run(source, released="nothing is")
    assert first == line
    assert second.split()[3] == "git+https://github.com/eve/cours-de-vit@fall/2026"


REPLIES = [None, {}, provenance(), provenance("https://drive.google.com/1x"), {"ipynb": 7}]


@pytest.mark.parametrize("reply", REPLIES, ids=str)
def test_cell_goes_by_its_own_address_where_colab_says_nothing(reply, monkeypatch, tmp_path):
    """A copy in Drive has lost its origin."""
    without_the_package(monkeypatch, tmp_path)
    opened_from(monkeypatch, reply)
    ((_, line),) = run(install_cell())
    assert line.split() == words_of()


def test_cell_with_the_placeholder_says_what_to_write(monkeypatch, tmp_path):
    """It asks no stranger's repository; with the address written in, it goes on."""
    without_the_package(monkeypatch, tmp_path)
    source = install_cell(colab.PLACEHOLDER)
    with pytest.raises(RuntimeError, match="in place of OWNER_NOT_SET/vitedu"):
        run(source)
    mended = source.replace('where, ref = "OWNER_NOT_SET/vitedu"', 'where, ref = "ada/vitedu"')
    ((_, line),) = run(mended)
    assert line.split() == words_of()


# --- what pip is asked for ------------------------------------------------------------------------


def test_command_upgrades_nothing():
    """No dependency is followed, no upgrade asked for, no version named: what is there stays."""
    words = words_of()
    assert words[:3] == ["install", "--quiet", "--no-deps"]
    assert words[3] == release_of("ada/vitedu")
    assert all(re.fullmatch("[a-z]+", word) for word in words[4:]), words


@pytest.mark.slow
def test_pip_leaves_what_is_installed():
    """Asked for the small packages where they are, pip changes none and needs no network."""
    command = [sys.executable, "-m", "pip", "install", "--no-deps", "--no-index", "--dry-run"]
    small = words_of()[4:]
    done = subprocess.run([*command, *small], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("already satisfied") == len(small)
    assert "Would install" not in done.stdout


def test_versions_of_colab_are_new_enough():
    """Each requirement is met by Colab's list, installed by the cell, or torch's own."""
    about = project()["project"]
    assert Version("3.12") in Requirement(f"python{about['requires-python']}").specifier
    assert about["version"] == __version__
    for word in about["dependencies"]:
        requirement = Requirement(word)
        if BROUGHT.get(requirement.name):
            assert BROUGHT[requirement.name] in requirement.specifier, word
        else:
            # torch requires Jinja2
            assert requirement.name in {*words_of()[4:], *BROUGHT, "jinja2"}, word
    for name, bound in requirements().items():  # `vitedu doctor` asks for these
        if BROUGHT.get(name):
            assert Version(BROUGHT[name]) >= Version(bound), name


# --- the notebooks --------------------------------------------------------------------------------


VERSION = f"v{__version__}"
# what is wrong with a sound notebook: its cell, what is replaced there by what
FAULTS = {
    "link of another": (1, "01_patches", "02_attention"),
    "link elsewhere": (1, colab.REPOSITORY, "eve/vitedu"),
    "link older": (1, VERSION, "v0.0.1"),
    "install elsewhere": (2, colab.REPOSITORY, "eve/vitedu"),
    "install older": (2, VERSION, "v0.0.1"),
}


@pytest.mark.parametrize(("place", "old", "new"), FAULTS.values(), ids=FAULTS)
def test_problems_name_each_fault(place, old, new):
    """Link and cell agree with each other, and with this version and address."""
    notebook = build()
    assert list(colab.find_problems(notebook, "01_patches")) == []
    cell = notebook.cells[place]
    assert old in cell.source
    cell.source = cell.source.replace(old, new)
    (problem,) = colab.find_problems(notebook, "01_patches")
    assert f"and {cell.id!r} holds " in problem
    notebook.cells.remove(cell)
    assert problem in colab.find_problems(notebook, "01_patches")


def test_all_notebooks_have_the_same_cell_and_name_colabs_runtime():
    """The first screen belongs to the student: in JupyterLab and on Colab the cell is folded."""
    notebooks = [read(path) for path in NOTEBOOKS]
    first = notebooks[0].cells[2]
    assert all(notebook.cells[2] == first for notebook in notebooks)
    folded = {"cellView": "form", "jupyter": {"source_hidden": True}, "tags": ["hide-input"]}
    assert first.id == "install" and first.metadata == folded
    (runtime,) = {n.metadata.colab["runtime_attributes"]["runtime_version"] for n in notebooks}
    assert f"runtime {runtime} " in (ROOT / "tests" / "colab.txt").read_text("utf-8")


def test_readme_opens_the_notebooks_of_this_version():
    """The cores, with the address and the tag that they have, at the place that they link."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    addresses = re.findall(r"https://colab\.research\.google\.com/github/[^\s)]+", readme)
    assert addresses == [colab.address(name) for name in STEMS if not name.endswith(MORE)]
    assert "README.md#colab" in read(NOTEBOOKS[0]).cells[1].source
    assert '<a id="colab"></a>' in readme


# --- vitedu slug --------------------------------------------------------------------------------


@pytest.fixture
def copy(tmp_path):
    """Give a copy of everything that holds the address."""
    for name in ("README.md", "Makefile", "vitedu/course/colab.py", *map(str, NOTEBOOKS)):
        path = ROOT / name
        new = tmp_path / path.relative_to(ROOT)
        new.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, new)
    return tmp_path


def texts(root):
    """Give path -> text of every file."""
    files = (path for path in root.rglob("*") if path.is_file())
    return {path: path.read_text(encoding="utf-8") for path in files}


def test_slug_rewrites_every_address_and_nothing_else(copy):
    """Notebooks, README and the constant; the other cells stay as they are, to the byte."""
    before = texts(copy)
    assert colab.set_repository(copy, colab.REPOSITORY) == []
    changed = colab.set_repository(copy, "ada-b/vit.edu")
    names = {path.name for path in NOTEBOOKS}
    assert {path.name for path in changed} == names | {"README.md", "colab.py"}
    for path, text in texts(copy).items():
        if path.suffix == ".ipynb":
            old, new = (json.loads(t)["cells"] for t in (before[path], text))
            different = [a["id"] for a, b in zip(old, new, strict=True) if a != b]
            assert different == list(colab.CELLS)
            assert json.loads(before[path])["metadata"] == json.loads(text)["metadata"]
    module = (copy / "vitedu" / "course" / "colab.py").read_text(encoding="utf-8")
    assert 'REPOSITORY = "ada-b/vit.edu"' in module
    assert f'PLACEHOLDER = "{colab.PLACEHOLDER}"' in module
    assert "github/ada-b/vit.edu/blob" in (copy / "README.md").read_text(encoding="utf-8")
    assert {
        path: text.replace("ada-b/vit.edu", colab.REPOSITORY) for path, text in texts(copy).items()
    } == before


def test_slug_renews_the_version(copy):
    """That of links, of the wheel and of the cell, whatever stood there."""
    before = texts(copy)
    for path, text in before.items():
        if path.suffix == ".ipynb" or path.name == "README.md":
            path.write_text(text.replace(__version__, "0.2.1rc2"), encoding="utf-8")
    assert len(colab.set_repository(copy, colab.REPOSITORY)) == 19
    assert texts(copy) == before


@pytest.mark.parametrize(
    "address", ["vitedu", "https://github.com/ada/vitedu", "ada/vitedu/x", "-a/b", 'a/b"', ""]
)
def test_slug_refuses_what_is_no_address(copy, address):
    """Nothing is written."""
    before = texts(copy)
    with pytest.raises(ValueError, match="must be owner/name on GitHub"):
        colab.set_repository(copy, address)
    assert texts(copy) == before


def test_slug_says_what_it_changed_and_what_is_left_to_do(copy, monkeypatch, capsys):
    """The files; for the placeholder how to set one's own, for an address the tag to push."""
    monkeypatch.setattr(environments, "ROOT", copy)
    (copy / "pyproject.toml").write_text(f'url = "https://github.com/{colab.REPOSITORY}"\n')
    assert main(["slug", "ada/vitedu"]) == 0
    out = capsys.readouterr().out
    assert str(copy / "README.md") in out and f"git tag {VERSION}" in out
    assert (copy / "pyproject.toml").read_text() == 'url = "https://github.com/ada/vitedu"\n'
    assert main(["slug", "nonsense"]) == 2
    assert "must be owner/name" in capsys.readouterr().err
    assert main(["slug", colab.PLACEHOLDER]) == 0
    assert "Set yours: vitedu slug owner/name" in capsys.readouterr().out


# --- with Colab's versions ------------------------------------------------------------------------


class Kernel(KernelSpecManager):
    """Every kernel is Colab's Python."""

    def get_kernel_spec(self, kernel_name):
        """Give the one kernel."""
        return KernelSpec(argv=[COLAB, "-m", "ipykernel_launcher", "-f", "{connection_file}"])


def pip(*words):
    """Call the pip of Colab's Python; give what it said."""
    return subprocess.run(
        [COLAB, "-m", "pip", *words], check=True, capture_output=True, text=True
    ).stdout.splitlines()


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """Build the wheel as a release does."""
    folder = tmp_path_factory.mktemp("wheel")
    pip("wheel", "--quiet", "--no-deps", "--wheel-dir", str(folder), str(ROOT))
    return next(folder.glob("*.whl"))


MEMORY = 12  # GB; a free Colab has 12.7
PEAK = "import resource\n\nprint(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"  # in KB


@pytest.mark.slow
@pytest.mark.network
@pytest.mark.timeout(1800)
@pytest.mark.skipif(
    not COLAB, reason="needs 5 GB of Colab's versions; `make colab` installs and runs"
)
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_runs_alone_with_the_versions_of_colab(path, wheel, tmp_path):
    """From an empty folder: the first cell gets the package, every cell runs, nothing is upgraded.

    In the quick profile, or that of VITEDU_PROFILE.
    """
    pip("uninstall", "--quiet", "--yes", "vitedu", "safetensors")
    before = set(pip("freeze"))
    notebook = read(path)
    install = next(cell for cell in notebook.cells if cell.get("id") == "install")
    install.source = re.sub(r'wheel = f"[^"]+"', f'wheel = "{wheel}"', install.source)
    notebook.cells.append(new_code_cell(PEAK, id="peak"))
    (tmp_path / "empty").mkdir()
    environment = {key: text for key, text in os.environ.items() if key != "PYTHONPATH"}
    environment = {"VITEDU_PROFILE": "quick", **environment, "VITEDU_HOME": str(tmp_path / "store")}
    environment.pop("MPLBACKEND", None)
    client = NotebookClient(
        notebook,
        km=AsyncKernelManager(kernel_name="python3", kernel_spec_manager=Kernel()),
        timeout=600,
        resources={"metadata": {"path": str(tmp_path / "empty")}},
    )
    start = time.perf_counter()
    client.execute(env=environment, cleanup_kc=True)
    times = install.metadata["execution"]
    begun, ended = (
        datetime.fromisoformat(times[f"iopub.{name}"].replace("Z", "+00:00"))
        for name in ("execute_input", "status.idle")
    )
    print(f"{path.stem}: install cell {(ended - begun).total_seconds():.1f} s,", end=" ")
    peak = int(notebook.cells[-1].outputs[0].text) / 1e6
    print(f"whole notebook {time.perf_counter() - start:.0f} s, {peak:.1f} GB at the peak")
    assert peak < MEMORY
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", ())]
    assert [output.text for output in outputs if output.get("name") == "stderr"] == []
    after = set(pip("freeze"))
    assert before <= after, "something that was there has another version now"
    assert {re.split("[ =]", line)[0] for line in after - before} == {"vitedu", "safetensors"}
    origin = subprocess.run(
        [COLAB, "-I", "-c", "import vitedu; print(vitedu.__file__)"], capture_output=True, text=True
    ).stdout
    assert "site-packages" in origin and str(ROOT / "vitedu") not in origin
