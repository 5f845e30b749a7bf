"""The two cells that make a notebook run on Colab, and the repository's address in them.

Role: writes the line with the link and the folded cell that installs the package, lists notebooks
where they are missing or different, and changes the address everywhere: ``vitedu slug
owner/name``. The address is defined in ``REPOSITORY`` only.

The link names the tag of this version, ``v<version>``, and the cell takes the wheel of that
release, which needs no git, so that notebook and package come from one commit. A commit cannot
contain its own hash, and a branch would change under notebooks that students have saved. The cell
asks Colab from which file on GitHub the notebook was opened, so a fork, or a clone whose address
nobody wrote, installs its own package; where it has no release, pip takes the repository at the
branch that was opened.

The notebooks' metadata name the runtime of Colab whose versions stand in tests/colab.txt. Colab
calls a past runtime by its month (github.com/googlecolab/backend-info) and gives it to notebooks
that name it.

Why ``--no-deps``: Colab has what the package needs. Its torch comes from another index than pip's,
and pip might try to replace it. The four small packages are named without versions, so pip installs
the missing ones and upgrades nothing.

Why the README's full address: on Colab a relative link works only in a notebook that was opened
from GitHub (googlecolab/colabtools, issue 3877), not in a copy in Drive.
"""

import copy
import re
from collections.abc import Iterator
from pathlib import Path

import nbformat
from nbformat import NotebookNode, v4

from vitedu import __version__
from vitedu.course.notebooks import find_notebooks, read, shelf_path
from vitedu.files import write_whole

PLACEHOLDER = "OWNER_NOT_SET/vitedu"  # GitHub allows no account of this name
REPOSITORY = "OWNER_NOT_SET/vitedu"  # `vitedu slug` writes this line
TAG = f"v{__version__}"
WHEEL = f"vitedu-{__version__}-py3-none-any.whl"  # of the release of this tag
RUNTIME = "2026.07"
METADATA = {"runtime_attributes": {"runtime_version": RUNTIME}}  # of a notebook, under "colab"
PACKAGES = ("safetensors", "platformdirs", "filelock", "packaging")
CELLS = ("colab", "install")  # ids, in this order
FOLDED = {"cellView": "form", "jupyter": {"source_hidden": True}, "tags": ["hide-input"]}

TEXT = "[Open in Colab]({own}) · [all notebooks, and how to keep results]({readme})"

INSTALL = """\
# Colab: install the course, once a session
import re
from importlib import invalidate_caches, util

where, ref = "{repository}", "{tag}"  # on GitHub, and the version of this notebook


def is_missing():
    invalidate_caches()  # a mere folder of that name has no origin
    return getattr(util.find_spec("vitedu"), "origin", None) is None


if is_missing():
    try:  # Colab knows from which file on GitHub it opened this notebook
        from google.colab import _message

        reply = _message.blocking_request("get_ipynb", timeout_sec=10)
        file = reply["ipynb"]["metadata"]["colab"]["provenance"][-1]["file_id"]
        where, ref = re.search(r"github[.]com/([^/]+/[^/]+)/blob/(.+?)/notebooks/", file).groups()
    except Exception:
        pass  # a copy in Drive, or not Colab: what stands above holds
{refusal}    print("Installing the course's package. This takes less than a minute.")
    wheel = f"https://github.com/{{where}}/releases/download/{tag}/{wheel}"
    %pip install --quiet --no-deps {{wheel}} {small}
    if is_missing():  # no release, so the repository itself
        %pip install --quiet --no-deps git+https://github.com/{{where}}@{{ref}} {small}"""

REFUSAL = """\
    if "OWNER_NOT_SET" in where:
        raise RuntimeError(
            "This notebook does not know yet where its package is kept. \
In the line with OWNER_NOT_SET above, "
            "write the GitHub address that you have the notebook from in place of \
OWNER_NOT_SET/vitedu, then run this cell again."
        )
"""


def address(notebook: str, repository: str = REPOSITORY) -> str:
    """Return the address that opens a notebook on Colab.

    Example:
        >>> address("01_patches_more").rpartition(TAG)[2]
        '/notebooks/more/01_patches_more.ipynb'
    """
    file = f"{repository}/blob/{TAG}/notebooks/{shelf_path(f'{notebook}.ipynb')}"
    return f"https://colab.research.google.com/github/{file}"


