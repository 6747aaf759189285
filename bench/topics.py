"""Messages of a Kafka topic into a keyed dataset: rows per second, and the time from a message to the feed.

A topic with two partitions has one message for each trip, with the record key as its key. A source of mode `once`
reads all of them into an empty dataset, and another one the same trips with later times from another topic. The
broker's processor time is not counted. A bare consumer that only receives the messages shows what the client costs.

For the time to the feed, a source of mode `continuous` reads another topic, and one message at a time is sent while a
reader waits in a long poll.
"""

from __future__ import annotations

import io
import json
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import Any, Final

import fastavro
import httpx2
import msgspec
import numpy as np
import psutil
import pyarrow as pa
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from app.infra.runtime.loopback import LOOPBACK
from bench.latency import Follower
from bench.options import parser
from bench.processes import processor_seconds, tree
from bench.report import percentiles, publish
from bench.service import Service, running_service
from bench.table import Table
from bench.trips import SCHEMA, chunks, definition, trips
from tests.support.kafka.broker import running_broker
from tests.support.kafka.registry import Registry, running_registry

_PARTITIONS: Final = 2
_ROUND_ROWS: Final = 250_000
_WARM_UP: Final = 5
_SECONDS_MAX: Final = 600.0
FORMATS: Final = ("JSON", "JSON, transform", "Avro")
_AVRO: Final = {pa.string(): "string", pa.int64(): "long", pa.float64(): "double"}

Encode = Callable[[Mapping[str, Any]], bytes]


@dataclass(frozen=True, kw_only=True, slots=True)
class Topic:
    """A topic of its own. `config`, `members`: of the source that reads it."""

    bootstrap: str
    name: str
    config: Mapping[str, Any]
    encode: Encode
    members: Mapping[str, Any]

    @classmethod
    def create(
        cls,
        bootstrap: str,
        *,
        config: Mapping[str, Any],
        encode: Encode,
        members: Mapping[str, Any] = MappingProxyType({}),
    ) -> Topic:
        """A new, empty one."""
        name = f"trips-{uuid.uuid4().hex[:8]}"
        admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
        for made in admin.create_topics([NewTopic(name, num_partitions=_PARTITIONS)]).values():
            made.result(60)
        return cls(bootstrap=bootstrap, name=name, config=config, encode=encode, members=members)

    def send(self, rows: Iterator[pa.Table]) -> int:
        """Sends a message for each row. Returns their bytes once the broker has them."""
        producer = Producer({"bootstrap.servers": self.bootstrap, "linger.ms": 5, "log_level": 0})
        size = 0
        for table in rows:
            for row in table.to_pylist():
                value = self.encode(row)
                size += len(value)
                while True:
                    try:
                        producer.produce(self.name, value=value, key=row["uuid"])
                        break
                    except BufferError:
                        producer.poll(0.1)
        if producer.flush(60):
            raise SystemExit("the broker did not take the messages")
        return size

    def source(self, dataset: str, **members: Any) -> dict[str, Any]:
        """The registration of a source that reads it."""
        config = {"bootstrap_servers": self.bootstrap, "topic": self.name, **self.config}
        named = {"name": self.name, "dataset": dataset, "kind": "kafka", "config": config}
        return {**named, **self.members, **members}


def _transform() -> dict[str, Any]:
    """All columns, one of them computed."""
    fields = definition("source", buckets=None)["schema"]["fields"]
    columns = ", ".join(field["name"] for field in fields if field["name"] != "rider")
    return {
        "sql": f"SELECT {columns}, upper(rider) AS rider FROM source WHERE fare >= 0",
        "fields": [{"name": field["name"], "type": field["type"]} for field in fields],
    }


def _json(row: Mapping[str, Any]) -> bytes:
    return msgspec.json.encode(row)


@contextmanager
def formats(bootstrap: str) -> Iterator[dict[str, Callable[[], Topic]]]:
    """How to make a topic of each format."""
    schema = {
        "type": "record",
        "name": "trip",
        "fields": [{"name": field.name, "type": _AVRO[field.type]} for field in SCHEMA],
    }
    parsed = fastavro.parse_schema(schema)
    with running_registry() as registry:
        number = _registered(registry, schema)

        def avro(row: Mapping[str, Any]) -> bytes:
            message = io.BytesIO(b"\0" + number.to_bytes(4, "big"))
            message.seek(5)
            fastavro.schemaless_writer(message, parsed, row)
            return message.getvalue()

        yield {
            "JSON": lambda: Topic.create(bootstrap, config={"format": "json"}, encode=_json),
            "JSON, transform": lambda: Topic.create(
                bootstrap, config={"format": "json"}, encode=_json, members={"transform": _transform()}
            ),
            "Avro": lambda: Topic.create(
                bootstrap, config={"format": "avro", "registry_url": registry.url}, encode=avro
            ),
        }


def _registered(registry: Registry, schema: Mapping[str, Any]) -> int:
    return registry.register("trips-value", json.dumps(schema))


