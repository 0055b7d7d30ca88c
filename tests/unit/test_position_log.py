"""The position of a process that reports it as notifications of its control channel."""

import json
from typing import Any

from streamgauge.engines.toolkit import PositionLog, position_notification
from streamgauge.model.streams import Position, StreamPartition

A, B = StreamPartition("purchases", 0), StreamPartition("ads", 1)


def reported(offsets: dict[StreamPartition, int], at_ns: int, started: Any = None) -> Any:  # noqa: ANN401
    """A notification as it arrives."""
    return json.loads(json.dumps(position_notification(Position(offsets, at_ns, started))))


def test_a_position_comes_back_from_its_notification_as_it_was() -> None:
    log, position = PositionLog(), Position({A: 7, B: 1 << 40}, 123_456_789, {A: 9, B: 1 << 41})
    log.take([json.loads(json.dumps(position_notification(position)))])
    assert log.newest() == position


def test_before_anything_is_reported_there_is_no_position() -> None:
    log = PositionLog()
    assert log.newest() is None
    log.take([])
    assert log.newest() is None


def test_the_newest_position_is_returned_once() -> None:
    log = PositionLog()
    log.take([reported({A: 1}, 10), reported({A: 2}, 20)])
    assert log.newest() == Position({A: 2}, 20)
    assert log.newest() is None
    log.take([reported({A: 3}, 30)])
    assert log.newest() == Position({A: 3}, 30)


def test_a_position_that_is_reported_again_keeps_the_moment_at_which_it_became_true() -> None:
    log = PositionLog()
    log.take([reported({A: 5}, 10)])
    log.take([reported({A: 5}, 99, {A: 8})])
    assert log.newest() == Position({A: 5}, 10, {A: 8})
    log.take([reported({A: 8}, 120, {A: 8})])
    assert log.newest() == Position({A: 8}, 120, {A: 8})


def test_other_notifications_are_left_to_others() -> None:
    log = PositionLog()
    log.take([{"ended": "by itself", "trace": []}])
    assert log.newest() is None
    log.take([reported({A: 1}, 10), {"ended": "by itself", "trace": []}])
    assert log.newest() == Position({A: 1}, 10)


def test_a_process_without_a_started_position_reports_none() -> None:
    log = PositionLog()
    log.take([reported({A: 1}, 10)])
    position = log.newest()
    assert position is not None
    assert position.started is None
