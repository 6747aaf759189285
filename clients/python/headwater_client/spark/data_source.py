"""What Spark instantiates by the format `headwater`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

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

from headwater_client.client import Headwater
from headwater_client.spark.arrow_types import spark_schema
from headwater_client.spark.catalog_tables import (
    options_of_statement,
    require_columns,
    require_dataset,
    require_service,
    stored_options,
    with_options,
)
from headwater_client.spark.change_reader import ChangeReader, head
from headwater_client.spark.options import (
    InvalidOption,
    ReadSettings,
    WriteSettings,
    names_dataset,
    read_settings,
    table_settings,
    write_settings,
)
from headwater_client.spark.stream_reader import ChangeStreamReader
from headwater_client.spark.table_reader import FilteringTableReader, TableReader
from headwater_client.spark.writer import BatchWriter, StreamWriter


def register(spark: SparkSession, *, url: str | None = None, api_key: str | None = None) -> None:
    """Makes the format `headwater` known to a session. `url`, `api_key`: its defaults of these options."""
    given = {name: value for name, value in {"url": url, "api_key": api_key}.items() if value is not None}
    # Spark sends the class to Python processes: one that no module has is sent with its attributes.
    kind = type(HeadwaterDataSource.__name__, (HeadwaterDataSource,), {"_session": given})
    spark.dataSource.register(kind if given else HeadwaterDataSource)


class HeadwaterDataSource(DataSource):
    """Reads and writes datasets. The schema is that of the data frame's first use, and so are the rows: each action
    reads the same version.
    """

    _session: ClassVar[Mapping[str, str]] = {}
    """The options of `register`."""
    _pinned: int | None = None
    """The version of a table, or the position in the feed, that the schema was of."""

    @classmethod
    def name(cls) -> str:
        """The format."""
        return "headwater"

    def schema(self) -> StructType:
        """The columns that the options select, of CREATE TABLE with its options. Raises InvalidOption, Problem."""
        table = options_of_statement(self.options)
        if table is not None:
            return self._created(table)
        settings = read_settings({**self._session, **self.options})
        with settings.connect() as headwater:
            found, self._pinned = _described(headwater, settings)
        return spark_schema(found)

    def reader(self, schema: StructType) -> DataSourceReader:
        """A batch reader. Raises InvalidOption, Problem."""
        settings = self._read_settings(schema)
        if self._pinned is None:
            # The schema is not that of `schema`, but of a table, or of the user.
            with settings.connect() as headwater:
                found, self._pinned = _described(headwater, settings)
            require_columns(schema, spark_schema(found), settings.path)
        if settings.query == "changes":
            return ChangeReader(settings, schema, self._pinned)
        kind = FilteringTableReader if settings.push_filters else TableReader
        return kind(settings, schema, self._pinned)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - PySpark's name
        """A reader of the feed. Raises InvalidOption."""
        return ChangeStreamReader(_streamed(self._read_settings(schema)), schema)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """A batch writer. Raises InvalidOption, Problem."""
        return BatchWriter(self._write_settings(), schema, overwrite=overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802
        """A streaming writer. Raises InvalidOption, Problem."""
        return StreamWriter(self._write_settings(), schema, overwrite=overwrite)

    def _created(self, options: Mapping[str, str]) -> StructType:
        stored = dict(options)
        url = stored.pop("url", None)
        settings = table_settings({**self._session, **stored})
        require_service(settings, url)
        with settings.connect() as headwater:
            require_dataset(headwater, settings)
            found, _ = _described(headwater, settings)
        return with_options(spark_schema(found), options)

    def _read_settings(self, schema: StructType) -> ReadSettings:
        stored = {} if names_dataset(self.options) else stored_options(schema)
        url = stored.pop("url", None)
        settings = read_settings({**self._session, **stored, **self.options})
        require_service(settings, url)
        return settings

    def _write_settings(self) -> WriteSettings:
        return write_settings({**self._session, **self.options})


def _streamed(settings: ReadSettings) -> ReadSettings:
    if settings.query != "changes":
        raise InvalidOption("a stream reads changes: set option query to changes")
    return settings


def _described(headwater: Headwater, settings: ReadSettings) -> tuple[pa.Schema, int | None]:
    """The columns of a read, and the version or the position in the feed that it is pinned to."""
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
