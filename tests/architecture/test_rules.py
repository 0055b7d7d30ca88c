"""The rules of the architecture, held by reading the source. Each rule is also shown a piece of bad source."""

import re
import tomllib

import pytest
import rules
from source import PACKAGE, ROOT, calls, dotted, modules, read

from streamgauge.transports.registry import BUILT_IN


@pytest.mark.parametrize("rule", rules.RULES, ids=lambda rule: rule.__name__)
def test_the_source_keeps_the_rules(rule: rules.Rule) -> None:
    breaches = [breach for module in modules() for breach in rule(module)]
    assert not breaches, "\n".join(["", rule.__doc__ or "", *breaches])


BAD = [
    (rules.imports_go_down, "model.trial", "from streamgauge.stats import trend"),
    (rules.imports_go_down, "judge.decide", "import streamgauge.search.adaptive"),
    (rules.imports_go_down, "search.adaptive", "def late() -> None:\n    from streamgauge.run import execute"),
    (rules.imports_go_down, "engines.simulated", "from streamgauge.parse import read"),
    (rules.imports_go_down, "parse.read", "from ..run import explore"),
    (rules.imports_go_down, "report.terminal", "from streamgauge.engines.contract import Engine"),
    (rules.imports_go_down, "report.terminal", "from streamgauge.run import explore"),
    (rules.imports_go_down, "dashboard.serve", "from streamgauge import run"),
    (rules.imports_go_down, "store.write", "from streamgauge.transports import queue"),
    (rules.imports_go_down, "transports.queue", "from streamgauge.engines import contract"),
    (rules.imports_go_down, "processes.launch", "from streamgauge.install import cache"),
    (rules.imports_go_down, "install.jars", "from streamgauge.transports import registry"),
    (rules.imports_go_down, "report.html", "import streamgauge.dashboard.server"),
    (rules.imports_go_down, "workloads.ingest", "from streamgauge.transports import contract"),
    (rules.imports_go_down, "attic.old", "import numpy"),
    (rules.pure_packages_are_pure, "model.trial", "import time"),
    (rules.pure_packages_are_pure, "stats.trend", "import os"),
    (rules.pure_packages_are_pure, "judge.decide", "from datetime import datetime\nx = datetime.now()"),
    (rules.pure_packages_are_pure, "judge.decide", "import datetime as d\nx = d.datetime.utcnow()"),
    (rules.pure_packages_are_pure, "search.linear", "import random\nx = random.random()"),
    (rules.pure_packages_are_pure, "search.linear", "import logging"),
    (rules.pure_packages_are_pure, "workloads.base", "import numpy as np\nx = np.random.default_rng()"),
    (rules.pure_packages_are_pure, "workloads.base", "import numpy as np\nx = np.random.normal(0, 1)"),
    (rules.pure_packages_are_pure, "workloads.base", "import numpy as np\nx = np.load('a.npy')"),
    (rules.pure_packages_are_pure, "parse.read", "x = open('experiment.yaml')"),
    (rules.pure_packages_are_pure, "parse.read", "from pathlib import Path"),
    (rules.pure_packages_are_pure, "parse.read", "def text(path):\n    return path.read_text()"),
    (rules.pure_packages_are_pure, "parse.read", "from importlib.resources import files"),
    (rules.pure_packages_are_pure, "model.units", "from subprocess import run"),
    (rules.pure_packages_are_pure, "model.units", "import threading"),
    (rules.only_the_command_line_talks, "run.execute", "print('done')"),
    (rules.only_the_command_line_talks, "run.execute", "from os import environ\nx = environ['HOME']"),
    (rules.only_the_command_line_talks, "store.write", "import os\nx = os.getenv('HOME')"),
    (rules.only_the_command_line_talks, "store.write", "import sys\nsys.exit(3)"),
    (rules.only_the_command_line_talks, "engines.simulated", "raise SystemExit(4)"),
    (rules.only_the_command_line_talks, "report.terminal", "import sys\nsys.stderr.write('x')"),
    (rules.only_the_command_line_talks, "report.terminal", "from rich.console import Console\nc = Console()"),
    (rules.few_own_the_clock_and_processes, "store.write", "import time"),
    (rules.few_own_the_clock_and_processes, "engines.spark.deploy", "from subprocess import Popen"),
    (rules.few_own_the_clock_and_processes, "cli.run", "import threading"),
    (rules.few_own_the_clock_and_processes, "engines.spark.deploy", "import signal"),
    (rules.few_own_the_clock_and_processes, "report.html", "import datetime\nx = datetime.datetime.now()"),
    (rules.only_the_store_writes, "report.html", "def save(path):\n    path.write_bytes(b'')"),
    (rules.only_the_store_writes, "run.execute", "f = open('log', 'a')"),
    (rules.only_the_store_writes, "run.execute", "def log(path):\n    return path.open(mode='xb')"),
    (rules.only_the_store_writes, "engines.simulated", "import os\nos.makedirs('x')"),
    (rules.few_name_a_transport, "workloads.ingest", '"""Every event, also over Kafka."""'),
    (rules.few_name_a_transport, "parse.read", "from streamgauge.transports.kafka import options"),
    (rules.pyspark_stays_in_its_packages, "run.execute", "from pyspark.sql import SparkSession"),
    (rules.nothing_unsafe, "store.read", "import pickle"),
    (rules.nothing_unsafe, "parse.read", "x = eval('1')"),
    (rules.nothing_unsafe, "parse.read", "exec('x = 1')"),
    (rules.nothing_unsafe, "parse.read", "import yaml\nx = yaml.load('a')"),
    (rules.nothing_unsafe, "parse.read", "from ruamel.yaml import YAML\nx = YAML(typ='unsafe')"),
    (rules.nothing_unsafe, "run.launch", "import subprocess\nsubprocess.run('ls', shell=True)"),
    (rules.nothing_unsafe, "run.launch", "import os\nos.system('ls')"),
    (rules.nothing_unsafe, "store.read", "import numpy as np\nx = np.load('a', allow_pickle=True)"),
    (rules.catch_all_only_outermost, "run.execute", "try:\n    x = 1\nexcept Exception:\n    pass"),
    (rules.catch_all_only_outermost, "run.execute", "try:\n    x = 1\nexcept (OSError, BaseException):\n    pass"),
    (rules.catch_all_only_outermost, "run.execute", "try:\n    x = 1\nexcept:\n    pass"),
    (rules.names_say_what_they_do, "run.trial_utils", ""),
    (rules.names_say_what_they_do, "search.helpers", ""),
    (rules.names_say_what_they_do, "run.manager", ""),
    (rules.few_name_a_transport, "cli.commands.run", 'x = choice.name == "kafka"'),
    (rules.few_name_a_transport, "install.jars", "# the jars of Kafka"),
    (rules.few_name_a_transport, "engines.reference.worker", "import streamgauge.transports.kafka"),
    (rules.no_branch_on_a_transport, "run.explore", 'x = trial.transport.name == "kafka"'),
    (rules.no_branch_on_a_transport, "run.explore", 'x = "queue" != choice.name'),
    (rules.no_branch_on_a_transport, "judge.decide", 'x = trial.transport in ("kafka", "other")'),
    (rules.no_branch_on_a_transport, "store.calibrations", "x = transport == QUEUE"),
    (rules.no_branch_on_a_transport, "model.experiment", "def exact(self):\n    return self.name != QUEUE"),
    (rules.no_branch_on_a_transport, "judge.decide", 'x = content.get("transport") != experiment.QUEUE'),
    (rules.no_trait_of_a_transport_by_its_name, "model.experiment", "def has_broker(self):\n    return self.far"),
    (rules.no_trait_of_a_transport_by_its_name, "model.experiment", "def uses_broker(name):\n    return name in FAR"),
    (rules.no_trait_of_a_transport_by_its_name, "parse.combine", "x = TransportChoice(name, options)"),
    (rules.no_trait_of_a_transport_by_its_name, "cli.commands.run", "x = experiment.TransportChoice(name=name)"),
    (rules.no_branch_on_a_transport, "engines.reference.worker", 'x = spec.transport == "queue"'),
    (rules.no_branch_on_a_transport, "engines.spark.jobs.table", 'x = transport == "kafka"'),
    (rules.no_branch_on_a_transport, "run.explore", 'FAR = {"kafka"}\nx = trial.transport in FAR'),
    (rules.no_branch_on_a_transport, "run.explore", 'FAR = frozenset({"kafka"})\nx = transport not in FAR'),
    (rules.no_branch_on_a_transport, "run.explore", 'FAR: dict = {"kafka": 1}\nx = transport in FAR'),
    (rules.no_branch_on_a_transport, "run.explore", "x = transport in table.CONNECTIONS"),
    (rules.no_branch_on_a_transport, "report.view", 'match transport:\n    case "kafka":\n        x = 1'),
    (rules.no_branch_on_a_transport, "cli.commands.setup", 'x = transports()["kafka"].requirements'),
    (rules.only_execute_tells_engines_apart, "run.explore", "x = isinstance(engine, RealEngine)"),
    (rules.only_execute_tells_engines_apart, "cli.commands.engines", "x = isinstance(e, (int, contract.Engine))"),
    (rules.only_execute_tells_engines_apart, "run.systems", "x = isinstance(e, System | None)"),
    (rules.only_execute_tells_engines_apart, "run.systems", "match e:\n    case SimulatedEngine():\n        x = 1"),
]


