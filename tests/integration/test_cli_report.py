"""``streamgauge report``: the page of a run, written when the run ends, and again from its folder alone."""

import hashlib
import re
import shutil
import signal
from pathlib import Path

import pytest
from cli_session import EXPERIMENT, MEASURE, start, streamgauge, write

ROOT = Path(__file__).resolve().parents[2]
VENDOR = ROOT / "src/streamgauge/report/render/html/vendor"


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """A results folder with one finished run in it."""
    file = tmp_path / "small.yaml"
    file.write_text(EXPERIMENT, encoding="utf-8")
    assert streamgauge("run", file, "--out", tmp_path / "runs").code == 0
    return tmp_path / "runs"


def report_in(runs: Path) -> Path:
    [page] = runs.glob("*/report.html")
    return page


def test_a_run_ends_with_its_report_and_states_where(tmp_path: Path) -> None:
    file = tmp_path / "small.yaml"
    file.write_text(EXPERIMENT, encoding="utf-8")
    said = streamgauge("run", file, "--out", tmp_path / "runs")
    page = report_in(tmp_path / "runs")
    assert said.err.splitlines()[-1] == f"report: {page}"
    text = page.read_text(encoding="utf-8")
    finding = said.out.splitlines()[0]
    assert re.search(r"Sustainable throughput: .* passed, .* failed .*\.", finding)
    assert finding in text


def test_with_json_the_report_is_written_and_stdout_stays_one_document(tmp_path: Path) -> None:
    file = tmp_path / "small.yaml"
    file.write_text(MEASURE, encoding="utf-8")
    said = streamgauge("run", file, "--out", tmp_path / "runs", "--json")
    assert said.document["exit_code"] == said.code == 0
    assert report_in(tmp_path / "runs").stat().st_size > 10_000


def test_a_run_that_its_budget_ended_has_a_report_that_reports_it(tmp_path: Path) -> None:
    file = tmp_path / "small.yaml"
    file.write_text(EXPERIMENT, encoding="utf-8")
    streamgauge("run", file, "--out", tmp_path / "runs", "--budget", "40s")
    assert "Ended early: the budget" in report_in(tmp_path / "runs").read_text(encoding="utf-8")


def test_the_settings_of_an_engine_are_as_they_are_written_in_a_file(tmp_path: Path) -> None:
    file = write(tmp_path, MEASURE.replace("noise: 2%", "noise: 2%, warmup: 10s, batch_interval: 500ms"))
    assert streamgauge("run", file, "--out", tmp_path / "runs").code == 0
    page = report_in(tmp_path / "runs").read_text(encoding="utf-8")
    table = page[page.index("Effective settings of ") :]
    cells = re.findall(r"<td[^>]*>([^<]*)</td>", table[: table.index("</table>")])
    shown = dict(zip(cells[::2], cells[1::2], strict=True))
    assert shown["options.warmup"] == "10s"
    assert shown["options.batch_interval"] == "500ms"
    assert shown["options.capacity"] == "100k/s"
    assert not [cell for cell in cells if re.fullmatch(r"[0-9.]{9,}", cell)], shown


def test_an_interrupted_run_has_a_report_of_what_is_finished(tmp_path: Path) -> None:
    process = start("run", write(tmp_path), "--out", tmp_path / "runs", "--pace", "0.02")
    assert process.stderr is not None
    process.stderr.readline()
    assert process.stderr.readline().startswith("[1/~")
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=30)
    assert process.returncode == 130
    page = report_in(tmp_path / "runs")
    assert f"report: {page}" in err
    assert "Ended early: it was interrupted." in page.read_text(encoding="utf-8")


def test_a_system_that_fails_at_the_lowest_load_has_a_report(tmp_path: Path) -> None:
    file = write(tmp_path, EXPERIMENT.replace("noise: 2%", "crash_at: 1k/s"))
    said = streamgauge("run", file, "--out", tmp_path / "runs")
    assert said.code == 4
    page = report_in(tmp_path / "runs").read_text(encoding="utf-8")
    assert ">FAILED<" in page
    assert said.out.splitlines()[0].split(":")[0] in page


