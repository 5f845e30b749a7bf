"""The driver of ``random_crop_flip``: random images, batch after batch.

Imports the standard library and torch only, for the grader's worker.
"""

import torch

from vitedu.checks.case import Case, build_args
from vitedu.checks.drivers import call_answer, driver, find_modified_args
from vitedu.checks.observation import Observation, store_output


@driver
def random_images(answer, case: Case, seen: Observation) -> None:
    """Call a random function on one batch after another with the same generator; store all outputs.

    ``extra["sizes"]`` splits the case's images into batches.
    """
    args = build_args(case)
    outputs = []
    for images in args["images"].split(list(case.extra["sizes"])):
        result = call_answer(answer, case, {**args, "images": images})
        name = f"output of {len(images)} image(s)"
        store_output(seen, name, result, is_random=True)
        if name not in seen.draws or seen.draws[name].shape != images.shape:
            break
        outputs.append(result.detach())
    else:
        store_output(seen, "all outputs", torch.cat(outputs), is_random=True)
    seen.modified = find_modified_args(case, args)
