"""The stream of purchases: the same bytes everywhere, each part without the rest, and keys as requested."""

import hashlib
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

from streamgauge.model.profile import constant, ramp
from streamgauge.model.units import SECOND
from streamgauge.workloads.contract import Columns, Inputs
from streamgauge.workloads.data.keys import MOST_SHAPED, Distribution, quantiles, weights
from streamgauge.workloads.data.random import CountedWords, mix64, stream_state
from streamgauge.workloads.data.shopping import HIGHEST_PRICE, LOWEST_PRICE, PURCHASES, Purchases
from streamgauge.workloads.windowed_aggregation import WindowedAggregationParams, windowed_aggregation

ORIGIN = 1_700_000_000 * SECOND + 123_456_789
PLAN = constant(1_000_000).plan(10 * SECOND)
GAMMA = 0x9E3779B97F4A7C15


def purchases(seed: int = 7, stream: int = 0, **params: Any) -> Purchases:  # noqa: ANN401
    return Purchases(WindowedAggregationParams.model_validate(params), PLAN, seed, stream, ORIGIN)


def fingerprint(columns: Columns) -> str:
    """SHA-256 over the columns as little-endian bytes."""
    digest = hashlib.sha256()
    for name, column in columns.items():
        digest.update(name.encode() + column.astype(column.dtype.newbyteorder("<")).tobytes())
    return digest.hexdigest()


def same(left: Columns, right: Columns) -> bool:
    return all(np.array_equal(left[name], right[name]) for name in left) and left.keys() == right.keys()


def test_words_are_those_of_splitmix64() -> None:
    published = [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F, 0xF88BB8A8724C81EC]
    assert CountedWords(0, 1, 4).words(1, 4).tolist() == published
    assert [mix64(n * GAMMA) for n in range(1, 5)] == published


def test_an_event_follows_from_its_random_word() -> None:
    made = purchases(distribution="uniform", gem_packs=777, users=1234).events(999_990, 1_000_010)
    for row, n in enumerate(range(999_990, 1_000_010)):
        word = mix64(stream_state(7, 0) + n * GAMMA)
        assert made["user_id"][row] == (word & 0xFFFFFFFF) * 1234 >> 32
        assert made["gem_pack_id"][row] == (word >> 32) * 777 >> 32
        assert made["price"][row] == 99 + (((word * 0xD6E8FEB86659FD93 & (1 << 64) - 1) >> 32) * 9901 >> 32)
        assert made["due"][row] == (ORIGIN + n * 1000) // 1000


GOLDEN = {
    ("normal", 100): "5d0f2e08d0a189e119ff6470746c90107635cea6c194d25cb24e4d6bc84aaa93",
    ("normal", 5000): "b441f4e08ba52e1a35af827b267522cc0e4b959e061043f053fd3ecacfb93e98",
    ("uniform", 100): "dfeed7ef14e167a308169b965d0b7082f7f2a9fce8bd3548731c09eee4b7d9d9",
    ("zipf", 100): "39b028a4992b237a3b4bd41f6f45a3382972a16327c95cfdd37a1fcbe5836c4e",
    ("zipf", 50_000): "7b9101a4a7ef488264466a7570785f56295e5e772a1e2dd3e93b4bbc63e33bb1",
    ("single", 100): "fd5572962ee7630857215d72f4721419e39de89daa420aab7e9ad9827d8d57f0",
}


@pytest.mark.parametrize(("distribution", "gem_packs"), GOLDEN)
def test_the_first_hundred_thousand_events_are_the_same_bytes_on_every_machine(
    distribution: Distribution, gem_packs: int
) -> None:
    made = purchases(distribution=distribution, gem_packs=gem_packs).events(0, 100_000)
    assert fingerprint(made) == GOLDEN[distribution, gem_packs]


TABLES = {
    ("normal", 100): "96be161ac76494345bcc11e9b2604c0362c300134e1d99bd7c03acba6a0c4c77",
    ("normal", 100_000): "69cd4177b90c3824d01efee5cb86edeb5140be696fda1b5f4bede5ad1b558fad",
    ("zipf", 100): "5faa50760e2e9b0f15379e4fbca530549319fb66b85d10e1287f73d234d81356",
    ("zipf", 100_000): "0728bf81f5ffdd1c13988815f0476edb94d00c3cb4d968fe4896fecbed6889b3",
}


@pytest.mark.parametrize(("distribution", "keys"), TABLES)
def test_the_table_of_quantiles_is_the_same_on_every_machine(distribution: Distribution, keys: int) -> None:
    first, width = quantiles(distribution, keys)
    assert fingerprint({"first": first, "width": width}) == TABLES[distribution, keys]


def test_a_row_has_twenty_bytes_and_the_columns_of_the_schema() -> None:
    made = purchases().events(0, 10)
    assert [name for name, _ in PURCHASES] == list(made)
    assert sum(column.dtype.itemsize for column in made.values()) == 20


def test_arrow_takes_the_columns_without_a_copy() -> None:
    for column in purchases().events(0, 1000).values():
        assert pa.array(column).buffers()[1].address == column.ctypes.data


@pytest.mark.parametrize("distribution", ["normal", "uniform", "zipf", "single"])
def test_partitions_together_are_the_whole(distribution: Distribution) -> None:
    stream = purchases(distribution=distribution)
    whole = stream.events(5, 100_003)
    for partition in range(7):
        part = stream.events(5, 100_003, stride=7, offset=partition)
        begin = (partition - 5) % 7
        assert same(part, {name: column[begin::7] for name, column in whole.items()})


