"""``--json``: exactly one versioned document on stdout, for every verb."""

from pathlib import Path

import pytest
from cli_session import EXPERIMENT, streamgauge, write


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with one finished run."""
    made = tmp_path_factory.mktemp("json")
    assert streamgauge("run", write(made), "--out", made / "runs", "--json").code == 0
    return made


@pytest.mark.parametrize(
    "words",
    [
        *("plan {file}", "resume @last {out}", "list {out}", "show {out}", "init {new}", "schema", "doctor {out}"),
        *("clean {out}", "clean @last {out}", "engines", "workloads", "show absent {out}", "plan nothing-like-it"),
    ],
)
def test_every_verb_writes_one_document(folder: Path, words: str, tmp_path: Path) -> None:
    places = {"file": folder / "experiment.yaml", "out": f"--out {folder / 'runs'}", "new": tmp_path / "new.yaml"}
    said = streamgauge(*words.format(**places).split(), "--json")
    assert said.document["format"] == 1
    assert said.document["exit_code"] == said.code


def test_the_document_of_a_run_names_the_trials_behind_it(tmp_path: Path) -> None:
    document = streamgauge("run", write(tmp_path), "--out", tmp_path / "runs", "--json").document
    finding, trials = document["findings"][0], {t["number"]: t for t in document["trials"]}
    assert (finding["engine"], finding["dimension"], finding["unit"]) == ("simulated", "load", "events/s")
    for end, verdict in (("holds", "SUSTAINED"), ("fails", "OVERLOADED")):
        assert finding[end]["unit"] == "events/s"
        for number in finding[end]["trials"]:
            assert trials[number]["value"] == trials[number]["load"] == finding[end]["value"]
            assert trials[number]["verdict"] == verdict
            assert trials[number]["reasons"]
    assert finding["precision"] <= 0.05
    assert finding["trials"] == len(trials)
    assert finding["seconds"] == document["seconds"] == sum(t["seconds"] for t in trials.values())


def test_show_states_the_same_as_run(tmp_path: Path) -> None:
    ran = streamgauge("run", write(tmp_path), "--out", tmp_path / "runs", "--json").document
    again = streamgauge("show", "@last", "--out", tmp_path / "runs", "--json").document
    assert {key: again[key] for key in ran} == ran


def test_two_runs_with_one_seed_find_the_same(tmp_path: Path) -> None:
    first, second = (streamgauge("run", write(tmp_path), "--out", tmp_path / "runs", "--json") for _ in range(2))
    assert first.document["findings"] == second.document["findings"]
    other = streamgauge(
        "run", write(tmp_path, EXPERIMENT.replace("seed: 3", "seed: 4")), "--out", tmp_path / "runs", "--json"
    )
    assert {t["seed"] for t in other.document["trials"]}.isdisjoint({t["seed"] for t in first.document["trials"]})


def test_a_budget_ends_with_the_bounds_so_far(tmp_path: Path) -> None:
    said = streamgauge("run", write(tmp_path), "--out", tmp_path / "runs", "--json", "--budget", "50s")
    document = said.document
    assert document["findings"][0]["status"] == "unfinished"
    assert (said.code, document["exit_code"]) == (6, 6)
    assert "budget of 50 s" in document["ended"]
    assert 0 < document["seconds"] <= 50
    resumed = streamgauge("resume", "@last", "--out", tmp_path / "runs", "--json").document
    whole = streamgauge("run", write(tmp_path), "--out", tmp_path / "runs", "--json").document
    assert resumed["findings"] == whole["findings"]


def test_a_budget_that_ends_a_search_with_both_bounds_confirmed_is_an_answer(tmp_path: Path) -> None:
    """Every load of the list at full length: the budget has no time for the fourth, which is above the bounds."""
    listed = EXPERIMENT.replace("between: [10k/s, 1M/s]", "values: [80k/s, 90k/s, 120k/s, 150k/s]")
    experiment = write(tmp_path, listed.replace("precision: 5%", "strategy: full"))
    said = streamgauge("run", experiment, "--out", tmp_path / "runs", "--json", "--budget", "2m")
    (finding,) = said.document["findings"]
    assert (finding["holds"]["value"], finding["fails"]["value"]) == (90_000, 120_000)
    assert (said.code, said.document["exit_code"], finding["status"]) == (0, 0, "bracketed")
    assert "The search ended early: the budget of 2 min is used up" in finding["notes"]
    assert len(said.document["trials"]) == 3
    resumed = streamgauge("resume", "@last", "--out", tmp_path / "runs", "--json")
    assert (resumed.code, len(resumed.document["trials"])) == (0, 4)
    assert not any("ended early" in note for note in resumed.document["findings"][0]["notes"])
