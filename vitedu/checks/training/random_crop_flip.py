import torch
import torch.nn.functional as F

from vitedu.checks import families
from vitedu.checks.kit import Case, Checker, CpuGenerator, Edits, Mistake, distinct, draw


def cases(g: torch.Generator) -> list[Case]:
    """Draw images of random pixels, so that windows can be told apart.

    "draws" keeps sides above 2 * padding + 1: in smaller images a reflected window can be another one's mirror image.
    With the widest padding every one is, so only one case has it.
    """

    def case(sizes, C, H, W, padding, note="", part="values", dtype=torch.uint8, **rest):
        B, extra = sum(sizes), {"sizes": sizes} | rest.pop("extra", {})
        pixels = torch.randint(0, 256, (B, C, H, W), generator=g, dtype=torch.uint8)
        images = pixels if dtype == torch.uint8 else (pixels.double() / 256).to(dtype)
        if dtype == torch.float64:
            images = images + 2.0**20  # float32 has no place for these digits
        batches = f"{len(sizes)} batches, " if len(sizes) > 1 else ""
        kind = str(dtype).removeprefix("torch.")
        name = f"{batches}{B} {kind} images ({C}, {H}, {W}), padding {padding}{note}"
        args = {"images": images, "padding": padding, "generator": CpuGenerator(draw(g, 0, 10**6))}
        rest = {"driver": "random_images"} | rest
        return Case(name, args, part, extra=extra, **rest)

    H, W = distinct(g, 2, 5, 7)
    # with more padding, most windows that are turned upside down are windows again
    B, C, p = draw(g, 12, 16), draw(g, 2, 4), draw(g, 2, min(3, min(H, W) - 3))
    few, other, again = [B] * 4, "other sizes", {"seed": draw(g, 0, 10**6)}
    return [
        case(few, C, H, W, p),
        case(few, C, W, H, p, dtype=torch.float32),
        case([1200, *[3] * 20], 1, H + 1, W + 1, 2, part="draws", extra={"draws": True}),
        case([1] * 40, C, H, W, p, ", one by one", other),
        case(few, C, W, W, p, ", square", other),
        case(few, 1, H, W, p, "", other, torch.float64),
        # so many batches that one coin for each of them does not fall alike in all
        case([3] * 20, C, H, W, 0, ", which is none", other),
        case(few, C, W, H, min(H, W) - 1, ", the widest", other),
        case([40], C, H, W, p, ", drawn again", "generator", driver="repeated_draws", extra=again),
        case(
            [4],
            C,
            H,
            W,
            p,
            ", on an accelerator, with a generator on the CPU",
            "any device",
            on_accelerator=True,
        ),
    ]


DRAW = "torch.randint(0, 2 * padding + 1, (B, 1), **draw)"


def _drawn(how: str) -> Edits:
    """Draw top and left in another way."""
    return {f"{side} = {DRAW}": f"{side} = {how}" for side in ("top", "left")}


def _placed(how: str) -> Edits:
    """Place the window otherwise than by top and left."""
    return {
        "rows = top": f"rows = {how.format('top')}",
        "columns = left": f"columns = {how.format('left')}",
    }


