"""The page on the path through the code lists calls that exist, and the path stays short."""

import ast
import re

from source import ROOT

PAGE = ROOT / "docs" / "concepts" / "code-path.md"
SOURCE = ROOT / "src" / "streamgauge"
MAX_CALLS = 18
ROW = re.compile(r"^\| \d+ \| `([\w/.]+)` \| `([\w/.]+)` `(\w+)` \|", re.MULTILINE)


def path() -> list[tuple[str, str, str]]:
    """From which file each call goes into which file, and to which function."""
    return ROW.findall(PAGE.read_text(encoding="utf-8"))


def names(file: str) -> set[str]:
    """All names and attributes that a file uses."""
    nodes = ast.walk(ast.parse((SOURCE / file).read_text(encoding="utf-8")))
    return {n.id if isinstance(n, ast.Name) else n.attr for n in nodes if isinstance(n, ast.Name | ast.Attribute)}


def defined(file: str) -> set[str]:
    """The functions and methods of a file."""
    nodes = ast.walk(ast.parse((SOURCE / file).read_text(encoding="utf-8")))
    return {node.name for node in nodes if isinstance(node, ast.FunctionDef)}


def test_the_path_from_the_command_to_the_verdict_is_short() -> None:
    assert 15 <= len(path()) <= MAX_CALLS


def test_every_call_of_the_path_exists() -> None:
    calls = path()
    assert calls[0][0] == "cli/main.py"
    assert calls[-1][1:] == ("judge/decide.py", "decide")
    for caller, callee, function in calls:
        assert function in defined(callee), f"{callee} has no {function}"
        # main registers the commands and calls them through the parser of the command line
        used = names(caller) if caller != "cli/main.py" else {"command"}
        assert function in used, f"{caller} does not call {function}"


def test_the_path_begins_where_the_one_before_has_led() -> None:
    reached = {"cli/main.py"}
    for caller, callee, _ in path():
        assert caller in reached, f"nothing on the path leads to {caller}"
        reached.add(callee)
