"""The collector: takes outputs, stamps their arrival on the driver's clock, keeps them for the reference check.

A process of its own (``python -m streamgauge.run.collector.collector``) on the driver's cores, so that nothing the
controller does holds up a stamp (docs/adr/0007). Its server threads only stamp and file; counting and
writing happen in one thread behind a queue.
"""

import queue
import re
import signal
import threading
from pathlib import Path

import pyarrow as pa

from streamgauge.processes.child import HiccupMeter, quicken, without_pandas
from streamgauge.processes.clock import Clock
from streamgauge.run.collector.counts import LATENCIES, Tally, countable, gather, latency_rows, tally
from streamgauge.run.driver.generator import read_errand, say
from streamgauge.run.driver.specs import CollectOrder, Tokens
from streamgauge.store.journal import Journal, NumberedParts
from streamgauge.transports.queue.attempts import Arrival, Attempts
from streamgauge.transports.queue.outputs import OutputServer
from streamgauge.transports.queue.server import Json

SECONDS = pa.schema([(n, pa.int64()) for n in ("second", "outputs", "firings", "negative")])
HICCUPS = pa.schema([(n, pa.int64()) for n in ("time", "hiccup", "behind")])
_MOST_ROWS = 1 << 20
_LOOK_EVERY = 1.0
_GLANCE = 0.05

Commit = tuple[str, int, list[Arrival]]


