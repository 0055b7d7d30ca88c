"""Arrow imports pandas at its first conversion, 0.4 s in which nothing else runs; processes of streamgauge hide it."""

import subprocess
import sys

import pytest

CONVERT = "import sys, numpy, pyarrow as pa\npa.array(numpy.zeros(2)); pa.array([1]).to_numpy(); pa.table({'a': [1]})\n"
HIDE = "from streamgauge.processes.child import hide_pandas\nhide_pandas()\n"
SHOW = "print('pandas' in sys.modules)\n"


def printed(code: str) -> str:
    """What a fresh Python prints."""
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def test_arrow_converts_without_pandas() -> None:
    pytest.importorskip("pandas")
    assert printed(CONVERT + SHOW) == "True", "or there is nothing to hide"
    assert printed(HIDE + CONVERT + SHOW) == "False"


def test_pandas_can_still_be_imported() -> None:
    pytest.importorskip("pandas")
    there = "import pandas\nprint(len(pa.table({'a': [1, 2]}).to_pandas()))\n"
    back = "print(pa.Table.from_pandas(pandas.DataFrame({'a': ['x']}))['a'].to_pylist())\n"
    assert printed(HIDE + CONVERT + there + back) == "2\n['x']"
