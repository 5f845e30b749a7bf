"""Which of two equally good networks suffers more from occlusion, noise, blur, shifts and others?

"Disturbed at equal accuracy" of notebook 06; networks and recipes of ``data_hunger``. A network
that starts higher falls further for that reason alone, so both are stopped early: the CNN when its
validation accuracy first reaches 55 %, the ViT when it is as good as the CNN of the same seed was.
"""

import time
from collections.abc import Callable

import torch

from vitedu.bench.experiments import DATA, Arms, Profile, Results, cut, images
from vitedu.bench.experiments.data_hunger import NETWORKS, build, settings
from vitedu.data.loading import of_data
from vitedu.fitting import fit
from vitedu.fitting.loop import predict
from vitedu.vit_and_cnn import add_noise, blur, occlude, seeded_generator, shuffle_patches

GOALS = {"cifar10": 0.55}  # by the data
ARMS: Arms = {name: {"network": name, "goal": GOALS[DATA]} for name in NETWORKS}


def shuffle(images: torch.Tensor, patch_size: int) -> torch.Tensor:
    """Put the patches of all images in one other order."""
    order = torch.randperm((32 // patch_size) ** 2, generator=seeded_generator("shuffle"))
    return shuffle_patches(images, patch_size, order)


DISTURBANCES: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
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


def run(arm: str, seed: int, profile: Profile) -> Results:
    """Train one network to the goal and measure it on test images under every disturbance."""
    data, started = images(profile, 20_000, quick=(400, 200)), time.process_time()
    steps = {"steps": cut(5_000, profile, 6), "images": len(data.train)}
    goal = of_data(GOALS, data, "the goal of the CNN was chosen", "Choose one; add it to GOALS.")

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
