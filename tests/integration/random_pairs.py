"""Random pairs of a function and its reference, from a small grammar: types, nulls, windows, watermarks, modes.

The function is PySpark, the reference is plain Python over the same events. A wrong function changes its events in a
known way first, so that its outputs differ from the reference.
"""

import random
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from textwrap import indent
from typing import Any, Literal

import pyarrow as pa

from streamgauge.engines.spark.user_code import load_function

Kind = Literal["right", "wrong", "users-fault"]

VALUES: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "whole": ('F.col("price")', 'r["price"]', ("pa.int64()", "pa.int32()", "pa.uint64()", "pa.float64()")),
    "negative": ('-F.col("price")', '-r["price"]', ("pa.int64()", "pa.int32()", "pa.decimal128(20, 0)")),
    "large": ('F.col("price").cast("long") * F.lit(2**40)', 'r["price"] * 2**40', ("pa.int64()", "pa.uint64()")),
    "ratio": ('F.col("price") / 7.0', 'r["price"] / 7.0', ("pa.float64()", "pa.float32()")),
    "single": ('(F.col("price") / 7.0).cast("float")', 'r["price"] / 7.0', ("pa.float64()", "pa.float32()")),
    "odd": (
        'F.when(F.col("price") % 5 == 0, F.lit(float("nan"))).otherwise(F.col("price") * 0.5)',
        'float("nan") if r["price"] % 5 == 0 else r["price"] * 0.5',
        ("pa.float64()",),
    ),
    "maybe": (
        'F.when(F.col("price") % 3 == 0, F.col("price"))',
        'r["price"] if r["price"] % 3 == 0 else None',
        ("pa.int64()", "pa.int32()"),
    ),
    "nothing": ('F.lit(None).cast("string")', "None", ("pa.string()", "pa.null()")),
    "text": (
        'F.concat(F.lit("p"), F.col("price").cast("string"))',
        '"p" + str(r["price"])',
        ("pa.string()", "pa.large_string()"),
    ),
    "truth": ('F.col("price") > 5000', 'r["price"] > 5000', ("pa.bool_()",)),
    "money": ('F.col("price").cast("decimal(12,2)")', 'Decimal(r["price"])', ("pa.decimal128(14, 2)", "pa.int64()")),
    "moment": ('F.col("due")', 'r["due"]', ('pa.timestamp("us", "UTC")', 'pa.timestamp("us")')),
    "day": ('F.to_date("due")', 'r["due"].date()', ("pa.date32()", "pa.date64()")),
    "pair": ('F.array("price", "user_id")', '[r["price"], r["user_id"]]', ("pa.list_(pa.int64())",)),
    "halves": ('F.array(F.col("price") / 2.0)', '[r["price"] / 2.0]', ("pa.list_(pa.float32())",)),
    "record": (
        'F.struct(F.col("price").alias("a"), F.col("user_id").alias("b"))',
        '{"b": r["user_id"], "a": r["price"]}',
        ('pa.struct([("b", pa.int64()), ("a", pa.int64())])',),
    ),
    "named": ('F.create_map(F.lit("p"), F.col("price"))', '[("p", r["price"])]', ("pa.map_(pa.string(), pa.int64())",)),
    "bytes": ('F.col("price").cast("string").cast("binary")', 'str(r["price"]).encode()', ("pa.binary()",)),
}
"""Values of a row: PySpark, Python, and Arrow types that the reference may give them."""

KEYS: dict[str, tuple[str, str, str]] = {
    "gem_pack_id": ('F.col("gem_pack_id")', 'r["gem_pack_id"]', "pa.int32()"),
    "bucket": ('F.col("price") % 7', 'r["price"] % 7', "pa.int64()"),
    "label": ('F.concat(F.lit("k"), F.col("gem_pack_id"))', '"k" + str(r["gem_pack_id"])', "pa.string()"),
    "perhaps": (
        'F.when(F.col("price") % 2 == 0, F.col("gem_pack_id"))',
        'r["gem_pack_id"] if r["price"] % 2 == 0 else None',
        "pa.int64()",
    ),
}
"""Keys to group by."""