def received(topic: Topic, rows: int) -> float:
    """Processor seconds in which a consumer receives this number of messages, and does nothing with them."""
    consumer = Consumer(
        {"bootstrap.servers": topic.bootstrap, "group.id": uuid.uuid4().hex, "enable.auto.commit": False}
    )
    before = processor_seconds([psutil.Process()])
    consumer.assign([TopicPartition(topic.name, number, 0) for number in range(_PARTITIONS)])
    count = 0
    while count < rows:
        count += len(consumer.consume(10_000, 10))
    spent = processor_seconds([psutil.Process()]) - before
    consumer.close()
    return spent


def loaded(
    service: Service, client: httpx2.Client, form: str, make: Callable[[], Topic], rows: int
) -> Iterator[dict[str, Any]]:
    """A dataset that receives all rows of a topic, and then those of another one with the same keys."""
    dataset = Table.create(
        service, client, f"loaded_{uuid.uuid4().hex}", buckets=4, table_type="merge_on_read"
    )
    for at, work in enumerate(("new keys", "the same keys")):
        topic = make()
        size = topic.send(chunks(np.arange(rows), ts=at))
        before, began = processor_seconds(tree(service.supervisor)), time.perf_counter()
        registration = topic.source(dataset.id, mode="once", max_rows=_ROUND_ROWS, max_bytes=2**30)
        source = client.post("/sources", json=registration).raise_for_status().headers["location"]
        _wait(client, source, rows)
        seconds = time.perf_counter() - began
        spent = processor_seconds(tree(service.supervisor)) - before
        yield {
            "format": form,
            "work": work,
            "rows": rows,
            "MB": round(size / 1e6),
            "s": round(seconds, 1),
            "rows/s": round(rows / seconds),
            "cpu s": round(spent, 1),
            "rows/cpu s": round(rows / spent),
            "cpu s of a bare consumer": round(received(topic, rows), 2),
        }


def _wait(client: httpx2.Client, source: str, messages: int) -> None:
    """Waits until the source has written this number of messages."""
    deadline = time.monotonic() + _SECONDS_MAX
    while time.monotonic() < deadline:
        found = client.get(source).raise_for_status().json()
        if found["last_error"] is not None:
            raise SystemExit(f"the source failed: {found['last_error']}")
        if sum((found["position"] or {}).values()) >= messages:
            return
        time.sleep(0.05)
    raise SystemExit(f"the source did not read {messages} messages in {_SECONDS_MAX:g} s")


def followed(service: Service, client: httpx2.Client, make: Callable[[], Topic], runs: int) -> dict[str, Any]:
    """Seconds from a message to the feed, one message at a time."""
    topic = make()
    table = Table.create(service, client, topic.name, buckets=None, table_type="merge_on_read")
    members = {"mode": "continuous", "interval_seconds": 0.1}
    made = client.post("/sources", json=topic.source(table.id, **members)).raise_for_status()
    follower = Follower(service=service, dataset=table.id)
    thread = threading.Thread(target=follower.run, daemon=True)
    thread.start()
    taken = []
    for number in range(_WARM_UP + runs):
        follower.polling.wait()
        # At another time of the source's interval for each message.
        time.sleep(0.3 + number % 7 / 70)
        began = time.time()
        topic.send(iter([trips(np.array([number]), ts=number)]))
        taken.append(follower.wait_for(number + 1) - began)
    follower.stopped = True
    topic.send(iter([trips(np.array([_WARM_UP + runs]), ts=0)]))
    thread.join(30)
    client.delete(made.headers["location"])
    found = {f"{name} ms": value for name, value in percentiles(taken[_WARM_UP:]).items()}
    return {"format": "JSON", "messages": runs, **found}


def main() -> None:
    """Runs the measurement."""
    options = parser(__doc__)
    options.add_argument("--rows", type=int, default=1_000_000, help="messages of each format")
    options.add_argument("--runs", type=int, default=100, help="messages whose way to the feed is timed")
    options.add_argument("--formats", nargs="+", choices=FORMATS, default=FORMATS)
    chosen = options.parse_args()
    environment = {"HEADWATER_SOURCE_HTTP": "true", "HEADWATER_SOURCE_ALLOW": LOOPBACK}
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="headwater-bench-", dir=chosen.scratch)))
        broker = stack.enter_context(running_broker(folder / "kafka"))
        topics = stack.enter_context(formats(broker.bootstrap))
        with running_service(chosen.scratch, environment) as service, service.client() as client:
            figures = [
                each
                for form in chosen.formats
                for each in loaded(service, client, form, topics[form], chosen.rows)
            ]
            times = [followed(service, client, topics["JSON"], chosen.runs)]
    publish("topics", {"partitions": _PARTITIONS, "rows": chosen.rows}, figures)
    publish("topics-latency", {"interval_seconds": 0.1}, times)


if __name__ == "__main__":
    main()
