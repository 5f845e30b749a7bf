"""What a first call cannot show: answers that remember, later changes, and what is left behind."""

import random
from functools import partial

import pytest
import torch
import torch.nn.functional as F
from proof.general import cache_results, change_settings, reuse_buffers
from replay_caches import judge_answer
from torch import nn
from verdicts import failed_parts

from vitedu import attention, encoder, training, transfer, vit_and_cnn
from vitedu.checks.writing.checker import find_checker

pytestmark = pytest.mark.slow


def judge(exercise, answer):
    """Judge an answer on one draw."""
    return judge_answer(find_checker(exercise), answer, 3)


def leaving(change):
    """Give what makes an answer of a reference: after each call it changes a setting."""
    return lambda reference: change_settings(reference, change)


def leaving_once(change):
    """The same after the first call alone."""
    once = iter([change])
    return leaving(lambda: next(once, bool)())


class BeginsAlike(encoder.EncoderBlock):
    """Draws the same first weights for every block of a model."""

    def __init__(self, *sizes):
        torch.manual_seed(0)
        super().__init__(*sizes)


class StaysInEval(encoder.EncoderBlock):
    """Switches itself to eval mode."""

    def forward(self, x):
        self.eval()
        return super().forward(x)


class WritesWhereNothingLearns(encoder.EncoderBlock):
    """Adds into the tokens where no gradient is asked for."""

    def forward(self, x):
        return super().forward(x) if torch.is_grad_enabled() else x.copy_(super().forward(x))


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


def gradients_of_images(feature_map, images):
    features = feature_map(images.requires_grad_())
    gh, gw = features.shape[-2:]
    features[:, :, gh // 2, gw // 2].sum().backward()
    size = images.grad.abs().sum(dim=1).mean(dim=0)
    return size / size.max()


def freezing(model, batches):
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


def cooled(model, batches, optimizer, scheduler):
    """Train, and change a setting of the caller's optimizer for good."""
    results = training.train_one_epoch(model, batches, optimizer, scheduler)
    for group in optimizer.param_groups:
        group["lr"] /= 2
    return results


def frozen(module):
    module.requires_grad_(False)


def switched(module):
    module.train(not module.training)


def scaled(module):
    with torch.no_grad():
        for value in module.parameters():
            value.mul_(1.01)


def touching(change):
    """Give what makes an answer of a reference: after the call it changes the modules it got."""

    def make(reference):
        def answer(*args):
            result = reference(*args)
            for x in args:
                if isinstance(x, nn.Module):
                    change(x)
            return result

        return answer

    return make


SEEDS, DOUBLE = partial(torch.manual_seed, 0), partial(torch.set_default_dtype, torch.float64)
AUTOCAST = partial(torch.set_autocast_enabled, "cpu", True)
SEEDED = "the call seeds the global random numbers"
# exercise, what makes the answer of its reference or the answer itself, mistake, words
TRACES = [
    ("merge_heads", cache_results, "cached_by_shape", "an earlier call with other values"),
    ("EncoderBlock", BeginsAlike, "seeded", SEEDED),
    ("mixup", leaving_once(SEEDS), "seeded", "another seed for torch"),
    ("evaluate", leaving_once(DOUBLE), None, "dtype is torch.float64"),
    ("split_heads", leaving(lambda: torch.set_default_device("meta")), None, "device is meta"),
    ("split_heads", leaving(AUTOCAST), None, "autocast is on"),
    # sizes in reverse give a table of the same shape and other values
    ("sincos_positions_2d", reuse_buffers, None, "the second call wrote into"),
    ("confusion_matrix", cache_results, None, "an earlier call with other values"),
    ("MultiHeadAttention", RemembersWeights, None, "a call with other values is not"),
    ("EncoderBlock", StaysInEval, None, "is in eval mode"),
    ("EncoderBlock", WritesWhereNothingLearns, "modifies_input", "modified x in place"),
    ("effective_receptive_field", gradients_of_images, "modifies_input", "modified images"),
    ("evaluate", freezing, None, "is frozen"),
    ("evaluate", by_model(), None, "an earlier call with other values"),
    ("train_one_epoch", cooled, None, "the optimizer's groups"),
    *(("linear_from_conv", touching(c), None, "modified") for c in (frozen, switched, scaled)),
]
MAKERS = {"cache_results", "reuse_buffers", "make", "<lambda>"}


@pytest.mark.parametrize(("exercise", "answer", "mistake", "words"), TRACES)
def test_what_a_call_leaves_or_remembers_is_told(exercise, answer, mistake, words):
    """And named where it has a name; nothing of it stays in this process."""
    if answer.__name__ in MAKERS:
        answer = answer(find_checker(exercise).reference)
    report = judge(exercise, answer)
    assert not report.passed and words in str(report), str(report)
    assert mistake is None or report.misconception == mistake
    assert torch.is_grad_enabled() and torch.get_default_dtype() == torch.float32
    if exercise == "merge_heads":  # only the second call shows it; half of the points stay
        assert failed_parts(report) == ["again"] and report.points == report.max_points / 2


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
    assert judge("softmax", answer).passed


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
    report = judge("EncoderBlock", OpenForward)
    assert report.status == "error" and report.headline == "__init__ holds, forward is still open"


@pytest.mark.parametrize(
    ("exercise", "stub"), [("EncoderBlock", OpenBlock), ("LoRALinear", OpenAdapter)]
)
def test_untouched_stub_is_not_attempted(exercise, stub):
    """What the notebook gives is no attempt."""
    assert judge(exercise, stub).status == "not_attempted"


def test_one_place_in_memory_is_not_one_tensor():
    """A shortcut for a tensor compared with itself must not take part of it for all of it."""

    def linear_cka(x, y):
        if x.data_ptr() == y.data_ptr():
            return x.new_ones(())
        return vit_and_cnn.linear_cka(x, y)

    report = judge("linear_cka", linear_cka)
    assert not report.is_flawless and "y the first two columns of x in memory" in str(report)


def test_float64_images_keep_their_digits():
    """A way through float32 shows in pixels that float32 cannot hold."""

    def random_crop_flip(images, padding, generator):
        return training.random_crop_flip(images.float(), padding, generator).to(images.dtype)

    report = judge("random_crop_flip", random_crop_flip)
    assert [remark.name for remark in report.remarks] == ["dtype"]


def test_what_an_earlier_call_left_is_not_a_tensor_of_the_call():
    """On another device its leftovers clash; that says nothing about where it makes tensors."""
    logits = []

    def logit_lens(layers, norm, head):
        for tokens in layers:
            logits.append(head(norm(tokens[:, 0])))
        return torch.stack(logits)

    report = judge("logit_lens", logit_lens)
    assert not report.passed and "own_device" not in report.misconceptions
