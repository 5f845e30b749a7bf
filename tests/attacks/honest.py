"""Right answers that look odd, and notebooks as editors save them. All of them score in full."""

from attacks import IMPORTS, RIGHT, VALUE, Attack, called, code, notebook

ANSWERS = {
    "non_ascii_names": Attack(
        "größe, 注意 = 1.0, -1\n\n\ndef softmax(x, dim=注意):\n    éxp = (x - x.amax(dim, True)).exp()  # 🙂\n    return größe * éxp / éxp.sum(dim, True)\n",
        "full",
    ),
    "future_annotations": Attack(
        "from __future__ import annotations\n\n\ndef softmax(x: Tensor, dim: int | None = -1) -> Tensor['B T']:\n"
        + RIGHT.split("\n", 1)[1],
        "full",
    ),
    "numpy_helper": Attack(
        called("import numpy as np\nscale = float(np.float64(1.0))", f"({VALUE}) * scale"), "full"
    ),
    "numpy_helper_elsewhere": Attack(
        "def softmax(x, dim=-1):\n    return shifted(x, dim) / shifted(x, dim).sum(dim, True) * float(ONE)\n",
        "full",
        before=(
            IMPORTS + "\nimport numpy as np",
            "ONE = np.ones(3)[0]",
            "def shifted(x, dim):\n    return largest(x, dim).mul(-1).add(x).exp()",
            "def largest(x, dim):\n    return x.amax(dim, True)",
        ),
    ),
    "helper_below": Attack(
        "def softmax(x, dim=-1):\n    return share((x - x.amax(dim, True)).exp(), dim)\n\n\ndef share(exp, dim):\n    return exp / exp.sum(dim, True)\n",
        "full",
    ),
    "global_constant": Attack("EPS = 0.0\n\n" + called("pass", f"{VALUE} + EPS"), "full"),
    "decorator": Attack(
        "import functools\n\n\ndef logged(function):\n    @functools.wraps(function)\n    def inner(*args, **kwargs):\n        print('called')\n        return function(*args, **kwargs)\n    return inner\n\n\n@logged\n"
        + RIGHT,
        "full",
    ),
    "class_hierarchy": Attack(
        "class Base:\n    def __call__(self, x, dim=-1):\n        return self.share(self.exp(x, dim), dim)\n\n\nclass Exp(Base):\n    def exp(self, x, dim):\n        return (x - x.amax(dim, True)).exp()\n\n\n"
        "class Softmax(Exp):\n    def share(self, exp, dim):\n        return exp / exp.sum(dim, True)\n\n\nsoftmax = Softmax()\n",
        "full",
    ),
    "wrapped_afterwards": Attack(
        RIGHT
        + "\n\ndef logged(function):\n    return lambda *a, **k: function(*a, **k)\n\n\nsoftmax = logged(softmax)\n",
        "full",
    ),
    "wrapped_in_another_cell": Attack(
        "import functools\n\nsoftmax = functools.partial(softmax)\n",
        "full",
        before=(IMPORTS, RIGHT),
    ),
    "built_on_the_first_attempt": Attack(
        "first = softmax\n\n\ndef softmax(x, dim=-1):\n    return first(x, dim)\n",
        "full",
        before=(IMPORTS, RIGHT),
    ),
    "checked_as_in_the_notebook": Attack(
        "report = check(softmax)\nsoftmax = report.implementation\n",
        "full",
        before=(IMPORTS + "\nfrom vitedu import check", RIGHT),
    ),
    "imports_that_fail": Attack(
        "import no_such_library\nfrom nowhere import nothing\n" + RIGHT, "full"
    ),
    "lambda": Attack(f"softmax = lambda x, dim=-1: {VALUE}\n", "full"),
    "einops": Attack(
        "from einops import rearrange\n\n\ndef split_heads(x, num_heads):\n    if x.shape[-1] % num_heads:\n"
        "        raise ValueError(f'{x.shape[-1]} columns do not divide into {num_heads} heads')\n"
        "    return rearrange(x, 'b t (h d) -> b h t d', h=num_heads)\n",
        "full",
        "split_heads",
    ),
    "dataclass": Attack(
        "from dataclasses import dataclass\n\n\n@dataclass\nclass Axis:\n    dim: int = -1\n\n\n"
        + called("axis = Axis(dim)", VALUE.replace("dim", "axis.dim")),
        "full",
    ),
    "magics_and_noise": Attack(
        "%matplotlib inline\n!pip install torch\n"
        + RIGHT
        + "softmax?\nsoftmax(torch.randn(3)).sum()\n",
        "full",
    ),
    "trains_beside_it": Attack(RIGHT + "data = load_data('cifar')\nshow(data)\n", "full"),
    "wrong_kernel": Attack(RIGHT, "full"),
}

