"""A model as an ONNX file, which other programs run without torch: ``vitedu export --onnx``.

Role: write the file, run it, compare. Not here: where the model comes from.

Reference: https://docs.pytorch.org/docs/stable/onnx_export.html, the exporter.
"""

import logging
import warnings
from importlib.util import find_spec
from pathlib import Path

import torch
from torch import nn

from vitedu.ground.files import replace_file

NEEDED = ("onnx", "onnxscript", "onnxruntime")
TOLERANCE = 1e-5  # between the outputs, as a share of the largest where that is above 1


def require() -> None:
    """Raise a ValueError that says how to get what is not installed."""
    if missing := [name for name in NEEDED if find_spec(name) is None]:
        raise ValueError(f"ONNX needs {', '.join(missing)}: pip install 'vitedu[onnx]'.")


def export_onnx(model: nn.Module, path: str | Path, image_size: int, in_channels: int = 3) -> float:
    """Write a model as one ONNX file for batches of any size, if it computes the same there.

    Args:
        model: maps float images (B, C, S, S) to (B, K); its mode becomes eval.
        path: replaced if it is there.
        image_size, in_channels: S and C.

    Returns:
        The largest difference between the outputs of torch and of onnxruntime, for four images.

    Raises:
        ValueError: a library is missing, or the outputs differ; nothing is written then.
    """
    require()
    import onnxruntime

    path, model = Path(path), model.eval()
    generator = torch.Generator().manual_seed(0)
    images = torch.randn(4, in_channels, image_size, image_size, generator=generator)
    logging.getLogger("torch.onnx").setLevel(logging.ERROR)
    path.parent.mkdir(parents=True, exist_ok=True)
    with replace_file(path) as new, torch.inference_mode(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the exporter, about its own future
        expected = model(images)
        torch.onnx.export(
            model,
            (images[:2],),
            new,
            dynamo=True,
            verbose=False,
            external_data=False,
            input_names=["images"],
            output_names=["logits"],
            dynamic_shapes=({0: torch.export.Dim("batch")},),
        )
        session = onnxruntime.InferenceSession(new, providers=["CPUExecutionProvider"])
        found = torch.from_numpy(session.run(None, {"images": images.numpy()})[0])
        difference = (found - expected).abs().max().item()
        if not difference <= TOLERANCE * max(1, expected.abs().max().item()):
            raise ValueError(f"{path} is not written: outputs differ by {difference:.1e}.")
    return difference
