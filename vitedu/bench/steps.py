"""One training step of our model and of each library's, for ``vitedu bench``.

Role: build each library's ViT from one ``ViTConfig``, make its step (forward, loss, backward,
AdamW), count the FLOP, measure the peak of memory. Not here: timing and tables (``train``).

What is equal: image, patch, width, depth, heads, MLP, class token, batch, precision, optimizer. The
count of parameters shows where a library departs: vit-pytorch normalises patches twice and gives
q, k, v no bias.
"""

import importlib.util
import re
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from importlib import import_module
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from vitedu.options import build_model, with_options
from vitedu.vit import ViTConfig

# --- who is compared --------------------------------------------------------------------------


# library: its module, its model, and the model's arguments (``theirs=ours`` where names differ)
LIBRARIES = {
    "timm": (
        "timm.models.vision_transformer",
        "VisionTransformer",
        "img_size=image_size patch_size in_chans=in_channels num_classes embed_dim depth num_heads "
        "mlp_ratio qkv_bias",
    ),
    "torchvision": (  # takes images of three channels only
        "torchvision.models.vision_transformer",
        "VisionTransformer",
        "image_size patch_size num_classes hidden_dim=embed_dim num_layers=depth num_heads mlp_dim",
    ),
    "vit_pytorch": (
        "vit_pytorch",
        "ViT",
        "image_size patch_size channels=in_channels num_classes dim=embed_dim depth "
        "heads=num_heads dim_head=head_dim mlp_dim",
    ),
}


def build_of(library: str, config: ViTConfig) -> nn.Module:
    """Build a library's model of this configuration."""
    module, name, arguments = LIBRARIES[library]
    sizes = vars(config) | {"mlp_dim": int(config.embed_dim * config.mlp_ratio)}
    sizes["head_dim"] = config.embed_dim // config.num_heads
    pairs = [word.split("=") for word in arguments.split()]
    return getattr(import_module(module), name)(**{pair[0]: sizes[pair[-1]] for pair in pairs})


@dataclass(frozen=True)
class Candidate:
    """One form of the model."""

    builder: Callable[[ViTConfig], nn.Module] = build_model
    options: Mapping[str, Any] = field(default_factory=dict)  # fields that it changes
    library: str | None = None  # the module that must be installed; None for our own
    is_compiled: bool = False

    def build(self, config: ViTConfig) -> nn.Module:
        """Build the model of this configuration."""
        return self.builder(self.changed(config))

    def changed(self, config: ViTConfig) -> ViTConfig:
        """Give the configuration with this form's options."""
        return with_options(config, **self.options)


def candidate_of(library: str, *, is_compiled: bool = False) -> Candidate:
    """Describe a library's model."""
    return Candidate(partial(build_of, library), library=library, is_compiled=is_compiled)


CANDIDATES: dict[str, Candidate] = {
    "longhand": Candidate(),
    "fused": Candidate(options={"fused": True}),
    "fused, rope": Candidate(options={"fused": True, "rope": True}),
    "timm": candidate_of("timm"),
    "torchvision": candidate_of("torchvision"),
    "vit-pytorch": candidate_of("vit_pytorch"),
    "fused, compiled": Candidate(options={"fused": True}, is_compiled=True),
    "timm, compiled": candidate_of("timm", is_compiled=True),
    "vit-pytorch, compiled": candidate_of("vit_pytorch", is_compiled=True),
}
OURS = ("longhand", "fused", "fused, rope", "fused, compiled")


def choose_candidates(compiled: bool) -> tuple[list[str], list[str]]:
    """Return the names that can run here, and a line about each library that is missing."""
    wanted = [name for name, each in CANDIDATES.items() if compiled or not each.is_compiled]
    libraries = {library for name in wanted if (library := CANDIDATES[name].library)}
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
    if not config.num_prefix_tokens:
        raise ValueError(
            "the comparison needs a model with a class token (got pool='mean'); "
            "choose another preset, such as vit_tiny_patch4_32."
        )
    candidate = CANDIDATES[name]
    torch.manual_seed(0)
    model = candidate.build(config).to(device).train()
    count = sum(parameter.numel() for parameter in model.parameters())
    optimizer = torch.optim.AdamW(
        model.parameters(), lr=1e-4, weight_decay=0.05, fused=device.type in ("cpu", "cuda")
    )
    run = torch.compile(model) if candidate.is_compiled else model
    forward_and_backward = make_pass(run, config, batch, dtype, device)

    def step() -> None:
        optimizer.zero_grad()
        forward_and_backward()
        optimizer.step()

    return step, count


def make_pass(
    run: Callable[[torch.Tensor], torch.Tensor],
    config: ViTConfig,
    batch: int,
    dtype: torch.dtype,
    device: torch.device,
) -> Callable[[], None]:
    """Return a function that runs a model forward and backward once on ``batch`` random images."""
    images = torch.randn(batch, config.in_channels, *[config.image_size] * 2, device=device)
    labels = torch.randint(0, config.num_classes, (batch,), device=device)

    def forward_and_backward() -> None:
        with torch.autocast(device.type, dtype=dtype, enabled=dtype is not torch.float32):
            logits = run(images)
        F.cross_entropy(logits.float(), labels).backward()

    return forward_and_backward


def step_flop(config: ViTConfig) -> int:
    """Count the FLOP of forward and backward for one image, as three times forward.

    Every matrix product of the forward pass has two of the same size in the backward pass; but for
    the first layer, whose input needs no gradient, this is what runs. Nothing but products is
    counted. A fused model with a class token runs fewer: its last block computes that token alone.

    Example:
        >>> from vitedu.options import preset
        >>> round(step_flop(preset("vit_tiny_patch4_32")) / 1e9, 3)
        1.097
        >>> round(step_flop(preset("vit_tiny_patch4_32", fused=True)) / 1e9, 3)
        0.918
    """
    with torch.device("meta"), torch.no_grad(), FlopCounterMode(display=False) as counter:
        model = build_model(config)
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

    CUDA: what torch allocated. CPU, on Linux: a process of its own, and by how much it grew over
    what it held before the model was built. None elsewhere, and for compiled models on a CPU, where
    the compiler would be measured.
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
    found = re.search(rf"^{field}:\s+(\d+) kB$", text, re.M)
    if not found:
        raise ValueError(f"this system does not tell {field} of a process.")
    return int(found[1]) * 1024
