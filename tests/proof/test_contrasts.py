"""What is said of mistakes that no bank holds: relations, probes, where right becomes wrong."""

import math

import pytest
import torch
import torch.nn.functional as F
from replay_caches import judge_answer
from torch import nn
from verdicts import failed_parts

from proof.mutants import shortcuts
from vitedu import attention, encoder, inside, less_data, patches, training
from vitedu.checks import replay
from vitedu.checks.checker import find_checker
from vitedu.checks.compare import is_same_error
from vitedu.checks.errors import RaisedError
from vitedu.checks.observation import Observation

pytestmark = pytest.mark.slow
SEED = 3


def attending(scale):
    """Give attention whose scores are divided by a number of one's own."""

    def scaled_dot_product_attention(q, k, v):
        weights = (q @ k.mT / scale(k.shape[-1])).softmax(-1)
        return weights @ v, weights

    return scaled_dot_product_attention


def times_width(x, weight, bias, eps=1e-6):
    return x.shape[-1] * encoder.layer_norm(x, weight, bias, eps)


def without_head_bias(config):
    return encoder.count_parameters(config) - config.num_classes


def whole_ratio(config):
    D = config.embed_dim
    off = int(D * config.mlp_ratio) - D * int(config.mlp_ratio)
    return encoder.count_parameters(config) - config.depth * off * (2 * D + 1)


def centred_batch(x, weight, bias, eps=1e-6):
    return encoder.layer_norm(x - x.mean(0, keepdim=True), weight, bias, eps)


def noisy(x):
    return encoder.gelu(x) + torch.rand_like(x)


class Dropping(encoder.EncoderBlock):
    def forward(self, x):
        return F.dropout(super().forward(x), 0.2, self.training)


class Centred(attention.MultiHeadAttention):
    def forward(self, x):
        return super().forward(x - 0.5 * x.mean(0, keepdim=True))


class Joined(attention.MultiHeadAttention):
    """Attends with one head, and repeats its weights."""

    def forward(self, x):
        q, k, v = (x * 1.1).tanh(), x.cos(), self.qkv(x)[..., : x.shape[-1]]
        weights = (q @ k.mT).softmax(-1)
        return self.proj(weights @ v), weights[:, None].expand(-1, self.num_heads, -1, -1)


def own_labels(images, labels, num_classes, lam, permutation):
    mixed, right = less_data.mixup(images, labels, num_classes, lam, permutation)
    return mixed, F.one_hot(labels, num_classes).to(right.dtype) * 0.9 + 0.01 * labels[:, None]


def without_centre(
    student_logits, teacher_logits, center, student_temperature=0.1, teacher_temperature=0.04
):
    log_p = (student_logits / student_temperature).log_softmax(-1)
    return -(teacher_logits.detach().sigmoid() * log_p).sum(-1).mean()


def of_one_temperature(image_features, text_features, temperature):
    logits = F.normalize(image_features, dim=-1) @ F.normalize(text_features, dim=-1).T * 3.1
    return F.cross_entropy(logits, torch.arange(len(logits), device=logits.device)) * 1.1


def of_found_classes(predictions, labels, num_classes):
    size = int(max(predictions.max(), labels.max())) + 2
    return torch.bincount(labels * size + predictions, minlength=size * size).reshape(size, size)


def weights_of_labels(images, labels, num_classes, lam, permutation):
    mixed, right = less_data.mixup(images, labels, num_classes, lam, permutation)
    return mixed, right * (2 + torch.arange(len(right)).to(right))[:, None]


def one_plus_weight(x, weight, bias, eps=1e-6):
    return encoder.layer_norm(x, 1 + weight, bias, eps)


def between_0_and_1(pos_embed, grid_size):
    return (inside.position_similarity(pos_embed, grid_size) + 1) / 2


def without_the_last(images, patch_size):
    return patches.patchify(images, patch_size)[:, :-1]


def summed(*args, **more):
    return encoder.layer_norm(*args, **more).sum(-1)


