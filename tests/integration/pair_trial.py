"""A pair of function and reference as a short trial: a queue with known events, Spark's session, the real collector and
the real check. Only drivers and verdicts are left out, so a pair takes a second or two."""

import shutil
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from secrets import token_urlsafe
from typing import Any, NamedTuple

import pyarrow as pa
from random_pairs import Pair
from spark_trial import spark_trial

from streamgauge.engines.contract import JobRun, UserCodeFailed, Watermark
from streamgauge.engines.spark import spark
from streamgauge.engines.spark.engine import SparkSystem
from streamgauge.engines.spark.explain import BATCH_LOG, watermark
from streamgauge.engines.spark.options import QuerySpec, SparkOptions
from streamgauge.engines.spark.session import query_spec
from streamgauge.model.profile import Plan
from streamgauge.model.seconds import Account
from streamgauge.model.streams import StreamPartition
from streamgauge.model.trial import Trial
from streamgauge.model.units import SECOND
from streamgauge.run.collector.collector import Collector
from streamgauge.run.driver.specs import CollectorSpec
from streamgauge.run.trial.outputs import OutputCheck
from streamgauge.run.trial.reference_function import events
from streamgauge.transports.queue.buffer import QueueBuffer
from streamgauge.transports.queue.outputs import QueueOutputs
from streamgauge.transports.queue.server import QueueServer
from streamgauge.transports.queue.transport import QueueEndpoints
from streamgauge.workloads.contract import Inputs, plans_of
from streamgauge.workloads.data.shopping import PURCHASE_STREAM
from streamgauge.workloads.windowed_aggregation import WindowedAggregationParams, windowed_aggregation

EVENTS, LOAD = 3_000, 1_000.0
ORIGIN = 1_750_000_000 * SECOND
_PATIENCE = 120.0
Ask = Callable[[str, dict[str, Any]], dict[str, Any]]
"""Requests something of a Spark session, and returns its response: ``run``, ``end`` and, where it can, ``look``."""


def asking(session: SparkSystem) -> Ask:
    """A session in a separate process."""

    def ask(action: str, body: dict[str, Any]) -> dict[str, Any]:
        if action != "look":
            return session._control.request(action, 300.0, **body)
        ended = [each for each in session._control.notifications() if "ended" in each]
        return {"error": ended[-1]["ended"], "user_error": ended[-1]["user_error"]} if ended else {}

    return ask


class Result(NamedTuple):
    """What became of a pair."""

    account: Account
    fault: str = ""
    """The sentence on an error of the user's."""
    crashed: str = ""
    """The sentence on an error that is not the user's."""


def pair_file(pair: Pair, folder: Path) -> Path:
    """Its file: beside those of all others, so that Spark's Python workers serve them all."""
    return folder.parent / f"pair_{pair.number}.py"


def pair_trial(pair: Pair, folder: Path) -> Trial:
    """The trial of a pair; its outputs go into this folder."""
    folder.mkdir(parents=True, exist_ok=True)
    file = pair_file(pair, folder)
    for name, text in {file.name: pair.text, **pair.beside}.items():
        (file.parent / name).write_text(text)
    options = {"pipeline": f"{file}:job", "reference": f"{file}:expected", "stamp": False, **pair.options}
    params = WindowedAggregationParams(window="1s", slide="1s", gem_packs=5, users=500).model_dump()
    return replace(spark_trial(LOAD, 3, options), number=pair.number, params=params)


def check_of(trial: Trial) -> OutputCheck:
    """What its outputs are compared with, when all events are acknowledged."""
    params = WindowedAggregationParams.from_resolved(trial.params)
    traits = spark.traits(SparkOptions.from_resolved(trial.options))
    assert traits.custom is not None
    assert traits.custom.load_reference is not None
    plans = plans_of(windowed_aggregation.streams(params), trial.profile, 60 * SECOND)
    counts = {PURCHASE_STREAM.name: EVENTS}
    return OutputCheck(
        windowed_aggregation,
        trial,
        params,
        plans,
        traits.custom,
        traits.updates,
        ORIGIN,
        counts,
        counts,
        traits.custom.load_reference(),
    )


def plan_of(check: OutputCheck) -> Plan:
    """When each event is due."""
    return check.plans[PURCHASE_STREAM.name]


def events_of(trial: Trial, plan: Plan) -> pa.Table:
    """All events of its trial."""
    params = WindowedAggregationParams.from_resolved(trial.params)
    inputs = Inputs({PURCHASE_STREAM.name: plan}, trial.seed, ORIGIN)
    return events(PURCHASE_STREAM, windowed_aggregation.events(params, PURCHASE_STREAM.name, inputs), 0, EVENTS)


