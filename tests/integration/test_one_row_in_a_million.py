"""One altered, dropped or duplicated row among all outputs of a trial is found, whatever the workload and the row.

The outputs are recorded as the collector records them, without an engine. `make soak` tries 100 rows of 1,000,000.
"""

import numpy as np
import pytest
from recorded_outputs import RecordedOutputs

from streamgauge.model.seconds import Account
from streamgauge.workloads.contract import has_reference
from streamgauge.workloads.registry import workloads

CHECKED = sorted(name for name, workload in workloads().items() if has_reference(workload, workload.params()))
"""Workloads with a reference result."""
SHORT, LONG = (200_000, 12), (1_000_000, 100)


def _parameters(name: str) -> list[dict[str, int]]:
    """The parameters with which a workload is tried: each of its stages, if it has any."""
    stages = workloads()[name].stages
    return [{stages.parameter: number} for number in range(len(stages.names))] if stages else [{}]


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(
            (name, chosen, *size),
            id="-".join([name, *(f"{k}{v}" for k, v in chosen.items()), str(size[0])]),
            marks=[pytest.mark.soak] if size == LONG or chosen != _parameters(name)[-1] else [],
        )
        for name in CHECKED
        for chosen in _parameters(name)
        for size in (SHORT, LONG)
    ],
)
def recorded(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[RecordedOutputs, int]:
    """The recorded outputs of a workload, and how many rows are to be tried."""
    name, chosen, rows, tries = request.param
    outputs = RecordedOutputs(workloads()[name], rows, tmp_path_factory.mktemp(name), chosen)
    outputs.record()
    return outputs, tries


def _clean(outputs: RecordedOutputs, observed: int) -> Account:
    """The account of outputs without a fault."""
    found = outputs.check.account(outputs.folder)
    assert (found.lost, found.duplicate, found.wrong, found.late, found.observed) == (0, 0, 0, 0, observed)
    return found


def test_every_falsified_row_is_found(recorded: tuple[RecordedOutputs, int]) -> None:
    outputs, tries = recorded
    total = len(outputs.rows)
    _clean(outputs, total)
    random = np.random.default_rng(20180416)
    identity = outputs.check._contract.identity
    values = [name for name in outputs.rows.schema.names if name not in (*identity, "emitted_us")]
    for number, place in enumerate(random.integers(0, total, tries).tolist()):
        row = outputs.rows.slice(place, 1)
        if number % 3 == 0:
            found = outputs.with_rows(place, row.slice(1))
            assert (found.lost, found.duplicate, found.wrong) == (1, 0, 0), place
        elif number % 3 == 1:
            name = values[number // 3 % len(values)]
            found = outputs.with_rows(place, outputs.altered(place, name, random))
            assert (found.lost, found.duplicate, found.wrong) == (0, 0, 1), (place, name)
        else:
            found = outputs.with_rows(place, outputs.rows.take([place, place]))
            assert (found.lost, found.duplicate, found.wrong) == (0, 1, 0), place
    for name in identity:
        found = outputs.with_rows(total // 2, outputs.altered(total // 2, name, random))
        assert found.lost == 1, name
        assert found.wrong + found.duplicate > 0, name
    _clean(outputs, total)
