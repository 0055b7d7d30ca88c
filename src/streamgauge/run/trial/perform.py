"""Perform: one trial on real processes. Trial → Recording, for engines with processes of their own.

Drivers, collector and system under test are started through the launcher, the load begins in step, and the
journals that they write are put together second by second. The trial ends when the watch says so, or at once
when the queue is full, the system under test is gone, stalls or drops its connection, or the driver fails.
Then a tail closes the last windows, and the outputs are checked against the reference answer.
"""

import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyarrow import flight

from streamgauge.engines.contract import Deployment, RealEngine, Standing, UsersCodeFailed, reported
from streamgauge.model.facts import TrialFacts
from streamgauge.model.seconds import Account, join
from streamgauge.model.trial import Ending, Outcome, Recording, Trial
from streamgauge.model.units import SECOND, format_duration
from streamgauge.processes.clock import Clock
from streamgauge.processes.control import LineError
from streamgauge.processes.launch import Launcher, LaunchError
from streamgauge.processes.placement import place
from streamgauge.run.monitor.monitor import Monitor, available
from streamgauge.run.trial.assemble import assemble, newest
from streamgauge.run.trial.custom_result import ReferenceFailed
from streamgauge.run.trial.drain import arrive, disturbances, settle, unaccounted, unmonitored
from streamgauge.run.trial.facts import describe, facts_of, phases, roles
from streamgauge.run.trial.outputs import OutputCheck
from streamgauge.run.trial.processes import Rewrite, Stage, finish, horizon, pinned, staged, start
from streamgauge.run.trial.setup import Keeper, Listener, Watcher
from streamgauge.run.trial.supervise import (
    Progress,
    no_acknowledgement,
    who_is_gone,
    why_broken,
    why_unanswered,
    why_unready,
)
from streamgauge.store.journal import read_rows
from streamgauge.transports.kafka.client.protocol import KafkaFailure
from streamgauge.workloads.contract import Workload

if TYPE_CHECKING:
    from streamgauge.transports.kafka.transport import Kafka

_GLANCE = 0.1
_TAIL = SECOND
"""How long the load goes on after the judged seconds, beyond the watermark: every window that ends in them closes."""
_SILENCE = 5 * SECOND
"""How long after the tail no output may come before those that are missing count as lost."""
_UNWRITTEN = 60 * SECOND
"""How long a driver may take to write a second down: on a busy machine some seconds, never so long."""
_WHOLE = ("completed", "decided")


def perform(
    trial: Trial,
    engine: RealEngine,
    workload: Workload[Any],
    watch: Watcher,
    partial: Keeper,
    *,
    listener: Listener,
    runtime: Path | None = None,
    rewrite: Rewrite = lambda order: order,
    standing: Standing | None = None,
    checked: bool = True,
    kafka: "Kafka | None" = None,
) -> Recording:
    """Run one trial to its end and return what happened in it.

    A ``standing`` system serves it, else the engine starts one for it. What is not ``checked`` has no tail. On
    ``kafka`` its events and outputs travel, where the trial says so.
    """
    if trial.transport.name == "kafka" and kafka is None:
        raise ValueError("a trial on Kafka needs the Kafka of its run")
    folder, placement = partial.path, place(trial.options)
    tail = int(trial.params.get("watermark", 0)) + _TAIL if checked else 0
    begun = Clock().monotonic_ns()
    try:
        promise = engine.promise(trial.options)
        check = OutputCheck(workload, trial, trial.profile.plan(horizon(trial, tail)), promise)
        with (
            pinned(placement.driver),
            Launcher(runtime) as launcher,
            staged(trial, folder, placement, launcher, tail, rewrite=rewrite, promise=promise, kafka=kafka) as scene,
        ):
            stage, endpoints = scene
            try:
                served = standing.serve(trial, endpoints) if standing else engine.deploy(trial, endpoints, launcher)
                with served as system:
                    show = _Show(stage, system, check, tail, engine.trigger(trial.options), begun)
                    return _conduct(show, watch, partial, listener=listener)
            except (LaunchError, LineError, flight.FlightError) as error:  # while the other processes still run
                outcome = why_unready(stage, error)
    except UsersCodeFailed as error:
        outcome = Outcome("crashed", str(error), error.trace, users_fault=True)
    except (LaunchError, KafkaFailure) as error:
        fallen = kafka.fallen() if kafka else ""
        outcome = Outcome("driver-failed", fallen or f"it did not start: {error}")
    facts = TrialFacts(engine.describe(trial.options), placement=placement.sentence)
    return Recording(trial, join([]), outcome, facts)


