"""4.4 warmup_cosine: the learning rate of every step."""

from typing import Any

from vitedu.checks.training.warmup_cosine_driver import schedule
from vitedu.checks.writing.kit import also, shaped

STEPS: dict = {"step": lambda x: tuple(range(len(x)))}  # every step, one after the other
PLAIN = "step: n; total_steps = n; warmup_steps = w; peak_lr = p / 1000"
FINAL = PLAIN + "; final_lr = p * f / 100000"
SOME = FINAL.replace("step: n", "step = (0, 7, n//20 - 1, n//20, n//3, n//2, n - 2, n - 1)")
WHOLE = "step: n; total_steps = n; warmup_steps = w; peak_lr = 1; final_lr = 0"


def final(part: str, note: str = "", **changes: Any):
    note = f"final_lr={{p * f / 100000}}, {note}".removesuffix(", ")
    return also(part, note, **{"shapes": FINAL, **changes})


cases = shaped(
    PLAIN,
    also("no warm-up", "", w=0),
    final("final rate"),
    final("final rate", "by keyword", w=0, keywords=("final_lr",)),
    also("other runs", "", w=1),
    final("other runs", "a climb of most steps", w="n - m"),
    final("other runs", "some steps of a long run", shapes=SOME, n=3210, w=160),
    also("rare runs", "", n=1, w=0),
    final("rare runs", "as high as the peak", f=100),
    final("rare runs", w="n - 1"),
    also("rare runs", "nothing but the climb", n="w"),
    also("rare runs", "", shapes=WHOLE, name="whole numbers, peak 1 and end 0", atol=2e-6),
    driver=schedule.__name__,
    gradients=(),
    ranges={"w": (3, 6), "n": (11, 18), "p": (2, 9), "f": (15, 45), "m": (3, 6)},
    values=STEPS,
    name="total_steps={n}, warmup_steps={w}, peak_lr={p / 1000}",
    rtol=1e-5,
    atol=1e-8,
)
