"""Call a random function several times with known states of its generator.

Imports the standard library and torch only, for the grader's worker.
"""

import torch

from vitedu.checks.case import Case, build_args
from vitedu.checks.drivers import call_answer, driver
from vitedu.checks.observation import Observation, store_output
from vitedu.checks.settings import seed_everything


@driver
def repeated_draws(answer, case: Case, seen: Observation) -> None:
    """Call a random function several times and store the outputs.

    "first" and "again" use the same generator state with different global states, "other" and
    "third" use other states of the generator. Two, because one draw can come again by chance.
    """
    calls = (("first", 1, 10), ("again", 1, 20), ("other", 2, 10), ("third", 3, 10))
    for name, seed, global_seed in calls:
        seed_everything(global_seed)
        args = build_args(case)
        args["generator"].manual_seed(seed + case.extra["seed"])
        before = args["generator"].get_state()
        store_output(seen, name, call_answer(answer, case, args), is_random=True)
        has_moved = not torch.equal(args["generator"].get_state(), before)
        seen.facts["every call moves the generator on"] = "it moves" if has_moved else "it stays"
