"""vitedu.fitting: the loop for whole runs, on a set of images small enough to reason about."""

import io
from types import SimpleNamespace

import pytest
import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from vitedu.fitting import loop as fitting
from vitedu.fitting.history import DivergedError, closing_line
from vitedu.fitting.loop import TrainConfig, fit, predict
from vitedu.training import evaluate, warmup_cosine

NUM_TRAIN, NUM_CLASSES = 90, 3
QUIET = {"show_progress": False}


@pytest.fixture
def data():
    """Images of 8 px whose class is the brightest channel; no test split, so none is used."""
    generator = torch.Generator().manual_seed(0)

    def split(n):
        labels = torch.randint(0, NUM_CLASSES, (n,), generator=generator)
        images = torch.randint(0, 120, (n, 3, 8, 8), generator=generator, dtype=torch.uint8)
        images[torch.arange(n), labels] += 60
        return SimpleNamespace(images=images, labels=labels)

    return SimpleNamespace(
        train=split(NUM_TRAIN), validation=split(40), mean=(0.3, 0.3, 0.3), std=(0.15, 0.15, 0.15)
    )


def make_model(dropout=0.0):
    """A model without attention: the loop must not care."""
    torch.manual_seed(0)
    head = nn.Flatten(), nn.Dropout(dropout), nn.Linear(16, NUM_CLASSES)
    return nn.Sequential(nn.Conv2d(3, 4, 4, 4), *head)


PLAIN = {"device": "cpu", "precision": "float32", "batch_size": 32, "lr": 1e-2}


def cpu(**fields):
    return TrainConfig(**{**PLAIN, **fields})


@pytest.fixture
def steps(monkeypatch):
    """Give a list that gets, in each step, the groups' rates and the norm of the gradients."""
    found, step = [], torch.optim.AdamW.step

    def spy(self, *args, **kwargs):
        grads = [p.grad.flatten() for group in self.param_groups for p in group["params"]]
        rates = [group["lr"] for group in self.param_groups]
        found.append((rates, torch.cat(grads).norm().item()))
        return step(self, *args, **kwargs)

    monkeypatch.setattr(torch.optim.AdamW, "step", spy)
    return found


@pytest.mark.parametrize("precision", ["float32", "bfloat16", "float16"])
def test_fit_learns(data, precision):
    """An easy problem is solved by a model that the loop has never heard of, with two bytes too."""
    history = fit(make_model(), data, cpu(epochs=20, precision=precision), **QUIET)
    assert history.precision == precision and history.rows[-1].validation_accuracy > 0.95
    assert history.rows[0].train_loss > 2 * history.rows[-1].train_loss
    assert [row.epoch for row in history.rows] == list(range(1, 21))


def test_fit_gives_the_same_bits_for_the_same_seed(data):
    """All draws come from the seed, not from torch's own state, which stays as it was."""
    results = []
    for seed, disturbance in ((1, 0), (1, 7), (2, 0)):
        model = make_model(dropout=0.2)
        torch.manual_seed(disturbance)
        before = torch.get_rng_state()
        history = fit(model, data, cpu(epochs=2, seed=seed), **QUIET)
        assert torch.equal(torch.get_rng_state(), before)
        results.append((model[0].weight, history.column("train_loss")))
    assert torch.equal(results[0][0], results[1][0]) and results[0][1] == results[1][1]
    assert not torch.equal(results[0][0], results[2][0])


def test_fit_weights_the_short_last_batch_by_its_images(data):
    """Loss and accuracy are means over images: 90 images in batches of 32, 32 and 26."""
    model = make_model()
    history = fit(model, data, cpu(epochs=1, lr=1e-12, crop_padding=None), **QUIET)
    shift, scale = fitting.scaling(data, torch.device("cpu"))
    with torch.no_grad():
        batches = [(data.train.images * scale + shift, data.train.labels)]
    loss, accuracy = evaluate(model, batches)
    row = history.rows[0]
    assert row.train_loss == pytest.approx(loss, abs=1e-5)  # float32 sums in another order
    assert row.train_accuracy == pytest.approx(accuracy, abs=1e-9)


