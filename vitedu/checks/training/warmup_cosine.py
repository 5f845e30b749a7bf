import math

import numpy as np
import torch

from vitedu import training
from vitedu.checks import drawing
from vitedu.checks.kit import Case, Checker, Mistake, Observation, draw


def cases(g: torch.Generator) -> list[Case]:
    """Draw schedules; every step of a short run, some of a long one."""

    def case(total, warmup, peak, final=None, steps=None, note="", **rest):
        steps = tuple(range(total)) if steps is None else tuple(steps)
        args = {"step": steps, "total_steps": total, "warmup_steps": warmup, "peak_lr": peak}
        name = f"total_steps={total}, warmup_steps={warmup}, peak_lr={peak:g}"
        if final is not None:
            args["final_lr"] = final
            name += f", final_lr={final:g}"
        atol = 2e-6 * max(peak, 1e-4)
        return Case(name + note, args, driver="schedule", rtol=1e-5, atol=atol, **rest)

    warmup, total = draw(g, 3, 6), draw(g, 11, 18)
    peak = draw(g, 2, 9) * 1e-3
    final = peak * draw(g, 15, 45) / 100
    long = draw(g, 2000, 4000)
    some = (0, 7, long // 20 - 1, long // 20, long // 3, long // 2, long - 2, long - 1)
    return [
        case(total, warmup, peak),
        case(total, 0, peak, part="no warm-up"),
        case(1, 0, peak, part="no warm-up"),
        case(total, warmup, peak, final, part="final rate"),
        case(total, 0, peak, final, part="final rate", keywords=("final_lr",), note=", by keyword"),
        case(total, 1, peak, part="other runs"),
        case(total, warmup, peak, peak, part="other runs"),
        case(total, total - 1, peak, final, part="other runs"),
        case(warmup, warmup, peak, part="other runs", note=", nothing but the climb"),
        case(total, warmup, 1, 0, part="other runs", note=", whole numbers"),
        case(long, long // 20, peak, final, part="other runs", steps=some),
    ]


COSINE = "0.5 * (1 + math.cos(math.pi * progress))"

MISTAKES = (
    Mistake(
        "climb_from_zero",
        "the first step has learning rate 0",
        "peak_lr / warmup_steps at step 0",
        "Steps count from 0: step / warmup_steps wastes the first batch and never reaches the peak.",
        "The climb counts finished steps, this one included.",
        {"(step + 1) ": "step "},
    ),
    Mistake(
        "climb_divides_by_one_more",
        "the climb ends below the peak",
        "peak_lr at step warmup_steps - 1",
        "With warmup_steps + 1 below the line the peak would be met a step late, when the cosine has taken over.",
        "Divide by warmup_steps.",
        {"/ warmup_steps": "/ (warmup_steps + 1)"},
    ),
    Mistake(
        "climb_from_final",
        "the climb starts from final_lr",
        "a climb from 0, whatever final_lr is",
        "final_lr belongs to the cosine only.",
        "The climb is peak_lr times the share of steps done.",
        {"return peak_lr": "return final_lr + (peak_lr - final_lr)"},
    ),
    Mistake(
        "climb_too_long",
        "the climb takes one step too many",
        "the peak at step warmup_steps - 1, and never above",
        "At step warmup_steps the climb would go beyond the peak.",
        "Compare with <, not with <=.",
        {"<": "<="},
    ),
    Mistake(
        "peak_twice",
        "the peak is met twice, and final_lr never",
        "the peak once, final_lr exactly at the last step",
        "progress starts at 0 one step late and ends before 1.",
        "Put the last step, total_steps - 1, into your progress: it should be 1.",
        {"progress = (step + 1": "progress = (step"},
    ),
    Mistake(
        "stretched",
        "the peak is met twice",
        "the peak once, at warmup_steps - 1",
        "The last step of the climb has the peak; the first of the cosine is already below it.",
        "Put step = warmup_steps into your progress: it should be above 0.",
        {
            "progress = (step + 1": "progress = (step",
            "total_steps - warmup_steps": "total_steps - warmup_steps - 1",
        },
    ),
    Mistake(
        "warmup_in_progress",
        "the cosine is already under way when the climb ends",
        "progress that starts at the end of the climb",
        "The curve jumps down from the peak.",
        "Take warmup_steps off both the steps done and the steps there are.",
        {" - warmup_steps) / (total_steps - warmup_steps": ") / (total_steps"},
    ),
    Mistake(
        "never_ends",
        "the cosine stops before its end",
        "progress of 1 at the last step",
        "The steps of the climb are taken off those done, but not off those there are.",
        "Divide by the number of steps after the climb.",
        {"total_steps - warmup_steps": "total_steps"},
    ),
    Mistake(
        "one_step_at_least",
        "without a warm-up one step of it is made all the same",
        "the cosine from step 0 on",
        "The peak would be met at step 0, and every later rate would lag behind.",
        "Leave warmup_steps as it is; nothing divides by 0.",
        {"if step < warmup_steps": "warmup_steps = max(1, warmup_steps)\nif step < warmup_steps"},
        part="no warm-up",
    ),
    Mistake(
        "warmup_ignored",
        "there is no climb",
        "a linear climb for step < warmup_steps",
        "Large steps at the start throw the weights far off before the norms have settled.",
        "Treat step < warmup_steps first.",
        {"if step": "warmup_steps = 0\nif step"},
    ),
    Mistake(
        "divides_by_zero",
        "warmup_steps = 0 ends in a division by zero",
        "a cosine from the first step on",
        "No warm-up is a usual choice.",
        "Divide by warmup_steps only inside the branch step < warmup_steps.",
        {"if step": "_ = step / warmup_steps\nif step"},
    ),
    Mistake(
        "integer_division",
        "the climb is a step, not a slope",
        "equal increments at every step",
        "// drops what is behind the point.",
        "Use / for the share of the climb.",
        {"* (step + 1) / warmup_steps": "* ((step + 1) // warmup_steps)"},
    ),
    Mistake(
        "no_decay",
        "after the climb the learning rate stays at the peak",
        "half a cosine down to final_lr",
        "Small steps at the end let the loss settle.",
        "Add the cosine for the steps after the climb.",
        {"progress = ": "return peak_lr\nprogress = "},
    ),
    Mistake(
        "upside_down",
        "the curve rises where it should fall",
        "from peak_lr down to final_lr",
        "The cosine falls from 1 to -1 by itself.",
        "Look at the sign of the cosine.",
        {"1 + math.cos": "1 - math.cos"},
    ),
    Mistake(
        "linear_decay",
        "the way down is a straight line",
        "half a cosine",
        "It is a schedule too, but not this one.",
        "Use cos(pi * progress), which runs from 1 to -1.",
        {COSINE: "(1 - progress)"},
    ),
    Mistake(
        "quarter_period",
        "the cosine runs through a quarter of its period",
        "half a period: steep in the middle, flat at both ends",
        "A quarter is steepest at the end, where the steps should hardly change.",
        "cos(pi * progress), moved and scaled into 0 .. 1.",
        {COSINE: "math.cos(math.pi * progress / 2)"},
    ),
    Mistake(
        "degrees",
        "the cosine is given degrees",
        "half a period, pi in radians",
        "math.cos takes radians.",
        "Use math.pi * progress.",
        {"math.pi": "180"},
    ),
    Mistake(
        "full_period",
        "the cosine comes back up",
        "half a period",
        "The run would end at the peak.",
        "Use pi, not 2 pi.",
        {"math.pi": "2 * math.pi"},
    ),
    Mistake(
        "not_halved",
        "the cosine starts at twice the peak",
        "never above peak_lr",
        "1 + cos runs from 2 to 0.",
        "Take half of it.",
        {"0.5 * ": ""},
    ),
    Mistake(
        "final_ignored",
        "the run ends at 0, whatever final_lr is",
        "final_lr at the last step",
        "The argument is there to be used.",
        "The cosine spans peak_lr - final_lr and stands on final_lr.",
        {"final_lr + (peak_lr - final_lr)": "peak_lr"},
    ),
    Mistake(
        "final_added",
        "final_lr is added on top",
        "the cosine between peak_lr and final_lr",
        "The curve would jump above the peak after the climb.",
        "The cosine spans peak_lr - final_lr only.",
        {"(peak_lr - final_lr)": "peak_lr"},
    ),
    Mistake(
        "final_as_floor",
        "final_lr cuts the curve off",
        "a cosine that ends at final_lr",
        "The curve falls towards 0 and is cut; the last steps are all alike.",
        "Scale the cosine to the span between both rates.",
        {"final_lr + (peak_lr - final_lr)": "max(final_lr, peak_lr", "progress))": "progress)))"},
    ),
)


def _draw_schedule(case: Case, got: Observation, ids: list[str]):
    """Draw both curves."""
    if "output" not in got.arrays or len(case.args["step"]) != case.args["total_steps"]:
        return None
    given = {name: value for name, value in case.args.items() if name != "step"}
    expected = [training.warmup_cosine(step, **given) for step in case.args["step"]]
    return drawing.curves(got.arrays["output"].tolist(), expected, "learning rate")


def with_numpy(step, total_steps, warmup_steps, peak_lr, final_lr=0.0):
    climb = peak_lr * np.arange(1, warmup_steps + 1) / max(warmup_steps, 1)
    turn = np.linspace(0, np.pi, total_steps - warmup_steps + 1)[1:]
    fall = final_lr + (peak_lr - final_lr) * (1 + np.cos(turn)) / 2
    return np.concatenate([climb, fall])[step]


def with_torch(step, total_steps, warmup_steps, peak_lr, final_lr=0.0):
    done = torch.tensor(step + 1.0, dtype=torch.float64)
    if done <= warmup_steps:
        return done / warmup_steps * peak_lr
    progress = (done - warmup_steps) / (total_steps - warmup_steps)
    return final_lr + (peak_lr - final_lr) * torch.cos(progress * math.pi / 2) ** 2


def by_mixing(step, total_steps, warmup_steps, peak_lr, final_lr=0.0):
    if warmup_steps > step:
        return (step + 1) * (peak_lr / warmup_steps)
    left = (total_steps - 1 - step) / (total_steps - warmup_steps)
    weight = math.sin(math.pi / 2 * left) ** 2
    return weight * peak_lr + (1 - weight) * final_lr


def in_single_precision(
    step: int, total_steps: int, warmup_steps: int, peak_lr: float, final_lr: float = 0.0
) -> np.float32:
    return np.float32(
        peak_lr * (step + 1) / warmup_steps
        if step + 1 <= warmup_steps
        else (peak_lr + final_lr) / 2
        + (peak_lr - final_lr)
        / 2
        * math.cos(math.pi * (step - warmup_steps + 1) / (total_steps - warmup_steps))
    )


CHECKER = Checker(
    "warmup_cosine",
    proves={
        "values": "every step of a run, the peak once and final_lr at the end",
        "no warm-up": "a cosine from the first step where warmup_steps is 0",
        "final rate": "ends exactly at final_lr",
        "other runs": "also for long runs, a climb of one step, a cosine of one step, and whole numbers",
    },
    advice={
        "values": (
            "The climb and the cosine are two formulas; one of them may be right already.",
            "Six steps, two of warm-up, peak 1 give 0.5, 1.0, 0.854, 0.5, 0.146, 0.0 in the task; print yours.",
        ),
        "final rate": (
            "Without final_lr your schedule is right.",
            "The climb goes to peak_lr from 0; final_lr belongs to the cosine only.",
        ),
    },
    picture=_draw_schedule,
    special="step == 0; warmup_steps == 0; warmup_steps == 1; total_steps == 1; final_lr == 0; "
    "final_lr == peak_lr; step == warmup_steps; step == total_steps - 1",
    equivalent={
        "a cosine has no sign": ("warmup_steps - (step + 1)", "warmup_steps - total_steps"),
    },
)
