"""Write the current output of streamgauge into the pages that show it: ``make docs``.

A block to fill is marked ``<!-- name -->`` … ``<!-- /name -->``; everything between is replaced. The pages that show a
whole experiment are filled with the output of that experiment.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from streamgauge.engines import registry
from streamgauge.engines.contract import ANY_WORKLOAD, DEFAULT_VARIANT
from streamgauge.engines.registry import engines
from streamgauge.engines.table import Row, rows

ROOT = Path(__file__).resolve().parents[1]
BROKEN = """\
name: my-first
workload: {name: windowed-agregation, window: 8s, slide: 4s}
engine: {name: simulated, capacity: 730k}
find: sustainable-throughput
load: {between: [5M/s, 10k/s]}
objective: [lag-trend <= 1%, event-time < 2s]
"""


def streamgauge(folder: str, *arguments: str, code: int = 0) -> tuple[str, str]:
    """What a command prints on stdout and stderr; it must exit with ``code``."""
    environment = {**os.environ, "COLUMNS": "110", "NO_COLOR": "1"}
    argv = [sys.executable, "-m", "streamgauge", *arguments]
    done = subprocess.run(argv, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    if done.returncode != code:
        raise SystemExit(f"streamgauge {' '.join(arguments)} exited with {done.returncode}:\n{done.stderr}")
    return done.stdout, done.stderr


def fill(page: str, name: str, printed: str) -> None:
    """Replace the block of this name by the output of a command."""
    replace_block(page, name, "\n".join(["```", *(line.rstrip() for line in printed.strip("\n").splitlines()), "```"]))


def replace_block(page: str, name: str, block: str) -> None:
    """Replace the block of this name by this text."""
    path = ROOT / page
    marked = re.compile(f"(<!-- {name} -->\n).*?(\n<!-- /{name} -->)", re.DOTALL)
    text, found = marked.subn(lambda m: m[1] + block + m[2], path.read_text(encoding="utf-8"))
    if not found:
        raise SystemExit(f"{page} has no block called {name}")
    path.write_text(text, encoding="utf-8")


def experiment(page: str, number: int, folder: str) -> str:
    """Write one of the experiments on a page to a file in this folder, and return the name of the file."""
    fence = re.compile(r"^```yaml experiment\n(name: (\S+)\n.*?)^```", re.MULTILINE | re.DOTALL)
    text, name = fence.findall((ROOT / page).read_text(encoding="utf-8"))[number]
    (Path(folder) / f"{name}.yaml").write_text(text, encoding="utf-8")
    return f"{name}.yaml"


def main() -> None:
    """Fill in the tables, and what simulated experiments print, including those of the pages."""
    for (page, name), table in tables().items():
        replace_block(page, name, table)
    guide = "docs/guide/first-experiment.md"
    with tempfile.TemporaryDirectory() as folder:
        result = streamgauge(folder, "run", "simulated")[0]
        fill("README.md", "demo", result)
        fill("docs/guide/reading-a-finding.md", "result", result)
        streamgauge(folder, "init", "first.yaml")
        shown, progress = streamgauge(folder, "run", "first.yaml")
        fill(guide, "trials", progress)
        fill(guide, "finding", shown.partition("\n\n")[0])
        (Path(folder) / "first.yaml").write_text(BROKEN, encoding="utf-8")
        fill(guide, "errors", streamgauge(folder, "run", "first.yaml", code=2)[1])
        fill_planning(folder)
        fill_reference(folder)


def tables() -> dict[tuple[str, str], str]:
    """The tables that are made from the table of what runs, by page and name."""
    return {
        ("README.md", "engines"): _engine_table(),
        ("docs/reference/experiment-file.md", "runs"): _runs_table(),
    }


def _built_in() -> list[str]:
    """The engines of this package. Engines of other packages are not documented here."""
    return [entry.name for entry in registry.BUILT_IN]


def _engine_table() -> str:
    """One line for each engine: its workloads, and what transports its events."""
    lines = ["| engine | what it is | workloads | transports |", "|---|---|---|---|"]
    for name in _built_in():
        found = [row for row in rows() if row.engine == name]
        workloads = list(dict.fromkeys(_job(row) for row in found))
        transports = "–" if _simulated(name) else ", ".join(f"`{t}`" for t in sorted({row.transport for row in found}))
        lines.append(f"| `{name}` | {engines()[name].summary} | {', '.join(workloads)} | {transports} |")
    return "\n".join(lines)


def _runs_table() -> str:
    """One line for each engine, workload and variant, with the formats in a column for each transport."""
    names = sorted({row.transport for row in rows()}, reverse=True)
    lines = [
        f"| engine | workload | variant | {' | '.join(f'`{t}`' for t in names)} |",
        "|---" * (3 + len(names)) + "|",
    ]
    for name in _built_in():
        found = [row for row in rows() if row.engine == name]
        for workload, variant in dict.fromkeys((_job(row), row.variant) for row in found):
            jobs = [row for row in found if (_job(row), row.variant) == (workload, variant)]
            cells = [_cell([row for row in jobs if row.transport == t], _simulated(name)) for t in names]
            lines.append(f"| `{name}` | {workload} | {_variant(variant)} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _simulated(name: str) -> bool:
    engine = engines()[name]
    return engine.traits(engine.options.from_resolved({})).simulated


def _job(row: Row) -> str:
    if row.workload != ANY_WORKLOAD:
        return f"`{row.workload}`"
    return "your own function" if row.variant != DEFAULT_VARIANT else "all"


def _variant(name: str) -> str:
    return "–" if name == DEFAULT_VARIANT else f"`{name}`"


def _cell(found: list[Row], simulated: bool) -> str:
    """The formats in which an engine reads a workload from one transport."""
    if simulated or not found:
        return "simulated" if found else "–"
    return ", ".join(f"`{row.format}`" for row in found if row.format) or "yes"


def fill_planning(folder: str) -> None:
    """The results of the two experiments on the page about planning."""
    page = "docs/guide/planning-with-the-simulator.md"
    streamgauge(folder, "run", experiment(page, 0, folder), "--out", "planned")
    fill(page, "demand", streamgauge(folder, "list", "--out", "planned")[0])
    failed = streamgauge(folder, "run", experiment(page, 1, folder), code=4)[0]
    fill(page, "faults", failed.partition("\n\n")[0])


def fill_reference(folder: str) -> None:
    """The plan of the first experiment in the reference, and a part of the document of the simulated run."""
    page = "docs/reference/experiment-file.md"
    fill(page, "plan", streamgauge(folder, "plan", experiment(page, 0, folder))[0])
    result = json.loads(streamgauge(folder, "show", "simulated", "--json")[0])["findings"][0]
    shown = {key: result[key] for key in ("engine", "status", "holds", "fails", "precision", "sentence")}
    fill("docs/reference/json.md", "document", json.dumps(shown, indent=2))


if __name__ == "__main__":
    main()