def test_fit_validates_after_the_epoch(data):
    """The last row's validation figures are those of the model that comes back."""
    model = make_model()
    history = fit(model, data, cpu(epochs=2, label_smoothing=0.2), **QUIET)
    shift, scale = fitting.scaling(data, torch.device("cpu"))
    batches = [(data.validation.images * scale + shift, data.validation.labels)]
    loss, accuracy = evaluate(model, batches)
    assert history.rows[-1].validation_loss == pytest.approx(loss, abs=1e-5)
    assert history.rows[-1].validation_accuracy == pytest.approx(accuracy, abs=1e-6)


def test_fit_steps_on_the_schedule_and_reports_the_rates_used(data, steps):
    """Each step uses warmup_cosine of its own number; a row holds the mean of its epoch's rates."""
    history = fit(make_model(), data, cpu(epochs=3, warmup_share=1 / 3, lr=0.3), **QUIET)
    expected = [warmup_cosine(i, 9, 3, 0.3) for i in range(9)]  # three steps an epoch
    assert [rates for rates, _ in steps] == [[lr, lr] for lr in expected]
    assert history.column("lr") == pytest.approx([sum(expected[i : i + 3]) / 3 for i in (0, 3, 6)])


def test_fit_clips_gradients(data, steps):
    """What AdamW sees is no longer than clip_norm."""
    for clip_norm in (0.01, 0.0):
        fit(make_model(), data, cpu(epochs=1, clip_norm=clip_norm), **QUIET)
    norms = [norm for _, norm in steps]
    assert max(norms[:3]) <= 0.01 * (1 + 1e-4) and min(norms[3:]) > 0.02


def test_fit_ends_with_the_averaged_weights(data):
    """With ema_decay the model that comes back is the average, and validation measured it."""
    plain, averaged = make_model(), make_model()
    config = cpu(epochs=2, seed=3, lr=0.05)
    fit(plain, data, config, **QUIET)
    history = fit(averaged, data, cpu(epochs=2, seed=3, lr=0.05, ema_decay=0.5), **QUIET)
    assert not torch.equal(plain[0].weight, averaged[0].weight)
    loss, _ = fitting.measure(averaged, data.validation, data)
    assert history.rows[-1].validation_loss == pytest.approx(loss, abs=1e-6)


def test_update_average_follows_its_recurrence():
    """The average of an old run is decay * average + (1 - decay) * weights; buffers are copied."""
    averaged, model = nn.BatchNorm1d(1), nn.BatchNorm1d(1)
    nn.init.constant_(model.weight, 2.0)
    model.running_mean += 4
    fitting.update_average(averaged, model, decay=0.75, step=10**6)
    assert averaged.weight.item() == pytest.approx(0.75 * 1 + 0.25 * 2)
    assert averaged.running_mean.item() == 4


class Interrupting(nn.Module):
    """Behave like a model whose user presses Ctrl-C at one training step."""

    def __init__(self, at):
        super().__init__()
        self.model, self.at, self.calls = make_model(), at, 0

    def forward(self, images):
        self.calls += self.training
        if self.calls == self.at:
            raise KeyboardInterrupt
        return self.model(images)


def test_fit_keeps_what_was_learned_when_interrupted(data):
    """Ctrl-C in the second epoch: one row, the weights of all steps done, the mode restored."""
    interrupted, straight = Interrupting(at=5), Interrupting(at=0)
    interrupted.eval()
    history = fit(interrupted, data, cpu(epochs=3), **QUIET)
    assert history.interrupted and len(history.rows) == 1 and not interrupted.training
    full = fit(straight, data, cpu(epochs=3), **QUIET)
    assert not full.interrupted
    assert history.rows[0].train_loss == full.rows[0].train_loss
    before = make_model()[0].weight
    assert not torch.equal(interrupted.model[0].weight, before)
    assert ", both of epoch 1; the weights are those of the moment" in closing_line(history)
    assert closing_line(full).startswith("trained after 3 epochs") and ";" not in closing_line(full)


@pytest.mark.parametrize(
    ("fields", "remedy"),
    [
        ({"warmup_share": 0.0}, "warmup_share=0.1"),
        ({"clip_norm": 0.0}, "clip_norm=1.0"),
        ({"precision": "float16"}, "precision='float32'"),
    ],
    ids=["no-warm-up", "no-clipping", "float16"],
)
def test_fit_explains_a_loss_that_is_no_number(data, fields, remedy):
    """The error says epoch, step, lr and what to try."""

    class Breaks(Interrupting):
        def forward(self, images):
            self.calls += self.training
            return self.model(images) * (float("nan") if self.calls == 5 else 1.0)

    with pytest.raises(DivergedError, match=r"epoch 2, step 2, lr .*lower lr") as caught:
        fit(Breaks(at=0), data, cpu(epochs=3, **fields), **QUIET)
    assert remedy in str(caught.value)


