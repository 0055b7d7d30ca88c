"""Measurement → Verdict: DESIGN's table of verdicts, from the top down."""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from streamgauge.judge.disturbed import MOST_RUN_DELAY, MOST_TAKEN, Mask, burst, until_renewal
from streamgauge.judge.generator import generator_faults, unless_spoilt
from streamgauge.judge.measure import measure
from streamgauge.judge.objectives import WRONG, check, evidence, runs_away
from streamgauge.judge.trend_rules import ASSUMED_ERROR, lean_of
from streamgauge.model.measurement import SLIGHTLY_TAKEN, Check, Estimate, Measurement, Verdict, VerdictKind
from streamgauge.model.objective import Objective
from streamgauge.model.seconds import Account
from streamgauge.model.trial import INTACT, Recording
from streamgauge.model.units import SECOND, format_count, format_duration, format_rate, format_share

MOST_CLOCK_STEP = SECOND // 100
LEAST_NOISE = 0.6 * ASSUMED_ERROR


def decide(recording: Recording, measured: Measurement, objectives: Sequence[Objective]) -> Verdict:
    """What the trial says."""
    verdict = unless_spoilt(recording, measured, objectives, _decide(recording, measured, objectives))
    return replace(verdict, carries=measured.carries)


def _decide(recording: Recording, measured: Measurement, objectives: Sequence[Objective]) -> Verdict:
    """A fault of the driver never counts against the engine, and never hides one of the engine.

    An error in the user's code comes first: it would be the same on the quietest machine. On the queue, where offsets
    are exact, so would lost, duplicate and wrong outputs.
    """
    outcome = recording.outcome
    if outcome.users_fault:
        trace = (f"trace: {line}" for line in outcome.log_tail)
        return Verdict(VerdictKind.FAILED, (outcome.detail, *trace), stops_run=True)
    faults, starved = driver_faults(recording, measured, objectives), _starved(measured)
    if faults:
        return _in_spite_of([*faults, *starved], recording, measured, objectives)
    verdict = _judged(recording, measured, objectives)
    if starved:
        return _although_starved(starved, recording, measured, objectives, verdict)
    much = None if verdict.kind is VerdictKind.SUSTAINED else burst(recording.trial, recording.seconds)
    disturbed = much is not None or measured.foreign_share > MOST_TAKEN
    if disturbed and _by_outputs(recording, verdict) and not _exact(recording):
        return _unexplained(verdict, measured)
    if much is None:
        return _weighed(verdict, measured)
    return _without_burst(recording, measured, objectives, verdict, much)


def _although_starved(
    starved: Sequence[str],
    recording: Recording,
    measured: Measurement,
    objectives: Sequence[Objective],
    verdict: Verdict,
) -> Verdict:
    """A driver without CPU serves and acknowledges late, which can only have made the system look worse."""
    if verdict.kind is not VerdictKind.SUSTAINED:
        return _in_spite_of(starved, recording, measured, objectives)
    stands = (
        f"the load driver waited for a CPU {format_share(measured.run_delay_share)} of the time; the load was "
        "sustained anyway, and latencies are upper bounds"
    )
    return _weighed(replace(verdict, reasons=(*verdict.reasons, stands)), measured)


def _in_spite_of(
    faults: Sequence[str], recording: Recording, measured: Measurement, objectives: Sequence[Objective]
) -> Verdict:
    """INVALID with the counts of outputs, unless these are the fault of the system under test for certain."""
    checks = tuple(check(o, measured) for o in objectives)
    wrongs = _nothing_came(measured) or _output_faults(measured.account, objectives, checks)
    if not (wrongs and _exact(recording)):
        return Verdict(VerdictKind.INVALID, (*faults, *_counts(measured.account)))
    besides = (f"also: {fault}" for fault in faults)
    return Verdict(VerdictKind.FAILED, (*wrongs, *besides), checks, stops_run=True)


def _exact(recording: Recording) -> bool:
    """Whether no disturbance explains faulty outputs: offsets are exact, and every process came to its end."""
    outcome = recording.outcome
    return recording.trial.transport.name == "queue" and outcome.ending in INTACT and not outcome.unaccounted


