"""The checkers of notebook 04: what is left free, parts, random crops, and what is kept secret."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from replay_caches import judge
from torch import nn
from verdicts import failed_parts

from vitedu import exercises
from vitedu import training as reference
from vitedu.checks.engine import judge_observations, observe_answer
from vitedu.checks.explaining.values import ValueChecker
from vitedu.checks.judging.compare import run_reader
from vitedu.checks.observing.answers import LocalAnswer
from vitedu.checks.observing.observation import Observation
from vitedu.checks.observing.observe import observe
from vitedu.checks.training import random_crop_flip_reader, random_draws_reader
from vitedu.checks.writing.checker import find_checker
from vitedu.grading.transport.messages import read_fields, write_observation

pytestmark = pytest.mark.bank
CHECKERS = {e.id: find_checker(e.id) for e in exercises.in_notebook("04_training")}
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
    assert failed_parts(report)[0] == "allowed operations" and report.misconception is None


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
    assert report.misconception is None and "the right values times 3" in str(report)


# --- parts and separate results, where the bank has no mistake that does the same ---------------


def smoothed_loss(log_probs, labels, s):
    """Give minus smoothed target times log-probabilities."""
    K = log_probs.shape[1]
    target = (1 - s) * F.one_hot(labels, K).to(log_probs.dtype) + s / K
    return -(target * log_probs).sum(-1).mean()


def price_of_clamped_probabilities(logits, labels, label_smoothing=0.0):
    return smoothed_loss(logits.softmax(-1).clamp(1e-7).log(), labels, label_smoothing)


def price_shifted_by_the_largest_of_all(logits, labels, label_smoothing=0.0):
    exp = (logits - logits.max()).exp()
    return smoothed_loss((exp / exp.sum(-1, keepdim=True)).log(), labels, label_smoothing)


def schedule_that_bends(step, total_steps, warmup_steps, peak_lr, final_lr=0.0):
    rate = reference.warmup_cosine(step, total_steps, warmup_steps, peak_lr, final_lr=final_lr)
    return rate + final_lr * step / total_steps


def groups_by_words_in_names(model, weight_decay):
    groups = [], []
    for name, p in model.named_parameters():
        token = name.split(".")[-1] in ("cls_token", "pos_embed")
        groups[token or "bias" in name or p.ndim < 2].append(p)
    decays = zip(groups, (weight_decay, 0.0))  # noqa: B905
    return [{"params": p, "weight_decay": w} for p, w in decays]


def crops_without_taking_padding_off(images, padding, generator):
    def places(size):
        place = torch.randint(0, 2 * padding + 1, (len(images), 1), generator=generator)
        place = place + torch.arange(size)
        return torch.minimum(place, 2 * (size - 1) - place).abs().to(images.device)

    rows, columns = places(images.shape[2]), places(images.shape[3])
    coins = torch.rand(len(images), generator=generator) < 0.5
    columns = torch.where(coins[:, None].to(images.device), columns.flip(1), columns)
    batch = torch.arange(len(images))[:, None, None]
    return images[batch, :, rows[:, :, None], columns[:, None]].permute(0, 3, 1, 2)


def evaluate_with_the_model_left_in_eval(model, batches):
    modes = [(part, part.training) for part in model.children()]
    results = reference.evaluate(model, batches)
    model.eval()
    for part, training in modes:
        part.training = training
    return results


UNKNOWN = {
    "clamped": (price_of_clamped_probabilities, "cross_entropy", "large scores"),
    "shifted": (price_shifted_by_the_largest_of_all, "cross_entropy", "large scores"),
    "final rate": (schedule_that_bends, "warmup_cosine", "final rate"),
    "words": (groups_by_words_in_names, "weight_decay_groups", "other names"),
    "padding": (crops_without_taking_padding_off, "random_crop_flip", "values"),
    "modes": (evaluate_with_the_model_left_in_eval, "evaluate", "left as it was"),
}


@pytest.mark.parametrize(("answer", "exercise", "part"), UNKNOWN.values(), ids=UNKNOWN)
def test_the_part_that_fails_first_is_told(answer, exercise, part):
    """What no known mistake explains gets no name, and fails what it breaks."""
    report = judge(answer, exercise, seed=0)
    assert report.misconception is None and failed_parts(report)[0] == part, str(report)


@pytest.mark.parametrize("exercise", ["train_one_epoch", "evaluate"])
def test_an_unknown_result_alone_gets_no_name(exercise):
    """No mistake is claimed of a loss that none gives, or of the right accuracy beside it."""

    def answer(*args):
        loss, accuracy = getattr(reference, exercise)(*args)
        return loss**2 + 1, accuracy

    assert judge(answer, exercise, seed=0).misconceptions == []


# --- polish: what passes with a remark ----------------------------------------------------------


def evaluate_with_one_mode(model, batches):
    was = model.training
    results = reference.evaluate(model.eval(), batches)
    model.train(was)
    return results


def test_the_modes_of_parts_and_smoothing_are_polish():
    """Without them an answer passes, stays the student's and loses no more than their points."""

    def cross_entropy(logits, labels, label_smoothing=0.0):
        return F.nll_loss(logits.log_softmax(-1), labels)

    remarks = {evaluate_with_one_mode: "modes of the parts", cross_entropy: "label smoothing"}
    for answer, part in remarks.items():
        name = "evaluate" if answer is evaluate_with_one_mode else "cross_entropy"
        report = judge(answer, name, seed=0)
        assert report.passed and report.implementation is answer
        assert [remark.name for remark in report.remarks] == [part]


