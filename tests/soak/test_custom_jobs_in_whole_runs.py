"""A user's own function with its reference through a whole run: its own watermark, and update mode over Kafka."""

import re
from pathlib import Path

import pytest
from kafka_broker import needs_kafka
from real_trial import PLACEMENT
from test_guide_own_function import guide_project, run_command_in

from streamgauge.run.monitor.monitor import available

pytestmark = [
    pytest.mark.soak,
    pytest.mark.skipif(not available() or not PLACEMENT.sut, reason="a trial needs /proc and two cores"),
]

MEASURE = """find: nothing
load: {rate: 100k/s}
objective: [lag-trend <= 1%, lost == 0]
trial: {duration: 30s, warmup: 5s}
"""


def is_right(folder: Path, engine: str) -> None:
    """One plain measurement of the guide's function: rows were compared, and none was lost, duplicate or wrong."""
    text = re.sub(r"^engine: .*$", "", (folder / "my.yaml").read_text(encoding="utf-8"), flags=re.MULTILINE)
    workload = re.search(r"^workload:.*$", text, re.MULTILINE)
    assert workload is not None
    (folder / "my.yaml").write_text(f"name: own\n{workload[0]}\n{engine}\n{MEASURE}", encoding="utf-8")
    said = run_command_in(folder, "run", "my.yaml", "--json")
    trials = said.document["trials"]
    assert trials, said.err
    for trial in trials:
        account = trial["measured"]["account"]
        assert (account["lost"], account["duplicate"], account["wrong"]) == (0, 0, 0), trial
        assert trial["verdict"] != "FAILED", trial
        assert (account["checked"], account["expected"] > account["not_reached"]) == (True, True), trial


def test_a_function_with_its_own_watermark_loses_nothing_in_a_whole_run(tmp_path: Path) -> None:
    guide_project(tmp_path)
    job = tmp_path / "my_job.py"
    own = job.read_text(encoding="utf-8").replace(
        'withWatermark("due", "0 seconds")', 'withWatermark("due", "5 seconds")'
    )
    assert '"5 seconds"' in own
    job.write_text(own, encoding="utf-8")
    is_right(tmp_path, "engine: {name: spark, pipeline: my_job.py:purchases_per_pack, reference: my_job.py:expected}")


@needs_kafka
def test_a_function_in_update_mode_over_kafka_is_judged_by_its_last_rows(tmp_path: Path) -> None:
    guide_project(tmp_path)
    names = "pipeline: my_job.py:purchases_per_pack, reference: my_job.py:expected, keys: [gem_pack_id]"
    is_right(tmp_path, f"engine: {{name: spark, output_mode: update, {names}}}\ntransport: kafka")
