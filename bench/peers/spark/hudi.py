"""Hudi with a bucket index and change data capture."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import ClassVar

from pyspark.sql import DataFrame
from pyspark.sql import functions as fn

from bench.peers.spark.session import BUCKETS, SparkLake


class Hudi(SparkLake):
    """One table type. The bucket index finds the file of a key without reading files."""

    package = "org.apache.hudi:hudi-spark3.5-bundle_2.12:1.2.0"
    schema = "default"
    settings: ClassVar[Mapping[str, str]] = {
        "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
        "spark.kryo.registrator": "org.apache.spark.HoodieSparkKryoRegistrar",
        "spark.sql.extensions": "org.apache.spark.sql.hudi.HoodieSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.hudi.catalog.HoodieCatalog",
    }
    table_type: ClassVar[str]

    def create(self) -> None:
        """The next write makes another table."""
        self.tables += 1
        (self.folder / f"trips_{self.tables}").mkdir()
        self._began = "000"

    def _write(self, rows: DataFrame, operation: str) -> Mapping[str, float]:
        folder = self.folder_of_table
        new = not (folder / ".hoodie").exists()
        if not new:
            self._began = self._instant()
        options = {
            "hoodie.table.name": "trips",
            "hoodie.datasource.write.table.type": self.table_type,
            "hoodie.datasource.write.operation": operation,
            "hoodie.datasource.write.recordkey.field": "uuid",
            "hoodie.datasource.write.precombine.field": "ts",
            "hoodie.datasource.write.partitionpath.field": "",
            "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.NonpartitionedKeyGenerator",
            "hoodie.index.type": "BUCKET",
            "hoodie.bucket.index.num.buckets": str(BUCKETS),
            "hoodie.bucket.index.hash.field": "uuid",
            "hoodie.table.cdc.enabled": "true",
            "hoodie.table.cdc.supplemental.logging.mode": "data_before_after",
            "hoodie.upsert.shuffle.parallelism": str(BUCKETS),
            "hoodie.bulkinsert.shuffle.parallelism": str(BUCKETS),
        }
        rows.write.format("hudi").options(**options).mode("append").save(str(folder))
        return {}

    def insert(self, source: str) -> Mapping[str, float]:
        """An insert."""
        return self._write(self.source(source), "insert")

    def bulk_insert(self, source: str) -> Mapping[str, float]:
        """A bulk insert."""
        return self._write(self.source(source), "bulk_insert")

    def upsert(self, source: str) -> Mapping[str, float]:
        """An upsert."""
        return self._write(self.source(source), "upsert")

    def delete(self, where: str) -> Mapping[str, float]:
        """A delete of the rows that a condition selects."""
        return self._write(self.table().where(where).select("uuid", "ts"), "delete")

    def table(self) -> DataFrame:
        """Without the columns that Hudi adds."""
        found = self.spark.read.format("hudi").load(str(self.folder_of_table))
        return found.drop(*(name for name in found.columns if name.startswith("_hoodie")))

    def _instant(self) -> str:
        timeline = self.folder_of_table / ".hoodie" / "timeline"
        return max(path.name.partition(".")[0].partition("_")[2] for path in timeline.glob("*_*commit"))

    def changes(self) -> Mapping[str, Callable[[], int]]:
        """Change data capture since the last write began: one row of an update, which has both rows, is two changes."""
        reader = self.spark.read.format("hudi").option("hoodie.datasource.query.type", "incremental")
        reader = reader.option("hoodie.datasource.query.incremental.format", "cdc")
        feed = reader.option("hoodie.datasource.read.begin.instanttime", self._began)
        both = fn.when(fn.col("op") == "u", 2).otherwise(1)
        return self.feed(feed.load(str(self.folder_of_table)), both)


class HudiCopyOnWrite(Hudi):
    """Upserts rewrite files."""

    name = "Hudi CoW"
    table_type = "COPY_ON_WRITE"


class HudiMergeOnRead(Hudi):
    """Upserts append logs."""

    name = "Hudi MoR"
    table_type = "MERGE_ON_READ"
