"""The engine of the checks: strange answers, honest diagnoses, seeds, points, secrets."""

import functools
import sys
import time
import xml.etree.ElementTree as ET
from unittest import mock

import numpy as np
import pytest
import torch
from proof.bank import mistaken, wrong_answers
from replay_caches import judge
from secrecy import NUMBER, exact_numbers, numbers_of
from torch import nn

from vitedu import attention, encoder, exercises, patches, training
from vitedu.checks.engine import judge_answer
from vitedu.checks.judging.compare import is_close
from vitedu.checks.observing import limits
from vitedu.checks.observing.case import Case
from vitedu.checks.observing.observe import observe
from vitedu.checks.writing.checker import find_checker
from vitedu.course.hints import hints_html

RIGHT = patches.patchify
FUNCTIONS = [exercise.id for exercise in exercises.EXERCISES if exercise.kind != "value"]
VALUES = [exercise.id for exercise in exercises.EXERCISES if exercise.kind == "value"]


def is_free_of_our_insides(text: str) -> bool:
    """Tell whether a text shows no traceback and no file of the package."""
    return "Traceback" not in text and "vitedu/" not in text and "site-packages" not in text


# --- answers that are no answers ----------------------------------------------------------------


class Shouting(Exception):
    """An error that cannot be printed."""

    def __str__(self):
        raise RuntimeError("no words")


class Untouchable:
    """An object that lets no one look at it."""

    def __getattribute__(self, name):
        raise ValueError("hands off")


class Callable:
    """An object that does the work when called."""

    def __call__(self, images, patch_size):
        return RIGHT(images, patch_size)


class Patchify(nn.Module):
    """A module that does the work."""

    def forward(self, images, patch_size):
        return RIGHT(images, patch_size)


def raising(error):
    """Give an answer that raises."""

    def patchify(images, patch_size):
        raise error

    return patchify


def printing(images, patch_size):
    print("x" * 10**6)
    return RIGHT(images, patch_size)


def silent(images, patch_size):
    images.unfold(2, patch_size, patch_size)


def generating(images, patch_size):
    yield RIGHT(images, patch_size)


async def waiting(images, patch_size):
    return RIGHT(images, patch_size)


def recursing(images, patch_size):
    return recursing(images, patch_size)


def rebinding(images, patch_size):
    result = RIGHT(images, patch_size)
    del images
    patch_size = None
    return result


def closing(images, patch_size):
    sys.stdout.close()
    return RIGHT(images, patch_size)


def after(change):
    """Give the right answer with its result changed."""
    return lambda images, patch_size: change(RIGHT(images, patch_size))


PASSING = {
    "a lambda": lambda images, patch_size: RIGHT(images, patch_size),
    "a partial": functools.partial(RIGHT),
    "an object with __call__": Callable(),
    "a module": Patchify(),
    "other parameter names": lambda a, b: RIGHT(a, b),
    "more parameters with defaults": lambda a, b, c=0, *, d=1: RIGHT(a, b),
    "prints a megabyte": printing,
    "deletes and rebinds its arguments": rebinding,
    "closes stdout": closing,
}