def test_an_offset_outside_the_stride_is_refused() -> None:
    with pytest.raises(ValueError, match="0 … 3"):
        purchases().events(0, 10, stride=4, offset=4)


def test_events_after_the_plan_are_refused() -> None:
    with pytest.raises(IndexError, match="9999999"):
        purchases().events(9_999_999, 10_000_001)


def test_another_seed_or_stream_is_another_stream() -> None:
    prints = {fingerprint(purchases(seed, stream).events(0, 1000)) for seed in range(10) for stream in range(10)}
    assert len(prints) == 100


@pytest.mark.parametrize(
    ("distribution", "keys"),
    [
        ("normal", 10),
        ("normal", 1000),
        ("normal", 3000),
        ("uniform", 10),
        ("uniform", 1000),
        ("zipf", 10),
        ("zipf", 3000),
    ],
)
def test_keys_follow_their_distribution(distribution: Distribution, keys: int) -> None:
    """Chi-square against the shape; where the table rounds to 1/65536, the shape is that of the table."""
    seen = np.bincount(purchases(distribution=distribution, gem_packs=keys).events(0, 500_000)["gem_pack_id"])
    share = weights(distribution, keys).astype(float)
    share /= share.sum()
    assert len(seen) == keys
    assert seen.min() > 0 or keys > 1000
    if distribution != "uniform":
        assert np.abs(np.cumsum(seen / seen.sum()) - np.cumsum(share)).max() < 0.003
        share = table_shares(distribution, keys)
    assert stats.chisquare(seen, share * seen.sum()).pvalue > 0.001


def table_shares(distribution: Distribution, keys: int) -> np.ndarray[Any, np.dtype[np.float64]]:
    """How often each key comes according to the table of quantiles."""
    first, width = quantiles(distribution, keys)
    share = np.zeros(keys)
    for low, many in zip(first.tolist(), width.tolist(), strict=True):
        share[low : low + (many if keys > 1024 else 1)] += 1 / (many if keys > 1024 else 1)
    return share / len(first)


def test_the_normal_distribution_spans_three_deviations_on_each_side() -> None:
    x = (2 * np.arange(1000) + 1 - 1000) / 1000 * 3
    density = stats.norm.pdf(x) / stats.norm.pdf(0)
    shape = weights("normal", 1000)
    assert np.allclose(shape / shape.max(), density, rtol=2e-5)


def test_the_second_key_of_zipf_comes_half_as_often_as_the_first() -> None:
    shape = weights("zipf", 1000)
    assert np.allclose(shape[0] / shape, np.arange(1, 1001))


@pytest.mark.parametrize("distribution", ["normal", "zipf"])
def test_no_key_is_forgotten_however_many_there_are(distribution: Distribution) -> None:
    first, width = quantiles(distribution, 200_000)
    assert first[0] == 0
    assert (first + width)[-1] == 200_000
    assert np.all(first[1:] <= (first + width)[:-1])


def test_a_single_key_is_one_key() -> None:
    assert set(purchases(distribution="single").events(0, 50_000)["gem_pack_id"].tolist()) == {0}


def test_more_shaped_keys_than_the_table_has_are_refused() -> None:
    with pytest.raises(ValueError, match="at most"):
        quantiles("zipf", MOST_SHAPED + 1)


def test_prices_and_users_are_even_and_nothing_depends_on_anything_else() -> None:
    made = purchases(gem_packs=20, users=30, distribution="uniform").events(0, 400_000)
    price_class = (made["price"] - LOWEST_PRICE) * 25 // (HIGHEST_PRICE - LOWEST_PRICE + 1)
    assert (made["price"].min(), made["price"].max()) == (LOWEST_PRICE, HIGHEST_PRICE)
    for left, right, many in (
        (made["user_id"], made["gem_pack_id"], (30, 20)),
        (made["user_id"], price_class, (30, 25)),
        (made["gem_pack_id"], price_class, (20, 25)),
        (made["gem_pack_id"][:-1], made["gem_pack_id"][1:], (20, 20)),
    ):
        table = np.zeros(many)
        np.add.at(table, (left, right), 1)
        assert stats.chisquare(table.ravel()).pvalue > 0.001


def test_due_times_follow_the_plan_also_where_the_rate_changes() -> None:
    plan = ramp(1000, 50_000, 20 * SECOND).plan(30 * SECOND)
    stream = Purchases(WindowedAggregationParams(), plan, 1, 0, ORIGIN)
    made = stream.events(0, plan.total)["due"]
    assert np.array_equal(made, (ORIGIN + plan.due(np.arange(plan.total))) // 1000)


def test_the_workload_makes_its_stream_and_result_from_resolved_parameters() -> None:
    written = WindowedAggregationParams.model_validate({"gem_packs": 10, "window": "2s", "slide": "1s"})
    params = WindowedAggregationParams.from_resolved(written.model_dump(mode="json"))
    inputs = Inputs({"purchases": PLAN}, 7, ORIGIN)
    made = windowed_aggregation.events(params, "purchases", inputs).events(0, 1000)
    answer = windowed_aggregation.reference(params, inputs).until({"purchases": 1000})
    assert answer["sum"].sum() == 2 * made["price"].sum()
    assert answer["max_due"].max() == made["due"].max()


def test_parameters_that_no_stream_can_be_made_of_are_refused_immediately() -> None:
    with pytest.raises(ValueError, match="at most"):
        WindowedAggregationParams.model_validate({"gem_packs": MOST_SHAPED + 1})
    WindowedAggregationParams.model_validate({"gem_packs": MOST_SHAPED + 1, "distribution": "uniform"})
