"""Arrow loads pandas at its first conversion, 0.4 s in which nothing else runs; our own processes do without it."""

import subprocess
import sys

import pytest

CONVERT = "import sys, numpy, pyarrow as pa\npa.array(numpy.zeros(2)); pa.array([1]).to_numpy(); pa.table({'a': [1]})\n"
LEAVE_OUT = "from streamgauge.processes.child import without_pandas\nwithout_pandas()\n"
TELL = "print('pandas' in sys.modules)\n"


def said(code: str) -> str:
    """What a fresh Python prints."""
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def test_arrow_converts_without_pandas() -> None:
    pytest.importorskip("pandas")
    assert said(CONVERT + TELL) == "True", "or there is nothing to leave out"
    assert said(LEAVE_OUT + CONVERT + TELL) == "False"


def test_whoever_asks_for_pandas_still_gets_it() -> None:
    pytest.importorskip("pandas")
    there = "import pandas\nprint(len(pa.table({'a': [1, 2]}).to_pandas()))\n"
    back = "print(pa.Table.from_pandas(pandas.DataFrame({'a': ['x']}))['a'].to_pylist())\n"
    assert said(LEAVE_OUT + CONVERT + there + back) == "2\n['x']"
