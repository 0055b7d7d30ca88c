"""The examples in CONTRIBUTING are executed: a workload, an engine and a transport."""

import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from judge_samples import CHECKED, LAG, LOAD, recording, trial

from streamgauge.engines.contract import DoesNotScale, RealEngine, Situation, System
from streamgauge.engines.table import rows
from streamgauge.judge import decide, measure
from streamgauge.model.layout import Layout
from streamgauge.model.measurement import VerdictKind
from streamgauge.model.profile import constant
from streamgauge.model.units import SECOND
from streamgauge.processes.launch import Launcher, LocalHost
from streamgauge.transports.contract import ChannelSpec, Transport
from streamgauge.transports.registry import choice_of
from streamgauge.workloads.contract import Inputs, Workload, has_reference, plans_of

TEXT = (Path(__file__).resolve().parents[2] / "CONTRIBUTING.md").read_text(encoding="utf-8")


def example(name: str) -> Any:  # noqa: ANN401
    """What the example of this name makes."""
    found = re.search(rf"^```python {name}\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)
    assert found is not None
    names: dict[str, Any] = {"__name__": f"contributing_{name}"}
    exec(compile(found[1], f"CONTRIBUTING.md, {name}", "exec"), names)  # noqa: S102 - our own page
    return names[name]


@contextmanager
def launched(folder: Path) -> Iterator[LocalHost]:
    """What a run lends to engines and transports. The path of a socket must be short."""
    with tempfile.TemporaryDirectory(prefix="sg") as short, Launcher(Path(short)) as launcher:
        yield LocalHost(launcher, folder, folder)


def test_the_example_of_a_workload_counts_its_purchases() -> None:
    workload = example("workload")
    assert isinstance(workload, Workload)
    params = workload.params(window="1s", gem_packs=10)
    assert has_reference(workload, params)
    plans = plans_of(workload.streams(params), constant(1_000.0), 3 * SECOND)
    inputs = Inputs(plans, seed=5, origin_ns=0)
    reference = workload.reference(params, inputs)
    assert reference is not None
    expected = reference.until({"purchases": 2_500})
    made = workload.events(params, "purchases", inputs).events(0, 2_500)
    assert int(expected["count"].sum()) == 2_500
    first = made["gem_pack_id"][made["due"] < 1_000_000]
    packs, counts = np.unique(first, return_counts=True)
    rows_of_first = expected["window_start"] == 0
    assert expected["gem_pack_id"][rows_of_first].tolist() == packs.tolist()
    assert expected["count"][rows_of_first].tolist() == counts.tolist()
    assert set(workload.output(params).identity) < set(expected)


def test_the_example_of_an_engine_satisfies_the_contract(tmp_path: Path) -> None:
    engine = example("engine")
    assert isinstance(engine, RealEngine)
    options, wrong = (engine.options.from_resolved({"threads": threads}) for threads in (2, 0))
    assert engine.check(Situation(wrong)) == ("threads must be at least 1",)
    assert engine.check(Situation(options)) == ()
    assert engine.layout(options, 1) == Layout(1, 2)
    with pytest.raises(DoesNotScale):
        engine.layout(options, 2)
    assert {row.transport for row in rows({engine.name: engine})} == {"queue", "kafka"}
    with launched(tmp_path) as host, engine.start(Layout(), options, host) as up:
        system: System = up
        assert system.alive()
        assert not system.leftovers()


def test_lost_outputs_over_the_example_of_a_transport_count_against_the_system() -> None:
    """It has no broker, so neither a late generator nor other processes explain a lost output."""
    transport = example("transport")
    choice = choice_of(transport, transport.options())
    assert (choice.name, choice.broker, choice.exact_offsets) == ("fine-queue", False, True)
    lost = replace(CHECKED, observed=CHECKED.expected - 1, lost=1)
    happened = recording(of=replace(trial(), transport=choice), account=lost, published=0.99 * LOAD)
    assert decide(happened, measure(happened), (LAG,)).kind is VerdictKind.FAILED


def test_the_example_of_a_transport_opens_a_channel(tmp_path: Path) -> None:
    transport = example("transport")
    assert isinstance(transport, Transport)
    assert transport.name == transport.identity(transport.options()) == "fine-queue"
    workload = example("workload")
    params = workload.params()
    spec = ChannelSpec(1, workload.streams(params), workload.output(params), partitions=2)
    with (
        launched(tmp_path) as host,
        transport.open(transport.options(), "run", host, {}) as opened,
        opened.channel(spec) as channel,
    ):
        assert channel.endpoints.partitions == 2
        assert channel.driver_wire(0)["location"].startswith("grpc+unix://")
