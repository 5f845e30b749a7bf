"""Published weights in our model: by name, through the libraries that publish them.

Role: ``load_pretrained`` (a model by name), ``name_images`` (``vitedu predict --pretrained``). Not
here: how another library's model becomes ours (``conversions``); names, preprocessing and classes
(``published``); our own checkpoints (``vitedu.fitting.checkpoints``).

Nothing that is read here can execute code: downloads and files alike are opened as tensors only.
"""

import math
import pickle
from dataclasses import replace
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import nn

from vitedu.hardware import pick_device
from vitedu.pretrained.conversions import from_timm, from_torchvision
from vitedu.pretrained.published import library_of, preprocessing, timm_entry, torchvision_entry
from vitedu.transfer import interpolate_positions
from vitedu.vit import VisionTransformer


def load_pretrained(
    name: str,
    *,
    source: str = "auto",
    image_size: int | None = None,
    num_classes: int | None = None,
    weights: str | Path | None = None,
) -> VisionTransformer:
    """Build our model with weights that others have trained.

    Args:
        name: a name of torchvision or timm, with or without that of the weights behind a dot.
        source: ``"torchvision"``, ``"timm"`` (which must be installed), or ``"auto"``: whichever of
            the two, in this order, knows the name.
        image_size: pixels; positions are interpolated to it as timm does. Default: the weights'.
        num_classes: K; another number than the weights have makes a new head of zeros, to be
            trained. Weights without a head (DINOv2) give features (B, D) where this is left out.
        weights: a file in the library's own names (``.safetensors``, or a torch file of tensors
            only) instead of a download; image size and classes are read from it.

    Returns:
        The model in eval mode, in float32 on the CPU. Its logits are those of the library's model.

    Raises:
        ValueError: a name, file or model that cannot be used; the message says why.
        OSError: the download failed; the message names the cache folder and what to do.

    Example:
        >>> model = load_pretrained("vit_b_16", num_classes=5)  # doctest: +SKIP
        >>> model.config.image_size, model.config.num_classes  # doctest: +SKIP
        (224, 5)

    Reference: Dosovitskiy et al. 2020, section 3.2: another resolution, a head of zeros.
    """
    tensors = None if weights is None else read_weights(weights)
    if library_of(name, source) == "torchvision":
        model = _load_torchvision(name, tensors)
    else:
        model = _load_timm(name, tensors)
    model = model.float()  # files may hold half precision, which not every device interpolates
    if image_size not in (None, model.config.image_size):
        config = replace(model.config, image_size=image_size)  # refuses what patches do not divide
        positions = interpolate_positions(
            model.pos_embed.detach(), config.grid_size, config.num_prefix_tokens, antialias=True
        )
        model.config, model.pos_embed = config, nn.Parameter(positions)
    has_head = isinstance(model.head, nn.Linear)
    if num_classes is not None and not (has_head and num_classes == model.config.num_classes):
        model.config = replace(model.config, num_classes=num_classes)
        model.head = _new_head(model.config.embed_dim, num_classes)
    return model.eval()


def read_weights(path: str | Path) -> dict[str, torch.Tensor]:
    """Read a file of tensors; code inside it is refused, never run.

    Args:
        path: ``.safetensors``, or a file of ``torch.save``, where the tensors may lie under
            ``"model"`` or ``"state_dict"``.

    Returns:
        Tensors by name, on the CPU.

    Raises:
        ValueError: no such file, not readable, or it holds more than tensors.
    """
    path = Path(path)
    if not path.is_file():
        raise ValueError(f"there is no weights file at {path}.")
    try:
        if path.suffix == ".safetensors":
            return load_file(path)
        content = torch.load(path, map_location="cpu", weights_only=True)
    except (OSError, SafetensorError) as error:
        raise ValueError(f"{path} cannot be read: {error}.") from None
    except Exception as error:  # damaged files and such with code fail in many ways
        raise ValueError(
            f"{path} is no file of tensors, or holds code, which is not run; where you trust it, "
            f"load it yourself and save its state_dict as .safetensors. ({_first_line(error)})"
        ) from None
    for key in ("model", "state_dict"):
        if isinstance(content, dict) and isinstance(content.get(key), dict):
            content = content[key]
    if not isinstance(content, dict) or not all(
        isinstance(tensor, torch.Tensor) for tensor in content.values()
    ):
        raise ValueError(f"{path} must hold tensors by name, a state_dict, and nothing else.")
    return content


