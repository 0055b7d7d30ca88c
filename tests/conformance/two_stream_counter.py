"""An engine for the workload with two streams: one process that counts the events of both over any transport."""

import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import pyarrow as pa
from two_streams import COUNTED, two_streams

from streamgauge.engines import toolkit
from streamgauge.engines.contract import Host, Job, JobRun, Layout, Options, Requirement, Situation, System, Traits
from streamgauge.model.facts import EngineFacts
from streamgauge.model.streams import Position, StreamPartition, schema_of
from streamgauge.processes.child import hide_pandas, log, on_sigterm, read_spec
from streamgauge.processes.clock import Clock
from streamgauge.processes.control import ControlServer, Json
from streamgauge.transports.contract import Available
from streamgauge.transports.registry import transports

Places = Counter[tuple[int, int, str]]
"""How many events each window and gem pack has of each stream."""


class TwoStreamCounter:
    """The engine: one process for each trial."""

    name, summary, options = "two-stream-counter", "counts the events of two streams", Options
    jobs = (Job(two_streams.name, transports=frozenset({"queue", "kafka"})),)

    def check(self, situation: Situation[Options]) -> Sequence[str]:
        """Everything can be run."""
        return ()

    def requirements(self, options: Options, transport: str) -> Sequence[Requirement]:
        """Nothing."""
        return ()

    def layout(self, options: Options, instances: int) -> Layout:
        """One process."""
        return toolkit.one_instance(instances)

    def traits(self, options: Options) -> Traits:
        """It looks for events fifty times a second."""
        return Traits(batch_interval_ns=20_000_000)

    def start(self, layout: Layout, options: Options, host: Host) -> AbstractContextManager[System]:
        """Nothing is started before a trial."""

        def deploy(run: JobRun[Options]) -> toolkit.ProcessDeployment:
            child = toolkit.python_child(self.name, __name__, run, host)
            return toolkit.ProcessDeployment(child, EngineFacts(name=self.name))

        return toolkit.per_trial(deploy)


class CountingJob:
    """The loop of the process."""

    def __init__(self, spec: toolkit.ChildSpec, control: ControlServer) -> None:
        transport, self.schema = transports()[spec.transport], schema_of(COUNTED)
        self.params, self.control = two_streams.params.from_resolved(spec.params), control
        self.reader = transport.reader(spec.endpoints)
        self.writer = transport.writer(spec.endpoints, self.schema)
        self.position: dict[StreamPartition, int] = {}
        self.counts: Places = Counter()
        self.batch = 0
        self.stopped = threading.Event()

    def run(self) -> None:
        """Read, count, emit and acknowledge until it is stopped."""
        on_sigterm(self.stopped.set)
        self.reader.available()
        log("ready")
        while not self.stopped.wait(0.02):
            available = self.reader.available()
            if self.read(available):
                complete = self.reader.complete_until(available)
                if complete is not None:
                    self.emit(complete - self.params.watermark // 1_000)
                self.reader.acknowledge(self.position)
                if not self.reader.acknowledges:
                    position = Position(dict(self.position), Clock().monotonic_ns(), dict(self.position))
                    self.control.notify(toolkit.position_notification(position))
        self.reader.close()
        self.writer.close()

    def read(self, available: Available) -> int:
        """Count the events that are new; how many they are."""
        before, window = sum(self.position.values()), self.params.window // 1_000
        for partition, end in available.offsets.items():
            start = self.position.get(partition, 0)
            if end <= start:
                continue
            for rows, _ in self.reader.read(partition, start, end):
                starts = rows.column("due").view("int64").to_numpy() // window * window
                packs = rows.column("gem_pack_id").to_pylist()
                self.counts.update(
                    (at, pack, partition.stream) for at, pack in zip(starts.tolist(), packs, strict=True)
                )
            self.position[partition] = end
        return sum(self.position.values()) - before

    def emit(self, passed_us: int) -> None:
        """Write the windows that end at this moment or before."""
        window = self.params.window // 1_000
        closed = sorted({(at, pack) for at, pack, _ in self.counts if at + window <= passed_us})
        if closed:
            self.writer.put("counts", self.batch, self.schema, self.rows(closed, window), commit=True)
            self.batch += 1

    def rows(self, closed: Sequence[tuple[int, int]], window: int) -> Iterator[pa.RecordBatch]:
        """The outputs of these windows and gem packs."""
        columns: Mapping[str, list[Any]] = {
            "gem_pack_id": [pack for _, pack in closed],
            "window_start": [at for at, _ in closed],
            "window_end": [at + window for at, _ in closed],
            **{name: [self.counts.pop((*key, name), 0) for key in closed] for name in ("purchases", "ads")},
        }
        yield pa.record_batch([pa.array(columns[field.name], field.type) for field in self.schema], schema=self.schema)


def _no_request(action: str, content: Json) -> Json:
    return {}


def main() -> None:
    hide_pandas()
    spec = toolkit.ChildSpec.model_validate_json(read_spec())
    control = ControlServer(spec.control, spec.token)
    control.serve_in_background(_no_request)
    CountingJob(spec, control).run()


engine = TwoStreamCounter()
if __name__ == "__main__":
    main()
