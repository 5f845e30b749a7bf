"""JupyterLab as a student sees it: a real server, a real kernel, Chromium, mouse and keyboard.

Left out where no browser is: `make browser` installs what it takes and runs this file. A picture of
how each test left the page, passed or failed, lies in build/browser.
"""

import json
import os
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request

import nbformat
import pytest
from nbformat.sign import NotebookNotary
from test_notebooks import FILES, NOTEBOOKS, RAN

from vitedu.course import results
from vitedu.course.tour import tour
from vitedu.exercises import find, in_file, in_notebook

# `make browser` sets both: the Python of the students' environment, and a browser
LAB = os.environ.get("VITEDU_LAB_PYTHON")
CHROMIUM = os.environ.get("CHROMIUM")
PICTURES = NOTEBOOKS.parent / "build" / "browser"
SETTINGS = {
    "apputils-extension/notification": {"fetchNews": "false", "checkForUpdates": False},
    "apputils-extension/themes": {"theme": "JupyterLab Light"},
}
CELLS = "jupyterapp.shell.currentWidget.content.model.sharedModel.cells"
MINUTE = 60_000  # in Playwright's milliseconds
KEPT = ("PATH", "LANG", "OMP_NUM_THREADS", "GOMP_SPINCOUNT", "JUPYTER_PATH")

pytestmark = [
    pytest.mark.browser,
    pytest.mark.slow,
    pytest.mark.timeout(1800),  # the first one also runs notebooks
    pytest.mark.skipif(
        not (LAB and CHROMIUM), reason="needs Chromium; `make browser` installs the rest and runs"
    ),
]


# --- JupyterLab -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """Give a new user's folder: a copy of the notebooks, settings of JupyterLab, no results."""
    home = tmp_path_factory.mktemp("home")
    shutil.copytree(NOTEBOOKS, home / "notebooks", ignore=shutil.ignore_patterns(".*"))
    write_settings(home)
    return home


def write_settings(home, **changed):
    """Write the settings of JupyterLab that differ from its own."""
    for name, values in SETTINGS.items():
        path = home / f".jupyter/lab/user-settings/@jupyterlab/{name}.jupyterlab-settings"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({k: changed.get(k, v) for k, v in values.items()}))


