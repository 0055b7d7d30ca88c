"""Which tests of this folder run one after the other, and which run on all cores.

A test is marked ``realtime`` unless its file is listed in ``PARALLEL``. Tests of these files start real processes too,
but what they check does not depend on how fast the machine is.
"""

import sys
from pathlib import Path

import pytest

PARALLEL = {
    *("test_kafka_jars", "test_queue_flight", "test_random_experiments", "test_spark_recording", "test_store_crash"),
    *("test_cli_answers", "test_cli_exit_codes", "test_cli_input", "test_cli_interrupt", "test_cli_json"),
    *("test_cli_kill", "test_cli_lookup", "test_cli_report", "test_cli_streams", "test_without_pyspark"),
    *("test_kafka_broker", "test_kafka_cli", "test_kafka_limits", "test_kafka_producers", "test_kafka_ranges"),
    *("test_kafka_records", "test_kafka_transactions", "test_large_specification", "test_launch"),
    "test_one_row_in_a_million",
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests of this folder. Parallel tests that use Kafka run in one process, so that they share a broker."""
    for item in items:
        if item.path.parent != Path(__file__).parent:
            continue
        if item.path.stem not in PARALLEL:
            item.add_marker("realtime")
        elif item.path.name.startswith("test_kafka"):
            item.add_marker(pytest.mark.xdist_group("kafka"))


def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """End the shared Kafka broker with the last test that may use it: it would take time from those that measure."""
    if nextitem is None or not nextitem.path.name.startswith("test_kafka"):
        kafka = sys.modules.get("kafka_broker")
        if kafka is not None:
            kafka.stop_shared()
