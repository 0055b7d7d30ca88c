"""Words that the texts of this repository do not use, because readers without history stumble over them.

The rules are in STYLE.md. Docstrings, comments and messages of the source are read, and the pages of the documentation;
not the decisions (docs/adr), the changelog, stored names, and code.
"""

import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest
from source import ROOT

REPLACEMENTS = {
    r"anew": "again",
    r"at once": "immediately, or together",
    r"of (its|their|our) own": "separate, dedicated",
    r"strangers?": "other processes",
    r"ours|theirs": "name the owner",
    r"nobody|somebody": "name the actor",
    r"believ(e|ed|es|able)|belief": "maximum reliable load, or a number",
    r"firings?": "window result",
    r"brackets?": "bounds",
    r"ceilings?": "maximum rate, maximum reliable load",
    r"flat[ -]out": "maximum rate",
    r"mend(s|ed)?|put right": "fix",
    r"hangs? on": "depend on",
    r"lanes?": "partition",
    r"shelf|shelves": "buffer",
    r"virtual time": "simulated time",
    r"reference answers?": "reference result",
}
PERSONS = {r"says?|said|tells?|told|speaks?": "state, report, return, show"}
"""Software does not speak. In tests these words are still in use."""
TEXTS = [
    *ROOT.glob("*.md"),
    *ROOT.glob("docs/**/*.md"),
    *ROOT.glob("examples/**/*.md"),
    *ROOT.glob("experiments/**/*.yaml"),
]
PAGES = sorted(
    path for path in [*TEXTS, ROOT / "Makefile"] if path.parent.name != "adr" and path.name != "CHANGELOG.md"
)
SOURCES = sorted(
    path for folder in ("src", "benches", "examples") for path in (ROOT / folder).rglob("*.py") if path.is_file()
)
TESTS = sorted(path for path in (ROOT / "tests").rglob("*.py") if path != Path(__file__))
ALLOWED = {
    "STYLE.md": ("Software does not believe, carry, ask, say or speak",),  # the rule itself
}
"""Text with such a word, by file: each with the reason why it stays."""
ROADS = re.compile(r"(^|/)(test_)?traffic\.(py|yaml)$|^experiments/vandongen/")
"""Files in which a lane is that of a road."""


def prose(path: Path) -> Iterator[tuple[int, str]]:
    """The lines of a file that people read, with their numbers, without code in backticks and in braces."""
    text = path.read_text(encoding="utf-8")
    for number, line in _python_texts(text) if path.suffix == ".py" else enumerate(text.splitlines(), start=1):
        yield number, re.sub(r"``.*?``|`[^`]*`|\{[^{}]*\}", "", line)


def _python_texts(text: str) -> Iterator[tuple[int, str]]:
    """Comments, and strings with a space: those without one are names and keys."""
    parts = {getattr(tokenize, name, tokenize.STRING) for name in ("STRING", "FSTRING_MIDDLE")}
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT or (token.type in parts and " " in token.string):
            yield from enumerate(token.string.splitlines(), start=token.start[0])


def breaches(path: Path, words: dict[str, str]) -> list[str]:
    """Every line with one of these words: its place, the word and what to write."""
    name = str(path.relative_to(ROOT))
    return [
        f"{name}:{number}: {found[0]!r}: write {instead}"
        for number, line in prose(path)
        if not any(allowed in line for allowed in ALLOWED.get(name, ()))
        for word, instead in words.items()
        if (found := re.search(rf"\b({word})\b", line, re.IGNORECASE)) and not (word == "lanes?" and ROADS.search(name))
    ]


def test_the_documentation_and_the_source_use_ordinary_words() -> None:
    found = [line for path in [*PAGES, *SOURCES] for line in breaches(path, REPLACEMENTS | PERSONS)]
    assert not found, "\n".join(["", *found])


def test_the_texts_of_tests_use_ordinary_words() -> None:
    found = [line for path in TESTS for line in breaches(path, REPLACEMENTS)]
    assert not found, "\n".join(["", *found])


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('"""Makes it anew."""', 1),
        ("x = 1  # nobody reads it", 1),
        ('raise ValueError(f"{ceiling} is the ceiling of {name}")', 1),
        ('key = "firing"', 0),
        ('"""The field ``firing`` of {firing}."""', 0),
        ("anew = strangers", 0),
    ],
)
def test_private_words_are_found_in_texts_and_not_in_names(text: str, found: int, tmp_path: Path) -> None:
    file = tmp_path / "module.py"
    file.write_text(f"{text}\n", encoding="utf-8")
    words = [word for _, line in prose(file) for word in REPLACEMENTS if re.search(rf"\b({word})\b", line)]
    assert len(words) == found