@pytest.fixture(scope="module")
def server(home):
    """Start JupyterLab on a free port with a token; give its address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    kept = {name: os.environ[name] for name in KEPT if name in os.environ}
    environment = {
        **kept,
        "HOME": str(home),
        "VITEDU_HOME": str(home / "store"),
        "VITEDU_PROFILE": "quick",
        "CUDA_VISIBLE_DEVICES": "",
        "PYTHONPATH": str(NOTEBOOKS.parent),
        "SHELL": "/bin/sh",
    }
    options = [f"--port={port}", "--ServerApp.token=vitedu", "--no-browser", "--allow-root"]
    options += ["--LabApp.expose_app_in_browser=True", f"--notebook-dir={home / 'notebooks'}"]
    with open(home / "server.log", "w") as log:
        process = subprocess.Popen(
            [LAB, "-m", "jupyterlab", *options], env=environment, cwd=home, stdout=log, stderr=log
        )
    address = f"http://127.0.0.1:{port}"
    try:
        wait_for_server(process, f"{address}/api/status?token=vitedu", home / "server.log")
        yield address
    finally:
        process.terminate()
        process.wait(timeout=30)


def wait_for_server(process, address, log, seconds=120):
    """Return when it answers; fail with its log when it ends or stays silent."""
    end = time.monotonic() + seconds
    while time.monotonic() < end and process.poll() is None:
        try:
            return urllib.request.urlopen(address, timeout=5).read()
        except (urllib.error.URLError, ConnectionError):
            time.sleep(0.2)
    pytest.fail(f"JupyterLab does not answer:\n{log.read_text()[-3000:]}")


class Lab:
    """A notebook open in JupyterLab; what a student does, and what he sees."""

    def __init__(self, browser, address, width=1280):
        self.page = browser.new_page(viewport={"width": width, "height": 900})
        self.page.set_default_timeout(MINUTE)
        self.address = address

    def open(self, name):
        """Open a notebook, and wait until its kernel is idle."""
        room = f"{self.address}/lab/workspaces/{name.rpartition('/')[2]}"
        self.page.goto(f"{room}/tree/{name}.ipynb?token=vitedu")
        self.page.wait_for_function(
            "() => window.jupyterapp?.shell.currentWidget?.content?.widgets"
        )
        self.page.evaluate("jupyterapp.shell.collapseLeft()")
        self.wait_idle()

    def wait_idle(self):
        """Wait until the kernel has nothing to do."""
        self.page.wait_for_function(
            """() => {
              const notebook = jupyterapp.shell.currentWidget
              const kernel = notebook.sessionContext.session?.kernel
              const cells = notebook.content.model.sharedModel.cells
              return kernel?.status === "idle" && kernel.connectionStatus === "connected"
                && cells.every(cell => (cell.executionState ?? "idle") === "idle")
            }""",
            timeout=4 * MINUTE,
        )

    def menu(self, *names):
        """Click through the menu at the top."""
        self.page.get_by_role("menuitem", name=names[0], exact=True).first.click()
        for name in names[1:]:
            self.page.get_by_role("menuitem", name=name).first.click()

    def start_all(self):
        """Let every cell run, from the menu."""
        self.menu("Run", "Run All Cells")
        self.page.wait_for_function(
            """() => jupyterapp.shell.currentWidget.content.model.sharedModel.cells
              .some(cell => cell.executionState === "running")"""
        )

    def cells(self):
        """Give the notebook as JupyterLab has it: its code cells with their outputs."""
        return self.page.evaluate(CELLS.removesuffix("cells") + "toJSON()")["cells"]

    def cell(self, index):
        """Bring a cell into view; give where it stands on the page."""
        self.page.evaluate(
            """index => {
              const notebook = jupyterapp.shell.currentWidget.content
              notebook.activeCellIndex = index
              return notebook.scrollToItem(index, "center")
            }""",
            index,
        )
        return self.page.locator(f'.jp-Notebook .jp-Cell[data-windowed-list-index="{index}"]')

    def write(self, index, source):
        """Click into a cell and type in the place of what it holds."""
        self.cell(index).locator(".cm-line").first.click()
        self.page.keyboard.press("ControlOrMeta+a")
        self.page.keyboard.insert_text(source)
        assert self.cells()[index]["source"] == source

    def start(self, index):
        """Start one cell with Ctrl+Enter."""
        # the same count may come again after a restart
        self.page.evaluate(f"{CELLS}[{index}].execution_count = null")
        self.cell(index)
        self.page.evaluate(
            """() => {
              const notebook = jupyterapp.shell.currentWidget.content
              notebook.mode = "command"  // also where the source is folded
              notebook.activate()
            }"""
        )
        self.page.keyboard.press("Control+Enter")

    def run(self, index):
        """Run one cell; give it as it is then."""
        self.start(index)
        self.page.wait_for_function(f"() => {CELLS}[{index}].execution_count !== null")
        self.wait_idle()
        return self.cells()[index]

    def picture(self, name):
        """Keep a picture of the page in build/browser."""
        PICTURES.mkdir(parents=True, exist_ok=True)
        self.page.screenshot(path=PICTURES / f"{name}.png")


def index_of(cells, exercise):
    """Give the index of the stub of an exercise."""
    marks = [cell["metadata"].get("vitedu", {}).get("exercise") for cell in cells]
    return marks.index(exercise)


def texts(cell):
    """Give the texts of a cell's outputs."""
    outputs = cell["outputs"]
    return [each.get("text") or each.get("data", {}).get("text/plain", "") for each in outputs]


def errors(cells):
    """Give the outputs that say that something went wrong: errors, and what is printed in red."""
    outputs = [output for cell in cells for output in cell.get("outputs", ())]
    return [o for o in outputs if o["output_type"] == "error" or o.get("name") == "stderr"]


