"""After a trial: what came out, against the reference answer."""

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from streamgauge.judge.account import account, closed_until
from streamgauge.model.profile import Plan
from streamgauge.model.seconds import Account
from streamgauge.model.trial import Trial
from streamgauge.store.journal import read_parts
from streamgauge.workloads.base import Workload

Ints = npt.NDArray[np.int64]
MICRO = 1000


def expected_rows(workload: Workload, trial: Trial, plan: Plan, origin: int, acknowledged: int) -> int:
    """How many rows must be out once so many events are acknowledged."""
    answer = _answer(workload, trial, plan, origin, acknowledged)
    closed = closed_until(plan, origin, acknowledged, int(trial.params.get("watermark", 0)))
    return int(np.count_nonzero(answer["window_start"] + trial.params["window"] // MICRO <= closed)) if answer else 0


def check_outputs(
    workload: Workload, trial: Trial, plan: Plan, *, origin: int, acknowledged: int, folder: Path
) -> Account:
    """Count what is lost, double, wrong or late. Without a reference answer nothing is checked, and that is said."""
    observed = _observed(folder)
    answer = _answer(workload, trial, plan, origin, acknowledged)
    if answer is None:
        return Account(observed=len(next(iter(observed.values()), ())))
    if not observed:
        observed = {name: np.zeros(0, np.int64) for name in answer}
    watermark = int(trial.params.get("watermark", 0))
    return account(
        answer,
        observed,
        window=trial.params["window"] // MICRO,
        closed=closed_until(plan, origin, acknowledged, watermark),
        watermark=watermark // MICRO,
    )


def _answer(workload: Workload, trial: Trial, plan: Plan, origin: int, acknowledged: int) -> Any:  # noqa: ANN401
    if workload.reference is None:
        return None
    return workload.reference(trial.params, plan, trial.seed, origin).until(acknowledged)


def _observed(folder: Path) -> dict[str, Ints]:
    """The outputs of all queries in the order of their arrival, as whole numbers."""
    tables = [t for query in sorted((folder / "outputs").glob("*")) if (t := read_parts(query)) is not None]
    if not tables:
        return {}
    table = pa.concat_tables(tables)
    columns = {}
    for name in table.schema.names:
        column = table.column(name)
        if pa.types.is_timestamp(column.type):
            column = column.cast(pa.timestamp("us", column.type.tz))
        if pa.types.is_timestamp(column.type) or pa.types.is_integer(column.type):
            columns["emitted" if name == "emitted_us" else name] = column.cast(pa.int64()).to_numpy()
    return columns
