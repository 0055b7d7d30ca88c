"""The rules of the architecture. Each takes a module and returns its breaches as ``module:line: sentence``."""

import ast
from collections.abc import Callable
from functools import cache

from source import Module, calls, dotted, imports, mentions, modules

Rule = Callable[[Module], list[str]]

LAYERS = {
    "cli": 10,
    "dashboard": 9,
    "report": 8,
    "analyze": 8,
    "run": 8,
    "parse": 7,
    "engines": 6,
    "transports": 5,
    "install": 4,
    "processes": 3,
    "store": 3,
    "workloads": 2,
    "search": 2,
    "judge": 2,
    "stats": 1,
    "model": 0,
}
NEVER = {
    "report": {"run", "engines", "transports", "processes"},
    "dashboard": {"run", "engines", "transports", "processes"},
    "store": {"engines", "transports"},
}

PURE = {"model", "stats", "judge", "search", "workloads", "parse"}
IMPURE_BY_NAME = {"streamgauge.parse.shipped"}
"""Reads the experiments that ship in the wheel: the one file of a pure package that reads files."""

OUTSIDE = {
    *("time", "os", "io", "sys", "logging", "random", "secrets", "uuid", "threading", "multiprocessing", "subprocess"),
    *("asyncio", "concurrent", "socket", "tempfile", "shutil", "signal", "glob", "platform", "psutil", "sched"),
}
FILE_CALLS = {
    *("read_text", "write_text", "read_bytes", "write_bytes", "mkdir", "unlink", "rmdir", "touch", "iterdir", "rglob"),
    *("tofile", "fromfile", "memmap", "savez", "savetxt", "loadtxt", "read_table", "write_table"),
}
WRITING_CALLS = {"write_text", "write_bytes", "mkdir", "makedirs", "unlink", "rmdir", "rmtree", "touch", "write_table"}
CLOCK_AND_PROCESSES = {"time", "threading", "multiprocessing", "subprocess", "concurrent", "signal", "sched", "asyncio"}
MOMENTS = {"now", "today", "utcnow"}
SEEDED = {"default_rng", "Generator", "SeedSequence", "PCG64", "PCG64DXSM", "Philox", "BitGenerator"}
CATCH_ALL_BY_NAME = {
    *("streamgauge.cli.main", "streamgauge.model.discovery"),
    # around the user's own functions, which may fail in any way and are then named as the user's
    *("streamgauge.engines.spark.session_process", "streamgauge.engines.spark.user_code"),
    "streamgauge.run.trial.reference_function",
    # around what an engine of another package says of itself
    "streamgauge.run.trial.facts",
}
RUNTIME_FOLDER_BY_NAME = {
    *("streamgauge.processes.runtime_folder", "streamgauge.processes.guard"),
    "streamgauge.install.cache",  # the user's cache
}
"""They make and remove the runtime folder (sockets, shared memory), which lies outside the results."""
LOGS_BY_NAME = {"streamgauge.processes.launch"}
"""It makes the folder of a process's log, in which the guard of the process writes."""
FORKS_BY_NAME = {"streamgauge.processes.guard"}
"""A process that it forks ends without the handlers of the one that it comes from."""
SYSTEMS_UNDER_TEST_BY_NAME = {
    *(f"streamgauge.engines.reference.{part}" for part in ("worker", "delayed_output")),
    *(f"streamgauge.engines.spark.{part}" for part in ("session_process", "batch_log")),
    *(f"streamgauge.engines.spark.connect.{part}" for part in ("positions", "queue")),
}
"""Engines' processes stand for foreign systems: they have separate clocks, threads and logs."""
CLOCK_BY_NAME = {
    *("streamgauge.install.programs", "streamgauge.install.jars"),  # wait for package managers
    "streamgauge.transports.kafka.brokers.start",  # waits for brokers
    # parts of transports that run in the processes of load drivers, of the collector and of engines
    *(f"streamgauge.transports.queue.{part}" for part in ("server", "outputs")),
    "streamgauge.transports.kafka.topics_io",
    "streamgauge.transports.contract",  # the type of the lock that a load driver shares with its publisher
}
KAFKA_BY_NAME = {
    "streamgauge.transports.registry",  # lists the built-in transports
    *(f"streamgauge.engines.spark.{part}" for part in ("jobs.table", "connect.kafka", "connect.positions")),
    "streamgauge.engines.toolkit_kafka",  # what engines of other packages need to use Kafka
    "streamgauge.model.papers",  # the name of a paper
    "streamgauge.store.facts",  # reads recordings that have the transport under its name
}
"""The only files outside ``transports/kafka`` that name Kafka."""
MOST_KAFKA_FILES = 8
TRANSPORTS = {"queue", "kafka"}
TRANSPORT_CONSTANT = "QUEUE"
OLD_STORES_BY_NAME = {"streamgauge.store.documents"}
"""Reads documents of earlier versions, in which the traits of a transport followed from its name."""
MAKE_CHOICES_BY_NAME = {"streamgauge.transports.registry"}
"""Where a transport becomes a choice with all its traits."""
ENGINE_PROTOCOLS = {"Engine", "RealEngine", "SimulatedEngine", "Simulation", "System", "Deployment"}
TELL_ENGINES_APART_BY_NAME = {"streamgauge.run.trial.execute", "streamgauge.engines.registry"}
"""``execute`` runs a trial on processes or simulates it; the registry refuses plug-ins that are no engine."""
VAGUE = {"utils", "util", "helpers", "helper", "common", "manager", "managers", "misc"}
UNSAFE_MODULES = {"pickle", "cPickle", "dill", "cloudpickle", "shelve", "marshal"}
UNSAFE_CALLS = {"eval", "exec", "os.system", "os.popen", "yaml.load", "yaml.unsafe_load", "compile"}


