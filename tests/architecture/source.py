"""Reads the source of streamgauge as syntax, for the rules of the architecture."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "streamgauge"


@dataclass(frozen=True)
class Module:
    """One file: its dotted name (``streamgauge.judge.decide``), its text and its syntax tree."""

    name: str
    text: str
    tree: ast.Module

    @property
    def package(self) -> str:
        """The package below streamgauge that it lives in. ``__main__`` belongs to the command line."""
        parts = self.name.split(".")
        package = parts[1] if len(parts) > 1 else ""
        return "cli" if package == "__main__" else package


def read(name: str, text: str) -> Module:
    """A module from its text; tests of the rules make bad ones this way."""
    return Module(name, text, ast.parse(text))


@cache
def modules() -> tuple[Module, ...]:
    """Every module of the package as it is on disk."""
    found = []
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        found.append(read(name, path.read_text(encoding="utf-8")))
    return tuple(found)


def imports(module: Module) -> Iterator[tuple[int, str]]:
    """Line and full dotted name of everything imported, also inside functions; relative ones resolved."""
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom):
            package = ".".join(module.name.split(".")[: -node.level]) if node.level else ""
            base = ".".join(part for part in (package, node.module) if part)
            for alias in node.names:
                yield node.lineno, f"{base}.{alias.name}"


def dotted(node: ast.AST) -> str:
    """``a.b.c`` for a name or a chain of attributes; what it belongs to becomes ``?``."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return f"{dotted(node.value)}.{node.attr}"
    return "?"


def full_names(module: Module) -> dict[str, str]:
    """Local name → what it was imported as: ``np`` → ``numpy``, ``now`` → ``time.time``."""
    names = {}
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                names[alias.asname or alias.name.split(".")[0]] = (
                    alias.name if alias.asname else alias.name.split(".")[0]
                )
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                names[alias.asname or alias.name] = f"{node.module}.{alias.name}"
    return names


def mentions(module: Module) -> Iterator[tuple[int, str]]:
    """Line and full dotted name of every name or attribute chain that is used."""
    known = full_names(module)
    for node in ast.walk(module.tree):
        if isinstance(node, (ast.Name, ast.Attribute)):
            first, _, rest = dotted(node).partition(".")
            full = known.get(first, first)
            yield node.lineno, f"{full}.{rest}" if rest else full


def calls(module: Module) -> Iterator[tuple[ast.Call, str]]:
    """Every call, with the full dotted name of what is called."""
    known = full_names(module)
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Call):
            first, _, rest = dotted(node.func).partition(".")
            full = known.get(first, first)
            yield node, f"{full}.{rest}" if rest else full