SUMS: dict[str, tuple[str, str, str]] = {
    "n": ('F.count("*")', "len(rows)", "pa.int64()"),
    "total": ('F.sum("price")', 'sum(r["price"] for r in rows)', "pa.int64()"),
    "lowest": ('-F.max("price")', '-max(r["price"] for r in rows)', "pa.int32()"),
    "mean": ('F.avg("price")', 'sum(r["price"] for r in rows) / len(rows)', "pa.float64()"),
    "rounded": ('F.sum(F.col("price") / 7.0)', 'sum(r["price"] / 7.0 for r in rows)', "pa.float64()"),
    "some": (
        'F.max(F.when(F.col("price") % 50 == 0, F.col("price")))',
        'max((r["price"] for r in rows if r["price"] % 50 == 0), default=None)',
        "pa.int64()",
    ),
    "nan": (
        'F.sum(F.when(F.col("price") % 9 == 0, F.lit(float("nan"))).otherwise(F.lit(1.0)))',
        'sum(float("nan") if r["price"] % 9 == 0 else 1.0 for r in rows)',
        "pa.float64()",
    ),
    "all": ('F.sort_array(F.collect_list("price"))', 'sorted(r["price"] for r in rows)', "pa.list_(pa.int64())"),
}
"""Aggregates of a group."""

MUTATIONS: dict[str, tuple[str, str]] = {
    "loses events": ('purchases.where("user_id % 3 != 0")', '[r for r in rows if r["user_id"] % 3 != 0]'),
    "doubles events": (
        'purchases.withColumn("x", F.explode(F.array(F.lit(1), F.lit(2)))).drop("x")',
        "[r for r in rows for _ in range(2)]",
    ),
    "changes prices": (
        'purchases.withColumn("price", F.col("price") + 1)',
        '[r | {"price": r["price"] + 1} for r in rows]',
    ),
    "changes keys": (
        'purchases.withColumn("gem_pack_id", F.col("gem_pack_id") + 1)',
        '[r | {"gem_pack_id": r["gem_pack_id"] + 1} for r in rows]',
    ),
    "forgets prices": (
        'purchases.withColumn("price", F.when(F.col("user_id") % 2 == 0, F.col("price")).otherwise(F.lit(0)))',
        '[r | {"price": r["price"] if r["user_id"] % 2 == 0 else 0} for r in rows]',
    ),
}
"""What a wrong function does to its events first: PySpark and Python."""

FAULTS: dict[str, tuple[str, str]] = {
    "sys.exit": ("sys.exit(3)", "return pa.table({'user_id': events['user_id']})"),
    "an exception": ("raise KeyError('no')", "return pa.table({'user_id': events['user_id']})"),
    "a column twice": (
        'return purchases.select("user_id", F.col("price").alias("user_id"))',
        "return pa.table({'user_id': events['user_id']})",
    ),
    "a reserved column": (
        'return purchases.select("user_id", F.lit(1).alias("emitted_us"))',
        "return pa.table({'user_id': events['user_id']})",
    ),
    "a text as moment": (
        'return purchases.select("user_id", F.lit("noon").alias("max_due"))',
        "return pa.table({'user_id': events['user_id']})",
    ),
    "a null as moment": (
        'return purchases.select("user_id", F.when(F.col("price") < 0, F.col("due")).alias("max_due"))',
        "return pa.table({'user_id': events['user_id']})",
    ),
    "an interval": (
        'return purchases.select("user_id", F.make_interval(F.lit(1)).alias("x"))',
        "return pa.table({'user_id': events['user_id']})",
    ),
    "sys.exit of the reference": ('return purchases.select("user_id")', "sys.exit(3)"),
    "no column": ('return purchases.select("user_id")', "return pa.table({})"),
    "only max_due": ('return purchases.select("user_id")', "return pa.table({'max_due': events['due']})"),
    "another column": ('return purchases.select("user_id")', "return pa.table({'users': events['user_id']})"),
    "a text as window": (
        'return purchases.select("user_id", F.lit("noon").alias("window_end"))',
        "return pa.table({'window_end': pa.array(['noon'] * len(events)), 'user_id': events['user_id']})",
    ),
    "two columns of one name": (
        'return purchases.select("user_id")',
        "return pa.table([events['user_id'], events['price']], names=['user_id', 'user_id'])",
    ),
}
"""Errors of the user's: the bodies of the function and of the reference."""


