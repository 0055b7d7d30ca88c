"""Rows of the table of what runs, on real processes: a trial of exactly so many events, and what came out of it.

All rows share one launcher, one broker, and one system of each engine whose systems serve many trials.
"""

import os
import secrets
import signal
import sys
import tempfile
import textwrap
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import psutil
import pyarrow as pa
import pytest

from streamgauge.cli.environment import cache_folder
from streamgauge.engines.contract import (
    ANY_WORKLOAD,
    DEFAULT_VARIANT,
    Deployment,
    Engine,
    RealEngine,
    System,
)
from streamgauge.engines.registry import engines
from streamgauge.engines.table import Row, transports_of
from streamgauge.install.ensure import Locations, examine
from streamgauge.judge import EarlyStopRule
from streamgauge.judge.compare_columns import columns_of
from streamgauge.judge.outputs import closed_until
from streamgauge.model.experiment import TransportChoice
from streamgauge.model.options import Options
from streamgauge.model.profile import constant
from streamgauge.model.seconds import Account
from streamgauge.model.trial import Trial, TrialRequest
from streamgauge.model.units import SECOND
from streamgauge.processes.clock import wait_until
from streamgauge.processes.launch import Launcher, LocalHost
from streamgauge.processes.placement import assign_cores, controller_pinned, usable_cores
from streamgauge.run.explore import setup_of
from streamgauge.run.trial.drain import await_outputs
from streamgauge.run.trial.outputs import OutputCheck, plans_of_trial
from streamgauge.run.trial.processes import TrialProcesses, open_processes
from streamgauge.run.trial.setup import DiscardingRecorder, RunContext, TrialSetup
from streamgauge.store.journal import read_parts
from streamgauge.transports.contract import OpenTransport
from streamgauge.transports.kafka.open_kafka import OpenKafka
from streamgauge.transports.kafka.options import KafkaOptions
from streamgauge.transports.registry import choice_of, transports
from streamgauge.workloads.contract import Columns, Inputs, rows_of_job
from streamgauge.workloads.parameters import Windowed
from streamgauge.workloads.registry import workloads

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "engine"
sys.path.insert(0, str(EXAMPLE))

import plain_python  # noqa: E402 - it is found only now

EVENTS = int(os.environ.get("STREAMGAUGE_CONFORMANCE_EVENTS", "20000"))
"""Events of a whole trial of a row; `make soak` sets more."""
RATE = 20_000.0
SMALL: dict[str, Any] = {
    "window": "200ms",
    "slide": "100ms",
    "gem_packs": 50,
    "keys": 50,
    "attribute": "second-mod-7",
    "frequency": "100/s",
    "moves": "20%",
    "users": 500,
    "selectivity": "20%",
}
"""Parameters with many windows, few keys and many pairs, as a user writes them. A workload takes those that it has."""
PARAMETERS: Mapping[str, tuple[Mapping[str, Any], ...]] = {
    "traffic": tuple({"stage": stage, "locations": 20, "lanes": 2, "window": "20ms"} for stage in range(5))
}
"""The sets of parameters with which a workload is tested, in place of those that all workloads have."""
TIMEOUT = 120.0
"""Seconds that anything may take which a cold virtual machine on a busy core does."""
RUN = f"conformance-{secrets.token_hex(3)}"
KNOWN: dict[str, Engine] = {**engines(), plain_python.engine.name: plain_python.engine}
"""The installed engines, and the example of an engine in another package."""
Ints = npt.NDArray[np.int64]
Script = Callable[[TrialProcesses, Deployment], None]

JOB = """
import pyarrow.compute as pc
from pyspark.sql import functions as F


def job(purchases):
    kept = purchases.where("price > 5000")
    return kept.select("user_id", "price", F.col("due").alias("max_due"))


def expected(events, params):
    return events.filter(pc.greater(events["price"], 5000)).select(["user_id", "price"])
"""
"""A job of a user, for rows whose workload is any."""


