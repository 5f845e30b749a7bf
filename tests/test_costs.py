"""The costs of mistakes: the broken part runs in the model, and the model is left as it was."""

from dataclasses import replace

import pytest
import torch

from vitedu.attention import MultiHeadAttention
from vitedu.bench import costs
from vitedu.bench.costs import PARTS, Cost, assemble, find_mistakes, mistake_costs
from vitedu.checks.writing.checker import find_checker
from vitedu.checks.writing.mistakes import bare_source
from vitedu.data import load_data
from vitedu.extras.options import build_model, with_options
from vitedu.fitting.evaluating import measure_test_accuracy
from vitedu.plots.costs import letters, show_mistake_costs
from vitedu.vit import VisionTransformer, ViTConfig

CONFIG = ViTConfig(embed_dim=24, depth=2, num_heads=3, mlp_ratio=2)
IMAGES = torch.randn(4, 3, 32, 32, generator=torch.Generator().manual_seed(0))
CHAPTERS = ("patches", "attention", "encoder")


@pytest.fixture(scope="module")
def data():
    """Give thirty photographs to name."""
    return load_data("cifar10", limit=10, held_out=30)


def model_of(config=CONFIG):
    """Make a model whose parts all count, as in a trained one."""
    torch.manual_seed(0)
    model = build_model(config)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.2 * torch.randn_like(parameter))
    return model.eval()


@torch.no_grad()
def logits_with(model, exercise="", mistake=""):
    """Give the logits of the model with one mistake, or without."""
    found = {m.id: m.edits for m in (*find_checker(exercise).bank, *costs.OWN)} if exercise else {}
    return assemble(model.config, model.state_dict(), exercise, found.get(mistake, {}))(IMAGES)


@pytest.mark.parametrize("config", [CONFIG, replace(CONFIG, qkv_bias=False)], ids=["bias", "none"])
def test_without_a_mistake_the_logits_are_those_of_the_model(config):
    """Patches by a matrix, norms and GELU by hand: equal to rounding."""
    model = model_of(config)
    with torch.no_grad():
        assert torch.allclose(logits_with(model), model(IMAGES), atol=1e-5)


@pytest.mark.parametrize("config", [CONFIG, replace(CONFIG, qkv_bias=False)], ids=["bias", "none"])
@pytest.mark.parametrize("part", PARTS)
def test_every_part_runs(part, config):
    """With an error in its place no model comes about, or none that gives an output."""
    start = bare_source(part).split("(")[0] + "("
    broken = "def {0}(*_, **__):\n    raise LookupError('it ran')\ndef unused("
    if start.startswith("class"):
        broken = "class {0}(nn.Module):\n    def __init__(self, *_, **__):\n"
        broken += "        raise LookupError('it ran')\nclass Unused("
    model = model_of(config)
    with pytest.raises(LookupError, match="it ran"):
        edits = {start: broken.format(part)}
        assemble(config, model.state_dict(), part, edits)(IMAGES)


def change(model, mistake):
    """Change a model's weights so that it computes what it would with a mistake."""
    with torch.no_grad():
        if mistake == "no_positions":
            model.pos_embed.zero_()
        for block in model.blocks:
            if mistake == "scaled_dot_product_attention.even_weights":
                block.attn.qkv.weight[:24] = block.attn.qkv.bias[:24] = 0
            elif mistake == "EncoderBlock.no_mlp":
                block.mlp.fc2.weight[:] = block.mlp.fc2.bias[:] = 0
            elif mistake == "queries_and_keys_swapped":
                q, k, v = block.attn.qkv.state_dict()["weight"].chunk(3)
                block.attn.qkv.weight[:] = torch.cat([k, q, v])
                q, k, v = block.attn.qkv.state_dict()["bias"].chunk(3)
                block.attn.qkv.bias[:] = torch.cat([k, q, v])
    if mistake == "blocks_reversed":
        model.blocks = model.blocks[::-1]
    return model


@pytest.mark.parametrize(
    ("exercise", "mistake"),
    [
        ("add_class_token_and_positions", "no_positions"),
        ("scaled_dot_product_attention", "scaled_dot_product_attention.even_weights"),
        ("MultiHeadAttention", "queries_and_keys_swapped"),
        ("EncoderBlock", "EncoderBlock.no_mlp"),
        ("VisionTransformer", "blocks_reversed"),
    ],
)
@torch.no_grad()
def test_a_mistake_does_what_a_change_of_the_weights_would_do(exercise, mistake):
    """The right model with other weights computes the same, and not what it did before."""
    model = model_of()
    broken, right = logits_with(model, exercise, mistake), logits_with(model)
    assert torch.allclose(broken, change(model, mistake)(IMAGES), atol=1e-5)
    assert not torch.allclose(broken, right, atol=0.01)


