"""vitedu.bench.steps and bench_train: equal models, equal steps, a table that adds up; no speed."""

import importlib.util
import json
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch.utils.flop_counter import FlopCounterMode

from vitedu.__main__ import main
from vitedu.bench import shares, steps
from vitedu.bench import train as bench_train
from vitedu.bench.shares import (
    DATA,
    KERNEL,
    OPTIMIZER,
    PARTS,
    PRODUCTS,
    REST,
    bench_shares,
    part_of,
)
from vitedu.bench.steps import CANDIDATES, OURS, make_product, make_step, peak_memory, step_flop
from vitedu.bench.train import LIMIT, comparison_text, judge, time_candidates
from vitedu.encoder import count_parameters
from vitedu.options import preset, with_options
from vitedu.vit import PRESETS, ViTConfig

pytestmark = pytest.mark.slow  # timm, torchvision and vit-pytorch take seconds to load
TINY = ViTConfig(16, 8, 3, 5, embed_dim=24, depth=2, num_heads=3)
CPU = torch.device("cpu")
OPTIONS = {"precision": "float32", "batch": 2, "device": CPU, "warmup": 1, "memory": False}


@pytest.fixture(autouse=True)
def small_product(monkeypatch):
    """Time small products: a CPU without bfloat16 takes seconds for a large one."""

    def make(dtype, device):
        matrix = torch.randn(64, 64).to(dtype)
        return lambda: matrix @ matrix, 2 * 64**3

    for module in (bench_train, shares):
        monkeypatch.setattr(module, "make_product", make)


def build(name, config=TINY):
    library = CANDIDATES[name].library
    if library is not None and importlib.util.find_spec(library) is None:
        pytest.skip(f"{library} is not installed")
    torch.manual_seed(0)
    return CANDIDATES[name].build(config)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [name for name in CANDIDATES if not name.startswith("vit-pytorch")]
)
@pytest.mark.parametrize("config", [TINY, *(PRESETS[p] for p in bench_train.CPU_PRESETS)])
def test_every_model_has_the_parameters_of_ours(name, config):
    """The sorted sizes of all tensors agree in number and in sum, so configurations are equal."""
    sizes = [parameter.numel() for parameter in build(name, config).parameters()]
    assert sum(sizes) == count_parameters(config)
    assert max(sizes) == max(p.numel() for p in build("longhand", config).parameters())


def test_vit_pytorch_departs_by_two_norms_and_a_bias():
    """Two more norms about the patch embedding, no bias for q, k, v: the table prints the sum."""
    patch = 3 * TINY.patch_size**2
    departure = 2 * patch + 2 * TINY.embed_dim - TINY.depth * 3 * TINY.embed_dim
    ours = count_parameters(TINY)
    assert sum(p.numel() for p in build("vit-pytorch").parameters()) == ours + departure


@pytest.mark.parametrize("name", CANDIDATES)
def test_every_model_gives_logits_of_its_classes(name):
    """(B, K) from the same images."""
    assert build(name)(torch.zeros(2, 3, 16, 16)).shape == (2, 5)


@pytest.mark.parametrize("name", ["fused, rope", "timm", "torchvision"])
def test_a_step_learns(name, monkeypatch):
    """Every parameter that a gradient reaches moves, patch embedding and head among them."""
    model = build(name)
    before = [parameter.detach().clone() for parameter in model.parameters()]
    candidate = replace(CANDIDATES[name], builder=lambda config: model)
    monkeypatch.setitem(CANDIDATES, name, candidate)
    step, count = make_step(name, TINY, 4, torch.float32, CPU)
    for _ in range(2):
        step()
    assert count == sum(parameter.numel() for parameter in before)
    moved = [not torch.equal(a, b) for a, b in zip(model.parameters(), before, strict=True)]
    assert all(moved)


def test_a_model_without_class_token_is_refused():
    """The other libraries have none to compare with."""
    with pytest.raises(ValueError, match="pool='mean'"):
        make_step("fused", with_options(TINY, pool="mean"), 2, torch.float32, CPU)


def test_flop_follow_from_the_sizes():
    """Three times two times the multiply-accumulates of every product."""
    D, T, N = 24, 5, 4
    block = 4 * T * D * D + 2 * T * T * D + 8 * T * D * D
    macs = N * 192 * D + TINY.depth * block + D * 5
    assert step_flop(TINY) == step_flop(with_options(TINY, fused=True, rope=True)) == 6 * macs