# what is given, and words that the report must hold
FAILING = {
    "forgotten return": (silent, "without return"),
    "ValueError": (raising(ValueError("bad")), "ValueError: bad"),
    "SystemExit": (raising(SystemExit(1)), "SystemExit"),
    "KeyboardInterrupt": (raising(KeyboardInterrupt()), "KeyboardInterrupt"),
    "GeneratorExit": (raising(GeneratorExit()), "GeneratorExit"),
    "StopIteration": (raising(StopIteration()), "StopIteration"),
    "BaseException": (raising(BaseException("end")), "BaseException: end"),
    "unprintable error": (raising(Shouting()), "cannot be shown"),
    "endless recursion": (recursing, "RecursionError"),
    "generator function": (generating, "with yield"),
    "async function": (waiting, "with async def"),
    "builtin": (len, "other arguments"),
    "builtin without signature": (torch.zeros_like, "TypeError"),
    "partial of too much": (functools.partial(RIGHT, patch_size=2), "other arguments"),
    "too few parameters": (lambda images: images, "other arguments"),
    "a class": (Patchify, "the class Patchify"),
    "the type of types": (type, "not a function"),
    "a number": (5, "type int"),
    "NaN": (float("nan"), "type float"),
    "a string": ("patchify", "type str"),
    "a boolean": (True, "type bool"),
    "a dict": ({}, "type dict"),
    "a tensor": (torch.ones(3), "type Tensor"),
    "an array": (np.ones(3), "type ndarray"),
    "an untouchable object": (Untouchable(), "type Untouchable"),
    "a mock": (mock.MagicMock(), "MagicMock"),
    "NumPy result": (after(lambda x: x.detach().numpy()), "NumPy array"),
    "list result": (after(lambda x: x.tolist()), "list of"),
    "tuple result": (after(lambda x: (x, x)), "tuple of 2"),
    "dict result": (after(lambda x: {"x": x}), "got       dict"),
    "integer result": (after(lambda x: x.long()), "dtype int64"),
    "boolean result": (after(lambda x: x > 0), "dtype bool"),
    "half result": (after(lambda x: x.half()), "dtype float16"),
    "complex result": (after(lambda x: x.to(torch.complex64)), "dtype complex64"),
    "sparse result": (after(lambda x: x.to_sparse()), "sparse or quantized tensor"),
    "quantized result": (
        after(lambda x: torch.quantize_per_tensor(x.float(), 0.1, 0, torch.qint8)),
        "quantized tensor",
    ),
    "NaN result": (after(lambda x: x * float("nan")), "values are NaN"),
    "infinite result": (after(lambda x: x / 0), "values are infinite"),
    "empty result": (after(lambda x: x[:0]), "shape (0,"),
    "claims more than memory holds": (after(lambda x: x.sum().expand(10**11)), "100000000000"),
    "asks for more than memory holds": (after(lambda x: x.new_zeros(10**14)), "RuntimeError"),
    "result without values": (after(lambda x: torch.empty_like(x, device="meta")), "on meta"),
    "input emptied": (lambda i, p: (RIGHT(i, p), i.resize_(0))[0], "in place"),
    "input of another dtype": (
        lambda i, p: (RIGHT(i, p), setattr(i, "data", i.data.half()))[0],
        "in place",
    ),
}


@pytest.mark.parametrize("answer", PASSING.values(), ids=PASSING)
def test_unusual_right_answers_pass(answer):
    """What does the work passes, whatever kind of callable it is."""
    report = judge(answer, "patchify", seed=3)
    assert report.passed and report.implementation is answer, str(report)


@pytest.mark.parametrize(("answer", "words"), FAILING.values(), ids=FAILING)
def test_strange_answers_fail_in_words(answer, words):
    """Whatever an answer is or does, a report says what it was, without a traceback of ours."""
    report = judge(answer, "patchify", seed=3)
    assert report.status in ("failed", "error") and report.points < report.max_points
    assert words in str(report), str(report)
    assert is_free_of_our_insides(str(report)), str(report)
    assert report.implementation is RIGHT
    ET.fromstring(report._repr_html_())
    report.to_dict()


@pytest.mark.parametrize(
    "answer", [None, ..., raising(NotImplementedError("1.1")), lambda i, p: None]
)
def test_nothing_written_is_not_attempted(answer):
    """None, an ellipsis, a stub and an empty body are no attempt, and cost nothing."""
    report = judge(answer, "patchify", seed=3)
    assert report.status == "not_attempted" and report.misconception is None


def test_error_of_torch_is_no_stub():
    """A NotImplementedError from inside torch is an error of the answer, not a stub."""
    report = judge(after(lambda x: x.to("meta").cpu()), "patchify", seed=3)
    assert report.status == "error" and "NotImplementedError" in str(report)


def test_function_instead_of_class():
    """A function where a class is asked for is refused before it runs."""
    report = judge(encoder.gelu, "EncoderBlock", seed=3)
    assert report.headline == "this is not a class" and report.points == 0


