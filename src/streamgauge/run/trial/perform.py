"""Perform: one trial on real processes. TrialSetup → Recording.

Load drivers and collector are started, the load begins at one moment for all, and the journals that they write are put
together second by second. The trial ends when the early-stop rule decides, or immediately when the queue is full, the
system under test ends, stalls or disconnects, or the load driver fails. Then a drain phase closes the last windows, and
the outputs are compared with the reference result.
"""

import time
from dataclasses import dataclass, replace
from typing import NamedTuple

from streamgauge.engines.contract import Deployment, UserCodeFailed
from streamgauge.model.facts import EngineFacts, TrialFacts
from streamgauge.model.seconds import Account, join
from streamgauge.model.trial import Ending, Outcome, Recording
from streamgauge.model.units import SECOND, duration_text
from streamgauge.processes.clock import Clock
from streamgauge.processes.control import ControlError, ControlRefused
from streamgauge.processes.launch import Launcher, LaunchError
from streamgauge.processes.placement import controller_pinned
from streamgauge.run.monitor.monitor import Monitor, available
from streamgauge.run.trial.assemble import assemble, newest
from streamgauge.run.trial.custom_result import UserReferenceError
from streamgauge.run.trial.drain import await_outputs, drain, driver_problems, unaccounted, unmonitored
from streamgauge.run.trial.facts import describe_engine, phases_of, trial_facts
from streamgauge.run.trial.outputs import MICRO, OutputCheck, plans_of_trial, stored_rows
from streamgauge.run.trial.processes import TrialProcesses, open_processes
from streamgauge.run.trial.setup import TrialSetup
from streamgauge.run.trial.supervise import (
    CHANNEL_ERRORS,
    StallDetector,
    connection_lost,
    exited_process,
    no_acknowledgement,
    not_ready,
    stop_reason,
)
from streamgauge.store.journal import read_rows
from streamgauge.transports.contract import TransportError
from streamgauge.workloads.parameters import watermark_of

_POLL_INTERVAL = 0.1
_DRAIN = SECOND
"""How long the load continues after the measurement, beyond the watermark: every window that ends in it closes."""
_QUIET = 5 * SECOND
"""How long after the drain no output may arrive before missing ones count as lost."""
_UNWRITTEN_LIMIT = 60 * SECOND
"""How long a load driver may take to write a second down: on a busy machine some seconds, never so long."""
_RAN_TO_END = ("completed", "decided")


@dataclass(frozen=True, slots=True)
class RunningTrial:
    """A trial while its job runs."""

    setup: TrialSetup
    processes: TrialProcesses
    deployment: Deployment
    check: OutputCheck
    drain_ns: int
    began_ns: int
    """When it began to be set up."""


class Ended(NamedTuple):
    """How the load of a trial ended, and what its outputs were worth."""

    ending: Ending
    detail: str
    account: Account = Account()
    closed_ns: int = 0
    """When all outputs were there, and the comparison began."""
    trace: tuple[str, ...] = ()
    user_error: bool = False
    watermark: int | None = None
    """Nanoseconds by which the reported watermark stays behind the newest event."""


def perform(setup: TrialSetup) -> Recording:
    """Run one trial to its end on the system of the setup, and return what happened in it."""
    began, trial, system = Clock().monotonic_ns(), setup.trial, setup.system
    if system is None:
        raise ValueError("a trial on real processes needs a system")
    drain_ns = watermark_of(setup.params) + _DRAIN if setup.check_outputs else 0
    try:
        check = OutputCheck.of(setup, plans_of_trial(setup, drain_ns))
        with (
            controller_pinned(setup.placement.driver),
            Launcher(setup.context.limits.runtime) as launcher,
            open_processes(setup, launcher, drain_ns) as processes,
        ):
            try:
                with system.deploy(processes.job_run()) as deployment:
                    return _run(RunningTrial(setup, processes, deployment, check, drain_ns, began))
            except (LaunchError, ControlError, ControlRefused) as error:  # while the other processes still run
                outcome = not_ready(processes, error)
    except UserCodeFailed as error:
        outcome = Outcome("crashed", str(error), error.trace, users_fault=True)
    except (LaunchError, ControlError, ControlRefused, TransportError) as error:
        transport = setup.context.transport
        reason = transport.failure() if transport else ""
        outcome = Outcome("driver-failed", reason or f"it did not start: {error}")
    return Recording(trial, join([]), outcome, unstarted_facts(setup))


