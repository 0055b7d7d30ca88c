"""Measurement → Verdict. The first condition of the list in docs/concepts/verdicts.md that is true decides."""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from streamgauge.judge.disturbed import (
    MAX_FOREIGN_SHARE,
    MAX_RUN_DELAY_SHARE,
    Mask,
    burst,
    taken_while_silent,
    until_renewal,
)
from streamgauge.judge.generator import generator_faults, unless_explained
from streamgauge.judge.measure import measure
from streamgauge.judge.objectives import INCORRECT, evaluate, has_runaway_lag, trend_evidence
from streamgauge.judge.trend_rules import ASSUMED_ERROR, trend_rule_for
from streamgauge.model.measurement import NEGLIGIBLE_SHARE, Check, Estimate, Measurement, Verdict, VerdictKind
from streamgauge.model.objective import Objective
from streamgauge.model.seconds import Account
from streamgauge.model.trial import INTACT, Recording
from streamgauge.model.units import SECOND, duration_text, format_count, format_duration, format_rate, share_text

MAX_CLOCK_STEP = SECOND // 100
MIN_NOISE = 0.6 * ASSUMED_ERROR
_NOT_BY_OTHERS = ("crashed", "dropped")
"""Endings that no other process causes: less CPU time makes a system slower, but does not end it."""


def decide(recording: Recording, measured: Measurement, objectives: Sequence[Objective]) -> Verdict:
    """The verdict of a trial."""
    verdict = unless_explained(recording, measured, objectives, _decide(recording, measured, objectives))
    return replace(verdict, carries=measured.carries)


def _decide(recording: Recording, measured: Measurement, objectives: Sequence[Objective]) -> Verdict:
    """A verdict in which a fault of the load driver neither counts against the engine nor hides a fault of it.

    An error in the user's code comes first, because no disturbance causes it. The same is true of lost, duplicate and
    wrong outputs on a transport with exact offsets.
    """
    outcome = recording.outcome
    if outcome.users_fault:
        trace = (f"trace: {line}" for line in outcome.log_tail)
        return Verdict(VerdictKind.FAILED, (outcome.detail, *trace), stops_run=True)
    faults, starved = driver_faults(recording, measured, objectives), _starvation(measured)
    if faults:
        return _with_driver_faults([*faults, *starved], recording, measured, objectives)
    verdict = _verdict_of_numbers(recording, measured, objectives)
    if outcome.ending in _NOT_BY_OTHERS or (outcome.ending == "stalled" and not starved):
        return _ended_by_failure(recording, verdict, measured, starved)
    if starved:
        return _with_starved_driver(starved, recording, measured, objectives, verdict)
    return _with_disturbances(recording, measured, objectives, verdict)


def _with_disturbances(
    recording: Recording, measured: Measurement, objectives: Sequence[Objective], verdict: Verdict
) -> Verdict:
    """The verdict with regard to other processes on the cores of the system under test."""
    disturbed = None if verdict.kind is VerdictKind.SUSTAINED else burst(recording.trial, recording.seconds)
    was_disturbed = disturbed is not None or measured.foreign_share > MAX_FOREIGN_SHARE
    if was_disturbed and _failed_by_outputs(recording, verdict) and not _offsets_are_exact(recording):
        return _with_unexplained_outputs(verdict, measured)
    if disturbed is None:
        return _with_foreign_load(verdict, measured)
    return _without_burst(recording, measured, objectives, verdict, disturbed)