MISTAKES = (
    Mistake(
        "zero_border",
        "the border is black",
        "a reflected border",
        "A black edge tells the model where the image was; it never occurs in a test image.",
        "Reflect: the pixel before the first is the second.",
        {
            "rows, columns = reflect": "inside = ((rows >= 0) & (rows < H))[:, :, None]"
            " & ((columns >= 0) & (columns < W))[:, None]\nrows, columns = reflect",
            "picked.permute": "(picked * inside.unsqueeze(-1)).permute",
        },
    ),
    Mistake(
        "edge_border",
        "the border repeats the edge",
        "a reflected border",
        "A smear of equal pixels is no texture.",
        "Reflect: the pixel before the first is the second, not the first.",
        {"reflect(rows, H), reflect(columns, W)": "rows.clamp(0, H - 1), columns.clamp(0, W - 1)"},
    ),
    Mistake(
        "wrapped_border",
        "what leaves on one side comes in on the other",
        "a reflected border",
        "torch.roll and % wrap around: the sky would stand below the grass.",
        "Reflect indices that are off either end.",
        {"reflect(rows, H), reflect(columns, W)": "rows % H, columns % W"},
    ),
    Mistake(
        "upside_down",
        "images are mirrored top to bottom",
        "mirrored left to right",
        "A cat upside down is rare; a cat that looks the other way is not.",
        "The last axis is the width.",
        {
            "columns = torch.where(flip, columns.flip(1), columns)": "rows = torch.where(flip, rows.flip(1), rows)"
        },
    ),
    Mistake(
        "never_mirrored",
        "no image is mirrored",
        "every second image on average",
        "Half of the views are missing.",
        "Look at the coin and at what it decides.",
        {"< 0.5": "< 0"},
    ),
    Mistake(
        "always_mirrored",
        "every image is mirrored",
        "every second image on average",
        "Then no image is seen as it is.",
        "Look at the comparison with 0.5.",
        {"< 0.5": "< 1"},
    ),
    Mistake(
        "one_coin",
        "one coin decides for the whole batch",
        "a coin for every image",
        "A batch would be all mirrored or not at all.",
        "Draw B coins, and let each image follow its own.",
        {"rand(B, 1": "rand(1, 1"},
    ),
    Mistake(
        "unfair_coin",
        "the coin is not fair",
        "heads with probability 1/2",
        "The text asks for a fair coin.",
        "torch.rand is uniform in 0 .. 1: compare with 0.5.",
        {"< 0.5": "< 0.25"},
    ),
    Mistake(
        "no_crop",
        "the window never moves",
        "a top and a left from 0 to 2 * padding",
        "Only the mirror is left.",
        "Draw the place of the window.",
        _placed("0 * {} + padding"),
    ),
    Mistake(
        "corner_only",
        "the window stays in the corner of the padded image",
        "a top and a left from 0 to 2 * padding",
        "Every image would be shifted alike.",
        "Draw the place of the window.",
        _placed("0 * {}"),
    ),
    Mistake(
        "one_place",
        "the whole batch shares one window",
        "a top and a left for every image",
        "Images of one batch are then shifted all alike.",
        "Draw B tops and B lefts.",
        _placed("{}[:1]"),
    ),
    Mistake(
        "one_draw",
        "all images of a batch move together, and mirror together",
        "draws of its own for every image",
        "A batch would have no variety.",
        "Draw B tops, B lefts and B coins.",
        {**_placed("{}[:1]"), "rand(B, 1": "rand(1, 1"},
    ),
    Mistake(
        "top_is_left",
        "the window moves along the diagonal only",
        "top and left drawn apart",
        "Most places are never met.",
        "Draw twice.",
        {"columns = left": "columns = top"},
    ),
    Mistake(
        "last_place_never",
        "the last place is never drawn",
        "places 0 to 2 * padding, both included",
        "torch.randint leaves out its upper end.",
        "high = 2 * padding + 1.",
        _drawn("torch.randint(0, 2 * padding, (B, 1), **draw)"),
        also=(_drawn("torch.randint(0, max(1, 2 * padding), (B, 1), **draw)"),),
    ),
    Mistake(
        "first_place_never",
        "the first place is never drawn",
        "places 0 to 2 * padding, both included",
        "Places count from 0.",
        "low = 0.",
        _drawn("torch.randint(1, 2 * padding + 1, (B, 1), **draw)"),
    ),
    Mistake(
        "half_the_border",
        "places run from 0 to padding only",
        "places 0 to 2 * padding",
        "padding is added on both sides, so there are 2 * padding + 1 places.",
        "Draw up to twice the padding.",
        _drawn("torch.randint(0, padding + 1, (B, 1), **draw)"),
    ),
    Mistake(
        "rounded_draws",
        "the outermost places are drawn half as often",
        "all places equally often",
        "Rounding gives both ends half an interval.",
        "Use randint.",
        _drawn("(torch.rand(B, 1, **draw) * 2 * padding).round().long()"),
    ),
    families.GLOBAL_DRAWS.by(
        {'"generator": generator, ': ""},
        name="draws, or some of them, do not come from generator",
        also=(
            {"torch.rand(B, 1, **draw)": "torch.rand(B, 1)"},
            _drawn("torch.randint(0, 2 * padding + 1, (B, 1))"),
        ),
    ),
    families.OWN_GENERATOR.by({"draw =": "generator = torch.Generator().manual_seed(0)\ndraw ="}),
    Mistake(
        "generator_copied",
        "a copy of the generator decides",
        "every draw from the generator given",
        "The generator never moves on, so that every batch gets the same draws.",
        "Give the generator itself to the functions that draw.",
        {
            "draw =": "state, generator = generator.get_state(), torch.Generator()\ngenerator.set_state(state)\ndraw ="
        },
    ),
    Mistake(
        "every_second_mirrored",
        "every second image of a batch is mirrored",
        "a coin for every image",
        "Half of the images are mirrored, but always those in the same places.",
        "Draw the coins from the generator.",
        {"torch.rand(B, 1, **draw) < 0.5": "torch.arange(B)[:, None] % 2 == 1"},
    ),
    Mistake(
        "border_left_on",
        "the padded image comes back",
        "images of the old size",
        "The model expects H x W.",
        "Cut a window of H x W out of the padded image.",
        {
            "top + torch.arange(H": "0 * top + torch.arange(H + 2 * padding",
            "left + torch.arange(W": "0 * left + torch.arange(W + 2 * padding",
        },
    ),
    Mistake(
        "square_window",
        "the window is square",
        "a window of H x W",
        "It works on square images only.",
        "Take the columns from W.",
        {"torch.arange(W": "torch.arange(H"},
    ),
    Mistake(
        "float_result",
        "uint8 goes in, float comes out",
        "the dtype of the images",
        "The images of a whole data set stay uint8 to fit into memory.",
        "Index, which works for every dtype, or turn back at the end.",
        {
            "return picked": "if not picked.is_floating_point():\n    picked = picked.float()\nreturn picked"
        },
    ),
    Mistake(
        "modifies_input",
        "an input is modified in place",
        "images left as they were",
        "The next epoch would start from shifted images.",
        "Write into a new tensor.",
        {"return picked": "images.copy_(picked.permute(0, 3, 1, 2))\nreturn picked"},
        part="unchanged",
    ),
    families.GENERATOR_DEVICE.by({'"device": generator.device': '"device": images.device'}),
)