def _breach(module: Module, line: int, sentence: str) -> str:
    return f"{module.name}:{line}: {sentence}"


def _package_of(dotted: str) -> str:
    parts = dotted.split(".")
    return parts[1] if len(parts) > 1 and parts[0] == "streamgauge" else ""


def imports_go_down(module: Module) -> list[str]:
    """A package imports only packages below it, and never one that it is kept apart from."""
    breaches, package = [], module.package
    if package and package not in LAYERS:
        return [
            _breach(
                module, 1, f"the package {package} has no layer: pyproject.toml and tests/architecture must name it"
            )
        ]
    for line, name in imports(module):
        other = _package_of(name)
        if other not in LAYERS or other == package:
            continue
        if not package:
            breaches.append(_breach(module, line, f"the package itself imports {other}"))
        elif other in NEVER.get(package, set()):
            breaches.append(_breach(module, line, f"{package} never imports {other}"))
        elif LAYERS[other] >= LAYERS[package]:
            breaches.append(_breach(module, line, f"{package} imports {other}, which is not below it"))
    return breaches


def pure_packages_are_pure(module: Module) -> list[str]:
    """No clock, files, environment, logging, processes or unseeded randomness."""
    if module.package not in PURE or module.name in IMPURE_BY_NAME:
        return []
    breaches = []
    for line, name in imports(module):
        top = name.split(".")[0]
        if top in OUTSIDE or name.startswith(("importlib.resources", "numpy.random.mtrand")):
            breaches.append(_breach(module, line, f"a pure package imports {name}"))
        if top == "pathlib" and not name.startswith("pathlib.Pure"):
            breaches.append(_breach(module, line, f"a pure package imports {name}; PurePath does not touch the disk"))
    for node, name in calls(module):
        last = name.rsplit(".", 1)[-1]
        if name in ("open", "print", "input") or ("." in name and last in FILE_CALLS):
            breaches.append(_breach(module, node.lineno, f"a pure package calls {name}"))
        if name.startswith(("datetime.", "?.")) and last in MOMENTS:
            breaches.append(_breach(module, node.lineno, f"a pure package asks for the time: {name}"))
        if name in ("numpy.load", "numpy.save"):
            breaches.append(_breach(module, node.lineno, f"a pure package calls {name}"))
        if name.startswith("numpy.random.") and (last not in SEEDED or not (node.args or node.keywords)):
            breaches.append(_breach(module, node.lineno, f"randomness without a seed: {name}"))
    return breaches


def only_the_command_line_talks(module: Module) -> list[str]:
    """``cli`` alone prints, reads the environment and exits."""
    if module.package == "cli":
        return []
    talk = {"os.environ", "os.getenv", "os.environb", "sys.stdout", "sys.stderr", "sys.stdin", "sys.argv"}
    leave = {"sys.exit", "os._exit", "exit", "quit", "SystemExit"}
    if module.name in CATCH_ALL_BY_NAME:  # a user's function may call sys.exit, which is caught there
        leave.remove("SystemExit")
    if module.name in FORKS_BY_NAME:
        leave.remove("os._exit")
    breaches = []
    for line, name in mentions(module):
        if name in talk or name in leave:
            breaches.append(_breach(module, line, f"{name} belongs to cli"))
    for node, name in calls(module):
        if name in ("print", "input", "rich.print", "rich.get_console", "breakpoint"):
            breaches.append(_breach(module, node.lineno, f"{name}() belongs to cli"))
        if name == "rich.console.Console" and not any(k.arg in ("file", "record") for k in node.keywords):
            breaches.append(_breach(module, node.lineno, "a Console without a file prints; that belongs to cli"))
    return breaches


