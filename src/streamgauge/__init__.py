"""streamgauge: what load can a streaming job hold, at what latency, and is the answer true?"""

__version__ = "0.1.0"
