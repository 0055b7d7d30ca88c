"""500 random pairs of function and reference through one Spark application: every right job is called right, every
wrong one wrong, and every error of the user's is said to be the user's. ``STREAMGAUGE_PAIRS`` says how many."""

import os
import secrets
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from own_jobs import OWN_FAULTS
from pair_trial import Ask
from pair_verdicts import judged
from pyspark.sql import DataFrame
from pyspark.sql.streaming.readwriter import DataStreamWriter
from random_pairs import Pair, pair

from streamgauge.engines.spark.options import QueryOrder, SessionOrder, SparkOptions
from streamgauge.engines.spark.session_process import Session
from streamgauge.engines.spark.settings import session_settings
from streamgauge.transports.queue.outputs import OutputWriter

pytestmark = pytest.mark.soak

PAIRS = int(os.environ.get("STREAMGAUGE_PAIRS", "500"))
FIRST = int(os.environ.get("STREAMGAUGE_FIRST_PAIR", "1"))


class UpdatingSession(Session):
    """The engine's session, which also sends updates to the collector: Spark's Python sinks take append only."""

    def _over_the_queue(self, order: QueryOrder) -> DataStreamWriter:
        if order.output_mode != "update":
            return super()._over_the_queue(order)
        outputs = self._outputs(order, self.spark.readStream.format(self._prepare(order)).load())
        writer = OutputWriter(order.ends.outputs, order.ends.token)

        def send(rows: DataFrame, batch: int) -> None:
            table = rows.toArrow()
            if table.num_rows:
                writer.put(order.ends.query, batch, table.schema, table.to_batches(), commit=True)

        return outputs.writeStream.foreachBatch(send)


@pytest.fixture(scope="module")
def ask(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ask]:
    """One Spark application in this process."""
    folder = tmp_path_factory.mktemp("session")
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    with tempfile.TemporaryDirectory(prefix="sg") as short:
        settings = session_settings(SparkOptions(), folder, Path(short))
        order = SessionOrder(
            socket=Path(short) / "s", token=secrets.token_hex(8), folder=folder, settings=settings, master="local[1]"
        )
        session = UpdatingSession(order)

        def tell(action: str, body: dict[str, Any]) -> dict[str, Any]:
            if action != "look":
                return session.answer(action, body)
            failure = session.query.exception() if session.query else None
            session.recorder.look()
            return {"error": str(failure), "users": False} if failure else {}

        yield tell
        session.spark.stop()


def test_random_pairs_are_judged_as_they_are(ask: Ask, tmp_path: Path) -> None:
    counted, mistakes = Counter[str](), list[str]()
    with tempfile.TemporaryDirectory(prefix="sg") as short:
        for number in range(FIRST, FIRST + PAIRS):
            found = judged(pair(number), ask, tmp_path, Path(short))
            counted[found.label] += 1
            if found.sentence:
                mistakes.append(found.sentence)
                print(found.sentence, flush=True)  # a suite of many minutes tells of a mistake when it is found
            if number % 10 == 0:
                print(number, dict(counted), flush=True)
    assert not mistakes, "\n".join(mistakes)
    if PAIRS >= 100:
        assert min(counted[label] for label in ("right", "wrong", "users-fault")) >= PAIRS // 40, counted
        assert counted["nothing to tell"] <= PAIRS // 8, counted


@pytest.mark.parametrize("faulty", OWN_FAULTS, ids=lambda each: each.about)
def test_every_fault_of_a_users_function_is_said_to_be_the_users(ask: Ask, tmp_path: Path, faulty: Pair) -> None:
    with tempfile.TemporaryDirectory(prefix="sg") as short:
        assert judged(faulty, ask, tmp_path, Path(short)).sentence == ""
