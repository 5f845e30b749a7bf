"""Read random crops: recover the random draws from the pixels.

Role: given images and what ``random_crop_flip`` returned for them, find the top, left and mirroring
of each window. Then write down facts that hold for every right answer, whatever it drew. A right
answer fails by chance less than once in a billion checks.
"""

import itertools
import math

import torch
import torch.nn.functional as F

from vitedu.checks.judging.compare import reader
from vitedu.checks.observing.case import Case
from vitedu.checks.observing.observation import Observation
from vitedu.checks.training.random_draws_reader import CHANCE, chi_square_tail

# what the border of the padded image holds, in words -> torch's name; the right one comes first
BORDERS = {
    "reflected": "reflect",
    "zeros": "constant",
    "the edge repeated": "replicate",
    "the opposite side": "circular",
}
MIRRORS = {"left to right": (-1,), "top to bottom": (-2,), "in both directions": (-2, -1)}
WINDOW = "every output is a window of its reflect-padded image, mirrored left to right or as it is"
DRAW_PER_IMAGE = "top, left and coin drawn anew for every image"
PLACES = "every place from 0 to {} met equally often, down and across"
COIN = "a fair coin"
INDEPENDENCE = "top, left and coin drawn apart from each other"


def fingerprints(images: torch.Tensor, size: tuple[int, ...], offset: float) -> torch.Tensor:
    """Compute one number for every window (H, W) of images (B, C, H', W').

    The number is a fixed random mixture of what the window's pixels are above ``offset``; a 0, as
    in a black border, counts as -1. If these are multiples of 1/256 below 256, it is exact whatever
    the order of summation. Equal windows then have equal numbers. Two different windows have the
    same number with probability 2**-35.

    Returns:
        Tensor (B, H'-H+1, W'-W+1) of dtype float64.
    """
    shape = (1, images.shape[1], *size)
    weights = torch.randint(2**35, shape, generator=torch.Generator().manual_seed(0))
    above = torch.where(images == 0, -1.0, images.double() - offset)
    return F.conv2d(above, weights.double()).squeeze(1)


def find_draws(
    images: torch.Tensor, outputs: torch.Tensor, padding: int, border: str, mirror: str
) -> torch.Tensor:
    """Find (top, left, mirrored) of every output as a tensor (B, 3); -1 if no window fits."""
    size = tuple(images.shape[-2:])
    offset = float(images.min())
    padded = F.pad(images.double(), [padding] * 4, mode=BORDERS[border])
    windows = fingerprints(padded, size, offset)  # (B, tops, lefts)
    result = torch.full((len(images), 3), -1)
    for mirrored in (1, 0):  # 0 comes last: a symmetric window counts as not mirrored
        crops = outputs.flip(MIRRORS[mirror]) if mirrored else outputs
        image, top, left = (windows == fingerprints(crops, size, offset)).nonzero().unbind(1)
        result[image] = torch.stack([top, left, torch.full_like(top, mirrored)], dim=1)
    return result


def describe_windows(case: Case, seen: Observation) -> tuple[torch.Tensor, str]:
    """Find the draws of all outputs of a case, and describe the windows.

    Returns:
        The draws (B, 3), and "so it is" or what is wrong with the windows, in words.
    """
    images, padding = case.args["images"], case.args["padding"]
    outputs = seen.draws["all outputs"].to(images.dtype)
    found: list[torch.Tensor] = []
    for border, mirror in itertools.product(BORDERS, MIRRORS):
        draws = find_draws(images, outputs, padding, border, mirror)
        if (draws >= 0).all():
            words = [f"the border holds {border}"] * (border != "reflected")
            words += [f"images are mirrored {mirror}"] * (mirror != "left to right")
            return draws, " and ".join(words) or "so it is"
        found.append(draws)
    unread = int((found[0][:, 0] < 0).sum())
    return found[0], f"{unread} of {len(images)} outputs are no such window"