OUTPUT = {"output_type": "stream", "name": "stdout", "text": ["tensor([0.2500, 0.7500])\n"]}
PYTHON = {
    "codemirror_mode": {"name": "ipython", "version": 3},
    "file_extension": ".py",
    "mimetype": "text/x-python",
    "name": "python",
    "nbconvert_exporter": "python",
    "pygments_lexer": "ipython3",
    "version": "3.11.7",
}


def colab(keeps: bool) -> str:
    """Format 4.0, cell ids in the metadata, uri of the output; the course's mark kept or not."""
    run = {
        "elapsed": 366,
        "status": "ok",
        "timestamp": 1681904959646,
        "user": {"displayName": "A", "userId": "1"},
        "user_tz": -120,
    }
    cells = []
    for number, (source, exercise) in enumerate([(IMPORTS, ""), (RIGHT, "softmax")]):
        cell = code(source, exercise if keeps else "", execution_count=number, outputs=[OUTPUT])
        cell["metadata"] |= {
            "id": f"zoW5J7P1gpd{number}",
            "outputId": "40ffb086-2b9f-4505-bb67-b0690db91c91",
            "executionInfo": run,
            "colab": {"base_uri": "https://localhost:8080/", "height": 35},
        }
        cells.append(cell)
    link = {
        "cell_type": "markdown",
        "metadata": {"id": "view-in-github", "colab_type": "text"},
        "source": ['<a href="https://colab.research.google.com"></a>'],
    }
    kernel = {"name": "python3", "display_name": "Python 3"}
    about = {"provenance": [], "include_colab_link": True, "name": "Copy of 02_attention.ipynb"}
    return notebook(
        [link, *cells],
        0,
        accelerator="GPU",
        colab=about,
        kernelspec=kernel,
        language_info={"name": "python"},
    )


def vscode(keeps: bool) -> str:
    """Format 4.2, a language in each cell, ``orig_nbformat``."""
    cells = [
        code(IMPORTS, outputs=[OUTPUT], execution_count=1),
        code(RIGHT, "softmax" if keeps else ""),
    ]
    for cell in cells:
        cell["metadata"]["vscode"] = {"languageId": "python"}
    kernel = {"display_name": ".venv", "language": "python", "name": "python3"}
    extra = {
        "interpreter": {"hash": "31f2aee4e71d21fbe5cf8b01ff0e069b9275f58929596ceb00d14d90e3e16cd6"}
    }
    return notebook(
        cells, 2, kernelspec=kernel, language_info=PYTHON, orig_nbformat=4, vscode=extra
    )


def jupyterlab() -> str:
    """Format 4.5 with what its extensions and its debugger write into cells."""
    times = {
        "iopub.execute_input": "2024-05-01T10:00:00.0Z",
        "shell.execute_reply": "2024-05-01T10:00:01.0Z",
    }
    cells = [code(IMPORTS), code(RIGHT, "softmax", outputs=[OUTPUT], execution_count=7)]
    for cell in cells:
        cell["metadata"] |= {
            "editable": True,
            "slideshow": {"slide_type": ""},
            "tags": [],
            "scrolled": True,
            "execution": times,
            "jupyter": {"source_hidden": True, "outputs_hidden": True},
        }
    kernel = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}
    state = {
        "application/vnd.jupyter.widget-state+json": {
            "state": {},
            "version_major": 2,
            "version_minor": 0,
        }
    }
    return notebook(cells, 5, kernelspec=kernel, language_info=PYTHON, widgets=state)


def shuffled() -> str:
    """Answers in another order, cells between them, an attempt that was given up."""
    wrong = RIGHT.replace(" / ", " * ")
    cells = [
        code(IMPORTS),
        code("x = torch.randn(3)\nprint(x)"),
        code(wrong),
        code("# notes\n"),
        code(RIGHT, "softmax"),
        code("softmax(x)"),
    ]
    return notebook(
        cells[:1] + cells[1:][::1],
        kernelspec={"name": "julia-1.9", "display_name": "Julia", "language": "julia"},
    )


# how it is stored -> file name and bytes
FILES = {
    "colab": ("Copy of 02_attention.ipynb", colab(True).encode()),
    "colab_without_marks": ("02_attention (1).ipynb", colab(False).encode()),
    "vscode": ("02_attention.ipynb", vscode(True).encode()),
    "vscode_without_marks": ("02_attention-Copy1.ipynb", vscode(False).encode()),
    "jupyterlab": ("attention final FINAL.ipynb", jupyterlab().encode()),
    "crlf": (
        "02_attention.ipynb",
        jupyterlab().replace("\\n", "\\r\\n").replace("\n", "\r\n").encode(),
    ),
    "bom": ("02_attention.ipynb", b"\xef\xbb\xbf" + jupyterlab().encode()),
    "utf16": ("02_attention.ipynb", jupyterlab().encode("utf-16")),
    "shuffled": ("02_attention.ipynb", shuffled().encode()),
    "renamed": ("mein Notizbuch – Übung 注意.ipynb", jupyterlab().encode()),
}
