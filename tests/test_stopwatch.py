"""vitedu.ground.stopwatch: work is timed in turn, and ratios are taken within a round."""

import time

import pytest

from vitedu.ground.stopwatch import least_milliseconds, median_speedup, seconds_in_turn


def test_work_runs_in_turn_and_warmup_is_not_counted():
    """A B, A B, A B: one round before, two counted."""
    order = []
    work = {name: lambda name=name: order.append(name) for name in "AB"}
    times = seconds_in_turn(work, rounds=2, warmup=1)
    assert order == list("ABABAB")
    assert [len(times[name]) for name in "AB"] == [2, 2]
    assert all(second > 0 for seconds in times.values() for second in seconds)
    with pytest.raises(ValueError, match="rounds=0"):
        seconds_in_turn({"a": int}, rounds=0)


def test_a_slow_round_changes_no_ratio():
    """All rounds of b take twice as long as a's, also while the machine is ten times slower."""
    times = {"a": [1.0, 10.0, 1.1], "b": [2.0, 20.0, 2.2]}
    assert median_speedup(times, "a", "b") == pytest.approx(2.0)
    assert median_speedup(times, "b", "b") == 1.0


def test_waiting_costs_no_computing_time():
    """A piece that sleeps for 50 ms computes for less than one that counts."""
    work = {"sleeps": lambda: time.sleep(0.05), "counts": lambda: sum(range(300_000))}
    least = least_milliseconds(work, rounds=3)
    assert 0 <= least["sleeps"] < least["counts"]
