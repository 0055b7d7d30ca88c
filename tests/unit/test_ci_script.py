"""The script for CI jobs in the reference of the command line, executed with a streamgauge that only ends."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

PAGE = Path(__file__).resolve().parents[2] / "docs/reference/cli.md"
FAKE = """\
#!/bin/sh
echo "$@" >> calls
cat document.json
code=$(head -n 1 codes)
sed -i.bak 1d codes
exit "$code"
"""
DOCUMENT = {"findings": [{"sentence": "measured at 100k/s"}], "trials": [{"reasons": ["p99 1.2 s: met", "also this"]}]}

pytestmark = pytest.mark.skipif(shutil.which("sh") is None, reason="sh is not installed")


def run_script(folder: Path, document: object, *codes: int) -> "subprocess.CompletedProcess[str]":
    """The script of the page, with a program ``streamgauge`` that ends with these codes, one after the other."""
    found = re.search(r"^```sh\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert found is not None
    (folder / "ci.sh").write_text(found[1])
    (folder / "codes").write_text("".join(f"{code}\n" for code in codes))
    (folder / "document.json").write_text(json.dumps(document))
    program = folder / "bin" / "streamgauge"
    program.parent.mkdir()
    program.write_text(FAKE)
    program.chmod(0o755)
    environment = {"PATH": f"{program.parent}:/usr/local/bin:/usr/bin:/bin"}
    command = ["/bin/sh", "ci.sh"]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=60)


@pytest.mark.parametrize(
    ("codes", "expected", "calls"),
    [
        ((0,), 0, 1),
        ((1,), 1, 1),
        ((2,), 2, 1),
        ((4,), 4, 1),
        ((3, 0), 0, 2),
        ((6, 1), 1, 2),
        ((3, 6), 6, 2),
    ],
)
def test_the_script_repeats_only_what_has_no_answer(
    codes: tuple[int, ...], expected: int, calls: int, tmp_path: Path
) -> None:
    assert run_script(tmp_path, DOCUMENT, *codes).returncode == expected
    assert (tmp_path / "calls").read_text() == "run ci.yaml --json\n" * calls


@pytest.mark.skipif(shutil.which("jq") is None, reason="jq is not installed")
@pytest.mark.parametrize(
    ("document", "printed"),
    [
        (DOCUMENT, "measured at 100k/s\np99 1.2 s: met\nalso this\n"),
        ({"error": "no such file", "problems": []}, "no such file\n"),
    ],
)
def test_the_script_prints_the_result_and_the_reasons(document: object, printed: str, tmp_path: Path) -> None:
    assert run_script(tmp_path, document, 0).stdout == printed
