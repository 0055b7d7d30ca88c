"""A few hundred random experiments on the simulated engine; `make soak` runs thousands."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cli_session import streamgauge, write
from random_experiments import draw
from random_runs import EXPECTED, play, summary

from streamgauge.engines.simulated import simulated
from streamgauge.parse.schema import schema

SEEDS = 200
PARTS = 4
DRAWN = 3_000
"""So many seeds must have every key; `make soak` plays 5,000."""
NOT_DRAWN = {".transport[kafka]": "the simulated engine reads from the queue only"}
"""Parts of the schema that no random experiment has, each with its reason."""


@pytest.mark.parametrize("part", range(PARTS))
def test_no_random_experiment_crashes_or_contradicts_its_expected_result_or_its_plan(part: int) -> None:
    """Exit codes are those of the reference, noiseless answers are right, and no bound of a plan is broken."""
    played = [play(seed, budget="2m") for seed in range(part, SEEDS, PARTS)]
    print(summary(played))
    assert not [p.report for p in played if p.report]
    assert sum(p.code == 2 for p in played) < 0.25 * len(played), "most of them must run"
    assert sum(p.trials for p in played) > 2 * len(played)


def test_the_random_experiments_are_of_every_kind() -> None:
    text = "\n".join(draw(seed).text for seed in range(SEEDS))
    for kind in EXPECTED:
        assert kind in text, kind
    apply = {key for key in keys_of_schema(schema({"simulated": simulated})) if not key.startswith((*NOT_DRAWN,))}
    drawn = {key for seed in range(DRAWN) for key in keys_of_document(draw(seed).document)}
    assert sorted(apply - drawn) == [], "keys that are never drawn"
    assert sorted(drawn - apply) == [], "keys that the schema does not have"


def keys_of_schema(part: dict[str, Any], at: str = "") -> Iterator[str]:
    """Every key that a file may have, such as ``.load[spikes].over``; with the alternatives of a key."""
    inner = part.get("items")
    for case in (*part.get("anyOf", ()), *([inner] if isinstance(inner, dict) else [])):
        yield from keys_of_schema(case, at)
    properties = part.get("properties", {})
    kind = next((held["const"] for held in properties.values() if "const" in held), None)
    place = f"{at}[{kind}]" if kind else at
    for name, held in properties.items():
        yield f"{place}.{name}"
        yield from keys_of_schema(held, f"{place}.{name}")


def keys_of_document(part: object, at: str = "") -> Iterator[str]:
    """Every key that a file has, in the same form."""
    if isinstance(part, list):
        for item in part:
            yield from keys_of_document(item, at)
    if not isinstance(part, dict):
        return
    kind = {".load": part.get("profile", "constant"), ".find": part.get("extreme")}.get(at, part.get("name"))
    place = f"{at}[{kind}]" if at and kind else at
    for name, held in part.items():
        yield f"{place}.{name}"
        yield from keys_of_document(held, f"{place}.{name}")


def test_a_batch_interval_that_rounding_stopped_comes_to_its_end(tmp_path: Path) -> None:
    """A multiple of this interval in seconds was rounded down to the trigger that had just fired, for ever."""
    engine = "{name: simulated, capacity: 180M/s, batch_interval: 3604990ns}"
    text = f"name: rounding\nworkload: ingest\nengine: {engine}\nfind: nothing\nload: {{rate: 1k/s}}\n"
    assert streamgauge("run", write(tmp_path, text), "--out", tmp_path / "runs").code == 0
