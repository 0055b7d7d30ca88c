"""Spark on a Kafka cluster that runs already, as a user types it. `make soak` has every format, mode and login."""

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from cli_session import streamgauge, write
from kafka_broker import administration, needs_kafka, shared
from real_run import calibrated
from real_trial import PLACEMENT

from streamgauge.cli.inputs import load_experiment
from streamgauge.run.monitor.monitor import available
from streamgauge.store.journal import read_parts
from streamgauge.transports.registry import identity_of

pytestmark = [
    needs_kafka,
    pytest.mark.skipif(not available() or not PLACEMENT.sut, reason="a trial needs /proc and two cores"),
]
MEASURE = """\
name: my-cluster
workload: {{name: windowed-aggregation, window: 1s, slide: 1s}}
engine: {{name: spark, warm_load: 2k/s, warm_limit: 8s, pipeline: "{job}:refunds", reference: "{job}:expected"}}
transport: {{name: kafka, cluster: {{bootstrap: "{bootstrap}"}}}}
find: nothing
load: {{rate: 2k/s}}
objective: [lost == 0]
trial: {{duration: 8s, warmup: 2s, limit: 8s, partitions: 2, stall: 90s, invalid_retries: 0}}
"""
REFUNDS = '''
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as F


def refunds(purchases):
    """Sums below zero, and a column that has no value for every second gem pack."""
    refund = -F.col("price")
    sums = purchases.withWatermark("due", "200 milliseconds").groupBy(F.window("due", "1 second"), "gem_pack_id").agg(
        F.sum(refund).alias("refund"),
        F.max(refund).alias("smallest"),
        F.max("due").alias("max_due"),
        F.max("ingested").alias("max_ingested"),
    )
    even = F.when(F.col("gem_pack_id") % 2 == 0, F.col("refund")).alias("even")
    end = F.col("window.end").alias("window_end")
    return sums.select("gem_pack_id", end, "refund", "smallest", even, "max_due", "max_ingested")


def expected(events, params):
    rows = pa.table({
        "start": pc.floor_temporal(events["due"], unit="second"),
        "gem_pack_id": events["gem_pack_id"],
        "refund": pc.negate(pc.cast(events["price"], pa.int64())),
    })
    found = rows.group_by(["start", "gem_pack_id"]).aggregate([("refund", "sum"), ("refund", "max")])
    odd = pc.bit_wise_and(found["gem_pack_id"], 1)
    return pa.table({
        "gem_pack_id": found["gem_pack_id"],
        "window_end": pc.add(found["start"], pa.scalar(1_000_000, pa.duration("us"))),
        "refund": found["refund_sum"],
        "smallest": found["refund_max"],
        "even": pc.if_else(pc.equal(odd, 0), found["refund_sum"], None),
    })
'''


def test_spark_on_an_external_cluster_writes_numbers_below_zero_and_nulls(tmp_path: Path) -> None:
    job = write(tmp_path, REFUNDS, "my_job.py")
    experiment = write(tmp_path, MEASURE.format(job=job, bootstrap=shared().cluster.bootstrap))
    runs = calibrated(tmp_path / "runs", identity_of(load_experiment(str(experiment), None).transport))
    said = streamgauge("run", experiment, "--out", runs, "--json")
    assert said.code in (0, 3, 6), said.err  # 3, 6: the host disturbed the trial
    assert administration().topics_by_run().keys().isdisjoint({said.document["run"]}), "its topics are removed"
    (trial,) = said.document["trials"]
    account = trial["measured"]["account"]
    assert account["checked"], said.err
    assert (account["lost"], account["duplicate"], account["wrong"]) == (0, 0, 0), account
    rows = read_parts(runs / said.document["run"] / "trials" / "001" / "outputs" / "outputs")
    if rows is None:  # on a host that has no time for Spark nothing comes out before the end
        assert trial["verdict"] == "INVALID", trial
        return
    assert pc.all(pc.less(rows["refund"], 0)).as_py()
    assert pc.all(pc.equal(pc.is_null(rows["even"]), pc.equal(pc.bit_wise_and(rows["gem_pack_id"], 1), 1))).as_py()
    ingested = pc.cast(rows["max_ingested"], pa.int64())
    assert pc.all(pc.less_equal(pc.cast(rows["max_due"], pa.int64()), ingested)).as_py(), "appended before it was due"
    assert pc.all(pc.less_equal(ingested, rows["emitted_us"])).as_py(), "an output before its events, on one clock"
