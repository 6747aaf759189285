"""A Spark session in this process, and what the table formats on it have in common."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import ClassVar, Final

import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import pyspark
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as fn

COLUMNS: Final = (
    "uuid STRING NOT NULL, ts BIGINT NOT NULL, rider STRING, driver STRING, begin_lat DOUBLE, begin_lon DOUBLE, "
    "end_lat DOUBLE, end_lon DOUBLE, fare DOUBLE, city STRING"
)
BUCKETS: Final = 4
_MEMORY: Final = "6g"


class SparkLake:
    """A table format on Spark, with as many tasks at a time as the machine has cores."""

    name: ClassVar[str]
    package: ClassVar[str]
    settings: ClassVar[Mapping[str, str]]
    schema: ClassVar[str]
    """The catalogue and the schema of its tables."""

    def __init__(self, folder: Path) -> None:
        self.version = f"{self.package} on Spark {pyspark.__version__}"
        self.folder = folder
        self.tables = 0
        builder = (
            SparkSession.builder.master("local[*]")
            .appName("headwater bench")
            .config("spark.driver.memory", _MEMORY)
            .config("spark.ui.enabled", "false")
            .config("spark.driver.bindAddress", "127.0.0.1")
            .config("spark.driver.host", "127.0.0.1")
            .config("spark.sql.shuffle.partitions", str(BUCKETS))
            .config("spark.sql.warehouse.dir", str(folder / "warehouse"))
            .config("spark.jars.packages", self.package)
            .config("spark.jars.ivySettings", str(Path(__file__).parent / "ivysettings.xml"))
            .config("spark.ui.showConsoleProgress", "false")
        )
        for name, value in self.settings.items():
            builder = builder.config(name, value.format(folder=folder))
        self.spark = builder.getOrCreate()
        self.spark.sparkContext.setLogLevel("ERROR")
        self.works = self.holds = psutil.Process()

    @property
    def readers(self) -> Sequence[psutil.Process]:
        """The virtual machine."""
        return self.works.children(recursive=True)

    @property
    def name_of_table(self) -> str:
        """The last table that was made."""
        return f"{self.schema}.trips_{self.tables}"

    @property
    def folder_of_table(self) -> Path:
        """Where the files of the table are."""
        [found] = self.folder.rglob(f"trips_{self.tables}")
        return found

    def stage(self, file: Path) -> str:
        """Spark reads the file where it is."""
        return str(file)

    def source(self, source: str) -> DataFrame:
        """The rows of a file."""
        return self.spark.read.parquet(source)

    def rows(self) -> Iterator[pa.Table]:
        """The table, through Parquet files of its rows."""
        with TemporaryDirectory(dir=self.folder) as folder:
            self.table().write.parquet(f"{folder}/rows")
            for file in sorted(Path(folder, "rows").glob("*.parquet")):
                yield pq.read_table(file)

    def read(self, where: str | None) -> int:
        """All columns of the rows are computed."""
        found = self.table()
        return self.computed(found.where(where) if where else found)

    def table(self) -> DataFrame:
        """The table as it is now."""
        return self.spark.table(self.name_of_table)

    def computed(self, rows: DataFrame, count: Column | None = None) -> int:
        """Computes all columns of the rows, for a hash of them. Returns how many they are, or the sum of `count`."""
        hashed = fn.bit_xor(fn.xxhash64(*(fn.col(f"`{name}`") for name in rows.columns)))
        counted = fn.sum(fn.lit(1) if count is None else count)
        found = rows.agg(counted.alias("rows"), hashed.alias("hash")).first()
        return int(found["rows"] or 0) if found else 0

    def feed(self, changes: DataFrame, count: Column | None = None) -> Mapping[str, Callable[[], int]]:
        """The changes as the one way to read them."""
        return {"changes": partial(self.computed, changes, count)}

    def merge(self, source: str) -> Mapping[str, float]:
        """A merge by key."""
        self.source(source).createOrReplaceTempView("source")
        self.spark.sql(
            f"MERGE INTO {self.name_of_table} t USING source s ON t.uuid = s.uuid "
            "WHEN MATCHED AND s.ts >= t.ts THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
        )
        return {}

    def delete(self, where: str) -> Mapping[str, float]:
        """A delete by condition."""
        self.spark.sql(f"DELETE FROM {self.name_of_table} WHERE {where}")
        return {}

    def files(self) -> dict[Path, int]:
        """All files of the table."""
        folder = self.folder_of_table
        paths = folder.rglob("*")
        return {path.relative_to(folder): path.stat().st_size for path in paths if path.is_file()}