def _ended_by_failure(recording: Recording, verdict: Verdict, measured: Measurement, starved: Sequence[str]) -> Verdict:
    """FAILED with a note on what other processes used, because that does not end a system.

    A stall is INVALID if they used so much CPU while nothing was acknowledged that they may be the cause.
    """
    share = taken_while_silent(recording.seconds) if recording.outcome.ending == "stalled" else 0.0
    if share > MAX_FOREIGN_SHARE:
        why = (
            f"{_who_used(measured)} {share_text(share)} of the CPU of the system under test while it acknowledged "
            f"nothing (limit {share_text(MAX_FOREIGN_SHARE)}), so the stall proves nothing; {_advice(measured)}"
        )
        return Verdict(VerdictKind.INVALID, (why, *verdict.reasons, *_output_counts(measured.account)), verdict.checks)
    notes = [f"also: {fault}" for fault in starved]
    if measured.foreign_share > NEGLIGIBLE_SHARE:
        notes.insert(0, f"{_foreign_load(measured)}, which does not explain the failure")
    return replace(verdict, reasons=(*verdict.reasons, *notes))


def _with_starved_driver(
    starved: Sequence[str],
    recording: Recording,
    measured: Measurement,
    objectives: Sequence[Objective],
    verdict: Verdict,
) -> Verdict:
    """The verdict if the load driver often waited for a CPU, which can only make the system under test look worse."""
    if verdict.kind is not VerdictKind.SUSTAINED:
        return _with_driver_faults(starved, recording, measured, objectives)
    note = (
        f"the load driver waited for a CPU {share_text(measured.run_delay_share)} of the time; the load was "
        "sustained anyway, and latencies are upper bounds"
    )
    return _with_foreign_load(replace(verdict, reasons=(*verdict.reasons, note)), measured)


def _with_driver_faults(
    faults: Sequence[str], recording: Recording, measured: Measurement, objectives: Sequence[Objective]
) -> Verdict:
    """INVALID with the counts of outputs, or FAILED if wrong outputs are certainly a fault of the system under test."""
    checks = tuple(evaluate(o, measured) for o in objectives)
    incorrect = _no_output(measured) or _output_faults(measured.account, objectives, checks)
    if not (incorrect and _offsets_are_exact(recording)):
        ended = recording.outcome.ending == "driver-failed"
        counts = (_stored_counts if ended else _output_counts)(measured.account)
        return Verdict(VerdictKind.INVALID, (*faults, *counts))
    others = (f"also: {fault}" for fault in faults)
    return Verdict(VerdictKind.FAILED, (*incorrect, *others), checks, stops_run=True)


def _offsets_are_exact(recording: Recording) -> bool:
    """Whether no disturbance explains wrong outputs, because offsets are exact and every process ended normally."""
    outcome = recording.outcome
    return recording.trial.transport.exact_offsets and outcome.ending in INTACT and not outcome.unaccounted


def _failed_by_outputs(recording: Recording, verdict: Verdict) -> bool:
    """Whether the trial failed because of its outputs, and not because the system did not start."""
    return verdict.stops_run and recording.outcome.ending in INTACT


def _with_unexplained_outputs(verdict: Verdict, measured: Measurement) -> Verdict:
    """INVALID with the counts, because the disturbance or the system may be the cause of the wrong outputs."""
    why = (
        f"{_foreign_load(measured)}, which may be the cause of the faulty outputs on this transport; "
        f"{_advice(measured)} and repeat the trial"
    )
    return Verdict(VerdictKind.INVALID, (why, *verdict.reasons, *_output_counts(measured.account)), verdict.checks)


def _verdict_of_numbers(recording: Recording, measured: Measurement, objectives: Sequence[Objective]) -> Verdict:
    """The verdict without regard to other processes on the cores of the system under test."""
    trial = recording.trial
    rule = trend_rule_for(trial.may_end_early, trial.duration / SECOND, trial.limit / SECOND)
    checks = tuple(evaluate(o, measured, rule) for o in objectives)
    late = [c.sentence for o, c in zip(objectives, checks, strict=True) if o.metric == "late" and c.state == "broken"]
    incorrect = [*_output_faults(measured.account, objectives, checks), *late]
    stop = _sut_faults(recording, measured, incorrect, checks)
    if stop is not None:
        return stop
    estimate = estimated_boundary(objectives, measured)
    broken = tuple(c.sentence for c in checks if c.state == "broken") or _runaway_reason(objectives, measured)
    if recording.outcome.ending == "queue-full":
        bound = recording.outcome.detail
        why = f"the queue reached its limit ({bound}) at {format_rate(measured.load)}; lower the load"
        broken = (why, *broken)
    if broken:
        return Verdict(VerdictKind.OVERLOADED, broken, checks, estimate)
    unclear = (*(c.sentence for c in checks if c.state == "unclear"), *_missing_proof(recording, measured))
    if unclear:
        return Verdict(VerdictKind.UNDECIDED, unclear, checks, estimate)
    return Verdict(VerdictKind.SUSTAINED, tuple(c.sentence for c in checks), checks, estimate)


