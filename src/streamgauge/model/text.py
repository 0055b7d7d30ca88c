"""Text from outside (names of folders, descriptions, logs), made safe to print. Pure."""

import re

DIRECTION = "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
"""Characters that change the direction of the text after them, as the inside of a regular expression's class."""
_OBEYED = re.compile(f"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff{DIRECTION}]")
_DIRECTED = re.compile(f"[{DIRECTION}]")


def printable(text: str) -> str:
    r"""The text with each character escaped, as in ``\x1b``, that a terminal would obey instead of showing it.

    Newlines and tabs stay. Without this, the name of a folder could move the cursor, set the title of the window or
    reverse the line after it.
    """
    return _OBEYED.sub(lambda found: ascii(found[0])[1:-1], text)


def escaped_in_json(text: str) -> str:
    r"""JSON text with the same characters escaped, which JSON allows inside strings only as ``\u001b``."""
    return _OBEYED.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def on_one_line(text: str) -> str:
    r"""The same, with newlines escaped too: for names, which are one line of a list."""
    return printable(text).replace("\n", "\\n").replace("\t", "\\t")


def directed(text: str) -> bool:
    """Whether the text changes the direction of what is written after it."""
    return _DIRECTED.search(text) is not None
