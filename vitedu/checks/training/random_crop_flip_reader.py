"""Read random crops: recover the random draws from the pixels.

Role: given images and what ``random_crop_flip`` returned for them, find the top, left and mirroring
of each window. Then write down facts that hold for every right answer, whatever it drew. A right
answer fails by chance less than once in a billion checks.
"""

import itertools

import torch
import torch.nn.functional as F

from vitedu.checks.judging.compare import reader
from vitedu.checks.observing.case import Case
from vitedu.checks.observing.observation import Observation
from vitedu.checks.training.random_draws_reader import describe_variety, go_together, is_uneven

# what the border of the padded image holds, in words -> torch's name; the right one comes first
BORDERS = {
    "reflected": "reflect",
    "zeros": "constant",
    "the edge repeated": "replicate",
    "the opposite side": "circular",
}
MIRRORS = {"left to right": (-1,), "top to bottom": (-2,), "in both directions": (-2, -1)}
WINDOW = "every output is a window of its reflect-padded image, mirrored left to right or as it is"
DRAWS = (
    "top, left and a coin drawn for every image, apart from each other, each value equally often"
)


def find_draws(
    images: torch.Tensor, outputs: torch.Tensor, padding: int, border: str, mirror: str
) -> torch.Tensor:
    """Find (top, left, mirrored) of every output as a tensor (B, 3); -1 if no window fits."""
    H, W = images.shape[-2:]
    padded = F.pad(images.double(), [padding] * 4, mode=BORDERS[border])
    windows = padded.unfold(2, H, 1).unfold(3, W, 1)  # (B, C, tops, lefts, H, W)
    result = torch.full((len(images), 3), -1)
    for mirrored in (1, 0):  # 0 comes last: a symmetric window counts as not mirrored
        crops = outputs.flip(MIRRORS[mirror]) if mirrored else outputs
        fits = (windows == crops[:, :, None, None]).all(dim=(1, 4, 5))
        image, top, left = fits.nonzero().unbind(1)
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
    return found[0], f"{unread} of {len(images)} outputs are not such a window"


@reader("random_batches")
def read_random_images(case: Case, seen: Observation) -> None:
    """Write down what the windows are and, in the part "draws", how they were drawn."""
    outputs = seen.draws.get("all outputs")
    if outputs is None or outputs.shape != case.args["images"].shape:
        return
    draws, words = describe_windows(case, seen)
    if (draws == draws[0]).all() and (draws >= 0).all():
        words = "the same window of every image, so that nothing is drawn"
    seen.facts[WINDOW] = words
    if case.part != "draws" or (draws < 0).any():
        return
    calls, places = draws.split(case.sizes), 2 * case.args["padding"] + 1
    counts = {"top": places, "left": places, "coin": 2}
    own: dict[str, torch.Tensor] = {}  # what is drawn anew for every image
    wrong: list[str] = []
    for column, (name, count) in enumerate(counts.items()):
        values = draws[:, column]
        if words := describe_variety([call[:, column] for call in calls], name):
            wrong.append(words)
            continue
        own[name] = values
        if values.min() > 0 or values.max() < count - 1:
            wrong.append(f"{name}s from {int(values.min())} to {int(values.max())}")
        elif is_uneven(values, [1 / count] * count):
            wrong.append(f"some {name}s more often than others")
    wrong += [
        f"{one} and {other} go together"
        for one, other in itertools.combinations(own, 2)
        if go_together(own[one], own[other])
    ]
    seen.facts[DRAWS] = "; ".join(wrong) or "so it is"
