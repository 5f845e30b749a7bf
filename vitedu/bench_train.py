"""Our training step beside those of timm, torchvision and vit-pytorch: ``vitedu bench train``.

Role: build each library's ViT from one ``ViTConfig``, let all take the same step (forward, loss,
backward, AdamW) in turn, and print rates, ratios, the share of what matrix products allow, and memory.
Not here: data (``bench_data``), cost against size (``bench_cost``).

What is equal: image, patch, width, depth, heads, MLP, class token, batch, precision, optimizer. The
count of parameters is printed, since it shows where a library departs: vit-pytorch normalises patches
twice and gives q, k, v no bias.
"""

import importlib.util
import re
import statistics
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from multiprocessing import get_context
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from vitedu.stopwatch import Times, machine, median_speedup, seconds_in_turn, spread, write_json
from vitedu.vit import VisionTransformer, ViTConfig, preset

CPU_PRESETS = ("vit_micro_patch8_32", "vit_tiny_patch4_32")
GPU_PRESETS = ("vit_tiny_patch16_224", "vit_small_patch16_224", "vit_base_patch16_224")
BASE = "timm"  # what rates are divided by
LIMIT = "matrix product"
AIMS = {"bfloat16": 2.0, "float32": 1.2}  # times timm, on a CPU, for AIM_PRESET
AIM_PRESET = "vit_tiny_patch4_32"


# --- who is compared --------------------------------------------------------------------------


def build_timm(config: ViTConfig) -> nn.Module:
    """Build timm's model of this configuration."""
    from timm.models.vision_transformer import VisionTransformer as Model

    return Model(
        img_size=config.image_size,
        patch_size=config.patch_size,
        in_chans=config.in_channels,
        num_classes=config.num_classes,
        embed_dim=config.embed_dim,
        depth=config.depth,
        num_heads=config.num_heads,
        mlp_ratio=config.mlp_ratio,
        qkv_bias=config.qkv_bias,
    )


def build_torchvision(config: ViTConfig) -> nn.Module:
    """Build torchvision's model of this configuration; it takes images of three channels only."""
    from torchvision.models.vision_transformer import VisionTransformer as Model

    return Model(
        image_size=config.image_size,
        patch_size=config.patch_size,
        num_layers=config.depth,
        num_heads=config.num_heads,
        hidden_dim=config.embed_dim,
        mlp_dim=int(config.embed_dim * config.mlp_ratio),
        num_classes=config.num_classes,
    )


def build_vit_pytorch(config: ViTConfig) -> nn.Module:
    """Build vit-pytorch's model of this configuration."""
    from vit_pytorch import ViT as Model

    return Model(
        image_size=config.image_size,
        patch_size=config.patch_size,
        channels=config.in_channels,
        num_classes=config.num_classes,
        dim=config.embed_dim,
        depth=config.depth,
        heads=config.num_heads,
        dim_head=config.embed_dim // config.num_heads,
        mlp_dim=int(config.embed_dim * config.mlp_ratio),
    )


@dataclass(frozen=True)
class Candidate:
    """One form of the model."""

    build: Callable[[ViTConfig], nn.Module]
    library: str | None = None  # the module that must be installed; None for our own
    is_compiled: bool = False


CANDIDATES: dict[str, Candidate] = {
    "longhand": Candidate(VisionTransformer),
    "fused": Candidate(lambda config: VisionTransformer(replace(config, fused=True))),
    "fused, rope": Candidate(
        lambda config: VisionTransformer(replace(config, fused=True, rope=True))
    ),
    "timm": Candidate(build_timm, "timm"),
    "torchvision": Candidate(build_torchvision, "torchvision"),
    "vit-pytorch": Candidate(build_vit_pytorch, "vit_pytorch"),
    "fused, compiled": Candidate(
        lambda config: VisionTransformer(replace(config, fused=True)), is_compiled=True
    ),
    "timm, compiled": Candidate(build_timm, "timm", is_compiled=True),
}
OURS = ("longhand", "fused", "fused, rope", "fused, compiled")


def choose_candidates(compiled: bool) -> tuple[list[str], list[str]]:
    """Return the names that can run here, and a line about each library that is missing."""
    wanted = [name for name, each in CANDIDATES.items() if compiled or not each.is_compiled]
    libraries = {CANDIDATES[name].library for name in wanted} - {None}
    missing = {library for library in libraries if importlib.util.find_spec(library) is None}
    names = [name for name in wanted if CANDIDATES[name].library not in missing]
    return names, [
        f"{library.replace('_', '-')} is not installed and not compared: pip install vitedu[bench]"
        for library in sorted(missing)
    ]


# --- one step ---------------------------------------------------------------------------------