@dataclass(frozen=True)
class Pair:
    """One pair, and what must be said of it."""

    number: int
    kind: Kind
    text: str
    options: dict[str, Any] = field(default_factory=dict)
    stops_early: bool = False
    """Whether the query is stopped while events wait: it is overloaded."""
    about: str = ""
    beside: dict[str, str] = field(default_factory=dict)
    """Other files in the folder of its file."""


def pair(number: int, seed: int = 12, modes: tuple[str, ...] = ("append", "update")) -> Pair:
    """The pair of this number."""
    choose = random.Random(f"{seed}-{number}")
    if choose.random() < 0.08:
        return fault(number, choose.choice([*FAULTS]))
    mode = choose.choice(modes)
    grouped = mode == "update" or choose.random() < 0.6
    body, options, about = _grouped(choose, mode) if grouped else _straight(choose)
    kind: Kind = "wrong" if choose.random() < 0.4 else "right"
    changed, also = ("purchases", "rows")
    if kind == "wrong":
        name = choose.choice([*MUTATIONS] if grouped else ["loses events", "doubles events", "changes prices"])
        changed, also = MUTATIONS[name]
        about = f"{about}, {name}"
    text = _MODULE.format(changed=changed, also=also, body=body)
    early = kind == "right" and choose.random() < 0.3
    most = choose.choice([0, 700, 1500])
    chosen = {"output_mode": mode, "trigger": "0s", "max_batch": 400 if early else most, **options}
    return Pair(number, kind, text, chosen, early, f"{about}, {mode}" + (", overloaded" if early else ""))


def differs(file: Path, events: pa.Table, closed: int) -> bool:
    """Whether a wrong function's outputs really differ from the reference, in rows that must be out."""
    answer, mutated = (load_function(f"{file}:{name}") for name in ("answer", "mutated"))
    rows = events.to_pylist()
    before, after = (_closed(answer(each), closed) for each in (rows, mutated(rows)))
    return before != after


def _closed(table: pa.Table, closed: int) -> Counter[str]:
    rows = table.to_pylist()
    return Counter(repr(r) for r in rows if "window_end" not in r or r["window_end"].timestamp() * 1e6 <= closed)


def _straight(choose: random.Random) -> tuple[str, dict[str, Any], str]:
    """Every event as a row, perhaps filtered."""
    names = choose.sample([*VALUES], choose.randint(1, 4))
    keep = choose.choice([None, 2, 3])
    spark = [f"({VALUES[name][0]}).alias({name!r})" for name in names]
    spark += ['F.col("due").alias("max_due")'] if choose.random() < 0.5 else []
    where = f".where('price % {keep} != 0')" if keep else ""
    python = f"[r for r in rows if r['price'] % {keep} != 0]" if keep else "rows"
    columns = [f"{name!r}: ([{VALUES[name][1]} for r in rows], {choose.choice(VALUES[name][2])})" for name in names]
    body = f"""
def answer(rows):
    rows = {python}
    return table({{{", ".join(columns)}}})


def outputs(purchases):
    return purchases{where}.select({", ".join(spark)})
"""
    return body, {}, "rows of " + ", ".join(names)


