"""How long the widgets of the course let a student wait, from the press to the picture in Chromium.

A benchmark: `make latency` runs it on a quiet machine. Every widget is that of its notebook, with
what the cells before it computed in the quick profile; its live form follows keys and mouse.
"""

import statistics

import nbformat
import pytest
from test_browser import CHROMIUM, LAB, Lab, home, server  # noqa: F401 - fixtures
from test_notebooks import FILES

from vitedu.course.notebooks import read, solve_notebook

AIM = 0.1  # seconds, at the median
PRESSES = 20
WIDGETS = {  # notebook -> cells that end in a widget
    "01_patches_more": ("explorer",),
    "02_attention_more": ("photograph",),
    "06_vit_and_cnn": ("reach",),
    "08_efficient_more": ("blocks",),
    "09_transfer_more": ("dinov2-explore",),
}
# From the event to the frame that the browser is about to paint, with the picture decoded.
WATCH = """box => {
  window.answers = []
  let pressed = null
  const answered = () => requestAnimationFrame(() => {
    if (pressed !== null) answers.push((performance.now() - pressed) / 1000)
    pressed = null
  })
  for (const kind of ["keydown", "click"])
    box.addEventListener(kind, event => { pressed = event.timeStamp }, {capture: true})
  const picture = box.querySelector("img")
  picture.addEventListener("load", () => picture.decode().then(answered))
}"""

pytestmark = [
    pytest.mark.browser,
    pytest.mark.slow,
    pytest.mark.timeout(1800),  # the first one also runs notebooks
    pytest.mark.skipif(not (LAB and CHROMIUM), reason="needs Chromium; `make latency` runs it"),
]


@pytest.fixture(scope="module")
def answer_times():
    """Give a dict for the times of all widgets; print it as a table at the end."""
    times = {}
    yield times
    print(f"\n{'milliseconds':<34}{'presses':>8}{'median':>8}{'worst':>8}")
    for name, values in times.items():
        median, worst = (1000 * f(values) for f in (statistics.median, max))
        print(f"{name:<34}{len(values):>8}{median:>8.0f}{worst:>8.0f}")


def opened(lab, home, name):  # noqa: F811
    """Write a notebook, solved and cut after its last widget; run it; give its cells' names."""
    notebook = solve_notebook(read(FILES[name]))
    names = [cell.id for cell in notebook.cells]
    places = [names.index(widget) for widget in WIDGETS[name]]
    notebook.cells = notebook.cells[: places[-1] + 1]
    for place in places:
        cell = notebook.cells[place]
        # the quick profile has no live form
        cell.source = f"%env VITEDU_PROFILE=laptop\n{cell.source}"
        if place < places[-1]:
            after = next(c for c in notebook.cells[place + 1 :] if c.cell_type == "code")
            after.source = f"%env VITEDU_PROFILE=quick\n{after.source}"
    nbformat.write(notebook, home / "notebooks" / f"{name}.ipynb")
    lab.open(name)
    lab.start_all()
    lab.wait_idle()
    return names


def press(lab, action):
    """Do one thing; wait for its answer, and until the kernel has nothing else to do."""
    count = lab.page.evaluate("answers.length")
    action()
    lab.page.wait_for_function("count => answers.length > count", arg=count)
    lab.wait_idle()


def taken(lab):
    """Give the times since the last call."""
    return lab.page.evaluate("answers.splice(0)")


@pytest.mark.parametrize("name", WIDGETS)
def test_widgets_answer_at_once(browser, server, home, answer_times, name):  # noqa: F811
    """At the median of twenty presses, by keyboard and by mouse, for each setting as well."""
    lab, here = Lab(browser, server), {}
    names = opened(lab, home, name)
    for widget in WIDGETS[name]:
        cell = lab.cell(names.index(widget))
        cell.get_by_role("status").wait_for()
        output = cell.locator(".jp-Cell-outputWrapper")
        output.evaluate(WATCH)
        title = f"{name[:2]} {widget}"
        here |= {f"{title}: {how}": times for how, times in explored(lab, output).items()}
    lab.picture(f"latency_{name}")
    lab.page.close()
    answer_times |= here
    slow = {how: times for how, times in here.items() if statistics.median(times) > AIM}
    assert not slow


def explored(lab, output):
    """Press arrow keys on both sliders, and click into the picture; give the times of each."""
    setting, cell = output.get_by_role("slider").all()
    assert setting.get_attribute("aria-label") and cell.get_attribute("aria-label")
    assert output.locator("img").get_attribute("alt") == output.get_by_role("status").inner_text()
    times = {}
    for how, slider in (("cell by key", cell), ("setting by key", setting)):
        last = slider.get_attribute("aria-valuemax") == slider.get_attribute("aria-valuenow")
        keys = ("ArrowLeft", "ArrowRight") if last else ("ArrowRight", "ArrowLeft")
        for k in range(PRESSES):
            press(lab, lambda slider=slider, key=keys[k % 2]: slider.press(key))
        times[how] = taken(lab)
    places = output.locator(".vitedu-cells button:visible")
    for k in range(PRESSES):
        place = places.nth((7 * k + 1) % places.count())
        press(lab, place.click)
    times["cell by mouse"] = taken(lab)
    return times