def make_step(
    name: str, config: ViTConfig, batch: int, dtype: torch.dtype, device: torch.device
) -> tuple[Callable[[], None], int]:
    """Build a candidate and return its training step, and how many parameters it trains.

    Args:
        name: a key of ``CANDIDATES``.
        config: what to build; it must have a class token, which all libraries share.
        batch: B, images a step; they are made here, once, on the device.
        dtype: of matrix products; other than float32 through autocast.
        device: where all of it is.

    Returns:
        A function that takes one step and returns nothing, and the number of parameters.
    """
    if config.pool != "cls":
        raise ValueError(
            f"the comparison needs a model with a class token (got pool={config.pool!r}); "
            f"choose another preset, such as {CPU_PRESETS[1]}."
        )
    candidate = CANDIDATES[name]
    torch.manual_seed(0)
    model = candidate.build(config).to(device).train()
    count = sum(parameter.numel() for parameter in model.parameters())
    optimizer = torch.optim.AdamW(
        model.parameters(), lr=1e-4, weight_decay=0.05, fused=device.type in ("cpu", "cuda")
    )
    run = torch.compile(model) if candidate.is_compiled else model
    images = torch.randn(batch, config.in_channels, *[config.image_size] * 2, device=device)
    labels = torch.randint(0, config.num_classes, (batch,), device=device)

    def step() -> None:
        optimizer.zero_grad()
        with torch.autocast(device.type, dtype=dtype, enabled=dtype is not torch.float32):
            logits = run(images)
        F.cross_entropy(logits.float(), labels).backward()
        optimizer.step()

    return step, count


def step_flop(config: ViTConfig) -> int:
    """Count the FLOP of forward and backward for one image, as three times forward.

    Every matrix product of the forward pass has two of the same size in the backward pass; but for
    the first layer, whose input needs no gradient, this is what runs. Nothing but products is counted.

    Example:
        >>> round(step_flop(preset("vit_tiny_patch4_32")) / 1e9, 3)
        1.097
    """
    config = replace(config, fused=False, rope=False)
    with torch.device("meta"), torch.no_grad(), FlopCounterMode(display=False) as counter:
        model = VisionTransformer(config)
        model(torch.zeros(1, config.in_channels, *[config.image_size] * 2))
    return 3 * counter.get_total_flops()


def make_product(dtype: torch.dtype, device: torch.device) -> tuple[Callable[[], object], int]:
    """Return a product of two square matrices, large for the device, and its FLOP."""
    side = 8192 if device.type == "cuda" else 1024
    a, b = (torch.randn(side, side, device=device).to(dtype) for _ in range(2))
    return lambda: a @ b, 2 * side**3


# --- memory -----------------------------------------------------------------------------------


def peak_memory(
    name: str, config: ViTConfig, batch: int, dtype: torch.dtype, device: torch.device
) -> int | None:
    """Measure the most memory that a candidate takes while it steps, in bytes.

    CUDA: what torch allocated. CPU, on Linux: a process of its own, and by how much it grew over what
    it held before the model was built. None elsewhere, and for compiled models on a CPU, where the
    compiler would be measured.
    """
    if device.type == "cuda":
        return peak_in_this_process(name, config, batch, dtype, device)
    if not Path("/proc/self/clear_refs").exists() or CANDIDATES[name].is_compiled:
        return None
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        arguments = (name, config, batch, dtype, device, torch.get_num_threads())
        return pool.submit(peak_in_this_process, *arguments).result()


def peak_in_this_process(name, config, batch, dtype, device, threads: int | None = None) -> int:
    """Step three times and return by how many bytes memory grew at most."""
    if threads:
        torch.set_num_threads(threads)
    if device.type == "cuda":
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats(device)
        before = torch.cuda.memory_allocated(device)
    else:
        make_step(name, replace(config, depth=1), 1, dtype, device)[0]()  # loads what all need
        Path("/proc/self/clear_refs").write_text("5")  # the peak starts anew
        before = memory_of_process("VmRSS")
    step, _ = make_step(name, config, batch, dtype, device)
    for _ in range(3):
        step()
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device) - before
    return memory_of_process("VmHWM") - before


def memory_of_process(field: str) -> int:
    """Read a field of this process's status, such as ``"VmHWM"``, in bytes."""
    text = Path("/proc/self/status").read_text(encoding="utf-8")
    return int(re.search(rf"^{field}:\s+(\d+) kB$", text, re.M)[1]) * 1024


# --- the comparison ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Row:
    """What was measured for one candidate."""

    name: str
    parameters: int
    images_per_second: float  # at the median round
    spread: float  # half the distance between the quartiles, over the median
    ratio: float | None  # to timm's rate, None without timm
    share: float  # of the rate that the measured matrix product allows
    memory: int | None  # bytes at the peak, None where not measured


@dataclass(frozen=True)
class Comparison:
    """All candidates on one preset in one precision."""

    preset: str
    precision: str
    batch: int
    flop: int  # of forward and backward, an image
    limit: float  # FLOP/s of a large square product in this precision
    rows: list[Row]
    seconds: Times  # of every step and of the product, round by round

    def row(self, name: str) -> Row | None:
        """Return the row of a candidate, None if it did not run."""
        return next((row for row in self.rows if row.name == name), None)