def few_own_the_clock_and_processes(module: Module) -> list[str]:
    """``processes`` and ``run`` have the clock, threads and processes; others are handed what they need."""
    if module.package in ("processes", "run") or module.name in SYSTEMS_UNDER_TEST_BY_NAME | CLOCK_BY_NAME:
        return []
    breaches = []
    for line, name in imports(module):
        top = name.split(".")[0]
        if top == "signal" and module.package == "cli":  # Ctrl-C reaches the command
            continue
        if top in CLOCK_AND_PROCESSES:
            breaches.append(_breach(module, line, f"{name} belongs to processes"))
    for node, name in calls(module):
        if name.startswith("datetime.") and name.rsplit(".", 1)[-1] in MOMENTS:
            breaches.append(_breach(module, node.lineno, f"{name} belongs to processes"))
    return breaches


def only_the_store_writes(module: Module) -> list[str]:
    """``store`` alone writes into the results folder; ``cli`` may write where the user says, as ``init`` does."""
    allowed = RUNTIME_FOLDER_BY_NAME | SYSTEMS_UNDER_TEST_BY_NAME | LOGS_BY_NAME
    if module.package in ("store", "cli") or module.name in allowed:
        return []
    breaches = []
    for node, name in calls(module):
        last = name.rsplit(".", 1)[-1]
        modes = [a.value for a in (*node.args, *(k.value for k in node.keywords)) if isinstance(a, ast.Constant)]
        opens = last == "open" and any(
            isinstance(m, str) and set(m) <= set("wxabt+") and set(m) & set("wxa+") for m in modes
        )
        if opens or ("." in name and last in WRITING_CALLS):
            breaches.append(_breach(module, node.lineno, f"{name} writes; that belongs to store"))
    return breaches


def pyspark_stays_in_its_packages(module: Module) -> list[str]:
    """pyspark is imported only in ``analyze`` and ``engines/spark``."""
    if module.package == "analyze" or module.name.startswith("streamgauge.engines.spark"):
        return []
    return [
        _breach(module, line, "pyspark is for analyze and engines/spark")
        for line, name in imports(module)
        if name.split(".")[0] == "pyspark"
    ]


def nothing_unsafe(module: Module) -> list[str]:
    """No pickle, eval, exec, unsafe YAML or shell."""
    breaches = []
    for line, name in imports(module):
        if name.split(".")[0] in UNSAFE_MODULES:
            breaches.append(_breach(module, line, f"{name.split('.')[0]} runs what it reads"))
    for node, name in calls(module):
        if name in UNSAFE_CALLS:
            breaches.append(_breach(module, node.lineno, f"{name} runs what it is given"))
        for keyword in node.keywords:
            value = keyword.value.value if isinstance(keyword.value, ast.Constant) else None
            if keyword.arg in ("shell", "allow_pickle") and value is not False:
                breaches.append(_breach(module, node.lineno, f"{keyword.arg}= is never used"))
            if keyword.arg == "typ" and value == "unsafe":
                breaches.append(_breach(module, node.lineno, "YAML is read safely or not at all"))
    return breaches


def catch_all_only_outermost(module: Module) -> list[str]:
    """``except Exception`` stands where a bug becomes exit code 70, and around plug-ins and users' functions."""
    if module.name in CATCH_ALL_BY_NAME:
        return []
    wide = {"Exception", "BaseException"}
    breaches = []
    for node in ast.walk(module.tree):
        if not isinstance(node, ast.ExceptHandler):
            continue
        kinds = node.type.elts if isinstance(node.type, ast.Tuple) else [node.type]
        passes_on = isinstance(node.body[-1], ast.Raise) and node.body[-1].exc is None
        if passes_on:  # cleaning up and raising again hides nothing
            continue
        if any(kind is None or (isinstance(kind, ast.Name) and kind.id in wide) for kind in kinds):
            breaches.append(_breach(module, node.lineno, "a catch-all hides what went wrong; name the exception"))
    return breaches


def few_name_a_transport(module: Module) -> list[str]:
    """Outside ``transports/kafka`` few files name Kafka."""
    if module.name.startswith("streamgauge.transports.kafka") or module.name in KAFKA_BY_NAME:
        return []
    named = [number for number, line in enumerate(module.text.splitlines(), 1) if "kafka" in line.lower()]
    return [_breach(module, number, "Kafka is for transports/kafka") for number in named]


def _names_a_transport(node: ast.expr) -> bool:
    """Whether it is the name of a transport, or a collection with one."""
    if isinstance(node, ast.Tuple | ast.List | ast.Set):
        return any(_names_a_transport(each) for each in node.elts)
    if isinstance(node, ast.Constant):
        return node.value in TRANSPORTS
    return _is_the_constant(node)


def _is_the_constant(node: ast.expr) -> bool:
    """Whether it is the constant with the name of the default transport. It is never about anything else."""
    return dotted(node).rsplit(".", 1)[-1] == TRANSPORT_CONSTANT


