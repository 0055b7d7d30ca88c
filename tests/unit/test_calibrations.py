"""Calibrations are kept per machine, placement and transport, and their workspaces leave nothing behind."""

import io
import re
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console
from search_replay import experiment

from streamgauge.engines.reference.engine import ReferenceOptions
from streamgauge.judge.generator import MAX_SEND_DELAY
from streamgauge.model.calibration import Calibration, CapacityRow, Ceilings, LagProbe, LatencyRow
from streamgauge.model.experiment import EngineChoice
from streamgauge.processes.placement import assign_cores
from streamgauge.report.render.terminal import render_calibration
from streamgauge.run.calibrate.load_limit import with_max_load
from streamgauge.run.calibrate.max_load import CONFIRM, PROBE, SHARES, SendDelay, confirmed, probe_rates
from streamgauge.run.environment import machine_name
from streamgauge.run.trial.setup import RunLimits
from streamgauge.store.calibrations import load, save, stale_workspaces, workspace
from streamgauge.store.documents import encode, read_content

CEILINGS = Ceilings(20e6, 3e6, 1e6, 150_000.0, 1_700_000.0, 9_000_000.0)


def made(machine: str = "box, 2 cores", placement: str = "driver on 0", queue: float = 20e6) -> Calibration:
    ceilings = Ceilings(queue, 3e6, 1e6, 150_000.0, 1_700_000.0, 9_000_000.0)
    latency = LatencyRow(5e6, 200, 5.1e6, 5.4e6, 9e6, 9.9e6, "SUSTAINED")
    invalid = CapacityRow(50e3, 49e3, "INVALID", ("others used 20% of the cores",))
    return Calibration(machine, placement, "2026-01-01T00:00:00+00:00", ceilings, (invalid,), (latency,), 120.0)


def test_the_newest_calibration_of_a_machine_and_placement_counts(tmp_path: Path) -> None:
    assert load(tmp_path, "box, 2 cores", "driver on 0") is None
    save(tmp_path, made())
    save(tmp_path, made(queue=30e6))
    save(tmp_path, made(placement="unpinned", queue=1e6))
    found = load(tmp_path, "box, 2 cores", "driver on 0")
    assert found == made(queue=30e6)
    assert load(tmp_path, "another box", "driver on 0") is None


def test_calibrations_over_kafka_and_over_the_queue_are_stored_separately(tmp_path: Path) -> None:
    long = "a machine whose name is so long that it would push everything else out of the name of a file " * 2
    over_kafka = replace(made(machine=long, queue=1.5e6), transport="kafka, binary records")
    save(tmp_path, over_kafka)
    assert load(tmp_path, long, "driver on 0") is None
    save(tmp_path, made(machine=long))
    assert load(tmp_path, long, "driver on 0") == made(machine=long)
    assert load(tmp_path, long, "driver on 0", "kafka, binary records") == over_kafka
    assert load(tmp_path, long, "driver on 0", "kafka, json records") is None


LONG_MACHINE = "AMD EPYC 9654 96-Core Processor, 192 cores"


def placement_of(driver: range, sut: range) -> str:
    """The sentence of a placement, as ``Placement`` has it."""
    cores = [", ".join(map(str, each)) for each in (driver, sut)]
    return f"the driver on core {cores[0]}, the system under test on core {cores[1]}"


def test_a_calibration_of_another_core_layout_is_not_used(tmp_path: Path) -> None:
    """The names of both layouts begin with the same 120 characters."""
    four, eight = placement_of(range(188), range(188, 192)), placement_of(range(184), range(184, 192))
    save(tmp_path, made(LONG_MACHINE, four, queue=30e6))
    assert load(tmp_path, LONG_MACHINE, eight) is None
    save(tmp_path, made(LONG_MACHINE, eight, queue=10e6))
    assert load(tmp_path, LONG_MACHINE, four) == made(LONG_MACHINE, four, queue=30e6)
    assert load(tmp_path, LONG_MACHINE, eight) == made(LONG_MACHINE, eight, queue=10e6)


