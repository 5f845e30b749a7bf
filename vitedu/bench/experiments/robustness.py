"""Which of two equally good networks suffers more from occlusion, noise, blur, shifts and others?

"Disturbed at equal accuracy" of notebook 06; networks and recipes of ``data_hunger``. A network
that starts higher falls further for that reason alone, so both are stopped early: the CNN when its
validation accuracy first reaches 55 %, the ViT when it is as good as the CNN of the same seed was.

"What disturbs whom?" there: the shipped networks meet squares that are black, of the photograph's
mean colour or exchanged, and the same squares moved. The ViT's patches have 4 px, so squares moved
by 0 or 4 px end where its patches end. Two controls go along: a ViT whose patches come from
convolutions, and the CNN with its batch norms taken from the disturbed photographs.
"""

import time
from collections.abc import Callable
from copy import deepcopy
from functools import cache
from itertools import permutations

import torch
from torch import Tensor, nn

from vitedu.bench.experiments import Arms, Profile, Results, cut, images
from vitedu.bench.experiments.data_hunger import NETWORKS, build, settings
from vitedu.fitting import fit
from vitedu.fitting.loop import predict
from vitedu.patches import patchify, unpatchify
from vitedu.pretrained import load_pretrained
from vitedu.vit_and_cnn import add_noise, blur, occlude, seeded_generator, shuffle_patches

ARMS: Arms = {name: {"network": name, "goal": 0.55} for name in NETWORKS}
SHIPPED = {
    "CNN": "cnn_tiny_32.cifar10",
    "ViT": "vit_tiny_patch4_32.cifar10",
    "conv stem": "vit_tiny_convstem_patch4_rope_32.cifar10",
}
KINDS: Arms = {f"{hidden} of 16 black": {"hidden": hidden} for hidden in (8, 4)}
KINDS |= {f"{n} of 16 in mean colour": {"hidden": n, "mean_colour": True} for n in (8, 4)}
KINDS |= {f"squares of {side} px exchanged": {"exchanged": side} for side in (16, 8, 4)}
CONTROLS: Arms = {"as they are": {}} | {
    f"{kind}, moved {moved} px": {**setting, "moved": moved}
    for moved in range(5)
    for kind, setting in KINDS.items()
    if moved % 2 == 0 or kind.endswith("black")
}
ARMS |= CONTROLS


def shuffle(images: Tensor, patch_size: int) -> Tensor:
    """Put the patches of all images in one other order."""
    order = torch.randperm((32 // patch_size) ** 2, generator=seeded_generator("shuffle"))
    return shuffle_patches(images, patch_size, order)


DISTURBANCES: dict[str, Callable[[Tensor], Tensor]] = {
    "as they are": lambda images: images,
    "2 of 16 patches black": lambda images: occlude(images, 2),
    "4 of 16 patches black": lambda images: occlude(images, 4),
    "8 of 16 patches black": lambda images: occlude(images, 8),
    "noise 0.1": lambda images: add_noise(images, 0.1),
    "noise 0.2": lambda images: add_noise(images, 0.2),
    "blurred, 3 x 3": blur,
    "shuffled, patches of 16 px": lambda images: shuffle(images, 16),
    "shuffled, patches of 8 px": lambda images: shuffle(images, 8),
    "rolled by 2 px": lambda images: images.roll((2, 2), dims=(-2, -1)),
    "half the contrast": lambda images: images // 2 + 64,  # a shift of domain
    "colours inverted": lambda images: 255 - images,  # a larger one
}


def exchange(images: Tensor, side: int) -> Tensor:
    """Give the squares of every image an order of its own; four squares, all 23 others in turn."""
    patches = patchify(images, side)  # (B, N, C*P*P)
    (B, N), (H, W) = patches.shape[:2], images.shape[-2:]
    order = torch.rand(B, N, generator=seeded_generator("exchange")).argsort(dim=1)
    if N == 4:
        order = torch.tensor([*permutations(range(4))][1:])[torch.arange(B) % 23]
    return unpatchify(patches.take_along_dim(order[..., None], dim=1), side, (H, W))


def disturb(
    images: Tensor, hidden: int = 0, mean_colour: bool = False, exchanged: int = 0, moved: int = 0
) -> Tensor:
    """Cover or exchange squares of every image, all of them moved down and to the right."""
    images = images.roll((-moved, -moved), dims=(-2, -1))
    if hidden:
        images = occlude(images, hidden, mean_colour=mean_colour)
    if exchanged:
        images = exchange(images, exchanged)
    return images.roll((moved, moved), dims=(-2, -1))


@cache
def shipped() -> dict[str, nn.Module]:
    """Load the networks of the package, and make the CNN whose norms are those of its batch."""
    networks: dict[str, nn.Module] = {n: load_pretrained(each) for n, each in SHIPPED.items()}
    networks["CNN, norms anew"] = anew = deepcopy(networks["CNN"])
    for layer in anew.modules():
        if isinstance(layer, nn.BatchNorm2d):
            layer.running_mean = layer.running_var = None
    return networks


def run_shipped(arm: str, seed: int, profile: Profile) -> Results:
    """Measure the shipped networks on 1,000 test images, others for each seed (0 to 9).

    Leads over the CNN are in points, with the standard error of the paired difference.
    """
    data, count = images(profile, 10, quick=(10, 500)), cut(1_000, profile, 50)
    split = data.test.images.split(count)[seed], data.test.labels.split(count)[seed]
    right, results = {}, {}
    for name, model in shipped().items():
        said = predict(model, disturb(split[0], **CONTROLS[arm]), data, torch.bfloat16).argmax(1)
        right[name] = (said == split[1]).float()
        results[name] = round(right[name].mean().item(), 4)
    for name in ("ViT", "conv stem"):
        lead = 100 * (right[name] - right["CNN"])
        results[f"lead of {name}"] = round(lead.mean().item(), 2)
        results[f"error of {name}"] = round(lead.std().item() / count**0.5, 2)
    return results | {"images": count, "precision": "bfloat16"}


def run(arm: str, seed: int, profile: Profile) -> Results:
    """Train one network to the goal and measure it on test images under every disturbance."""
    if arm in CONTROLS:
        return run_shipped(arm, seed, profile)
    data, started = images(profile, 20_000, quick=(400, 200)), time.process_time()
    steps = {"steps": cut(5_000, profile, 6), "images": len(data.train)}
    goal = ARMS[arm]["goal"]

    def stop_at_goal(history):
        if history.rows[-1].validation_accuracy >= goal:
            raise KeyboardInterrupt  # how a run is ended: fit keeps what was learned

    for network in NETWORKS[: 1 + NETWORKS.index(arm)]:  # for the ViT, the CNN before it
        model, config = build(network, seed), settings(network, seed=seed, **steps)
        rows = fit(model, data, config, show_progress=False, on_epoch=stop_at_goal).rows
        goal = rows[-1].validation_accuracy
    results: Results = {"validation_accuracy": goal, "epochs": len(rows)}
    for name, disturb in DISTURBANCES.items():
        answers = predict(model, disturb(data.test.images), data).argmax(dim=1)
        results[name] = round((answers == data.test.labels).float().mean().item(), 4)
    return results | {"cpu_seconds": round(time.process_time() - started, 1)}