@dataclass(frozen=True)
class Played:
    """A trial that is over."""

    setup: TrialSetup
    origin: int
    acknowledged: Mapping[str, int]
    published: Mapping[str, int]
    account: Account
    observed: dict[str, npt.NDArray[Any]]
    leftovers: tuple[str, ...]


class Bench:
    """What the rows share. A context manager: what it started is gone when it is left."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.placement = folder, assign_cores(1)
        self._stack = ExitStack()
        short = Path(self._stack.enter_context(tempfile.TemporaryDirectory(prefix="sg")))
        self.launcher = self._stack.enter_context(Launcher(short))
        self._bootstrap = ""
        self._systems: dict[str, System] = {}
        self._trials = 0
        (folder / "job.py").write_text(textwrap.dedent(JOB), encoding="utf-8")
        before = os.environ.get("PYTHONPATH")  # processes of the example import it
        self._stack.callback(_restore, "PYTHONPATH", before)
        os.environ["PYTHONPATH"] = os.pathsep.join([str(EXAMPLE), *([before] if before else [])])

    def __enter__(self) -> "Bench":
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def host(self, name: str, transport: str, cores: tuple[int, ...]) -> LocalHost:
        """What a system or a broker gets."""
        (self.folder / name).mkdir(exist_ok=True)
        return LocalHost(self.launcher, self.folder / name, cache_folder(), cores, usable_cores(), transport=transport)

    def require(self, row: Row) -> None:
        """Skip a row if something is missing that it needs, and say what."""
        missing = missing_for(KNOWN[row.engine], row.transport)
        if missing:
            pytest.skip("; ".join(missing))

    @contextmanager
    def transport(self, row: Row) -> Iterator[tuple[OpenTransport, TransportChoice]]:
        """The transport of a row, open; all rows over Kafka use one broker."""
        transport = transports()[row.transport]
        values: dict[str, Any] = {"format": row.format} if row.format else {}
        if row.transport == "kafka":
            values["cluster"] = {"bootstrap": self._broker()}
        options = transport.options(**values)
        with transport.open(options, RUN, self.host("transport", row.transport, self.placement.driver), {}) as opened:
            yield opened, choice_of(transport, options)

    def _broker(self) -> str:
        if not self._bootstrap:
            kafka = OpenKafka(
                KafkaOptions(), RUN, self.host("broker", "kafka", self.placement.driver), None, warm=False
            )
            self._stack.callback(kafka.stop)
            self._bootstrap = kafka.ensure_up().bootstrap
        return self._bootstrap

    def options(self, row: Row) -> Options:
        """The options of the engine that choose the row, and short micro-batches."""
        kind = KNOWN[row.engine].options
        values: dict[str, Any] = {}
        if row.workload == ANY_WORKLOAD:
            values |= {"pipeline": f"{self.folder}/job.py:job", "reference": f"{self.folder}/job.py:expected"}
        elif row.variant != DEFAULT_VARIANT:
            values["variant"] = row.variant
        if "trigger" in kind.model_fields:
            values["trigger"] = "200ms"
        return kind(**values)

    @contextmanager
    def system(self, setup: TrialSetup, transport: str) -> Iterator[System]:
        """The system of an engine: the one that all trials share, or a separate one."""
        engine = setup.engine
        assert isinstance(engine, RealEngine)
        if not setup.traits.shared:
            with self.new_system(setup, transport) as system:
                yield system
            return
        if engine.name not in self._systems:
            # the connector of a broker does not hinder reading from the queue
            usable = [t for t in sorted(transports_of(engine)) if not missing_for(engine, t)]
            most = max(usable, key=lambda name: transports()[name].start_seconds)
            self._systems[engine.name] = self._stack.enter_context(self.new_system(setup, most))
        yield self._systems[engine.name]

    @contextmanager
    def new_system(self, setup: TrialSetup, transport: str) -> Iterator[System]:
        """A separate system."""
        engine, name = setup.engine, f"{setup.engine.name}-{secrets.token_hex(2)}"
        host = self.host(name, transport, setup.placement.sut)
        assert isinstance(engine, RealEngine)
        with engine.start(setup.layout, setup.options, host) as system:
            yield system

    def setup(
        self,
        row: Row,
        choice: TransportChoice,
        opened: OpenTransport,
        *,
        rate: float = RATE,
        partitions: int = 2,
        params: Mapping[str, Any] | None = None,
    ) -> TrialSetup:
        """A trial of a row. ``params`` are as a user writes them; what the workload does not have is left out."""
        self._trials += 1
        folder = self.folder / f"trial-{self._trials:03}"
        folder.mkdir()
        workload = workloads()["windowed-aggregation" if row.workload == ANY_WORKLOAD else row.workload]
        allowance = f"{transports()[row.transport].allowance_ns}ns"
        chosen = {**SMALL, "watermark": allowance, **(params or {})}
        given = workload.params(**{k: v for k, v in chosen.items() if k in workload.params.model_fields})
        trial = Trial(
            number=self._trials,
            ask=TrialRequest("load", rate, "measure"),
            workload=workload.name,
            params=given.model_dump(mode="json"),
            engine=row.engine,
            options=self.options(row).model_dump(mode="json"),
            instances=1,
            profile=constant(rate),
            duration=5 * SECOND,
            limit=5 * SECOND,
            warmup=0,
            warmup_limit=0,
            queue_bound=0,
            seed=29,
            partitions=partitions,
            transport=choice,
            stall=90 * SECOND,
        )
        rule = EarlyStopRule(trial, ())
        setup = setup_of(trial, KNOWN[row.engine], DiscardingRecorder(folder), RunContext(transport=opened), rule)
        # a stream that a restart closes early waits for the restart
        return replace(setup, driver_changes={"retry_ns": 300 * SECOND})

    def play(self, row: Row, events: int = EVENTS, script: Script | None = None, **changes: Any) -> Played:  # noqa: ANN401
        """A trial of exactly so many events; ``script`` is done while they come."""
        self.require(row)
        with self.transport(row) as (opened, choice):
            setup = self.setup(row, choice, opened, **changes)
            with self.system(setup, row.transport) as system, self._opened(setup, system) as processes:
                with system.deploy(processes.job_run()) as deployment:
                    begin(processes, deployment, events)
                    if script is not None:
                        script(processes, deployment)
                    check = finish(processes, deployment, events)
                    reported = deployment.watermark()
                    deployment.end()
                    processes.close_journals()
                return judged(processes, check, check.account(processes.folder, reported), tuple(system.leftovers()))

    @contextmanager
    def _opened(self, setup: TrialSetup, system: System) -> Iterator[TrialProcesses]:
        setup = replace(setup, system=system)
        drain_ns = int(setup.trial.params.get("watermark", 0))
        with controller_pinned(self.placement.driver), open_processes(setup, self.launcher, drain_ns) as processes:
            yield processes

    def stop_in_the_middle(self, row: Row, **changes: Any) -> tuple[int, tuple[str, ...]]:  # noqa: ANN401
        """End a job while events still come: how many had been acknowledged, and what was left behind."""
        self.require(row)
        with self.transport(row) as (opened, choice):
            setup = self.setup(row, choice, opened, **changes)
            with self.system(setup, row.transport) as system, self._opened(setup, system) as processes:
                with system.deploy(processes.job_run()) as deployment:
                    begin(processes, deployment, int(60 * RATE))
                    until(lambda: _look(processes, deployment).acknowledged > 0, "the first acknowledgement")
                    assert not processes.status().done, "all events had come before the stop"
                    deployment.end()
                return processes.status().acknowledged, tuple(system.leftovers())

    def restart_in_the_middle(self, row: Row, **changes: Any) -> Played:  # noqa: ANN401
        """Kill -9 a whole system once half of the events are acknowledged, and let another one continue."""
        self.require(row)
        with self.transport(row) as (opened, choice):
            setup = self.setup(row, choice, opened, **changes)
            if not setup.traits.restarts:
                pytest.skip(f"a job of {row.engine} keeps its state in memory, and cannot continue after a restart")
            with ExitStack() as stack:
                first = stack.enter_context(self.new_system(setup, row.transport))
                processes = stack.enter_context(self._opened(setup, first))
                run = processes.job_run()
                with suppress(OSError), first.deploy(run) as deployment:
                    begin(processes, deployment, EVENTS)
                    until(lambda: _look(processes, deployment).acknowledged >= EVENTS // 2, "the first half")
                    kill(first)
                    until(lambda: not first.alive(), "the end of the system")
                second = stack.enter_context(self.new_system(setup, row.transport))
                processes.setup = replace(setup, system=second)
                with second.deploy(replace(run, restart=1)) as deployment:
                    check = finish(processes, deployment, EVENTS)
                    deployment.end()
                    processes.close_journals()
                return judged(processes, check, check.account(processes.folder), tuple(second.leftovers()))


def missing_for(engine: Engine, transport: str) -> list[str]:
    """A sentence for each thing that an engine needs to read from a transport, and that is missing here."""
    channel, places = transports()[transport], Locations(cache_folder(), os.environ.get("JAVA_HOME", ""))
    needs = [*engine.requirements(engine.options(), transport), *channel.requirements(channel.options())]
    return [status.problem for status in examine(needs, places) if not status.met]


def _restore(name: str, value: str | None) -> None:
    if value is None:
        os.environ.pop(name, None)
    else:
        os.environ[name] = value


def kill(system: System) -> None:
    """Kill -9 all processes of a system."""
    roots = [psutil.Process(process.pid) for group in system.processes().values() for process in group]
    for process in [*roots, *(child for root in roots for child in root.children(recursive=True))]:
        with suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGKILL)


def until(holds: Callable[[], bool], what: str, seconds: float = TIMEOUT) -> None:
    """Wait for it, with a deadline that is named."""
    assert wait_until(holds, seconds, 0.05), f"{what} did not happen within {seconds:g} s"


def begin(processes: TrialProcesses, deployment: Deployment, events: int) -> None:
    """Begin a load of so many events."""
    outputs = deployment.describe().outputs
    assert deployment.alive(), deployment.failure()
    assert processes.collector_control is not None
    if outputs is not None:
        processes.collector_control.set_output_schema(outputs)
    processes.start(None)
    rate = processes.trial.profile.mean_between(0, SECOND)
    for control in processes.driver_controls:
        control.end(round(events * SECOND / rate))


def _look(processes: TrialProcesses, deployment: Deployment) -> Any:  # noqa: ANN401 - a TrialStatus
    """The counts, once the position of the system is passed on."""
    assert deployment.alive(), deployment.failure()
    processes.forward(deployment.position())
    return processes.status()


def finish(processes: TrialProcesses, deployment: Deployment, events: int) -> OutputCheck:
    """Wait until all events are acknowledged and all outputs that are due are there."""

    def consumed() -> bool:
        status = _look(processes, deployment)
        return bool(status.done and status.lag == 0)

    until(consumed, "the acknowledgement of all events")
    status = processes.status()
    # each of several streams has a whole number of events
    assert abs(status.published - events) < len(status.streams)
    acknowledged = {name: counts.acknowledged for name, counts in status.streams.items()}
    check = OutputCheck.of(processes.setup, plans_of_trial(processes.setup, 0))
    check = check.at(processes.wall_ns, acknowledged, acknowledged)
    due = check.rows_due(deployment.watermark())
    until(lambda: processes.output_count().committed >= due, f"the last of {due} outputs")
    if not processes.output_count().exact:  # what is counted may be no output
        await_outputs(processes, deployment, due, 2 * SECOND)
    return check


def judged(processes: TrialProcesses, check: OutputCheck, account: Account, leftovers: tuple[str, ...]) -> Played:
    """What came out."""
    return Played(
        processes.setup,
        processes.wall_ns,
        dict(check.acknowledged),
        dict(check.published),
        account,
        observed(processes.folder),
        leftovers,
    )


def observed(folder: Path) -> dict[str, npt.NDArray[Any]]:
    """The columns of all outputs; moments are microseconds since 1970, and nulls are masked."""
    tables = [t for query in sorted((folder / "outputs").glob("*")) if (t := read_parts(query)) is not None]
    if not tables:
        return {}
    table, columns = pa.concat_tables(tables), {}
    for name in table.schema.names:
        column = table.column(name).combine_chunks()
        if pa.types.is_timestamp(column.type):
            column = column.cast(pa.timestamp("us", column.type.tz)).cast(pa.int64())
        values, nulls = column.to_numpy(zero_copy_only=False), column.is_null().to_numpy(zero_copy_only=False)
        columns[name] = np.ma.array(values, mask=nulls) if column.null_count else values
    return columns


def expected(played: Played) -> tuple[Columns, npt.NDArray[np.bool_]]:
    """The reference result of the events of a trial, and which of its rows must be out."""
    setup = played.setup
    plans = plans_of_trial(setup, 0)
    result = setup.workload.reference(setup.params, Inputs(plans, setup.trial.seed, played.origin))
    assert result is not None
    rows = rows_of_job(result.until(played.published), early=setup.traits.emits_early)
    contract = setup.workload.output(setup.params)
    count = len(rows[contract.identity[0]])
    if contract.numbered:
        return rows, np.ones(count, bool)
    assert isinstance(setup.params, Windowed)
    passed = [closed_until(plans[s], played.origin, n, setup.params.watermark) for s, n in played.acknowledged.items()]
    return rows, rows[contract.identity[0]] + setup.params.window // 1_000 <= min(passed)


def assert_exact(played: Played, *, repeated: bool = False, empty: bool = False) -> None:
    """All outputs that are due are there once, and every output equals its row of the reference result.

    ``repeated``: an output may come again with the same values, as after a restart of a job that writes at least once.
    ``empty``: no output need be due.
    """
    rows, due = expected(played)
    contract, found = played.setup.workload.output(played.setup.params), played.observed
    keys = _keys(rows, contract.identity)
    places = {key: place for place, key in enumerate(keys)}
    came = _keys(found, contract.identity) if found else []
    assert empty or int(due.sum()) > 0, "no output was due"
    assert {key for key, must in zip(keys, due.tolist(), strict=True) if must} - set(came) == set(), (
        "outputs are missing"
    )
    assert set(came) - set(keys) == set(), "outputs that nothing explains"
    assert repeated or len(set(came)) == len(came), "outputs came twice"
    if not came:
        return
    place = np.array([places[key] for key in came])
    assert set(rows) - set(found) == set(), "columns are missing"
    for name, column in rows.items():
        nulls = np.ma.getmaskarray(column)[place]
        values = _digests(found[name]) if name in contract.digested else found[name]
        np.testing.assert_array_equal(np.ma.getmaskarray(values), nulls, err_msg=f"nulls of {name}")
        wanted, got = np.ma.getdata(column)[place][~nulls], np.ma.getdata(values)[~nulls]
        if np.issubdtype(wanted.dtype, np.floating):
            np.testing.assert_allclose(got, wanted, rtol=1e-9, atol=0, err_msg=name)
        else:
            np.testing.assert_array_equal(got, wanted, err_msg=name)


def _digests(texts: npt.NDArray[Any]) -> npt.NDArray[Any]:
    table = pa.table({"texts": pa.array(texts.tolist(), pa.string())})
    return columns_of(table, ["texts"], ["texts"])["texts"]


def _keys(table: Mapping[str, npt.NDArray[Any]], identity: tuple[str, ...]) -> list[tuple[Any, ...]]:
    return list(zip(*(np.asarray(table[name]).tolist() for name in identity), strict=True))
