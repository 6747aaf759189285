"""The partitions of a topic and their offsets, and those that a consumer group has committed."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from typing import Final, TypeVar

from confluent_kafka import (
    ConsumerGroupTopicPartitions,
    IsolationLevel,
    KafkaError,
    KafkaException,
    TopicPartition,
)
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AdminClient,
    ClusterMetadata,
    ListOffsetsResultInfo,
    OffsetSpec,
)

from app.infra.kafka.connection import PASSING, Brokers
from app.infra.kafka.errors import NoTopic, SourceFailed, SourceUnavailable

REQUEST_SECONDS: Final = 5.0
_ATTEMPT_SECONDS: Final = 1.0
PARTITIONS_MAX: Final = 2_000
_RETRY_SECONDS: Final = (0.2, 0.5, 1.0, 2.0)
_Answer = TypeVar("_Answer")


class TopicOffsets:
    """The offsets of a topic, as readers of committed transactions see it."""

    def __init__(self, brokers: Brokers, topic: str) -> None:
        """Raises SourceFailed if a broker may not be connected to, SourceUnavailable."""
        brokers.check()
        self._brokers = brokers
        self._topic = topic
        with brokers.reported("the Kafka client cannot be made"):
            self._admin = AdminClient(brokers.settings({}))

    def partitions(self) -> list[int]:
        """The numbers of the partitions. Checks the addresses of all brokers.

        Raises NoTopic, SourceUnavailable, SourceFailed.
        """
        metadata = self._metadata()
        self._brokers.check((str(broker.host), broker.port) for broker in metadata.brokers.values())
        topic = metadata.topics[self._topic]
        if topic.error is not None:
            if topic.error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
                raise NoTopic(f"there is no topic {self._topic!r}", topic=self._topic)
            raise self._brokers.fault(f"topic {self._topic!r} cannot be read", topic.error)
        if len(topic.partitions) > PARTITIONS_MAX:
            raise SourceFailed(f"topic {self._topic!r} has more than {PARTITIONS_MAX} partitions")
        return sorted(topic.partitions)

    def _metadata(self) -> ClusterMetadata:
        """Raises SourceUnavailable, SourceFailed: at once if no broker accepts a connection."""
        attempts = round(REQUEST_SECONDS / _ATTEMPT_SECONDS)
        for attempt in range(1, attempts + 1):
            try:
                return self._admin.list_topics(self._topic, timeout=_ATTEMPT_SECONDS)
            except KafkaException as error:
                # Errors of connections are handed over here.
                self._admin.poll(0)
                if attempt == attempts or self._brokers.all_down:
                    raise self._brokers.fault("Kafka cannot be reached", error.args[0]) from None
        raise AssertionError("unreachable: the last attempt returns or raises")

    def earliest(self, partitions: Collection[int]) -> dict[int, int]:
        """The first offset of each partition. Raises SourceUnavailable, SourceFailed."""
        return self._offsets(dict.fromkeys(partitions, OffsetSpec.earliest()))

    def latest(self, partitions: Collection[int]) -> dict[int, int]:
        """The offset of each partition at which the next committed message can be. Raises as `earliest`."""
        return self._offsets(dict.fromkeys(partitions, OffsetSpec.latest()))

    def at(self, partitions: Collection[int], timestamp_ms: int) -> dict[int, int]:
        """The first offset with a message of that time or later, else the latest one. Raises as `earliest`."""
        offsets = self._offsets(dict.fromkeys(partitions, OffsetSpec.for_timestamp(timestamp_ms)))
        absent = [partition for partition, offset in offsets.items() if offset < 0]
        return offsets | (self.latest(absent) if absent else {})

    def _offsets(self, specs: Mapping[int, OffsetSpec]) -> dict[int, int]:
        if not specs:
            return {}

        def request() -> dict[int, int]:
            futures: Mapping[TopicPartition, Future[ListOffsetsResultInfo]] = self._admin.list_offsets(
                {TopicPartition(self._topic, partition): spec for partition, spec in specs.items()},
                isolation_level=IsolationLevel.READ_COMMITTED,
                request_timeout=REQUEST_SECONDS,
            )
            return {place.partition: _result(future).offset for place, future in futures.items()}

        return self._repeated(request, f"the offsets of topic {self._topic!r} cannot be read")

    def commit(self, group: str, offsets: Mapping[int, int]) -> None:
        """Writes the offsets of a consumer group without members. Raises as `earliest`."""
        self._metadata()

        def request() -> None:
            places = [TopicPartition(self._topic, partition, offset) for partition, offset in offsets.items()]
            [future] = self._admin.alter_consumer_group_offsets(
                [ConsumerGroupTopicPartitions(group, places)], request_timeout=REQUEST_SECONDS
            ).values()
            for place in _result(future).topic_partitions or ():
                if place.error is not None:
                    raise KafkaException(place.error)

        self._repeated(request, f"the offsets of group {group!r} cannot be written")

    def committed(self, group: str) -> dict[int, int]:
        """The offsets that a consumer group has committed, by partition. Raises as `earliest`."""
        return {place.partition: place.offset for place in self._of_group(group)}

    def note(self, group: str) -> str | None:
        """The metadata that a group has committed with the offset of partition 0. Raises as `earliest`."""
        return next((place.metadata for place in self._of_group(group) if place.partition == 0), None)

    def _of_group(self, group: str) -> list[TopicPartition]:
        """What a group has committed, without transactions that are open. Raises as `earliest`."""

        def request() -> list[TopicPartition]:
            [future] = self._admin.list_consumer_group_offsets(
                [ConsumerGroupTopicPartitions(group)], require_stable=True, request_timeout=REQUEST_SECONDS
            ).values()
            places = _result(future).topic_partitions or ()
            return [place for place in places if place.topic == self._topic and place.offset >= 0]

        return self._repeated(request, f"the offsets of group {group!r} cannot be read")

    def _repeated(self, request: Callable[[], _Answer], what: str) -> _Answer:
        """The result of a request, which is repeated some times while brokers start or hand partitions over.

        Raises SourceUnavailable, SourceFailed, with `what` failed.
        """
        for seconds in (*_RETRY_SECONDS, None):
            try:
                return request()
            except KafkaException as error:
                cause = error.args[0]
                if seconds is None or cause.code() not in PASSING or self._brokers.all_down:
                    raise self._brokers.fault(what, cause) from None
                time.sleep(seconds)
            except FutureTimeout:
                raise SourceUnavailable(f"{what}: no answer in {REQUEST_SECONDS:.0f} s") from None
        raise AssertionError("unreachable: the last attempt returns or raises")


def _result(future: Future[_Answer]) -> _Answer:
    """The result of a request, which ends by itself. Raises KafkaException, TimeoutError."""
    return future.result(2 * REQUEST_SECONDS)
