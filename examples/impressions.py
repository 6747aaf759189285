"""Impressions of advertisements, from a topic of Kafka in Avro to a table: once, and then for as long as they arrive.

    HEADWATER_URL=http://127.0.0.1:8080 HEADWATER_API_KEY=$(cat .headwater/operator.key) \\
        .venv/bin/python examples/impressions.py 127.0.0.1:9092 http://127.0.0.1:8081

The arguments are a broker and a schema registry. The example makes a topic, and its own impressions.
"""

import io
import itertools
import json
import random
import sys
import time

import fastavro
import httpx2
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from headwater_client import Headwater, NewSource, SourceTable

BROKER, REGISTRY = sys.argv[1:3]
NAME = f"impressions_{time.time_ns()}"
SCHEMA = {
    "type": "record",
    "name": "Impression",
    "fields": [
        {"name": "impression_id", "type": "string"},
        {"name": "user_id", "type": "string"},
        {"name": "ad_id", "type": "string"},
        {"name": "shown_at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
    ],
}
RANDOM = random.Random(5)  # noqa: S311 - made-up data


def register_schema() -> int:
    """The id of the schema in the registry."""
    answer = httpx2.post(
        f"{REGISTRY}/subjects/{NAME}-value/versions", json={"schema": json.dumps(SCHEMA)}, trust_env=False
    )
    number: int = answer.raise_for_status().json()["id"]
    return number


def impressions(count: int) -> list[dict[str, object]]:
    """Impressions of the last minutes. Some are reported again later, with another time."""
    now = round(time.time() * 1000)
    return [
        {
            "impression_id": f"impression_{RANDOM.randrange(1_000)}",
            "user_id": f"user_{RANDOM.randrange(5)}",
            "ad_id": f"ad_{RANDOM.randrange(20)}",
            "shown_at": now - RANDOM.randrange(600_000),
        }
        for _ in range(count)
    ]


def produce(rows: list[dict[str, object]], schema_id: int) -> None:
    """Sends them in Confluent's format: a zero byte, the id of the schema, and Avro."""
    producer = Producer({"bootstrap.servers": BROKER})
    for row in rows:
        content = io.BytesIO()
        fastavro.schemaless_writer(content, SCHEMA, row)
        head = b"\0" + schema_id.to_bytes(4, "big")
        producer.produce(NAME, key=str(row["impression_id"]), value=head + content.getvalue())
    producer.flush()


def source(mode: str, start: object) -> NewSource:
    """A source of the topic. Its first round registers the dataset with the fields of the schema."""
    return NewSource(
        name=f"{NAME}-{mode}",
        dataset=NAME,
        kind="kafka",
        mode=mode,
        interval_seconds=0.2,
        config={
            "bootstrap_servers": BROKER,
            "topic": NAME,
            "format": "avro",
            "registry_url": REGISTRY,
            "start": start,
        },
        # Of two reports of an impression the later one counts. Each user has a partition.
        create=SourceTable(
            record_key=("user_id", "impression_id"), ordering_field="shown_at", partition_by=("user_id",)
        ),
    )


admin = AdminClient({"bootstrap.servers": BROKER})
for made in admin.create_topics([NewTopic(NAME, 2, 1)]).values():
    made.result()
schema_id = register_schema()

with Headwater.from_environment() as headwater:
    first = impressions(2_000)
    produce(first, schema_id)
    once = headwater.create_source(source("once", "earliest"))
    while once.state == "active" and once.last_error is None:
        time.sleep(0.1)
        once = headwater.get_source(once)
    print(f"once: {once.state}, {sum(once.position.values())} messages, {once.rounds} rounds")
    rows = list(headwater.rows(NAME))
    print(f"table: {len(rows)} impressions of {len({row['user_id'] for row in rows})} users")
    expected = {(row["user_id"], row["impression_id"]) for row in first}
    print(f"complete: {len(rows) == len(expected)}")

    # From here on, each message is in the table and in the feed soon after it was produced.
    end = headwater.get_dataset(NAME).next_offset
    following = headwater.create_source(source("continuous", {"offsets": once.position}))
    began = time.monotonic()
    for number in range(3):
        sent = {**impressions(1)[0], "impression_id": f"live_{number}"}
        produce([sent], schema_id)
        began = time.monotonic()
        [change] = itertools.islice(headwater.changes(NAME, since=end, follow=True), 1)
        end = change.offset + 1
        print(f"live: {change.op} {change.row['impression_id']} after {time.monotonic() - began:.1f} s")
    headwater.delete_source(following)
    headwater.delete_source(once)
