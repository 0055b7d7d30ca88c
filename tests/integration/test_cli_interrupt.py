"""Ctrl-C and SIGTERM keep what is finished and say how to go on."""

import json
import signal
from pathlib import Path

import pytest
from cli_session import start, streamgauge, write


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_keeps_its_trials_and_states_how_to_resume(number: signal.Signals, tmp_path: Path) -> None:
    file, runs = write(tmp_path), tmp_path / "runs"
    process = start("run", file, "--out", runs, "--json", "--pace", "0.02")
    assert process.stderr is not None
    run = process.stderr.readline().split()[1]
    first = process.stderr.readline()
    assert first.startswith("[1/~")
    process.send_signal(number)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 130, err
    assert f"streamgauge resume {run}" in err
    assert "Traceback" not in err
    document = json.loads(out)
    assert (document["exit_code"], document["run"]) == (130, run)
    assert len(document["trials"]) >= 1
    assert document["findings"][0]["status"] == "unfinished"

    whole = streamgauge("run", file, "--out", tmp_path / "whole", "--json").document
    resumed = streamgauge("resume", run, "--out", runs, "--json").document
    assert resumed["findings"] == whole["findings"]
