"""What the documentation says can be done: its experiments parse, its commands and files exist."""

import re
from pathlib import Path

import pytest
from house_source import ROOT
from pydantic import BaseModel

from streamgauge.cli.main import app
from streamgauge.engines.registry import engines
from streamgauge.model.seconds import COLUMNS
from streamgauge.parse import read
from streamgauge.parse.objectives import METRICS, STATISTICS
from streamgauge.parse.read import KEYS
from streamgauge.parse.sections import PROFILES, SearchSection, TrialSection
from streamgauge.workloads.registry import workloads

PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
FENCE = re.compile(r"^```([^\n]*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"(?:^|[`\s])streamgauge ([a-z]+)\b")
LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def code(text: str) -> str:
    """Only what is written as code: commands in prose are marked so."""
    fenced = "\n".join(body for info, body in FENCE.findall(text) if not info.startswith(("yaml", "python", "toml")))
    return "\n".join([fenced, *re.findall(r"`[^`\n]+`", FENCE.sub("", text))])


EXPERIMENTS = [
    pytest.param(body, id=f"{name(path)}-{number}")
    for path in PAGES
    for number, (info, body) in enumerate(FENCE.findall(path.read_text(encoding="utf-8")))
    if info == "yaml experiment"
]


@pytest.mark.parametrize("text", EXPERIMENTS)
def test_an_experiment_in_the_documentation_can_be_read(text: str) -> None:
    assert read(text).name


def test_the_documentation_has_experiments() -> None:
    assert len(EXPERIMENTS) >= 5


@pytest.mark.parametrize("path", PAGES, ids=name)
def test_every_command_in_the_documentation_exists(path: Path) -> None:
    verbs = {command.name for command in app.registered_commands}
    assert set(COMMAND.findall(code(path.read_text(encoding="utf-8")))) - verbs == set()


@pytest.mark.parametrize("path", PAGES, ids=name)
def test_every_link_leads_somewhere(path: Path) -> None:
    links = [link for link in LINK.findall(path.read_text(encoding="utf-8")) if "://" not in link]
    assert [link for link in links if not (path.parent / link).exists()] == []


def _fields() -> set[str]:
    models: list[type[BaseModel]] = [SearchSection, TrialSection, *PROFILES.values()]
    models += [engine.options for engine in engines().values() if engine.name == "simulated"]
    models += [workload.params for workload in workloads().values()]
    return {info.alias or key for model in models for key, info in model.model_fields.items()}


def test_the_reference_names_every_key_of_the_experiment_file() -> None:
    said = set(re.findall(r"`([^`\n]+)`", (ROOT / "docs/reference/experiment-file.md").read_text(encoding="utf-8")))
    words = {word for part in said for word in re.findall(r"[a-z][a-z0-9_.-]*", part)}
    known = {*KEYS, *_fields(), *METRICS, *STATISTICS, *PROFILES, *workloads()}
    assert known - words == set()


def test_the_reference_names_every_column_and_every_command() -> None:
    recording = (ROOT / "docs/reference/recording.md").read_text(encoding="utf-8")
    assert [column for column in COLUMNS if f"`{column}`" not in recording] == []
    commands = (ROOT / "docs/reference/cli.md").read_text(encoding="utf-8")
    assert [c.name for c in app.registered_commands if f"`streamgauge {c.name}" not in commands] == []
