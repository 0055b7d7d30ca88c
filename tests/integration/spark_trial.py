"""Real trials of Spark for tests: one warm session for many of them, and one that is killed in the middle."""

import os
import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
from real_trial import Played, Sabotage, play, trial_setup

from streamgauge.engines.spark import spark
from streamgauge.engines.spark.engine import SparkSystem
from streamgauge.engines.spark.options import SparkOptions
from streamgauge.model.profile import constant
from streamgauge.model.seconds import Account
from streamgauge.model.trial import Trial, TrialRequest
from streamgauge.model.units import SECOND
from streamgauge.processes.control import Json
from streamgauge.processes.launch import Launcher, LocalHost
from streamgauge.processes.placement import assign_cores, controller_pinned
from streamgauge.run.trial.outputs import OutputCheck, plans_of_trial
from streamgauge.run.trial.processes import TrialProcesses, open_processes
from streamgauge.workloads.windowed_aggregation import WindowedAggregationParams, windowed_aggregation

PLACEMENT = assign_cores(1)
WARM = 15
"""Seconds of load that warm a session up."""
TIMEOUT = 120.0
"""Seconds that anything may take which a cold JVM on a busy core does."""


def spark_trial(load: float, seconds: int, options: dict[str, Any] | None = None, **changes: Any) -> Trial:  # noqa: ANN401
    """A trial of Spark with windows of 2 s that slide by 1 s. ``options`` are as a user writes them."""
    chosen = SparkOptions(**(options or {})).model_dump()
    trial = Trial(
        number=1,
        ask=TrialRequest("load", load, "measure"),
        workload=windowed_aggregation.name,
        params=WindowedAggregationParams(window="2s", slide="1s").model_dump(),
        engine="spark",
        options=chosen,
        instances=1,
        profile=constant(load),
        duration=seconds * SECOND,
        limit=seconds * SECOND,
        warmup=0,
        warmup_limit=SECOND,
        queue_bound=0,
        seed=23,
        stall=90 * SECOND,
    )
    return replace(trial, **changes)


@contextmanager
def start_spark(
    options: SparkOptions, launcher: Launcher, folder: Path, cache: Path = Path(), transport: str = "queue"
) -> Iterator[SparkSystem]:
    """A session that may use all cores. ``cache`` has the connector of its transport."""
    folder.mkdir(parents=True, exist_ok=True)
    cores = (*PLACEMENT.driver, *PLACEMENT.sut)
    host = LocalHost(launcher, folder, cache, PLACEMENT.sut, cores, transport=transport)
    with spark.start(spark.layout(options, 1), options, host) as system:
        assert isinstance(system, SparkSystem)
        yield system


@contextmanager
def spark_session(folder: Path, options: dict[str, Any] | None = None) -> Iterator[SparkSystem]:
    """A session that stays up for many trials."""
    chosen = SparkOptions(**(options or {}))
    with (
        tempfile.TemporaryDirectory(prefix="sg") as short,
        Launcher(Path(short)) as launcher,
        start_spark(chosen, launcher, folder) as session,
    ):
        # a cold JVM takes half a minute for its first micro-batches: no trial of a test waits for that
        play_spark(spark_trial(50_000.0, WARM), session, folder / "warm-up")
        yield session


def play_spark(
    asked: Trial, session: SparkSystem | None, folder: Path, sabotage: dict[int, Sabotage] | None = None
) -> Played:
    """Perform a trial in a session and judge it."""
    return play(asked, folder, sabotage, engine=spark, system=session)


def jvm() -> psutil.Process:
    """The youngest JVM below this process."""
    found = [p for p in psutil.Process().children(recursive=True) if p.name() == "java"]
    return max(found, key=lambda process: float(process.create_time()))


def until(happened: Callable[[], bool], what: str, patience: float = TIMEOUT) -> None:
    """Wait for it, with a deadline that is named."""
    ends = time.monotonic() + patience
    while not happened():
        assert time.monotonic() < ends, f"{what} did not happen within {patience:g} s"
        time.sleep(0.05)


