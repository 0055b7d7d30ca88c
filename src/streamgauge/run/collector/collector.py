"""The collector: it takes the outputs of a trial, counts them, and stores them for the comparison with the reference.

A process (``python -m streamgauge.run.collector.collector``) on the cores of the load driver, so that nothing that the
controller does delays a stamp (docs/adr/0007). Its transport delivers outputs; one thread counts and writes them.
"""

import re
import threading
from pathlib import Path
from typing import Any

import pyarrow as pa

from streamgauge.model.streams import schema_of
from streamgauge.processes.child import HiccupMeter, hide_pandas, log, low_latency_mode, on_sigterm, read_spec
from streamgauge.processes.clock import Clock
from streamgauge.processes.control import ControlRefused, ControlServer, Json
from streamgauge.run.collector.counts import (
    OutputCounts,
    UpdateTracker,
    WindowResultCounter,
    count_outputs,
    countable,
    latency_rows,
)
from streamgauge.run.driver.specs import CollectorSpec, read_envelope
from streamgauge.store.journal import COLLECTOR_HEALTH, COLLECTOR_SECONDS, LATENCIES, Journal, NumberedParts
from streamgauge.transports.contract import OutputRows, OutputSource, OutputsUnreadable, TransportError
from streamgauge.transports.registry import transports

_MAX_ROWS = 1 << 20
_WRITE_INTERVAL = 1.0
_POLL_TIMEOUT = 0.1
_POLL_INTERVAL = 0.05


