"""What holds for a whole session of tests."""

import sys

import pytest


def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """End the shared Kafka broker with the last test that may use it: it would take time from those that measure."""
    if nextitem is None or not nextitem.path.name.startswith("test_kafka"):
        kafka = sys.modules.get("kafka_broker")
        if kafka is not None:
            kafka.stop_shared()
