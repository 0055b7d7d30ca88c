"""Apache Spark as a system under test. Nothing here imports pyspark until a session is started."""

from streamgauge.engines.spark.engine import spark

__all__ = ["spark"]
