"""The simulated engine: every option does what its description says, and nothing is lost on the way."""

import time
from dataclasses import replace

import numpy as np
import pytest
from judge_samples import trial

from streamgauge.engines.contract import SimulatedEngine, Situation
from streamgauge.engines.simulated import SimulatedOptions, mean_capacity, simulated
from streamgauge.model.facts import EngineFacts
from streamgauge.model.profile import steps
from streamgauge.model.seconds import COLUMNS, Kind, Seconds, join
from streamgauge.model.trial import Outcome, Trial
from streamgauge.model.units import SECOND, parse_duration
from streamgauge.stats import buckets

LATENCIES: tuple[Kind, ...] = ("event-time", "processing-time")
WINDOWS = {"window": 8 * SECOND, "slide": 4 * SECOND, "gem_packs": 100}


def options(**written: object) -> SimulatedOptions:
    return SimulatedOptions.model_validate({"capacity": "100k/s", "delay_spread": 0, **written})


def at(load: float, chosen: SimulatedOptions, length: int = 120, params: dict[str, int] | None = None) -> Trial:
    plain = trial(load, duration=length, limit=length)
    workload = "windowed-aggregation" if params else "ingest"
    return replace(plain, workload=workload, options=chosen.model_dump(), params=params or {}, stall=0)


def run(of: Trial, work: float = 1.0) -> Seconds:
    return join(simulated.simulate(of, work).seconds())


def outcome(of: Trial) -> Outcome:
    simulation = simulated.simulate(of, 1.0)
    return simulation.outcome(join(simulation.seconds()).stop)


def served(of: Trial, work: float = 1.0) -> float:
    """Events per second in the long run, up to the last acknowledgement: batches of an overloaded system grow."""
    happened = run(of, work)
    return int(happened["acknowledged"].sum()) / (int(happened["ack_time"].max()) / SECOND)


def events_waiting(happened: Seconds) -> np.ndarray:
    return np.cumsum(happened["published"]) - np.cumsum(happened["acknowledged"])


def latency_of(of: Trial, share: float, kind: Kind = "event-time") -> float:
    """A quantile of the latency in seconds."""
    latency = run(of).latency(kind)
    return buckets.quantile(latency.bucket, latency.count, share) / 1e6


SYSTEMS = {
    "plain": options(),
    "several instances": options(instances=4),
    "contention and coherence": options(instances=8, contention="5%", coherence="0.2%"),
    "pauses": options(pause_every="7s", pause="350ms"),
    "micro-batches": options(batch_interval="1s"),
    "noise": options(noise="5%"),
    "all of it": options(instances=8, contention="3%", pause_every="5s", pause="200ms", batch_interval="500ms"),
}


@pytest.mark.parametrize("name", SYSTEMS)
def test_an_overloaded_system_processes_its_mean_capacity_in_the_long_run(name: str) -> None:
    chosen = SYSTEMS[name]
    capacity = mean_capacity(chosen, chosen.instances)
    assert served(at(1.1 * capacity, chosen, length=4000)) == pytest.approx(capacity, rel=0.01)


@pytest.mark.parametrize("name", SYSTEMS)
def test_a_system_below_its_capacity_processes_all_that_comes(name: str) -> None:
    chosen = SYSTEMS[name]
    load = 0.8 * mean_capacity(chosen, chosen.instances)
    happened = run(at(load, chosen, length=1000))
    assert int(events_waiting(happened)[-1]) < 3 * load
    assert int(happened["acknowledged"].sum()) == pytest.approx(1000 * load, rel=0.01)


@pytest.mark.parametrize("name", SYSTEMS)
@pytest.mark.parametrize("ratio", [0.5, 0.99, 1.5])
def test_what_was_published_is_acknowledged_or_waits(name: str, ratio: float) -> None:
    chosen = SYSTEMS[name]
    happened = run(at(ratio * mean_capacity(chosen, chosen.instances), chosen))
    waiting = events_waiting(happened)
    assert int(waiting.min()) >= 0
    assert int(happened["acknowledged"].min()) >= 0
    acked = happened["acks"] > 0
    assert np.array_equal(happened["ack_time"] >= 0, acked)
    assert int(happened["ack_lag"][acked].min()) >= 0
    to_be_taken = np.cumsum(happened["published"] - happened["served"])
    assert np.all(happened["queue"] >= to_be_taken)
    assert np.all(to_be_taken <= waiting)
    if not chosen.batch_interval:
        assert np.array_equal(to_be_taken, waiting)
        assert np.array_equal(happened["ack_lag"], waiting)


