"""What an engine that continues after a restart declares, and what its query gets."""

from dataclasses import replace
from pathlib import Path

import pytest
from judge_samples import trial

from streamgauge.engines.contract import JobRun
from streamgauge.engines.registry import engines
from streamgauge.engines.spark.options import SparkOptions
from streamgauge.engines.spark.session import query_spec
from streamgauge.transports.queue.transport import QueueEndpoints
from streamgauge.workloads.windowed_aggregation import WindowedAggregationParams, windowed_aggregation


@pytest.mark.parametrize(("engine", "restarts"), [("spark", True), ("reference", False), ("simulated", False)])
def test_an_engine_declares_whether_a_new_system_continues_a_job(engine: str, restarts: bool) -> None:
    known = engines()[engine]
    assert known.traits(known.options()).restarts is restarts


def test_the_attempts_of_a_query_have_its_restart(tmp_path: Path) -> None:
    params, options = WindowedAggregationParams(), SparkOptions()
    run = JobRun(
        trial(),
        options,
        params,
        windowed_aggregation.streams(params),
        windowed_aggregation.output(params),
        QueueEndpoints(("grpc+unix:///q",), "grpc+unix:///o", "token", 1),
        tmp_path,
    )
    first, second = query_spec(run, options, tmp_path), query_spec(replace(run, restart=1), options, tmp_path)
    assert (first.ends.restart, second.ends.restart) == (0, 1)
    assert first.checkpoint == second.checkpoint, "the second start resumes from it"
