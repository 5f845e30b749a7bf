"""Checker of random_crop_flip: its cases, its known mistakes, and what is said of them."""

import torch

from vitedu import training as reference
from vitedu.checks import crops
from vitedu.checks.arguments import CpuGenerator
from vitedu.checks.diagnosing import Misconception
from vitedu.checks.engine import Checker
from vitedu.checks.inputs import distinct, draw
from vitedu.checks.probing import Case


def crop_cases(g: torch.Generator) -> list[Case]:
    """Draw images of random pixels, so that windows can be told apart.

    "draws" keeps sides above 2 * padding + 1: in smaller images a reflected window can be another one's mirror image.
    """

    def case(sizes, C, H, W, padding, dtype=torch.uint8, note="", **rest):
        B = sum(sizes)
        pixels = torch.randint(0, 256, (B, C, H, W), generator=g, dtype=torch.uint8)
        images = pixels if dtype == torch.uint8 else (pixels.double() / 256).to(dtype)
        words = str(dtype).removeprefix("torch.")
        batches = f"{len(sizes)} batches, " if len(sizes) > 1 else ""
        name = f"{batches}{B} {words} images ({C}, {H}, {W}), padding {padding}{note}"
        args = {
            "images": images,
            "padding": padding,
            "generator": CpuGenerator(draw(g, 0, 10**6)),
        }
        rest["extra"] = {"sizes": sizes, **rest.get("extra", {})}
        return Case(name, args, **{"driver": "random_images"} | rest)

    H, W = distinct(g, 2, 5, 7)
    B, C, p = draw(g, 12, 16), draw(g, 2, 4), draw(g, 2, 4)
    few = [B] * 4
    sizes = {"part": "other sizes"}
    return [
        case(few, C, H, W, p),
        case(few, C, W, H, p, torch.float32),
        case([1200, *[3] * 20], 1, H + 1, W + 1, 2, part="draws", extra={"draws": True}),
        case([1] * 40, C, H, W, p, note=", one by one", **sizes),
        case(few, C, W, W, p, note=", square", **sizes),
        case(few, 1, H, W, p, torch.float64, **sizes),
        case(few, C, H, W, 0, note=", which is none", **sizes),
        case(few, C, W, H, min(H, W) - 1, note=", the widest", **sizes),
        case(
            [40], C, H, W, p, driver="repeated_draws", part="generator",
            extra={"seed": draw(g, 0, 10**6)}, note=", drawn again",
        ),
        case(
            [4], C, H, W, p, part="any device", on_accelerator=True,
            note=", on an accelerator, with a generator on the CPU",
        ),
    ]  # fmt: skip


BORDERS = {  # id of the mistake -> what ``crops`` calls it
    "zero_border": "zeros",
    "edge_border": "the edge repeated",
    "wrapped_border": "the opposite side",
}


def faulty_crop(mistakes: frozenset[str]):
    """Crop and mirror with the named mistakes made."""

    def places(B, p, draw):
        if "no_crop" in mistakes or "corner_only" in mistakes:
            return torch.full((B,), p if "no_crop" in mistakes else 0)
        count = 1 if "one_place" in mistakes else B
        if "rounded_draws" in mistakes:
            place = (torch.rand(count, **draw) * 2 * p).round().long()
        else:
            most = 2 * p if "last_place_never" in mistakes else 2 * p + 1
            most = p + 1 if "half_the_border" in mistakes else most
            least = 1 if "first_place_never" in mistakes else 0
            place = torch.randint(least, most, (count,), **draw)
        return place.expand(B)

    def random_crop_flip(images, padding, generator):
        B, C, H, W = images.shape
        p = padding
        if "global_draws" in mistakes:
            generator = None
        if "own_generator" in mistakes:
            generator = torch.Generator().manual_seed(0)
        if "generator_copied" in mistakes:
            state, generator = generator.get_state(), torch.Generator()
            generator.set_state(state)
        draw = {"generator": generator}
        border = next((BORDERS[id_] for id_ in BORDERS if id_ in mistakes), "reflected")
        framed = crops.padded(images, p, border)
        top, left = places(B, p, draw), places(B, p, draw)
        if "top_is_left" in mistakes:
            left = top
        coin = torch.rand(1 if "one_coin" in mistakes else B, **draw).expand(B)
        flip = coin < (0.25 if "unfair_coin" in mistakes else 0.5)
        if "never_mirrored" in mistakes:
            flip = torch.zeros_like(flip)
        if "always_mirrored" in mistakes:
            flip = torch.ones_like(flip)
        if "every_second_mirrored" in mistakes:
            flip = torch.arange(B) % 2 == 1
        width = H if "square_window" in mistakes else W
        if "border_left_on" in mistakes:
            H, width, top, left = H + 2 * p, W + 2 * p, top * 0, left * 0
        rows, columns = torch.arange(H).expand(B, H), torch.arange(width).expand(B, width)
        if "upside_down" in mistakes:
            rows = torch.where(flip[:, None], rows.flip(1), rows)
        else:
            columns = torch.where(flip[:, None], columns.flip(1), columns)
        rows, columns = rows + top[:, None], columns + left[:, None]
        batch = torch.arange(B)[:, None, None]
        out = framed[batch, :, rows[:, :, None], columns[:, None, :]].permute(0, 3, 1, 2)
        if "float_result" in mistakes and not out.is_floating_point():
            out = out.float()
        return out

    return random_crop_flip


def _draws_where_images_are():
    def random_crop_flip(images, padding, generator):
        draw = {"generator": generator, "device": images.device}
        top = torch.randint(0, 2 * padding + 1, (len(images),), **draw)
        assert len(top) == len(images)
        return reference.random_crop_flip(images, padding, generator)

    return random_crop_flip