def opened(browser, server, name):
    """Open a notebook and run it, as students have it; close it at the end."""
    lab = Lab(browser, server)
    lab.open(name)
    lab.start_all()
    lab.wait_idle()
    yield lab
    lab.page.close()


@pytest.fixture(scope="module")
def first(browser, server):
    """Give notebook 01."""
    yield from opened(browser, server, "01_patches")


@pytest.fixture(scope="module")
def optional(browser, server):
    """Give what is optional of notebook 01, which has an explorer."""
    yield from opened(browser, server, "more/01_patches_more")


@pytest.fixture
def patches(first, request):
    """Give notebook 01 after its run, and keep a picture of how the test left it."""
    first.page.set_viewport_size({"width": 1280, "height": 900})
    yield first
    first.picture(request.node.name)


# --- an evening with notebook 01 ------------------------------------------------------------------


def test_fresh_notebook_runs_and_nothing_is_attempted(patches, home):
    """Every cell runs without an error, and every check says that there is nothing to judge yet."""
    cells = patches.cells()
    assert errors(cells) == []
    assert all(cell["execution_count"] for cell in cells if cell["cell_type"] == "code")
    stubs = [index_of(cells, exercise.id) for exercise in in_file("01_patches")]
    for index in stubs:
        assert "not attempted yet" in texts(cells[index + 1])[0]
        patches.cell(index + 1).get_by_text("not attempted yet").wait_for()
    entries = results.load(home / "store")
    assert {entry["status"] for entry in entries.values()} == {"not_attempted"}
    assert len(entries) == len(stubs)


RIGHT = """def patchify(images, patch_size):
    B, C, H, W = images.shape
    P = patch_size
    if H % P or W % P:
        raise ValueError(f"patches of {P} do not divide an image of {H} x {W}")
    pieces = images.reshape(B, C, H // P, P, W // P, P)
    return pieces.permute(0, 2, 4, 1, 3, 5).reshape(B, -1, C * P * P)"""
WRONG = RIGHT.replace("1, 3, 5)", "3, 5, 1)")


def test_wrong_answer_is_named_and_drawn_and_its_verdict_stays(patches, home):
    """The report names the mistake and shows a drawing; a second check changes no result."""
    index = index_of(patches.cells(), "patchify")
    patches.write(index, WRONG)
    patches.run(index)
    assert "inside a patch the order is row, column, channel" in texts(patches.run(index + 1))[0]
    drawing = patches.cell(index + 1).locator(".jp-OutputArea-output svg")
    assert drawing.is_visible()
    assert drawing.bounding_box()["width"] > 100
    kept = results.load(home / "store")["patchify"]
    assert kept["status"] == "failed"
    assert "which the last check handed out" in texts(patches.run(index + 1))[0]
    assert results.load(home / "store")["patchify"] == kept


def test_right_answer_passes_and_its_verdict_stays(patches, home):
    """It passes, and passes again when the check cell runs again."""
    index = index_of(patches.cells(), "patchify")
    patches.write(index, RIGHT)
    patches.run(index)
    for _ in range(2):
        assert texts(patches.run(index + 1))[0].startswith("✓ 1.1 patchify")
        assert results.load(home / "store")["patchify"]["status"] == "passed"


HINTS = """from IPython.display import HTML
from vitedu.course.hints import hints_html
HTML(hints_html("patchify"))"""


def test_hints_open_one_after_the_other_by_mouse_and_key(patches, home):
    """Each button appears below the hint before it; the kernel counts none of them."""
    kept = results.load(home / "store")["patchify"]
    index = index_of(patches.cells(), "patchify") + 1
    check = patches.cells()[index]["source"]
    patches.write(index, HINTS)
    patches.run(index)
    output = patches.cell(index).locator(".jp-OutputArea-output")
    hints = find("patchify").hints
    for number, press in enumerate(["click", "Space", "Enter"], start=1):
        button = output.get_by_text(f"hint {number} of 3", exact=True)
        text = output.get_by_text(hints[number - 1], exact=True)
        assert button.is_visible() and not text.is_visible()
        assert button.bounding_box()["width"] < 150
        button.click() if press == "click" else button.press(press)
        text.wait_for()
    assert output.get_by_text("That was the last.").is_visible()
    patches.picture("hints")
    assert results.load(home / "store")["patchify"] == kept
    patches.write(index, check)
    patches.run(index)


