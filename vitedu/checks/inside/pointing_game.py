import torch
import torch.nn.functional as F

from vitedu.checks import families
from vitedu.checks.kit import Case, Checker, Mistake, Observation, distinct, draw, normal

IMAGES = 60  # so that no two mistakes score alike by chance


def cases(g: torch.Generator) -> list[Case]:
    """Draw maps, and masks with an object of any size and stray pixels that touch a patch alone."""
    gh, gw, P = distinct(g, 3, 3, 6)  # P: the height of a patch, Q: its width

    def case(
        note="",
        part="other sizes",
        B=IMAGES,
        gh=gh,
        gw=gw,
        P=P,
        Q=None,
        ties=False,
        close=False,
        above=0.0,
        **rest,
    ):
        Q = Q or P
        maps = normal(g, B, gh, gw).flatten(1).softmax(dim=-1).unflatten(1, (gh, gw)) + above
        if close:  # to float32 all are alike
            maps = 0.5 + 1e-9 * normal(g, B, gh, gw, dtype=torch.float64)
        if ties:
            maps = (8 * maps).round().clamp(max=1) / 8
        rows, columns = torch.arange(gh * P)[None, :, None], torch.arange(gw * Q)
        top, left, tall, wide = torch.rand(4, B, 1, 1, generator=g)
        inside = (rows - gh * P * top).abs() < gh * P * tall / 3
        inside = inside & ((columns - gw * Q * left).abs() < gw * Q * wide / 3)
        masks = inside | (torch.rand(B, gh * P, gw * Q, generator=g) < 0.4 / (P * Q))
        if ties:  # the last of equals lies below every object
            masks[:, gh * P // 2 :] = False
        # most maps hit, so that no other rule scores alike by chance; a single map hits for sure, and no other patch does
        if B == 1:
            maps[:, 1, 0], masks[:] = 1, False
        hottest = maps.flatten(1).argmax(dim=1)
        hits = torch.rand(B, generator=g) < (0.8 if B > 1 else 1.0)
        masks[hits, (hottest // gw * P + P - 1)[hits], (hottest % gw * Q + Q - 1)[hits]] = True
        if B > 1:  # one image without any object
            masks[0] = False
        name = f"{B} maps of {gh} x {gw}, masks of {gh * P} x {gw * Q} px{note}"
        args = {"attention": maps, "masks": masks}
        return Case(name, args, part, number=True, rtol=1e-5, atol=1e-6, **rest)

    return [
        case(", some equally hot", "values", ties=True),
        case(", one hottest patch each", "clear maps", B=IMAGES + 1),
        case(gh=gh + draw(g, 3, 4), gw=2),
        case(gh=gw),
        case(", float64, nearly alike", close=True),
        case(", patches of one pixel, all values below 0", P=1, above=-1.0),
        case(", patches of 121 pixels", P=11),
        case(", patches that are not square", Q=P - 1),
        case(", patches that are not square", Q=P + 2),
        case(B=1, note=", one image"),
    ]


def _own_share(case: Case, seen: Observation) -> str:
    value = seen.arrays.get("output")
    return "another result" if value is None else f"a share of {float(value):.4g}"


TOUCHED = "cells.any(dim=4).any(dim=2)"
HOTTEST = "attention.flatten(1).argmax(dim=1, keepdim=True)"
MEAN = "touched.flatten(1).gather(1, hottest).double().mean().item()"
MISTAKES = (
    Mistake(
        "coldest",
        "the coldest patch points",
        "the patch with the largest value",
        "The map says where attention is, not where it is missing.",
        "Look at argmin.",
        {"argmax": "argmin"},
        evidence=_own_share,
    ),
    Mistake(
        "half_covered",
        "at least half of the patch must lie on the object",
        "one pixel of the object is enough",
        "The text asks whether the patch covers at least one pixel of the mask.",
        "Ask for any pixel of the patch.",
        {TOUCHED: "cells.double().mean(dim=(2, 4)) >= 0.5"},
        also=({TOUCHED: "cells.double().mean(dim=(2, 4)) > 0.5"},),
        evidence=_own_share,
    ),
    Mistake(
        "fully_covered",
        "the whole patch must lie on the object",
        "one pixel of the object is enough",
        "The text asks whether the patch covers at least one pixel of the mask.",
        "Ask for any pixel of the patch, not all.",
        {TOUCHED: "cells.all(dim=4).all(dim=2)"},
        evidence=_own_share,
    ),
    Mistake(
        "corner_pixel",
        "a single pixel of the patch is looked at",
        "any pixel of the patch",
        "The object may touch the patch elsewhere.",
        "Look at all P x P pixels.",
        {TOUCHED: "cells[:, :, 0, :, 0]"},
        also=({TOUCHED: "cells[:, :, H // gh // 2, :, W // gw // 2]"},),
        evidence=_own_share,
    ),
    Mistake(
        "count",
        "hits are counted, not averaged",
        "a share in [0, 1]",
        "Counts of two sets of images cannot be compared.",
        "Divide by the number of images.",
        {".mean()": ".sum()"},
        evidence=_own_share,
    ),
    families.PERCENT.by({".item()": ".item() * 100"}, evidence=_own_share),
    Mistake(
        "misses",
        "the misses are counted",
        "the share of images that hit",
        "A good map would score 0.",
        "Count where the mask is touched.",
        {TOUCHED: "~cells.any(dim=4).any(dim=2)"},
        evidence=_own_share,
    ),
    Mistake(
        "attention_on_object",
        "the attention on the object is added up",
        "a hit or a miss for each image",
        "That is a measure too, but not this game: here only the hottest patch counts.",
        "Take the hottest patch of every image.",
        {MEAN: "((attention * touched).sum(dim=(1, 2)) / attention.sum(dim=(1, 2))).mean().item()"},
        also=(
            {
                TOUCHED: "cells.double().mean(dim=(2, 4))",
                MEAN: "((attention * touched).sum(dim=(1, 2)) / attention.sum(dim=(1, 2))).mean().item()",
            },
        ),
        evidence=_own_share,
    ),
    Mistake(
        "one_for_all",
        "one hottest patch is taken for the whole batch",
        "the hottest patch of each image",
        "The images do not share their object's place.",
        "Take the argmax image by image.",
        {HOTTEST: "(attention.flatten().argmax() % (gh * gw)).expand(B, 1)"},
        evidence=_own_share,
    ),
    Mistake(
        "grid_turned",
        "the hottest patch is counted down the columns",
        "row by row, as the masks are cut",
        "Its number then belongs to another place of the grid.",
        "Flatten map and mask in one order.",
        {HOTTEST: "attention.transpose(1, 2).flatten(1).argmax(dim=1, keepdim=True)"},
        evidence=_own_share,
    ),
    Mistake(
        "row_is_column",
        "row and column of the hottest patch have changed places",
        "row = number // gw, column = number % gw",
        "It looks at the patch on the other side of the diagonal.",
        "Look at which of // and % gives the row.",
        {
            MEAN: "(touched.mT.flatten(1) if gh == gw else torch.nn.functional.pad(touched, (0, max(gh - gw, 0), 0, max(gw - gh, 0))).mT[:, :gh, :gw].flatten(1)).gather(1, hottest).double().mean().item()"
        },
        evidence=_own_share,
    ),
    Mistake(
        "divided_by_rows",
        "the number of the patch is divided by the number of rows",
        "row = number // gw, column = number % gw",
        "A row of the grid holds gw patches. It goes unnoticed on a square grid.",
        "Divide by the patches of a row.",
        {
            HOTTEST: "attention.flatten(1).argmax(dim=1)",
            MEAN: "F.pad(touched, (0, gh, 0, gh * gw))[torch.arange(B), hottest // gh, hottest % gh].double().mean().item()",
        },
        also=(
            {
                HOTTEST: "attention.flatten(1).argmax(dim=1)",
                MEAN: "touched[torch.arange(B), (hottest // gh).clamp(max=gh - 1), (hottest % gh).clamp(max=gw - 1)].double().mean().item()",
            },
        ),
        evidence=_own_share,
    ),
    Mistake(
        "last_of_equals",
        "of equally hot patches the last one counts",
        "the first of them, in reading order",
        "The rule must say which, or two people get two scores.",
        "argmax gives the first; look for >= or a sort.",
        {HOTTEST: "(gh * gw - 1 - attention.flatten(1).flip(1).argmax(dim=1, keepdim=True))"},
        evidence=_own_share,
    ),
    Mistake(
        "any_of_equals",
        "it is a hit if any of several equally hot patches hits",
        "the first of them, in reading order",
        "An even map would always hit.",
        "Take one patch for each image.",
        {
            MEAN: "(touched & (attention == attention.amax(dim=(1, 2), keepdim=True))).flatten(1).any(1).double().mean().item()"
        },
        evidence=_own_share,
    ),
    Mistake(
        "any_hot_patch",
        "it is a hit if any patch that is hotter than the mean hits",
        "the hottest patch alone",
        "A map with many hot patches would nearly always hit.",
        "Take the argmax of every image.",
        {
            MEAN: "(touched & (attention > attention.mean(dim=(1, 2), keepdim=True))).flatten(1).any(1).double().mean().item()"
        },
        evidence=_own_share,
    ),
    Mistake(
        "enlarged_smoothly",
        "the map is enlarged smoothly, and its hottest pixel points",
        "the hottest patch as it is",
        "Between two patches a smooth map has values that no patch has.",
        "Enlarge the mask's cells instead: ask which patches it touches.",
        {
            MEAN: "masks.flatten(1).gather(1, F.interpolate(attention[:, None], (H, W), mode='bilinear').flatten(1).argmax(dim=1, keepdim=True)).double().mean().item()"
        },
        evidence=_own_share,
    ),
    Mistake(
        "pixels_pooled",
        "the share of object pixels in the hottest patch is averaged",
        "a hit or a miss for each image",
        "A patch at the edge of the object counts as a hit like any other.",
        "Ask for any pixel, then average over images.",
        {TOUCHED: "cells.double().mean(dim=(2, 4))"},
        evidence=_own_share,
    ),
)


def by_loops(attention, masks):
    B, gh, gw = attention.shape
    P, Q, hits = masks.shape[1] // gh, masks.shape[2] // gw, 0
    for image, mask in zip(attention, masks, strict=True):
        row, column = divmod(int(image.argmax()), gw)
        hits += bool(mask[row * P : (row + 1) * P, column * Q : (column + 1) * Q].any())
    return hits / B


def by_pooling(attention, masks):
    P = [side // cells for side, cells in zip(masks.shape[1:], attention.shape[1:], strict=True)]
    touched = F.max_pool2d(masks[:, None].float(), P)[:, 0]
    hottest = attention.flatten(1).argmax(1)
    return touched.flatten(1)[torch.arange(len(touched), device=touched.device), hottest].mean()


def by_enlarging(attention, masks):
    hottest = attention.flatten(1).argmax(1)
    first = F.one_hot(hottest, attention[0].numel()).bool().view_as(attention)
    P, Q = masks.shape[1] // attention.shape[1], masks.shape[2] // attention.shape[2]
    pixels = first.repeat_interleave(P, 1).repeat_interleave(Q, 2)
    return (pixels & masks).flatten(1).any(1).float().mean().item()


def by_sorting(attention, masks):
    P = masks.shape[1] // attention.shape[1], masks.shape[2] // attention.shape[2]
    order = attention.flatten(1).sort(dim=1, descending=True, stable=True).indices[:, 0]
    cells = F.unfold(masks[:, None].double(), P, stride=P).sum(dim=1)  # (B, N)
    return (cells.gather(1, order[:, None]) > 0).double().mean()


def by_numpy(attention, masks):
    maps, objects = attention.detach().cpu().numpy(), masks.cpu().numpy()
    (B, gh, gw), (_, H, W) = maps.shape, objects.shape
    touched = objects.reshape(B, gh, H // gh, gw, W // gw).sum((2, 4)).reshape(B, -1) > 0
    return touched[range(B), maps.reshape(B, -1).argmax(1)].mean()


CHECKER = Checker(
    "pointing_game",
    proves={
        "values": "the share of images whose hottest patch, the first of equals, meets the object",
        "clear maps": "right where one patch is the hottest",
        "other sizes": "also for tall grids, square ones, patches of one pixel or that are not square, and one image",
    },
    equivalent={
        "shares of a few images need no more digits": ("float().mean",),
    },
    left_open={
        families.TENSOR_AS_NUMBER: (
            "return touched.flatten(1).gather(1, hottest).double().mean()",
        ),
    },
    special="len(masks) == 1; attention.shape[1] == attention.shape[2]; "
    "attention.shape[1:] == masks.shape[1:]",
)
