"""The guide "Your own function", typed as it stands, over Kafka: a whole search, with overloaded trials in it."""

from pathlib import Path

import pytest
from kafka_broker import needs_kafka
from real_trial import PLACEMENT
from test_guide_own_function import calibrate, ends_with_bounds, guide_project, typed_in

from streamgauge.run.monitor.monitor import available

pytestmark = [
    pytest.mark.soak,
    needs_kafka,
    pytest.mark.skipif(not available() or not PLACEMENT.sut, reason="a trial needs /proc and two cores"),
]


def test_the_guides_own_function_over_kafka_ends_with_bounds(tmp_path: Path) -> None:
    """With JSON, which Spark parses more slowly than one core generates it, so that the search overloads Spark."""
    guide_project(tmp_path, "\ntransport: {name: kafka, format: json}")
    calibrate(tmp_path, "--transport", "kafka", "--format", "json")
    ends_with_bounds(typed_in(tmp_path, "run", "my.yaml", "--json"))


def test_the_guides_own_function_over_kafka_passes_up_to_what_can_be_generated(tmp_path: Path) -> None:
    """In the default format Spark may be faster than the core that generates the load and runs the broker."""
    guide_project(tmp_path, "\ntransport: kafka")
    calibrate(tmp_path, "--transport", "kafka")
    said = typed_in(tmp_path, "run", "my.yaml", "--json")
    (finding,) = said.document["findings"]
    if finding["status"] == "all-hold":
        assert said.code == 0, said.err
        assert "run `streamgauge calibrate`" in finding["sentence"]
    else:
        ends_with_bounds(said)