def _grouped(choose: random.Random, mode: str) -> tuple[str, dict[str, Any], str]:
    """Aggregates over windows; in update mode perhaps over everything."""
    keys = choose.sample([*KEYS], choose.randint(0, 2))
    sums = choose.sample([*SUMS], choose.randint(1, 3))
    slide = choose.choice([100, 250, 500])
    window = slide * choose.choice([1, 1, 2, 4])
    running = mode == "update" and choose.random() < 0.4
    late = choose.choice([0, 0, 100, 300, 700])
    by = [f"({KEYS[name][0]}).alias({name!r})" for name in keys]
    if not running:
        by.append(f'F.window("due", "{window} milliseconds", "{slide} milliseconds").alias("w")')
    aggregates = [f"({SUMS[name][0]}).alias({name!r})" for name in sums]
    aggregates += ['F.max("due").alias("max_due")'] if choose.random() < 0.5 else []
    shown = [*map(repr, keys), *([] if running else ['F.col("w.end").alias("window_end")']), *map(repr, sums)]
    shown += ["'max_due'"] if len(aggregates) > len(sums) else []
    marked = "purchases" if running else f'purchases.withWatermark("due", "{late} milliseconds")'
    values = ", ".join(f"({KEYS[name][1]})" for name in keys)
    kinds = [f"{name!r}: {KEYS[name][2]}" for name in keys] + [f"{name!r}: {SUMS[name][2]}" for name in sums]
    figures = ", ".join(f"{name!r}: {SUMS[name][1]}" for name in sums)
    ends = "[None]" if running else f"ends(r['due'], {window}, {slide})"
    body = f"""
def answer(rows):
    return grouped(rows, {keys!r}, lambda r: ({values}{"," if keys else ""}), lambda r: {ends},
                   lambda rows: {{{figures}}}, {{{", ".join(kinds)}}}, windows={not running})


def outputs(purchases):
    return {marked}.groupBy({", ".join(by)}).agg({", ".join(aggregates)}).select({", ".join(shown)})
"""
    named = mode == "update" and (not {*keys} <= {"gem_pack_id"} or choose.random() < 0.3)
    options = {"keys": keys} if named and keys else {}
    about = f"{', '.join(sums)} by {', '.join(keys) or 'nothing'}"
    return body, options, about + (" of all" if running else f" in {window}/{slide} ms, {late} ms late")


def fault(number: int, name: str) -> Pair:
    """A pair with an error of the user's."""
    job, expected = FAULTS[name]
    text = f"{_IMPORTS}\n\ndef job(purchases):\n{indent(job, '    ')}\n\n\ndef expected(events, params):\n"
    return Pair(number, "users-fault", text + indent(expected, "    ") + "\n", {"trigger": "0s"}, about=name)


_IMPORTS = """
import sys
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pyarrow as pa
from pyspark.sql import functions as F
"""

_MODULE = (
    _IMPORTS
    + """
STAMP = pa.timestamp("us", "UTC")
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def table(columns):
    return pa.table({{name: pa.array(values, kind) for name, (values, kind) in columns.items()}})


def ends(due, window, slide):
    micros = (due - EPOCH) // timedelta(microseconds=1)
    start = micros - micros % (slide * 1000)
    found = []
    while start + window * 1000 > micros:
        found.append(start + window * 1000)
        start -= slide * 1000
    return found


def grouped(rows, keys, key_of, ends_of, figures, kinds, windows):
    groups = {{}}
    for r in rows:
        for end in ends_of(r):
            groups.setdefault((*key_of(r), end), []).append(r)
    found = {{name: ([key[n] for key in groups], kinds[name]) for n, name in enumerate(keys)}}
    if windows:
        found["window_end"] = ([key[-1] for key in groups], STAMP)
    for name in [name for name in kinds if name not in keys]:
        found[name] = ([figures(group)[name] for group in groups.values()], kinds[name])
    return table(found)


def mutated(rows):
    return {also}

{body}

def job(purchases):
    return outputs({changed})


def expected(events, params):
    return answer(events.to_pylist())
"""
)
