"""The null consumer of a calibration: a system under test that does nothing but read, or nothing but send.

The launcher starts it on the cores of the system under test as
``python -m streamgauge.run.calibrate.null_consumer``. It runs until it is ended.
"""

import itertools
import threading
import time

import numpy as np
import pyarrow as pa

from streamgauge.model.streams import Position, StreamPartition
from streamgauge.processes.child import hide_pandas, log, low_latency_mode, on_sigterm, read_spec
from streamgauge.processes.control import ControlServer, Json
from streamgauge.run.driver.specs import NullConsumerSpec, read_envelope
from streamgauge.transports.contract import EventReader, OutputWriter
from streamgauge.transports.ledger import offsets_to_json
from streamgauge.transports.registry import transports

_WAIT = 0.001
_STAMP = pa.timestamp("us", "UTC")
OUTPUT = pa.schema([("key", pa.int64()), ("window_end", _STAMP), ("sum", pa.int64()), ("max_due", _STAMP)])


def read_all(reader: EventReader, control: ControlServer, stop: threading.Event) -> None:
    """Read everything as soon as it is there, ignore it, and acknowledge it."""
    position: dict[StreamPartition, int] = {}
    while not stop.is_set():
        offsets = reader.available().offsets
        new_ends = {each: end for each, end in offsets.items() if end > position.get(each, 0)}
        for each, end in new_ends.items():
            for _ in reader.read(each, position.get(each, 0), end):
                pass
        position |= new_ends
        if not new_ends:
            time.sleep(_WAIT)
            continue
        reader.acknowledge(new_ends)
        if not reader.acknowledges:
            newest = Position(position, time.monotonic_ns())
            control.notify({"offsets": offsets_to_json(newest.offsets), "at_ns": newest.at_ns})
    reader.close()


def send_outputs(writer: OutputWriter, rows: int, stop: threading.Event) -> None:
    """Send outputs as fast as they are accepted, about a million to a commit."""
    stamps = pa.array(np.full(rows, time.time_ns() // 1000)).view(_STAMP)
    keys = pa.array(np.arange(rows))
    batch = pa.record_batch([keys, stamps, keys, stamps], schema=OUTPUT)
    for number in itertools.takewhile(lambda _: not stop.is_set(), itertools.count()):
        writer.put("ceiling", number, OUTPUT, [batch] * max(1, (1 << 20) // rows), commit=True)
    writer.close()


def _handle(action: str, content: Json) -> Json:
    """The null consumer has no actions."""
    return {}


def main() -> None:
    """The process's table of contents."""
    hide_pandas()
    spec, envelope = read_envelope(read_spec(), NullConsumerSpec)
    stop = threading.Event()
    on_sigterm(stop.set)
    transport, control = transports()[spec.transport], ControlServer(envelope.control, envelope.token)
    control.serve_in_background(_handle)
    reader = None if spec.rows else transport.reader(envelope.wire)
    low_latency_mode()
    log("ready")
    if reader is None:
        send_outputs(transport.writer(envelope.wire, OUTPUT), spec.rows, stop)
    else:
        read_all(reader, control, stop)


if __name__ == "__main__":
    main()
