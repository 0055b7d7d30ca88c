"""Outputs that are identified by the number of an event: which of them must be out, of one stream and of both."""

from pathlib import Path

import pyarrow as pa
import pytest
from output_samples import ORIGIN, TRIAL

from streamgauge.model.streams import schema_of
from streamgauge.run.trial.outputs import OutputCheck
from streamgauge.store.journal import NumberedParts
from streamgauge.workloads.contract import plans_of
from streamgauge.workloads.data.traffic import STREAMS
from streamgauge.workloads.traffic import TrafficParams, traffic

PLANS = plans_of(STREAMS, TRIAL.profile, 60 * 10**9)


def check(stage: int, flow: int, speed: int, published: int = 100) -> OutputCheck:
    """The check of a stage if so many events of each stream are acknowledged."""
    params = TrafficParams.model_validate({"stage": stage, "locations": 10})
    made = OutputCheck(traffic, TRIAL, params, PLANS)
    return made.at(ORIGIN, {"flow": flow, "speed": speed}, {"flow": published, "speed": published})


def outputs(made: OutputCheck) -> pa.Table:
    """All rows of the reference result, as outputs; texts are not needed."""
    expected, schema = made._expected, {field.name: field for field in schema_of(made._contract.schema)}
    assert expected is not None
    table = pa.table(
        {name: pa.array(column, pa.int64() if name == "max_due" else None) for name, column in expected.items()}
    )
    assert {*table.schema.names} <= {*schema}
    return table


def faults(made: OutputCheck, rows: pa.Table, folder: Path) -> tuple[int, int, int, int]:
    NumberedParts(folder / "outputs" / "query").write(rows)
    found = made.account(folder)
    assert found.checked
    return found.lost, found.duplicate, found.wrong, found.not_reached


@pytest.mark.parametrize(("stage", "due"), [(0, 50 + 60), (1, 50 + 60), (2, 50)])
def test_as_many_rows_are_due_as_events_of_their_streams_are_acknowledged(stage: int, due: int) -> None:
    assert check(stage, 50, 60).rows_due() == due
    assert check(stage, 0, 0).rows_due() == 0


def test_a_row_is_lost_only_if_the_event_of_its_own_stream_was_acknowledged(tmp_path: Path) -> None:
    made = check(1, 50, 60)
    rows = outputs(made)
    assert faults(made, rows, tmp_path / "all") == (0, 0, 0, 0)
    first = rows.slice(0, 45)  # of flow
    assert faults(made, first, tmp_path / "flow") == (5 + 60, 0, 0, 50 + 40)
    both = pa.concat_tables([rows.slice(0, 50), rows.slice(100, 60)])
    assert faults(made, both, tmp_path / "both") == (0, 0, 0, 50 + 40)
    assert faults(made, pa.concat_tables([both, both.slice(7, 1)]), tmp_path / "twice") == (0, 1, 0, 90)


def test_a_joined_row_is_lost_only_if_both_events_were_acknowledged(tmp_path: Path) -> None:
    made = check(2, 50, 60)
    rows = outputs(made)
    assert faults(made, rows.slice(0, 50), tmp_path / "due") == (0, 0, 0, 50)
    assert faults(made, rows.slice(1, 60), tmp_path / "lost") == (1, 0, 0, 39)
    strange = rows.slice(0, 50).set_column(0, "sequence", pa.array([*range(49), 700]))
    assert faults(made, strange, tmp_path / "strange") == (1, 0, 1, 50)
