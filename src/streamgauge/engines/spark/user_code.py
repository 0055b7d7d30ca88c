"""The user's own functions, named like ``my_job.py:orders``."""

import ast
import functools
import importlib.util
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

from streamgauge.engines.contract import UserCodeFailed

Function = Callable[..., Any]
_LINES = 30


class FunctionNotFound(ValueError):
    """The named function cannot be used; the message gives the reason."""


def parse_name(named: str) -> tuple[Path, str]:
    """The file and the function of ``my_job.py:orders``."""
    file, colon, function = named.rpartition(":")
    if not colon or not file.endswith(".py") or not function.isidentifier():
        raise FunctionNotFound(f"{named!r} is not a function; write it like my_job.py:orders")
    return Path(file), function


def find_problem(named: str, key: str) -> str:
    """What is wrong with the name, as far as it can be found without running the file; nothing if it is fine."""
    try:
        file, function = parse_name(named)
    except FunctionNotFound as error:
        return f"{key}: {error}"
    if not file.is_file():
        return f"{key}: there is no file {file} (searched in {Path.cwd()})"
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


def load_function(named: str) -> Function:
    """The function, from its file. The file's folder is importable while it is loaded and while the function runs, as
    if the file had been run.

    The module is registered under its name like any imported one: dataclasses and type hints look it up there. A file
    that is named like a module that is loaded already, such as ``json.py``, gets another name.
    """
    file, name = parse_name(named)
    path = file.resolve()
    module = _module(path)
    with importable(path.parent):
        spec = module.__spec__
        assert spec is not None
        assert spec.loader is not None
        sys.modules[module.__name__] = module
        try:
            spec.loader.exec_module(module)
        except BaseException:
            del sys.modules[module.__name__]
            raise
    function = getattr(module, name, None)
    if not callable(function):
        raise FunctionNotFound(f"{file} has no function {name}")
    return _with_folder(function, path.parent)


def _module(path: Path) -> ModuleType:
    """A new module for a file, not run yet."""
    taken = sys.modules.get(path.stem)
    other = taken is not None and getattr(taken, "__file__", None) != str(path)
    spec = importlib.util.spec_from_file_location(f"streamgauge_own_{path.stem}" if other else path.stem, path)
    if spec is None or spec.loader is None:
        raise FunctionNotFound(f"{path} cannot be loaded as Python")
    return importlib.util.module_from_spec(spec)


def module_of(named: str) -> ModuleType:
    """The module of a file that was loaded."""
    path = str(parse_name(named)[0].resolve())
    return next(module for module in [*sys.modules.values()] if getattr(module, "__file__", None) == path)


@contextmanager
def importable(folder: Path) -> Iterator[None]:
    """Modules of this folder can be imported meanwhile, before all others."""
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        sys.path.remove(str(folder))


def _with_folder(function: Function, folder: Path) -> Function:
    @functools.wraps(function)
    def called(*arguments: Any) -> Any:  # noqa: ANN401 - whatever the user's function takes and returns
        with importable(folder):
            return function(*arguments)

    return called


def load_reference(named: str) -> Function:
    """The user's reference; whatever its file does while it is loaded, the error is the user's."""
    try:
        return load_function(named)
    # The user's code may fail in any way, also by sys.exit.
    except (Exception, SystemExit) as error:
        file, _ = parse_name(named)
        trace = "".join(traceback.format_exception(error)).splitlines()
        lines = [
            entry.lineno
            for entry in traceback.extract_tb(error.__traceback__)
            if Path(entry.filename) == file.resolve()
        ]
        where = f" at {file}:{lines[-1]}" if lines else ""
        sentence = f"your reference {named} cannot be loaded: {type(error).__name__}{where}: {error}"
        raise UserCodeFailed(sentence, trace[-_LINES:]) from error
