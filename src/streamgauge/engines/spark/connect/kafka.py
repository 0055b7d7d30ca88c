"""The formats as expressions of Spark SQL: text for the engine to select, with no user's function in it. Pure.

What one row of five numbers costs on PySpark 4.3, beyond handing the bytes on: packed decimal by ``hex`` 0.6 µs,
``from_avro`` 0.4 µs, ``from_json`` 2.6 µs. Big-endian integers by ``conv(hex(…), 16, 10)`` would be 1.4 µs; Spark
casts no bytes to a number.
"""

from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.readwriter import DataStreamWriter
from pyspark.sql.types import DataType, DoubleType, IntegerType, LongType, StringType, TimestampType

from streamgauge.engines.spark.connect.positions import PositionReporter, ProgressListener
from streamgauge.engines.spark.connect.table import Columns, Notify, UnsupportedColumn
from streamgauge.engines.spark.options import QuerySpec, SourceAndSink, StreamSpec
from streamgauge.model.streams import TIME, schema_of
from streamgauge.transports.kafka.cluster import KafkaEndpoints
from streamgauge.transports.kafka.formats.avro import Avro
from streamgauge.transports.kafka.formats.binary import Binary
from streamgauge.transports.kafka.formats.cells import FLOAT_WIDTH
from streamgauge.transports.kafka.formats.columns import SEQUENCE, FormatName, kind_of
from streamgauge.transports.kafka.formats.formats import name_problem, with_sequence

_JSON_TYPES = {pa.int32(): "INT", pa.float64(): "DOUBLE", pa.string(): "STRING"}
ROW = "row"
"""The column that a parsed value stands in between the two steps of reading."""


@dataclass(frozen=True, slots=True)
class SqlDecoding:
    """How values become columns, in two steps, so that a value is parsed once however many columns it has."""

    parsed: str
    """Selected first, from ``value``, as ``row``."""
    columns: tuple[str, ...]
    """Selected then, each with its name."""


def decode_sql(name: FormatName, schema: pa.Schema) -> SqlDecoding:
    """From the column ``value`` to those of the schema; times are timestamps."""
    if name == "binary":
        return SqlDecoding("value", tuple(_unpacked(schema)))
    if name == "avro":
        parsed = f"from_avro(value, '{Avro(schema).text}')"
        return SqlDecoding(parsed, tuple(f"{ROW}.`{field.name}`" for field in schema))
    types = ", ".join(f"`{field.name}` {_JSON_TYPES.get(field.type, 'BIGINT')}" for field in schema)
    parsed = f"from_json(CAST(value AS STRING), '{types}')"
    return SqlDecoding(parsed, tuple(f"{_time(field, f'{ROW}.`{field.name}`')} AS `{field.name}`" for field in schema))


def _time(field: pa.Field, number: str) -> str:
    return f"timestamp_micros({number})" if pa.types.is_timestamp(field.type) else number


def _unpacked(schema: pa.Schema) -> list[str]:
    """Digits out of bytes: ``hex`` writes each byte of packed decimal as its two digits. Texts follow the last cell."""
    layout = Binary(schema)
    found, at, texts = [], 1, f"{layout.width + 1}"
    for field, width in zip(schema, layout.widths, strict=True):
        cell, kind = f"substring({ROW}, {at}, {width})", kind_of(field)
        if kind == "text":
            length = f"CAST(hex({cell}) AS INT)"
            value = f"CAST(substring({ROW}, {texts}, {length}) AS STRING)"
            texts += f" + {length}"
        elif kind == "float":
            value = f"CAST(CAST({cell} AS STRING) AS DOUBLE)"
        else:
            value = _time(field, f"CAST(hex({cell}) AS {'INT' if field.type == pa.int32() else 'BIGINT'})")
        found.append(f"{value} AS `{field.name}`")
        at += width
    return found


def encode_sql(name: FormatName, schema: pa.Schema) -> str:
    """From the columns of the schema, which may contain numbers of any sign and nulls, to the value of an output."""
    if name == "avro":
        columns = ", ".join(_quoted(field) for field in schema)
        return f"to_avro(struct({columns}), '{Avro(schema, outputs=True).text}')"
    numbers = [_number(field) for field in schema]
    if name == "json":
        held = ", ".join(f"{number} AS {_quoted(field)}" for number, field in zip(numbers, schema, strict=True))
        return f"to_json(struct({held}))"
    widths = Binary(schema, outputs=True).widths
    cells = [_cell(*column) for column in zip(schema, numbers, widths, strict=True)]
    texts = [f"coalesce(hex({_quoted(field)}), '')" for field in schema if kind_of(field) == "text"]
    return f"unhex(concat({', '.join([*cells, *texts])}))"


def _cell(field: pa.Field, number: str, width: int) -> str:
    """The cell of a column in hexadecimal: a number, the characters of a float, or the length of a text."""
    kind = kind_of(field)
    if kind == "float":
        return f"hex(rpad(coalesce(CAST({number} AS STRING), ''), {FLOAT_WIDTH}, ' '))"
    return _packed(f"octet_length({number})" if kind == "text" else number, 2 * width)


def _packed(number: str, digits: int) -> str:
    """A number as ``digits.write_signed`` writes it, in hexadecimal."""
    below = f"concat('D', lpad(substring(CAST({number} AS STRING), 2), {digits - 1}, '0'))"
    return f"coalesce(if({number} < 0, {below}, lpad({number}, {digits}, '0')), '{'F'.ljust(digits, '0')}')"