@pytest.mark.slow
def test_class_that_is_no_module():
    """A class that makes something else than a layer is told so."""

    class EncoderBlock:
        def __init__(self, embed_dim, num_heads, mlp_ratio=4.0):
            pass

    assert "an nn.Module" in str(judge(EncoderBlock, seed=3))


# --- time ---------------------------------------------------------------------------------------


def endless(images, patch_size):
    while True:
        pass


def stubborn(images, patch_size):
    while True:
        try:
            RIGHT(images, patch_size)
        except Exception:  # noqa: S110
            pass


def sleeping(images, patch_size):
    time.sleep(60)


def slow_in_one_case(images, patch_size):
    while images.dtype == torch.float64:
        pass
    return RIGHT(images, patch_size)


@pytest.mark.slow
@pytest.mark.parametrize("answer", [endless, stubborn, sleeping, slow_in_one_case])
def test_an_answer_that_never_ends_is_ended(answer, monkeypatch):
    """After the time limit of the whole check there is a report; no later call is waited for."""
    monkeypatch.setenv("VITEDU_TIME_LIMIT", "0.4")
    if answer is sleeping:  # by the clock, and else by computing time, however busy the machine is
        monkeypatch.setattr(limits, "WAITING", 1.0)
    start = time.thread_time()
    report = judge(answer, "patchify", seed=3)
    assert time.thread_time() - start < 3.0
    assert ("it waits" if answer is sleeping else "no result within 0.4 s") in str(report)
    assert report.misconception is None and is_free_of_our_insides(str(report))
    assert answer is slow_in_one_case or report.headline == "the call does not come to an end"


# --- seeds --------------------------------------------------------------------------------------


@pytest.mark.parametrize("exercise", ["patchify", "MultiHeadAttention", "random_crop_flip"])
def test_a_seed_repeats_its_report_and_another_draws_anew(exercise):
    """The same seed gives the same report to the letter, another one other inputs."""
    wrong = wrong_answers(exercise)[0][1]
    first, again, other = (judge(wrong, exercise, seed=seed) for seed in (1, 1, 2))
    assert str(first) == str(again) and first._repr_html_() == again._repr_html_()
    assert first.seed == 1 and str(first) != str(other)
    a, b = (find_checker(exercise).draw(seed) for seed in (1, 2))
    assert [case.name for case in a] == [case.name for case in find_checker(exercise).draw(1)]
    assert any(x.name != y.name or str(x.args) != str(y.args) for x, y in zip(a, b, strict=True))


def test_default_seeds_differ():
    """Without a seed every check draws new inputs."""
    assert len({judge(encoder.gelu).seed for _ in range(4)}) == 4


@pytest.mark.slow
def test_case_names_are_unique():
    """Observations are kept by the name of their case: no two cases of a checker share one."""
    for exercise in FUNCTIONS:
        for seed in range(3):
            names = [case.name for case in find_checker(exercise).draw(seed)]
            assert len(set(names)) == len(names), (exercise, seed, names)


# --- nothing is given away ----------------------------------------------------------------------


@pytest.mark.parametrize("exercise", VALUES)
def test_no_report_holds_the_right_value(exercise):
    """A report on a wrong value does not show the right one."""
    checker = find_checker(exercise)
    secret = checker.reference
    for _, wrong in wrong_answers(exercise) + [("another", 12345), ("text", "blue")]:
        report = judge(wrong, exercise)
        text = f"{report}\n{report.to_dict()}".replace(report.title, "").replace(repr(wrong), "")
        if isinstance(secret, (tuple, str)):
            assert str(secret) not in text, text
        else:
            values = {float(match) for match in NUMBER.findall(text)} - {0.0, 1.0, 2.0}
            assert not any(abs(value - secret) < 5e-4 * abs(secret) for value in values), text


# --- mistakes that no bank holds ----------------------------------------------------------------


def relative(exercise, change):
    """Give an exercise's reference with its output changed."""
    function = find_checker(exercise).reference
    return functools.wraps(function)(lambda *args, **kwargs: change(function(*args, **kwargs)))


def scramble(x):
    """Put a row's numbers in an order that no flip or shift makes."""
    size = x.shape[-1]
    return x[..., torch.arange(size - 1, -1, -1, device=x.device).roll(3)]


