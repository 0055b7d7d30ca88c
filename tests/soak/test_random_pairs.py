"""500 random pairs of function and reference through one Spark application: every right job is judged right, every
wrong one wrong, and every error of the user is reported as the user's. ``STREAMGAUGE_PAIRS`` says how many."""

import os
import secrets
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from custom_jobs import OWN_FAULTS
from pair_trial import Ask
from pair_verdicts import judged
from pyspark.sql import DataFrame
from pyspark.sql.streaming.readwriter import DataStreamWriter
from random_pairs import Pair, pair

from streamgauge.engines.spark.connect.queue import Connector
from streamgauge.engines.spark.options import QuerySpec, SessionSpec, SparkOptions
from streamgauge.engines.spark.session_process import Session
from streamgauge.engines.spark.settings import session_settings
from streamgauge.transports.queue.outputs import QueueOutputWriter

pytestmark = pytest.mark.soak

PAIRS = int(os.environ.get("STREAMGAUGE_PAIRS", "500"))
FIRST = int(os.environ.get("STREAMGAUGE_FIRST_PAIR", "1"))


class UpdatingConnector(Connector):
    """The engine's connector, which also sends updates to the collector: Spark's Python sinks take append only."""

    def writer(self, outputs: DataFrame, spec: QuerySpec) -> DataStreamWriter:
        if spec.output_mode != "update":
            return super().writer(outputs, spec)
        ends = spec.ends
        writer = QueueOutputWriter(str(ends.endpoints["outputs"]), str(ends.endpoints["token"]))

        def send(rows: DataFrame, batch: int) -> None:
            table = rows.toArrow()
            if table.num_rows:
                writer.put(ends.query, batch, table.schema, table.to_batches(), commit=True)

        return outputs.writeStream.foreachBatch(send)


@pytest.fixture(scope="module")
def ask(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ask]:
    """One Spark application in this process."""
    folder = tmp_path_factory.mktemp("session")
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    with tempfile.TemporaryDirectory(prefix="sg") as short:
        settings = session_settings(SparkOptions(), folder, Path(short))
        session = Session(
            SessionSpec(
                control=Path(short) / "s",
                token=secrets.token_hex(8),
                folder=folder,
                settings=settings,
                master="local[1]",
            )
        )
        session.connectors["queue"] = UpdatingConnector(session.spark, session.control.notify)

        def request(action: str, body: dict[str, Any]) -> dict[str, Any]:
            if action != "look":
                return session.handle(action, body)
            failure = session.query.exception() if session.query else None
            session.recorder.look()
            return {"error": str(failure), "user_error": False} if failure else {}

        yield request
        session.spark.stop()


def test_random_pairs_are_judged_as_they_are(ask: Ask, tmp_path: Path) -> None:
    counted, mistakes = Counter[str](), list[str]()
    with tempfile.TemporaryDirectory(prefix="sg") as short:
        for number in range(FIRST, FIRST + PAIRS):
            found = judged(pair(number), ask, tmp_path, Path(short))
            counted[found.label] += 1
            if found.sentence:
                mistakes.append(found.sentence)
                print(found.sentence, flush=True)  # a suite of many minutes reports a mistake when it is found
            if number % 10 == 0:
                print(number, dict(counted), flush=True)
    assert not mistakes, "\n".join(mistakes)
    if PAIRS >= 100:
        assert min(counted[label] for label in ("right", "wrong", "users-fault")) >= PAIRS // 40, counted
        assert counted["nothing to tell"] <= PAIRS // 8, counted


@pytest.mark.parametrize("faulty", OWN_FAULTS, ids=lambda each: each.about)
def test_every_fault_of_a_users_function_is_reported_as_the_users(ask: Ask, tmp_path: Path, faulty: Pair) -> None:
    with tempfile.TemporaryDirectory(prefix="sg") as short:
        assert judged(faulty, ask, tmp_path, Path(short)).sentence == ""
