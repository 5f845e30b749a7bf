"""The words of the checks: three reports in full, so that no word changes unseen.

A change of wording shows here first; read the new text as a student would before you accept it.
"""

import re
from pathlib import Path

import pytest
import torch
from proof.bank import mistaken

from vitedu import encoder, patches
from vitedu.checks.api import judge


def layer_norm_with_typing_error(x, weight, bias, eps=1e-6):
    return (x - x.meen(dim=-1, keepdim=True)) / x.std(dim=-1, keepdim=True)


def sincos_with_type_error(num_positions, embed_dim):
    if embed_dim % 2:
        raise TypeError("odd")
    return patches.sincos_positions(num_positions, embed_dim)


def sincos_without_error(num_positions, embed_dim):
    return patches.sincos_positions(num_positions, embed_dim + embed_dim % 2)


def gelu_stub(x):
    raise NotImplementedError("3.2 gelu")


# a line of a report goes on after an ellipsis
PATCHES_BY_COLUMN = """
✗ 1.1 patchify: patches run down the columns instead of along the rows   [0.94/6 points]
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
  findings  ✓ returns   ✗ values   – gradients   ✗ other sizes   ✗ batch of one
            …   – again   – patches of one pixel   ✓ errors   ✗ dtype
            …   ✗ layout   – any device
  hint      hint("patchify")
"""
ERROR_IN_A_LINE = """
✗ 3.1 layer_norm: the call ends in an error   [0/4 points]
  expected  a result
  got       AttributeError: 'Tensor' object has no attribute 'meen'   (line ..: return (x -
            … x.meen(dim=-1, keepdim=True)) / x.std(dim=-1, keepdim=True))
  why       Tensor has nothing of the name meen. The nearest known name is mean.
  try       Write mean if you mean that.
  case      x of 4 x 5 x 7
  again     check(..., "layer_norm", seed=3) repeats these inputs
  findings  ✓ allowed operations   ✗ returns   – values   – gradients   ✗ batch of one
            …   ✗ other axes   ✗ eps   ✗ at the start   – again   ✗ rare values
            …   ✗ dtype   ✗ layout   – any device
  hint      hint("layer_norm")
"""
ONE_REMARK = """
✓ 1.7 sincos_positions: passed, 1 remark   [3.5/4 points]
  remark    errors: an impossible size is accepted. Test the sizes first and raise a
            … ValueError.   (embed_dim 17 is odd) (-0.5 points)
  tested    runs and returns the right types and shapes
  tested    sines and cosines take turns, at the right frequencies
  tested    also for long and wide tables, and with as many positions as columns
  tested    called again it looks at the new values, and leaves everything as it was
  tested    also for one position, two columns and thousands of positions
"""
REPORTS = {
    "a mistake of the bank": (mistaken("patchify", "patches_by_column"), PATCHES_BY_COLUMN),
    "an error": (layer_norm_with_typing_error, ERROR_IN_A_LINE),
    "a remark": (sincos_without_error, ONE_REMARK),
}


@pytest.mark.parametrize(("answer", "words"), REPORTS.values(), ids=REPORTS)
def test_report_reads(answer, words):
    """With seed 3 the report is this, to the letter; only numbers of lines are left out."""
    exercise = re.search(r"\d (\w+): ", words)[1]
    text = re.sub(r"\(line \d+: ", "(line ..: ", str(judge(answer, exercise, seed=3)))
    lines = [line.rstrip() for line in text.splitlines()]
    assert lines == re.sub(r"\n +…", "", words).strip("\n").splitlines()


def test_report_in_the_readme_is_the_checkers():
    """The README shows the first lines of what a student reads with seed 1."""
    report = str(judge(mistaken("patchify", "channel_last"), "patchify", seed=1))
    readme = (Path(__file__).parents[1] / "README.md").read_text("utf-8")
    shown = readme[readme.index("✗ 1.1 patchify") :].split("\n```")[0]
    assert report.startswith(shown) and shown.count("\n") == 5


