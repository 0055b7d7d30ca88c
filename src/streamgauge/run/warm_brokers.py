"""Warming brokers of ours up: a Java that has just started costs several times what it costs a minute later.

A broker shares the driver's core where there are few. While its code is being compiled, ticks are late and what it
carries is far below its ceiling; so it is made to work, on all cores, before anything is measured.
"""

import numpy as np

from streamgauge.run.clock import Clock
from streamgauge.transport.kafka.administer import Administration
from streamgauge.transport.kafka.producer import Part, open_producer
from streamgauge.transport.kafka.ranges import open_ranges
from streamgauge.transport.kafka.topics import Topic

_ROUND = 1_000_000_000
"""Nanoseconds after which its pace is looked at."""
_LEAST, _MOST = 8, 25
"""Rounds."""
_FLAT = 1.03
"""A round that is no more than this faster than those before it found nothing left to compile."""
_FLUSH = 10.0
_ROWS = (100, 2_000)
"""Records of a batch: those of a slow load and of a fast one, in turns."""
_WIDTH = 40


def warm_brokers(administration: Administration, topic: Topic) -> tuple[int, ...]:
    """Publish batches and read them back, one after the other, until that goes no faster; batches of each round."""
    cluster, clock, paces = administration.cluster, Clock(), list[int]()
    administration.create([topic])
    producer = open_producer(cluster, topic.name, clock.monotonic_ns)
    ranges, at = open_ranges(cluster, topic.name), 0
    parts = [Part(None, np.zeros((rows, _WIDTH), np.uint8), np.zeros(rows, np.int64)) for rows in _ROWS]
    try:
        while not flat(paces):
            ends, done = clock.monotonic_ns() + _ROUND, 0
            while clock.monotonic_ns() < ends:
                part = parts[done % len(parts)]
                producer.publish({0: part})
                producer.flush(_FLUSH)
                for _ in ranges.read(0, at, at + len(part.values)):
                    pass
                at, done = at + len(part.values), done + 1
            paces.append(done)
    finally:
        ranges.close()
        producer.close()
        administration.delete([topic.name])
    return tuple(paces)


def flat(paces: list[int]) -> bool:
    """Whether the last two rounds brought nothing that the others had not."""
    if len(paces) < _LEAST:
        return False
    return len(paces) >= _MOST or max(paces[-2:]) <= _FLAT * max(paces[:-2])
