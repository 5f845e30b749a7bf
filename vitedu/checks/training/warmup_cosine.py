"""4.4 warmup_cosine: the learning rate of every step."""

from torch import Generator

from vitedu import training
from vitedu.checks.observing import observation
from vitedu.checks.training import drawing
from vitedu.checks.training.warmup_cosine_driver import schedule
from vitedu.checks.writing.kit import Case, Checker, draw


def cases(g: Generator) -> list[Case]:
    """Draw schedules; every step of a short run, some of a long one."""

    def case(total, warmup, peak, final=None, steps=None, note="", **rest):
        steps = tuple(range(total)) if steps is None else tuple(steps)
        args = {"step": steps, "total_steps": total, "warmup_steps": warmup, "peak_lr": peak}
        name = f"total_steps={total}, warmup_steps={warmup}, peak_lr={peak:g}"
        if final is not None:
            args["final_lr"] = final
            name += f", final_lr={final:g}"
        atol = 2e-6 * max(peak, 1e-4)
        return Case(name + note, args, driver=schedule.__name__, rtol=1e-5, atol=atol, **rest)

    warmup, total = draw(g, 3, 6), draw(g, 11, 18)
    peak = draw(g, 2, 9) * 1e-3
    final = peak * draw(g, 15, 45) / 100
    long = draw(g, 2000, 4000)
    some = (0, 7, long // 20 - 1, long // 20, long // 3, long // 2, long - 2, long - 1)
    return [
        case(total, warmup, peak),
        case(total, 0, peak, part="no warm-up"),
        case(total, warmup, peak, final, part="final rate"),
        case(total, 0, peak, final, part="final rate", keywords=("final_lr",), note=", by keyword"),
        case(total, 1, peak, part="other runs"),
        case(2 * total, 2 * total - warmup, peak, final, part="other runs"),
        case(long, long // 20, peak, final, part="other runs", steps=some),
        case(1, 0, peak, part="rare runs"),
        case(total, warmup, peak, peak, part="rare runs"),
        case(total, total - 1, peak, final, part="rare runs"),
        case(warmup, warmup, peak, part="rare runs", note=", nothing but the climb"),
        case(total, warmup, 1, 0, part="rare runs", note=", whole numbers"),
    ]


def _draw_schedule(case: Case, got: observation.Observation, ids: list[str]):
    """Draw both curves."""
    if "output" not in got.arrays or len(case.args["step"]) != case.args["total_steps"]:
        return None
    arguments = {name: value for name, value in case.args.items() if name != "step"}
    expected = [training.warmup_cosine(step, **arguments) for step in case.args["step"]]
    return drawing.draw_curves(got.arrays["output"].tolist(), expected, "learning rate")


CHECKER = Checker(
    picture=_draw_schedule,
)
