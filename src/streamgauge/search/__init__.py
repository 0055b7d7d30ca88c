"""The search, pure ask/tell: given what was tried and found so far, which trial is next, and what is the answer."""

from streamgauge.search.asking import Search, build
from streamgauge.search.forecast import Forecast

__all__ = ["Forecast", "Search", "build"]
