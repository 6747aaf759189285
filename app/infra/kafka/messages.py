"""The messages in ranges of offsets."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

from confluent_kafka import TIMESTAMP_NOT_AVAILABLE, Consumer, KafkaError, TopicPartition

from app.infra.kafka.connection import PASSING, Brokers
from app.infra.kafka.errors import SourceFailed, SourceUnavailable
from app.kernel.codecs.messages.records import Message

_BATCH_MESSAGES: Final = 1_000
_POLL_SECONDS: Final = 1.0
_QUEUED_KIBIBYTES: Final = 16 * 1024
_FETCH_BYTES: Final = 4 * 1024 * 1024


class OffsetRange(NamedTuple):
    """The offsets of a partition from `start` on, without `end`."""

    partition: int
    start: int
    end: int


class RangeReader:
    """Reads ranges of a topic, at most one for each partition: the messages of committed transactions, in order.

    An offset may be without a message: a compacted topic has lost it, it was part of an aborted transaction, or it
    marks the end of one. `positions`: the offset of each partition up to which everything was returned.
    """

    def __init__(self, brokers: Brokers, topic: str, group: str, ranges: Sequence[OffsetRange]) -> None:
        self._brokers = brokers
        self._topic = topic
        self._group = group
        self._ends = {part.partition: part.end for part in ranges if part.start < part.end}
        self.positions = {part.partition: part.start for part in ranges}

    def read(self, seconds_max: float) -> Iterator[Message]:
        """The messages. Ends early after `seconds_max`, if there was one by then.

        Raises SourceUnavailable, SourceFailed: for offsets that the topic has lost.
        """
        if not self._ends:
            return
        self._brokers.check()
        with self._brokers.reported(f"topic {self._topic!r} cannot be read"):
            consumer = Consumer(self._settings())
            try:
                yield from self._read(consumer, time.monotonic() + seconds_max)
            finally:
                consumer.close()

    def _read(self, consumer: Consumer, deadline: float) -> Iterator[Message]:
        consumer.assign(
            [TopicPartition(self._topic, number, self.positions[number]) for number in self._ends]
        )
        has_read = False
        while self._ends:
            # `consume` alone would wait for a whole batch.
            first = consumer.poll(_POLL_SECONDS)
            batch = [] if first is None else [first, *consumer.consume(_BATCH_MESSAGES, 0)]
            for record in batch:
                if record.error() is not None:
                    self._end_of_partition(record)
                elif (message := self._in_range(consumer, record)) is not None:
                    has_read = True
                    yield message
            if time.monotonic() > deadline:
                if has_read:
                    return
                raise self._late()

    def _in_range(self, consumer: Consumer, message: Any) -> Message | None:
        """The message, if it belongs to a range that is not at its end."""
        number, offset = message.partition(), message.offset()
        end = self._ends.get(number)
        if end is None:
            return None
        if offset >= end - 1:
            self._finish(number)
            consumer.pause([TopicPartition(self._topic, number)])
        else:
            self.positions[number] = offset + 1
        if offset >= end:
            return None
        kind, timestamp = message.timestamp()
        return Message(
            topic=self._topic,
            partition=number,
            offset=offset,
            timestamp_ms=None if kind == TIMESTAMP_NOT_AVAILABLE else timestamp,
            key=message.key(),
            value=message.value(),
        )

    def _end_of_partition(self, event: Any) -> None:
        """An event instead of a message: the end of a partition, which may be that of its range, or an error."""
        error, number = event.error(), event.partition()
        if error.code() == KafkaError._PARTITION_EOF:
            if event.offset() >= self._ends.get(number, event.offset() + 1):
                self._finish(number)
            return
        if error.code() in {KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE}:
            raise SourceFailed(
                f"offset {self.positions.get(number)} of partition {number} of topic {self._topic!r} is not there: the "
                "topic has removed it, or was made again. Set the position of the source to one that is there",
                topic=self._topic,
                partition=number,
            )
        if error.code() not in PASSING:
            raise self._brokers.fault(f"topic {self._topic!r} cannot be read", error)

    def _finish(self, partition: int) -> None:
        self.positions[partition] = self._ends.pop(partition)

    def _late(self) -> SourceUnavailable | SourceFailed:
        waiting = ", ".join(f"{number} at {self.positions[number]}" for number in sorted(self._ends)[:5])
        if self._brokers.errors:
            return self._brokers.fault(
                f"topic {self._topic!r} cannot be read", next(iter(self._brokers.errors.values()))
            )
        return SourceUnavailable(
            f"topic {self._topic!r} returned no message in time; waited for partition {waiting}"
        )

    def _settings(self) -> dict[str, Any]:
        return self._brokers.settings(
            {
                "group.id": self._group,
                "enable.auto.commit": False,
                "enable.auto.offset.store": False,
                "enable.partition.eof": True,
                "auto.offset.reset": "error",
                "isolation.level": "read_committed",
                "check.crcs": True,
                "fetch.wait.max.ms": 100,
                "fetch.max.bytes": 4 * _FETCH_BYTES,
                "max.partition.fetch.bytes": _FETCH_BYTES,
                "queued.max.messages.kbytes": _QUEUED_KIBIBYTES,
            }
        )
