"""Values ↔ JSON documents with their format and their own digest.

A document is ``{"format": 2, "kind": "trial", "sha256": …, "content": …}``. The digest is taken over the
content, so a flipped bit is an error and never a wrong number. The JSON is strict, for every other reader
of it: what JSON cannot contain (nan, inf) is written as ``{"$float": "nan"}`` and comes back as it was.
"""

import dataclasses
import hashlib
import json
import math
from collections.abc import Callable, Hashable, Mapping
from datetime import datetime
from enum import Enum
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

import numpy as np
from pydantic import TypeAdapter, ValidationError

from streamgauge.model.experiment import QUEUE
from streamgauge.model.facts import TrialFacts
from streamgauge.store.durable import NewerFormat, StoreError, as_store_error
from streamgauge.store.facts import facts_to_json

FORMAT = 2
"""The format that is written."""

CHANGED = {
    2: "the lag behind the plan, the queue of events not yet read, send delays, and the second in which outputs were "
    "due"
}
"""What a format records that those before it do not."""

Reader = Callable[[str, Any], Any]
"""Takes the kind and the content of a document, gives the content in the shape of today."""


_TRANSPORT_IN: dict[str, tuple[str, ...]] = {
    "trial": ("trial", "transport"),
    "spec": ("transport",),
    "experiment": ("transport",),
}
"""Where documents have the transport of a trial."""


def _read_2(kind: str, content: Any) -> Any:  # noqa: ANN401
    """Earlier documents do not have the traits of their transport, which followed from its name."""
    if kind == "calibration" and isinstance(content, dict) and "broker" not in content:
        return content | {"broker": content.get("transport", QUEUE) != QUEUE}
    holder = content if kind in _TRANSPORT_IN else None
    for key in _TRANSPORT_IN.get(kind, ()):
        holder = holder.get(key) if isinstance(holder, dict) else None
    if isinstance(holder, dict) and "broker" not in holder:
        broker = holder.get("name", QUEUE) != QUEUE
        holder.update(broker=broker, exact_offsets=not broker)
    if kind == "trial" and isinstance(content, dict):
        _add_unchecked_job(content)
    return content


def _add_unchecked_job(content: dict[str, Any]) -> None:
    """In earlier trials, only the options show that the outputs of a user's function were not checked."""
    trial, facts = content.get("trial"), content.get("facts")
    options = trial.get("options") if isinstance(trial, dict) else None
    if not isinstance(options, dict) or not isinstance(facts, dict):
        return
    if options.get("pipeline") and not options.get("reference"):
        facts.setdefault("unchecked_job", True)


def _read_1(kind: str, content: Any) -> Any:  # noqa: ANN401
    """The columns of a trial had other meanings: this is reported, and it is shown as it was judged."""
    content = _read_2(kind, content)
    return content | {"format": 1} if kind == "trial" and isinstance(content, dict) else content


READERS: dict[int, Reader] = {1: _read_1, 2: _read_2}


def lacks(version: int) -> str:
    """What a trial of this format did not record; nothing if it is of today's format."""
    return "; ".join(what for since, what in CHANGED.items() if since > version)


def reader(version: object, path: Path) -> Reader:
    """The reader of a format version."""
    if isinstance(version, bool) or not isinstance(version, int):
        raise StoreError(f"{path} is damaged: its format is {version!r:.40}, not a number")
    if version > FORMAT:
        raise NewerFormat(
            f"{path} was written by a newer streamgauge (format {version}); "
            f"upgrade streamgauge to read it, this one reads formats up to {FORMAT}"
        )
    found = READERS.get(version)
    if found is None:
        raise StoreError(f"{path} is damaged: format {version} does not exist")
    return found


T = TypeVar("T")
_FLOAT = "$float"
_ODD = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}


def to_json(value: object) -> Any:  # noqa: ANN401 - JSON is any of these
    """A value of the model as what JSON supports: objects, lists, strings, numbers, null."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, Enum):
        value = value.value
    if value is None or isinstance(value, str | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {_FLOAT: str(value)}
    return _structure_to_json(value)


def _structure_to_json(value: object) -> Any:  # noqa: ANN401
    if isinstance(value, TrialFacts):
        return to_json(facts_to_json(value))
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: to_json(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {_key(key): to_json(held) for key, held in value.items()}
    if isinstance(value, list | tuple):
        return [to_json(held) for held in value]
    if isinstance(value, datetime):
        return value.isoformat()
    raise TypeError(f"a {type(value).__name__} has no place in a stored document: {value!r:.80}")


def _key(key: object) -> str:
    if not isinstance(key, str):
        raise TypeError(f"the keys of a stored document are strings, not {key!r:.80}")
    return str(key)


def from_json(value: Any) -> Any:  # noqa: ANN401
    """A value of JSON with the numbers that ``to_json`` wrote as objects."""
    if isinstance(value, list):
        return [from_json(held) for held in value]
    if isinstance(value, dict):
        odd = value.get(_FLOAT) if len(value) == 1 else None
        if isinstance(odd, str) and odd in _ODD:
            return _ODD[odd]
        return {key: from_json(held) for key, held in value.items()}
    return value


def _digest(content: Any) -> str:  # noqa: ANN401
    canonical = json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(canonical.encode("ascii")).hexdigest()


def encode(kind: str, value: object) -> bytes:
    """The document of a value, ready to be written."""
    content = to_json(value)
    document = {"format": FORMAT, "kind": kind, "sha256": _digest(content), "content": content}
    return json.dumps(document, indent=1, allow_nan=False).encode("ascii") + b"\n"


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


def _parsed(path: Path, data: bytes) -> dict[str, Any]:
    try:
        document = json.loads(data.decode("utf-8"), parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise StoreError(f"{path} is damaged: {error}") from error
    if not isinstance(document, dict) or not {"format", "kind", "sha256", "content"} <= set(document):
        raise StoreError(f"{path} is damaged: it is not a document of streamgauge")
    return document


def read_content(path: Path, kind: str) -> Any:  # noqa: ANN401
    """The content of a document of any known format, in the shape of today's."""
    with as_store_error("read", path):
        data = path.read_bytes()
    return decode(data, path, kind)


def decode(data: bytes, path: Path, kind: str) -> Any:  # noqa: ANN401
    """The same from its bytes; ``path`` is where they come from, for the sentence if they are damaged."""
    document = _parsed(path, data)
    read = reader(document["format"], path)
    if document["kind"] != kind:
        raise StoreError(f"{path} is damaged: it should be a document of kind {kind!r}, not {document['kind']!r}")
    try:
        digest = _digest(document["content"])
    except (ValueError, RecursionError) as error:
        raise StoreError(f"{path} is damaged: {error}") from error
    if document["sha256"] != digest:
        raise StoreError(f"{path} is damaged: its content does not match its digest")
    return read(kind, from_json(document["content"]))


@cache
def _adapter(kind: Hashable) -> TypeAdapter[Any]:
    return TypeAdapter(cast(Any, kind))


def read_value(path: Path, kind: str, into: type[T]) -> T:
    """A document as the value that was written."""
    content = read_content(path, kind)
    try:
        value: T = _adapter(cast(Hashable, into)).validate_python(content)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise StoreError(f"{path} cannot be read: {where}: {first['msg']}") from error
    return value
