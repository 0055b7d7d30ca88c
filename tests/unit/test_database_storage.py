"""The rows that database-storage makes of readings."""

import numpy as np

from streamgauge.judge.compare_columns import columns_of
from streamgauge.judge.outputs import compare_outputs
from streamgauge.model.profile import constant
from streamgauge.model.streams import schema_of
from streamgauge.model.units import SECOND
from streamgauge.workloads.contract import Inputs
from streamgauge.workloads.database_storage import DatabaseStorageParams, database_storage

ORIGIN = 1_700_000_000 * SECOND
PARAMS = DatabaseStorageParams(keys=300)
INPUTS = Inputs({"readings": constant(1_000).plan(10 * SECOND)}, 7, ORIGIN)


def test_every_reading_is_a_row_with_the_name_of_its_sensor_and_its_value_in_whole_units() -> None:
    rows = database_storage.reference(PARAMS, INPUTS).until({"readings": 500})
    made = database_storage.events(PARAMS, "readings", INPUTS).events(0, 500)
    assert rows["sequence"].tolist() == list(range(500))
    assert rows["sensor"][[0, 299, 300]].tolist() == ["sensor-000000000", "sensor-000000299", "sensor-000000000"]
    assert rows["value"].tolist() == [value / 100 for value in made["value"].tolist()]
    assert np.array_equal(rows["max_due"], made["due"])


def test_a_row_with_another_name_is_wrong_and_no_rows_are_none() -> None:
    rows = dict(database_storage.reference(PARAMS, INPUTS).until({"readings": 100}))
    contract = database_storage.output(PARAMS)
    table = schema_of(contract.schema).empty_table()
    observed = columns_of(table, rows)
    assert set(observed) == set(rows)
    found = compare_outputs(rows, observed, window=1, closed=100, identity=contract.identity, tolerance=1e-9).account
    assert (found.lost, found.wrong) == (100, 0)
    altered = {name: column.copy() for name, column in rows.items()}
    altered["sensor"][7], altered["value"][9] = "sensor-7", altered["value"][9] * (1 + 3e-9)
    found = compare_outputs(rows, altered, window=1, closed=100, identity=contract.identity, tolerance=1e-9).account
    assert (found.lost, found.wrong) == (0, 2)