# --- explorers ------------------------------------------------------------------------------------


def explorer_of(lab):
    """Give the cell that ends in an explorer."""
    sources = [cell["source"] for cell in lab.cells()]
    return next(k for k, source in enumerate(sources) if "explore_patches(" in source[:40])


def drag(lab, slider, start, end):
    """Pull a slider with the mouse from one share of its way to another."""
    box = slider.bounding_box()
    x = [box["x"] + share * box["width"] for share in (start, end)]
    lab.page.mouse.move(x[0], box["y"] + box["height"] / 2)
    lab.page.mouse.down()
    lab.page.mouse.move(x[1], box["y"] + box["height"] / 2, steps=4)
    lab.page.mouse.up()


def says(cell, words):
    """Wait until an explorer's sentence holds these words; give where it stands."""
    sentence = cell.get_by_role("status").filter(has_text=words)
    sentence.wait_for()
    return sentence


def test_panel_in_the_quick_profile_is_one_picture_with_words(patches):
    """It keeps its shape, and who cannot see it hears what to run."""
    cell = patches.cell([cell["id"] for cell in patches.cells()].index("train"))
    cell.get_by_alt_text("A still picture: run this cell").wait_for(state="attached")
    for size in (1280, 800):
        patches.page.set_viewport_size({"width": size, "height": 900})
        shown = cell.locator("img").first.evaluate("e => [e.width, e.height]")
        natural = cell.locator("img").first.evaluate("e => [e.naturalWidth, e.naturalHeight]")
        assert shown[0] > 300
        assert shown[1] / shown[0] == pytest.approx(natural[1] / natural[0], rel=0.01)


def live(lab, source=""):
    """Run the explorer, or other code, in a profile with live forms; give its cell."""
    index = explorer_of(lab)
    before = lab.cells()[index]["source"]
    lab.write(index, f"%env VITEDU_PROFILE=laptop\n{source or before}")
    lab.run(index)
    lab.write(index, before)
    return lab.cell(index)


# With the widgets of ipywidgets 7 in JupyterLab 3 the box of an output cuts nothing off and is as
# wide as what it holds; the box around it cuts.
SEVEN = ".jp-OutputArea-output { overflow: visible !important }"
CUT = """cell => {
  const edge = cell.querySelector(".jp-OutputArea").getBoundingClientRect().right
  const inside = [...cell.querySelectorAll(".vitedu-explorer, .vitedu-explorer *")]
  const isCut = each => each.getBoundingClientRect().right > edge + 1
  return inside.filter(isCut).map(each => each.className)
}"""


def cut_off(lab, cell):
    """List what of a live form is cut off at 800 px, with these widgets and with ipywidgets 7."""
    lab.page.set_viewport_size({"width": 800, "height": 900})
    found = [cell.evaluate(CUT)]
    style = lab.page.add_style_tag(content=SEVEN)
    found.append(cell.evaluate(CUT))
    style.evaluate("style => style.remove()")
    return found


def test_live_explorer_follows_mouse_and_arrow_keys(optional):
    """The form with a kernel: every control has a name and answers; nothing is cut off."""
    cell = live(optional)
    size = cell.get_by_role("slider", name="patch size (px)", exact=True)
    patch = cell.get_by_role("slider", name="patch", exact=True)
    says(cell, "Patch 105 of 196")
    patch.press("ArrowRight")
    says(cell, "Patch 106 of 196")
    drag(optional, cell.locator(".noUi-base").first, 1, 0)
    says(cell, "of 16 (")
    size.press("ArrowRight")
    says(cell, "of 49 (")
    cell.get_by_title("patch 8", exact=True).locator("visible=true").click()
    said = says(cell, "Patch 8 of 49 (row 1, column 1)")
    assert size.get_attribute("aria-valuetext") == "32"
    assert cell.locator("img").get_attribute("alt") == said.inner_text()
    assert cut_off(optional, cell) == [[], []]


