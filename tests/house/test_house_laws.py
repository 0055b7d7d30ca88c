"""The rules of DESIGN, held by reading the source. Each rule is also shown a piece of bad source."""

import re
import tomllib

import house_laws as laws
import pytest
from house_source import ROOT, modules, read


@pytest.mark.parametrize("law", laws.LAWS, ids=lambda law: law.__name__)
def test_the_house_keeps_its_rules(law: laws.Law) -> None:
    breaches = [breach for module in modules() for breach in law(module)]
    assert not breaches, "\n".join(["", law.__doc__ or "", *breaches])


BAD = [
    (laws.imports_go_down, "model.trial", "from streamgauge.stats import trend"),
    (laws.imports_go_down, "judge.decide", "import streamgauge.search.adaptive"),
    (laws.imports_go_down, "search.adaptive", "def late() -> None:\n    from streamgauge.run import execute"),
    (laws.imports_go_down, "engines.simulated", "from streamgauge.parse import read"),
    (laws.imports_go_down, "parse.read", "from ..run import explore"),
    (laws.imports_go_down, "report.terminal", "from streamgauge.engines.base import Engine"),
    (laws.imports_go_down, "report.terminal", "from streamgauge.run import explore"),
    (laws.imports_go_down, "dashboard.serve", "from streamgauge import run"),
    (laws.imports_go_down, "store.write", "from streamgauge.transport import queue"),
    (laws.imports_go_down, "transport.queue", "from streamgauge.engines import base"),
    (laws.imports_go_down, "attic.old", "import numpy"),
    (laws.pure_rooms_are_pure, "model.trial", "import time"),
    (laws.pure_rooms_are_pure, "stats.trend", "import os"),
    (laws.pure_rooms_are_pure, "judge.decide", "from datetime import datetime\nx = datetime.now()"),
    (laws.pure_rooms_are_pure, "judge.decide", "import datetime as d\nx = d.datetime.utcnow()"),
    (laws.pure_rooms_are_pure, "search.linear", "import random\nx = random.random()"),
    (laws.pure_rooms_are_pure, "search.linear", "import logging"),
    (laws.pure_rooms_are_pure, "workloads.base", "import numpy as np\nx = np.random.default_rng()"),
    (laws.pure_rooms_are_pure, "workloads.base", "import numpy as np\nx = np.random.normal(0, 1)"),
    (laws.pure_rooms_are_pure, "workloads.base", "import numpy as np\nx = np.load('a.npy')"),
    (laws.pure_rooms_are_pure, "parse.read", "x = open('experiment.yaml')"),
    (laws.pure_rooms_are_pure, "parse.read", "from pathlib import Path"),
    (laws.pure_rooms_are_pure, "parse.read", "def text(path):\n    return path.read_text()"),
    (laws.pure_rooms_are_pure, "parse.read", "from importlib.resources import files"),
    (laws.pure_rooms_are_pure, "model.units", "from subprocess import run"),
    (laws.pure_rooms_are_pure, "model.units", "import threading"),
    (laws.only_the_command_line_talks, "run.execute", "print('done')"),
    (laws.only_the_command_line_talks, "run.execute", "from os import environ\nx = environ['HOME']"),
    (laws.only_the_command_line_talks, "store.write", "import os\nx = os.getenv('HOME')"),
    (laws.only_the_command_line_talks, "store.write", "import sys\nsys.exit(3)"),
    (laws.only_the_command_line_talks, "engines.simulated", "raise SystemExit(4)"),
    (laws.only_the_command_line_talks, "report.terminal", "import sys\nsys.stderr.write('x')"),
    (laws.only_the_command_line_talks, "report.terminal", "from rich.console import Console\nc = Console()"),
    (laws.only_run_owns_clock_and_processes, "store.write", "import time"),
    (laws.only_run_owns_clock_and_processes, "engines.spark.deploy", "from subprocess import Popen"),
    (laws.only_run_owns_clock_and_processes, "cli.run", "import threading"),
    (laws.only_run_owns_clock_and_processes, "engines.spark.deploy", "import signal"),
    (laws.only_run_owns_clock_and_processes, "report.html", "import datetime\nx = datetime.datetime.now()"),
    (laws.only_the_store_writes, "report.html", "def save(path):\n    path.write_bytes(b'')"),
    (laws.only_the_store_writes, "run.execute", "f = open('log', 'a')"),
    (laws.only_the_store_writes, "run.execute", "def log(path):\n    return path.open(mode='xb')"),
    (laws.only_the_store_writes, "engines.simulated", "import os\nos.makedirs('x')"),
    (laws.pyspark_stays_in_its_rooms, "run.execute", "from pyspark.sql import SparkSession"),
    (laws.nothing_unsafe, "store.read", "import pickle"),
    (laws.nothing_unsafe, "parse.read", "x = eval('1')"),
    (laws.nothing_unsafe, "parse.read", "exec('x = 1')"),
    (laws.nothing_unsafe, "parse.read", "import yaml\nx = yaml.load('a')"),
    (laws.nothing_unsafe, "parse.read", "from ruamel.yaml import YAML\nx = YAML(typ='unsafe')"),
    (laws.nothing_unsafe, "run.launch", "import subprocess\nsubprocess.run('ls', shell=True)"),
    (laws.nothing_unsafe, "run.launch", "import os\nos.system('ls')"),
    (laws.nothing_unsafe, "store.read", "import numpy as np\nx = np.load('a', allow_pickle=True)"),
    (laws.catch_all_only_outermost, "run.execute", "try:\n    x = 1\nexcept Exception:\n    pass"),
    (laws.catch_all_only_outermost, "run.execute", "try:\n    x = 1\nexcept (OSError, BaseException):\n    pass"),
    (laws.catch_all_only_outermost, "run.execute", "try:\n    x = 1\nexcept:\n    pass"),
    (laws.names_say_what_they_do, "run.trial_utils", ""),
    (laws.names_say_what_they_do, "search.helpers", ""),
    (laws.names_say_what_they_do, "run.manager", ""),
]


