"""Topics with messages."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Mapping
from typing import Any

from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    ResourceType,
)

_SECONDS = 60


class Topic:
    """A topic of its own on a broker."""

    def __init__(
        self, bootstrap: str, *, partitions: int = 1, settings: Mapping[str, str] | None = None
    ) -> None:
        self.bootstrap = bootstrap
        self.name = f"topic-{uuid.uuid4().hex[:12]}"
        self.admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
        self._producer = Producer({"bootstrap.servers": bootstrap, "log_level": 0})
        topic = NewTopic(
            self.name, num_partitions=partitions, replication_factor=1, config=dict(settings or {})
        )
        for made in self.admin.create_topics([topic]).values():
            made.result(_SECONDS)

    def produce(
        self, *values: bytes | None, key: bytes | None = None, partition: int = 0, **more: Any
    ) -> None:
        """Messages with these values. Returns once the broker has them."""
        self.produce_pairs(((key, value) for value in values), partition=partition, **more)

    def produce_pairs(
        self, pairs: Iterable[tuple[bytes | None, bytes | None]], *, partition: int = 0, **more: Any
    ) -> None:
        """Messages with these keys and values."""
        for key, value in pairs:
            while True:
                try:
                    self._producer.produce(self.name, value=value, key=key, partition=partition, **more)
                    break
                except BufferError:
                    self._producer.poll(1)
        assert self._producer.flush(_SECONDS) == 0, "the broker did not take the messages"

    def produce_rows(self, rows: Iterable[Any], *, partition: int = 0) -> None:
        """JSON messages."""
        self.produce(*(json.dumps(row).encode() for row in rows), partition=partition)

    def produce_transaction(self, *values: bytes, commit: bool, partition: int = 0) -> None:
        """Messages of one transaction, which is committed or aborted."""
        producer = Producer(
            {"bootstrap.servers": self.bootstrap, "transactional.id": uuid.uuid4().hex, "log_level": 0}
        )
        producer.init_transactions(_SECONDS)
        producer.begin_transaction()
        for value in values:
            producer.produce(self.name, value=value, partition=partition)
        assert producer.flush(_SECONDS) == 0
        if commit:
            producer.commit_transaction(_SECONDS)
        else:
            producer.abort_transaction(_SECONDS)

    def set(self, name: str, value: str) -> None:
        """Changes a setting of the topic."""
        entry = ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(ResourceType.TOPIC, self.name, incremental_configs=[entry])
        for changed in self.admin.incremental_alter_configs([resource]).values():
            changed.result(_SECONDS)

    def committed(self) -> list[Any]:
        """All messages of committed transactions, those of each partition in order."""
        consumer = Consumer(
            {
                "bootstrap.servers": self.bootstrap,
                "group.id": uuid.uuid4().hex,
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                "isolation.level": "read_committed",
                # How long the broker waits for more messages at the end of a partition.
                "fetch.wait.max.ms": 10,
                "log_level": 0,
            }
        )
        try:
            open_ = set(consumer.list_topics(self.name, timeout=_SECONDS).topics[self.name].partitions)
            consumer.assign([TopicPartition(self.name, number, 0) for number in open_])
            found = []
            while open_:
                message = consumer.poll(_SECONDS)
                assert message is not None, "the broker does not respond"
                error = message.error()
                if error is None:
                    found.append(message)
                elif error.code() == KafkaError._PARTITION_EOF:
                    open_.discard(message.partition())
            return found
        finally:
            consumer.close()

    def add_partitions(self, count: int) -> None:
        """More partitions, up to this number."""
        for made in self.admin.create_partitions([NewPartitions(self.name, count)]).values():
            made.result(_SECONDS)

    def delete(self) -> None:
        """Deletes the topic."""
        for done in self.admin.delete_topics([self.name]).values():
            done.result(_SECONDS)
