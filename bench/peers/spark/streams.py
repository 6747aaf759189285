"""Messages of Kafka topics into a Delta table by Structured Streaming: `python -m bench.peers.spark.streams …`.

It writes a line of JSON for each topic that it has loaded, then the line `ready`, and then the time at which each
message of the last topic was seen in the change data feed of another table.
"""

from __future__ import annotations

import json
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from pyspark.sql import DataFrame
from pyspark.sql import functions as fn

from bench.options import parser
from bench.peers.spark.delta import Delta
from bench.peers.spark.session import COLUMNS
from bench.processes import processor_seconds, tree


class DeltaStream(Delta):
    """Batches of a stream are merged by key."""

    # The newest release of which Maven Central has all parts.
    package = f"{Delta.package},org.apache.spark:spark-sql-kafka-0-10_2.13:4.1.1"
    settings: ClassVar[Mapping[str, str]] = {
        **Delta.settings,
        # One batch follows the other at once.
        "spark.sql.streaming.noDataMicroBatches.enabled": "false",
    }

    def messages(self, bootstrap: str, topic: str, batch: int) -> DataFrame:
        """The trips of a topic's messages, at most `batch` of them in a batch."""
        values = (
            self.spark.readStream.format("kafka")
            .option("kafka.bootstrap.servers", bootstrap)
            .option("subscribe", topic)
            .option("startingOffsets", "earliest")
            .option("maxOffsetsPerTrigger", batch)
            .load()
        )
        trip = fn.from_json(fn.col("value").cast("string"), COLUMNS.replace(" NOT NULL", ""))
        return values.select(trip.alias("trip")).select("trip.*")

    def merge_batch(self, rows: DataFrame, _number: int) -> None:
        """A batch of the stream."""
        rows.createOrReplaceTempView("batch")
        rows.sparkSession.sql(
            f"MERGE INTO {self.name_of_table} t USING batch s ON t.uuid = s.uuid "
            "WHEN MATCHED AND s.ts >= t.ts THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
        )

    def load(self, bootstrap: str, topic: str, batch: int) -> None:
        """Reads what a topic has, and ends."""
        stream = self.messages(bootstrap, topic, batch).writeStream.foreachBatch(self.merge_batch)
        stream.option("checkpointLocation", str(self.folder / topic)).trigger(availableNow=True).start()
        for query in self.spark.streams.active:
            query.awaitTermination()

    def follow(self, bootstrap: str, topic: str, messages: int) -> None:
        """Merges the messages of a topic as they arrive, and prints when its feed has had each."""
        seen: list[float] = []
        full = threading.Event()

        def note(rows: DataFrame, _number: int) -> None:
            count = rows.where("_change_type <> 'update_preimage'").count()
            seen.extend([time.time()] * count)
            if len(seen) >= messages:
                full.set()

        merging = self.messages(bootstrap, topic, 10_000).writeStream.foreachBatch(self.merge_batch)
        merging.option("checkpointLocation", str(self.folder / "merging")).trigger(
            processingTime="100 milliseconds"
        ).start()
        feed = self.spark.readStream.option("readChangeFeed", "true").table(self.name_of_table)
        reading = feed.writeStream.foreachBatch(note)
        reading.option("checkpointLocation", str(self.folder / "reading")).trigger(
            processingTime="100 milliseconds"
        ).start()
        _say("ready")
        full.wait(600)
        _say({"seen": seen})
        for query in self.spark.streams.active:
            query.stop()


def _say(value: Any) -> None:
    sys.stdout.write(f"{value if isinstance(value, str) else json.dumps(value)}\n")
    sys.stdout.flush()


def main() -> None:
    """Runs the measurement."""
    options = parser(__doc__)
    options.add_argument("bootstrap")
    options.add_argument("topics", nargs="+", help="topics to load one after another, and one to follow")
    options.add_argument("--batch", type=int, required=True, help="the most messages of a batch")
    options.add_argument("--messages", type=int, required=True, help="messages that will be followed")
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory(prefix="headwater-bench-peer-", dir=chosen.scratch) as folder:
        lake = DeltaStream(Path(folder))
        # The virtual machine has compiled what it needs by then.
        lake.create()
        lake.load(chosen.bootstrap, chosen.topics[0], chosen.batch)
        lake.create()
        for topic in chosen.topics[1:-1]:
            before, began = processor_seconds(tree(lake.works)), time.perf_counter()
            lake.load(chosen.bootstrap, topic, chosen.batch)
            seconds = time.perf_counter() - began
            _say({"topic": topic, "s": seconds, "cpu s": processor_seconds(tree(lake.works)) - before})
        lake.create()
        lake.follow(chosen.bootstrap, chosen.topics[-1], chosen.messages)
        lake.spark.stop()


if __name__ == "__main__":
    main()
