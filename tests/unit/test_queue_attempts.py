"""Outputs count when their batch is committed: exactly the named attempts, exactly once."""

import pyarrow as pa
import pytest

from streamgauge.transports.queue.attempts import Attempt, AttemptError, Attempts


def rows(*values: int) -> pa.RecordBatch:
    return pa.record_batch({"v": list(values)})


def sent(attempts: Attempts, partition: int, attempt: int, *values: int, batch: int = 0) -> None:
    key = Attempt("q", batch, partition, attempt)
    attempts.open(key)
    attempts.add(key, rows(*values), 10 * attempt + partition)
    attempts.finish(key)


def values(attempts: Attempts, batch: int, parts: list[tuple[int, int]]) -> list[int]:
    return [v for arrival in attempts.commit("q", batch, parts) for v in arrival.rows["v"].to_pylist()]


def test_of_several_attempts_exactly_the_committed_one_counts() -> None:
    attempts = Attempts()
    sent(attempts, 0, 0, 1, 2)
    sent(attempts, 0, 1, 1, 2)
    sent(attempts, 1, 0, 3)
    assert attempts.waiting == 5
    assert values(attempts, 0, [(0, 1), (1, 0)]) == [1, 2, 3]
    assert (attempts.counts.arrived, attempts.counts.committed, attempts.counts.discarded) == (5, 3, 2)
    assert attempts.waiting == 0


def test_arrivals_keep_their_own_moment() -> None:
    attempts = Attempts()
    sent(attempts, 1, 2, 7)
    assert [a.emitted_us for a in attempts.commit("q", 0, [(1, 2)])] == [21]


def test_a_batch_that_runs_again_after_its_commit_counts_once_and_is_counted_as_repeated() -> None:
    attempts = Attempts()
    sent(attempts, 0, 0, 1, 2)
    assert values(attempts, 0, [(0, 0)]) == [1, 2]
    sent(attempts, 0, 5, 1, 2)
    assert values(attempts, 0, [(0, 5)]) == []
    assert (attempts.counts.committed, attempts.counts.repeated, attempts.counts.repeated_commits) == (2, 2, 1)


def test_an_attempt_that_is_not_whole_cannot_be_committed() -> None:
    attempts = Attempts()
    key = Attempt("q", 0, 0, 0)
    attempts.open(key)
    attempts.add(key, rows(1), 0)
    with pytest.raises(AttemptError, match="not all rows of"):
        attempts.commit("q", 0, [(0, 0)])
    attempts.finish(key)
    assert values(attempts, 0, [(0, 0)]) == [1]


def test_an_attempt_that_broke_off_may_begin_again_but_a_whole_one_may_not() -> None:
    attempts = Attempts()
    key = Attempt("q", 0, 0, 0)
    attempts.open(key)
    attempts.add(key, rows(1), 0)
    sent(attempts, 0, 0, 1, 2)
    with pytest.raises(AttemptError, match="a separate attempt number"):
        attempts.open(key)
    assert values(attempts, 0, [(0, 0)]) == [1, 2]
    assert attempts.counts.discarded == 1


def test_a_commit_with_two_attempts_of_one_partition_is_refused() -> None:
    attempts = Attempts()
    sent(attempts, 0, 0, 1)
    sent(attempts, 0, 1, 1)
    with pytest.raises(AttemptError, match="one attempt of each partition"):
        attempts.commit("q", 0, [(0, 0), (0, 1)])
    assert attempts.counts.refused == 1


def test_an_aborted_batch_leaves_nothing_and_other_batches_unchanged() -> None:
    attempts = Attempts()
    sent(attempts, 0, 0, 1)
    sent(attempts, 0, 0, 2, batch=1)
    attempts.abort("q", 0)
    with pytest.raises(AttemptError, match="cannot commit batch 0"):
        attempts.commit("q", 0, [(0, 0)])
    assert values(attempts, 1, [(0, 0)]) == [2]


def test_an_empty_batch_is_committed_like_any_other() -> None:
    attempts = Attempts()
    assert attempts.commit("q", 0, []) == []
    assert attempts.counts.commits == 1
