"""Our training step beside those of timm, torchvision and vit-pytorch: ``vitedu bench train``.

Role: let all candidates step in turn, and print rates, ratios, the share of what matrix products
allow, and memory. Not here: the steps (``steps``), data (``data``), cost against size (``cost``).
"""

import statistics
from dataclasses import dataclass
from pathlib import Path

import torch

from vitedu.bench.steps import (
    CANDIDATES,
    OURS,
    choose_candidates,
    make_product,
    make_step,
    peak_memory,
    step_flop,
)
from vitedu.bench.stopwatch import (
    Times,
    machine,
    median_speedup,
    seconds_in_turn,
    spread,
    write_json,
)
from vitedu.hardware import keep_freed_memory, pick_precision
from vitedu.options import preset
from vitedu.vit import ViTConfig

CPU_PRESETS = ("vit_micro_patch8_32", "vit_tiny_patch4_32")
GPU_PRESETS = ("vit_tiny_patch16_224", "vit_small_patch16_224", "vit_base_patch16_224")
BASE = "timm"  # what rates are divided by
LIMIT = "matrix product"
AIMS = {"bfloat16": 2.0, "float32": 1.5}  # times timm, on a CPU, for AIM_PRESET
AIM_PRESET = "vit_tiny_patch4_32"
RIVALS = ("timm, compiled", "vit-pytorch, compiled")  # to be ahead of, in the same run


@dataclass(frozen=True)
class Rate:
    """What was measured for one candidate."""

    name: str
    parameters: int
    flop: int  # of the products in forward and backward, an image, as this form runs them
    images_per_second: float  # at the median round
    spread: float  # half the distance between the quartiles, over the median
    ratio: float | None  # to timm's rate, None without timm
    share: float  # of the rate of the measured matrix product at which its own products run
    memory: int | None  # bytes at the peak, None where not measured


@dataclass(frozen=True)
class Comparison:
    """All candidates on one preset in one precision."""

    preset: str
    precision: str
    batch: int
    flop: int  # of the textbook's products in forward and backward, an image
    limit: float  # FLOP/s of a large square product in this precision
    rows: list[Rate]
    seconds: Times  # of every step and of the product, round by round

    def row(self, name: str) -> Rate | None:
        """Return the row of a candidate, None if it did not run."""
        return next((row for row in self.rows if row.name == name), None)


def time_candidates(
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
    keep_freed_memory()  # as fit does
    steps = {each: make_step(each, config, batch, dtype, device) for each in names}
    product, product_flop = make_product(dtype, device)
    work = {each: step for each, (step, _) in steps.items()} | {LIMIT: product}
    times = seconds_in_turn(work, rounds, device, warmup)
    limit = product_flop / statistics.median(times[LIMIT])
    rows = []
    for each, (_, parameters) in steps.items():
        rate = batch / statistics.median(times[each])
        flop = step_flop(CANDIDATES[each].changed(config))
        rows.append(
            Rate(
                each,
                parameters,
                flop,
                rate,
                spread(times[each]),
                median_speedup(times, each, BASE) if BASE in times else None,
                rate * flop / limit,
                peaks[each],
            )
        )
    return Comparison(name, precision, batch, step_flop(config), limit, rows, times)


def comparison_text(result: Comparison) -> str:
    """Return a comparison as a table."""
    ours = result.rows[0].parameters
    lines = [
        f"{result.preset}, {result.precision}, batch {result.batch}; "
        "GFLOP of the products that each form runs for an image (3 x forward)",
        "step                    parameters   GFLOP         images/s   x timm  of limit  peak "
        "memory",
    ]
    for row in result.rows:
        more = f"({row.parameters - ours:+,d})" if row.parameters != ours else ""
        ratio = "-" if row.ratio is None else f"{row.ratio:.2f}"
        memory = "-" if row.memory is None else f"{row.memory / 1e6:,.0f} MB"
        lines.append(
            f"{row.name:<22}{row.parameters:>12,d} {row.flop / 1e9:>7.3f} "
            f"{row.images_per_second:>10,.0f} ±{row.spread:>4.0%}  {ratio:>7}  {row.share:>8.0%}  "
            f"{memory:>11}  {more}".rstrip()
        )
    lines.append(
        f"limit: a large square product runs at {result.limit / 1e9:,.0f} GFLOP/s; at that rate "
        f"the textbook's products, {result.flop / 1e9:.3f} GFLOP, allow "
        f"{result.limit / result.flop:,.0f} images/s"
    )
    return "\n".join(lines)


def judge(result: Comparison, device: torch.device) -> tuple[bool, str]:
    """Hold our best form against the aim; return whether it is met, and a line or nothing."""
    best = max(
        (row for row in result.rows if row.name in OURS),
        key=lambda row: row.images_per_second,
        default=None,
    )
    aims = dict.fromkeys(RIVALS, 1.0)
    if device.type == "cpu":
        if result.preset != AIM_PRESET:
            return True, ""
        if pick_precision(device) is not torch.bfloat16:
            return (
                True,
                "aims are for CPUs that multiply bfloat16 (AVX512-BF16 or AMX); this one does not",
            )
        aims[BASE] = AIMS[result.precision]
    reached = {
        row.name: median_speedup(result.seconds, best.name, row.name)
        for row in result.rows
        if best and row.name in aims
    }
    if best is None or not reached:
        return True, ""
    is_met = all(reached[name] >= aims[name] for name in reached)
    each = "; ".join(f"{aims[name]:g} x {name}: {reached[name]:.2f}" for name in reached)
    return is_met, f"aims for {best.name}: {each}: {'met' if is_met else 'not met'}"


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
        compiled: whether our fused form, timm and vit-pytorch run under ``torch.compile`` too.
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
            result = time_candidates(
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