@pytest.mark.parametrize(("law", "name", "text"), BAD, ids=lambda part: part if isinstance(part, str) else "")
def test_a_breach_is_found(law: laws.Law, name: str, text: str) -> None:
    assert law(read(f"streamgauge.{name}", text))


GOOD = [
    ("cli.run", "import os\nimport sys\nprint(os.environ)\nsys.exit(2)"),
    ("run.environment", "def text(path):\n    return path.read_text()"),
    ("cli.interrupt", "import signal"),
    ("run.execute", "import time\nimport threading\nfrom streamgauge.store import write"),
    ("parse.shipped", "from importlib.resources import files\nx = files('streamgauge').read_text()"),
    ("parse.read", "from streamgauge.engines.simulated import SimulatedOptions\nfrom pathlib import PurePath"),
    ("engines.spark.deploy", "from pyspark.sql import SparkSession\nfrom streamgauge.transport import queue"),
    ("workloads.base", "import numpy as np\nx = np.random.default_rng(7)"),
    ("judge.decide", "from streamgauge.stats import trend\nfrom streamgauge.model.trial import Trial"),
    ("report.terminal", "from streamgauge.store import read\nfrom rich.console import Console\nc = Console(file=f)"),
    ("store.durable", "try:\n    x = 1\nexcept BaseException:\n    x = 2\n    raise"),
    ("cli.main", "try:\n    x = 1\nexcept Exception:\n    pass"),
]


@pytest.mark.parametrize(("name", "text"), GOOD, ids=lambda part: str(part).split("\n", maxsplit=1)[0])
def test_what_is_allowed_is_left_alone(name: str, text: str) -> None:
    module = read(f"streamgauge.{name}", text)
    assert [breach for law in laws.LAWS for breach in law(module)] == []


def test_import_linter_is_told_the_same_floors() -> None:
    with (ROOT / "pyproject.toml").open("rb") as file:
        contracts = tomllib.load(file)["tool"]["importlinter"]["contracts"]
    layers = next(contract["layers"] for contract in contracts if contract["id"] == "layers")
    told = {room: len(layers) - 1 - place for place, layer in enumerate(layers) for room in re.findall(r"\w+", layer)}
    assert told == laws.FLOORS


def test_every_exception_by_name_is_a_file_that_exists() -> None:
    named = laws.IMPURE_BY_NAME | laws.CATCH_ALL_BY_NAME | laws.RUNTIME_FOLDER_BY_NAME
    named |= laws.SYSTEMS_UNDER_TEST_BY_NAME
    assert named - {module.name for module in modules()} == set()
