"""The page in a real browser: its charts are drawn, and no script fails. Headless, through its command line alone."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from cli_session import EXPERIMENT, streamgauge

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
BROWSER = next((found for name in BROWSERS if (found := shutil.which(name))), None)

pytestmark = pytest.mark.skipif(
    BROWSER is None, reason=f"no browser here: none of {', '.join(BROWSERS)} is on the path (apt install chromium)"
)


def dom_of(page: Path, folder: Path) -> str:
    """What the page has become once its scripts have run."""
    assert BROWSER is not None
    argv = [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder / 'profile'}"]
    argv += ["--virtual-time-budget=5000", "--window-size=1200,3000", "--dump-dom", page.as_uri()]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=True)
    return done.stdout


def told(dom: str, name: str) -> str | None:
    found = re.search(rf'<html[^>]* data-{name}="([^"]*)"', dom)
    return found[1] if found else None


@pytest.fixture
def page(tmp_path: Path) -> Path:
    file = tmp_path / "small.yaml"
    file.write_text(EXPERIMENT + "description: '</script><script>document.title = 1</script>'\n", encoding="utf-8")
    said = streamgauge("run", file, "--out", tmp_path / "runs")
    assert said.code == 0
    [report] = (tmp_path / "runs").glob("*/report.html")
    return report


def test_the_charts_are_drawn_and_no_script_fails(page: Path, tmp_path: Path) -> None:
    dom = dom_of(page, tmp_path)
    assert told(dom, "error") is None
    # of the two trials that prove the finding: latency, throughput and queue; a simulated system has no CPU
    assert told(dom, "charts") == "6"
    assert dom.count("<canvas") == 6
    assert "Another trial:" in dom


def test_a_script_that_fails_is_seen(page: Path, tmp_path: Path) -> None:
    text = page.read_text(encoding="utf-8")
    broken = tmp_path / "broken.html"
    broken.write_text(text.replace("var uPlot=", "var nothing=", 1), encoding="utf-8")
    assert text != broken.read_text(encoding="utf-8")
    dom = dom_of(broken, tmp_path)
    assert "uPlot is not defined" in (told(dom, "error") or "")
    assert "The charts could not be drawn" in dom