def _by_outputs(recording: Recording, verdict: Verdict) -> bool:
    """Whether the trial failed because of its outputs, and not because the system could not be started."""
    return verdict.stops_run and recording.outcome.ending in INTACT


def _unexplained(verdict: Verdict, measured: Measurement) -> Verdict:
    """INVALID with the counts: the disturbance or the system may be the cause of the faulty outputs."""
    why = (
        f"{_others(measured)}, which may be the cause of the faulty outputs on this transport; {_way_out(measured)} "
        "and repeat the trial"
    )
    return Verdict(VerdictKind.INVALID, (why, *verdict.reasons, *_counts(measured.account)), verdict.checks)


def _judged(recording: Recording, measured: Measurement, objectives: Sequence[Objective]) -> Verdict:
    """What the numbers say by themselves, whoever else used the cores of the system under test."""
    trial = recording.trial
    lean = lean_of(trial.may_end_early, trial.duration / SECOND, trial.limit / SECOND)
    checks = tuple(check(o, measured, lean) for o in objectives)
    late = [c.sentence for o, c in zip(objectives, checks, strict=True) if o.metric == "late" and c.state == "broken"]
    wrongs = [*_output_faults(measured.account, objectives, checks), *late]
    stop = _sut_faults(recording, measured, wrongs, checks)
    if stop is not None:
        return stop
    estimate = boundary(objectives, measured)
    broken = tuple(c.sentence for c in checks if c.state == "broken") or _ran_away(objectives, measured)
    if recording.outcome.ending == "queue-full":
        bound = recording.outcome.detail
        why = f"the queue reached its limit ({bound}) at {format_rate(measured.load)}; lower the load"
        broken = (why, *broken)
    if broken:
        return Verdict(VerdictKind.OVERLOADED, broken, checks, estimate)
    unclear = (*(c.sentence for c in checks if c.state == "unclear"), *_unproven(recording, measured))
    if unclear:
        return Verdict(VerdictKind.UNDECIDED, unclear, checks, estimate)
    return Verdict(VerdictKind.SUSTAINED, tuple(c.sentence for c in checks), checks, estimate)


def _weighed(verdict: Verdict, measured: Measurement) -> Verdict:
    """The verdict in the light of what others took, which can only have made things worse."""
    taken = measured.foreign_share
    if verdict.kind is VerdictKind.OVERLOADED and _by_trend(verdict, measured):
        return _corrected(verdict, measured)
    if taken <= MOST_TAKEN or verdict.stops_run:
        return verdict
    if verdict.kind is VerdictKind.SUSTAINED:
        why = f"{_others(measured)}; the load was sustained anyway, and latencies are upper bounds"
        return replace(verdict, reasons=(*verdict.reasons, why))
    why = (
        f"{_others(measured)} (limit {format_share(MOST_TAKEN)}), so a missed objective proves nothing; "
        f"{_way_out(measured)}"
    )
    return Verdict(VerdictKind.INVALID, (why, *verdict.reasons, *_counts(measured.account)), verdict.checks)


def _others(m: Measurement) -> str:
    return f"{_who_took(m)} {format_share(m.foreign_share)} of the CPU of the system under test"


def _who_took(m: Measurement) -> str:
    return "the hypervisor took" if _is_steal(m) else "other processes used"


def _is_steal(m: Measurement) -> bool:
    """Whether most of what was taken is steal time; the kernel also shows it as the time of unknown processes."""
    return m.steal_share > 0.5 * m.foreign_share


def _way_out(m: Measurement) -> str:
    return "use a machine whose CPUs are not shared" if _is_steal(m) else "stop other work on these cores"


def _by_trend(verdict: Verdict, measured: Measurement) -> bool:
    """Whether the trend of the lag broke: with all of its CPU the system would have gained what others took."""
    broken = any(c.state == "broken" and c.objective.startswith("lag-trend") for c in verdict.checks)
    return broken or measured.runaway


