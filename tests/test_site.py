"""vitedu.course.site: the course as pages, from small notebooks; in Chromium, all pages."""

import functools
import html
import os
import re
import subprocess
import sys
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import nbformat
import pytest
from nbformat import v4
from test_notebooks import FILES, NOTEBOOKS, RAN

from vitedu.course import site, tour
from vitedu.course.notebooks import exercise_cells, read, solve_notebook
from vitedu.course.references import reference_source, solution_source
from vitedu.exercises import EXERCISES, MORE, find
from vitedu.plots.style import figure

CORES = [name for name in FILES if not name.endswith(MORE)]
SELF_TEST = re.compile(r"(?ms)^### Test yourself\n(.+?)(?=^#|\Z)")
MIN_LETTERS = 20  # letters without spaces; a shorter line of a reference gives nothing away
PATCHES = read(NOTEBOOKS / "01_patches.ipynb")
STUB = PATCHES.cells[next(i for i, name in exercise_cells(PATCHES) if name == "patchify")]
SECRET = "images.reshape("  # of the reference of patchify, and of no notebook
TITLE = "# 01 · First\n\nSee [the cut](#1-·-Cut) and [the next](02_attention.ipynb)."
LINK = "See [half](more/01_patches_more.ipynb#Second-half) and [it](01_patches.ipynb#1-·-Cut)."
QUESTION = "### Test yourself\n\n<details><summary>1. Why?</summary>\nSo.\n</details>"
HEADING = "### Exercise 1.1 · `patchify` (25 minutes, difficulty ●●●)"
FIRST = [
    v4.new_markdown_cell(TITLE),
    v4.new_markdown_cell("## 1 · Cut\n\nThe loss is $\\frac{1}{n}$:\n\n$$x^2$$"),
    v4.new_code_cell(STUB.source, metadata=STUB.metadata),
    v4.new_markdown_cell(HEADING),
    v4.new_code_cell("draw()", id="trained"),
    v4.new_code_cell("explore()"),
    v4.new_code_cell("long_helper = 1", metadata={"tags": ["hide-input"]}),
    v4.new_markdown_cell(QUESTION),
]
BACK = "Back to [its section](../01_patches.ipynb#1-·-Cut) and [words](../words.md)."
OTHERS = {
    "more/01_patches_more": [v4.new_markdown_cell(f"# 01 · More\n\n{BACK}\n\n## Second half")],
    "02_attention": [v4.new_markdown_cell(f"# 02 · Second\n\n{LINK}")],
}


def picture():
    """Give the output of a cell that draws, as IPython stores it."""
    fig, axes = figure()
    axes[0, 0].set(title="Loss of the run")
    forms, metadata = fig.forms()
    return v4.new_output("display_data", forms, metadata=metadata)


@pytest.fixture
def course(tmp_path):
    """Give a course of three notebooks, and the runs of its solved variant."""
    folder, runs = tmp_path / "notebooks", tmp_path / "runs"
    (folder / "more").mkdir(parents=True)
    runs.mkdir()
    (folder / "words.md").write_text("# Words")
    for name, cells in {"01_patches": FIRST, **OTHERS}.items():
        student = v4.new_notebook(cells=cells, metadata=PATCHES.metadata)
        nbformat.write(student, folder / f"{name}.ipynb")
        ran = solve_notebook(student)
        ran.metadata["vitedu_profile"] = "quick"
        if name == "01_patches":
            still, (_, words) = picture(), figure()[0].outputs()
            still.data[site.WIDGET] = {"model_id": "1"}
            still.metadata["image/png"]["alt"] = "patch 5 of 196"
            wordless = v4.new_output("display_data", {**picture().data, "text/plain": "Curves."})
            ran.cells[4].outputs = [wordless, picture()]
            ran.cells[5].outputs = [still, v4.new_output("display_data", words)]
        nbformat.write(ran, runs / f"{name.removeprefix('more/')}.ipynb")
    return folder, runs