def _with_foreign_load(verdict: Verdict, measured: Measurement) -> Verdict:
    """The verdict with regard to the CPU time of other processes, which can only make a trial look worse."""
    foreign = measured.foreign_share
    if verdict.kind is VerdictKind.OVERLOADED and _missed_by_trend(verdict, measured):
        return _at_corrected_load(verdict, measured)
    if foreign <= MAX_FOREIGN_SHARE or verdict.kind is VerdictKind.FAILED:
        return verdict
    if verdict.kind is VerdictKind.SUSTAINED:
        why = f"{_foreign_load(measured)}; the load was sustained anyway, and latencies are upper bounds"
        return replace(verdict, reasons=(*verdict.reasons, why))
    why = (
        f"{_foreign_load(measured)} (limit {share_text(MAX_FOREIGN_SHARE)}), so a missed objective proves nothing; "
        f"{_advice(measured)}"
    )
    return Verdict(VerdictKind.INVALID, (why, *verdict.reasons, *_output_counts(measured.account)), verdict.checks)


def _foreign_load(m: Measurement) -> str:
    return f"{_who_used(m)} {share_text(m.foreign_share)} of the CPU of the system under test"


def _who_used(m: Measurement) -> str:
    return "the hypervisor took" if _is_steal(m) else "other processes used"


def _is_steal(m: Measurement) -> bool:
    """Whether most of the CPU time is steal time, which the kernel also counts as time of unknown processes."""
    return m.steal_share > 0.5 * m.foreign_share


def _advice(m: Measurement) -> str:
    return "use a machine whose CPUs are not shared" if _is_steal(m) else "stop other work on these cores"


def _missed_by_trend(verdict: Verdict, measured: Measurement) -> bool:
    """Whether the trend of the lag missed its objective. With more CPU time, the system would have processed more."""
    broken = any(c.state == "broken" and c.objective.startswith("lag-trend") for c in verdict.checks)
    return broken or measured.runaway


def _at_corrected_load(verdict: Verdict, measured: Measurement) -> Verdict:
    """OVERLOADED with the share s of the CPU that other processes used: it shows that the load L / (1 − s) fails."""
    foreign = measured.foreign_share
    if foreign <= NEGLIGIBLE_SHARE:
        return replace(verdict, taken=max(foreign, 0.0))
    remaining = 1 - min(foreign, 0.99)
    observed = verdict.estimate
    why = f"{_foreign_load(measured)}; it counts as a failure at {1 / remaining:.3f} × the load"
    estimate = None if observed is None else Estimate(observed.boundary / remaining, observed.error / remaining)
    return replace(verdict, taken=foreign, estimate=estimate, reasons=(*verdict.reasons, why))


