"""Judge many answers on few draws: what the mistakes of a bank do on a draw runs once."""

import functools
from unittest import mock

from vitedu.checks import api, engine
from vitedu.checks.replay import Replays


@functools.lru_cache(maxsize=16)
def replays(exercise: str, seed: int) -> Replays:
    """Give the replays that all who ask for this draw share."""
    return Replays()


def judge_answer(checker, answer, seed):
    """Judge as ``engine.judge_answer`` does, with a checker as ``find_checker`` gives it."""
    return engine.judge_answer(checker, answer, seed, replays(checker.exercise, seed))


def judge(answer, exercise=None, *, seed=None):
    """Judge as ``api.judge`` does."""
    with mock.patch.object(api, "judge_answer", judge_answer):
        return api.judge(answer, exercise, seed=seed)


def conclude(checker, cases, gathered, seed):
    """Conclude as ``engine.conclude`` does, for the grader's ``judge``."""
    return engine.conclude(checker, cases, gathered, seed, None, replays(checker.exercise, seed))
