"""Topics of Kafka.

A round reads a range of offsets of each partition, in tasks. The position `{"0": 120, "1": 95}` has the offset of each
partition from which on nothing was read. A partition that it lacks was added later, and is read from its earliest
offset on.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from enum import Enum
from functools import lru_cache
from typing import Annotated, Any, BinaryIO, Final, TypeAlias

import msgspec

from app.features.sources.kinds.configs import checked_config, refused_config
from app.features.sources.ports import (
    Ledger,
    Output,
    Part,
    PartRead,
    Place,
    Position,
    RoundLimits,
    RoundPlan,
    SourceEnvironment,
    SourceLag,
)
from app.features.sources.values import refused_source
from app.infra.kafka.connection import Brokers, Cluster, Mechanism, Protocol, servers_of
from app.infra.kafka.errors import SourceFailed, SourceUnavailable
from app.infra.kafka.messages import OffsetRange, RangeReader
from app.infra.kafka.offsets import TopicOffsets
from app.infra.kafka.ranges import share, split
from app.infra.kafka.registry import RegistryAddress, SchemasOfRound, registry_of
from app.infra.outbound.addresses import AddressRefused, Rules
from app.infra.outbound.connector import CONNECT_SECONDS_MAX, Connector
from app.kernel.codecs.messages.reading import BadMessage, MessageSchema
from app.kernel.codecs.messages.records import (
    REGISTERED,
    Envelope,
    Fact,
    Message,
    MessageFormat,
    RecordMaker,
    RecordRules,
    SchemaOf,
)
from app.kernel.commit.write_options import ChangeOrder
from app.kernel.format.errors import FieldError
from app.kernel.format.operation import Operation
from app.kernel.format.rows.formats import Format
from app.kernel.format.rows.staged import RowRun

_PARTS_MAX: Final = 8
_PART_MESSAGES_MIN: Final = 5_000
# Only an estimate, before anything was read.
_MESSAGE_BYTES: Final = 300
_WRITE_BYTES: Final = 1 << 20
# Of each part. Rows beyond have errors without the message that they were made from.
_RUNS_MAX: Final = 10_000
_LAG_PARTITIONS_MAX: Final = 8
_LAG_SECONDS_MAX: Final = 5.0
_Name: TypeAlias = Annotated[str, msgspec.Meta(min_length=1, max_length=249, pattern=r"^[A-Za-z0-9._-]+$")]
_FieldName: TypeAlias = Annotated[str, msgspec.Meta(min_length=1, max_length=255)]


class Start(str, Enum):
    """Where a source without a position begins."""

    EARLIEST = "earliest"
    LATEST = "latest"


class Tombstones(str, Enum):
    """What a message without a value does."""

    DELETE = "delete"
    IGNORE = "ignore"
    REJECT = "reject"


class StartAt(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A time, or offsets by partition. Other partitions begin at their earliest offset."""

    time: datetime | None = None
    offsets: dict[str, Annotated[int, msgspec.Meta(ge=0)]] | None = None


class KafkaConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The config of a source of this kind."""

    bootstrap_servers: str
    topic: _Name
    format: MessageFormat = MessageFormat.JSON
    envelope: Envelope = Envelope.NONE
    start: Start | StartAt = Start.EARLIEST
    key_format: MessageFormat | None = None
    key_field: _FieldName = "key"
    value_field: _FieldName = "value"
    tombstones: Tombstones | None = None
    include: dict[Fact, _FieldName] = {}
    registry_url: str | None = None
    registry_username: str | None = None
    registry_password: str | None = None
    group: _Name | None = None
    security_protocol: Protocol = Protocol.PLAINTEXT
    sasl_mechanism: Mechanism = Mechanism.PLAIN
    username: str | None = None
    password: str | None = None
    certificate_authority: Annotated[str, msgspec.Meta(max_length=100_000)] | None = None

    @property
    def changes(self) -> bool:
        """Whether records are changes of rows."""
        return self.envelope is not Envelope.NONE or self.tombstones is Tombstones.DELETE


class Kafka:
    """Reads a topic."""

    needs = "a message"
    secrets = frozenset({"password", "registry_password"})
    in_task = True

    def checked(self, config: dict[str, Any], environment: SourceEnvironment) -> dict[str, Any]:
        """See `SourceKind.checked`."""
        kafka_config = checked_config(config, KafkaConfig)
        faults = list(_faults(kafka_config, environment))
        if faults:
            raise refused_config(*faults)
        if kafka_config.tombstones is None:
            default = Tombstones.REJECT if kafka_config.key_format is None else Tombstones.DELETE
            kafka_config = msgspec.structs.replace(kafka_config, tombstones=default)
        complete_config: dict[str, Any] = msgspec.to_builtins(kafka_config)
        return complete_config

    def check_addresses(self, config: dict[str, Any], environment: SourceEnvironment) -> None:
        """See `Connects.check_addresses`."""
        kafka_config = checked_config(config, KafkaConfig)
        try:
            _brokers(kafka_config, environment).check()
        except (SourceFailed, SourceUnavailable) as reason:
            raise refused_source("/config/bootstrap_servers", reason.detail) from None
        if kafka_config.registry_url is not None:
            connector = _connector(_rules_of(environment))
            try:
                connector.addresses(connector.rules.target(kafka_config.registry_url), CONNECT_SECONDS_MAX)
            except (AddressRefused, TimeoutError) as reason:
                raise refused_source("/config/registry_url", str(reason)) from None

    def plan(self, place: Place, position: Position, limits: RoundLimits, _: Ledger) -> RoundPlan | None:
        """See `SourceKind.plan`."""
        config = _config(place)
        topic = TopicOffsets(_brokers(config, place.environment), config.topic)
        partitions = topic.partitions()
        latest = topic.latest(partitions)
        starts = _starts(config, topic, position, latest)
        available = {partition: latest[partition] - start for partition, start in starts.items()}
        shares = share(available, limits.rows)
        if not shares:
            # A position that is new must be kept: the latest offsets are others by the next round.
            stable_start = position or config.start is Start.EARLIEST
            return None if stable_start else RoundPlan(parts=(), position=_position(starts))
        ranges = [
            OffsetRange(partition, starts[partition], starts[partition] + count)
            for partition, count in shares.items()
        ]
        groups = split(ranges, _PARTS_MAX, _PART_MESSAGES_MIN)
        ends = starts | {part.partition: part.end for part in ranges}
        return RoundPlan(
            parts=tuple(
                Part(
                    content={"ranges": group, "bytes": max(1, limits.bytes // len(groups))},
                    size_bytes=sum(part.end - part.start for part in group) * _MESSAGE_BYTES,
                )
                for group in groups
            ),
            position=_position(ends),
            operation=Operation.CHANGELOG if config.changes else None,
            # A message may come twice, and late.
            order=ChangeOrder.ORDERING_FIELD if config.changes else None,
            more=any(ends[partition] < latest[partition] for partition in starts),
        )

    def fetch(self, place: Place, part: Part, limits: RoundLimits, output: Output) -> PartRead:
        """See `SourceKind.fetch`."""
        config = _config(place)
        ranges = [OffsetRange(*bounds) for bounds in part.content["ranges"]]
        reader = RangeReader(_brokers(config, place.environment), config.topic, _group(config, place), ranges)
        maker = RecordMaker(_rules(config), _schemas(config, place))
        columns: dict[str, str] = {}
        runs: list[RowRun] = []
        with output.body(Format.NDJSON, _origin(config.topic, ranges), columns=columns, runs=runs) as file:
            lines = _Lines(file, runs)
            for message in reader.read(limits.seconds):
                _write(message, maker, config, lines, output)
                if lines.size_bytes >= part.content["bytes"]:
                    break
            lines.flush()
            if lines.size_bytes:
                columns.update(maker.columns() or {})
        return PartRead(position=_position(reader.positions))

    def lag(self, place: Place, position: Position, _: Ledger) -> SourceLag:
        """See `SourceKind.lag`."""
        config = _config(place)
        brokers = _brokers(config, place.environment)
        topic = TopicOffsets(brokers, config.topic)
        latest = topic.latest(topic.partitions())
        starts = _starts(config, topic, position, latest)
        behind = {
            number: latest[number] - start for number, start in starts.items() if start < latest[number]
        }
        if not behind:
            return SourceLag(rows=0, seconds=0.0)
        return SourceLag(rows=sum(behind.values()), seconds=_age(config, place, brokers, starts, behind))

    def committed(self, place: Place, position: Position) -> None:
        """See `SourceKind.committed`: writes the offsets of the consumer group, which the source does not read."""
        config = _config(place)
        if position:
            topic = TopicOffsets(_brokers(config, place.environment), config.topic)
            topic.commit(_group(config, place), _offsets(position))


class _Lines:
    """Lines that are written in large pieces. `runs` gets the messages that they were made from, up to a bound: a
    compacted topic may have a run for each message.
    """

    def __init__(self, file: BinaryIO, runs: list[RowRun]) -> None:
        self._file = file
        self._runs = runs
        self._place: tuple[int, int] | None = None
        self._rows = 0
        self._lines: list[bytes] = []
        self._waiting = 0
        self.size_bytes = 0

    def add(self, line: bytes, message: Message) -> None:
        if (message.partition, message.offset) != self._place and len(self._runs) < _RUNS_MAX:
            place = "" if len(self._runs) == _RUNS_MAX - 1 else _place(message)
            self._runs.append(RowRun(first_row=self._rows, number=message.offset, place=place))
        self._place = message.partition, message.offset + 1
        self._rows += 1
        self._lines.append(line)
        self._waiting += len(line) + 1
        self.size_bytes += len(line) + 1
        if self._waiting >= _WRITE_BYTES:
            self.flush()

    def flush(self) -> None:
        if self._lines:
            self._file.write(b"\n".join([*self._lines, b""]))
        self._lines, self._waiting = [], 0


def _write(message: Message, maker: RecordMaker, config: KafkaConfig, lines: _Lines, output: Output) -> None:
    """Writes the record of a message, or rejects the message."""
    if message.value is None and config.tombstones is Tombstones.IGNORE:
        return
    try:
        record = maker.record(message)
    except BadMessage as error:
        where = f"message {message.offset} of {_place(message)}"
        payload = message.key if message.value is None else message.value
        output.reject(payload or b"", f"{where}: {error}", message.offset)
        return
    if record is not None:
        lines.add(record, message)


def _place(message: Message) -> str:
    return f"partition {message.partition} of topic {message.topic!r}"


def _faults(config: KafkaConfig, environment: SourceEnvironment) -> Iterator[FieldError]:
    """What is wrong with a config whose members have the right types."""
    try:
        servers_of(config.bootstrap_servers)
    except ValueError as error:
        yield FieldError(pointer="/config/bootstrap_servers", detail=str(error))
    if not (config.security_protocol.encrypts or environment.plain_http):
        yield FieldError(pointer="/config/security_protocol", detail="this service requires ssl or sasl_ssl")
    if config.security_protocol.identifies and not (config.username and config.password):
        yield FieldError(
            pointer="/config/username",
            detail=f"{config.security_protocol.value} requires a username and a password",
        )
    yield from _registry_faults(config, environment)
    yield from _record_faults(config)
    if isinstance(config.start, StartAt):
        yield from _start_faults(config.start)


def _registry_faults(config: KafkaConfig, environment: SourceEnvironment) -> Iterator[FieldError]:
    needing = [each.value for each in (config.format, config.key_format) if each and each in REGISTERED]
    if config.registry_url is None:
        if needing:
            yield FieldError(
                pointer="/config/registry_url", detail=f"format {needing[0]} requires a schema registry"
            )
        return
    try:
        _rules_of(environment).target(config.registry_url)
    except AddressRefused as error:
        yield FieldError(pointer="/config/registry_url", detail=str(error))


def _record_faults(config: KafkaConfig) -> Iterator[FieldError]:
    if config.envelope is not Envelope.NONE:
        if config.format is MessageFormat.STRING:
            yield FieldError(
                pointer="/config/envelope", detail="a text is no envelope; expected another format"
            )
        if config.tombstones is Tombstones.DELETE:
            yield FieldError(
                pointer="/config/tombstones",
                detail="an envelope states deletes; the tombstone after it is ignored",
            )
        if config.key_format is not None:
            yield FieldError(pointer="/config/key_format", detail="an envelope has all fields; leave it out")
    elif config.tombstones is Tombstones.DELETE and config.key_format is None:
        yield FieldError(
            pointer="/config/key_format", detail="tombstones delete the row of their key: state its format"
        )
    names = list(config.include.values())
    if len(set(names)) < len(names):
        yield FieldError(pointer="/config/include", detail="two facts cannot have one field")


def _start_faults(start: StartAt) -> Iterator[FieldError]:
    if (start.time is None) == (start.offsets is None):
        yield FieldError(pointer="/config/start", detail="expected either time or offsets")
    if start.time is not None and start.time.tzinfo is None:
        yield FieldError(
            pointer="/config/start/time", detail="expected a time with a zone: 2026-11-21T10:00:00Z"
        )
    for number in start.offsets or ():
        if not (number.isascii() and number.isdigit() and len(number) < 7):
            yield FieldError(
                pointer=f"/config/start/offsets/{number[:20]}", detail="expected the number of a partition"
            )


def _config(place: Place) -> KafkaConfig:
    return checked_config(place.config, KafkaConfig)


def _rules_of(environment: SourceEnvironment) -> Rules:
    return Rules.of(environment.allow, http=environment.plain_http, setting="HEADWATER_SOURCE")


@lru_cache(maxsize=4)
def _connector(rules: Rules) -> Connector:
    return Connector(rules=rules)


def _brokers(config: KafkaConfig, environment: SourceEnvironment) -> Brokers:
    cluster = Cluster(
        servers=servers_of(config.bootstrap_servers),
        protocol=config.security_protocol,
        mechanism=config.sasl_mechanism,
        username=config.username,
        password=config.password,
        authority=config.certificate_authority,
    )
    return Brokers.of(cluster, _rules_of(environment))


def _schemas(config: KafkaConfig, place: Place) -> SchemaOf:
    if config.registry_url is None:
        return _no_schemas
    address = RegistryAddress(
        url=config.registry_url, username=config.registry_username, password=config.registry_password
    )
    return SchemasOfRound(registry_of(address, _rules_of(place.environment)))


def _no_schemas(_form: MessageFormat, number: int) -> MessageSchema:
    raise BadMessage(f"it has schema {number}, but the source has no registry")


def _rules(config: KafkaConfig) -> RecordRules:
    return RecordRules(
        format=config.format,
        envelope=config.envelope,
        key_format=config.key_format,
        key_field=config.key_field,
        value_field=config.value_field,
        framed_json=config.registry_url is not None,
        include=config.include,
        changes=config.changes,
    )


def _group(config: KafkaConfig, place: Place) -> str:
    return config.group or f"headwater-{place.source_id}"


def _position(offsets: Mapping[int, int]) -> Position:
    return {str(partition): offset for partition, offset in sorted(offsets.items())}


def _offsets(position: Position) -> dict[int, int]:
    return {int(partition): int(offset) for partition, offset in position.items()}


def _origin(topic: str, ranges: Sequence[OffsetRange]) -> str:
    some = ", ".join(f"{part.partition} from {part.start} to {part.end - 1}" for part in ranges[:5])
    return f"topic {topic!r}, partition {some}{', …' if len(ranges) > 5 else ''}"


def _starts(
    config: KafkaConfig, topic: TopicOffsets, position: Position, latest: Mapping[int, int]
) -> dict[int, int]:
    """The offset of each partition at which the next round begins. Raises SourceFailed if the topic is another one."""
    offsets = _offsets(position)
    for partition, offset in offsets.items():
        if offset > latest.get(partition, -1):
            raise SourceFailed(
                f"the source has read partition {partition} of topic {config.topic!r} up to offset {offset}, and now "
                "it ends before: the topic was made again, or has lost messages. Set the position of the source",
                topic=config.topic,
                partition=partition,
            )
    absent = [partition for partition in latest if partition not in offsets]
    if not absent:
        return offsets
    if position or config.start is Start.EARLIEST:
        return offsets | topic.earliest(absent)
    if config.start is Start.LATEST:
        return dict(latest)
    if isinstance(config.start, StartAt) and config.start.time is not None:
        return topic.at(absent, int(config.start.time.timestamp() * 1_000))
    return _stated(config, topic.earliest(absent), latest)


def _stated(config: KafkaConfig, earliest: Mapping[int, int], latest: Mapping[int, int]) -> dict[int, int]:
    """The offsets that the config states, and the earliest ones of other partitions. Raises SourceFailed."""
    offsets = _offsets((config.start.offsets or {}) if isinstance(config.start, StartAt) else {})
    for partition, offset in offsets.items():
        if partition not in latest:
            raise SourceFailed(f"topic {config.topic!r} has no partition {partition}", topic=config.topic)
        if not earliest[partition] <= offset <= latest[partition]:
            raise SourceFailed(
                f"partition {partition} of topic {config.topic!r} has the offsets {earliest[partition]} to "
                f"{latest[partition]}, so it cannot be read from {offset}",
                topic=config.topic,
                partition=partition,
            )
    return {**earliest, **offsets}


def _age(
    config: KafkaConfig,
    place: Place,
    brokers: Brokers,
    starts: Mapping[int, int],
    behind: Mapping[int, int],
) -> float | None:
    """The age of the oldest message that is not read, in seconds, of the partitions that are most behind."""
    most = sorted(behind, key=behind.__getitem__, reverse=True)[:_LAG_PARTITIONS_MAX]
    ranges = [OffsetRange(number, starts[number], starts[number] + behind[number]) for number in most]
    reader = RangeReader(brokers, config.topic, _group(config, place), ranges)
    oldest: dict[int, int] = {}
    deadline = time.monotonic() + _LAG_SECONDS_MAX
    for message in reader.read(_LAG_SECONDS_MAX):
        if message.timestamp_ms is not None:
            oldest.setdefault(message.partition, message.timestamp_ms)
        if len(oldest) == len(most) or time.monotonic() > deadline:
            break
    if not oldest:
        return None
    return max(0.0, datetime.now(UTC).timestamp() - min(oldest.values()) / 1_000)