WRONG = (
    "epochs=0 batch_size=-1 lr=0 label_smoothing=1 warmup_share=-0.1 policy_share=1.1 ema_decay=1.5"
)
WRONG += " policy_strength=-0.1 mixup_share=nan erasing_share=2 clean_epochs=-1 clip_norm=-1"
WRONG_FIELDS = [
    *({name: float(value)} for name, value in (word.split("=") for word in WRONG.split())),
    {"weight_decay": float("nan")},
    {"precision": "bf8"},
    {"optimizer": "sgd"},
    {"mixup_share": 0.7, "cutmix_share": 0.4},
]


@pytest.mark.parametrize("fields", WRONG_FIELDS, ids=lambda fields: ", ".join(fields))
def test_config_names_the_field_that_is_wrong(fields):
    """A value that cannot work is refused at once, by name."""
    with pytest.raises(ValueError, match=next(iter(fields))):
        TrainConfig(**fields)


SHARES = dict(policy_share=0.5, mixup_share=0.4, cutmix_share=0.4, erasing_share=0.5)
ALL_OPTIONS = {**SHARES, "label_smoothing": 0.1, "ema_decay": 0.9}


def test_unmixed_soft_labels_cost_what_hard_ones_do(data):
    """A batch in which nothing was mixed has the same loss and gradient by either form."""
    runs = []
    for labels in ("hard", "soft"):
        config = cpu(epochs=1, label_smoothing=0.2, crop_padding=None)
        run = fitting.Run(make_model(), data, config)
        if labels == "soft":
            plain = run.augment

            def with_targets(batch, is_clean, plain=plain):
                images, labels, _ = plain(batch, is_clean)
                return images, labels, nn.functional.one_hot(labels, NUM_CLASSES).float()

            run.augment = with_targets
        loss, hits = run.step(torch.arange(32), 1e-2, 0)
        runs.append((loss, hits, run.learner[0].weight))
    torch.testing.assert_close(runs[0][0], runs[1][0], atol=1e-6, rtol=0)
    assert runs[0][1] == runs[1][1]
    torch.testing.assert_close(runs[0][2], runs[1][2], atol=1e-6, rtol=0)


def test_a_class_without_an_image_takes_no_part_in_mixing(data):
    """A head may be wider than the labels are many."""
    keep = data.train.labels < NUM_CLASSES - 1  # the last class has no image
    data.train = SimpleNamespace(images=data.train.images[keep], labels=data.train.labels[keep])
    run = fitting.Run(make_model(), data, cpu(mixup_share=1.0))
    _, _, targets = run.augment(torch.arange(8), is_clean=False)
    assert targets.shape == (8, NUM_CLASSES - 1)
    assert run.step(torch.arange(8), 1e-2, 0)[0].isfinite()


@pytest.mark.parametrize("clean_epochs", [0, 1, 5])
def test_clean_epochs_are_clean_and_the_last_ones(data, clean_epochs, monkeypatch):
    """Neither policy nor mixing nor erasing runs in them; crops do. More than all means all."""
    names, seen, grown = ("policy", "mix", "erasing", "crop_flip"), [], []
    for name in names:
        original = getattr(fitting, f"random_{name}")

        def spy(*args, name=name, original=original, **options):
            seen.append((name, len(grown)))
            return original(*args, **options)

        monkeypatch.setattr(fitting, f"random_{name}", spy)
    config = cpu(epochs=3, clean_epochs=clean_epochs, **ALL_OPTIONS)
    fit(make_model(), data, config, on_epoch=lambda h: grown.append(len(h.rows)), **QUIET)
    assert grown == [1, 2, 3]
    for name in names:
        epochs = range(3 if name == "crop_flip" else max(3 - clean_epochs, 0))
        assert [epoch for which, epoch in seen if which == name] == sorted([*epochs] * 3)


class NeverRead(TorchDispatchMode):
    """Fail on every operation whose result Python must wait for."""

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        name = function.overloadpacket.__name__
        assert name not in "_local_scalar_dense nonzero is_nonzero equal masked_select".split()
        return function(*args, **(kwargs or {}))


