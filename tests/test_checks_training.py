"""The checkers of notebook 04: what their contract leaves free, random crops, and what messages keep to themselves."""

import re

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn
from verdicts import failed

from vitedu import training as reference
from vitedu.checks import crops
from vitedu.checks.api import judge
from vitedu.checks.bank import wrong_answers
from vitedu.checks.judging import read
from vitedu.checks.probing import observe
from vitedu.checks.training import CHECKERS
from vitedu.checks.values import ValueChecker

FUNCTIONS = [id_ for id_, checker in CHECKERS.items() if not isinstance(checker, ValueChecker)]

# --- contract: what is right in other clothes ---------------------------------------------------


def test_cross_entropy_may_use_log_softmax_and_nll():
    """The neighbours of cross_entropy are allowed."""

    def cross_entropy(logits, labels, label_smoothing=0.0):
        log_probs = torch.log_softmax(logits, dim=-1)
        loss = nn.NLLLoss()(log_probs, labels)
        return (1 - label_smoothing) * loss - label_smoothing * log_probs.mean()

    assert judge(cross_entropy, seed=0).passed


FORBIDDEN = {
    "F.cross_entropy": lambda x, y, s: F.cross_entropy(x, y, label_smoothing=s),
    "nn.CrossEntropyLoss": lambda x, y, s: nn.CrossEntropyLoss(label_smoothing=s)(x, y),
    "getattr": lambda x, y, s: getattr(F, "cross" + "_entropy")(x, y, label_smoothing=s),
    "torch._C._nn": lambda x, y, s: torch._C._nn.cross_entropy_loss(x, y, None, 1, -100, s),
    "torch.ops.aten": lambda x, y, s: torch.ops.aten.cross_entropy_loss(x, y, None, 1, -100, s),
    "torch.ops.aten.default": lambda x, y, s: torch.ops.aten.cross_entropy_loss.default(
        x, y, None, 1, -100, s
    ),
    "through a target table": lambda x, y, s: F.cross_entropy(
        x, (1 - s) * F.one_hot(y, x.shape[1]).to(x.dtype) + s / x.shape[1]
    ),
    "on a subclass": lambda x, y, s: F.cross_entropy(nn.Parameter(x) * 1, y, label_smoothing=s),
}


@pytest.mark.parametrize("spelling", FORBIDDEN)
def test_cross_entropy_is_found_in_every_spelling(spelling):
    """The forbidden call is found from what ran, and earns nothing."""

    def cross_entropy(logits, labels, label_smoothing=0.0):
        return FORBIDDEN[spelling](logits, labels, label_smoothing)

    report = judge(cross_entropy, seed=0)
    assert report.status == "failed" and report.points == 0
    assert report.findings[0].name == "allowed operations" and not report.findings[0].passed


@pytest.mark.parametrize(
    "number", [float, np.float64, np.float32, torch.tensor, np.asarray], ids=lambda f: f.__name__
)
def test_schedule_may_give_any_kind_of_number(number):
    """Python, NumPy and 0-d tensor numbers are alike."""

    def warmup_cosine(step, total_steps, warmup_steps, peak_lr, final_lr=0.0):
        return number(
            reference.warmup_cosine(step, total_steps, warmup_steps, peak_lr, final_lr=final_lr)
        )

    assert judge(warmup_cosine, seed=0).passed


@pytest.mark.parametrize("number", [np.float64, torch.tensor], ids=lambda f: f.__name__)
@pytest.mark.parametrize("exercise", ["train_one_epoch", "evaluate"])
def test_results_may_be_any_kind_of_number(exercise, number):
    """A pair of NumPy or 0-d tensor numbers, in a list, is as good as a tuple of floats."""
    function = getattr(reference, exercise)
    assert judge(lambda *args: [number(x) for x in function(*args)], exercise, seed=0).passed


def test_groups_may_come_in_any_order_with_other_keys():
    """The order of groups, of keys and of parameters is free, and so are further keys."""

    def weight_decay_groups(model, weight_decay):
        first, second = reference.weight_decay_groups(model, weight_decay)
        return iter(
            [
                {"lr": 0.1, "weight_decay": 0, "params": tuple(second["params"][::-1])},
                {"params": (p for p in first["params"]), "weight_decay": weight_decay},
            ]
        )

    assert judge(weight_decay_groups, seed=0).passed


def test_evaluation_may_restore_modes_after_a_decorator():
    """inference_mode as a decorator and eval through apply are right."""
    answer = torch.inference_mode()(reference.evaluate.__wrapped__)
    assert judge(answer, "evaluate", seed=0).passed


