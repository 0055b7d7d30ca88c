"""The columns of journals and of latencies are written down once, and their users agree."""

import pyarrow as pa
import pytest

from streamgauge.analyze import journals
from streamgauge.model.seconds import (
    KINDS,
    LARGEST,
    LARGEST_OF_DRIVERS,
    LATENCY_COLUMNS,
    OUTPUT_KINDS,
    SUMMED,
    SUMMED_BY_DRIVERS,
)
from streamgauge.run.collector.counts import FIRST_ROW, KIND_NUMBER, LAST_ROW
from streamgauge.run.driver.journals import DELAY_NUMBER
from streamgauge.store import journal


@pytest.mark.parametrize("name", ["TICKS", "ACKS", "APPENDS", "LATENCIES", "ROLES", "CORES"])
def test_the_analysis_reads_columns_that_the_journal_has_with_their_types(name: str) -> None:
    schema: pa.Schema = getattr(journal, name)
    for column in getattr(journals, name).split(", "):
        column_name, kind = column.split()
        assert schema.field(column_name).type == {"BIGINT": pa.int64(), "STRING": pa.string()}[kind]


def test_load_drivers_record_columns_of_a_second() -> None:
    assert {*SUMMED_BY_DRIVERS} < {*SUMMED}
    assert {*LARGEST_OF_DRIVERS} < {*LARGEST}
    assert {*SUMMED_BY_DRIVERS, *LARGEST_OF_DRIVERS} < {*journal.DRIVER_SECONDS.names}


def test_every_kind_has_one_number_and_the_first_and_last_rows_have_others() -> None:
    assert {*LATENCY_COLUMNS} == {*OUTPUT_KINDS}
    assert {*KIND_NUMBER, *DELAY_NUMBER} == {*KINDS}
    assert {FIRST_ROW, LAST_ROW} & {*KIND_NUMBER.values()} == set()
    assert len({*KIND_NUMBER.values()}) == len(KIND_NUMBER)
