"""The facts of a trial come back from a manifest as they were, also those of earlier recordings."""

import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamgauge.model.facts import (
    BROKER,
    SUT,
    ClockDifference,
    EngineFacts,
    Explanation,
    MicroBatches,
    Phases,
    RoleUsage,
    RowLatencies,
    TransportFacts,
    TrialFacts,
    UpdateLatencies,
    WarmUp,
)
from streamgauge.store.documents import decode, encode
from streamgauge.store.facts import facts_from_json
from streamgauge.store.trials import read_trial

GOLDEN = Path(__file__).parents[1] / "golden"
SENTENCE = "Kafka 4.3.0, 1 local broker, binary records, 1 copy, acks all"
FULL = TrialFacts(
    engine=EngineFacts(
        name="spark",
        version="4.3.0",
        options={"cores": 1},
        settings={"java": "17.0.15", "cores": [1], "pipeline": "", "settings": {"spark.master": "local[1,2]"}},
        outputs=(("window_end", "timestamp"), ("total", "int64")),
        queue="published − position last reported",
        unchecked_job=True,
        emits_early=True,
    ),
    transport=TransportFacts("kafka", SENTENCE, {"brokers": 1, "warm": [3, 5]}, ClockDifference(-0.25, 0.5, 42)),
    placement="the driver on core 0, the system under test on core 1",
    driver_cores=(0,),
    sut_cores=(1,),
    start_ns=30_436_659_540_302,
    wall_ns=1_794_817_176_124_000_000,
    segment_ns=1_794_817_089_822_442_976,
    send_interval_ns=10_000_000,
    phases=Phases(5.3, 11.0, 0.0, 0.2),
    warm_up=WarmUp(10.1, 15, 2e5, (13.4, 6.5), steady=False, estimated_limit=1_262_915),
    roles={BROKER: RoleUsage(0.2, 0.0, 1e6), SUT: RoleUsage(0.9, 0.0, 0.0)},
    explanation=(Explanation("cores", 0.9, "it used 90 % of its core"), Explanation("state", None, "it has no state")),
    micro_batches=MicroBatches(15, 1620.0, 1900.0),
    updates=UpdateLatencies(first=RowLatencies(100, 1.0, 2.0, 3.0)),
    probe_failed="TimeoutError: its page did not answer",
)
FAILED = TrialFacts(EngineFacts(describe_failed="ConnectionError: it is gone"), placement="nothing is pinned")


def written(facts: TrialFacts) -> Any:  # noqa: ANN401 (JSON)
    return json.loads(encode("facts", facts))["content"]


def read_back(facts: TrialFacts) -> TrialFacts:
    return facts_from_json(decode(encode("facts", facts), Path("memory"), "facts"))


@pytest.mark.parametrize("facts", [TrialFacts(), FULL, FAILED, TrialFacts(EngineFacts("simulated", simulated=True))])
def test_facts_come_back_as_they_were(facts: TrialFacts) -> None:
    assert read_back(facts) == facts


def test_what_is_not_known_is_not_written() -> None:
    assert written(TrialFacts()) == {}
    assert written(TrialFacts(EngineFacts("simulated", simulated=True))) == {"engine": "simulated", "virtual": True}


def test_facts_are_written_as_one_flat_object() -> None:
    stored = written(FULL)
    assert (stored["engine"], stored["java"], stored["sitting_ns"]) == ("spark", "17.0.15", FULL.segment_ns)
    assert stored["warmed"]["microseconds_per_event"] == [13.4, 6.5]
    assert (stored["warmed"]["flat"], stored["warmed"]["reach"]) == (False, 1_262_915)
    assert stored["transport"]["sentence"] == SENTENCE
    assert "kafka" not in stored


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=6,
)
NAMES = st.sampled_from([*written(FULL), "kafka", "broker_use", "engine_settings", "virtual"]) | st.text()


@settings(deadline=None)
@given(st.dictionaries(NAMES, JSON, max_size=4))
def test_settings_of_an_engine_may_have_any_name(reported: dict[str, Any]) -> None:
    facts = TrialFacts(EngineFacts("own", settings=reported), placement="nothing is pinned")
    assert read_back(facts) == facts


