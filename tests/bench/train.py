"""Our training step beside those of timm, torchvision and vit-pytorch: ``make bench-train``.

Every candidate builds its ViT from one ``ViTConfig``; a step is forward, loss, backward, AdamW. All
step in turn, and ratios are taken within a round. What is equal: image, patch, width, depth, heads,
MLP, class token, batch, precision, optimizer. The count of parameters shows where a library
departs: vit-pytorch normalises patches twice and gives q, k, v no bias. In the last block our fused
form computes the class token alone, since the head reads nothing else.
"""

from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from statistics import median

import torch
import torch.nn.functional as F
from torch import nn

from vitedu.extras.options import build_model, preset, with_options
from vitedu.ground.hardware import keep_freed_memory
from vitedu.ground.stopwatch import machine, median_speedup, seconds_in_turn, spread
from vitedu.vit import ViTConfig

BASE = "timm"  # whose rate the others' are divided by
# module and class of each library, and the arguments with our sizes that they take
LIBRARIES = {
    "timm": (
        "timm.models.vision_transformer.VisionTransformer",
        "img_size=image_size patch_size in_chans=in_channels num_classes embed_dim depth num_heads "
        "mlp_ratio qkv_bias",
    ),
    "torchvision": (  # takes images of three channels only
        "torchvision.models.vision_transformer.VisionTransformer",
        "image_size patch_size num_classes hidden_dim=embed_dim num_layers=depth num_heads mlp_dim",
    ),
    "vit-pytorch": (
        "vit_pytorch.ViT",
        "image_size patch_size channels=in_channels num_classes dim=embed_dim depth mlp_dim "
        "heads=num_heads dim_head=head_dim",
    ),
}
COMPILED = ", compiled"  # ends the name of a form under torch.compile
CANDIDATES = ["longhand", "fused", *LIBRARIES]
CANDIDATES += [name + COMPILED for name in ("fused", "timm", "vit-pytorch")]


def build(name: str, config: ViTConfig) -> nn.Module:
    """Build the model of a candidate: ours, longhand or fused, or that of a library."""
    name = name.removesuffix(COMPILED)
    if name not in LIBRARIES:
        return build_model(with_options(config, fused=name == "fused"))
    sizes = {**vars(config), "head_dim": config.embed_dim // config.num_heads}
    sizes["mlp_dim"] = int(config.embed_dim * config.mlp_ratio)
    (module, _, kind), pairs = LIBRARIES[name][0].rpartition("."), LIBRARIES[name][1].split()
    arguments = {a: sizes[b or a] for a, _, b in (pair.partition("=") for pair in pairs)}
    return getattr(import_module(module), kind)(**arguments)


def make_step(
    name: str, config: ViTConfig, batch: int, dtype: torch.dtype, device: torch.device
) -> tuple[Callable[[], None], int]:
    """Build a candidate and return its training step, and how many parameters it trains.

    ``config`` needs a class token, which all libraries share. ``dtype`` is that of matrix products.
    """
    if not config.num_prefix_tokens:
        raise ValueError("pool must be 'cls' (got 'mean'); choose vit_tiny_patch4_32.")
    torch.manual_seed(0)
    model = build(name, config).to(device).train()
    fused = device.type in ("cpu", "cuda")
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, weight_decay=0.05, fused=fused)
    images = torch.randn(batch, config.in_channels, *[config.image_size] * 2, device=device)
    labels = torch.randint(0, config.num_classes, (batch,), device=device)
    run = torch.compile(model) if name.endswith(COMPILED) else model

    def step() -> None:
        optimizer.zero_grad()
        with torch.autocast(device.type, dtype=dtype, enabled=dtype is not torch.float32):
            logits = run(images)
        F.cross_entropy(logits.float(), labels).backward()
        optimizer.step()

    return step, sum(parameter.numel() for parameter in model.parameters())


def bench_train(
    device: torch.device,
    dtype: torch.dtype,
    presets: list[str],
    *,
    batch: int,
    rounds: int,
    compiled: bool,
) -> None:
    """Print a table for every preset; ``dtype`` is that of matrix products.

    ``compiled``: our fused form, timm and vit-pytorch run under ``torch.compile`` too.
    """
    print(machine(device))
    missing = [name for name in LIBRARIES if find_spec(name.replace("-", "_")) is None]
    for name in missing:
        print(f"{name} is not installed and not compared: pip install vitedu[bench]")
    names = [name for name in CANDIDATES if compiled or not name.endswith(COMPILED)]
    names = [name for name in names if name.removesuffix(COMPILED) not in missing]
    for each in presets:
        work = preset(each), batch, dtype, device
        keep_freed_memory()  # as fit does
        steps = {name: make_step(name, *work) for name in names}
        times = seconds_in_turn({name: step for name, (step, _) in steps.items()}, rounds, device)
        print(f"\n{each}, {str(dtype)[6:]}, batch {batch}, medians of {rounds} rounds")
        print(f"step                    parameters         images/s   x {BASE}")
        for name, seconds in times.items():
            ratio = f"{median_speedup(times, name, BASE):.2f}" if BASE in times else "-"
            rate = f"{batch / median(seconds):,.0f} ±{spread(seconds):>4.0%}"
            print(f"{name:<22}{steps[name][1]:>12,d} {rate:>16}  {ratio:>7}")