def _transport_constants(module: Module) -> frozenset[str]:
    """The names of its constants that have only transports: a set, a list, a mapping from them."""
    found = set()
    for node in module.tree.body:
        if not isinstance(node, ast.Assign | ast.AnnAssign) or node.value is None:
            continue
        value: ast.expr = node.value
        if isinstance(value, ast.Call) and len(value.args) == 1:  # frozenset({…})
            value = value.args[0]
        parts = value.keys if isinstance(value, ast.Dict) else getattr(value, "elts", [])
        if parts and all(part is not None and _names_a_transport(part) for part in parts):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            found |= {dotted(target) for target in targets}
    return frozenset(found)


@cache
def _all_transport_constants() -> frozenset[str]:
    """Those of all engines: other modules import them."""
    return frozenset[str]().union(*(_transport_constants(each) for each in modules() if each.package == "engines"))


def _may_be_a_transport(node: ast.expr) -> bool:
    """Whether it is named like a transport or a name. ``metric == "queue"`` is about something else."""
    parts = dotted(node.func if isinstance(node, ast.Call) else node).lower().split(".")
    return parts[-1] == "name" or any("transport" in part for part in parts)


def no_branch_on_a_transport(module: Module) -> list[str]:
    """No comparison with the name of a transport: what differs is in the contract of transports."""
    if module.package == "transports" or module.name in OLD_STORES_BY_NAME:
        return []
    breaches = []
    constants = _transport_constants(module) | _all_transport_constants()

    def names(node: ast.expr) -> bool:
        return _names_a_transport(node) or dotted(node).rsplit(".", 1)[-1] in constants

    for node in ast.walk(module.tree):
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            named = any(map(names, sides))
            others = [each for each in sides if not names(each)]
            if any(map(_is_the_constant, sides)) or (named and any(map(_may_be_a_transport, others))):
                breaches.append(_breach(module, node.lineno, "a comparison with the name of a transport"))
        elif isinstance(node, ast.Match) and _may_be_a_transport(node.subject):
            patterns = [p for case in node.cases for p in ast.walk(case.pattern) if isinstance(p, ast.MatchValue)]
            breaches += [
                _breach(module, p.lineno, "a case for one transport") for p in patterns if _names_a_transport(p.value)
            ]
        elif isinstance(node, ast.Subscript) and _may_be_a_transport(node.value) and _names_a_transport(node.slice):
            breaches.append(_breach(module, node.lineno, "one transport is looked up by its name"))
    return breaches


def no_trait_of_a_transport_by_its_name(module: Module) -> list[str]:
    """Nothing but the contract says whether a transport has a broker: a third transport may have none either."""
    if module.package == "transports":
        return []
    breaches = [
        _breach(module, node.lineno, f"{node.name} computes a trait of a transport; read it from the trial")
        for node in ast.walk(module.tree)
        if isinstance(node, ast.FunctionDef) and "broker" in node.name and node.name.startswith(("has_", "uses_"))
    ]
    if module.name in MAKE_CHOICES_BY_NAME:
        return breaches
    return breaches + [
        _breach(module, node.lineno, "a TransportChoice without the traits of its transport; use choice_of")
        for node, name in calls(module)
        if name.rsplit(".", 1)[-1] == "TransportChoice" and (node.args or node.keywords)
    ]


def only_execute_tells_engines_apart(module: Module) -> list[str]:
    """No ``isinstance`` on kinds of engines: what differs is in their contract and their traits."""
    if module.name in TELL_ENGINES_APART_BY_NAME:
        return []
    kinds = [
        kind
        for node, name in calls(module)
        if name in ("isinstance", "issubclass") and len(node.args) == 2
        for kind in ast.walk(node.args[1])
    ]
    kinds += [node.cls for node in ast.walk(module.tree) if isinstance(node, ast.MatchClass)]
    return [
        _breach(module, kind.lineno, "kinds of engines are told apart; that belongs to run/trial/execute")
        for kind in kinds
        if isinstance(kind, ast.Name | ast.Attribute) and dotted(kind).rsplit(".", 1)[-1] in ENGINE_PROTOCOLS
    ]


def names_say_what_they_do(module: Module) -> list[str]:
    """No utils, helpers, common or manager."""
    vague = VAGUE & {word for part in module.name.split(".") for word in part.split("_")}
    return [_breach(module, 1, f"{word} says nothing of what is inside") for word in sorted(vague)]


RULES: tuple[Rule, ...] = (
    imports_go_down,
    pure_packages_are_pure,
    only_the_command_line_talks,
    few_own_the_clock_and_processes,
    only_the_store_writes,
    pyspark_stays_in_its_packages,
    nothing_unsafe,
    catch_all_only_outermost,
    few_name_a_transport,
    no_branch_on_a_transport,
    no_trait_of_a_transport_by_its_name,
    only_execute_tells_engines_apart,
    names_say_what_they_do,
)
