"""The student's model as boxes, each his own or the reference's: the picture above ``progress()``.

Role: an SVG of text, since ``progress`` loads neither torch nor numpy nor matplotlib. A box is the
student's where the best result of its exercise passed. Not here: the results (``results``).
"""

import base64
import html
from collections.abc import Collection, Iterable

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
# pixels: the picture, its margin, an arrow, a letter, a box, and what a frame adds to its boxes
WIDTH, LEFT, GAP, LETTER, BOX, ABOVE, BELOW = 880, 10, 17, 7, 40, 24, 8
OWN, OWN_FRAME, EDGE = "#56B4E9", "#E8F4FC", "#0072B2"


def pipeline_html(entries: dict[str, dict]) -> str:
    """Give the picture as an HTML image, with words for screen readers.

    Args:
        entries: what ``results.load()`` gives.
    """
    parts = [exercise for exercise in EXERCISES if exercise.part]
    own = {exercise.id for exercise in parts if is_passed(exercise, entries)}
    names: dict[bool, list[str]] = {True: [], False: []}
    for exercise in parts:
        names[exercise.id in own].append(f"{exercise.number} {exercise.id}")
    yours, others = (", ".join(some) or "none" for some in names.values())
    words = f"Figure: the parts of the model and of its training. Yours: {yours}. "
    words += f"The reference's: {others}."
    picture = base64.b64encode(pipeline_svg(own).encode()).decode()
    return (
        f'<img src="data:image/svg+xml;base64,{picture}" alt="{html.escape(words)}" '
        f'width="{WIDTH}" style="max-width: 100%; height: auto">'
    )


def pipeline_svg(own: Collection[str]) -> str:
    """Draw the parts of the model and of its training.

    Args:
        own: ids of the exercises that are the student's; the other parts are the reference's.
    """
    drawn, y = [], 48.0
    for row in ROWS:
        height = max(map(_height, row))
        drawn.append(_draw_row(row, LEFT, y + height / 2, own)[0])
        y += height + 14
    total = sum(bool(exercise.part) for exercise in EXERCISES)
    legend = _box(LEFT, 10, 24, 24, True) + _text(LEFT + 12, 27, "✓", "middle")
    legend += _text(LEFT + 32, 27, f"yours: {len(own)} of {total}") + _box(160, 10, 24, 24, False)
    legend += _text(192, 27, f"the reference's: {total - len(own)}")
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {y:g}" '
        'font-family="DejaVu Sans, Verdana, sans-serif" font-size="12">'
        f'<rect width="{WIDTH}" height="{y:g}" rx="6" fill="white"/>{legend}{"".join(drawn)}</svg>'
    )


def _height(part: Part) -> float:
    return BOX if len(part) == 2 else max(map(_height, part[2:])) + ABOVE + BELOW


def _draw_row(row: Iterable[Part], x: float, middle: float, own) -> tuple[str, float]:
    """Draw parts from x on, with arrows between them; give the drawing and where it ends."""
    drawn = []
    for k, part in enumerate(row):
        if k:
            drawn.append(_text(x + GAP / 2, middle + 4, "→", "middle"))
            x += GAP
        new, x = _draw(part, x, middle, own)
        drawn.append(new)
    return "".join(drawn), x


def _draw(part: Part, x: float, middle: float, own) -> tuple[str, float]:
    """Draw a part, its left side at x; give the drawing and its right side."""
    name, words, *inside = part
    width = LETTER * len(words) + 6
    if not name:
        return _text(x + width / 2, middle + 4, words, "middle"), x + width
    height, is_own = _height(part), name in own
    mark = ("✓ " if is_own else "") + BY_ID[name].number
    if not inside:
        width = max(width + 8, 50)  # room for the mark
        drawn = _box(x, middle - height / 2, width, height, is_own)
        drawn += _text(x + width / 2, middle - 3, words, "middle")
        return drawn + _text(x + width / 2, middle + 14, mark, "middle"), x + width
    within, end = _draw_row(inside, x + 8, middle + (ABOVE - BELOW) / 2, own)
    drawn = _box(x, middle - height / 2, end + 8 - x, height, is_own, OWN_FRAME)
    title = _text(x + 8, middle - height / 2 + 16, f"{mark} {words}")
    return drawn + title + within, end + 8


def _box(x, y, width, height, is_own: bool, own_colour: str = OWN) -> str:
    place = f'x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="5"'
    look = f'fill="{own_colour}" stroke="{EDGE}" stroke-width="2"'
    look = look if is_own else 'fill="white" stroke="#7F7F7F" stroke-dasharray="4 3"'
    return f"<rect {place} {look}/>"


def _text(x: float, y: float, words: str, anchor: str = "start") -> str:
    return f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}">{html.escape(words)}</text>'