@pytest.mark.parametrize(("rule", "name", "text"), BAD, ids=lambda part: part if isinstance(part, str) else "")
def test_a_breach_is_found(rule: rules.Rule, name: str, text: str) -> None:
    assert rule(read(f"streamgauge.{name}", text))


GOOD = [
    ("cli.run", "import os\nimport sys\nprint(os.environ)\nsys.exit(2)"),
    ("run.environment", "def text(path):\n    return path.read_text()"),
    ("cli.interrupt", "import signal"),
    ("run.execute", "import time\nimport threading\nfrom streamgauge.store import write"),
    ("parse.shipped", "from importlib.resources import files\nx = files('streamgauge').read_text()"),
    ("parse.read", "from streamgauge.engines.simulated import SimulatedOptions\nfrom pathlib import PurePath"),
    ("engines.spark.deploy", "from pyspark.sql import SparkSession\nfrom streamgauge.transports import queue"),
    ("workloads.base", "import numpy as np\nx = np.random.default_rng(7)"),
    ("model.papers", "STUDY = 'Kafka Streams study'"),
    ("judge.decide", "from streamgauge.stats import trend\nfrom streamgauge.model.trial import Trial"),
    ("report.terminal", "from streamgauge.store import read\nfrom rich.console import Console\nc = Console(file=f)"),
    ("store.durable", "try:\n    x = 1\nexcept BaseException:\n    x = 2\n    raise"),
    ("cli.main", "try:\n    x = 1\nexcept Exception:\n    pass"),
    ("transports.queue.buffer", "from streamgauge.workloads import contract\nfrom streamgauge.install import cache"),
    ("transports.registry", "from streamgauge.processes import spec\nfrom streamgauge.store import durable"),
    ("dashboard.server", "from streamgauge.report import view"),
    ("judge.objectives", 'x = objective.metric == "queue"\ny = outcome.ending == "queue-full"'),
    (
        "run.trial.execute",
        "from streamgauge.engines.contract import SimulatedEngine\nx = isinstance(e, SimulatedEngine)",
    ),
    ("engines.spark.jobs.table", 'BY = {"kafka": 1, "queue": 2}\nx = BY[transport]'),
    ("model.seconds", 'COLUMNS = ("offered", "queue")\nx = [name for name in COLUMNS if name in COLUMNS]'),
    ("judge.decide", "x = trial.transport.broker\ny = TransportChoice()"),
    ("store.documents", "x = name != QUEUE"),
]