def _corrected(verdict: Verdict, measured: Measurement) -> Verdict:
    """An overload with the share that others took: it speaks of the load L / (1 − taken)."""
    taken = measured.foreign_share
    if taken <= SLIGHTLY_TAKEN:
        return replace(verdict, taken=max(taken, 0.0))
    left = 1 - min(taken, 0.99)
    seen = verdict.estimate
    why = f"{_others(measured)}; it counts as a failure at {1 / left:.3f} × the load"
    estimate = None if seen is None else Estimate(seen.boundary / left, seen.error / left)
    return replace(verdict, taken=taken, estimate=estimate, reasons=(*verdict.reasons, why))


def _without_burst(
    recording: Recording, measured: Measurement, objectives: Sequence[Objective], verdict: Verdict, much: Mask
) -> Verdict:
    """The verdict without a burst of other work: up to where lag is back at its floor, or else the burst alone.

    An overload that the rest of the trial shows by itself needs no such moment, as the queue was never empty.
    """
    cut = until_renewal(recording.trial, recording.seconds, much)
    rest = measure(recording, much if cut is None else cut)
    found = _weighed(_judged(recording, rest, objectives), rest)
    seconds = int(np.count_nonzero(much))
    who = _who_took(measured)
    if cut is not None:
        left_out = f"{np.count_nonzero(cut)} s were excluded; in {seconds} s of them {who} CPU of the system under test"
        return replace(found, reasons=(*found.reasons, left_out))
    if verdict.stops_run or (found.kind is VerdictKind.OVERLOADED and _by_trend(found, rest)):
        return found
    why = (
        f"{who} CPU of the system under test for {seconds} s, and its queue was not back at its floor after that; "
        f"{_way_out(measured)}"
    )
    return Verdict(VerdictKind.INVALID, (why, *verdict.reasons, *_counts(measured.account)), verdict.checks)


def _ran_away(objectives: Sequence[Objective], measured: Measurement) -> tuple[str, ...]:
    """Lag that runs away is an overload, whichever objective is asked for, unless one allows so much growth."""
    if not runs_away(objectives, measured):
        return ()
    grown = format_count(measured.lag_end - measured.lag_start)
    return (f"the lag grew by {grown} events in {format_duration(measured.lag_seconds * SECOND)}, a clear overload",)


def driver_faults(recording: Recording, m: Measurement, objectives: Sequence[Objective]) -> list[str]:
    """Sentences on what the driver or the machine did wrong."""
    outcome = recording.outcome
    faults = [*outcome.unaccounted, *outcome.disturbances]
    if outcome.ending == "driver-failed":
        faults.append(f"the load driver failed: {outcome.detail or 'no reason was given'}")
    faults += generator_faults(recording.trial, m, objectives)
    if m.clock_step > MOST_CLOCK_STEP:
        faults.append(
            f"the wall clock jumped by {format_duration(m.clock_step)} (limit {format_duration(MOST_CLOCK_STEP)}); "
            "stop the process that sets it, and repeat the trial"
        )
    return faults


def _starved(m: Measurement) -> list[str]:
    """A sentence on a driver that kept to its plan but often waited for a CPU."""
    if m.run_delay_share <= MOST_RUN_DELAY:
        return []
    return [
        f"the load driver waited for a CPU {format_share(m.run_delay_share)} of the time (limit "
        f"{format_share(MOST_RUN_DELAY)}); keep other work off its cores"
    ]


def _sut_faults(
    recording: Recording, measured: Measurement, wrongs: Sequence[str], checks: Sequence[Check]
) -> Verdict | None:
    outcome = recording.outcome
    at = f"at {format_rate(measured.load)}"
    if outcome.ending == "crashed" and outcome.unready:
        why = f"the system under test failed before the load started: {outcome.detail}"
        tail = tuple(f"its log: {line}" for line in outcome.log_tail[-8:])
        # only a search over something else than the load changes what it starts with
        return Verdict(VerdictKind.FAILED, (why, *tail), stops_run=recording.trial.ask.dimension == "load")
    if outcome.ending in ("crashed", "stalled", "dropped"):
        what = {"crashed": "crashed", "stalled": "stalled", "dropped": "closed its connection to the queue"}
        tail = tuple(f"its log: {line}" for line in outcome.log_tail[-5:])
        detail = f": {outcome.detail}" if outcome.detail else ""
        why = f"the system under test {what[outcome.ending]} {at}{detail}"
        return Verdict(VerdictKind.FAILED, (why, *tail), tuple(checks))
    wrongs = _nothing_came(measured) or wrongs
    return Verdict(VerdictKind.FAILED, tuple(wrongs), tuple(checks), stops_run=True) if wrongs else None


