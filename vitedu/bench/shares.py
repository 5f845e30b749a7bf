"""Where a training step spends its time: ``vitedu bench train --profile``.

Role: watch steps of ``fit`` with torch's profiler, and give every operation to one part of the
work. Not here: other libraries' steps (``steps``, ``train``).

The profiler itself takes time, which falls on many small operations rather than on few large ones.
A compiled step runs kernels that the compiler made of several operations each. Such a kernel counts
as the first of GELU, softmax, norms and sums that its name holds, and else as numbers one by one.
"""

import statistics
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from torch._inductor import config as inductor
from torch.profiler import ProfilerActivity, profile, record_function

from vitedu.bench.steps import make_product, step_flop
from vitedu.bench.stopwatch import machine, seconds_in_turn, write_json
from vitedu.fitting.loop import Run
from vitedu.fitting.recipes import recipe
from vitedu.options import build_model, preset

DATA = "data: crop, mirror, operation, normalise, mix"
OPTIMIZER = "optimizer, with the length of the gradient"
PRODUCTS, KERNEL = "matrix products and convolutions", "attention in one kernel, softmax included"
REST = "the rest: views, memory, Python"
ONE_BY_ONE, SUMS = "numbers one by one: add, multiply", "sums: gradients of biases and scales"
# the part that a region belongs to, whatever runs inside it; then the parts by operation
REGIONS = {"data": DATA, "Optimizer.step#": OPTIMIZER}
PARTS = {
    PRODUCTS: "mm addmm bmm baddbmm mkldnn_convolution convolution_backward thnn_conv2d "
    "_slow_conv2d_forward",
    KERNEL: "_scaled_dot_product_flash_attention_for_cpu "
    "_scaled_dot_product_flash_attention_for_cpu_backward",
    "softmax": "_softmax _softmax_backward_data _log_softmax _log_softmax_backward_data",
    "norms": "native_layer_norm native_layer_norm_backward native_batch_norm "
    "native_batch_norm_backward",
    "GELU": "gelu gelu_backward",
    "copies: other types, other order": "copy_ cat",
    SUMS: "sum",
    ONE_BY_ONE: "add add_ mul mul_ div div_ sub sub_ neg",
    OPTIMIZER: "linalg_vector_norm _foreach_norm _foreach_mul_",
}
PART_OF = {f"aten::{name}": part for part, names in PARTS.items() for name in names.split()}
# of the compiler's kernels, by a word in their name, the first that fits; the polynomial of
# ``compiled.Gelu`` clamps, and a softmax that is written out has a maximum and an exponential
KERNELS = {
    **dict.fromkeys(("gelu", "clamp"), "GELU"),
    **dict.fromkeys(("softmax", "amax", "_exp_"), "softmax"),
    **{"norm": "norms", "sum": SUMS, "": ONE_BY_ONE},
}


class WatchedRun(Run):
    """A run whose batches are made in a region that the profiler can tell apart."""

    def augmented(self, batch: torch.Tensor, is_clean: bool):
        """Return what to learn from a batch, as ``Run`` does."""
        with record_function("data"):
            return super().augmented(batch, is_clean)


def part_of(event: Any) -> str:
    """Name the part of the work that an event of the profiler belongs to."""
    above = event
    while above is not None:
        for start, part in REGIONS.items():
            if above.name.startswith(start):
                return part
        above = above.cpu_parent
    if "_cpp_fused" in event.name:  # as in graph_0_cpp_fused__softmax_add_3
        return next(part for word, part in KERNELS.items() if word in event.name)
    return PART_OF.get(event.name, REST)


def step_shares(
    name: str, precision: str, batch: int, steps: int, compiled: bool = False
) -> dict[str, float]:
    """Profile steps of a preset with its recipe, on random images, on the CPU.

    Args:
        name: of a preset.
        precision: of matrix products, "float32" or "bfloat16".
        batch: images a step.
        steps: that are watched; two more go before.
        compiled: whether ``torch.compile`` translates the model.

    Returns:
        part -> its seconds in a step. They add up to the whole step.
    """
    config = preset(name)
    size = (batch, config.in_channels, config.image_size, config.image_size)
    images = torch.randint(0, 256, size, dtype=torch.uint8)
    labels = torch.randint(0, config.num_classes, (batch,))
    half = torch.full((config.in_channels,), 0.5)
    data = SimpleNamespace(
        train=SimpleNamespace(images=images, labels=labels),
        class_names=[str(i) for i in range(config.num_classes)],
        mean=half,
        std=half,
    )
    settings = replace(
        recipe(name), batch_size=batch, precision=precision, device="cpu", compile=compiled
    )
    run = WatchedRun(build_model(config), data, settings, torch.device("cpu"))
    run.learner.train()
    with inductor.patch({"cpp.enable_kernel_profile": True}):  # the compiler's kernels have names
        for _ in range(2):
            run.step(torch.arange(batch), settings.lr, step_of_run=0)
    with profile(activities=[ProfilerActivity.CPU]) as watching:
        start = time.perf_counter()
        for _ in range(steps):
            run.step(torch.arange(batch), settings.lr, step_of_run=0)
        seconds = (time.perf_counter() - start) / steps
    parts = dict.fromkeys([*PARTS, DATA, REST], 0.0)
    for event in watching.events():
        parts[part_of(event)] += event.self_cpu_time_total / 1e6 / steps
    parts[REST] += seconds - sum(parts.values())  # between torch's operations
    return parts


def bench_shares(
    precisions: list[str],
    names: list[str],
    *,
    batch: int,
    steps: int,
    compiled: bool = False,
    json: Path | None = None,
) -> None:
    """Print where a step's time goes, by preset and precision, and what its products alone need.

    Args:
        precisions: "float32", "bfloat16".
        names: presets.
        batch, steps, compiled: as for ``step_shares``.
        json: where to write the seconds of all parts.
    """
    print(machine(torch.device("cpu")))
    results = []
    for name in names:
        for precision in precisions:
            parts = step_shares(name, precision, batch, steps, compiled)
            product, flop = make_product(getattr(torch, precision), torch.device("cpu"))
            limit = flop / statistics.median(
                seconds_in_turn({"product": product}, rounds=9)["product"]
            )
            seconds, least = sum(parts.values()), batch * step_flop(preset(name)) / limit
            print(
                f"\n{name}, {precision}, batch {batch}{', compiled' if compiled else ''}: "
                f"a step of fit takes {1000 * seconds:,.0f} ms, watched.\n"
                "At the rate of a large square product its products alone would take "
                f"{1000 * least:,.0f} ms."
            )
            # softmax is part of the one kernel, where that is used
            ran = {part: each for part, each in parts.items() if each}
            for part, each in sorted(ran.items(), key=lambda item: -item[1]):
                print(f"{each / seconds:6.1%} {1000 * each:8,.1f} ms  {part}")
            record = {"preset": name, "precision": precision, "batch": batch, "compiled": compiled}
            results.append({**record, "least": least, "seconds": parts})
    write_json(json, {"machine": machine(torch.device("cpu")), "results": results})
