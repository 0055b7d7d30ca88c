"""What the documentation says of answers: exit codes, and how much a percentile proves."""

import math
import re

import pytest
from source import ROOT

from streamgauge.run.result import ExitCode


def test_the_page_on_the_rules_of_verdicts_states_how_many_window_results_prove_a_p99() -> None:
    """With a share of 1 % above the bound, so many results without one have a probability of 5 %."""
    enough = math.ceil(math.log(0.05) / math.log(0.99))
    assert enough == 299
    text = (ROOT / "docs/concepts/rules-of-verdicts.md").read_text(encoding="utf-8")
    assert f"without one above the bound give a confidence of 63 % that the p99 is met, {enough} give 95 %" in text


@pytest.mark.parametrize("page", ["README.md", "docs/reference/cli.md"])
def test_the_tables_of_exit_codes_have_every_code(page: str) -> None:
    rows = re.findall(r"^\| (\d+) \| (.+) \|$", (ROOT / page).read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(int(code) for code, _ in rows) == sorted(code.value for code in ExitCode)
    assert dict(rows)[str(ExitCode.NO_ANSWER.value)].startswith("no answer: ")
