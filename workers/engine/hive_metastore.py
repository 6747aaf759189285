"""A Hive metastore, accessed through the client in the JVM of Spark."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence, Set
from contextlib import contextmanager
from datetime import datetime
from typing import Any, Final

from py4j.protocol import Py4JError, Py4JJavaError

from app.features.metastore.report import FileFigures, HivePartition, HiveReport, HiveTable, MetastoreRefused
from app.kernel.format.definition.hive_table import HiveColumn, values_in_name

_VERSION: Final = "headwater.version"
_OWNER: Final = ("headwater.tenant_id", "headwater.dataset_id")
# The data files of all versions are in one folder, with deletion vectors and logs beside them. A reader of the folder
# as plain Parquet would return deleted rows. The name of this format makes such engines fail and gives the reason.
_FORMAT: Final = "headwater.ReadThroughTheHeadwaterApi"
_SERDE: Final = "org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe"
_TIMEOUT_SECONDS: Final = 20
_PARTITIONS_AT_ONCE: Final = 100
_ALL: Final = -1


class HiveMetastore:
    """The metastore at a `thrift://host:port`. `jvm` returns the JVM, which starts with the engine."""

    def __init__(self, uri: str, storage_uri: str, jvm: Callable[[], Any]) -> None:
        self._uri = uri
        self._storage_uri = storage_uri.rstrip("/")
        self._jvm = jvm

    def reported(self, table: HiveTable) -> int | None:
        """The version of the dataset that was reported last; None if there is no table yet.

        Raises MetastoreRefused, also for a table of another owner.
        """
        with self._client(table) as client:
            hive_table = client.table()
            return None if hive_table is None else int(hive_table.getParameters().get(_VERSION) or 0)

    def report(self, report: HiveReport, *, seconds_max: float) -> int | None:
        """Updates the table, then its partitions one by one, and records the version last.

        A repeated report changes nothing. Returns the number of partitions that were processed within the time: if that
        is not all, the version is not recorded. None if the table had to be created again, so that partitions of
        earlier reports are missing. Raises MetastoreRefused.
        """
        deadline = time.monotonic() + seconds_max
        with self._client(report.table) as client:
            # The partitions of a dropped table are lost with it.
            if client.make_table(report) and (report.retained is None or report.retained):
                return None
            for start in range(0, len(report.partitions), _PARTITIONS_AT_ONCE):
                if start and time.monotonic() > deadline:
                    return start
                client.sync_partitions(report.partitions[start : start + _PARTITIONS_AT_ONCE])
            if report.retained is not None and report.table.columns.partition_by:
                client.drop_others({*report.retained, *(each.values for each in report.partitions)})
            # Last, because it states that the report is complete.
            client.note_version(report)
        return len(report.partitions)

    @contextmanager
    def _client(self, table: HiveTable) -> Iterator[_Client]:
        try:
            jvm = self._jvm()
            hive = jvm.org.apache.hadoop.hive
            settings = hive.conf.HiveConf()
            settings.set("hive.metastore.uris", self._uri)
            settings.set("hive.metastore.client.socket.timeout", f"{_TIMEOUT_SECONDS}s")
            settings.set("hive.metastore.connect.retries", "1")
            settings.set("hive.metastore.failure.retries", "0")
            settings.set("hive.metastore.client.connect.retry.delay", "1s")
            client = hive.metastore.HiveMetaStoreClient(settings)
            try:
                yield _Client(jvm, client, table, f"{self._storage_uri}/{table.folder}")
            finally:
                client.close()
        except Py4JJavaError as error:
            raise MetastoreRefused(_reason(error.java_exception)) from error
        except Py4JError as error:
            raise MetastoreRefused(str(error)) from error


class _Client:
    """A connection for one table. `location`: the URI of its folder."""

    def __init__(self, jvm: Any, client: Any, table: HiveTable, location: str) -> None:
        self._jvm = jvm
        self._api = jvm.org.apache.hadoop.hive.metastore.api
        self._client = client
        self._table = table
        self._place = table.database, table.table
        self._location = location

    def table(self) -> Any | None:
        """The table in the metastore. Raises MetastoreRefused for a table of another owner."""
        try:
            hive_table = self._client.getTable(*self._place)
        except Py4JJavaError as error:
            if _name(error.java_exception) == "NoSuchObjectException":
                return None
            raise
        parameters = hive_table.getParameters()
        owner = tuple(parameters.get(name) for name in _OWNER)
        if owner != (self._table.tenant_id, self._table.dataset_id):
            raise MetastoreRefused(
                "a table of this name exists that does not belong to this dataset; use another name"
            )
        return hive_table

    def make_table(self, report: HiveReport) -> bool:
        """Creates or updates the table and its columns. Returns whether it has no partitions now."""
        old_table = self.table()
        new_columns = self._columns(self._table.columns.columns)
        if old_table is not None:
            columns = old_table.getSd().getCols()
            if columns.equals(new_columns):
                return False
            # The metastore accepts new columns at the end; it takes any other change for a change of types, by
            # position.
            if columns.size() <= new_columns.size() and new_columns.subList(0, columns.size()).equals(
                columns
            ):
                old_table.getSd().setCols(new_columns)
                self._alter(old_table, cascade=True)
                return False
            # The table does not own its files, so they stay.
            self._client.dropTable(*self._place, False, True)
        table = self._api.Table()
        table.setDbName(self._table.database)
        table.setTableName(self._table.table)
        table.setOwner("headwater")
        table.setTableType("EXTERNAL_TABLE")
        table.setSd(self._storage(self._location))
        table.setPartitionKeys(self._columns(self._table.columns.partition_by))
        owner = dict(zip(_OWNER, (self._table.tenant_id, self._table.dataset_id), strict=True))
        table.setParameters(
            self._map({"EXTERNAL": "TRUE", _VERSION: "0", **owner, **_figures(report.figures)})
        )
        self._client.createTable(table)
        return True

    def sync_partitions(self, partitions: Sequence[HivePartition]) -> None:
        """Adds, alters and drops partitions."""
        warehouse = self._jvm.org.apache.hadoop.hive.metastore.Warehouse
        keys = self._columns(self._table.columns.partition_by)
        names = [warehouse.makePartName(keys, self._list(each.values)) for each in partitions]
        partitions_by_values = {}
        for there in self._client.getPartitionsByNames(*self._place, self._list(names)):
            # Each call of the JVM has a cost, so values are passed as one text.
            partitions_by_values[str(self._jvm.java.lang.String.join("\0", there.getValues()))] = there
        additions, alterations = self._jvm.java.util.ArrayList(), self._jvm.java.util.ArrayList()
        for partition in partitions:
            there = partitions_by_values.get("\0".join(partition.values))
            if partition.figures is None:
                if there is not None:
                    self._client.dropPartition(*self._place, there.getValues(), False)
            elif there is None:
                additions.add(self._partition(partition, partition.figures))
            elif not _has_statistics(there.getParameters().toString(), partition.figures):
                there.getParameters().putAll(self._map(_figures(partition.figures)))
                alterations.add(there)
        if additions.size():
            self._client.add_partitions(additions)
        if alterations.size():
            self._client.alter_partitions(*self._place, alterations, self._context(cascade=False))

    def drop_others(self, live_values: Set[tuple[str, ...]]) -> None:
        """Drops the partitions with other values."""
        names = self._client.listPartitionNames(*self._place, _ALL)
        for name in str(self._jvm.java.lang.String.join("\n", names)).split("\n"):
            if name and values_in_name(name) not in live_values:
                self._client.dropPartition(*self._place, name, False)

    def note_version(self, report: HiveReport) -> None:
        """Records the version of the report."""
        table = self.table()
        if table is None:
            raise MetastoreRefused("the table was dropped while it was reported")
        parameters = {
            _VERSION: str(report.version),
            "headwater.dataset": self._table.dataset,
            "headwater.schema_id": str(self._table.schema_id),
            **_times(report.committed_at),
            **_figures(report.figures),
        }
        table.getParameters().putAll(self._map(parameters))
        self._alter(table, cascade=False)

    def _alter(self, table: Any, *, cascade: bool) -> None:
        self._client.alter_table_with_environmentContext(*self._place, table, self._context(cascade=cascade))

    def _context(self, *, cascade: bool) -> Any:
        """The context of a call: the statistics are specified, not computed from folders. `cascade`: also change
        partitions.
        """
        parameters = {"DO_NOT_UPDATE_STATS": "true", **({"CASCADE": "true"} if cascade else {})}
        return self._api.EnvironmentContext(self._map(parameters))

    def _partition(self, partition: HivePartition, figures: FileFigures) -> Any:
        entry = self._api.Partition()
        entry.setDbName(self._table.database)
        entry.setTableName(self._table.table)
        entry.setValues(self._list(partition.values))
        entry.setSd(self._storage(f"{self._location}/{partition.folder}"))
        entry.setParameters(self._map(_figures(figures)))
        return entry

    def _storage(self, location: str) -> Any:
        serde = self._api.SerDeInfo()
        serde.setSerializationLib(_SERDE)
        serde.setParameters(self._map({"serialization.format": "1"}))
        storage = self._api.StorageDescriptor()
        storage.setCols(self._columns(self._table.columns.columns))
        storage.setLocation(location)
        storage.setInputFormat(_FORMAT)
        storage.setOutputFormat(_FORMAT)
        storage.setSerdeInfo(serde)
        return storage

    def _columns(self, columns: Sequence[HiveColumn]) -> Any:
        return self._list([self._api.FieldSchema(each.name, each.type, each.comment) for each in columns])

    def _list(self, values: Sequence[Any]) -> Any:
        array_list = self._jvm.java.util.ArrayList()
        for value in values:
            array_list.add(value)
        return array_list

    def _map(self, values: dict[str, str]) -> Any:
        hash_map = self._jvm.java.util.HashMap()
        for key, value in values.items():
            hash_map.put(key, value)
        return hash_map


def _figures(figures: FileFigures | None) -> dict[str, str]:
    """Statistics under Hive's names."""
    if figures is None:
        return {}
    return {
        "numFiles": str(figures.files),
        "numRows": str(figures.rows),
        "totalSize": str(figures.size_bytes),
        **_times(figures.written_at),
    }


def _has_statistics(parameters: str, figures: FileFigures) -> bool:
    """Whether the text of a map of parameters has these statistics."""
    entries = set(parameters[1:-1].split(", "))
    return all(f"{name}={value}" in entries for name, value in _figures(figures).items())


def _times(moment: datetime | None) -> dict[str, str]:
    if moment is None:
        return {}
    seconds = str(int(moment.timestamp()))
    return {"transient_lastDdlTime": seconds, "lastUpdateTime": seconds}


def _name(exception: Any) -> str:
    return str(exception.getClass().getSimpleName())


def _reason(exception: Any) -> str:
    """The first line of a Java exception's message."""
    message = (exception.getMessage() or "").strip().partition("\n")[0]
    return f"{_name(exception)}: {message}" if message else _name(exception)
