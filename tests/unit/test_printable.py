"""Text from outside is shown, never obeyed: by a terminal, by a page, in a document."""

import json
import unicodedata

import pytest

from streamgauge.model.text import on_one_line, printable
from streamgauge.report.render.html.markup import element
from streamgauge.report.render.json import encode

BIDI = [chr(code) for code in (0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\x1b[31mred\x1b[0m", r"a\x1b[31mred\x1b[0m"),
        ("\x1b]0;title\x07", r"\x1b]0;title\x07"),
        ("over\rwritten\x08", r"over\rwritten\x08"),
        ("\x9b31m", r"\x9b31m"),
        ("abc\u202edef", r"abc\u202edef"),
        ("name\udcff", r"name\udcff"),
        ("two\nlines\tand – ünïcode 漢字 🎉", "two\nlines\tand – ünïcode 漢字 🎉"),
    ],
)
def test_control_characters_are_shown_as_escapes(text: str, shown: str) -> None:
    assert printable(text) == shown


def test_no_character_that_a_terminal_obeys_is_left() -> None:
    for code in range(0x3000):
        character = chr(code)
        if unicodedata.category(character) == "Cc" and character not in "\n\t":
            assert character not in printable(f"a{character}b")
    assert all(character not in printable(f"a{character}b") for character in BIDI)


def test_a_name_stays_on_one_line() -> None:
    assert on_one_line("a\nb\x1bc") == r"a\nb\x1bc"


@pytest.mark.parametrize("character", BIDI)
def test_a_change_of_direction_ends_with_its_text_in_the_report(character: str) -> None:
    text = f"abc{character}def"
    assert element("p", text, " after").text == f"<p><bdi>{text}</bdi> after</p>"
    escape = f"\\u{ord(character):04x}"
    for verbatim in ("pre", "code", "title"):
        assert element(verbatim, text).text == f"<{verbatim}>abc{escape}def</{verbatim}>"
    assert element("p", title=text).text == f'<p title="abc{escape}def"></p>'


def test_other_text_of_the_report_is_as_it_was() -> None:
    assert element("p", "عربى ✓ <b>").text == "<p>عربى ✓ &lt;b&gt;</p>"


def test_a_document_depends_on_no_terminal_and_contains_everything() -> None:
    text = "".join(map(chr, range(1, 0xA0))) + "".join(BIDI) + "é漢"
    written = encode({"text": text})
    assert json.loads(written) == {"text": text}
    assert printable(written.decode()) == written.decode()
