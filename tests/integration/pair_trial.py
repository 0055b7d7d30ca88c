"""A pair of function and reference as a short trial: a queue with known events, Spark's session, the real collector and
the real check. Only drivers and verdicts are left out, so a pair takes a second or two."""

import shutil
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
from random_pairs import Pair
from spark_trial import spark_trial

from streamgauge.engines.contract import Endpoints, UsersCodeFailed, Watermark
from streamgauge.engines.spark import spark
from streamgauge.engines.spark.engine import SparkSession
from streamgauge.engines.spark.explain import BATCH_LOG, watermark
from streamgauge.engines.spark.options import QueryOrder
from streamgauge.engines.spark.session import query_order
from streamgauge.model.profile import Plan
from streamgauge.model.seconds import Account
from streamgauge.model.trial import Trial
from streamgauge.model.units import SECOND
from streamgauge.run.collector.collector import Collector
from streamgauge.run.driver.specs import CollectOrder, Tokens
from streamgauge.run.trial.outputs import OutputCheck
from streamgauge.run.trial.reference_function import events
from streamgauge.transports.ledger import Lane
from streamgauge.transports.queue.buffer import Backlog
from streamgauge.transports.queue.server import QueueServer
from streamgauge.workloads.contract import Inputs
from streamgauge.workloads.data.shopping import PURCHASE_STREAM
from streamgauge.workloads.windowed_aggregation import WindowedAggregationParams, windowed_aggregation

EVENTS, LOAD = 3_000, 1_000.0
ORIGIN = 1_750_000_000 * SECOND
_PATIENCE = 120.0
Ask = Callable[[str, dict[str, Any]], dict[str, Any]]
"""Tells a Spark session something, and returns its answer: ``run``, ``end`` and, where it can, ``look``."""


def asking(session: SparkSession) -> Ask:
    """A session in a separate process."""

    def ask(action: str, body: dict[str, Any]) -> dict[str, Any]:
        if action != "look":
            return session._line.ask(action, 300.0, **body)
        ended = [told for told in session._line.told() if "ended" in told]
        return {"error": ended[-1]["ended"], "users": ended[-1]["users"]} if ended else {}

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
    promise = spark.promise(trial.options)
    plan = trial.profile.plan(60 * SECOND)
    return OutputCheck(windowed_aggregation, trial, plan, promise, ORIGIN, EVENTS, EVENTS)


def events_of(trial: Trial, plan: Plan) -> pa.Table:
    """All events of its trial."""
    params = WindowedAggregationParams.from_resolved(trial.params)
    inputs = Inputs({PURCHASE_STREAM.name: plan}, trial.seed, ORIGIN)
    return events(PURCHASE_STREAM, windowed_aggregation.events(params, PURCHASE_STREAM.name, inputs), 0, EVENTS)


def play_pair(pair: Pair, ask: Ask, folder: Path, runtime: Path) -> Result:
    """Run the function of a pair in a Spark session and check its outputs."""
    trial, tokens = pair_trial(pair, folder), Tokens.new()
    try:
        check = check_of(trial)
    except UsersCodeFailed as error:
        return Result(Account(), str(error))
    table = events_of(trial, check.plan)
    with tempfile.TemporaryDirectory(prefix="sg", dir=runtime) as short:
        queue = _queue(Path(short), tokens, table)
        collector = _collector(Path(short), tokens, folder)
        ends = Endpoints((f"grpc+unix://{short}/q",), f"grpc+unix://{short}/o", 1, folder, (), tokens.sut)
        try:
            return _query(pair, ask, query_order(trial, ends, Path(short)), check, (queue, collector))
        finally:
            queue.shutdown()
            collector.server.shutdown()
            collector.hiccups.stop()
            shutil.rmtree(folder / "outputs", ignore_errors=True)


def _queue(folder: Path, tokens: Tokens, table: Any) -> QueueServer:  # noqa: ANN401 - an Arrow table
    lane = Lane(PURCHASE_STREAM.name, 0)
    endpoint, lock = f"grpc+unix://{folder}/q", threading.Lock()
    schemas = {lane.stream: table.schema}
    server = QueueServer(
        endpoint, Backlog([lane]), schemas=schemas, tokens=tokens.roles(), lock=lock, now_ns=time.monotonic_ns
    )
    (whole,) = table.combine_chunks().to_batches()
    server.publish([(lane, whole)], int(table["due"][-1].value) + 1)
    return server


def _collector(short: Path, tokens: Tokens, folder: Path) -> Collector:
    collector = Collector(CollectOrder(endpoint=f"grpc+unix://{short}/o", folder=folder, firing="window_end"), tokens)
    collector.start_ns, collector.wall_ns = collector.clock.monotonic_ns(), collector.clock.wall_ns()
    collector.hiccups.start()
    collector.counting.start()
    return collector


def _query(
    pair: Pair, ask: Ask, order: QueryOrder, check: OutputCheck, servers: tuple[QueueServer, Collector]
) -> Result:
    queue, collector = servers
    answer = ask("run", {"order": order.model_dump(mode="json")})
    log = order.folder / BATCH_LOG
    if "error" not in answer:
        answer = _await(pair, ask, log, queue, collector) or answer
    acknowledged = queue.status()["acknowledged"]
    ask("end", {})
    collector.control("finish", {})
    if "error" in answer:
        return Result(Account(), *(("", answer["error"]) if not answer["users"] else (answer["error"], "")))
    if collector.unstamped:
        return Result(Account(), collector.unstamped)
    try:
        return Result(replace(check, acknowledged=acknowledged).account(order.folder, watermark(log)))
    except UsersCodeFailed as error:
        return Result(Account(), str(error))


def _await(pair: Pair, ask: Ask, log: Path, queue: QueueServer, collector: Collector) -> dict[str, Any]:
    """Until all events are acknowledged and the watermark is as far as it gets; or a part, where it stops early."""
    stop = time.monotonic() + _PATIENCE
    wanted = EVENTS // 2 if pair.stops_early else EVENTS
    while time.monotonic() < stop and not collector.unstamped:
        told = ask("look", {})
        if "error" in told:
            return told
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
