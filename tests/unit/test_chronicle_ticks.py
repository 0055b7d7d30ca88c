"""Every tick counts in the second in which it happened, also when that second closes in the middle of it."""

import threading
from pathlib import Path

from streamgauge.model.units import SECOND
from streamgauge.run.chronicle import Chronicle, Ticks
from streamgauge.store.journal import read_rows

SAMPLE = dict.fromkeys(("offered", "served", "drops", "queue", "hiccup", "drift"), 0)


def test_a_tick_that_is_being_written_down_counts_in_its_second(tmp_path: Path) -> None:
    ticks = Ticks(4)
    chronicle = Chronicle(tmp_path, 0, ticks)
    reading, go_on = threading.Event(), threading.Event()

    def now() -> int:
        """The last moment of the second; whoever asked for it is then kept from going on."""
        reading.set()
        assert go_on.wait(10)
        return SECOND - 1

    ticker = threading.Thread(target=ticks.add, args=(SECOND - 10, now, 5))
    ticker.start()
    assert reading.wait(10)
    closer = threading.Thread(target=chronicle.second, args=(0, SAMPLE, []))
    closer.start()
    closer.join(0.1)
    assert closer.is_alive(), "it waits for the tick"
    go_on.set()
    for thread in (ticker, closer):
        thread.join(10)
    chronicle.second(1, SAMPLE, [])
    chronicle.close()
    assert read_rows(tmp_path / "driver-0-seconds")["published"].to_pylist() == [5, 0]
