"""The course as pages: the students' notebooks with the outputs of the solved run, built by Sphinx.

Role: puts notebooks and outputs together, and has myst-nb and sphinx-book-theme build the pages;
Sphinx says which links lead nowhere. The browser's part, reading aloud, is in
``site_static/listen.js``. Notebooks are run by ``tour``.
"""

import base64
import io
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import nbformat
from jinja2 import Template
from nbformat import NotebookNode, v4

from vitedu.course.colab import PLACEHOLDER, REPOSITORY
from vitedu.course.notebooks import find_notebooks, read, shelf_path, write
from vitedu.course.tour import tour
from vitedu.exercises import in_file
from vitedu.plots.explorer import WIDGET
from vitedu.plots.style import DPI, CourseFigure

WORDS = "words.md"  # beside the notebooks: what they mean by their words
GITHUB = f"https://github.com/{REPOSITORY}"

SETTINGS: dict[str, Any] = {
    "project": "vitedu",
    "extensions": ["myst_nb", __name__],
    "html_theme": "sphinx_book_theme",
    "html_title": "Vision Transformers by hand",
    "html_theme_options": {
        "use_download_button": False,
        "navbar_persistent": [],
        "footer_content_items": [],
    },
    "html_static_path": [str(Path(__file__).parent / "site_static")],
    "html_css_files": ["site.css"],
    "html_js_files": ["listen.js"],
    "html_math_renderer": "mathml",
    "html_copy_source": False,
    "html_use_index": False,
    "myst_enable_extensions": ["dollarmath", "colon_fence"],
    "myst_heading_anchors": 3,
    "myst_heading_slug_func": f"{__name__}.anchor",
    "nb_execution_mode": "off",
    "nb_merge_streams": True,
    "nb_code_prompt_show": "Show the code of this cell",
    "nb_code_prompt_hide": "Hide the code of this cell",
}
NOTE = """:::{{note}}
The outputs come from a run of the solved course in the size `{profile}`. (Models of the size
`quick` are hardly trained: judge no method by their numbers.) The cells marked TODO are as
students get them, so each check shows what the reference got.
:::"""
BLOCK = '<div class="formula" role="group" aria-label="formula" tabindex="0">{}</div>'  # may scroll


def write_site(
    path: Path,
    out: Path,
    *,
    runs: Path = Path("build/runs"),
    instructor: bool = False,
    draw: Callable[[], CourseFigure] | None = None,
) -> list[str]:
    """Build the course as pages in the folder ``out``, which may be published as it is.

    Args:
        path: a notebook of the course, or a folder of them, as students get them.
        out: new, empty, or pages of an earlier build, which go.
        runs: keeps the solved notebooks with their outputs, as ``tour`` left them.
        instructor: add the solution below every answer cell, folded.
        draw: gives the picture of the front page.

    Returns:
        What is wrong with the pages; an empty list if nothing is.

    Raises:
        FileNotFoundError, ValueError: as ``tour``; a notebook fails; ``out`` holds other things; or
            Sphinx is not installed.
    """
    # on the pages, what is more stands below its core
    paths, out = sorted(find_notebooks(path), key=lambda each: each.stem), Path(out)
    try:
        from sphinx.application import Sphinx
    except ModuleNotFoundError as error:
        raise ValueError("the pages need Sphinx: pip install 'vitedu[site]'.") from error
    if out.exists() and any(out.iterdir()) and not (out / "objects.inv").exists():
        raise ValueError(f"{out} holds other things than pages; name a new folder.")
    if not tour(path, runs, again=False):
        raise ValueError("a solved notebook fails, so there are no pages; see above.")
    pages = {
        each.stem: merge_outputs(read(each), nbformat.read(runs / each.name, 4), instructor)
        for each in paths
    }
    shutil.rmtree(out, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix="vitedu-site-") as work:
        source, trees, warnings = Path(work, "source"), Path(work, "trees"), io.StringIO()
        write_source(source, pages, paths[0].resolve().parent, draw() if draw else None)
        Sphinx(source, None, out, trees, "html", SETTINGS, status=None, warning=warnings).build()
    log = re.sub(r"\x1b\[[\d;]*m", "", warnings.getvalue())  # in colours
    return [line.replace(f"{source}{os.sep}", "") for line in log.splitlines()]


