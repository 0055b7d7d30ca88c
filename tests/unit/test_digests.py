"""Digests of texts: equal for equal texts, different for different ones, however the texts are stored."""

import numpy as np
import pyarrow as pa

from streamgauge.judge.compare_columns import columns_of
from streamgauge.stats.digests import digests


def of_texts(texts: list[str | None]) -> list[int | None]:
    found = columns_of(pa.table({"text": pa.array(texts, pa.string())}), ["text"], ["text"])["text"]
    return list(np.ma.array(found).tolist())


def test_equal_texts_have_equal_digests_and_all_others_differ() -> None:
    texts = ["", "\0", "\0\0", "a", "a\0", "ab", "ba", "12345678", "123456789", "x" * 190, "x" * 189 + "y", "é"]
    found = of_texts([*texts, *texts])
    assert found[: len(texts)] == found[len(texts) :]
    assert len(set(found)) == len(texts)


def test_texts_of_one_width_have_the_digests_of_the_same_texts_in_arrow() -> None:
    rng = np.random.default_rng(5)
    rows = rng.integers(32, 127, (40_000, 27)).astype(np.uint8)
    texts = [bytes(row).decode() for row in rows]
    assert digests(rows, np.full(len(rows), 27)).tolist() == of_texts(list(texts))


def test_a_digest_does_not_depend_on_the_other_texts() -> None:
    texts = ["x" * length for length in range(70)]
    assert of_texts(list(texts)) == [of_texts([text])[0] for text in texts]


def test_a_slice_of_a_column_has_the_digests_of_its_texts() -> None:
    column = pa.array(["one", "two", None, "three", "four"], pa.string())
    table = pa.table({"text": pa.chunked_array([column[1:4], column[4:]])})
    found = columns_of(table, ["text"], ["text"])["text"].tolist()
    assert found == of_texts(["two", None, "three", "four"])
    assert found[1] is None


def test_every_change_of_one_byte_changes_the_digest() -> None:
    text = np.frombuffer(b'{"location":"RWS01_MONIBAS_000123"}', np.uint8)
    rows = np.repeat(text[None], len(text), 0).copy()
    np.fill_diagonal(rows, 0)
    found = digests(np.vstack([text[None], rows]), np.full(len(rows) + 1, len(text)))
    assert len(set(found.tolist())) == len(rows) + 1
