"""A document as bytes: strict JSON, so numbers that are none (infinity, not-a-number) become null."""

import json
import math
from typing import Any

import numpy as np


def encode(document: dict[str, Any]) -> bytes:
    """One document, indented, in UTF-8, with a newline at its end."""
    text = json.dumps(_strict(document), indent=2, ensure_ascii=False, allow_nan=False)
    return (text + "\n").encode("utf-8", "backslashreplace")


def _strict(value: object) -> object:
    if isinstance(value, dict):
        return {str(key): _strict(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_strict(inner) for inner in value]
    if isinstance(value, bool) or value is None or isinstance(value, (str, int)):
        return value
    if isinstance(value, np.generic):
        return _strict(value.item())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return str(value)
