"""A run over a local broker as a user types it: with nothing but an experiment, in the folder of its file."""

from pathlib import Path

from kafka_broker import needs_kafka
from test_kafka_cli import MEASURE, typed

pytestmark = needs_kafka


def test_a_run_over_a_local_broker_needs_no_more_than_its_experiment(tmp_path: Path) -> None:
    said = typed(tmp_path, MEASURE)
    assert said.code in (0, 3, 6), said.err  # 3, 6: the host disturbed its trials
    assert (tmp_path / "runs" / said.document["run"]).is_dir()
    accounts = [trial["measured"]["account"] for trial in said.document["trials"]]
    assert accounts, said.err
    assert all(account["observed"] > 0 for account in accounts)
    assert {(a["lost"], a["duplicate"], a["wrong"]) for a in accounts} == {(0, 0, 0)}
