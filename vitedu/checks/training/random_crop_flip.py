"""4.7 random_crop_flip: a new view of every image."""

import torch
from torch import Generator

from vitedu.checks.training import random_crop_flip_reader  # noqa: F401  (it registers)
from vitedu.checks.training.random_draws_driver import (
    CpuGenerator,
    random_batches,
    repeated_draws,
)
from vitedu.checks.writing.kit import Case, distinct, draw


def cases(g: Generator) -> list[Case]:
    """Draw images of random pixels, so that windows can be told apart.

    "draws" keeps sides above 2 * padding + 1: in smaller images a reflected
    window can be another one's mirror image.
    With the widest padding every one is, so only one case has it.
    """

    def case(sizes, C, H, W, padding, note="", part="values", dtype=torch.uint8, **rest):
        B = sum(sizes)
        pixels = torch.randint(0, 256, (B, C, H, W), generator=g, dtype=torch.uint8)
        images = pixels if dtype == torch.uint8 else (pixels.double() / 256).to(dtype)
        if dtype == torch.float64:
            images = images + 2.0**20  # float32 has no place for these digits
        batches = f"{len(sizes)} batches, " if len(sizes) > 1 else ""
        kind = str(dtype).removeprefix("torch.")
        name = f"{batches}{B} {kind} images ({C}, {H}, {W}), padding {padding}{note}"
        generator = CpuGenerator(draw(g, 0, 10**6))
        args = {"images": images, "padding": padding, "generator": generator}
        rest = {"driver": random_batches.__name__} | rest
        return Case(name, args, part, sizes=sizes, **rest)

    H, W = distinct(g, 2, 5, 7)
    # with more padding, most windows that are turned upside down are windows again
    B, C, p = draw(g, 12, 16), draw(g, 2, 4), draw(g, 2, min(3, min(H, W) - 3))
    few, again = [B] * 4, {"seed": draw(g, 0, 10**6), "driver": repeated_draws.__name__}
    other, rare, one = "other sizes", "rare padding", "batch of one"
    on_cpu = ", on an accelerator, with a generator on the CPU"
    return [
        case(few, C, H, W, p),
        case(few, C, W, H, p, dtype=torch.float32),
        case([1200, *[3] * 20], 1, H + 1, W + 1, 2, part="draws"),
        case(few, 1, W, W, p, ", square", other),
        case([1] * 40, C, H, W, p, ", one by one", one),
        # so many batches that one coin for each of them does not fall alike in all
        case([3] * 20, C, H, W, 0, ", which is none", rare),
        case(few, C, W, H, min(H, W) - 1, ", the widest", rare),
        case(few, C, H, W, p, "", "dtype", torch.float64),
        case([40], C, H, W, p, ", drawn again", "generator", **again),
        case(few, C, H, W, p, ", turned round in memory", "layout", turned=True),
        case([4], C, H, W, p, on_cpu, "any device", on_accelerator=True),
    ]
