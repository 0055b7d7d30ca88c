"""Outputs of the workload's own answer that were due and never came are written down with what they had waited."""

from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest
from output_samples import ORIGIN, check

from streamgauge.model.units import SECOND
from streamgauge.run.collector.counts import KIND_NUMBER
from streamgauge.run.trial.assemble import MISSING
from streamgauge.stats import buckets
from streamgauge.store.journal import NumberedParts, read_rows

END = 7 * SECOND


@pytest.mark.parametrize("update", [False, True])
def test_case_1_outputs_that_never_came_are_written_down_with_what_they_had_waited_at_the_end(
    tmp_path: Path, update: bool
) -> None:
    """Of the closed windows, the third did not come at all, and one row of the first is missing."""
    made = check(5_001, 5_001, updates=update)
    answer = made._expected
    assert answer is not None
    second = (answer["window_start"] * 1_000 - ORIGIN) // SECOND
    gone = (second == 2) | ((second == 0) & (answer["gem_pack_id"] == 1)) | (second == 5)
    came = pa.table({name: column[~gone] for name, column in answer.items()})
    NumberedParts(tmp_path / "outputs" / "query").write(came)
    assert made.account(tmp_path, end=END).lost == 3 + 1 + update, "in update mode the open window is final too"
    table = read_rows(tmp_path / MISSING).to_pydict()
    written = list(zip(table["kind"], table["second"], table["bucket"], table["count"], strict=True))
    waited = buckets.index((ORIGIN + END) // 1_000 - answer["max_due"])
    due = gone & (second < 5)  # the last window was not closed
    rows = Counter(zip(second[due].tolist(), waited[due].tolist(), strict=True))
    assert sum(rows.values()) == 3 + 1
    assert {(at, bucket): n for kind, at, bucket, n in written if kind == KIND_NUMBER["missing"]} == rows
    windows = [cell[1:] for cell in written if cell[0] == KIND_NUMBER["missing-windows"]]
    assert windows == [(2, waited[second == 2].max(), 1)], "some rows of the first window came"


def test_case_1_if_every_output_came_nothing_is_written_down(tmp_path: Path) -> None:
    made = check(5_001, 5_001)
    assert made._expected is not None
    NumberedParts(tmp_path / "outputs" / "query").write(pa.table(dict(made._expected)))
    assert made.account(tmp_path, end=END).lost == 0
    assert not list(tmp_path.glob(f"{MISSING}*"))