def _without_burst(
    recording: Recording, measured: Measurement, objectives: Sequence[Objective], verdict: Verdict, disturbed: Mask
) -> Verdict:
    """The verdict without the seconds of a burst of other work, and those after it until lag is back at its floor.

    If lag did not return to its floor, the rest of the trial can still show an overload. A burst does not explain
    outputs that are lost or wrong.
    """
    if verdict.kind is VerdictKind.FAILED:
        return verdict
    excluded = until_renewal(recording.trial, recording.seconds, disturbed)
    rest = measure(recording, disturbed if excluded is None else excluded)
    found = _with_foreign_load(_verdict_of_numbers(recording, rest, objectives), rest)
    seconds = int(np.count_nonzero(disturbed))
    who = _who_used(measured)
    if excluded is not None:
        note = (
            f"{np.count_nonzero(excluded)} s were excluded; in {seconds} s of them {who} CPU of the system under test"
        )
        return replace(found, reasons=(*found.reasons, note))
    if found.kind is VerdictKind.OVERLOADED and _missed_by_trend(found, rest):
        return found
    why = (
        f"{who} CPU of the system under test for {seconds} s, and its lag was not back at its floor after that; "
        f"{_advice(measured)}"
    )
    return Verdict(VerdictKind.INVALID, (why, *verdict.reasons, *_output_counts(measured.account)), verdict.checks)


def _runaway_reason(objectives: Sequence[Objective], measured: Measurement) -> tuple[str, ...]:
    """The reason for an overload if lag grew without bound, unless an objective allows so much growth."""
    if not has_runaway_lag(objectives, measured):
        return ()
    grown = format_count(measured.lag_end - measured.lag_start)
    return (f"the lag grew by {grown} events in {duration_text(measured.lag_seconds * SECOND)}, a clear overload",)


def driver_faults(recording: Recording, m: Measurement, objectives: Sequence[Objective]) -> list[str]:
    """A reason for each fault of the load driver or the machine."""
    outcome = recording.outcome
    faults = [*outcome.unaccounted, *outcome.disturbances]
    if outcome.ending == "driver-failed":
        faults.append(f"the load driver failed: {outcome.detail or 'no reason was given'}")
    faults += generator_faults(recording.trial, m, objectives)
    if m.clock_step > MAX_CLOCK_STEP:
        faults.append(
            f"the wall clock jumped by {duration_text(m.clock_step)} (limit {duration_text(MAX_CLOCK_STEP)}); "
            "stop the process that sets it, and repeat the trial"
        )
    return faults


def _starvation(m: Measurement) -> list[str]:
    """The reason if the load driver was on schedule but often waited for a CPU."""
    if m.run_delay_share <= MAX_RUN_DELAY_SHARE:
        return []
    return [
        f"the load driver waited for a CPU {share_text(m.run_delay_share)} of the time (limit "
        f"{share_text(MAX_RUN_DELAY_SHARE)}); keep other work off its cores"
    ]


def _sut_faults(
    recording: Recording, measured: Measurement, incorrect: Sequence[str], checks: Sequence[Check]
) -> Verdict | None:
    outcome = recording.outcome
    at = f"at {format_rate(measured.load)}"
    if outcome.ending == "crashed" and outcome.unready:
        why = f"the system under test failed before the load started: {outcome.detail}"
        tail = tuple(f"its log: {line}" for line in outcome.log_tail[-8:])
        # only a search over a parameter or instances changes how the system starts
        return Verdict(VerdictKind.FAILED, (why, *tail), stops_run=recording.trial.ask.dimension == "load")
    if outcome.ending in ("crashed", "stalled", "dropped"):
        what = {"crashed": "crashed", "stalled": "stalled", "dropped": "closed its connection to the queue"}
        tail = tuple(f"its log: {line}" for line in outcome.log_tail[-5:])
        detail = f": {outcome.detail}" if outcome.detail else ""
        why = f"the system under test {what[outcome.ending]} {at}{detail}"
        return Verdict(VerdictKind.FAILED, (why, *tail), tuple(checks))
    incorrect = _no_output(measured) or incorrect
    return Verdict(VerdictKind.FAILED, tuple(incorrect), tuple(checks), stops_run=True) if incorrect else None


