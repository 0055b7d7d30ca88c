"""The reference engine without its process: exact panes, an exact schedule, exactly the faults ordered."""

from itertools import pairwise
from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest
from output_samples import TRIAL

from streamgauge.engines.contract import Endpoints, JobRun, RealEngine, Situation
from streamgauge.engines.reference import reference
from streamgauge.engines.reference.engine import ReferenceOptions, _facts
from streamgauge.engines.reference.ground_truth import GroundTruth
from streamgauge.engines.reference.schedule import MOST_BEHIND, Schedule
from streamgauge.engines.reference.windows import COLUMNS, ClosedWindows, Faults, Panes
from streamgauge.model.profile import LoadProfile, Piece, constant
from streamgauge.model.units import SECOND
from streamgauge.processes.spec import Host
from streamgauge.transports.kafka.cluster import Cluster, KafkaEndpoints
from streamgauge.transports.queue.transport import QueueEndpoints
from streamgauge.workloads.data.shopping import Purchases
from streamgauge.workloads.references.window_sums import WindowSums
from streamgauge.workloads.windowed_aggregation import WindowedAggregationParams

MILLI = 1_000_000
ORIGIN = 1_700_000_000_123_456_000


def params(window: str, slide: str, packs: int = 20) -> WindowedAggregationParams:
    return WindowedAggregationParams.model_validate({"window": window, "slide": slide, "gem_packs": packs})