@pytest.mark.parametrize("name", OURS)
def test_flop_of_our_forms_are_those_that_run(name):
    """Against torch's counter while a step runs, but for the input, which needs no gradient.

    In the last block of the fused form one query goes back through the keys' weights.
    """
    first_layer = 2 * 192 * TINY.num_patches * TINY.embed_dim
    images, labels = torch.randn(1, 3, 16, 16), torch.tensor([0])
    with FlopCounterMode(display=False) as counter:
        F.cross_entropy(build(name)(images), labels).backward()
    expected = step_flop(CANDIDATES[name].changed(TINY)) - first_layer
    assert counter.get_total_flops() == expected


def test_product_counts_its_own_flop():
    """Two FLOP for each of side cubed multiplications."""
    run, flop = make_product(torch.float64, CPU)
    result = run()
    assert result.dtype is torch.float64 and flop == 2 * len(result) ** 3


def test_missing_libraries_are_named(monkeypatch):
    """A line says what to install; ours still run."""
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    names, notes = steps.choose_candidates(compiled=False)
    assert names == ["longhand", "fused", "fused, rope"]
    assert len(notes) == 3 and all("vitedu[bench]" in note for note in notes)
    assert "fused, compiled" in steps.choose_candidates(compiled=True)[0]


def test_comparison_holds_together(monkeypatch):
    """Shares and rates follow from the seconds; a candidate is as fast as itself but for noise."""
    names = ["longhand", "fused", "again"]
    monkeypatch.setitem(CANDIDATES, "again", CANDIDATES["longhand"])
    monkeypatch.setattr(bench_train, "BASE", "again")
    result = time_candidates("tiny", TINY, names, rounds=15, **OPTIONS)
    assert [row.name for row in result.rows] == names
    assert set(result.seconds) == {*names, LIMIT}
    for row in result.rows:
        assert row.parameters == count_parameters(TINY) and row.memory is None
        assert row.share == pytest.approx(row.images_per_second * row.flop / result.limit)
    assert result.row("fused").flop < result.row("longhand").flop == result.flop
    assert 0.2 < result.row("longhand").ratio < 5  # noise of a busy machine, no more
    assert result.row("again").ratio == 1.0
    text = comparison_text(result)
    assert all(name in text for name in names) and "GFLOP/s" in text
    assert judge(result, CPU) == (True, "")  # no aim for this preset


def test_aims_are_judged_on_the_course_preset_alone(monkeypatch):
    """With bfloat16 on a CPU twice timm's rate; there and on a GPU ahead of what is compiled."""
    monkeypatch.setattr("vitedu.hardware.cpu_flags", lambda: frozenset({"avx512_bf16"}))
    rows = [
        bench_train.Rate("fused", 1, 1, 190.0, 0.0, 1.9, 0.5, None),
        bench_train.Rate("timm", 1, 1, 100.0, 0.0, 1.0, 0.3, None),
        bench_train.Rate("vit-pytorch, compiled", 1, 1, 180.0, 0.0, 1.8, 0.3, None),
    ]
    # the machine slows down: what decides is how two compare round by round
    times = {"fused": [1.0, 2.0, 4.0], "timm": [1.9, 3.8, 4.0]}
    times["vit-pytorch, compiled"] = [1.06, 2.12, 9.0]
    result = bench_train.Comparison(bench_train.AIM_PRESET, "bfloat16", 2, 1, 1.0, rows, times)
    line = "aims for fused: 2 x timm: 1.90; 1 x vit-pytorch, compiled: 1.06: "
    assert judge(result, CPU) == (False, line + "not met")
    assert judge(replace(result, precision="float32"), CPU)[0]
    is_met, line = judge(result, torch.device("cuda"))
    assert is_met and line == "aims for fused: 1 x vit-pytorch, compiled: 1.06: met"
    times["vit-pytorch, compiled"] = [0.99, 1.98, 9.0]
    assert not judge(result, torch.device("cuda"))[0]
    assert judge(replace(result, preset="tiny"), CPU) == (True, "")
    monkeypatch.setattr("vitedu.hardware.cpu_flags", lambda: frozenset({"avx2"}))
    is_met, line = judge(result, CPU)
    assert is_met and "AVX512-BF16 or AMX" in line


