"""How Spark connects to each transport: one connector by the name of the transport."""

from collections.abc import Callable
from importlib import import_module
from typing import Any, Protocol

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.readwriter import DataStreamWriter

from streamgauge.engines.spark.options import QuerySpec, SourceAndSink

Columns = tuple[tuple[str, str], ...]
Notify = Callable[[dict[str, Any]], None]
_PACKAGE = __package__


class UnsupportedColumn(ValueError):
    """Spark cannot read or write over this transport as the job needs; the message names the change."""


class SparkConnector(Protocol):
    """What reads events and writes outputs for the queries of a session."""

    @property
    def columns(self) -> Columns:
        """The columns of the outputs of the running query, if the transport needs them."""

    def events(self, ends: SourceAndSink, *, stream: bool) -> dict[str, DataFrame]:
        """The events of each stream, as a stream or as what is there now."""

    def writer(self, outputs: DataFrame, spec: QuerySpec) -> DataStreamWriter:
        """Writes outputs."""

    def stop(self) -> None:
        """The query is over: report no more positions."""


def connect(transport: str, spark: SparkSession, notify: Notify) -> SparkConnector:
    """The connector of a transport: a module of this package with its name."""
    connector: SparkConnector = import_module(f"{_PACKAGE}.{transport}").Connector(spark, notify)
    return connector
