"""What is said of mistakes that no bank holds: where right becomes wrong."""

import pytest
import torch
import torch.nn.functional as F
from replay_caches import judge_answer
from torch import nn

from proof.mutants import shortcuts
from vitedu import encoder, less_data, patches
from vitedu.checks.judging.compare import is_same_error
from vitedu.checks.observing.errors import RaisedError
from vitedu.checks.observing.observation import Observation
from vitedu.checks.writing.checker import find_checker

pytestmark = pytest.mark.slow
SEED = 3


def whole_ratio(config):
    D = config.embed_dim
    off = int(D * config.mlp_ratio) - D * int(config.mlp_ratio)
    return encoder.count_parameters(config) - config.depth * off * (2 * D + 1)


class NormEverywhere(nn.Module):
    """Stands for the model: the final norm after every block."""

    def __new__(cls, config):
        from vitedu.vit import VisionTransformer

        model = VisionTransformer(config)

        def forward(images):
            x = model.patch_embed(images)
            x = patches.add_class_token_and_positions(x, model.cls_token, model.pos_embed)
            for block in model.blocks:
                x = model.norm(block(x))
            return model.head(x[:, 0] if len(model.blocks) else model.norm(x)[:, 0])

        model.forward = forward
        return model


def bent_at_one(images, labels, num_classes, lam, permutation):
    blended, soft = less_data.mixup(images, labels, num_classes, lam, permutation)
    return (blended.sin() if lam == 1 else blended), soft


CONTRASTS = {
    "depth": ("VisionTransformer", NormEverywhere, "wrong"),
    "whole": ("count_parameters", whole_ratio, "right where mlp_ratio is a whole number"),
    "one share": ("mixup", bent_at_one, "right except for lam 1.0"),
}


@pytest.mark.parametrize(("exercise", "answer", "words"), CONTRASTS.values(), ids=CONTRASTS)
def test_what_is_right_is_said_too(exercise, answer, words):
    """A report of wrong values says on which inputs they are right."""
    if not isinstance(answer, type):
        answer.__name__ = exercise
    report = judge_answer(find_checker(exercise), answer, 3)
    assert words in report.headline, str(report)


def test_two_mistakes_in_another_dress_are_named():
    """The pair is found, although neither is written as the bank writes it first."""

    def cutmix(images, labels, num_classes, box, permutation):
        (H, W), (top, left, bottom, right) = images.shape[2:], box
        share = (bottom - top) * (right - left) / (H * W)
        inside = ..., slice(max(top, 0), min(bottom, H)), slice(max(left, 0), min(right, W))
        mixed = images.clone()
        mixed[inside] = images[permutation][inside]
        dtype = images.dtype if images.is_floating_point() else torch.float32
        one_hot = F.one_hot(labels, num_classes).to(dtype)
        return mixed, (1 - share) * one_hot + share * one_hot[permutation]

    report = judge_answer(find_checker("cutmix"), cutmix, SEED)
    assert set(report.misconceptions) == {"area_of_whole_box", "negative_indices"}, str(report)


def of_images(images, patch_size, permutation):
    patches_ = patches.patchify(images, patch_size)[permutation]
    return patches.unpatchify(patches_, patch_size, images.shape[2:])


ERRORS = {
    "index": ("shuffle_patches", of_images, "an index runs past axis 0, which has size"),
    "reshape": (
        "patchify",
        lambda images, patch_size: images.reshape(7, 11),
        "a shape (7, 11) is asked for",
    ),
    "sizes": (
        "shuffle_patches",
        lambda images, patch_size, permutation: images + permutation,
        "meet on one axis",
    ),
    "product": ("linear_cka", lambda x, y: x @ y, "is multiplied by a matrix"),
}


@pytest.mark.parametrize(("exercise", "answer", "words"), ERRORS.values(), ids=ERRORS)
def test_common_errors_are_headlines(exercise, answer, words):
    """The headline says in the course's words what torch's message says."""
    report = judge_answer(find_checker(exercise), answer, 3)
    assert not report.passed and words in report.headline, str(report)


def test_errors_are_told_apart_by_their_message():
    """Two errors of a type are one mistake only if they say the same, in any order of operands."""

    def ended(message, own=False):
        trouble = RaisedError("RuntimeError", ("RuntimeError",), message, None, own)
        return Observation(error=trouble)

    one = ended("size of tensor a (3) must match tensor b (5)")
    assert is_same_error(one, ended("size of tensor a (5) must match tensor b (3)"))
    assert not is_same_error(one, ended("mat1 and mat2 shapes cannot be multiplied"))
    assert not is_same_error(one, ended("size of tensor a (3) must match tensor b (5)", own=True))
    assert not is_same_error(one, Observation())


def test_shortcuts_are_wrong_in_one_place():
    """The mutant for special arguments differs there and nowhere else."""
    (mutant,) = shortcuts("def half(x):\n    return x / 2", ["x == 4"])
    names: dict = {}
    exec(mutant.source, names)
    assert [names["half"](x) for x in (2, 4)] == [1, 3]