def test_bench_prints_a_table_a_precision_and_writes_all_seconds(tmp_path, monkeypatch, capsys):
    """Two precisions, one preset; departures of vit-pytorch in brackets."""
    monkeypatch.setitem(PRESETS, "tiny", TINY)
    path = tmp_path / "train.json"
    precisions = ["float32", "bfloat16"]
    options = {"batch": 2, "rounds": 2, "memory": False, "json": path}
    assert bench_train.bench_train(CPU, precisions, ["tiny"], **options)
    text = capsys.readouterr().out
    assert text.count("tiny, ") == 2 and text.count("longhand") == 2
    assert ("(+288)" in text) != ("vit-pytorch is not installed" in text)
    results = json.loads(path.read_text())["results"]
    assert [result["precision"] for result in results] == precisions
    assert len(results[0]["seconds"]["fused"]) == 2


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="Linux tells of peaks")
def test_peak_holds_what_the_backward_pass_needs():
    """In a process of its own; 264 images hold at least their scores."""
    config = replace(TINY, patch_size=2)  # 65 tokens
    scores = 264 * config.depth * config.num_heads * config.num_tokens**2 * 4
    assert peak_memory("longhand", config, 264, torch.float32, CPU) > scores


@pytest.mark.parametrize(
    ("precision", "patch_size", "absent"),
    [("float32", 4, KERNEL), ("float32", 2, "softmax"), ("bfloat16", 2, KERNEL)],
)
def test_the_shares_of_a_step_add_up(precision, patch_size, absent, capsys, tmp_path, monkeypatch):
    """Every second of a watched step belongs to one part, and each part has some."""
    config = preset("vit_pico_patch4_rope_32", patch_size=patch_size)  # 64 tokens, or 256
    monkeypatch.setitem(PRESETS, "own", config)
    bench_shares([precision], ["own"], batch=4, steps=2, json=tmp_path / "a.json")
    parts = json.loads((tmp_path / "a.json").read_text())["results"][0]["seconds"]
    assert set(parts) == {*PARTS, DATA, REST}
    assert min(parts.values()) >= 0
    assert [part for part, seconds in parts.items() if not seconds] == [absent]
    text = capsys.readouterr().out
    shares = [float(line.split("%")[0]) for line in text.splitlines() if "% " in line[:8]]
    assert len(shares) == len(parts) - 1
    assert sum(shares) == pytest.approx(100, abs=0.1 * len(parts))


@pytest.mark.filterwarnings("ignore:Torchinductor does not support code generation for complex")
@pytest.mark.skipif(
    not any(map(shutil.which, ("c++", "g++", "clang++"))), reason="needs a C++ compiler"
)
@pytest.mark.skipif(sys.platform != "linux", reason="torch names the compiler's kernels on Linux")
@pytest.mark.timeout(900)  # a C++ compiler works for minutes on a slow machine
def test_a_compiled_step_has_its_parts_too(tmp_path, monkeypatch):
    """The compiler's kernels go by their names to the parts that the model has."""
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    monkeypatch.setitem(PRESETS, "own", preset("vit_pico_patch4_rope_32", depth=1))
    events = []
    monkeypatch.setattr(shares, "part_of", lambda event: events.append(event) or part_of(event))
    bench_shares(["bfloat16"], ["own"], batch=4, steps=2, compiled=True, json=tmp_path / "a.json")
    kernels = {part_of(event) for event in events if "_cpp_fused" in event.name}
    assert kernels >= {"norms", "GELU", "softmax"}
    result = json.loads((tmp_path / "a.json").read_text())["results"][0]
    assert result["compiled"] and set(result["seconds"]) == {*PARTS, DATA, REST}
    assert result["seconds"][PRODUCTS] > 0 and result["seconds"][OPTIMIZER] > 0


def test_a_profile_needs_a_cpu(monkeypatch, capsys):
    monkeypatch.setattr("vitedu.commands.bench.chosen_device", lambda args: torch.device("cuda"))
    assert main(["bench", "train", "--profile"]) == 2
    assert "--device cpu" in capsys.readouterr().err