def test_a_calibration_whose_content_is_of_another_machine_is_not_used(tmp_path: Path) -> None:
    save(tmp_path, made("another box")).rename(save(tmp_path, made()))
    assert load(tmp_path, "box, 2 cores", "driver on 0") is None


def older_name(root: Path, name: str, calibration: Calibration) -> Path:
    """A calibration under the name that streamgauge gave it before names had a digest."""
    path = root / "calibrations" / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(encode("calibration", calibration))
    return path


def test_a_calibration_under_its_older_name_is_read_if_its_content_matches(tmp_path: Path) -> None:
    four, eight = placement_of(range(188), range(188, 192)), placement_of(range(184), range(184, 192))
    cut = re.sub(r"[^a-z0-9]+", "-", f"{LONG_MACHINE}-{four}".lower())[:120] + ".json"
    older_name(tmp_path, cut, made(LONG_MACHINE, four))
    assert load(tmp_path, LONG_MACHINE, four) == made(LONG_MACHINE, four)
    assert load(tmp_path, LONG_MACHINE, eight) is None


def test_a_new_calibration_takes_the_place_of_one_under_the_older_name(tmp_path: Path) -> None:
    older = older_name(tmp_path, "box-2-cores-driver-on-0.json", made())
    other = older_name(tmp_path, "kafka-binary-records-box-2-cores-driver-on-0.json", made("another box"))
    save(tmp_path, made(queue=30e6))
    assert load(tmp_path, "box, 2 cores", "driver on 0") == made(queue=30e6)
    assert not older.exists()
    assert other.exists(), "another calibration is not removed"


def test_the_rates_of_generator_and_broker_are_shown() -> None:
    ceilings = replace(CEILINGS, queue=1.5e6, collector=0.0, believed=0.9e6)
    text = shown(replace(made(), ceilings=ceilings, transport="kafka, binary records", broker=True))
    assert "box, 2 cores; driver on 0; kafka, binary records\n" in text
    assert "maximum rate through generator and broker: 1.5M/s; maximum reliable load: 900k/s, 60 % of it\n" in text
    assert "collector" not in text


def test_the_rates_of_a_transport_without_a_broker_are_shown_under_its_name() -> None:
    assert "maximum rate through generator and fine-queue: " in shown(replace(made(), transport="fine-queue"))


def lag(rate: float, late: float = 2e6, achieved: float = 1.0, append: int = 0, seconds: float = PROBE) -> SendDelay:
    worst = 300_000_000
    return SendDelay(rate, achieved * rate, 150_000, round(late), worst, worst, 600, 1_000_000, append, seconds)


def probe(rate: float, late: float, timely: bool, seconds: float = PROBE) -> LagProbe:
    return LagProbe(rate, rate, 150_000.0, late, 300e6, timely, seconds)


def test_a_search_goes_up_to_the_rate_at_which_sends_were_on_time() -> None:
    assert replace(CEILINGS, believed=12e6).max_load == 12e6


def test_a_calibration_from_before_that_was_looked_at_gives_four_fifths_of_the_flat_out_rate() -> None:
    assert CEILINGS.max_load == 16e6


def test_a_calibration_without_the_newer_fields_still_reads(tmp_path: Path) -> None:
    save(tmp_path, made())
    (path,) = (tmp_path / "calibrations").glob("*.json")
    content = read_content(path, "calibration")
    for name in ("believed", "probes"):
        del content["ceilings"][name]
    del content["transport"], content["broker"]
    path.write_bytes(encode("calibration", content))
    assert load(tmp_path, "box, 2 cores", "driver on 0") == made()


def test_an_older_calibration_over_another_transport_than_the_queue_has_a_broker(tmp_path: Path) -> None:
    over_kafka = replace(made(), transport="kafka, binary records", broker=True)
    path = save(tmp_path, over_kafka)
    content = read_content(path, "calibration")
    del content["broker"]
    path.write_bytes(encode("calibration", content))
    assert load(tmp_path, "box, 2 cores", "driver on 0", "kafka, binary records") == over_kafka


