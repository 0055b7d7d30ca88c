"""Journals can be read while they grow, after a crash, and when they are whole."""

from pathlib import Path

import pyarrow as pa

from streamgauge.store.journal import GROWING, WHOLE, Journal, NumberedParts, read_parts, read_rows

SCHEMA = pa.schema([("n", pa.int64()), ("role", pa.string())])


def test_rows_are_seen_as_soon_as_they_are_appended_and_stay_when_it_is_closed(tmp_path: Path) -> None:
    with Journal(tmp_path / "j", SCHEMA) as journal:
        assert read_rows(tmp_path / "j").num_rows == 0
        for n in range(3):
            journal.append({"n": [n, n], "role": ["a", "b"]})
            assert read_rows(tmp_path / "j")["n"].to_pylist() == sorted([*range(n + 1)] * 2)
    assert [f.name for f in tmp_path.iterdir()] == [f"j{WHOLE}"]
    assert read_rows(tmp_path / "j")["role"].to_pylist() == ["a", "b"] * 3


def test_what_a_crash_tore_off_is_omitted_wherever_it_tore(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "j", SCHEMA)
    file = (tmp_path / "j").with_suffix(GROWING)
    ends = []
    for n in range(3):
        journal.append({"n": [n], "role": ["x"]})
        ends.append(file.stat().st_size)
    whole = file.read_bytes()
    for size in range(len(whole) + 1):
        (tmp_path / "torn").with_suffix(GROWING).write_bytes(whole[:size])
        seen = read_rows(tmp_path / "torn")
        wanted = sum(end <= size for end in ends)
        assert seen.num_rows == wanted, f"{size} of {len(whole)} bytes"


def test_parts_are_read_in_their_order(tmp_path: Path) -> None:
    assert read_parts(tmp_path) is None
    parts = NumberedParts(tmp_path / "p")
    for n in range(12):
        parts.write(pa.table({"n": [n]}))
    table = read_parts(tmp_path / "p")
    assert table is not None
    assert table["n"].to_pylist() == [*range(12)]
