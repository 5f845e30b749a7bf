"""The repository's address, and the two cells that make a notebook run on Colab.

Role: ``vitedu slug owner/name`` writes the address and this version wherever they stand, as text;
lint says where they do not. The cells themselves, a link and a folded one that installs the
package, stand in the notebooks and nowhere else: a new notebook gets copies.

The link names the tag of this version, ``v<version>``, and the cell takes the wheel of that
release, which needs no git, so that notebook and package come from one commit. A commit cannot
contain its own hash, and a branch would change under notebooks that students have saved. The cell
asks Colab from which file on GitHub the notebook was opened, so a fork, or a clone whose address
nobody wrote, installs its own package; where it has no release, pip takes the repository at the
branch that was opened.

Why ``--no-deps``: Colab has what the package needs. Its torch comes from another index than pip's,
and pip might try to replace it. The four small packages are named without versions, so pip installs
the missing ones and upgrades nothing.

Why the README's full address: on Colab a relative link works only in a notebook that was opened
from GitHub (googlecolab/colabtools, issue 3877), not in a copy in Drive.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from nbformat import NotebookNode

from vitedu import __version__
from vitedu.course.notebooks import find_notebooks, shelf_path
from vitedu.ground.files import write_whole

PLACEHOLDER = "OWNER_NOT_SET/vitedu"  # GitHub allows no account of this name
REPOSITORY = "OWNER_NOT_SET/vitedu"  # `vitedu slug` writes this line
TAG = f"v{__version__}"
CELLS = ("colab", "install")  # ids, in this order
OWN = re.escape(REPOSITORY)
BEFORE_ADDRESS = re.compile(
    rf'(?m)(github/|github\.com/|where, ref = \\?"|^REPOSITORY = "){OWN}(?=[/"\\\s)]|$)'
)
BEFORE_TAG = re.compile(
    r'(/blob/|/releases/download/|where, ref = \\?"[^"]+", \\?")v\d+\.\d+\.\d+[.\w]*'
)
WHEEL = re.compile(r"vitedu-\d+\.\d+\.\d+[.\w]*(?=-py3-none-any\.whl)")


def address(notebook: str) -> str:
    """Return the address that opens a notebook on Colab.

    Example:
        >>> address("01_patches_more").rpartition(TAG)[2]
        '/notebooks/more/01_patches_more.ipynb'
    """
    file = f"{REPOSITORY}/blob/{TAG}/notebooks/{shelf_path(f'{notebook}.ipynb')}"
    return f"https://colab.research.google.com/github/{file}"


def find_problems(notebook: NotebookNode, name: str) -> Iterator[str]:
    """Rule: below the title stand the two cells for Colab, with this address and version."""
    cells = {cell.get("id"): cell.source for cell in notebook.cells[1:3]}
    wanted = address(name), f'where, ref = "{REPOSITORY}", "{TAG}"'
    for cell_id, text in zip(CELLS, wanted, strict=True):
        if text not in cells.get(cell_id, ""):
            yield (
                f"file: the second and third cell are {CELLS} for Colab, and {cell_id!r} holds "
                f"{text}; copy them from another notebook, then `vitedu slug`."
            )


def renew(text: str, repository: str = REPOSITORY) -> str:
    """Give a text with another address, and this version in links and in the cell for Colab."""
    text = BEFORE_ADDRESS.sub(rf"\g<1>{repository}", text)
    return WHEEL.sub(f"vitedu-{__version__}", BEFORE_TAG.sub(rf"\g<1>{TAG}", text))


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
    is_address = re.fullmatch(r"[A-Za-z0-9]+(-[A-Za-z0-9]+)*/[\w.-]+", repository, re.ASCII)
    if repository != PLACEHOLDER and not is_address:
        raise ValueError(
            f"the repository must be owner/name on GitHub, such as ada/vitedu (got {repository!r})."
        )
    paths = [root / "vitedu" / "course" / "colab.py", *find_notebooks(root / "notebooks")]
    paths += [root / name for name in ("README.md", "pyproject.toml", "CITATION.cff")]
    paths += [path for kind in ("*.md", "*.yml") for path in (root / ".github").rglob(kind)]
    changed = []
    for path in filter(Path.is_file, paths):
        before = path.read_bytes()
        if (after := renew(before.decode(), repository).encode()) != before:
            write_whole(path, after)
            changed.append(path)
    return changed
