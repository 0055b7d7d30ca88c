"""The user's own functions, named like ``my_job.py:orders``."""

import ast
import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

Function = Callable[..., Any]


class NotAFunction(ValueError):
    """What was named cannot be used; the sentence says why."""


def split(named: str) -> tuple[Path, str]:
    """The file and the function of ``my_job.py:orders``."""
    file, colon, function = named.rpartition(":")
    if not colon or not file.endswith(".py") or not function.isidentifier():
        raise NotAFunction(f"{named!r} names no function: write it like my_job.py:orders")
    return Path(file), function


def problem(named: str, key: str) -> str:
    """What is wrong with the name, as far as it can be told without running the file; nothing if it is fine."""
    try:
        file, function = split(named)
    except NotAFunction as error:
        return f"{key}: {error}"
    if not file.is_file():
        return f"{key}: there is no file {file} (looked for in {Path.cwd()})"
    source = file.read_text(encoding="utf-8", errors="replace")
    try:
        tree = ast.parse(source, str(file))
    except SyntaxError as error:
        return f"{key}: {file}, line {error.lineno}: {error.msg}"
    names = {name for node in ast.walk(tree) for name in _bound(node)}
    return "" if function in names else f"{key}: {file} defines no {function}"


def _bound(node: ast.AST) -> tuple[str, ...]:
    """Names that a statement gives to something: a definition, an import, an assignment."""
    match node:
        case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
            return (name,)
        case ast.Import(names=aliases) | ast.ImportFrom(names=aliases):
            return tuple(alias.asname or alias.name for alias in aliases)
        case ast.Name(id=name, ctx=ast.Store()):
            return (name,)
        case _:
            return ()


def load(named: str) -> Function:
    """The function, from its file. The file's folder is importable while it is loaded, as if it had been run."""
    file, name = split(named)
    path = file.resolve()
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise NotAFunction(f"{file} cannot be loaded as Python")
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(path.parent))
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(path.parent))
    function = getattr(module, name, None)
    if not callable(function):
        raise NotAFunction(f"{file} has no function {name}")
    loaded: Function = function
    return loaded