@dataclass(frozen=True, slots=True)
class _Show:
    """A trial on its stage: what it is checked against, how long its tail is, how far its micro-batches are apart, and
    when it began to be set up."""

    stage: Stage
    system: Deployment
    check: OutputCheck
    tail: int
    trigger: int
    begun: int


def _conduct(show: _Show, watch: Watcher, partial: Keeper, *, listener: Listener) -> Recording:
    stage, system = show.stage, show.system
    described = describe(system)
    gone = who_is_gone(stage, system)
    if gone:  # it never consumed: nothing is published for it
        facts = TrialFacts(described, placement=stage.placement.sentence)
        return Recording(stage.trial, join([]), _unready(system, gone), facts)
    if stage.topics is not None and stage.output is not None and described.outputs:
        stage.output.expect(described.outputs)
    monitor = Monitor(roles(stage, system), stage.folder) if available() else None
    try:
        start(stage, monitor)
        ending, detail, stop = _load(stage, system, watch, partial, listener=listener)
        loaded = Clock().monotonic_ns()
        users, trace = False, tuple[str, ...]()
        ending, detail, account, closed = _close(show, (ending, detail))
    except ReferenceFailed as error:
        ending, detail, account, closed = "crashed", str(error), Account(), Clock().monotonic_ns()
        users, trace = True, error.trace
    finally:
        if monitor is not None:
            monitor.stop()
    seconds = assemble(stage.folder, len(stage.drivers), stage.placement, stop)
    facts = facts_of(stage, system, loaded, seconds.stop)
    failure = system.failure()
    blamed = users or (ending == "crashed" and failure is not None and failure.users)
    blamed = blamed or (ending == "crashed" and bool(stage.unstamped) and show.check.promise.own)
    lives = ending != "driver-failed"
    disturbed = (*disturbances(stage), *unmonitored(monitor, stage.folder, seconds.stop)) if lives else ()
    log = trace if users else () if stage.unstamped else _log(system, ending)
    unknown = unaccounted(stage) if lives else ()
    outcome = Outcome(ending, detail, log, account, disturbed, unknown, watch.silence, blamed)
    took = phases(show.begun, stage.start_ns, loaded, closed, Clock().monotonic_ns())
    return Recording(stage.trial, seconds, outcome, replace(facts, phases=took))


def _unready(system: Deployment, gone: tuple[Ending, str]) -> Outcome:
    """The outcome of a trial that ended before its load began."""
    ending, detail = gone
    if ending != "crashed":
        return Outcome(ending, detail)
    failure = system.failure()
    users = failure is not None and failure.users
    return Outcome(ending, detail, _log(system, ending), users_fault=users, unready=True)


def _log(system: Deployment, ending: Ending) -> tuple[str, ...]:
    """The lines that help: the trace of what failed, else the last of the log."""
    failure = system.failure()
    if failure is not None and failure.trace:
        return failure.trace
    return tuple(line for p in system.processes() for line in p.tail(8)) if ending in ("crashed", "stalled") else ()