def test_case_9_an_idle_system_has_one_trigger_of_load_in_its_queue_and_no_more() -> None:
    chosen = options(capacity="1M/s", batch_interval="4s")
    happened = run(at(100_000, chosen))
    assert int(happened["queue"].max()) == 400_000


def test_capacity_is_events_per_second_of_one_instance() -> None:
    assert mean_capacity(options(capacity="730k/s"), 1) == 730_000
    assert mean_capacity(options(capacity="730k/s"), 3) == 3 * 730_000


def test_harder_work_takes_its_share_of_the_capacity() -> None:
    assert served(at(200_000, options(), length=500), work=4.0) == pytest.approx(25_000, rel=0.001)


def test_the_trials_instances_count_before_those_of_the_options() -> None:
    chosen = options(instances=2)
    assert served(at(1e6, chosen)) == pytest.approx(200_000, rel=0.001)
    assert served(replace(at(1e6, chosen), instances=5)) == pytest.approx(500_000, rel=0.001)


@pytest.mark.parametrize(
    ("contention", "coherence", "instances", "speedup"),
    [(0, 0, 10, 10.0), (0.1, 0, 10, 10 / 1.9), (0.1, 0.01, 10, 10 / 2.8), (1, 0, 50, 1.0)],
)
def test_instances_scale_by_the_universal_scalability_law(
    contention: float, coherence: float, instances: int, speedup: float
) -> None:
    chosen = options(contention=contention, coherence=coherence)
    assert mean_capacity(chosen, instances) == pytest.approx(100_000 * speedup)


def test_coherence_makes_too_many_instances_slower() -> None:
    chosen = options(coherence="1%")
    speeds = [mean_capacity(chosen, n) for n in (1, 10, 100)]
    assert speeds[1] > speeds[0] > 0
    assert speeds[1] > speeds[2]


def test_micro_batches_are_acknowledged_at_their_ends_once_per_interval() -> None:
    happened = run(at(50_000, options(batch_interval="5s"), length=100))
    assert int(happened["acks"].sum()) in (18, 19)
    assert int(happened["acks"].max()) == 1
    several = run(at(50_000, options(batch_interval="250ms"), length=100))
    assert 3.9 <= several["acks"][2:].mean() <= 4.0


def test_a_batch_that_takes_longer_than_its_interval_is_followed_by_the_next_immediately() -> None:
    happened = run(at(90_000, options(batch_interval="1s", batch_cost="900ms"), length=600))
    # each batch costs 0.9 s and 0.9 of its length: it grows to nine seconds
    assert int(happened["acks"].sum()) < 100
    assert served(at(90_000, options(batch_interval="1s", batch_cost="900ms"), length=600)) > 85_000


def test_batch_cost_is_time_that_every_output_waits() -> None:
    cheap, dear = options(batch_interval="1s"), options(batch_interval="1s", batch_cost="300ms")
    gap = latency_of(at(1000, dear), 0.5, "processing-time") - latency_of(at(1000, cheap), 0.5, "processing-time")
    assert gap == pytest.approx(0.3, abs=0.01)


def test_warm_up_is_a_capacity_that_grows_to_its_full_value() -> None:
    happened = run(at(200_000, options(warmup="20s")))
    speed = happened["acknowledged"]
    assert 30_000 <= speed[0] < 40_000
    assert np.all(np.diff(speed[:20]) > 0)
    assert np.all(np.abs(speed[20:] - 100_000) <= 1)


def test_pauses_come_at_the_end_of_each_period_and_last_as_long_as_set() -> None:
    happened = run(at(200_000, options(pause_every="10s", pause="2s"), length=40))
    speed = happened["acknowledged"]
    assert np.flatnonzero(speed == 0).tolist() == [8, 9, 18, 19, 28, 29, 38, 39]
    assert np.all(np.abs(speed[speed > 0] - 100_000) <= 1)


def test_pauses_are_part_of_the_mean_capacity() -> None:
    assert mean_capacity(options(pause_every="10s", pause="2s"), 1) == pytest.approx(80_000)


@pytest.mark.parametrize(("noise", "memory"), [(0.05, 0.0), (0.05, 0.5), (0.1, 0.8)])
def test_noise_has_its_standard_deviation_and_its_memory(noise: float, memory: float) -> None:
    happened = run(at(1e6, options(noise=noise, noise_memory=memory), length=20_000))
    speed = happened["acknowledged"] / 100_000
    assert speed.mean() == pytest.approx(1.0, abs=0.01)
    assert speed.std() == pytest.approx(noise, rel=0.05)
    assert np.corrcoef(speed[1:], speed[:-1])[0, 1] == pytest.approx(memory, abs=0.03)


