"""Titles of results: what users read for the stored name of a series."""

import pytest

from streamgauge.model.finding import title_text


@pytest.mark.parametrize(
    ("title", "shown"),
    [
        ("", ""),
        ("load=200000", "load 200k/s"),
        ("load=1.6e+06", "load 1.6M/s"),
        ("instances=1", "1 instance"),
        ("instances=4", "4 instances"),
        ("load=50000, instances=4", "load 50k/s, 4 instances"),
        ("fast · load=50000", "fast · load 50k/s"),
        ("fast", "fast"),
        ("load 50k/s", "load 50k/s"),
    ],
)
def test_a_title_has_words_and_units(title: str, shown: str) -> None:
    assert title_text(title) == shown


def test_a_title_omits_the_series_that_the_sentence_names() -> None:
    sentence = "load 200k/s needs 2 instances (1 fails)"
    assert title_text("load=200000", sentence) == ""
    assert title_text("fast · load=200000", sentence) == "fast"
    assert title_text("load=400000", sentence) == "load 400k/s"
