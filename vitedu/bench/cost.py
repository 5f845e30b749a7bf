"""What patch size, width, depth and tokens cost: ``vitedu bench cost``.

Role: change one size of the course's model at a time, measure forward and backward, count the FLOP,
and draw both in one figure. Where seconds grow faster than FLOP, something other than arithmetic
takes the time. Not here: other libraries (``train``).
"""

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import torch

from vitedu.bench.steps import make_pass, step_flop
from vitedu.bench.stopwatch import machine, seconds_in_turn, write_json
from vitedu.options import build_model, preset
from vitedu.plots.cost import Point, show_cost
from vitedu.vit import ViTConfig

PRESET = "vit_tiny_patch4_32"
Sweeps = Mapping[str, Sequence[tuple[int, ViTConfig]]]  # what is varied -> (size, configuration)


def sweeps(base: ViTConfig) -> Sweeps:
    """Give the models to measure: one size changed at a time, by factors of two about the base.

    A head stays as wide as it is, so that width changes the number of heads. Tokens come from
    larger images at the same patch.
    """
    head_dim = base.embed_dim // base.num_heads
    heads = sorted({max(1, base.num_heads // 3), 2 * base.num_heads // 3, base.num_heads})
    heads += [2 * base.num_heads, 4 * base.num_heads]
    sides = [base.image_size * factor // 2 for factor in (1, 2, 3, 4)]
    by_tokens = [replace(base, image_size=side) for side in sides]
    return {
        "patch size, pixels": [
            (size, replace(base, patch_size=size))
            for size in (base.patch_size // 2, base.patch_size, 2 * base.patch_size)
        ]
        + [(4 * base.patch_size, replace(base, patch_size=4 * base.patch_size))],
        "width": [
            (count * head_dim, replace(base, embed_dim=count * head_dim, num_heads=count))
            for count in heads
        ],
        "depth, blocks": [
            (depth, replace(base, depth=depth))
            for depth in (max(1, base.depth // 3), base.depth, 2 * base.depth, 4 * base.depth)
        ],
        "tokens": [(config.num_tokens, config) for config in by_tokens],
    }


def make_run(
    config: ViTConfig, batch: int, dtype: torch.dtype, device: torch.device
) -> Callable[[], None]:
    """Return a function that runs our model forward and backward once on ``batch`` images."""
    torch.manual_seed(0)
    model = build_model(config).to(device).train()
    forward_and_backward = make_pass(model, config, batch, dtype, device)

    def run() -> None:
        model.zero_grad()
        forward_and_backward()

    return run


def measure_cost(
    base: ViTConfig,
    models: Sweeps,
    *,
    batch: int,
    rounds: int,
    dtype: torch.dtype,
    device: torch.device,
) -> tuple[dict[str, list[Point]], dict[ViTConfig, tuple[float, int]]]:
    """Measure every model in turn.

    Returns:
        For each sweep the points (size, time, FLOP), both relative to ``base``; and for each
        configuration the seconds and the FLOP of forward and backward for one image.
    """
    configs = {config: None for points in models.values() for _, config in points} | {base: None}
    work = {config: make_run(config, batch, dtype, device) for config in configs}
    times = seconds_in_turn(work, rounds, device)
    cost = {
        config: (statistics.median(seconds) / batch, step_flop(config))
        for config, seconds in times.items()
    }
    seconds, flop = cost[base]
    panels: dict[str, list[Point]] = {
        name: [(size, cost[each][0] / seconds, cost[each][1] / flop) for size, each in points]
        for name, points in models.items()
    }
    return panels, cost


def bench_cost(
    device: torch.device,
    precision: str,
    out: Path,
    *,
    batch: int = 32,
    rounds: int = 5,
    json: Path | None = None,
) -> None:
    """Measure the sweeps about the course's preset, print them and draw them.

    Args:
        device: where.
        precision: "float32" or "bfloat16".
        out: the figure's file; its folder is made.
        batch: images a pass, the same for all models.
        rounds: of all models in turn.
        json: where to write all figures.
    """
    base = preset(PRESET, fused=True)
    models = sweeps(base)
    panels, cost = measure_cost(
        base, models, batch=batch, rounds=rounds, dtype=getattr(torch, precision), device=device
    )
    seconds, flop = cost[base]
    print(f"{machine(device)}, {precision}, batch {batch}, forward and backward")
    print(f"{PRESET}: {1000 * seconds:.3f} ms and {flop / 1e9:.3f} GFLOP an image\n")
    print("varied                    size    ms an image    x time    x FLOP")
    for name, points in panels.items():
        for (size, time, flops), (_, config) in zip(points, models[name], strict=True):
            milliseconds = 1000 * cost[config][0]
            print(f"{name:<20}{size:>10}{milliseconds:>15.3f}{time:>10.2f}{flops:>10.2f}")
    at_base = {
        name: next(size for size, config in points if config == base)
        for name, points in models.items()
    }
    out.parent.mkdir(parents=True, exist_ok=True)
    show_cost(panels, base=at_base, of=PRESET).savefig(out)
    print(f"wrote {out}")
    record = {"machine": machine(device), "precision": precision, "batch": batch, "preset": PRESET}
    base_cost = {"seconds": seconds, "flop": flop}
    write_json(json, {**record, "base": base_cost, "panels": panels})