@pytest.mark.parametrize(("name", "text"), GOOD, ids=lambda part: str(part).split("\n", maxsplit=1)[0])
def test_what_is_allowed_is_left_unchanged(name: str, text: str) -> None:
    module = read(f"streamgauge.{name}", text)
    assert [breach for rule in rules.RULES for breach in rule(module)] == []


def test_import_linter_has_the_same_layers() -> None:
    with (ROOT / "pyproject.toml").open("rb") as file:
        contracts = tomllib.load(file)["tool"]["importlinter"]["contracts"]
    layers = next(contract["layers"] for contract in contracts if contract["id"] == "layers")
    found = {
        package: len(layers) - 1 - place for place, layer in enumerate(layers) for package in re.findall(r"\w+", layer)
    }
    assert found == rules.LAYERS


def test_every_exception_by_name_is_a_file_that_exists() -> None:
    named = rules.IMPURE_BY_NAME | rules.CATCH_ALL_BY_NAME | rules.RUNTIME_FOLDER_BY_NAME | rules.KAFKA_BY_NAME
    named |= rules.SYSTEMS_UNDER_TEST_BY_NAME | rules.CLOCK_BY_NAME
    named |= rules.LOGS_BY_NAME | rules.FORKS_BY_NAME | rules.OLD_STORES_BY_NAME | rules.TELL_ENGINES_APART_BY_NAME
    named |= rules.MAKE_CHOICES_BY_NAME
    assert named - {module.name for module in modules()} == set()


def test_at_most_eight_files_outside_its_package_name_kafka() -> None:
    """Every kind of file counts, not only Python."""
    others = (path for path in PACKAGE.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    inside = PACKAGE / "transports" / "kafka"
    named = [
        str(path.relative_to(PACKAGE))
        for path in others
        if inside not in path.parents and b"kafka" in path.read_bytes().lower()
    ]
    assert len(named) <= rules.MOST_KAFKA_FILES, "\n".join(sorted(named))


def test_the_transports_of_the_rules_are_those_that_are_built_in() -> None:
    assert {point.name for point in BUILT_IN} == rules.TRANSPORTS


def test_simulated_and_real_engines_are_distinguished_in_one_place() -> None:
    found = [
        module.name
        for module in modules()
        for node, name in calls(module)
        if name == "isinstance" and any(dotted(arg).rsplit(".", 1)[-1] in rules.ENGINE_PROTOCOLS for arg in node.args)
    ]
    assert found == ["streamgauge.run.trial.execute"]
