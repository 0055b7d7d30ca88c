"""A document as bytes: strict JSON, so numbers that are none (infinity, not-a-number) become null."""

import json
import math
from typing import Any

from streamgauge.model.text import escaped_in_json

FORMAT = 1
"""Version of every document. Keys are added within a version, never renamed or removed."""


def document(exit_code: int, **content: object) -> dict[str, Any]:
    """A document of any verb: its version and exit code first."""
    return {"format": FORMAT, "exit_code": int(exit_code), **content}


def encode(document: dict[str, Any]) -> bytes:
    """One document, indented, in UTF-8, with a newline at its end. Control characters are escaped."""
    text = json.dumps(_strict(document), indent=2, ensure_ascii=False, allow_nan=False)
    return (escaped_in_json(text) + "\n").encode("utf-8")


def _strict(value: object) -> object:
    if isinstance(value, dict):
        return {str(key): _strict(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_strict(inner) for inner in value]
    if isinstance(value, bool) or value is None or isinstance(value, (str, int)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    item = getattr(value, "item", None)  # a number of numpy, which is not imported for this
    return _strict(item()) if callable(item) else str(value)
