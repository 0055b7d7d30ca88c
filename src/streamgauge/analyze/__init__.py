"""Offline analysis: the journals of a stored trial → Seconds, as PySpark DataFrames, for recordings of any size.

The live path (``run/trial/assemble.py``) counts while a trial runs; this one counts again from the rawest rows there
are. Both end in Seconds and share one judge, and a test compares them exactly.
"""

from streamgauge.install.requirements import PYSPARK, JavaRuntime, Requirement

REQUIREMENTS: tuple[Requirement, ...] = (PYSPARK, JavaRuntime())
"""What must be installed before raw logs can be recomputed."""
