"""What a first call cannot show: answers that remember, later changes, and what is left behind."""

import random

import pytest
import torch
import torch.nn.functional as F
from replay_caches import judge_answer
from torch import nn
from verdicts import failed_parts

from vitedu import attention, encoder, training, transfer, vit_and_cnn
from vitedu.checks.writing.checker import find_checker
from vitedu.checks.writing.families import cache_results, change_settings, reuse_buffers

pytestmark = pytest.mark.slow
SEED = 3


def message(report, name="again"):
    """Give what one finding of a report says."""
    return next(f.message for f in report.findings if f.name == name)


def no_gradients(function):
    return change_settings(function, lambda: torch.set_grad_enabled(False))


def other_dtype(function):
    return change_settings(function, lambda: torch.set_default_dtype(torch.float64))


@pytest.mark.parametrize(
    ("wrong", "name", "words"),
    [
        (cache_results, "cached_by_shape", "an earlier call with other values"),
        (reuse_buffers, "buffer_overwritten", "the second call wrote into"),
        (no_gradients, "gradients_left_off", "gradients are switched off"),
        (other_dtype, "dtype_left", "the default dtype is torch.float64"),
    ],
    ids=["cache", "buffer", "gradients", "dtype"],
)
def test_traces_are_named(wrong, name, words):
    """Only the second call shows them; they cost its share and no more."""
    report = judge_answer(find_checker("merge_heads"), wrong(attention.merge_heads), SEED)
    assert report.misconception == name and report.status == "failed"
    assert failed_parts(report) == ["again"]
    assert words in message(report)
    assert report.points == report.max_points / 2
    assert torch.is_grad_enabled() and torch.get_default_dtype() == torch.float32


@pytest.mark.parametrize(
    ("exercise", "seed_anew"),
    [(name, torch.manual_seed) for name in ("softmax", "EncoderBlock", "random_crop_flip")]
    + [(name, torch.manual_seed) for name in ("count_parameters", "evaluate", "train_one_epoch")],
)
def test_a_call_that_seeds_is_named(exercise, seed_anew):
    """Whatever is drawn after it would be the same after every call."""
    checker = find_checker(exercise)
    report = judge_answer(checker, change_settings(checker.reference, lambda: seed_anew(0)), 3)
    assert report.misconceptions == ["seeded"]
    assert "the call seeds the global random numbers" in str(report)


@pytest.mark.parametrize(
    ("exercise", "leave", "words"),
    [
        ("mixup", lambda: torch.manual_seed(0), "another seed for torch"),
        ("evaluate", lambda: torch.set_default_dtype(torch.float64), "dtype is torch.float64"),
    ],
    ids=["torch", "dtype"],
)
def test_what_the_first_call_alone_leaves_is_told(exercise, leave, words):
    """Whoever sets something up once has left it behind once."""
    once = iter([leave])
    checker = find_checker(exercise)
    answer = change_settings(checker.reference, lambda: next(once, bool)())
    report = judge_answer(checker, answer, 3)
    assert failed_parts(report) == ["again"], str(report)
    assert words in message(report)


LEFT = {
    "device": (lambda: torch.set_default_device("meta"), "the default device is meta"),
    "autocast": (lambda: torch.set_autocast_enabled("cpu", True), "autocast is on"),
}


@pytest.mark.parametrize(
    ("exercise", "leave", "words"),
    [("split_heads", *left) for left in LEFT.values()] + [("attention_macs", *LEFT["autocast"])],
    ids=[*LEFT, "beside a number"],
)
def test_settings_that_stay_are_told(exercise, leave, words):
    """Also in an exercise whose result is a plain number."""
    checker = find_checker(exercise)
    report = judge_answer(checker, change_settings(checker.reference, leave), 3)
    assert not report.passed and words in message(report)


@pytest.mark.parametrize("exercise", ["sincos_positions_2d", "packing_mask"])
def test_a_table_is_not_overwritten_by_the_next(exercise):
    """Sizes in reverse give a table of the same shape and other values."""
    checker = find_checker(exercise)
    report = judge_answer(checker, reuse_buffers(checker.reference), 3)
    assert failed_parts(report) == ["again"]