# exercise, what becomes of its result, words of the report
CHANGED = {
    "factor": ("layer_norm", lambda y: 1.7 * y, "the right values times 1.7"),
    "offset": ("gelu", lambda y: y + 0.5, "the right values plus 0.5"),
    "flipped": ("sincos_positions_2d", lambda y: y.flip(0), "right, but not in its place"),
    "reordered": ("patchify", scramble, "every number is right, but not in its place"),
    "constant": ("softmax", lambda y: torch.full_like(y, 0.25), "every value is 0.25"),
    "one image": ("patchify", lambda y: y[:1].expand_as(y), "first along axis 0 is right"),
    "one row": ("softmax", lambda y: torch.cat([y[:1] + 1, y[1:]]), "first along axis 0 is wrong"),
}


@pytest.mark.slow
@pytest.mark.parametrize(("exercise", "change", "words"), CHANGED.values(), ids=CHANGED)
def test_what_all_wrong_results_have_in_common_is_said(exercise, change, words):
    """An unknown mistake is told by its pattern, and has no name."""
    report = judge(relative(exercise, change), seed=0)
    assert report.status == "failed" and report.misconception is None, str(report)
    assert words in str(report), str(report)


# --- mistakes that have no name -----------------------------------------------------------------


def every_second_negative(images, patch_size):
    tokens = RIGHT(images, patch_size)
    tokens[:, 1::2] *= -1
    return tokens


