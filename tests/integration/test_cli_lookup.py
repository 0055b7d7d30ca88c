"""What a user looks up: help, experiments, engines, workloads, runs, and what the shell completes."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from cli_session import EXPERIMENT, streamgauge, write

from streamgauge.cli.main import app
from streamgauge.model.units import SECOND
from streamgauge.parse import shipped_names
from streamgauge.store.documents import FORMAT, encode

GOLDEN = Path(__file__).parents[1] / "golden" / "store"
VERBS = [command.name for command in app.registered_commands if command.name]


@pytest.mark.parametrize("verb", ["", *VERBS])
def test_h_is_help_everywhere(verb: str) -> None:
    words = [verb] if verb else []
    short, long = streamgauge(*words, "-h"), streamgauge(*words, "--help")
    assert short.code == 0, short.err
    assert short.out == long.out
    assert "-h, --help" in short.out


def test_experiments_lists_every_built_in_experiment_on_one_line() -> None:
    lines = streamgauge("experiments").out.splitlines()
    assert [line.split()[0] for line in lines] == [*shipped_names()]
    assert all(len(line.split()) > 4 for line in lines), "every one of them says what it is for"
    listed = streamgauge("experiments", "--json").document["experiments"]
    assert [one["name"] for one in listed] == [*shipped_names()]
    assert [f"{one['name']} {one['description']}".split() for one in listed] == [line.split() for line in lines]


def test_experiments_are_named_where_they_are_looked_for() -> None:
    assert "streamgauge experiments" in streamgauge("--help").out
    assert "streamgauge experiments" in " ".join(streamgauge("run", "--help").out.split())
    said = streamgauge("run", "quickstrat").err
    assert "Did you mean 'quickstart'?" in said
    assert "streamgauge experiments" in said


def test_one_engine_is_shown_with_its_options_defaults_and_meanings() -> None:
    said = streamgauge("engines", "spark")
    assert said.code == 0, said.err
    words = " ".join(said.out.split())
    assert "memory 2GiB heap of the JVM" in words
    assert "trigger 1s" in words
    assert "(micro-batch, real-time)" in words
    assert "batch_cost" not in words, "an option of another engine"
    (engine,) = streamgauge("engines", "spark", "--json").document["engines"]
    options = {option["name"]: option for option in engine["options"]}
    assert options["memory"]["default"] == "2GiB"
    assert options["state_store"]["values"] == ["memory", "rocksdb"]
    assert options["stamp"]["default"] is True
    assert engine["transports"] == ["kafka", "queue"]


def test_one_workload_is_shown_with_its_dimensions() -> None:
    said = streamgauge("workloads", "windowed-aggregation")
    assert said.code == 0, said.err
    words = " ".join(said.out.split())
    assert "slide 4s time from one window to the next" in words
    assert "window, slide, gem_packs, users" in words
    assert "frequency" not in words


@pytest.mark.parametrize(("verb", "near"), [("engines sprak", "spark"), ("workloads ingst", "ingest")])
def test_an_unknown_name_is_refused_with_the_nearest(verb: str, near: str) -> None:
    said = streamgauge(*verb.split())
    assert said.code == 2
    assert f"Did you mean {near}?" in said.err


def test_no_size_is_printed_as_a_bare_number_of_bytes() -> None:
    for engine in streamgauge("engines", "--json").document["engines"]:
        numbers = [o["default"] for o in engine["options"] if isinstance(o["default"], int | float)]
        assert all(number < 1_000_000 for number in numbers), engine["name"]


def test_transports_formats_and_parts_are_those_of_the_registries() -> None:
    words = " ".join(streamgauge("calibrate", "--help").out.split())
    assert "queue = a queue in the memory of the load driver; kafka = Kafka topics between" in words
    assert "--format json|binary|avro" in words
    help_of_setup = " ".join(streamgauge("setup", "--help").out.split())
    assert "The engine (simulated, reference, spark) or the transport (queue, kafka)." in help_of_setup
    assert streamgauge("setup", "simulated").out.strip() == "simulated: needs nothing else"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("setup sprak", "'sprak' is not an engine or a transport. Known: simulated, reference, spark, queue, kafka."),
        ("calibrate --transport kafak", "'kafak' is not one of 'queue', 'kafka'."),
        ("calibrate --transport kafka --format xml", "'xml' is not one of 'json', 'binary', 'avro'."),
        ("calibrate --format json", "Transport queue has no record formats. Add --transport kafka, or omit --format"),
        ("calibrate --cluster reference", "reference has no transport.cluster. Use --transport queue instead of"),
        ("clean --cluster reference", "reference has no transport.cluster, so there is no external cluster to clean."),
    ],
)
def test_a_transport_or_part_that_does_not_fit_is_refused(words: str, message: str, tmp_path: Path) -> None:
    said = streamgauge(*words.split(), *([] if words.startswith("setup") else ["--out", str(tmp_path / "runs")]))
    assert said.code == 2
    assert message in " ".join(said.err.split())


def test_list_names_the_engine_of_every_result(tmp_path: Path) -> None:
    two = "engines: [{name: simulated, label: slow, capacity: 50k/s}, {name: simulated, label: fast, capacity: 200k/s}]"
    text = EXPERIMENT.replace("engine: {name: simulated, capacity: 100k/s, noise: 2%}", two)
    assert streamgauge("run", write(tmp_path, text), "--out", tmp_path / "runs").code == 0
    for _ in range(2):  # from the run, and from the index that the first list has written
        said = streamgauge("list", "--out", tmp_path / "runs")
        words = " ".join(said.out.split())
        assert words.index("slow: ") < words.index("fast: ")
        (row,) = streamgauge("list", "--out", tmp_path / "runs", "--json").document["runs"]
        assert row["titles"] == ["slow", "fast"]
        assert len(row["found"]) == 2


def test_list_of_one_engine_has_no_label(tmp_path: Path) -> None:
    assert streamgauge("run", write(tmp_path), "--out", tmp_path / "runs").code == 0
    assert "simulated:" not in streamgauge("list", "--out", tmp_path / "runs").out
    assert streamgauge("list", "--out", tmp_path / "runs", "--json").document["runs"][0]["titles"] == [""]


def completed(folder: Path, line: str) -> list[str]:
    """What bash offers after this line, with the script that ``streamgauge completion bash`` prints."""
    script = """
        source <("$PYTHON" -m streamgauge completion bash)
        streamgauge() { "$PYTHON" -m streamgauge "$@"; }
        export -f streamgauge
        IFS=' ' read -ra COMP_WORDS <<< "$LINE"
        [[ "$LINE" == *' ' ]] && COMP_WORDS+=('')
        COMP_CWORD=$(( ${#COMP_WORDS[@]} - 1 ))
        _streamgauge_completion "$COMMAND"
        printf '%s\\n' "${COMPREPLY[@]}"
    """
    program = folder / "streamgauge"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m streamgauge "$@"\n', encoding="utf-8")
    program.chmod(0o755)
    env = {**os.environ, "PYTHON": sys.executable, "LINE": line, "COMMAND": str(program)}
    done = subprocess.run(
        ["/bin/bash", "-c", script], env=env, cwd=folder, capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stderr == ""
    return done.stdout.split()


def test_bash_completes_commands_experiments_engines_and_runs(tmp_path: Path) -> None:
    assert streamgauge("run", write(tmp_path), "--out", tmp_path / "runs").code == 0
    (run,) = (path.parent.name for path in tmp_path.glob("runs/*/run.json"))
    assert completed(tmp_path, "streamgauge exp") == ["experiments"]
    assert completed(tmp_path, "streamgauge run q") == ["quickstart", "quickstart-kafka"]
    assert completed(tmp_path, "streamgauge run exp") == ["experiment.yaml"]
    assert completed(tmp_path, "streamgauge engines s") == ["simulated", "spark"]
    assert completed(tmp_path, f"streamgauge show {run[:8]}") == [run]
    assert "--budget" in completed(tmp_path, "streamgauge run --")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_every_shell_has_its_script(shell: str) -> None:
    said = streamgauge("completion", shell)
    assert said.code == 0
    assert "_STREAMGAUGE_COMPLETE" in said.out
    assert streamgauge("completion", shell, "--json").document["script"] == said.out


@pytest.mark.parametrize(
    "checker", [("bash", "-n"), ("zsh", "-n"), ("fish", "--no-execute")], ids=lambda checker: checker[0]
)
def test_every_shell_can_read_its_script(checker: tuple[str, str], tmp_path: Path) -> None:
    shell, option = checker
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"{shell} is not installed, and only {shell} can check its script")
    script = tmp_path / "completion"
    script.write_text(streamgauge("completion", shell).out, encoding="utf-8")
    done = subprocess.run([program, option, script], capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.fixture
def first_format(tmp_path: Path) -> Path:
    """A results folder with a finished run of recording format 1.

    The sample says that its trials took two minutes, and they have ten seconds: so it would count as continued.
    """
    shutil.copytree(GOLDEN / "format-1", tmp_path / "runs")
    [path] = (tmp_path / "runs").glob("*/findings.json")
    content = json.loads(path.read_bytes())["content"] | {"spent_ns": 10 * SECOND}
    path.write_bytes(encode("findings", content).replace(f'"format": {FORMAT}'.encode(), b'"format": 1'))
    return tmp_path / "runs"


def test_show_prints_a_run_of_format_1_as_it_was_judged(first_format: Path) -> None:
    said = streamgauge("show", "@last", "--out", first_format)
    assert said.code == 0, said.err
    assert "A holds 700k/s and fails at 730k/s" in said.out
    document = streamgauge("show", "@last", "--out", first_format, "--json").document
    assert [finding["sentence"] for finding in document["findings"]] == ["a holds 700k/s and fails at 730k/s"]
    assert document["run_exit_code"] == 0
    found = [(trial["verdict"], trial["reasons"]) for trial in document["trials"]]
    assert found == [("SUSTAINED", ["the queue grows by 1.5 events/s, within 1 % of the load"])] * 2


def test_recomputing_a_run_of_format_1_is_refused_before_spark_is_started(first_format: Path) -> None:
    said = streamgauge("show", "@last", "--out", first_format, "--recompute")
    assert said.code == 2
    message = " ".join(said.err.split())
    assert "was recorded in format 1, which lacks data that the current rules need: " in message
    assert "`streamgauge show 20261115-235312-quick-start-ab12` shows its stored verdict" in message
    assert "Starting Spark" not in message


def test_resuming_an_unfinished_run_of_format_1_is_refused_because_two_rules_would_judge_its_trials(
    first_format: Path,
) -> None:
    [findings] = first_format.glob("*/findings.json")
    findings.unlink()
    said = streamgauge("resume", "@last", "--out", first_format)
    assert said.code == 2, said.err
    message = " ".join(said.err.split())
    assert "was recorded in format 1, which lacks data that the current rules need: " in message
    assert "`streamgauge show 20261115-235312-quick-start-ab12` shows its stored verdict" in message
    assert not findings.exists(), "nothing of the run was changed"
