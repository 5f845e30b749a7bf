"""Notebooks as editors save them. All of them score in full."""

from attacks import IMPORTS, RIGHT, code, notebook

OUTPUT = {"output_type": "stream", "name": "stdout", "text": ["tensor([0.2500, 0.7500])\n"]}
PYTHON = {"mimetype": "text/x-python", "name": "python", "nbconvert_exporter": "python"}
PYTHON |= {"codemirror_mode": {"name": "ipython", "version": 3}, "file_extension": ".py"}
PYTHON |= {"pygments_lexer": "ipython3", "version": "3.11.7"}
KERNEL = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}


def colab(cells: list[dict]) -> str:
    """Format 4.0, cell ids in the metadata, uri of the output."""
    run = {"elapsed": 366, "status": "ok", "timestamp": 1681904959646, "user_tz": -120}
    run |= {"user": {"displayName": "A", "userId": "1"}}
    link = '<a href="https://colab.research.google.com"></a>'
    about = {"id": "view-in-github", "colab_type": "text"}
    saved = [{"cell_type": "markdown", "metadata": about, "source": [link]}]
    for number, cell in enumerate(cells):
        added = {"id": f"zoW5J7P1gpd{number}"}
        if cell["cell_type"] == "code":
            cell = cell | {"execution_count": number, "outputs": [OUTPUT]}
            added |= {
                "outputId": "40ffb086-2b9f-4505-bb67-b0690db91c91",
                "executionInfo": run,
                "colab": {"base_uri": "https://localhost:8080/", "height": 35},
            }
        saved.append(cell | {"metadata": cell["metadata"] | added})
    about = {"provenance": [], "include_colab_link": True, "name": "Copy of 02_attention.ipynb"}
    kernel = {"name": "python3", "display_name": "Python 3"}
    language = {"name": "python"}
    extra = {"accelerator": "GPU", "colab": about, "kernelspec": kernel}
    return notebook(saved, 0, language_info=language, **extra)


def vscode(cells: list[dict]) -> str:
    """Format 4.2, a language in each cell, ``orig_nbformat``."""
    language = {"vscode": {"languageId": "python"}}
    cells = [cell | {"metadata": cell["metadata"] | language} for cell in cells]
    kernel = {"display_name": ".venv", "language": "python", "name": "python3"}
    extra = {"vscode": {"interpreter": {"hash": "31f2aee4e71d21fbe5cf8b01ff0e069b9275f58929596"}}}
    return notebook(cells, 2, kernelspec=kernel, language_info=PYTHON, orig_nbformat=4, **extra)


def jupyterlab(cells: list[dict]) -> str:
    """Format 4.5 with what its extensions, its debugger and its widgets write."""
    added = {
        "editable": True,
        "slideshow": {"slide_type": ""},
        "tags": [],
        "scrolled": True,
        "execution": {"iopub.execute_input": "2024-05-01T10:00:00.0Z"},
        "jupyter": {"source_hidden": True, "outputs_hidden": True},
    }
    cells = [cell | {"metadata": cell["metadata"] | added} for cell in cells]
    slider = {"model_module": "@jupyter-widgets/controls", "model_name": "IntSliderModel"}
    slider |= {"model_module_version": "2.0.0", "state": {"description": "softmax", "value": 3}}
    state = {"state": {"1c2a": slider}, "version_major": 2, "version_minor": 0}
    widgets = {"application/vnd.jupyter.widget-state+json": state}
    return notebook(cells, 5, kernelspec=KERNEL, language_info=PYTHON, widgets=widgets)


def shuffled() -> str:
    """Answers below an attempt that was given up, cells between them, another kernel."""
    wrong = RIGHT.replace(" / ", " * ")
    sources = [IMPORTS, "x = torch.randn(3)\nprint(x)", wrong, "# notes\n"]
    cells = [*map(code, sources), code(RIGHT, "softmax"), code("softmax(x)")]
    kernel = {"name": "julia-1.9", "display_name": "Julia", "language": "julia"}
    return notebook(cells, kernelspec=kernel)


# how it is stored -> file name and bytes
CELLS = [code(IMPORTS), code(RIGHT, "softmax", outputs=[OUTPUT], execution_count=7)]
UNMARKED = [code(IMPORTS), code(RIGHT)]
LAB = jupyterlab(CELLS)
FILES = {
    "colab": ("Copy of 02_attention.ipynb", colab(CELLS).encode()),
    "colab_without_marks": ("02_attention (1).ipynb", colab(UNMARKED).encode()),
    "vscode": ("02_attention.ipynb", vscode(CELLS).encode()),
    "vscode_without_marks": ("02_attention-Copy1.ipynb", vscode(UNMARKED).encode()),
    "jupyterlab": ("attention final FINAL.ipynb", LAB.encode()),
    "crlf": ("02_attention.ipynb", LAB.replace("\\n", "\\r\\n").replace("\n", "\r\n").encode()),
    "bom": ("02_attention.ipynb", b"\xef\xbb\xbf" + LAB.encode()),
    "utf16": ("02_attention.ipynb", LAB.encode("utf-16")),
    "shuffled": ("02_attention.ipynb", shuffled().encode()),
    "renamed": ("mein Notizbuch – Übung 注意.ipynb", LAB.encode()),
}