def test_a_calibration_is_found_under_a_name_that_does_not_begin_with_its_transport(tmp_path: Path) -> None:
    path = save(tmp_path, made())
    older = path.with_name(path.name.removeprefix("queue-"))
    path.rename(older)
    assert load(tmp_path, "box, 2 cores", "driver on 0") == made()
    save(tmp_path, made(queue=30e6))
    assert not older.exists()


def test_rates_are_probed_from_the_highest_share_down_to_the_first_that_is_on_time() -> None:
    probes = probe_rates(20e6, lambda rate, long: lag(rate, 270e6 if rate > 12e6 else 20e6, seconds=long))
    assert [(p.rate, p.seconds, p.on_time) for p in probes] == [
        (16e6, PROBE, False),
        (12e6, PROBE, True),
        (12e6, CONFIRM, True),
    ]


def test_case_12_a_rate_that_is_late_over_the_length_of_a_trial_gives_way_to_the_next_lower_one() -> None:
    def look(rate: float, long: float) -> SendDelay:
        return lag(rate, 90e6 if long == CONFIRM and rate > 12e6 else 20e6, seconds=long)

    assert [(p.rate, p.seconds) for p in probe_rates(20e6, look)] == [
        *((16e6, PROBE), (16e6, CONFIRM)),
        *((12e6, PROBE), (12e6, CONFIRM)),
    ]


def late_when_long(rate: float, seconds: float) -> SendDelay:
    """In time in every short probe, and late over the length of a trial at more than 9M/s."""
    return lag(rate, 90e6 if seconds == CONFIRM and rate > 9e6 else 20e6, seconds=seconds)


def of_probes(probes: list[SendDelay]) -> Calibration:
    """The calibration that ends with these probes."""
    seen = tuple(probe(p.rate, p.p99, p.on_time, p.seconds) for p in probes)
    ceilings = replace(CEILINGS, believed=probes[-1].rate, probes=seen, confirmed=confirmed(probes))
    return replace(made(), ceilings=ceilings)


def test_case_12_a_third_rate_is_not_confirmed_because_a_calibration_takes_three_minutes() -> None:
    probes = probe_rates(20e6, late_when_long)
    assert [(p.rate, p.seconds, p.on_time) for p in probes] == [
        *((16e6, PROBE, True), (16e6, CONFIRM, False)),
        *((12e6, PROBE, True), (12e6, CONFIRM, False)),
        (9e6, PROBE, True),
    ]
    assert not confirmed(probes)
    assert (
        "maximum reliable load: 9M/s, 45 % of it, p99 send delay 20 ms over 3 s; this rate is not confirmed over the "
        "length of a trial, because events were late over 30 s at 16M/s and 12M/s; stop other work on this machine and "
        "calibrate again" in " ".join(shown(of_probes(probes)).split())
    )


def test_case_12_a_rate_that_was_in_time_over_the_length_of_a_trial_is_confirmed() -> None:
    probes = probe_rates(20e6, lambda rate, long: lag(rate, seconds=long))
    assert confirmed(probes)
    assert "not confirmed" not in shown(of_probes(probes))
    assert "not confirmed" not in shown(made()), "older calibrations did not record it"


def test_case_12_a_calibration_whose_last_rate_is_late_is_invalid_although_a_higher_one_was_in_time_for_a_while() -> (
    None
):
    def look(rate: float, seconds: float) -> SendDelay:
        return lag(rate, 20e6 if seconds == PROBE and rate > 11e6 else 90e6, seconds=seconds)

    probes = probe_rates(20e6, look)
    assert probes[-1].rate == pytest.approx(SHARES[-1] * 20e6)
    assert of_probes(probes).problems()[-1] == (
        "INVALID",
        "p99 send delay 90 ms even at 3M/s; stop other work on this machine",
    )