# --- numbers that hold a graph ------------------------------------------------------------------


def epoch_keeping_graphs(model, batches, optimizer, scheduler, factor=1.0):
    model.train()
    total, hits, seen = 0.0, 0, 0
    for images, labels in batches:
        optimizer.zero_grad()
        logits = model(images)
        loss = F.cross_entropy(logits, labels)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        scheduler.step()
        total = total + factor * loss * len(labels)
        hits += (logits.argmax(-1) == labels).sum()
        seen += len(labels)
    return total / seen, hits / seen


class AcrossTheWire(LocalAnswer):
    """An answer whose observations go through the grader's messages."""

    def observe_all(self, cases, seconds):
        """Exercise it, write down what was seen, and read that."""
        for seen in super().observe_all(cases, seconds):
            yield read_fields(Observation, write_observation(seen))


@pytest.mark.parametrize("source", [LocalAnswer, AcrossTheWire], ids=["notebook", "grader"])
def test_a_loss_that_keeps_its_graph_fails_the_returns(source):
    """A tensor that requires a gradient is no Python number, in the notebook and in the grader."""
    checker = CHECKERS["train_one_epoch"]
    cases = checker.draw(0)
    observed = observe_answer(checker, cases, source(epoch_keeping_graphs), 10.0, {})
    report = judge_observations(checker, cases, observed, 0)
    assert report.misconceptions == ["graph_kept"]
    assert failed_parts(report)[0] == "returns" and "loss.item()" in str(report)


def test_a_wrong_loss_that_keeps_its_graph_is_told_about_item():
    """Where the number is wrong in no known way, a line says where the graph comes from."""

    def train_one_epoch(model, batches, optimizer, scheduler):
        return epoch_keeping_graphs(model, batches, optimizer, scheduler, factor=1.3)

    report = judge(train_one_epoch, seed=0)
    assert report.misconception is None and ".item()" in str(report)


def test_a_detached_tensor_is_a_number():
    """Sums kept as tensors without a graph are right."""

    def train_one_epoch(model, batches, optimizer, scheduler):
        results = epoch_keeping_graphs(model, batches, optimizer, scheduler)
        return tuple(value.detach() for value in results)

    assert judge(train_one_epoch, seed=0).passed


# --- 4.5 ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "id_"),
    [
        (0.723, "table"),
        (0.7230, "table"),
        (0.7217, "bits"),
        (0.722, "bits"),
        (0.72176, "bits"),
        (0.325, "nine_as_one"),
        (0.3025, "nine_shares_as_one"),
    ],
)
def test_close_values_of_the_smoothing_floor_are_told_apart(value, id_):
    """Lines of the table and sums in bits differ in the third digit; three digits are enough."""
    assert judge(value, "smoothing_floor").misconception == id_


# --- random crops -------------------------------------------------------------------------------


def test_right_crops_are_read_as_right():
    """The reader finds in the reference exactly what the text asks for."""
    checker = CHECKERS["random_crop_flip"]
    for seed in range(8):
        for case in checker.draw(seed):
            if case.driver != "random_batches" or case.on_accelerator:
                continue
            seen = observe(checker.reference, case)
            run_reader(case, seen)
            assert seen.facts[random_crop_flip_reader.WINDOW] == "so it is"
            if case.part == "draws":
                assert seen.facts[random_crop_flip_reader.DRAWS] == "so it is"


def test_chi_square_bound_lies_above_the_tail():
    """The bound holds for the tabled 0.1 % points and falls far below the limit where it should."""
    for freedom, point in ((1, 10.83), (4, 18.47), (16, 39.25)):
        assert 0.001 <= random_draws_reader.chi_square_tail(point, freedom) < 0.1
    assert (
        random_draws_reader.chi_square_tail(200.0, 8)
        < random_draws_reader.CHANCE
        < random_draws_reader.chi_square_tail(20.0, 8)
    )


def test_crops_drawn_by_wall_clock_are_rejected():
    """Draws that no generator can repeat are not from generator."""

    def random_crop_flip(images, padding, generator):
        own = torch.Generator()
        own.seed()
        return reference.random_crop_flip(images, padding, own)

    report = judge(random_crop_flip, seed=0)
    assert not report.passed
    assert failed_parts(report) == ["generator"]