@torch.no_grad()
def test_patches_by_column_are_the_patches_of_another_image():
    """Of one whose squares are exchanged across the diagonal."""
    model = model_of()
    squares = IMAGES.reshape(4, 3, 8, 4, 8, 4).transpose(2, 4).reshape(IMAGES.shape)
    assert torch.allclose(
        logits_with(model, "patchify", "patches_by_column"), model(squares), atol=1e-5
    )


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_shown_mistakes_exist_and_run(chapter, data):
    """Eight a notebook, one of each name, and none stops the model."""
    rows = mistake_costs(model_of(), chapter, data)
    assert len(rows) == len(find_mistakes(chapter)) == 8
    assert sorted(row.accuracy for row in rows)[::-1] == [row.accuracy for row in rows]
    assert {row.images for row in rows} == {30} and {row.guessing for row in rows} == {0.1}


def test_rows_say_what_stops_and_what_nobody_sees(data):
    """One has a row of logits a token, one weights that do not fit, one changes no answer."""
    only = [f"VisionTransformer.{id_}" for id_ in ("all_tokens", "final_norm_not_made")]
    model = model_of()
    rows = mistake_costs(model, "03_encoder", data, only=[*only, "VisionTransformer.probabilities"])
    right = measure_test_accuracy(model, data)
    assert [row.accuracy for row in rows] == [right, None, None] and rows[0].right == right
    assert "the output for 30 images has the shape (30, 65, 10)" in rows[1].error
    assert "the weights do not fit: Unexpected key(s)" in rows[2].error
    assert [row.mistake for row in rows[1:]] == ["all_tokens", "final_norm_not_made"]


def test_model_and_random_numbers_are_left_as_they_were(data):
    """Weights, mode, the package's parts, and the draws that come next; the rows repeat."""
    model = model_of().train()
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    random, forward = torch.get_rng_state(), MultiHeadAttention.forward
    rows = mistake_costs(model, "patches", data, only=["patchify"], count=5)
    assert all(torch.equal(before[name], now) for name, now in model.state_dict().items())
    assert torch.equal(torch.get_rng_state(), random) and model.training and model.blocks.training
    assert MultiHeadAttention.forward is forward
    assert rows == mistake_costs(model, "01_patches.ipynb", data, only=["patchify"], count=5)
    assert {row.exercise for row in rows} == {"patchify"} and rows[0].images == 5


def test_a_students_model_and_one_in_its_fastest_form_lend_their_weights():
    """What counts is the shape and the names of the weights."""

    class Own(VisionTransformer):
        def forward(self, images):
            raise NotImplementedError

    torch.manual_seed(0)
    only, own = ["gelu.relu"], Own(CONFIG)
    fused = build_model(with_options(CONFIG, fused=True))
    fused.load_state_dict(own.state_dict())
    rows = [mistake_costs(model, "encoder", count=20, only=only) for model in (own, fused)]
    assert rows[0] == rows[1] and rows[0][0].name == "this is ReLU"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"chapter": "training"}, "04_training has no part of the model; choose 01, 02 or 03"),
        (
            {"only": ["gelu.relu"]},
            "01_patches has no mistake 'gelu.relu'; name one such as 'patchif",
        ),
    ],
    ids=["chapter", "only"],
)
def test_what_cannot_be_measured_is_refused_in_one_line(changes, message):
    """Before anything runs."""
    with pytest.raises(ValueError, match=message):
        mistake_costs(**({"model": model_of(), "chapter": "patches"} | changes))


@pytest.mark.parametrize(
    "order, words",
    [
        ("right", "Of 6 pairs you put 6 in"),
        ("backwards", "Of 6 pairs you put 1 in"),  # the two that stop cost the same
        ("ABC", "'ABC' is not counted: write each of ABCD once"),
        ("AABC", "not counted"),
        (None, ""),
    ],
)
def test_a_ranking_is_counted_by_pairs(order, words):
    """In capitals or not, with or without commas; what is no ranking says so and stops nothing."""
    accuracies = (0.8, 0.5, None, None)
    rows = [Cost("patchify", str(k), "x", a, "", 0.8, 0.1, 9) for k, a in enumerate(accuracies)]
    right = letters(rows)
    spoken = {"right": ", ".join(right.lower()), "backwards": right[::-1]}.get(order, order)
    figure = show_mistake_costs(rows, order=spoken)
    assert words in figure.get_suptitle()
    places = [t.get_text() for t in figure.axes[0].texts if "your place" in t.get_text()]
    assert len(places) == (4 if order in ("right", "backwards") else 0)
    assert order != "right" or places == [f"your place: {k}" for k in (1, 2, 3, 4)]
