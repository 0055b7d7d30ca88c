"""The built-in experiments. No other module of this package reads files."""

from importlib.resources import files
from importlib.resources.abc import Traversable

from streamgauge.parse.problems import Problems
from streamgauge.parse.yaml_tree import Leaf, Table, compose


def _root() -> Traversable:
    package = files("streamgauge")
    inside = package.joinpath("experiments")
    # in an editable install they are in experiments/ beside src/
    return inside if inside.is_dir() else package.joinpath("..", "..", "experiments")


def _found(folder: Traversable, prefix: str = "") -> dict[str, Traversable]:
    found: dict[str, Traversable] = {}
    for item in folder.iterdir():
        if item.is_dir():
            found |= _found(item, f"{prefix}{item.name}/")
        elif item.name.endswith(".yaml"):
            found[prefix + item.name.removesuffix(".yaml")] = item
    return found


def shipped_names() -> tuple[str, ...]:
    """Names of the built-in experiments, such as ``quickstart``."""
    root = _root()
    return tuple(sorted(_found(root))) if root.is_dir() else ()


def shipped_text(name: str) -> str:
    """The text of a built-in experiment; raises KeyError if there is none with this name."""
    root = _root()
    return (_found(root) if root.is_dir() else {})[name].read_text("utf-8")


def shipped_description(name: str) -> str:
    """The description of a built-in experiment. The experiment is not validated."""
    root = compose(shipped_text(name), name, Problems())
    entry = root.entries.get("description") if isinstance(root, Table) else None
    return str(entry.node.value) if entry is not None and isinstance(entry.node, Leaf) else ""