def by_loop(images, padding, generator):
    H, W = images.shape[2:]
    on_cpu = {"generator": generator, "device": generator.device}
    padded = F.pad(images.double(), [padding] * 4, mode="reflect").to(images.dtype)
    results = []
    for image in padded:
        top, left = torch.randint(2 * padding + 1, (2,), **on_cpu).tolist()
        image = image[:, top : top + H, left : left + W]
        if torch.rand((), **on_cpu).item() < 0.5:
            image = torch.flip(image, dims=[-1])
        results.append(image)
    return torch.stack(results)


def by_unfold(images, padding, generator):
    B, C, H, W = images.shape
    side = 2 * padding + 1
    pick = torch.randint(0, 2 * side * side, (B,), generator=generator).to(images.device)
    padded = F.pad(images.float(), (padding, padding, padding, padding), "reflect")
    if images.dtype == torch.float64:
        padded = F.pad(images, (padding, padding, padding, padding), "reflect")
    windows = padded.unfold(2, H, 1).unfold(3, W, 1)  # (B, C, side, side, H, W)
    chosen = windows[torch.arange(B), :, pick // 2 // side, pick // 2 % side]
    mirrored = (pick % 2).bool()[:, None, None, None]
    return torch.where(mirrored, chosen.flip(3), chosen).to(images.dtype)


def by_gather(images, padding, generator):
    B, C, H, W = images.shape
    out = images.clone()
    coins = torch.randint(2, (B,), generator=generator).bool().to(images.device)
    out[coins] = out[coins].flip(-1)

    def shifted(size):
        start = torch.randint(-padding, padding + 1, (B, 1), generator=generator)
        index = (start + torch.arange(size)).abs()
        return torch.minimum(index, 2 * (size - 1) - index).to(images.device)

    rows = shifted(H)[:, None, :, None].expand(B, C, H, W)
    columns = shifted(W)[:, None, None, :].expand(B, C, H, W)
    return out.gather(2, rows).gather(3, columns)


def by_concatenation(images, padding, generator):
    p, H, W = padding, images.shape[2], images.shape[3]
    x = images
    if p:
        x = torch.cat([x[:, :, 1 : p + 1].flip(2), x, x[:, :, -p - 1 : -1].flip(2)], dim=2)
        x = torch.cat([x[..., 1 : p + 1].flip(3), x, x[..., -p - 1 : -1].flip(3)], dim=3)
    out = torch.empty_like(images)
    for i in range(len(images)):
        dy = int(torch.randint(0, 2 * p + 1, (1,), generator=generator))
        dx = int(torch.randint(0, 2 * p + 1, (1,), generator=generator))
        window = x[i].roll((-dy, -dx), (1, 2))[:, :H, :W]
        heads = bool(torch.randint(0, 2, (1,), generator=generator))
        out[i] = window.flip(2) if heads else window
    return out


CHECKER = Checker(
    "random_crop_flip",
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
    special="padding == 0; len(images) == 1; images.shape[1] == 1; "
    "images.shape[2] == images.shape[3]",
    equivalent={
        families.DEFAULT: ("(2 * padding + 1, (B, 1), **draw)", "columns[:, None]"),
        "reflect begins with the absolute value": ("= padding -",),
        "the offset drawn is 2*padding minus the other, and both are as likely": (
            "- torch.arange",
        ),
        "the other side of a fair coin": (
            "(B, 1, **draw) >",
            "(B, 1, **draw) <= 0",
            "flip, columns, columns.flip",
        ),
        "an index may live on the CPU": ("torch.arange(B)", "B, device=generator"),
    },
    left_open={
        "nothing is said about the layout in memory": ("return picked.permute(0, 3, 1, 2)",),
    },
)