# --- wrong in ways outside the bank -------------------------------------------------------------


def test_unscaled_sum_is_recognised_by_its_factor():
    """A wrong factor outside the bank is said with its evidence."""
    report = judge(
        lambda *args, **kwargs: 3 * reference.warmup_cosine(*args, **kwargs),
        "warmup_cosine",
        seed=0,
    )
    assert report.misconception == "constant_factor" and "3.00" in str(report)


@pytest.mark.parametrize("exercise", FUNCTIONS)
def test_other_signature_is_told(exercise):
    """A function that takes other arguments is told so before anything runs."""
    report = judge(lambda only: only, exercise, seed=0)
    assert report.findings[0].name == "returns" or not report.findings[0].passed
    assert "other arguments" in report.headline


@pytest.mark.parametrize("exercise", FUNCTIONS)
def test_global_settings_change_no_verdict(exercise):
    """Seeds, gradient mode and default dtype around a check change nothing."""
    torch.manual_seed(3)
    torch.set_default_dtype(torch.float64)
    try:
        with torch.no_grad():
            assert judge(getattr(reference, exercise), exercise, seed=0).passed
    finally:
        torch.set_default_dtype(torch.float32)


# --- random crops -------------------------------------------------------------------------------


def test_right_crops_are_read_as_right():
    """The reader finds in the reference exactly what the text asks for: a check that reads nothing proves nothing."""
    checker = CHECKERS["random_crop_flip"]
    for seed in range(20):
        for case in checker.draw(seed):
            if case.driver != "random_images" or case.on_accelerator:
                continue
            seen = observe(checker.reference, case)
            read(case, seen)
            assert seen.facts[crops.WINDOW] == "so it is"
            if case.extra.get("draws"):
                assert seen.facts[crops.OWN_DRAW] == "anew"
                assert seen.facts[crops.COIN] == "fair"
                assert seen.facts[crops.APART] == "apart"
                assert seen.facts[crops.PLACES.format(4)] == "tops from 0 to 4, lefts from 0 to 4"


@pytest.mark.parametrize("border", crops.BORDERS)
@pytest.mark.parametrize("dtype", [torch.uint8, torch.float32], ids=str)
def test_padded_agrees_with_torch(border, dtype):
    """Borders equal those of torch.nn.functional.pad, to the bit."""
    mode = {"reflected": "reflect", "zeros": "constant", "the edge repeated": "replicate"}
    images = torch.randint(0, 256, (2, 3, 5, 7)).to(dtype)
    expected = F.pad(images.double(), [3] * 4, mode=mode.get(border, "circular")).to(dtype)
    assert torch.equal(crops.padded(images, 3, border), expected)


def test_chi_square_bound_lies_above_the_tail():
    """The bound holds for the tabled 0.1 % points and falls far below the limit where it should."""
    for freedom, point in ((1, 10.83), (4, 18.47), (16, 39.25)):
        assert 0.001 <= crops.chi_square_tail(point, freedom) < 0.1
    assert crops.chi_square_tail(200.0, 8) < crops.CHANCE < crops.chi_square_tail(20.0, 8)


def test_crops_drawn_by_wall_clock_are_rejected():
    """Draws that no generator can repeat are not from generator."""

    def random_crop_flip(images, padding, generator):
        own = torch.Generator()
        own.seed()
        return reference.random_crop_flip(images, padding, own)

    report = judge(random_crop_flip, seed=0)
    assert not report.passed
    assert failed(report) == ["generator"]


@pytest.mark.parametrize(
    "exercise", ["cross_entropy", "warmup_cosine", "train_one_epoch", "evaluate"]
)
def test_messages_hold_no_expected_numbers(exercise):
    """A report shows numbers of the answer's own, never the reference's."""
    checker = CHECKERS[exercise]

    def numbers(answer):
        seen = [observe(answer, case) for case in checker.draw(3) if not case.on_accelerator]
        values = [float(v) for s in seen for a in s.arrays.values() for v in a.flatten()]
        return {f"{v:{form}}" for v in values if abs(v) > 1e-3 for form in (".4g", ".6g")}

    tried = set()
    for _, wrong in wrong_answers(exercise)[:4]:
        report = judge(wrong, exercise, seed=3)
        text = re.split(r"[^0-9.e-]+", str(report) + str(report.to_dict()))
        hidden = {n for n in numbers(checker.reference) - numbers(wrong) if "." in n and len(n) > 4}
        assert not hidden & set(text)
        tried |= hidden
    assert len(tried) > 3
