"""Thousands of random experiments on the simulated engine, over all cores."""

import os
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

from random_play import play, summary

SEEDS = range(1_000_000, 1_005_000)


def test_no_random_experiment_crashes_or_contradicts_its_truth_or_its_plan() -> None:
    # a process keeps what thousands of runs in it have allocated: each gets two hundred
    fresh = get_context("spawn")
    with ProcessPoolExecutor(os.cpu_count(), mp_context=fresh, max_tasks_per_child=10) as pool:
        played = list(pool.map(play, SEEDS, chunksize=20))
    print(summary(played))
    assert not [p.report for p in played if p.report]
    assert sum(p.code == 2 for p in played) < 0.25 * len(played), "most of them must run"