def unstarted_facts(setup: TrialSetup) -> TrialFacts:
    """What is known of a trial whose job never ran."""
    engine = EngineFacts(name=setup.engine.name, options=setup.trial.options)
    return TrialFacts(engine=engine, placement=setup.placement.sentence)


def _run(running: RunningTrial) -> Recording:
    setup, processes, deployment = running.setup, running.processes, running.deployment
    engine = describe_engine(deployment)
    gone = exited_process(processes, deployment)
    if gone:  # it never consumed: nothing is published for it
        facts = replace(unstarted_facts(setup), engine=engine)
        return Recording(setup.trial, join([]), _unready(running, gone), facts)
    if engine.outputs is not None and processes.collector_control is not None:
        processes.collector_control.set_output_schema(engine.outputs)
    monitor = Monitor(processes.roles(), processes.folder) if available() else None
    try:
        processes.start(monitor)
        ending, detail, stop = _load(running)
        loaded = Clock().monotonic_ns()
        ended = _finish(running, ending, detail)
    except UserReferenceError as error:
        now = Clock().monotonic_ns()
        ended = Ended("crashed", str(error), closed_ns=now, trace=error.trace, user_error=True)
    finally:
        if monitor is not None:
            monitor.stop()
    return _recording(running, ended, stop, loaded, monitor)


def _recording(running: RunningTrial, ended: Ended, stop: int, loaded_ns: int, monitor: Monitor | None) -> Recording:
    """What happened, from the journals of all processes."""
    setup, processes = running.setup, running.processes
    seconds = assemble(processes.folder, len(processes.drivers), setup.placement, stop)
    intact = ended.ending != "driver-failed"
    monitored = unmonitored(monitor, processes.folder, seconds.stop)
    log = ended.trace if ended.user_error else () if processes.unstamped else _log(running, ended.ending)
    outcome = Outcome(
        ended.ending,
        ended.detail,
        log,
        ended.account,
        (*driver_problems(processes), *monitored) if intact else (),
        unaccounted(processes) if intact else (),
        setup.early_stop.silence,
        _user_error(running, ended),
        watermark=ended.watermark,
    )
    facts = trial_facts(processes, running.deployment, loaded_ns, seconds.stop)
    moments = (running.began_ns, processes.start_ns, loaded_ns, ended.closed_ns, Clock().monotonic_ns())
    return Recording(setup.trial, seconds, outcome, replace(facts, phases=phases_of(*moments)))


def _user_error(running: RunningTrial, ended: Ended) -> bool:
    """Whether the user's own code is the cause of how the trial ended."""
    if ended.user_error or ended.ending != "crashed":
        return ended.user_error
    failure = running.deployment.failure()
    by_engine = failure is not None and failure.user_error
    return by_engine or (bool(running.processes.unstamped) and running.setup.traits.custom is not None)


def _unready(running: RunningTrial, gone: tuple[Ending, str]) -> Outcome:
    """The outcome of a trial that ended before its load began."""
    ending, detail = gone
    if ending != "crashed":
        return Outcome(ending, detail)
    failure = running.deployment.failure()
    user_error = failure is not None and failure.user_error
    return Outcome(ending, detail, _log(running, ending), users_fault=user_error, unready=True)


def _log(running: RunningTrial, ending: Ending) -> tuple[str, ...]:
    """The lines that help: the trace of what failed, else the end of the log."""
    failure, system = running.deployment.failure(), running.setup.system
    if failure is not None and failure.trace:
        return failure.trace
    if ending not in ("crashed", "stalled") or system is None:
        return ()
    return tuple(line for group in system.processes().values() for p in group for line in p.tail(8))


def _load(running: RunningTrial) -> tuple[Ending, str, int]:
    """The load, until it is decided or has to stop; how it ended and how many seconds count."""
    setup, processes, deployment = running.setup, running.processes, running.deployment
    seen, before = 0, join([])
    detector = StallDetector(setup.trial.stall)
    while True:
        time.sleep(_POLL_INTERVAL)
        stop = stop_reason(processes, deployment, detector)
        if not stop and Clock().monotonic_ns() - processes.start_ns < (seen + 2) * SECOND:
            continue  # no further second can be closed yet: the journals are not read in vain
        closed = _closed_seconds(processes)
        stop = stop or _unusable_outputs(running) or _silent(processes, closed)
        ready = closed - (0 if stop else 1)  # the collector needs a moment for the last one
        if ready > seen:
            seconds = assemble(processes.folder, len(processes.drivers), setup.placement, ready)
            stretch = newest(before, seconds)
            setup.recorder.append(stretch)
            setup.context.observer.progressed(setup.trial, stretch)
            seen, before = ready, seconds
            if not stop and setup.early_stop.due(seen) and setup.early_stop.decided(seconds):
                whole = seen * SECOND >= (setup.trial.warmup or 0) + setup.trial.duration
                if setup.early_stop.stalled:
                    return "stalled", no_acknowledgement(setup.trial.stall), seen
                return ("completed" if whole else "decided"), "", seen
        if stop:
            return (*stop, seen)


