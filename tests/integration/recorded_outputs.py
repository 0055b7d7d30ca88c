"""Outputs of any workload as they are recorded, made from its reference result, with single rows falsified."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from streamgauge.model.profile import constant
from streamgauge.model.seconds import Account
from streamgauge.model.trial import Trial, TrialRequest
from streamgauge.model.units import SECOND
from streamgauge.run.trial.outputs import OutputCheck
from streamgauge.store.journal import NumberedParts
from streamgauge.workloads.contract import Columns, Workload, plans_of

LOAD, ORIGIN, HORIZON = 20_000.0, 1_700_000_000 * SECOND, 4_000 * SECOND
PARAMS = {
    "window": "10ms",
    "slide": "10ms",
    "gem_packs": 50,
    "keys": 100,
    "frequency": "1000/s",
    "selectivity": "100%",
    "locations": 100,
}
"""Many small windows. What a workload does not have is omitted."""
PARTS = 20
KINDS = {"text": pa.string()}
"""Types of columns in Arrow, if they have another name there."""


@dataclass(frozen=True)
class RecordedOutputs:
    """All outputs of a trial of a workload, recorded in ``folder``."""

    workload: Workload[Any]
    least: int
    """How many rows at least."""
    folder: Path
    chosen: Mapping[str, Any] = field(default_factory=dict)
    """Parameters beside those that all workloads have."""

    @cached_property
    def check(self) -> OutputCheck:
        """The check of the trial after the shortest time that gives enough rows."""
        kind = self.workload.params
        params = kind.model_validate({k: v for k, v in {**PARAMS, **self.chosen}.items() if k in kind.model_fields})
        trial = Trial(
            number=1,
            ask=TrialRequest("load", LOAD, "measure"),
            workload=self.workload.name,
            params=params.model_dump(mode="json"),
            engine="spark",
            options={},
            instances=1,
            profile=constant(LOAD),
            duration=10 * SECOND,
            limit=10 * SECOND,
            warmup=0,
            warmup_limit=0,
            queue_bound=0,
            seed=5,
        )
        plans = plans_of(self.workload.streams(params), trial.profile, HORIZON)
        empty, moment = OutputCheck(self.workload, trial, params, plans), SECOND // 2
        while moment < HORIZON:
            moment *= 2
            events = {name: int(plan.count(min(moment, HORIZON))) for name, plan in plans.items()}
            check = empty.at(ORIGIN, events, events)
            if check.rows_due() >= self.least:
                return check
        raise ValueError(f"{self.workload.name} has fewer than {self.least:,} rows in {HORIZON // SECOND} s")

    @cached_property
    def rows(self) -> pa.Table:
        """The rows that are due, in a random order, with the types of the contract."""
        expected, contract = self.check._expected, self.check._contract
        assert expected is not None
        types = {name: KINDS.get(kind) or pa.type_for_alias(_alias(kind)) for name, kind in contract.schema}
        order = np.random.default_rng(3).permutation(self.check.rows_due())
        whole = {name: _array(expected, name, types[name]) for name in expected if name not in contract.digested}
        whole |= {name: self._texts(name) for name in contract.digested}
        columns = {name: whole[name].take(pa.array(order)) for name in expected}
        first = columns[contract.identity[0]].cast(pa.int64())
        return pa.table(columns | {"emitted_us": first})

    def _texts(self, name: str) -> pa.Array:
        """The texts of a column of which the reference result has digests: those of the events, stream by stream."""
        check = self.check
        parts = [
            check.workload.events(check.params, stream.name, check._inputs).events(0, check.published[stream.name])
            for stream in check.workload.streams(check.params)
        ]
        return pa.concat_arrays([part[name] for part in parts])

    def record(self) -> None:
        """Write the rows as the collector does."""
        parts = NumberedParts(self.folder / "outputs" / "query")
        for part in range(PARTS):
            parts.write(self._part(part))

    def with_rows(self, place: int, rows: pa.Table) -> Account:
        """What the check finds if the row at ``place`` is recorded as these rows."""
        part, at = divmod(place, self._size)
        whole = self._part(part)
        file = sorted((self.folder / "outputs" / "query").glob("*.parquet"))[part]
        pq.write_table(pa.concat_tables([whole.slice(0, at), rows, whole.slice(at + 1)]), file)
        try:
            return self.check.account(self.folder)
        finally:
            pq.write_table(whole, file)

    @property
    def _size(self) -> int:
        return -(-len(self.rows) // PARTS)

    def _part(self, number: int) -> pa.Table:
        return self.rows.slice(number * self._size, self._size)

    def altered(self, place: int, name: str, random: np.random.Generator) -> pa.Table:
        """The row with another value in one column, as close to the right one as may be."""
        row = self.rows.slice(place, 1)
        kind = row.schema.field(name)
        column = row.column(name).combine_chunks()
        if column.null_count:
            changed: object = 0 if pa.types.is_integer(kind.type) or pa.types.is_floating(kind.type) else ""
        elif random.random() < 0.1:
            changed = None
        elif pa.types.is_string(kind.type):
            changed = _altered_text(column[0].as_py(), random)
        elif pa.types.is_floating(kind.type):
            changed = column[0].as_py() * (1 + 3e-9) or 5e-324
        else:
            bits = 31 if kind.type == pa.int32() else 40
            changed = int(column.cast(pa.int64())[0].as_py()) ^ 1 << int(random.integers(0, bits))
        if pa.types.is_timestamp(kind.type):
            array = pa.array([changed], pa.int64()).cast(kind.type)
        else:
            array = pa.array([changed], kind.type)
        return row.set_column(row.schema.get_field_index(name), kind, array)


def _alias(kind: str) -> str:
    return {"timestamp[us, tz=UTC]": "timestamp[us]"}.get(kind, kind)


def _array(expected: Columns, name: str, kind: pa.DataType) -> pa.Array:
    column = expected[name]
    values = np.ma.getdata(column)
    nulls = np.ma.getmaskarray(column) if np.ma.is_masked(column) else None
    array = pa.array(values, pa.int64() if pa.types.is_timestamp(kind) else kind, mask=nulls)
    return array.cast(kind)


def _altered_text(text: str, random: np.random.Generator) -> str:
    at = int(random.integers(0, len(text) + 1))
    return text[:at] + "x" + text[at:]
