"""What a load driver on Kafka keeps of its partitions: everything but the events. Pure.

The broker has the events. A partition of a trial's topic has one producer, so an offset in its log is the offset of the
partition. ``published`` is what the broker has confirmed.
"""

from bisect import bisect_right
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from streamgauge.model.streams import StreamPartition
from streamgauge.transports.kafka.client.producer import RecordColumns
from streamgauge.transports.ledger import Confirmation, Ledger, LedgerError, PartitionLedger


@dataclass(frozen=True, slots=True)
class EncodedEvents:
    """Events of one partition as bytes, ready for the producer."""

    records: RecordColumns

    @property
    def num_rows(self) -> int:
        """How many they are."""
        return len(self.records.values)

    @property
    def nbytes(self) -> int:
        """Their bytes in the log before compression, without a few for each record."""
        return self.records.values.size + (self.records.keys.size if self.records.keys is not None else 0)

    def slice(self, offset: int, length: int) -> "EncodedEvents":
        """Some of them, without copying."""
        span = slice(offset, offset + length)
        keys = None if self.records.keys is None else self.records.keys[span]
        return EncodedEvents(RecordColumns(keys, self.records.values[span], self.records.due_us[span]))


class KafkaLedger(Ledger[EncodedEvents]):
    """Counts of events that a broker has."""

    def __init__(self, partitions: Iterable[StreamPartition], bound_events: int = 0, bound_bytes: int = 0) -> None:
        super().__init__(partitions, bound_events, bound_bytes)
        self._unconfirmed: deque[tuple[int, dict[StreamPartition, int]]] = deque()
        """Send intervals that the broker has not whole, with the end of each partition in them."""
        self.confirmations: list[Confirmation] = []
        """Events that the broker has confirmed and that were not taken yet."""
        self.skew_us = 0
        """How far one partition was behind another at most, in µs of due time, since it was last reset."""

    def size(self, rows: EncodedEvents) -> int:
        """Bytes of events."""
        return rows.nbytes

    def record_sent(self, parts: Sequence[tuple[StreamPartition, EncodedEvents]], until_us: int) -> bool:
        """The events of a send interval go to the producer now. False, and they must not, once a bound would be
        passed."""
        if not self._append_interval(parts, until_us):
            return False
        self._unconfirmed.append((until_us, {each: self.partition(each).sent for each in self.partitions}))
        self._advance()
        return True

    def record_appended(self, counts: Mapping[StreamPartition, int]) -> None:
        """The broker has confirmed so many events of these partitions, all together."""
        for partition, count in counts.items():
            entry = self.partition(partition)
            if count > entry.sent:
                raise LedgerError(f"{count} events of {partition} were confirmed, and {entry.sent} were sent")
            self._advance_partition(entry, count)
        self._advance()
        self.longest = max(self.longest, self.waiting)
        self.skew_us = max(self.skew_us, self._skew())

    def _skew(self) -> int:
        """From the due time until which all partitions are there to the newest one that is there."""
        if self.published_until_us is None or not self._unconfirmed:
            return 0
        newest = self.published_until_us
        for each in self.partitions:
            entry = self.partition(each)
            interval = bisect_right(entry.starts, entry.published - 1) - 1
            newest = max(newest, entry.untils[interval] if interval >= 0 else 0)
        return newest - self.published_until_us

    def take_confirmations(self) -> list[Confirmation]:
        """What was confirmed since the last call."""
        taken, self.confirmations = self.confirmations, []
        return taken

    def _advance_partition(self, entry: PartitionLedger[EncodedEvents], count: int) -> None:
        if count > entry.published:
            self.published += count - entry.published
            entry.published = count

    def _advance(self) -> None:
        """Note the send intervals that the broker has whole by now."""
        while self._unconfirmed:
            until, ends = self._unconfirmed[0]
            if any(self.partition(each).published < end for each, end in ends.items()):
                return
            self.published_until_us = until
            self._unconfirmed.popleft()

    def _check_end(self, partition: StreamPartition, offset: int) -> None:
        """What was read is in the log, even if the confirmation of the broker has not arrived yet."""
        entry = self.partition(partition)
        if offset > entry.sent:
            raise LedgerError(f"offset {offset} of {partition} was never sent: {entry.sent} is the end")
        self._advance_partition(entry, offset)
        self._advance()