def _close(show: _Show, ended: tuple[Ending, str]) -> tuple[Ending, str, Account, int]:
    """Send the tail, write everything down and check the outputs. What fails here is how the trial ended.

    Also the moment at which all was there, and the check began.
    """
    stage, system, check, waited = show.stage, show.system, None, 0
    try:
        if ended[0] != "driver-failed" and show.tail:
            check = _wind_up(show, whole=ended[0] in _WHOLE)
            waited = Clock().monotonic_ns()
            gone = who_is_gone(stage, system)
            ended = gone if gone and (gone[0] == "driver-failed" or ended[0] in _WHOLE) else ended
        system.end()  # before its queue goes away under it
        finish(stage)
        unusable = stage.unreadable or stage.unstamped
        if unusable and ended[0] in _WHOLE:
            ended = "crashed", unusable
    except (flight.FlightError, KafkaFailure) as error:
        ended = why_unanswered(stage, system, error)
    closed, account = Clock().monotonic_ns(), Account()
    if check and ended[0] != "driver-failed":  # without a whole driver nobody knows what should have come out
        account = check.account(stage.folder, reported(system), waited - stage.start_ns)
    return (*ended, account, closed)


def _wind_up(show: _Show, whole: bool) -> OutputCheck:
    """Let what is still to come arrive; the answer to all that was acknowledged."""
    stage = show.stage
    # what only tells where to look further has no tail: it is checked as far as it came
    tail = show.tail if whole and not stage.trial.may_end_early else 0
    drain = tail > 0 or show.check.promise.last_row_wins
    acknowledged, published = settle(stage, show.system, tail, show.trigger, drain=drain)
    check = replace(show.check, origin=stage.wall_ns, acknowledged=acknowledged, published=published)
    if whole or stage.status()["full"]:
        arrive(stage, show.system, check.closed_rows(reported(show.system)), show.tail + 2 * show.trigger + _SILENCE)
    return check


def _load(
    stage: Stage, system: Deployment, watch: Watcher, partial: Keeper, *, listener: Listener
) -> tuple[Ending, str, int]:
    """The load, until it is decided or broken off; how it ended and how many seconds count."""
    seen, before = 0, join([])
    progress = Progress(stage.trial.stall)
    while True:
        time.sleep(_GLANCE)
        broken = why_broken(stage, system, progress)
        if not broken and Clock().monotonic_ns() - stage.start_ns < (seen + 2) * SECOND:
            continue  # no further second can be closed yet: the journals are not read for nothing
        closed = _closed_seconds(stage)
        broken = broken or _unusable_outputs(stage, system) or _silent(stage, closed)
        ready = closed - (0 if broken else 1)  # the collector needs a moment for the last one
        if ready > seen:
            seconds = assemble(stage.folder, len(stage.drivers), stage.placement, ready)
            stretch = newest(before, seconds)
            partial.append(stretch)
            listener.progressed(stage.trial, stretch)
            seen, before = ready, seconds
            if not broken and watch.wants(seen) and watch.look(seconds):
                whole = seen * SECOND >= (stage.trial.warmup or 0) + stage.trial.duration
                if watch.stalled:
                    return "stalled", no_acknowledgement(stage.trial.stall), seen
                return ("completed" if whole else "decided"), "", seen
        if broken:
            return (*broken, seen)


def _unusable_outputs(stage: Stage, system: Deployment) -> tuple[Ending, str] | None:
    """Outputs that cannot be counted: no further second would change it."""
    try:
        unusable = stage.look_at_outputs()
    except flight.FlightError as error:
        return why_unanswered(stage, system, error)
    return ("crashed", unusable) if unusable else None


def _silent(stage: Stage, closed: int) -> tuple[Ending, str] | None:
    """A driver that runs and answers, and writes nothing down any more: the trial would never end."""
    late = Clock().monotonic_ns() - stage.start_ns - closed * SECOND
    if late <= _UNWRITTEN:
        return None
    return "driver-failed", f"a load driver has recorded nothing for {format_duration(late // SECOND * SECOND)}"


def _closed_seconds(stage: Stage) -> int:
    try:
        return min(len(read_rows(stage.folder / f"driver-{n}-seconds")) for n in range(len(stage.drivers)))
    except FileNotFoundError:
        return 0