def _finish(running: RunningTrial, ending: Ending, detail: str) -> Ended:
    """Send the load of the drain phase, write everything and compare the outputs. What fails here is how the trial
    ended."""
    processes, deployment, check, waited = running.processes, running.deployment, None, 0
    try:
        if ending != "driver-failed" and running.drain_ns:
            check = _drain(running, whole=ending in _RAN_TO_END)
            waited = Clock().monotonic_ns()
            gone = exited_process(processes, deployment)
            if gone and (gone[0] == "driver-failed" or ending in _RAN_TO_END):
                ending, detail = gone
        deployment.end()  # before its queue is removed
        processes.close_journals()
        unusable = processes.unreadable or processes.unstamped
        if unusable and ending in _RAN_TO_END:
            ending, detail = "crashed", unusable
    except CHANNEL_ERRORS as error:
        ending, detail = connection_lost(processes, deployment, error)
    closed, account = Clock().monotonic_ns(), Account()
    reported = deployment.watermark() if check else None
    if ending == "driver-failed":
        account = _stored_outputs(running)
    elif check:
        account = check.account(processes.folder, reported, waited - processes.start_ns)
    return Ended(ending, detail, account, closed, watermark=reported.delay * MICRO if reported else None)


def _stored_outputs(running: RunningTrial) -> Account:
    """The outputs that were stored before a process on the load driver's side ended.

    They are compared if all load drivers report what they sent. No missing row counts as lost: it may have come later.
    """
    processes = running.processes
    try:
        sent = None if processes.failure() or not running.drain_ns else processes.final_counts()
    except CHANNEL_ERRORS:
        sent = None
    if sent is None:
        return Account(observed=stored_rows(processes.folder))
    published = {name: counts.published for name, counts in sent.streams.items()}
    acknowledged = {name: counts.acknowledged for name, counts in sent.streams.items()}
    found = running.check.at(processes.wall_ns, acknowledged, published).account(processes.folder)
    return replace(found, lost=0, not_reached=found.not_reached + found.lost)


def _drain(running: RunningTrial, whole: bool) -> OutputCheck:
    """Let the last outputs arrive; the check of all that was acknowledged."""
    setup, processes, deployment = running.setup, running.processes, running.deployment
    # a trial that only guides the search has no drain phase: it is checked as far as it came
    drain_ns = running.drain_ns if whole and not setup.trial.may_end_early else 0
    batch_ns = setup.traits.batch_interval_ns
    drained = drain(processes, deployment, drain_ns, batch_ns, wait=drain_ns > 0 or setup.traits.updates)
    check = running.check.at(processes.wall_ns, drained.acknowledged, drained.published)
    if whole or processes.status().full:
        expected = check.rows_due(deployment.watermark())
        await_outputs(processes, deployment, expected, running.drain_ns + 2 * batch_ns + _QUIET)
    return check


def _unusable_outputs(running: RunningTrial) -> tuple[Ending, str] | None:
    """Outputs that cannot be counted: no further second would change it."""
    try:
        unusable = running.processes.unusable_outputs()
    except CHANNEL_ERRORS as error:
        return connection_lost(running.processes, running.deployment, error)
    return ("crashed", unusable) if unusable else None


def _silent(processes: TrialProcesses, closed: int) -> tuple[Ending, str] | None:
    """A load driver that runs and responds, and writes nothing any more: the trial would never end."""
    late = Clock().monotonic_ns() - processes.start_ns - closed * SECOND
    if late <= _UNWRITTEN_LIMIT:
        return None
    return "driver-failed", f"a load driver has recorded nothing for {duration_text(late // SECOND * SECOND)}"


def _closed_seconds(processes: TrialProcesses) -> int:
    try:
        rows = [read_rows(processes.folder / f"driver-{n}-seconds") for n in range(len(processes.drivers))]
    except FileNotFoundError:
        return 0
    return min(len(each) for each in rows)