TWO = ("patches_by_column", "bottom_up")
HEADS = {
    "two mistakes": (mistaken("patchify", *TWO), "patchify", "instead of along the rows   [0.94/6"),
    "a missing path": (mistaken("EncoderBlock", "no_first_residual"), "EncoderBlock", "missing"),
    "another error": (sincos_with_type_error, "sincos_positions", "1 remark   [3.75/4 points]"),
    "an open stub": (gelu_stub, "gelu", "not attempted yet; later cells use the reference; hint("),
    "all right": (encoder.gelu, "gelu", "✓ 3.2 gelu: passed   [3/3 points]"),
    "an instance": (encoder.EncoderBlock(6, 2), "EncoderBlock", "an instance, not the class"),
    "a value with a name": (196, "tokens_at_224", "the class token is not counted   [0/1 points]"),
    "an unknown mistake": (
        lambda x: x * torch.sigmoid(1.5 * x),
        "gelu",
        "right on 1 of 7 inputs: x",
    ),
    "what is forbidden": (torch.nn.functional.gelu, "gelu", "operation that this exercise forbids"),
    "other arguments": (encoder.layer_norm, "gelu", "it takes other arguments than asked for   [0"),
    "an unknown exercise": (200, "pachify", "✗ pachify: the exercise is not known"),
    "a word": ("many", "tokens_at_224", "not the value asked for   [0/1 points]"),
}


@pytest.mark.parametrize("name", HEADS)
def test_first_line_of_a_report_reads(name):
    """Verdict, what it is, points."""
    answer, exercise, words = HEADS[name]
    assert words in str(judge(answer, exercise, seed=3)).splitlines()[0]


def softmax_above_its_stub(x, dim=-1):
    exp = (x - x.amax(dim, keepdim=True)).exp()
    output = exp / exp.sum(dim, keepdim=True)
    raise NotImplementedError("2.1 softmax")
    return output


def layer_norm_with_eps_outside(x, weight, bias, eps=1e-6):
    centred = x - x.mean(-1, keepdim=True)
    return centred / (centred.square().mean(-1, keepdim=True).sqrt() + eps) * weight + bias


def test_a_stub_below_written_code_is_told():
    """Who wrote an answer and left the stub's last line reads which line to delete."""
    report = judge(softmax_above_its_stub, "softmax")
    assert report.status == "not_attempted" and "delete that line of the stub" in str(report)
    assert "delete" not in str(judge(gelu_stub, "gelu"))


def test_wrong_values_come_before_wrong_gradients():
    """A headline about gradients says that the values are right, so they are."""
    report = judge(layer_norm_with_eps_outside, "layer_norm", seed=3)
    assert report.headline == "eps is added outside the root"


def test_a_report_as_data_holds_what_its_text_says():
    """``vitedu check --json`` prints it."""
    row = judge(mistaken("softmax", "not_normalised"), "softmax", seed=3).to_dict()
    assert row["headline"] == "the weights are not divided by their sum"
    assert row["expected"] == "sums of 1 along dim" and "values differ" in row["got"]
    assert row["why"] == "Positive is only half of it." and row["try"].startswith("Divide by")


def test_lists_of_booleans_have_one_plural():
    """A pair of pairs is said in words."""
    report = judge(((True, False), (True, False)), "order_blindness")
    assert "expected  2 booleans\n  got       2 lists" in str(report)


def test_a_mode_and_a_layout_that_decide_are_said():
    """Both stand in the headline; a layer's case names its mode."""

    class Wavy(encoder.Mlp):
        def forward(self, x):
            return super().forward(x) + (0 if self.training else x.sin())

    report = judge(Wavy, "Mlp", seed=3)
    assert report.headline == "right in train mode, wrong in eval mode"
    assert dict(report.lines)["case"].endswith(", in eval mode")

    def softmax(x, dim=-1):
        return mistaken("softmax")(x if x.is_contiguous() else x + x.sin(), dim)

    report = judge(softmax, seed=3)
    words = (
        "right for tensors that are contiguous in memory, wrong for tensors that are turned round"
    )
    assert report.headline == f"{words} in memory"
