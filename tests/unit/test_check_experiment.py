"""A stored experiment may name what the installed engines do not run."""

from dataclasses import replace

import pytest

from streamgauge.cli.errors import UserError
from streamgauge.cli.run_loop import check_experiment
from streamgauge.engines.registry import engines
from streamgauge.model.experiment import EngineChoice, Experiment, WorkloadChoice
from streamgauge.parse import read
from streamgauge.transports.registry import choice_of, transports
from streamgauge.workloads.registry import workloads

FILE = "name: x\nworkload: windowed-aggregation\nengine: simulated\nfind: nothing\nload: {rate: 10/s}\n"


def problems_of(experiment: Experiment) -> list[str]:
    with pytest.raises(UserError) as caught:
        check_experiment(experiment)
    return str(caught.value).splitlines()


def test_an_experiment_that_runs_has_no_problem() -> None:
    check_experiment(read(FILE))


def test_a_transport_that_the_engine_does_not_support_is_a_problem_before_the_first_trial() -> None:
    kafka = transports()["kafka"]
    stored = replace(read(FILE), transport=choice_of(kafka, kafka.options()))
    message = "simulated: engine simulated does not support transport kafka; it supports queue"
    assert message in problems_of(stored)


def test_a_workload_that_the_engine_does_not_implement_is_a_problem_before_the_first_trial() -> None:
    reference = EngineChoice("mine", "reference", engines()["reference"].options().model_dump(mode="json"))
    ingest = WorkloadChoice("ingest", workloads()["ingest"].params().model_dump(mode="json"))
    stored = replace(read(FILE), engines=(reference,), workload=ingest)
    message = "mine: engine reference does not implement the workload ingest; it implements windowed-aggregation"
    assert message in problems_of(stored)
