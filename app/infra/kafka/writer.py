"""Messages written to a topic, in transactions that are found again.

A transaction also commits an offset of a consumer group that has no members: its metadata are the id of the batch. So
a writer that does not know whether a batch was committed before can ask the broker.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final

import msgspec
from confluent_kafka import (
    Consumer,
    KafkaError,
    KafkaException,
    Producer,
    TopicPartition,
)

from app.infra.kafka.connection import Brokers
from app.infra.kafka.errors import SourceUnavailable
from app.infra.kafka.offsets import TopicOffsets

_TRANSACTION_SECONDS_MAX: Final = 30
_ABORT_SECONDS_MAX: Final = 2.0
# The broker has its own limit, by topic.
_MESSAGE_BYTES_MAX: Final = 64 * 1024 * 1024


class OutMessage(msgspec.Struct, frozen=True, kw_only=True):
    """A message to write. Without a `value` it is a tombstone of its key."""

    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes], ...] = ()


class TopicWriter:
    """Writes batches to a topic. Of the writers with one name only the latest one can commit."""

    def __init__(self, brokers: Brokers, topic: str, name: str) -> None:
        """`name`: that of the transactions, and of the consumer group. Raises SourceFailed, SourceUnavailable."""
        self._brokers = brokers
        self._topic = topic
        self._name = name
        self._offsets = TopicOffsets(brokers, topic)

    def check(self) -> None:
        """Raises NoTopic, SourceUnavailable, and SourceFailed if a broker may not be connected to."""
        self._offsets.partitions()

    def write(self, batch_id: str, messages: Sequence[OutMessage], seconds_max: float) -> bool:
        """Commits all messages at once; False if this batch was the last one that was committed, and nothing was done.

        The messages of a key keep their order. After SourceUnavailable the batch may have been committed; the same
        call again is safe then. Raises NoTopic, SourceUnavailable, SourceFailed.
        """
        deadline = time.monotonic() + seconds_max
        self.check()
        with self._brokers.reported(f"topic {self._topic!r} cannot be written"):
            try:
                return self._transact(batch_id, messages, deadline, together=True)
            except KafkaException as error:
                if error.args[0].code() != KafkaError.MSG_SIZE_TOO_LARGE:
                    raise
            # The limit of a topic applies to what is sent at once, so each message may be small enough by itself.
            return self._transact(batch_id, messages, deadline, together=False)

    def _transact(
        self, batch_id: str, messages: Sequence[OutMessage], deadline: float, *, together: bool
    ) -> bool:
        producer = Producer(self._settings(together=together))
        try:
            # What an earlier writer has begun is ended by then: committed, or aborted.
            producer.init_transactions(_left(deadline))
            if self._offsets.note(self._name) == batch_id:
                return False
            producer.begin_transaction()
            try:
                self._write(producer, messages, deadline)
                self._commit(producer, batch_id, deadline)
            except (KafkaException, SourceUnavailable):
                # Else the next writer ends it, or the timeout of the transaction.
                with suppress(KafkaException):
                    producer.abort_transaction(_ABORT_SECONDS_MAX)
                raise
        finally:
            producer.purge()
        return True

    def _write(self, producer: Producer, messages: Sequence[OutMessage], deadline: float) -> None:
        errors: list[Any] = []

        def note(error: Any, _: Any) -> None:
            if error is not None:
                errors.append(error)

        for message in messages:
            producer.produce(
                self._topic,
                value=message.value,
                key=message.key,
                headers=list(message.headers),
                on_delivery=note,
            )
            producer.poll(0)
        backlog = producer.flush(_left(deadline))
        if errors:
            raise KafkaException(errors[0])
        if backlog:
            raise SourceUnavailable(f"topic {self._topic!r} cannot be written: {backlog} messages wait")

    def _commit(self, producer: Producer, batch_id: str, deadline: float) -> None:
        group = Consumer(self._brokers.settings({"group.id": self._name}))
        try:
            place = TopicPartition(self._topic, 0, 0, batch_id)
            producer.send_offsets_to_transaction([place], group.consumer_group_metadata(), _left(deadline))
        finally:
            group.close()
        producer.commit_transaction(_left(deadline))

    def _settings(self, *, together: bool) -> dict[str, Any]:
        return self._brokers.settings(
            ({} if together else {"batch.num.messages": 1})
            | {
                "transactional.id": self._name,
                "transaction.timeout.ms": _TRANSACTION_SECONDS_MAX * 1_000,
                # The partitions that Java's clients choose, so that all writers agree on that of a key.
                "partitioner": "murmur2_random",
                "message.max.bytes": _MESSAGE_BYTES_MAX,
                "compression.type": "lz4",
            }
        )


def _left(deadline: float) -> float:
    return max(0.1, deadline - time.monotonic())