def name_images(
    name: str,
    images: list[Path],
    *,
    weights: Path | None = None,
    top: int = 3,
    device: str = "auto",
) -> int:
    """Run ``vitedu predict --pretrained``: name the most probable classes of each image file."""
    from PIL import Image

    if top < 1:
        raise ValueError(f"top must be at least 1 (got {top}).")
    for path in images:
        if not path.is_file():  # before the download, which may take long
            raise ValueError(f"there is no image at {path}.")
    where = pick_device() if device == "auto" else torch.device(device)
    model = load_pretrained(name, weights=weights).to(where)
    prepare = preprocessing(name, image_size=model.config.image_size)
    names = list(prepare.class_names or ())
    if len(names) != model.config.num_classes:  # a file with classes of its own
        names = [f"class {k}" for k in range(model.config.num_classes)]
    for path in images:
        try:
            with Image.open(path) as image:
                pixels = prepare(image)
        except Exception as error:  # decoders fail in many ways on a damaged file
            raise ValueError(f"{path} cannot be read as an image: {error}.") from None
        with torch.inference_mode():
            row = model(pixels[None].to(where))[0].softmax(dim=-1)  # (1, 3, S, S) -> (K,)
        values, classes = row.topk(min(top, len(row)))
        pairs = zip(values.tolist(), classes.tolist(), strict=True)
        print(f"{path}: {', '.join(f'{names[k]} {p:.1%}' for p, k in pairs)}")
    return 0


def _new_head(embed_dim: int, num_classes: int) -> nn.Linear:
    """Make a head of zeros: every class is as probable as any other until it has been trained."""
    head = nn.utils.skip_init(nn.Linear, embed_dim, num_classes)
    nn.init.zeros_(head.weight)
    nn.init.zeros_(head.bias)
    return head


def _load_torchvision(
    name: str, tensors: dict[str, torch.Tensor] | None = None
) -> VisionTransformer:
    """Build torchvision's model around its weights, or around a file's, and convert it."""
    from torchvision.models import get_model

    entry = torchvision_entry(name)
    if tensors is None:
        try:
            tensors = entry.get_state_dict(progress=True, check_hash=True, weights_only=True)
        except (OSError, RuntimeError, pickle.UnpicklingError) as error:  # no network; damaged
            raise _download_error(
                name, entry.url, f"{torch.hub.get_dir()}/checkpoints", error
            ) from None
    sizes = _sizes(tensors, "conv_proj.weight", "encoder.pos_embedding", "heads.head.weight")
    with torch.device("meta"):  # its random numbers would take seconds, and all are replaced
        theirs = get_model(
            name.partition(".")[0], weights=None, image_size=sizes[0], num_classes=sizes[1]
        )
    return from_torchvision(_fill(theirs, tensors, name))


def _load_timm(name: str, tensors: dict[str, torch.Tensor] | None) -> VisionTransformer:
    """Build timm's model around its weights, or around a file's, and convert it."""
    import timm

    entry = timm_entry(name)
    K = entry.num_classes or 0  # 0: features, no head
    if tensors is not None:
        head = "head.weight" if "head.weight" in tensors else "norm.weight"
        size, width = _sizes(tensors, "patch_embed.proj.weight", "pos_embed", head)
        K = width if head == "head.weight" else 0
    elif not entry.has_weights:
        raise ValueError(f"timm publishes no weights for {name!r}; give a file with weights=path.")
    from_timm(
        timm.create_model(name, num_classes=K)
    )  # what is refused is refused before the download
    if tensors is not None:
        theirs = timm.create_model(name, img_size=size, num_classes=K)
        return from_timm(_fill(theirs, tensors, name))
    try:
        theirs = timm.create_model(name, pretrained=True, num_classes=K)
    except Exception as error:  # the hub's client has errors of its own for everything
        from huggingface_hub.constants import HF_HUB_CACHE

        raise _download_error(
            name, f"https://huggingface.co/{entry.hf_hub_id}", HF_HUB_CACHE, error
        ) from error
    return from_timm(theirs)


def _sizes(
    tensors: dict[str, torch.Tensor], patches: str, positions: str, head: str
) -> tuple[int, int]:
    """Read image size and number of classes from the shapes of a state_dict."""
    missing = [name for name in (patches, positions, head) if name not in tensors]
    if missing:
        raise ValueError(
            f"the weights have no {', '.join(missing)}; they must have the names that the library "
            f"gives them (found {', '.join(sorted(tensors)[:3]) or 'nothing'} ...)."
        )
    side = math.isqrt(tensors[positions].shape[1])  # also where a class row makes it side**2 + 1
    return side * tensors[patches].shape[-1], tensors[head].shape[0]


def _fill(theirs: nn.Module, tensors: dict[str, torch.Tensor], name: str) -> nn.Module:
    """Put tensors into a library's model."""
    try:
        theirs.load_state_dict(tensors, assign=True)
    except RuntimeError as error:
        raise ValueError(f"the weights do not fit {name!r}. {error}") from None
    return theirs


def _download_error(name: str, address: str, folder: str, error: Exception) -> OSError:
    """Say what can be done where the network is missing."""
    return OSError(
        f"the weights of {name!r} could not be fetched from {address} ({_first_line(error)}). "
        "Without a network, fetch them elsewhere and give the file (weights=path, or --weights), "
        f"or copy the cache folder {folder} from a machine that has them."
    )


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
