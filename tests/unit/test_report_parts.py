"""The parts of a report, each from values alone: why it stopped, latency, what was checked, time, charts."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from report_samples import EXPLAINED, FINDING, LENGTH, LOAD_BEGAN, RECORDED, REPORT, WARMUP, judged, seconds

from streamgauge.engines.spark.engine import QUEUE_IS
from streamgauge.model.facts import EngineFacts, TrialFacts, WarmUp
from streamgauge.model.finding import Bound
from streamgauge.model.measurement import Interval, LatencySummary, VerdictKind
from streamgauge.model.objective import SHARES
from streamgauge.model.seconds import Account, Kind, Latencies, Seconds
from streamgauge.model.trial import Outcome
from streamgauge.model.units import SECOND
from streamgauge.report.view import paper_figures
from streamgauge.report.view.charts import MOST_POINTS, MOST_TRIALS, all_charts, chart_data, charted_trials
from streamgauge.report.view.findings import outputs_checked
from streamgauge.report.view.latency import PERCENTILES, UNSUPPORTED, early, footnote, format_latency, latency_lines
from streamgauge.report.view.limits import busy_share, limits_of
from streamgauge.report.view.run_report import JudgedTrial
from streamgauge.report.view.setup import measured_on, settings
from streamgauge.report.view.time_breakdown import PARTS, time_breakdown
from streamgauge.stats import buckets
from streamgauge.store.facts import facts_from_json


class TestWhyItStoppedThere:
    def test_the_trial_at_the_failing_bound_is_explained_with_the_largest_share_first(self) -> None:
        found = limits_of(FINDING, REPORT.trials)
        assert found is not None
        assert (found.trial, found.where, found.load) == (3, "fails", "104k/s")
        assert [(limit.what, limit.share) for limit in found.limits] == [("core", 0.97), ("python", 0.31)]

    def test_if_nothing_fails_the_passing_trial_is_explained(self) -> None:
        only = judged(2, 1e5, VerdictKind.SUSTAINED, "confirm", facts=EXPLAINED)
        found = limits_of(replace(FINDING, fails=None, status="all-hold"), [only])
        assert found is not None
        assert (found.trial, found.where) == (2, "holds")

    def test_the_busy_share_of_the_cores_is_shown_for_any_engine(self) -> None:
        silent = judged(3, 1.04e5, VerdictKind.OVERLOADED, facts=TrialFacts(sut_cores=(1, 2)))
        assert busy_share(silent) == pytest.approx(0.45)  # 0.9 of two cores
        found = limits_of(FINDING, [silent])
        assert found is not None
        assert "used 45 % of its 2 cores, other processes 0.0 %" in found.limits[0].sentence

    def test_an_engine_that_explains_its_core_is_not_explained_twice(self) -> None:
        found = limits_of(FINDING, REPORT.trials)
        assert found is not None
        assert [limit.what for limit in found.limits].count("core") == 1

    def test_the_capacity_is_named_where_the_queue_grew(self) -> None:
        grew = judged(3, 1.04e5, VerdictKind.OVERLOADED)
        grew = replace(grew, measurement=replace(grew.measurement, capacity=Interval(1e5, 9e4, 1.1e5, 1.0, 9)))
        found = limits_of(FINDING, [grew])
        assert found is not None
        assert (
            "processed 100k/s while its lag was growing (95 % confidence interval 90k/s to 110k/s)"
            in found.limits[-1].sentence
        )

    @pytest.mark.parametrize(
        "rubbish", [None, "x", 7, [None], [{"what": "core"}], [{"sentence": " "}], [{"sentence": 3}], {"a": 1}]
    )
    def test_an_explanation_that_is_none_is_omitted(self, rubbish: object) -> None:
        facts = facts_from_json({"explanation": rubbish})
        assert limits_of(FINDING, [judged(3, 1.04e5, VerdictKind.OVERLOADED, facts=facts)]) is None

    def test_a_share_that_is_no_number_has_no_bar(self) -> None:
        facts = facts_from_json({"explanation": [{"what": "x", "share": float("nan"), "sentence": "said"}]})
        found = limits_of(FINDING, [judged(3, 1.04e5, VerdictKind.OVERLOADED, facts=facts)])
        assert found is not None
        assert (found.limits[0].share, found.limits[0].sentence) == (None, "said")


def with_latencies(base: JudgedTrial, **kinds: LatencySummary) -> JudgedTrial:
    named: dict[Kind, LatencySummary] = {}
    for name, summary in kinds.items():
        named["event-time" if name == "event" else "processing-time"] = summary
    return replace(base, measurement=replace(base.measurement, latencies=named))


FULL = LatencySummary(5_000, 500, 2e9, 1e9, 3e9, dict.fromkeys(SHARES, 1.5e9))


class TestLatency:
    def test_both_kinds_come_at_the_whole_and_at_its_shares(self) -> None:
        trials = [with_latencies(t, event=FULL, processing=FULL) for t in REPORT.trials]
        lines = latency_lines(FINDING, trials)
        assert [(line.kind, line.at, line.trial, line.load) for line in lines] == [
            ("event-time", "100%", 2, "100k/s"),
            ("event-time", "90%", 4, "90k/s"),
            ("processing-time", "100%", 2, "100k/s"),
            ("processing-time", "90%", 4, "90k/s"),
        ]
        assert (lines[0].average, lines[0].least, lines[0].most) == ("2s", "1s", "3s")
        assert (lines[0].rows, lines[0].firings) == (5_000, 500)
        assert footnote(lines) == ""

    def test_a_percentile_that_the_rows_do_not_have_is_not_printed(self) -> None:
        line = latency_lines(FINDING, REPORT.trials)[0]
        assert dict(zip(PERCENTILES, line.percentiles, strict=True)) == {
            "p50": "4ms",
            "p90": "1.23s",
            "p95": UNSUPPORTED,
            "p99": UNSUPPORTED,
        }
        assert "too few outputs for this percentile" in footnote([line])

    def test_latencies_of_a_trial_from_which_others_took_cpu_are_upper_bounds(self) -> None:
        held = with_latencies(REPORT.trials[1], event=FULL)
        said = "The latencies of trial 2 are upper bounds, because other processes used CPU time"
        for foreign, waited in ((0.06, 0.0), (0.0, 0.2)):
            measured = replace(held.measurement, foreign_share=foreign, run_delay_share=waited)
            assert footnote(latency_lines(replace(FINDING, also=()), [replace(held, measurement=measured)])).startswith(
                said
            )
        quiet = replace(held, measurement=replace(held.measurement, foreign_share=0.04, run_delay_share=0.09))
        assert footnote(latency_lines(replace(FINDING, also=()), [quiet])) == ""

    def test_of_several_trials_at_a_bound_the_longest_is_explained(self) -> None:
        short = replace(REPORT.trials[1], measurement=replace(REPORT.trials[1].measurement, judged_seconds=3))
        long = judged(7, 1e5, VerdictKind.SUSTAINED, "confirm")
        finding = replace(FINDING, holds=Bound(1e5, (2, 7)), also=())
        assert [line.trial for line in latency_lines(finding, [long, short])] == [7]

    def test_a_plain_measurement_has_its_load_for_a_name(self) -> None:
        plain = replace(FINDING, status="measured", holds=None, fails=Bound(1.04e5, (3,)), also=())
        assert [line.at for line in latency_lines(plain, REPORT.trials)] == ["104k/s"]

    @pytest.mark.parametrize(
        ("nanos", "text"),
        [
            (1_351_271_500, "1.35s"),
            (506_880_000, "507ms"),
            (32_100, "32.1us"),
            (999_900_000, "1s"),
            (0, "0s"),
            (59e9, "59s"),
            (123.4e9, "123s"),
            (5000e9, "1h 23m 20s"),
        ],
    )
    def test_a_latency_has_three_digits(self, nanos: float, text: str) -> None:
        assert format_latency(nanos) == text


class TestWhatWasChecked:
    def test_the_counts_of_all_trials_are_added_up(self) -> None:
        wrong = replace(REPORT.trials[0], outcome=Outcome(account=Account(100, 99, lost=1, wrong=2, checked=True)))
        said = outputs_checked([wrong, *REPORT.trials[1:]])
        assert said == (
            "Outputs were checked: 399 rows of 4 trials were compared with the reference result: "
            "1 lost, 0 duplicate, 2 wrong, 0 late."
        )

    def test_trials_that_could_not_be_checked_are_counted(self) -> None:
        unchecked = replace(REPORT.trials[0], outcome=Outcome())
        assert outputs_checked([unchecked, *REPORT.trials[1:]]).endswith("1 trial could not be checked.")

    def test_a_crash_before_an_output_was_due_leaves_nothing_to_check(self) -> None:
        for account in (Account(checked=True), Account(expected=300, not_reached=300, checked=True)):
            crashed = replace(REPORT.trials[0], outcome=Outcome("crashed", account=account))
            said = outputs_checked([crashed])
            assert said == "Correctness is unchecked: no output was due before the trial ended (crashed)."
            assert outputs_checked([crashed, *REPORT.trials[1:]]).endswith(
                "300 rows of 3 trials were compared with the reference result: "
                "0 lost, 0 duplicate, 0 wrong, 0 late. 1 trial could not be checked."
            )

    def test_a_trial_whose_outputs_are_all_lost_was_checked(self) -> None:
        lost = replace(REPORT.trials[0], outcome=Outcome(account=Account(expected=100, lost=100, checked=True)))
        assert "0 rows of 1 trial" in outputs_checked([lost])
        assert "100 lost" in outputs_checked([lost])

    def test_what_an_invalid_trial_lost_is_not_held_against_the_system(self) -> None:
        spoilt = judged(9, 1e5, VerdictKind.INVALID)
        spoilt = replace(spoilt, outcome=Outcome(account=Account(100, 0, lost=100, checked=True)))
        assert "400 rows of 4 trials" in outputs_checked([*REPORT.trials, spoilt])
        assert "0 lost" in outputs_checked([*REPORT.trials, spoilt])
        assert "every trial was INVALID" in outputs_checked([spoilt])

    def test_case_4_what_an_invalid_trial_lost_is_in_the_totals_of_the_run(self) -> None:
        spoilt = judged(9, 1e5, VerdictKind.INVALID)
        spoilt = replace(spoilt, outcome=Outcome(account=Account(100, 99, lost=1, checked=True)))
        for trials in ([*REPORT.trials, spoilt], [spoilt]):
            assert outputs_checked(trials).endswith(
                "Outputs of INVALID trials, whose cause is unknown: 1 lost, 0 duplicate, 0 wrong."
            )

    def test_unchecked_is_reported_with_the_reason(self) -> None:
        plain = replace(REPORT.trials[0], outcome=Outcome())
        own = replace(plain, facts=replace(plain.facts, engine=EngineFacts("spark", unchecked_job=True)))
        crashed = replace(plain, outcome=Outcome("crashed"))
        for trial, reason in (
            (plain, "there is no reference result"),
            (own, "the job is your own function, and engine.reference names no function"),
            (crashed, "no trial ran to its end (crashed)"),
        ):
            assert f"Correctness is unchecked: {reason}" in outputs_checked([trial])
        assert "no trial was finished" in outputs_checked([])


class TestEarlyOutputs:
    def test_the_report_states_that_latencies_of_early_rows_have_another_meaning(self) -> None:
        assert early(FINDING, REPORT.trials) == ""
        trials = [
            replace(trial, facts=replace(trial.facts, engine=replace(trial.facts.engine, emits_early=True)))
            for trial in REPORT.trials
        ]
        assert early(FINDING, trials).startswith("the job emits rows before their window is complete")


class TestWhereTheSecondsWent:
    def test_phases_are_used_where_they_are_written_down(self) -> None:
        spent = time_breakdown(replace(REPORT, trials=REPORT.trials[2:3]))
        # a load of 36 s has 35 recorded seconds: the other one is tail
        assert dict(zip(PARTS, spent.totals, strict=True)) == {
            "starting": 4.0,
            "warm-up": float(WARMUP),
            "measurement": float(LENGTH - WARMUP),
            "drain": 3.0,
            "checking": 1.5,
        }
        # the load began 10 s after the run: 4 s of them were the start of the trial
        assert spent.other == pytest.approx(6.0)
        assert spent.other_is.startswith("before and between the trials")
        assert "50 s from the start of the run" in spent.sentence
        assert "61 % of them in measurement phases" in spent.sentence

    def test_a_system_that_serves_many_trials_is_warmed_up_once(self) -> None:
        warm = [WarmUp(14.0, 30, steady=True), WarmUp(10.0, 20, steady=False)]
        trials = tuple(
            judged(n, 1e5, VerdictKind.SUSTAINED, facts=TrialFacts(warm_up=warm[which]))
            for n, which in ((1, 0), (2, 0), (3, 1))
        )
        assert time_breakdown(replace(REPORT, trials=trials)).warm_up == pytest.approx(74.0)
        assert time_breakdown(REPORT).warm_up is None

    def test_without_phases_the_rest_is_one_number(self) -> None:
        trial = judged(3, 1.04e5, VerdictKind.OVERLOADED, facts=TrialFacts(wall_ns=LOAD_BEGAN))
        spent = time_breakdown(replace(REPORT, trials=(trial,)))
        assert spent.totals == (None, 5.0, 30.0, None, None)
        assert spent.other == pytest.approx(10.0)
        assert spent.other_is.startswith("starting, drain and checking")

    def test_the_pause_before_a_resume_counts_for_no_part(self) -> None:
        first, day = LOAD_BEGAN, 86_400 * SECOND
        begun = [first - 10 * SECOND, first + day - 7 * SECOND]
        starts = [(first, begun[0]), (first + 40 * SECOND, begun[0]), (first + day, begun[1])]
        trials = tuple(
            judged(n, 1e5, VerdictKind.SUSTAINED, facts=TrialFacts(wall_ns=wall, segment_ns=segment))
            for n, (wall, segment) in enumerate(starts, 1)
        )
        spent = time_breakdown(replace(REPORT, trials=trials))
        # 10 s, two trials of 35 s that begin 40 s apart; then 7 s and another trial
        assert spent.other == pytest.approx(10.0 + 5.0 + 7.0)
        assert spent.sentence.startswith("127 s in 2 run segments, ")
        assert spent.sentence.endswith("without the pauses between them; 71 % of them in measurement phases.")

    def test_simulated_seconds_are_named_as_such(self) -> None:
        virtual = judged(1, 1e5, VerdictKind.SUSTAINED, facts=TrialFacts(EngineFacts(simulated=True)))
        spent = time_breakdown(replace(REPORT, trials=(virtual,)))
        assert spent.other is None
        assert "35 s of simulated time" in spent.sentence

    def test_a_run_without_trials_has_no_seconds(self) -> None:
        assert time_breakdown(replace(REPORT, trials=())).sentence == "No trial was finished."


class TestWhatItWasMeasuredOn:
    def test_machine_placement_engine_and_settings_are_named(self) -> None:
        told = dict(measured_on(REPORT))
        assert told["machine"] == "AMD EPYC, 2 cores, virtual machine, 24GiB of memory"
        assert told["CPU pinning"] == "load driver on core 0, system under test on core 1"
        assert told["engine"] == "simulated 4.3.0, profile tuned"
        assert told["workload"] == "windowed-aggregation: window 8s, slide 4s, users 10"
        assert told["objective"] == "lag-trend <= 1%"
        assert told["software"] == "PySpark 4.3.0"

    def test_settings_are_flat_and_without_what_other_lines_show(self) -> None:
        [(label, pairs)] = settings(REPORT)
        assert label == "simulated"
        assert ("settings.spark.sql.shuffle.partitions", "1") in pairs
        assert not {"explanation", "phases", "wall_ns"} & {name.split(".")[0] for name, _ in pairs}

    def test_kafka_is_named_with_what_its_brokers_used_and_how_far_the_clocks_may_be_apart(self) -> None:
        kafka = {"version": "4.3.0", "brokers": 1, "format": "binary", "replication": 1, "acks": "all"}
        use = {"cores": 0.17, "written_per_s": 18.5 * 2**20, "read_per_s": 0.0}
        clock = {"offset_ms": -0.1, "within_ms": 0.15}
        stored: list[dict[str, Any]] = [{"kafka": kafka}, {"kafka": kafka | {"clock": clock}, "broker_use": use}]
        trials = tuple(
            judged(n + 1, 1e5, VerdictKind.SUSTAINED, facts=facts_from_json(f)) for n, f in enumerate(stored)
        )
        assert dict(measured_on(replace(REPORT, trials=trials)))["transport"] == (
            "Kafka 4.3.0, 1 local broker, binary records, 1 copy, acks all; the brokers used up to 17 % of a core in a "
            "trial, 18.5MiB/s written to disk, 0B/s read from it; clocks of generator and broker agree within ±0.25 ms"
        )
        assert "transport" not in dict(measured_on(REPORT)), "the queue is what is meant where nothing is said"

    def test_case_17_the_resolution_is_printed_with_the_longest_send_interval(self) -> None:
        facts = [TrialFacts(send_interval_ns=interval) for interval in (2_000_000, 10_000_000, 0)]
        trials = tuple(judged(n, 1e5, VerdictKind.SUSTAINED, facts=f) for n, f in enumerate(facts, 1))
        assert dict(measured_on(replace(REPORT, trials=trials)))["resolution"] == (
            "the generator sends every 10 ms, so event-time latencies include up to 10 ms of waiting to be sent, "
            "5 ms on average"
        )
        assert "resolution" not in dict(measured_on(REPORT)), "nothing is sent in simulated time"

    def test_case_2_the_longest_append_delay_of_all_trials_is_printed(self) -> None:
        facts = TrialFacts(send_interval_ns=10_000_000)
        trials = [judged(n, 1e5, VerdictKind.SUSTAINED, facts=facts) for n in (1, 2, 3)]
        for number, delay in ((0, 12e6), (2, 31e6)):
            slow = replace(trials[number].measurement, append_delay_p99=delay)
            trials[number] = replace(trials[number], measurement=slow)
        said = dict(measured_on(replace(REPORT, trials=tuple(trials))))["resolution"]
        assert said.endswith("; the broker had appended 99 % of the events of every trial within 31 ms")

    def test_case_9_the_report_states_which_queue_is_meant_in_each_mode_of_spark(self) -> None:
        engines = [EngineFacts("spark", queue=QUEUE_IS[mode]) for mode in ("micro-batch", "real-time")]
        facts = [TrialFacts(engine, send_interval_ns=10_000_000) for engine in engines]
        trials = tuple(judged(n, 1e5, VerdictKind.SUSTAINED, facts=facts[n % 2]) for n in range(4))
        said = dict(measured_on(replace(REPORT, trials=trials)))["resolution"]
        assert said.split("; ")[1:] == [
            "queue: published − end offset of the running micro-batch",
            "queue: published − position last reported",
        ]

    def test_an_environment_of_an_older_version_leaves_out_what_it_lacks(self) -> None:
        assert "machine" not in dict(measured_on(replace(REPORT, environment={})))


class TestCharts:
    def test_the_trials_of_the_finding_come_first_then_all_others(self) -> None:
        assert [(w.number, w.role) for w in charted_trials(REPORT)] == [(2, "holds"), (4, "90%"), (3, "fails"), (1, "")]

    def test_a_page_has_at_most_so_many_trials(self) -> None:
        many = tuple(replace(REPORT.trials[0], trial=replace(REPORT.trials[0].trial, number=n)) for n in range(5, 200))
        wanted = charted_trials(replace(REPORT, trials=(*REPORT.trials, *many)))
        assert len(wanted) == MOST_TRIALS
        assert [w.number for w in wanted[:3]] == [2, 4, 3]

    def test_latencies_of_a_second_are_its_percentiles_and_silent_seconds_are_gaps(self) -> None:
        chart = chart_data(REPORT.trials[1], RECORDED[2], "holds")
        p50, p99, most = (chart["latency"][f"event {name}"] for name in ("p50", "p99", "max"))
        assert p50[1] is None
        assert (p50[0], p99[0], most[0]) == pytest.approx((0.002, 0.004, 0.004), rel=0.002)
        assert chart["time"] == list(range(LENGTH))

    def test_throughput_queue_and_cpu_have_their_units(self) -> None:
        chart = chart_data(REPORT.trials[2], RECORDED[3], "fails")
        assert chart["throughput"]["served"][0] == 104_000
        assert chart["queue"]["lag"][0] == 104_000
        assert (chart["cpu"]["system under test"][0], chart["cpu"]["driver"][0]) == (0.9, 0.2)
        assert chart["cpu"]["foreign"][0] == 0  # a single second may be below zero; a picture does not show that

    def test_a_trial_without_cpu_or_acknowledgements_has_no_such_lines(self) -> None:
        bare = Seconds(0, {"published": np.full(3, 7)})
        chart = chart_data(REPORT.trials[0], bare, "")
        assert (chart["cpu"], chart["latency"]) == ({}, {})
        assert chart["queue"]["lag"] == [None, None, None]

    def test_seconds_of_a_long_trial_are_put_together_and_their_latencies_merged(self) -> None:
        length = 2 * MOST_POINTS
        at = np.array([0, 1])
        both = Latencies(at, buckets.index([1_000, 9_000]), np.array([1, 99]))
        long = Seconds(0, seconds(1e5, length).columns, {"event-time": both})
        chart = chart_data(REPORT.trials[0], long, "")
        assert (chart["step"], len(chart["time"]), chart["time"][1]) == (2, MOST_POINTS, 2)
        assert chart["latency"]["event p50"][0] == pytest.approx(0.009, rel=0.002)  # the mean of medians would be 5 ms

    def test_trials_without_seconds_have_no_charts(self) -> None:
        recorded = {2: RECORDED[2], 3: Seconds(0, {})}
        assert [chart["trial"] for chart in all_charts(REPORT, charted_trials(REPORT), recorded)] == [2]


class TestKarimov:
    def test_the_tables_are_the_published_ones(self) -> None:
        sums, joins = (paper_figures.PUBLISHED[name] for name in ("windowed-aggregation", "windowed-join"))
        assert sums.throughput["Spark"] == (380_000, 640_000, 910_000)
        assert joins.throughput == {"Spark": (360_000, 630_000, 940_000), "Flink": (850_000, 1_120_000, 1_190_000)}
        assert (len(sums.latency), len(joins.latency)) == (18, 12)
        rows = {(row.system, row.share, row.nodes): row for row in sums.latency}
        spark = rows["Spark", "90%", 4]
        assert (spark.average, spark.least, spark.most, spark.p90, spark.p95, spark.p99) == (
            2.8,
            1.6,
            6.9,
            3.4,
            3.7,
            4.8,
        )
        assert rows["Flink", "100%", 2].most == 12.3
        assert rows["Storm", "90%", 8].p95 == 5

    def test_latencies_of_a_row_are_in_order(self) -> None:
        for row in (row for tables in paper_figures.PUBLISHED.values() for row in tables.latency):
            assert row.least <= row.average <= row.p90 <= row.p95 <= row.p99 <= row.most
