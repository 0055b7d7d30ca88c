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

    # a micro-batch waits for its slowest core: steal time is that of the core with the most of it in the whole trial
    totals = cores.where(F.col("core").isin(*sut)).groupBy("core").agg(F.sum("steal_us").alias("total"))
    most = totals.agg(F.max(F.struct("total", (-F.col("core")).alias("reversed"))).alias("most"))
    most_stolen = F.col("core") == -F.col("most.reversed")
    return cores.crossJoin(F.broadcast(most)).select(
        second_that_ended(F.col("time")).alias("second"),
        on(sut, "foreign_us").alias("strange"),
        F.when(most_stolen, F.col("steal_us")).alias("stolen"),
        on(sut, "span_us").alias("span"),
        F.when(most_stolen, F.col("span_us")).alias("stolen_span"),
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
        _parts_per_million("strange", "span").alias("foreign"),
        _parts_per_million("stolen", "stolen_span").alias("steal"),
    )


def _parts_per_million(taken: str, span: str) -> Column:
    return floor_division(F.col(taken) * _MILLION, F.greatest(span, F.lit(1)))
