"""Events of one partition that gather until they are sent. Pure."""

from collections import deque
from dataclasses import dataclass, field

import numpy as np

from streamgauge.transport.kafka.producer import Part


@dataclass(slots=True)
class Gathering:
    """Events of one partition that were published and not sent."""

    parts: deque[Part] = field(default_factory=deque)
    rows: int = 0
    size: int = 0
    since_ns: int = 0
    """When the oldest of them came."""

    def add(self, part: Part, now: int) -> None:
        """Some more, that came now."""
        if not self.rows:
            self.since_ns = now
        self.parts.append(part)
        self.rows += len(part.values)
        self.size += part.values.size

    def take(self, rows: int) -> Part:
        """The oldest events, as many as these at most, all of one width."""
        taken, left = list[Part](), rows
        while left and self.parts and shape(self.parts[0]) == shape((taken or self.parts)[0]):
            part = self.parts.popleft()
            if len(part.values) > left:
                self.parts.appendleft(_cut(part, left, None))
                part = _cut(part, 0, left)
            taken.append(part)
            left -= len(part.values)
        whole = taken[0] if len(taken) == 1 else _joined(taken)
        self.rows -= len(whole.values)
        self.size -= whole.values.size
        return whole


def shape(part: Part) -> tuple[int | None, int]:
    """The widths of keys and values: one batch has one of each."""
    return (None if part.keys is None else part.keys.shape[1]), part.values.shape[1]


def _cut(part: Part, start: int, stop: int | None) -> Part:
    keys = None if part.keys is None else part.keys[start:stop]
    return Part(keys, part.values[start:stop], part.due_us[start:stop])


def _joined(parts: list[Part]) -> Part:
    keys = [part.keys for part in parts if part.keys is not None]
    values, due = np.concatenate([part.values for part in parts]), np.concatenate([part.due_us for part in parts])
    return Part(np.concatenate(keys) if keys else None, values, due)
