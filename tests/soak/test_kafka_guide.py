"""The guide "Your own function", typed as it stands, over Kafka: a whole search, with overloaded trials in it."""

from pathlib import Path

import pytest
from kafka_broker import needs_kafka
from real_trial import PLACEMENT
from test_guide_own_function import ends_with_bounds, guide_project, typed_in

from streamgauge.run.monitor import available

pytestmark = [
    pytest.mark.soak,
    needs_kafka,
    pytest.mark.skipif(not available() or not PLACEMENT.sut, reason="a trial needs /proc and two cores"),
]


def test_the_guides_own_function_over_kafka_ends_with_bounds(tmp_path: Path) -> None:
    guide_project(tmp_path, "\ntransport: kafka")
    ends_with_bounds(typed_in(tmp_path, "run", "my.yaml", "--json"))
