"""How long does a student wait for a verdict? ``make bench-checks``.

Role: time every checker on right and wrong answers, and hold the figures against what the course
promises.
"""

import contextlib
import statistics
import subprocess
import sys
import time

import torch
from proof.bank import wrong_answers

from vitedu.checks.engine import judge_answer
from vitedu.checks.writing.checker import find_checker
from vitedu.exercises import EXERCISES

MEDIAN = 0.5  # seconds, as a rule
WORST = 2.0  # and at most
AGAIN = 10  # reports of one answer and one seed


def bench_checks(seeds: list[int]) -> bool:
    """Time a right and a wrong answer to every exercise, once a seed, and print milliseconds.

    The first check loads what all need and is not counted. Right answers are the references, wrong
    ones the mistakes of the bank in turn, another one for every seed.

    Args:
        seeds: at least one.

    Returns:
        Whether the median and the worst check stay below ``MEDIAN`` and ``WORST``.
    """

    def seconds(checker, answer, seed: int) -> float:
        start = time.perf_counter()
        judge_answer(checker, answer, seed)
        return time.perf_counter() - start

    everything: list[float] = []  # of functions and classes; a value takes no time
    each_once = 0.0
    judge_answer(find_checker("EncoderBlock"), find_checker("EncoderBlock").reference, 0)
    print(f"{len(seeds)} seeds, {torch.get_num_threads()} CPU threads; milliseconds")
    print(f"{'exercise':<32}{'right':>8}{'wrong':>8}{'worst':>8}", flush=True)
    for exercise in EXERCISES:
        checker, mistakes = find_checker(exercise.id), wrong_answers(exercise.id)
        rows: dict[str, list[float]] = {"right": [], "wrong": []}
        for i, seed in enumerate(seeds):
            rows["right"].append(seconds(checker, checker.reference, seed))
            rows["wrong"].append(seconds(checker, mistakes[i % len(mistakes)][1], seed))
        each_once += sum(rows["right"]) / len(seeds)
        if exercise.kind != "value":
            everything += rows["right"] + rows["wrong"]
        medians = "".join(f"{1000 * statistics.median(values):8.0f}" for values in rows.values())
        worst = max(rows["right"] + rows["wrong"])
        print(f"{exercise.id:<32}{medians}{1000 * worst:8.0f}", flush=True)
    median, worst = statistics.median(everything), max(everything)
    is_met = median <= MEDIAN and worst <= WORST
    print(
        f"functions and classes: median {1000 * median:.0f}, worst {1000 * worst:.0f}; all right "
        f"answers once: {each_once:.1f} s\n"
        f"aim: a median of at most {1000 * MEDIAN:.0f} and none above {1000 * WORST:.0f}: "
        f"{'met' if is_met else 'not met'}"
    )
    return is_met


def bench_busy(busy: int) -> bool:
    """Have each mistake of the bank's first three named again and again beside busy processes.

    Args:
        busy: so many processes compute all the time.

    Returns:
        Whether the ``AGAIN`` reports of one answer and one seed were equal, for all answers.
    """
    judged, apart = 0, []
    with contextlib.ExitStack() as stack:
        for _ in range(busy):
            loop = subprocess.Popen([sys.executable, "-c", "while True: pass"])
            stack.callback(loop.kill)
        for exercise in EXERCISES:
            checker = find_checker(exercise.id)
            for name, answer in wrong_answers(exercise.id)[:3]:
                reports = {str(judge_answer(checker, answer, 0)) for _ in range(AGAIN)}
                judged += 1
                if len(reports) > 1:
                    apart.append(name)
                    print(f"{exercise.id}, {name}:", *sorted(reports), sep="\n")
            print(f"{exercise.id}: {judged} answers, {len(apart)} differ", flush=True)
    print(f"{judged} wrong answers, {AGAIN} reports each beside {busy} busy processes")
    print(f"reports differ for {len(apart)}", *apart, sep="\n  ")
    return not apart
