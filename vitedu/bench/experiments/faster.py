"""How many times as fast is a trained model in the forms that people use, and what do these cost?

Section 6 of notebook 08: ``vit_tiny_patch4_32`` with its shipped weights, nothing trained anew.
Each form is timed in turn with the model as it was shipped ("longhand"), in computing time; the
least of the rounds counts. Run it with ``OMP_NUM_THREADS=1``. Another seed means other rounds.
Accuracy is that on the first 1,000 test photographs.
"""

import copy
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from torch import nn

from vitedu.bench.experiments import DATA, Arms, Profile, Results, cut, load
from vitedu.bench.experiments.fewer_tokens import NAME, PLANS, leaving
from vitedu.efficient import forward_with, quantised, with_int8_kernel
from vitedu.pretrained import load_pretrained
from vitedu.stopwatch import least_milliseconds

NUMBERS: dict[str, Any] = {  # name -> makes a copy of a model that computes with them
    "float32": copy.deepcopy,
    "own int8": quantised,
    "int8 kernel": with_int8_kernel,
    "bfloat16": lambda model: copy.deepcopy(model).bfloat16(),
}
TEN = PLANS["10 in every block"]
ARMS: Arms = {
    "longhand": {},
    "fused": {"numbers": "float32"},
    **{name: {"numbers": name} for name in ("own int8", "int8 kernel", "bfloat16")},
    "merged": {"numbers": "float32", "way": "merged", "plan": TEN},
    "pruned": {"numbers": "float32", "way": "least attended", "plan": TEN},
    "int8 kernel, merged": {"numbers": "int8 kernel", "way": "merged", "plan": TEN},
    "bfloat16, merged": {"numbers": "bfloat16", "way": "merged", "plan": TEN},
    "bfloat16, pruned": {"numbers": "bfloat16", "way": "least attended", "plan": TEN},
    "onnxruntime": {"runs_in": "onnxruntime"},
}


def in_onnxruntime(model: nn.Module, image_size: int = 32):
    """Write a model to an ONNX file, and give a function (images -> logits) that runs the file.

    It needs the packages onnx, onnxscript and onnxruntime.
    """
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    with TemporaryDirectory() as folder:
        path, batch = Path(folder) / "vit.onnx", torch.export.Dim("batch")
        images = torch.zeros(2, 3, image_size, image_size)
        torch.onnx.export(
            model, (images,), path, dynamo=True, dynamic_shapes=({0: batch},), verbose=False
        )
        session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    name = session.get_inputs()[0].name
    return lambda images: torch.from_numpy(session.run(None, {name: images.numpy()})[0])


def in_form(model: nn.Module, numbers: str, shorten=None):
    """Give a function (images -> logits): the model with these numbers, and fused attention."""
    copied = NUMBERS[numbers](model)
    dtype = torch.bfloat16 if numbers == "bfloat16" else torch.float32
    return lambda images: forward_with(copied, images.to(dtype), shorten).float()


@torch.no_grad()
def run(arm: str, seed: int, profile: Profile) -> Results:
    """Measure one form; the seed changes nothing but the rounds."""
    count, settings = cut(1_000, profile, 50), dict(ARMS[arm])
    data, model = load(DATA, limit=10, held_out=count), load_pretrained(NAME).eval()
    shorten = leaving(settings.pop("way"), settings.pop("plan")) if "plan" in settings else None
    if "runs_in" in settings:
        form = in_onnxruntime(model)
    else:
        form = in_form(model, settings["numbers"], shorten) if settings else model
    images = data.normalize(data.test.images[:count])
    some, rounds = images[:50].clone(), cut(7, profile, 1)
    ms = least_milliseconds({"base": partial(model, some), "form": partial(form, some)}, rounds)
    said = torch.cat([form(part).argmax(dim=-1) for part in images.split(250)])
    right = (said == data.test.labels[:count]).sum().item()
    return {
        "images": count,
        "test_accuracy": right / count,
        "times_as_fast": round(ms["base"] / ms["form"], 3),
    }
