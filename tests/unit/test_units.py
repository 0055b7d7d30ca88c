"""Quantities as people write them."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamgauge.model.units import (
    SECOND,
    UnitError,
    duration_text,
    format_count,
    format_duration,
    format_rate,
    format_share,
    format_size,
    parse_count,
    parse_duration,
    parse_rate,
    parse_share,
    parse_size,
    share_text,
)
from streamgauge.parse.fields import write_quantity


@pytest.mark.parametrize(
    ("text", "nanos"),
    [
        ("8s", 8 * SECOND),
        ("250ms", 250_000_000),
        ("1.5m", 90 * SECOND),
        ("1h", 3600 * SECOND),
        ("3d", 3 * 86_400 * SECOND),
        ("8000000001ns", 8_000_000_001),
        ("10 us", 10_000),
        ("10µs", 10_000),
        ("0s", 0),
        ("0.1s", 100_000_000),
    ],
)
def test_a_duration_is_whole_nanoseconds(text: str, nanos: int) -> None:
    assert parse_duration(text) == nanos


@pytest.mark.parametrize(
    ("text", "rate"),
    [("50k/s", 5e4), ("1.2M/s", 1.2e6), ("730000/s", 7.3e5), ("30/min", 0.5), ("1_000/s", 1e3), ("1e-5/s", 1e-5)],
)
def test_a_rate_is_events_per_second(text: str, rate: float) -> None:
    assert parse_rate(text) == rate


def test_counts_sizes_and_shares_are_read_exactly() -> None:
    assert (parse_count("1.5M"), parse_count(100), parse_count("50k")) == (1_500_000, 100, 50_000)
    assert (parse_size("2GiB"), parse_size("512MB")) == (2 * 2**30, 512 * 10**6)
    assert (parse_share("25%"), parse_share(0.25), parse_share(0.00001)) == (0.25, 0.25, 1e-5)


@pytest.mark.parametrize(
    "text", [8, "8", 8.0, "", "s", "-8s", "8 seconds", "nan", "inf", None, True, [8], "9" * 41 + "s"]
)
def test_what_is_not_a_duration_is_refused(text: object) -> None:
    with pytest.raises(UnitError):
        parse_duration(text)


@pytest.mark.parametrize("text", ["5M", 5, "5/day", "k/s", "1e999/s", "5M/s/s", ".nan", True])
def test_what_is_not_a_rate_is_refused(text: object) -> None:
    with pytest.raises(UnitError):
        parse_rate(text)


@pytest.mark.parametrize("text", ["1.5", "0.0001k", "5M/s", "many", -1, "1e30"])
def test_what_is_not_a_count_is_refused(text: object) -> None:
    with pytest.raises(UnitError):
        parse_count(text)


def test_quantities_are_short_for_people() -> None:
    assert (format_rate(730_000), format_count(1_200_000), format_count(999_999.99)) == ("730k/s", "1.2M", "1M")
    texts = [duration_text(n * SECOND) for n in (8, 0.25, 90, 3600, 5000, 0)]
    assert texts == ["8 s", "250 ms", "1 min 30 s", "1 h", "1 h 23 min 20 s", "0 s"]
    assert [duration_text(n) for n in (5, 2_500, 1_500_000)] == ["5 ns", "2.5 us", "1.5 ms"]
    assert (share_text(0.025), share_text(-0.1), share_text(float("inf"))) == ("2.5 %", "-10 %", "–")
    assert [format_duration(n * SECOND) for n in (8, 0.25, 90, 3600, 0)] == ["8s", "250ms", "1m 30s", "1h", "0s"]
    assert (format_size(2 * 2**30), format_share(0.025)) == ("2GiB", "2.5%")
    assert (format_rate(float("nan")), format_share(float("inf"))) == ("–/s", "–")


@settings(deadline=None)
@given(st.integers(0, 10**18))
def test_a_spelled_duration_reads_back_exactly(nanos: int) -> None:
    assert parse_duration(write_quantity(nanos, "duration")) == nanos


@settings(deadline=None)
@given(st.floats(0, 1e18, allow_subnormal=False))
def test_a_spelled_rate_reads_back_exactly(rate: float) -> None:
    assert parse_rate(write_quantity(rate, "rate")) == rate


@settings(deadline=None)
@given(st.floats(0, 1, allow_subnormal=False))
def test_a_spelled_share_reads_back_exactly(share: float) -> None:
    assert parse_share(write_quantity(share, "share")) == share


@settings(deadline=None)
@given(st.integers(0, 10**15))
def test_a_spelled_count_or_size_reads_back_exactly(amount: int) -> None:
    assert parse_count(write_quantity(amount, "count")) == amount
    assert parse_size(write_quantity(amount, "size")) == amount
