"""The store: the one package that opens the results folder."""

from streamgauge.store.durable import AmbiguousRun, NewerFormat, RunLocked, StoreError, UnknownRun
from streamgauge.store.index import RunSummary
from streamgauge.store.runs import Conclusion, Run
from streamgauge.store.store import Store
from streamgauge.store.trials import PartialRecording, PartialTrial, StoredTrial, read_partial

__all__ = [
    "AmbiguousRun",
    "Conclusion",
    "NewerFormat",
    "PartialRecording",
    "PartialTrial",
    "Run",
    "RunLocked",
    "RunSummary",
    "Store",
    "StoreError",
    "StoredTrial",
    "UnknownRun",
    "read_partial",
]