PANEL = """from vitedu.data import load_data
from vitedu.fitting import TrainConfig
from vitedu.fitting.panel import TrainingPanel
from vitedu.vit import VisionTransformer, ViTConfig

tiny = VisionTransformer(ViTConfig(patch_size=8, embed_dim=16, depth=1, num_heads=2))
settings = TrainConfig(epochs=500, batch_size=16, device="cpu")
TrainingPanel(tiny, load_data("shapes", limit=500), settings)"""


def test_training_panel_obeys_its_buttons(optional):
    """Start and stop, by mouse and key; its picture follows."""
    cell = live(optional, PANEL)
    says(cell, "Ready. Step 0 of 16000")
    at_start = cell.locator("img").get_attribute("src")
    cell.get_by_role("button", name="start").click()
    says(cell, "Running")
    cell.locator(f'img:not([src="{at_start}"])').wait_for()
    cell.get_by_role("button", name="stop").press("Enter")
    assert says(cell, "Stopped").inner_text().endswith("Run the cell again to start anew.")
    assert cut_off(optional, cell) == [[], []]


def test_restart_keeps_the_progress(patches):  # the tests below need no kernel
    """A fresh kernel knows nothing of the session, and what was passed before."""
    patches.menu("Kernel", "Restart Kernel…")
    patches.page.locator(".jp-Dialog .jp-mod-accept").click()
    patches.page.wait_for_function(
        "() => jupyterapp.shell.currentWidget.sessionContext.session.kernel.status !== 'idle'"
    )
    patches.wait_idle()
    cells = patches.cells()
    start = next(k for k, c in enumerate(cells) if c["source"].startswith("# the set-up"))
    end = next(k for k, c in enumerate(cells) if "end=True" in c["source"])
    assert patches.run(start)["execution_count"] == 1
    said, *_ = texts(patches.run(end))  # the picture below it needs the model
    assert f"all 1 of {len(in_notebook('01_patches'))}, " in said
    check = index_of(cells, "patchify") + 1
    advice = "a cell above defines patchify and has not run yet (Run > Run All Above Selected Cell)"
    assert texts(patches.run(check))[-1] == f"Run all above: {advice}.\n"
    patches.menu("Run", "Run All Above Selected Cell")
    patches.wait_idle()
    assert texts(patches.run(check))[0].startswith("✓ 1.1 patchify")
    patches.page.set_viewport_size({"width": 800, "height": 900})


# --- what it looks like ---------------------------------------------------------------------------

# Boxes wider than their place, and printed tables whose lines wrap; prose may. Cells out of sight
# are laid out too.
UNFIT = """() => {
  const pen = document.createElement("canvas").getContext("2d"), unfit = []
  for (const cell of document.querySelectorAll(".jp-Notebook .jp-Cell")) {
    cell.style.contentVisibility = "visible"
    const report = words => unfit.push(`cell ${cell.dataset.windowedListIndex}: ${words}`)
    for (const box of cell.querySelectorAll(".jp-OutputArea-output, .jp-MarkdownOutput"))
      if (box.scrollWidth > box.clientWidth + 1)
        report(`${box.scrollWidth - box.clientWidth} px too wide: ${box.innerText.slice(0, 60)}`)
    for (const text of cell.querySelectorAll(".jp-OutputArea-output pre")) {
      pen.font = getComputedStyle(text).font
      const letters = text.clientWidth / pen.measureText("0").width
      for (const line of text.textContent.split("\\n").map(line => line.trimEnd()))
        if (line.length > letters && /\\S {2,}\\S.*\\S {2,}\\S/.test(line))
          report(`${line.length} letters wrap: ${line}`)
    }
  }
  return unfit
}"""


