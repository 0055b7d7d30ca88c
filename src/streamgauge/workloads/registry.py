"""All workloads by name."""

from typing import Any

from streamgauge.workloads.contract import Workload
from streamgauge.workloads.database_storage import database_storage
from streamgauge.workloads.downsampling import downsampling
from streamgauge.workloads.hierarchical_aggregation import hierarchical_aggregation
from streamgauge.workloads.ingest import ingest
from streamgauge.workloads.time_attribute_aggregation import time_attribute_aggregation
from streamgauge.workloads.windowed_aggregation import windowed_aggregation


def workloads() -> dict[str, Workload[Any]]:
    """The built-in workloads by name."""
    known: tuple[Workload[Any], ...] = (
        windowed_aggregation,
        ingest,
        database_storage,
        downsampling,
        time_attribute_aggregation,
        hierarchical_aggregation,
    )
    return {workload.name: workload for workload in known}
