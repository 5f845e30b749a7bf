"""vitedu.bench.cost and its figure: one size at a time, both costs relative to one model."""

import json
from dataclasses import asdict

import pytest
import torch
from matplotlib.figure import Figure

from vitedu.bench import cost as bench_cost
from vitedu.bench.cost import measure_cost, sweeps
from vitedu.plots.cost import show_cost
from vitedu.vit import PRESETS, ViTConfig

TINY = ViTConfig(16, 4, 3, 5, embed_dim=24, depth=3, num_heads=3)
CPU = torch.device("cpu")


@pytest.mark.parametrize("base", [TINY, PRESETS[bench_cost.PRESET]])
def test_each_sweep_passes_through_the_base_and_changes_one_thing(base):
    """Sizes rise; what differs from the base is what the sweep names."""
    changed = {"patch": {"patch_size"}, "width": {"embed_dim", "num_heads"}}
    changed |= {"depth": {"depth"}, "tokens": {"image_size"}}
    for name, points in sweeps(base).items():
        sizes = [size for size, _ in points]
        assert sizes == sorted(set(sizes)) and base in [config for _, config in points]
        allowed = next(fields for word, fields in changed.items() if word in name)
        for _, config in points:
            fields = asdict(base).items() - asdict(config).items()
            assert {field for field, _ in fields} <= allowed
            assert config.embed_dim // config.num_heads == base.embed_dim // base.num_heads


@pytest.mark.slow
def test_costs_are_relative_to_the_base():
    """The base costs 1 and 1 in every panel; more depth is more FLOP, nearly in proportion."""
    models = sweeps(TINY)
    options = {"batch": 2, "rounds": 2, "dtype": torch.float32, "device": CPU}
    panels, cost = measure_cost(TINY, models, **options)
    for name, points in panels.items():
        at = [config for _, config in models[name]].index(TINY)
        assert points[at][1:] == (1.0, 1.0)
        assert all(time > 0 for _, time, _ in points)
    depth = {size: flop for size, _, flop in panels["depth, blocks"]}
    assert depth[6] == pytest.approx(2, rel=0.1) and depth[6] < 2  # patches and head cost once
    assert len(cost) == len({config for points in models.values() for _, config in points})


def test_figure_shows_measured_beside_counted():
    """One panel a sweep, its points where the numbers say, ticks at the sizes."""
    panels = {"width": [(64, 0.3, 0.2), (128, 1.0, 1.0)], "depth": [(2, 0.5, 0.4), (6, 1.0, 1.0)]}
    fig = show_cost(panels, base={"width": 128, "depth": 6}, of="a model")
    assert isinstance(fig, Figure)
    width, depth, *empty = fig.axes
    lines = {line.get_label(): line for line in width.get_lines()}
    assert list(lines["measured time"].get_ydata()) == [0.3, 1.0]
    assert list(lines["counted FLOP"].get_ydata()) == [0.2, 1.0]
    assert list(depth.get_xticks()) == [2, 6] and depth.get_xlabel() == "depth"
    assert not any(ax.axison for ax in empty)
    with pytest.raises(ValueError, match="5 panels"):
        show_cost(dict.fromkeys("abcde", []), base={}, of="")


@pytest.mark.slow
def test_bench_writes_figure_and_figures(tmp_path, monkeypatch, capsys):
    """A line for every model; a PNG; the numbers as JSON."""
    monkeypatch.setitem(PRESETS, bench_cost.PRESET, TINY)
    out, path = tmp_path / "a" / "cost.png", tmp_path / "cost.json"
    bench_cost.bench_cost(CPU, "float32", out, batch=2, rounds=1, json=path)
    text = capsys.readouterr().out
    assert out.read_bytes().startswith(b"\x89PNG")
    record = json.loads(path.read_text())
    assert record["base"]["flop"] > 0 and set(record["panels"]) == set(sweeps(TINY))
    assert all(text.count(name) == len(points) for name, points in record["panels"].items())
