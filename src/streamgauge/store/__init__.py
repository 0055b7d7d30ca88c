"""The store: the one room that opens the results folder."""

from streamgauge.store.durable import AmbiguousRun, NewerFormat, RunLocked, StoreError, UnknownRun
from streamgauge.store.index import RunSummary
from streamgauge.store.runs import Conclusion, Run
from streamgauge.store.store import Store
from streamgauge.store.trials import GrowingTrial, PartialTrial, StoredTrial, look_into

__all__ = [
    "AmbiguousRun",
    "Conclusion",
    "GrowingTrial",
    "NewerFormat",
    "PartialTrial",
    "Run",
    "RunLocked",
    "RunSummary",
    "Store",
    "StoreError",
    "StoredTrial",
    "UnknownRun",
    "look_into",
]
