"""The training panel trains as ``fit`` does, obeys its buttons, and shows what happens."""

import re
import time

import pytest
import torch

from vitedu.data import load_data
from vitedu.fitting import TrainConfig, fit
from vitedu.fitting import panel as module
from vitedu.fitting.panel import TrainingPanel
from vitedu.ground.progressbar import duration
from vitedu.vit import VisionTransformer, ViTConfig

pytestmark = pytest.mark.slow

CONFIG = TrainConfig(epochs=2, batch_size=16, device="cpu", crop_padding=2)
STEPS = 8


@pytest.fixture(scope="module")
def data():
    """64 drawn shapes: four steps an epoch."""
    return load_data("shapes", limit=64)


def new_model():
    """A tiny model, always with the same weights."""
    torch.manual_seed(0)
    return VisionTransformer(ViTConfig(patch_size=8, embed_dim=16, depth=1, num_heads=2))


def panel_of(data, at_step=None, **kwargs):
    """Give a panel; ``at_step`` maps a number of finished steps to what shall happen then."""
    panel = TrainingPanel(new_model(), data, kwargs.pop("config", CONFIG), count=4)
    after_step = panel._after_step

    def act(loss):
        if len(panel.losses) + 1 in (at_step or {}):
            at_step[len(panel.losses) + 1](panel)
        after_step(loss)

    panel._after_step = act
    return panel


def test_run_is_that_of_fit(data):
    """The same weights and the same history, to the last bit, and a loss for every step."""
    model = new_model()
    history = fit(model, data, CONFIG, show_progress=False)
    panel = panel_of(data)
    panel.start()
    panel.thread.join()
    assert panel.state == "done"
    assert len(panel.losses) == STEPS
    for ours, theirs in zip(panel.history.rows, history.rows, strict=True):
        assert ours.train_loss == theirs.train_loss
        assert ours.validation_loss == theirs.validation_loss
    for a, b in zip(panel.model.parameters(), model.parameters(), strict=True):
        assert torch.equal(a, b)


def test_a_photograph_of_ones_own_stands_among_them(data):
    """It takes the last place, and has a name and a share in place of a verdict."""
    own = torch.full((3, 50, 40), 255, dtype=torch.uint8)
    panel = TrainingPanel(new_model(), data, CONFIG, count=4, own=own)
    assert panel.images.shape == (4, 3, 32, 32) and panel.images[-1].min() == 255
    labels = [data.class_names[k] for k in data.validation.labels[:3]]
    assert panel.truth == [*labels, None]
    share = module.predict(panel.model, panel.images[-1:], data).max().item()
    name, percent = panel.answers[-1].rsplit(" ", 1)
    assert name in data.class_names and percent == f"{share:.0%}"
    assert re.search(rf"\d of these 3 images right, yours: {name} \d+%", panel.describe())
    assert panel.figure().png().startswith(b"\x89PNG")
    with pytest.raises(ValueError, match="there is no image at nowhere.jpg"):
        TrainingPanel(new_model(), data, CONFIG, own="nowhere.jpg")
    assert TrainingPanel.latest is panel and not panel.stop_event.is_set()


def test_wait_starts_the_run_draws_meanwhile_and_gives_its_history(data, monkeypatch):
    """One pass of the loop at least; a broken run raises, and an interrupt stops a run."""
    monkeypatch.setattr(module, "SECONDS", 0.01)
    panel, drawn = panel_of(data), []
    panel.draw = lambda: drawn.append(panel.state)
    assert panel.wait() is panel.history is not None
    assert len(panel.history.rows) == CONFIG.epochs and drawn[0] == "running" != drawn[-1] == "done"

    def interrupt():
        panel.draw = lambda: None
        raise KeyboardInterrupt

    panel = panel_of(data)
    panel.draw = interrupt
    assert panel.wait().interrupted and panel.state == "stopped"
    assert panel.outcome.startswith("stopped at ") and panel.outcome.endswith(" steps")
    assert panel.describe().startswith("Stopped at step ")
    assert panel.figure().axes[0].get_title() == panel.outcome
    panel = panel_of(data, {2: lambda panel: 1 / 0})
    with pytest.raises(RuntimeError, match="the training broke. ZeroDivisionError"):
        panel.wait()


def test_stop_keeps_what_was_learned(data):
    """In the middle of an epoch, after the step that is being made."""
    start = new_model().head.weight.detach().clone()
    panel = panel_of(data, {3: TrainingPanel.stop})
    panel.start()
    panel.thread.join()
    assert panel.state == "stopped"
    assert (panel.history.interrupted, len(panel.losses)) == (True, 3)
    assert not torch.equal(panel.model.head.weight, start)


def test_a_running_panel_tells_the_time_left(data):
    """As long as each step takes what those so far took; a run that is over tells none."""

    def hear(panel):
        panel.began = time.monotonic() - 30.0
        heard.append(panel.describe())

    heard, panel = [], panel_of(data, {4: hear})  # before the fourth step is counted
    panel.wait()
    assert f", about {duration(10.0 * (STEPS - 3))} left, " in heard[0]
    assert " left, " not in panel.describe()


def test_a_broken_run_says_why(data):
    """An error in the thread is not lost."""
    panel = panel_of(data, config=TrainConfig(epochs=1, batch_size=16, device="cpu", lr=1e30))
    panel.start()
    panel.thread.join()
    assert panel.state == "broken"
    assert "DivergedError" in panel.problem


def test_a_new_panel_stops_the_one_before(data):
    """A cell that is run again does not leave a training behind."""
    first = panel_of(data, {2: lambda _: panel_of(data)})
    first.start()
    first.thread.join()
    assert (first.state, len(first.losses)) == ("stopped", 2)


def test_still_form_shows_the_end_of_the_run(data):
    """Without a kernel: one picture of the trained model, and what to run."""
    panel = panel_of(data)
    panel._ipython_display_()
    assert panel.state == "done" and len(panel.losses) == STEPS
    said = panel.still().words()
    assert re.match(r"Step 8 of 8, loss [\d.]+, \d of these 4 images right, validation acc", said)
    assert "after epoch 2. A still picture: run this cell" in said


def test_buttons_follow_the_run(data):
    """One of them can be clicked at a time; when it is over, both rest and the words say so."""
    seen = []
    panel = panel_of(data, {3: lambda panel: (panel.show(), seen.append(stop.disabled))})
    panel.widget = live = panel.widget_view()
    (go, stop), words, picture = live.children[0].children, live.children[1], live.children[2]
    assert (go.disabled, stop.disabled) == (False, True)
    before = picture.value
    go.click()
    panel.thread.join()
    panel.show()
    assert seen == [False] and (go.disabled, stop.disabled) == (True, True)
    assert "Done. Step 8 of 8" in words.value
    assert picture.value != before


def test_a_notebook_gets_the_form_that_works_there(data, monkeypatch):
    """With a kernel nothing is trained before a click; without one the run is over."""
    shown = []
    monkeypatch.setattr(module, "show_live", lambda still, widget: shown.append((still, widget)))
    for answers, state in ((True, "ready"), (False, "done")):
        monkeypatch.setattr(module, "kernel_answers", lambda answers=answers: answers)
        panel = panel_of(data)
        panel._ipython_display_()
        still, widget = shown.pop()
        assert (panel.state, widget is None) == (state, not answers)
        assert still.words().startswith(f"Step {0 if answers else STEPS} of {STEPS}")
