"""bench.train: equal models, equal steps, a table that adds up. Nothing asserts a speed."""

import importlib.util
from pathlib import Path

import pytest
import torch
from bench import train as bench_train
from bench.__main__ import main
from bench.train import CANDIDATES, COMPILED, build, make_step
from torch.utils.flop_counter import FlopCounterMode

import vitedu
from vitedu.encoder import count_parameters
from vitedu.extras.options import with_options
from vitedu.vit import PRESETS, ViTConfig

pytestmark = pytest.mark.slow  # timm, torchvision and vit-pytorch take seconds to load
TINY = ViTConfig(16, 8, 3, 5, embed_dim=24, depth=2, num_heads=3)
CPU = torch.device("cpu")
PLAIN = [name for name in CANDIDATES if not name.endswith(COMPILED)]


def built(name, config=TINY):
    library = name.replace("-", "_")
    if name in bench_train.LIBRARIES and importlib.util.find_spec(library) is None:
        pytest.skip(f"{library} is not installed")
    torch.manual_seed(0)
    return build(name, config)


@pytest.mark.parametrize("name", PLAIN)
@pytest.mark.parametrize("config", [TINY, PRESETS["vit_tiny_patch4_32"]], ids=["small", "preset"])
def test_every_model_has_the_parameters_of_ours(name, config):
    """In number and in the largest, so configurations are equal, but for what vit-pytorch adds.

    It has two more norms about the patch embedding, and no bias for q, k, v.
    """
    sizes = [parameter.numel() for parameter in built(name, config).parameters()]
    patch = 3 * config.patch_size**2
    more = 2 * patch + 2 * config.embed_dim - config.depth * 3 * config.embed_dim
    assert sum(sizes) == count_parameters(config) + more * (name == "vit-pytorch")
    if name != "vit-pytorch":
        assert max(sizes) == max(p.numel() for p in built("longhand", config).parameters())


def test_fused_form_has_the_products_that_are_written_beside_the_ratios():
    """Forward and backward are three times forward: 1.097 GFLOP an image, and fused 0.960."""
    found = []
    for name in ("longhand", "fused"):
        with torch.device("meta"), torch.no_grad(), FlopCounterMode(display=False) as counter:
            build(name, PRESETS["vit_tiny_patch4_32"])(torch.zeros(1, 3, 32, 32))
        found.append(f"{3 * counter.get_total_flops() / 1e9:.3f} GFLOP")
    text = (Path(vitedu.__file__).parent / "bench" / "MEASURED.md").read_text(encoding="utf-8")
    assert found == ["1.097 GFLOP", "0.960 GFLOP"] and all(each[:5] in text for each in found)


@pytest.mark.parametrize("name", PLAIN)
def test_a_step_learns(name, monkeypatch):
    """Logits have the classes of the labels; every parameter that a gradient reaches moves."""
    model = built(name)
    assert model(torch.zeros(2, 3, 16, 16)).shape == (2, 5)
    before = [parameter.detach().clone() for parameter in model.parameters()]
    monkeypatch.setattr(bench_train, "build", lambda name, config: model)
    step, count = make_step(name, TINY, 4, torch.float32, CPU)
    for _ in range(2):
        step()
    assert count == sum(parameter.numel() for parameter in before)
    assert not any(torch.equal(a, b) for a, b in zip(model.parameters(), before, strict=True))


def test_a_compiled_form_is_compiled_and_is_no_other_model(monkeypatch):
    """The name alone says so."""
    asked = []
    monkeypatch.setattr(torch, "compile", lambda model: asked.append(model) or model)
    for name in ("fused", "fused" + COMPILED):
        make_step(name, TINY, 2, torch.float32, CPU)[0]()
    assert [type(model) for model in asked] == [type(built("fused"))]
    assert asked[0].config == with_options(TINY, fused=True)


def test_a_model_without_class_token_is_refused():
    """The other libraries have none to compare with."""
    with pytest.raises(ValueError, match=r"pool must be 'cls' \(got 'mean'\)"):
        make_step("fused", with_options(TINY, pool="mean"), 2, torch.float32, CPU)


def test_command_prints_a_row_a_candidate_and_names_what_is_missing(monkeypatch, capsys):
    """Without timm there is no ratio, and ours still run."""
    monkeypatch.setitem(PRESETS, "tiny", TINY)
    monkeypatch.setattr(bench_train, "find_spec", lambda name: None)
    words = ["train", "--presets", "tiny", "--batch", "2", "--rounds", "2"]
    assert main([*words, "--device", "cpu", "--precision", "bfloat16"]) == 0
    text = capsys.readouterr().out
    assert text.count("tiny, bfloat16") == 1 and text.count("pip install vitedu[bench]") == 3
    rows = [line.split() for line in text.splitlines() if line.startswith(("longhand", "fused"))]
    assert [row[0] for row in rows] == ["longhand", "fused"]
    assert {int(row[1].replace(",", "")) for row in rows} == {count_parameters(TINY)}
    assert all("-" in row for row in rows)


def test_ratios_are_medians_of_the_rounds_own(monkeypatch, capsys):
    """The machine slows down: what decides is how two compare round by round."""
    times = {"fused": [1.0, 2.0, 4.0], "timm": [2.0, 4.0, 4.0]}
    monkeypatch.setitem(PRESETS, "tiny", TINY)
    monkeypatch.setattr(bench_train, "CANDIDATES", list(times))
    monkeypatch.setattr(bench_train, "find_spec", lambda name: True)
    monkeypatch.setattr(bench_train, "build", lambda name, config: build("fused", config))
    monkeypatch.setattr(bench_train, "seconds_in_turn", lambda *work: times)
    bench_train.bench_train(CPU, torch.float32, ["tiny"], batch=8, rounds=3, compiled=False)
    fused, timm = (line.split() for line in capsys.readouterr().out.splitlines()[-2:])
    assert (fused[2], timm[2]) == ("4", "2")  # images a second at the median round
    assert (fused[-1], timm[-1]) == ("2.00", "1.00")
