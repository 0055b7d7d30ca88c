"""The line to a process that serves many trials."""

import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from streamgauge.processes.control import Json, Line, LineError, LineServer

TOKEN = "of-this-test-alone"  # noqa: S105


@pytest.fixture
def server(tmp_path: Path) -> Iterator[LineServer]:
    served = LineServer(tmp_path / "line.sock", TOKEN, threading.Lock())

    def answer(action: str, body: Json) -> Json:
        if action == "tell":
            served.tell({"ended": "by itself"})
        return {"said": action, **body}

    thread = threading.Thread(target=served.serve, args=(answer,), daemon=True)
    thread.start()
    yield served
    closing = Line(tmp_path / "line.sock", TOKEN)
    with pytest.raises(LineError):
        closing.ask("quit", 5)
    thread.join(5)
    assert not thread.is_alive()


@pytest.mark.usefixtures("server")
def test_every_question_gets_its_own_answer(tmp_path: Path) -> None:
    line = Line(tmp_path / "line.sock", TOKEN)
    assert line.ask("run", 5, order={"load": 7}) == {"number": 1, "said": "run", "order": {"load": 7}}
    assert line.ask("end", 5) == {"number": 2, "said": "end"}
    line.close()


@pytest.mark.usefixtures("server")
def test_what_is_told_between_question_and_answer_is_kept(tmp_path: Path) -> None:
    line = Line(tmp_path / "line.sock", TOKEN)
    assert line.ask("tell", 5)["said"] == "tell"
    assert line.told() == [{"ended": "by itself"}]
    assert line.told() == []
    line.close()


@pytest.mark.usefixtures("server")
def test_who_does_not_know_the_token_is_hung_up_on_and_the_next_caller_is_served(tmp_path: Path) -> None:
    stranger = Line(tmp_path / "line.sock", "guessed")
    with pytest.raises(LineError):
        stranger.ask("run", 5)
    stranger.close()
    line = Line(tmp_path / "line.sock", TOKEN)
    assert line.ask("run", 5)["said"] == "run"
    line.close()


def test_a_side_that_is_gone_is_said_to_be_so(tmp_path: Path) -> None:
    door = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    door.bind(str(tmp_path / "gone.sock"))
    door.listen(1)
    line = Line(tmp_path / "gone.sock", TOKEN)
    door.accept()[0].close()
    door.close()
    with pytest.raises(LineError):
        line.ask("run", 5)
    line.close()


def test_a_line_to_a_process_that_is_gone_is_refused_with_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(LineError, match="the line is broken"):
        Line(tmp_path / "nobody.sock", TOKEN)