def test_the_folder_is_enough_to_write_the_same_page_again(runs: Path, tmp_path: Path) -> None:
    page = report_in(runs)
    first = page.read_bytes()
    elsewhere = tmp_path / "elsewhere" / "runs"
    shutil.copytree(page.parent, elsewhere / page.parent.name)
    (elsewhere / page.parent.name / "report.html").unlink()
    said = streamgauge("report", "--out", elsewhere)
    assert said.code == 0
    assert said.out.replace("\n", "") == str(elsewhere / page.parent.name / "report.html")
    assert report_in(elsewhere).read_bytes() == first


@pytest.mark.parametrize("format_", sorted((ROOT / "tests/golden/store").glob("format-*")), ids=lambda path: path.name)
def test_a_run_of_every_format_ever_written_has_a_page(format_: Path, tmp_path: Path) -> None:
    shutil.copytree(format_, tmp_path / "runs")
    said = streamgauge("report", "--out", tmp_path / "runs")
    assert said.code == 0
    page = report_in(tmp_path / "runs").read_text(encoding="utf-8")
    assert "Time spent" in page
    assert "Over time" in page


def test_the_page_is_written_to_the_requested_place(runs: Path, tmp_path: Path) -> None:
    wanted = tmp_path / "sent.html"
    document = streamgauge("report", "@last", "--out", runs, "--html", wanted, "--json").document
    assert document["path"] == str(wanted)
    assert document["bytes"] == wanted.stat().st_size
    assert wanted.read_bytes() == report_in(runs).read_bytes()


def test_a_place_that_cannot_be_written_is_reported(runs: Path, tmp_path: Path) -> None:
    said = streamgauge("report", "--out", runs, "--html", tmp_path / "none" / "x.html")
    assert said.code == 2
    assert "cannot be written: No such file or directory. Use a file in an existing folder." in said.err


def test_a_report_that_cannot_be_kept_takes_nothing_from_the_run(runs: Path) -> None:
    page = report_in(runs)
    page.unlink()
    page.mkdir()  # nothing can be put in its place
    said = streamgauge("resume", page.parent.name, "--out", runs)
    assert said.code == 0
    assert "No report was written: cannot write" in said.err
    assert "--html FILE` writes it elsewhere" in said.err
    assert "Sustainable throughput: " in said.out


def test_a_damaged_recording_is_named_not_drawn(runs: Path) -> None:
    seconds = next(runs.glob("*/trials/001/seconds.parquet"))
    seconds.write_bytes(seconds.read_bytes()[:-1])
    said = streamgauge("report", "--out", runs)
    assert said.code == 2
    assert f"{seconds} is damaged" in said.err


def test_show_names_the_report_only_where_there_is_one(runs: Path) -> None:
    page = report_in(runs)
    assert f"report: {page}" in streamgauge("show", "--out", runs).err
    page.unlink()
    assert "report:" not in streamgauge("show", "--out", runs).err


def test_the_vendored_files_are_those_that_the_decision_names() -> None:
    text = (ROOT / "docs/adr/0012-the-report.md").read_text(encoding="utf-8")
    named = dict(re.findall(r"\| `([\w.]+)` \| `([0-9a-f]{64})` \|", text))
    assert named == {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in VENDOR.iterdir()}


def test_a_description_that_turns_the_text_around_is_isolated(tmp_path: Path) -> None:
    text = EXPERIMENT + 'description: "safe \u202eetirw"\n'
    assert streamgauge("run", write(tmp_path, text), "--out", tmp_path / "runs").code == 0
    (report,) = (tmp_path / "runs").glob("*/report.html")
    page = report.read_text(encoding="utf-8")
    assert "<bdi>safe \u202eetirw</bdi>" in page
    assert page.count("\u202e") == page.count("<bdi>safe \u202eetirw</bdi>"), "nowhere else"
    assert r"safe \u202eetirw" in page, "the experiment file shows it as an escape"
    for words in (["show"], ["list"], ["show", "--json"]):
        assert "\u202e" not in streamgauge(*words, "--out", tmp_path / "runs").out
