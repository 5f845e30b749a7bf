"""The idea decides; polish is a remark that costs its own points and fails no answer."""

import pytest
import torch
from proof.bank import mistaken

from vitedu import attention, encoder, inside, patches, transfer, vit
from vitedu.__main__ import main
from vitedu.checks.api import check, judge
from vitedu.checks.engine import judge_answer
from vitedu.checks.judging.findings import is_polish, list_parts, share_points
from vitedu.checks.writing.checker import MOST_POLISH, Checker, find_checker, find_lenient_checker
from vitedu.course import results
from vitedu.exercises import EXERCISES

CODE = [e for e in EXERCISES if isinstance(find_checker(e.id), Checker)]


def patchify_without_refusal(images, patch_size):
    """The pixels are right; what does not divide ends in torch's own error, half of a remark."""
    B, C, H, W = images.shape
    gh, gw = H // patch_size, W // patch_size
    x = images.reshape(B, C, gh, patch_size, gw, patch_size)
    return x.permute(0, 2, 4, 1, 3, 5).reshape(B, gh * gw, -1)


def remarks(report):
    return {remark.name: round(remark.max_points - remark.points, 3) for remark in report.remarks}


def test_polish_costs_its_points_and_fails_nothing():
    """The student's own code is used, progress counts a pass, and the remark names its price."""
    report = check(patchify_without_refusal, "patchify", seed=1)
    (part, cost), *others = remarks(report).items()
    assert report.passed and report.implementation is patchify_without_refusal
    assert part == "errors" and not others and 0 < cost < report.max_points * MOST_POLISH
    assert report.points == pytest.approx(report.max_points - cost, abs=0.01)
    assert "passed, 1 remark" in report.head and "remark" in dict(report.lines)
    assert results.load()["patchify"]["status"] == "passed"
    assert report.to_dict()["remarks"][0]["part"] == "errors"


def test_error_of_torch_counts_half():
    """Another error is worth half of what is lost without any; refusing everything nothing."""

    def without_error(images, patch_size):
        H, W = (size // patch_size * patch_size for size in images.shape[2:])
        return patches.patchify(images[:, :, :H, :W], patch_size)

    silent, half = (
        remarks(judge(answer, "patchify", seed=1))["errors"]
        for answer in (without_error, patchify_without_refusal)
    )
    assert half == pytest.approx(silent / 2, abs=0.002)
    assert judge(lambda a, b: int("x"), "patchify", seed=0).points == 0


def test_remark_hides_no_mistake():
    """Labels cut to whole numbers have another dtype and are wrong besides."""

    def mixup(images, labels, num_classes, lam, permutation):
        right = find_checker("mixup").reference
        images, labels = right(images, labels, num_classes, lam, permutation)
        return images, labels.long()

    report = judge(mixup, seed=1)
    assert not report.passed and "dtype" in remarks(report)
    assert not next(f for f in report.findings if f.name == "values").passed


def test_rounding_hides_no_wrong_number_of_the_same_case():
    """Float64 comes back as float32 and is wrong besides: the second decides."""

    def softmax(x, dim=-1):
        right = attention.softmax(x.float(), dim)
        return right + 0.1 if x.dtype == torch.float64 else right.to(x.dtype)

    assert not judge(softmax, seed=1).passed


def test_idea_and_slip_stand_apart():
    """The headline is the mistake alone; the slip stands below as a remark."""

    def patchify(images, patch_size):
        return patchify_without_refusal(images.transpose(2, 3), patch_size)

    report = judge(patchify, seed=1)
    labels = [label for label, _ in report.lines]
    assert not report.passed and "error" not in report.headline
    assert labels[0] == "right" and labels.index("remark") >= report.visible


def test_two_mistakes_are_two_paragraphs():
    """The first to mend has the headline and the first view; the other follows, folded."""
    answer = mistaken("patchify", "patches_by_column", "bottom_up")
    report = judge(answer, "patchify", seed=3)
    assert len(report.misconceptions) == 2 and " and " not in report.headline
    place = [label for label, _ in report.lines].index("mistake 2")
    assert place >= report.visible and report.lines[place][1] != report.headline


@pytest.mark.parametrize("kind", [list, tuple])
def test_equal_tensors_in_a_list_are_the_stacked_tensor(kind):
    """Also where they carry gradients: their numbers are judged, and the list is a remark."""

    def logit_lens(layers, norm, head):
        return kind(inside.logit_lens(layers, norm, head))

    report = judge(logit_lens, seed=1)
    assert report.passed and list(remarks(report)) == ["returns"], str(report)
    assert not judge(lambda *args: kind(2 * inside.logit_lens(*args)), "logit_lens", seed=1).passed


def blind_to_gradients(base):
    """The layer without gradients where its input needs none: as good as never trained."""

    class Frozen(base):
        def forward(self, x):
            with torch.set_grad_enabled(x.requires_grad):
                return super().forward(x)

    return Frozen


@pytest.mark.parametrize(
    "base",
    [
        attention.MultiHeadAttention,
        encoder.EncoderBlock,
        vit.VisionTransformer,
        transfer.LoRALinear,
    ],
    ids=lambda base: base.__name__,
)
def test_what_can_not_learn_fails(base):
    """Images need no gradient; parameters must get theirs all the same."""
    report = judge(blind_to_gradients(base), base.__name__, seed=1)
    assert not report.passed and "gradients" in [f.name for f in report.findings if not f.passed]


def test_wrong_values_hide_a_remark_about_gradients():
    """Another function has other gradients: "look for a part that is detached" would mislead."""
    answer = mistaken("attention_rollout", "not_normalised")
    report = judge(answer, "attention_rollout", seed=1)
    assert not report.passed and "remark" not in dict(report.lines)


def test_weights_learn_from_data_without_gradient():
    """A function whose first argument needs no gradient still gives the others theirs."""

    def layer_norm(x, weight, bias, eps=1e-6):
        with torch.set_grad_enabled(x.requires_grad):
            return encoder.layer_norm(x, weight, bias, eps)

    assert not judge(layer_norm, seed=1).passed


@pytest.mark.parametrize("exercise", CODE, ids=lambda e: e.id)
def test_polish_is_at_most_a_quarter(exercise):
    """The shares add up, polish has a quarter at most, and none where a grader says so."""
    checker = find_checker(exercise.id)
    parts = list_parts(checker, checker.draw(0))
    for most in (MOST_POLISH, 0.0):
        shares = share_points(find_lenient_checker(exercise.id, most), parts)
        polish = sum(share for part, share in shares.items() if is_polish(checker, part))
        assert sum(shares.values()) == pytest.approx(exercise.points)
        assert polish <= most * exercise.points + 1e-9
    unknown = {*checker.idea, *checker.polish} - {*parts, "errors", "dtype", "any device"}
    assert not unknown, "words of parts that no case has"


def test_grader_may_take_nothing_for_polish():
    """With a share of 0 a remark costs nothing, and is still told."""
    report = judge_answer(find_lenient_checker("patchify", 0.0), patchify_without_refusal, 1)
    assert report.passed and report.points == report.max_points and report.remarks
    assert "points" not in dict(report.lines)["remark"]


def test_parts_are_listed(capsys):
    """``vitedu list --parts`` prints idea and polish with points and words."""
    assert main(["list", "01_patches", "--parts"]) == 0
    text = capsys.readouterr().out
    assert "polish" in text and "values: every pixel stands where it should" in text