def compare(
    name: str,
    config: ViTConfig,
    names: list[str],
    *,
    precision: str,
    batch: int,
    rounds: int,
    device: torch.device,
    warmup: int = 2,
    memory: bool = True,
) -> Comparison:
    """Time the steps of several candidates in turn.

    Args:
        name: how the configuration is called.
        config: what every candidate builds.
        names: keys of ``CANDIDATES``.
        precision: "float32" or "bfloat16".
        batch: images a step.
        rounds: counted ones; ``warmup`` more before.
        device: where.
        memory: whether to measure peaks as well, each candidate alone, before the timing.
    """
    dtype = getattr(torch, precision)
    peaks = {
        each: peak_memory(each, config, batch, dtype, device) if memory else None for each in names
    }
    steps = {each: make_step(each, config, batch, dtype, device) for each in names}
    product, product_flop = make_product(dtype, device)
    work = {each: step for each, (step, _) in steps.items()} | {LIMIT: product}
    times = seconds_in_turn(work, rounds, device, warmup)
    flop = step_flop(config)
    limit = product_flop / statistics.median(times[LIMIT])
    rows = []
    for each, (_, parameters) in steps.items():
        rate = batch / statistics.median(times[each])
        rows.append(
            Row(
                each,
                parameters,
                rate,
                spread(times[each]),
                median_speedup(times, each, BASE) if BASE in times else None,
                rate * flop / limit,
                peaks[each],
            )
        )
    return Comparison(name, precision, batch, flop, limit, rows, times)


def comparison_text(result: Comparison) -> str:
    """Return a comparison as a table."""
    ours = result.rows[0].parameters
    lines = [
        f"{result.preset}, {result.precision}, batch {result.batch}, "
        f"{result.flop / 1e9:.3f} GFLOP an image (3 x forward)",
        "step              parameters         images/s   x timm  of limit  peak memory",
    ]
    for row in result.rows:
        more = f"({row.parameters - ours:+,d})" if row.parameters != ours else ""
        ratio = "-" if row.ratio is None else f"{row.ratio:.2f}"
        memory = "-" if row.memory is None else f"{row.memory / 1e6:,.0f} MB"
        lines.append(
            f"{row.name:<16}{row.parameters:>12,d} {row.images_per_second:>10,.0f} ±{row.spread:>4.0%}"
            f"  {ratio:>7}  {row.share:>8.0%}  {memory:>11}  {more}".rstrip()
        )
    lines.append(
        f"limit: a large square product runs at {result.limit / 1e9:,.0f} GFLOP/s, "
        f"{result.limit / result.flop:,.0f} images/s"
    )
    return "\n".join(lines)


def judge(result: Comparison, device: torch.device) -> tuple[bool, str]:
    """Hold our best form against the aim; return whether it is met, and a line, empty if there is none."""
    best = max(
        (row for row in result.rows if row.name in OURS),
        key=lambda row: row.images_per_second,
        default=None,
    )
    theirs = result.row("timm, compiled")
    if best is None:
        return True, ""
    if device.type == "cuda" and theirs:
        reached, aim = best.images_per_second / theirs.images_per_second, 1.0
        whom = "compiled timm"
    elif device.type == "cpu" and result.preset == AIM_PRESET and best.ratio is not None:
        reached, aim, whom = best.ratio, AIMS[result.precision], "timm"
    else:
        return True, ""
    is_met = reached >= aim
    return is_met, (
        f"aim: at least {aim:g} x {whom}: {'met' if is_met else 'not met'} "
        f"({best.name}, {reached:.2f} x)"
    )


def bench_train(
    device: torch.device,
    precisions: list[str],
    presets: list[str] | None = None,
    *,
    batch: int = 128,
    rounds: int = 7,
    compiled: bool = False,
    memory: bool = True,
    json: Path | None = None,
) -> bool:
    """Print a table for every preset and precision.

    Args:
        device: where.
        precisions: "float32", "bfloat16".
        presets: names; the course's two if None, and on CUDA three of 224 px as well.
        batch, rounds, memory: as for ``compare``.
        compiled: whether our fused form and timm run under ``torch.compile`` too.
        json: where to write all figures, those of every round too.

    Returns:
        Whether every aim that applies is met.
    """
    presets = presets or [*CPU_PRESETS, *(GPU_PRESETS if device.type == "cuda" else ())]
    names, notes = choose_candidates(compiled)
    print(machine(device))
    for note in notes:
        print(note)
    if memory and device.type != "cuda":
        print("peak memory: of a process for each candidate, over what it held before the model")
    results, everything_is_met = [], True
    for name in presets:
        for precision in precisions:
            result = compare(
                name,
                preset(name),
                names,
                precision=precision,
                batch=batch,
                rounds=rounds,
                device=device,
                memory=memory,
            )
            is_met, line = judge(result, device)
            print("\n" + comparison_text(result) + (f"\n{line}" if line else ""), flush=True)
            everything_is_met &= is_met
            results.append(as_record(result))
    write_json(json, {"machine": machine(device), "notes": notes, "results": results})
    return everything_is_met


def as_record(result: Comparison) -> dict:
    """Return a comparison as plain data."""
    return {**vars(result), "rows": [vars(row) for row in result.rows]}