def made(course, *instructor):
    """Give the pages of the first notebook, before Sphinx."""
    folder, runs = course
    student = read(folder / "01_patches.ipynb")
    return site.merge_outputs(student, nbformat.read(runs / "01_patches.ipynb", 4), *instructor)


# --- pages before they are built ------------------------------------------------------------------


def test_page_has_the_students_cells_and_the_solved_outputs(course):
    """The answer stays open, the picture is the reference's, and has words; widgets are still."""
    cells = made(course, False).cells
    assert STUB.source in [cell.source for cell in cells]
    assert not [cell for cell in cells if SECRET in cell.source]
    drawn, explored = (cell for cell in cells if cell.get("outputs"))
    assert drawn.metadata.mystnb.image.alt == "Curves. Figure: Loss of the run."
    assert explored.metadata.mystnb.image.alt == "patch 5 of 196"
    (still,) = explored.outputs  # its words are in the picture's alt, and stand there once
    assert set(still.data) == {"image/png", "text/plain"}
    assert "size `quick`" in cells[1].source and "judge no method" in cells[1].source


def test_instructors_page_has_the_solution_below_the_stub(course):
    """It is folded, and the stub stays."""
    cells = made(course, True).cells
    below = cells[[cell.source for cell in cells].index(STUB.source) + 1]
    assert SECRET in below.source and below.metadata.tags == ["hide-input"]


def test_run_is_repeated_when_a_cell_or_the_profile_changed(course, monkeypatch):
    """Otherwise it is taken from the folder of runs; all runs share one store of results."""
    folder, runs = course
    path, ran = folder / "02_attention.ipynb", []

    def execute(notebook, *args, home, **options):
        ran.append(home)
        return None, {}

    monkeypatch.setattr(tour, "execute", execute)
    monkeypatch.delenv("VITEDU_PROFILE", raising=False)
    assert tour.tour(path, runs, again=False) and not ran
    monkeypatch.setenv("VITEDU_PROFILE", "laptop")
    for _ in range(2):
        tour.tour(path, runs, again=False)
        stored = nbformat.read(runs / path.name, 4)
        assert stored.metadata["vitedu_profile"] == "laptop" and len(ran) == 1
    path.write_text(path.read_text().replace("See [half", "Look at [half"))
    tour.tour(path, runs, again=False)
    assert ran == [runs / "results"] * 2
    tour.tour(path, runs)  # in any case
    assert ran == [runs / "results"] * 3


def test_notebook_that_fails_makes_no_pages(course, monkeypatch, tmp_path, capsys):
    """The line of the tour names the notebook and why it stopped."""
    pytest.importorskip("sphinx")
    monkeypatch.setattr(tour, "execute", lambda *words, **options: ("no memory", {}))
    with pytest.raises(ValueError, match="a solved notebook fails, so there are no pages"):
        site.write_site(course[0], tmp_path / "out", runs=tmp_path / "none")
    assert "FAILED: no memory" in capsys.readouterr().out


@pytest.mark.parametrize("name", CORES)
def test_notebook_closes_with_questions_and_folded_answers(name):
    """Three at least."""
    texts = [cell.source for cell in read(FILES[name]).cells]
    (text,) = (match[1] for source in texts if (match := SELF_TEST.search(source)))
    asked, folded = text.split("<details>", 1)
    if not re.search(r"(?m)^1\. ", asked):
        asked = re.sub(r"<details>|<summary>", "\n", folded)
    assert len(re.findall(r"(?m)^\d+\. ", asked)) >= 3
    assert text.count("<details>") == text.count("</details>")


# --- pages after they were built ------------------------------------------------------------------


