"""Theodolite's UC1, the sink of the Kafka Streams study: convert each record and store it."""

from streamgauge.workloads.contract import Workload
from streamgauge.workloads.parameters import FREQUENCY, KEYS, Sensors


class DatabaseStorageParams(Sensors):
    """One output per record; no real database."""


database_storage = Workload(
    name="database-storage",
    summary="convert each record to the database's form and store it",
    paper="Theodolite 2021 UC1",
    params=DatabaseStorageParams,
    dimensions=(KEYS, FREQUENCY),
)
