"""Measures how many events per second a stream processing job can sustain, at what latency, and checks its results."""

__version__ = "0.1.0"
