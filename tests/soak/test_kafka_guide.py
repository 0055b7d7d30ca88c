"""The guide "Your own function", typed as it stands, over Kafka: a whole search in each of two formats."""

from pathlib import Path

import pytest
from kafka_broker import needs_kafka
from real_trial import PLACEMENT
from test_guide_own_function import calibrate, ends_with_bounds, guide_project, run_command_in

from streamgauge.run.monitor.monitor import available

pytestmark = [
    pytest.mark.soak,
    needs_kafka,
    pytest.mark.skipif(not available() or not PLACEMENT.sut, reason="a trial needs /proc and two cores"),
]


@pytest.mark.parametrize("form", ["json", "binary"])
def test_the_guides_own_function_over_kafka_ends_with_bounds_or_passes_all_that_can_be_generated(
    form: str, tmp_path: Path
) -> None:
    """One core generates the load and runs the broker: Spark may be faster than that, so that no load overloads it."""
    guide_project(tmp_path, f"\ntransport: {{name: kafka, format: {form}}}")
    calibrate(tmp_path, "--transport", "kafka", "--format", form)
    ends_with_bounds(run_command_in(tmp_path, "run", "my.yaml", "--json"), may_pass_all=True)
