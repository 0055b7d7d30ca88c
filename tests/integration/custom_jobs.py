"""Functions and references as users write them, each with what must be said of it."""

from random_pairs import FAULTS, Pair, fault

_COUNTS = """
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as F


def job(purchases):
    kept = purchases.withWatermark("due", "{watermark}").groupBy(F.window("due", "100 milliseconds"), "gem_pack_id")
    found = kept.agg(F.count("*").alias("purchases"), F.max("due").alias("max_due"))
    return found.select("gem_pack_id", F.col("window.end").alias("window_end"), "purchases", "max_due")


def expected(events, params):
    start = pc.floor_temporal(events["due"], multiple=100, unit="millisecond")
    table = pa.table({{"start": start, "gem_pack_id": events["gem_pack_id"]}})
    found = table.group_by(["start", "gem_pack_id"]).aggregate([([], "count_all")])
    ends = pc.add(found["start"], pa.scalar(100_000, pa.duration("us")))
    return pa.table({{"gem_pack_id": found["gem_pack_id"], "window_end": ends, "purchases": found["count_all"]}})
"""

_NEIGHBOUR = '''
from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as F
from pyspark.sql.types import IntegerType

import prices_beside


@dataclass
class Discount:
    """Needs its module while the class is made, because annotations are texts."""

    percent: int


def cents(price: int) -> int:
    from moments_beside import NOTHING

    return prices_beside.halved(price) + Discount(NOTHING).percent


def job(purchases):
    return purchases.select("user_id", F.udf(cents, IntegerType())("price").alias("half"))


def expected(events, params):
    from moments_beside import NOTHING

    return pa.table({"user_id": events["user_id"], "half": pc.add(pc.divide(events["price"], 2), NOTHING)})
'''

NULL_MOMENTS = """
from pyspark.sql import functions as F


def job(purchases):
    return purchases.select("user_id", F.when(F.col("price") < 0, F.col("due")).alias("max_due"))
"""

_BESIDE = {"prices_beside.py": "def halved(price):\n    return price // 2\n", "moments_beside.py": "NOTHING = 0\n"}

LATE = Pair(
    9001, "right", _COUNTS.format(watermark="1 second"), {"trigger": "0s"}, about="a watermark that the function sets"
)
OVERLOADED = Pair(
    9002,
    "right",
    _COUNTS.format(watermark="0 seconds"),
    {"trigger": "0s", "max_batch": 250},
    stops_early=True,
    about="a correct function that is overloaded",
)
NEIGHBOUR = Pair(9003, "right", _NEIGHBOUR, {"trigger": "0s"}, about="a module beside the file", beside=_BESIDE)
EXITS = Pair(9004, "users-fault", "import sys\n\nsys.exit(3)\n\njob = expected = None\n", about="sys.exit at import")
WRONG = Pair(
    9005,
    "users-fault",
    "import no_such_module_anywhere\n\njob = expected = None\n",
    about="an import that fails",
)
OWN_FAULTS = tuple(fault(9100 + n, name) for n, name in enumerate(FAULTS))
COUNTS = _COUNTS.format(watermark="0 seconds")