@pytest.mark.parametrize("optimizer", ["adamw", "muon"])
def test_step_reads_no_number(data, optimizer, monkeypatch):
    """A step with every option on asks for no value, which on a GPU would wait for the device."""
    model = nn.Sequential(nn.Flatten(), nn.Linear(192, 8), nn.GELU(), nn.Linear(8, NUM_CLASSES))
    # torch's own reads the largest label to check it, on a CPU alone
    monkeypatch.setattr(nn.functional, "one_hot", lambda labels, K: torch.eye(K)[labels].long())
    config = cpu(optimizer=optimizer, **ALL_OPTIONS)
    run = fitting.Run(model, data, config)
    with NeverRead():
        loss, _ = run.step(torch.arange(32), 1e-3, 0)
        with pytest.raises(AssertionError):
            loss.item()  # the alarm works


def test_fit_refuses_images_that_are_no_bytes(data):
    """Float images are refused with their type and shape; so is a list, and too few images."""
    data.train.images = data.train.images.float()
    with pytest.raises(
        ValueError, match=r"train images must be a uint8 .*float32.*\(90, 3, 8, 8\)"
    ):
        fit(make_model(), data, cpu(), **QUIET)
    data.train.images = data.train.images.byte()[:50]
    with pytest.raises(ValueError, match=r"\(50, 3, 8, 8\), 90 labels"):
        fit(make_model(), data, cpu(), **QUIET)
    data.train.images = [*data.train.images]
    with pytest.raises(ValueError, match="got list, 90 labels"):
        fit(make_model(), data, cpu(), **QUIET)


def test_predict_gives_probabilities_and_restores_the_mode(data):
    """Rows sum to 1, and dropout is off while it looks."""
    model = make_model(dropout=0.5)
    model.train()
    model[0].eval()
    probabilities = predict(model, data.validation.images, data)
    assert probabilities.shape == (40, NUM_CLASSES)
    torch.testing.assert_close(probabilities.sum(dim=1), torch.ones(40), atol=1e-6, rtol=0)
    assert torch.equal(probabilities, predict(model, data.validation.images, data))
    assert [module.training for module in model] == [False, True, True, True]


def test_accuracy_on_test_counts_hits(data):
    """The share of the test images whose largest logit is their label."""
    model = make_model()
    data.test = data.validation
    hits = predict(model, data.test.images, data).argmax(dim=1) == data.test.labels
    assert fitting.measure_test_accuracy(model, data) == pytest.approx(
        hits.sum().item() / 40, abs=1e-6
    )


def test_fit_writes_its_table_into_a_log(data, monkeypatch):
    """One line an epoch with every measured column, without control characters."""
    log = io.StringIO()
    monkeypatch.setattr("sys.stderr", log)
    history = fit(make_model(), data, cpu(epochs=2))
    assert log.getvalue() == history.table() + "\n"
    header, rule, first, second = history.table().splitlines()
    assert len(header) == len(rule) == len(first) == len(second)
    assert header.split()[0] == "epoch" and first.split()[0] == "1"
    assert f"{history.rows[1].validation_accuracy:.1%}" in second


def test_fit_draws_a_line_with_loss_accuracy_and_time_left_in_a_terminal(data, monkeypatch):
    """The line replaces itself and says epoch, loss, accuracy and time left."""

    class Terminal(io.StringIO):
        def isatty(self):
            return True

    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    monkeypatch.setattr("vitedu.ground.progressbar.ProgressBar.is_due", lambda self: True)
    fit(make_model(), data, cpu(epochs=1))
    shown = terminal.getvalue()
    assert "\r[######--------------] epoch 1/1, loss " in shown
    assert "accuracy" in shown and "s left" in shown


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs CUDA")
def test_fit_never_waits_for_the_device_within_an_epoch(data):
    """CUDA's own alarm stays silent while a step runs."""
    config = TrainConfig(
        device="cuda", batch_size=32, epochs=1, precision="bfloat16", **ALL_OPTIONS
    )
    run = fitting.Run(make_model(), data, config)
    batch = torch.arange(32, device="cuda")
    run.step(batch, 1e-3, 0)  # the first step may initialise libraries
    torch.cuda.set_sync_debug_mode("error")
    try:
        run.step(batch, 1e-3, 1)
    finally:
        torch.cuda.set_sync_debug_mode("default")
