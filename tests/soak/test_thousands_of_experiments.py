"""Thousands of random experiments on the simulated engine, over all cores."""

import os
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

from random_runs import Played, play, summary

FIRST, EXPERIMENTS, TOGETHER = 1_000_000, 5_000, 500


def test_no_random_experiment_crashes_or_contradicts_its_expected_result_or_its_plan() -> None:
    played = list[Played]()
    for first in range(FIRST, FIRST + EXPERIMENTS, TOGETHER):
        # new processes for each part: one that has served thousands of runs keeps their memory
        with ProcessPoolExecutor(os.cpu_count(), mp_context=get_context("spawn")) as pool:
            played += pool.map(play, range(first, first + TOGETHER), chunksize=20)
        print(summary(played), flush=True)
        print(*(p.report for p in played[-TOGETHER:] if p.report), sep="\n", flush=True)
    assert not [p.report for p in played if p.report]
    assert sum(p.code == 2 for p in played) < 0.25 * len(played), "most of them must run"
