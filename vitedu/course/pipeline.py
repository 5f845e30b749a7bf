"""The student's model as boxes, each his own or the reference's: the picture above ``progress()``.

Role: boxes of HTML, which the browser lays out, since ``progress`` loads neither torch nor numpy
nor matplotlib. A box is the student's where the best result of its exercise passed. Not here: the
results (``results``).
"""

from collections.abc import Iterable

from vitedu.course.results import is_passed
from vitedu.exercises import BY_ID, EXERCISES

Part = tuple  # its exercise or "", a word, and the parts inside it
NORM: Part = ("layer_norm", "norm")
ADD: Part = ("EncoderBlock", "+")
HEADS: Part = ("split_heads", "split heads"), ("merge_heads", "merge heads")
ATTEND: Part = ("scaled_dot_product_attention", "q k v"), ("softmax", "softmax")
ATTENTION: Part = ("MultiHeadAttention", "attention", HEADS[0], *ATTEND, HEADS[1])
MLP: Part = ("Mlp", "MLP", ("", "widen"), ("gelu", "GELU"), ("", "narrow"))
EMBED: Part = ("patchify", "patches"), ("PatchEmbed", "PatchEmbed")
TOKENS: Part = ("add_class_token_and_positions", "class token, positions")
ENCODE: Part = ("EncoderBlock", "block × depth"), NORM, ("VisionTransformer", "head")
LOSS: Part = ("random_crop_flip", "crops"), ("", "model"), ("cross_entropy", "loss")
STEP: Part = ("warmup_cosine", "schedule"), ("orthogonalise", "Muon's step")
GROUPS: Part = ("weight_decay_groups", "decay groups")
ROWS: tuple[Part, ...] = (
    (("", "image"), ("VisionTransformer", "model", *EMBED, TOKENS, *ENCODE), ("", "name")),
    (("EncoderBlock", "inside a block", NORM, ATTENTION, ADD, NORM, MLP, ADD),),
    (("train_one_epoch", "training loop", *LOSS, GROUPS, *STEP), ("evaluate", "evaluation")),
)
ROW = "display:flex;flex-wrap:wrap;gap:.3em;align-items:center"
BOX = "padding:.2em .5em;border-radius:.4em;text-align:center"


def pipeline_html(entries: dict[str, dict]) -> str:
    """Give the picture as HTML: boxes of words, so a screen reader reads them.

    Args:
        entries: what ``results.load()`` gives.
    """
    parts = [exercise for exercise in EXERCISES if exercise.part]
    own = {exercise.id for exercise in parts if is_passed(exercise, entries)}
    legend = _box(f"✓ yours: {len(own)} of {len(parts)}", True)
    legend += _box(f"the reference's: {len(parts) - len(own)}", False)
    rows = [legend, *(_draw(row, own) for row in ROWS)]
    drawn = "".join(f'<div style="{ROW};margin:.5em 0">{row}</div>' for row in rows)
    return f'<div style="font-size:85%">{drawn}</div>'


def _draw(row: Iterable[Part], own: set[str]) -> str:
    """Draw parts one after the other, with arrows between them."""
    drawn = []
    for name, words, *inside in row:
        if not name:
            drawn.append(f"<span>{words}</span>")
            continue
        title = f"{'✓ ' if name in own else ''}{BY_ID[name].number}"
        if inside:
            row_within = f'<div style="{ROW}">{_draw(inside, own)}</div>'
            drawn.append(_box(f"{title} {words}", name in own, row_within))
        else:
            drawn.append(_box(f"{words}<br>{title}", name in own))
    return "<span>→</span>".join(drawn)


def _box(words: str, is_own: bool, inside: str = "") -> str:
    """Draw a box: a frame in colour where it is the student's, dashed where not."""
    colour = "white" if not is_own else "#E8F4FC" if inside else "#56B4E9"
    look = "2px solid #0072B2" if is_own else "2px dashed #7F7F7F"
    style = f"border:{look};background:{colour};color:black;{BOX}"
    return f'<div style="{style}">{words}{inside}</div>'