@reader("random_images")
def read_random_images(case: Case, seen: Observation) -> None:
    """Write down what the windows are and, with ``extra["draws"]``, how they were drawn."""
    outputs = seen.draws.get("all outputs")
    if outputs is None or outputs.shape != case.args["images"].shape:
        return
    draws, words = describe_windows(case, seen)
    seen.facts[WINDOW] = _describe_constant(draws, case.args["padding"]) or words
    if not case.extra.get("draws") or (draws < 0).any():
        return
    padding = case.args["padding"]
    calls = draws.split(list(case.extra["sizes"]))
    kinds = [
        _describe_variety([call[:, column] for call in calls], name)
        for column, name in enumerate(("top", "left", "coin"))
    ]
    seen.facts[DRAW_PER_IMAGE] = "; ".join(kind for kind in kinds if kind) or "anew"
    seen.facts[PLACES.format(2 * padding)] = _describe_places(draws, 2 * padding + 1, kinds)
    heads, count = int(draws[:, 2].sum()), len(draws)
    few = math.floor(count / 2 - math.sqrt(count * math.log(1 / CHANCE) / 2))  # Hoeffding's bound
    coin = "heads too often" if heads > count / 2 else "heads too seldom"
    coin = "fair" if few <= heads <= count - few else coin
    seen.facts[COIN] = "no coin of its own" if kinds[2] else coin
    seen.facts[INDEPENDENCE] = _describe_dependence(draws, kinds)


def _describe_constant(draws: torch.Tensor, padding: int) -> str:
    """Say so if all outputs are the same window, which is no chance; "" otherwise."""
    windows = 2 * (2 * padding + 1) ** 2
    luck = -(len(draws) - 1) * math.log(windows)
    if luck < math.log(CHANCE) and (draws >= 0).all() and (draws == draws[0]).all():
        return "the same window of every image, so that nothing is drawn"
    return ""


def _describe_variety(calls: list[torch.Tensor], name: str) -> str:
    """Say so if a draw is the same for several images; ``calls``: the draws (B,) of each batch."""
    if any(len(call.unique()) > 1 for call in calls):
        short = torch.stack([call for call in calls if len(call) == len(calls[-1])])
        repeats = short.numel() - short.shape[1]  # draws that could differ from the first batch
        same = repeats > 40 and bool((short == short[0]).all())
        if name == "coin" and repeats > 40 and not same and len(short.sum(dim=1).unique()) == 1:
            return "as many images mirrored in every batch"
        return f"the same {name}s in every batch" if same else ""
    values = torch.cat(calls).unique()
    if len(values) > 1:
        return f"one {name} for a whole batch"
    if name == "coin":
        return "every image is mirrored" if int(values) else "no image is mirrored"
    return f"the {name} is always {int(values)}"


def _describe_places(draws: torch.Tensor, count: int, kinds: list[str]) -> str:
    """Describe which tops and lefts occur, and whether all are equally frequent (chi-square)."""
    words, statistic, freedom = [], 0.0, 0
    for column, name in enumerate(("tops", "lefts")):
        if kinds[column]:
            continue
        values = draws[:, column]
        words.append(f"{name} from {int(values.min())} to {int(values.max())}")
        expected = len(values) / count
        statistic += float(((values.bincount(minlength=count) - expected) ** 2).sum() / expected)
        freedom += count - 1
    if not words:
        return "no places of their own"
    uneven = freedom and chi_square_tail(statistic, freedom) < CHANCE
    return ", ".join(words) + (", some of them more often than others" if uneven else "")


def _describe_dependence(draws: torch.Tensor, kinds: list[str]) -> str:
    """Name the pairs of draws that are not independent (chi-square)."""
    names, together = ("top", "left", "coin"), []
    for a, b in ((0, 1), (0, 2), (1, 2)):
        if kinds[a] or kinds[b]:
            continue
        one, other = (
            F.one_hot(draws[:, column].unique(return_inverse=True)[1]).double() for column in (a, b)
        )
        table = one.T @ other  # how often each pair of values occurs
        freedom = (len(table) - 1) * (len(table.T) - 1)
        expected = table.sum(1, keepdim=True) * table.sum(0) / table.sum()
        statistic = float(((table - expected) ** 2 / expected).sum())
        if chi_square_tail(statistic, freedom) < CHANCE:
            together.append(f"{names[a]} and {names[b]} go together")
    return "; ".join(together) or "apart"