def _spoils_images():
    def random_crop_flip(images, padding, generator):
        images.copy_(reference.random_crop_flip(images, padding, generator))
        return images.clone()

    return random_crop_flip


CROP_BANK = (
    Misconception(
        "zero_border", "the border is black", "a reflected border", "A black edge tells the model where the image was; it never occurs in a test image.",
        "Reflect: the pixel before the first is the second.",
    ),
    Misconception(
        "edge_border", "the border repeats the edge", "a reflected border", "A smear of equal pixels is no texture.",
        "Reflect: the pixel before the first is the second, not the first.",
    ),
    Misconception(
        "wrapped_border", "what leaves on one side comes in on the other", "a reflected border",
        "torch.roll and % wrap around: the sky would stand below the grass.", "Reflect indices that are off either end.",
    ),
    Misconception(
        "upside_down", "images are mirrored top to bottom", "mirrored left to right", "A cat upside down is rare; a cat that looks the other way is not.",
        "The last axis is the width.",
    ),
    Misconception(
        "never_mirrored", "no image is mirrored", "every second image on average", "Half of the views are missing.", "Look at the coin and at what it decides.",
    ),
    Misconception(
        "always_mirrored", "every image is mirrored", "every second image on average", "Then no image is seen as it is.", "Look at the comparison with 0.5.",
    ),
    Misconception(
        "one_coin", "one coin decides for the whole batch", "a coin for every image", "A batch would be all mirrored or not at all.",
        "Draw B coins, and let each image follow its own.",
    ),
    Misconception(
        "unfair_coin", "the coin is not fair", "heads with probability 1/2", "The text asks for a fair coin.", "torch.rand is uniform in 0 .. 1: compare with 0.5.",
    ),
    Misconception(
        "no_crop", "the window never moves", "a top and a left from 0 to 2 * padding", "Only the mirror is left.", "Draw the place of the window.",
    ),
    Misconception(
        "corner_only", "the window stays in the corner of the padded image", "a top and a left from 0 to 2 * padding",
        "Every image would be shifted alike.", "Draw the place of the window.",
    ),
    Misconception(
        "one_place", "the whole batch shares one window", "a top and a left for every image", "Images of one batch are then shifted all alike.",
        "Draw B tops and B lefts.",
    ),
    Misconception(
        "top_is_left", "the window moves along the diagonal only", "top and left drawn apart", "Most places are never met.", "Draw twice.",
    ),
    Misconception(
        "last_place_never", "the last place is never drawn", "places 0 to 2 * padding, both included", "torch.randint leaves out its upper end.",
        "high = 2 * padding + 1.",
    ),
    Misconception(
        "first_place_never", "the first place is never drawn", "places 0 to 2 * padding, both included", "Places count from 0.", "low = 0.",
    ),
    Misconception(
        "half_the_border", "places run from 0 to padding only", "places 0 to 2 * padding", "padding is added on both sides, so there are 2 * padding + 1 places.",
        "Draw up to twice the padding.",
    ),
    Misconception(
        "rounded_draws", "the outermost places are drawn half as often", "all places equally often", "Rounding gives both ends half an interval.",
        "Use randint.",
    ),
    Misconception(
        "global_draws", "draws do not come from generator", "every draw from generator", "A run could not be repeated.", "Give every draw generator=generator.",
    ),
    Misconception(
        "own_generator", "a generator of its own decides", "every draw from the generator given", "Every call would draw the same.",
        "Use the argument, and leave its seed alone.",
    ),
    Misconception(
        "generator_copied", "a copy of the generator decides", "every draw from the generator given",
        "The generator never moves on, so that every batch gets the same draws.", "Give the generator itself to the functions that draw.",
    ),
    Misconception(
        "every_second_mirrored", "every second image of a batch is mirrored", "a coin for every image",
        "Half of the images are mirrored, but always those in the same places.", "Draw the coins from the generator.",
    ),
    Misconception(
        "border_left_on", "the padded image comes back", "images of the old size", "The model expects H x W.", "Cut a window of H x W out of the padded image.",
    ),
    Misconception(
        "square_window", "the window is square", "a window of H x W", "It works on square images only.", "Take the columns from W.",
    ),
    Misconception(
        "float_result", "uint8 goes in, float comes out", "the dtype of the images", "The images of a whole data set stay uint8 to fit into memory.",
        "Index, which works for every dtype, or turn back at the end.",
    ),
    Misconception(
        "modifies_input", "an input is modified in place", "images left as they were", "The next epoch would start from shifted images.",
        "Write into a new tensor.", part="unchanged", build=_spoils_images,
    ),
    Misconception(
        "generator_device", "draws are made where the images are", "draws made where the generator is", "A generator draws on its own device only.",
        "Draw with device=generator.device and move the result.", part="any device", build=_draws_where_images_are,
    ),
)  # fmt: skip

CHECKER = Checker(
    "random_crop_flip",
    reference.random_crop_flip,
    crop_cases,
    faulty_crop,
    CROP_BANK,
    proves={
        "values": "every output is a window of its reflected image, mirrored or not; images stay unchanged",
        "draws": "every place and both sides of the coin, drawn for each image by itself",
        "other sizes": "also for one image, squares, no padding, the widest padding and float64",
        "generator": "the generator decides, and nothing else",
        "any device": "the generator may live on the CPU while the images do not",
    },
    advice={
        "values": (
            "Row top + i of the padded image is row top + i - padding of the image, reflected where it is off either end.",
            "Put top = left = padding, without the mirror: the image must come back unshifted.",
        ),
    },
)
