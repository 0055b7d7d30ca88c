"""Which tests run one after the other and which on all cores, and what happens to a test that the host disturbed.

In ``tests/integration``, a test is marked ``realtime`` unless its file is listed in ``PARALLEL``. Tests of these files
start real processes too, but what they check does not depend on how fast the machine is.

A ``realtime`` test that fails while the host took more than 5 % of a core is repeated, at most twice. If it fails each
time, it is reported as *spoiled* with the reason, and the whole run fails if more than 5 % of these tests are spoiled.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from _pytest.runner import runtestprotocol
from host_noise import HostNoise

INTEGRATION = Path(__file__).parent / "integration"
PARALLEL = {
    *("test_kafka_jars", "test_queue_flight", "test_random_experiments", "test_spark_recording", "test_store_crash"),
    *("test_cli_answers", "test_cli_exit_codes", "test_cli_input", "test_cli_interrupt", "test_cli_json"),
    *("test_cli_kill", "test_cli_lookup", "test_cli_report", "test_cli_streams", "test_without_pyspark"),
    *("test_kafka_broker", "test_kafka_cli", "test_kafka_limits", "test_kafka_producers", "test_kafka_ranges"),
    *("test_kafka_records", "test_kafka_transactions", "test_large_specification", "test_launch"),
    *("test_one_row_in_a_million", "test_spark_jobs_in_batch"),
}
MOST_SPOILED = 0.05
_REPEATS = 2
_ran: set[str] = set()
_repeated: dict[str, list[str]] = {}
_spoiled: dict[str, str] = {}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests of the folder. Parallel tests that use Kafka run in one process, so that they share a broker."""
    for item in items:
        if item.path.parent != INTEGRATION:
            continue
        if item.path.stem not in PARALLEL:
            item.add_marker("realtime")
        elif item.path.name.startswith("test_kafka"):
            item.add_marker(pytest.mark.xdist_group("kafka"))


def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """End the shared Kafka broker with the last test that may use it: it would take time from those that measure."""
    if nextitem is None or not nextitem.path.name.startswith("test_kafka"):
        kafka = sys.modules.get("kafka_broker")
        if kafka is not None:
            kafka.stop_shared()


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
    """What a failed attempt has left in the test, so that its fixtures are created again."""
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
