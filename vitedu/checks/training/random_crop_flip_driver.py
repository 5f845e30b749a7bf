"""The driver of ``random_crop_flip``: random images, batch after batch.

Imports the standard library and torch only, for the grader's worker.
"""

import torch

from vitedu.checks.case import Case, build_args
from vitedu.checks.drivers import apply, changed_args, driver
from vitedu.checks.observation import Observation, keep


@driver
def random_images(answer, case: Case, seen: Observation) -> None:
    """Call a random function on one batch after another with the same generator; store all outputs.

    ``extra["sizes"]`` splits the case's images into batches.
    """
    args = build_args(case)
    kept = []
    for images in args["images"].split(list(case.extra["sizes"])):
        result = apply(answer, case, {**args, "images": images})
        name = f"output of {len(images)} image(s)"
        keep(seen, name, result, drawn=True)
        if name not in seen.draws or seen.draws[name].shape != images.shape:
            break
        kept.append(result.detach())
    else:
        keep(seen, "all outputs", torch.cat(kept), drawn=True)
    seen.modified = changed_args(case, args)
