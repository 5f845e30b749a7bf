"""The words of the checks: eighteen reports in full, so that no word changes unseen.

A change of wording shows here first; read the new text as a student would before you accept it.
"""

import re

import pytest
import torch
from sections import sections

from vitedu import encoder, patches
from vitedu.checks.api import judge
from vitedu.checks.writing.checker import find_checker


def mistaken(exercise, *mistakes):
    """Give the reference with mistakes of the bank made."""
    return find_checker(exercise).make(frozenset(mistakes))


def gelu_too_steep(x):
    return x * torch.sigmoid(1.5 * x)


def layer_norm_with_typing_error(x, weight, bias, eps=1e-6):
    return (x - x.meen(dim=-1, keepdim=True)) / x.std(dim=-1, keepdim=True)


def patchify_without_return(images, patch_size):
    images.unfold(2, patch_size, patch_size).unfold(3, patch_size, patch_size)


def sincos_with_type_error(num_positions, embed_dim):
    if embed_dim % 2:
        raise TypeError("odd")
    return patches.sincos_positions(num_positions, embed_dim)


def sincos_without_error(num_positions, embed_dim):
    return patches.sincos_positions(num_positions, embed_dim + embed_dim % 2)


def gelu_without_end(x):
    while True:
        x = x + 0


def gelu_stub(x):
    raise NotImplementedError("3.2 gelu")


# name: (answer, exercise)
ANSWERS = {
    "a mistake of the bank, and its picture": (
        mistaken("patchify", "patches_by_column"),
        "patchify",
    ),
    "two mistakes together": (mistaken("patchify", "patches_by_column", "bottom_up"), "patchify"),
    "a difference without a name": (gelu_too_steep, "gelu"),
    "a path that is missing": (mistaken("EncoderBlock", "no_first_residual"), "EncoderBlock"),
    "an error in the student's line": (layer_norm_with_typing_error, "layer_norm"),
    "a forgotten return": (patchify_without_return, "patchify"),
    "another error than asked for": (sincos_with_type_error, "sincos_positions"),
    "no error": (sincos_without_error, "sincos_positions"),
    "time is up": (gelu_without_end, "gelu"),
    "not attempted": (gelu_stub, "gelu"),
    "passed": (encoder.gelu, "gelu"),
    "what is forbidden": (torch.nn.functional.gelu, "gelu"),
    "an instance": (encoder.EncoderBlock(6, 2), "EncoderBlock"),
    "other arguments": (encoder.layer_norm, "gelu"),
    "a wrong value with a name": (196, "tokens_at_224"),
    "a wrong value": (200, "tokens_at_224"),
    "a wrong kind of value": ("many", "tokens_at_224"),
    "an unknown exercise": (200, "pachify"),
}