def find_leaks(folder, students):
    """List the lines of references in a folder of pages, but for those that students have anyway.

    Every file that is text is looked through: pages, the search index, sources.
    """
    public = drop_spaces("\n".join(cell.source for each in students for cell in each.cells))
    secret, leaks = set(), []
    for exercise in EXERCISES:
        lines = f"{reference_source(exercise)}\n{solution_source(exercise)}".splitlines()
        lines = {line for line in map(drop_spaces, lines) if len(line) >= MIN_LETTERS}
        secret |= {line for line in lines if line not in public}
    for path in (each for each in folder.rglob("*") if each.is_file()):
        text = path.read_text(encoding="utf-8", errors="replace")
        text = drop_spaces(text) + drop_spaces(html.unescape(re.sub("<[^>]*>", "", text)))
        leaks += [f"{path.name}: {line}" for line in secret if line in text]
    return leaks


def drop_spaces(text):
    """Take out all spaces and ends of lines."""
    return "".join(text.split())


@pytest.mark.parametrize("name", ["a.html", "_sources/a.ipynb", "searchindex.js"])
def test_line_of_a_reference_is_found_in_every_file(tmp_path, name):
    """Coloured code, other spaces and other files hide nothing; what students have is no secret."""
    reference = solution_source(find("patchify"))
    line = next(line for line in reference.splitlines() if SECRET in line)
    coloured = re.sub(r"(\w+)", r"<b>\1</b>", html.escape(line))
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"<p>x &lt; {coloured if path.suffix == '.html' else line.replace(' ', '  ')}")
    (leak,) = find_leaks(tmp_path, [])
    assert leak.startswith(path.name)
    known = v4.new_notebook(cells=[v4.new_markdown_cell(line)])
    assert find_leaks(tmp_path, [known]) == []