def _no_output(measured: Measurement) -> list[str]:
    """The reason if the system under test read its input and produced no output."""
    account = measured.account
    due = account.expected - account.not_reached
    if not account.checked or due <= 0 or account.observed:
        return []
    at = format_rate(measured.load)
    return [
        f"the system under test read its input at {at} but produced none of the {format_count(due)} expected outputs"
    ]


def _output_faults(account: Account, objectives: Sequence[Objective], checks: Sequence[Check]) -> list[str]:
    """A reason for each kind of incorrect outputs, if there are more than the objectives allow."""
    named: set[str] = {o.metric for o in objectives}
    broken = (c for o, c in zip(objectives, checks, strict=True) if o.metric in INCORRECT and c.state == "broken")
    return [*_unlisted_faults(account, named), *(c.sentence for c in broken)]


def _output_counts(account: Account) -> tuple[str, ...]:
    """The counts of incorrect outputs of a trial that is INVALID."""
    counts = [(getattr(account, name), name) for name in INCORRECT]
    if not any(count for count, _ in counts):
        return ()
    text = ", ".join(f"{format_count(count)} {name}" for count, name in counts)
    return (f"outputs compared with the reference result: {text} of {format_count(account.expected)} expected",)


def _stored_counts(account: Account) -> tuple[str, ...]:
    """The counts of the outputs that were stored before a load driver or the collector ended."""
    if not account.observed:
        return ()
    stored = f"{format_count(account.observed)} outputs were stored before that"
    if not account.checked:
        return (f"{stored}; they were not compared with a reference result",)
    counts = f"{format_count(account.duplicate)} duplicate, {format_count(account.wrong)} wrong"
    return (f"{stored}; compared with the reference result: {counts}, lost unknown",)


def _missing_proof(recording: Recording, measured: Measurement) -> tuple[str, ...]:
    """Why a trial that missed no objective is not SUSTAINED."""
    found, account, silence = [], measured.account, recording.outcome.silence
    if silence:
        found.append(
            f"the system under test acknowledged nothing for {duration_text(silence)} at the end of the trial, and "
            "what it did after that was not measured; repeat the trial or increase trial.duration"
        )
    if account.checked and account.rows_checked <= 0:
        length = f" to more than {format_duration(account.first_close)}" if account.first_close else ""
        found.append(
            f"no output could be compared with the reference result, because no window closed in "
            f"{measured.judged_seconds} s; increase trial.duration{length}, or reduce the window and the watermark"
        )
    return tuple(found)


def _unlisted_faults(account: Account, named: set[str]) -> list[str]:
    """A reason for each kind of incorrect outputs that no objective names; they fail the trial too."""
    faults = {"lost": account.lost, "duplicate": account.duplicate, "wrong": account.wrong}
    return [
        f"{format_count(count)} of {format_count(account.expected)} outputs {'was' if count == 1 else 'were'} "
        f"{'duplicated' if m == 'duplicate' else m}, so the results of the system under test are incorrect "
        f"(to allow this, add an objective such as '{m} <= 0.1%')"
        for m, count in faults.items()
        if count and m not in named
    ]


def estimated_boundary(objectives: Sequence[Objective], measured: Measurement) -> Estimate | None:
    """The highest load that meets the objective on the lag trend, computed from the growth of the lag.

    The growth is load − processing rate. The objective is met up to a growth of θ·load (relative) or θ (absolute).
    """
    if measured.capacity is None:
        return None
    for objective in objectives:
        if objective.metric != "lag-trend" or trend_evidence(objective, measured) is None:
            continue
        capacity, error = measured.capacity.mean, measured.capacity.error
        # a short trial shows too little of its noise, so the error has a minimum
        error = max(error, MIN_NOISE * abs(capacity) / math.sqrt(max(measured.judged_seconds, 1)))
        if objective.relative:
            scale = 1 / (1 - objective.threshold) if objective.threshold < 1 else 1.0
            return Estimate(capacity * scale, error * scale)
        return Estimate(capacity + objective.threshold, error)
    return None
