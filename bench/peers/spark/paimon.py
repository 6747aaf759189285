"""Paimon with a primary key and a changelog that lookups produce.

The release is the newest whose jar for Spark 3.5 resolved from Maven Central on 2026-11-25. 1.0.1, 1.2.0, 1.3.1 and
1.3.2 did not without a Scala suffix, nor 1.1.1, 1.2.0, 1.3.1, 1.4.1 and 1.4.2 with `_2.12`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from bench.peers.spark.session import BUCKETS, COLUMNS, SparkLake


class Paimon(SparkLake):
    """A fixed number of buckets; a sequence field decides between rows of a key."""

    name = "Paimon"
    package = "org.apache.paimon:paimon-spark-3.5:0.9.0"
    schema = "lake.db"
    settings: ClassVar[Mapping[str, str]] = {
        "spark.sql.extensions": "org.apache.paimon.spark.extensions.PaimonSparkSessionExtensions",
        "spark.sql.catalog.lake": "org.apache.paimon.spark.SparkCatalog",
        "spark.sql.catalog.lake.warehouse": "{folder}/paimon",
    }

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.spark.sql("CREATE DATABASE IF NOT EXISTS lake.db")
        self._before = 0

    def create(self) -> None:
        """Another table."""
        self.tables += 1
        self._before = 0
        self.spark.sql(
            f"CREATE TABLE {self.name_of_table} ({COLUMNS}) TBLPROPERTIES ('primary-key' = 'uuid', "
            f"'bucket' = '{BUCKETS}', 'sequence.field' = 'ts', 'changelog-producer' = 'lookup', "
            "'file.format' = 'parquet')"
        )

    def insert(self, source: str) -> Mapping[str, float]:
        """An insert, which is an upsert."""
        return self.upsert(source)

    bulk_insert = insert

    def upsert(self, source: str) -> Mapping[str, float]:
        """An insert: rows of known keys replace those that are there."""
        self._before = self._snapshot()
        self.source(source).writeTo(self.name_of_table).append()
        return {}

    def delete(self, where: str) -> Mapping[str, float]:
        """A delete by condition."""
        self._before = self._snapshot()
        return super().delete(where)

    def _snapshot(self) -> int:
        found = self.spark.sql(f"SELECT max(snapshot_id) FROM {self.schema}.`trips_{self.tables}$snapshots`")
        return int(found.collect()[0][0] or 0)

    def changes(self) -> Mapping[str, Callable[[], int]]:
        """The changelog of the snapshots since the last write began."""
        until = self._snapshot()
        feed = self.spark.read.option("incremental-between", f"{self._before},{until}")
        feed = feed.option("incremental-between-scan-mode", "changelog")
        return self.feed(feed.table(f"{self.schema}.`trips_{self.tables}$audit_log`"))
