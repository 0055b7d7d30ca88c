"""Every public function and method of the package is used in the package, and not only by its tests."""

import ast
from collections.abc import Iterator, Sequence

import pytest
from source import Module, dotted, full_names, modules, read

CALLED_BY_OTHERS = {
    "streamgauge.cli.output_streams.SturdyOutput": "Python calls the methods of a stream",
    "streamgauge.engines.spark.connect.positions.ProgressListener": "Spark calls the methods of a listener",
    "streamgauge.engines.spark.connect.queue.QueueStreamReader": "Spark calls the methods of a source",
    "streamgauge.engines.toolkit": "engines of other packages use it",
    "streamgauge.engines.toolkit_kafka": "engines of other packages use it",
    "streamgauge.model.seconds.merge": "the load drivers of several machines will need it",
    "streamgauge.processes.child._NoPandas": "Python's import calls it",
    "streamgauge.store.runs.Run.growing": "a dashboard will read a trial while it grows",
    "streamgauge.transports.queue.server.AuthenticatedCall": "Arrow Flight calls the methods of a middleware",
    "streamgauge.transports.queue.server.TokenAuth": "Arrow Flight calls the methods of a middleware",
}
"""Modules, classes and functions that code outside the package calls, and why they are there."""


def _definitions(module: Module) -> Iterator[tuple[str, ast.FunctionDef, bool]]:
    """Public functions and methods: the full name of each, and whether it is a method."""
    for node in module.tree.body:
        if isinstance(node, ast.FunctionDef):
            yield f"{module.name}.{node.name}", node, False
        elif isinstance(node, ast.ClassDef):
            for method in node.body:
                if isinstance(method, ast.FunctionDef):
                    yield f"{module.name}.{node.name}.{method.name}", method, True


def _attributes(module: Module) -> set[str]:
    """Every attribute that the module uses: a method may be called by any of them."""
    return {node.attr for node in ast.walk(module.tree) if isinstance(node, ast.Attribute)}


def _named(module: Module) -> set[str]:
    """The functions that its texts name, as in ``streamgauge.engines.spark:spark``."""
    texts = (node.value for node in ast.walk(module.tree) if isinstance(node, ast.Constant))
    return {text.rpartition(":")[2] for text in texts if isinstance(text, str) and ":" in text}


def _functions_used(module: Module, exported: dict[str, str]) -> set[str]:
    """The full names of the functions that a module uses. To import one in order to export it is no use."""
    known, found = full_names(module), set()
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Name | ast.Attribute):
            first, _, rest = dotted(node).partition(".")
            full = known.get(first, f"{module.name}.{first}")
            full = f"{full}.{rest}" if rest else full
            found |= {full, exported.get(full, full)}
    return found


def _exported(found: Sequence[Module]) -> dict[str, str]:
    """``streamgauge.store.Run`` → ``streamgauge.store.runs.Run``."""
    return {
        f"{module.name}.{name}": full
        for module in found
        for name, full in full_names(module).items()
        if full.startswith(f"{module.name}.")
    }


def unused(found: Sequence[Module]) -> list[str]:
    """The full names of public functions and methods that nothing in these modules uses."""
    attributes, named = {a for each in found for a in _attributes(each)}, {n for each in found for n in _named(each)}
    exported = _exported(found)
    functions = {full for module in found for full in _functions_used(module, exported)}
    breaches = []
    for module in found:
        for full, node, method in _definitions(module):
            registers_itself = node.decorator_list and not method  # as a command does
            used = node.name in attributes if method else full in functions or node.name in named
            if not (node.name.startswith("_") or registers_itself or used):
                breaches.append(full)
    return breaches


def _is_excepted(full: str) -> bool:
    is_command = full.startswith("streamgauge.cli.commands.") and full.endswith(".command")  # found by its module
    return is_command or any(full == name or full.startswith(f"{name}.") for name in CALLED_BY_OTHERS)


def test_every_public_function_is_used_in_the_package() -> None:
    assert [full for full in unused(modules()) if not _is_excepted(full)] == []


@pytest.mark.parametrize("name", CALLED_BY_OTHERS)
def test_every_exception_is_about_a_function_that_nothing_in_the_package_uses(name: str) -> None:
    assert any(full == name or full.startswith(f"{name}.") for full in unused(modules()))


def test_a_function_that_only_tests_use_is_found() -> None:
    package = read("streamgauge.judge", "from streamgauge.judge.a import f, g\n")
    module = read("streamgauge.judge.a", "def f(): ...\ndef g(): ...\nclass C:\n    def m(self): ...\n")
    user = read("streamgauge.run.b", "from streamgauge.judge import f\nf()\n")
    assert unused((package, module)) == ["streamgauge.judge.a.f", "streamgauge.judge.a.g", "streamgauge.judge.a.C.m"]
    assert unused((package, module, user)) == ["streamgauge.judge.a.g", "streamgauge.judge.a.C.m"]
    called = read("streamgauge.run.c", "from streamgauge.judge import a\na.g()\nx.m()\n")
    assert unused((package, module, user, called)) == []