# what is said of each; a line goes on after an ellipsis
REPORTS = """
== a mistake of the bank, and its picture
✗ 1.1 patchify: patches run down the columns instead of along the rows   [1.02/6 points]
  right     runs and returns the right types and shapes; impossible sizes are refused with
            … their numbers
  expected  patch 1 stands to the right of patch 0
  got       1620/2160 values differ; largest difference 5 at [3, 1, 4], allowed 3e-06
  why       Every position would belong to another place of the image.
  try       Put gh before gw. In two loops, the outer one goes over the rows.
  order     where your tokens 0 .. 7 come from, as patches:
             0  2  4  6
             1  3  5  7
            first difference: 2 where 1 belongs
  case      6 images of 5 channels, 6 x 12 px, patch_size 3
  again     check(..., "patchify", seed=3) repeats these inputs
  findings  ✓ returns   ✗ values   – gradients   ✗ other sizes   ✗ batch of one   – again
            …   ✗ patches of one pixel   ✓ errors   ✗ dtype   – any device
  hint      hint("patchify")

== two mistakes together
✗ 1.1 patchify: patches run down the columns instead of along the rows   [1.02/6 points]
  right     runs and returns the right types and shapes; impossible sizes are refused with
            … their numbers
  expected  patch 1 stands to the right of patch 0
  got       1620/2160 values differ; largest difference 5 at [3, 4, 4], allowed 4e-06
  why       Every position would belong to another place of the image.
  try       Put gh before gw. In two loops, the outer one goes over the rows.
  order     where your tokens 0 .. 7 come from, as patches:
             6  4  2  0
             7  5  3  1
            first difference: 6 where 0 belongs
  case      6 images of 5 channels, 6 x 12 px, patch_size 3
  mistake 2 patches start at the bottom left
  expected  patch 0 is the top left corner
  why       Row 0 of an image tensor is its top row.
  try       Look for a flip, or for a loop that counts down.
  again     check(..., "patchify", seed=3) repeats these inputs
  findings  ✓ returns   ✗ values   – gradients   ✗ other sizes   ✗ batch of one   – again
            …   ✗ patches of one pixel   ✓ errors   ✗ dtype   – any device
  hint      hint("patchify")

== a difference without a name
✗ 3.2 gelu: right on 1 of 6 inputs: x of 2 x 5 x 24, values in the millions   [0.64/3 points]
  right     runs and returns the right types and shapes; finite and right for large values
  expected  each x times the share of a normal distribution below x
  got       470/480 values differ; largest difference 0.049 at [2, 1, 30], allowed 1e-05
  case      x of 4 x 3 x 40
  again     check(..., "gelu", seed=3) repeats these inputs
  findings  ✓ allowed operations   ✓ returns   ✗ values   – gradients   ✗ other axes   ✓
            … large values   – again   ✗ no axis   ✗ dtype   – any device
  hint      hint("gelu")

== a path that is missing
✗ 3.4 EncoderBlock: the residual addition after attention is missing   [0.5/6 points]
  right     runs and returns the right types and shapes
  expected  x plus what attention says
  got       36/36 values differ; largest difference 3.6 at [0, 0, 3], allowed 0.0005
  why       A block corrects its tokens; without the addition it replaces them.
  try       Add x back after attention.
  paths     no path leads around norm1 and attn
  case      3 sequences of 2 tokens, embed_dim 6, 2 heads
  again     check(..., "EncoderBlock", seed=3) repeats these inputs
  findings  ✓ returns   ✗ values   – gradients   ✗ hidden width   ✗ batch of one   ✗ other
            … sizes   ✗ eps   – again   ✗ rare sizes   ✗ dtype   – any device
  hint      hint("EncoderBlock")

== an error in the student's line
✗ 3.1 layer_norm: the call ends in an error   [0/4 points]
  expected  a result
  got       AttributeError: 'Tensor' object has no attribute 'meen'   (line ..: return (x -
            … x.meen(dim=-1, keepdim=True)) / x.std(dim=-1, keepdim=True))
  why       Tensor has nothing of the name meen. The nearest known name is mean.
  try       Write mean if you mean that.
  case      x of 4 x 5 x 7
  again     check(..., "layer_norm", seed=3) repeats these inputs
  findings  ✓ allowed operations   ✗ returns   – values   – gradients   ✗ batch of one   ✗
            … other axes   ✗ eps   ✗ at the start   – again   ✗ rare values   ✗ dtype   – any device
  hint      hint("layer_norm")

== a forgotten return
✗ 1.1 patchify: the result has the wrong type   [0/6 points]
  expected  output: tensor
  got       None; look for a missing `return`
  why       A function without return, or with a return that has no value, gives None.
  try       End with return and the result. Look also at each branch of an if, and at the
            … indentation of return.
  case      6 images of 5 channels, 6 x 12 px, patch_size 3
  remark    errors: expected a ValueError; got no error; the call returned as if nothing
            … were wrong   (H=29 is not divisible by patch_size 7) (-0.38 points)
  again     check(..., "patchify", seed=3) repeats these inputs
  findings  ✗ returns   – values   – gradients   ✗ other sizes   ✗ batch of one   – again
            …   ✗ patches of one pixel   ✗ errors   ✗ dtype   – any device
  hint      hint("patchify")

== another error than asked for
✓ 1.7 sincos_positions: passed, 1 remark   [3.75/4 points]
  remark    errors: an impossible size ends in another error than ValueError. Test the
            … sizes first and raise a ValueError that says so. (-0.25 points)
  proved    runs and returns the right types and shapes
  proved    sines and cosines take turns, at the right frequencies
  proved    also for long and wide tables, and with as many positions as columns
  proved    called again it looks at the new values, and leaves everything as it was
  proved    also for one position, two columns and thousands of positions

== no error
✓ 1.7 sincos_positions: passed, 1 remark   [3.5/4 points]
  remark    errors: an impossible size is accepted. Test the sizes first and raise a
            … ValueError. (-0.5 points)
  proved    runs and returns the right types and shapes
  proved    sines and cosines take turns, at the right frequencies
  proved    also for long and wide tables, and with as many positions as columns
  proved    called again it looks at the new values, and leaves everything as it was
  proved    also for one position, two columns and thousands of positions

== time is up
✗ 3.2 gelu: the call does not come to an end   [0/3 points]
  expected  a result
  got       no result within 0.3 s; look for a loop that never ends   (line ..)
  case      x of 4 x 3 x 40
  again     check(..., "gelu", seed=3) repeats these inputs
  findings  ✓ allowed operations   ✗ returns   – values   – gradients   ✗ other axes   ✗
            … large values   – again   ✗ no axis   ✗ dtype   ✗ any device
  hint      hint("gelu")

== not attempted
○ 3.2 gelu: not attempted yet; later cells use the reference; hint("gelu") helps   [0/3 points]

== passed
✓ 3.2 gelu: passed   [3/3 points]
  proved    done without what is forbidden here
  proved    runs and returns the right types and shapes
  proved    each x times the share of a normal distribution below x
  proved    gradients equal those of the definition
  proved    also for other axes, and where numbers are 0
  proved    finite and right for large values
  proved    called again it looks at the new values, and leaves everything as it was
  proved    also for a single number
  proved    exact to the digits of float64
  proved    makes no tensor on a device of its own

== what is forbidden
✗ 3.2 gelu: the one operation that this exercise forbids   [0/3 points]
  expected  an answer without gelu
  got       a call that ran gelu
  case      x of 4 x 3 x 40
  again     check(..., "gelu", seed=3) repeats these inputs
  findings  ✗ allowed operations   – returns   – values   – gradients   – other axes   –
            … large values   – again   – no axis   – dtype   – any device
  hint      hint("gelu")

== an instance
✗ 3.4 EncoderBlock: this is an instance, not the class   [0/6 points]
  expected  the class EncoderBlock itself, without parentheses
  got       an instance of EncoderBlock
  findings  ✗ returns   – values   – gradients   – hidden width   – batch of one   – other
            … sizes   – eps   – again   – rare sizes   – dtype   – any device
  hint      hint("EncoderBlock")

== other arguments
✗ 3.2 gelu: it takes other arguments than asked for   [0/3 points]
  expected  gelu(x: Tensor) -> Tensor
  got       (x: Tensor, weight: Tensor, bias: Tensor, eps: float = 1e-06) -> Tensor;
            … missing a required argument: 'weight'
  findings  – allowed operations   ✗ returns   – values   – gradients   – other axes   –
            … large values   – again   – no axis   – dtype   – any device
  hint      hint("gelu")

== a wrong value with a name
✗ 1.3 tokens_at_224: the class token is not counted   [0/1 points]
  got       196
  why       The patches are only part of the sequence.
  try       The model puts one more token in front.
  hint      hint("tokens_at_224")

== a wrong value
✗ 1.3 tokens_at_224: not the value asked for   [0/1 points]
  expected  another value
  got       200
  try       hint("tokens_at_224") gives a first step.
  hint      hint("tokens_at_224")

== a wrong kind of value
✗ 1.3 tokens_at_224: not the value asked for   [0/1 points]
  expected  a number
  got       a word
  hint      hint("tokens_at_224")

== an unknown exercise
✗ pachify: the exercise is not known
  note      there is no exercise 'pachify'; did you mean patchify, unpatchify?
"""
REPORTS = {name: re.sub(r"\n +…", "", text) for name, text in sections(REPORTS).items()}


def without_lines(report):
    """Leave out the numbers of lines, and where in its loop an answer was stopped."""
    report = re.sub(r"(never ends   )\(line .*\)", r"\1(line ..)", report)
    return "\n".join(
        re.sub(r"\(line \d+: ", "(line ..: ", line).rstrip() for line in report.splitlines()
    )


@pytest.mark.parametrize("name", ANSWERS)
def test_report_reads(name, monkeypatch):
    """With seed 3 the report is this, to the letter; only numbers of lines are left out."""
    if name == "time is up":  # a busy machine needs more for the others
        monkeypatch.setenv("VITEDU_TIME_LIMIT", "0.3")
    answer, exercise = ANSWERS[name]
    assert without_lines(str(judge(answer, exercise, seed=3))) == REPORTS[name]


def test_reports_keep_to_the_house():
    """No question beside the nearest names, no exclamation, no line without end."""
    assert REPORTS.keys() == ANSWERS.keys()
    for text in REPORTS.values():
        assert "?" not in text.replace('hint("', "") or "did you mean" in text
        assert "!" not in text.replace("!=", "")
        assert all(len(line) < 260 for line in text.splitlines())