def look(lab, theme, width, name):
    """Change the theme and the width; keep a picture; give what does not fit."""
    lab.page.evaluate(
        "theme => jupyterapp.commands.execute('apputils:change-theme', {theme})", theme
    )
    lab.page.wait_for_function(
        "theme => document.body.dataset.jpThemeName === theme"
        " && !document.querySelector('.jp-Spinner')",
        arg=theme,
    )
    lab.page.set_viewport_size({"width": width, "height": 900})
    lab.page.wait_for_function(  # JupyterLab fills cells that are out of sight when it has time
        "() => jupyterapp.shell.currentWidget.content.widgets.every(cell => !cell.isPlaceholder())"
    )
    unfit = lab.page.evaluate(UNFIT)
    lab.picture(f"{name}-{theme.split()[-1].lower()}-{width}")
    return unfit


THEMES = ("JupyterLab Light", "JupyterLab Dark")
LOOKS = [(theme, width) for theme in THEMES for width in (1280, 800)]


@pytest.mark.parametrize("theme, width", LOOKS)
def test_notebook_with_its_outputs_fits(patches, theme, width):
    """Nothing is wider than the page, and no table breaks its lines, in any theme and width."""
    patches.cell([cell["id"] for cell in patches.cells()].index("train"))
    assert look(patches, theme, width, "01_patches") == []


@pytest.fixture
def ran(home, name):
    """Write a solved notebook with its outputs beside the students', trusted; give its name."""
    assert tour(FILES[name], RAN, again=False)
    notebook = nbformat.read(RAN / f"{name}.ipynb", as_version=4)
    nbformat.write(notebook, home / "notebooks" / f"{name}_ran.ipynb")
    with NotebookNotary(data_dir=str(home / ".local/share/jupyter")) as notary:
        notary.sign(notebook)
    return f"{name}_ran"


def unreadable(lab):
    """List the text of outputs, and around them, whose colour is too near to that of its ground."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    only = {"runOnly": {"type": "rule", "values": ["color-contrast"]}}
    places = {"include": [".jp-Notebook .jp-OutputArea", ".jp-Notebook .jp-MarkdownOutput"]}
    found = axe.run(lab.page, places, only).response["violations"]
    return [node["html"][:200] for violation in found for node in violation["nodes"]]


@pytest.mark.parametrize("name", FILES)
def test_solved_notebook_fits_and_can_be_read(browser, server, ran, name):
    """The same for all notebooks with outputs; and every text stands out from its ground."""
    lab, found = Lab(browser, server), {}
    lab.open(ran)
    lab.page.evaluate("jupyterapp.commands.execute('notebook:expand-all-headings')")
    for theme, width in LOOKS:
        unfit = look(lab, theme, width, ran)
        found[theme, width] = unfit + (unreadable(lab) if width == 800 else [])
    lab.page.close()
    assert found == dict.fromkeys(LOOKS, [])


# --- training, stopped ----------------------------------------------------------------------------


def test_stopped_training_leaves_a_model_that_later_cells_use(browser, server, home):
    """The stop button ends the training of notebook 04, and the cells below measure its model."""
    path = home / "notebooks" / "more" / "04_training_more.ipynb"
    short = "epochs=profile.pick(quick=2,"
    endless = short.replace("2", "20000")
    text = path.read_text(encoding="utf-8")
    assert text.count(short) == 1
    path.write_text(text.replace(short, endless), encoding="utf-8")
    lab = Lab(browser, server)
    lab.open("more/04_training_more")
    names = [cell["id"] for cell in lab.cells()]
    for name in ("setup", "my-accuracy", "run-config"):
        lab.run(names.index(name))
    training = names.index("run")
    lab.start(training)
    lab.page.wait_for_function(
        """index => {
          const cell = jupyterapp.shell.currentWidget.content.model.sharedModel.cells[index]
          return JSON.stringify(cell.outputs).includes("epoch 3")
        }""",
        arg=training,
    )
    lab.page.get_by_role("button", name="Interrupt the kernel").click()
    lab.wait_idle()
    assert "interrupted after" in "".join(texts(lab.cells()[training]))
    assert "last epoch, " in texts(lab.run(names.index("curves-read")))[0]
    assert "last-epoch test accuracy" in "".join(texts(lab.run(names.index("test"))))
    assert errors(lab.cells()) == []
    lab.picture("stopped_training")
    lab.page.close()
