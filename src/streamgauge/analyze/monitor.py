"""What the monitor saw → per second: CPU of the roles, waiting, strangers and the hypervisor on the cores."""

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from streamgauge.analyze.arithmetic import floor_division, second_that_ended
from streamgauge.analyze.journals import together

SUT = "system under test"
DRIVER = "driver"
_MILLION = 1_000_000


def _of_roles(roles: DataFrame) -> DataFrame:
    def of(role: str, name: str) -> Column:
        return F.when(F.col("role") == role, F.col(name))

    return roles.select(
        second_that_ended(F.col("time")).alias("second"),
        of(SUT, "cpu_us").alias("sut_cpu"),
        of(DRIVER, "cpu_us").alias("driver_cpu"),
        of(DRIVER, "run_delay_ns").alias("waited"),
    )


def _of_cores(cores: DataFrame, sut: Sequence[int], driver: Sequence[int]) -> DataFrame:
    def on(chosen: Sequence[int], name: str) -> Column:
        return F.when(F.col("core").isin(*chosen), F.col(name)) if chosen else F.lit(0).cast("long")

    return cores.select(
        second_that_ended(F.col("time")).alias("second"),
        on(sut, "foreign_us").alias("strange"),
        on(sut, "steal_us").alias("stolen"),
        on(sut, "span_us").alias("span"),
        on(driver, "foreign_us").alias("driver_strange"),
        on(driver, "steal_us").alias("driver_stolen"),
        on(driver, "busy_us").alias("driver_busy"),
    )


def watched(roles: DataFrame, cores: DataFrame, sut: Sequence[int], driver: Sequence[int]) -> DataFrame:
    """Per second, rows in the second in which their look ended."""
    seen = together([_of_roles(roles), _of_cores(cores, sut, driver)])
    sums = seen.groupBy("second").agg(
        *(F.coalesce(F.sum(name), F.lit(0)).alias(name) for name in seen.columns if name != "second")
    )
    # the driver's threads also wait for each other; strangers answer for their share of its cores
    disturbed = F.greatest("driver_strange", "driver_stolen", F.lit(0))
    share = F.col("waited") * F.least(disturbed, F.col("driver_busy"))
    return sums.select(
        "second",
        "sut_cpu",
        "driver_cpu",
        floor_division(share, F.greatest("driver_busy", F.lit(1))).alias("run_delay"),
        _parts_per_million(F.col("strange")).alias("foreign"),
        _parts_per_million(F.col("stolen")).alias("steal"),
    )


def _parts_per_million(taken: Column) -> Column:
    return floor_division(taken * _MILLION, F.greatest("span", F.lit(1)))