def setup(app: Any) -> dict[str, bool]:
    """Write formulas as MathML, which a browser shows without a script; Sphinx calls this."""
    from docutils.nodes import SkipNode
    from docutils.utils.math.latex2mathml import tex2mathml

    def write(writer, node):
        formula = tex2mathml(node.astext())
        if node.tagname == "math_block":
            formula = BLOCK.format(formula.replace("<math ", '<math display="block" ', 1))
        writer.body.append(formula)
        raise SkipNode

    app.add_html_math_renderer("mathml", (write, None), (write, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}


# --- pages before they are built ------------------------------------------------------------------


def merge_outputs(student: NotebookNode, run: NotebookNode, instructor: bool) -> NotebookNode:
    """Fill a student's notebook with the outputs of the solved one, whose cells are its own.

    Every picture gets words, and an explorer is a picture.
    """
    note = NOTE.format(profile=run.metadata["vitedu_profile"])
    cells = []
    for cell, solved in zip(student.cells, run.cells, strict=True):
        cells.append(cell)
        if cell.cell_type == "code":
            cell.outputs = []
            for output in solved.outputs:
                data = output.get("data", {})
                data.pop(WIDGET, None)
                # a picture has its words here, so they are not read again
                if "vitedu-words" not in data.get("text/html", ""):
                    cell.outputs.append(output)
            if words := [*filter(None, map(alt_text, cell.outputs))]:
                cell.metadata["mystnb"] = {"image": {"alt": " ".join(words)}}
        if instructor and "exercise" in cell.metadata.get("vitedu", {}):
            labels = dict(
                code_prompt_show="Show the solution", code_prompt_hide="Hide the solution"
            )
            metadata = {"tags": ["hide-input"], "mystnb": labels}
            cells.append(v4.new_code_cell(solved.source, metadata=metadata))
    student.cells = [cells[0], v4.new_markdown_cell(note), *cells[1:]]
    return student


def anchor(heading: str) -> str:
    """Name a heading as Jupyter does, so that the notebooks' links lead to it."""
    return heading.replace(" ", "-")


def alt_text(output: NotebookNode) -> str:
    """Give what stands for the picture of an output, or nothing if it has none."""
    if "image/png" not in output.get("data", {}):
        return ""
    return output.metadata.get("image/png", {}).get("alt") or output.data["text/plain"]


def write_source(
    source: Path, pages: Mapping[str, NotebookNode], folder: Path, picture: CourseFigure | None
) -> None:
    """Write what Sphinx reads: notebooks, their words, pictures, and the front page.

    Args:
        source: a new folder.
        pages: from ``merge_outputs``, by name.
        folder: where the notebooks lie, and their words beside them.
        picture: for the front page.
    """
    drawn, listed = {}, []  # by cell, and by page, for the front page
    for name, notebook in pages.items():
        file = shelf_path(f"{name}.ipynb")
        write(notebook, source / file)
        link = f"[{notebook.cells[0].source.splitlines()[0].lstrip('# ')}]({file})"
        listed.append({"file": file, "link": link, "exercises": in_file(name)})
        for cell in notebook.cells:
            if output := next(filter(alt_text, reversed(cell.get("outputs", []))), None):
                (source / f"{cell.id}.png").write_bytes(base64.b64decode(output.data["image/png"]))
                drawn[cell.id] = {"link": link, "alt": alt_text(output)}
    if has_words := (folder / WORDS).exists():
        shutil.copy(folder / WORDS, source)
    if picture:
        (source / "picture.png").write_bytes(picture.png(2 * DPI))
    front = Template(Path(__file__).with_name("site_front.md").read_text(encoding="utf-8"))
    text = front.render(
        pages=listed,
        drawn=drawn,
        picture=picture,
        course="the course" if REPOSITORY == PLACEHOLDER else f"[the course]({GITHUB})",
        note=next(iter(pages.values())).cells[1].source,
        words=has_words,
    )
    (source / "index.md").write_text(text, encoding="utf-8")
