"""Theodolite's UC1, which is also the sink of the study in ``papers.SCALABILITY``: convert each record and store it."""

from streamgauge.model import papers
from streamgauge.workloads.contract import WithoutEvents
from streamgauge.workloads.parameters import FREQUENCY, KEYS, Sensors


class DatabaseStorageParams(Sensors):
    """One output per record; no real database."""


class DatabaseStorage(WithoutEvents[DatabaseStorageParams]):
    """One output per record."""

    name = "database-storage"
    summary = "convert each record to the database's form and store it"
    paper = f"{papers.THEODOLITE} UC1"
    params = DatabaseStorageParams
    dimensions = (KEYS, FREQUENCY)


database_storage = DatabaseStorage()
