"""A topic is read by real workers while they are killed: each message is one row, and none is missing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import pytest

from app.infra.kafka.connection import Brokers, Cluster, servers_of
from app.infra.kafka.offsets import TopicOffsets
from app.infra.outbound.addresses import Rules
from tests.support.deployment import WORKERS, Deployment
from tests.support.kafka.topics import Topic
from tests.support.left_out import left_out
from tests.support.table import Table
from tests.support.waiting import until

pytestmark = pytest.mark.stack
LONG = left_out("FLOWS", "test-flows")

PARTITIONS = 3
BATCH = 400


@pytest.fixture
def table(new_table: Callable[..., Table]) -> Table:
    """Without a key, so that a message that is read twice is two rows."""
    return new_table(record_key=[])


@pytest.fixture
def source(table: Table, new_topic: Callable[..., Topic]) -> Iterator[tuple[str, Topic]]:
    """A source of a topic, whose rounds are small."""
    topic = new_topic(partitions=PARTITIONS)
    members = {
        "name": f"source-{topic.name}",
        "dataset": table.id,
        "kind": "kafka",
        "mode": "continuous",
        "interval_seconds": 0.2,
        "max_rows": BATCH // 2,
        "config": {"bootstrap_servers": topic.bootstrap, "topic": topic.name},
    }
    answer = table.client.post("/sources", json=members)
    assert answer.status_code == 201, answer.text
    path = answer.headers["location"]
    yield path, topic
    table.client.delete(path)


def produce(topic: Topic, first: int) -> None:
    """The next messages, spread over the partitions."""
    for partition in range(PARTITIONS):
        topic.produce_rows(
            ({"id": number, "note": "n"} for number in range(first + partition, first + BATCH, PARTITIONS)),
            partition=partition,
        )


@LONG
def test_each_message_is_one_row_while_workers_are_killed(
    deployment: Deployment, table: Table, source: tuple[str, Topic]
) -> None:
    path, topic = source
    random = Random(14)
    produce(topic, 0)
    # Between the files of a round and its commit.
    with deployment.gates.at_head(table.id) as gate:
        worker = deployment.arrival(gate)[1]
        produce(topic, BATCH)
        deployment.processes[worker].kill()
        deployment.processes[worker].start(wait=False)
    # Anywhere: rounds follow each other.
    produce(topic, 2 * BATCH)
    until(lambda: table.version >= 2, "two rounds", seconds_max=90)
    worker = random.choice(WORKERS)
    deployment.processes[worker].kill()
    deployment.processes[worker].start(wait=False)
    total = 3 * BATCH

    def found() -> dict[str, Any]:
        answer: dict[str, Any] = table.client.get(path).json()
        return answer

    until(lambda: sum(found()["position"].values()) == total, "the end of the topic", seconds_max=120)
    assert sorted(row["id"] for row in table.sound()) == list(range(total))
    until(lambda: (found()["lag"] or {}).get("rows") == 0, "no lag", seconds_max=60)
    assert found()["last_error"] is None
    brokers = Brokers.of(Cluster(servers=servers_of(topic.bootstrap)), Rules.of(("127.0.0.0/8",), http=True))
    offsets = TopicOffsets(brokers, topic.name)
    position = {int(partition): offset for partition, offset in found()["position"].items()}
    group = f"headwater-{found()['id']}"
    until(lambda: offsets.committed(group) == position, "the offsets of the group", seconds_max=60)