whole_root = attending(lambda d: math.floor(math.sqrt(d) + 2))
RECOGNISED = {
    "a step more": ("gelu", lambda x: encoder.gelu(x).abs(), "one_step_more", "the absolute value"),
    "a step less": ("mixup", weights_of_labels, "one_step_less", "by the sum along axis -1"),
    "a row less": ("patchify", without_the_last, "axis_taken", "all but the last place of the"),
    "an axis less": ("layer_norm", summed, "axis_taken", "the sum of the expected one along axis"),
    "another argument": ("layer_norm", one_plus_weight, "other_argument", "one for weight + 1"),
    "stretched": ("position_similarity", between_0_and_1, "stretched", "times 0.5 plus 0.5"),
    "whole root": ("scaled_dot_product_attention", whole_root, "other_temperature", "weights"),
    "by width": ("layer_norm", times_width, "factor_by_input", "times"),
    "a term": ("count_parameters", without_head_bias, "off_by_a_term", "smaller by num_classes"),
    "the batch": ("MultiHeadAttention", Centred, "depends_on_the_batch", "by itself"),
    "noise": ("gelu", noisy, "random_result", "two calls"),
    "dropout": ("EncoderBlock", Dropping, "random_result", "two calls"),
}
UNUSED = {  # arguments without effect
    "one head": ("MultiHeadAttention", Joined, "num_heads changes nothing in output"),
    "a label": ("mixup", own_labels, "lam and permutation change nothing in labels"),
    "an option": ("dino_loss", without_centre, "center and teacher_temperature change nothing"),
    "a temperature": ("clip_loss", of_one_temperature, "temperature changes nothing"),
    "a size": ("confusion_matrix", of_found_classes, "num_classes changes nothing"),
}
RECOGNISED |= {name: (*row[:2], "argument_unused", row[2]) for name, row in UNUSED.items()}


@pytest.mark.parametrize(
    ("exercise", "answer", "id_", "words"), RECOGNISED.values(), ids=RECOGNISED
)
def test_what_no_bank_holds_is_recognised(exercise, answer, id_, words):
    """The numbers alone, or one more call, say what is wrong."""
    report = judge_answer(find_checker(exercise), answer, SEED)
    assert (report.status, report.misconception) == ("failed", id_), str(report)
    assert words in str(report)


def test_the_table_of_an_earlier_call_is_recognised():
    """A cache whose key leaves out an argument gives the right table of another call."""
    kept: dict[int, torch.Tensor] = {}

    def sincos_positions(num_positions, embed_dim):
        table = patches.sincos_positions(num_positions, embed_dim)
        return kept.setdefault(num_positions, table)

    report = judge_answer(find_checker("sincos_positions"), sincos_positions, SEED)
    assert (report.status, report.misconception) == ("failed", "cached_by_shape"), str(report)


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


def always_smoothed(logits, labels, label_smoothing=0.1):
    return training.cross_entropy(logits, labels, label_smoothing)


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


def test_two_mistakes_in_another_dress_are_named(monkeypatch):
    """The pair is found, although neither is written as the bank writes it first."""
    monkeypatch.setattr(replay, "PAIR_SECONDS", 10.0)  # however slow the machine is

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


def test_an_argument_with_some_effect_is_not_called_unused():
    """The area of a box stays if it is turned round, and changes if one side moves."""

    def cutmix(images, labels, num_classes, box, permutation):
        mixed, soft = less_data.cutmix(images, labels, num_classes, box, permutation)
        share = (box[2] - box[0]) * (box[3] - box[1]) / images[0, 0].numel()
        one_hot = F.one_hot(labels, num_classes).to(soft.dtype)
        return mixed, one_hot * (1 - share) ** 2 + share * one_hot[permutation]

    report = judge_answer(find_checker("cutmix"), cutmix, SEED)
    assert not report.passed and "nothing" not in report.headline


def test_an_argument_without_effect_fails_by_itself():
    """Where all values are right, another value of an argument still has to change the result."""
    checker = find_checker("mixup")
    cases = checker.draw(SEED)
    values = [case.args["lam"] for case in cases]

    def forgets(images, labels, num_classes, lam, permutation):
        lam = lam if lam in values else cases[0].args["lam"]
        return less_data.mixup(images, labels, num_classes, lam, permutation)

    report = judge_answer(checker, forgets, SEED)
    assert report.headline == "lam changes nothing in images", str(report)
    assert failed_parts(report) == ["again"]


def test_shortcuts_are_wrong_in_one_place():
    """The mutant for special arguments differs there and nowhere else."""
    (mutant,) = shortcuts("def half(x):\n    return x / 2", ["x == 4"])
    names: dict = {}
    exec(mutant.source, names)
    assert [names["half"](x) for x in (2, 4)] == [1, 3]