def test_without_noise_every_second_is_the_same() -> None:
    assert np.ptp(run(at(1e6, options()))["acknowledged"]) <= 1


@pytest.mark.parametrize("delay", ["5ms", "1s"])
def test_an_idle_system_has_the_latency_of_its_delay(delay: str) -> None:
    chosen = options(delay=delay)
    for kind in LATENCIES:
        for load, share in ((100, 0.05), (100, 0.99), (1, 0.5), (3, 0.99), (50_000, 0.99)):
            assert latency_of(at(load, chosen), share, kind) == pytest.approx(chosen.delay / SECOND, rel=0.005)


def test_windows_of_an_idle_system_have_the_latency_of_the_delay_too() -> None:
    assert latency_of(at(100, options(delay="50ms"), params=WINDOWS), 0.99) == pytest.approx(0.05, rel=0.005)


def test_the_spread_of_the_delay_is_log_normal() -> None:
    latency = run(at(100, options(delay="100ms", delay_spread=0.5), length=5000)).latency("event-time")
    logs = np.log(np.repeat(buckets.middle(latency.bucket), latency.count) / 1e5)
    assert logs.mean() == pytest.approx(0.0, abs=0.02)
    assert logs.std() == pytest.approx(0.5, rel=0.03)


def test_the_latency_of_an_overloaded_system_grows_with_its_queue() -> None:
    # after t seconds at twice the capacity, what leaves was due at t / 2
    happened = run(at(200_000, options(), length=100))
    out, never = happened.latency("event-time"), happened.latency("missing")
    last = buckets.middle(out.bucket[out.second == 48]) / 1e6
    assert np.all((last > 48) & (last < 51))
    assert (out.second.max(), never.second.min(), never.second.max()) == (49, 50, 99)
    waited = buckets.middle(never.bucket[never.second == 60]) / 1e6
    assert np.all((waited > 38.9) & (waited <= 40.1)), "until the end of the trial at least"


def test_all_keys_of_a_window_are_one_window_result() -> None:
    happened = run(at(1000, options(), params=WINDOWS, length=100))
    assert int(happened["firings"].sum()) == 24
    assert int(happened["outputs"].sum()) == 2400
    assert int(happened.latency("event-time").count.sum()) == 2400


def test_the_watermark_is_part_of_the_latency() -> None:
    late = {**WINDOWS, "watermark": 3 * SECOND}
    assert latency_of(at(1000, options(), params=late), 0.5) == pytest.approx(3.005, abs=0.01)


def test_a_system_crashes_from_its_load_on_and_not_below() -> None:
    chosen = options(crash_at="80k/s")
    broken = at(80_000, chosen)
    assert outcome(broken).ending == "crashed"
    assert "80k/s" in outcome(broken).detail
    assert len(run(broken)) == 5
    assert outcome(at(79_999, chosen)).ending == "completed"


def test_a_queue_with_a_bound_ends_the_trial_when_it_is_full() -> None:
    bounded = replace(at(200_000, options()), queue_bound=1_000_000)
    assert outcome(bounded).ending == "queue-full"
    assert "1M" in outcome(bounded).detail
    assert len(run(bounded)) == 11
    assert outcome(replace(at(90_000, options()), queue_bound=1_000_000)).ending == "completed"


@pytest.mark.parametrize(("option", "field"), [("lose", "lost"), ("duplicate", "duplicate"), ("alter", "wrong")])
def test_faults_of_the_output_are_the_requested_share(option: str, field: str) -> None:
    account = outcome(at(1000, options(**{option: "1%"}), params=WINDOWS)).account
    assert account.checked
    assert account.expected == 2900
    faults = {"lost": account.lost, "duplicate": account.duplicate, "wrong": account.wrong}
    assert faults == {**dict.fromkeys(faults, 0), field: 29}
    assert account.observed == account.expected - account.lost + account.duplicate


def test_the_smallest_share_of_faults_is_at_least_one() -> None:
    assert outcome(at(1000, options(lose=1e-9), params=WINDOWS)).account.lost == 1


def test_a_system_without_faults_emits_all_that_is_expected() -> None:
    account = outcome(at(1000, options(), params=WINDOWS)).account
    assert (account.observed, account.lost, account.duplicate, account.wrong) == (2900, 0, 0, 0)


def test_a_trial_that_is_stopped_before_it_crashed_has_not_crashed() -> None:
    simulation = simulated.simulate(at(80_000, options(crash_at="80k/s")), 1.0)
    assert simulation.outcome(3).ending == "completed"
    assert simulation.outcome(5).ending == "crashed"