UNNAMED = {
    "gelu with a steeper sigmoid": ("gelu", lambda x: x * torch.sigmoid(1.5 * x)),
    "softmax, sharper": ("softmax", lambda x, dim=-1: attention.softmax(1.3 * x, dim)),
    "attention with a cube root": (
        "scaled_dot_product_attention",
        lambda q, k, v: ((w := attention.softmax(q @ k.mT / q.shape[-1] ** (1 / 3))) @ v, w),
    ),
    "patches, every second negative": ("patchify", every_second_negative),
    "tokens averaged in pairs": (
        "add_class_token_and_positions",
        lambda t, c, p: (y := patches.add_class_token_and_positions(t, c, p)) + y.roll(1, 1),
    ),
    "macs with a stray term": ("attention_macs", lambda n, d: attention.attention_macs(n, d) + 17),
    "rates with a step": (
        "warmup_cosine",
        lambda *a, **k: round(training.warmup_cosine(*a, **k), 4),
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize(("exercise", "answer"), UNNAMED.values(), ids=UNNAMED)
def test_an_unknown_mistake_gets_no_false_name(exercise, answer):
    """A wrong answer outside the bank fails, and no mistake of the bank is claimed."""
    report = judge(answer, exercise, seed=0)
    assert report.status == "failed" and not report.misconceptions, str(report)


# --- findings and points ------------------------------------------------------------------------


def test_the_first_problem_leads():
    """A mistake in a later finding does not push itself before a wrong shape."""
    report = judge(lambda images, patch_size: torch.zeros(0), "patchify", seed=3)
    assert report.headline == "the result has the wrong shape"
    assert "no_error" in report.misconceptions and "an impossible size is accepted" in str(report)


def test_printed_text_is_shown_and_cut():
    """What an answer prints on its first call is shown; of a flood, the beginning."""

    def gelu(x):
        print(f"x has shape {tuple(x.shape)}")
        print("y" * 10**5)
        return encoder.gelu(x)

    report = judge(gelu, seed=0)
    assert report.passed and "x has shape" in str(report)
    assert len(str(report)) < 3000 and "characters in all" in str(report)


def test_student_text_is_escaped_in_html():
    """Markup in errors, prints and names reaches the page as text."""

    def gelu(x):
        print("<script>alert(1)</script>")
        raise ValueError("<img src=x onerror=alert(2)> & <b>")

    page = judge(gelu, seed=0)._repr_html_()
    assert "<script" not in page and "<img" not in page and "&lt;script&gt;" in page
    ET.fromstring(page)
    unknown = judge(lambda x: x, "<i>gelu</i>")._repr_html_()
    assert "<i>" not in unknown


def test_plain_text_carries_what_the_page_says():
    """Every word of the page stands in the plain text; colour and picture are decoration."""
    mistakes = {
        "patchify": "patches_by_column",
        "scaled_dot_product_attention": "softmax_over_queries",
    }
    for exercise, mistake in mistakes.items():
        report = judge(mistaken(exercise, mistake), exercise, seed=3)
        hints = hints_html(exercise)
        page = ET.fromstring(report._repr_html_().replace(report.picture, "").replace(hints, ""))
        words = set(" ".join(page.itertext()).split())
        assert report.picture and words <= {"more", *str(report).split()}


# --- judging ------------------------------------------------------------------------------------


def test_comparison_of_special_values():
    """NaN equals NaN only in its place, infinities by sign, integers exactly."""
    case = Case("case", rtol=0.0, atol=0.1)
    a = torch.tensor([1.0, float("nan"), float("inf")])
    assert is_close(case, a, a.clone()) and not is_close(case, a, a.nan_to_num())
    assert not is_close(case, a, -a)
    assert is_close(case, torch.tensor([1, 2]), torch.tensor([1, 2]))
    assert not is_close(case, torch.tensor([1, 2]), torch.tensor([1, 3]))
    assert not is_close(case, a, a[:2])


# --- pictures -----------------------------------------------------------------------------------


def drawn(exercise: str, answer):
    """Give the picture of an answer on the first case, if its results have the right shapes."""
    checker = find_checker(exercise)
    case = checker.draw(3)[0]
    seen, right = observe(answer, case), observe(checker.reference, case)
    shapes = [{name: x.shape for name, x in each.arrays.items()} for each in (seen, right)]
    return checker.picture(case, seen) if shapes[0] == shapes[1] else None


DRAWN = [exercise for exercise in FUNCTIONS if find_checker(exercise).picture]


@pytest.mark.parametrize("exercise", DRAWN)
def test_pictures_are_svg_with_words(exercise):
    """A picture of a mistake is well-formed SVG with a title, and has a text; some is drawn."""
    pictures = [drawn(exercise, wrong) for _, wrong in wrong_answers(exercise)]
    right = numbers_of(observe(find_checker(exercise).reference, find_checker(exercise).draw(3)[0]))
    assert any(pictures)
    for picture in filter(None, pictures):
        root = ET.fromstring(picture.svg)
        assert root.tag.endswith("svg") and root[0].tag.endswith("title") and root[0].text
        width, height = float(root.get("width")), float(root.get("height"))
        assert 50 < width < 1000 and 50 < height < 1000
        assert picture.label and picture.text
        for shape in root.iter():
            for name in ("x", "x1", "x2", "cx"):
                assert -1 <= float(shape.get(name, 0)) <= width + 1, (name, shape.attrib)
            for name in ("y", "y1", "y2", "cy"):
                assert -1 <= float(shape.get(name, 0)) <= height + 1, (name, shape.attrib)
        numbers = exact_numbers(" ".join(root.itertext()) + picture.text)
        assert not any(((right - number).abs() <= 1e-4 * number).any() for number in numbers)


@pytest.mark.parametrize("exercise", DRAWN)
def test_right_answers_have_no_picture(exercise):
    """There is nothing to draw where nothing is wrong."""
    assert drawn(exercise, find_checker(exercise).reference) is None


@pytest.mark.parametrize("seed", range(6))
def test_no_check_asks_for_fewer_classes_than_there_are_labels(seed):
    """A sparse tensor with an index past its size ends the interpreter instead of raising."""
    sizes = []

    def confusion_matrix(predictions, labels, num_classes):
        sizes.append((int(max(predictions.max(), labels.max())), num_classes))
        indices = torch.stack([labels, predictions])
        ones = torch.ones_like(labels)
        matrix = torch.sparse_coo_tensor(indices, ones, (num_classes, num_classes))
        return matrix.to_dense()

    judge_answer(find_checker("confusion_matrix"), confusion_matrix, seed)
    assert len(sizes) > 8 and all(largest < count for largest, count in sizes)
