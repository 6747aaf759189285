"""Delta Lake with deletion vectors and its change data feed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import ClassVar

from pyspark.sql import functions as fn

from bench.peers.spark.session import COLUMNS, SparkLake


class Delta(SparkLake):
    """Deletion vectors keep upserts from rewriting files; optimized writes keep files few."""

    name = "Delta"
    package = "io.delta:delta-spark_4.1_2.13:4.4.0"
    schema = "default"
    settings: ClassVar[Mapping[str, str]] = {
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.databricks.delta.snapshotPartitions": "2",
    }

    def create(self) -> None:
        """Another table."""
        self.tables += 1
        self.spark.sql(
            f"CREATE TABLE {self.name_of_table} ({COLUMNS}) USING delta TBLPROPERTIES ("
            "'delta.enableDeletionVectors' = 'true', 'delta.enableChangeDataFeed' = 'true', "
            "'delta.autoOptimize.optimizeWrite' = 'true')"
        )

    def insert(self, source: str) -> Mapping[str, float]:
        """An append: Delta has no keys, so none are looked up."""
        self.source(source).write.format("delta").mode("append").saveAsTable(self.name_of_table)
        return {}

    bulk_insert = insert

    def upsert(self, source: str) -> Mapping[str, float]:
        """A merge by key."""
        return self.merge(source)

    def changes(self) -> Mapping[str, Callable[[], int]]:
        """The change data feed of the last version."""
        history = self.spark.sql(f"DESCRIBE HISTORY {self.name_of_table} LIMIT 1")
        version = history.select(fn.max("version")).collect()[0][0]
        feed = self.spark.read.option("readChangeFeed", "true").option("startingVersion", version)
        return self.feed(feed.table(self.name_of_table))