def play_pair(pair: Pair, ask: Ask, folder: Path, runtime: Path) -> Result:
    """Run the function of a pair in a Spark session and check its outputs."""
    trial = pair_trial(pair, folder)
    try:
        check = check_of(trial)
    except UserCodeFailed as error:
        return Result(Account(), str(error))
    table = events_of(trial, plan_of(check))
    with tempfile.TemporaryDirectory(prefix="sg", dir=runtime) as short:
        endpoints = QueueEndpoints((f"grpc+unix://{short}/q",), f"grpc+unix://{short}/o", token_urlsafe(24), 1)
        queue, collector = _queue(endpoints, table), _collector(endpoints, folder)
        try:
            return _query(pair, ask, _query_spec(trial, endpoints, folder, Path(short)), check, (queue, collector))
        finally:
            queue.shutdown()
            collector.source.close()
            collector.hiccups.stop()
            shutil.rmtree(folder / "outputs", ignore_errors=True)


def _query_spec(trial: Trial, endpoints: QueueEndpoints, folder: Path, runtime: Path) -> QuerySpec:
    options = SparkOptions.from_resolved(trial.options)
    params = WindowedAggregationParams.from_resolved(trial.params)
    streams, output = windowed_aggregation.streams(params), windowed_aggregation.output(params)
    return query_spec(JobRun(trial, options, params, streams, output, endpoints, folder), options, runtime)


def _queue(endpoints: QueueEndpoints, table: Any) -> QueueServer:  # noqa: ANN401 - an Arrow table
    partition = StreamPartition(PURCHASE_STREAM.name, 0)
    server = QueueServer(
        endpoints.queues[0],
        QueueBuffer([partition]),
        schemas={partition.stream: table.schema},
        token=endpoints.token,
        lock=threading.Lock(),
        now_ns=time.monotonic_ns,
    )
    (whole,) = table.combine_chunks().to_batches()
    server.publish([(partition, whole)], int(table["due"][-1].value) + 1)
    return server


def _collector(endpoints: QueueEndpoints, folder: Path) -> Collector:
    source = QueueOutputs(endpoints.outputs, endpoints.token)
    collector = Collector(CollectorSpec(folder=folder, transport="queue", firing="window_end"), source)
    clock = collector.clock
    collector.handle("start", {"monotonic_ns": clock.monotonic_ns(), "wall_ns": clock.wall_ns()})
    collector.hiccups.start()
    collector.counting.start()
    return collector


def _query(pair: Pair, ask: Ask, spec: QuerySpec, check: OutputCheck, servers: tuple[QueueServer, Collector]) -> Result:
    queue, collector = servers
    answer = ask("run", {"query": spec.model_dump(mode="json")})
    log = spec.folder / BATCH_LOG
    if "error" not in answer:
        answer = _await(pair, ask, log, queue, collector) or answer
    acknowledged = queue.status()["acknowledged"]
    ask("end", {})
    collector.handle("finish", {})
    if "error" in answer:
        return Result(Account(), *(("", answer["error"]) if not answer["user_error"] else (answer["error"], "")))
    if collector.unstamped:
        return Result(Account(), collector.unstamped)
    try:
        reached = replace(check, acknowledged={PURCHASE_STREAM.name: acknowledged})
        return Result(reached.account(spec.folder, watermark(log)))
    except UserCodeFailed as error:
        return Result(Account(), str(error))


def _await(pair: Pair, ask: Ask, log: Path, queue: QueueServer, collector: Collector) -> dict[str, Any]:
    """Until all events are acknowledged and the watermark is as far as it gets; or a part, where it stops early."""
    stop = time.monotonic() + _PATIENCE
    wanted = EVENTS // 2 if pair.stops_early else EVENTS
    while time.monotonic() < stop and not collector.unstamped:
        news = ask("look", {})
        if "error" in news:
            return news
        if queue.status()["acknowledged"] >= wanted and (pair.stops_early or _marked(pair, watermark(log))):
            return {}
        time.sleep(0.02)
    assert collector.unstamped, f"{pair.about}: the query did not finish within {_PATIENCE:g} s"
    return {}


def _marked(pair: Pair, reported: Watermark | None) -> bool:
    """Whether the watermark has passed all that the newest event lets it pass, if there is one."""
    if "withWatermark" not in pair.text:
        return True
    newest = ORIGIN // 1_000 + int((EVENTS - 1) / LOAD * 1e6)
    return reported is not None and reported.passed + reported.delay >= newest - 2_000
