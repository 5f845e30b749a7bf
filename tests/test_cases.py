"""Cases in short: what shapes and variations make, and that a slip is told."""

import pytest
import torch

from vitedu.checks.writing.cases import BATCH_OF_ONE, FLOAT64, ON_ACCELERATOR, also, refused, shaped

CASES = shaped(
    "x: B T nh*hd; labels: B < K; num_heads = nh",
    BATCH_OF_ONE,
    also("other sizes", "as many tokens as heads", T="nh"),
    FLOAT64,
    refused(
        "D={nh*hd + 1} is not divisible by {nh}",
        "nh*hd+1 nh",
        shapes="x: B T nh*hd+1; num_heads = nh",
    ),
    ON_ACCELERATOR,
)


def drawn(cases, seed):
    """Draw cases from a seed."""
    return cases(torch.Generator().manual_seed(seed))


def test_sizes_are_dealt_anew_and_differ():
    """In 50 draws no two letters agree unless a case says so, and no two cases share all sizes."""
    for seed in range(50):
        first, one, square, double, *_ = drawn(CASES, seed)
        B, T, D = first.args["x"].shape
        nh = first.args["num_heads"]
        assert len({B, T, nh, D // nh}) == 4 and D % nh == 0
        assert one.args["x"].shape[0] == len(one.args["labels"]) == 1
        assert square.args["x"].shape[1] == square.args["num_heads"]
    shapes = {tuple(case.args["x"].shape) for case in drawn(CASES, 0)}
    assert len(shapes) == 6


def test_variations_change_what_they_say():
    """The first case has gradients of float tensors; others their dtype, part, error, device."""
    first, _, _, double, bad, elsewhere = drawn(CASES, 3)
    assert first.part == "values" and first.gradients == ("x",)
    assert double.args["x"].dtype == torch.float64 and double.args["labels"].dtype == torch.int64
    D, nh = bad.args["x"].shape[-1], bad.args["num_heads"]
    assert (bad.raises, bad.part, bad.mentions) == ("ValueError", "errors", (D, nh)) and D % nh
    assert bad.name == f"D={D} is not divisible by {nh}"
    assert elsewhere.on_accelerator and elsewhere.part == "any device"


def test_a_layer_is_built_from_letters_and_gets_parameters_of_its_size():
    """Its arguments and its input share sizes; a variation may build it in another way."""
    cases = shaped(
        "x: B D",
        also("other sizes", "no bias", init="in_features = D; out_features = K; bias = 0 > 1"),
        FLOAT64,
        layer=torch.nn.Linear,
        init="in_features = D; out_features = K",
    )
    first, without, double = drawn(cases, 0)
    D, K = first.init.values()
    assert first.driver == "module" and first.args["x"].shape[1] == D
    assert {name: x.shape for name, x in first.state.items()} == {"weight": (K, D), "bias": (K,)}
    assert list(without.state) == ["weight"] and without.init["bias"] is False
    assert double.state["weight"].dtype == torch.float64


def test_names_say_shapes_or_what_the_template_says():
    """Without a template the arguments are listed; with one, sizes are counted in words."""
    case = drawn(CASES, 1)[1]
    assert case.name.startswith(f"x {tuple(case.args['x'].shape)}, labels (1,), num_heads ")
    assert case.name.endswith(", a batch of one")
    images = shaped("images: B C P P", BATCH_OF_ONE, name="{B:image} of {P} x {P} px, area {P*P}")
    P = (case := drawn(images, 0)[1]).args["images"].shape[-1]
    assert case.name == f"1 image of {P} x {P} px, area {P * P}, a batch of one"


def test_values_and_scales_are_applied():
    """A function makes other values of normal ones, and a factor may hold for one tensor alone."""
    cases = shaped("w: B T T; v: B T d", values={"w": lambda x: x.softmax(-1)}, scale={"v": 0.0})
    (case,) = drawn(cases, 0)
    assert torch.allclose(case.args["w"].sum(-1), torch.ones(()))
    assert not case.args["v"].any()


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: shaped("x: B T", also("other sizes", "none", Q=1)), "Q: no letter"),
        (lambda: shaped("x B T"), "must list arguments"),
        (lambda: shaped("x: B T", ranges={"B": (2, 2), "T": (2, 2)}), "no size is left for"),
    ],
    ids=["unknown letter", "no colon", "no size left"],
)
def test_slips_are_told(make, words):
    """A letter that is nowhere, a text that cannot be read, ranges without a choice."""
    with pytest.raises(ValueError, match=words):
        drawn(make(), 0)