def test_case_12_whether_the_rate_is_confirmed_is_kept(tmp_path: Path) -> None:
    save(tmp_path, of_probes(probe_rates(20e6, late_when_long)))
    found = load(tmp_path, "box, 2 cores", "driver on 0")
    assert found is not None
    assert found.ceilings.confirmed is False


def test_case_12_a_run_shows_that_its_highest_load_is_not_confirmed(tmp_path: Path) -> None:
    options = ReferenceOptions()
    asked = experiment()
    asked = replace(asked, engines=(EngineChoice("reference", "reference", options.model_dump()),))
    for timely in (True, False):
        of = of_probes(probe_rates(20e6, late_when_long if not timely else lambda rate, long: lag(rate, seconds=long)))
        save(tmp_path, replace(of, machine=machine_name(), placement=assign_cores(int(options.cores)).sentence))
        said = list[str]()
        assert with_max_load(asked, tmp_path, "t", said.append, RunLimits()).ceiling == of.ceilings.max_load
        assert [" 9M/s, over the length of a trial" in each for each in said] == ([] if timely else [True])


def test_case_2_a_rate_at_which_a_broker_appends_late_is_not_on_time() -> None:
    assert not lag(1e6, append=MAX_SEND_DELAY).on_time


def test_a_rate_that_is_not_reached_does_not_count_although_sends_are_on_time() -> None:
    probes = probe_rates(20e6, lambda rate, long: lag(rate, achieved=0.99 if rate > 9e6 else 0.996, seconds=long))
    assert [p.rate for p in probes] == [16e6, 12e6, 9e6, 9e6]


def test_safely_in_time_is_half_of_what_a_trial_may_have() -> None:
    assert lag(1e6, MAX_SEND_DELAY / 2).on_time
    assert not lag(1e6, MAX_SEND_DELAY / 2 + 1).on_time


def test_if_sends_are_late_at_every_rate_the_lowest_counts_and_the_calibration_is_invalid() -> None:
    probes = probe_rates(20e6, lambda rate, long: lag(rate, 80e6, seconds=long))
    assert [p.rate / 20e6 for p in probes] == pytest.approx(SHARES)
    seen = tuple(probe(p.rate, p.p99, p.on_time) for p in probes)
    calibration = replace(made(), ceilings=replace(CEILINGS, believed=3e6, probes=seen))
    assert calibration.problems()[-1] == (
        "INVALID",
        "p99 send delay 80 ms even at 3M/s; stop other work on this machine",
    )


def test_the_maximum_reliable_load_and_its_send_delay_are_shown() -> None:
    probes = (probe(16e6, 273e6, timely=False), probe(12e6, 12e6, timely=True))
    calibration = replace(made(), ceilings=replace(CEILINGS, believed=12e6, probes=probes))
    assert (
        "maximum rate through generator and queue: 20M/s; "
        "maximum reliable load: 12M/s, 60 % of it, p99 send delay 12 ms over 3 s" in shown(calibration)
    )
    assert "maximum reliable load: 16M/s, 80 % of it\n" in shown(made())


def shown(calibration: Calibration) -> str:
    console = Console(file=io.StringIO(), width=200)
    console.print(render_calibration(calibration))
    text = console.file
    assert isinstance(text, io.StringIO)
    return re.sub(" +\n", "\n", text.getvalue())


def test_the_error_of_a_capacity_and_the_reasons_of_invalid_trials_are_known() -> None:
    calibration = made()
    assert round(calibration.capacities[0].error, 4) == -0.02
    assert calibration.problems() == [("INVALID", "others used 20% of the cores")]


def test_a_workspace_is_removed_after_its_calibration_and_an_abandoned_one_by_the_next(tmp_path: Path) -> None:
    with workspace(tmp_path, "aa") as first:
        (first / "journal").write_text("x")
        assert stale_workspaces(tmp_path) == []
    assert not first.exists()
    killed = tmp_path / "calibrations" / ".work-bb"
    killed.mkdir()
    (killed / "lock").touch()
    assert stale_workspaces(tmp_path) == [killed]
    with workspace(tmp_path, "cc"):
        assert not killed.exists()
