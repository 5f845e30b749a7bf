"""The postcard shows what the model sees, where it looks, what it says, and code as it is."""

import numpy as np
import pytest
import torch

from vitedu.data import load_data
from vitedu.data.photograph import square_photograph
from vitedu.extras.options import ViTConfigWithOptions, build_model
from vitedu.fitting import postcard as module
from vitedu.fitting.evaluating import predict
from vitedu.fitting.postcard import postcard
from vitedu.inside import class_attention
from vitedu.vit import VisionTransformer, ViTConfig, capture
from vitedu.vit_and_cnn import SmallCNN

SIZES = {"patch_size": 8, "embed_dim": 16, "depth": 2, "num_heads": 2}


@pytest.fixture(scope="module")
def data():
    return load_data("shapes", limit=20, held_out=20)


@pytest.fixture
def model():
    """A model whose attention and answers are far from even, in training mode."""
    torch.manual_seed(0)
    model = VisionTransformer(ViTConfig(**SIZES))
    for parameter in model.parameters():
        parameter.data.mul_(6)
    return model.train()


def code_of(figure):
    """Put the coloured pieces of code together again, line by line."""
    rows = {}
    for text in figure.texts:
        x, y = text.get_position()
        column = round((x * module.WIDTH - 0.2) / module.LETTER)
        rows.setdefault(y, []).append((column, text.get_text()))
    lines = []
    for y in sorted(rows, reverse=True):
        line = ""
        for column, words in sorted(rows[y]):
            assert not words or len(line) <= column
            line = line.ljust(column) + words if words else line
        lines.append(line)
    return lines


def test_card_shows_the_image_its_patches_the_map_and_the_name(model, data, tmp_path):
    """What is drawn is what the model gives; the file is the figure, and the model is as it was."""
    image = data.test.images[0]
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    figure = postcard(model, image, data, code=CODE, path=tmp_path / "card.png")
    ax = figure.axes[0]
    whole, *tiles, grey, heat = (drawn.get_array() for drawn in ax.images)
    assert len(tiles) == 16 and whole.shape == (384, 384, 3) and grey.shape == (384, 384)
    assert np.array_equal(tiles[1], image[:, :8, 8:16].permute(1, 2, 0))
    weights = capture(model, data.normalize(image)[None])["blocks.1.attn.weights"]
    attention = class_attention(weights, (4, 4))[0].mean(dim=0).numpy()
    expected = module.colormaps[module.ink.SEQUENTIAL](attention / attention.max(), alpha=0.6)
    assert np.allclose(heat, expected, atol=0.02)  # of 256 colours
    share, k = predict(model, image[None], data)[0].max(dim=0)
    words = [text.get_text() for text in ax.texts]
    assert words.index(data.class_names[k]) + 1 == words.index(f"{share:.0%}")
    assert "16 patches" in words and "where the class token looks" in words
    assert (tmp_path / "card.png").read_bytes().startswith(b"\x89PNG")
    assert all(torch.equal(before[name], now) for name, now in model.state_dict().items())
    assert model.training
    assert f"{data.class_names[k]}" in figure.words() and "transpose" not in figure.words()


CODE = '''def f(x):
    """Say what it does.

    Twice.
    """

\ty = "$5" + x * 2  # costs $6
    return y if 3 else g(y)
'''


def test_code_is_shown_as_it_is_without_docstrings(model, data):
    """Blank lines go, tabs are spaces, dollars are no formulas, columns stay in place."""
    figure = postcard(model, "chelsea", data, code=CODE.replace("\t", "    "))
    lines = ["def f(x):", '    y = "$5" + x * 2  # costs $6', "    return y if 3 else g(y)"]
    assert code_of(figure) == lines
    figure.png()
    assert code_of(postcard(model, "chelsea", data, code="\tx = (")) == ["    x = ("]


def test_long_code_is_cut_and_letters_that_the_font_lacks_are_squares(model, data):
    """The card keeps its width, and nothing warns."""
    code = "# \u4ee3\u7801\n" + "\n".join(f"x{k} = {'1 + ' * 60}{k}" for k in range(40))
    figure = postcard(model, np.zeros((40, 20)), data, code=code)
    lines = code_of(figure)
    assert lines[0] == "# □□" and lines[-1] == "…" and len(lines) == module.LINES
    assert len(lines[1]) == module.COLUMNS and lines[1].endswith("…")
    figure.canvas.draw()
    assert max(text.get_window_extent().x1 for text in figure.texts) < figure.bbox.x1
    figure.png()


def test_a_model_without_a_class_token_looks_with_its_patches(data):
    """The mean over all patches' weights; the words say so."""
    torch.manual_seed(0)
    model = build_model(ViTConfigWithOptions(**SIZES, pool="mean", fused=True))
    ax = postcard(model, data.test.images[0], data, code=CODE).axes[0]
    pixels = torch.from_numpy(square_photograph(data.test.images[0], 32))
    weights = capture(model, data.normalize(pixels)[None])["blocks.1.attn.weights"]
    mean = weights[0].mean(dim=(0, 1)).reshape(4, 4).numpy()
    expected = module.colormaps[module.ink.SEQUENTIAL](mean / mean.max(), alpha=0.6)
    assert np.allclose(ax.images[-1].get_array(), expected, atol=0.02)
    assert "where the patches look" in [text.get_text() for text in ax.texts]


def test_what_cannot_be_drawn_is_said_in_one_line(model, data, tmp_path):
    """A network without attention or names, no image, a folder that is not there."""
    with pytest.raises(ValueError, match="a postcard shows attention, and SmallCNN has none"):
        postcard(SmallCNN(), "coffee", data, code=CODE)
    with pytest.raises(ValueError, match="there is no image at nowhere.jpg"):
        postcard(model, "nowhere.jpg", data, code=CODE)
    with pytest.raises(FileNotFoundError, match="nowhere"):
        postcard(model, "coffee", data, code=CODE, path=tmp_path / "nowhere" / "card.png")
    model.head = torch.nn.Identity()
    with pytest.raises(ValueError, match="gives 16 numbers an image, the data has 10 classes"):
        postcard(model, "coffee", data, code=CODE)
