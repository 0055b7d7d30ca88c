"""The rows of engines in simulated time: their outputs are modelled, and the model must agree with itself."""

from pathlib import Path

import pytest
from row_trials import KNOWN

from streamgauge.engines.contract import ANY_WORKLOAD
from streamgauge.engines.table import Row, rows
from streamgauge.judge import EarlyStopRule
from streamgauge.model.profile import constant
from streamgauge.model.seconds import WINDOW_KINDS, Kind
from streamgauge.model.trial import Trial, TrialRequest
from streamgauge.model.units import SECOND
from streamgauge.run.explore import setup_of
from streamgauge.run.trial.execute import execute
from streamgauge.run.trial.setup import DiscardingRecorder, RunContext
from streamgauge.workloads.parameters import Windowed
from streamgauge.workloads.registry import workloads

SIMULATED = [row for row in rows(KNOWN) if KNOWN[row.engine].traits(KNOWN[row.engine].options()).simulated]
LOAD, SECONDS = 20_000.0, 200
WINDOWS = {"window": "10s", "slide": "5s"}
EVENT_TIME: Kind = "event-time"


def _trial(row: Row, workload: str) -> Trial:
    kind = workloads()[workload].params
    params = kind(**{name: value for name, value in WINDOWS.items() if name in kind.model_fields})
    return Trial(
        number=1,
        ask=TrialRequest("load", LOAD, "measure"),
        workload=workload,
        params=params.model_dump(mode="json"),
        engine=row.engine,
        options=KNOWN[row.engine].options().model_dump(mode="json"),
        instances=1,
        profile=constant(LOAD),
        duration=SECONDS * SECOND,
        limit=SECONDS * SECOND,
        warmup=0,
        warmup_limit=0,
        queue_bound=0,
        seed=29,
    )


@pytest.mark.parametrize(
    ("row", "workload"),
    [(row, name) for row in SIMULATED for name in sorted(workloads()) if row.workload in (name, ANY_WORKLOAD)],
    ids=lambda part: part if isinstance(part, str) else part.engine,
)
def test_the_modelled_outputs_are_windows_times_keys(row: Row, workload: str, tmp_path: Path) -> None:
    trial = _trial(row, workload)
    rule = EarlyStopRule(trial, ())
    setup = setup_of(trial, KNOWN[row.engine], DiscardingRecorder(tmp_path), RunContext(), rule)
    recording = execute(setup)
    account, seconds = recording.outcome.account, recording.seconds
    outputs = int(seconds.latencies[EVENT_TIME].count.sum())
    results = int(seconds.latencies[WINDOW_KINDS[EVENT_TIME]].count.sum())
    assert account.expected == int(seconds["outputs"].sum()) > 0
    assert (account.lost, account.duplicate, account.wrong) == (0, 0, 0)
    if isinstance(setup.params, Windowed):
        assert outputs == results * setup.params.key_count
        periods = SECONDS * SECOND // setup.params.period
        assert periods - 1 <= results <= periods
    else:
        assert outputs == pytest.approx(LOAD * SECONDS, rel=0.01)
