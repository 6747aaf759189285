"""Iceberg, merge on read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import ClassVar

from bench.peers.spark.session import BUCKETS, COLUMNS, SparkLake


class Iceberg(SparkLake):
    """Format version 3, whose deletes are deletion vectors. It has no changes of merge-on-read tables."""

    name = "Iceberg"
    package = "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0"
    schema = "lake.db"
    settings: ClassVar[Mapping[str, str]] = {
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        "spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.lake.type": "hadoop",
        "spark.sql.catalog.lake.warehouse": "{folder}/iceberg",
    }

    def create(self) -> None:
        """Another table, in buckets by key."""
        self.tables += 1
        modes = ", ".join(f"'write.{kind}.mode' = 'merge-on-read'" for kind in ("merge", "update", "delete"))
        self.spark.sql(
            f"CREATE TABLE {self.name_of_table} ({COLUMNS}) USING iceberg PARTITIONED BY (bucket({BUCKETS}, uuid)) "
            f"TBLPROPERTIES ('format-version' = '3', {modes})"
        )

    def insert(self, source: str) -> Mapping[str, float]:
        """An append: Iceberg looks up no keys."""
        self.source(source).writeTo(self.name_of_table).append()
        return {}

    bulk_insert = insert

    def upsert(self, source: str) -> Mapping[str, float]:
        """A merge by key."""
        return self.merge(source)

    def changes(self) -> Mapping[str, Callable[[], int]]:
        """None: its changelog view refuses tables with delete files."""
        return {}