class OutputArchive:
    """Outputs on their way to the disk, gathered so that parts are not tiny."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._parts: dict[str, NumberedParts] = {}
        self._gathered: dict[str, list[pa.Table]] = {}
        self._rows = 0

    def add(self, outputs: OutputRows) -> None:
        """Keep some outputs."""
        self._gathered.setdefault(outputs.query, []).append(outputs.rows)
        self._rows += outputs.rows.num_rows
        if self._rows >= _MAX_ROWS:
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
    """The source of the outputs, the thread that counts, and the requests of the controller."""

    def __init__(self, spec: CollectorSpec, source: OutputSource) -> None:
        self.spec, self.clock, self.source = spec, Clock(), source
        self.wall_ns, self.start_ns = self.clock.wall_ns(), self.clock.monotonic_ns()
        self.archive = OutputArchive(spec.folder)
        self.seconds = Journal(spec.folder / "collector-seconds", COLLECTOR_SECONDS)
        self.latencies = Journal(spec.folder / "collector-latencies", LATENCIES)
        self.health = Journal(spec.folder / "collector-health", COLLECTOR_HEALTH)
        self.hiccups = HiccupMeter()
        self.terminated = False
        self.error = ""
        self.unreadable, self.unstamped = "", ""
        """Sentences on outputs that are not of their format, and on the first whose latency cannot be counted."""
        self.finishing, self.finished, self.stopping = threading.Event(), threading.Event(), threading.Event()
        self.counting = threading.Thread(target=self.count_loop, name="count", daemon=True)

    def handle(self, action: str, content: Json) -> Json:
        """A request of the controller, on the thread of the control channel."""
        if action == "start":
            self.start_ns, self.wall_ns = int(content["monotonic_ns"]), int(content["wall_ns"])
            self.source.set_clock(self.start_ns, self.wall_ns)
        elif action == "schema":
            self.source.set_schema(schema_of(tuple((str(n), str(k)) for n, k in content["columns"])))
        elif action in ("finish", "quit"):
            self.finishing.set()
            self.finished.wait()
            if self.error:
                raise ControlRefused(self.error)
            if action == "quit":
                self.stopping.set()
        elif action != "status":
            raise ControlRefused(f"the collector has no action {action}")
        return self.status()

    def status(self) -> Json:
        """The counts so far, and what is wrong with the outputs: the system under test made them."""
        try:
            counts = self.source.status()
        except TransportError as error:
            raise ControlRefused(str(error)) from error
        return {**counts, "unreadable": self.unreadable, "unstamped": self.unstamped}

    def count_loop(self) -> None:
        """A thread: count and store outputs until the controller ends it. An error is kept for the controller."""
        try:
            self.count_all()
        except (TransportError, OSError, pa.ArrowException, ValueError, TypeError) as error:
            if isinstance(error, OutputsUnreadable):  # the system under test wrote them
                self.unreadable = str(error)
            else:
                self.error = f"the collector cannot count or write the outputs: {error}"
            log(str(error))
        self.close_journals()

    def count_all(self) -> None:
        """Count the outputs as they arrive, then those that are left."""
        pending: list[OutputCounts] = []
        next_write = self.clock.monotonic_ns()
        while not self.finishing.is_set():
            for outputs in self.source.poll(_POLL_TIMEOUT):
                pending.append(self.count(outputs, self.spec.firing))
                if self.source.final:
                    self.archive.add(outputs)
            if self.clock.monotonic_ns() >= next_write:
                self.write_journals(pending)
                pending, next_write = [], next_write + int(_WRITE_INTERVAL * 1e9)
        self.write_journals(pending)
        if self.source.final:
            for outputs in self.source.drain():
                self.archive.add(outputs)
                self.write_journals([self.count(outputs, self.spec.firing)])
        else:
            self.count_again()

    def count_again(self) -> None:
        """Count and store all outputs, in place of the samples that were counted while they were written."""
        for journal in (self.seconds, self.latencies):
            journal.truncate()
        origin, firing = self.wall_ns // 1_000, self.spec.firing
        results, updates = dict[str, WindowResultCounter](), UpdateTracker(self.spec.identity)
        for outputs in self.source.drain():
            counts = self.count(outputs, None)
            usable = countable(outputs.rows)[0]
            if firing is not None and firing in outputs.rows.schema.names:
                results.setdefault(firing, WindowResultCounter(firing)).add(usable)
                counts.firings = [0] * len(counts.firings)
            if self.spec.last_row_wins:
                updates.add(usable)
            self.write_journals([counts])
            self.archive.add(outputs)
        self.archive.flush()
        rest = [found.counts(origin) for found in results.values()]
        rest += updates.counts(origin) if self.spec.last_row_wins else []
        self.write_journals([each for each in rest if each.second or each.latencies])

    def count(self, outputs: OutputRows, firing: str | None) -> OutputCounts:
        """Count some outputs. Those whose moments cannot be used count without a latency, and this is reported."""
        usable, fault = countable(outputs.rows)
        self.unstamped = self.unstamped or fault
        counts = count_outputs(usable, self.wall_ns // 1_000, firing)
        if outputs.unread and counts.outputs:  # outputs that were not read count in the newest second
            newest = max(range(len(counts.second)), key=lambda at: (counts.outputs[at] > 0, counts.second[at]))
            counts.outputs[newest] += outputs.unread
        return counts

    def write_journals(self, counts: list[OutputCounts]) -> None:
        """What was counted goes into the journals, the outputs to the disk."""
        if counts:
            names = COLLECTOR_SECONDS.names
            self.seconds.append({name: [v for c in counts for v in getattr(c, name)] for name in names})
        cells = [cell for c in counts for cell in c.latencies if len(cell[2])]
        if cells:
            self.latencies.append(latency_rows(cells))
        time = self.clock.monotonic_ns() - self.start_ns
        health = {"time": time, "hiccup": self.hiccups.take(), "behind": self.source.behind()}
        self.health.append({name: [value] for name, value in health.items()})
        self.archive.flush()

    def close_journals(self) -> None:
        """All is counted."""
        try:
            for journal in (self.seconds, self.latencies, self.health):
                journal.close()
        except OSError as error:
            self.error = self.error or f"the collector cannot write its counts: {error}"
            log(self.error)
        self.finished.set()

    def terminate(self) -> None:
        """SIGTERM: only a flag is set."""
        self.terminated = True

    def run(self, control: ControlServer) -> None:
        """Collect until the controller ends this process; SIGTERM leaves whole files too."""
        on_sigterm(self.terminate)
        control.serve_in_background(self.handle)
        low_latency_mode()
        self.hiccups.start()
        self.counting.start()
        log("ready")
        while not self.stopping.wait(_POLL_INTERVAL) and not self.terminated:
            pass
        self.finishing.set()
        self.counting.join(10)
        self.hiccups.stop()
        control.wait_responded()
        self.source.close()


def open_outputs(spec: CollectorSpec, wire: dict[str, Any]) -> OutputSource:
    """Where the outputs of this trial come from."""
    return transports()[spec.transport].outputs(wire)


def main() -> None:
    """The process's table of contents."""
    hide_pandas()
    spec, envelope = read_envelope(read_spec(), CollectorSpec)
    try:
        source = open_outputs(spec, envelope.wire)
    except TransportError as error:
        log(str(error))  # it never becomes ready: the controller shows this line
        return
    Collector(spec, source).run(ControlServer(envelope.control, envelope.token))


if __name__ == "__main__":
    main()
