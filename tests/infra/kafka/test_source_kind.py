"""A source reads each committed message of a topic once, whatever the topic has lost or gained meanwhile."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from app.features.sources.errors import InvalidSource
from app.features.sources.kinds.kafka import Kafka
from app.features.sources.ports import RoundLimits, SourceEnvironment
from app.infra.kafka.errors import SourceFailed, SourceUnavailable
from app.kernel.commit.write_options import ChangeOrder
from app.kernel.format.errors import InvalidRequest, MalformedBody
from app.kernel.format.operation import Operation
from tests.kernel.codecs.messages.test_avro_schema import encoded
from tests.support.kafka.registry import Registry
from tests.support.kafka.rounds import LOCAL, NoLedger, Rounds
from tests.support.kafka.topics import Topic
from tests.support.waiting import until

NewRounds = Callable[..., Rounds]


@pytest.fixture
def new_rounds(tmp_path: Path) -> NewRounds:
    def new(
        topic: Topic, *, quarantine: bool = False, environment: SourceEnvironment = LOCAL, **config: Any
    ) -> Rounds:
        return Rounds(
            folder=tmp_path,
            config={"bootstrap_servers": topic.bootstrap, "topic": topic.name, **config},
            quarantine=quarantine,
            environment=environment,
        )

    return new


def rows(*numbers: int) -> list[dict[str, int]]:
    return [{"id": number} for number in numbers]


def test_rounds_read_each_message_once_in_the_order_of_its_partition(
    new_topic: Callable[..., Topic], new_rounds: NewRounds
) -> None:
    topic = new_topic(partitions=3)
    rounds = new_rounds(topic)
    assert rounds.round() is None
    for partition in range(3):
        topic.produce_rows(({"p": partition, "n": n} for n in range(100)), partition=partition)
    plan = rounds.round(RoundLimits(rows=120))
    assert plan is not None
    assert plan.more
    assert sum(rounds.position.values()) == len(rounds.records) == 120
    assert rounds.rounds(RoundLimits(rows=70)) == 3
    assert rounds.position == {"0": 100, "1": 100, "2": 100}
    for partition in range(3):
        assert [row["n"] for row in rounds.records if row["p"] == partition] == list(range(100))
    topic.produce_rows([{"p": 1, "n": 100}], partition=1)
    assert rounds.rounds() == 1
    assert rounds.records[-1] == {"p": 1, "n": 100}


def test_round_that_is_repeated_reads_the_same(topic: Topic, new_rounds: NewRounds) -> None:
    topic.produce_rows(rows(*range(50)))
    rounds = new_rounds(topic)
    rounds.round()
    rounds.position = {}
    rounds.round()
    assert rounds.records == rows(*range(50)) * 2


def test_aborted_transactions_are_not_read(topic: Topic, new_rounds: NewRounds) -> None:
    rounds = new_rounds(topic)
    topic.produce_transaction(b'{"id": 1}', b'{"id": 2}', commit=True)
    topic.produce_transaction(b'{"id": 3}', commit=False)
    assert rounds.rounds() == 1
    # Messages, and the marks of two transactions.
    assert rounds.position == {"0": 5}
    topic.produce_transaction(b'{"id": 4}', commit=False)
    assert rounds.rounds() == 1
    assert rounds.records == rows(1, 2)
    assert rounds.position == {"0": 7}
    # One message a round: some rounds read only a mark.
    one = new_rounds(topic)
    topic.produce_rows(rows(5))
    assert one.rounds(RoundLimits(rows=1)) == 8
    assert one.records == rows(1, 2, 5)


def test_compacted_topic_is_read_over_its_gaps(
    new_topic: Callable[..., Topic], new_rounds: NewRounds
) -> None:
    topic = new_topic(
        settings={
            "cleanup.policy": "compact",
            "segment.ms": "100",
            "min.cleanable.dirty.ratio": "0.01",
            "segment.bytes": "1048576",
        }
    )

    def compacted() -> bool:
        # Only segments before the active one are compacted; a new message opens another segment.
        topic.produce(b'{"id": 9}', key=b"9")
        rounds = new_rounds(topic)
        rounds.rounds()
        return len(rounds.records) < rounds.position["0"] - 20

    for number in range(30):
        topic.produce(b'{"id": %d}' % number, key=b"same")
    until(compacted, "the broker to compact the topic", seconds_max=90)
    whole = new_rounds(topic)
    whole.rounds()
    stepwise = new_rounds(topic)
    stepwise.rounds(RoundLimits(rows=7))
    assert stepwise.position == whole.position
    assert {"id": 29} in stepwise.records
    assert {"id": 0} not in stepwise.records


def test_source_begins_where_its_config_says(topic: Topic, new_rounds: NewRounds) -> None:
    topic.produce(b'{"id": 1}', timestamp=1_000)
    topic.produce(b'{"id": 2}', timestamp=2_000)
    latest = new_rounds(topic, start="latest")
    plan = latest.round()
    assert plan is not None
    assert plan.parts == ()
    assert latest.position == {"0": 2}
    assert latest.round() is None
    topic.produce(b'{"id": 3}', timestamp=3_000)
    for start, expected in (
        ("earliest", rows(1, 2, 3)),
        ({"time": "1970-01-01T00:00:02Z"}, rows(2, 3)),
        ({"time": "1970-01-01T01:00:01.5+01:00"}, rows(2, 3)),
        ({"offsets": {"0": 2}}, rows(3)),
    ):
        rounds = new_rounds(topic, start=start)
        rounds.rounds()
        assert rounds.records == expected, start
    latest.rounds()
    assert latest.records == rows(3)
    future = new_rounds(topic, start={"time": "2200-01-01T00:00:00Z"})
    assert future.round() is not None
    assert (future.position, future.records) == ({"0": 3}, [])
    for offsets in ({"0": 4}, {"7": 0}):
        with pytest.raises(SourceFailed, match="partition"):
            new_rounds(topic, start={"offsets": offsets}).round()


def test_partition_that_is_added_is_read_from_its_beginning(topic: Topic, new_rounds: NewRounds) -> None:
    rounds = new_rounds(topic, start="latest")
    rounds.rounds()
    topic.add_partitions(2)

    def produced() -> bool:
        topic.produce_rows(rows(8), partition=1)
        return True

    until(produced, "the new partition")
    until(lambda: (rounds.round(), rounds.records)[1], "its messages")
    assert rounds.records[:1] == rows(8)
    assert rounds.position.keys() == {"0", "1"}


def test_round_ends_at_its_bytes(topic: Topic, new_rounds: NewRounds) -> None:
    topic.produce_rows({"id": n, "text": "x" * 1_000} for n in range(100))
    rounds = new_rounds(topic)
    rounds.round(RoundLimits(bytes=10_000))
    assert 0 < len(rounds.records) < 20
    rounds.rounds(RoundLimits(bytes=10_000))
    assert [row["id"] for row in rounds.records] == list(range(100))


def test_topic_that_lost_what_was_not_read_is_reported(
    topic: Topic, new_rounds: NewRounds, bootstrap: str
) -> None:
    rounds = new_rounds(topic)
    rounds.position = {"0": 5}
    with pytest.raises(SourceFailed, match="made again, or has lost messages"):
        rounds.round()
    from confluent_kafka import TopicPartition  # noqa: PLC0415 - only here

    topic.produce_rows(rows(*range(10)))
    for done in topic.admin.delete_records([TopicPartition(topic.name, 0, 8)]).values():
        done.result(30)
    with pytest.raises(SourceFailed, match="offset 5 of partition 0"):
        rounds.round()
    fresh = new_rounds(topic)
    fresh.rounds()
    assert fresh.records == rows(8, 9)


def test_topic_that_is_missing_is_waited_for(topic: Topic, new_rounds: NewRounds) -> None:
    rounds = new_rounds(topic)
    rounds.place = type(rounds.place)(
        tenant_id="t", source_id="s", config=rounds.place.config | {"topic": "absent"}, environment=LOCAL
    )
    with pytest.raises(SourceUnavailable, match="no topic 'absent'"):
        rounds.round()


def test_poison_is_rejected_with_its_place(topic: Topic, new_rounds: NewRounds) -> None:
    topic.produce(b'{"id": 1}', b"\xff{", None, b'{"id": 2}')
    with pytest.raises(MalformedBody, match=r"message 1 of partition 0 of topic '.*': it is not JSON"):
        new_rounds(topic).round()
    rounds = new_rounds(topic, quarantine=True)
    rounds.rounds()
    assert (rounds.records, rounds.rejected) == (rows(1, 2), 2)


def test_tombstones_delete_or_are_ignored(topic: Topic, new_rounds: NewRounds) -> None:
    topic.produce_pairs([(b"1", b'{"v": "a"}'), (b"1", None)])
    changes = new_rounds(topic, key_format="json", key_field="id")
    plan = changes.round()
    assert plan is not None
    assert (plan.operation, plan.order) == (Operation.CHANGELOG, ChangeOrder.ORDERING_FIELD)
    assert changes.records == [{"op": "+A", "row": {"id": 1, "v": "a"}}, {"op": "-R", "row": {"id": 1}}]
    kept = new_rounds(topic, key_format="string", key_field="id", tombstones="ignore")
    plan = kept.round()
    assert plan is not None
    assert (plan.operation, plan.order) == (None, None)
    assert kept.records == [{"v": "a", "id": "1"}]


def test_avro_is_read_with_the_schema_of_each_message(
    topic: Topic, new_rounds: NewRounds, registry: Registry
) -> None:
    old = {"type": "record", "name": "r", "fields": [{"name": "id", "type": "int"}]}
    new = {
        "type": "record",
        "name": "r",
        "fields": [*old["fields"], {"name": "at", "type": {"type": "int", "logicalType": "date"}}],
    }  # type: ignore[misc]
    numbers = [registry.register_avro(f"{topic.name}-value", schema) for schema in (old, new)]
    values = [({"id": 1}, old), ({"id": 2, "at": 20_778}, new), ({"id": 3}, old)]
    for value, schema in values:
        number = numbers[0] if schema is old else numbers[1]
        topic.produce(b"\x00" + number.to_bytes(4, "big") + encoded(schema, value))
    topic.produce(b"\x00\x00\x00\x00\x63\x02")
    rounds = new_rounds(topic, format="avro", registry_url=registry.url, quarantine=True)
    rounds.rounds()
    assert rounds.records == [{"id": 1}, {"id": 2, "at": "2026-11-21"}, {"id": 3}]
    assert rounds.rejected == 1
    again = new_rounds(topic, format="avro", registry_url=registry.url, quarantine=True)
    again.rounds()
    # Schemas never change, so they are requested once; an id that is unknown may be known later.
    assert sorted(registry.requests) == [f"GET /schemas/ids/{number}" for number in (1, 2, 99, 99)]


def test_lag_counts_messages_and_the_age_of_the_oldest(topic: Topic, new_rounds: NewRounds) -> None:
    rounds = new_rounds(topic)
    assert rounds.kind.lag(rounds.place, {}, NoLedger()).rows == 0
    topic.produce(b'{"id": 1}', timestamp=int((time.time() - 500) * 1_000))
    topic.produce(b'{"id": 2}')
    lag = rounds.kind.lag(rounds.place, {}, NoLedger())
    assert lag.rows == 2
    assert lag.seconds is not None
    assert 500 <= lag.seconds < 800
    lag = rounds.kind.lag(rounds.place, {"0": 2}, NoLedger())
    assert (lag.rows, lag.seconds) == (0, 0.0)


def test_offsets_of_the_group_follow_the_commits(topic: Topic, new_rounds: NewRounds) -> None:
    from app.infra.kafka.connection import Brokers, Cluster, servers_of  # noqa: PLC0415
    from app.infra.kafka.offsets import TopicOffsets  # noqa: PLC0415
    from app.infra.outbound.addresses import Rules  # noqa: PLC0415

    topic.produce_rows(rows(1, 2, 3))
    for config, group in (
        ({}, "headwater-s"),
        ({"group": f"monitored-{topic.name}"}, f"monitored-{topic.name}"),
    ):
        rounds = new_rounds(topic, **config)
        rounds.rounds()
        rounds.kind.committed(rounds.place, rounds.position)
        brokers = Brokers.of(
            Cluster(servers=servers_of(topic.bootstrap)), Rules.of(("127.0.0.0/8",), http=True)
        )
        assert TopicOffsets(brokers, topic.name).committed(group) == {0: 3}


def test_addresses_that_are_not_allowed_are_refused(topic: Topic, new_rounds: NewRounds) -> None:
    outside = SourceEnvironment(allow=("10.0.0.0/8",), plain_http=True)
    with pytest.raises(SourceFailed, match="is a private address"):
        new_rounds(topic, environment=outside).round()


@pytest.mark.parametrize(
    ("config", "pointer"),
    [
        ({"bootstrap_servers": "10.0.0.1:9092"}, "/config/bootstrap_servers"),
        ({"bootstrap_servers": "127.0.0.1:22"}, "/config/bootstrap_servers"),
        ({"registry_url": "http://10.0.0.1:8081"}, "/config/registry_url"),
    ],
)
def test_addresses_that_are_not_admitted_are_refused_at_registration(
    config: dict[str, Any], pointer: str
) -> None:
    complete = Kafka().checked({"bootstrap_servers": "127.0.0.1:9092", "topic": "t"} | config, LOCAL)
    with pytest.raises(InvalidSource) as caught:
        Kafka().check_addresses(complete, LOCAL)
    assert [error["pointer"] for error in caught.value.facts["errors"]] == [pointer]


def test_broker_that_is_named_by_another_is_checked(topic: Topic, new_rounds: NewRounds) -> None:
    """The server of the config is allowed, but the address that it gives for itself is not."""
    port = topic.bootstrap.rsplit(":", 1)[1]
    by_name = SourceEnvironment(allow=("localhost",), plain_http=True)
    rounds = new_rounds(topic, environment=by_name)
    rounds.place = type(rounds.place)(
        tenant_id="t",
        source_id="s",
        config=rounds.place.config | {"bootstrap_servers": f"localhost:{port}"},
        environment=by_name,
    )
    with pytest.raises(SourceFailed, match=r"127\.0\.0\.1 could not be looked up, or is a private address"):
        rounds.round()


CONFIGS: list[tuple[dict[str, Any], str]] = [
    ({"topic": "a b"}, "/config/topic"),
    ({"bootstrap_servers": "a b"}, "/config/bootstrap_servers"),
    ({"bootstrap_servers": ",".join(f"h{n}" for n in range(30))}, "/config/bootstrap_servers"),
    ({"format": "xml"}, "/config/format"),
    ({"fromat": "json"}, "/config/fromat"),
    ({"format": "avro"}, "/config/registry_url"),
    ({"format": "avro", "registry_url": "ftp://x"}, "/config/registry_url"),
    ({"start": "middle"}, "/config/start"),
    ({"start": {"offsets": {"x": 1}}}, "/config/start/offsets/x"),
    ({"start": {}}, "/config/start"),
    ({"start": {"time": "2026-11-21T10:00:00"}}, "/config/start/time"),
    ({"security_protocol": "sasl_ssl"}, "/config/username"),
    ({"tombstones": "delete"}, "/config/key_format"),
    ({"envelope": "debezium", "key_format": "json"}, "/config/key_format"),
    ({"envelope": "debezium", "format": "string"}, "/config/envelope"),
    ({"envelope": "changes", "format": "string"}, "/config/envelope"),
    ({"envelope": "changes", "key_format": "json"}, "/config/key_format"),
    ({"include": {"offset": "x", "topic": "x"}}, "/config/include"),
]


@pytest.mark.parametrize(("config", "pointer"), CONFIGS, ids=lambda each: str(each)[:50])
def test_config_with_a_fault_is_rejected_with_a_pointer(config: dict[str, Any], pointer: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        Kafka().checked({"bootstrap_servers": "kafka:9092", "topic": "t"} | config, LOCAL)
    assert pointer in [error["pointer"] for error in caught.value.facts["errors"]]


def test_encryption_is_required_unless_the_operator_allows_plain_connections() -> None:
    config = {"bootstrap_servers": "kafka.example", "topic": "t"}
    with pytest.raises(InvalidRequest, match="ssl"):
        Kafka().checked(config, SourceEnvironment())
    assert (
        Kafka().checked(config | {"security_protocol": "ssl"}, SourceEnvironment())["security_protocol"]
        == "ssl"
    )


def test_config_is_completed_and_reads_back() -> None:
    start = {"time": datetime(2026, 11, 21, tzinfo=UTC).isoformat()}
    config = Kafka().checked(
        {"bootstrap_servers": "A.example,b:1", "topic": "t", "start": start, "key_format": "json"}, LOCAL
    )
    assert config["tombstones"] == "delete"
    assert Kafka().checked(json.loads(json.dumps(config)), LOCAL) == config
