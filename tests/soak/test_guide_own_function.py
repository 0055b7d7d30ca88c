"""The guide "Your own function", typed as it stands: a whole search over the queue, with overloaded trials in it."""

import re
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from cli_session import CommandResult, start
from real_trial import PLACEMENT

from streamgauge.run.monitor.monitor import available

pytestmark = [
    pytest.mark.soak,
    pytest.mark.skipif(not available() or not PLACEMENT.sut, reason="a trial needs /proc and two cores"),
]

GUIDE = Path(__file__).parents[2] / "docs/guide/your-own-function.md"
LONGEST = 3600.0
INVALID = "INVALID"
HOST = ("other processes used CPU", "the hypervisor took", "waited for a CPU", "send delay", "paused")
"""What the reasons of a trial say if other work on the machine disturbed it."""


def guide_project(folder: Path, transport: str = "") -> Path:
    """The guide's files in a folder: its function with its reference, and its experiment."""
    text = GUIDE.read_text(encoding="utf-8")
    (folder / "my_job.py").write_text("\n\n".join(re.findall(r"```python\n(.*?)```", text, re.DOTALL)))
    engines = re.findall(r"```yaml\n(engine: .*?)\n```", text)
    engine = next(line for line in engines if "reference:" in line)
    experiment = folder / "my.yaml"
    (shown,) = re.findall(r"```yaml\n(name: my-job\n.*?)```", text, re.DOTALL)
    written = re.sub(r"^engine: .*$", engine + transport, shown, flags=re.MULTILINE)
    experiment.write_text(written, encoding="utf-8")
    return experiment


def run_command_in(folder: Path, *arguments: str) -> CommandResult:
    """A command in a folder, until it ends."""
    with start(*arguments, cwd=folder) as process:
        out, err = process.communicate(timeout=LONGEST)
    sys.stderr.write(err)
    return CommandResult(process.returncode, out, err)


def test_the_guides_own_function_ends_with_bounds(tmp_path: Path) -> None:
    guide_project(tmp_path)
    calibrate(tmp_path)
    ends_with_bounds(run_command_in(tmp_path, "run", "my.yaml", "--json"))


def calibrate(folder: Path, *options: str) -> None:
    """As the guide says: without it, a fast function passes at every load that may be generated.

    Exit code 3 is right only if the host disturbed a trial of the calibration. Its maximum load is kept all the same.
    """
    said = run_command_in(folder, "calibrate", *options, "--json")
    assert said.code in (0, 3), said.err
    found = said.document["calibration"]
    invalid = [row for row in (*found["capacities"], *found["latencies"]) if row["verdict"] == INVALID]
    assert (said.code == 3) == bool(invalid), found
    assert [row for row in invalid if not names_the_host(row["reasons"])] == []


def names_the_host(reasons: Sequence[str]) -> bool:
    """Whether streamgauge gives other work on the machine as a reason."""
    return any(cause in reason for reason in reasons for cause in HOST)


def ends_with_bounds(said: CommandResult, *, may_pass_all: bool = False) -> None:
    """Every output was right, overloaded trials included, and the search has a lower and an upper bound.

    Without bounds, trials must be INVALID and the host must have disturbed the run.
    ``may_pass_all``: all loads that this machine can generate may pass, and the result then says so.
    """
    document = said.document
    trials = document["trials"]
    accounts = [trial["measured"]["account"] for trial in trials]
    assert {(a["lost"], a["duplicate"], a["wrong"]) for a in accounts} == {(0, 0, 0)}, said.err
    assert any(a["observed"] > 0 and a["checked"] for a in accounts), said.err
    kinds = [trial["verdict"] for trial in trials]
    if may_pass_all and [finding["status"] for finding in document["findings"]] == ["all-hold"]:
        assert said.code == 0, said.err
        assert "OVERLOADED" not in kinds, said.err
        (finding,) = document["findings"]
        assert finding["holds"] is not None, said.err
        assert "streamgauge can generate at most" in finding["sentence"], said.err
        assert "run `streamgauge calibrate`" in finding["sentence"], said.err
        return
    spoiled = [trial for trial in trials if trial["verdict"] == INVALID and names_the_host(trial["reasons"])]
    if said.code in (3, 6) and spoiled:
        return  # the host disturbed the trials that would have been a bound
    assert "OVERLOADED" in kinds, said.err
    assert said.code == 0, said.err
    (finding,) = document["findings"]
    assert finding["holds"] is not None, said.err
    assert finding["fails"] is not None, said.err
