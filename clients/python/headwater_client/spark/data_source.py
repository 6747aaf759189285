"""What Spark instantiates by the format `headwater`."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)
from pyspark.sql.types import StructType

from headwater_client.spark.arrow_types import spark_schema
from headwater_client.spark.change_reader import ChangeReader, head
from headwater_client.spark.options import InvalidOption, ReadSettings, read_settings, write_settings
from headwater_client.spark.stream_reader import ChangeStreamReader
from headwater_client.spark.table_reader import FilteringTableReader, TableReader
from headwater_client.spark.writer import BatchWriter, StreamWriter


def register(spark: SparkSession) -> None:
    """Makes the format `headwater` known to a session."""
    spark.dataSource.register(HeadwaterDataSource)


class HeadwaterDataSource(DataSource):
    """Reads and writes datasets. The schema is that of the data frame's first use, and so are the rows: each action
    reads the same version.
    """

    _pinned: int | None = None
    """The version of a table, or the position in the feed, that the schema was of."""

    @classmethod
    def name(cls) -> str:
        """The format."""
        return "headwater"

    def schema(self) -> StructType:
        """The columns that the options select. Raises InvalidOption, Problem."""
        settings = read_settings(self.options)
        found, self._pinned = _described(settings)
        return spark_schema(found)

    def reader(self, schema: StructType) -> DataSourceReader:
        """A batch reader. Raises InvalidOption."""
        settings = read_settings(self.options)
        if settings.query == "changes":
            return ChangeReader(settings, schema, self._pinned)
        kind = FilteringTableReader if settings.push_filters else TableReader
        return kind(settings, schema, self._pinned)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - PySpark's name
        """A reader of the feed. Raises InvalidOption."""
        return ChangeStreamReader(_streamed(read_settings(self.options)), schema)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """A batch writer. Raises InvalidOption, Problem."""
        return BatchWriter(write_settings(self.options), schema, overwrite=overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802
        """A streaming writer. Raises InvalidOption, Problem."""
        return StreamWriter(write_settings(self.options), schema, overwrite=overwrite)


def _streamed(settings: ReadSettings) -> ReadSettings:
    if settings.query != "changes":
        raise InvalidOption("a stream reads changes: set option query to changes")
    return settings


def _described(settings: ReadSettings) -> tuple[pa.Schema, int | None]:
    """The columns of a read, and the version or the position in the feed that it is pinned to."""
    with settings.connect() as headwater:
        if settings.query == "changes":
            page = next(headwater.change_tables(settings.path, since="now", columns=settings.columns))
            return page.to_arrow().schema, head(headwater, settings.path)[0]
        # A condition that selects nothing: no file is read.
        chosen = {} if settings.query == "incremental" else settings.given("version", "as_of", "tag")
        rows = headwater.row_tables(
            settings.path,
            columns=settings.columns,
            where="FALSE",
            meta=settings.meta,
            corrected_since=settings.corrected_since,
            limit=1,
            **chosen,
        )
        empty = next(rows)
        return empty.to_arrow().schema, empty.version