class Archive:
    """Outputs on their way to the disk, gathered so that parts are not tiny."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._parts: dict[str, NumberedParts] = {}
        self._gathered: dict[str, list[pa.Table]] = {}
        self._rows = 0

    def add(self, query: str, table: pa.Table) -> None:
        self._gathered.setdefault(query, []).append(table)
        self._rows += table.num_rows
        if self._rows >= _MOST_ROWS:
            self.flush()

    def flush(self) -> None:
        """Write what was gathered, one part per query."""
        for query, tables in self._gathered.items():
            if query not in self._parts:
                slug = re.sub(r"[^A-Za-z0-9]+", "-", query).strip("-") or "query"
                self._parts[query] = NumberedParts(self._folder / "outputs" / slug)
            self._parts[query].write(pa.concat_tables(tables))
        self._gathered, self._rows = {}, 0


class Collector:
    """The server, the thread that counts, and the controller's orders."""

    patience = 60.0
    """Seconds that the last outputs may take to the disk."""

    def __init__(self, order: CollectOrder, tokens: Tokens) -> None:
        self.order, self.clock = order, Clock()
        self.start_ns, self.wall_ns = self.clock.monotonic_ns(), self.clock.wall_ns()
        self.commits: queue.SimpleQueue[Commit | None] = queue.SimpleQueue()
        self.archive = Archive(order.folder)
        self.seconds = Journal(order.folder / "collector-seconds", SECONDS)
        self.latencies = Journal(order.folder / "collector-latencies", LATENCIES)
        self.health = Journal(order.folder / "collector-health", HICCUPS)
        self.hiccups = HiccupMeter()
        self.terminated = False
        self.trouble = ""
        self.unreadable, self.unstamped = "", ""
        """Sentences on outputs that are not of their format, and on the first whose latency cannot be counted."""
        self.finished, self.over = threading.Event(), threading.Event()
        self.counting = threading.Thread(target=self.count, name="count", daemon=True)
        self.server = OutputServer(
            order.endpoint,
            Attempts(),
            tokens=tokens.roles(),
            lock=threading.Lock(),
            now_us=self.now_us,
            committed=lambda *commit: self.commits.put(commit),
            control=self.control,
        )

    def now_us(self) -> int:
        """The driver's clock: the monotonic one, set to the wall clock at the start of the load and never after."""
        return (self.wall_ns + self.clock.monotonic_ns() - self.start_ns) // 1_000

    def control(self, action: str, body: Json) -> Json:
        """An order of the controller, on a thread of the server."""
        if action == "faults":
            return self.faults()
        if action == "start":
            self.start_ns, self.wall_ns = int(body["monotonic_ns"]), int(body["wall_ns"])
        elif action in ("finish", "quit"):
            if not self.finished.is_set():
                self.commits.put(None)
            if not self.finished.wait(self.patience):
                raise ValueError(f"the outputs could not be written within {self.patience:g} s")
            if self.trouble:
                raise ValueError(self.trouble)
            if action == "quit":
                self.over.set()
        elif action != "progress":
            raise KeyError(f"a collector knows no order {action}")
        return self.status()

    def status(self) -> Json:
        """The counts so far."""
        return {**self.server.status(), **self.faults(), "behind": self.commits.qsize()}

    def faults(self) -> Json:
        """What is wrong with the outputs so far: the system under test made them."""
        return {"unreadable": self.unreadable, "unstamped": self.unstamped}

    def tally(self, table: pa.Table, firing: str | None) -> Tally:
        """Count some outputs. Those whose moments cannot be used count without a latency, and that is said."""
        usable, fault = countable(table)
        self.unstamped = self.unstamped or fault
        return tally(usable, self.wall_ns // 1_000, firing)

    def count(self) -> None:
        """A thread: count and keep what was committed, until told to finish. What stops it is told to who waits."""
        try:
            self.count_commits()
        except (OSError, pa.ArrowException, ValueError, TypeError) as error:
            self.trouble = f"the collector cannot count or write the outputs: {error}"
            say(self.trouble)
        self.close_journals()

    def count_commits(self) -> None:
        """Count and keep what was committed, until told to finish."""
        pending: list[Tally] = []
        next_look = self.clock.monotonic_ns()
        while True:
            try:
                commit = self.commits.get(timeout=_LOOK_EVERY / 10)
            except queue.Empty:
                commit = ("", 0, [])
            if commit is not None and commit[2]:
                table = gather(commit[2], commit[1])
                pending.append(self.tally(table, self.order.firing))
                self.archive.add(commit[0], table)
            now = self.clock.monotonic_ns()
            if commit is None or now >= next_look:
                self.write_down(pending, now)
                pending, next_look = [], now + int(_LOOK_EVERY * 1e9)
            if commit is None:
                break

    def close_journals(self) -> None:
        """All is counted."""
        try:
            for journal in (self.seconds, self.latencies, self.health):
                journal.close()
        except OSError as error:
            self.trouble = self.trouble or f"the collector cannot write its counts: {error}"
            say(self.trouble)
        self.finished.set()

    def write_down(self, tallies: list[Tally], now: int) -> None:
        """Once a second: what was counted goes into the journals, the outputs to the disk."""
        if tallies:
            self.seconds.append({name: [v for t in tallies for v in getattr(t, name)] for name in SECONDS.names})
        cells = [cell for t in tallies for cell in t.latencies if len(cell[2])]
        if cells:
            self.latencies.append(latency_rows(cells))
        health = {"time": now - self.start_ns, "hiccup": self.hiccups.take(), "behind": self.commits.qsize()}
        self.health.append({name: [value] for name, value in health.items()})
        self.archive.flush()

    def told(self, *_: object) -> None:
        """SIGTERM. It comes between two instructions of the main thread, which may hold any lock: a flag alone."""
        self.terminated = True

    def run(self) -> None:
        """Serve until told to quit; also SIGTERM leaves whole files."""
        signal.signal(signal.SIGTERM, self.told)
        quicken()
        self.hiccups.start()
        self.counting.start()
        say("ready")
        while not self.over.wait(_GLANCE) and not self.terminated:
            pass
        self.server.shutdown()
        self.commits.put(None)
        self.counting.join(10)
        self.hiccups.stop()


def main() -> None:
    """The process's table of contents."""
    without_pandas()
    errand = read_errand()
    order, ends = CollectOrder.model_validate_json(errand.order.read_bytes()), errand.ends
    if ends is None:
        Collector(order, errand.tokens).run()
    else:
        from streamgauge.run.collector.topic_collector import collect_topic  # noqa: PLC0415 - where outputs are on Kafka alone

        collect_topic(order, errand.tokens, ends)


if __name__ == "__main__":
    main()
