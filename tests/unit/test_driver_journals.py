"""Every send counts in the second in which it happened, even if that second closes in the middle of it."""

import threading
from pathlib import Path

import numpy as np

from streamgauge.model.units import SECOND
from streamgauge.run.driver.journals import DriverJournals, SendLog, delays
from streamgauge.store.journal import read_rows
from streamgauge.transports.ledger import Confirmation

SAMPLE = dict.fromkeys(("offered", "served", "drops", "queue", "skew", "hiccup", "drift"), 0)


def test_a_send_that_is_being_written_down_counts_in_its_second(tmp_path: Path) -> None:
    sends = SendLog(4)
    journals = DriverJournals(tmp_path, 0, sends)
    reading, go_on = threading.Event(), threading.Event()

    def now() -> int:
        """The last moment of the second; the thread that requested it then waits."""
        reading.set()
        assert go_on.wait(10)
        return SECOND - 1

    sender = threading.Thread(target=sends.add, args=(SECOND - 10, now, 5))
    sender.start()
    assert reading.wait(10)
    closer = threading.Thread(target=journals.close_second, args=(0, SAMPLE, []))
    closer.start()
    closer.join(0.1)
    assert closer.is_alive(), "it waits for the send"
    go_on.set()
    for thread in (sender, closer):
        thread.join(10)
    journals.close_second(1, SAMPLE, [])
    journals.close()
    assert read_rows(tmp_path / "driver-0-seconds")["published"].to_pylist() == [5, 0]


def test_case_12_send_delays_are_counted_by_events_in_the_second_in_which_they_were_due() -> None:
    intended, late, count = np.array([[SECOND, 5_000, 7], [SECOND + 1, 5_999, 2], [2 * SECOND, 5_000, 3], [1, 0, 0]]).T
    found = [column.tolist() for column in delays(intended, intended + late, count)]
    assert found == [[0, 1], [5, 5], [7, 5]]


def test_case_2_what_a_broker_has_not_confirmed_is_not_published(tmp_path: Path) -> None:
    journals = DriverJournals(tmp_path, 0, SendLog(1), confirmed=True)
    journals.close_second(
        0, SAMPLE, [], [Confirmation(10, 2_000_010, SECOND - 1, 5), Confirmation(20, 3 * SECOND, 3 * SECOND, 4)]
    )
    for second in (1, 2, 3):
        journals.close_second(second, SAMPLE, [])
    journals.close()
    assert read_rows(tmp_path / "driver-0-seconds")["published"].to_pylist() == [5, 0, 0, 4]
    late = read_rows(tmp_path / "driver-0-delays").to_pydict()
    assert (late["second"], late["kind"], late["count"]) == ([0, 0], [1, 1], [5, 4])
