"""The Spark settings of a session: what a run needs, what is faster, and what the user sets. Pure."""

from collections.abc import Sequence
from pathlib import Path

from streamgauge.engines.spark.options import SparkOptions

_CHECKPOINTS = "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
_PROVIDER = "spark.sql.streaming.stateStore.providerClass"
_HEAP = "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider"
_ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
_MIB = 1 << 20
_COMPILER = "-XX:Tier4InvocationThreshold=50000 -XX:Tier4MinInvocationThreshold=10000 -XX:Tier4CompileThreshold=100000"
"""Every micro-batch is planned again, by thousands of methods that run a few times each. Java's second compiler takes
them up one by one: a seventh of a core for minutes. What handles rows is called a million times a second, and reaches
these thresholds immediately."""
DEFAULT_SHUFFLE_PARTITIONS = 200

TUNED = {
    # pip's Spark has no native Hadoop library and forks chmod for every checkpoint file; these two do not
    "spark.sql.streaming.checkpointFileManagerClass": _CHECKPOINTS,
    "spark.hadoop.fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
    "spark.python.unix.domain.socket.enabled": "true",
    "spark.sql.adaptive.enabled": "false",
    # Spark's own page is off: plans need not be described for it, nor its tables kept up to date
    "spark.sql.ui.explainMode": "simple",
    "spark.ui.liveUpdate.period": "-1",
}
"""Measured to be faster, whatever the job."""
TUNED_CONSUMER = {
    "max.poll.records": "10000",
    "max.partition.fetch.bytes": str(1 << 19),
    "receive.buffer.bytes": str(1 << 20),
}
"""Of the consumer of Spark's connector. After each poll it requests the ends of the partition twice and discards what
it has fetched and not polled: with the 500 records that the consumer polls by default, it waits most of its time."""
TUNED_ROCKSDB = {
    "spark.sql.streaming.stateStore.rocksdb.trackTotalNumberOfRows": "false",
    # joins of two streams: one table of state instead of four, which only RocksDB supports
    "spark.sql.streaming.join.stateFormatVersion": "4",
}


def temporary(folder: Path) -> Path:
    """Where all goes that Spark does not need to leave behind."""
    return folder / "tmp"


def slots(options: SparkOptions) -> int:
    """Task slots: by default as many as cores. In real-time mode all stages run together, each on separate slots."""
    if options.slots or options.mode != "real-time":
        return options.slots or options.cores
    return options.cores + shuffle_partitions(options)


def shuffle_partitions(options: SparkOptions) -> int:
    """Partitions of a shuffle, which are those of the state."""
    if options.mode == "real-time":  # also with Spark's own settings: no machine here has slots for 200
        return options.shuffle_partitions or options.cores
    default = slots(options) if options.profile == "tuned" else DEFAULT_SHUFFLE_PARTITIONS
    return options.shuffle_partitions or default


def session_settings(options: SparkOptions, folder: Path, runtime: Path, jars: Sequence[Path] = ()) -> dict[str, str]:
    """Everything that is fixed when a session starts. The user's own settings win. ``jars`` are those of connectors.

    Sockets go into the runtime folder: their paths may have a hundred characters, those of runs any number.
    """
    tuned = options.profile == "tuned"
    java = f'-XX:ActiveProcessorCount={options.cores} -XX:-UsePerfData -Djava.io.tmpdir="{temporary(folder)}"'
    needed = {
        "spark.app.name": "streamgauge",
        "spark.driver.memory": f"{options.memory // _MIB}m",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.extraJavaOptions": f"{java} {_COMPILER}" if tuned else java,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.local.dir": str(temporary(folder) / "spark"),
        "spark.sql.warehouse.dir": str(temporary(folder) / "warehouse"),
        "spark.python.unix.domain.socket.dir": str(runtime),
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.streaming.numRecentProgressUpdates": "200",
        "spark.sql.streaming.stopTimeout": "20s",
    }
    if jars:
        needed["spark.jars"] = ",".join(map(str, jars))
    return needed | (TUNED if tuned else {}) | query_settings(options) | options.settings


def query_settings(options: SparkOptions) -> dict[str, str]:
    """What a query takes when it starts: its partitions, and where its state lives. The user's own settings win."""
    chosen = {
        "spark.sql.shuffle.partitions": str(shuffle_partitions(options)),
        _PROVIDER: _ROCKSDB if options.state_store == "rocksdb" else _HEAP,
    }
    if options.state_store == "rocksdb":
        chosen["spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled"] = "true"
        chosen |= TUNED_ROCKSDB if options.profile == "tuned" else {}
    return {key: options.settings.get(key, value) for key, value in chosen.items()}
