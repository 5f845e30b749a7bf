"""How many times as fast is a trained model in the forms that people use, and what do these cost?

Section 6 of notebook 08: ``vit_tiny_patch4_32`` with its shipped weights, nothing trained anew.
Each form is timed in turn with the model as it was shipped ("longhand"), in computing time; the
least of the rounds counts. Run it with ``OMP_NUM_THREADS=1``. Another seed means other rounds.
"""

import copy
from functools import partial
from typing import Any

from vitedu.bench.experiments import DATA, Arms, Profile, Results, cut, load
from vitedu.bench.experiments.fewer_tokens import NAME, PLANS, leaving, share_right
from vitedu.efficient import forward_with, quantised, with_int8_kernel
from vitedu.ground.stopwatch import least_milliseconds
from vitedu.pretrained import load_pretrained

NUMBERS: dict[str, Any] = {  # name -> makes a copy of a model that computes with them
    "float32": copy.deepcopy,
    "own int8": quantised,
    "int8 kernel": with_int8_kernel,
    "bfloat16": lambda model: copy.deepcopy(model).bfloat16(),
}
TEN = PLANS["10 in every block"]
MERGED, PRUNED = {"way": "merged", "plan": TEN}, {"way": "least attended", "plan": TEN}
ARMS: Arms = {
    "longhand": {},
    "fused": {"numbers": "float32"},
    **{name: {"numbers": name} for name in ("own int8", "int8 kernel", "bfloat16")},
    "merged": {"numbers": "float32", **MERGED},
    "pruned": {"numbers": "float32", **PRUNED},
    "int8 kernel, merged": {"numbers": "int8 kernel", **MERGED},
    "bfloat16, merged": {"numbers": "bfloat16", **MERGED},
    "bfloat16, pruned": {"numbers": "bfloat16", **PRUNED},
}


def run(arm: str, seed: int, profile: Profile) -> Results:
    """Measure one form on the first 1,000 test photographs; time it in batches of 50."""
    settings, count = ARMS[arm], cut(1_000, profile, 50)
    data, model = load(DATA, limit=10, held_out=count), load_pretrained(NAME).eval()
    shorten = leaving(settings["way"], settings["plan"]) if "plan" in settings else None
    form: Any = model
    if settings:
        copied = NUMBERS[settings["numbers"]](model)
        dtype = next(copied.norm.parameters()).dtype
        form = lambda images: forward_with(copied, images.to(dtype), shorten).float()  # noqa: E731
    some = data.normalize(data.test.images[:50])
    work = {"base": partial(model, some), "form": partial(form, some)}
    ms = least_milliseconds(work, cut(7, profile, 1))
    found: Results = {"images": count, "test_accuracy": share_right(form, data, count)}
    return found | {"times_as_fast": round(ms["base"] / ms["form"], 3)}
