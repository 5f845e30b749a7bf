"""The training panel trains as ``fit`` does, obeys its buttons, and shows what happens."""

import re

import pytest
import torch

from vitedu.data import load_data
from vitedu.fitting import TrainConfig, fit
from vitedu.fitting import panel as module
from vitedu.fitting.panel import TrainingPanel
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


def test_run_is_that_of_fit_however_often_it_pauses(data):
    """The same weights and the same history, to the last bit, and a loss for every step."""
    model = new_model()
    history = fit(model, data, CONFIG, show_progress=False)
    panel = panel_of(data, {2: TrainingPanel.pause, 5: TrainingPanel.pause})
    # each pause shows itself, and is over at once
    panel.show = lambda: panel.start() if panel.state == "paused" else None
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
    moment = panel.moment
    share = module.predict(panel.model, panel.images[-1:], data).max().item()
    name, percent = moment.answers[-1].rsplit(" ", 1)
    assert name in data.class_names and percent == f"{share:.0%}"
    assert re.search(rf"\d of these 3 images right, yours: {name} \d+%", panel.describe(moment))
    assert panel.figure(moment).png().startswith(b"\x89PNG")
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
    assert panel.describe(panel.moment).startswith("Stopped at step ")
    assert panel.figure(panel.moment).axes[0].get_title() == panel.outcome
    panel = panel_of(data, {2: lambda panel: 1 / 0})
    with pytest.raises(RuntimeError, match="the training broke. ZeroDivisionError"):
        panel.wait()


def test_pause_holds_the_run_and_start_goes_on(data):
    """Between the two, no step is made."""
    panel = panel_of(data, {3: TrainingPanel.pause})
    panel.start()
    while panel.state in ("running", "pausing"):
        panel.thread.join(timeout=0.05)
    panel.thread.join(timeout=0.2)
    assert (panel.thread.is_alive(), len(panel.losses)) == (True, 3)
    panel.start()
    panel.thread.join()
    assert (panel.state, len(panel.losses)) == ("done", STEPS)


def test_stop_keeps_what_was_learned(data):
    """In the middle of an epoch; also out of a pause."""
    start = new_model().head.weight.detach().clone()
    panel = panel_of(data, {3: TrainingPanel.pause})
    panel.show = lambda: panel.stop() if panel.state == "paused" else None
    panel.start()
    panel.thread.join()
    assert panel.state == "stopped"
    assert (panel.history.interrupted, len(panel.losses)) == (True, 3)
    assert not torch.equal(panel.model.head.weight, start)


def test_pause_after_stop_leaves_the_run_stopped(data):
    """Whoever clicks pause too late waits for nothing: the run ends after the step being made."""
    panel = panel_of(data, {3: lambda panel: (panel.stop(), panel.pause())})
    panel.start()
    panel.thread.join(timeout=30)
    assert (panel.state, len(panel.losses)) == ("stopped", 3)


def test_a_broken_run_says_why(data):
    """An error in the thread is not lost."""
    panel = panel_of(data, config=TrainConfig(epochs=1, batch_size=16, device="cpu", lr=1e30))
    panel.start()
    panel.thread.join()
    assert panel.state == "broken"
    assert "DivergedError" in panel.problem


def test_a_new_panel_stops_the_one_before(data):
    """A cell that is run again does not leave a training behind."""
    first = panel_of(data, {2: TrainingPanel.pause})
    first.start()
    panel_of(data)
    first.thread.join()
    assert first.state == "stopped"


def test_still_form_shows_the_end_of_the_run(data):
    """Without a kernel: one picture of the trained model, and what to run."""
    panel = panel_of(data)
    panel._ipython_display_()
    assert panel.state == "done" and len(panel.moment.losses) == STEPS
    said = panel.still().words()
    assert re.match(r"Step 8 of 8, loss [\d.]+, \d of these 4 images right, validation acc", said)
    assert "after epoch 2. A still picture: run this cell" in said


def test_buttons_follow_the_run(data):
    """Start becomes pause, then go on; when it is over, both rest and the words say so."""
    panel = panel_of(data, {3: TrainingPanel.pause})
    panel.widget = live = panel.widget_view()
    (go, stop), words, picture = live.children[0].children, live.children[1], live.children[2]
    assert (go.description, go.disabled, stop.disabled) == ("start", False, True)
    before = picture.value
    go.click()
    while panel.state in ("running", "pausing"):
        panel.thread.join(timeout=0.05)
    panel.show()
    assert (go.description, stop.disabled) == ("go on", False)
    assert "Paused. Step 3 of 8" in words.value
    go.click()
    panel.thread.join()
    panel.show()
    assert (go.disabled, stop.disabled) == (True, True)
    assert "Done. Step 8 of 8" in words.value
    assert picture.value != before


def test_a_pause_is_told_when_its_step_is_kept(data, monkeypatch):
    """Who sees "paused" finds that step: its answers are computed while the state is "pausing"."""
    panel = panel_of(data, {3: TrainingPanel.pause})
    compute, states = panel._current_moment, []
    monkeypatch.setattr(panel, "_current_moment", lambda: states.append(panel.state) or compute())
    panel.start()
    while panel.state in ("running", "pausing"):
        panel.thread.join(timeout=0.05)
    assert len(panel.moment.losses) == 3
    panel.stop()
    panel.thread.join()
    assert "pausing" in states and "paused" not in states


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
