"""What random experiments must say: by the law of the simulated engine, and by their own plan."""

from collections.abc import Iterator
from typing import Any

from random_experiments import Drawn

from streamgauge.model.experiment import EngineChoice, Experiment
from streamgauge.parse import read
from streamgauge.search.goals import axes_of
from streamgauge.workloads.registry import workloads

Document = dict[str, Any]

_FIRM = ("confirm", "measure")
_CLOSE = 0.02
"""How far beyond the boundary, as a share of it, a load must be for a search to know."""


def contradictions(drawn: Drawn, said: Document) -> list[str]:
    """Every answer of a noiseless experiment that the law contradicts."""
    if not drawn.certain:
        return []
    law = _Law(read(drawn.text))
    return [f"seed {drawn.seed}: {wrong}" for finding in said["findings"] for wrong in law.wrong(finding, said)]


class _Law:
    def __init__(self, experiment: Experiment) -> None:
        self.experiment = experiment
        self.allowed = next(o.threshold for o in experiment.objectives if o.metric == "lag-trend")

    def boundary(self, choice: EngineChoice, instances: float, params: Document) -> float:
        """The highest load that holds: the Universal Scalability Law, and the growth that the objective allows."""
        workload, o = workloads()[self.experiment.workload.name], choice.options
        asked = workload.params.from_resolved(self.experiment.workload.params)
        work = workload.work(workload.params.from_resolved(params)) / workload.work(asked)
        n = max(instances, 1)
        speedup = n / (1 + o["contention"] * (n - 1) + o["coherence"] * n * (n - 1))
        return float(o["capacity"] * speedup / work / (1 - self.allowed))

    def wrong(self, finding: Document, said: Document) -> Iterator[str]:
        choice = next(c for c in self.experiment.engines if c.label == finding["engine"])
        trials = {trial["number"]: trial for trial in said["trials"]}
        for name, side in (("holds", 1), ("fails", -1)):
            for number in (finding[name] or {}).get("trials", ()):
                if trials[number]["purpose"] in _FIRM:
                    yield from self._end(choice, trials[number], side, name)
        if finding["dimension"] == "instances" and finding["status"] in ("none-holds", "bracketed"):
            yield from self._demand(choice, finding)

    def _end(self, choice: EngineChoice, trial: Document, side: int, name: str) -> Iterator[str]:
        """A load that holds is not above the boundary, one that fails is not below it."""
        params = dict(self.experiment.workload.params)
        if trial["dimension"] in params:
            params[trial["dimension"]] = trial["value"]
        boundary = self.boundary(choice, trial["instances"], params)
        # lag is in whole events, so a short trial at a low load sees its growth only so well
        blur = 0.002 + 3 / (trial["load"] * max(trial["measured"]["judged_seconds"], 1))
        if side * (trial["load"] - boundary) > blur * boundary:
            yield f"trial {trial['number']}: {name} at {trial['load']:g}/s, the boundary is {boundary:g}/s"

    def _demand(self, choice: EngineChoice, finding: Document) -> Iterator[str]:
        """The fewest instances that hold are found, wherever they are in the range."""
        line = next(one for one in axes_of(self.experiment) if f"load={dict(one.fixed)['load']:g}" == finding["line"])
        load, params = dict(line.fixed)["load"], self.experiment.workload.params
        best = min(line.values) - 1 if finding["holds"] is None else finding["holds"]["value"]
        fewer = [n for n in line.values if finding["holds"] is None or n < best]
        for n in fewer:
            boundary = self.boundary(choice, n, params)
            if load * (1 + _CLOSE + 10 / load) < boundary:
                yield f"{n:g} instances hold {load:g}/s (up to {boundary:g}/s), but: {finding['sentence']}"


def broken_bounds(planned: Document, said: Document) -> list[str]:
    """Every bound of a plan that the run did not keep."""
    trials, seconds = len(said["trials"]), sum(trial["seconds"] for trial in said["trials"])
    found = []
    if trials > planned["trials"]["most"]:
        found.append(f"{trials} trials, at most {planned['trials']['most']} were planned")
    if seconds > planned["seconds"]["trials_most"]:
        found.append(f"{seconds} s of trials, at most {planned['seconds']['trials_most']} were planned")
    return found