class BeginsAlike(encoder.EncoderBlock):
    """Draws the same first weights for every block of a model."""

    def __init__(self, *sizes):
        torch.manual_seed(0)
        super().__init__(*sizes)


def test_a_layer_that_seeds_is_named():
    """Its first weights would be those of every other block."""
    assert judge_answer(find_checker("EncoderBlock"), BeginsAlike, 3).misconception == "seeded"


def drawing(x, dim=-1):
    torch.rand(2), random.random()
    return attention.softmax(x, dim)


def seeding_for_itself(x, dim=-1):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        torch.rand(2)
    return attention.softmax(x, dim)


@pytest.mark.parametrize("answer", [drawing, seeding_for_itself])
def test_draws_leave_nothing_behind(answer):
    """Who draws, or seeds and puts back, leaves the generators to the caller."""
    assert judge_answer(find_checker("softmax"), answer, 3).passed


def test_an_input_that_now_requires_gradients_is_modified():
    """Its ``.grad`` would grow from call to call."""

    def effective_receptive_field(feature_map, images):
        features = feature_map(images.requires_grad_())
        gh, gw = features.shape[-2:]
        features[:, :, gh // 2, gw // 2].sum().backward()
        size = images.grad.abs().sum(dim=1).mean(dim=0)
        return size / size.max()

    report = judge_answer(find_checker("effective_receptive_field"), effective_receptive_field, 3)
    assert report.misconception == "modifies_input" and "modified images" in str(report)


class RemembersWeights(attention.MultiHeadAttention):
    """Splits the weights at the first forward and keeps the copies."""

    def forward(self, x):
        if not hasattr(self, "kept"):
            self.kept = self.proj.weight.detach().clone()
        heads, weights = super().forward(x)
        bias = self.proj.bias
        back = torch.linalg.solve(self.proj.weight, (heads - bias).mT).mT
        return F.linear(back, self.kept if not self.is_first() else self.proj.weight, bias), weights

    def is_first(self):
        """Tell whether the weights are still those of the first call."""
        return torch.equal(self.kept, self.proj.weight)


def test_weights_changed_in_place_count():
    """A module that keeps what it computed at first is called again with other weights."""
    report = judge_answer(find_checker("MultiHeadAttention"), RemembersWeights, 3)
    assert failed_parts(report) == ["again"]


class StaysInEval(encoder.EncoderBlock):
    """Switches itself to eval mode."""

    def forward(self, x):
        self.eval()
        return super().forward(x)


def test_modes_of_a_layer_stay():
    """A layer that was in train mode is in train mode after its forward."""
    report = judge_answer(find_checker("EncoderBlock"), StaysInEval, 3)
    assert "is in eval mode" in message(report)


def freezing(model, batches):
    """Evaluate and leave all parameters frozen."""
    model.requires_grad_(False)
    return training.evaluate(model, batches)


def by_model():
    """Evaluate each model once and remember the result."""
    cache = {}

    def evaluate(model, batches):
        batches = list(batches)
        key = id(model), len(batches), model.training
        if key not in cache:
            cache[key] = model, training.evaluate(model, batches)
        return cache[key][1]

    return evaluate


@pytest.mark.parametrize(
    ("answer", "words"),
    [(freezing, "is frozen"), (by_model(), "an earlier call with other values")],
    ids=["frozen", "remembered"],
)
def test_evaluate_leaves_the_model(answer, words):
    """The model comes back as it was handed over, and counts anew after its weights changed."""
    report = judge_answer(find_checker("evaluate"), answer, 3)
    assert words in message(report)


def cooled(model, batches, optimizer, scheduler):
    """Train, and change a setting of the caller's optimizer for good."""
    results = training.train_one_epoch(model, batches, optimizer, scheduler)
    for group in optimizer.param_groups:
        group["lr"] /= 2
    return results


def test_an_epoch_leaves_the_optimizer():
    """The scheduler alone sets the rates of the caller's groups."""
    report = judge_answer(find_checker("train_one_epoch"), cooled, 3)
    assert failed_parts(report) == ["learning", "gradients left"]
    assert "the optimizer's groups" in message(report, "learning")


def frozen(module):
    module.requires_grad_(False)


def switched(module):
    module.train(not module.training)


def scaled(module):
    with torch.no_grad():
        for value in module.parameters():
            value.mul_(1.01)


@pytest.mark.parametrize(
    ("exercise", "change"),
    [("linear_from_conv", change) for change in (frozen, switched, scaled)]
    + [("weight_decay_groups", frozen), ("logit_lens", switched)]
    + [("effective_receptive_field", scaled), ("layerwise_lr_groups", frozen)],
)
def test_a_module_comes_back_as_it_was_handed_over(exercise, change):
    """What learns, the mode of a part and every value stay."""
    checker = find_checker(exercise)

    def answer(*args):
        result = checker.reference(*args)
        for x in args:
            if isinstance(x, nn.Module):
                change(x)
        return result

    report = judge_answer(checker, answer, 3)
    assert not report.passed and "modified" in str(report)


def test_counts_of_pairs_are_counted_anew():
    """Both arguments in another order give other pairs, so a remembered table is seen."""
    checker = find_checker("confusion_matrix")
    report = judge_answer(checker, cache_results(checker.reference), SEED)
    assert failed_parts(report) == ["again"]


# --- an __init__ that holds, with an open forward -------------------------------------------------


class OpenForward(encoder.EncoderBlock):
    """The right parts, and no forward yet."""

    def forward(self, x):
        raise NotImplementedError("3.4 EncoderBlock")


class OpenAdapter(transfer.LoRALinear):
    """The given parts, and no forward yet."""

    def forward(self, x):
        raise NotImplementedError("9.2 LoRALinear")


class OpenBlock(nn.Module):
    """The stub as the notebook gives it."""

    def __init__(self, embed_dim, num_heads, mlp_ratio=4.0):
        super().__init__()
        raise NotImplementedError("3.4 EncoderBlock")

    def forward(self, x):
        raise NotImplementedError("3.4 EncoderBlock")


def test_open_forward_is_an_attempt():
    """A written __init__ is work: the report says that it holds and what is still open."""
    report = judge_answer(find_checker("EncoderBlock"), OpenForward, 3)
    assert report.status == "error" and report.headline == "__init__ holds, forward is still open"


@pytest.mark.parametrize(
    ("exercise", "stub"), [("EncoderBlock", OpenBlock), ("LoRALinear", OpenAdapter)]
)
def test_untouched_stub_is_not_attempted(exercise, stub):
    """What the notebook gives is no attempt."""
    assert judge_answer(find_checker(exercise), stub, 3).status == "not_attempted"


def test_one_place_in_memory_is_not_one_tensor():
    """A shortcut for a tensor compared with itself must not take part of it for all of it."""

    def linear_cka(x, y):
        if x.data_ptr() == y.data_ptr():
            return x.new_ones(())
        return vit_and_cnn.linear_cka(x, y)

    report = judge_answer(find_checker("linear_cka"), linear_cka, 3)
    assert not report.is_flawless and "y the first two columns of x in memory" in str(report)


def test_float64_images_keep_their_digits():
    """A way through float32 shows in pixels that float32 cannot hold."""

    def random_crop_flip(images, padding, generator):
        return training.random_crop_flip(images.float(), padding, generator).to(images.dtype)

    report = judge_answer(find_checker("random_crop_flip"), random_crop_flip, 3)
    assert [remark.name for remark in report.remarks] == ["dtype"]


def test_what_an_earlier_call_left_is_not_a_tensor_of_the_call():
    """On another device its leftovers clash; that says nothing about where it makes tensors."""
    logits = []

    def logit_lens(layers, norm, head):
        for tokens in layers:
            logits.append(head(norm(tokens[:, 0])))
        return torch.stack(logits)

    report = judge_answer(find_checker("logit_lens"), logit_lens, 3)
    assert not report.passed and "own_device" not in report.misconceptions