def _nothing_came(measured: Measurement) -> list[str]:
    """The sentence on a system that consumes and puts out nothing."""
    account = measured.account
    due = account.expected - account.not_reached
    if not account.checked or due <= 0 or account.observed:
        return []
    at = format_rate(measured.load)
    return [
        f"the system under test read its input at {at} but produced none of the {format_count(due)} expected outputs"
    ]


def _output_faults(account: Account, objectives: Sequence[Objective], checks: Sequence[Check]) -> list[str]:
    """Sentences on outputs that were lost, came twice or were wrong, beyond what the objectives allow."""
    named: set[str] = {o.metric for o in objectives}
    broken = (c for o, c in zip(objectives, checks, strict=True) if o.metric in WRONG and c.state == "broken")
    return [*_unnamed_faults(account, named), *(c.sentence for c in broken)]


def _counts(account: Account) -> tuple[str, ...]:
    """What is known of the outputs of a trial that says nothing about them for certain."""
    counts = [(getattr(account, name), name) for name in WRONG]
    if not any(count for count, _ in counts):
        return ()
    shown = ", ".join(f"{format_count(count)} {name}" for count, name in counts)
    return (f"outputs compared with the reference result: {shown} of {format_count(account.expected)} expected",)


def _unproven(recording: Recording, measured: Measurement) -> tuple[str, ...]:
    """Why a trial that broke nothing has not shown that it holds."""
    found, account, silence = [], measured.account, recording.outcome.silence
    if silence:
        found.append(
            f"the system under test acknowledged nothing for {format_duration(silence)} at the end of the trial, and "
            "what it did after that was not measured; repeat the trial or increase trial.duration"
        )
    if account.checked and account.rows_checked <= 0:
        length = f" to more than {format_duration(account.first_close)}" if account.first_close else ""
        found.append(
            f"no output could be compared with the reference result, because no window closed in "
            f"{measured.judged_seconds} s; increase trial.duration{length}, or reduce the window and the watermark"
        )
    return tuple(found)


def _unnamed_faults(account: Account, named: set[str]) -> list[str]:
    """Lost, doubled or wrong outputs fail a trial also where no objective names them."""
    faults = {"lost": account.lost, "duplicate": account.duplicate, "wrong": account.wrong}
    return [
        f"{format_count(count)} of {format_count(account.expected)} outputs {'was' if count == 1 else 'were'} "
        f"{'duplicated' if m == 'duplicate' else m}, so the results of the system under test are incorrect "
        f"(to allow this, add an objective such as '{m} <= 0.1%')"
        for m, count in faults.items()
        if count and m not in named
    ]


def boundary(objectives: Sequence[Objective], measured: Measurement) -> Estimate | None:
    """The load at which the lag trend would just hold, read from how fast an overloaded queue grows.

    Growth is load − capacity; the objective holds up to growth = θ·load (relative) or θ (absolute).
    """
    if measured.capacity is None:
        return None
    for objective in objectives:
        if objective.metric != "lag-trend" or evidence(objective, measured) is None:
            continue
        held, error = measured.capacity.mean, measured.capacity.error
        # a short stretch cannot tell its own noise: its error is at least that of a modest one
        error = max(error, LEAST_NOISE * abs(held) / math.sqrt(max(measured.judged_seconds, 1)))
        if objective.relative:
            scale = 1 / (1 - objective.threshold) if objective.threshold < 1 else 1.0
            return Estimate(held * scale, error * scale)
        return Estimate(held + objective.threshold, error)
    return None
