"""The search, as pure functions: from the results of past trials to the next trial, and to the result of the run."""

from streamgauge.search.forecast import Forecast
from streamgauge.search.search import Search, build

__all__ = ["Forecast", "Search", "build"]
