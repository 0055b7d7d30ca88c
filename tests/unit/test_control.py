"""The control channel between the controller and a child process."""

import json
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from streamgauge.processes.control import ControlClient, ControlError, ControlRefused, ControlServer, Json

TOKEN = "of-this-test-only"  # noqa: S105
LIMIT = 5.0
"""Seconds after which a test gives up."""


class Child:
    """What serves the channel: it can wait with a response, notify and refuse."""

    def __init__(self, path: Path) -> None:
        self.path, self.server = path, ControlServer(path, TOKEN)
        self.reached, self.may_respond = threading.Event(), threading.Event()
        self.thread = threading.Thread(target=self.server.serve, args=(self.handle,), daemon=True)
        self.thread.start()

    def handle(self, action: str, content: Json) -> Json:
        """Return what was requested."""
        if action == "notify":
            self.server.notify({"ended": "by itself"})
        elif action == "wait":
            self.reached.set()
            assert self.may_respond.wait(LIMIT)
        elif action == "forbidden":
            raise ControlRefused("this child has no action forbidden")
        return {"action": action, **content}

    def client(self, token: str = TOKEN, timeout: float = LIMIT) -> ControlClient:
        """A connection to it."""
        return ControlClient(self.path, token, timeout)


@pytest.fixture
def child(tmp_path: Path) -> Iterator[Child]:
    serving = Child(tmp_path / "child.control")
    yield serving
    last = serving.client()
    assert last.request("quit")["action"] == "quit"
    last.close()
    serving.thread.join(LIMIT)
    assert not serving.thread.is_alive()


def test_every_request_gets_its_own_response(child: Child) -> None:
    client = child.client()
    assert client.request("run", LIMIT, query={"load": 7}) == {"number": 1, "action": "run", "query": {"load": 7}}
    assert client.request("end") == {"number": 2, "action": "end"}
    client.close()


def test_a_notification_between_request_and_response_is_kept(child: Child) -> None:
    client = child.client()
    assert client.request("notify")["action"] == "notify"
    assert client.notifications() == [{"ended": "by itself"}]
    assert client.notifications() == []
    client.close()


def test_notifications_of_several_threads_arrive_whole(child: Child) -> None:
    client = child.client()
    client.request("status")  # the connection is accepted
    long = "x" * 20_000
    threads = [
        threading.Thread(target=child.server.notify, args=({"thread": number, "text": long},)) for number in range(8)
    ]
    for thread in threads:
        thread.start()
    client.request("status")  # read what is there, so that no thread waits for the socket
    for thread in threads:
        thread.join(LIMIT)
    client.request("status")
    arrived = client.notifications()
    assert sorted(each["thread"] for each in arrived) == list(range(8))
    assert {each["text"] for each in arrived} == {long}
    client.close()


def test_a_request_that_is_refused_raises_with_the_reason_and_the_channel_stays_usable(child: Child) -> None:
    client = child.client()
    with pytest.raises(ControlRefused, match="has no action forbidden"):
        client.request("forbidden")
    assert client.request("status")["number"] == 2
    client.close()


def test_a_caller_without_the_token_is_disconnected_and_the_next_one_is_served(child: Child) -> None:
    other = child.client("guessed")
    with pytest.raises(ControlError):
        other.request("run")
    other.close()
    client = child.client()
    assert client.request("run")["action"] == "run"
    client.close()


def disconnected(connection: socket.socket) -> bool:
    """Whether the other side has closed the connection."""
    try:
        return connection.recv(1) == b""
    except ConnectionError:
        return True


def test_a_caller_that_sends_no_token_at_all_is_disconnected(child: Child) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.connect(str(child.path))
        connection.sendall(b"x" * 5_000)
        connection.settimeout(LIMIT)
        assert disconnected(connection)


def test_no_response_in_time_is_an_error_that_names_the_request(child: Child) -> None:
    client = child.client(timeout=0.05)
    with pytest.raises(ControlError, match=r"no response to wait within 0\.05 s"):
        client.request("wait")
    child.may_respond.set()
    client.close()


def test_a_late_response_is_not_taken_for_that_of_the_next_request(child: Child) -> None:
    client = child.client()
    with pytest.raises(ControlError, match="no response"):
        client.request("wait", 0.05)
    child.may_respond.set()
    assert client.request("status", LIMIT) == {"number": 2, "action": "status"}
    assert client.notifications() == [], "nor for a notification"
    client.close()


def test_a_child_that_ends_waits_until_the_response_that_is_being_handled_is_sent(child: Child) -> None:
    client = child.client()
    request = {"number": 1, "action": "wait"}
    client._socket.sendall(json.dumps(request).encode() + b"\n")
    assert child.reached.wait(LIMIT)
    waiter = threading.Thread(target=child.server.wait_responded, args=(LIMIT,), daemon=True)
    waiter.start()
    waiter.join(0.05)
    assert waiter.is_alive(), "the response is not sent yet"
    child.may_respond.set()
    waiter.join(LIMIT)
    assert not waiter.is_alive()
    assert client._next(0.0) == {"number": 1, "action": "wait"}, "it was sent before the wait was over"
    client.close()


def test_a_wait_for_a_response_ends_at_its_limit(child: Child) -> None:
    client = child.client()
    client._socket.sendall(b'{"number": 1, "action": "wait"}\n')
    assert child.reached.wait(LIMIT)
    child.server.wait_responded(0.05)
    child.may_respond.set()
    client.close()


def test_without_a_request_there_is_nothing_to_wait_for(child: Child) -> None:
    child.server.wait_responded(LIMIT)


def test_a_notification_without_a_caller_is_dropped(tmp_path: Path) -> None:
    ControlServer(tmp_path / "alone.control", TOKEN).notify({"offsets": []})


def test_a_child_that_has_ended_is_an_error(tmp_path: Path) -> None:
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(str(tmp_path / "gone.control"))
    listener.listen(1)
    client = ControlClient(tmp_path / "gone.control", TOKEN)
    listener.accept()[0].close()
    listener.close()
    with pytest.raises(ControlError):
        client.request("run", LIMIT)
    with pytest.raises(ControlError):
        client.notifications()
    client.close()


def test_notifications_that_arrived_before_the_end_are_returned_before_it_is_an_error(tmp_path: Path) -> None:
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(str(tmp_path / "ending.control"))
    listener.listen(1)
    client = ControlClient(tmp_path / "ending.control", TOKEN)
    connection, _ = listener.accept()
    connection.sendall(b'{"ended": "the last word"}\n')
    connection.recv(100)
    connection.close()
    listener.close()
    assert client.notifications() == [{"ended": "the last word"}]
    with pytest.raises(ControlError):
        client.notifications()
    client.close()


def test_a_channel_to_a_process_that_has_ended_is_refused_with_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(ControlError, match="the control channel is broken"):
        ControlClient(tmp_path / "no-such.control", TOKEN)
