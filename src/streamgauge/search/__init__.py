"""The search, pure ask/tell: given what was tried and found so far, which trial is next, and what is the answer."""

from streamgauge.search.forecast import Forecast
from streamgauge.search.search import Search, build

__all__ = ["Forecast", "Search", "build"]
