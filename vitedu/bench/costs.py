"""What each mistake costs: known mistakes, made one at a time in a trained model, and counted.

Role: ``mistake_costs``. The mistakes are those of the banks, and a few of ``costs.toml`` that no
bank has; a broken part is the reference with one mistake, as in a challenge. Not here: the figure
(``vitedu.plots.costs``).

The model is put together from the references' text, so that the broken part takes the right one's
place for all who call it, and so that every part runs: patches are cut by ``patchify`` and not by a
convolution, norms call ``layer_norm``, the MLP calls ``gelu``. The given model lends its weights.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from vitedu import exercises
from vitedu.checks.writing.checker import find_checker
from vitedu.checks.writing.mistake_files import read_words, words_path
from vitedu.checks.writing.mistakes import Edits, Mistake, apply_edits, bare_source, run_source
from vitedu.data import Data, load_data
from vitedu.extras.options import with_options
from vitedu.fitting.evaluating import logits_of
from vitedu.ground.progressbar import ProgressBar
from vitedu.ground.words import read
from vitedu.pretrained.reading import first_line
from vitedu.vit import VisionTransformer, ViTConfig

PARTS = tuple(exercise.id for exercise in exercises.EXERCISES if exercise.part == "model")
GLUE = """
class LayerNorm(nn.LayerNorm):
    def forward(self, x):
        return layer_norm(x, self.weight, self.bias, self.eps)

class GELU(nn.Module):
    def forward(self, x):
        return gelu(x)
"""
# in the right parts, so that all parts run: text of a reference -> what stands there instead
CALLS = {
    "self.proj(images).flatten(2).transpose(1, 2)": (
        "patchify(images, P) @ self.proj.weight.flatten(1).T + self.proj.bias"
    ),
    "nn.LayerNorm(": "LayerNorm(",
    "BlockWithoutBias": (
        "partial(EncoderBlock, attention=partial(MultiHeadAttention, qkv_bias=False))"
    ),
}


@dataclass(frozen=True)
class Cost:
    """What one mistake does to a trained model."""

    exercise: str
    mistake: str  # its id in the bank of the exercise
    name: str  # as a verdict says it: "no positions are added"
    accuracy: float | None  # in [0, 1]; None if the model stops with an error
    error: str  # why it stops, or ""
    right: float  # the accuracy without the mistake
    guessing: float  # one of the number of classes
    images: int  # how many were named


def mistake_costs(
    model: torch.nn.Module,
    chapter: str,
    data: Data | None = None,
    *,
    count: int = 1_000,
    only: Sequence[str] = (),
) -> list[Cost]:
    """Make mistakes of a notebook's parts in a trained model, and count what it still names right.

    Args:
        model: has the textbook's ``config`` and weights, as ``load_pretrained`` gives them. It is
            left as it is.
        chapter: a notebook or its chapter, such as "patches".
        data: the images; the photographs of CIFAR-10 by default.
        count: of the test images that are named.
        only: exercises, all of whose mistakes are made, or single ones such as
            "patchify.channel_last". By default a few of each part, those of ``SHOWN``.

    Returns:
        A row a mistake, the cheapest first; those with which the model stops come last.

    Raises:
        ValueError: a chapter, name or weights that cannot be used; the message says why.
    """
    mistakes = find_mistakes(chapter, only)
    config = with_options(ViTConfig(), **vars(model.config) | {"fused": False})  # changes no number
    weights = {name: tensor.detach().clone() for name, tensor in model.state_dict().items()}
    data = data or load_data("cifar10", limit=1, held_out=count)
    images, labels = data.test.images[:count], data.test.labels[:count]

    def accuracy(exercise: str, edits: Edits) -> float:
        broken = assemble(config, weights, exercise, edits)
        logits = logits_of(broken, images, data, torch.float32).cpu()
        if logits.shape != (len(labels), config.num_classes):
            shape = tuple(logits.shape)
            raise ValueError(f"the output for {len(labels)} images has the shape {shape}")
        return (logits.argmax(dim=1) == labels.cpu()).double().mean().item()

    costs, bar = [], ProgressBar(len(mistakes))
    facts = accuracy("", {}), 1 / config.num_classes, len(labels)
    for done, (exercise, mistake) in enumerate(mistakes):
        bar.update(done, mistake.name)
        share, error = None, ""
        try:
            share = accuracy(exercise, mistake.edits)
        except Exception as trouble:  # a broken part may raise anything
            error = first_line(trouble)
        id_ = mistake.id.removeprefix(f"{exercise}.")
        costs.append(Cost(exercise, id_, mistake.name, share, error, *facts))
    bar.close(f"{len(mistakes)} mistakes, {len(labels):,} images named with each")
    return sorted(costs, key=lambda cost: 1 if cost.accuracy is None else -cost.accuracy)


def find_mistakes(chapter: str, only: Sequence[str] = ()) -> list[tuple[str, Mistake]]:
    """List (exercise, mistake) of a chapter's parts of the model; see ``mistake_costs``.

    Raises:
        ValueError: no such chapter or mistake, or no part of the model in it.
    """
    notebook = exercises.notebook_named(chapter)
    parts = [e.id for e in exercises.in_notebook(notebook) if e.id in PARTS]
    if not parts:
        raise ValueError(f"{notebook} has no part of the model; choose 01, 02 or 03.")
    found: dict[str, tuple[str, Mistake]] = {}
    for exercise in parts:
        bank = [m for m in find_checker(exercise).bank if m.edits]
        found |= {f"{exercise}.{mistake.id}": (exercise, mistake) for mistake in bank}
        found |= {m.id: (exercise, m) for m in OWN if m.id.startswith(f"{exercise}.")}
    if not only:
        shown = SHOWN[notebook[3:]].items()
        only = [f"{exercise}.{id_}" for exercise, ids in shown for id_ in ids.split()]
    unknown = [name for name in only if name not in found and name not in parts]
    if unknown:
        raise ValueError(
            f"{notebook} has no mistake {unknown[0]!r}; name one such as {next(iter(found))!r}, or "
            f"an exercise: {', '.join(parts)}."
        )
    return [found[name] for name in found if name in only or name.split(".")[0] in only]


def assemble(
    config: ViTConfig, weights: dict[str, torch.Tensor], exercise: str, edits: Edits
) -> VisionTransformer:
    """Put the model together from the references' text, that of one exercise edited.

    Raises:
        ValueError: the weights do not fit.
        Exception: whatever a broken part raises while the model is built.
    """
    texts: list[Any] = [GLUE]
    for part in PARTS:
        text: Any = bare_source(part)
        if part == exercise:
            text = apply_edits(text, [edits])
        else:
            for old, new in CALLS.items():
                text = text.replace(old, new)
        texts.append(text)
    build = run_source("\n\n".join(texts), "VisionTransformer", "vitedu.vit")
    with torch.device("meta"):  # no memory, no random numbers: every value is replaced
        model = build(config)
    try:
        model.load_state_dict(weights, assign=True)
    except RuntimeError as error:
        details = " ".join(str(error).partition(":")[2].split())
        raise ValueError(f"the weights do not fit: {details}") from None
    return model.eval()


# mistakes that no bank has; their ids are "exercise.id"
OWN = read_words(sys.modules[__name__])["bank"]
# what a notebook shows: chapter -> exercise -> ids of mistakes
SHOWN: dict[str, dict[str, str]] = read(words_path(sys.modules[__name__]))["shown"]
