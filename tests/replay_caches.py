"""Judge many answers on few draws: what the mistakes of a bank do on a draw runs once."""

import functools
from unittest import mock

from vitedu.checks import api, engine
from vitedu.checks.explaining.diagnose import ReplayCache


@functools.lru_cache(maxsize=16)
def find_cache(exercise: str, seed: int) -> ReplayCache:
    """Give the cache that all who ask for this draw share."""
    return ReplayCache()


def judge_answer(checker, answer, seed):
    """Judge as ``engine.judge_answer`` does, with a checker as ``find_checker`` gives it."""
    return engine.judge_answer(checker, answer, seed, find_cache(checker.exercise, seed))


def judge(answer, exercise=None, *, seed=None):
    """Judge as ``api.judge`` does."""
    with mock.patch.object(api, "judge_answer", judge_answer):
        return api.judge(answer, exercise, seed=seed)


def judge_observations(checker, cases, observed, seed):
    """Judge as ``engine.judge_observations`` does, for the grader's ``judge``."""
    cache = find_cache(checker.exercise, seed)
    return engine.judge_observations(checker, cases, observed, seed, None, cache)
