"""What the documentation says can be done: its experiments parse, its commands and files exist."""

import json
import re
from dataclasses import fields
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pyarrow as pa
import pytest
from pydantic import BaseModel
from source import ROOT

from streamgauge.cli.main import app
from streamgauge.engines.registry import engines
from streamgauge.engines.spark.connect.kafka import KINDS
from streamgauge.engines.spark.jobs.table import BUILT_IN
from streamgauge.judge import trend_rules
from streamgauge.judge.decide import MAX_CLOCK_STEP
from streamgauge.judge.disturbed import MAX_FOREIGN_SHARE, MAX_RUN_DELAY_SHARE
from streamgauge.judge.generator import MAX_PAUSE, MAX_SEND_DELAY, MIN_ACHIEVED, SHARE_OF_LATENCY, SHARE_OF_TREND
from streamgauge.model.calibration import (
    CALIBRATED_SHARE,
    UNCALIBRATED_SHARE,
    Calibration,
    CapacityRow,
    Ceilings,
    LagProbe,
    LatencyRow,
)
from streamgauge.model.seconds import COLUMNS
from streamgauge.model.streams import TIME, schema_of
from streamgauge.parse import read, shipped_names
from streamgauge.parse.objectives import METRICS, STATISTICS
from streamgauge.parse.read import KEYS
from streamgauge.parse.sections import PROFILES, SearchSection, TrialSection
from streamgauge.run.calibrate.max_load import SAFE_LAG, SHARES
from streamgauge.transports.kafka.formats.avro import Avro
from streamgauge.transports.kafka.formats.columns import FormatError, FormatName
from streamgauge.transports.kafka.formats.formats import output_format
from streamgauge.transports.kafka.options import ClusterOptions, KafkaOptions
from streamgauge.workloads.registry import workloads

PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
FENCE = re.compile(r"^```([^\n]*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"(?:^|[`\s])streamgauge ([a-z]+)\b")
LINK = re.compile(r"\]\(([^)#\s]*)(?:#([^)]*))?\)")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


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
    links = [link for link in LINK.findall(path.read_text(encoding="utf-8")) if "://" not in link[0]]
    assert [link for link, _ in links if not (path.parent / link).exists()] == []
    targets = [(path.parent / link if link else path, anchor) for link, anchor in links if anchor]
    assert [f"{target}#{anchor}" for target, anchor in targets if anchor not in anchors(target)] == []


def anchors(page: Path) -> set[str]:
    """The anchors that a viewer of Markdown makes from the headings of a page."""
    headings = HEADING.findall(FENCE.sub("", page.read_text(encoding="utf-8")))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def _fields() -> set[str]:
    models: list[type[BaseModel]] = [SearchSection, TrialSection, *PROFILES.values(), KafkaOptions, ClusterOptions]
    models += [engines()[name].options for name in ("simulated", "reference", "spark")]
    models += [workload.params for workload in workloads().values()]
    return {info.alias or key for model in models for key, info in model.model_fields.items()}


def test_the_reference_names_every_key_of_the_experiment_file() -> None:
    said = set(re.findall(r"`([^`\n]+)`", (ROOT / "docs/reference/experiment-file.md").read_text(encoding="utf-8")))
    words = {word for part in said for word in re.findall(r"[a-z][a-z0-9_.-]*", part)}
    known = {*KEYS, *_fields(), *METRICS, *STATISTICS, *PROFILES, *workloads()}
    assert known - words == set()


def test_the_reference_describes_every_variant_of_spark() -> None:
    rows = _table("docs/reference/experiment-file.md", "Variants of Spark's jobs", level=3)
    assert [(row[0].strip("`"), row[1].strip("`")) for row in rows] == [(job.workload, job.variant) for job in BUILT_IN]


def test_the_reference_names_every_column_and_every_command() -> None:
    recording = (ROOT / "docs/reference/recording.md").read_text(encoding="utf-8")
    assert [column for column in COLUMNS if f"`{column}`" not in recording] == []
    commands = (ROOT / "docs/reference/cli.md").read_text(encoding="utf-8")
    assert [c.name for c in app.registered_commands if f"`streamgauge {c.name}" not in commands] == []


def test_the_reference_names_every_key_of_a_calibration() -> None:
    text = (ROOT / "docs/reference/json.md").read_text(encoding="utf-8").partition("### A calibration")[2]
    keys = {field.name for part in (Calibration, Ceilings, CapacityRow, LagProbe, LatencyRow) for field in fields(part)}
    assert [key for key in sorted(keys) if f"`{key}`" not in text] == []


def test_the_page_on_the_rules_of_verdicts_has_the_bounds_that_the_judge_has() -> None:
    text = (ROOT / "docs/concepts/rules-of-verdicts.md").read_text(encoding="utf-8")
    bounds = [
        f"at least {MIN_ACHIEVED * 100:g} %",
        f"at most {SHARE_OF_LATENCY * 100:g} % of a latency objective, {SHARE_OF_TREND * 100:g} % of the growth",
        f"at most {MAX_SEND_DELAY // 10**6} ms if neither",
        f"at most {MAX_PAUSE // 10**6} ms",
        f"at most {MAX_RUN_DELAY_SHARE * 100:g} % of the time",
        f"more than {MAX_FOREIGN_SHARE * 100:g} % of the CPU",
        f"{trend_rules.REFUTED_GROWTH * 100:g} % of the load more than allowed",
        f"at most {trend_rules.MAX_FALSE_RETURNS * 100:g} % of cases",
        f"at most {MAX_CLOCK_STEP // 10**6} ms",
        f"{(2 * trend_rules.FULL_CONFIDENCE - 1) * 100:g} % interval",
        f"{trend_rules.CLEAR_LEVEL:g} of these *level errors*",
        f"{trend_rules.RESOLUTION * 100:g} % of the load",
        f"missed from {trend_rules.BROKEN_SECONDS} s on and met from {trend_rules.HOLDS_SECONDS} s on",
    ]
    assert [bound for bound in bounds if bound not in text] == []
    assert trend_rules.RUNAWAY == 1 / 4, "the page says a quarter of the load"


def test_the_pages_on_the_load_driver_state_how_far_a_search_goes() -> None:
    for page in ("docs/concepts/driver.md", "docs/concepts/glossary.md", "docs/guide/calibrating.md", "CHANGELOG.md"):
        assert f"up to {CALIBRATED_SHARE * 100:g} % of" in (ROOT / page).read_text(encoding="utf-8"), page
    guide = (ROOT / "docs/guide/calibrating.md").read_text(encoding="utf-8")
    for text in (guide, (ROOT / "docs/concepts/driver.md").read_text(encoding="utf-8")):
        assert f"at most {SAFE_LAG / 10**6:g} ms" in text
        assert f"at least {MIN_ACHIEVED * 100:g} % of the events" in text
        assert re.search(rf"{UNCALIBRATED_SHARE * 100:g} % of (that|what it finds)", text)
    *most, least = (f"{share * 100:g}" for share in SHARES[1:])
    assert f"the first of {', '.join(most)} and {least} %" in guide


def _table(page: str, heading: str, level: int = 2) -> list[list[str]]:
    """The rows of the first table below a heading, without its own heading."""
    marks = "#" * level
    text = (ROOT / page).read_text(encoding="utf-8")
    section = text.partition(f"\n{marks} {heading}\n")[2].partition("\n## ")[0]
    rows = [line.strip("|").split("|") for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in row] for row in rows[2:]]


FORMATS: tuple[FormatName, ...] = ("binary", "json", "avro")


def test_the_guide_lists_the_types_that_the_formats_of_kafka_support() -> None:
    *listed, (others, *dashes, _) = _table("docs/guide/spark-on-kafka.md", "Columns of outputs")
    assert [row[0] for row in listed] == [f"`{kind().simpleString()}`" for kind in KINDS]
    for (_, binary, number, avro, _), held in zip(listed, KINDS.values(), strict=True):
        schema = schema_of((("total", held),))
        assert binary == f"{output_format('binary', schema).width} bytes"
        assert number == {TIME: "microseconds since 1970", "text": "string"}.get(held, "number")
        (column,) = json.loads(Avro(schema, outputs=True).text)["fields"]
        assert json.loads(avro.strip("`")) == column["type"]
        samples = {"text": ["-1", "", None], "float64": [-1.5, 0.0, None]}.get(held, [-1, 0, None])
        rows = pa.RecordBatch.from_arrays([pa.array(samples, schema.field(0).type)], schema=schema)
        for name in FORMATS:
            form = output_format(name, schema)
            values = pa.array([bytes(value) for value in form.encode(rows)], pa.binary())
            assert form.decode(values).equals(rows), (name, held)
    assert (others, dashes) == ("every other type", ["–", "–", "–"])


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize(
    "kind",
    [
        *(pa.int8(), pa.int16(), pa.uint64(), pa.float32(), pa.bool_(), pa.large_string(), pa.binary()),
        *(pa.date32(), pa.decimal128(10, 2), pa.duration("us"), pa.list_(pa.int64()), pa.struct([("a", pa.int64())])),
    ],
    ids=str,
)
def test_every_type_that_the_guide_does_not_list_is_refused_by_every_format(
    name: FormatName, kind: pa.DataType
) -> None:
    with pytest.raises(FormatError, match="total"):
        output_format(name, pa.schema([("total", kind)]))


def test_the_guide_on_own_functions_links_to_the_types_of_their_outputs() -> None:
    text = (ROOT / "docs/guide/your-own-function.md").read_text(encoding="utf-8")
    assert "(spark-on-kafka.md#columns-of-outputs)" in text.partition("## Output")[2].partition("\n## ")[0]


def test_the_experiments_of_the_guide_on_own_functions_can_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fences = FENCE.findall((ROOT / "docs/guide/your-own-function.md").read_text(encoding="utf-8"))
    job = "\n\n".join(body for info, body in fences if info == "python")
    (tmp_path / "my_job.py").write_text(job, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    experiments = [body for info, body in fences if info == "yaml" and body.startswith("name: ")]
    assert [read(body).name for body in experiments] == ["my-job", "check-my-job"]


def test_the_changelog_names_every_experiment_that_is_shipped() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert [experiment for experiment in shipped_names() if f"`{experiment}`" not in text] == []


def test_readme_shows_the_experiment_that_printed_its_result() -> None:
    bodies = [body for info, body in FENCE.findall((ROOT / "README.md").read_text(encoding="utf-8")) if "yaml" in info]
    shipped = read((ROOT / "experiments/simulated.yaml").read_text(encoding="utf-8"))
    assert shipped in [read(body) for body in bodies if body.startswith("name: ")]


def test_the_files_that_contributing_names_for_a_change_exist() -> None:
    rows = _table("CONTRIBUTING.md", "What to edit for a change")
    edited = [path for row in rows for path in re.findall(r"`([\w/.*]+/[\w/.*]*)`", row[1])]
    tested = [path for row in rows for path in re.findall(r"`([\w/.*-]+/[\w/.*-]*)`", row[2])]
    assert len(edited) >= 30
    assert [path for path in edited if not [*(ROOT / "src/streamgauge").glob(path)]] == []
    assert [path for path in tested if not [*(ROOT / "tests").glob(path), *ROOT.glob(path)]] == []


def test_the_pages_that_explain_the_simulated_run_have_its_numbers() -> None:
    demo = " ".join((ROOT / "README.md").read_text(encoding="utf-8").partition("<!-- demo -->")[2].split())
    found = re.findall(
        r"lag growth (\S+) events/s, (\S+) % of the load \(95 % confidence interval (\S+) to (\S+) %", demo
    )
    (_, passed, *passed_interval), (growth, failed, low, high) = found[3], found[2]
    minus = [text.replace("-", "−") for text in (passed, *passed_interval)]
    expected = {
        "docs/guide/reading-a-finding.md": [f"grew by {failed} % of the load", f"{low} to {high} %"],
        "docs/concepts/trend.md": [f"{growth} events/s, which is {failed} %", f"{low} % to {high} % of the load"],
        "docs/concepts/verdicts.md": [
            f"{failed} % of the load | {low} % to {high} %",
            f"{minus[0]} % of the load | {minus[1]} % to {minus[2]} %",
        ],
    }
    for page, texts in expected.items():
        text = (ROOT / page).read_text(encoding="utf-8")
        assert [each for each in texts if each not in text] == [], page


def _refresh() -> ModuleType:
    """The script docs/refresh.py, which is in no package."""
    spec = spec_from_file_location("refresh", ROOT / "docs/refresh.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_tables_of_what_runs_are_those_of_the_installed_code() -> None:
    tables = _refresh().tables()
    assert {page for page, _ in tables} == {"README.md", "docs/reference/experiment-file.md"}
    for (page, block), table in tables.items():
        text = (ROOT / page).read_text(encoding="utf-8")
        assert f"<!-- {block} -->\n{table}\n<!-- /{block} -->" in text, f"run make docs: {page}"
