"""Latency buckets: HdrHistogram's layout, three digits, and what can be read from the counts."""

import numpy as np
import pytest

from streamgauge.stats import buckets


def hdr_index(value: int) -> int:
    """HdrHistogram's own countsArrayIndex, unit 1 and 2048 sub-buckets, as its authors write it."""
    leading_zeros = 64 - (value | 2047).bit_length()
    bucket = 64 - 11 - leading_zeros
    sub_bucket = value >> bucket
    return ((bucket + 1) << 10) + (sub_bucket - 1024)


@pytest.mark.parametrize(
    ("micros", "bucket"),
    [
        *((0, 0), (1, 1), (1023, 1023), (2047, 2047), (2048, 2048), (2049, 2048)),
        *((4095, 3071), (4096, 3072), (4099, 3072), (4100, 3073), (1_000_000, 11_169), (3_600_000_000, 23_220)),
    ],
)
def test_known_values_have_the_bucket_that_hdrhistogram_gives_them(micros: int, bucket: int) -> None:
    assert int(buckets.index(micros)) == bucket


def test_the_layout_is_hdrhistograms_over_the_whole_range() -> None:
    powers = [2**k + d for k in range(1, 52) for d in (-1, 0, 1)]
    random = np.random.default_rng(1).integers(0, 2**50, 2000).tolist()
    values = [*range(5000), *powers, *random]
    assert buckets.index(values).tolist() == [hdr_index(v) for v in values]


def test_every_bucket_begins_where_the_one_before_it_ended() -> None:
    number = np.arange(40_000)
    assert np.array_equal(buckets.lowest(number[1:]), buckets.highest(number[:-1]) + 1)
    assert np.array_equal(buckets.index(buckets.lowest(number)), number)
    assert np.array_equal(buckets.index(buckets.highest(number)), number)


def test_no_value_is_off_by_more_than_a_thousandth() -> None:
    value = np.random.default_rng(2).integers(1, 10**12, 100_000)
    bucket = buckets.index(value)
    assert float(((buckets.highest(bucket) - value) / value).max()) <= 0.001
    assert float(((value - buckets.lowest(bucket)) / value).max()) <= 0.001
    assert float((np.abs(buckets.middle(bucket) - value) / value).max()) <= 0.0005


def test_values_below_two_milliseconds_are_exact() -> None:
    value = np.arange(2048)
    assert np.array_equal(buckets.lowest(buckets.index(value)), value)
    assert np.array_equal(buckets.highest(buckets.index(value)), value)


def test_a_negative_latency_has_no_bucket() -> None:
    with pytest.raises(ValueError, match="count it separately"):
        buckets.index([5, -1])


@pytest.mark.parametrize("share", [0.05, 0.5, 0.9, 0.99, 0.999, 1.0])
def test_a_quantile_is_that_of_the_sorted_samples_within_one_bucket(share: float) -> None:
    value = np.sort(np.exp(np.random.default_rng(3).normal(12, 2, 10_001)).astype(np.int64))
    bucket, count = np.unique(buckets.index(value), return_counts=True)
    exact = int(value[max(1, int(np.ceil(share * len(value)))) - 1])
    assert buckets.index(buckets.quantile(bucket, count, share)) == buckets.index(exact)


def test_a_quantile_does_not_need_the_buckets_in_order() -> None:
    bucket, count = np.array([9, 3, 7, 3]), np.array([1, 4, 4, 1])
    assert [buckets.quantile(bucket, count, s) for s in (0.5, 0.51, 0.9, 0.91)] == [3, 7, 7, 9]


def test_without_samples_there_is_no_quantile() -> None:
    none = np.zeros(0, np.int64)
    with pytest.raises(ValueError, match="no samples"):
        buckets.quantile(none, none, 0.5)
    with pytest.raises(ValueError, match="no samples"):
        buckets.quantile(np.array([4]), np.array([0]), 0.5)


def test_the_mean_is_that_of_the_samples_within_a_thousandth() -> None:
    value = np.random.default_rng(4).integers(1, 10**8, 10_000)
    bucket, count = np.unique(buckets.index(value), return_counts=True)
    assert buckets.mean(bucket, count) == pytest.approx(float(value.mean()), rel=1e-3)


@pytest.mark.parametrize(("share", "least"), [(0.5, 2), (0.9, 10), (0.95, 20), (0.05, 20), (0.99, 100), (0.999, 1000)])
def test_a_percentile_needs_a_sample_on_its_far_side(share: float, least: int) -> None:
    assert buckets.supported(share, least)
    assert not buckets.supported(share, least - 1)