def test_the_facts_of_a_stored_run_of_spark_are_read() -> None:
    (folder,) = (GOLDEN / "spark-run").glob("*/trials/001")
    facts = read_trial(folder).facts
    engine = facts.engine
    assert (engine.name, engine.version, engine.simulated, engine.options) == ("spark", "4.3.0", False, {})
    assert (engine.settings["java"], engine.settings["cores"], engine.settings["trigger"]) == ("17.0.15", [1], "500ms")
    assert engine.settings["settings"]["spark.master"] == "local[1,2]"
    assert not {"phases", "warmed", "explanation", "wall_ns", "placement", "engine"} & engine.settings.keys()
    assert (facts.driver_cores, facts.sut_cores, facts.transport) == ((0,), (1,), None)
    assert (facts.start_ns, facts.wall_ns) == (30_436_659_540_302, 1_794_817_176_124_000_000)
    assert facts.segment_ns == 1_794_817_089_822_442_976
    assert facts.warm_up == WarmUp(10.1, 15, 200_000.0, (13.366, 6.509, 6.821), False, 1_262_915)
    assert facts.phases == Phases(5.34859517, 11.028218597, 2.160489096, 0.15077404)
    assert [part.what for part in facts.explanation] == [
        *("cores", "compiler", "batch overhead", "garbage collection", "state"),
    ]
    assert facts.explanation[0].share == 0.8975


@pytest.mark.parametrize("version", [1, 2])
def test_a_key_that_is_not_in_the_table_is_a_setting_of_the_engine(version: int) -> None:
    (folder,) = (GOLDEN / "store" / f"format-{version}").glob("*/trials/001")
    assert read_trial(folder).facts == TrialFacts(EngineFacts(settings={"spark": "4.3", "ratio": math.inf}))


LOCAL = {"version": "4.3.0", "brokers": 1, "warm": [3, 5], "format": "binary", "replication": 1, "acks": "all"}
CLUSTER = {"cluster": "a:9092,b:9092", "format": "json", "replication": 3, "acks": 1}


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        (LOCAL, SENTENCE),
        (LOCAL | {"brokers": 3, "replication": 2}, "Kafka 4.3.0, 3 local brokers, binary records, 2 copies, acks all"),
        (CLUSTER, "Kafka at a:9092,b:9092, json records, 3 copies, acks 1"),
    ],
)
def test_the_transport_of_an_earlier_recording_has_a_sentence(settings: dict[str, Any], sentence: str) -> None:
    clock = {"offset_ms": -0.25, "within_ms": 0.5, "probes": 42}
    use = {"cores": 0.17, "written_per_s": 1e6, "read_per_s": 0.0}
    facts = facts_from_json({"kafka": settings | {"clock": clock}, "broker_use": use, "queue_is": "published − x"})
    assert facts.transport == TransportFacts("kafka", sentence, settings, ClockDifference(-0.25, 0.5, 42))
    assert facts.roles == {BROKER: RoleUsage(0.17, 0.0, 1e6)}
    assert facts.engine == EngineFacts(queue="published − x")
    unmeasured = facts_from_json({"kafka": settings}).transport
    assert unmeasured is not None
    assert unmeasured.clock is None


@pytest.mark.parametrize("rubbish", [None, "x", -7, 10**400, math.nan, True, [1], [{"sentence": 3}], {"mean_ms": "x"}])
def test_a_fact_that_is_not_as_expected_is_omitted(rubbish: object) -> None:
    objects = ("phases", "warmed", "micro_batches", "updates", "explanation", "transport", "roles", "broker_use")
    assert facts_from_json(dict.fromkeys(objects, rubbish)) == TrialFacts()
    moments = ("start_ns", "wall_ns", "sitting_ns", "send_interval_ns", "driver_cores", "sut_cores", "kafka")
    assert facts_from_json(dict.fromkeys(moments, str(rubbish))) == TrialFacts()


@pytest.mark.parametrize("stored", [None, [], "facts", 3])
def test_facts_that_are_no_object_are_refused(stored: object) -> None:
    with pytest.raises(ValueError, match="an object"):
        facts_from_json(stored)