def build(path, runs, out, *options):
    """Build pages in a process of its own; give the status, what it says, the pages' texts."""
    words = ["site", str(path), "--runs", str(runs), "--out", str(out), *options]
    both = dict(stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    done = subprocess.run([sys.executable, "-m", "vitedu", *words], **both, timeout=3600)
    pages = {path.stem: path.read_text(encoding="utf-8") for path in out.rglob("*.html")}
    return done.returncode, done.stdout, pages


@pytest.mark.slow
def test_small_course_is_built_without_and_with_solutions(course, tmp_path):
    """Links, folded code, pictures, formulas, questions, search; no solution for students."""
    students = [read(path) for path in course[0].rglob("*.ipynb")]
    pytest.importorskip("sphinx")
    status, output, pages = build(*course, tmp_path / "out")
    assert status == 0, output
    assert find_leaks(tmp_path / "out", students) == []
    own = {"01_patches", "01_patches_more", "02_attention"}
    assert set(pages) >= {"index", "words", "search", *own}
    first = pages["01_patches"]
    assert "NotImplementedError" in first and "reshape" not in first
    assert 'alt="Curves. Figure: Loss of the run."' in first and 'alt="patch 5 of 196"' in first
    assert "widget-view" not in first
    assert re.search(r"(?s)<details.*?Show the code of this cell.*?long_helper.*?</details>", first)
    assert "<mfrac>" in first and '<math display="block"' in first
    front = pages["index"]
    assert front.index("picture.png") < front.index("trained.png")
    more = front.rindex("01_patches_more.html")
    assert front.index("trained.png") < more < front.rindex("02_attention.html")
    assert "1.2 a layer that makes tokens (15 min)" in front
    more = pages["01_patches_more"]
    assert 'href="../01_patches.html#cut"' in more and 'href="../words.html"' in more
    assert 'href="more/01_patches_more.html#second-half"' in pages["02_attention"]
    assert "<summary>1. Why?</summary>" in first
    assert '"second":' in (tmp_path / "out/searchindex.js").read_text()

    # with solutions; and without the notebook that a link of the first leads to
    (course[0] / "02_attention.ipynb").unlink()
    status, output, pages = build(*course, tmp_path / "out", "--instructor")
    assert status == 1 and "'02_attention.ipynb'" in output
    assert "reshape" in pages["01_patches"] and "Show the solution" in pages["01_patches"]


def test_folder_with_other_things_is_not_emptied(course, tmp_path):
    """What was named by mistake stays as it is."""
    folder, runs = course
    with pytest.raises(ValueError, match="other things than pages"):
        pytest.importorskip("sphinx") and site.write_site(folder, folder, runs=runs)
    assert len(list(folder.iterdir())) == 4


# --- in Chromium ----------------------------------------------------------------------------------

CHROMIUM = os.environ.get("CHROMIUM")  # `make browser` sets it
IN_CHROMIUM = [
    pytest.mark.browser,
    pytest.mark.slow,
    pytest.mark.skipif(not CHROMIUM, reason="needs Chromium; `make browser` runs it"),
]
PICTURES = NOTEBOOKS.parent / "build" / "browser"
PAGES = ("index", *FILES, "search")
# a voice of the reader's own computer: it notes what it is to say, and ends when the test says so
SILENT = "delete window.speechSynthesis; delete Window.prototype.speechSynthesis"
VOICE = """
let now = null
window.said = []
Object.defineProperty(window, "speechSynthesis", {value: {
  getVoices: () => [
    {name: "far", lang: "en-GB", localService: false},
    {name: "near", lang: "en-US", localService: VALUE}],
  speak: utterance => { now = utterance; said.push([utterance.voice.name, utterance.text]) },
  cancel: () => { now?.onerror?.({error: "canceled"}); now = null },
}})
window.SpeechSynthesisUtterance = function (text) { this.text = text }
window.finish = () => now.onend()
"""


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    """Build the pages of all notebooks, and serve them; give their address."""
    folder = tmp_path_factory.mktemp("site")
    status, output, pages = build(NOTEBOOKS, RAN, folder / "out")
    assert status == 0 and set(PAGES) <= set(pages), output
    assert find_leaks(folder / "out", map(read, FILES.values())) == []
    handler = functools.partial(QuietHandler, directory=str(folder / "out"))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


class QuietHandler(SimpleHTTPRequestHandler):
    """Serves a folder and prints nothing."""

    def log_message(self, *words):
        """Say nothing."""


@pytest.fixture
def page(browser, address, request):
    """Give a function that opens a page; keep a picture of how the test left it."""
    opened = []

    def open_page(name, theme="light", width=1280, scripts=()):
        context = browser.new_context(color_scheme=theme, viewport={"width": width, "height": 900})
        page = context.new_page()
        opened.append(page)
        page.route("https://**", lambda route: route.abort())  # Colab's badge
        for script in scripts:
            page.add_init_script(script)
        page.goto(f"{address}/{'more/' if name.endswith(MORE) else ''}{name}.html")
        return page

    yield open_page
    PICTURES.mkdir(parents=True, exist_ok=True)
    for k, each in enumerate(opened):
        name = re.sub(r"\W+", "_", request.node.name)
        each.screenshot(path=PICTURES / f"site_{name}_{k}.png")
        each.context.close()


class TestInChromium:
    """The pages as a reader sees them."""

    pytestmark = IN_CHROMIUM

    @pytest.mark.parametrize("name", PAGES)
    def test_page_fits_and_axe_finds_nothing_serious(self, page, name):
        """It is never wider than its window, and all can use it: light and dark, wide and narrow.

        Contrast takes axe the longest, and all pages colour code alike: one is looked at.
        """
        axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
        opened, problems, wide = page(name, width=390), [], {}

        def look(leave_out=(), **options):
            response = axe.run(opened, {"exclude": list(leave_out)}, options).response
            impacts = ("serious", "critical")
            serious = [v for v in response["violations"] if v["impact"] in impacts]
            problems.extend((v["id"], [node["html"][:200] for node in v["nodes"]]) for v in serious)

        look(rules={"color-contrast": {"enabled": False}})
        code = () if name == CORES[0] else (".highlight",)
        for theme in ("light", "dark"):
            opened.emulate_media(color_scheme=theme)
            opened.wait_for_function(
                "theme => document.documentElement.dataset.theme === theme", arg=theme
            )
            look(code, runOnly={"type": "rule", "values": ["color-contrast"]})
        for width in (390, 800, 1280):
            opened.set_viewport_size({"width": width, "height": 900})
            wide[width] = opened.evaluate("document.documentElement.scrollWidth > innerWidth")
        assert (problems, wide) == ([], dict.fromkeys(wide, False))

    def test_explorer_is_a_picture_that_says_what_to_run(self, page):
        """It fits, and its words name the cell."""
        pictures = page("01_patches_more").get_by_role("img", name="A still picture: run this")
        assert pictures.count() == 1 and pictures.bounding_box()["width"] > 300

    def test_long_helper_opens_with_the_keyboard(self, page):
        """The code that is folded in the notebook is folded here."""
        opened = page("01_patches_more")
        code = opened.get_by_text("after the last block").first
        assert not code.is_visible()
        fold = opened.locator("details", has=code).locator("summary")
        fold.focus()
        fold.press("Enter")
        assert code.is_visible()

    def test_paper_has_the_folded_code_and_no_menus(self, page):
        """What a reader prints is whole, and what only a screen needs is left out."""
        opened = page("01_patches_more")
        code, menu = opened.get_by_text("after the last block").first, ".bd-sidebar-primary"
        assert not code.is_visible() and opened.locator(menu).is_visible()
        opened.emulate_media(media="print")
        assert code.is_visible() and not opened.locator(menu).is_visible()

    def test_search_finds_the_notebook(self, page):
        """A word of the text leads to its page, without a server."""
        opened = page("search")
        opened.goto(f"{opened.url}?q=jigsaw")
        link = opened.locator("#search-results a[href*='01_patches.html']").first
        link.wait_for()

    def test_section_is_read_paused_and_stopped_by_keyboard(self, page):
        """Piece by piece, its own text alone, in a voice of the reader's computer."""
        opened = page("01_patches", scripts=[VOICE.replace("VALUE", "true")])
        group = opened.get_by_role("group", name="Listen to: How this works")
        button = group.get_by_role("button").first
        button.focus()
        button.press("Enter")
        assert button.inner_text() == "Pause"
        opened.evaluate("finish()")
        button.press("Enter")
        assert button.inner_text() == "Continue"
        button.press("Enter")
        spoken = opened.evaluate("said")
        assert {voice for voice, _ in spoken} == {"near"}
        texts = [text for _, text in spoken]
        assert texts[0] == "How this works" and texts[1].startswith("A cell marked TODO is yours.")
        assert texts[2:] == texts[1:2]  # a pause goes on where it was
        read_now = opened.locator(".being-read")
        assert read_now.inner_text().startswith("A cell marked TODO is yours.")
        stop = group.get_by_role("button", name="Stop")
        stop.press("Enter")
        assert button.inner_text() == "Listen" and read_now.count() == 0 and not stop.is_visible()
        button.press("Enter")
        for _ in range(100):
            if button.inner_text() == "Listen":
                break
            opened.evaluate("finish()")
        texts = [text for _, text in opened.evaluate("said")][4:]
        (section,) = (c.source for c in PATCHES.cells if c.source.startswith("## How this works"))
        words = re.findall("<summary>(.*)</summary>", section)[-1].split()  # of what is not folded
        assert texts[-1].split()[:3] == words[:3]
        assert not [text for text in texts if "report =" in text or "import" in text]  # no code

    @pytest.mark.parametrize(
        "script",
        [SILENT, VOICE.replace("VALUE", "false")],
        ids=["no speech", "no voice of its own"],
    )
    def test_without_a_voice_there_are_no_controls(self, page, script):
        """And nothing breaks."""
        opened = page("01_patches", scripts=[script])
        opened.locator("article h1").first.wait_for()
        assert opened.locator(".listen").count() == 0