def survive(asked: Trial, folder: Path, kill_at: int) -> tuple[Account, Json]:
    """Kill -9 all of Spark once so many events are acknowledged, restart it from its checkpoint, let it finish.

    The account of all outputs, and the collector's own counts.
    """
    tail, options = 5 * SECOND, SparkOptions.from_resolved(asked.options)
    with (
        trial_setup(asked, folder, engine=spark) as quick,
        Launcher(quick.context.limits.runtime) as launcher,
        controller_pinned(PLACEMENT.driver),
        # streams that the kill cancelled may wait for the restart
        open_processes(replace(quick, driver_changes={"retry_ns": 300 * SECOND}), launcher, tail) as processes,
    ):
        run = processes.job_run()
        with start_spark(options, launcher, folder / "first") as first, first.deploy(run):
            processes.start(None)
            until(lambda: processes.status().acknowledged >= kill_at, "the first half")
            ((session,),) = first.processes().values()
            for process in [psutil.Process(session.pid), *psutil.Process(session.pid).children(recursive=True)]:
                with suppress(ProcessLookupError):  # a worker may end by itself once its parent is gone
                    os.kill(process.pid, signal.SIGKILL)
            until(lambda: not first.alive(), "the end of Spark")
        with start_spark(options, launcher, folder / "second") as second, second.deploy(replace(run, restart=1)):
            return _finish(processes, tail)


def _finish(processes: TrialProcesses, tail: int) -> tuple[Account, Json]:
    for control in processes.driver_controls:
        control.end(processes.trial.duration + tail)
    until(lambda: processes.status().done and processes.status().lag == 0, "the end of the queue")
    streams = processes.status().streams
    check = OutputCheck.of(processes.setup, plans_of_trial(processes.setup, tail)).at(
        processes.wall_ns,
        {name: counts.acknowledged for name, counts in streams.items()},
        {name: counts.published for name, counts in streams.items()},
    )
    collector = processes.collector_control
    assert collector is not None
    until(lambda: collector.status()["committed"] >= check.rows_due(), "the last output")
    counts = collector.status()
    processes.close_journals()
    return check.account(processes.folder), counts


MY_JOB = '''
from pyspark.sql import functions as F
from pyspark.sql.types import IntegerType
import pyarrow as pa
import pyarrow.compute as pc


def expensive(purchases):
    """Purchases above 50, each with its moments: no window, no state."""
    return purchases.where("price > 5000").select(
        "user_id", "price", F.col("due").alias("max_due"), F.col("ingested").alias("max_ingested"))


def expected(events, params):
    dear = events.filter(pc.greater(events["price"], 5000))
    return dear.select(["user_id", "price"])


def counted_wrongly(events, params):
    return expected(events, params).slice(1)


def raises_in_a_row(purchases):
    return purchases.select(F.udf(explode, IntegerType())("price").alias("price"))


def explode(price):
    raise ValueError(f"no price like {price}")


def raises_at_once(purchases):
    raise RuntimeError("not today")


def wrong_schema(purchases):
    return purchases.select("colour")


def no_frame(purchases):
    return 7


def forgets_a_pack(purchases):
    kept = purchases.where("gem_pack_id != 50").withWatermark("due", "0 seconds")
    sums = kept.groupBy(F.window("due", "1 second"), "gem_pack_id").agg(F.sum("price").alias("sum"))
    return sums.select("gem_pack_id", F.col("window.end").alias("window_end"), "sum")


def packs(events, params):
    second = pc.floor_temporal(events["due"], unit="second")
    table = pa.table({"gem_pack_id": events["gem_pack_id"], "start": second, "price": events["price"]})
    sums = table.group_by(["start", "gem_pack_id"]).aggregate([("price", "sum")])
    ends = pc.add(sums["start"], pa.scalar(1_000_000, pa.duration("us")))
    return pa.table({"gem_pack_id": sums["gem_pack_id"], "window_end": ends, "sum": sums["price_sum"]})


def hoards(purchases):
    return purchases.select(F.length(F.repeat(F.lit("x"), 900_000_000)).alias("n"), F.lit(1).alias("one"))
'''
