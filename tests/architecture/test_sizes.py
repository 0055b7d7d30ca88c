"""Sizes are a report; only a size that is too long to read fails."""

import ast

import pytest
from source import Module, modules, read

FILE_AIM, FILE_CAP = 300, 450
FUNCTION_AIM, FUNCTION_CAP = 40, 80


def sizes(module: Module) -> list[tuple[int, int, int, str]]:
    """(lines, aim, cap, name) of the file and of each function in it. A docstring does not count."""
    found = [(len(module.text.splitlines()), FILE_AIM, FILE_CAP, module.name)]
    for node in ast.walk(module.tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            lines -= len((ast.get_docstring(node, clean=False) or "").splitlines())
            found.append((lines, FUNCTION_AIM, FUNCTION_CAP, f"{module.name}.{node.name}"))
    return found


def test_files_and_functions_can_be_read_in_one_go(capsys: pytest.CaptureFixture[str]) -> None:
    every = [size for module in modules() for size in sizes(module)]
    long = sorted((size for size in every if size[0] > size[1]), reverse=True)
    with capsys.disabled():
        for lines, aim, _, name in long:
            print(f"\n  long: {name} has {lines} lines, the aim is {aim}", end="")
    assert [f"{name}: {lines} lines, at most {cap}" for lines, _, cap, name in long if lines > cap] == []


def test_a_function_that_is_too_long_is_seen() -> None:
    body = "\n".join("    x = 1" for _ in range(FUNCTION_CAP))
    [_, (lines, _, cap, name)] = sizes(read("streamgauge.run.trial.execute", f"def everything():\n{body}"))
    assert (name, lines > cap) == ("streamgauge.run.trial.execute.everything", True)
