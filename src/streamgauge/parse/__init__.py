"""The experiment file: read with all its problems together, and described for editors."""

from streamgauge.parse.objectives import objective
from streamgauge.parse.problems import ExperimentError, Problem
from streamgauge.parse.read import read
from streamgauge.parse.schema import schema
from streamgauge.parse.shipped import shipped_names, shipped_text

__all__ = [
    "ExperimentError",
    "Problem",
    "objective",
    "read",
    "schema",
    "shipped_names",
    "shipped_text",
]
