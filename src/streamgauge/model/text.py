"""Makes text from outside (names of folders, descriptions, logs) safe to print."""

import re

DIRECTION = "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
"""Characters that change the direction of the text after them, as they are written in a character class."""
_CONTROL = re.compile(f"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff{DIRECTION}]")
_DIRECTED = re.compile(f"[{DIRECTION}]")


def printable(text: str) -> str:
    r"""The text with each character escaped, as in ``\x1b``, that would control a terminal.

    Newlines and tabs stay. Without this, the name of a folder could move the cursor, set the title of the window or
    reverse the line after it.
    """
    return _CONTROL.sub(lambda found: ascii(found[0])[1:-1], text)


def escaped_in_json(text: str) -> str:
    r"""JSON text with the same characters escaped as JSON requires, as in ``\u001b``."""
    return _CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def on_one_line(text: str) -> str:
    r"""Printable text with newlines and tabs escaped too, for names in a list."""
    return printable(text).replace("\n", "\\n").replace("\t", "\\t")


def directed(text: str) -> bool:
    """Whether the text changes the direction of the text after it."""
    return _DIRECTED.search(text) is not None
