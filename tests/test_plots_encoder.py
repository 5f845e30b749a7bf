"""Figures of notebook 03: the right axes, the right numbers in them."""

import matplotlib
import pytest
from matplotlib.patches import Rectangle

from vitedu.plots import encoder as plots
from vitedu.vit import VisionTransformer, ViTConfig

matplotlib.use("Agg")


def texts(ax) -> list[str]:
    """All texts written into an axes."""
    return [text.get_text() for text in ax.texts]


def test_block_puts_the_norms_on_side_roads_or_across_the_main_road():
    """Pre-norm draws both norms above the main road, post-norm draws them on it."""
    for ax, height in zip(plots.draw_block().axes, (1.0, 0.0), strict=True):
        heights = {text.get_text(): text.get_position()[1] for text in ax.texts}
        assert (heights["norm1"], heights["norm2"]) == (height, height)


def test_parameter_map_areas_are_counts():
    """Every rectangle covers the share of the map that its part has of the parameters."""
    parts = {"block": {"qkv: attention": 30, "fc1: MLP": 60}, "head": {"head: head": 10}}
    ax = plots.show_parameter_map(parts).axes[0]
    areas = [p.get_width() * p.get_height() for p in ax.patches if isinstance(p, Rectangle)]
    assert areas == pytest.approx([0.3, 0.6, 0.1])
    assert {"qkv", "fc1", "head"} <= set(texts(ax))


def test_shares_are_per_cent_of_each_row():
    """The bars of a row add to 100, whatever its unit; only shares of 4% and more are written."""
    ax = plots.show_shares(
        {"a": {"attention": 1, "MLP": 3}, "b": {"MLP": 98, "head": 2}}, xlabel="%"
    ).axes[0]
    assert [bar.get_width() for bar in ax.patches] == pytest.approx([25, 75, 98, 2])
    assert texts(ax) == ["25", "75", "98"]
    assert [label.get_text() for label in ax.get_yticklabels()] == ["a", "b"]


def test_parameter_columns_hold_every_parameter_once():
    """The map of a model adds up to the model."""
    model = VisionTransformer(ViTConfig(embed_dim=24, depth=2, num_heads=3))
    columns = plots.parameter_columns(model)
    assert list(columns) == ["patches", "block 0", "block 1", "head"]
    counted = sum(sum(column.values()) for column in columns.values())
    assert counted == sum(p.numel() for p in model.parameters())
    assert len(set(plots.PART_COLOURS.values())) == len(plots.PART_COLOURS)