def test_the_same_seed_gives_the_same_seconds_and_another_seed_others() -> None:
    chosen = options(noise="5%", delay_spread=0.3, pause_every="5s", pause="100ms", batch_interval="700ms")
    one, again, other = (run(replace(at(90_000, chosen), seed=seed)) for seed in (7, 7, 8))
    for name in COLUMNS:
        assert np.array_equal(one[name], again[name])
    for kind in LATENCIES:
        assert np.array_equal(one.latency(kind).bucket, again.latency(kind).bucket)
    assert not np.array_equal(one["acknowledged"], other["acknowledged"])


@pytest.mark.parametrize(
    ("written", "problem"),
    [
        ({"pause": "1s"}, "pause needs pause_every"),
        ({"pause": "2s", "pause_every": "2s"}, "pause must be shorter than pause_every"),
        ({"batch_interval": "1s", "batch_cost": "1s"}, "batch_cost must be shorter than batch_interval"),
        ({"batch_cost": "1s"}, "batch_cost needs batch_interval"),
    ],
)
def test_settings_that_contradict_each_other_are_found_before_any_trial(written: dict[str, str], problem: str) -> None:
    (said,) = simulated.check(Situation(options(**written)))
    assert said.startswith(problem)


def test_settings_that_fit_have_no_problem() -> None:
    for chosen in SYSTEMS.values():
        assert simulated.check(Situation(chosen)) == []


def test_an_option_that_does_not_exist_is_an_error() -> None:
    with pytest.raises(ValueError, match="capasity"):
        SimulatedOptions(capasity="1k/s")  # type: ignore[call-arg]


def test_it_runs_in_simulated_time_and_is_marked_so() -> None:
    assert isinstance(simulated, SimulatedEngine)
    assert simulated.traits(options()).simulated
    chosen = options(capacity="5/s")
    assert simulated.describe(chosen) == EngineFacts(
        "simulated", simulated=True, options=chosen.model_dump(mode="json")
    )


def test_a_thousand_instances_and_a_hundred_million_events_per_second_are_no_trouble() -> None:
    chosen = options(instances=1000, capacity="110k/s", batch_interval="500ms", noise="3%")
    begun = time.process_time()
    happened = run(at(1e8, chosen, length=300, params=WINDOWS))
    assert time.process_time() - begun < 0.5
    assert int(happened["published"].sum()) == 300 * 10**8
    assert int(happened["acknowledged"].sum()) > 297 * 10**8
    assert int(events_waiting(happened).min()) >= 0


@pytest.mark.parametrize("interval", ["3604990ns", "1ms", "7ms", "333333333ns", "1s"])
def test_every_trigger_comes_after_the_one_before_whatever_the_interval(interval: str) -> None:
    """A multiple of an interval in seconds may be rounded down to the trigger that has just fired."""
    happened = run(at(500.0, options(batch_interval=interval), length=20))
    assert happened["acks"].sum() == pytest.approx(20 * SECOND / parse_duration(interval), rel=0.1)
    assert np.all(np.diff(happened["ack_time"][happened["acks"] > 0]) > 0)


def test_a_trigger_interval_below_a_millisecond_is_refused() -> None:
    said = simulated.check(Situation(options(batch_interval="999us")))
    assert said == ["batch_interval must be at least 1ms, or 0s to process events continuously"]


def test_windows_that_fire_very_often_are_counted_in_groups() -> None:
    happened = run(at(1000.0, options(), 30, {"window": 1000, "slide": 1000, "gem_packs": 5}))
    assert happened["firings"].sum() == pytest.approx(30 * SECOND / 1000, rel=0.01)
    assert happened["outputs"].sum() == pytest.approx(5 * happened["firings"].sum(), rel=0.001)


def test_a_delay_with_a_long_tail_stays_a_latency() -> None:
    slow = options(delay="10000d", delay_spread="300%")
    assert outcome(at(1000.0, slow, 30)).account.lost == 0
    assert len(run(at(1000.0, slow, 30))) == 30


def test_a_system_whose_first_micro_batch_never_ends_fires_nothing() -> None:
    """The windows before the first event need none, and yet they fire with an acknowledgement only."""
    silent = steps([(5 * SECOND, 0.0), (SECOND, 1000.0)])
    late = replace(at(1000.0, options(capacity="1/s", batch_interval="9s"), 30), profile=silent)
    happened = run(late)
    assert (happened["acks"].sum(), happened["firings"].sum()) == (0, 0)


def test_the_layout_has_at_least_the_instances_of_the_options() -> None:
    assert [simulated.layout(options(instances=4), wanted).instances for wanted in (1, 8)] == [4, 8]
