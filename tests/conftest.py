"""Tests marked ``realtime`` run one after the other, and are not judged if the host disturbed them.

A test that fails while the host took more than 5 % of a core is repeated, at most twice. If it fails each time, it is
reported as *spoiled* with the reason, and the whole run fails if more than 5 % of these tests are spoiled.
"""

from collections.abc import Sequence

import pytest
from _pytest.runner import runtestprotocol
from host_noise import HostNoise

MOST_SPOILED = 0.05
_REPEATS = 2
_ran: set[str] = set()
_repeated: dict[str, list[str]] = {}
_spoiled: dict[str, str] = {}


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """Run a test in real time until the host lets it be judged, at most three times."""
    if item.get_closest_marker("realtime") is None:
        return None
    _ran.add(item.nodeid)
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    reports, cause = _run(item, nextitem)
    while cause and len(_repeated.setdefault(item.nodeid, [])) < _REPEATS:
        _repeated[item.nodeid].append(cause)
        _forget(item)
        reports, cause = _run(item, nextitem)
    if cause:
        _spoiled[item.nodeid] = cause
    for report in reports:
        if cause and report.failed:
            report.user_properties.append(("spoiled", str(report.longrepr)))
            report.outcome = "skipped"
            report.longrepr = (str(item.path), item.location[1] or 0, f"Spoiled by the host: {cause}")
        item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


def _run(item: pytest.Item, nextitem: pytest.Item | None) -> tuple[Sequence[pytest.TestReport], str]:
    """Run it once: its reports, and what the host did to it if it failed."""
    with HostNoise() as noise:
        reports = runtestprotocol(item, log=False, nextitem=nextitem)
    return reports, noise.disturbance if any(report.failed for report in reports) else ""


def _forget(item: pytest.Item) -> None:
    """What a failed attempt has left in the test, so that its fixtures are made anew."""
    if isinstance(item, pytest.Function):
        item._initrequest()
        for definitions in item._fixtureinfo.name2fixturedefs.values():
            for definition in definitions:
                if definition.cached_result is not None and definition.cached_result[2] is not None:
                    definition.cached_result = None


def pytest_report_teststatus(report: pytest.TestReport) -> tuple[str, str, str] | None:
    """A spoiled test is neither passed nor skipped nor failed."""
    if report.skipped and any(name == "spoiled" for name, _ in report.user_properties):
        return "spoiled", "~", "SPOILED"
    return None


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say what was repeated and what was spoiled, with the reason and with what the last attempt said."""
    if not _repeated:
        return
    terminalreporter.section("real-time tests that the host disturbed")
    for name, causes in _repeated.items():
        outcome = "spoiled" if name in _spoiled else "judged after"
        terminalreporter.line(f"{outcome} {len(causes)} repetitions: {name}: {causes[-1]}")
    for report in terminalreporter.stats.get("spoiled", []):
        terminalreporter.line(f"\n{report.nodeid}\n{dict(report.user_properties)['spoiled'][-3000:]}")
    terminalreporter.line(f"\n{len(_spoiled)} of {len(_ran)} real-time tests were spoiled (at most 5 % may be).")


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Too many spoiled tests are no proof of anything."""
    if len(_spoiled) > MOST_SPOILED * len(_ran) and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
