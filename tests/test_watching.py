"""vitedu.fitting.panel.Watch: a loop of one's own is watched, and nothing of it changes."""

import pytest
import torch

from vitedu.data import load_data
from vitedu.fitting import panel
from vitedu.fitting.panel import Watch
from vitedu.training import train_one_epoch
from vitedu.vit import VisionTransformer, ViTConfig

pytestmark = pytest.mark.slow


def learn(watch_with=None):
    """Learn from four batches of drawn shapes; give the weights, the mean loss and the watch."""
    data = load_data("shapes", limit=64, held_out=20)
    torch.manual_seed(0)
    model = VisionTransformer(ViTConfig(patch_size=8, embed_dim=16, depth=1, num_heads=2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    constant = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1.0)
    images = data.normalize(data.train.images)
    batches = list(zip(images.split(16), data.train.labels.split(16), strict=True))
    watch = watch_with and watch_with(model, data, steps=4)
    loss, _ = train_one_epoch(model, watch(batches) if watch else batches, optimizer, constant)
    assert not model._forward_hooks
    return torch.cat([p.detach().flatten() for p in model.parameters()]), loss, watch


def test_a_watched_loop_learns_the_same_and_its_losses_are_kept(monkeypatch):
    """A picture after each step, and the same weights to the last bit."""
    shown = []
    monkeypatch.setattr(panel, "notebook_display", lambda: lambda *both: shown.append(both))
    monkeypatch.setattr(panel, "WATCH_SECONDS", 0.0)
    weights, loss, watch = learn(Watch)
    alone, loss_alone, _ = learn()
    assert torch.equal(weights, alone) and loss == loss_alone
    assert sum(watch.losses) / 4 == pytest.approx(loss, rel=1e-5)
    assert len(shown) == 5
    assert all("image/png" in data and "alt" in words["text/html"] for data, words in shown)


def test_outside_a_notebook_nothing_is_drawn():
    """The losses are kept all the same."""
    _, _, watch = learn(Watch)
    assert len(watch.losses) == 4


def test_a_loss_that_is_no_number_ends_the_loop():
    """With the words that ``fit`` has, and where it was."""
    data = load_data("shapes", limit=64, held_out=20)
    model = VisionTransformer(ViTConfig(patch_size=8, embed_dim=16, depth=1, num_heads=2))
    watch, batches = Watch(model, data, steps=4), [(data.train.images[:8], data.train.labels[:8])]
    with torch.no_grad():
        model.head.bias.fill_(torch.nan)
    with pytest.raises(RuntimeError, match="not finite any more: step 1 of 4. Try a third"):
        for images, _ in watch(batches):
            model(data.normalize(images))


def test_a_loop_that_is_interrupted_shows_how_far_it_came(monkeypatch):
    """The last picture says so, and nothing hangs on the model any more."""
    shown = []
    monkeypatch.setattr(panel, "notebook_display", lambda: lambda *both: shown.append(both))
    data = load_data("shapes", limit=64, held_out=20)
    model = VisionTransformer(ViTConfig(patch_size=8, embed_dim=16, depth=1, num_heads=2))
    images = data.normalize(data.train.images[:8])
    watched = Watch(model, data, steps=4)([(images, data.train.labels[:8])] * 4)
    for _ in range(3):
        model(next(watched)[0])
    watched.close()
    assert len(shown) == 1 and not model._forward_hooks
    assert "stopped at 2 of 4 steps" in str(shown[0][1:])