@pytest.mark.parametrize(("window", "slide"), [("8s", "4s"), ("3s", "3s"), ("7s", "3s"), ("2500ms", "700ms")])
@pytest.mark.parametrize("lanes", [1, 3])
def test_panes_give_the_reference_result_whatever_the_windows_and_the_batches(
    window: str, slide: str, lanes: int
) -> None:
    wanted = params(window, slide)
    plan = constant(500.0).plan(40 * SECOND)
    answer = WindowSums(Purchases(wanted, plan, 3, origin=ORIGIN), wanted.window, wanted.slide)
    panes = Panes(wanted.window // 1000, wanted.slide // 1000, wanted.gem_packs)
    random, fired, done = np.random.default_rng(1), [], 0
    cuts = np.sort(random.integers(0, 40 * SECOND // 1000, 60)) + ORIGIN // 1000
    for number, cut in enumerate(cuts.tolist()):
        stop = answer.number(cut)
        for lane in range(lanes):
            events = answer.purchases.events(done, stop, lanes, lane)
            panes.add(events["gem_pack_id"], events["price"], events["due"], number)
        done = stop
        if (out := panes.fire(cut)) is not None:
            fired.append(out)
    got = {name: np.concatenate([part[name] for part in fired]) for name in COLUMNS}
    expected = answer.until({"purchases": done})
    closed = expected["window_start"] + wanted.window // 1000 <= cuts[-1]
    assert closed.any()
    for name, column in expected.items():
        assert np.array_equal(got[name], column[closed]), name
    assert np.array_equal(got["window_end"], got["window_start"] + wanted.window // 1000)
    last_read = np.searchsorted(cuts, got["max_due"], "right")
    assert np.array_equal(got["max_ingested"], last_read), "ingested with the cut that holds the latest event"


def test_windows_after_a_long_pause_are_emitted_together_and_empty_ones_never() -> None:
    panes = Panes(1_000, 10, 2)
    one = np.array([1], np.int32)
    panes.add(one, one, np.array([5]), 7)
    panes.add(one, one, np.array([10**15]), 8)
    out = panes.fire(2 * 10**15)
    assert out is not None
    assert len(out["sum"]) == 200, "each event is in a hundred windows"
    assert panes.fire(3 * 10**15) is None


def test_a_window_waits_until_every_partition_was_read() -> None:
    panes = Panes(100, 100, 1)
    key, price = np.zeros(1, np.int32), np.ones(1, np.int32)
    panes.add(key, price, np.array([250]), 1)
    panes.add(key, price, np.array([150]), 1)  # another partition, earlier
    out = panes.fire(300)
    assert out is not None
    assert out["window_start"].tolist() == [100, 200]
    assert panes.fire(300) is None


def test_the_capacity_is_exact_although_every_sleep_ends_late() -> None:
    schedule, now, total = Schedule(300_000.0), 5 * SECOND, 0
    begin = now
    for _ in range(1_000):
        finish = schedule.take(schedule.step, now, waiting=1)
        total += schedule.step
        now = max(now, finish) + 700_000  # 0.7 ms: overshoot and calls
    assert total * SECOND / (schedule.finish - begin) == pytest.approx(300_000)
    assert now - schedule.finish == 700_000


def test_time_in_which_nothing_waited_is_not_made_good() -> None:
    schedule = Schedule(1_000.0)
    assert schedule.take(10, 0) == 10 * MILLI
    assert schedule.take(10, SECOND) == SECOND + 10 * MILLI
    assert schedule.take(10, SECOND) == SECOND + 20 * MILLI, "what came while it was busy waits"


def test_a_stall_is_not_made_good_even_if_events_wait() -> None:
    schedule = Schedule(1_000.0)
    schedule.take(10, 0, waiting=5)
    late = schedule.finish + MOST_BEHIND
    assert schedule.take(10, late) == late + 10 * MILLI
    schedule.take(10, late, waiting=5)
    schedule.rest(3 * SECOND)
    assert schedule.take(10, 3 * SECOND) == 3 * SECOND + 10 * MILLI


def test_triggers_stay_at_whole_intervals_unless_a_batch_takes_longer() -> None:
    schedule = Schedule(1_000.0, interval=200 * MILLI)
    assert schedule.step == 0, "a micro-batch takes all that is there"
    schedule.take(100, 400 * MILLI)
    assert schedule.trigger(400 * MILLI) == 600 * MILLI
    schedule.take(350, 600 * MILLI)
    assert (schedule.trigger(600 * MILLI), schedule.busy) == (950 * MILLI, True)
    schedule.take(10, 950 * MILLI)
    assert (schedule.trigger(950 * MILLI), schedule.busy) == (1_000 * MILLI, False)


def firing(start: int, rows: int) -> ClosedWindows:
    columns = {name: np.full(rows, start, np.int64) for name in COLUMNS}
    return columns | {"gem_pack_id": np.arange(rows), "sum": np.arange(rows) * 100}


@pytest.mark.parametrize("seed", range(20))
def test_exactly_the_given_number_of_outputs_is_corrupted_and_each_in_one_way(seed: int) -> None:
    faults = Faults(seed, 4, lose=3, duplicate=2, alter=4)
    lost = twice = altered = 0
    for number in range(10):
        sent = faults.corrupt(firing(number, 3))
        keys, counts = np.unique(sent["gem_pack_id"], return_counts=True)
        lost += 3 - len(keys)
        twice += int((counts == 2).sum())
        altered += int((sent["sum"] != sent["gem_pack_id"] * 100).sum())
        assert counts.max(initial=1) <= 2
    assert (lost, twice, altered) == (3, 2, 4)


def test_the_places_of_faults_follow_the_seed() -> None:
    def lost(seed: int) -> list[tuple[int, int]]:
        faults = Faults(seed, 50, lose=5)
        return [(n, k) for n in range(60) for k in set(range(9)) - set(faults.corrupt(firing(n, 9))["gem_pack_id"])]

    assert lost(1) == lost(1)
    assert len({tuple(lost(seed)) for seed in range(10)}) == 10


def test_true_latencies_are_on_the_clock_of_the_load_driver() -> None:
    outputs = {
        "firing": np.array([0, 0, 1]),
        "max_due_us": np.array([1_000_000, 900_000, 2_000_000]),
        "released_ns": np.array([7_003_000_000, 7_003_000_000, 8_004_000_000]),
        "released_us": np.array([1_013_000, 1_013_000, 2_014_000]),
    }
    log = GroundTruth({}, outputs)
    assert log.latencies(7 * SECOND, SECOND).tolist() == [3_000, 103_000, 4_000]
    assert log.latencies().tolist() == [13_000, 113_000, 14_000], "on its own clock"


def test_it_satisfies_the_contract_and_refuses_contradictions_before_the_first_trial() -> None:
    assert isinstance(reference, RealEngine)
    assert reference.check(Situation(ReferenceOptions())) == []
    wrong = ReferenceOptions.model_validate({"stall_after": "1s", "delay_spread": "10%", "silent": True, "lose": 1})
    assert len(reference.check(Situation(wrong))) == 3
    slow = ReferenceOptions.model_validate({"batch_interval": "2s", "delay": "1s"})
    assert reference.traits(slow).batch_interval_ns == 3 * SECOND


def test_a_profile_with_a_pause_is_summed_exactly() -> None:
    """Sums do not depend on how steady the load is."""
    wanted = params("2s", "1s")
    shape = (Piece(3 * SECOND, 400.0, 400.0), Piece(9 * SECOND, 0.0, 0.0), Piece(5 * SECOND, 100.0, 900.0))
    plan = LoadProfile("steps", shape).plan(17 * SECOND)
    answer = WindowSums(Purchases(wanted, plan, 5, origin=ORIGIN), wanted.window, wanted.slide)
    panes = Panes(2_000_000, 1_000_000, wanted.gem_packs)
    fired = []
    for low, high in pairwise(range(ORIGIN // 1000, ORIGIN // 1000 + 22_000_000, 20_000)):
        events = answer.purchases.events(answer.number(low), answer.number(high))
        panes.add(events["gem_pack_id"], events["price"], events["due"], high)
        if (out := panes.fire(high)) is not None:
            fired.append(out)
    expected = answer.until({"purchases": plan.total})
    for name, column in expected.items():
        assert np.array_equal(np.concatenate([part[name] for part in fired]), column), name


def test_more_gem_packs_than_it_can_sum_are_refused_with_a_sentence() -> None:
    many = WindowedAggregationParams.model_validate({"gem_packs": "2M", "distribution": "uniform"})
    (said,) = reference.check(Situation(ReferenceOptions(), params=(many,)))
    assert "at most 1M of them, and the workload has 2M" in said
    single = WindowedAggregationParams.model_validate({"gem_packs": "2M", "distribution": "single"})
    assert reference.check(Situation(ReferenceOptions(), params=(single,))) == []


def queue_over(endpoints: Endpoints) -> str:
    """What the engine reports as the queue of a trial."""
    run = cast(JobRun[ReferenceOptions], SimpleNamespace(endpoints=endpoints, trial=TRIAL))
    return _facts(run, cast(Host, SimpleNamespace(cores=(1,)))).queue


def test_case_9_over_kafka_the_engine_reports_which_queue_is_meant() -> None:
    on_queue = QueueEndpoints(("grpc+unix:///q.sock",), "grpc+unix:///c.sock", "token", 1)
    over_kafka = KafkaEndpoints(Cluster("127.0.0.1:9092"), {"purchases": "in"}, "out", "binary")
    assert queue_over(over_kafka) == "published − end offset of the last batch that was started"
    assert queue_over(on_queue) == ""
