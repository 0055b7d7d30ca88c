"""What a trial's outputs are compared with: one rule for the workload's own answer and for the user's reference."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from output_samples import ORIGIN, check

from streamgauge.engines.contract import UserCodeFailed, Watermark
from streamgauge.engines.spark.batch_log import batch_row
from streamgauge.engines.spark.explain import BATCHES, watermark
from streamgauge.model.units import SECOND
from streamgauge.run.collector.counts import KIND_NUMBER
from streamgauge.run.trial.assemble import MISSING
from streamgauge.run.trial.custom_result import UserReferenceError
from streamgauge.run.trial.outputs import OutputCheck
from streamgauge.stats import buckets
from streamgauge.store.journal import GrowingRows, NumberedParts, int64_schema, read_rows


def counted(events: pa.Table, params: dict[str, Any]) -> pa.Table:
    """Purchases of each gem pack in each second, as the guide has it."""
    second = pc.floor_temporal(events["due"], unit="second")
    table = pa.table({"start": second, "gem_pack_id": events["gem_pack_id"]}).group_by(["start", "gem_pack_id"])
    found = table.aggregate([([], "count_all")])
    ends = pc.add(found["start"], pa.scalar(1_000_000, pa.duration("us")))
    return pa.table({"gem_pack_id": found["gem_pack_id"], "window_end": ends, "purchases": found["count_all"]})


def expensive(events: pa.Table, params: dict[str, Any]) -> pa.Table:
    return events.filter(pc.greater(events["price"], 5_000)).select(["user_id", "price"])


def highest(events: pa.Table, params: dict[str, Any]) -> pa.Table:
    found = events.group_by(["gem_pack_id"]).aggregate([("price", "max")])
    return pa.table({"gem_pack_id": found["gem_pack_id"], "price": found["price_max"]})


def said(reference: Any, count: int) -> pa.Table:  # noqa: ANN401
    """What a system puts out that has seen so many events, as far as its windows are closed."""
    rows = check(count, count, reference)._custom
    assert rows is not None
    return rows.rows_due()


def faults(made: OutputCheck, rows: pa.Table, folder: Path, reported: Watermark | None = None) -> Sequence[int]:
    NumberedParts(folder / "outputs" / "query").write(rows)
    account = made.account(folder, reported)
    assert account.checked
    return account.lost, account.duplicate, account.wrong


@pytest.mark.parametrize("reference", [counted, expensive])
@pytest.mark.parametrize("seen", [3_500, 6_200, 9_000])
def test_an_overloaded_job_may_be_further_than_it_has_acknowledged(tmp_path: Path, reference: Any, seen: int) -> None:  # noqa: ANN401
    made = check(3_500, 9_000, reference)
    assert faults(made, said(reference, seen), tmp_path) == (0, 0, 0)


@pytest.mark.parametrize("reference", [counted, expensive])
def test_what_was_acknowledged_must_be_out_and_right(tmp_path: Path, reference: Any) -> None:  # noqa: ANN401
    made = check(6_200, 9_000, reference)
    short, whole = said(reference, 3_500), said(reference, 6_200)
    assert faults(made, short, tmp_path / "short")[0] == len(whole) - len(short) > 0
    changed = pc.add(whole.columns[-1], pa.array([1] + [0] * (len(whole) - 1)))
    wrong = whole.set_column(len(whole.columns) - 1, whole.column_names[-1], changed)
    assert faults(made, wrong, tmp_path / "wrong") == (1, 0, 1)


def test_a_job_must_emit_what_its_own_watermark_has_passed_and_no_more(tmp_path: Path) -> None:
    made = check(9_000, 9_000, counted)
    seconds = ORIGIN // SECOND
    late = Watermark((seconds + 4) * 1_000_000, 5_000_000)
    out = said(counted, 9_000)
    out = out.filter(pc.less_equal(pc.cast(out["window_end"], pa.int64()), late.passed))
    assert len(out) == 4 * 3
    assert faults(made, out, tmp_path / "whole", late) == (0, 0, 0)
    assert faults(made, out.slice(1), tmp_path / "one-lost", late) == (1, 0, 0)
    assert made.rows_due(late) == 3 * 3, "the newest acknowledged event less 5 s"
    assert made.rows_due() == 8 * 3


def test_in_update_mode_every_change_may_come_and_the_last_row_must_be_right(tmp_path: Path) -> None:
    made = check(5_000, 5_000, counted, updates=True)
    rows = [counted(_events(count), {}) for count in (1_500, 2_500, 5_000)]
    assert faults(made, pa.concat_tables(rows), tmp_path / "right") == (0, 0, 0)
    lost, _, wrong = faults(made, pa.concat_tables(rows[:2]), tmp_path / "early")
    assert (lost, wrong) == (2 * 3, 3), "all is acknowledged: two windows never came, one has an early count"
    behind = check(5_000, 5_500, counted, updates=True)
    lost, _, wrong = faults(behind, pa.concat_tables(rows[:2]), tmp_path / "behind")
    assert (lost, wrong) == (1 * 3, 3), "one closed window never came, one has an early count"


def _events(count: int) -> pa.Table:
    kept = list[pa.Table]()

    def keep(events: pa.Table, params: dict[str, Any]) -> pa.Table:
        kept.append(events)
        return counted(events, params)

    assert check(count, count, keep)._custom is not None
    return kept[0]


def test_a_column_that_changes_is_no_key_unless_the_user_names_it(tmp_path: Path) -> None:
    with pytest.raises(UserReferenceError, match=r"distinguished by gem_pack_id and price.*engine\.keys"):
        check(5_000, 5_000, highest, updates=True).rows_due()
    made = check(5_000, 5_000, highest, updates=True, keys=("gem_pack_id",))
    rows = [highest(_events(count), {}) for count in (100, 5_000)]
    assert faults(made, pa.concat_tables(rows), tmp_path) == (0, 0, 0)


# outputs that never came


def stamped(events: pa.Table, params: dict[str, Any]) -> pa.Table:
    """``counted`` with the due time of the latest purchase."""
    rows = counted(events, params)
    second = pc.floor_temporal(events["due"], unit="second")
    table = pa.table({"start": second, "gem_pack_id": events["gem_pack_id"], "due": events["due"]})
    found = table.group_by(["start", "gem_pack_id"]).aggregate([("due", "max")])
    return rows.append_column("max_due", found["due_max"])


def one_each(events: pa.Table, params: dict[str, Any]) -> pa.Table:
    """Every tenth purchase, without a window."""
    few = events.take(pa.array(range(0, len(events), 10)))
    return few.select(["user_id", "price"]).append_column("max_due", few["due"])


def running(events: pa.Table, params: dict[str, Any]) -> pa.Table:
    """The number of purchases so far: one row, which is another one after every event."""
    return pa.table({"purchases": [len(events)], "max_due": pa.array([pc.max(events["due"]).as_py()])})


def never_came(
    folder: Path,
    reference: Any,  # noqa: ANN401
    out: pa.Table | None,
    published: int = 9_000,
    *,
    updates: bool = False,
    reported: Watermark | None = None,
    end: int = 12,
) -> dict[str, list[tuple[int, float, int]]]:
    """(second, seconds waited, count) of what the check writes down, by kind."""
    if out is not None:
        NumberedParts(folder / "outputs" / "query").write(out)
    made = check(3_000, published, reference, updates=updates)
    made.account(folder, reported, end * SECOND)
    found: dict[str, list[tuple[int, float, int]]] = {}
    try:
        rows = read_rows(folder / MISSING).to_pydict()
    except FileNotFoundError:
        return found
    numbers = {number: kind for kind, number in KIND_NUMBER.items()}
    for second, kind, bucket, count in zip(*(rows[n] for n in ("second", "kind", "bucket", "count")), strict=True):
        found.setdefault(numbers[kind], []).append((second, float(buckets.lowest(np.array(bucket))) / 1e6, count))
    return found


def test_case_1_rows_of_the_users_reference_that_never_came_have_waited_since_their_latest_event(
    tmp_path: Path,
) -> None:
    """Three windows of three rows came; five more were due, and the ninth could not be out."""
    out = said(stamped, 3_100)
    assert len(out) == 3 * 3
    found = never_came(tmp_path, stamped, out)
    assert sum(count for *_, count in found["missing"]) == 5 * 3
    assert {second for second, *_ in found["missing"]} == {3, 4, 5, 6, 7}
    assert all(waited == pytest.approx(12 - second - 1, rel=0.02) for second, waited, _ in found["missing"])
    assert [(second, count) for second, _, count in found["missing-windows"]] == [(s, 1) for s in range(3, 8)]


def test_case_1_one_row_of_a_window_that_came_is_no_window_that_never_came(tmp_path: Path) -> None:
    found = never_came(tmp_path, stamped, said(stamped, 9_000).slice(1))
    assert [count for *_, count in found["missing"]] == [1]
    assert "missing-windows" not in found


def test_case_1_rows_without_the_due_time_have_waited_at_least_since_the_end_of_their_window(tmp_path: Path) -> None:
    """The bound is lower than the latency, and it counts in the last second of the window."""
    out = said(stamped, 3_100)
    found = never_came(tmp_path, counted, out)
    exact = never_came(tmp_path / "exact", stamped, out)
    assert [(second, count) for second, _, count in found["missing"]] == [(s, 3) for s in range(3, 8)]
    for second, waited, _ in found["missing"]:
        assert waited == pytest.approx(12 - second - 1, rel=0.02)
        assert all(waited <= longer for other, longer, _ in exact["missing"] if other == second)


def test_case_1_in_update_mode_a_window_and_key_of_which_no_row_came_has_waited(tmp_path: Path) -> None:
    out = stamped(_events(3_500), {})
    found = never_came(tmp_path, stamped, out, updates=True)
    assert sum(count for *_, count in found["missing"]) == 4 * 3, "of the fourth window an early count came"


def test_case_1_rows_without_a_window_have_waited_since_they_were_due(tmp_path: Path) -> None:
    found = never_came(tmp_path, one_each, one_each(_events(4_000), {}))
    assert sum(count for *_, count in found["missing"]) == 500
    assert "missing-windows" not in found


def test_case_1_a_window_that_the_jobs_own_watermark_had_not_passed_was_not_due(tmp_path: Path) -> None:
    late = Watermark((ORIGIN // SECOND + 3) * 1_000_000, 4_000_000)
    found = never_came(tmp_path, stamped, said(stamped, 3_100), reported=late)
    assert {second for second, *_ in found["missing"]} == {3}


def test_case_1_rows_whose_latency_is_unknown_are_not_written_down(tmp_path: Path) -> None:
    """The outputs have no due time, or a row of the reference has neither due time nor window, or it is another row
    after every event."""
    assert never_came(tmp_path / "outputs", stamped, said(stamped, 3_100).drop_columns(["max_due"])) == {}
    rows = one_each(_events(4_000), {})
    bare = never_came(tmp_path / "rows", lambda e, p: one_each(e, p).drop_columns(["max_due"]), rows)
    assert bare == {}
    assert never_came(tmp_path / "running", running, running(_events(3_000), {})) == {}


def test_case_1_a_job_whose_outputs_all_came_has_none_that_never_came(tmp_path: Path) -> None:
    assert never_came(tmp_path, stamped, said(stamped, 9_000)) == {}


def test_case_1_a_job_that_emitted_nothing_has_waited_for_every_window(tmp_path: Path) -> None:
    found = never_came(tmp_path, counted, None)
    assert [(second, count) for second, _, count in found["missing-windows"]] == [(s, 1) for s in range(8)]


# the watermark that Spark reports


def _progress(batch: int, newest: str, mark: str | None, took: int = 5) -> dict[str, Any]:
    moments = {"max": newest, **({"watermark": mark} if mark else {})}
    return {"batchId": batch, "eventTime": moments, "durationMs": {"addBatch": took} if took else {}}


def _log(path: Path, *told: dict[str, Any]) -> Path:
    log = GrowingRows(path, int64_schema(*BATCHES))
    for each in told:
        log.append({name: np.array([value]) for name, value in batch_row(each, 0).items()})
    log.close()
    return path


def test_the_watermark_and_its_delay_are_read_from_sparks_progress(tmp_path: Path) -> None:
    told = [
        _progress(0, "2026-01-01T00:00:10.000Z", "1970-01-01T00:00:00.000Z"),
        _progress(1, "2026-01-01T00:00:12.000Z", "2026-01-01T00:00:05.000Z"),
        _progress(2, "2026-01-01T00:00:12.000Z", "2026-01-01T00:00:07.000Z"),
        _progress(3, "2026-01-01T00:00:12.000Z", "2026-01-01T00:00:09.000Z", took=0),
    ]
    found = watermark(_log(tmp_path / "batches", *told))
    assert found == Watermark(1_767_225_607_000_000, 5_000_000), "a moment without a micro-batch tells nothing"


def test_a_query_without_a_watermark_reports_none(tmp_path: Path) -> None:
    assert watermark(_log(tmp_path / "batches", _progress(0, "2026-01-01T00:00:10.000Z", None))) is None
    assert watermark(_log(tmp_path / "empty")) is None
    assert watermark(tmp_path / "nothing") is None


def test_before_the_first_watermark_nothing_must_be_out(tmp_path: Path) -> None:
    told = _progress(0, "2026-01-01T00:00:10.000Z", "1970-01-01T00:00:00.000Z")
    found = watermark(_log(tmp_path / "batches", told))
    assert found == Watermark(0, 0)


def test_an_error_of_the_user_has_its_trace() -> None:
    def broken(events: pa.Table, params: dict[str, Any]) -> pa.Table:
        raise KeyError("no such pack")

    with pytest.raises(UserCodeFailed, match="KeyError") as failed:
        check(10, 10, broken).rows_due()
    assert any("in broken" in line for line in failed.value.trace)


# outputs of a workload's own job


def emitted(rows: dict[str, pa.Array], folder: Path) -> Sequence[int]:
    count = len(next(iter(rows.values())))
    return faults(check(9_000, 9_000), pa.table(rows | {"emitted_us": pa.array([ORIGIN // 1_000] * count)}), folder)


def test_a_null_or_a_text_in_place_of_a_sum_is_wrong_and_a_row_without_its_key_is_no_row(tmp_path: Path) -> None:
    expected = check(9_000, 9_000)._expected
    assert expected is not None
    rows = {name: pa.array(np.asarray(values)) for name, values in expected.items()}
    count = len(rows["sum"])
    assert emitted(rows, tmp_path / "right") == (0, 0, 0)
    with_null = pa.array([None, *rows["sum"].to_pylist()[1:]])
    assert emitted(rows | {"sum": with_null}, tmp_path / "null") == (0, 0, 1)
    assert emitted(rows | {"sum": rows["sum"].cast(pa.string())}, tmp_path / "text") == (0, 0, count)
    floats = rows["sum"].cast(pa.float64())
    assert emitted(rows | {"sum": floats}, tmp_path / "floats") == (0, 0, 0), "the same whole numbers"
    keyless = {name: values for name, values in rows.items() if name != "gem_pack_id"}
    lost, _, wrong = emitted(keyless, tmp_path / "keyless")
    assert (lost, wrong) == (8 * 3, count), "the last window is not closed"