def _number(field: pa.Field) -> str:
    return f"unix_micros({_quoted(field)})" if pa.types.is_timestamp(field.type) else _quoted(field)


def _quoted(field: pa.Field) -> str:
    """The name of a column in SQL, whatever characters it has."""
    name = field.name.replace("`", "``")
    return f"`{name}`"


_NO_SOURCE = ("KAFKA_DATA_SOURCE_NOT_ENABLED", "DATA_SOURCE_NOT_FOUND")
"""How Spark calls it when its connector is missing."""
KINDS: dict[type[DataType], str] = {
    IntegerType: "int32",
    LongType: "int64",
    DoubleType: "float64",
    TimestampType: TIME,
    StringType: "text",
}
"""The types of output columns that every format supports, as a workload declares them."""


def _connection(to: KafkaEndpoints) -> dict[str, str]:
    """The options by which the connector reaches the cluster. They contain the secrets: only for the query."""
    return {f"kafka.{name}": value for name, value in to.cluster.java_settings().items()}


def kafka_events(
    spark: SparkSession, ends: SourceAndSink, of: StreamSpec, to: KafkaEndpoints, *, stream: bool = True
) -> DataFrame:
    """The events of a topic of the trial from its first record on, as a stream or as what is there now."""
    topic = to.inputs[of.name]
    options: dict[str, Any] = {
        **_connection(to),
        **{f"kafka.{name}": value for name, value in ends.consumer.items()},
        "subscribe": topic,
        "startingOffsets": "earliest",
        "failOnDataLoss": "true",
        "groupIdPrefix": f"{topic}.spark",
    }
    if stream and ends.max_batch:
        options["maxOffsetsPerTrigger"] = str(ends.max_batch)
    try:
        records = (spark.readStream if stream else spark.read).format("kafka").options(**options).load()
    except AnalysisException as error:
        if "kafka" not in str(error) or error.getCondition() not in _NO_SOURCE:
            raise
        raise UnsupportedColumn(
            "Spark has no connector to Kafka: the jars in spark.jars do not contain it. Remove spark.jars from "
            "engine.settings; streamgauge then passes the connector that `streamgauge setup kafka` downloads"
        ) from error
    how = decode_sql(to.format, with_sequence(schema_of(of.columns)))
    rows = records.selectExpr(f"{how.parsed} AS {ROW}", "timestamp AS ingested").selectExpr(*how.columns, "ingested")
    names = [name for name, _ in of.columns]
    # the broker stamps a record when it is published, and nothing reads it before
    published = [rows["ingested"].alias("published")] if ends.published else []
    return rows.select(*names, *([SEQUENCE] if of.numbered else []), "ingested", *published)


def columns_of(outputs: DataFrame, form: FormatName) -> Columns:
    """The columns of outputs as a workload declares them; raises if the format does not support one."""
    found = []
    for field in outputs.schema.fields:
        if why := name_problem(form, field.name):
            raise UnsupportedColumn(f"the output column {field.name} cannot be written as {form}: {why}; rename it")
        kind = KINDS.get(type(field.dataType))
        if kind is None:
            raise UnsupportedColumn(
                f"the output column {field.name} is {field.dataType.simpleString()}: outputs over Kafka have columns "
                "of the types int, bigint, double, timestamp and string; cast it to one of them, or remove it"
            )
        found.append((field.name, kind))
    return tuple(found)


def kafka_writer(outputs: DataFrame, to: KafkaEndpoints) -> DataStreamWriter:
    """Writes outputs into their topic, in the format of the trial."""
    records = outputs.selectExpr(*_record(to.format, columns_of(outputs, to.format), to.output_key))
    return records.writeStream.format("kafka").options(**_connection(to), topic=to.output)


def _record(form: FormatName, columns: Columns, key: str | None) -> list[str]:
    """Key and value of an output. Rows of one key have one record key, so that updates of it stay in their order."""
    value = f"CAST({encode_sql(form, schema_of(columns))} AS BINARY) AS value"
    keyed = key is not None and dict(columns).get(key) == "int32"
    return [f"unhex(lpad(right(hex({key}), 8), 8, '0')) AS key", value] if keyed else [value]


class Connector:
    """Spark's own connector, and the positions that only Spark has."""

    def __init__(self, spark: SparkSession, notify: Notify) -> None:
        self._spark, self._notify = spark, notify
        self._listener: ProgressListener | None = None
        self.columns: Columns = ()

    def events(self, ends: SourceAndSink, *, stream: bool) -> dict[str, DataFrame]:
        """The events of each topic."""
        to = KafkaEndpoints.from_wire(ends.endpoints)
        return {each.name: kafka_events(self._spark, ends, each, to, stream=stream) for each in ends.streams}

    def writer(self, outputs: DataFrame, spec: QuerySpec) -> DataStreamWriter:
        """Writes outputs into their topic, and reports positions from now on."""
        to, real_time = KafkaEndpoints.from_wire(spec.ends.endpoints), spec.mode == "real-time"
        self.columns = columns_of(outputs, to.format)
        self._listener = self._listener or ProgressListener(self._spark)
        trigger, checkpoint = (0, None) if real_time else (spec.trigger_ns, spec.checkpoint)
        self._listener.positions = PositionReporter(to, self._notify, trigger, checkpoint)
        return kafka_writer(outputs, to)

    def stop(self) -> None:
        """Report the last position."""
        if self._listener is not None and self._listener.positions is not None:
            self._listener.positions.close()
            self._listener.positions = None