def cell_sources(notebook: str, repository: str = REPOSITORY) -> dict[str, str]:
    """Return the text of both cells by cell id.

    Args:
        notebook: its name without suffix, as in the syllabus.
        repository: ``owner/name`` on GitHub.
    """
    readme = f"https://github.com/{repository}/blob/{TAG}/README.md#colab"
    refusal = REFUSAL if repository == PLACEHOLDER else ""
    install = INSTALL.format(
        repository=repository, tag=TAG, wheel=WHEEL, refusal=refusal, small=" ".join(PACKAGES)
    )
    own = address(notebook, repository)
    return {"colab": TEXT.format(own=own, readme=readme), "install": install}


def find_problems(notebook: NotebookNode, name: str) -> Iterator[str]:
    """Say where the two cells of a notebook are missing, misplaced or different.

    Args:
        notebook: from ``vitedu.course.notebooks.read``.
        name: its name without suffix.
    """
    ids = [cell.get("id") for cell in notebook.cells]
    wanted = update_cells(notebook, name)
    for cell_id in CELLS:
        if cell_id not in ids:
            yield f"file: has no cell {cell_id!r} for Colab; `vitedu slug` writes it."
        elif notebook.cells[ids.index(cell_id)] not in wanted.cells:
            yield f"cell {cell_id!r}: is not as course/colab.py writes it; `vitedu slug` does."
    kinds = [cell.cell_type for cell in notebook.cells]
    if "install" in ids and kinds.index("code") != ids.index("install"):
        yield "cell 'install': must be the first code cell; move it up."
    if notebook.metadata != wanted.metadata:
        yield f"file: does not name Colab's runtime {RUNTIME}; `vitedu slug` writes it."
    if set(CELLS) <= set(ids) and ids.index("install") != ids.index("colab") + 1:
        yield "cell 'colab': must stand directly above the cell 'install'; move it."


def update_cells(notebook: NotebookNode, name: str, repository: str = REPOSITORY) -> NotebookNode:
    """Return a notebook with both cells, updated in their place or inserted below its title.

    Args:
        notebook: from ``vitedu.course.notebooks.read``.
        name: its name without suffix.
        repository: ``owner/name`` on GitHub.
    """
    result = copy.deepcopy(notebook)
    ids = [cell.get("id") for cell in notebook.cells]
    about, install = cell_sources(name, repository).values()
    new = [
        v4.new_markdown_cell(about, id="colab"),
        v4.new_code_cell(install, id="install", metadata=FOLDED),
    ]
    for place, cell in enumerate(new, start=1):
        if cell.id in ids:
            result.cells[ids.index(cell.id)] = cell
        else:
            result.cells.insert(place, cell)
    result.metadata["colab"] = METADATA
    return result


def set_repository(root: Path, repository: str) -> list[Path]:
    """Write the address into this module, the notebooks' cells, and the links of other files.

    Args:
        root: the folder of the repository.
        repository: ``owner/name`` on GitHub.

    Returns:
        The files that changed.

    Raises:
        ValueError: the address is no ``owner/name``.
    """
    if repository != PLACEHOLDER and not re.fullmatch(
        r"[A-Za-z0-9]+(-[A-Za-z0-9]+)*/[\w.-]+", repository, re.ASCII
    ):
        raise ValueError(
            f"the repository must be owner/name on GitHub, such as ada/vitedu (got {repository!r})."
        )
    changed = []

    def write(path: Path, text: str) -> None:
        if text.encode() != path.read_bytes():
            write_whole(path, text.encode())
            changed.append(path)

    module = root / "vitedu" / "course" / "colab.py"
    text = module.read_text(encoding="utf-8")
    write(module, re.sub(r'(?m)^REPOSITORY = "[^"]+"', f'REPOSITORY = "{repository}"', text))
    for path in find_notebooks(root / "notebooks"):
        write(path, nbformat.writes(update_cells(read(path), path.stem, repository)) + "\n")
    badge = r"https://colab\.research\.google\.com/github/[^\s)]+/notebooks/(?:more/)?(\w+)\.ipynb"
    others = [root / name for name in ("README.md", "pyproject.toml", "CITATION.cff")]
    others += (root / ".github").rglob("*.md")
    others += (root / ".github").rglob("*.yml")
    for path in filter(Path.is_file, others):
        text = path.read_text(encoding="utf-8")
        text = re.sub(badge, lambda found: address(found[1], repository), text)
        write(path, text.replace(f"github.com/{REPOSITORY}", f"github.com/{repository}"))
    return changed
