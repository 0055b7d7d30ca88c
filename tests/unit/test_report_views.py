"""What a report says of a run, on the terminal and in its document. Made from values alone."""

import io
import json
from dataclasses import replace

import pytest
from report_samples import FINDING, REPORT, judged
from rich.console import Console

from streamgauge.model.measurement import VerdictKind
from streamgauge.report.render.json import encode, run_document
from streamgauge.report.render.terminal import render_run
from streamgauge.report.view.findings import view_run
from streamgauge.report.view.run_report import RunReport

SHOWN = """\
Sustainable throughput: 100k events/s passed, 104k events/s failed (4.0 %
apart).
  passed at 100k/s (trial 2)
  failed at 104k/s (trial 3)
  4 trials, 2 min 20 s of trial time
  note: 102k/s could not be decided (trial 4)
  circumstances:
    - one start of the system under test
    - the passing load was measured once, the failing load once
    - the lag may grow by 1 % of the load, judged over 30 s at the passing load
    and 30 s at the failing load
    - no trial was INVALID or UNDECIDED
    - other processes and the hypervisor used up to 0 % of the CPU of the system
    under test at the two bounds (steal time up to 0 %)
    - every trial became steady after its warm-up
  what limited it (trial 3, 104k/s):
    - its core was 97 % busy
    - Python workers took 31 % of the core

latency      at avg min max p50   p90 p95 p99 window results
event-time 100% 5ms 1ms   – 4ms 1.23s   –   –             10
event-time  90% 5ms 1ms   – 4ms 1.23s   –   –             10
  –: too few outputs for this percentile (p90 needs 10, p95 20, p99 100);
  increase trial.duration or use shorter windows.

trial purpose    load time verdict    role         reason
    1 estimate   1M/s  35s OVERLOADED              the queue grows by 900k/s
                                                   [of 1M/s]
    2 confirm  100k/s  35s SUSTAINED  passed bound the queue grows by 0/s
    3 confirm  104k/s  35s OVERLOADED failed bound the queue grows by 4k/s
    4 measure   90k/s  35s SUSTAINED  90 % of the  the queue grows by 0/s
                                      result

Outputs were checked: 400 rows of 4 trials were compared with the reference
result: 0 lost, 0 duplicate, 0 wrong, 0 late.
run 20260101-120000-x-ab
"""


def shown(report: RunReport, width: int = 80, colours: bool = False) -> str:
    file = io.StringIO()
    Console(file=file, width=width, force_terminal=colours, highlight=False).print(render_run(view_run(report)))
    return "".join(f"{line.rstrip()}\n" for line in file.getvalue().splitlines())


def test_the_result_comes_first_then_its_bounds_then_every_trial() -> None:
    assert shown(REPORT) == SHOWN


def test_in_40_columns_latencies_and_trials_are_paragraphs() -> None:
    text = " ".join(shown(REPORT, 40).split())
    assert "event-time latency at 100%: avg 5ms, min 1ms, max –, p50 4ms, p90 1.23s" in text
    assert "trial 2: confirm at 100k/s, 35 s, passed bound SUSTAINED the queue grows by 0/s" in text


@pytest.mark.parametrize("width", [40, 60, 80, 200])
def test_no_line_is_wider_than_the_terminal_and_nothing_is_lost(width: int) -> None:
    long = replace(REPORT, trials=(judged(1, 1e6, VerdictKind.OVERLOADED, reason="word " * 60 + "end"),))
    lines = shown(long, width).splitlines()
    assert max(map(len, lines)) <= width
    assert any(line.endswith("end") for line in lines)


def test_several_engines_are_distinguished() -> None:
    both = replace(REPORT, findings=(FINDING, replace(FINDING, engine="other")))
    lines = shown(both).splitlines()
    assert "simulated" in lines
    assert "other" in lines


def test_an_early_end_is_reported() -> None:
    assert "Ended early: the budget of 1m is spent." in shown(replace(REPORT, ended="the budget of 1m is spent"))


def test_the_document_is_strict_json_and_names_what_proves_each_end() -> None:
    document = json.loads(encode(run_document(REPORT)), parse_constant=pytest.fail)
    assert (document["format"], document["exit_code"], document["run"]) == (1, 0, REPORT.run)
    finding = document["findings"][0]
    assert finding["holds"] == {"value": 100_000.0, "unit": "events/s", "trials": [2]}
    assert finding["fails"] == {"value": 104_000.0, "unit": "events/s", "trials": [3]}
    assert finding["precision"] == pytest.approx(0.04)
    assert (finding["trials"], finding["seconds"]) == (4, 140)
    assert finding["also"] == [{"share": 0.9, "trial": 4}]
    assert (finding["why"]["trial"], finding["why"]["end"]) == (3, "fails")
    assert [limit["what"] for limit in finding["why"]["limits"]] == ["core", "python"]
    assert [t["verdict"] for t in document["trials"]] == ["OVERLOADED", "SUSTAINED", "OVERLOADED", "SUSTAINED"]
    assert document["trials"][0]["measured"]["latencies"]["event-time"]["most"] is None


def test_a_fixed_measurement_has_only_the_trials_of_its_value() -> None:
    points = tuple(
        replace(FINDING, line=f"load={value:g}", status="measured", holds=None, fails=None) for value in (1e5, 1e6)
    )
    rows = [[row.number for row in f.rows] for f in view_run(replace(REPORT, findings=points)).findings]
    assert rows == [[2], [1]]
